/*
 * From an activation function a to the gated unit that multiplies with it:
 *
 *     y = a(g) * (u + offset)    where g = min(gate + gate_bias, limit), u = clamp(up + up_bias, -limit, limit)
 *
 * An infinite limit, a zero offset and absent biases give the plain a(gate) * up of Shazeer, GLU Variants Improve Transformer
 * (arXiv 2002.05202); the clamped form is that of recent open models. The product is taken before anything is rounded to the operands' type.
 *
 * The gradient does not pass where a clamp holds its argument back; it does at the limit itself, as torch.clamp has it. Nor does it where
 * a clamp's argument is nan, which only the result shows. Where it does not pass it is 0, whatever it would have been.
 *
 * The gradients of dy, gate and up as inputs of that gradient, from ddgate and ddup, those of its results, without biases:
 *
 *     ddy   = ddgate * (u + offset) * a'(g) + ddup * a(g)
 *     dgate = ddgate * dy * (u + offset) * a''(g) + ddup * dy * a'(g)
 *     dup   = ddgate * dy * a'(g)
 *
 * Where the activation is straight, a'' = 0, nothing comes of it, be the rest infinite.
 */
#ifndef FL_FORMULAS_GATED_H
#define FL_FORMULAS_GATED_H

#define FL_GATED_PARAMETERS(family, activation_name)                                                                             \
    struct family##_parameters_32 {                                                                                              \
        struct activation_name##_parameters_32 activation;                                                                       \
        float limit, offset;                                                                                                     \
    };                                                                                                                           \
    struct family##_parameters_64 {                                                                                              \
        struct activation_name##_parameters_64 activation;                                                                       \
        double limit, offset;                                                                                                    \
    };

/*
 * The plain functions are for an infinite limit, a zero offset and no biases, which is what most calls have: they are the same
 * then, with less to do. The clamps are written so that nan passes through them.
 */
#define FL_GATED(family, activation_name)                                                                                        \
    FL_INLINE fl_real fl_name(family##_near)(const fl_parameters(family) * p)                                                    \
    {                                                                                                                            \
        return fl_name(activation_name##_near)(&p->activation);                                                                  \
    }                                                                                                                            \
    FL_INLINE int fl_name(family##_clamps)(const fl_parameters(family) * p)                                                      \
    {                                                                                                                            \
        return fl_name(activation_name##_clamps)(&p->activation);                                                                \
    }                                                                                                                            \
    FL_INLINE fl_parameters(family) fl_name(family##_unclamped)(const fl_parameters(family) * p)                                 \
    {                                                                                                                            \
        fl_parameters(family) unclamped = *p;                                                                                    \
        unclamped.activation = fl_name(activation_name##_unclamped)(&p->activation);                                             \
        return unclamped;                                                                                                        \
    }                                                                                                                            \
    FL_INLINE void fl_name(family##_forward_plain)(fl_real gate, fl_real up, fl_real * y, const fl_parameters(family) * p)       \
    {                                                                                                                            \
        *y = fl_name(activation_name##_value)(gate, &p->activation) * up;                                                        \
    }                                                                                                                            \
    FL_INLINE void fl_name(family##_forward)(fl_real gate, fl_real up, fl_real gate_bias, fl_real up_bias, fl_real * y,          \
                                             const fl_parameters(family) * p)                                                    \
    {                                                                                                                            \
        fl_real g = gate + gate_bias, u = up + up_bias;                                                                          \
        g = p->limit < g ? p->limit : g;                                                                                         \
        u = p->limit < u ? p->limit : u;                                                                                         \
        u = u < -p->limit ? -p->limit : u;                                                                                       \
        *y = fl_name(activation_name##_value)(g, &p->activation) * (u + p->offset);                                              \
    }                                                                                                                            \
    FL_INLINE void fl_name(family##_backward_plain)(fl_real dy, fl_real gate, fl_real up, fl_real * dgate, fl_real * dup,        \
                                                    const fl_parameters(family) * p)                                             \
    {                                                                                                                            \
        fl_real value, slope = fl_name(activation_name##_slope)(gate, &value, &p->activation);                                   \
        *dgate = fl_name(activation_name##_passes)(gate) ? dy * up * slope : 0;                                                  \
        *dup = dy * value;                                                                                                       \
    }                                                                                                                            \
    FL_INLINE void fl_name(family##_backward)(fl_real dy, fl_real gate, fl_real up, fl_real gate_bias, fl_real up_bias,          \
                                              fl_real * dgate, fl_real * dup, const fl_parameters(family) * p)                   \
    {                                                                                                                            \
        fl_real g = gate + gate_bias, u = up + up_bias, value, slope;                                                            \
        fl_real clamped = p->limit < u ? p->limit : u;                                                                           \
        clamped = clamped < -p->limit ? -p->limit : clamped;                                                                     \
        slope = fl_name(activation_name##_slope)(p->limit < g ? p->limit : g, &value, &p->activation);                           \
        int is_clamped = p->limit < (fl_real)__builtin_inf();                                                                    \
        *dgate =                                                                                                                 \
            fl_name(activation_name##_passes)(g) && (g <= p->limit || !is_clamped) ? dy * (clamped + p->offset) * slope : 0;     \
        *dup = (-p->limit <= u && u <= p->limit) || !is_clamped ? dy * value : 0;                                                \
    }                                                                                                                            \
    FL_INLINE void fl_name(family##_double_backward)(fl_real ddgate, fl_real ddup, fl_real dy, fl_real gate, fl_real up,         \
                                                     fl_real * ddy, fl_real * dgate, fl_real * dup,                              \
                                                     const fl_parameters(family) * p)                                            \
    {                                                                                                                            \
        fl_real g = p->limit < gate ? p->limit : gate, u = p->limit < up ? p->limit : up, value, slope;                          \
        u = (u < -p->limit ? -p->limit : u) + p->offset;                                                                         \
        fl_real curvature = fl_name(activation_name##_curvature)(g, &value, &slope, &p->activation);                             \
        int is_clamped = p->limit < (fl_real)__builtin_inf();                                                                    \
        int gate_passes = fl_name(activation_name##_passes)(gate) && (gate <= p->limit || !is_clamped);                          \
        int up_passes = (-p->limit <= up && up <= p->limit) || !is_clamped;                                                      \
        fl_real along_gate = gate_passes ? ddgate * slope : 0, along_up = up_passes ? ddup : 0;                                  \
        fl_real bend = curvature == 0 ? 0 : ddgate * (dy * u) * curvature;                                                       \
        *ddy = along_gate * u + along_up * value;                                                                                \
        *dgate = gate_passes ? bend + along_up * dy * slope : 0;                                                                 \
        *dup = up_passes ? along_gate * dy : 0;                                                                                  \
    }

#endif
