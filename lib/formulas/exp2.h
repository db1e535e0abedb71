/*
 * What formulas make of 2^t: the logistic function 1 / (1 + 2^t) times x, and exponentials that vanish, for any finite t.
 *
 * Three things go wrong in the obvious 1 + exp(rate * x). The product's rounding error is multiplied by the exponent (five
 * bits are lost near the end of float's range): so t comes as an unevaluated sum t + error, and rates as hi + lo. The exponential is
 * rounded before 1 is added: so the sum is built from its parts. And the exponential overflows although the quotient that it is
 * used in is still a normal number: so it is kept below that, and a power of two makes up for the rest at the end.
 *
 * Read once per FL_PRECISION: see precision.h.
 */
#include "precision.h"

#ifndef FL_EXP2_ONCE
#define FL_EXP2_ONCE

#include "rate.h"

#if FL_KERNEL_CODE || defined(__FMA__) || defined(__FP_FAST_FMAF) || defined(__ARM_FEATURE_FMA)
#define FL_HAS_FMA         1
#define fl_fma_32(a, b, c) __builtin_fmaf(a, b, c)
#define fl_fma_64(a, b, c) __builtin_fma(a, b, c)
#else
#define FL_HAS_FMA         0
#define fl_fma_32(a, b, c) ((a) * (b) + (c))
#define fl_fma_64(a, b, c) ((a) * (b) + (c))
#endif

FL_INLINE unsigned fl_bits_32(float x)
{
    unsigned bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
}
FL_INLINE float fl_from_bits_32(unsigned bits)
{
    float x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
}
FL_INLINE unsigned long long fl_bits_64(double x)
{
    unsigned long long bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
}
FL_INLINE double fl_from_bits_64(unsigned long long bits)
{
    double x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
}

/* 2^n for an integral n of the exponent's range, and 0 for the exponent just below it: adding the magic number leaves n plus
 * the exponent's bias in the low bits of the significand, and the shift moves it to where an exponent stands. */
FL_INLINE float fl_power_32(float n)
{
    return fl_from_bits_32(fl_bits_32(n + (12582912.0f + 127.0f)) << 23);
}
FL_INLINE double fl_power_64(double n)
{
    return fl_from_bits_64(fl_bits_64(n + (6755399441055744.0 + 1023.0)) << 52);
}

/* ((2^f - 1) / f - ln 2) / f on [-1/2, 1/2], minimax in the relative error of 2^f: 2^-28.3 with its coefficients
 * rounded to float one after the other; 2^-55.6 in double, 2^-55.7 for steps that
 * round each product. ln 2 itself is added last, to the result's full width. */
FL_INLINE float fl_exp2_tail_32(float f)
{
    float p = 0.00015327839355450124f;
    p = fl_fma_32(p, f, 0.0013390997191891074f);
    p = fl_fma_32(p, f, 0.0096185030415654182f);
    p = fl_fma_32(p, f, 0.055503595620393753f);
    return fl_fma_32(p, f, 0.24022647738456726f);
}
FL_INLINE double fl_exp2_tail_64(double f)
{
#if FL_HAS_FMA
    double p = 4.4719154168099170e-10;
    p = fl_fma_64(p, f, 7.0739670511443568e-09);
    p = fl_fma_64(p, f, 1.0178100555823847e-07);
    p = fl_fma_64(p, f, 1.3215435765667430e-06);
    p = fl_fma_64(p, f, 1.5252733326089578e-05);
    p = fl_fma_64(p, f, 1.5403530452404258e-04);
    p = fl_fma_64(p, f, 1.3333558147371643e-03);
    p = fl_fma_64(p, f, 9.6181291076010717e-03);
    p = fl_fma_64(p, f, 5.5504108664816879e-02);
    return fl_fma_64(p, f, 2.4022650695910108e-01);
#else
    double p = 4.0780719308179391e-10;
    p = fl_fma_64(p, f, 7.0725704198799594e-09);
    p = fl_fma_64(p, f, 1.0180647660264482e-07);
    p = fl_fma_64(p, f, 1.3215442675294538e-06);
    p = fl_fma_64(p, f, 1.5252727385188713e-05);
    p = fl_fma_64(p, f, 1.5403530441572188e-04);
    p = fl_fma_64(p, f, 1.3333558153439973e-03);
    p = fl_fma_64(p, f, 9.6181291076070023e-03);
    p = fl_fma_64(p, f, 5.5504108664790395e-02);
    return fl_fma_64(p, f, 2.4022650695910098e-01);
#endif
}

