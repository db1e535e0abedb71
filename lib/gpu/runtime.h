/* A GPU runtime in use, and its devices. */
#ifndef FL_GPU_RUNTIME_H
#define FL_GPU_RUNTIME_H

#include <pthread.h>
#include <stdatomic.h>

#include "../operator.h"
#include "geometry.h"
#include "vendor.h"

struct fl_device {
    int index;
    atomic_int ready; /* what follows is set */
    void *context;
    struct fl_architecture architecture;
    const struct fl_tuning *tuning;
    _Atomic(void *) functions[FL_OPERATORS][FL_DTYPES][FL_DTYPES]
                             [FL_MODES];               /* by operand's and result's dtype; NULL until looked up; see module.h */
    void *modules[FL_OPERATORS][FL_DTYPES][FL_DTYPES]; /* at a family's first operator; guarded by fl_gpu_lock */
};

struct fl_runtime {
    const struct fl_vendor *vendor;
    void *handle; /* of its library, as dlopen gives it */
    struct fl_functions functions;
    const char *path; /* of the library's file */
    int device_count;
    struct fl_device *devices;
};

/* Guards whatever happens once: finding a runtime, opening a device, loading a module. */
extern pthread_mutex_t fl_gpu_lock;

/*
 * The runtime of a kind of device, found and initialised at the first call. Failures are not remembered: a runtime may come
 * later, with a framework that is imported then. That a runtime has no device is no failure; that another copy of it has been
 * loaded since is one, unless somebody names the one to use. In a child of a process that had used the GPU it is an error,
 * always: neither vendor's runtime survives fork.
 */
fuseline_status fl_runtime_get(const struct fl_vendor *vendor, struct fl_runtime **runtime);

/* A device of it, opened at the first call. */
fuseline_status fl_runtime_device(struct fl_runtime *runtime, int index, struct fl_device **device);

/*
 * Reports an error of the runtime's: what failed (a format and its arguments), the error's name and number, the runtime's path.
 * Also clears the thread's last error, so that the caller's next check of it does not find ours.
 */
fuseline_status fl_runtime_fail(const struct fl_runtime *runtime, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Clears the thread's last error, where the runtime keeps one, after a failed call of ours. */
void fl_runtime_forget_error(const struct fl_runtime *runtime);

#endif
