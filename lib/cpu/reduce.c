/*
 * Column sums on the CPU: strips of columns, and of those chunks of rows, each summed by itself; then the chunks' sums are added up in
 * their order. Shape alone decides what the chunks are, so any number of threads gives the same result.
 */
#include "reduce.h"

#include <stdlib.h>
#include <string.h>

#include "select.h"

/* Into how many pieces a call is to be cut, so that many threads have something to do; and how small a piece may be for that. */
#define PIECES         64
#define ELEMENTS_LEAST (1 << 16)

/* What a strip reads of each row: long enough to be read ahead, with sums that stay in the first-level cache. */
#define STRIP_BYTES 4096

/* Dense rows shorter than NARROW columns are summed as if several of them were one, of up to FOLDED columns. */
#define NARROW 64
#define FOLDED 256

/* How a call is cut: strips of `width` columns, the last one shorter, and chunks of rows. */
struct cut {
    int width;
    int64_t strips, chunks, chunk_rows;
};

static struct cut cut_of(enum fl_dtype dtype, const struct fl_arguments *arguments)
{
    int64_t rows = arguments->rows, columns = arguments->columns, width = STRIP_BYTES / fl_dtype_size[dtype];
    struct cut cut = {.width = (int)width, .strips = (columns + width - 1) / width};
    int64_t wanted = (PIECES + cut.strips - 1) / cut.strips, most = rows * (columns < width ? columns : width) / ELEMENTS_LEAST;
    wanted = wanted < most ? wanted : most;
    wanted = wanted > 1 ? wanted : 1;
    cut.chunk_rows = (rows + wanted - 1) / wanted;
    cut.chunks = cut.chunk_rows > 0 ? (rows + cut.chunk_rows - 1) / cut.chunk_rows : 1;
    return cut;
}

static int strip_width(const struct fl_arguments *arguments, const struct cut *cut, int64_t strip)
{
    int64_t left = arguments->columns - strip * cut->width;
    return left < cut->width ? (int)left : cut->width;
}

/* Adds other columns' sums to the first ones, `columns` of them. */
static void add_sums(struct fl_sums *total, const double *sum, const double *lost, int columns)
{
    for (int i = 0; i < columns; i++) {
        double a = total->sum[i], b = sum[i], whole = a + b, b_part = whole - a;
        total->lost[i] += lost[i] + ((a - (whole - b_part)) + (b - b_part));
        total->sum[i] = whole;
    }
}

/* The sums of `rows` rows from `data` on. */
static void sum_rows(enum fl_dtype dtype, const char *data, int64_t row_stride, int64_t rows, int columns, struct fl_sums *sums)
{
    int fold = row_stride == columns && columns < NARROW ? FOLDED / columns : 1, width = fold * columns;
    memset(sums->sum, 0, (size_t)width * sizeof sums->sum[0]);
    memset(sums->lost, 0, (size_t)width * sizeof sums->lost[0]);
    fl_cpu_variant()->add_rows(dtype, data, fold * row_stride, rows / fold, width, sums);
    if (fold > 1) {
        for (int part = 1; part < fold; part++)
            add_sums(sums, sums->sum + part * columns, sums->lost + part * columns, columns);
        int64_t done = rows / fold * fold;
        fl_cpu_variant()->add_rows(dtype, data + done * row_stride * fl_dtype_size[dtype], row_stride, rows - done, columns,
                                   sums);
    }
}

/* Sums one chunk of a strip. */
static void sum_chunk(struct fl_types types, const struct fl_arguments *arguments, const struct cut *cut, int64_t strip,
                      int64_t chunk, struct fl_sums *sums)
{
    int64_t first = chunk * cut->chunk_rows, rows = arguments->rows - first, stride = arguments->row_stride[0];
    const char *data = arguments->data[0];
    if (data != NULL) /* as it may be without rows */
        data += (first * stride + strip * cut->width) * fl_dtype_size[types.operand];
    sum_rows(types.operand, data, stride, rows < cut->chunk_rows ? rows : cut->chunk_rows, strip_width(arguments, cut, strip),
             sums);
}

static void store_strip(struct fl_types types, const struct fl_arguments *arguments, const struct cut *cut, int64_t strip,
                        const struct fl_sums *sums)
{
    char *to = (char *)arguments->data[1] + strip * cut->width * fl_dtype_size[types.operand];
    fl_cpu_variant()->store_sums(types.operand, sums, to, strip_width(arguments, cut, strip));
}

/* A whole strip by one thread. */
static void sum_strip(struct fl_types types, const struct fl_arguments *arguments, const struct cut *cut, int64_t strip)
{
    struct fl_sums total, more;
    sum_chunk(types, arguments, cut, strip, 0, &total);
    for (int64_t chunk = 1; chunk < cut->chunks; chunk++) {
        sum_chunk(types, arguments, cut, strip, chunk, &more);
        add_sums(&total, more.sum, more.lost, strip_width(arguments, cut, strip));
    }
    store_strip(types, arguments, cut, strip, &total);
}

void fl_cpu_column_sum(struct fl_types types, const struct fl_arguments *arguments, int threads)
{
    struct cut cut = cut_of(types.operand, arguments);
#ifdef _OPENMP
    struct fl_sums *sums = NULL; /* of each chunk of each strip */
    int64_t pieces = cut.strips * cut.chunks;
    if (threads > 1 && cut.chunks > 1)
        sums = malloc((size_t)pieces * sizeof *sums);
    if (sums != NULL) {
#pragma omp parallel num_threads(threads)
        {
#pragma omp for schedule(dynamic)
            for (int64_t piece = 0; piece < pieces; piece++)
                sum_chunk(types, arguments, &cut, piece % cut.strips, piece / cut.strips, &sums[piece]);
#pragma omp for schedule(static) nowait
            for (int64_t strip = 0; strip < cut.strips; strip++) {
                for (int64_t chunk = 1; chunk < cut.chunks; chunk++) {
                    const struct fl_sums *more = &sums[chunk * cut.strips + strip];
                    add_sums(&sums[strip], more->sum, more->lost, strip_width(arguments, &cut, strip));
                }
                store_strip(types, arguments, &cut, strip, &sums[strip]);
            }
        }
        free(sums);
        return;
    }
    /* Without memory for that, strips are what threads share. */
#pragma omp parallel for num_threads(threads) schedule(dynamic) if (threads > 1)
#endif
    for (int64_t strip = 0; strip < cut.strips; strip++)
        sum_strip(types, arguments, &cut, strip);
    (void)threads;
}
