/*
 * swish(x; beta) = x * sigmoid(beta * x).
 *
 * beta = 1 is SiLU, beta = 1.702 the quick GELU. Source of the formula: Ramachandran, Zoph, Le, "Searching for Activation
 * Functions" (arXiv 1710.05941).
 *
 * What holds for every function below:
 *
 * Shapes    All tensors of a call have the same shape, of any rank from 0 to 64, zero elements included.
 * dtypes    float16, bfloat16, float32, float64; the same for all tensors of a call. 16-bit types are computed in float and
 *           rounded once; float64 is computed in double.
 * Devices   kDLCPU, kDLCUDAHost and kDLROCMHost run on the CPU, before the call returns. kDLCUDA, kDLCUDAManaged and
 *           kDLROCM run on the GPU, in order on `stream`; the call returns at once and never synchronises.
 * Layouts   Read and written without a copy: dense tensors in any dimension order, when all operands share it; rows whose last
 *           dimension is contiguous and whose other dimensions can be walked with one stride; inputs broadcast from one
 *           value or along either of these two dimensions (stride 0). Anything else is FUSELINE_ERROR_LAYOUT.
 * Aliasing  An output may be exactly the same memory as an input of its shape and strides. Partial overlap is
 *           FUSELINE_ERROR_OVERLAP.
 * beta      Any finite number within +-1e38.
 * stream    A cudaStream_t or hipStream_t as void *, NULL being the default stream. Ignored on the CPU.
 * Specials  forward: nan gives nan, +inf gives +inf, -inf gives nan (the product -inf * 0, as torch.nn.functional.silu has it),
 *           a signed zero keeps its sign. backward: the derivative is 1 at +inf and 0 at -inf (the limits). Signs for beta > 0.
 * Returns   FUSELINE_OK, or an error whose message names the argument: see fuseline_last_error. After an error
 *           no output has been written.
 */
#ifndef FUSELINE_SWISH_H
#define FUSELINE_SWISH_H

#include <dlpack/dlpack.h>

#include <fuseline/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct DLPackExchangeAPI; /* in dlpack.h from version 1.3 on */

/*
 * y = swish(x; beta). Borrows its tensors: nothing is kept after the call, no deleter runs.
 *
 * In:   x
 * Out:  y, may be x
 */
FUSELINE_API fuseline_status fuseline_swish_forward(const DLTensor *x, double beta, void *stream, DLTensor *y);

/*
 * dx = dy * d swish(x; beta) / dx. Borrows its tensors.
 *
 * In:   dy, the gradient of the result; x, the input of the forward call
 * Out:  dx, may be dy or x
 */
FUSELINE_API fuseline_status fuseline_swish_backward(const DLTensor *dy, const DLTensor *x, double beta, void *stream,
                                                     DLTensor *dx);

/*
 * The same operations on tensors that the call takes over. Each tensor's deleter runs exactly once before the call returns, on
 * success and on every error (a NULL deleter is skipped; one structure passed twice is deleted once). On a GPU the
 * kernel may still be running by then: the producer's deleter must order the reuse of the memory after `stream`, as
 * the frameworks' allocators do.
 */
FUSELINE_API fuseline_status fuseline_swish_forward_managed(DLManagedTensor *x, double beta, void *stream, DLManagedTensor *y);
FUSELINE_API fuseline_status fuseline_swish_backward_managed(DLManagedTensor *dy, DLManagedTensor *x, double beta, void *stream,
                                                             DLManagedTensor *dx);

/*
 * As above for versioned tensors. An output flagged read-only is FUSELINE_ERROR_READ_ONLY; a structure of
 * another major version is FUSELINE_ERROR_VERSION, and nothing but its deleter is touched.
 */
FUSELINE_API fuseline_status fuseline_swish_forward_versioned(DLManagedTensorVersioned *x, double beta, void *stream,
                                                              DLManagedTensorVersioned *y);
FUSELINE_API fuseline_status fuseline_swish_backward_versioned(DLManagedTensorVersioned *dy, DLManagedTensorVersioned *x,
                                                               double beta, void *stream, DLManagedTensorVersioned *dx);

/*
 * As the borrowing functions, on a framework's own Python objects (PyObject *, as void *), read through its DLPack exchange
 * table, on the framework's current stream. For bindings: the caller holds Python's lock, and all objects are of the type that
 * `api` came from. When the framework's functions fail the result is FUSELINE_ERROR_EXCHANGE and a Python exception is set.
 */
FUSELINE_API fuseline_status fuseline_swish_forward_objects(const struct DLPackExchangeAPI *api, void *x, double beta, void *y);
FUSELINE_API fuseline_status fuseline_swish_backward_objects(const struct DLPackExchangeAPI *api, void *dy, void *x, double beta,
                                                             void *dx);

#ifdef __cplusplus
}
#endif

#endif
