#include "elementwise.h"

#include "../lib/formulas/copy.h"

FL_ELEMENTWISE(copy_1_1, copy, 1, 1, "xx")
FL_ELEMENTWISE(copy_2_1, copy, 2, 1, "xxx")
FL_ELEMENTWISE(copy_3_2, copy, 3, 2, "xxxxx")
