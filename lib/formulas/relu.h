/* relu(x) = max(x, 0), for the gated unit; nan stays nan. The slope at 0 is 0, as torch.relu has it. */
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
    return x <= 0 ? 0 : x;
}

FL_INLINE fl_real fl_name(relu_slope)(fl_real x, fl_real *value, const fl_parameters(relu) * p)
{
    *value = fl_name(relu_value)(x, p);
    return x <= 0 ? 0 : 1;
}

#endif
