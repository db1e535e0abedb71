/*
 * The kernels of every elementwise operator: all operands have one shape, and each output element depends on the input elements
 * at its place.
 *
 * A source file of kernels defines nothing but
 *
 *     #include "elementwise.h"
 *     #include "../lib/formulas/<family>.h"
 *     FL_ELEMENTWISE(<kernel>, <family>, <inputs>, <outputs>, <roles>)      once for each row of lib/operators.def
 *
 * and is compiled once per pair of dtypes, with FL_OPERAND and FL_RESULT defined as their names. Each kernel comes in several
 * access modes, named fl_<kernel>_<dtypes>_<mode>; lib/gpu/geometry.c chooses:
 *
 *     vector    one row; every operand contiguous and aligned to 16 bytes, or (a gradient of the result) one repeated value; of a
 *               gated unit, plain; no more vectors than threads in a grid. lib/gpu/tuning.def has how many go together
 *     rows      rows whose length and strides are multiples of 16 bytes, all aligned to them; inputs may repeat a value or a row
 *     pairs     as rows, with gate and up interleaved (kernels of gated units only)
 *     ..._full  of a gated unit with clamp, offset or biases; those above are for the plain form
 *     element   anything else: one element at a time
 *
 * Every mode but the first strides over what exceeds the grid, so any count works with any grid.
 */
#ifndef FL_ELEMENTWISE_H
#define FL_ELEMENTWISE_H

#define FL_PASTE_NUMBER(dtype) FL_NUMBER_##dtype
#define FL_NUMBER(dtype)       FL_PASTE_NUMBER(dtype)
#define FL_NUMBER_float16      1
#define FL_NUMBER_bfloat16     2
#define FL_NUMBER_float32      3
#define FL_NUMBER_float64      4

/* "bfloat16", or "bfloat16_float32" where the result's dtype is another than the operands'. */
#define FL_PASTE_NAME(kernel, dtypes, mode)  fl_##kernel##_##dtypes##_##mode
#define FL_KERNEL_NAME(kernel, dtypes, mode) FL_PASTE_NAME(kernel, dtypes, mode)

/* The precision to compute in: that of the wider type. */
#if FL_NUMBER(FL_RESULT) == FL_NUMBER_float64
#define FL_PRECISION 64
#elif FL_NUMBER(FL_OPERAND) == FL_NUMBER_float32 || FL_NUMBER(FL_RESULT) == FL_NUMBER_float32
#define FL_PRECISION 32
#else
#define FL_PRECISION 16
#endif

#if FL_PRECISION == 16 && defined(__clang__)
#pragma clang fp contract(fast)
#endif

#include "device.h"

#include "../lib/arguments.h"
#include "../lib/formulas/exp2.h"

/* The types in memory, and the way between them and fl_real. */
enum fl_float16 : unsigned short {};
enum fl_bfloat16 : unsigned short {};
typedef float fl_float32;
typedef double fl_float64;
FL_INLINE constexpr bool fl_is_float16(fl_float16)
{
    return true;
}
FL_INLINE constexpr bool fl_is_float16(fl_bfloat16)
{
    return false;
}

FL_INLINE fl_real fl_from_memory(fl_float16 x)
{
    return (fl_real)fl_float16_to_float(x);
}
FL_INLINE fl_real fl_from_memory(fl_bfloat16 x)
{
    return (fl_real)fl_bfloat16_to_float(x);
}
FL_INLINE fl_real fl_from_memory(fl_real x)
{
    return x;
}
FL_INLINE void fl_to_memory(fl_real x, fl_float16 &to)
{
    to = (fl_float16)fl_float_to_float16((float)x);
}
FL_INLINE void fl_to_memory(fl_real x, fl_bfloat16 &to)
{
    to = (fl_bfloat16)fl_float_to_bfloat16((float)x);
}
FL_INLINE void fl_to_memory(fl_real x, fl_real &to)
{
    to = x;
}

#define FL_PASTE_TYPE(dtype) fl_##dtype
#define FL_TYPE(dtype)       FL_PASTE_TYPE(dtype)
typedef FL_TYPE(FL_OPERAND) fl_operand;
typedef FL_TYPE(FL_RESULT) fl_result;

