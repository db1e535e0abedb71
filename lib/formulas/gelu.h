/*
 * gelu(x) = x * Phi(x), Phi the normal distribution function, and its derivatives Phi(x) + x * phi(x) and (2 - x^2) * phi(x).
 *
 * With t = |x| and Q the distribution's upper tail, gelu(x) = max(x, 0) - t * Q(t), and Q(t) = exp(-t^2 / 2) * R(t), where R is Mills' ratio
 * (over sqrt(2 pi)): smooth, so that nothing cancels and nothing underflows before the result does. 0.5 * (1 + erf(x / sqrt 2)) would lose
 * every digit by x = -6 in float. t * R(t) is computed as w * h(2 w - 1), w = t / (t + k), which maps all t to a finite range; in this form
 * the rounding of w costs no more than itself.
 *
 * Hendrycks, Gimpel: Gaussian Error Linear Units, 2016 (arXiv 1606.08415).
 *
 * Declares the parameters; the functions too, once per precision, where FL_PRECISION is defined: see precision.h.
 */
#include "unary.h"

#ifndef FL_GELU_ONCE
#define FL_GELU_ONCE
struct gelu_parameters_32 {
    float exponent_most; /* of exp2's result: see fl_exp2_below */
};
struct gelu_parameters_64 {
    double exponent_most;
};
#endif

#ifdef FL_PRECISION

#if FL_PRECISION == 16

/*
 * (t + 3) * Q(t) * exp(t^2 / 2) as a polynomial in v = t / (t + 3), minimax in the relative error, for t <= 13.3: 2^-18.5 on a GPU, and on
 * the CPU, where there is time for another step, 2^-20.8.
 */
FL_INLINE float fl_mills_16(float v)
{
#if FL_KERNEL_CODE
    float h = 0.093560245f;
    h = fl_fma_16(h, v, -0.0810994594f);
    h = fl_fma_16(h, v, -0.321210239f);
    h = fl_fma_16(h, v, 0.234582711f);
    h = fl_fma_16(h, v, 1.06391182f);
    h = fl_fma_16(h, v, -2.09013249f);
    return fl_fma_16(h, v, 1.49999602f);
#else
    float h = -0.0724153f;
    h = fl_fma_16(h, v, 0.3116804f);
    h = fl_fma_16(h, v, -0.34183407f);
    h = fl_fma_16(h, v, -0.1645702f);
    h = fl_fma_16(h, v, 0.1853784f);
    h = fl_fma_16(h, v, 1.0714686f);
    h = fl_fma_16(h, v, -2.0905855f);
    return fl_fma_16(h, v, 1.5000007f);
#endif
}

/*
 * exp(-x^2 / 2) / FL_SMALL. On a GPU it may underflow: by then values have left the normal range, and gradients are nothing beside 1. On the
 * CPU it is 2^24 times as large, until the end, so that they do not vanish.
 */
#if FL_KERNEL_CODE
#define FL_SMALL 1.0f
FL_INLINE float fl_normal_power_16(float x)
{
    return fl_approximate_exp2(x * x * -0.72134752f);
}
#else
#define FL_SMALL 0x1p-24f
FL_INLINE float fl_normal_power_16(float x)
{
    return fl_approximate_exp2(fl_fma_16(x * x, -0.72134752f, 24.0f));
}
#endif

/* As below, by approximate exp2 and reciprocal. nan comes through the reciprocal; the minimum keeps inf from it. */
FL_INLINE float gelu_value_16(float x, const fl_parameters(gelu) * p)
{
    float t = __builtin_fabsf(x), inverse = fl_approximate_reciprocal(t + 3.0f), v = fl_least_16(t, 1e4f) * inverse;
    float power = fl_normal_power_16(x);
    (void)p;
    return fl_fma_16(x, x > 0.0f ? 1.0f : 0.0f, -(power * v * fl_mills_16(v) * FL_SMALL));
}

FL_INLINE float gelu_slope_16(float x, float *value, const fl_parameters(gelu) * p)
{
    float t = __builtin_fabsf(x), inverse = fl_approximate_reciprocal(t + 3.0f), v = fl_least_16(t, 1e4f) * inverse;
    float power = fl_normal_power_16(x), tail = power * inverse * fl_mills_16(v) * FL_SMALL;
    float distribution = x < 0.0f ? tail : 1.0f - tail;
    (void)p;
    *value = x * distribution;
    return fl_fma_16(fl_clamp_16(x, -1e4f, 1e4f) * (0.39894228f * FL_SMALL), power, distribution);
}

/* The compiler sees that the exponential is the slope's. */
FL_INLINE float gelu_curvature_16(float x, float *value, float *slope, const fl_parameters(gelu) * p)
{
    float power = fl_normal_power_16(x), clamped = fl_clamp_16(x, -1e4f, 1e4f);
    *slope = gelu_slope_16(x, value, p);
    power *= 0.39894228f * FL_SMALL;
    return fl_fma_16(-clamped * clamped, power, 2.0f * power);
}

#undef FL_SMALL

#else

