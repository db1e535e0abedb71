/* The dispatcher: from checked operands to the implementation for their device. */
#include "cpu/cpu.h"
#include "gpu/gpu.h"
#include "operator.h"
#include "plan.h"

const struct fl_operator fl_operators[FL_OPERATORS] = {
#define FL_OPERATOR(kernel, family, inputs, outputs, ...) {FL_INDEX_##kernel, #kernel, #family, inputs, outputs, {__VA_ARGS__}},
#include "operators.def"
#undef FL_OPERATOR
};

typedef fuseline_status device_run(const struct fl_operator *op, enum fl_dtype dtype, int device_id,
                                   const struct fl_arguments *arguments, const void *parameters, size_t parameters_size,
                                   void *stream);

static device_run *const device_runs[FL_DEVICE_KINDS] = {
    [FL_CPU] = fl_cpu_run,
    [FL_CUDA] = fl_cuda_run,
    [FL_ROCM] = fl_rocm_run,
};

fuseline_status fl_run(const struct fl_operator *op, const DLTensor *const *tensors, const struct fl_parameters *parameters,
                       void *stream)
{
    struct fl_tensor operands[FL_OPERANDS_MOST];
    struct fl_arguments arguments;

    for (int k = 0; k < op->inputs + op->outputs; k++)
        FL_TRY(fl_tensor_check(tensors[k], op->names[k], &operands[k]));
    FL_TRY(fl_plan(operands, op->inputs, op->outputs, &arguments));
    if (arguments.columns == 0)
        return FUSELINE_OK;

    int is_double = operands[0].dtype == FL_FLOAT64;
    return device_runs[operands[0].device_kind](op, operands[0].dtype, operands[0].device_id, &arguments,
                                                is_double ? parameters->double_precision : parameters->single_precision,
                                                is_double ? parameters->double_size : parameters->single_size, stream);
}
