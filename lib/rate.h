/* Prepares the rate of an exponential for the formulas: see formulas/exp2.h. */
#ifndef FL_RATE_H
#define FL_RATE_H

#include "formulas/rate.h"

/* Fills both precisions so that 2^(x * rate) is exp(factor * x). |factor| <= FL_FACTOR_MOST. */
void fl_rate_set(double factor, struct fl_rate_32 *in_float, struct fl_rate_64 *in_double);

/* Beyond this a rate no longer fits float. */
#define FL_FACTOR_MOST 1e38

#endif
