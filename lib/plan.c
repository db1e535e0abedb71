#include "plan.h"

#include <inttypes.h>
#include <string.h>

/* One axis of the shared iteration space, with every operand's stride along it. */
struct axis {
    int64_t extent;
    int64_t stride[FL_OPERANDS_MOST];
};

static fuseline_status check_agreement(const struct fl_tensor *operands, int count)
{
    static const char *const kinds[FL_DEVICE_KINDS] = {"CPU", "CUDA", "ROCm"};
    const struct fl_tensor *first = &operands[0];
    char found[256], wanted[256];

    for (int k = 1; k < count; k++) {
        const struct fl_tensor *other = &operands[k];
        if (other->device_kind != first->device_kind || other->device_id != first->device_id)
            return fl_fail(FUSELINE_ERROR_DEVICE, "%s is on %s device %d, but %s is on %s device %d; accepted: one device",
                           other->name, kinds[other->device_kind], other->device_id, first->name, kinds[first->device_kind],
                           first->device_id);
        if (other->dtype != first->dtype)
            return fl_fail(FUSELINE_ERROR_DTYPE, "%s: dtype is %s, but %s is %s; accepted: the same dtype", other->name,
                           fl_dtype_name[other->dtype], first->name, fl_dtype_name[first->dtype]);
        if (other->ndim != first->ndim || memcmp(other->shape, first->shape, (size_t)first->ndim * sizeof first->shape[0]) != 0)
            return fl_fail(FUSELINE_ERROR_SHAPE, "%s: shape is %s, but %s is %s; accepted: the same shape", other->name,
                           fl_extents_text(other->shape, other->ndim, found, sizeof found), first->name,
                           fl_extents_text(first->shape, first->ndim, wanted, sizeof wanted));
    }
    return FUSELINE_OK;
}

/* True if `outer` walks on where `inner` ends, for every operand. */
static int continues(const struct axis *outer, const struct axis *inner, int count)
{
    for (int k = 0; k < count; k++) {
        int64_t step;
        if (__builtin_mul_overflow(inner->stride[k], inner->extent, &step) || outer->stride[k] != step)
            return 0;
    }
    return 1;
}

/* True if `a` must lie outside `b`: the output's strides decide, then those of the inputs, where the output's tie. */
static int lies_outside(const struct axis *a, const struct axis *b, int count)
{
    for (int k = count - 1; k >= 0; k--)
        if (a->stride[k] != b->stride[k])
            return a->stride[k] > b->stride[k];
    return 0;
}

/*
 * Sorts and merges the axes of some operands. Returns how many are left, at least 1; axes[0] is the innermost.
 * Axes of one element are dropped: their strides mean nothing.
 */
static int collapse(const struct fl_tensor *const *operands, int count, struct axis *axes)
{
    int left = 0, merged = 0;
    for (int d = 0; d < operands[0]->ndim; d++) {
        if (operands[0]->shape[d] == 1)
            continue;
        axes[left].extent = operands[0]->shape[d];
        for (int k = 0; k < count; k++)
            axes[left].stride[k] = operands[k]->strides[d];
        /* At equal strides a later axis is the inner one. */
        for (int at = left++; at > 0 && !lies_outside(&axes[at], &axes[at - 1], count); at--) {
            struct axis inner = axes[at];
            axes[at] = axes[at - 1];
            axes[at - 1] = inner;
        }
    }
    if (left == 0)
        axes[0] = (struct axis){1, {1, 1, 1, 1, 1}};
    for (int d = 1; d < left; d++) {
        if (continues(&axes[d], &axes[merged], count))
            axes[merged].extent *= axes[d].extent;
        else
            axes[++merged] = axes[d];
    }
    return merged + 1;
}

/* True if kernels can walk these axes: at most rows and columns, columns contiguous or (inputs only) one repeated value. */
static int walkable(const struct axis *axes, int left, int count, int outputs)
{
    if (left > 2)
        return 0;
    for (int k = 0; k < count; k++) {
        int is_output = k >= count - outputs;
        if (axes[0].stride[k] != 1 && (is_output || axes[0].stride[k] != 0))
            return 0;
        if (left == 2 && axes[1].stride[k] < (is_output ? axes[0].extent : 0))
            return 0;
    }
    return 1;
}

