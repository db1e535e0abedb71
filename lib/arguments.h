/*
 * What a kernel is told besides its operator's parameters: where its operands lie. Read by the host's C compiler and by the
 * device compiler, and passed by value, so its layout is the same in both.
 *
 * Every operator on tensors of one shape is walked as `rows` rows of `columns` elements. Dense operands are one row.
 */
#ifndef FL_ARGUMENTS_H
#define FL_ARGUMENTS_H

#define FL_INPUTS_MOST   5
#define FL_OUTPUTS_MOST  3
#define FL_OPERANDS_MOST (FL_INPUTS_MOST + FL_OUTPUTS_MOST)

struct fl_arguments {
    /* Inputs first, then outputs, without a gap. NULL for an absent input, which reads as 0. */
    void *data[FL_OPERANDS_MOST];
    long long row_stride[FL_OPERANDS_MOST]; /* elements from one row to the next; 0 repeats the row */
    int column_stride[FL_OPERANDS_MOST];    /* 1; 2 for half of an interleaved pair; 0 for an input whose rows repeat one value */
    long long rows, columns;
    int plain; /* a gated unit without clamp, offset and biases */
};

#endif
