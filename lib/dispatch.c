/* The dispatcher: from a call's tensors to checked operands, and to the implementation for their device. */
#include <string.h>

#include "cpu/cpu.h"
#include "gpu/gpu.h"
#include "operator.h"
#include "part.h"
#include "plan.h"

const struct fl_operator fl_operators[FL_OPERATORS] = {
#define FL_ROW(kernel, family, kind, inputs, outputs, roles) {FL_INDEX_##kernel, #kernel, #family, kind, inputs, outputs, roles},
#define FL_OPERATOR(kernel, family, inputs, outputs, roles)  FL_ROW(kernel, family, FL_ELEMENTWISE_KIND, inputs, outputs, roles)
#define FL_REDUCTION(kernel, family, inputs, outputs, roles) FL_ROW(kernel, family, FL_REDUCTION_KIND, inputs, outputs, roles)
#include "operators.def"
};

typedef fuseline_status device_run(const struct fl_operator *op, struct fl_types types, int device_id,
                                   const struct fl_arguments *arguments, const void *parameters, size_t parameters_size,
                                   void *stream);

static device_run *const device_runs[FL_DEVICE_KINDS] = {
    [FL_CPU] = fl_cpu_run,
    [FL_CUDA] = fl_cuda_run,
    [FL_ROCM] = fl_rocm_run,
};

/*
 * The operands that have a role's kind of dtype must agree; and a result may differ from the operands where one of the two is
 * float32 and the other a 16-bit type.
 */
static fuseline_status check_types(const struct fl_operator *op, const struct fl_tensor *const *operands, struct fl_types *types)
{
    const struct fl_tensor *operand = NULL, *result = NULL;
    for (int k = 0; k < op->inputs + op->outputs; k++) {
        const struct fl_tensor *tensor = operands[k], **first = op->roles[k] == 'y' ? &result : &operand;
        if (tensor == NULL)
            continue;
        if (*first == NULL)
            *first = tensor;
        else if (tensor->dtype != (*first)->dtype)
            return fl_fail(FUSELINE_ERROR_DTYPE, "%s: dtype is %s, but %s is %s; accepted: the same dtype", tensor->name,
                           fl_dtype_name[tensor->dtype], (*first)->name, fl_dtype_name[(*first)->dtype]);
    }
    types->operand = operand->dtype;
    types->result = result != NULL ? result->dtype : operand->dtype;
    if (types->operand == types->result || (types->operand == FL_FLOAT32 && fl_dtype_size[types->result] == 2) ||
        (types->result == FL_FLOAT32 && fl_dtype_size[types->operand] == 2))
        return FUSELINE_OK;
    return fl_fail(FUSELINE_ERROR_DTYPE, "%s: dtype is %s, but %s is %s; accepted: the same dtype, or float32 with a 16-bit type",
                   result->name, fl_dtype_name[types->result], operand->name, fl_dtype_name[types->operand]);
}

/* Whether an operand has one element for each column, instead of the others' shape. */
static int is_per_column(const struct fl_operator *op, int k)
{
    return strchr("bcs", op->roles[k]) != NULL;
}

fuseline_status fl_run(const struct fl_call *call, const DLTensor *const *tensors, void *stream)
{
    const struct fl_operator *op = call->op;
    struct fl_tensor views[FL_OPERANDS_MOST];
    const struct fl_tensor *operands[FL_OPERANDS_MOST] = {NULL};
    struct fl_arguments arguments;
    struct fl_types types;

    for (int k = 0; k < op->inputs + op->outputs; k++) {
        struct fl_source source = call->sources[k];
        if (source.part == FL_ABSENT)
            continue;
        FL_TRY(fl_tensor_check(tensors[source.tensor], call->names[source.tensor], &views[k]));
        if (!is_per_column(op, k))
            FL_TRY(fl_part_take(&views[k], source.part));
        operands[k] = &views[k];
    }
    for (int k = 0; k < op->inputs + op->outputs; k++)
        if (operands[k] != NULL && is_per_column(op, k))
            FL_TRY(fl_part_per_column(&views[k], call->sources[k].part, operands[op->roles[0] == 'y' ? 1 : 0]));
    FL_TRY(check_types(op, operands, &types));
    if (op->kind == FL_REDUCTION_KIND)
        FL_TRY(fl_plan_reduction(operands[0], operands[1], &arguments));
    else
        FL_TRY(fl_plan(operands, op->inputs, op->outputs, &arguments));
    if (arguments.columns == 0)
        return FUSELINE_OK;

    arguments.plain = call->plain;

    int is_double = types.operand == FL_FLOAT64;
    return device_runs[operands[0]->device_kind](op, types, operands[0]->device_id, &arguments,
                                                 is_double ? call->double_precision : call->single_precision,
                                                 is_double ? call->double_size : call->single_size, stream);
}