static fuseline_status layout_error(const struct fl_tensor *operands, int inputs, int outputs)
{
    struct axis axes[FL_NDIM_MOST];
    char shape[256], strides[256], others[256];
    int count = inputs + outputs;

    for (int k = 0; k < count; k++) {
        const struct fl_tensor *one[] = {&operands[k]};
        int left = collapse(one, 1, axes);
        if (!walkable(axes, left, 1, k >= inputs))
            return fl_fail(
                FUSELINE_ERROR_LAYOUT,
                "%s: strides are %s for shape %s; accepted: dense in any dimension order, or rows with a contiguous last "
                "dimension%s; copy it to a contiguous tensor",
                operands[k].name, fl_extents_text(operands[k].strides, operands[k].ndim, strides, sizeof strides),
                fl_extents_text(operands[k].shape, operands[k].ndim, shape, sizeof shape),
                k < inputs ? ", or broadcast from one value" : " that do not overlap");
    }
    for (int k = 0; k < count - 1; k++) {
        const struct fl_tensor *last = &operands[count - 1], *pair[] = {&operands[k], last};
        int left = collapse(pair, 2, axes);
        if (!walkable(axes, left, 2, k >= inputs ? 2 : 1))
            return fl_fail(FUSELINE_ERROR_LAYOUT,
                           "%s: strides are %s, but %s has %s for shape %s; accepted: the same dimension order for all operands",
                           operands[k].name, fl_extents_text(operands[k].strides, operands[k].ndim, strides, sizeof strides),
                           last->name, fl_extents_text(last->strides, last->ndim, others, sizeof others),
                           fl_extents_text(last->shape, last->ndim, shape, sizeof shape));
    }
    return fl_fail(FUSELINE_ERROR_LAYOUT, "the operands' strides cannot be walked together; copy them to contiguous tensors");
}

/* True if the elements of two operands, both walked by `arguments`, share memory. Exact where row strides agree. */
static int shares_memory(const struct fl_arguments *arguments, int a, int b, int size)
{
    const char *a_data = arguments->data[a], *b_data = arguments->data[b];
    int64_t stride = arguments->row_stride[a] * size, width = arguments->columns * size;
    if (arguments->rows > 1 && stride == arguments->row_stride[b] * size && stride >= width && arguments->column_stride[a] == 1 &&
        arguments->column_stride[b] == 1) {
        int64_t apart = (b_data - a_data) % stride;
        if (apart < 0)
            apart += stride;
        return apart < width || apart > stride - width;
    }
    return 1;
}

static fuseline_status check_overlap(const struct fl_tensor *operands, int inputs, int outputs,
                                     const struct fl_arguments *arguments)
{
    int count = inputs + outputs, size = fl_dtype_size[operands[0].dtype];
    for (int out = inputs; out < count; out++)
        for (int k = 0; k < out; k++) {
            const struct fl_tensor *a = &operands[k], *b = &operands[out];
            if (a->data + a->highest <= b->data + b->lowest || b->data + b->highest <= a->data + a->lowest)
                continue;
            int same = a->data == b->data && arguments->row_stride[k] == arguments->row_stride[out] &&
                       arguments->column_stride[k] == arguments->column_stride[out];
            if ((same && k < inputs) || !shares_memory(arguments, k, out, size))
                continue;
            if (same)
                return fl_fail(FUSELINE_ERROR_OVERLAP, "%s: is the same memory as %s; accepted: outputs apart from each other",
                               b->name, a->name);
            return fl_fail(
                FUSELINE_ERROR_OVERLAP,
                "%s: overlaps %s in memory without being the same elements; accepted: exactly the same memory, or apart", b->name,
                a->name);
        }
    return FUSELINE_OK;
}

fuseline_status fl_plan(const struct fl_tensor *operands, int inputs, int outputs, struct fl_arguments *arguments)
{
    struct axis axes[FL_NDIM_MOST];
    const struct fl_tensor *all[FL_OPERANDS_MOST] = {NULL};
    int count = inputs + outputs;

    FL_TRY(check_agreement(operands, count));
    if (operands[0].count == 0) {
        arguments->rows = arguments->columns = 0;
        return FUSELINE_OK;
    }
    for (int k = 0; k < count; k++)
        all[k] = &operands[k];
    int left = collapse(all, count, axes);
    if (!walkable(axes, left, count, outputs))
        return layout_error(operands, inputs, outputs);
    arguments->columns = axes[0].extent;
    arguments->rows = left > 1 ? axes[1].extent : 1;
    for (int k = 0; k < count; k++) {
        arguments->data[k] = operands[k].data;
        arguments->column_stride[k] = (int)axes[0].stride[k];
        arguments->row_stride[k] = left > 1 ? axes[1].stride[k] : 0;
    }
    return check_overlap(operands, inputs, outputs, arguments);
}
