/*
 * An operator as the dispatcher sees it, and the ways to call one.
 */
#ifndef FL_OPERATOR_H
#define FL_OPERATOR_H

#include <stddef.h>

#include "arguments.h"
#include "tensor.h"

enum fl_operator_index {
#define FL_OPERATOR(kernel, family, inputs, outputs, ...) FL_INDEX_##kernel,
#include "operators.def"
#undef FL_OPERATOR
    FL_OPERATORS
};

struct fl_operator {
    enum fl_operator_index index;
    const char *kernel; /* "swish_forward": the stem of the GPU kernels' names */
    const char *family; /* "swish": which GPU module holds them, and what users call the operator */
    int inputs, outputs;
    const char *names[FL_OPERANDS_MOST];
};

extern const struct fl_operator fl_operators[FL_OPERATORS];

/* An operator's parameters, prepared for both precisions that its formula may be computed in. */
struct fl_parameters {
    const void *single_precision, *double_precision;
    size_t single_size, double_size;
};

/*
 * Checks, plans and runs one call.
 *
 * tensors: the operator's inputs, then its outputs. Borrowed.
 */
fuseline_status fl_run(const struct fl_operator *op, const DLTensor *const *tensors, const struct fl_parameters *parameters,
                       void *stream);

/*
 * The same for tensors that the call owns: every distinct one is deleted exactly once, whatever happens. `ready` is the status of
 * the preparation of the parameters; when it is an error nothing runs and it is returned.
 */
fuseline_status fl_run_managed(const struct fl_operator *op, fuseline_status ready, DLManagedTensor *const *tensors,
                               const struct fl_parameters *parameters, void *stream);
fuseline_status fl_run_versioned(const struct fl_operator *op, fuseline_status ready, DLManagedTensorVersioned *const *tensors,
                                 const struct fl_parameters *parameters, void *stream);

/* The same for a framework's Python objects, on the framework's current stream. */
fuseline_status fl_run_objects(const struct fl_operator *op, const struct DLPackExchangeAPI *api, void *const *objects,
                               const struct fl_parameters *parameters);

#endif
