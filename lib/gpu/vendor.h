/*
 * What is asked of a GPU vendor's runtime library, and what differs between the two vendors.
 *
 * Own declarations: neither vendor's headers are needed to build this library, and none of their libraries to link it.
 */
#ifndef FL_GPU_VENDOR_H
#define FL_GPU_VENDOR_H

#include <stddef.h>

#include "../tensor.h"

/*
 * The runtime's functions, by our names: symbols-hip.def and symbols-cuda.def say which is which. A result of 0 is success with
 * both. Modules, functions, streams and contexts are pointers with both; a CUDA device handle is an int.
 */
struct fl_functions {
    int (*init)(unsigned flags);
    int (*device_count)(int *count);
    int (*module_load)(void **module, const void *image);
    int (*module_function)(void **function, void *module, const char *name);
    int (*launch)(void *function, unsigned blocks_x, unsigned blocks_y, unsigned blocks_z, unsigned threads_x, unsigned threads_y,
                  unsigned threads_z, unsigned shared_bytes, void *stream, void **parameters, void **extra);
    /* HIP only */
    int (*get_device)(int *index);
    int (*set_device)(int index);
    const char *(*error_name)(int error);
    int (*take_last_error)(void); /* returns the thread's last error and clears it */
    int (*device_name)(char *name, int size, int index);
    int (*properties_6)(void *properties, int index);
    int (*properties_5)(void *properties, int index);
    /* CUDA only */
    int (*device_handle)(int *handle, int index);
    int (*device_attribute)(int *value, int attribute, int handle);
    int (*context_retain)(void **context, int handle);
    int (*context_get)(void **context);
    int (*context_push)(void *context);
    int (*context_pop)(void **context);
    int (*error_name_out)(int error, const char **name);
};

/* One row of a symbol list. */
struct fl_symbol {
    const char *name;
    size_t offset; /* in struct fl_functions */
    int required;
};
#define FL_REQUIRED 1
#define FL_OPTIONAL 0

/* A device's compute architecture: what code must have been built for. */
struct fl_architecture {
    char name[64]; /* "gfx1151", "sm_90"; the product's name where the runtime tells nothing better */
    int number;    /* CUDA: 10 * major + minor; 0 with HIP */
};

struct fl_vendor {
    enum fl_device_kind kind;
    const char *label;               /* for messages: "ROCm" */
    const char *option;              /* of configure, that adds code for an architecture */
    const char *file;                /* what the library's file name begins with */
    const char *const *sonames;      /* to try where none is loaded yet, newest first; ends in NULL */
    const struct fl_symbol *symbols; /* ends in a NULL name */

    /* The int results are errors of the runtime, 0 being success. */
    const char *(*error_name)(const struct fl_functions *functions, int error);
    int (*architecture)(const struct fl_functions *functions, int index, struct fl_architecture *architecture);
    /* Prepares a device for use, once. The context is kept until the process ends. */
    int (*open)(const struct fl_functions *functions, int index, void **context);
    /* Makes a device the thread's current one, unless it is, and puts back the one that was. */
    int (*enter)(const struct fl_functions *functions, int index, void *context, int *saved);
    int (*leave)(const struct fl_functions *functions, int saved);
};

extern const struct fl_vendor fl_vendor_hip, fl_vendor_cuda;

#endif
