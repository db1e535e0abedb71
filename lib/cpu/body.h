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

#define FL_PRECISION 16
#include "../formulas/all.h"
#undef FL_PRECISION
#define FL_PRECISION 32
#include "../formulas/all.h"
#undef FL_PRECISION
#define FL_PRECISION 64
#include "../formulas/all.h"
#undef FL_PRECISION

#define FL_BLOCK 1024
/* From so many elements on most of them do not come from a cache. */
#define FL_FAR (1 << 18)

/*
 * The inner loops: FL_LOOP_<inputs>_<outputs>. An output may be the very memory of an input, element for element, which is what
 * "simd" promises the compiler (no iteration reads what another wrote); "restrict" would promise too much.
 */
#define FL_LOOP(...)                                                                                                             \
    _Pragma("omp simd")                                                                                                          \
    for (int i = 0; i < count; i++)                                                                                              \
    __VA_ARGS__
/* The same, with a note of how far the numbers in[argument] reach: see is_near_32. */
#define FL_NOTING_LOOP_32(...)                                                                                                   \
    _Pragma("omp simd reduction(max : reach)")                                                                                   \
    for (int i = 0; i < count; i++) {                                                                                            \
        note_32(in[argument][i], &reach);                                                                                        \
        __VA_ARGS__                                                                                                              \
    }
#define FL_NOTING_LOOP_64(...)                                                                                                   \
    _Pragma("omp simd reduction(| : reach)")                                                                                     \
    for (int i = 0; i < count; i++) {                                                                                            \
        note_64(in[argument][i], bound, &reach);                                                                                 \
        __VA_ARGS__                                                                                                              \
    }
#define FL_LOOP_1_1(loop, formula) loop(formula(in[0][i], &out[0][i], p);)
#define FL_LOOP_2_1(loop, formula) loop(formula(in[0][i], in[1][i], &out[0][i], p);)
#define FL_LOOP_3_2(loop, formula) loop(formula(in[0][i], in[1][i], in[2][i], &out[0][i], &out[1][i], p);)
#define FL_LOOP_4_1(loop, formula) loop(formula(in[0][i], in[1][i], in[2][i], in[3][i], &out[0][i], p);)
#define FL_LOOP_5_3(loop, formula)                                                                                               \
    loop(formula(in[0][i], in[1][i], in[2][i], in[3][i], in[4][i], &out[0][i], &out[1][i], &out[2][i], p);)
#define FL_LOOP_5_2(loop, formula) loop(formula(in[0][i], in[1][i], in[2][i], in[3][i], in[4][i], &out[0][i], &out[1][i], p);)
/* The plain form, without the biases. */
#define FL_PLAIN_4_1(loop, formula) loop(formula(in[0][i], in[1][i], &out[0][i], p);)
#define FL_PLAIN_5_2(loop, formula) loop(formula(in[0][i], in[1][i], in[2][i], &out[0][i], &out[1][i], p);)

typedef void block_16(const float *const *in, float *const *out, int count, const void *parameters);
typedef void block_32(const float *const *in, float *const *out, int count, const void *parameters);
typedef void block_64(const double *const *in, double *const *out, int count, const void *parameters);

/*
 * How far numbers reach from 0, kept so that compilers make vectors of it: in float the largest |x|, as bits shifted left; in double the sign
 * of what is left up to a bound, since few instruction sets have maxima of 64-bit integers. nan is farther than any number, if only as bits.
 */
typedef unsigned reach_32;
typedef long long reach_64;

static inline void note_32(float x, reach_32 *reach)
{
    unsigned twice = fl_bits_32(x) << 1;
    *reach = *reach < twice ? twice : *reach;
}

static inline int is_near_32(reach_32 reach, float bound)
{
    return reach <= fl_bits_32(bound) << 1;
}

static inline void note_64(double x, double bound, reach_64 *reach)
{
    *reach |= (long long)fl_bits_64(bound) - ((long long)fl_bits_64(x) & 0x7fffffffffffffffll);
}

static inline int is_near_64(reach_64 reach, double bound)
{
    (void)bound;
    return reach >= 0;
}

