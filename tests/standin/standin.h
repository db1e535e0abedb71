/*
 * A library that stands in for a GPU vendor's runtime, for tests on machines without a GPU. It plays some devices, keeps the rules
 * that the real one keeps where our code could break them, and runs the kernels on the CPU:
 *
 *   - code is picked for the architecture that a device plays, and read: code_object.h, ptx.h;
 *   - a launch is compared with what the code says of the kernel, and fails where they differ: module.h;
 *   - the kernel itself is the same source, compiled for the host: grid.h;
 *   - a launch runs later, on another thread, when somebody waits for it: stream.h;
 *   - memory lies between pages that nobody may touch: memory.h.
 *
 * Built twice, as libamdhip64.so and as libcuda.so. A test opens the file itself and gets the state by dlsym "standin", and the
 * functions below likewise; it may change everything in the state before the library under test gets there.
 */
#ifndef STANDIN_H
#define STANDIN_H

#include <stddef.h>

#include "arguments.h"
#include "gpu/walk.h"

enum standin_call {
    STANDIN_INIT,
    STANDIN_DEVICE_COUNT,
    STANDIN_ARCHITECTURE,
    STANDIN_GET_CURRENT,
    STANDIN_SET_CURRENT, /* or push */
    STANDIN_POP_CURRENT,
    STANDIN_RETAIN_CONTEXT,
    STANDIN_LOAD,
    STANDIN_FUNCTION,
    STANDIN_LAUNCH,
    STANDIN_TAKE_LAST_ERROR,
    STANDIN_CALLS
};

#define STANDIN_DEVICES 64

struct standin {
    int devices;
    /*
     * "gfx1151:sramecc-:xnack-" or "90": what each device is. At first two of gfx1151, or of 90; or those that the environment
     * variable STANDIN_DEVICES lists, separated by commas.
     */
    char architecture[STANDIN_DEVICES][32];
    int old_properties; /* HIP: the older structure is there, and not the newer */
    int old_loader;     /* HIP: it knows no generic targets, as none before ROCm 6.4 does */

    int count[STANDIN_CALLS];     /* of calls */
    int fail[STANDIN_CALLS];      /* the error that calls return, 0 being none */
    int fail_only[STANDIN_CALLS]; /* the one call, counted from 1, that fails; 0 for all */

    int is_synchronous;   /* every stream runs all at once */
    unsigned blocks_most; /* a kernel gets no more blocks, 0 being no limit; but in the mode "vector", which does not stride */

    struct {
        char kernel[128];
        int device;
        unsigned blocks[3], threads[3], shared_bytes;
        void *stream;
        struct fl_arguments arguments;
        struct fl_division division;
        unsigned char parameters[16]; /* the first bytes */
    } launch;                         /* the last one */
};

/* The errors that it gives by itself. */
#define STANDIN_INVALID_VALUE       1
#define STANDIN_NOT_INITIALIZED     3
#define STANDIN_NO_DEVICE           100
#define STANDIN_INVALID_DEVICE      101
#define STANDIN_INVALID_IMAGE       200
#define STANDIN_NO_BINARY           209
#define STANDIN_INVALID_HANDLE      400
#define STANDIN_NOT_FOUND           500
#define STANDIN_CAPTURE_UNSUPPORTED 900

/* For tests in the place of a framework. Names are the same in both libraries. Streams are passed as HIP and CUDA have them. */

/*
 * A device's memory, filled with bytes 0xa5. It begins at a page, or (at_end) ends at one; the page before and the page behind
 * it crash whoever touches them. NULL where there is none.
 */
void *standin_allocate(int device, size_t size, int at_end);

/* Gives it back at once, whatever may be queued: from now on the memory itself crashes whoever touches it. */
void standin_release(void *memory);

/* The device whose memory it is, or -1. */
int standin_device_of(const void *address);

/* A stream, which no other one waits for unless told to. A synchronous one runs all at once. */
void *standin_stream(int device, int is_synchronous);

/* The stream that NULL is on a device. */
void *standin_default_stream(int device);

/* Runs what is queued on a stream, or on all of them (NULL), and waits for its end. */
void standin_wait(void *stream);

/* What is queued on `later` from now on waits for what is queued on `earlier` now: an event recorded and waited for. */
void standin_follow(void *later, void *earlier);

/* A copy, queued on a stream, from and to any memory. */
void standin_copy(void *stream, void *to, const void *from, size_t size);

/*
 * Launches on the stream are noted and do not run, until the end, which returns the graph of them: NULL where a call came
 * between that is not allowed then. A graph may be launched often.
 */
void standin_begin_capture(void *stream);
void *standin_end_capture(void *stream);
void standin_launch_graph(void *graph, void *stream);

/*
 * From now on launches of AMD's code do not run the kernels' source, but are handed to `run` (NULL: the source again), with the code
 * object that was picked, and the arguments as it lays them out. tests/emulated runs the instructions.
 */
typedef void standin_run_code(const char *kernel, const void *code, size_t size, unsigned blocks, unsigned threads,
                              const void *arguments);
void standin_run_code_by(standin_run_code *run);

/* How many kernels ran to their end. */
unsigned long long standin_kernels_run(void);

/* How much memory was not given back, plus how often code was loaded onto a device that had it already. Printed when the process
 * ends, too. */
int standin_leaks(void);

#endif
