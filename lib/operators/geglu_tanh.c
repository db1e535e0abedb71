#include "../entries.h"
#include "../gated.h"
#include "activations.h"

#include "../formulas/geglu_tanh.h"

FL_PARAMETERS(geglu_tanh);

static fuseline_status geglu_tanh_prepare(struct geglu_tanh_parameters *prepared)
{
    FL_GATED_PLAIN(prepared);
    fl_gelu_tanh_prepare(&prepared->in_float.activation, &prepared->in_double.activation);
    return FUSELINE_OK;
}

FL_GATED_ENTRIES(geglu_tanh, (), (), ())
