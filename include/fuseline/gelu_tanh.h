/*
 * gelu_tanh(x) = 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))): the tanh form of GELU.
 *
 * Source of the formula: Hendrycks, Gimpel, "Gaussian Error Linear Units" (arXiv 1606.08415).
 *
 * Specials  As gelu.h.
 *
 * conventions.h has what holds for every operator.
 */
#ifndef FUSELINE_GELU_TANH_H
#define FUSELINE_GELU_TANH_H

#include <fuseline/conventions.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * y = gelu_tanh(x).
 *
 * In:   x
 * Out:  y, may be x
 */
FUSELINE_API fuseline_status fuseline_gelu_tanh_forward(const DLTensor *x, void *stream, DLTensor *y);
FUSELINE_API fuseline_status fuseline_gelu_tanh_forward_managed(DLManagedTensor *x, void *stream, DLManagedTensor *y);
FUSELINE_API fuseline_status fuseline_gelu_tanh_forward_versioned(DLManagedTensorVersioned *x, void *stream,
                                                                  DLManagedTensorVersioned *y);
FUSELINE_API fuseline_status fuseline_gelu_tanh_forward_objects(const struct DLPackExchangeAPI *api, void *x, void *y);

/*
 * dx = dy * d gelu_tanh(x) / dx.
 *
 * In:   dy, the gradient of the result, of the result's dtype; x, the input of the forward call
 * Out:  dx, of x's dtype; may be dy or x
 */
FUSELINE_API fuseline_status fuseline_gelu_tanh_backward(const DLTensor *dy, const DLTensor *x, void *stream, DLTensor *dx);
FUSELINE_API fuseline_status fuseline_gelu_tanh_backward_managed(DLManagedTensor *dy, DLManagedTensor *x, void *stream,
                                                                 DLManagedTensor *dx);
FUSELINE_API fuseline_status fuseline_gelu_tanh_backward_versioned(DLManagedTensorVersioned *dy, DLManagedTensorVersioned *x,
                                                                   void *stream, DLManagedTensorVersioned *dx);
FUSELINE_API fuseline_status fuseline_gelu_tanh_backward_objects(const struct DLPackExchangeAPI *api, void *dy, void *x,
                                                                 void *dx);

/*
 * The gradients of fuseline_gelu_tanh_backward's inputs, from that of its result, for second derivatives:
 *     ddy = ddx * gelu_tanh'(x),    dx = ddx * dy * gelu_tanh''(x).
 * gelu_tanh'' is 0 at infinite x (its limit). nan gives nan.
 *
 * In:   ddx, the gradient of the backward call's dx, of x's dtype; dy and x, its inputs
 * Out:  ddy, of dy's dtype, and dx, of x's dtype; each may be any input of its dtype
 */
FUSELINE_API fuseline_status fuseline_gelu_tanh_double_backward(const DLTensor *ddx, const DLTensor *dy, const DLTensor *x,
                                                                void *stream, DLTensor *ddy, DLTensor *dx);
FUSELINE_API fuseline_status fuseline_gelu_tanh_double_backward_managed(DLManagedTensor *ddx, DLManagedTensor *dy,
                                                                        DLManagedTensor *x, void *stream, DLManagedTensor *ddy,
                                                                        DLManagedTensor *dx);
FUSELINE_API fuseline_status fuseline_gelu_tanh_double_backward_versioned(DLManagedTensorVersioned *ddx,
                                                                          DLManagedTensorVersioned *dy,
                                                                          DLManagedTensorVersioned *x, void *stream,
                                                                          DLManagedTensorVersioned *ddy,
                                                                          DLManagedTensorVersioned *dx);
FUSELINE_API fuseline_status fuseline_gelu_tanh_double_backward_objects(const struct DLPackExchangeAPI *api, void *ddx, void *dy,
                                                                        void *x, void *ddy, void *dx);

#ifdef __cplusplus
}
#endif

#endif
