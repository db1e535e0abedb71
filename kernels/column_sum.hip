/*
 * The sum of each column over all rows. A block takes a strip of columns; its threads share the rows of the strip, and then add up
 * their sums in a fixed order, so that the result is the same every time.
 */
#include "elementwise.h"

struct column_sum_operator {
    struct parameters {
        char unused;
    };
};

/* a + b, and what its rounding lost (Knuth's two-sum, which needs no comparison): inf or nan where something on the way is not finite. */
FL_INLINE fl_real fl_sum_of(fl_real a, fl_real b, fl_real &lost)
{
    fl_real sum = a + b, part = sum - a;
    lost += (a - (sum - part)) + (b - part);
    return sum;
}

/* A sum that keeps what its additions lose. */
struct fl_compensated {
    fl_real sum, lost;

    FL_METHOD void add(fl_real x)
    {
        sum = fl_sum_of(sum, x, lost);
    }

    /*
     * The sum itself, in the type computed in. For a 16-bit type it is rounded once more, so where it is inexact in float it is the odd
     * one of its two neighbours, which lies on no tie of a narrower type: then the next rounding gives what one alone would (Boldo,
     * Melquiond: Emulation of FMA and correctly rounded sums, 2008).
     */
    FL_METHOD fl_real whole() const
    {
        if (!(lost - lost == 0)) /* as with inf, nan, and, of finite sums, those of numbers near the end of the range */
            return sum;
        fl_real nearest = sum + lost;
#if FL_PRECISION == 16
        float part = nearest - sum, error = (sum - (nearest - part)) + (lost - part);
        if (error < 0.0f || error > 0.0f) { /* not nan, as an infinite sum's is */
            unsigned bits = fl_bits_32(nearest);
            bits -= (error < 0.0f) != (nearest < 0.0f) ? 1u : 0u;
            nearest = fl_from_bits_32(bits | 1u);
        }
#endif
        return nearest;
    }
};

/* Rows that are on their way at once. On the host one number will do for all devices. */
#if FL_DEVICE_CODE
enum { fl_ahead = sizeof(fl_operand) == 8 ? fl_tuned().rows_float64 : fl_tuned().rows };
#else
enum { fl_ahead = 16 };
#endif

/* Adds the elements of several rows: by twos, fours ..., whose sums need not wait for each other, with what each of these loses. */
FL_INLINE void fl_add_rows(fl_compensated &sum, const fl_operand *element)
{
    fl_real x[fl_ahead];
#pragma GCC unroll 16
    for (int k = 0; k < fl_ahead; k++)
        x[k] = fl_from_memory(element[k]);
#pragma GCC unroll 8
    for (int half = fl_ahead / 2; half > 0; half /= 2)
#pragma GCC unroll 16
        for (int k = 0; k < half; k++)
            x[k] = fl_sum_of(x[k], x[k + half], sum.lost);
    sum.add(x[0]);
}

FL_INLINE void fl_column_sum(const fl_arguments &arguments)
{
    FL_SHARED fl_real sums[FL_REDUCTION_ROWS][FL_REDUCTION_COLUMNS], losses[FL_REDUCTION_ROWS][FL_REDUCTION_COLUMNS];
    int thread = fl_block_thread(), lane = thread % FL_REDUCTION_COLUMNS, group = thread / FL_REDUCTION_COLUMNS;
    long long step = FL_REDUCTION_ROWS * arguments.row_stride[0];

    for (long long first = (long long)fl_block_index() * FL_REDUCTION_COLUMNS; first < arguments.columns;
         first += (long long)fl_block_count() * FL_REDUCTION_COLUMNS) {
        long long column = first + lane;
        fl_compensated mine = {0, 0};
        if (column < arguments.columns) {
            const fl_operand *from = (const fl_operand *)arguments.data[0] + column + group * arguments.row_stride[0];
            long long row = group;
            for (; row + (fl_ahead - 1) * FL_REDUCTION_ROWS < arguments.rows; row += fl_ahead * FL_REDUCTION_ROWS) {
                fl_operand ahead[fl_ahead];
#pragma GCC unroll 16
                for (int k = 0; k < fl_ahead; k++, from += step)
                    ahead[k] = fl_load(from);
                fl_add_rows(mine, ahead);
            }
            for (; row < arguments.rows; row += FL_REDUCTION_ROWS, from += step)
                mine.add(fl_from_memory(fl_load(from)));
        }
        sums[group][lane] = mine.sum;
        losses[group][lane] = mine.lost;
        fl_barrier();
        if (group == 0 && column < arguments.columns) {
            for (int other = 1; other < FL_REDUCTION_ROWS; other++) {
                mine.add(sums[other][lane]);
                mine.lost += losses[other][lane];
            }
            fl_operand rounded;
            fl_to_memory(mine.whole(), rounded);
            fl_store((fl_operand *)arguments.data[1] + column, rounded);
        }
        fl_barrier();
    }
}

FL_ELEMENTWISE_MODE(column_sum, element, fl_column_sum(arguments))
