#include "plan.h"

#include <inttypes.h>
#include <string.h>

/* One axis of the shared iteration space, with every operand's stride along it. */
struct axis {
    int64_t extent;
    int64_t stride[FL_OPERANDS_MOST];
};

/* The shape and the strides of the tensor that the caller passed, of which an operand may be half. */
static const char *whole_shape_text(const struct fl_tensor *view, char *buffer, int size)
{
    int64_t shape[FL_NDIM_MOST];
    memcpy(shape, view->shape, sizeof shape);
    if (view->is_half)
        shape[view->ndim - 1] *= 2;
    return fl_extents_text(shape, view->ndim, buffer, size);
}

static const char *whole_strides_text(const struct fl_tensor *view, char *buffer, int size)
{
    int64_t strides[FL_NDIM_MOST];
    memcpy(strides, view->strides, sizeof strides);
    if (view->is_half)
        strides[view->ndim - 1] /= view->step;
    return fl_extents_text(strides, view->ndim, buffer, size);
}

/* The operand that the others are compared with: the first one, or the first half of a packed one, which is gate's. */
static const struct fl_tensor *leading(const struct fl_tensor *const *operands, int count)
{
    for (int k = 0; k < count; k++)
        if (operands[k]->is_half)
            return operands[k];
    return operands[0];
}