/* a * b + c = result + error. */
FL_INLINE fl_real fl_name(fl_last_step)(fl_real a, fl_real b, fl_real c, fl_real *error)
{
    fl_real sum = fl_name(fl_fma)(a, b, c);
#if FL_HAS_FMA
    *error = fl_name(fl_fma)(a, b, c - sum);
#else
    fl_real lost, product = fl_name(fl_two_product)(a, b, &lost);
    *error = ((c - sum) + product) + lost;
#endif
    return sum;
}

/* (t + k) * Q(t) * exp(t^2 / 2) as a polynomial in v = 2 t / (t + k) - 1, minimax in the relative error, for t <= t_most. */
#if FL_PRECISION == 32
#define FL_MILLS_K      4
#define FL_MILLS_T_MOST 14.5f
/* 2^-29.7 */
FL_INLINE float fl_mills_32(float v, float *error)
{
    float h = -4.6318393e-5f;
    h = fl_fma_32(h, v, -2.2205694e-4f);
    h = fl_fma_32(h, v, 1.7094046e-4f);
    h = fl_fma_32(h, v, 1.6370874e-3f);
    h = fl_fma_32(h, v, -3.4912971e-3f);
    h = fl_fma_32(h, v, -7.5429054e-3f);
    h = fl_fma_32(h, v, 6.0398147e-2f);
    h = fl_fma_32(h, v, -1.8652156e-1f);
    h = fl_fma_32(h, v, 3.8713732e-1f);
    h = fl_fma_32(h, v, -6.078966e-1f);
    return fl_last_step_32(h, v, 7.5528514e-1f, error);
}
#else
#define FL_MILLS_K      5
#define FL_MILLS_T_MOST 39.0
/* 2^-57.2 */
FL_INLINE double fl_mills_64(double v, double *error)
{
    double h = -3.029010984332749e-10;
    h = fl_fma_64(h, v, 1.4319583462986165e-09);
    h = fl_fma_64(h, v, 7.9421799304826e-09);
    h = fl_fma_64(h, v, -8.294755553777982e-09);
    h = fl_fma_64(h, v, -6.601150943673125e-08);
    h = fl_fma_64(h, v, 4.088041955511697e-08);
    h = fl_fma_64(h, v, 4.328840758105928e-07);
    h = fl_fma_64(h, v, -3.355371485711123e-07);
    h = fl_fma_64(h, v, -2.7689524616965846e-06);
    h = fl_fma_64(h, v, 3.980384686041695e-06);
    h = fl_fma_64(h, v, 1.6681041216742982e-05);
    h = fl_fma_64(h, v, -4.976265490719462e-05);
    h = fl_fma_64(h, v, -5.937567479153077e-05);
    h = fl_fma_64(h, v, 0.0005448990333903478);
    h = fl_fma_64(h, v, -0.0007978694080097421);
    h = fl_fma_64(h, v, -0.002993376766705667);
    h = fl_fma_64(h, v, 0.02079506680083766);
    h = fl_fma_64(h, v, -0.06911863870657);
    h = fl_fma_64(h, v, 0.1650203661703374);
    h = fl_fma_64(h, v, -0.3135331566712962);
    h = fl_fma_64(h, v, 0.4953056159699773);
    h = fl_fma_64(h, v, -0.6653825028900567);
    return fl_last_step_64(h, v, 0.769193049750063, error);
}
#endif

/* (Phi(x) - 1/2) / x as a polynomial in x^2, for |x| < 1/2. */
#if FL_PRECISION == 32
/* 2^-26.8 */
FL_INLINE float fl_normal_center_32(float square)
{
    float c = -0.00113113044f;
    c = fl_fma_32(c, square, 0.009964836695f);
    c = fl_fma_32(c, square, -0.06648994439f);
    return fl_fma_32(c, square, 0.398942277f);
}
#elif FL_PRECISION == 64
/* 2^-58.4 */
FL_INLINE double fl_normal_center_64(double square)
{
    double c = -3.90169508831797372e-08;
    c = fl_fma_64(c, square, 6.65079417991010477e-07);
    c = fl_fma_64(c, square, -9.44446866475683293e-06);
    c = fl_fma_64(c, square, 1.15434665660001163e-04);
    c = fl_fma_64(c, square, -1.18732821408312377e-03);
    c = fl_fma_64(c, square, 9.97355700999210149e-03);
    c = fl_fma_64(c, square, -6.64903800669049248e-02);
    return fl_fma_64(c, square, 3.98942280401432677e-01);
}
#endif

/* -log2(e) / 2 as an unevaluated sum. */
#if FL_PRECISION == 64
#define FL_HALF_LOG2E_HI (-0.72134752044448170)
#define FL_HALF_LOG2E_LO (-1.0177636870465517e-17)
#else
#define FL_HALF_LOG2E_HI (-0.721347510814666748f)
#define FL_HALF_LOG2E_LO (-9.6298151e-09f)
#endif

#undef fl_normal
#define fl_normal struct fl_name(fl_normal)

