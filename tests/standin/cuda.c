#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "grid.h"
#include "module.h"
#include "ptx.h"
#include "stream.h"

/* A thread's stack of contexts; a device's primary context is the address of its name. */
static _Thread_local void *stack[8];
static _Thread_local int depth;

__attribute__((constructor)) static void set_up(void)
{
    module_set_up("90");
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
    int error = module_called(STANDIN_INIT);
    return error != 0 ? error : standin.devices == 0 ? STANDIN_NO_DEVICE : flags != 0 ? STANDIN_INVALID_VALUE : 0;
}

int cuDeviceGetCount(int *count);
int cuDeviceGetCount(int *count)
{
    int error = module_called(STANDIN_DEVICE_COUNT);
    *count = standin.devices;
    return error != 0 || standin.devices > 0 ? error : STANDIN_NOT_INITIALIZED;
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
    return module_called(STANDIN_ARCHITECTURE);
}

int cuDevicePrimaryCtxRetain(void **context, int handle);
int cuDevicePrimaryCtxRetain(void **context, int handle)
{
    *context = standin.architecture[handle - 1000];
    return module_called(STANDIN_RETAIN_CONTEXT);
}

int cuCtxGetCurrent(void **context);
int cuCtxGetCurrent(void **context)
{
    *context = depth > 0 ? stack[depth - 1] : NULL;
    return module_called(STANDIN_GET_CURRENT);
}

int cuCtxPushCurrent_v2(void *context);
int cuCtxPushCurrent_v2(void *context)
{
    int error = module_called(STANDIN_SET_CURRENT);
    if (error != 0)
        return error;
    stack[depth++] = context;
    return 0;
}

int cuCtxPopCurrent_v2(void **context);
int cuCtxPopCurrent_v2(void **context)
{
    int error = module_called(STANDIN_POP_CURRENT);
    if (error != 0)
        return error;
    if (depth == 0)
        return STANDIN_INVALID_HANDLE;
    *context = stack[--depth];
    return 0;
}

/* Machine code is not read: its kernels are taken to be as the host's compiler has them. */
static int read_machine_code(const void *code, size_t size, const char *name, struct signature *signature)
{
    if (memmem(code, size, name, strlen(name)) == NULL)
        return STANDIN_NOT_FOUND;
    return module_host_signature(name, signature);
}

static int read_ptx(const void *code, size_t size, const char *name, struct signature *signature)
{
    (void)size;
    return ptx_kernel(code, name, signature);
}

/* PTX must be text for this device or an older one. Loading is not allowed while a stream is captured. */
int cuModuleLoadData(void **module, const void *image);
int cuModuleLoadData(void **module, const void *image)
{
    const char *text = image, *target;
    int error = module_called(STANDIN_LOAD);
    if (error != 0)
        return error;
    if (stream_breaks_capture())
        return STANDIN_CAPTURE_UNSUPPORTED;
    if (current_device() < 0)
        return STANDIN_INVALID_HANDLE;
    if (memcmp(text, "\177ELF", 4) == 0) {
        *module = module_new(current_device(), image, image, 1 << 12, read_machine_code);
        return 0;
    }
    target = strstr(text, ".target sm_");
    if (target == NULL || atoi(target + strlen(".target sm_")) > atoi(standin.architecture[current_device()]))
        return STANDIN_NO_BINARY;
    *module = module_new(current_device(), image, image, strlen(text), read_ptx);
    return 0;
}

int cuModuleGetFunction(void **function, void *module, const char *name);
int cuModuleGetFunction(void **function, void *module, const char *name)
{
    int error = module_called(STANDIN_FUNCTION);
    return error != 0 ? error : module_function(function, module, name);
}

int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned tx, unsigned ty, unsigned tz,
                   unsigned shared_bytes, void *stream, void **parameters, void **extra);
int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned tx, unsigned ty, unsigned tz,
                   unsigned shared_bytes, void *stream, void **parameters, void **extra)
{
    int error = module_called(STANDIN_LAUNCH);
    return error != 0 ? error
                      : module_launch(function, current_device(), (unsigned[]){x, y, z}, (unsigned[]){tx, ty, tz}, shared_bytes,
                                      stream, parameters, extra);
}

int cuGetErrorName(int error, const char **name);
int cuGetErrorName(int error, const char **name)
{
    *name = error == STANDIN_NO_BINARY             ? "CUDA_ERROR_NO_BINARY_FOR_GPU"
            : error == STANDIN_CAPTURE_UNSUPPORTED ? "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"
            : error == 719                         ? "CUDA_ERROR_LAUNCH_FAILED"
                                                   : "CUDA_ERROR_OF_STANDIN";
    return 0;
}
