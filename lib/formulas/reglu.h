/* reglu: the gated unit of relu. See gated.h. */
#include "gated.h"

#ifndef FL_REGLU_ONCE
#define FL_REGLU_ONCE
FL_GATED_PARAMETERS(reglu, relu)
#endif

#ifdef FL_PRECISION
FL_GATED(reglu, relu)
#endif
