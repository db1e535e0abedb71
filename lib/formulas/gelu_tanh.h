/*
 * gelu's tanh form: 0.5 * x * (1 + tanh(c * (x + a * x^3))), c = sqrt(2 / pi), a = 0.044715, and its derivatives.
 *
 * Since 0.5 * (1 + tanh(z / 2)) = sigmoid(z), it is x / (1 + E) with E = exp(-z), z = 2 * c * (x + a * x^3): no cancellation for
 * negative x, no overflow. The exponent is carried in twice the precision, for its absolute error is the result's relative one.
 *     derivative = s * (1 + x * z' * E * s)      where s = 1 / (1 + E)
 *     second derivative = s * (1 - s) * (2 * z' + x * z'' + x * z'^2 * (1 - 2 * s))
 *
 * Hendrycks, Gimpel: Gaussian Error Linear Units, 2016 (arXiv 1606.08415).
 *
 * Declares the parameters; the functions too, once per precision, where FL_PRECISION is defined: see precision.h.
 */
#include "unary.h"

#ifndef FL_GELU_TANH_ONCE
#define FL_GELU_TANH_ONCE
/* E = 2^(x * (linear + cubic * x^2)), both as unevaluated sums. */
struct gelu_tanh_parameters_32 {
    float linear_hi, linear_lo, cubic_hi, cubic_lo;
    float x_least, x_most, exponent_most;
};
struct gelu_tanh_parameters_64 {
    double linear_hi, linear_lo, cubic_hi, cubic_lo;
    double x_least, x_most, exponent_most;
};
#endif

#ifdef FL_PRECISION

/* t of E = 2^t at x, its error, and x^2. */
FL_INLINE fl_real fl_name(fl_gelu_tanh_exponent)(fl_real x, fl_real *error, fl_real *square, const fl_parameters(gelu_tanh) * p)
{
    fl_real square_error, cubic, cubic_error, rate, rate_error, t;
    *square = fl_name(fl_two_product)(x, x, &square_error);
    cubic = fl_name(fl_two_product)(*square, p->cubic_hi, &cubic_error);
    cubic_error += fl_name(fl_fma)(*square, p->cubic_lo, square_error * p->cubic_hi);
    rate = fl_name(fl_two_sum)(p->linear_hi, cubic, &rate_error);
    rate_error += cubic_error + p->linear_lo;
    t = fl_name(fl_two_product)(x, rate, error);
    *error = fl_name(fl_fma)(x, rate_error, *error);
    return t;
}

FL_INLINE fl_real fl_name(gelu_tanh_value)(fl_real x, const fl_parameters(gelu_tanh) * p)
{
    fl_real within = fl_name(fl_within_bounds)(x, p->x_least, p->x_most), error, square;
    fl_real t = fl_name(fl_gelu_tanh_exponent)(within, &error, &square, p);
    return fl_name(fl_logistic_times)(x, within, fl_name(fl_exponent_of)(t, error), p->exponent_most);
}

FL_INLINE fl_real fl_name(gelu_tanh_slope)(fl_real x, fl_real *value, const fl_parameters(gelu_tanh) * p)
{
    const fl_real c2 = (fl_real)1.5957691216057308, a = (fl_real)0.044715;
    fl_real within = fl_name(fl_within_bounds)(x, p->x_least, p->x_most), error, square;
    fl_real t = fl_name(fl_gelu_tanh_exponent)(within, &error, &square, p);
    fl_logistic l = fl_name(fl_logistic_at)(fl_name(fl_exponent_of)(t, error), p->exponent_most);
    fl_real clamped = fl_name(fl_factor_within)(within, p->x_least, p->x_most);
    fl_real x_slope = clamped * fl_name(fl_fma)(clamped * clamped, 3 * a * c2, c2);
    *value = fl_name(fl_times_logistic)(x, within, &l);
    return fl_name(fl_keep_nan)(x, fl_name(fl_fma)(x_slope * l.s, l.rest, l.s) * l.scale);
}

FL_INLINE fl_real fl_name(gelu_tanh_curvature)(fl_real x, fl_real *value, fl_real *slope, const fl_parameters(gelu_tanh) * p)
{
    const fl_real c2 = (fl_real)1.5957691216057308, a = (fl_real)0.044715;
    fl_real within = fl_name(fl_within)(x, p->x_least, -p->x_least), error, square;
    fl_real t = fl_name(fl_gelu_tanh_exponent)(within, &error, &square, p);
    fl_logistic l = fl_name(fl_lower_logistic)(t, error, p->exponent_most);
    fl_real clamped = fl_name(fl_factor_within)(within, p->x_least, -p->x_least), clamped_square = clamped * clamped;
    fl_real z_slope = fl_name(fl_fma)(clamped_square, 3 * a * c2, c2), moment = (clamped < 0 ? -clamped : clamped) * z_slope;
    fl_real terms = fl_name(fl_fma)(clamped_square, 12 * a * c2, 2 * c2); /* 2 * z' + x * z'' */
    fl_real curvature = l.s * l.rest * fl_name(fl_fma)(-moment * z_slope, l.rest - l.s, terms);
    *value = fl_name(fl_mirrored_value)(x, within, t, &l);
    *slope = fl_name(fl_keep_nan)(x, fl_name(fl_mirrored_slope)(moment, t, &l));
    return fl_name(fl_keep_nan)(x, curvature * l.scale);
}

FL_PASSES_EVERYWHERE(gelu_tanh)
FL_NEAR(gelu_tanh, )
FL_UNARY(gelu_tanh)

#endif
