#include <config.h>

#include <stdio.h>
#include <string.h>

#include "code_object.h"
#include "module.h"
#include "stream.h"

static _Thread_local int current;

/* As hipGetLastError finds it: set by every failed call, and kept by those that succeed, as ROCm 7 has it. */
static _Thread_local int last_error;

__attribute__((constructor)) static void set_up(void)
{
    module_set_up("gfx1151");
}

static int failed(int error)
{
    if (error != 0)
        last_error = error;
    return error;
}

/* Without a device every call fails, each with an error of another name: so do AMD's own runtimes, old and new. */
static int called(enum standin_call call)
{
    int error = module_called(call);
    return failed(error != 0 || standin.devices > 0 ? error : STANDIN_NO_DEVICE);
}

int hipInit(unsigned flags);
int hipInit(unsigned flags)
{
    int error = called(STANDIN_INIT);
    if (error == STANDIN_NO_DEVICE)
        return failed(STANDIN_INVALID_DEVICE);
    return error != 0 ? error : flags != 0 ? failed(STANDIN_INVALID_VALUE) : 0;
}

int hipGetDeviceCount(int *count);
int hipGetDeviceCount(int *count)
{
    *count = standin.devices;
    return called(STANDIN_DEVICE_COUNT);
}

int hipGetDevice(int *device);
int hipGetDevice(int *device)
{
    *device = current;
    return called(STANDIN_GET_CURRENT);
}

int hipSetDevice(int device);
int hipSetDevice(int device)
{
    int error = called(STANDIN_SET_CURRENT);
    if (error != 0)
        return error;
    if (device < 0 || device >= standin.devices)
        return failed(STANDIN_INVALID_DEVICE);
    current = device;
    return 0;
}

/* The two layouts that there have been: where the architecture's name stands. */
static int properties(char *result, int device, size_t size, size_t offset)
{
    int error = called(STANDIN_ARCHITECTURE);
    if (error != 0)
        return error;
    memset(result, 0, size);
    strcpy(result, "Stand-in GPU");
    strcpy(result + offset, standin.architecture[device]);
    return 0;
}

int hipGetDevicePropertiesR0600(void *result, int device);
int hipGetDevicePropertiesR0600(void *result, int device)
{
    return standin.old_properties ? failed(STANDIN_INVALID_VALUE) : properties(result, device, 1472, 1160);
}

int hipGetDeviceProperties(void *result, int device);
int hipGetDeviceProperties(void *result, int device)
{
    return standin.old_properties ? properties(result, device, 792, 396) : failed(STANDIN_INVALID_VALUE);
}

int hipDeviceGetName(char *name, int size, int device);
int hipDeviceGetName(char *name, int size, int device)
{
    snprintf(name, (size_t)size, "Stand-in GPU %d", device);
    return 0;
}

static int read_code(const void *code, size_t size, const char *name, struct signature *signature)
{
    return code_object_kernel(&(struct code_object){code, size}, name, signature);
}

/* Loading allocates, which a capture does not allow; nor does any capture go on after it. */
int hipModuleLoadData(void **module, const void *image);
int hipModuleLoadData(void **module, const void *image)
{
    struct code_object code;
    int error = called(STANDIN_LOAD);
    if (error == 0 && stream_breaks_capture())
        error = STANDIN_CAPTURE_UNSUPPORTED;
    if (error == 0)
        error = code_object_pick(image, standin.architecture[current], &code);
    if (error == 0)
        *module = module_new(current, image, code.data, code.size, read_code);
    return failed(error);
}

int hipModuleGetFunction(void **function, void *module, const char *name);
int hipModuleGetFunction(void **function, void *module, const char *name)
{
    int error = called(STANDIN_FUNCTION);
    return error != 0 ? error : failed(module_function(function, module, name));
}

int hipModuleLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned tx, unsigned ty, unsigned tz,
                          unsigned shared_bytes, void *stream, void **parameters, void **extra);
int hipModuleLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned tx, unsigned ty, unsigned tz,
                          unsigned shared_bytes, void *stream, void **parameters, void **extra)
{
    int error = called(STANDIN_LAUNCH);
    return error != 0 ? error
                      : failed(module_launch(function, current, (unsigned[]){x, y, z}, (unsigned[]){tx, ty, tz}, shared_bytes,
                                             stream, parameters, extra));
}

const char *hipGetErrorName(int error);
const char *hipGetErrorName(int error)
{
    switch (error) {
    case STANDIN_INVALID_VALUE:
        return "hipErrorInvalidValue";
    case STANDIN_NO_DEVICE:
        return "hipErrorNoDevice";
    case STANDIN_INVALID_DEVICE:
        return "hipErrorInvalidDevice";
    case STANDIN_INVALID_IMAGE:
        return "hipErrorInvalidImage";
    case STANDIN_NO_BINARY:
        return "hipErrorNoBinaryForGpu";
    case STANDIN_INVALID_HANDLE:
        return "hipErrorInvalidHandle";
    case STANDIN_NOT_FOUND:
        return "hipErrorNotFound";
    case 719:
        return "hipErrorLaunchFailure";
    case STANDIN_CAPTURE_UNSUPPORTED:
        return "hipErrorStreamCaptureUnsupported";
    default:
        return "hipErrorOfStandin";
    }
}

int hipGetLastError(void);
int hipGetLastError(void)
{
    int error = last_error;
    module_called(STANDIN_TAKE_LAST_ERROR);
    last_error = 0;
    return error;
}

int hipPeekAtLastError(void);
int hipPeekAtLastError(void)
{
    return last_error;
}

/* What a program that has no framework calls: memory, copies, and waiting for all that is queued. */
int hipMalloc(void **memory, size_t size);
int hipMalloc(void **memory, size_t size)
{
    *memory = standin_allocate(current, size, 0);
    return failed(*memory != NULL ? 0 : STANDIN_INVALID_VALUE);
}

int hipFree(void *memory);
int hipFree(void *memory)
{
    standin_wait(NULL);
    standin_release(memory);
    return 0;
}

int hipDeviceSynchronize(void);
int hipDeviceSynchronize(void)
{
    standin_wait(NULL);
    return 0;
}

int hipMemcpy(void *to, const void *from, size_t size, int kind);
int hipMemcpy(void *to, const void *from, size_t size, int kind)
{
    (void)kind;
    standin_copy(standin_default_stream(current), to, from, size);
    standin_wait(standin_default_stream(current));
    return 0;
}