/* Whether the operands are all of one dtype. */
#define FL_IS_ONE_DTYPE (FL_NUMBER(FL_OPERAND) == FL_NUMBER(FL_RESULT))

/* Elements that a thread works on at once: as many of the narrower type as a vector access holds. */
#define FL_LENGTH ((int)(FL_VECTOR_BYTES / (sizeof(fl_operand) < sizeof(fl_result) ? sizeof(fl_operand) : sizeof(fl_result))))

/*
 * Elements of a type in 32-bit words, as many as fill whole ones, and their values. The 16-bit types are taken two at a time, since
 * extracting and converting them one after the other would cost more instructions than many a formula.
 */
template <class T, int size = sizeof(T)> struct fl_cell {
    enum { words = sizeof(T) / sizeof(unsigned), elements = 1 };

    FL_INLINE void read(const unsigned *word, fl_real *x)
    {
        T element;
        __builtin_memcpy(&element, word, sizeof element);
        *x = fl_from_memory(element);
    }
    FL_INLINE void write(const fl_real *x, unsigned *word)
    {
        T element;
        fl_to_memory(*x, element);
        __builtin_memcpy(word, &element, sizeof element);
    }
};
template <class T> struct fl_cell<T, 2> {
    enum { words = 1, elements = 2 };

    FL_INLINE void read(const unsigned *word, fl_real *x)
    {
        float low, high;
        if constexpr (fl_is_float16(T()))
            fl_float16_pair_to_floats(*word, &low, &high);
        else
            fl_bfloat16_pair_to_floats(*word, &low, &high);
        x[0] = (fl_real)low;
        x[1] = (fl_real)high;
    }
    FL_INLINE void write(const fl_real *x, unsigned *word)
    {
        if constexpr (fl_is_float16(T()))
            *word = fl_floats_to_float16_pair((float)x[0], (float)x[1]);
        else
            *word = fl_floats_to_bfloat16_pair((float)x[0], (float)x[1]);
    }
};

/* The values of one operand at the elements that a thread works on. */
template <int length> struct fl_values {
    fl_real at[length];
};

/* Where a step is: the elements `column` ... of `row`. */
struct fl_place {
    long long row, column;
};

/* One element as it lies in memory, in one or two words. */
template <class T> FL_INLINE void fl_keep_element(T element, unsigned *word)
{
    word[0] = 0;
    __builtin_memcpy(word, &element, sizeof element);
}

/*
 * Fetches an operand, or the interleaved pair (parts 2) that begins with it, without looking at it, so that the next fetch need not
 * wait for this one. Where it may (`repeats`) one value is repeated; an absent operand reads as -0, which adds nothing.
 */
template <class T, int length, int parts, bool repeats, bool streams>
FL_INLINE void fl_fetch(const fl_arguments &arguments, int operand, fl_place place, unsigned *word)
{
    enum { bytes = length * parts * sizeof(T) };
    const T *from = (const T *)arguments.data[operand];
    if constexpr (length == 1) {
        static_assert(parts == 1, "pairs come in vectors");
        fl_real absent = (fl_real)-0.0;
        T element;
        if (from == nullptr)
            fl_to_memory(absent, element);
        else
            element = fl_load(from + place.row * arguments.row_stride[operand] + place.column * arguments.column_stride[operand]);
        fl_keep_element(element, word);
    } else if (repeats && (from == nullptr || arguments.column_stride[operand] == 0)) {
        T value[parts];
#pragma GCC unroll 2
        for (int part = 0; part < parts; part++) {
            const T *at = (const T *)arguments.data[operand + part];
            fl_real absent = (fl_real)-0.0;
            if (at == nullptr)
                fl_to_memory(absent, value[part]);
            else
                value[part] = fl_load(at + place.row * arguments.row_stride[operand]);
        }
        typedef fl_cell<T> cell;
#pragma GCC unroll 16
        for (int i = 0; i < length * parts / cell::elements; i++) {
            T some[cell::elements];
#pragma GCC unroll 2
            for (int k = 0; k < cell::elements; k++)
                some[k] = value[(i * cell::elements + k) % parts];
            __builtin_memcpy(word + i * cell::words, some, sizeof some);
        }
    } else {
        constexpr bool is_streaming = streams && bytes == FL_VECTOR_BYTES; /* of several accesses each needs the others' lines */
        const T *first = from + place.row * arguments.row_stride[operand] + place.column * parts;
#pragma GCC unroll 8
        for (int v = 0; v < bytes / FL_VECTOR_BYTES; v++) {
            fl_vector vector = fl_load_vector<is_streaming>((const char *)first + v * FL_VECTOR_BYTES);
            __builtin_memcpy((char *)word + v * FL_VECTOR_BYTES, &vector, sizeof vector);
        }
    }
}

