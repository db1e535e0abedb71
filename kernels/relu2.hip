#include "elementwise.h"

#include "../lib/formulas/relu2.h"

FL_ELEMENTWISE(relu2_forward, relu2, 1, 1, "xy")
FL_ELEMENTWISE(relu2_backward, relu2, 2, 1, "yxx")
FL_ELEMENTWISE(relu2_double_backward, relu2, 3, 2, "xyxyx")
