#include "elementwise.h"

#include "../lib/formulas/gelu.h"

FL_ELEMENTWISE(gelu_forward, gelu, 1, 1, "xy")
FL_ELEMENTWISE(gelu_backward, gelu, 2, 1, "yxx")
FL_ELEMENTWISE(gelu_double_backward, gelu, 3, 2, "xyxyx")
