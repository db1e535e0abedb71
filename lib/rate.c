#include "rate.h"

#include <float.h>
#include <math.h>

/* log2(e) as an unevaluated sum. */
#define LOG2E_HI 1.4426950408889634
#define LOG2E_LO 2.0355273740931033e-17

/* One less than the largest exponent, so that the reciprocal of a value is a normal number too. */
#define EXPONENT_MOST_FLOAT  125
#define EXPONENT_MOST_DOUBLE 1021

/* Exponents outside least ... most change nothing any more: below, 1 + 2^t is 1; above, a quotient by it has vanished. */
static void clamp_range(double rate, double least, double most, double limit, double *x_least, double *x_most)
{
    double a = rate == 0 ? -limit : least / rate, b = rate == 0 ? limit : most / rate;
    *x_least = fmax(fmin(a, b), -limit);
    *x_most = fmin(fmax(a, b), limit);
}

void fl_rate_set(double factor, struct fl_rate_32 *in_float, struct fl_rate_64 *in_double)
{
    double least, most;

    in_double->hi = factor * LOG2E_HI;
    in_double->lo = fma(factor, LOG2E_HI, -in_double->hi) + factor * LOG2E_LO;
    in_float->hi = (float)in_double->hi;
    in_float->lo = (float)(in_double->hi - (double)in_float->hi + in_double->lo);

    clamp_range(in_double->hi, -EXPONENT_MOST_DOUBLE, EXPONENT_MOST_DOUBLE + 1023, DBL_MAX, &in_double->x_least,
                &in_double->x_most);
    clamp_range(in_double->hi, -EXPONENT_MOST_FLOAT, EXPONENT_MOST_FLOAT + 127, FLT_MAX, &least, &most);
    in_float->x_least = (float)least;
    in_float->x_most = (float)most;
    in_float->exponent_most = EXPONENT_MOST_FLOAT;
    in_double->exponent_most = EXPONENT_MOST_DOUBLE;
}
