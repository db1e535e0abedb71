#include "elementwise.h"

#include "../lib/formulas/swish.h"

FL_ELEMENTWISE(swish_forward, swish, 1, 1, "xy")
FL_ELEMENTWISE(swish_backward, swish, 2, 1, "yxx")
FL_ELEMENTWISE(swish_double_backward, swish, 3, 2, "xyxyx")
