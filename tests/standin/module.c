#include <config.h>

#include "module.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grid.h"
#include "memory.h"
#include "stream.h"

#define SHARED_BYTES_MOST (64 << 10) /* of a block, on AMD's devices; NVIDIA's have no less when asked */

struct standin standin;

struct module {
    int device;
    const void *image, *code;
    size_t size;
    read_kernel *read;
    struct module *next;
};

struct function {
    const struct module *module;
    struct signature signature;
    const struct fl_host_kernel *kernel;
    char name[128];
    struct function *next;
};

/* Kept until the process ends, as the library under test keeps them. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct module *modules;
static struct function *functions;

void module_set_up(const char *otherwise)
{
    const char *list = getenv("STANDIN_DEVICES");
    for (int k = 0; k < STANDIN_DEVICES; k++)
        strcpy(standin.architecture[k], otherwise);
    standin.devices = 2;
    if (list == NULL)
        return;
    for (standin.devices = 0; *list != '\0' && standin.devices < STANDIN_DEVICES; standin.devices++) {
        size_t length = strcspn(list, ",");
        snprintf(standin.architecture[standin.devices], sizeof standin.architecture[0], "%.*s", (int)length, list);
        list += length + (list[length] == ',');
    }
}

int module_called(enum standin_call call)
{
    int number = __atomic_add_fetch(&standin.count[call], 1, __ATOMIC_RELAXED);
    return standin.fail_only[call] == 0 || standin.fail_only[call] == number ? standin.fail[call] : 0;
}

void *module_new(int device, const void *image, const void *code, size_t size, read_kernel *read)
{
    struct module *module = malloc(sizeof *module);
    pthread_mutex_lock(&lock);
    *module = (struct module){device, image, code, size, read, modules};
    modules = module;
    pthread_mutex_unlock(&lock);
    return module;
}

int standin_leaks(void)
{
    int leaks = memory_left();
    pthread_mutex_lock(&lock);
    for (const struct module *module = modules; module != NULL; module = module->next)
        for (const struct module *other = module->next; other != NULL; other = other->next)
            leaks += other->image == module->image && other->device == module->device;
    pthread_mutex_unlock(&lock);
    return leaks;
}

/* The kernel of a name, compiled for the host: it is in the very library that this code is in. */
static const struct fl_host_kernel *find_kernel(const char *name)
{
    static void *self;
    char symbol[160];
    Dl_info info;
    if (self == NULL && dladdr(&standin, &info) != 0)
        self = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    snprintf(symbol, sizeof symbol, "fl_host_%s", name);
    return self != NULL ? dlsym(self, symbol) : NULL;
}

int module_function(void **result, void *handle, const char *name)
{
    const struct module *module = handle;
    struct function *function = calloc(1, sizeof *function);
    int error = module->read(module->code, module->size, name, &function->signature);
    if (error == 0 && (function->kernel = find_kernel(name)) == NULL) {
        fprintf(stderr, "stand-in: not compiled for the host: %s\n", name);
        error = STANDIN_NOT_FOUND;
    }
    if (error != 0) {
        free(function);
        return error;
    }
    function->module = module;
    snprintf(function->name, sizeof function->name, "%s", name);
    pthread_mutex_lock(&lock);
    function->next = functions;
    functions = function;
    pthread_mutex_unlock(&lock);
    *result = function;
    return 0;
}

int module_host_signature(const char *name, struct signature *signature)
{
    const struct fl_host_kernel *kernel = find_kernel(name);
    if (kernel == NULL)
        return STANDIN_NOT_FOUND;
    *signature = (struct signature){.count = kernel->count, .threads_most = FL_BLOCK_THREADS, .lanes = 32};
    for (unsigned k = 0; k < kernel->count; k++) {
        signature->offsets[k] = signature->bytes;
        signature->sizes[k] = kernel->sizes[k];
        signature->bytes += (kernel->sizes[k] + 7) / 8 * 8;
    }
    return 0;
}

static int refuse(const struct function *function, const char *what)
{
    fprintf(stderr, "stand-in: %s: %s\n", function->name, what);
    return STANDIN_INVALID_VALUE;
}

/* The device's compiler and the host's see the same arguments. */
static int check_arguments(const struct function *function)
{
    const struct signature *device = &function->signature;
    const struct fl_host_kernel *host = function->kernel;
    if (device->count != host->count)
        return refuse(function, "the code has another number of arguments");
    for (unsigned k = 0; k < device->count; k++) {
        if (device->sizes[k] != host->sizes[k])
            return refuse(function, "an argument has another size in the code");
        if (device->offsets[k] + (size_t)device->sizes[k] > device->bytes || device->bytes > STREAM_ARGUMENT_BYTES ||
            (k > 0 && device->offsets[k] < device->offsets[k - 1] + device->sizes[k - 1]))
            return refuse(function, "arguments that do not lie one after the other");
    }
    return 0;
}

