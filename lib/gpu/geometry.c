#include "geometry.h"

#include <stdint.h>

static int is_aligned(const void *data)
{
    return (uintptr_t)data % FL_VECTOR_BYTES == 0;
}

/* True if every operand that is read or written along its row can be accessed in whole vectors, in every row. */
static int rows_fit_vectors(const struct fl_arguments *arguments, const struct fl_operator *op, int length)
{
    for (int k = 0; k < op->inputs + op->outputs; k++) {
        if (arguments->column_stride[k] == 0)
            continue; /* one value, read as such, or none */
        if (arguments->column_stride[k] != 1 || !is_aligned(arguments->data[k]))
            return 0;
        if (arguments->rows > 1 && arguments->row_stride[k] % length != 0)
            return 0;
    }
    return 1;
}

/* True if no operand but a gradient of the result repeats one value. */
static int reads_whole_rows(const struct fl_arguments *arguments, const struct fl_operator *op)
{
    for (int k = 0; k < op->inputs; k++)
        if (arguments->column_stride[k] == 0 && arguments->data[k] != NULL && op->roles[k] != 'y')
            return 0;
    return 1;
}

/* True if gate and up (and their biases, and their gradients) lie interleaved, and whole vectors of them can be accessed. */
static int rows_fit_pairs(const struct fl_arguments *arguments, const struct fl_operator *op, struct fl_types types, int length)
{
    int found = 0;
    for (int k = 0; k < op->inputs + op->outputs; k++) {
        char role = op->roles[k];
        if (role == 'u' || role == 'c' || arguments->column_stride[k] == 0)
            continue; /* goes with the one before, or is one value, or none */
        int is_pair = role == 'g' || role == 'b';
        if (arguments->column_stride[k] != 1 + is_pair || !is_aligned(arguments->data[k]))
            return 0;
        if (arguments->rows > 1 && arguments->row_stride[k] % length != 0)
            return 0;
        if (is_pair && (arguments->column_stride[k + 1] != 2 || arguments->row_stride[k + 1] != arguments->row_stride[k] ||
                        (char *)arguments->data[k + 1] != (char *)arguments->data[k] + fl_dtype_size[types.operand]))
            return 0;
        found |= is_pair;
    }
    return found;
}

struct fl_division fl_division_by(long long divisor, long long indices)
{
    struct fl_division division = {0, -1};
    if (indices > (1ll << 32))
        return division;
    int shift = 0;
    while (divisor > 1ll << shift)
        shift++;
    division.shift = shift;
    division.multiplier =
        (unsigned)(((1ull << 32) * ((1ull << shift) - (unsigned long long)divisor)) / (unsigned long long)divisor + 1);
    return division;
}

struct fl_geometry fl_geometry(const struct fl_arguments *arguments, const struct fl_operator *op, struct fl_types types,
                               const struct fl_tuning *tuning)
{
    struct fl_geometry geometry = {FL_MODE_ELEMENT, 1, {0, -1}};
    int operand_size = fl_dtype_size[types.operand], result_size = fl_dtype_size[types.result];
    int length = FL_VECTOR_BYTES / (operand_size < result_size ? operand_size : result_size);
    int is_plain = arguments->plain || op->roles[op->inputs - 1] != 'c'; /* other operators have but one form */
    long long steps, block_steps = FL_BLOCK_THREADS, full_blocks = 0;

    if (op->kind == FL_REDUCTION_KIND) {
        steps = arguments->columns * FL_REDUCTION_ROWS; /* kernels/column_sum.hip: any rows, in whole strips of columns */
    } else if (arguments->rows == 1 && is_plain && rows_fit_vectors(arguments, op, length) && reads_whole_rows(arguments, op) &&
               arguments->columns / length < (long long)FL_BLOCKS_MOST * FL_BLOCK_THREADS - length) {
        /* Blocks that have as many vectors as they take; then a thread for each vector, and each element, left over. */
        long long full =
            (long long)FL_BLOCK_THREADS * FL_VECTORS_TOGETHER(*tuning, op->inputs + op->outputs, types.operand == types.result);
        geometry.mode = FL_MODE_VECTOR;
        full_blocks = arguments->columns / length / full;
        steps = arguments->columns / length % full + arguments->columns % length;
    } else if (arguments->columns % length == 0 && rows_fit_vectors(arguments, op, length)) {
        geometry.mode = is_plain ? FL_MODE_ROWS : FL_MODE_ROWS_FULL;
        steps = arguments->rows * (arguments->columns / length);
        geometry.division = fl_division_by(arguments->columns / length, steps);
    } else if (arguments->columns % length == 0 && rows_fit_pairs(arguments, op, types, length)) {
        geometry.mode = is_plain ? FL_MODE_PAIRS : FL_MODE_PAIRS_FULL;
        if (is_plain)
            block_steps *= FL_PAIRS_TOGETHER(*tuning, op->inputs + op->outputs);
        steps = arguments->rows * (arguments->columns / length);
        geometry.division = fl_division_by(arguments->columns / length, steps);
    } else {
        steps = arguments->rows * arguments->columns;
        geometry.division = fl_division_by(arguments->columns, steps);
    }
    long long blocks = full_blocks + steps / block_steps + (steps % block_steps != 0);
    if (blocks > FL_BLOCKS_MOST)
        blocks = FL_BLOCKS_MOST;
    if (blocks > 1)
        geometry.blocks = (unsigned)blocks;
    return geometry;
}
