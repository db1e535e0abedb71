/*
 * relu2(x) = max(x, 0)^2.
 *
 * Source of the formula: So, Manke, Liu, Dai, Shazeer, Le, "Primer" (arXiv 2109.08668).
 *
 * Specials  nan gives nan, +inf gives +inf, -inf and both zeros give 0. Where x <= 0 dx is 0, whatever dy
 *           is, as torch.nn.functional.relu has it.
 *
 * conventions.h has what holds for every operator.
 */
#ifndef FUSELINE_RELU2_H
#define FUSELINE_RELU2_H

#include <fuseline/conventions.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * y = relu2(x).
 *
 * In:   x
 * Out:  y, may be x
 */
FUSELINE_API fuseline_status fuseline_relu2_forward(const DLTensor *x, void *stream, DLTensor *y);
FUSELINE_API fuseline_status fuseline_relu2_forward_managed(DLManagedTensor *x, void *stream, DLManagedTensor *y);
FUSELINE_API fuseline_status fuseline_relu2_forward_versioned(DLManagedTensorVersioned *x, void *stream,
                                                              DLManagedTensorVersioned *y);
FUSELINE_API fuseline_status fuseline_relu2_forward_objects(const struct DLPackExchangeAPI *api, void *x, void *y);

/*
 * dx = dy * d relu2(x) / dx.
 *
 * In:   dy, the gradient of the result, of the result's dtype; x, the input of the forward call
 * Out:  dx, of x's dtype; may be dy or x
 */
FUSELINE_API fuseline_status fuseline_relu2_backward(const DLTensor *dy, const DLTensor *x, void *stream, DLTensor *dx);
FUSELINE_API fuseline_status fuseline_relu2_backward_managed(DLManagedTensor *dy, DLManagedTensor *x, void *stream,
                                                             DLManagedTensor *dx);
FUSELINE_API fuseline_status fuseline_relu2_backward_versioned(DLManagedTensorVersioned *dy, DLManagedTensorVersioned *x,
                                                               void *stream, DLManagedTensorVersioned *dx);
FUSELINE_API fuseline_status fuseline_relu2_backward_objects(const struct DLPackExchangeAPI *api, void *dy, void *x, void *dx);

/*
 * The gradients of fuseline_relu2_backward's inputs, from that of its result, for second derivatives:
 *     ddy = ddx * relu2'(x),    dx = ddx * dy * relu2''(x).
 * relu2'' is 2 for x > 0, +inf included, and 0 for x <= 0. nan gives nan.
 *
 * In:   ddx, the gradient of the backward call's dx, of x's dtype; dy and x, its inputs
 * Out:  ddy, of dy's dtype, and dx, of x's dtype; each may be any input of its dtype
 */
FUSELINE_API fuseline_status fuseline_relu2_double_backward(const DLTensor *ddx, const DLTensor *dy, const DLTensor *x,
                                                            void *stream, DLTensor *ddy, DLTensor *dx);
FUSELINE_API fuseline_status fuseline_relu2_double_backward_managed(DLManagedTensor *ddx, DLManagedTensor *dy, DLManagedTensor *x,
                                                                    void *stream, DLManagedTensor *ddy, DLManagedTensor *dx);
FUSELINE_API fuseline_status fuseline_relu2_double_backward_versioned(DLManagedTensorVersioned *ddx, DLManagedTensorVersioned *dy,
                                                                      DLManagedTensorVersioned *x, void *stream,
                                                                      DLManagedTensorVersioned *ddy,
                                                                      DLManagedTensorVersioned *dx);
FUSELINE_API fuseline_status fuseline_relu2_double_backward_objects(const struct DLPackExchangeAPI *api, void *ddx, void *dy,
                                                                    void *x, void *ddy, void *dx);

#ifdef __cplusplus
}
#endif

#endif
