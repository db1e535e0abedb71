/*
 * A library that stands in for a GPU vendor's runtime, for tests on machines without a GPU: it has some devices, keeps the rules
 * that the real one keeps where ours could break them, notes what it is asked, and fails on demand.
 *
 * Built twice, as libamdhip64.so and as libcuda.so. A test opens the file itself and gets the state by dlsym "standin"; it may
 * change everything in it before the library under test gets there.
 */
#ifndef STANDIN_H
#define STANDIN_H

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
    /* "gfx1151:sramecc-:xnack-" or "90": what each device is. */
    char architecture[STANDIN_DEVICES][32];
    int old_properties; /* HIP: the older structure is there, and not the newer */

    int count[STANDIN_CALLS]; /* of calls */
    int fail[STANDIN_CALLS];  /* the error that a call returns, 0 being none */
    int last_error;           /* HIP: as hipGetLastError would find it, set by every failed call */

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
#define STANDIN_INVALID_VALUE  1
#define STANDIN_INVALID_DEVICE 101
#define STANDIN_NO_BINARY      209
#define STANDIN_INVALID_HANDLE 400
#define STANDIN_NOT_FOUND      500

#endif