#define FL_BLOCK_CHECKS(precision, real)                                                                                         \
    static int all_near_##precision(const real *const *in, int argument, int count, real bound)                                  \
    {                                                                                                                            \
        reach_##precision reach = 0;                                                                                             \
        FL_NOTING_LOOP_##precision() return is_near_##precision(reach, bound);                                                   \
    }                                                                                                                            \
    static int is_over_input_##precision(const real *const *in, int inputs, real *const *out, int outputs)                       \
    {                                                                                                                            \
        int found = 0;                                                                                                           \
        for (int i = 0; i < inputs; i++)                                                                                         \
            for (int k = 0; k < outputs; k++)                                                                                    \
                found |= in[i] == out[k];                                                                                        \
        return found;                                                                                                            \
    }
FL_BLOCK_CHECKS(32, float)
FL_BLOCK_CHECKS(64, double)

/*
 * An operator's loop over a block. Most blocks hold nothing but numbers that an activation need not clamp: for those the loop is there
 * without. Whether a block was one of them shows when it is done; if not it is done again, and so it must be known before where results go
 * over inputs. x: which input the activation's argument is.
 *
 * The other loops are asked "_clamps", which is true of all parameters that get here (see formulas/unary.h): so the compiler knows, and
 * does not make them of two kinds.
 */
