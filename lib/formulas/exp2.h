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

/* The smaller and the larger of two numbers. Where one is nan, either. */
FL_INLINE fl_real fl_name(fl_least)(fl_real a, fl_real b)
{
#if FL_PRECISION != 64 && FL_KERNEL_CODE
    return __builtin_fminf(a, b);
#else
    return a < b ? a : b;
#endif
}
FL_INLINE fl_real fl_name(fl_greatest)(fl_real a, fl_real b)
{
#if FL_PRECISION != 64 && FL_KERNEL_CODE
    return __builtin_fmaxf(a, b);
#else
    return a > b ? a : b;
#endif
}

/* Keeps nan, since both comparisons are false for it; but drops it of a GPU's 16-bit types, where it stands beside a factor that keeps it. */
FL_INLINE fl_real fl_name(fl_clamp)(fl_real x, fl_real least, fl_real most)
{
#if FL_PRECISION == 16 && FL_KERNEL_CODE
    return __builtin_fminf(__builtin_fmaxf(x, least), most);
#else
    fl_real y = most < x ? most : x;
    return y < least ? least : y;
#endif
}

#if FL_PRECISION == 16
#include "exp2_short.h"
#else
#include "exp2_exact.h"
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

/* What fl_within made, as a factor beside one that keeps nan: on a GPU, and for 16-bit types, it may not have been clamped. */
FL_INLINE fl_real fl_name(fl_factor_within)(fl_real within, fl_real least, fl_real most)
{
#if FL_KERNEL_CODE || FL_PRECISION == 16
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
