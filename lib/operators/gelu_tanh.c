#include "../entries.h"
#include "activations.h"

FL_PARAMETERS(gelu_tanh);

void fl_gelu_tanh_prepare(struct gelu_tanh_parameters_32 *in_float, struct gelu_tanh_parameters_64 *in_double)
{
    /* -2 * sqrt(2 / pi) * log2(e), and that times 0.044715, as unevaluated sums of two doubles. */
    const double linear = -2.3022081981443248, linear_lo = -1.3132826040769712e-16;
    const double cubic = -0.1029432395800235, cubic_lo = 5.978177400718744e-18;

    /* x_least: where the exponent rounds to exponent_most + 1023, or + 127, which makes a 0 of what is left of it, and so nan of -inf;
     * x_most: where 1 + E is 1. */
    *in_double = (struct gelu_tanh_parameters_64){linear, linear_lo, cubic, cubic_lo, -26.804, 21.13, 1021};
    *in_float = (struct gelu_tanh_parameters_32){(float)linear,
                                                 (float)(linear - (float)linear + linear_lo),
                                                 (float)cubic,
                                                 (float)(cubic - (float)cubic + cubic_lo),
                                                 -12.92f,
                                                 9.97f,
                                                 125};
}

static fuseline_status gelu_tanh_prepare(struct gelu_tanh_parameters *prepared)
{
    fl_gelu_tanh_prepare(&prepared->in_float, &prepared->in_double);
    return FUSELINE_OK;
}

FL_UNARY_ENTRIES(gelu_tanh, (), (), ())
