#include "part.h"

#include <inttypes.h>
#include <string.h>

fuseline_status fl_part_take(struct fl_tensor *view, enum fl_part part)
{
    int last = view->ndim - 1, size = fl_dtype_size[view->dtype];

    if (part == FL_WHOLE)
        return FUSELINE_OK;
    view->is_half = 1;
    if (view->ndim == 0)
        return fl_fail(FUSELINE_ERROR_SHAPE, "%s: has no axis to split; accepted: a last axis of gate and up together",
                       view->name);
    if (view->shape[last] % 2 != 0)
        return fl_fail(FUSELINE_ERROR_SHAPE, "%s: last extent is %" PRId64 "; accepted: an even one, gate and up together",
                       view->name, view->shape[last]);
    int64_t half = view->shape[last] /= 2, stride = view->strides[last], offset, lost;
    if (view->count == 0)
        return FUSELINE_OK;
    view->count /= 2;
    if (part == FL_EVEN_HALF || part == FL_ODD_HALF) {
        offset = part == FL_ODD_HALF ? stride : 0;
        view->strides[last] *= 2;
        view->step = 2;
        lost = stride; /* what the part's last element is nearer than the whole's */
    } else {
        offset = part == FL_SECOND_HALF ? half * stride : 0;
        lost = half * stride;
    }
    /* The whole's extent was checked, so these stay within it. */
    view->data += offset * size;
    if (lost >= 0)
        view->highest -= lost * size;
    else
        view->lowest -= lost * size;
    return FUSELINE_OK;
}

fuseline_status fl_part_per_column(struct fl_tensor *view, enum fl_part part, const struct fl_tensor *like)
{
    int64_t parts = part == FL_WHOLE ? 1 : 2, columns, stride;

    if (like->ndim == 0)
        return fl_fail(FUSELINE_ERROR_SHAPE,
                       "%s: has no axis, and %s an element for each place along the last; accepted: 1 or more", like->name,
                       view->name);
    columns = like->shape[like->ndim - 1];
    if (view->ndim != 1 || view->shape[0] != parts * columns) {
        char found[256];
        return fl_fail(FUSELINE_ERROR_SHAPE, "%s: shape is %s; accepted: (%" PRId64 "), an element for each column%s", view->name,
                       fl_extents_text(view->shape, view->ndim, found, sizeof found), parts * columns,
                       part == FL_WHOLE ? "" : " of gate and up");
    }
    if (view->shape[0] > 1 && view->strides[0] != 1)
        return fl_fail(FUSELINE_ERROR_LAYOUT, "%s: strides are (%" PRId64 "); accepted: (1); copy it to a contiguous tensor",
                       view->name, view->strides[0]);
    FL_TRY(fl_part_take(view, part));
    view->is_half = 0; /* spread over like's shape */
    stride = view->strides[0];
    view->ndim = like->ndim;
    view->count = like->count;
    memcpy(view->shape, like->shape, (size_t)like->ndim * sizeof like->shape[0]);
    memset(view->strides, 0, (size_t)like->ndim * sizeof view->strides[0]);
    view->strides[like->ndim - 1] = stride;
    return FUSELINE_OK;
}
