/*
 * The public entries of an operator, written once for all operators.
 *
 * FL_UNARY_ENTRIES(family, scalars, values, items) and FL_GATED_ENTRIES(...) define the functions that include/fuseline/<family>.h
 * declares: forward, backward and double backward, each borrowing, _managed, _versioned and _objects. The
 * operator's file supplies
 *
 *     static fuseline_status <family>_prepare(scalars, struct <family>_parameters *prepared)
 *
 * which checks the scalars and fills the parameters for both precisions.
 *
 * scalars, values and items stand in parentheses and end in a comma: (double beta, ), (beta, ) and (numbers[0], ), which is where
 * callers with arrays put it; () where there are none. A gated unit's first item is number 1, after the packing.
 */
#ifndef FL_ENTRIES_H
#define FL_ENTRIES_H

#include <fuseline/fuseline.h>
#include <math.h>

#include "operator.h"

/* Declares struct <family>_parameters, which <family>_prepare fills. */
#define FL_PARAMETERS(family)                                                                                                    \
    struct family##_parameters {                                                                                                 \
        struct family##_parameters_32 in_float;                                                                                  \
        struct family##_parameters_64 in_double;                                                                                 \
    }

#define FL_UNPACK(...) __VA_ARGS__

/* Begins an entry: the call with its parameters, and `ready`, how their preparation went. */
#define FL_BEGIN(kernel, family, values, ...)                                                                                    \
    struct family##_parameters prepared;                                                                                         \
    struct fl_call call = {.op = &fl_operators[FL_INDEX_##kernel],                                                               \
                           .single_precision = &prepared.in_float,                                                               \
                           .double_precision = &prepared.in_double,                                                              \
                           .single_size = sizeof prepared.in_float,                                                              \
                           .double_size = sizeof prepared.in_double,                                                             \
                           __VA_ARGS__};                                                                                         \
    fuseline_status ready = family##_prepare(FL_UNPACK values & prepared)

/*
 * One kernel's four public entries. inputs(T) and outputs(T) declare the tensors as pointers to T, `all` lists them; `finish`
 * completes the call, given which tensors are there.
 */
#define FL_ENTRIES(kernel, family, scalars, values, inputs, outputs, all, finish, ...)                                           \
    fuseline_status fuseline_##kernel(inputs(const DLTensor), FL_UNPACK scalars void *stream, outputs(DLTensor))                 \
    {                                                                                                                            \
        FL_BEGIN(kernel, family, values, __VA_ARGS__);                                                                           \
        FL_TRY(ready);                                                                                                           \
        FL_TRY(finish);                                                                                                          \
        return fl_run(&call, (const DLTensor *[]){FL_UNPACK all}, stream);                                                       \
    }                                                                                                                            \
    fuseline_status fuseline_##kernel##_managed(inputs(DLManagedTensor), FL_UNPACK scalars void *stream,                         \
                                                outputs(DLManagedTensor))                                                        \
    {                                                                                                                            \
        FL_BEGIN(kernel, family, values, __VA_ARGS__);                                                                           \
        ready = ready == FUSELINE_OK ? finish : ready;                                                                           \
        return fl_run_managed(&call, ready, (DLManagedTensor *[]){FL_UNPACK all}, stream);                                       \
    }                                                                                                                            \
    fuseline_status fuseline_##kernel##_versioned(inputs(DLManagedTensorVersioned), FL_UNPACK scalars void *stream,              \
                                                  outputs(DLManagedTensorVersioned))                                             \
    {                                                                                                                            \
        FL_BEGIN(kernel, family, values, __VA_ARGS__);                                                                           \
        ready = ready == FUSELINE_OK ? finish : ready;                                                                           \
        return fl_run_versioned(&call, ready, (DLManagedTensorVersioned *[]){FL_UNPACK all}, stream);                            \
    }                                                                                                                            \
    fuseline_status fuseline_##kernel##_objects(const struct DLPackExchangeAPI *api, inputs(void),                               \
                                                FL_UNPACK scalars outputs(void))                                                 \
    {                                                                                                                            \
        FL_BEGIN(kernel, family, values, __VA_ARGS__);                                                                           \
        FL_TRY(ready);                                                                                                           \
        FL_TRY(finish);                                                                                                          \
        return fl_run_objects(&call, api, (void *[]){FL_UNPACK all});                                                            \
    }

/*
 * The borrowing entry with its arguments in arrays, for callers that have them so. `arguments` are those of the public one, out of
 * `tensors`, `numbers` and `stream`.
 */
#define FL_ARRAY_ENTRY(kernel, arguments)                                                                                        \
    fuseline_status fl_##kernel##_array(const DLTensor *const *tensors, const double *numbers, void *stream);                    \
    fuseline_status fl_##kernel##_array(const DLTensor *const *tensors, const double *numbers, void *stream)                     \
    {                                                                                                                            \
        (void)numbers;                                                                                                           \
        return fuseline_##kernel arguments;                                                                                      \
    }

