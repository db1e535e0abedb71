/*
 * The plan of a call: operands of one shape, reduced to rows and columns that kernels can walk.
 */
#ifndef FL_PLAN_H
#define FL_PLAN_H

#include "arguments.h"
#include "tensor.h"

/*
 * Checks the operands against each other (shape, dtype, device, layout, overlap) and fills `arguments`.
 * operands: `inputs` inputs, then `outputs` outputs, already checked one by one.
 * With zero elements the plan is empty: rows = columns = 0.
 */
fuseline_status fl_plan(const struct fl_tensor *operands, int inputs, int outputs, struct fl_arguments *arguments);

#endif