#define FL_LN2_32 0.69314718246459961f
#define FL_LN2_64 (FL_HAS_FMA ? 6.9314718055994529e-01 : 6.9314718055994570e-01) /* as the tail was fitted beside it */

/* (2^f - 1) / f likewise. */
FL_INLINE float fl_exp2_slope_32(float f)
{
    return fl_fma_32(fl_exp2_tail_32(f), f, FL_LN2_32);
}
FL_INLINE double fl_exp2_slope_64(double f)
{
    return fl_fma_64(fl_exp2_tail_64(f), f, FL_LN2_64);
}

#define fl_fma_16 fl_fma_32

#define FL_MAGIC_32 12582912.0f           /* 1.5 * 2^23: adding and subtracting it rounds to an integer */
#define FL_MAGIC_64 6755399441055744.0    /* 1.5 * 2^52 */
#define FL_SPLIT_32 0xfffff000u           /* keeps 12 of float's 24 significant bits */
#define FL_SPLIT_64 0xfffffffff8000000ull /* keeps 26 of double's 53 */

/* The exponents' bias, and how many bits lie below an exponent. */
#define FL_BIAS_32  127
#define FL_BIAS_64  1023
#define FL_BELOW_32 23
#define FL_BELOW_64 52
#define FL_SHIFT_32 (FL_MAGIC_32 + FL_BIAS_32)
#define FL_SHIFT_64 (FL_MAGIC_64 + FL_BIAS_64)

#endif /* FL_EXP2_ONCE */

/*
 * A t of 2^t, as fl_exponent_of and fl_rate_exponent make it: an unevaluated sum; or, with a fused multiply-add, taken apart as it is
 * made, which takes fewer steps: into n, to which a constant is added that leaves n and the exponent's bias in the low bits, and f, between
 * -1/2 and 1/2.
 */
#undef fl_exponent
#define fl_exponent struct fl_name(fl_exponent)

fl_exponent
{
#if FL_HAS_FMA && FL_PRECISION != 16
    fl_real shifted, f;
#else
    fl_real t, error;
#endif
};

/* The logistic function 1 / (1 + 2^t) = (s + error) * scale, and what is left of 1, without cancellation: 2^t / (1 + 2^t) = rest. */
#undef fl_logistic
#define fl_logistic struct fl_name(fl_logistic)

fl_logistic
{
    fl_real s, error, rest, scale;
};

#if FL_PRECISION == 16

/*
 * By the hardware's exp2 and reciprocal, whose error is far below half a unit of a 16-bit result; products may be fused with sums.
 *
 * 1 / (1 + 2^t) is 2^-16 / (2^-16 + 2^(t - 16)), which goes on for 16 more powers of two before it overflows: far enough for all
 * normal results of bfloat16 while |x| < 2^16 there. The scale is applied in two parts, so that neither x nor the rest becomes too small.
 */
FL_INLINE float fl_two_product_16(float a, float b, float *error)
{
    *error = 0.0f;
    return a * b;
}

FL_INLINE float fl_two_sum_16(float a, float b, float *error)
{
    *error = 0.0f;
    return a + b;
}

/* Where t is made of x: no clamp is needed. nan stays. */
FL_INLINE float fl_within_16(float x, float least, float most)
{
    (void)least, (void)most;
    return x;
}

FL_INLINE float fl_within_bounds_16(float x, float least, float most)
{
    return fl_within_16(x, least, most);
}

/* For a factor beside one that keeps nan: drops it. */
FL_INLINE float fl_clamp_16(float x, float least, float most)
{
    return __builtin_fminf(__builtin_fmaxf(x, least), most);
}

FL_INLINE fl_logistic fl_logistic_at_16(fl_exponent e, float exponent_most)
{
    fl_logistic r;
    (void)exponent_most;
    r.s = fl_device_reciprocal(0x1p-16f + fl_device_exp2(e.t - 16.0f)) * 0x1p-16f;
    r.error = 0.0f;
    r.rest = 1.0f - r.s;
    r.scale = 1.0f;
    return r;
}

