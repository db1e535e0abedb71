/* geglu_tanh: the gated unit of gelu_tanh. See gated.h. */
#include "gated.h"

#ifndef FL_GEGLU_TANH_ONCE
#define FL_GEGLU_TANH_ONCE
FL_GATED_PARAMETERS(geglu_tanh, gelu_tanh)
#endif

#ifdef FL_PRECISION
FL_GATED(geglu_tanh, gelu_tanh)
#endif
