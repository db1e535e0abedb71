/* What both runtimes do alike: calls that are counted and can fail, modules, functions, and launches that are checked. */
#ifndef STANDIN_MODULE_H
#define STANDIN_MODULE_H

#include <stddef.h>

#include "signature.h"
#include "standin.h"

extern struct standin standin;

/* Fills `architecture` of all devices with what the environment or, where it says nothing, `otherwise` has. */
void module_set_up(const char *otherwise);

/* Notes a call. Returns the error that it is to fail with, or 0. */
int module_called(enum standin_call call);

/* Keeps a module that was loaded: of an image, which code was picked of. `read` finds out about its kernels, by that code. */
typedef int read_kernel(const void *code, size_t size, const char *name, struct signature *signature);
void *module_new(int device, const void *image, const void *code, size_t size, read_kernel *read);

/* The function of a name, which needs code of that name, and a kernel of it that was compiled for the host. 0 or an error. */
int module_function(void **function, void *module, const char *name);

/* What the host's compiler says of a kernel, for code that cannot be read. 0 or an error. */
int module_host_signature(const char *name, struct signature *signature);

/*
 * Queues a launch, or returns an error: a function of another device than the current one; a stream that is none, or another
 * device's; a grid or block that no device takes, or that the code was not compiled for; arguments whose number, sizes or places
 * the device's compiler sees otherwise than the host's.
 */
int module_launch(void *function, int current, const unsigned blocks[3], const unsigned threads[3], unsigned shared_bytes,
                  void *stream, void **parameters, void **extra);

#endif
