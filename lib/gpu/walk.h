/*
 * How the threads of a launch walk the operands. Shared by geometry.c, which plans a launch, and kernels/elementwise.h.
 */
#ifndef FL_GPU_WALK_H
#define FL_GPU_WALK_H

#define FL_BLOCK_THREADS 256
#define FL_VECTOR_BYTES  16 /* one access of one thread, in the modes "vector", "rows" and "pairs" */

/* A block of a reduction over rows takes this many columns, and as many rows at a time as its threads suffice for. */
#define FL_REDUCTION_COLUMNS 32
#define FL_REDUCTION_ROWS    (FL_BLOCK_THREADS / FL_REDUCTION_COLUMNS)

/*
 * Division of an index below 2^32 by a divisor d that stays the same, as a multiplication (Granlund, Montgomery: Division by
 * Invariant Integers using Multiplication, 1994): i / d = (high 32 bits of i * multiplier + i) >> shift.
 * With shift < 0 the indices are larger than that, and the kernel divides.
 */
struct fl_division {
    unsigned multiplier;
    int shift;
};

#endif