FL_INLINE float fl_times_logistic_16(float x, float clamped, const fl_logistic *l)
{
    (void)clamped;
    return x * l->s;
}

FL_INLINE float fl_times_rest_16(float x, float clamped, const fl_logistic *l)
{
    (void)clamped;
    return x * l->rest;
}

FL_INLINE float fl_logistic_times_16(float x, float clamped, fl_exponent e, float exponent_most)
{
    (void)clamped, (void)exponent_most;
    return x * 0x1p-8f * (fl_device_reciprocal(0x1p-16f + fl_device_exp2(e.t - 16.0f)) * 0x1p-8f);
}

#else

#if FL_PRECISION == 32
#define FL_MAGIC FL_MAGIC_32
#define FL_SPLIT FL_SPLIT_32
#define FL_LN2   FL_LN2_32
#else
#define FL_MAGIC FL_MAGIC_64
#define FL_SPLIT FL_SPLIT_64
#define FL_LN2   FL_LN2_64
#endif

/* Keeps nan: both comparisons are false for it. */
FL_INLINE fl_real fl_name(fl_clamp)(fl_real x, fl_real least, fl_real most)
{
    fl_real y = most < x ? most : x;
    return y < least ? least : y;
}

/*
 * The clamp of an x that t is made of. On a GPU by its minimum and maximum, which drop nan: whatever is made of t alone has to have it
 * put back, by fl_keep_nan.
 */
#if FL_PRECISION == 32 && FL_KERNEL_CODE
FL_INLINE float fl_within_32(float x, float least, float most)
{
    return __builtin_fminf(__builtin_fmaxf(x, least), most);
}
#else
FL_INLINE fl_real fl_name(fl_within)(fl_real x, fl_real least, fl_real most)
{
    return fl_name(fl_clamp)(x, least, most);
}
#endif

/* The same where infinite bounds are none, which compilers for CPUs do not see by themselves. */
FL_INLINE fl_real fl_name(fl_within_bounds)(fl_real x, fl_real least, fl_real most)
{
#if FL_KERNEL_CODE
    return fl_name(fl_within)(x, least, most);
#else
    return most < (fl_real)__builtin_inf() ? fl_name(fl_clamp)(x, least, most) : x;
#endif
}

/* The smaller and the larger of two numbers. Where one is nan, either. */
FL_INLINE fl_real fl_name(fl_least)(fl_real a, fl_real b)
{
#if FL_PRECISION == 32 && FL_KERNEL_CODE
    return __builtin_fminf(a, b);
#else
    return a < b ? a : b;
#endif
}
FL_INLINE fl_real fl_name(fl_greatest)(fl_real a, fl_real b)
{
#if FL_PRECISION == 32 && FL_KERNEL_CODE
    return __builtin_fmaxf(a, b);
#else
    return a > b ? a : b;
#endif
}

/* a * b = result + error, but for underflow. (Dekker 1971, where there is no fused multiply-add.) */
FL_INLINE fl_real fl_name(fl_two_product)(fl_real a, fl_real b, fl_real *error)
{
    fl_real product = a * b;
#if FL_HAS_FMA
    *error = fl_name(fl_fma)(a, b, -product);
#else
    fl_real a_upper = fl_name(fl_from_bits)(fl_name(fl_bits)(a) & FL_SPLIT), a_lower = a - a_upper;
    fl_real b_upper = fl_name(fl_from_bits)(fl_name(fl_bits)(b) & FL_SPLIT), b_lower = b - b_upper;
    *error = ((a_upper * b_upper - product) + a_upper * b_lower + a_lower * b_upper) + a_lower * b_lower;
#endif
    return product;
}

/* a + b = result + error (Knuth). */
FL_INLINE fl_real fl_name(fl_two_sum)(fl_real a, fl_real b, fl_real *error)
{
    fl_real sum = a + b, b_part = sum - a;
    *error = (a - (sum - b_part)) + (b - b_part);
    return sum;
}

