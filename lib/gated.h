/* The scalars that gated units share. */
#ifndef FL_GATED_H
#define FL_GATED_H

#include <math.h>

#include "status.h"

/* Checks a clamp's limit (positive, infinity for none) and the offset of up. */
fuseline_status fl_gated_check(double limit, double offset);

/* The parameters of a gated unit without clamp and offset. */
#define FL_GATED_PLAIN(prepared)                                                                                                 \
    ((prepared)->in_float.limit = INFINITY, (prepared)->in_double.limit = INFINITY, (prepared)->in_float.offset = 0,             \
     (prepared)->in_double.offset = 0)

#endif
