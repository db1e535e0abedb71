/*
 * swiglu(gate, up) = swish(g; beta) * (u + offset), where g = min(gate, limit) and u = clamp(up, -limit, limit).
 *
 * With no limit (infinity) and offset 0 it is swish(gate) * up. Sources of the formulas: Shazeer, "GLU Variants Improve Transformer"
 * (arXiv 2002.05202); the clamped form with offset 1 and beta 1.702 is that of the gpt-oss models.
 *
 * beta      Any finite number within +-1e38.
 * limit     2^-149 (float's least positive number) or more, infinity for none; where the product is taken in float, a limit beyond float's
 *           range is none. A gradient passes where the clamp holds nothing back, its bounds included.
 * offset    Any finite number of float's range.
 * Specials  As the product of swish.h's with up; 0 * inf gives nan. Where a clamp holds gate or up back, or with a finite limit is given nan,
 *           the gradient of that one is 0, as torch.clamp has it.
 *
 * conventions.h has what holds for every operator, and for gated units: their forms, bias and product.
 */
#ifndef FUSELINE_SWIGLU_H
#define FUSELINE_SWIGLU_H

#include <fuseline/conventions.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * y = swiglu(gate, up).
 *
 * In:   gate, up (or NULL), bias (or NULL)
 * Out:  y
 */
FUSELINE_API fuseline_status fuseline_swiglu_forward(const DLTensor *gate, const DLTensor *up, const DLTensor *bias,
                                                     fuseline_packing packing, double beta, double limit, double offset,
                                                     void *stream, DLTensor *y);
FUSELINE_API fuseline_status fuseline_swiglu_forward_managed(DLManagedTensor *gate, DLManagedTensor *up, DLManagedTensor *bias,
                                                             fuseline_packing packing, double beta, double limit, double offset,
                                                             void *stream, DLManagedTensor *y);
FUSELINE_API fuseline_status fuseline_swiglu_forward_versioned(DLManagedTensorVersioned *gate, DLManagedTensorVersioned *up,
                                                               DLManagedTensorVersioned *bias, fuseline_packing packing,
                                                               double beta, double limit, double offset, void *stream,
                                                               DLManagedTensorVersioned *y);
FUSELINE_API fuseline_status fuseline_swiglu_forward_objects(const struct DLPackExchangeAPI *api, void *gate, void *up,
                                                             void *bias, fuseline_packing packing, double beta, double limit,
                                                             double offset, void *y);

/*
 * The gradients of gate and up, from dy, that of y. The forward call's inputs are all that it needs.
 *
 * In:   dy, of y's dtype; gate, up and bias as in the forward call
 * Out:  dgate and dup (or NULL, as up), of gate's dtype; each may be any input of its shape, strides and dtype
 */
FUSELINE_API fuseline_status fuseline_swiglu_backward(const DLTensor *dy, const DLTensor *gate, const DLTensor *up,
                                                      const DLTensor *bias, fuseline_packing packing, double beta, double limit,
                                                      double offset, void *stream, DLTensor *dgate, DLTensor *dup);
FUSELINE_API fuseline_status fuseline_swiglu_backward_managed(DLManagedTensor *dy, DLManagedTensor *gate, DLManagedTensor *up,
                                                              DLManagedTensor *bias, fuseline_packing packing, double beta,
                                                              double limit, double offset, void *stream, DLManagedTensor *dgate,
                                                              DLManagedTensor *dup);
FUSELINE_API fuseline_status fuseline_swiglu_backward_versioned(DLManagedTensorVersioned *dy, DLManagedTensorVersioned *gate,
                                                                DLManagedTensorVersioned *up, DLManagedTensorVersioned *bias,
                                                                fuseline_packing packing, double beta, double limit,
                                                                double offset, void *stream, DLManagedTensorVersioned *dgate,
                                                                DLManagedTensorVersioned *dup);
FUSELINE_API fuseline_status fuseline_swiglu_backward_objects(const struct DLPackExchangeAPI *api, void *dy, void *gate, void *up,
                                                              void *bias, fuseline_packing packing, double beta, double limit,
                                                              double offset, void *dgate, void *dup);

/*
 * The gradients of the backward's inputs dy, gate and up, from ddgate and ddup, those of its results dgate and dup; without biases. What a
 * gradient penalty or a Hessian's product with a vector needs, in one pass.
 *
 * In:   ddgate and ddup (or NULL, as up), of gate's dtype; dy, gate and up as in the backward call
 * Out:  ddy, of dy's dtype; dgate and dup (or NULL, as up), of gate's dtype; each may be any input of its shape, strides and dtype
 */
FUSELINE_API fuseline_status fuseline_swiglu_double_backward(const DLTensor *ddgate, const DLTensor *ddup, const DLTensor *dy,
                                                             const DLTensor *gate, const DLTensor *up, fuseline_packing packing,
                                                             double beta, double limit, double offset, void *stream,
                                                             DLTensor *ddy, DLTensor *dgate, DLTensor *dup);
FUSELINE_API fuseline_status fuseline_swiglu_double_backward_managed(DLManagedTensor *ddgate, DLManagedTensor *ddup,
                                                                     DLManagedTensor *dy, DLManagedTensor *gate,
                                                                     DLManagedTensor *up, fuseline_packing packing, double beta,
                                                                     double limit, double offset, void *stream,
                                                                     DLManagedTensor *ddy, DLManagedTensor *dgate,
                                                                     DLManagedTensor *dup);
FUSELINE_API fuseline_status fuseline_swiglu_double_backward_versioned(
    DLManagedTensorVersioned *ddgate, DLManagedTensorVersioned *ddup, DLManagedTensorVersioned *dy,
    DLManagedTensorVersioned *gate, DLManagedTensorVersioned *up, fuseline_packing packing, double beta, double limit,
    double offset, void *stream, DLManagedTensorVersioned *ddy, DLManagedTensorVersioned *dgate, DLManagedTensorVersioned *dup);
FUSELINE_API fuseline_status fuseline_swiglu_double_backward_objects(const struct DLPackExchangeAPI *api, void *ddgate,
                                                                     void *ddup, void *dy, void *gate, void *up,
                                                                     fuseline_packing packing, double beta, double limit,
                                                                     double offset, void *ddy, void *dgate, void *dup);

#ifdef __cplusplus
}
#endif

#endif
