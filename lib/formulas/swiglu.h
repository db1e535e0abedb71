/* swiglu: the gated unit of swish. See gated.h. */
#include "gated.h"

#ifndef FL_SWIGLU_ONCE
#define FL_SWIGLU_ONCE
FL_GATED_PARAMETERS(swiglu, swish)
#endif

#ifdef FL_PRECISION
FL_GATED(swiglu, swish)
#endif
