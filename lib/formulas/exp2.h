/*
 * 2^t with t = x * rate, and 1 + 2^t, for any finite x and rate: without overflow, and with an error near half a unit in the
 * last place even where the exponent is large.
 *
 * Three things go wrong in the obvious 1 + exp(rate * x). The product's rounding error is multiplied by the exponent (five
 * bits are lost near the end of float's range): so rate comes as an unevaluated sum hi + lo of twice the precision, and the
 * product's own rounding error is kept. The exponential is rounded before 1 is added: so the sum is built from its parts. And the exponential overflows although the quotient that it is used in is still a normal number:
 * so it comes as value * 2^k and `shrink` = 2^-k, and x / (1 + 2^t) is x / one_plus * shrink. `shrink` is 0 where 2^t is beyond
 * any use.
 *
 * Read once per FL_PRECISION: see precision.h.
 */
#include "precision.h"

#ifndef FL_EXP2_ONCE
#define FL_EXP2_ONCE

#include "rate.h"

#if !FL_DEVICE_CODE && (defined(__FMA__) || defined(__FP_FAST_FMAF) || defined(__ARM_FEATURE_FMA))
#define FL_HAS_FMA         1
#define fl_fma_32(a, b, c) __builtin_fmaf(a, b, c)
#define fl_fma_64(a, b, c) __builtin_fma(a, b, c)
#elif FL_DEVICE_CODE
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
 * rounded to float one after the other; 2^-55.7 in double. ln 2 itself is added last, to the result's full width. */
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
}

#define fl_fma_16 fl_fma_32

#define FL_MAGIC_32 12582912.0f           /* 1.5 * 2^23: adding and subtracting it rounds to an integer */
#define FL_MAGIC_64 6755399441055744.0    /* 1.5 * 2^52 */
#define FL_SPLIT_32 0xfffff000u           /* keeps 12 of float's 24 significant bits */
#define FL_SPLIT_64 0xfffffffff8000000ull /* keeps 26 of double's 53 */
#define FL_LN2_32   0.69314718246459961f
#define FL_LN2_64   6.9314718055994570e-01

#endif /* FL_EXP2_ONCE */

#undef fl_exp2_result
#define fl_exp2_result struct fl_name(fl_exp2_result)

fl_exp2_result
{
    fl_real value, one_plus, shrink;
    fl_real error; /* of one_plus: what its last rounding lost */
};

#if FL_PRECISION == 16

/* The hardware's exp2: no error term is needed, since 16-bit results end their normal range before it shows. */
FL_INLINE fl_exp2_result fl_exp2_16(float x, const struct fl_rate_32 *rate)
{
    fl_exp2_result r;
    float t = x * rate->hi;
    r.value = fl_device_exp2(rate->exponent_most < t ? rate->exponent_most : t);
    r.one_plus = 1.0f + r.value;
    r.error = 0.0f;
    r.shrink = 1.0f;
    if (rate->exponent_most < t) /* rare: the far tail of bfloat16; 0 where devices disagree about subnormal numbers */
        r.shrink = t < rate->exponent_most + 126.0f ? fl_device_exp2(rate->exponent_most - t) : 0.0f;
    return r;
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

/* x: already clamped to rate->x_least ... rate->x_most. */
FL_INLINE fl_exp2_result fl_name(fl_exp2)(fl_real x, const struct fl_name(fl_rate) * rate)
{
    fl_exp2_result r;
    fl_real t, error, n, kept, f, power, tail, sum, lost, part;
#if FL_HAS_FMA
    t = x * rate->hi;
    error = fl_name(fl_fma)(x, rate->lo, fl_name(fl_fma)(x, rate->hi, -t));
#else
    /* Without a fused multiply-add: hi then has half the significant bits, so that its product with x's upper half is exact. */
    fl_real upper = fl_name(fl_from_bits)(fl_name(fl_bits)(x) & FL_SPLIT);
    fl_real rate_upper = fl_name(fl_from_bits)(fl_name(fl_bits)(rate->hi) & FL_SPLIT);
    fl_real rate_lower = (rate->hi - rate_upper) + rate->lo;
    t = upper * rate_upper;
    error = (x - upper) * rate->hi + upper * rate_lower;
#endif
    n = (t + FL_MAGIC) - FL_MAGIC;
    f = (t - n) + error;
    kept = n < rate->exponent_most ? n : rate->exponent_most;
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

#undef FL_MAGIC
#undef FL_SPLIT
#undef FL_LN2

#endif

/*
 * x / (1 + 2^t). In double, and in float without a fused multiply-add, the errors of the sum, of the exponential and of the
 * division together would pass two units in the last place: there what the sum and the division lost is put right. That takes the
 * clamped x that t was made of, since an infinite one would make nan of the correction.
 */
FL_INLINE fl_real fl_name(fl_over_one_plus)(fl_real x, fl_real clamped, fl_exp2_result e)
{
#if FL_PRECISION != 16 && !FL_HAS_FMA
    fl_real quotient = fl_name(fl_divide)(x, e.one_plus);
    fl_real excess = fl_name(fl_divide)(fl_name(fl_divide)(clamped, e.one_plus) * e.error, e.one_plus);
    quotient = excess == 0 ? quotient : quotient - excess; /* a negative zero stays one */
    return quotient * e.shrink;
#elif FL_PRECISION == 64
    fl_real reciprocal = fl_name(fl_divide)((fl_real)1, e.one_plus);
    fl_real missing = fl_name(fl_fma)(-e.error, reciprocal, fl_name(fl_fma)(-e.one_plus, reciprocal, (fl_real)1));
    return fl_name(fl_fma)(x, reciprocal, clamped * reciprocal * missing) * e.shrink;
#else
    (void)clamped;
    return fl_name(fl_divide)(x, e.one_plus) * e.shrink;
#endif
}
