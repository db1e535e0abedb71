#include <config.h>

#include <stdint.h>
#include <stdio.h>

#include "common.h"

static _Thread_local int current;

__attribute__((constructor)) static void set_up(void)
{
    standin.devices = 2;
    for (int k = 0; k < STANDIN_DEVICES; k++)
        strcpy(standin.architecture[k], "gfx1151");
}

int hipInit(unsigned flags);
int hipInit(unsigned flags)
{
    return called(STANDIN_INIT) ? standin.fail[STANDIN_INIT] : flags != 0 ? failed(STANDIN_INVALID_VALUE) : 0;
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
    if (called(STANDIN_SET_CURRENT))
        return standin.fail[STANDIN_SET_CURRENT];
    if (device < 0 || device >= standin.devices)
        return failed(STANDIN_INVALID_DEVICE);
    current = device;
    return 0;
}

/* The two layouts that there have been: where the architecture's name stands. */
static int properties(char *result, int device, size_t size, size_t offset)
{
    if (called(STANDIN_ARCHITECTURE))
        return standin.fail[STANDIN_ARCHITECTURE];
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

/* The entry of a clang offload bundle for the architecture, as the real runtime looks for it; features do not matter here. */
static int find_code(const char *bundle, const char *architecture, const char **code, size_t *size)
{
    static const char magic[] = "__CLANG_OFFLOAD_BUNDLE__";
    uint64_t entries, place[3];
    size_t length = strcspn(architecture, ":");
    if (memcmp(bundle, magic, strlen(magic)) != 0)
        return 0;
    memcpy(&entries, bundle + strlen(magic), sizeof entries);
    const char *entry = bundle + strlen(magic) + sizeof entries;
    for (uint64_t k = 0; k < entries; k++) {
        memcpy(place, entry, sizeof place); /* offset, size, length of the name */
        const char *name = entry + sizeof place, *end = name + place[2];
        if (place[2] > length && memcmp(end - length, architecture, length) == 0 && end[-(long)length - 1] == '-') {
            *code = bundle + place[0];
            *size = place[1];
            return 1;
        }
        entry = end;
    }
    return 0;
}

int hipModuleLoadData(void **module, const void *image);
int hipModuleLoadData(void **module, const void *image)
{
    const char *code;
    size_t size;
    if (called(STANDIN_LOAD))
        return standin.fail[STANDIN_LOAD];
    if (!find_code(image, standin.architecture[current], &code, &size))
        return failed(STANDIN_NO_BINARY);
    *module = new_module(current, code, size);
    return 0;
}

int hipModuleGetFunction(void **function, void *module, const char *name);
int hipModuleGetFunction(void **function, void *module, const char *name)
{
    return called(STANDIN_FUNCTION) ? standin.fail[STANDIN_FUNCTION] : find_function(function, module, name);
}

int hipModuleLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned tx, unsigned ty, unsigned tz,
                          unsigned shared_bytes, void *stream, void **parameters, void **extra);
int hipModuleLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned tx, unsigned ty, unsigned tz,
                          unsigned shared_bytes, void *stream, void **parameters, void **extra)
{
    (void)extra;
    if (called(STANDIN_LAUNCH))
        return standin.fail[STANDIN_LAUNCH];
    return launch(function, current, (unsigned[]){x, y, z}, (unsigned[]){tx, ty, tz}, shared_bytes, stream, parameters);
}

const char *hipGetErrorName(int error);
const char *hipGetErrorName(int error)
{
    return error == STANDIN_NO_BINARY ? "hipErrorNoBinaryForGpu" : error == 719 ? "hipErrorLaunchFailure" : "hipErrorOfStandin";
}

int hipGetLastError(void);
int hipGetLastError(void)
{
    int error = standin.last_error;
    called(STANDIN_TAKE_LAST_ERROR);
    standin.last_error = 0;
    return error;
}
