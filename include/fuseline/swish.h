/*
 * swish(x; beta) = x * sigmoid(beta * x).
 *
 * beta = 1 is SiLU, beta = 1.702 the quick GELU. Source of the formula: Ramachandran, Zoph, Le, "Searching for Activation
 * Functions" (arXiv 1710.05941).
 *
 * beta      Any finite number within +-1e38.
 * Specials  Forward: nan gives nan, +inf gives +inf, -inf gives nan (the product -inf * 0, as torch.nn.functional.silu has it),
 *           a signed zero keeps its sign. Backward: the derivative is 1 at +inf and 0 at -inf (the limits). For beta > 0.
 *
 * conventions.h has what holds for every operator.
 */
#ifndef FUSELINE_SWISH_H
#define FUSELINE_SWISH_H

#include <fuseline/conventions.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * y = swish(x; beta).
 *
 * In:   x
 * Out:  y, may be x
 */
FUSELINE_API fuseline_status fuseline_swish_forward(const DLTensor *x, double beta, void *stream, DLTensor *y);
FUSELINE_API fuseline_status fuseline_swish_forward_managed(DLManagedTensor *x, double beta, void *stream, DLManagedTensor *y);
FUSELINE_API fuseline_status fuseline_swish_forward_versioned(DLManagedTensorVersioned *x, double beta, void *stream,
                                                              DLManagedTensorVersioned *y);
FUSELINE_API fuseline_status fuseline_swish_forward_objects(const struct DLPackExchangeAPI *api, void *x, double beta, void *y);

/*
 * dx = dy * d swish(x; beta) / dx.
 *
 * In:   dy, the gradient of the result, of the result's dtype; x, the input of the forward call
 * Out:  dx, of x's dtype; may be dy or x
 */
FUSELINE_API fuseline_status fuseline_swish_backward(const DLTensor *dy, const DLTensor *x, double beta, void *stream,
                                                     DLTensor *dx);
FUSELINE_API fuseline_status fuseline_swish_backward_managed(DLManagedTensor *dy, DLManagedTensor *x, double beta, void *stream,
                                                             DLManagedTensor *dx);
FUSELINE_API fuseline_status fuseline_swish_backward_versioned(DLManagedTensorVersioned *dy, DLManagedTensorVersioned *x,
                                                               double beta, void *stream, DLManagedTensorVersioned *dx);
FUSELINE_API fuseline_status fuseline_swish_backward_objects(const struct DLPackExchangeAPI *api, void *dy, void *x, double beta,
                                                             void *dx);

/*
 * The gradients of fuseline_swish_backward's inputs, from that of its result, for second derivatives:
 *     ddy = ddx * swish'(x; beta),    dx = ddx * dy * swish''(x; beta).
 * swish'' is 0 at infinite x (its limit, for beta other than 0). nan gives nan.
 *
 * In:   ddx, the gradient of the backward call's dx, of x's dtype; dy and x, its inputs
 * Out:  ddy, of dy's dtype, and dx, of x's dtype; each may be any input of its dtype
 */
FUSELINE_API fuseline_status fuseline_swish_double_backward(const DLTensor *ddx, const DLTensor *dy, const DLTensor *x,
                                                            double beta, void *stream, DLTensor *ddy, DLTensor *dx);
FUSELINE_API fuseline_status fuseline_swish_double_backward_managed(DLManagedTensor *ddx, DLManagedTensor *dy, DLManagedTensor *x,
                                                                    double beta, void *stream, DLManagedTensor *ddy,
                                                                    DLManagedTensor *dx);
FUSELINE_API fuseline_status fuseline_swish_double_backward_versioned(DLManagedTensorVersioned *ddx, DLManagedTensorVersioned *dy,
                                                                      DLManagedTensorVersioned *x, double beta, void *stream,
                                                                      DLManagedTensorVersioned *ddy,
                                                                      DLManagedTensorVersioned *dx);
FUSELINE_API fuseline_status fuseline_swish_double_backward_objects(const struct DLPackExchangeAPI *api, void *ddx, void *dy,
                                                                    void *x, double beta, void *ddy, void *dx);

#ifdef __cplusplus
}
#endif

#endif
