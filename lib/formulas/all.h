/* Every operator's formula, at the precision that FL_PRECISION asks for. An activation comes before the units that use it. */
#include "exp2.h"

#include "copy.h"

#include "gelu.h"
#include "gelu_tanh.h"
#include "relu.h"
#include "relu2.h"
#include "swish.h"

#include "geglu.h"
#include "geglu_tanh.h"
#include "reglu.h"
#include "swiglu.h"
