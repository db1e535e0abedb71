/* The scalars that gated units share. */
#ifndef FL_GATED_H
#define FL_GATED_H

#include <math.h>

#include "status.h"

/* Checks a clamp's limit (positive in float too, infinity for none) and the offset of up. */
fuseline_status fl_gated_check(double limit, double offset);

/* A checked limit where the formula is computed in float: infinity beyond its range, where nothing finite is clamped. */
float fl_gated_limit_in_float(double limit);

/* What stands for no offset: adding it changes nothing, not even the sign of a zero. */
#define FL_NO_OFFSET (-0.0f)

/* The parameters of a gated unit without clamp and offset. */
#define FL_GATED_PLAIN(prepared)                                                                                                 \
    ((prepared)->in_float.limit = INFINITY, (prepared)->in_double.limit = INFINITY, (prepared)->in_float.offset = FL_NO_OFFSET,  \
     (prepared)->in_double.offset = FL_NO_OFFSET)

#endif
