#include "elementwise.h"

#include "../lib/formulas/swish.h"

#include "../lib/formulas/swiglu.h"

FL_ELEMENTWISE_GATED(swiglu_forward, swiglu, 4, 1, "gubcy")
FL_ELEMENTWISE_GATED(swiglu_backward, swiglu, 5, 2, "ygubcgu")
FL_ELEMENTWISE_PAIRED(swiglu_double_backward, swiglu, 5, 3, "guyguygu")
