#include "elementwise.h"

#include "../lib/formulas/relu.h"

#include "../lib/formulas/reglu.h"

FL_ELEMENTWISE_GATED(reglu_forward, reglu, 4, 1, "gubcy")
FL_ELEMENTWISE_GATED(reglu_backward, reglu, 5, 2, "ygubcgu")
FL_ELEMENTWISE_PAIRED(reglu_double_backward, reglu, 5, 3, "guyguygu")
