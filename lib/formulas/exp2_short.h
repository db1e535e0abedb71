/*
 * The logistic function, times x or by itself, for 16-bit types: in float, by an approximate 2^t. A part of exp2.h, which says what the
 * functions are.
 */
#if !FL_KERNEL_CODE
/*
 * What a GPU's instructions give: 2^t as a polynomial in the rest of t, minimax in the relative error, 2^-22.9; and the quotient. Whoever
 * asks brings nan into the result otherwise.
 */
FL_INLINE float fl_approximate_exp2(float t)
{
    /* From -127 to 128, by the bits: compilers make minima of integers where they would make cases of numbers' bounds. */
    unsigned bits = fl_bits_32(t), most_below = fl_bits_32(-127.0f);
    int within = (int)(bits < most_below ? bits : most_below), most = (int)fl_bits_32(128.0f);
    within = within < most ? within : most;
    t = fl_from_bits_32((unsigned)within);
    float shifted = t + FL_SHIFT_32, f = t - (shifted - FL_SHIFT_32), p = 0.0013276472f;
    p = fl_fma_32(p, f, 0.009675541f);
    p = fl_fma_32(p, f, 0.05550713f);
    p = fl_fma_32(p, f, 0.2402212f);
    p = fl_fma_32(p, f, 0.69314694f);
    return fl_fma_32(p, f, 1.0f) * fl_from_bits_32(fl_bits_32(shifted) << FL_BELOW_32);
}

FL_INLINE float fl_approximate_reciprocal(float b)
{
    return 1.0f / b;
}

FL_INLINE float fl_divide_16(float a, float b)
{
    return a / b;
}
#endif

/*
 * By approximate exp2 and reciprocal, whose error is far below half a unit of a 16-bit result; on a GPU products may be fused with sums.
 *
 * 1 / (1 + 2^t) is 2^-16 / (2^-16 + 2^(t - 16)), which goes on for 16 more powers of two before it overflows: far enough for all
 * normal results of bfloat16 while |x| < 2^16 there. Where a GPU multiplies x with it, the scale is applied in two parts, so that neither x
 * nor the rest becomes too small.
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

FL_INLINE fl_logistic fl_logistic_at_16(fl_exponent e, float exponent_most)
{
    fl_logistic r;
    (void)exponent_most;
    r.s = fl_divide_16(0x1p-16f, 0x1p-16f + fl_approximate_exp2(e.t - 16.0f));
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
#if FL_KERNEL_CODE
    return x * 0x1p-8f * (fl_approximate_reciprocal(0x1p-16f + fl_approximate_exp2(e.t - 16.0f)) * 0x1p-8f);
#else
    return x * 0x1p-16f /
           (0x1p-16f + fl_approximate_exp2(e.t - 16.0f)); /* the product is exact of 16-bit numbers, subnormal ones too */
#endif
}
