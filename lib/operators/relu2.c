#include "../formulas/relu2.h"
#include "../entries.h"

FL_PARAMETERS(relu2);

static fuseline_status relu2_prepare(struct relu2_parameters *prepared)
{
    prepared->in_float.unused = prepared->in_double.unused = 0;
    return FUSELINE_OK;
}

FL_UNARY_ENTRIES(relu2, (), (), ())
