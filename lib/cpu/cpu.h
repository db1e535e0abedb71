/* The CPU side, as the dispatcher and the info call see it. */
#ifndef FL_CPU_H
#define FL_CPU_H

#include "../operator.h"

fuseline_status fl_cpu_run(const struct fl_operator *op, struct fl_types types, int device_id,
                           const struct fl_arguments *arguments, const void *parameters, size_t parameters_size, void *stream);

/* "base", "avx2" or "avx512": the instruction set in use. Chosen at the first call. */
const char *fl_cpu_variant_name(void);

/* How many threads a large call may use: OMP_NUM_THREADS or the number of processors; 1 in a forked child. */
int fl_cpu_threads(void);

/* How many of them a call on so many elements should use: no more than have enough to do. */
int fl_cpu_threads_for(int64_t elements);

#endif
