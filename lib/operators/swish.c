#include <math.h>

#include "../entries.h"
#include "../formulas/swish.h"
#include "../rate.h"

FL_PARAMETERS(swish);

static fuseline_status swish_prepare(double beta, struct swish_parameters *parameters)
{
    if (!(fabs(beta) <= FL_FACTOR_MOST))
        return fl_fail(FUSELINE_ERROR_ARGUMENT, "beta: is %g; accepted: a finite number within +-%g", beta, FL_FACTOR_MOST);
    fl_rate_set(-beta, &parameters->in_float.rate, &parameters->in_double.rate);
    parameters->in_float.beta = (float)beta;
    parameters->in_double.beta = beta;
    return FUSELINE_OK;
}

FL_ENTRIES_1_1(swish_forward, swish, (double beta, ), (beta, ))
FL_ENTRIES_2_1(swish_backward, swish, (double beta, ), (beta, ))
