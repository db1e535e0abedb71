/* Walks a plan on the CPU, with threads where they pay. */
#include <pthread.h>

#ifdef _OPENMP
#include <omp.h>
#endif

#include "reduce.h"
#include "select.h"

/* Elements that one thread should at least have: below this, waking another costs more than it saves. */
#define ELEMENTS_PER_THREAD (1 << 15)

#ifdef _OPENMP
/*
 * GNU's OpenMP does not survive a fork: a child that asks its lost team for work waits for ever. Others in the process may have made
 * that team long before a call of ours (PyTorch does), so forks are watched from the library's loading on.
 */
static int is_forked_child;

static void in_child(void)
{
    is_forked_child = 1;
}

__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, in_child);
}
#endif

int fl_cpu_threads(void)
{
#ifdef _OPENMP
    return is_forked_child ? 1 : omp_get_max_threads();
#else
    return 1;
#endif
}

int fl_cpu_threads_for(int64_t elements)
{
    int64_t useful = elements / ELEMENTS_PER_THREAD;
    if (useful < 2)
        return 1;
    int threads = fl_cpu_threads();
    return threads < useful ? threads : (int)useful;
}

/* Runs the elements first ... first + count - 1, counted through all rows. */
static void run_range(const struct fl_operator *op, struct fl_types types, const struct fl_arguments *arguments,
                      const void *parameters, int64_t first, int64_t count)
{
    const struct fl_cpu_variant *variant = fl_cpu_variant();
    while (count > 0) {
        int64_t row = first / arguments->columns, column = first % arguments->columns;
        struct fl_span span;
        span.plain = arguments->plain;
        span.count = arguments->columns - column < count ? arguments->columns - column : count;
        for (int k = 0; k < op->inputs + op->outputs; k++) {
            int64_t at = row * arguments->row_stride[k] + column * arguments->column_stride[k];
            char *data = arguments->data[k];
            span.data[k] = data != NULL ? data + at * fl_dtype_size[fl_operand_type(op, types, k)] : NULL;
            span.steps[k] = arguments->column_stride[k];
        }
        variant->run(op, types, &span, parameters);
        first += span.count;
        count -= span.count;
    }
}

fuseline_status fl_cpu_run(const struct fl_operator *op, struct fl_types types, int device_id,
                           const struct fl_arguments *arguments, const void *parameters, size_t parameters_size, void *stream)
{
    int64_t elements = arguments->rows * arguments->columns;
    int threads = fl_cpu_threads_for(elements);
    (void)device_id, (void)parameters_size, (void)stream;

    if (op->kind == FL_REDUCTION_KIND) {
        fl_cpu_column_sum(types, arguments, threads);
        return FUSELINE_OK;
    }
    if (threads == 1) {
        run_range(op, types, arguments, parameters, 0, elements);
        return FUSELINE_OK;
    }
#ifdef _OPENMP
    /* Shares start at whole cache lines of every dtype, so that no two threads write to one line. */
    int64_t share = ((elements + threads - 1) / threads + 63) / 64 * 64;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int part = 0; part < threads; part++) {
        int64_t first = part * share, count = elements - first < share ? elements - first : share;
        run_range(op, types, arguments, parameters, first, count);
    }
#endif
    return FUSELINE_OK;
}
