#include "elementwise.h"

#include "../lib/formulas/gelu_tanh.h"

#include "../lib/formulas/geglu_tanh.h"

FL_ELEMENTWISE_GATED(geglu_tanh_forward, geglu_tanh, 4, 1, "gubcy")
FL_ELEMENTWISE_GATED(geglu_tanh_backward, geglu_tanh, 5, 2, "ygubcgu")
FL_ELEMENTWISE_PAIRED(geglu_tanh_double_backward, geglu_tanh, 5, 3, "guyguygu")
