/*
 * How the threads of a launch walk the operands. Shared by geometry.c, which plans a launch, and kernels/elementwise.h.
 */
#ifndef FL_GPU_WALK_H
#define FL_GPU_WALK_H

#define FL_BLOCK_THREADS 256
#define FL_VECTOR_BYTES  16 /* one access of one thread, in the modes "vector" and "rows" */

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
