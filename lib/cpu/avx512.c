#define FL_VARIANT avx512
#include "body.h"
