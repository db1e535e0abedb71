/* Views on parts of tensors: halves along the last axis, and values repeated for every row. */
#ifndef FL_PART_H
#define FL_PART_H

#include "operator.h"

/* Narrows a checked view to a part of itself. The last axis must have an even extent, or the part be the whole. */
fuseline_status fl_part_take(struct fl_tensor *view, enum fl_part part);

/*
 * Narrows a checked view of one element per column (of each part, where it holds two) to a part of itself, and repeats it for every
 * row of `like`, which has that part's columns.
 */
fuseline_status fl_part_per_column(struct fl_tensor *view, enum fl_part part, const struct fl_tensor *like);

#endif
