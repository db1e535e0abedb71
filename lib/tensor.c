#include "tensor.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const int fl_dtype_size[FL_DTYPES] = {2, 2, 4, 8};
const char *const fl_dtype_name[FL_DTYPES] = {"float16", "bfloat16", "float32", "float64"};

#define ACCEPTED_DTYPES  "accepted: float16, bfloat16, float32, float64"
#define ACCEPTED_DEVICES "accepted: CPU, CUDA host, ROCm host, CUDA, CUDA managed, ROCm"

const char *fl_extents_text(const int64_t *extents, int ndim, char *buffer, int size)
{
    int used = snprintf(buffer, (size_t)size, "(");
    for (int axis = 0; axis < ndim; axis++) {
        char extent[32];
        int length = snprintf(extent, sizeof extent, "%s%" PRId64, axis ? ", " : "", extents[axis]);
        if (used + length + 8 > size) {
            used += snprintf(buffer + used, (size_t)(size - used), ", ...");
            break;
        }
        memcpy(buffer + used, extent, (size_t)length + 1);
        used += length;
    }
    snprintf(buffer + used, (size_t)(size - used), ")");
    return buffer;
}

static const char *dtype_code_name(unsigned code)
{
    static const char *const names[] = {"int",
                                        "uint",
                                        "float",
                                        "opaque handle",
                                        "bfloat",
                                        "complex",
                                        "bool",
                                        "float8_e3m4",
                                        "float8_e4m3",
                                        "float8_e4m3b11fnuz",
                                        "float8_e4m3fn",
                                        "float8_e4m3fnuz",
                                        "float8_e5m2",
                                        "float8_e5m2fnuz",
                                        "float8_e8m0fnu",
                                        "float6_e2m3fn",
                                        "float6_e3m2fn",
                                        "float4_e2m1fn"};
    return code < sizeof names / sizeof names[0] ? names[code] : "unknown";
}

static fuseline_status check_dtype(const char *name, DLDataType dtype, enum fl_dtype *result)
{
    if (dtype.lanes != 1)
        return fl_fail(FUSELINE_ERROR_DTYPE, "%s: dtype has %d lanes; accepted: 1", name, (int)dtype.lanes);
    if (dtype.code == kDLFloat && dtype.bits == 16)
        *result = FL_FLOAT16;
    else if (dtype.code == kDLBfloat && dtype.bits == 16)
        *result = FL_BFLOAT16;
    else if (dtype.code == kDLFloat && dtype.bits == 32)
        *result = FL_FLOAT32;
    else if (dtype.code == kDLFloat && dtype.bits == 64)
        *result = FL_FLOAT64;
    else
        return fl_fail(FUSELINE_ERROR_DTYPE, "%s: dtype is %s of %d bits (DLPack code %d); " ACCEPTED_DTYPES, name,
                       dtype_code_name(dtype.code), (int)dtype.bits, (int)dtype.code);
    return FUSELINE_OK;
}

static fuseline_status check_device(const char *name, DLDevice device, struct fl_tensor *view)
{
    switch ((int)device.device_type) {
    case kDLCPU:
    case kDLCUDAHost:
    case kDLROCMHost:
        view->device_kind = FL_CPU;
        view->device_id = 0; /* DLPack gives the index of host memory no meaning */
        return FUSELINE_OK;
    case kDLCUDA:
    case kDLCUDAManaged:
        view->device_kind = FL_CUDA;
        break;
    case kDLROCM:
        view->device_kind = FL_ROCM;
        break;
    default:
        return fl_fail(FUSELINE_ERROR_DEVICE, "%s: device type is %d (DLPack); " ACCEPTED_DEVICES, name, (int)device.device_type);
    }
    if (device.device_id < 0)
        return fl_fail(FUSELINE_ERROR_DEVICE, "%s: device index is %d; accepted: 0 or more", name, (int)device.device_id);
    view->device_id = device.device_id;
    return FUSELINE_OK;
}

static fuseline_status overflow(const struct fl_tensor *view, int axis)
{
    char text[256];
    return fl_fail(FUSELINE_ERROR_SHAPE, "%s: element count or memory extent overflows 64 bits at axis %d of shape %s",
                   view->name, axis, fl_extents_text(view->shape, view->ndim, text, sizeof text));
}

