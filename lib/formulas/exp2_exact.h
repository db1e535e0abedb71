/*
 * The logistic function, times x or by itself, and exponentials that vanish, to the last places of the type computed in. A part of exp2.h,
 * which says what goes wrong otherwise.
 */
#if FL_PRECISION == 32
#define FL_MAGIC FL_MAGIC_32
#define FL_SPLIT FL_SPLIT_32
#define FL_LN2   FL_LN2_32
#else
#define FL_MAGIC FL_MAGIC_64
#define FL_SPLIT FL_SPLIT_64
#define FL_LN2   FL_LN2_64
#endif

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
    fl_real whole = fl_name(fl_fma)(e.factor, e.slope, e.power);
    r.s = fl_name(fl_divide)((fl_real)1, 1 + whole);
    /* 1 - s is exact from s = 1/2 on and carries s's own error, much of which cancels so; but not where s is near 1. */
    r.rest = r.s < (fl_real)0.9 ? (fl_real)1 - r.s : whole * r.s;
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
