/*
 * An operator as the dispatcher sees it, and the ways to call one.
 */
#ifndef FL_OPERATOR_H
#define FL_OPERATOR_H

#include <stddef.h>

#include "arguments.h"
#include "tensor.h"

enum fl_operator_index {
#define FL_OPERATOR(kernel, family, inputs, outputs, roles)  FL_INDEX_##kernel,
#define FL_REDUCTION(kernel, family, inputs, outputs, roles) FL_INDEX_##kernel,
#include "operators.def"
    FL_OPERATORS
};

struct fl_operator {
    enum fl_operator_index index;
    const char *kernel; /* "swish_forward": the stem of the GPU kernels' names */
    const char *family; /* "swish": which GPU module holds them, and what users call the operator */
    enum fl_operator_kind { FL_ELEMENTWISE_KIND, FL_REDUCTION_KIND } kind;
    int inputs, outputs;
    const char *roles; /* a letter for each operand: see operators.def */
};

extern const struct fl_operator fl_operators[FL_OPERATORS];

/* The element types of a call: of its operands, and of its result. */
struct fl_types {
    enum fl_dtype operand, result;
};

/* The element type of an operator's operand k. */
static inline enum fl_dtype fl_operand_type(const struct fl_operator *op, struct fl_types types, int k)
{
    return op->roles[k] == 'y' ? types.result : types.operand;
}

/* What an operand of the kernel is: one of the call's tensors, or half of one along its last axis. */
enum fl_part { FL_ABSENT, FL_WHOLE, FL_FIRST_HALF, FL_SECOND_HALF, FL_EVEN_HALF, FL_ODD_HALF };

struct fl_source {
    int tensor;
    enum fl_part part;
};

#define FL_TENSORS_MOST 8

/* One call, from its public arguments to what the dispatcher needs. Made by an entry. */
struct fl_call {
    const struct fl_operator *op;
    int tensors, outputs;               /* how many tensors the entry takes; the last `outputs` are written */
    const char *names[FL_TENSORS_MOST]; /* of the arguments, for messages */
    struct fl_source sources[FL_OPERANDS_MOST];
    int plain; /* see fl_arguments */
    /* The operator's parameters, prepared for both precisions that its formula may be computed in. */
    const void *single_precision, *double_precision;
    size_t single_size, double_size;
};

/* Checks, plans and runs one call on tensors that are borrowed. */
fuseline_status fl_run(const struct fl_call *call, const DLTensor *const *tensors, void *stream);

/*
 * The same for tensors that the call owns: every distinct one is deleted exactly once, whatever happens. `ready` is the status of
 * the call's preparation; when it is an error nothing runs and it is returned.
 */
fuseline_status fl_run_managed(const struct fl_call *call, fuseline_status ready, DLManagedTensor *const *tensors, void *stream);
fuseline_status fl_run_versioned(const struct fl_call *call, fuseline_status ready, DLManagedTensorVersioned *const *tensors,
                                 void *stream);

/* The same for a framework's Python objects, on the framework's current stream. NULL stands for an absent optional tensor. */
fuseline_status fl_run_objects(const struct fl_call *call, const struct DLPackExchangeAPI *api, void *const *objects);

#endif
