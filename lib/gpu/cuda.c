/* NVIDIA: libcuda, whose notion of where work goes is a thread's current context. The frameworks use each device's primary one. */
#include <stdio.h>

#include "vendor.h"

static const struct fl_symbol symbols[] = {
#define FL_SYMBOL(member, name, required) {name, offsetof(struct fl_functions, member), required},
#include "symbols-cuda.def"
#undef FL_SYMBOL
    {NULL, 0, 0}};

static const char *const sonames[] = {"libcuda.so.1", NULL};

static const char *error_name(const struct fl_functions *functions, int error)
{
    const char *name = NULL;
    return functions->error_name_out(error, &name) == 0 ? name : NULL;
}

#define ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR 75
#define ATTRIBUTE_COMPUTE_CAPABILITY_MINOR 76

static int architecture(const struct fl_functions *functions, int index, struct fl_architecture *architecture)
{
    int handle, major, minor, error;
    if ((error = functions->device_handle(&handle, index)) != 0 ||
        (error = functions->device_attribute(&major, ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, handle)) != 0 ||
        (error = functions->device_attribute(&minor, ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, handle)) != 0)
        return error;
    architecture->number = 10 * major + minor;
    snprintf(architecture->name, sizeof architecture->name, "sm_%d", architecture->number);
    return 0;
}

static int open(const struct fl_functions *functions, int index, void **context)
{
    int handle, error = functions->device_handle(&handle, index);
    return error != 0 ? error : functions->context_retain(context, handle);
}

static int enter(const struct fl_functions *functions, int index, void *context, int *saved)
{
    void *current = NULL;
    int error = functions->context_get(&current);
    (void)index;
    *saved = 0;
    if (error != 0 || current == context)
        return error;
    error = functions->context_push(context);
    *saved = error == 0;
    return error;
}

static int leave(const struct fl_functions *functions, int saved)
{
    void *popped;
    return saved ? functions->context_pop(&popped) : 0;
}

const struct fl_vendor fl_vendor_cuda = {
    .kind = FL_CUDA,
    .label = "CUDA",
    .option = "--with-ptx",
    .file = "libcuda.so",
    .sonames = sonames,
    .symbols = symbols,
    .error_name = error_name,
    .architecture = architecture,
    .open = open,
    .enter = enter,
    .leave = leave,
};