/* y = a(x); dx = dy * a'(x); of the latter the gradients of dy and x, from ddx, that of dx. */
#define FL_DECLARE_X(T)        T *x
#define FL_DECLARE_DY_X(T)     T *dy, T *x
#define FL_DECLARE_DDX_DY_X(T) T *ddx, T *dy, T *x
#define FL_DECLARE_Y(T)        T *y
#define FL_DECLARE_DX(T)       T *dx
#define FL_DECLARE_DDY_DX(T)   T *ddy, T *dx
#define FL_UNARY_ENTRIES(family, scalars, values, items)                                                                         \
    FL_ENTRIES(family##_forward, family, scalars, values, FL_DECLARE_X, FL_DECLARE_Y, (x, y), FUSELINE_OK, .tensors = 2,         \
               .outputs = 1, .names = {"x", "y"}, .sources = {{0, FL_WHOLE}, {1, FL_WHOLE}})                                     \
    FL_ENTRIES(family##_backward, family, scalars, values, FL_DECLARE_DY_X, FL_DECLARE_DX, (dy, x, dx), FUSELINE_OK,             \
               .tensors = 3, .outputs = 1, .names = {"dy", "x", "dx"}, .sources = {{0, FL_WHOLE}, {1, FL_WHOLE}, {2, FL_WHOLE}}) \
    FL_ENTRIES(family##_double_backward, family, scalars, values, FL_DECLARE_DDX_DY_X, FL_DECLARE_DDY_DX, (ddx, dy, x, ddy, dx), \
               FUSELINE_OK, .tensors = 5, .outputs = 2, .names = {"ddx", "dy", "x", "ddy", "dx"},                                \
               .sources = {{0, FL_WHOLE}, {1, FL_WHOLE}, {2, FL_WHOLE}, {3, FL_WHOLE}, {4, FL_WHOLE}})                           \
    FL_ARRAY_ENTRY(family##_forward, (tensors[0], FL_UNPACK items stream, (DLTensor *)tensors[1]))                               \
    FL_ARRAY_ENTRY(family##_backward, (tensors[0], tensors[1], FL_UNPACK items stream, (DLTensor *)tensors[2]))                  \
    FL_ARRAY_ENTRY(family##_double_backward,                                                                                     \
                   (tensors[0], tensors[1], tensors[2], FL_UNPACK items stream, (DLTensor *)tensors[3], (DLTensor *)tensors[4]))

/* y = a(gate) * up and its gradients, in the forms that fl_gated_forward and its siblings tell apart. */
#define FL_DECLARE_GATED(T)          T *gate, T *up, T *bias
#define FL_DECLARE_DY_GATED(T)       T *dy, T *gate, T *up, T *bias
#define FL_DECLARE_GATED_GRADIENT(T) T *dgate, T *dup
#define FL_DECLARE_GATED_DOUBLE(T)   T *ddgate, T *ddup, T *dy, T *gate, T *up
#define FL_DECLARE_GATED_SECOND(T)   T *ddy, T *dgate, T *dup
#define FL_GATED_ENTRIES(family, scalars, values, items)                                                                         \
    FL_ENTRIES(family##_forward, family, (fuseline_packing packing, FL_UNPACK scalars), values, FL_DECLARE_GATED, FL_DECLARE_Y,  \
               (gate, up, bias, y), fl_gated_forward(&call, FL_IS_PLAIN, up != NULL, bias != NULL, packing), .tensors = 4,       \
               .outputs = 1, .names = {"gate", "up", "bias", "y"})                                                               \
    FL_ENTRIES(family##_backward, family, (fuseline_packing packing, FL_UNPACK scalars), values, FL_DECLARE_DY_GATED,            \
               FL_DECLARE_GATED_GRADIENT, (dy, gate, up, bias, dgate, dup),                                                      \
               fl_gated_backward(&call, FL_IS_PLAIN, up != NULL, bias != NULL, dup != NULL, packing), .tensors = 6,              \
               .outputs = 2, .names = {"dy", "gate", "up", "bias", "dgate", "dup"})                                              \
    FL_ENTRIES(family##_double_backward, family, (fuseline_packing packing, FL_UNPACK scalars), values, FL_DECLARE_GATED_DOUBLE, \
               FL_DECLARE_GATED_SECOND, (ddgate, ddup, dy, gate, up, ddy, dgate, dup),                                           \
               fl_gated_double_backward(&call, up != NULL, ddup != NULL, dup != NULL, packing), .tensors = 8, .outputs = 3,      \
               .names = {"ddgate", "ddup", "dy", "gate", "up", "ddy", "dgate", "dup"})                                           \
    FL_ARRAY_ENTRY(family##_forward, (tensors[0], tensors[1], tensors[2], (fuseline_packing)numbers[0], FL_UNPACK items stream,  \
                                      (DLTensor *)tensors[3]))                                                                   \
    FL_ARRAY_ENTRY(family##_backward, (tensors[0], tensors[1], tensors[2], tensors[3], (fuseline_packing)numbers[0],             \
                                       FL_UNPACK items stream, (DLTensor *)tensors[4], (DLTensor *)tensors[5]))                  \
    FL_ARRAY_ENTRY(family##_double_backward,                                                                                     \
                   (tensors[0], tensors[1], tensors[2], tensors[3], tensors[4], (fuseline_packing)numbers[0],                    \
                    FL_UNPACK items stream, (DLTensor *)tensors[5], (DLTensor *)tensors[6], (DLTensor *)tensors[7]))

#define FL_IS_PLAIN (isinf(prepared.in_double.limit) && prepared.in_double.offset == 0)

/* Fill call->sources: which tensor, or half of one, each operand of a gated kernel is; and call->plain. */
fuseline_status fl_gated_forward(struct fl_call *call, int is_plain, int has_up, int has_bias, fuseline_packing packing);
fuseline_status fl_gated_backward(struct fl_call *call, int is_plain, int has_up, int has_bias, int has_dup,
                                  fuseline_packing packing);
fuseline_status fl_gated_double_backward(struct fl_call *call, int has_up, int has_ddup, int has_dup, fuseline_packing packing);

#endif
