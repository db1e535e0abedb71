/* What both stand-ins do alike. Defines the state. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "standin.h"

struct standin standin;

/* Notes a call; nonzero if it is to fail. */
static int called(enum standin_call call)
{
    __atomic_fetch_add(&standin.count[call], 1, __ATOMIC_RELAXED);
    if (standin.fail[call] != 0)
        standin.last_error = standin.fail[call];
    return standin.fail[call];
}

static int failed(int error)
{
    standin.last_error = error;
    return error;
}

struct module {
    int device;
    const char *image;
    size_t size;
};

struct function {
    struct module *module;
    char name[128];
};

/* Kept until the process ends, as the library under test keeps them. */
static struct module modules[STANDIN_DEVICES * 8];
static struct function functions[STANDIN_DEVICES * 8];
static atomic_int module_count, function_count;

static struct module *new_module(int device, const void *image, size_t size)
{
    struct module *module = &modules[module_count++];
    *module = (struct module){device, image, size};
    return module;
}

/* The name must stand in the image, as in a symbol table or in PTX. */
static int find_function(void **result, struct module *module, const char *name)
{
    if (memmem(module->image, module->size, name, strlen(name)) == NULL)
        return failed(STANDIN_NOT_FOUND);
    struct function *function = &functions[function_count++];
    function->module = module;
    strcpy(function->name, name);
    *result = function;
    return 0;
}

static int launch(const struct function *function, int current, const unsigned blocks[3], const unsigned threads[3],
                  unsigned shared_bytes, void *stream, void **parameters)
{
    unsigned long long all = (unsigned long long)blocks[0] * blocks[1] * blocks[2] * threads[0] * threads[1] * threads[2];
    if (function->module->device != current)
        return failed(STANDIN_INVALID_HANDLE);
    if (all == 0 || all > 0xffffffffull || blocks[0] > 0x7fffffffu)
        return failed(STANDIN_INVALID_VALUE);
    strcpy(standin.launch.kernel, function->name);
    standin.launch.device = current;
    memcpy(standin.launch.blocks, blocks, sizeof standin.launch.blocks);
    memcpy(standin.launch.threads, threads, sizeof standin.launch.threads);
    standin.launch.shared_bytes = shared_bytes;
    standin.launch.stream = stream;
    memcpy(&standin.launch.arguments, parameters[0], sizeof standin.launch.arguments);
    memcpy(&standin.launch.division, parameters[1], sizeof standin.launch.division);
    memcpy(standin.launch.parameters, parameters[2], sizeof standin.launch.parameters);
    return 0;
}
