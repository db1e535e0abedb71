/*
 * swish(x; beta) = x * sigmoid(beta * x), and its derivatives.
 *
 * With E = exp(-beta * x):
 *     swish  = x / (1 + E)
 *     swish' = s + z * s * (1 - s)      where s = 1 / (1 + E), z = beta * x, and 1 - s = E * s without cancellation
 *     swish'' = beta * s * (1 - s) * (2 + z * (1 - 2 * s))
 *
 * Ramachandran, Zoph, Le: Searching for Activation Functions, 2017 (arXiv 1710.05941); beta = 1 is SiLU (Elfwing, Uchibe,
 * Doya 2017), beta = 1.702 the quick GELU (Hendrycks, Gimpel 2016).
 *
 * Declares the parameters; the functions too, once per precision, where FL_PRECISION is defined: see precision.h.
 */
#include "rate.h"
#include "unary.h"

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

FL_INLINE fl_real fl_name(swish_value)(fl_real x, const fl_parameters(swish) * p)
{
    fl_real within = fl_name(fl_within_bounds)(x, p->rate.x_least, p->rate.x_most);
    return fl_name(fl_logistic_times)(x, within, fl_name(fl_rate_exponent)(within, &p->rate), p->rate.exponent_most);
}

/* The limits at infinite x, 1 and 0, and not nan: the argument is clamped where it would multiply a zero. */
FL_INLINE fl_real fl_name(swish_slope)(fl_real x, fl_real *value, const fl_parameters(swish) * p)
{
    fl_real within = fl_name(fl_within_bounds)(x, p->rate.x_least, p->rate.x_most);
    fl_logistic l = fl_name(fl_logistic_at)(fl_name(fl_rate_exponent)(within, &p->rate), p->rate.exponent_most);
    fl_real z = p->beta * fl_name(fl_factor_within)(within, p->rate.x_least, p->rate.x_most);
    *value = fl_name(fl_times_logistic)(x, within, &l);
    return fl_name(fl_keep_nan)(x, fl_name(fl_fma)(z * l.s, l.rest, l.s) * l.scale);
}

FL_INLINE fl_real fl_name(swish_curvature)(fl_real x, fl_real *value, fl_real *slope, const fl_parameters(swish) * p)
{
    fl_real most = -p->rate.x_least < p->rate.x_most ? p->rate.x_most : -p->rate.x_least;
    fl_real within = fl_name(fl_within)(x, -most, most), z = p->beta * fl_name(fl_factor_within)(within, -most, most),
            size = z < 0 ? -z : z;
    fl_real error, t = fl_name(fl_rate_times)(within, &p->rate, &error);
    fl_logistic l = fl_name(fl_lower_logistic)(t, error, p->rate.exponent_most);
    fl_real curvature = fl_name(fl_fma)(-size, fl_name(fl_fma)((fl_real)-2, l.s, (fl_real)1), (fl_real)2);
    curvature *= p->beta * fl_name(fl_fma)(-l.s, l.s, l.s);
    *value = fl_name(fl_mirrored_value)(x, within, t, &l);
    *slope = fl_name(fl_keep_nan)(x, fl_name(fl_mirrored_slope)(size, t, &l));
    return fl_name(fl_keep_nan)(x, curvature * l.scale);
}

FL_PASSES_EVERYWHERE(swish)
FL_NEAR(swish, rate.)
FL_UNARY(swish)

#endif