/* 2^t for t <= 0, down to twice the exponent's range, as (result + result_error) * shrink. */
FL_INLINE fl_real fl_name(fl_exp2_below)(fl_exponent e, fl_real exponent_most, fl_real *result_error, fl_real *shrink)
{
#if FL_HAS_FMA
    fl_real kept = fl_name(fl_greatest)(fl_name(FL_SHIFT) - exponent_most, e.shifted);
    fl_real power = fl_name(fl_from_bits)(fl_name(fl_bits)(kept) << fl_name(FL_BELOW));
    fl_real slope = fl_name(fl_exp2_slope)(e.f), factor = e.f * power, result = fl_name(fl_fma)(factor, slope, power);
    *shrink =
        fl_name(fl_from_bits)((fl_name(fl_bits)(e.shifted) - fl_name(fl_bits)(kept) + fl_name(FL_BIAS)) << fl_name(FL_BELOW));
    *result_error = fl_name(fl_fma)(factor, slope, power - result);
#else
    fl_real n = (e.t + FL_MAGIC) - FL_MAGIC, f = (e.t - n) + e.error, tail = f * fl_name(fl_exp2_tail)(f);
    fl_real kept = n < -exponent_most ? -exponent_most : n, power = fl_name(fl_power)(kept);
    *shrink = fl_name(fl_power)(n - kept);
    f *= power;
    fl_real result = fl_name(fl_fma)(f, FL_LN2 + tail, power);
    fl_real lost, product = fl_name(fl_two_product)(f, FL_LN2, &lost);
    *result_error = ((power - result) + product) + (f * tail + lost);
#endif
    return result;
}

/* x * (s + error) * scale. The clamped x beside the error, since an infinite one would make nan of it. */
FL_INLINE fl_real fl_name(fl_times_logistic)(fl_real x, fl_real clamped, const fl_logistic *l)
{
#if FL_HAS_FMA
    return fl_name(fl_fma)(x, l->s, clamped * l->error) * l->scale;
#else
    fl_real lost, product = x * l->s;
    (void)fl_name(fl_two_product)(clamped, l->s, &lost);
    lost += clamped * l->error;
    return (lost == 0 ? product : product + lost) * l->scale; /* a negative zero stays one */
#endif
}

/* x * (1 - (s + error)), where scale is 1, or s nothing beside 1. */
FL_INLINE fl_real fl_name(fl_times_rest)(fl_real x, fl_real clamped, const fl_logistic *l)
{
    return fl_name(fl_fma)(x, l->rest, clamped * ((1 - l->rest) - l->s - l->error));
}

#if FL_HAS_FMA

/*
 * 2^t for t from -exponent_most to twice the exponent's range: its power of two is kept to exponent_most, and shrink is for the rest.
 * 2^t = (power + part) / shrink, where part has not been rounded yet: it is factor * slope, and slope is ln 2 + bend. exponent_most is a
 * run-time value, since compilers would unroll a constant's case.
 */
#undef fl_exp2_parts
#define fl_exp2_parts struct fl_name(fl_exp2_parts)

fl_exp2_parts
{
    fl_real power, factor, slope, bend, shrink;
};

FL_INLINE fl_exp2_parts fl_name(fl_exp2_of)(fl_exponent e, fl_real exponent_most)
{
    fl_exp2_parts r;
    fl_real most = exponent_most + fl_name(FL_SHIFT), kept = e.shifted;
    if (FL_KERNEL_CODE || exponent_most < (fl_real)__builtin_inf()) /* else it is none */
        kept = fl_name(fl_least)(most, kept);
    r.power = fl_name(fl_from_bits)(fl_name(fl_bits)(kept) << fl_name(FL_BELOW));
    r.shrink =
        fl_name(fl_from_bits)((fl_name(fl_bits)(kept) - fl_name(fl_bits)(e.shifted) + fl_name(FL_BIAS)) << fl_name(FL_BELOW));
    r.bend = e.f * fl_name(fl_exp2_tail)(e.f);
    r.slope = FL_LN2 + r.bend;
    r.factor = e.f * r.power;
    return r;
}

/* 1 + 2^t: the power and 1 first, and what their sum lost where the power is large, so that little but the last rounding weighs. */
FL_INLINE fl_real fl_name(fl_one_plus)(fl_exp2_parts e)
{
    fl_real sum = e.power + 1, lost = 1 - (sum - e.power);
    return sum + fl_name(fl_fma)(e.factor, FL_LN2, fl_name(fl_fma)(e.factor, e.bend, lost));
}

