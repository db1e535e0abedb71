/* The checker: from a DLTensor that nobody vouches for to a view that the rest of the library may trust. */
#ifndef FL_TENSOR_H
#define FL_TENSOR_H

#include <dlpack/dlpack.h>
#include <stdint.h>

#include "status.h"

#define FL_NDIM_MOST 64

enum fl_dtype { FL_FLOAT16, FL_BFLOAT16, FL_FLOAT32, FL_FLOAT64, FL_DTYPES };

enum fl_device_kind { FL_CPU, FL_CUDA, FL_ROCM, FL_DEVICE_KINDS };

struct fl_tensor {
    const char *name; /* the argument's, for messages */
    int step;         /* elements between neighbours of a contiguous axis: 1, or 2 in half of an interleaved pair */
    int is_half;      /* of the tensor that the caller knows, along its last axis */
    char *data;       /* byte_offset included */
    enum fl_dtype dtype;
    enum fl_device_kind device_kind;
    int device_id; /* 0 on the CPU, whatever the tensor said */
    int ndim;
    int64_t count;   /* of elements */
    int64_t lowest;  /* bytes from `data` to the first byte of any element, <= 0 */
    int64_t highest; /* bytes from `data` to just past the last byte of any element */
    int64_t shape[FL_NDIM_MOST];
    int64_t strides[FL_NDIM_MOST]; /* in elements, never implied */
};

/*
 * Checks one tensor by itself: pointer, rank, shape, extents, element count, lanes, dtype, device, data.
 * Fills `view` on success only. Shape and strides are copied: a producer may reuse its structure.
 */
fuseline_status fl_tensor_check(const DLTensor *tensor, const char *name, struct fl_tensor *view);

extern const int fl_dtype_size[FL_DTYPES];
extern const char *const fl_dtype_name[FL_DTYPES];

/* "(2, 3)" in `buffer`, cut with "..." if it does not fit; returns `buffer`. */
const char *fl_extents_text(const int64_t *extents, int ndim, char *buffer, int size);

#endif
