/*
 * What a formula needs on the host: plain division, and the preparation of its parameters, done once per call.
 */
#ifndef FL_FORMULAS_HOST_H
#define FL_FORMULAS_HOST_H

#define fl_divide_32(a, b) ((a) / (b))
#define fl_divide_64(a, b) ((a) / (b))

/* Where a is finite. */
#define fl_divide_finite_32(a, b) ((a) / (b))
#define fl_divide_finite_64(a, b) ((a) / (b))

#endif
