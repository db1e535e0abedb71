/*
 * How kernels are fitted to a family of architectures: a row of tuning.def. Shared by geometry.c, which plans launches by the row of the
 * device, and the kernels, which are compiled with that of their target.
 */
#ifndef FL_GPU_TUNING_H
#define FL_GPU_TUNING_H

enum fl_loads { FL_LOADS_ORDINARY, FL_LOADS_STREAMING };

struct fl_tuning {
    int vectors, pairs;     /* of each operand on their way in a thread: in the mode "vector", and of interleaved pairs */
    int rows, rows_float64; /* on their way in a column's sum */
    enum fl_loads loads;    /* in the mode "vector" */
};

enum fl_family {
#define FL_TUNING(family, ...) FL_FAMILY_##family,
#include "tuning.def"
    FL_FAMILIES,
    FL_FAMILY_UNLISTED = FL_FAMILY_gcn /* of an architecture that is not in the list */
};

/* FL_TUNING for a table of the rows. */
#define FL_TUNING_ROW(family, vectors, pairs, rows, rows_float64, loads) {vectors, pairs, rows, rows_float64, FL_LOADS_##loads},

/*
 * How many vectors a thread of a kernel has on their way. One, since registers run out, where operands are eight, as those of a gated unit's
 * second derivatives; and, in the mode "vector", where they are of two dtypes, of whose wider one a thread takes two vectors anyway.
 */
#define FL_VECTORS_TOGETHER(tuning, operands, is_one_dtype) ((operands) < 8 && (is_one_dtype) ? (tuning).vectors : 1)
#define FL_PAIRS_TOGETHER(tuning, operands)                 ((operands) < 8 ? (tuning).pairs : 1)
#define FL_TOGETHER_MOST                                    4

/* The row of a device: "gfx942", with or without features (":xnack-"), or "sm_90". */
const struct fl_tuning *fl_tuning_of(const char *architecture);

#endif
