#include "elementwise.h"

#include "../lib/formulas/gelu.h"

#include "../lib/formulas/geglu.h"

FL_ELEMENTWISE_GATED(geglu_forward, geglu, 4, 1, "gubcy")
FL_ELEMENTWISE_GATED(geglu_backward, geglu, 5, 2, "ygubcgu")
FL_ELEMENTWISE_PAIRED(geglu_double_backward, geglu, 5, 3, "guyguygu")
