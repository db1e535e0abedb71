/*
 * Streams: what is queued runs in order, on a thread of the stream's own, and not before somebody waits for it (or for what
 * follows it): as late as it may, so that whoever forgets to wait gets old numbers every time.
 */
#ifndef STANDIN_STREAM_H
#define STANDIN_STREAM_H

#include <stddef.h>

#include "../../kernels/host.h"

#define STREAM_ARGUMENT_BYTES 1024

/* A launch, with a copy of its arguments. */
struct launch {
    char name[128];
    const struct fl_host_kernel *kernel;
    const void *code; /* where it was picked from */
    size_t code_size;
    unsigned blocks, threads, lanes;
    const struct fl_tuning *tuning;           /* of the device */
    unsigned offsets[FL_HOST_ARGUMENTS_MOST]; /* of the arguments, in the copy */
    unsigned char arguments[STREAM_ARGUMENT_BYTES];
};

/* The stream that a handle means on a device; NULL where it is none, or one of another device. */
struct stream *stream_of(void *handle, int device);

void stream_launch(struct stream *stream, const struct launch *launch);

/* True while any stream is being captured. Where that is so, a call that is not allowed then breaks the capture. */
int stream_breaks_capture(void);

#endif
