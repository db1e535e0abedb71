#include <math.h>

#include "../entries.h"
#include "../rate.h"
#include "activations.h"

FL_PARAMETERS(swish);

fuseline_status fl_swish_prepare(double beta, struct swish_parameters_32 *in_float, struct swish_parameters_64 *in_double)
{
    if (!(fabs(beta) <= FL_FACTOR_MOST))
        return fl_fail(FUSELINE_ERROR_ARGUMENT, "beta: is %g; accepted: a finite number within +-%g", beta, FL_FACTOR_MOST);
    fl_rate_set(-beta, &in_float->rate, &in_double->rate);
    in_float->beta = (float)beta;
    in_double->beta = beta;
    return FUSELINE_OK;
}

static fuseline_status swish_prepare(double beta, struct swish_parameters *prepared)
{
    return fl_swish_prepare(beta, &prepared->in_float, &prepared->in_double);
}

FL_UNARY_ENTRIES(swish, (double beta, ), (beta, ), (numbers[0], ))
