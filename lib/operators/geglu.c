#include "../entries.h"
#include "../gated.h"
#include "activations.h"

#include "../formulas/geglu.h"

FL_PARAMETERS(geglu);

static fuseline_status geglu_prepare(struct geglu_parameters *prepared)
{
    FL_GATED_PLAIN(prepared);
    fl_gelu_prepare(&prepared->in_float.activation, &prepared->in_double.activation);
    return FUSELINE_OK;
}

FL_GATED_ENTRIES(geglu, (), (), ())
