/* Tensors of the library's own, counted by reference, so that no language's lock is needed to free one. */
#include <fuseline/tensor.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "tensor.h"

#define ALIGNMENT 64 /* a cache line, and what XLA asks for to take memory over without a copy */

/* What the exported structures implement. It stays when the header's own version goes up. */
#define EXPORTED_MAJOR 1
#define EXPORTED_MINOR 0

struct fuseline_tensor {
    atomic_size_t references;
    DLTensor view;
    int64_t extents[]; /* shape, then strides */
};

/* Dense strides in the dimension order of `like`; row-major if its strides give no order (stride 0, negative ones). */
static void fill_strides(const struct fl_tensor *like, int64_t *strides)
{
    int order[FL_NDIM_MOST], ordered = 1;
    int64_t step = 1;

    for (int d = 0; d < like->ndim; d++)
        if (like->shape[d] != 1 && like->strides[d] <= 0)
            ordered = 0;
    for (int d = 0; d < like->ndim; d++) {
        int at = d;
        while (ordered && at > 0 && like->shape[d] != 1 && like->strides[order[at - 1]] < like->strides[d]) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = d;
    }
    for (int k = like->ndim - 1; k >= 0; k--) {
        strides[order[k]] = step;
        step *= like->shape[order[k]] > 0 ? like->shape[order[k]] : 1;
    }
}

fuseline_status fuseline_tensor_create(const DLTensor *like, fuseline_tensor **tensor)
{
    struct fl_tensor model;
    int64_t bytes;

    if (tensor == NULL)
        return fl_fail(FUSELINE_ERROR_ARGUMENT, "tensor: is NULL");
    FL_TRY(fl_tensor_check(like, "like", &model));
    if (__builtin_mul_overflow(model.count, (int64_t)fl_dtype_size[model.dtype], &bytes) || bytes > INT64_MAX - ALIGNMENT)
        return fl_fail(FUSELINE_ERROR_SHAPE, "like: has too many elements for 64-bit sizes");
    fuseline_tensor *made = malloc(sizeof *made + 2 * (size_t)model.ndim * sizeof made->extents[0]);
    void *data = NULL;
    if (made != NULL && bytes > 0)
        data = aligned_alloc(ALIGNMENT, ((size_t)bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    if (made == NULL || (bytes > 0 && data == NULL)) {
        free(made);
        return fl_fail(FUSELINE_ERROR_MEMORY, "no host memory for a tensor of %lld bytes", (long long)bytes);
    }
    atomic_init(&made->references, 1);
    memcpy(made->extents, model.shape, (size_t)model.ndim * sizeof made->extents[0]);
    fill_strides(&model, made->extents + model.ndim);
    made->view = (DLTensor){.data = data,
                            .device = {kDLCPU, 0},
                            .ndim = model.ndim,
                            .dtype = like->dtype,
                            .shape = made->extents,
                            .strides = made->extents + model.ndim};
    *tensor = made;
    return FUSELINE_OK;
}

static fuseline_status check_source(const struct fl_tensor *target, const struct fl_tensor *source)
{
    if (source->device_kind != FL_CPU)
        return fl_fail(FUSELINE_ERROR_DEVICE, "source: is not in host memory");
    if (source->dtype != target->dtype)
        return fl_fail(FUSELINE_ERROR_DTYPE, "source: dtype is %s; accepted: the tensor's, %s", fl_dtype_name[source->dtype],
                       fl_dtype_name[target->dtype]);
    if (source->ndim != target->ndim || memcmp(source->shape, target->shape, (size_t)source->ndim * sizeof source->shape[0]) != 0)
        return fl_fail(FUSELINE_ERROR_SHAPE, "source: its shape differs from the tensor's");
    return FUSELINE_OK;
}

fuseline_status fuseline_tensor_copy(fuseline_tensor *tensor, const DLTensor *source)
{
    struct fl_tensor to, from;
    int64_t index[FL_NDIM_MOST] = {0}, to_at = 0, from_at = 0;

    FL_TRY(fl_tensor_check(fuseline_tensor_view(tensor), "tensor", &to));
    FL_TRY(fl_tensor_check(source, "source", &from));
    FL_TRY(check_source(&to, &from));
    size_t size = (size_t)fl_dtype_size[to.dtype];
    for (int64_t left = to.count; left > 0; left--) {
        memcpy(to.data + to_at * (int64_t)size, from.data + from_at * (int64_t)size, size);
        for (int d = to.ndim - 1; d >= 0; d--) { /* counts up like an odometer */
            if (++index[d] < to.shape[d]) {
                to_at += to.strides[d];
                from_at += from.strides[d];
                break;
            }
            to_at -= to.strides[d] * (to.shape[d] - 1);
            from_at -= from.strides[d] * (to.shape[d] - 1);
            index[d] = 0;
        }
    }
    return FUSELINE_OK;
}

DLTensor *fuseline_tensor_view(fuseline_tensor *tensor)
{
    return tensor != NULL ? &tensor->view : NULL;
}

void fuseline_tensor_release(fuseline_tensor *tensor)
{
    if (tensor == NULL || atomic_fetch_sub_explicit(&tensor->references, 1, memory_order_acq_rel) > 1)
        return;
    free(tensor->view.data);
    free(tensor);
}

static void delete_managed(DLManagedTensor *managed)
{
    fuseline_tensor_release(managed->manager_ctx);
    free(managed);
}

static void delete_versioned(DLManagedTensorVersioned *managed)
{
    fuseline_tensor_release(managed->manager_ctx);
    free(managed);
}

/* Allocates an exported structure and takes the reference that it will hold. */
static fuseline_status begin_export(fuseline_tensor *tensor, const void *managed, size_t size, void **made)
{
    if (tensor == NULL || managed == NULL)
        return fl_fail(FUSELINE_ERROR_ARGUMENT, "%s: is NULL", tensor == NULL ? "tensor" : "managed");
    *made = malloc(size);
    if (*made == NULL)
        return fl_fail(FUSELINE_ERROR_MEMORY, "no host memory for a DLPack structure");
    atomic_fetch_add_explicit(&tensor->references, 1, memory_order_relaxed);
    return FUSELINE_OK;
}

fuseline_status fuseline_tensor_export(fuseline_tensor *tensor, DLManagedTensor **managed)
{
    void *made;
    FL_TRY(begin_export(tensor, managed, sizeof **managed, &made));
    *managed = made;
    **managed = (DLManagedTensor){.dl_tensor = tensor->view, .manager_ctx = tensor, .deleter = delete_managed};
    return FUSELINE_OK;
}

fuseline_status fuseline_tensor_export_versioned(fuseline_tensor *tensor, uint64_t flags, DLManagedTensorVersioned **managed)
{
    void *made;
    FL_TRY(begin_export(tensor, managed, sizeof **managed, &made));
    *managed = made;
    **managed = (DLManagedTensorVersioned){.version = {EXPORTED_MAJOR, EXPORTED_MINOR},
                                           .manager_ctx = tensor,
                                           .deleter = delete_versioned,
                                           .flags = flags,
                                           .dl_tensor = tensor->view};
    return FUSELINE_OK;
}
