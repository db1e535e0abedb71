#include "elementwise.h"

#include "../lib/formulas/gelu_tanh.h"

FL_ELEMENTWISE(gelu_tanh_forward, gelu_tanh, 1, 1, "xy")
FL_ELEMENTWISE(gelu_tanh_backward, gelu_tanh, 2, 1, "yxx")
FL_ELEMENTWISE(gelu_tanh_double_backward, gelu_tanh, 3, 2, "xyxyx")