#define FL_BLOCK_FUNCTION(name, real, precision, family, inputs, outputs, loop, x)                                               \
    static void name##_block_##precision(const real *const *in, real *const *out, int count, const void *parameters)             \
    {                                                                                                                            \
        const struct family##_parameters_##precision local = *(const struct family##_parameters_##precision *)parameters;        \
        enum { argument = x };                                                                                                   \
        real bound = family##_near_##precision(&local);                                                                          \
        if (bound > 0 &&                                                                                                         \
            (!is_over_input_##precision(in, inputs, out, outputs) || all_near_##precision(in, argument, count, bound))) {        \
            const struct family##_parameters_##precision unclamped = family##_unclamped_##precision(&local), *p = &unclamped;    \
            reach_##precision reach = 0;                                                                                         \
            {                                                                                                                    \
                loop(FL_NOTING_LOOP_##precision, name##_##precision)                                                             \
            }                                                                                                                    \
            if (is_near_##precision(reach, bound))                                                                               \
                return;                                                                                                          \
        }                                                                                                                        \
        if (family##_clamps_##precision(&local)) {                                                                               \
            const struct family##_parameters_##precision *p = &local;                                                            \
            loop(FL_LOOP, name##_##precision)                                                                                    \
        }                                                                                                                        \
    }
#define FL_BLOCK_FUNCTIONS(name, family, inputs, outputs, loop, x)                                                               \
    FL_BLOCK_FUNCTION(name, float, 32, family, inputs, outputs, loop, x)                                                         \
    FL_BLOCK_FUNCTION(name, double, 64, family, inputs, outputs, loop, x)
/* Where there is no such input: in the ordinary way alone, since it is rarer. */
#define FL_CLAMPED_FUNCTION(name, real, precision, family, loop)                                                                 \
    static void name##_block_##precision(const real *const *in, real *const *out, int count, const void *parameters)             \
    {                                                                                                                            \
        const struct family##_parameters_##precision local = *(const struct family##_parameters_##precision *)parameters,        \
                                                     *p = &local;                                                                \
        if (family##_clamps_##precision(p))                                                                                      \
            loop(FL_LOOP, name##_##precision)                                                                                    \
    }
#define FL_CLAMPED_FUNCTIONS(name, family, loop)                                                                                 \
    FL_CLAMPED_FUNCTION(name, float, 32, family, loop)                                                                           \
    FL_CLAMPED_FUNCTION(name, double, 64, family, loop)
#define FL_OPERATOR(kernel, family, inputs, outputs, roles)                                                                      \
    FL_BLOCK_FUNCTIONS(kernel, family, inputs, outputs, FL_LOOP_##inputs##_##outputs, (inputs) - 1)
#define FL_PAIRED_OPERATOR(kernel, family, inputs, outputs, roles)                                                               \
    FL_CLAMPED_FUNCTIONS(kernel, family, FL_LOOP_##inputs##_##outputs)
#define FL_GATED_OPERATOR(kernel, family, inputs, outputs, roles)                                                                \
    FL_CLAMPED_FUNCTIONS(kernel, family, FL_LOOP_##inputs##_##outputs)                                                           \
    FL_BLOCK_FUNCTIONS(kernel##_plain, family, (inputs) - 2, outputs, FL_PLAIN_##inputs##_##outputs, (inputs) - 4)
#include "../operators.def"

/* By operator; and, where there is one, its plain form. */
static block_32 *const blocks_32[FL_OPERATORS][2] = {
#define FL_OPERATOR(kernel, ...)       [FL_INDEX_##kernel] = {kernel##_block_32, kernel##_block_32},
#define FL_GATED_OPERATOR(kernel, ...) [FL_INDEX_##kernel] = {kernel##_block_32, kernel##_plain_block_32},
#include "../operators.def"
};
static block_64 *const blocks_64[FL_OPERATORS][2] = {
#define FL_OPERATOR(kernel, ...)       [FL_INDEX_##kernel] = {kernel##_block_64, kernel##_block_64},
#define FL_GATED_OPERATOR(kernel, ...) [FL_INDEX_##kernel] = {kernel##_block_64, kernel##_plain_block_64},
#include "../operators.def"
};

#include "short.h"

/* Brings `count` elements of a span's operand into an array of the computing type. */
static void load_32(enum fl_dtype dtype, const char *from, int step, float *to, int count)
{
    if (step > 1)
        fl_load_apart_32(dtype, from, step, to, count);
    else if (dtype == FL_FLOAT16)
        fl_float16_to_float(from, to, count);
    else if (dtype == FL_BFLOAT16)
        fl_bfloat16_to_float(from, to, count);
    else
        memcpy(to, from, (size_t)count * sizeof *to);
}

static void store_32(enum fl_dtype dtype, const float *from, char *to, int step, int count)
{
    if (step > 1)
        fl_store_apart_32(dtype, from, to, step, count);
    else if (dtype == FL_FLOAT16)
        fl_float_to_float16(from, to, count);
    else if (dtype == FL_BFLOAT16)
        fl_float_to_bfloat16(from, to, count);
    else
        memcpy(to, from, (size_t)count * sizeof *from);
}

static void load_64(enum fl_dtype dtype, const char *from, int step, double *to, int count)
{
    (void)dtype;
    for (int i = 0; i < count; i++)
        memcpy(&to[i], from + (int64_t)i * step * 8, sizeof *to);
}

static void store_64(enum fl_dtype dtype, const double *from, char *to, int step, int count)
{
    (void)dtype;
    for (int i = 0; i < count; i++)
        memcpy(to + (int64_t)i * step * 8, &from[i], sizeof *from);
}

/* What is converted a block or a row at a time is read too short a way at a time for the processor to see it coming. */
static void prefetch(const char *from, int bytes)
{
    for (int at = 0; at < bytes; at += 64)
        __builtin_prefetch(from + at);
}

static int in_place_32(enum fl_dtype dtype, const char *data, int step)
{
    return step == 1 && dtype == FL_FLOAT32 && (uintptr_t)data % sizeof(float) == 0;
}

static int in_place_64(enum fl_dtype dtype, const char *data, int step)
{
    (void)dtype;
    return step == 1 && (uintptr_t)data % sizeof(double) == 0;
}

/* Runs a span block by block. Operands that are aligned arrays of the computing type are used where they lie. */
#define FL_RUN(precision, real)                                                                                                  \
    static void run_##precision(const struct fl_operator *op, struct fl_types types, const struct fl_span *span,                 \
                                const void *parameters)                                                                          \
    {                                                                                                                            \
        _Alignas(64) real buffers[FL_OPERANDS_MOST][FL_BLOCK];                                                                   \
        real *arrays[FL_OPERANDS_MOST];                                                                                          \
        int operands = op->inputs + op->outputs;                                                                                 \
                                                                                                                                 \
        for (int k = 0; k < op->inputs; k++)                                                                                     \
            if (span->steps[k] == 0 && !(span->plain && span->data[k] == NULL)) {                                                \
                buffers[k][0] = -(real)0; /* an absent one is added to others, and leaves even -0 as it is */                    \
                if (span->data[k] != NULL)                                                                                       \
                    load_##precision(fl_operand_type(op, types, k), span->data[k], 1, buffers[k], 1);                            \
                for (int i = 1; i < FL_BLOCK && i < span->count; i++)                                                            \
                    buffers[k][i] = buffers[k][0];                                                                               \
            }                                                                                                                    \
        for (int64_t done = 0; done < span->count; done += FL_BLOCK) {                                                           \
            int count = span->count - done < FL_BLOCK ? (int)(span->count - done) : FL_BLOCK;                                    \
            for (int k = 0; k < operands; k++) {                                                                                 \
                enum fl_dtype dtype = fl_operand_type(op, types, k);                                                             \
                int step = span->steps[k];                                                                                       \
                arrays[k] = buffers[k];                                                                                          \
                if (step == 0)                                                                                                   \
                    continue;                                                                                                    \
                char *data = span->data[k] + done * step * fl_dtype_size[dtype];                                                 \
                if (in_place_##precision(dtype, data, step))                                                                     \
                    arrays[k] = (real *)(void *)data;                                                                            \
                else if (k < op->inputs) {                                                                                       \
                    if (span->count >= FL_FAR && done + 2 * FL_BLOCK <= span->count)                                             \
                        prefetch(data + FL_BLOCK * step * fl_dtype_size[dtype], FL_BLOCK * step * fl_dtype_size[dtype]);         \
                    load_##precision(dtype, data, step, buffers[k], count);                                                      \
                }                                                                                                                \
            }                                                                                                                    \
            FL_COMPUTE_##precision((const real *const *)arrays, arrays + op->inputs, count, parameters);                         \
            for (int k = op->inputs; k < operands; k++)                                                                          \
                if (arrays[k] == buffers[k]) {                                                                                   \
                    enum fl_dtype dtype = fl_operand_type(op, types, k);                                                         \
                    store_##precision(dtype, buffers[k], span->data[k] + done * span->steps[k] * fl_dtype_size[dtype],           \
                                      span->steps[k], count);                                                                    \
                }                                                                                                                \
        }                                                                                                                        \
    }

#define in_place_16(...)                          0
#define load_16                                   load_32
#define store_16                                  store_32
#define FL_COMPUTE_16(in, out, count, parameters) short_functions[op->index][span->plain].block(in, out, count, parameters)
#define FL_COMPUTE_32(in, out, count, parameters) blocks_32[op->index][span->plain](in, out, count, parameters)
#define FL_COMPUTE_64(in, out, count, parameters) blocks_64[op->index][span->plain](in, out, count, parameters)
FL_RUN(16, float)
FL_RUN(32, float)
FL_RUN(64, double)

static void run_short(const struct fl_operator *op, struct fl_types types, const struct fl_span *span, const void *parameters)
{
    int64_t done = run_pieces(op, types, span, parameters);
    struct fl_span left = *span;
    if (done == span->count)
        return;
    left.count -= done;
    for (int k = 0; k < op->inputs + op->outputs; k++)
        if (left.data[k] != NULL)
            left.data[k] += done * left.steps[k] * 2;
    run_16(op, types, &left, parameters);
}

static void run(const struct fl_operator *op, struct fl_types types, const struct fl_span *span, const void *parameters)
{
    if (types.operand == FL_FLOAT64)
        run_64(op, types, span, parameters);
    else if (types.operand != FL_FLOAT32 && types.result != FL_FLOAT32)
        run_short(op, types, span, parameters);
    else
        run_32(op, types, span, parameters);
}

/* Rows that are added to the sums together, so that these are read and written less often. */
#define FL_ROWS 8

/* To sums in double, FL_ROWS rows of narrower elements. */
static void add_eight_32(const float *const *row, struct fl_sums *sums, int first, int count)
{
    double *sum = sums->sum + first;
    FL_LOOP({
        double a = ((double)row[0][i] + (double)row[1][i]) + ((double)row[2][i] + (double)row[3][i]);
        double b = ((double)row[4][i] + (double)row[5][i]) + ((double)row[6][i] + (double)row[7][i]);
        sum[i] += a + b;
    })
}

static void add_one_32(const float *row, struct fl_sums *sums, int first, int count)
{
    double *sum = sums->sum + first;
    FL_LOOP(sum[i] += (double)row[i];)
}

/* Double has no wider type to be summed in: what each addition loses is kept. */
static void add_eight_64(const double *const *row, struct fl_sums *sums, int first, int count)
{
    double *kept_sum = sums->sum + first, *kept_lost = sums->lost + first;
#define FL_ADD(k) sum = fl_two_sum_64(sum, row[k][i], &error), lost += error
    FL_LOOP({
        double sum = kept_sum[i], lost = kept_lost[i], error;
        FL_ADD(0), FL_ADD(1), FL_ADD(2), FL_ADD(3), FL_ADD(4), FL_ADD(5), FL_ADD(6), FL_ADD(7);
        kept_sum[i] = sum;
        kept_lost[i] = lost;
    })
#undef FL_ADD
}

static void add_one_64(const double *row, struct fl_sums *sums, int first, int count)
{
    double *sum = sums->sum + first, *lost = sums->lost + first;
    FL_LOOP({
        double error;
        sum[i] = fl_two_sum_64(sum[i], row[i], &error);
        lost[i] += error;
    })
}

#define FL_ADD_ROWS(precision, real)                                                                                             \
    static void add_rows_##precision(enum fl_dtype dtype, const char *data, int64_t row_stride, int64_t rows, int columns,       \
                                     struct fl_sums *sums)                                                                       \
    {                                                                                                                            \
        _Alignas(64) real buffers[FL_ROWS][FL_BLOCK];                                                                            \
        const real *row[FL_ROWS];                                                                                                \
        int size = fl_dtype_size[dtype];                                                                                         \
                                                                                                                                 \
        for (; rows > 0; rows -= FL_ROWS, data += FL_ROWS * row_stride * size) {                                                 \
            int together = rows < FL_ROWS ? (int)rows : FL_ROWS;                                                                 \
            for (int first = 0; first < columns; first += FL_BLOCK) {                                                            \
                int count = columns - first < FL_BLOCK ? columns - first : FL_BLOCK;                                             \
                for (int k = 0; k < together; k++) {                                                                             \
                    const char *from = data + (k * row_stride + first) * size;                                                   \
                    row[k] = in_place_##precision(dtype, from, 1) ? (const real *)(const void *)from : buffers[k];               \
                    if (row[k] == buffers[k]) {                                                                                  \
                        prefetch(first + FL_BLOCK < columns ? from + FL_BLOCK * size : data + (k + FL_ROWS) * row_stride * size, \
                                 count * size);                                                                                  \
                        load_##precision(dtype, from, 1, buffers[k], count);                                                     \
                    }                                                                                                            \
                }                                                                                                                \
                if (together == FL_ROWS)                                                                                         \
                    add_eight_##precision(row, sums, first, count);                                                              \
                else                                                                                                             \
                    for (int k = 0; k < together; k++)                                                                           \
                        add_one_##precision(row[k], sums, first, count);                                                         \
            }                                                                                                                    \
        }                                                                                                                        \
    }

FL_ADD_ROWS(32, float)
FL_ADD_ROWS(64, double)

static void add_rows(enum fl_dtype dtype, const char *data, int64_t row_stride, int64_t rows, int columns, struct fl_sums *sums)
{
    (dtype == FL_FLOAT64 ? add_rows_64 : add_rows_32)(dtype, data, row_stride, rows, columns, sums);
}

static void store_sums(enum fl_dtype dtype, const struct fl_sums *sums, char *to, int columns)
{
    double whole[FL_STRIP];
    float narrow[FL_STRIP];

    for (int i = 0; i < columns; i++) /* an infinite sum has lost nothing that counts, and nan is what it has kept of it */
        whole[i] = sums->lost[i] - sums->lost[i] == 0 ? sums->sum[i] + sums->lost[i] : sums->sum[i];
    if (dtype == FL_FLOAT64) {
        store_64(dtype, whole, to, 1, columns);
        return;
    }
    for (int i = 0; i < columns; i++)
        narrow[i] = dtype == FL_FLOAT32 ? (float)whole[i] : fl_double_to_odd_float(whole[i]);
    store_32(dtype, narrow, to, 1, columns);
}

#define FL_PASTE_(a, b) a##b
#define FL_PASTE(a, b)  FL_PASTE_(a, b)
#define FL_TEXT_(a)     #a
#define FL_TEXT(a)      FL_TEXT_(a)

const struct fl_cpu_variant FL_PASTE(fl_cpu_, FL_VARIANT) = {FL_TEXT(FL_VARIANT), run, add_rows, store_sums};
