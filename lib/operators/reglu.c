#include "../entries.h"
#include "../gated.h"
#include "activations.h"

#include "../formulas/reglu.h"

FL_PARAMETERS(reglu);

static fuseline_status reglu_prepare(struct reglu_parameters *prepared)
{
    FL_GATED_PLAIN(prepared);
    prepared->in_float.activation.unused = prepared->in_double.activation.unused = 0;
    return FUSELINE_OK;
}

FL_GATED_ENTRIES(reglu, (), (), ())
