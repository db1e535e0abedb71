/* The rate of an exponential 2^(x * rate), as exp2.h wants it. Filled on the host by fl_rate_set. */
#ifndef FL_FORMULAS_RATE_H
#define FL_FORMULAS_RATE_H

struct fl_rate_32 {
    float hi, lo;          /* rate = hi + lo */
    float x_least, x_most; /* x is clamped to this range: beyond it the result no longer changes */
    float exponent_most; /* of `value`: its reciprocal is still a normal number. Here, since compilers unroll a constant's case */
};

struct fl_rate_64 {
    double hi, lo;
    double x_least, x_most;
    double exponent_most;
};

#endif
