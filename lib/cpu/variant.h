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

/* Columns that a reduction works on at once, at most. */
#define FL_STRIP 2048

/* The sums of a strip's columns, in double, and what the additions lost. The sum itself is sum + lost. */
struct fl_sums {
    double sum[FL_STRIP], lost[FL_STRIP];
};

struct fl_cpu_variant {
    const char *name;
    void (*run)(const struct fl_operator *op, struct fl_types types, const struct fl_span *span, const void *parameters);
    /* Adds `rows` rows of `columns` elements to sums, which are as many. The first element is at `data`, in bytes; the stride in elements. */
    void (*add_rows)(enum fl_dtype dtype, const char *data, int64_t row_stride, int64_t rows, int columns, struct fl_sums *sums);
    /* Rounds `columns` sums once, to dtype, and writes them. */
    void (*store_sums)(enum fl_dtype dtype, const struct fl_sums *sums, char *to, int columns);
};

extern const struct fl_cpu_variant fl_cpu_base, fl_cpu_avx2, fl_cpu_avx512;

#endif