/* The values of what was fetched. */
template <class T, int length, int parts> FL_INLINE void fl_unpack(const unsigned *word, fl_values<length> *values)
{
    if constexpr (length == 1) {
        T element;
        __builtin_memcpy(&element, word, sizeof element);
        values->at[0] = fl_from_memory(element);
    } else {
        typedef fl_cell<T> cell;
        fl_real all[length * parts];
#pragma GCC unroll 16
        for (int i = 0; i < length * parts / cell::elements; i++)
            cell::read(word + i * cell::words, all + i * cell::elements);
#pragma GCC unroll 16
        for (int i = 0; i < length; i++)
#pragma GCC unroll 2
            for (int part = 0; part < parts; part++)
                values[part].at[i] = all[i * parts + part];
    }
}

template <class T, int length, int parts>
FL_INLINE void fl_write(const fl_arguments &arguments, int operand, fl_place place, const fl_values<length> *values)
{
    T *to = (T *)arguments.data[operand] + place.row * arguments.row_stride[operand];
    if constexpr (length == 1) {
        T element;
        fl_to_memory(values->at[0], element);
        fl_store(to + place.column * arguments.column_stride[operand], element);
    } else {
        typedef fl_cell<T> cell;
        enum { bytes = length * parts * sizeof(T) };
        fl_real all[length * parts];
        unsigned word[bytes / sizeof(unsigned)];
#pragma GCC unroll 16
        for (int i = 0; i < length; i++)
#pragma GCC unroll 2
            for (int part = 0; part < parts; part++)
                all[i * parts + part] = values[part].at[i];
#pragma GCC unroll 16
        for (int i = 0; i < length * parts / cell::elements; i++)
            cell::write(all + i * cell::elements, word + i * cell::words);
#pragma GCC unroll 8
        for (int v = 0; v < bytes / FL_VECTOR_BYTES; v++) {
            fl_vector vector;
            __builtin_memcpy(&vector, (const char *)word + v * FL_VECTOR_BYTES, sizeof vector);
            fl_store_vector((char *)(to + place.column * parts) + v * FL_VECTOR_BYTES, vector);
        }
    }
}

/* True for the first of a pair, and for its second. */
FL_INLINE constexpr bool fl_begins_pair(char role)
{
    return role == 'g' || role == 'b';
}
FL_INLINE constexpr bool fl_ends_pair(char role)
{
    return role == 'u' || role == 'c';
}

/*
 * One step of a thread: fetches all inputs at a place; then computes, and writes all outputs. All reads come before the first write,
 * since an output may be the memory of an input. Whether an input repeats a value is the same in every thread.
 */
