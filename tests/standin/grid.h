/* Runs a kernel over its grid on the calling thread: real block and thread numbers, barriers, and lanes that pass values. */
#ifndef STANDIN_GRID_H
#define STANDIN_GRID_H

#include "../../kernels/host.h"

#define GRID_THREADS_MOST 1024 /* of a block, as of real devices */

struct grid {
    const char *name; /* of the kernel, for messages */
    const struct fl_host_kernel *kernel;
    const void *const *arguments;
    unsigned blocks, threads, lanes;
    const struct fl_tuning *tuning; /* of the device */
};

/*
 * Blocks run one after the other, their threads each up to the next barrier, in an order that is not that of their numbers.
 * Ends the process with a message where the threads of a block wait for each other in vain.
 */
void grid_run(const struct grid *grid);

/* The grid that the calling thread is running, or NULL. */
const struct grid *grid_running(void);

#endif
