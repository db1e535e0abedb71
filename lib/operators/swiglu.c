#include "../entries.h"
#include "../gated.h"
#include "activations.h"

#include "../formulas/swiglu.h"

FL_PARAMETERS(swiglu);

static fuseline_status swiglu_prepare(double beta, double limit, double offset, struct swiglu_parameters *prepared)
{
    FL_TRY(fl_gated_check(limit, offset));
    prepared->in_float.limit = fl_gated_limit_in_float(limit);
    prepared->in_float.offset = offset != 0 ? (float)offset : FL_NO_OFFSET;
    prepared->in_double.limit = limit;
    prepared->in_double.offset = offset != 0 ? offset : FL_NO_OFFSET;
    return fl_swish_prepare(beta, &prepared->in_float.activation, &prepared->in_double.activation);
}

FL_GATED_ENTRIES(swiglu, (double beta, double limit, double offset, ), (beta, limit, offset, ),
                 (numbers[1], numbers[2], numbers[3], ))