FL_INLINE fl_logistic fl_name(fl_logistic_at)(fl_exponent exponent, fl_real exponent_most)
{
    fl_exp2_parts e = fl_name(fl_exp2_of)(exponent, exponent_most);
    fl_logistic r;
    r.s = fl_name(fl_divide)((fl_real)1, fl_name(fl_one_plus)(e));
    /* 1 - s is exact from s = 1/2 on and carries s's own error, much of which cancels so; but not where s is near 1. */
    r.rest = r.s < (fl_real)0.9 ? (fl_real)1 - r.s : fl_name(fl_fma)(e.factor, e.slope, e.power) * r.s;
    r.scale = e.shrink;
    /* s * (1 - s * (1 + 2^t)) */
    r.error = r.s * fl_name(fl_fma)(-(e.factor * e.slope), r.s, fl_name(fl_fma)(-e.power, r.s, 1 - r.s));
    return r;
}

/* x / (1 + 2^t) */
FL_INLINE fl_real fl_name(fl_logistic_times)(fl_real x, fl_real clamped, fl_exponent exponent, fl_real exponent_most)
{
    fl_exp2_parts e = fl_name(fl_exp2_of)(exponent, exponent_most);
    (void)clamped;
    return fl_name(fl_divide)(x, fl_name(fl_one_plus)(e)) * e.shrink;
}

#else

#undef fl_exp2_result
#define fl_exp2_result struct fl_name(fl_exp2_result)

fl_exp2_result
{
    fl_real value, one_plus, shrink;
    fl_real error; /* of one_plus: what its last rounding lost */
};

/*
 * 2^t, for t from -exponent_most to twice the exponent's range, as value / shrink; and 1 + value.
 * exponent_most is a run-time value, since compilers would unroll a constant's case.
 */
FL_INLINE fl_exp2_result fl_name(fl_exp2_of)(fl_exponent e, fl_real exponent_most)
{
    fl_exp2_result r;
    fl_real n, kept, f, power, tail, sum, lost, part;
    n = (e.t + FL_MAGIC) - FL_MAGIC;
    f = (e.t - n) + e.error;
    kept = fl_name(fl_least)(n, exponent_most);
    power = fl_name(fl_power)(kept);
    tail = f * fl_name(fl_exp2_tail)(f);
    f *= power;
    r.value = fl_name(fl_fma)(f, FL_LN2 + tail, power);
    sum = power + 1;
    lost = 1 - (sum - power); /* what the sum lost, where the power is large */
    part = fl_name(fl_fma)(f, FL_LN2, fl_name(fl_fma)(f, tail, lost));
    r.one_plus = sum + part;
    r.error = (sum - r.one_plus) + part;
    r.shrink = fl_name(fl_power)(kept - n);
    return r;
}

/* 1 - a * quotient, where the quotient is 1 / a, rounded. */
FL_INLINE fl_real fl_name(fl_quotient_lacks)(fl_real a, fl_real quotient)
{
    fl_real lost, product = fl_name(fl_two_product)(a, quotient, &lost);
    return ((fl_real)1 - product) - lost;
}

/* t: within -exponent_most ... twice the exponent's range. */
FL_INLINE fl_logistic fl_name(fl_logistic_at)(fl_exponent exponent, fl_real exponent_most)
{
    fl_exp2_result e = fl_name(fl_exp2_of)(exponent, exponent_most);
    fl_logistic r;
    r.s = fl_name(fl_divide)((fl_real)1, e.one_plus);
    /* 1 - s is exact from s = 1/2 on and carries s's own error, much of which cancels so; but not where s is near 1. */
    r.rest = r.s < (fl_real)0.9 ? (fl_real)1 - r.s : e.value * r.s;
    r.scale = e.shrink;
    r.error = r.s * fl_name(fl_fma)(-e.error, r.s, fl_name(fl_quotient_lacks)(e.one_plus, r.s));
    return r;
}

/*
 * x / (1 + 2^t). The errors of the sum, of the exponential and of the division together would pass two units in the last place: what the
 * sum lost is put right. That takes the clamped x that t was made of, since an infinite one would make nan of the correction.
 */
