#include <config.h>

#include "common.h"

/* A thread's stack of contexts; a device's primary context is the address of its name. */
static _Thread_local void *stack[8];
static _Thread_local int depth;

__attribute__((constructor)) static void set_up(void)
{
    standin.devices = 2;
    for (int k = 0; k < STANDIN_DEVICES; k++)
        strcpy(standin.architecture[k], "90");
}

static int current_device(void)
{
    for (int k = 0; depth > 0 && k < STANDIN_DEVICES; k++)
        if (stack[depth - 1] == standin.architecture[k])
            return k;
    return -1;
}

int cuInit(unsigned flags);
int cuInit(unsigned flags)
{
    return called(STANDIN_INIT) ? standin.fail[STANDIN_INIT] : flags != 0 ? STANDIN_INVALID_VALUE : 0;
}

int cuDeviceGetCount(int *count);
int cuDeviceGetCount(int *count)
{
    *count = standin.devices;
    return called(STANDIN_DEVICE_COUNT);
}

int cuDeviceGet(int *handle, int device);
int cuDeviceGet(int *handle, int device)
{
    *handle = device + 1000; /* a handle is not the index */
    return device < standin.devices ? 0 : STANDIN_INVALID_DEVICE;
}

int cuDeviceGetAttribute(int *value, int attribute, int handle);
int cuDeviceGetAttribute(int *value, int attribute, int handle)
{
    int capability = atoi(standin.architecture[handle - 1000]);
    *value = attribute == 75 ? capability / 10 : attribute == 76 ? capability % 10 : -1;
    return called(STANDIN_ARCHITECTURE);
}

int cuDevicePrimaryCtxRetain(void **context, int handle);
int cuDevicePrimaryCtxRetain(void **context, int handle)
{
    *context = standin.architecture[handle - 1000];
    return called(STANDIN_RETAIN_CONTEXT);
}

int cuCtxGetCurrent(void **context);
int cuCtxGetCurrent(void **context)
{
    *context = depth > 0 ? stack[depth - 1] : NULL;
    return called(STANDIN_GET_CURRENT);
}

int cuCtxPushCurrent_v2(void *context);
int cuCtxPushCurrent_v2(void *context)
{
    if (called(STANDIN_SET_CURRENT))
        return standin.fail[STANDIN_SET_CURRENT];
    stack[depth++] = context;
    return 0;
}

int cuCtxPopCurrent_v2(void **context);
int cuCtxPopCurrent_v2(void **context)
{
    if (called(STANDIN_POP_CURRENT))
        return standin.fail[STANDIN_POP_CURRENT];
    if (depth == 0)
        return STANDIN_INVALID_HANDLE;
    *context = stack[--depth];
    return 0;
}

/* Machine code is taken as it is; PTX must be text for this device or an older one. */
int cuModuleLoadData(void **module, const void *image);
int cuModuleLoadData(void **module, const void *image)
{
    const char *text = image, *target;
    if (called(STANDIN_LOAD))
        return standin.fail[STANDIN_LOAD];
    if (current_device() < 0)
        return STANDIN_INVALID_HANDLE;
    if (memcmp(text, "\177ELF", 4) == 0) {
        *module = new_module(current_device(), image, 1 << 12);
        return 0;
    }
    target = strstr(text, ".target sm_");
    if (target == NULL || atoi(target + strlen(".target sm_")) > atoi(standin.architecture[current_device()]))
        return STANDIN_NO_BINARY;
    *module = new_module(current_device(), image, strlen(text));
    return 0;
}

int cuModuleGetFunction(void **function, void *module, const char *name);
int cuModuleGetFunction(void **function, void *module, const char *name)
{
    return called(STANDIN_FUNCTION) ? standin.fail[STANDIN_FUNCTION] : find_function(function, module, name);
}

int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned tx, unsigned ty, unsigned tz,
                   unsigned shared_bytes, void *stream, void **parameters, void **extra);
int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned tx, unsigned ty, unsigned tz,
                   unsigned shared_bytes, void *stream, void **parameters, void **extra)
{
    (void)extra;
    if (called(STANDIN_LAUNCH))
        return standin.fail[STANDIN_LAUNCH];
    return launch(function, current_device(), (unsigned[]){x, y, z}, (unsigned[]){tx, ty, tz}, shared_bytes, stream, parameters);
}

int cuGetErrorName(int error, const char **name);
int cuGetErrorName(int error, const char **name)
{
    *name = error == 719 ? "CUDA_ERROR_LAUNCH_FAILED" : "CUDA_ERROR_OF_STANDIN";
    return 0;
}
