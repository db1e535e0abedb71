/* The geometry of a launch: which access mode, how many blocks, and how an index divides into row and column. */
#ifndef FL_GPU_GEOMETRY_H
#define FL_GPU_GEOMETRY_H

#include "../operator.h"
#include "tuning.h"
#include "walk.h"

/* The access modes of kernels/elementwise.h. */
enum fl_mode { FL_MODE_VECTOR, FL_MODE_ROWS, FL_MODE_PAIRS, FL_MODE_ROWS_FULL, FL_MODE_PAIRS_FULL, FL_MODE_ELEMENT, FL_MODES };

/*
 * AMD's runtime runs a grid of 2^32 threads or more wrongly, or not at all; kernels stride over what is beyond this.
 * NVIDIA's limit of 2^31 - 1 blocks is far above.
 */
#define FL_BLOCKS_MOST (0xffffffffu / FL_BLOCK_THREADS)

struct fl_geometry {
    enum fl_mode mode;
    unsigned blocks; /* of FL_BLOCK_THREADS threads; at least 1 */
    struct fl_division division;
};

/* For the division of indices below `indices` by `divisor`, both at least 1. */
struct fl_division fl_division_by(long long divisor, long long indices);

/* arguments: at least one element. tuning: the device's. */
struct fl_geometry fl_geometry(const struct fl_arguments *arguments, const struct fl_operator *op, struct fl_types types,
                               const struct fl_tuning *tuning);

#endif
