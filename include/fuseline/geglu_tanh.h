/*
 * geglu_tanh(gate, up) = gelu_tanh(gate) * up, with the tanh form of GELU (gelu_tanh.h).
 *
 * Source of the formula: Shazeer, "GLU Variants Improve Transformer" (arXiv 2002.05202).
 *
 * Specials  As the product of gelu.h's with up; 0 * inf gives nan.
 *
 * conventions.h has what holds for every operator, and for gated units: their forms, bias and product.
 */
#ifndef FUSELINE_GEGLU_TANH_H
#define FUSELINE_GEGLU_TANH_H

#include <fuseline/conventions.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * y = geglu_tanh(gate, up).
 *
 * In:   gate, up (or NULL), bias (or NULL)
 * Out:  y
 */
FUSELINE_API fuseline_status fuseline_geglu_tanh_forward(const DLTensor *gate, const DLTensor *up, const DLTensor *bias,
                                                         fuseline_packing packing, void *stream, DLTensor *y);
FUSELINE_API fuseline_status fuseline_geglu_tanh_forward_managed(DLManagedTensor *gate, DLManagedTensor *up,
                                                                 DLManagedTensor *bias, fuseline_packing packing, void *stream,
                                                                 DLManagedTensor *y);
FUSELINE_API fuseline_status fuseline_geglu_tanh_forward_versioned(DLManagedTensorVersioned *gate, DLManagedTensorVersioned *up,
                                                                   DLManagedTensorVersioned *bias, fuseline_packing packing,
                                                                   void *stream, DLManagedTensorVersioned *y);
FUSELINE_API fuseline_status fuseline_geglu_tanh_forward_objects(const struct DLPackExchangeAPI *api, void *gate, void *up,
                                                                 void *bias, fuseline_packing packing, void *y);

/*
 * The gradients of gate and up, from dy, that of y. The forward call's inputs are all that it needs.
 *
 * In:   dy, of y's dtype; gate, up and bias as in the forward call
 * Out:  dgate and dup (or NULL, as up), of gate's dtype; each may be any input of its shape, strides and dtype
 */
FUSELINE_API fuseline_status fuseline_geglu_tanh_backward(const DLTensor *dy, const DLTensor *gate, const DLTensor *up,
                                                          const DLTensor *bias, fuseline_packing packing, void *stream,
                                                          DLTensor *dgate, DLTensor *dup);
FUSELINE_API fuseline_status fuseline_geglu_tanh_backward_managed(DLManagedTensor *dy, DLManagedTensor *gate, DLManagedTensor *up,
                                                                  DLManagedTensor *bias, fuseline_packing packing, void *stream,
                                                                  DLManagedTensor *dgate, DLManagedTensor *dup);
FUSELINE_API fuseline_status fuseline_geglu_tanh_backward_versioned(DLManagedTensorVersioned *dy, DLManagedTensorVersioned *gate,
                                                                    DLManagedTensorVersioned *up, DLManagedTensorVersioned *bias,
                                                                    fuseline_packing packing, void *stream,
                                                                    DLManagedTensorVersioned *dgate,
                                                                    DLManagedTensorVersioned *dup);
FUSELINE_API fuseline_status fuseline_geglu_tanh_backward_objects(const struct DLPackExchangeAPI *api, void *dy, void *gate,
                                                                  void *up, void *bias, fuseline_packing packing, void *dgate,
                                                                  void *dup);

/*
 * The gradients of the backward's inputs dy, gate and up, from ddgate and ddup, those of its results dgate and dup; without biases. What a
 * gradient penalty or a Hessian's product with a vector needs, in one pass.
 *
 * In:   ddgate and ddup (or NULL, as up), of gate's dtype; dy, gate and up as in the backward call
 * Out:  ddy, of dy's dtype; dgate and dup (or NULL, as up), of gate's dtype; each may be any input of its shape, strides and dtype
 */
FUSELINE_API fuseline_status fuseline_geglu_tanh_double_backward(const DLTensor *ddgate, const DLTensor *ddup, const DLTensor *dy,
                                                                 const DLTensor *gate, const DLTensor *up,
                                                                 fuseline_packing packing, void *stream, DLTensor *ddy,
                                                                 DLTensor *dgate, DLTensor *dup);
FUSELINE_API fuseline_status fuseline_geglu_tanh_double_backward_managed(DLManagedTensor *ddgate, DLManagedTensor *ddup,
                                                                         DLManagedTensor *dy, DLManagedTensor *gate,
                                                                         DLManagedTensor *up, fuseline_packing packing,
                                                                         void *stream, DLManagedTensor *ddy,
                                                                         DLManagedTensor *dgate, DLManagedTensor *dup);
FUSELINE_API fuseline_status fuseline_geglu_tanh_double_backward_versioned(
    DLManagedTensorVersioned *ddgate, DLManagedTensorVersioned *ddup, DLManagedTensorVersioned *dy,
    DLManagedTensorVersioned *gate, DLManagedTensorVersioned *up, fuseline_packing packing, void *stream,
    DLManagedTensorVersioned *ddy, DLManagedTensorVersioned *dgate, DLManagedTensorVersioned *dup);
FUSELINE_API fuseline_status fuseline_geglu_tanh_double_backward_objects(const struct DLPackExchangeAPI *api, void *ddgate,
                                                                         void *ddup, void *dy, void *gate, void *up,
                                                                         fuseline_packing packing, void *ddy, void *dgate,
                                                                         void *dup);

#ifdef __cplusplus
}
#endif

#endif
