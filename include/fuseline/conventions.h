/*
 * What holds for every operator.
 *
 * Shapes    All tensors of a call have the same shape, of any rank from 0 to 64, zero elements included; an operator's header
 *           says where that differs.
 * dtypes    float16, bfloat16, float32, float64. A result (and its gradient) may have another dtype than the operands where
 *           one of the two is float32 and the other a 16-bit type. 16-bit types are computed in float and rounded once; float64
 *           is computed in double.
 * Devices   kDLCPU, kDLCUDAHost and kDLROCMHost run on the CPU, before the call returns. kDLCUDA, kDLCUDAManaged and
 *           kDLROCM run on the GPU, in order on `stream`; the call returns at once and never synchronises.
 * Layouts   Read and written without a copy: dense tensors in any dimension order, when all operands share it; rows whose
 *           last dimension is contiguous and whose other dimensions can be walked with one stride; inputs broadcast from one
 *           value or along either of these two dimensions (stride 0). Anything else is FUSELINE_ERROR_LAYOUT.
 * Aliasing  An output may be exactly the same memory as an input of its shape, strides and dtype. Partial overlap is
 *           FUSELINE_ERROR_OVERLAP.
 * stream    A cudaStream_t or hipStream_t as void *, NULL being the default stream. Ignored on the CPU.
 * Returns   FUSELINE_OK, or an error whose message names the argument: see fuseline_last_error. After an error
 *           no output has been written.
 *
 * Gated units (swiglu, geglu, geglu_tanh, reglu) multiply an activation of gate with up:
 *
 * Forms     up given: gate and up are two tensors of y's shape. up NULL: gate holds both along its last axis, which is twice that of
 *           y, packed as `packing` says; its gradient dgate then has the same form, and dup is NULL. With up given, packing
 *           makes no difference. y may be gate or up, or either half of a packed one (not of an interleaved one).
 * bias      NULL, or one dimension of twice y's last extent, of gate's dtype: what is added to gate and up before anything else; in
 *           halves for two tensors, packed as gate for one. Its gradient is fuseline_column_sum of dgate and dup.
 * Product   Taken in float (double for float64) and rounded once. Where the activation itself is below the normal numbers of that
 *           type, its product with a large up has only the digits that the activation has left; PyTorch's silu is -0 there.
 * Saved     Nothing: the backward needs the forward's inputs alone.
 *
 * Every kernel has four entries:
 *
 * <name>            borrows its tensors: nothing is kept after the call, no deleter runs.
 * <name>_managed    takes its tensors over. Each one's deleter runs exactly once before the call returns, on success and on every
 *                   error (a NULL deleter is skipped; one structure passed twice is deleted once). On a GPU the kernel may still
 *                   be running by then: the producer's deleter must order the reuse of the memory after `stream`, as the
 *                   frameworks' allocators do.
 * <name>_versioned  likewise for versioned tensors. An output flagged read-only is FUSELINE_ERROR_READ_ONLY; a structure of
 *                   another major version is FUSELINE_ERROR_VERSION, and nothing but its deleter is touched.
 * <name>_objects    borrows a framework's own Python objects (PyObject *, as void *), read through its DLPack exchange table, on
 *                   the framework's current stream. For bindings: the caller holds Python's lock, and all objects are of the
 *                   type that `api` came from. When the framework's functions fail the result is FUSELINE_ERROR_EXCHANGE and
 *                   a Python exception is set.
 */
#ifndef FUSELINE_CONVENTIONS_H
#define FUSELINE_CONVENTIONS_H

#include <dlpack/dlpack.h>

#include <fuseline/status.h>

struct DLPackExchangeAPI; /* in dlpack.h from version 1.3 on */

/* How one tensor holds gate and up together along its last axis. Values are part of the ABI. */
typedef enum fuseline_packing {
    FUSELINE_HALVES = 0,     /* all of gate, then all of up */
    FUSELINE_INTERLEAVED = 1 /* gate, up, gate, up, ... */
} fuseline_packing;

#endif
