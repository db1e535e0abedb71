/*
 * The kernels of every elementwise operator: all operands have one shape, and each output element depends on the input elements
 * at its place.
 *
 * A source file of kernels defines nothing but
 *
 *     #include "elementwise.h"
 *     #include "../lib/formulas/<family>.h"
 *     FL_ELEMENTWISE(<kernel>, <family>, <inputs>, <outputs>)      once for each row of lib/operators.def
 *
 * and is compiled once per dtype, with FL_DTYPE defined as its name. Each kernel comes in three access modes, named
 * fl_<kernel>_<dtype>_<mode>; lib/gpu/geometry.c chooses:
 *
 *     vector    one row; every operand contiguous and aligned to 16 bytes, or (inputs) one repeated value
 *     rows      rows whose length and strides are multiples of 16 bytes, all aligned to them; inputs may repeat a value or a row
 *     element   anything else: one element at a time
 *
 * Every mode strides over what exceeds the grid, so any count works with any grid.
 */
#ifndef FL_ELEMENTWISE_H
#define FL_ELEMENTWISE_H

#define FL_PASTE_NAME(kernel, dtype, mode)  fl_##kernel##_##dtype##_##mode
#define FL_KERNEL_NAME(kernel, dtype, mode) FL_PASTE_NAME(kernel, dtype, mode)

#define FL_PASTE_NUMBER(dtype) FL_NUMBER_##dtype
#define FL_NUMBER(dtype)       FL_PASTE_NUMBER(dtype)
#define FL_NUMBER_float16      1
#define FL_NUMBER_bfloat16     2
#define FL_NUMBER_float32      3
#define FL_NUMBER_float64      4

/* The precision to compute in, the type in memory, and the way between them. */
#if FL_NUMBER(FL_DTYPE) == FL_NUMBER_float16
#define FL_PRECISION   16
#define fl_from_memory fl_float16_to_float
#define fl_to_memory   fl_float_to_float16
typedef unsigned short fl_stored;
#elif FL_NUMBER(FL_DTYPE) == FL_NUMBER_bfloat16
#define FL_PRECISION   16
#define fl_from_memory fl_bfloat16_to_float
#define fl_to_memory   fl_float_to_bfloat16
typedef unsigned short fl_stored;
#elif FL_NUMBER(FL_DTYPE) == FL_NUMBER_float32
#define FL_PRECISION 32
#define fl_from_memory
#define fl_to_memory
typedef float fl_stored;
#elif FL_NUMBER(FL_DTYPE) == FL_NUMBER_float64
#define FL_PRECISION 64
#define fl_from_memory
#define fl_to_memory
typedef double fl_stored;
#else
#error "define FL_DTYPE as float16, bfloat16, float32 or float64"
#endif

#include "device.h"

#include "../lib/arguments.h"
#include "../lib/formulas/exp2.h"

/* Elements of one vector access. */
#define FL_LENGTH ((int)(FL_VECTOR_BYTES / sizeof(fl_stored)))

/* What a thread reads or writes at once: a whole vector or one element. */
template <int length> struct fl_pack {
    fl_stored element[length];
};
FL_INLINE void fl_load_pack(const fl_stored *from, fl_pack<FL_LENGTH> &pack)
{
    fl_vector vector = fl_load_vector(from);
    __builtin_memcpy(&pack, &vector, sizeof pack);
}
FL_INLINE void fl_load_pack(const fl_stored *from, fl_pack<1> &pack)
{
    pack.element[0] = fl_load(from);
}
FL_INLINE void fl_store_pack(fl_stored *to, const fl_pack<FL_LENGTH> &pack)
{
    fl_vector vector;
    __builtin_memcpy(&vector, &pack, sizeof vector);
    fl_store_vector(to, vector);
}
FL_INLINE void fl_store_pack(fl_stored *to, const fl_pack<1> &pack)
{
    fl_store(to, pack.element[0]);
}

/*
 * Reads the packs of all inputs at (row, column), computes, and writes those of all outputs. All reads come before the
 * first write, since an output may be the memory of an input. An input that repeats one value per row takes the same branch
 * in every thread.
 */