template <class Operator, int length, int parts, bool plain, bool repeats> struct fl_element_step {
    enum {
        operand_words = length * parts * (int)sizeof(fl_operand) / (int)sizeof(unsigned),
        result_words = length * (int)sizeof(fl_result) / (int)sizeof(unsigned),
        words = length == 1                    ? 2
                : operand_words > result_words ? operand_words
                                               : result_words
    };
    unsigned word[Operator::inputs][words];

    FL_METHOD void fetch(const fl_arguments &arguments, fl_place place)
    {
        constexpr bool streams = !repeats && fl_loads_stream(); /* what is repeated is used again */
#pragma GCC unroll 8
        for (int k = 0; k < Operator::inputs; k++) {
            char role = Operator::role(k);
            if (plain && (role == 'b' || role == 'c'))
                continue;
            if (role == 'y')
                fl_fetch<fl_result, length, 1, true, streams>(arguments, k, place, word[k]);
            else if (parts == 2 && fl_begins_pair(role))
                fl_fetch<fl_operand, length, parts, repeats, streams>(arguments, k, place, word[k]);
            else if (parts == 1 || !fl_ends_pair(role))
                fl_fetch<fl_operand, length, 1, repeats, streams>(arguments, k, place, word[k]);
        }
    }

    FL_METHOD void finish(const fl_arguments &arguments, const typename Operator::parameters &parameters, fl_place place) const
    {
        fl_values<length> values[Operator::inputs + Operator::outputs];
#pragma GCC unroll 8
        for (int k = 0; k < Operator::inputs; k++) {
            char role = Operator::role(k);
            if (plain && (role == 'b' || role == 'c'))
                continue;
            if (role == 'y')
                fl_unpack<fl_result, length, 1>(word[k], &values[k]);
            else if (parts == 2 && fl_begins_pair(role))
                fl_unpack<fl_operand, length, parts>(word[k], &values[k]);
            else if (parts == 1 || !fl_ends_pair(role))
                fl_unpack<fl_operand, length, 1>(word[k], &values[k]);
        }
#pragma GCC unroll 16
        for (int i = 0; i < length; i++) {
            fl_real x[Operator::inputs], y[Operator::outputs];
#pragma GCC unroll 8
            for (int k = 0; k < Operator::inputs; k++)
                x[k] = plain && (Operator::role(k) == 'b' || Operator::role(k) == 'c') ? 0 : values[k].at[i];
            if constexpr (plain)
                Operator::compute_plain(x, y, &parameters);
            else
                Operator::compute(x, y, &parameters);
#pragma GCC unroll 8
            for (int k = 0; k < Operator::outputs; k++)
                values[Operator::inputs + k].at[i] = y[k];
        }
#pragma GCC unroll 8
        for (int k = Operator::inputs; k < Operator::inputs + Operator::outputs; k++) {
            char role = Operator::role(k);
            if (role == 'y')
                fl_write<fl_result, length, 1>(arguments, k, place, &values[k]);
            else if (parts == 2 && fl_begins_pair(role))
                fl_write<fl_operand, length, parts>(arguments, k, place, &values[k]);
            else if (parts == 1 || !fl_ends_pair(role))
                fl_write<fl_operand, length, 1>(arguments, k, place, &values[k]);
        }
    }

    FL_INLINE void take(const fl_arguments &arguments, const typename Operator::parameters &parameters, fl_place place)
    {
        fl_element_step step;
        step.fetch(arguments, place);
        step.finish(arguments, parameters, place);
    }
};

/* Of one row in vectors the vector of that index; what follows the last one are the elements that fill no vector. */
template <class Operator, bool plain>
FL_INLINE void fl_take_vector(const fl_arguments &arguments, const typename Operator::parameters &parameters, unsigned vectors,
                              unsigned index)
{
    if (index < vectors) {
        fl_element_step<Operator, FL_LENGTH, 1, plain, false>::take(arguments, parameters, {0, (long long)index * FL_LENGTH});
    } else {
        long long tail = (long long)vectors * FL_LENGTH + (index - vectors);
        if (tail < arguments.columns)
            fl_element_step<Operator, 1, 1, plain, false>::take(arguments, parameters, {0, tail});
    }
}

/*
 * One row in vectors, as many a thread as lib/gpu/tuning.def says. Where that is several, blocks that have all of them fetch them before
 * the first is computed; what is left over goes to further blocks, one vector or element a thread. The grid covers them all.
 */
