/* One instruction set's code, as the selection sees it. Each is compiled from body.h with its own flags. */
#ifndef FL_CPU_VARIANT_H
#define FL_CPU_VARIANT_H

#include <stdint.h>

#include "../operator.h"

/* A run of elements of one row: `count` elements of each operand, `steps` elements apart. NULL for an absent input. */
struct fl_span {
    char *data[FL_OPERANDS_MOST];
    int steps[FL_OPERANDS_MOST]; /* 0 for one repeated value */
    int64_t count;
    int plain; /* see fl_arguments */
};

struct fl_cpu_variant {
    const char *name;
    void (*run)(const struct fl_operator *op, struct fl_types types, const struct fl_span *span, const void *parameters);
    /* The sums of the columns first ... first + count - 1 over all rows. */
    void (*column_sum)(struct fl_types types, const struct fl_arguments *arguments, int64_t first, int64_t count);
};

extern const struct fl_cpu_variant fl_cpu_base, fl_cpu_avx2, fl_cpu_avx512;

#endif