FL_INLINE fl_real fl_name(fl_logistic_times)(fl_real x, fl_real clamped, fl_exponent exponent, fl_real exponent_most)
{
    fl_exp2_result e = fl_name(fl_exp2_of)(exponent, exponent_most);
    fl_real quotient = fl_name(fl_divide)(x, e.one_plus);
    fl_real excess = fl_name(fl_divide)(fl_name(fl_divide)(clamped, e.one_plus) * e.error, e.one_plus);
    quotient = excess == 0 ? quotient : quotient - excess; /* a negative zero stays one */
    return quotient * e.shrink;
}

#endif

#undef FL_MAGIC
#undef FL_SPLIT
#undef FL_LN2

#endif

/* t of 2^(x * rate), and its error. */
FL_INLINE fl_real fl_name(fl_rate_times)(fl_real x, const fl_struct(fl_rate) * rate, fl_real *error)
{
    fl_real t = fl_name(fl_two_product)(x, rate->hi, error);
    *error = fl_name(fl_fma)(x, rate->lo, *error);
    return t;
}

/* t + error, as an exponent. */
FL_INLINE fl_exponent fl_name(fl_exponent_of)(fl_real t, fl_real error)
{
    fl_exponent e;
#if FL_HAS_FMA && FL_PRECISION != 16
    e.shifted = t + fl_name(FL_SHIFT);
    e.f = (t - (e.shifted - fl_name(FL_SHIFT))) + error;
#else
    e.t = t;
    e.error = error;
#endif
    return e;
}

/* x * rate, as an exponent. */
FL_INLINE fl_exponent fl_name(fl_rate_exponent)(fl_real x, const fl_struct(fl_rate) * rate)
{
#if FL_HAS_FMA && FL_PRECISION != 16
    fl_exponent e;
    e.shifted = fl_name(fl_fma)(x, rate->hi, fl_name(FL_SHIFT));
    e.f = fl_name(fl_fma)(x, rate->lo, fl_name(fl_fma)(x, rate->hi, -(e.shifted - fl_name(FL_SHIFT))));
    return e;
#else
    fl_real error, t = fl_name(fl_rate_times)(x, rate, &error);
    return fl_name(fl_exponent_of)(t, error);
#endif
}

/* What fl_within made, as a factor beside one that keeps nan: on a GPU it may not have been clamped. */
FL_INLINE fl_real fl_name(fl_factor_within)(fl_real within, fl_real least, fl_real most)
{
#if FL_KERNEL_CODE
    return fl_name(fl_clamp)(within, least, most);
#else
    (void)least, (void)most;
    return within;
#endif
}

/* y, or x where that is nan. */
FL_INLINE fl_real fl_name(fl_keep_nan)(fl_real x, fl_real y)
{
#if FL_PRECISION == 32 && FL_KERNEL_CODE
    return x == x ? y : x;
#else
    (void)x; /* y is made of x: see fl_within */
    return y;
#endif
}

/*
 * For a(x) = x * sigmoid(u), u odd in x, with both derivatives: a(x) = x + a(-x), so that all of it is made of the logistic function on
 * the side where that is small, 1 / (1 + 2^|t|). There what is left of 1 has all its digits, and nothing has to be clamped before it is 0.
 */
FL_INLINE fl_logistic fl_name(fl_lower_logistic)(fl_real t, fl_real error, fl_real exponent_most)
{
    fl_logistic l = fl_name(fl_logistic_at)(fl_name(fl_exponent_of)(t < 0 ? -t : t, t < 0 ? -error : error), exponent_most);
#if FL_PRECISION != 16
    fl_real whole = l.s + l.error; /* second derivatives are made of s alone, many times */
    l.error -= whole - l.s;
    l.s = whole;
    l.rest = 1 - whole;
#endif
    return l;
}

/* a(x); t as above, of the clamped x. */
FL_INLINE fl_real fl_name(fl_mirrored_value)(fl_real x, fl_real clamped, fl_real t, const fl_logistic *l)
{
    fl_real lower = fl_name(fl_times_logistic)(x, clamped, l), upper = fl_name(fl_times_rest)(x, clamped, l);
    return t < 0 ? upper : lower;
}

/* a'(x), where moment is |x * u'|. */
FL_INLINE fl_real fl_name(fl_mirrored_slope)(fl_real moment, fl_real t, const fl_logistic *l)
{
    fl_real lower = fl_name(fl_fma)(-moment * l->s, l->rest, l->s) * l->scale;
    return t < 0 ? 1 - lower : lower;
}
