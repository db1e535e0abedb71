/*
 * Right values: the four element types as numbers, swish and its derivative in a higher precision, and distances in ulps.
 *
 * Nothing here comes from the library. Conversions go through the definition of the formats (frexp, ldexp and rounding to an
 * integer), slow and plain.
 */
#ifndef NUMBERS_H
#define NUMBERS_H

#include <dlpack/dlpack.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

struct format {
    const char *name;
    DLDataType dtype;
    int size;           /* bytes */
    int digits;         /* significant bits of a normal number */
    int exponent_least; /* of the smallest normal number, 2^exponent_least */
    int exponent_most;  /* of the largest one */
};

enum { IN_FLOAT16, IN_BFLOAT16, IN_FLOAT32, IN_FLOAT64, FORMATS };

static const struct format formats[FORMATS] = {
    {"float16", {kDLFloat, 16, 1}, 2, 11, -14, 15},
    {"bfloat16", {kDLBfloat, 16, 1}, 2, 8, -126, 127},
    {"float32", {kDLFloat, 32, 1}, 4, 24, -126, 127},
    {"float64", {kDLFloat, 64, 1}, 8, 53, -1022, 1023},
};

/* The distance between neighbours of the format around `value`. */
static inline long double ulp_at(const struct format *format, long double value)
{
    int exponent = value == 0 ? format->exponent_least : ilogbl(value);
    if (exponent < format->exponent_least)
        exponent = format->exponent_least;
    return ldexpl(1, exponent - format->digits + 1);
}

static inline double normal_least(const struct format *format)
{
    return ldexp(1, format->exponent_least);
}

static inline double finite_most(const struct format *format)
{
    return ldexp(2 - ldexp(1, 1 - format->digits), format->exponent_most);
}

/* The nearest number of the format, ties to even, inf beyond the largest. */
static inline double round_to(const struct format *format, double value)
{
    if (isnan(value) || isinf(value) || value == 0 || format->size == 8)
        return value;
    double unit = (double)ulp_at(format, value), rounded = rint(value / unit) * unit;
    if (fabs(rounded) > finite_most(format))
        rounded = INFINITY;
    return copysign(rounded, value);
}

/* Reads one element, at any address. Exact. Not inlined: gcc would warn of the sizes that the caller's format does not have. */
__attribute__((noinline, unused)) static double load(const struct format *format, const void *from)
{
    if (format->size == 8) {
        double value;
        memcpy(&value, from, sizeof value);
        return value;
    }
    if (format->size == 4) {
        float value;
        memcpy(&value, from, sizeof value);
        return value;
    }
    uint16_t bits;
    memcpy(&bits, from, sizeof bits);
    int fraction_bits = format->digits - 1, exponent = (bits & 0x7fff) >> fraction_bits;
    int fraction = bits & ((1 << fraction_bits) - 1), bias = format->exponent_most;
    double magnitude;
    if (exponent == 2 * bias + 1)
        magnitude = fraction != 0 ? NAN : INFINITY;
    else if (exponent == 0)
        magnitude = ldexp(fraction, 1 - bias - fraction_bits);
    else
        magnitude = ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
    return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

/* Writes the nearest number of the format, at any address. */
__attribute__((noinline, unused)) static void store(const struct format *format, void *to, double value)
{
    value = round_to(format, value);
    if (format->size == 8) {
        memcpy(to, &value, sizeof value);
        return;
    }
    if (format->size == 4) {
        float element = (float)value;
        memcpy(to, &element, sizeof element);
        return;
    }
    int fraction_bits = format->digits - 1, bias = format->exponent_most;
    uint16_t sign = signbit(value) ? 0x8000 : 0, bits;
    if (isnan(value))
        bits = (uint16_t)(((2 * bias + 1) << fraction_bits) | 1 << (fraction_bits - 1));
    else if (isinf(value))
        bits = (uint16_t)((2 * bias + 1) << fraction_bits);
    else if (fabs(value) < normal_least(format))
        bits = (uint16_t)ldexp(fabs(value), bias - 1 + fraction_bits);
    else {
        int exponent = ilogb(value);
        bits = (uint16_t)((exponent + bias - 1) << fraction_bits);
        bits = (uint16_t)(bits + (int)ldexp(fabs(value), fraction_bits - exponent));
    }
    bits = (uint16_t)(bits | sign);
    memcpy(to, &bits, 2);
}

/* isinf for a long double that may be computed in double, as valgrind does it. */
static inline int is_infinite(long double value)
{
    return value > DBL_MAX || value < -DBL_MAX;
}

/* How far `got` lies from `right`, in units of the last place of `right`; infinite if one is finite and the other is not. */
static inline double ulps_between(const struct format *format, double got, long double right)
{
    if (isnan(got) || isnan(right))
        return isnan(got) && isnan(right) ? 0 : INFINITY;
    if (isinf(got) || is_infinite(right))
        return got == right ? 0 : INFINITY;
    return (double)(fabsl(got - right) / ulp_at(format, right));
}

/* True where long double carries enough more bits than double to judge double by it. Asked at run time, since valgrind computes
 * long double in double. */
static inline int long_double_is_wider(void)
{
    volatile long double one = 1, small = 0x1p-62L;
    volatile long double sum = one + small;
    return sum != one;
}

/* x * sigmoid(beta * x). */
static inline long double swish_in_long_double(double x, double beta)
{
    return x / (1 + expl(-(long double)beta * x));
}

static inline double swish_in_double(double x, double beta)
{
    return x / (1 + exp(-beta * x));
}

/* Its derivative; 1 and 0 at the infinities, the limits. */
static inline long double swish_slope_in_long_double(double x, double beta)
{
    long double z = (long double)beta * x, sigmoid = 1 / (1 + expl(-z)), rest = 1 / (1 + expl(z));
    if (is_infinite(z))
        return z > 0 ? 1 : 0;
    return sigmoid * (1 + z * rest);
}

static inline double swish_slope_in_double(double x, double beta)
{
    double z = beta * x, sigmoid = 1 / (1 + exp(-z)), rest = 1 / (1 + exp(z));
    if (isinf(z))
        return z > 0 ? 1 : 0;
    return sigmoid * (1 + z * rest);
}

#endif