template <class Operator, bool plain>
FL_INLINE void fl_element_vector(const fl_arguments &arguments, const typename Operator::parameters &parameters)
{
    const unsigned together = FL_VECTORS_TOGETHER(fl_tuned(), Operator::inputs + Operator::outputs, FL_IS_ONE_DTYPE);
    unsigned index = fl_block_index() * (FL_BLOCK_THREADS * together) + (unsigned)fl_block_thread();
    unsigned vectors = (unsigned)((unsigned long long)arguments.columns / FL_LENGTH);
    if (together == 1) {
        fl_take_vector<Operator, plain>(arguments, parameters, vectors, index);
        return;
    }
    unsigned full_blocks = vectors / (FL_BLOCK_THREADS * together), further = fl_block_index() - full_blocks;
    if (fl_block_index() < full_blocks) {
        fl_element_step<Operator, FL_LENGTH, 1, plain, false> step[FL_TOGETHER_MOST];
        fl_place place[FL_TOGETHER_MOST];
#pragma GCC unroll 4
        for (unsigned k = 0; k < together; k++) {
            place[k] = {0, (long long)(index + k * FL_BLOCK_THREADS) * FL_LENGTH};
            step[k].fetch(arguments, place[k]);
        }
#pragma GCC unroll 4
        for (unsigned k = 0; k < together; k++)
            step[k].finish(arguments, parameters, place[k]);
    } else if (further <= together) { /* blocks after that have nothing to do, and the index might pass 32 bits */
        index -= further * (FL_BLOCK_THREADS * (together - 1));
        fl_take_vector<Operator, plain>(arguments, parameters, vectors, index);
    }
}

/*
 * Rows in packs of `length`, of which the columns are a multiple. Packs of interleaved pairs go by twos, both of which are fetched before
 * the first is computed: see lib/gpu/tuning.def.
 */
template <class Operator, int length, int parts, bool plain>
FL_INLINE void fl_element_rows(const fl_arguments &arguments, fl_division division,
                               const typename Operator::parameters &parameters)
{
    typedef fl_element_step<Operator, length, parts, plain, true> row_step;
    const int together = parts == 2 && plain ? FL_PAIRS_TOGETHER(fl_tuned(), Operator::inputs + Operator::outputs) : 1;
    long long width = arguments.columns / length, packs = arguments.rows * width;
    auto place_of = [=](long long index) -> fl_place {
        long long row;
        if (division.shift >= 0)
            row = (fl_multiply_high((unsigned)index, division.multiplier) + (unsigned long long)index) >> division.shift;
        else
            row = index / width;
        return {row, (index - row * width) * length};
    };

    long long index = (long long)fl_block_index() * (FL_BLOCK_THREADS * together) + fl_block_thread();
    for (; index < packs; index += (long long)fl_block_count() * (FL_BLOCK_THREADS * together)) {
        if (together == 2 && index + FL_BLOCK_THREADS < packs) {
            fl_place first = place_of(index), second = place_of(index + FL_BLOCK_THREADS);
            row_step of_first, of_second;
            of_first.fetch(arguments, first);
            of_second.fetch(arguments, second);
            of_first.finish(arguments, parameters, first);
            of_second.finish(arguments, parameters, second);
        } else {
            row_step::take(arguments, parameters, place_of(index));
        }
    }
}

/* An operator's formula on arrays of its operands, and its plain form. */
#define FL_COMPUTE_1_1(formula) formula(x[0], &y[0], p)
#define FL_COMPUTE_2_1(formula) formula(x[0], x[1], &y[0], p)
#define FL_COMPUTE_3_2(formula) formula(x[0], x[1], x[2], &y[0], &y[1], p)
#define FL_COMPUTE_4_1(formula) formula(x[0], x[1], x[2], x[3], &y[0], p)
#define FL_COMPUTE_5_2(formula) formula(x[0], x[1], x[2], x[3], x[4], &y[0], &y[1], p)
#define FL_COMPUTE_5_3(formula) formula(x[0], x[1], x[2], x[3], x[4], &y[0], &y[1], &y[2], p)
#define FL_PLAIN_4_1(formula)   formula(x[0], x[1], &y[0], p)
#define FL_PLAIN_5_2(formula)   formula(x[0], x[1], x[2], &y[0], &y[1], p)

