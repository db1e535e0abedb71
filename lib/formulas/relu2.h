/*
 * relu2(x) = max(x, 0)^2, and its derivatives 2 * max(x, 0) and, where x > 0, 2. nan stays nan. Where x <= 0 a gradient is 0, whatever
 * it is made of, as torch.relu has it.
 *
 * So, Manke, Liu, Dai, Shazeer, Le: Primer, 2021 (arXiv 2109.08668).
 *
 * Declares the parameters; the functions too, once per precision, where FL_PRECISION is defined: see precision.h.
 */
#include "unary.h"

#ifndef FL_RELU2_ONCE
#define FL_RELU2_ONCE
struct relu2_parameters_32 {
    char unused; /* C has no empty structures */
};
struct relu2_parameters_64 {
    char unused;
};
#endif

#ifdef FL_PRECISION

FL_INLINE fl_real fl_name(relu2_value)(fl_real x, const fl_parameters(relu2) * p)
{
    fl_real positive = x <= 0 ? 0 : x;
    (void)p;
    return positive * positive;
}

FL_INLINE fl_real fl_name(relu2_slope)(fl_real x, fl_real *value, const fl_parameters(relu2) * p)
{
    *value = fl_name(relu2_value)(x, p);
    return 2 * x; /* where it passes */
}

FL_INLINE int fl_name(relu2_passes)(fl_real x)
{
    return !(x <= 0);
}

FL_INLINE fl_real fl_name(relu2_curvature)(fl_real x, fl_real *value, fl_real *slope, const fl_parameters(relu2) * p)
{
    *slope = fl_name(relu2_slope)(x, value, p);
    return x == x ? 2 : x; /* where it passes */
}

FL_NEVER_NEAR(relu2)
FL_UNARY(relu2)

#endif