/* What the forms below share, at t = |x|: exp(-t^2 / 2) = (power + power_error) * shrink, and Mills' ratio's parts. */
fl_normal
{
    fl_real clamped, t, square, power, power_error, shrink, share, mills, mills_error;
};

FL_INLINE fl_normal fl_name(fl_normal_at)(fl_real x, fl_real exponent_most)
{
    fl_normal r;
    fl_real square_error;
    fl_exponent exponent;
    r.clamped = fl_name(fl_clamp)(x, -FL_MILLS_T_MOST, FL_MILLS_T_MOST);
    r.t = fl_name(fl_least)(x < 0 ? -x : x, FL_MILLS_T_MOST); /* of nan, which x brings into every result, any number */
    r.square = fl_name(fl_two_product)(r.t, r.t, &square_error);
#if FL_HAS_FMA
    exponent.shifted = fl_name(fl_fma)(r.square, FL_HALF_LOG2E_HI, fl_name(FL_SHIFT));
    exponent.f = fl_name(fl_fma)(r.square, FL_HALF_LOG2E_HI, -(exponent.shifted - fl_name(FL_SHIFT)));
    exponent.f = fl_name(fl_fma)(r.square, FL_HALF_LOG2E_LO, exponent.f);
    exponent.f = fl_name(fl_fma)(square_error, FL_HALF_LOG2E_HI, exponent.f);
#else
    exponent.t = fl_name(fl_two_product)(r.square, FL_HALF_LOG2E_HI, &exponent.error);
    exponent.error += fl_name(fl_fma)(r.square, FL_HALF_LOG2E_LO, square_error * FL_HALF_LOG2E_HI);
#endif
    r.power = fl_name(fl_exp2_below)(exponent, exponent_most, &r.power_error, &r.shrink);
    r.share = fl_name(fl_divide_finite)(r.t, r.t + (fl_real)FL_MILLS_K);
    r.mills = fl_name(fl_mills)(fl_name(fl_fma)((fl_real)2, r.share, (fl_real)-1), &r.mills_error);
    return r;
}

/* max(x, 0) - t * Q(t): for negative x only the second term is left, in twice the precision. Near 0 the Taylor-like form is better. */
FL_INLINE fl_real fl_name(gelu_value)(fl_real x, const fl_parameters(gelu) * p)
{
    fl_normal n = fl_name(fl_normal_at)(x, p->exponent_most);
    fl_real ratio_error, ratio = fl_name(fl_two_product)(n.share, n.mills, &ratio_error), y;
    ratio_error = fl_name(fl_fma)(n.share, n.mills_error, ratio_error);
#if FL_HAS_FMA
    fl_real moment = fl_name(fl_fma)(n.power, ratio, fl_name(fl_fma)(n.power, ratio_error, n.power_error * ratio));
#else
    fl_real error, product = fl_name(fl_two_product)(n.power, ratio, &error);
    fl_real moment = product + (error + (n.power * ratio_error + n.power_error * ratio));
#endif
    y = fl_name(fl_fma)(-moment, n.shrink, x * (fl_real)(x > 0 ? 1 : 0));
    fl_real center = x * fl_name(fl_fma)(x, fl_name(fl_normal_center)(n.square), (fl_real)0.5);
    return n.t < (fl_real)0.5 ? center : y;
}

FL_INLINE fl_real fl_name(fl_gelu_slope_of)(const fl_normal *n, fl_real x, fl_real *value)
{
    fl_real power = n->power * n->shrink;
    fl_real tail = power * fl_name(fl_divide_finite)(n->mills, n->t + (fl_real)FL_MILLS_K);
    fl_real distribution = x < 0 ? tail : 1 - tail;
    fl_real center = fl_name(fl_fma)(n->clamped, fl_name(fl_normal_center)(n->square), (fl_real)0.5);
    distribution = n->t < (fl_real)0.5 ? center : distribution;
    *value = x * distribution;
    return fl_name(fl_fma)(n->clamped * (fl_real)0.39894228040143268, power, distribution);
}

FL_INLINE fl_real fl_name(gelu_slope)(fl_real x, fl_real *value, const fl_parameters(gelu) * p)
{
    fl_normal n = fl_name(fl_normal_at)(x, p->exponent_most);
    return fl_name(fl_gelu_slope_of)(&n, x, value);
}

FL_INLINE fl_real fl_name(gelu_curvature)(fl_real x, fl_real *value, fl_real *slope, const fl_parameters(gelu) * p)
{
    fl_normal n = fl_name(fl_normal_at)(x, p->exponent_most);
    fl_real density = (n.power + n.power_error) * n.shrink * (fl_real)0.39894228040143268;
    *slope = fl_name(fl_gelu_slope_of)(&n, x, value);
    return fl_name(fl_fma)(-n.clamped * n.clamped, density, 2 * density);
}

#undef FL_MILLS_K
#undef FL_MILLS_T_MOST
#undef FL_HALF_LOG2E_HI
#undef FL_HALF_LOG2E_LO

#endif

FL_PASSES_EVERYWHERE(gelu)
FL_NEVER_NEAR(gelu)
FL_UNARY(gelu)

#endif
