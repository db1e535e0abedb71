#define FL_VARIANT base
#include "body.h"
