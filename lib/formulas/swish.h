/*
 * swish(x; beta) = x * sigmoid(beta * x), and its derivative.
 *
 * With E = exp(-beta * x):
 *     swish  = x / (1 + E)
 *     swish' = s + z * s * (1 - s)      where s = 1 / (1 + E), z = beta * x, and 1 - s = E * s without cancellation
 *
 * Ramachandran, Zoph, Le: Searching for Activation Functions, 2017 (arXiv 1710.05941); beta = 1 is SiLU (Elfwing, Uchibe,
 * Doya 2017), beta = 1.702 the quick GELU (Hendrycks, Gimpel 2016).
 *
 * Declares the parameters; the functions too, once per precision, where FL_PRECISION is defined: see precision.h.
 */
#include "rate.h"

#ifndef FL_SWISH_ONCE
#define FL_SWISH_ONCE
struct swish_parameters_32 {
    struct fl_rate_32 rate; /* of E = 2^(rate * x): -beta * log2(e) */
    float beta;
};
struct swish_parameters_64 {
    struct fl_rate_64 rate;
    double beta;
};
#endif

#ifdef FL_PRECISION

/* Keeps nan: both comparisons are false for it. */
FL_INLINE fl_real fl_name(swish_clamp)(fl_real x, const fl_parameters(swish) * p)
{
    fl_real y = p->rate.x_most < x ? p->rate.x_most : x;
    return y < p->rate.x_least ? p->rate.x_least : y;
}

FL_INLINE void fl_name(swish_forward)(fl_real x, fl_real *y, const fl_parameters(swish) * p)
{
    fl_real clamped = fl_name(swish_clamp)(x, p);
    *y = fl_name(fl_over_one_plus)(x, clamped, fl_name(fl_exp2)(clamped, &p->rate));
}

/* At +inf the result is dy and at -inf 0 * dy, the limits of the derivative, not nan. */
FL_INLINE void fl_name(swish_backward)(fl_real dy, fl_real x, fl_real *dx, const fl_parameters(swish) * p)
{
    fl_real clamped = fl_name(swish_clamp)(x, p);
    fl_exp2_result e = fl_name(fl_exp2)(clamped, &p->rate);
    fl_real s = fl_name(fl_divide)((fl_real)1, e.one_plus);
    /* 1 - s, which is exact from s = 1/2 on and carries s's own error, so that much of it cancels; but not where s is near 1. */
    fl_real rest = s < (fl_real)0.9 ? (fl_real)1 - s : e.value * s;
    *dx = dy * (fl_name(fl_fma)(p->beta * clamped * s, rest, s) * e.shrink);
}

#endif