/* Fills count, shape, strides and the memory's extent; every product is checked, since a crafted shape may overflow. */
static fuseline_status check_shape(const DLTensor *tensor, struct fl_tensor *view)
{
    int64_t count = 1;
    int ndim = view->ndim, size = fl_dtype_size[view->dtype];

    view->lowest = view->highest = 0;
    for (int axis = 0; axis < ndim; axis++) {
        view->shape[axis] = tensor->shape[axis];
        if (view->shape[axis] < 0)
            return fl_fail(FUSELINE_ERROR_SHAPE, "%s: extent of axis %d is %" PRId64 "; accepted: 0 or more", view->name, axis,
                           view->shape[axis]);
        if (view->shape[axis] == 0)
            count = 0;
    }
    for (int axis = ndim - 1; axis >= 0; axis--) {
        view->strides[axis] = tensor->strides != NULL ? tensor->strides[axis] : count;
        if (__builtin_mul_overflow(count, view->shape[axis], &count))
            return overflow(view, axis);
    }
    view->count = count;
    if (count == 0)
        return FUSELINE_OK;
    view->highest = size;
    for (int axis = 0; axis < ndim; axis++) {
        int64_t reach;
        if (view->shape[axis] == 1)
            continue; /* DLPack gives such a stride no meaning */
        if (__builtin_mul_overflow(view->shape[axis] - 1, view->strides[axis], &reach) ||
            __builtin_mul_overflow(reach, (int64_t)size, &reach))
            return overflow(view, axis);
        int64_t *bound = reach < 0 ? &view->lowest : &view->highest;
        if (__builtin_add_overflow(*bound, reach, bound))
            return overflow(view, axis);
    }
    return FUSELINE_OK;
}

/* Fills data. A crafted offset or extent may run past either end of the address space, where addresses no longer compare. */
static fuseline_status check_address(const DLTensor *tensor, struct fl_tensor *view)
{
    uintptr_t data, bound;

    if (view->count == 0) {
        view->data = (char *)tensor->data;
        return FUSELINE_OK;
    }
    if (__builtin_add_overflow((uintptr_t)tensor->data, tensor->byte_offset, &data) ||
        __builtin_add_overflow(data, view->highest, &bound) || __builtin_add_overflow(data, view->lowest, &bound))
        return fl_fail(FUSELINE_ERROR_SHAPE,
                       "%s: %" PRId64 " to %" PRId64 " bytes from address %p + %" PRIu64 " is outside the address space",
                       view->name, view->lowest, view->highest, tensor->data, tensor->byte_offset);
    view->data = (char *)data;
    return FUSELINE_OK;
}

fuseline_status fl_tensor_check(const DLTensor *tensor, const char *name, struct fl_tensor *view)
{
    if (tensor == NULL)
        return fl_fail(FUSELINE_ERROR_ARGUMENT, "%s: tensor is NULL", name);
    if (tensor->ndim < 0 || tensor->ndim > FL_NDIM_MOST)
        return fl_fail(FUSELINE_ERROR_ARGUMENT, "%s: ndim is %d; accepted: 0 to %d", name, (int)tensor->ndim, FL_NDIM_MOST);
    if (tensor->ndim > 0 && tensor->shape == NULL)
        return fl_fail(FUSELINE_ERROR_ARGUMENT, "%s: shape is NULL with ndim %d", name, (int)tensor->ndim);
    view->name = name;
    view->step = 1;
    view->is_half = 0;
    view->ndim = tensor->ndim;
    FL_TRY(check_dtype(name, tensor->dtype, &view->dtype));
    FL_TRY(check_device(name, tensor->device, view));
    FL_TRY(check_shape(tensor, view));
    if (tensor->data == NULL && view->count > 0)
        return fl_fail(FUSELINE_ERROR_ARGUMENT, "%s: data is NULL with %" PRId64 " elements", name, view->count);
    FL_TRY(check_address(tensor, view));
    if (view->device_kind != FL_CPU && view->count > 0 && (uintptr_t)view->data % (uintptr_t)fl_dtype_size[view->dtype] != 0)
        return fl_fail(FUSELINE_ERROR_ARGUMENT,
                       "%s: data address %p is not a multiple of the element size %d, which GPUs require", name,
                       (void *)view->data, fl_dtype_size[view->dtype]);
    return FUSELINE_OK;
}
