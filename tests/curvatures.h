/* The second derivatives of activations, for tests. */
#ifndef CURVATURES_H
#define CURVATURES_H

#include "operators.h"

/* The second derivatives, in long double: 0 at an infinite x, which is the limit, but for relu2. */

static inline long double swish_curvature(long double x, double beta)
{
    struct exact z = exact_product(x, beta), minus_z = {-z.value, -z.error};
    if (is_infinite(z.value) || (is_infinite(x) && beta != 0))
        return 0;
    long double s = 1 / (1 + exp_minus(z)), rest = 1 / (1 + exp_minus(minus_z));
    return beta * s * rest * (2 + z.value * (rest - s));
}

static inline long double gelu_curvature(long double x, double beta)
{
    (void)beta;
    return fabsl(x) > 1000 ? 0 : (2 - x * x) * expl(-x * x / 2) * 0.3989422804014326779399L;
}

static inline long double gelu_tanh_curvature(long double x, double beta)
{
    (void)beta;
    if (fabsl(x) > TANH_FORM_MOST)
        return 0;
    struct exact z = tanh_argument(x), minus_z = {-z.value, -z.error};
    long double s = 1 / (1 + exp_minus(z)), rest = 1 / (1 + exp_minus(minus_z)), c = 1.5957691216057307117598L, a = 0.044715L;
    long double slope = c * (1 + 3 * a * x * x);
    return s * rest * (2 * c * (1 + 6 * a * x * x) + x * slope * slope * (rest - s));
}

static inline long double relu2_curvature(long double x, double beta)
{
    (void)beta;
    return x <= 0 ? 0 : x > 0 ? 2 : x;
}

static inline long double relu_curvature(long double x, double beta)
{
    (void)x, (void)beta; /* nan too: threshold's gradient does not depend on its argument */
    return 0;
}

#endif
