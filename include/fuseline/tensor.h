/*
 * Tensors of the library's own, in host memory: results for callers that have no array type to put them in.
 *
 * Memory is counted by reference: the tensor and every structure exported from it hold one. All functions, and the deleters of
 * what is exported, may be called from any thread; none needs Python's lock.
 */
#ifndef FUSELINE_TENSOR_H
#define FUSELINE_TENSOR_H

#include <dlpack/dlpack.h>
#include <stdint.h>

#include <fuseline/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fuseline_tensor fuseline_tensor;

/*
 * Makes a dense tensor of the shape and dtype of `like`, in its dimension order where it has one (its strides sorted), else
 * row-major. The elements are not set. The memory is aligned to 64 bytes.
 *
 * In:      like, on any device; its data is not read
 * Out:     tensor, to be given to fuseline_tensor_release; set on success only
 * Returns: FUSELINE_OK; FUSELINE_ERROR_MEMORY; the errors of a malformed tensor or of an unsupported dtype
 */
FUSELINE_API fuseline_status fuseline_tensor_create(const DLTensor *like, fuseline_tensor **tensor);

/*
 * Copies every element of `source`, whatever its strides, into the tensor. For what no kernel walks in place.
 *
 * In:      source, in host memory, of the tensor's shape and dtype
 * Returns: FUSELINE_OK, or FUSELINE_ERROR_SHAPE, FUSELINE_ERROR_DTYPE, FUSELINE_ERROR_DEVICE, FUSELINE_ERROR_ARGUMENT
 */
FUSELINE_API fuseline_status fuseline_tensor_copy(fuseline_tensor *tensor, const DLTensor *source);

/*
 * The tensor as a DLTensor: device kDLCPU, byte_offset 0, shape and strides filled, data NULL when there are no elements.
 *
 * Returns: a structure that lives as long as the tensor; NULL for NULL
 */
FUSELINE_API DLTensor *fuseline_tensor_view(fuseline_tensor *tensor);

/*
 * Exports the tensor's memory, not a copy of it. The exported structure keeps the memory alive until its deleter is called.
 *
 * In:      flags, of the versioned structure: DLPACK_FLAG_BITMASK_...
 * Out:     managed, set on success only. The versioned structure says DLPack 1.0.
 * Returns: FUSELINE_OK, FUSELINE_ERROR_ARGUMENT or FUSELINE_ERROR_MEMORY
 */
FUSELINE_API fuseline_status fuseline_tensor_export(fuseline_tensor *tensor, DLManagedTensor **managed);
FUSELINE_API fuseline_status fuseline_tensor_export_versioned(fuseline_tensor *tensor, uint64_t flags,
                                                              DLManagedTensorVersioned **managed);

/*
 * Gives up the caller's reference; what was exported stays valid. NULL does nothing.
 */
FUSELINE_API void fuseline_tensor_release(fuseline_tensor *tensor);

/*
 * For a Python binding that cannot compile code of its own: a destructor for capsules that carry exported structures. It calls
 * the structure's deleter if the capsule's name is still "dltensor" or "dltensor_versioned", and does nothing when a consumer has
 * renamed it. Python calls it with its lock held.
 *
 * In:      capsule, a PyObject *
 */
FUSELINE_API void fuseline_capsule_destructor(void *capsule);

/*
 * Tells the destructor where Python's own functions are, since the library links no Python. To be called before the first capsule
 * is made.
 *
 * In:      is_valid, the address of PyCapsule_IsValid; get_pointer, that of PyCapsule_GetPointer
 */
FUSELINE_API void fuseline_set_capsule_functions(void *is_valid, void *get_pointer);

#ifdef __cplusplus
}
#endif

#endif