template <class Operator, int length>
FL_INLINE void fl_element_step(const fl_arguments &arguments, const typename Operator::parameters &parameters, long long row,
                               long long column)
{
    fl_pack<length> in[Operator::inputs], out[Operator::outputs];

#pragma GCC unroll 8
    for (int k = 0; k < Operator::inputs; k++) {
        const fl_stored *from = (const fl_stored *)arguments.data[k] + row * arguments.row_stride[k];
        if (arguments.column_stride[k] != 0) {
            fl_load_pack(from + column, in[k]);
        } else {
            fl_stored value = fl_load(from);
#pragma GCC unroll 8
            for (int i = 0; i < length; i++)
                in[k].element[i] = value;
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < length; i++) {
        fl_real x[Operator::inputs], y[Operator::outputs];
#pragma GCC unroll 8
        for (int k = 0; k < Operator::inputs; k++)
            x[k] = fl_from_memory(in[k].element[i]);
        Operator::compute(x, y, &parameters);
#pragma GCC unroll 8
        for (int k = 0; k < Operator::outputs; k++)
            out[k].element[i] = fl_to_memory(y[k]);
    }
#pragma GCC unroll 8
    for (int k = 0; k < Operator::outputs; k++) {
        int operand = Operator::inputs + k;
        fl_store_pack((fl_stored *)arguments.data[operand] + row * arguments.row_stride[operand] + column, out[k]);
    }
}

/* One row in vectors; the elements that fill no vector go to the first threads, one each. */
template <class Operator>
FL_INLINE void fl_element_vector(const fl_arguments &arguments, const typename Operator::parameters &parameters)
{
    long long first = fl_thread_index(), vectors = arguments.columns / FL_LENGTH, tail = vectors * FL_LENGTH + first;
    for (long long index = first; index < vectors; index += fl_thread_count())
        fl_element_step<Operator, FL_LENGTH>(arguments, parameters, 0, index * FL_LENGTH);
    if (first < FL_LENGTH && tail < arguments.columns)
        fl_element_step<Operator, 1>(arguments, parameters, 0, tail);
}

/* Rows in packs of `length`, of which the columns are a multiple. */
template <class Operator, int length>
FL_INLINE void fl_element_rows(const fl_arguments &arguments, fl_division division,
                               const typename Operator::parameters &parameters)
{
    long long width = arguments.columns / length, packs = arguments.rows * width;
    for (long long index = fl_thread_index(); index < packs; index += fl_thread_count()) {
        long long row;
        if (division.shift >= 0)
            row = (fl_multiply_high((unsigned)index, division.multiplier) + (unsigned long long)index) >> division.shift;
        else
            row = index / width;
        fl_element_step<Operator, length>(arguments, parameters, row, (index - row * width) * length);
    }
}

/* An operator's formula on arrays of its operands. */
#define FL_COMPUTE_1_1(formula) formula(x[0], &y[0], p)
#define FL_COMPUTE_2_1(formula) formula(x[0], x[1], &y[0], p)
#define FL_COMPUTE_3_2(formula) formula(x[0], x[1], x[2], &y[0], &y[1], p)

#define FL_ELEMENTWISE(kernel, family, input_count, output_count)                                                                \
    struct kernel##_operator {                                                                                                   \
        enum { inputs = input_count, outputs = output_count };                                                                   \
        typedef fl_parameters(family) parameters;                                                                                \
        FL_INLINE void compute(const fl_real *x, fl_real *y, const parameters *p)                                                \
        {                                                                                                                        \
            FL_COMPUTE_##input_count##_##output_count(fl_name(kernel));                                                          \
        }                                                                                                                        \
    };                                                                                                                           \
    FL_KERNEL void FL_KERNEL_NAME(kernel, FL_DTYPE, vector)(fl_arguments arguments, fl_division,                                 \
                                                            kernel##_operator::parameters parameters)                            \
    {                                                                                                                            \
        fl_element_vector<kernel##_operator>(arguments, parameters);                                                             \
    }                                                                                                                            \
    FL_KERNEL void FL_KERNEL_NAME(kernel, FL_DTYPE, rows)(fl_arguments arguments, fl_division division,                          \
                                                          kernel##_operator::parameters parameters)                              \
    {                                                                                                                            \
        fl_element_rows<kernel##_operator, FL_LENGTH>(arguments, division, parameters);                                          \
    }                                                                                                                            \
    FL_KERNEL void FL_KERNEL_NAME(kernel, FL_DTYPE, element)(fl_arguments arguments, fl_division division,                       \
                                                             kernel##_operator::parameters parameters)                           \
    {                                                                                                                            \
        fl_element_rows<kernel##_operator, 1>(arguments, division, parameters);                                                  \
    }

#endif
