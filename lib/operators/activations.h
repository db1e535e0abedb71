/* Checks the scalars of activations and prepares their parameters, for the operators of that name and the gated units that use them. */
#ifndef FL_OPERATORS_ACTIVATIONS_H
#define FL_OPERATORS_ACTIVATIONS_H

#include "../formulas/gelu.h"
#include "../formulas/gelu_tanh.h"
#include "../formulas/relu.h"
#include "../formulas/swish.h"
#include "../status.h"

fuseline_status fl_swish_prepare(double beta, struct swish_parameters_32 *in_float, struct swish_parameters_64 *in_double);
void fl_gelu_prepare(struct gelu_parameters_32 *in_float, struct gelu_parameters_64 *in_double);
void fl_gelu_tanh_prepare(struct gelu_tanh_parameters_32 *in_float, struct gelu_tanh_parameters_64 *in_double);

#endif
