/*
 * The ruler: what moving memory costs and nothing else. A memory-bound operator is measured by its share of what such a kernel reaches on
 * the same device in the same run, which `python -m fuseline bench` shows. They are no operators to compute with, and fuseline_info does
 * not name them as such.
 *
 * Each takes the same way from its arguments to memory as the operators do: the same checks, plan, grid and accesses. What stands
 * between reading and writing is the least that needs every tensor read.
 *
 * Streams   copy_1_1 reads one tensor and writes one, as a unary operator's forward does; copy_2_1 reads two, as its backward or a gated
 *           unit's forward; copy_3_2 reads three and writes two, as a gated unit's backward or a unary operator's second one.
 * dtypes    All tensors of a call have the same. 16-bit types go through float: to measure memory alone, view them as float32.
 * Specials  As addition has them. Whether a nan keeps its payload is not promised.
 *
 * conventions.h has what else holds for every operator.
 */
#ifndef FUSELINE_COPY_H
#define FUSELINE_COPY_H

#include <fuseline/conventions.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * y = a.
 *
 * In:   a
 * Out:  y, may be a
 */
FUSELINE_API fuseline_status fuseline_copy_1_1(const DLTensor *a, void *stream, DLTensor *y);
FUSELINE_API fuseline_status fuseline_copy_1_1_managed(DLManagedTensor *a, void *stream, DLManagedTensor *y);
FUSELINE_API fuseline_status fuseline_copy_1_1_versioned(DLManagedTensorVersioned *a, void *stream, DLManagedTensorVersioned *y);
FUSELINE_API fuseline_status fuseline_copy_1_1_objects(const struct DLPackExchangeAPI *api, void *a, void *y);

/*
 * y = a + b, rounded once.
 *
 * In:   a, b
 * Out:  y, may be a or b
 */
FUSELINE_API fuseline_status fuseline_copy_2_1(const DLTensor *a, const DLTensor *b, void *stream, DLTensor *y);
FUSELINE_API fuseline_status fuseline_copy_2_1_managed(DLManagedTensor *a, DLManagedTensor *b, void *stream, DLManagedTensor *y);
FUSELINE_API fuseline_status fuseline_copy_2_1_versioned(DLManagedTensorVersioned *a, DLManagedTensorVersioned *b, void *stream,
                                                         DLManagedTensorVersioned *y);
FUSELINE_API fuseline_status fuseline_copy_2_1_objects(const struct DLPackExchangeAPI *api, void *a, void *b, void *y);

/*
 * y = a + b and z = b + c, each rounded once.
 *
 * In:   a, b, c
 * Out:  y and z, each may be any of the inputs
 */
FUSELINE_API fuseline_status fuseline_copy_3_2(const DLTensor *a, const DLTensor *b, const DLTensor *c, void *stream, DLTensor *y,
                                               DLTensor *z);
FUSELINE_API fuseline_status fuseline_copy_3_2_managed(DLManagedTensor *a, DLManagedTensor *b, DLManagedTensor *c, void *stream,
                                                       DLManagedTensor *y, DLManagedTensor *z);
FUSELINE_API fuseline_status fuseline_copy_3_2_versioned(DLManagedTensorVersioned *a, DLManagedTensorVersioned *b,
                                                         DLManagedTensorVersioned *c, void *stream, DLManagedTensorVersioned *y,
                                                         DLManagedTensorVersioned *z);
FUSELINE_API fuseline_status fuseline_copy_3_2_objects(const struct DLPackExchangeAPI *api, void *a, void *b, void *c, void *y,
                                                       void *z);

#ifdef __cplusplus
}
#endif

#endif
