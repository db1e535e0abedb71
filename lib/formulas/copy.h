/*
 * The ruler: as many tensors read and written as an operator has, with the least arithmetic that needs all of them.
 *
 *     1 read, 1 written     y = a
 *     2 read, 1 written     y = a + b
 *     3 read, 2 written     y = a + b, z = b + c
 *
 * Declares the parameters; the functions too, once per precision, where FL_PRECISION is defined: see precision.h.
 */
#include "unary.h"

#ifndef FL_COPY_ONCE
#define FL_COPY_ONCE
struct copy_parameters_32 {
    char unused; /* C has no empty structures */
};
struct copy_parameters_64 {
    char unused;
};
#endif

#ifdef FL_PRECISION

FL_INLINE void fl_name(copy_1_1)(fl_real a, fl_real *y, const fl_parameters(copy) * p)
{
    (void)p;
    *y = a;
}

FL_INLINE void fl_name(copy_2_1)(fl_real a, fl_real b, fl_real *y, const fl_parameters(copy) * p)
{
    (void)p;
    *y = a + b;
}

FL_INLINE void fl_name(copy_3_2)(fl_real a, fl_real b, fl_real c, fl_real *y, fl_real *z, const fl_parameters(copy) * p)
{
    (void)p;
    *y = a + b;
    *z = b + c;
}

FL_NEVER_NEAR(copy)

#endif