static int check_shape(const struct function *function, const unsigned blocks[3], const unsigned threads[3],
                       unsigned shared_bytes)
{
    const struct signature *device = &function->signature;
    unsigned long long of_block = (unsigned long long)threads[0] * threads[1] * threads[2];
    for (int k = 0; k < 3; k++) {
        if (blocks[k] == 0 || threads[k] == 0 || (unsigned long long)blocks[k] * threads[k] > 0xffffffffull)
            return refuse(function, "a grid of no threads, or of 2^32 or more in a row");
        if (k > 0 && (blocks[k] > 1 || threads[k] > 1))
            return refuse(function, "a grid of several dimensions, where kernels look at one");
    }
    if (blocks[0] > 0x7fffffffu)
        return refuse(function, "more than 2^31 - 1 blocks");
    if (of_block > device->threads_most || of_block > GRID_THREADS_MOST)
        return refuse(function, "more threads in a block than the code was compiled for");
    if (shared_bytes + (unsigned long long)device->shared_bytes > SHARED_BYTES_MOST)
        return refuse(function, "more shared memory than a block has");
    return 0;
}

static void note(const struct function *function, const unsigned blocks[3], const unsigned threads[3], unsigned shared_bytes,
                 void *stream, void **parameters)
{
    strcpy(standin.launch.kernel, function->name);
    standin.launch.device = function->module->device;
    memcpy(standin.launch.blocks, blocks, sizeof standin.launch.blocks);
    memcpy(standin.launch.threads, threads, sizeof standin.launch.threads);
    standin.launch.shared_bytes = shared_bytes;
    standin.launch.stream = stream;
    if (function->kernel->count == 3 &&
        function->kernel->sizes[0] == sizeof standin.launch.arguments) { /* one of the library's */
        unsigned size = function->kernel->sizes[2];
        memcpy(&standin.launch.arguments, parameters[0], sizeof standin.launch.arguments);
        memcpy(&standin.launch.division, parameters[1], sizeof standin.launch.division);
        memcpy(standin.launch.parameters, parameters[2],
               size < sizeof standin.launch.parameters ? size : sizeof standin.launch.parameters);
    }
}

static int ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), wanted = strlen(end);
    return length >= wanted && strcmp(text + length - wanted, end) == 0;
}

/* What the kernels' code for a device is compiled with. */
static const struct fl_tuning *tuning_of(const char *architecture)
{
    return fl_tuning_of(strncmp(architecture, "gfx", 3) == 0 ? architecture : "sm_");
}

int module_launch(void *handle, int current, const unsigned blocks[3], const unsigned threads[3], unsigned shared_bytes,
                  void *stream, void **parameters, void **extra)
{
    const struct function *function = handle;
    const struct signature *signature = &function->signature;
    struct stream *queue = current == function->module->device ? stream_of(stream, current) : NULL;
    struct launch launch = {.kernel = function->kernel,
                            .blocks = blocks[0],
                            .threads = threads[0],
                            .lanes = signature->lanes,
                            .tuning = tuning_of(standin.architecture[function->module->device])};
    int error;

    if (queue == NULL)
        return STANDIN_INVALID_HANDLE;
    if (parameters == NULL || extra != NULL)
        return refuse(function, "arguments in another way than one by one");
    if ((error = check_arguments(function)) != 0 || (error = check_shape(function, blocks, threads, shared_bytes)) != 0)
        return error;
    strcpy(launch.name, function->name);
    launch.code = function->module->code;
    launch.code_size = function->module->size;
    if (standin.blocks_most != 0 && launch.blocks > standin.blocks_most && !ends_with(function->name, "_vector"))
        launch.blocks = standin.blocks_most;
    memset(launch.arguments, 0xa5, sizeof launch.arguments);
    for (unsigned k = 0; k < signature->count; k++) {
        launch.offsets[k] = signature->offsets[k];
        memcpy(launch.arguments + launch.offsets[k], parameters[k], signature->sizes[k]);
    }
    pthread_mutex_lock(&lock);
    note(function, blocks, threads, shared_bytes, stream, parameters);
    pthread_mutex_unlock(&lock);
    stream_launch(queue, &launch);
    return 0;
}
