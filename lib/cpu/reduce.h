/* Sums over rows on the CPU. */
#ifndef FL_CPU_REDUCE_H
#define FL_CPU_REDUCE_H

#include "../operator.h"

/* The sum of each column over all rows. The result is the same for any number of threads. */
void fl_cpu_column_sum(struct fl_types types, const struct fl_arguments *arguments, int threads);

#endif
