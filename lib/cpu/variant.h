/* One instruction set's code, as the selection sees it. Each is compiled from body.h with its own flags. */
#ifndef FL_CPU_VARIANT_H
#define FL_CPU_VARIANT_H

#include <stdint.h>

#include "../operator.h"

/* A run of elements of one row: `count` elements of each operand, an input's step being 1, or 0 for one repeated value. */
struct fl_span {
    const char *inputs[FL_INPUTS_MOST];
    char *outputs[FL_OUTPUTS_MOST];
    int steps[FL_INPUTS_MOST];
    int64_t count;
};

struct fl_cpu_variant {
    const char *name;
    void (*run)(const struct fl_operator *op, enum fl_dtype dtype, const struct fl_span *span, const void *parameters);
};

extern const struct fl_cpu_variant fl_cpu_base, fl_cpu_avx2, fl_cpu_avx512;

#endif
