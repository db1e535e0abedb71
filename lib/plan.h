/*
 * The plan of a call: operands of one shape, reduced to rows and columns that kernels can walk.
 */
#ifndef FL_PLAN_H
#define FL_PLAN_H

#include "arguments.h"
#include "tensor.h"

/*
 * Checks the operands against each other (shape, device, layout, overlap) and fills `arguments`.
 * operands: `inputs` inputs, then `outputs` outputs, already checked one by one; NULL for an absent input, but never the first.
 * With zero elements the plan is empty: rows = columns = 0.
 */
fuseline_status fl_plan(const struct fl_tensor *const *operands, int inputs, int outputs, struct fl_arguments *arguments);

/*
 * The same for a reduction over rows: x, and the result with one element per column, already spread over x's shape. With zero rows
 * there still are columns, whose results are those of nothing.
 */
fuseline_status fl_plan_reduction(const struct fl_tensor *x, const struct fl_tensor *result, struct fl_arguments *arguments);

#endif
