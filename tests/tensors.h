/*
 * DLPack tensors over memory that a test owns.
 */
#ifndef TENSORS_H
#define TENSORS_H

#include <dlpack/dlpack.h>
#include <stdint.h>

/* Extents or strides on the spot: DIMS(2, 3). */
#define DIMS(...) ((int64_t[]){__VA_ARGS__})

#define FLOAT16  ((DLDataType){kDLFloat, 16, 1})
#define BFLOAT16 ((DLDataType){kDLBfloat, 16, 1})
#define FLOAT32  ((DLDataType){kDLFloat, 32, 1})
#define FLOAT64  ((DLDataType){kDLFloat, 64, 1})

/* Where tensors are: on the CPU; or, in a test that is built for it, on the device that tests/on_standin.c has chosen. */
#ifdef TEST_ON_STANDIN
extern DLDevice test_device;
#else
static const DLDevice test_device __attribute__((unused)) = {kDLCPU, 0};
#endif

static inline int is_on_gpu(void)
{
    return test_device.device_type != kDLCPU;
}

/* A distance, in bytes, from aligned memory: any on the CPU; on a GPU that of a whole element, or the next smaller one. */
static inline int offset_of(int bytes, int element_size)
{
    return is_on_gpu() ? bytes / element_size * element_size : bytes;
}

/* A tensor over memory of the host. strides: in elements, or NULL for a compact one. */
static inline DLTensor tensor_of(void *data, DLDataType dtype, int ndim, int64_t *shape, int64_t *strides)
{
    return (DLTensor){
        .data = data, .device = test_device, .ndim = ndim, .dtype = dtype, .shape = shape, .strides = strides, .byte_offset = 0};
}

/* How often a deleter ran: point manager_ctx at an int. */
static inline void count_deletion(DLManagedTensor *self)
{
    ++*(int *)self->manager_ctx;
}

static inline void count_deletion_versioned(DLManagedTensorVersioned *self)
{
    ++*(int *)self->manager_ctx;
}

#endif
