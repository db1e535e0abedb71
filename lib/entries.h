/*
 * The public entries of an operator, written once for all operators.
 *
 * FL_ENTRIES_<inputs>_<outputs>(kernel, family, scalars, values, operands ...) defines the four functions that
 * include/fuseline/<family>.h declares for a kernel: the borrowing one, _managed, _versioned and _objects. The operator's
 * file supplies
 *
 *     static fuseline_status <family>_prepare(scalars, struct <family>_parameters *parameters)
 *
 * which checks the scalars and fills the parameters for both precisions.
 *
 * scalars and values stand in parentheses and end in a comma: (double beta, ) and (beta, ); () where there are none.
 */
#ifndef FL_ENTRIES_H
#define FL_ENTRIES_H

#include <fuseline/fuseline.h>

#include "operator.h"

/* Declares struct <family>_parameters, which <family>_prepare fills. */
#define FL_PARAMETERS(family)                                                                                                    \
    struct family##_parameters {                                                                                                 \
        struct family##_parameters_32 in_float;                                                                                  \
        struct family##_parameters_64 in_double;                                                                                 \
    }

#define FL_UNPACK(...) __VA_ARGS__

#define FL_PREPARE(kernel, family, values)                                                                                       \
    const struct fl_operator *op = &fl_operators[FL_INDEX_##kernel];                                                             \
    struct family##_parameters prepared;                                                                                         \
    const struct fl_parameters parameters = {&prepared.in_float, &prepared.in_double, sizeof prepared.in_float,                  \
                                             sizeof prepared.in_double};                                                         \
    fuseline_status ready = family##_prepare(FL_UNPACK values & prepared)

/* declare(T) gives the parameter list of pointers to T, with the scalars in between; `all` lists their names. */
#define FL_ENTRIES(kernel, family, values, declare_inputs, declare_outputs, scalars, all)                                        \
    fuseline_status fuseline_##kernel(declare_inputs(const DLTensor), FL_UNPACK scalars void *stream, declare_outputs(DLTensor)) \
    {                                                                                                                            \
        FL_PREPARE(kernel, family, values);                                                                                      \
        FL_TRY(ready);                                                                                                           \
        return fl_run(op, (const DLTensor *[]){FL_UNPACK all}, &parameters, stream);                                             \
    }                                                                                                                            \
    fuseline_status fuseline_##kernel##_managed(declare_inputs(DLManagedTensor), FL_UNPACK scalars void *stream,                 \
                                                declare_outputs(DLManagedTensor))                                                \
    {                                                                                                                            \
        FL_PREPARE(kernel, family, values);                                                                                      \
        return fl_run_managed(op, ready, (DLManagedTensor *[]){FL_UNPACK all}, &parameters, stream);                             \
    }                                                                                                                            \
    fuseline_status fuseline_##kernel##_versioned(declare_inputs(DLManagedTensorVersioned), FL_UNPACK scalars void *stream,      \
                                                  declare_outputs(DLManagedTensorVersioned))                                     \
    {                                                                                                                            \
        FL_PREPARE(kernel, family, values);                                                                                      \
        return fl_run_versioned(op, ready, (DLManagedTensorVersioned *[]){FL_UNPACK all}, &parameters, stream);                  \
    }                                                                                                                            \
    fuseline_status fuseline_##kernel##_objects(const struct DLPackExchangeAPI *api, declare_inputs(void),                       \
                                                FL_UNPACK scalars declare_outputs(void))                                         \
    {                                                                                                                            \
        FL_PREPARE(kernel, family, values);                                                                                      \
        FL_TRY(ready);                                                                                                           \
        return fl_run_objects(op, api, (void *[]){FL_UNPACK all}, &parameters);                                                  \
    }

/* The operands' names do not matter here: the table's row has those that messages use. */
#define FL_OPERANDS_A(T)  T *a
#define FL_OPERANDS_AB(T) T *a, T *b
#define FL_OPERANDS_Y(T)  T *y

#define FL_ENTRIES_1_1(kernel, family, scalars, values)                                                                          \
    FL_ENTRIES(kernel, family, values, FL_OPERANDS_A, FL_OPERANDS_Y, scalars, (a, y))
#define FL_ENTRIES_2_1(kernel, family, scalars, values)                                                                          \
    FL_ENTRIES(kernel, family, values, FL_OPERANDS_AB, FL_OPERANDS_Y, scalars, (a, b, y))

#endif
