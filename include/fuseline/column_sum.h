/*
 * column_sum(x): the sum of each column over all rows, the columns being x's last axis. The gradient of a bias that was added to
 * every row.
 *
 * Shapes    x has at least one axis; sum has one dimension, of x's last extent. With zero rows every sum is 0.
 * Layouts   x's last dimension is contiguous, and one stride leads from row to row; sum is contiguous. Anything else is
 *           FUSELINE_ERROR_LAYOUT.
 * Aliasing  None: sum overlapping x is FUSELINE_ERROR_OVERLAP.
 * Order     The same result at every call for the same shape and strides: no atomic additions, and nothing that depends on the number
 *           of threads.
 * Accuracy  On the CPU 16-bit types and float32 are summed in double. float64, and every dtype on a GPU, is summed in the type computed in
 *           with what its additions lose kept beside it, about twice its precision. That sum is rounded once, to sum's dtype,
 *           x's. Where the type summed in overflows on the way the result is inf or nan.
 *
 * conventions.h has what else holds for every operator.
 */
#ifndef FUSELINE_COLUMN_SUM_H
#define FUSELINE_COLUMN_SUM_H

#include <fuseline/conventions.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * In:   x
 * Out:  sum
 */
FUSELINE_API fuseline_status fuseline_column_sum(const DLTensor *x, void *stream, DLTensor *sum);
FUSELINE_API fuseline_status fuseline_column_sum_managed(DLManagedTensor *x, void *stream, DLManagedTensor *sum);
FUSELINE_API fuseline_status fuseline_column_sum_versioned(DLManagedTensorVersioned *x, void *stream,
                                                           DLManagedTensorVersioned *sum);
FUSELINE_API fuseline_status fuseline_column_sum_objects(const struct DLPackExchangeAPI *api, void *x, void *sum);

#ifdef __cplusplus
}
#endif

#endif
