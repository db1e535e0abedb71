/*
 * The CPU implementation of every operator, for one instruction set. A variant's file defines FL_VARIANT and includes this; the
 * compiler's flags and convert.h do the rest.
 *
 * A span is worked through in blocks that stay in the first-level cache. An operator supplies only its inner loop, on arrays of
 * float or double; 16-bit operands, unaligned ones and repeated values are brought into that form around it.
 */
#include <string.h>

#include "../formulas/host.h"
#include "convert.h"
#include "variant.h"

#define FL_PRECISION 32
#include "../formulas/all.h"
#undef FL_PRECISION
#define FL_PRECISION 64
#include "../formulas/all.h"
#undef FL_PRECISION

#define FL_BLOCK 512

/*
 * The inner loops: FL_LOOP_<inputs>_<outputs>. An output may be the very memory of an input, element for element, which is what
 * "simd" promises the compiler (no iteration reads what another wrote); "restrict" would promise too much.
 */
#define FL_LOOP_1_1(formula)                                                                                                     \
    _Pragma("omp simd")                                                                                                          \
    for (int i = 0; i < count; i++)                                                                                              \
        formula(in[0][i], &out[0][i], p);
#define FL_LOOP_2_1(formula)                                                                                                     \
    _Pragma("omp simd")                                                                                                          \
    for (int i = 0; i < count; i++)                                                                                              \
        formula(in[0][i], in[1][i], &out[0][i], p);

typedef void block_32(const float *const *in, float *const *out, int count, const void *parameters);
typedef void block_64(const double *const *in, double *const *out, int count, const void *parameters);

#define FL_OPERATOR(kernel, family, inputs, outputs, ...)                                                                        \
    static void kernel##_block_32(const float *const *in, float *const *out, int count, const void *parameters)                  \
    {                                                                                                                            \
        const struct family##_parameters_32 local = *(const struct family##_parameters_32 *)parameters, *p = &local;             \
        FL_LOOP_##inputs##_##outputs(kernel##_32)                                                                                \
    }                                                                                                                            \
    static void kernel##_block_64(const double *const *in, double *const *out, int count, const void *parameters)                \
    {                                                                                                                            \
        const struct family##_parameters_64 local = *(const struct family##_parameters_64 *)parameters, *p = &local;             \
        FL_LOOP_##inputs##_##outputs(kernel##_64)                                                                                \
    }
#include "../operators.def"
#undef FL_OPERATOR

static block_32 *const blocks_32[FL_OPERATORS] = {
#define FL_OPERATOR(kernel, ...) kernel##_block_32,
#include "../operators.def"
#undef FL_OPERATOR
};
static block_64 *const blocks_64[FL_OPERATORS] = {
#define FL_OPERATOR(kernel, ...) kernel##_block_64,
#include "../operators.def"
#undef FL_OPERATOR
};

static void load_32(enum fl_dtype dtype, const char *from, float *to, int count)
{
    if (dtype == FL_FLOAT16)
        fl_float16_to_float(from, to, count);
    else if (dtype == FL_BFLOAT16)
        fl_bfloat16_to_float(from, to, count);
    else
        memcpy(to, from, (size_t)count * sizeof *to);
}

static void store_32(enum fl_dtype dtype, const float *from, char *to, int count)
{
    if (dtype == FL_FLOAT16)
        fl_float_to_float16(from, to, count);
    else if (dtype == FL_BFLOAT16)
        fl_float_to_bfloat16(from, to, count);
    else
        memcpy(to, from, (size_t)count * sizeof *from);
}

static void load_64(enum fl_dtype dtype, const char *from, double *to, int count)
{
    (void)dtype;
    memcpy(to, from, (size_t)count * sizeof *to);
}

static void store_64(enum fl_dtype dtype, const double *from, char *to, int count)
{
    (void)dtype;
    memcpy(to, from, (size_t)count * sizeof *from);
}

/* Runs a span block by block. Operands that are aligned arrays of the computing type are used where they lie. */
#define FL_RUN(precision, real)                                                                                                  \
    static void run_##precision(const struct fl_operator *op, enum fl_dtype dtype, const struct fl_span *span,                   \
                                const void *parameters)                                                                          \
    {                                                                                                                            \
        _Alignas(64) real input_buffers[FL_INPUTS_MOST][FL_BLOCK], output_buffers[FL_OUTPUTS_MOST][FL_BLOCK];                    \
        const real *in[FL_INPUTS_MOST];                                                                                          \
        real *out[FL_OUTPUTS_MOST];                                                                                              \
        int size = fl_dtype_size[dtype], is_native = size == sizeof(real);                                                       \
                                                                                                                                 \
        for (int k = 0; k < op->inputs; k++)                                                                                     \
            if (span->steps[k] == 0) {                                                                                           \
                load_##precision(dtype, span->inputs[k], input_buffers[k], 1);                                                   \
                for (int i = 1; i < FL_BLOCK && i < span->count; i++)                                                            \
                    input_buffers[k][i] = input_buffers[k][0];                                                                   \
            }                                                                                                                    \
        for (int64_t done = 0; done < span->count; done += FL_BLOCK) {                                                           \
            int count = span->count - done < FL_BLOCK ? (int)(span->count - done) : FL_BLOCK;                                    \
            for (int k = 0; k < op->inputs; k++) {                                                                               \
                const char *from = span->inputs[k] + done * size;                                                                \
                in[k] = input_buffers[k];                                                                                        \
                if (span->steps[k] == 0)                                                                                         \
                    continue;                                                                                                    \
                if (is_native && (uintptr_t)from % sizeof(real) == 0)                                                            \
                    in[k] = (const real *)(const void *)from;                                                                    \
                else                                                                                                             \
                    load_##precision(dtype, from, input_buffers[k], count);                                                      \
            }                                                                                                                    \
            for (int k = 0; k < op->outputs; k++) {                                                                              \
                char *to = span->outputs[k] + done * size;                                                                       \
                out[k] = is_native && (uintptr_t)to % sizeof(real) == 0 ? (real *)(void *)to : output_buffers[k];                \
            }                                                                                                                    \
            blocks_##precision[op->index](in, out, count, parameters);                                                           \
            for (int k = 0; k < op->outputs; k++)                                                                                \
                if (out[k] == output_buffers[k])                                                                                 \
                    store_##precision(dtype, out[k], span->outputs[k] + done * size, count);                                     \
        }                                                                                                                        \
    }

FL_RUN(32, float)
FL_RUN(64, double)

static void run(const struct fl_operator *op, enum fl_dtype dtype, const struct fl_span *span, const void *parameters)
{
    if (dtype == FL_FLOAT64)
        run_64(op, dtype, span, parameters);
    else
        run_32(op, dtype, span, parameters);
}

#define FL_PASTE_(a, b) a##b
#define FL_PASTE(a, b)  FL_PASTE_(a, b)
#define FL_TEXT_(a)     #a
#define FL_TEXT(a)      FL_TEXT_(a)

const struct fl_cpu_variant FL_PASTE(fl_cpu_, FL_VARIANT) = {FL_TEXT(FL_VARIANT), run};