#define FL_ELEMENTWISE_MODE(kernel, mode, ...)                                                                                   \
    FL_KERNEL void FL_KERNEL_NAME(kernel, FL_DTYPES, mode)(fl_arguments arguments, fl_division division,                         \
                                                           kernel##_operator::parameters parameters)                             \
    {                                                                                                                            \
        (void)division, (void)parameters;                                                                                        \
        __VA_ARGS__;                                                                                                             \
    }                                                                                                                            \
    FL_HOST_KERNEL(FL_KERNEL_NAME(kernel, FL_DTYPES, mode))

#define FL_ELEMENTWISE_OPERATOR(kernel, family, input_count, output_count, roles, plain)                                         \
    struct kernel##_operator {                                                                                                   \
        enum { inputs = input_count, outputs = output_count };                                                                   \
        typedef fl_parameters(family) parameters;                                                                                \
        FL_INLINE constexpr char role(int operand)                                                                               \
        {                                                                                                                        \
            return roles[operand];                                                                                               \
        }                                                                                                                        \
        FL_INLINE void compute(const fl_real *x, fl_real *y, const parameters *p)                                                \
        {                                                                                                                        \
            FL_COMPUTE_##input_count##_##output_count(fl_name(kernel));                                                          \
        }                                                                                                                        \
        FL_INLINE void compute_plain(const fl_real *x, fl_real *y, const parameters *p)                                          \
        {                                                                                                                        \
            plain;                                                                                                               \
        }                                                                                                                        \
    };

#define FL_ELEMENTWISE(kernel, family, inputs, outputs, roles)                                                                   \
    FL_ELEMENTWISE_OPERATOR(kernel, family, inputs, outputs, roles, FL_COMPUTE_##inputs##_##outputs(fl_name(kernel)))            \
    FL_ELEMENTWISE_MODE(kernel, vector, fl_element_vector<kernel##_operator, true>(arguments, parameters))                       \
    FL_ELEMENTWISE_MODE(kernel, rows, fl_element_rows<kernel##_operator, FL_LENGTH, 1, true>(arguments, division, parameters))   \
    FL_ELEMENTWISE_MODE(kernel, element, fl_element_rows<kernel##_operator, 1, 1, true>(arguments, division, parameters))

/* One whose operands may come in interleaved pairs, and which has one form for all calls. */
#define FL_ELEMENTWISE_PAIRED(kernel, family, inputs, outputs, roles)                                                            \
    FL_ELEMENTWISE(kernel, family, inputs, outputs, roles)                                                                       \
    FL_ELEMENTWISE_MODE(kernel, pairs, fl_element_rows<kernel##_operator, FL_LENGTH, 2, true>(arguments, division, parameters))

/* A kernel of a gated unit: its plain form, which takes gate and up interleaved too; and its full one, with clamp, offset and biases. */
#define FL_ELEMENTWISE_GATED(kernel, family, inputs, outputs, roles)                                                             \
    FL_ELEMENTWISE_OPERATOR(kernel, family, inputs, outputs, roles, FL_PLAIN_##inputs##_##outputs(fl_name(kernel##_plain)))      \
    FL_ELEMENTWISE_MODE(kernel, vector, fl_element_vector<kernel##_operator, true>(arguments, parameters))                       \
    FL_ELEMENTWISE_MODE(kernel, rows, fl_element_rows<kernel##_operator, FL_LENGTH, 1, true>(arguments, division, parameters))   \
    FL_ELEMENTWISE_MODE(kernel, pairs, fl_element_rows<kernel##_operator, FL_LENGTH, 2, true>(arguments, division, parameters))  \
    FL_ELEMENTWISE_MODE(kernel, rows_full,                                                                                       \
                        fl_element_rows<kernel##_operator, FL_LENGTH, 1, false>(arguments, division, parameters))                \
    FL_ELEMENTWISE_MODE(kernel, pairs_full,                                                                                      \
                        fl_element_rows<kernel##_operator, FL_LENGTH, 2, false>(arguments, division, parameters))                \
    FL_ELEMENTWISE_MODE(kernel, element, fl_element_rows<kernel##_operator, 1, 1, false>(arguments, division, parameters))

#endif
