/* The kernels' code on a device: modules, loaded once at first use, and the functions in them. */
#ifndef FL_GPU_MODULE_H
#define FL_GPU_MODULE_H

#include "runtime.h"

/*
 * The function of a kernel, looked up at the first call, when the module of its family and dtypes is loaded too, if it is not yet.
 * The device is the thread's current one. A failure belongs to this device only and is found anew, the same, at each call.
 */
fuseline_status fl_module_function(struct fl_runtime *runtime, struct fl_device *device, const struct fl_operator *op,
                                   struct fl_types types, enum fl_mode mode, void **function);

/* "fl_swish_forward_float32_vector", or "fl_swish_forward_bfloat16_float32_vector" where the result's dtype is another. */
#define FL_KERNEL_NAME_SIZE 128
void fl_kernel_name(const struct fl_operator *op, struct fl_types types, enum fl_mode mode, char name[FL_KERNEL_NAME_SIZE]);

#endif
