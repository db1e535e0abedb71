#include "../entries.h"
#include "activations.h"

FL_PARAMETERS(gelu);

void fl_gelu_prepare(struct gelu_parameters_32 *in_float, struct gelu_parameters_64 *in_double)
{
    /* The tail's factors beside the exponential are above 2^-6: with these caps no product of them is subnormal. */
    in_float->exponent_most = 100;
    in_double->exponent_most = 1000;
}

static fuseline_status gelu_prepare(struct gelu_parameters *prepared)
{
    fl_gelu_prepare(&prepared->in_float, &prepared->in_double);
    return FUSELINE_OK;
}

FL_UNARY_ENTRIES(gelu, (), (), ())
