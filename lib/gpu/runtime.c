#include <config.h>

#include "runtime.h"

#include <fuseline/fuseline.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "find.h"

pthread_mutex_t fl_gpu_lock = PTHREAD_MUTEX_INITIALIZER;

static struct fl_runtime runtimes[FL_DEVICE_KINDS];
static atomic_int ready[FL_DEVICE_KINDS];
static atomic_ullong loads[FL_DEVICE_KINDS]; /* how many libraries were loaded when there was one copy of the runtime */
static atomic_int started;                   /* a runtime's initialisation has begun in this process */
static atomic_int forked;                    /* ... and this process is a child of that one */

static void note_fork(void)
{
    if (started)
        forked = 1;
    /* Whichever thread held it is not in this process. */
    pthread_mutex_init(&fl_gpu_lock, NULL);
}

void fl_runtime_forget_error(const struct fl_runtime *runtime)
{
    if (runtime->functions.take_last_error != NULL)
        runtime->functions.take_last_error();
}

/* Errors from here on say that a device or its context is broken, which may have happened to work issued earlier. */
#define FIRST_LASTING_ERROR 700
#define LAST_LASTING_ERROR  720

fuseline_status fl_runtime_fail(const struct fl_runtime *runtime, int error, const char *format, ...)
{
    char what[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    const char *name = runtime->vendor->error_name(&runtime->functions, error);
    fl_runtime_forget_error(runtime);
    int lasting = error >= FIRST_LASTING_ERROR && error <= LAST_LASTING_ERROR;
    return fl_fail(FUSELINE_ERROR_RUNTIME, "%s failed with %s (%d) of %s%s", what, name != NULL ? name : "an unnamed error",
                   error, runtime->path, lasting ? "; earlier work on the device may have caused it" : "");
}

/* hipErrorNoDevice, CUDA_ERROR_NO_DEVICE. */
#define NO_DEVICE 100

/*
 * Initialises the runtime and counts its devices. Where there are none both calls fail: CUDA's first, with that reason; ROCm's
 * first with hipErrorInvalidDevice, which may mean anything, so that its second tells. That is a count of 0 and no error.
 */
static fuseline_status count_devices(struct fl_runtime *runtime)
{
    int count = 0, initialised = runtime->functions.init(0), counted = runtime->functions.device_count(&count);
    runtime->device_count = 0;
    if (initialised == NO_DEVICE || counted == NO_DEVICE) {
        fl_runtime_forget_error(runtime);
        return FUSELINE_OK;
    }
    if (initialised != 0)
        return fl_runtime_fail(runtime, initialised, "initialising the %s runtime", runtime->vendor->label);
    if (counted != 0)
        return fl_runtime_fail(runtime, counted, "counting the %s devices", runtime->vendor->label);
    runtime->device_count = count;
    return FUSELINE_OK;
}

/* Finds, loads and initialises. Under the lock. */
static fuseline_status start(struct fl_runtime *runtime)
{
    static int watching;

    FL_TRY(fl_find_library(runtime->vendor, &runtime->handle));
    FL_TRY(fl_find_functions(runtime->vendor, runtime->handle, &runtime->functions, &runtime->path));

    if (!watching && pthread_atfork(NULL, NULL, note_fork) != 0)
        return fl_fail(FUSELINE_ERROR_MEMORY, "out of memory");
    watching = 1;
    started = 1;
    FL_TRY(count_devices(runtime));
    runtime->devices = calloc((size_t)runtime->device_count + 1, sizeof *runtime->devices);
    if (runtime->devices == NULL)
        return fl_fail(FUSELINE_ERROR_MEMORY, "out of memory");
    for (int k = 0; k < runtime->device_count; k++)
        runtime->devices[k].index = k;
    return FUSELINE_OK;
}

fuseline_status fl_runtime_get(const struct fl_vendor *vendor, struct fl_runtime **result)
{
    struct fl_runtime *runtime = &runtimes[vendor->kind];
    fuseline_status status = FUSELINE_OK;

    *result = runtime;
    int is_ready = atomic_load_explicit(&ready[vendor->kind], memory_order_acquire);
    if (__builtin_expect(atomic_load_explicit(&forked, memory_order_relaxed), 0) && !(is_ready && runtime->device_count == 0))
        return fl_fail(FUSELINE_ERROR_RUNTIME,
                       "the GPU was used before this process was forked, and no GPU runtime survives a fork; "
                       "use the GPU only after forking, or start the process by spawning it");
    unsigned long long loads_now = fl_find_loads();
    if (__builtin_expect(is_ready && atomic_load_explicit(&loads[vendor->kind], memory_order_relaxed) == loads_now, 1))
        return FUSELINE_OK;
    pthread_mutex_lock(&fl_gpu_lock);
    if (!ready[vendor->kind]) {
        runtime->vendor = vendor;
        status = start(runtime);
        if (status == FUSELINE_OK)
            atomic_store_explicit(&ready[vendor->kind], 1, memory_order_release);
    } else if ((status = fl_find_again(vendor, runtime->handle, runtime->path)) == FUSELINE_OK) {
        atomic_store_explicit(&loads[vendor->kind], loads_now, memory_order_relaxed);
    }
    pthread_mutex_unlock(&fl_gpu_lock);
    return status;
}

static fuseline_status open_device(struct fl_runtime *runtime, struct fl_device *device)
{
    const struct fl_vendor *vendor = runtime->vendor;
    int error = vendor->architecture(&runtime->functions, device->index, &device->architecture);
    if (error == 0)
        error = vendor->open(&runtime->functions, device->index, &device->context);
    if (error != 0)
        return fl_runtime_fail(runtime, error, "opening %s device %d", vendor->label, device->index);
    device->tuning = fl_tuning_of(device->architecture.name);
    return FUSELINE_OK;
}

fuseline_status fl_runtime_device(struct fl_runtime *runtime, int index, struct fl_device **result)
{
    fuseline_status status = FUSELINE_OK;

    if (index >= runtime->device_count)
        return fl_fail(FUSELINE_ERROR_DEVICE, "tensors are on %s device %d, but %s shows %d device(s), counted from 0",
                       runtime->vendor->label, index, runtime->path, runtime->device_count);
    struct fl_device *device = *result = &runtime->devices[index];
    if (__builtin_expect(atomic_load_explicit(&device->ready, memory_order_acquire), 1))
        return FUSELINE_OK;
    pthread_mutex_lock(&fl_gpu_lock);
    if (!device->ready) {
        status = open_device(runtime, device);
        if (status == FUSELINE_OK)
            atomic_store_explicit(&device->ready, 1, memory_order_release);
    }
    pthread_mutex_unlock(&fl_gpu_lock);
    return status;
}

fuseline_status fuseline_set_gpu_runtime(const char *path)
{
    fuseline_status status = FUSELINE_OK;
    pthread_mutex_lock(&fl_gpu_lock);
    for (int kind = 0; kind < FL_DEVICE_KINDS && path != NULL && status == FUSELINE_OK; kind++)
        if (ready[kind] && fl_find_may_be(runtimes[kind].vendor, path) && !fl_find_is(path, runtimes[kind].handle))
            status = fl_fail(FUSELINE_ERROR_RUNTIME, "path: is %s, but %s is in use already; accepted: before the first GPU call",
                             path, runtimes[kind].path);
    if (status == FUSELINE_OK)
        status = fl_find_set_hint(path);
    pthread_mutex_unlock(&fl_gpu_lock);
    return status;
}
