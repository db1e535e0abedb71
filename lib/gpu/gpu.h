/* The GPU side, as the dispatcher and the info call see it. */
#ifndef FL_GPU_H
#define FL_GPU_H

#include "../operator.h"
#include "../text.h"

/*
 * Launches one kernel on `stream` of the device and returns at once. Never synchronises or allocates device memory once the
 * operator's module is loaded, which happens at its first use on a device.
 */
fuseline_status fl_cuda_run(const struct fl_operator *op, struct fl_types types, int device_id,
                            const struct fl_arguments *arguments, const void *parameters, size_t parameters_size, void *stream);
fuseline_status fl_rocm_run(const struct fl_operator *op, struct fl_types types, int device_id,
                            const struct fl_arguments *arguments, const void *parameters, size_t parameters_size, void *stream);

/* Adds the value of "gpu" in fuseline_info, a JSON object. Loads a runtime if none is. */
void fl_gpu_info(struct fl_text *text);

#endif