static fuseline_status check_agreement(const struct fl_tensor *const *operands, int count)
{
    static const char *const kinds[FL_DEVICE_KINDS] = {"CPU", "CUDA", "ROCm"};
    const struct fl_tensor *first = leading(operands, count);
    char found[256], wanted[256];

    for (int k = 0; k < count; k++) {
        const struct fl_tensor *other = operands[k];
        if (other->device_kind != first->device_kind || other->device_id != first->device_id)
            return fl_fail(FUSELINE_ERROR_DEVICE, "%s is on %s device %d, but %s is on %s device %d; accepted: one device",
                           other->name, kinds[other->device_kind], other->device_id, first->name, kinds[first->device_kind],
                           first->device_id);
        if (other->ndim != first->ndim || memcmp(other->shape, first->shape, (size_t)first->ndim * sizeof first->shape[0]) != 0)
            return fl_fail(FUSELINE_ERROR_SHAPE, "%s: shape is %s, but %s%s is %s; accepted: the same shape", other->name,
                           whole_shape_text(other, found, sizeof found), first->is_half && !other->is_half ? "half of " : "",
                           first->name,
                           other->is_half ? whole_shape_text(first, wanted, sizeof wanted)
                                          : fl_extents_text(first->shape, first->ndim, wanted, sizeof wanted));
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
 * Sorts and merges the axes of some operands. Returns how many are left; axes[0] is the innermost.
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
    for (int d = 1; d < left; d++) {
        if (continues(&axes[d], &axes[merged], count))
            axes[merged].extent *= axes[d].extent;
        else
            axes[++merged] = axes[d];
    }
    return left > 0 ? merged + 1 : 0;
}

/* True if kernels can walk these axes: at most rows and columns, columns contiguous or (inputs only) one repeated value. */
static int walkable(const struct axis *axes, int left, const struct fl_tensor *const *operands, int count, int outputs)
{
    if (left > 2)
        return 0;
    for (int k = 0; k < count; k++) {
        int is_output = k >= count - outputs;
        int64_t step = axes[0].stride[k], width;
        if (step != 1 && step != operands[k]->step && (is_output || step != 0))
            return 0;
        if (__builtin_mul_overflow(axes[0].extent, step, &width) || (left == 2 && axes[1].stride[k] < (is_output ? width : 0)))
            return 0;
    }
    return 1;
}

/* Puts in an innermost axis of one element, which is contiguous by itself. */
static int add_column(const struct fl_tensor *const *operands, int count, struct axis *axes, int left)
{
    for (int d = left; d > 0; d--)
        axes[d] = axes[d - 1];
    axes[0].extent = 1;
    for (int k = 0; k < count; k++)
        axes[0].stride[k] = operands[k]->step;
    return left + 1;
}

/* Reduces some operands to rows and columns: axes[1], if two are left, and axes[0]. Returns how many are left, 0 if kernels cannot walk it. */
static int reduce(const struct fl_tensor *const *operands, int count, int outputs, struct axis *axes)
{
    int left = collapse(operands, count, axes), ndim = operands[0]->ndim;
    if (left == 0)
        left = add_column(operands, count, axes, 0);
    if (walkable(axes, left, operands, count, outputs))
        return left;
    if (ndim > 0 && operands[0]->shape[ndim - 1] == 1) { /* rows of one column, apart from each other */
        left = add_column(operands, count, axes, left);
        if (walkable(axes, left, operands, count, outputs))
            return left;
    }
    return 0;
}

static fuseline_status layout_error(const struct fl_tensor *const *operands, int count, int outputs)
{
    struct axis axes[FL_NDIM_MOST + 1];
    char shape[256], strides[256], others[256];
    int inputs = count - outputs;

    for (int k = 0; k < count; k++) {
        const struct fl_tensor *one = operands[k];
        if (reduce(&one, 1, k >= inputs, axes) == 0)
            return fl_fail(FUSELINE_ERROR_LAYOUT,
                           "%s: strides are %s for shape %s; accepted: dense in any dimension order, or rows with a "
                           "contiguous last dimension%s; copy it to a contiguous tensor",
                           one->name, whole_strides_text(one, strides, sizeof strides),
                           whole_shape_text(one, shape, sizeof shape),
                           k < inputs ? ", or broadcast from one value" : " that do not overlap");
    }
    for (int k = 0; k < count - 1; k++) {
        const struct fl_tensor *last = operands[count - 1], *pair[] = {operands[k], last};
        if (reduce(pair, 2, k >= inputs ? 2 : 1, axes) == 0)
            return fl_fail(FUSELINE_ERROR_LAYOUT,
                           "%s: strides are %s, but %s has %s for shape %s; accepted: the same dimension order for all operands",
                           operands[k]->name, whole_strides_text(operands[k], strides, sizeof strides), last->name,
                           whole_strides_text(last, others, sizeof others), whole_shape_text(last, shape, sizeof shape));
    }
    return fl_fail(FUSELINE_ERROR_LAYOUT, "the operands' strides cannot be walked together; copy them to contiguous tensors");
}

/* How an operand lies in memory, in bytes. */
struct footprint {
    const char *data;
    int64_t row_stride, column_stride, size;
};

/* True if two rows of elements `step` bytes apart share memory, the second beginning `apart` bytes behind the first. */
static int rows_share_memory(int64_t apart, int64_t step, int64_t size, int64_t columns)
{
    int64_t within = apart % step;
    return apart < columns * step && (within < size || within > step - size);
}

/* True if the elements of two operands of one plan share memory. Exact where both have one kind of rows. */
static int shares_memory(const struct footprint *a, const struct footprint *b, const struct fl_arguments *plan)
{
    int64_t apart = b->data - a->data, stride = a->row_stride, step = a->column_stride, columns = plan->columns;
    if (step != b->column_stride || a->size != b->size || step == 0)
        return 1;
    if (plan->rows == 1)
        return rows_share_memory(apart < 0 ? -apart : apart, step, a->size, columns);
    if (stride != b->row_stride || stride < columns * step)
        return 1;
    apart %= stride;
    if (apart < 0)
        apart += stride;
    return rows_share_memory(apart, step, a->size, columns) || rows_share_memory(stride - apart, step, a->size, columns);
}

static fuseline_status check_overlap(const struct fl_tensor *const *operands, int count, int outputs,
                                     const struct footprint *footprints, const struct fl_arguments *plan)
{
    int inputs = count - outputs;
    for (int out = inputs; out < count; out++)
        for (int k = 0; k < out; k++) {
            const struct fl_tensor *x = operands[k], *y = operands[out];
            const struct footprint *a = &footprints[k], *b = &footprints[out];
            if (x->data + x->highest <= y->data + y->lowest || y->data + y->highest <= x->data + x->lowest)
                continue;
            int same = a->data == b->data && a->size == b->size && a->row_stride == b->row_stride &&
                       a->column_stride == b->column_stride;
            if ((same && k < inputs) || !shares_memory(a, b, plan))
                continue;
            if (same)
                return fl_fail(FUSELINE_ERROR_OVERLAP, "%s: is the same memory as %s; accepted: outputs apart from each other",
                               y->name, x->name);
            return fl_fail(FUSELINE_ERROR_OVERLAP,
                           "%s: overlaps %s in memory without being the same elements; accepted: exactly the same "
                           "memory, or apart",
                           y->name, x->name);
        }
    return FUSELINE_OK;
}

fuseline_status fl_plan(const struct fl_tensor *const *operands, int inputs, int outputs, struct fl_arguments *arguments)
{
    struct axis axes[FL_NDIM_MOST + 1];
    const struct fl_tensor *present[FL_OPERANDS_MOST] = {NULL};
    struct footprint footprints[FL_OPERANDS_MOST];
    int count = 0;

    for (int k = 0; k < inputs + outputs; k++)
        if (operands[k] != NULL)
            present[count++] = operands[k];
    FL_TRY(check_agreement(present, count));
    if (present[0]->count == 0) {
        arguments->rows = arguments->columns = 0;
        return FUSELINE_OK;
    }
    int left = reduce(present, count, outputs, axes);
    if (left == 0)
        return layout_error(present, count, outputs);
    arguments->columns = axes[0].extent;
    arguments->rows = left > 1 ? axes[1].extent : 1;
    for (int k = 0, at = 0; k < inputs + outputs; k++) {
        arguments->data[k] = NULL;
        arguments->column_stride[k] = 0;
        arguments->row_stride[k] = 0;
        if (operands[k] == NULL)
            continue;
        arguments->data[k] = operands[k]->data;
        arguments->column_stride[k] = (int)axes[0].stride[at];
        arguments->row_stride[k] = left > 1 ? axes[1].stride[at] : 0;
        int64_t size = fl_dtype_size[operands[k]->dtype];
        footprints[at++] =
            (struct footprint){operands[k]->data, arguments->row_stride[k] * size, arguments->column_stride[k] * size, size};
    }
    return check_overlap(present, count, outputs, footprints, arguments);
}

fuseline_status fl_plan_reduction(const struct fl_tensor *x, const struct fl_tensor *result, struct fl_arguments *arguments)
{
    const struct fl_tensor *both[] = {x, result};
    struct axis axes[FL_NDIM_MOST + 1];
    struct fl_tensor rows = *x; /* x without its columns: one of its elements for each row */
    const struct fl_tensor *one = &rows;
    char strides[256], shape[256];
    int last = x->ndim - 1;

    FL_TRY(check_agreement(both, 2));
    rows.ndim = last;
    *arguments = (struct fl_arguments){
        .data = {x->data, result->data}, .column_stride = {1, 1}, .rows = x->count > 0, .columns = x->shape[last]};
    if (x->count > 0) { /* else strides mean nothing */
        int left = collapse(&one, 1, axes);
        if (left > 1 || (left == 1 && axes[0].stride[0] < 0) || (x->strides[last] != 1 && x->shape[last] != 1))
            return fl_fail(FUSELINE_ERROR_LAYOUT,
                           "%s: strides are %s for shape %s; accepted: a contiguous last dimension and one stride between rows; "
                           "copy it to a contiguous tensor",
                           x->name, fl_extents_text(x->strides, x->ndim, strides, sizeof strides),
                           fl_extents_text(x->shape, x->ndim, shape, sizeof shape));
        if (left == 1) {
            arguments->rows = axes[0].extent;
            arguments->row_stride[0] = axes[0].stride[0];
        }
    }
    if (x->count > 0 && x->data + x->lowest < result->data + result->highest &&
        result->data + result->lowest < x->data + x->highest)
        return fl_fail(FUSELINE_ERROR_OVERLAP, "%s: overlaps %s in memory; accepted: memory apart from it", result->name,
                       x->name);
    return FUSELINE_OK;
}
