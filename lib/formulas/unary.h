/*
 * From an activation function to its three kernels.
 *
 * An activation's header supplies, for its parameters p,
 *     <activation>_value(x, p)           a(x)
 *     <activation>_slope(x, &value, p)   a'(x), and a(x) beside it, sharing what they can
 *     <activation>_curvature(x, &value, &slope, p)   a''(x), and both beside it; 0 at an infinite x, but for one without a bound
 *     <activation>_passes(x)             0 where a is constant and nothing of a gradient passes, be it inf or nan: FL_PASSES_EVERYWHERE
 *                                        for an activation that is so nowhere
 *     <activation>_near(p)               the |x| up to which no clamp of its argument changes anything,
 *     <activation>_unclamped(p)          parameters for such x, with which the clamps are infinite, and
 *     <activation>_clamps(p)             true of the parameters that callers' scalars make, not of those: FL_NEAR, with the bounds of
 *                                        rate.h; FL_NEVER_NEAR for an activation without clamps
 */
#ifndef FL_FORMULAS_UNARY_H
#define FL_FORMULAS_UNARY_H

#define FL_PASSES_EVERYWHERE(activation)                                                                                         \
    FL_INLINE int fl_name(activation##_passes)(fl_real x)                                                                        \
    {                                                                                                                            \
        (void)x;                                                                                                                 \
        return 1;                                                                                                                \
    }

#define FL_NEVER_NEAR(family)                                                                                                    \
    FL_INLINE fl_real fl_name(family##_near)(const fl_parameters(family) * p)                                                    \
    {                                                                                                                            \
        (void)p;                                                                                                                 \
        return 0;                                                                                                                \
    }                                                                                                                            \
    FL_INLINE int fl_name(family##_clamps)(const fl_parameters(family) * p)                                                      \
    {                                                                                                                            \
        (void)p;                                                                                                                 \
        return 1;                                                                                                                \
    }                                                                                                                            \
    FL_INLINE fl_parameters(family) fl_name(family##_unclamped)(const fl_parameters(family) * p)                                 \
    {                                                                                                                            \
        return *p;                                                                                                               \
    }

/* The parameters have the bounds x_least < 0 < x_most, the nearer of which is as far as x may be, and exponent_most, in `where`. */
#define FL_NEAR(family, where)                                                                                                   \
    FL_INLINE fl_real fl_name(family##_near)(const fl_parameters(family) * p)                                                    \
    {                                                                                                                            \
        return -p->where x_least < p->where x_most ? -p->where x_least : p->where x_most;                                        \
    }                                                                                                                            \
    FL_INLINE int fl_name(family##_clamps)(const fl_parameters(family) * p)                                                      \
    {                                                                                                                            \
        return p->where x_most < (fl_real)__builtin_inf() && p->where exponent_most < (fl_real)__builtin_inf();                  \
    }                                                                                                                            \
    FL_INLINE fl_parameters(family) fl_name(family##_unclamped)(const fl_parameters(family) * p)                                 \
    {                                                                                                                            \
        fl_parameters(family) unclamped = *p;                                                                                    \
        unclamped.where x_least = -(fl_real)__builtin_inf();                                                                     \
        unclamped.where x_most = unclamped.where exponent_most = (fl_real)__builtin_inf();                                       \
        return unclamped;                                                                                                        \
    }

/* y = a(x); dx = dy * a'(x); and of the latter the gradients of dy and x, from that of dx, which is ddx. */
#define FL_UNARY(activation)                                                                                                     \
    FL_INLINE void fl_name(activation##_forward)(fl_real x, fl_real * y, const fl_parameters(activation) * p)                    \
    {                                                                                                                            \
        *y = fl_name(activation##_value)(x, p);                                                                                  \
    }                                                                                                                            \
    FL_INLINE void fl_name(activation##_backward)(fl_real dy, fl_real x, fl_real * dx, const fl_parameters(activation) * p)      \
    {                                                                                                                            \
        fl_real value;                                                                                                           \
        fl_real gradient = dy * fl_name(activation##_slope)(x, &value, p);                                                       \
        *dx = fl_name(activation##_passes)(x) ? gradient : 0;                                                                    \
    }                                                                                                                            \
    FL_INLINE void fl_name(activation##_double_backward)(fl_real ddx, fl_real dy, fl_real x, fl_real * ddy, fl_real * dx,        \
                                                         const fl_parameters(activation) * p)                                    \
    {                                                                                                                            \
        fl_real value, slope, curvature = fl_name(activation##_curvature)(x, &value, &slope, p);                                 \
        *ddy = fl_name(activation##_passes)(x) ? ddx * slope : 0;                                                                \
        *dx = fl_name(activation##_passes)(x) ? ddx * (dy * curvature) : 0;                                                      \
    }

#endif
