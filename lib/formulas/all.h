/* Every operator's formula, at the precision that FL_PRECISION asks for. */
#include "exp2.h"

#include "swish.h"
