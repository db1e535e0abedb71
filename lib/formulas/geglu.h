/* geglu: the gated unit of gelu. See gated.h. */
#include "gated.h"

#ifndef FL_GEGLU_ONCE
#define FL_GEGLU_ONCE
FL_GATED_PARAMETERS(geglu, gelu)
#endif

#ifdef FL_PRECISION
FL_GATED(geglu, gelu)
#endif
