/*
 * AMD's code: a clang offload bundle of code objects, which are ELF files with a note that describes their kernels (LLVM, "User Guide
 * for AMDGPU Backend"). Everything is read with the bounds checked, and nothing is believed that could be wrong.
 */
#ifndef STANDIN_CODE_OBJECT_H
#define STANDIN_CODE_OBJECT_H

#include <stddef.h>

#include "signature.h"

struct code_object {
    const unsigned char *data;
    size_t size;
};

/*
 * The code object for an architecture, such as "gfx90a:sramecc+:xnack-": of the same processor, and of the same features as far as
 * it names any; or of a generic target that covers the processor. From a bundle or a bare code object; of either the runtime is not told the length.
 *
 * Returns: 0; STANDIN_NO_BINARY where there is none; STANDIN_INVALID_IMAGE, with a message, where what there is is not for it
 */
int code_object_pick(const void *image, const char *architecture, struct code_object *code);

/* Returns: 0; STANDIN_NOT_FOUND where there is no such kernel; STANDIN_INVALID_IMAGE, with a message, where its parts disagree */
int code_object_kernel(const struct code_object *code, const char *name, struct signature *signature);

#endif
