/*
 * relu(x) = max(x, 0), for the gated unit, as torch.relu has it on the CPU: nan stays nan and a zero keeps its sign; where x <= 0 the
 * gradient is 0, whatever comes back.
 */
#include "unary.h"

#ifndef FL_RELU_ONCE
#define FL_RELU_ONCE
struct relu_parameters_32 {
    char unused; /* C has no empty structures */
};
struct relu_parameters_64 {
    char unused;
};
#endif

#ifdef FL_PRECISION

FL_INLINE fl_real fl_name(relu_value)(fl_real x, const fl_parameters(relu) * p)
{
    (void)p;
    return x < 0 ? 0 : x;
}

FL_INLINE fl_real fl_name(relu_slope)(fl_real x, fl_real *value, const fl_parameters(relu) * p)
{
    *value = fl_name(relu_value)(x, p);
    return 1; /* where it passes */
}

FL_INLINE fl_real fl_name(relu_curvature)(fl_real x, fl_real *value, fl_real *slope, const fl_parameters(relu) * p)
{
    *slope = fl_name(relu_slope)(x, value, p);
    return 0;
}

FL_INLINE int fl_name(relu_passes)(fl_real x)
{
    return !(x <= 0);
}

FL_NEVER_NEAR(relu)

#endif
