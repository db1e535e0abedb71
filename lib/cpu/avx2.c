#define FL_VARIANT avx2
#include "body.h"
