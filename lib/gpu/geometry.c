#include "geometry.h"

#include <stdint.h>

/* True if every operand that is read or written along its row can be accessed in whole vectors, in every row. */
static int rows_fit_vectors(const struct fl_arguments *arguments, int operands, int length)
{
    for (int k = 0; k < operands; k++) {
        if (arguments->column_stride[k] == 0)
            continue; /* one value, read as such */
        if ((uintptr_t)arguments->data[k] % FL_VECTOR_BYTES != 0)
            return 0;
        if (arguments->rows > 1 && arguments->row_stride[k] % length != 0)
            return 0;
    }
    return 1;
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

struct fl_geometry fl_geometry(const struct fl_arguments *arguments, int operands, int element_size)
{
    struct fl_geometry geometry = {FL_MODE_ELEMENT, 1, {0, -1}};
    int length = FL_VECTOR_BYTES / element_size;
    long long steps;

    if (arguments->rows == 1 && rows_fit_vectors(arguments, operands, length)) {
        geometry.mode = FL_MODE_VECTOR;
        steps = arguments->columns / length; /* the elements left over go to the first block */
    } else if (arguments->columns % length == 0 && rows_fit_vectors(arguments, operands, length)) {
        geometry.mode = FL_MODE_ROWS;
        steps = arguments->rows * (arguments->columns / length);
        geometry.division = fl_division_by(arguments->columns / length, steps);
    } else {
        steps = arguments->rows * arguments->columns;
        geometry.division = fl_division_by(arguments->columns, steps);
    }
    long long blocks = steps / FL_BLOCK_THREADS + (steps % FL_BLOCK_THREADS != 0);
    if (blocks > FL_BLOCKS_MOST)
        blocks = FL_BLOCKS_MOST;
    if (blocks > 1)
        geometry.blocks = (unsigned)blocks;
    return geometry;
}
