/* NVIDIA's PTX: what its text says of a kernel. */
#ifndef STANDIN_PTX_H
#define STANDIN_PTX_H

#include "signature.h"

/* Returns: 0; STANDIN_NOT_FOUND where there is no such kernel */
int ptx_kernel(const char *text, const char *name, struct signature *signature);

#endif
