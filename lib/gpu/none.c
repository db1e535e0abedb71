/* A build without GPU code: every GPU tensor gets one clear error. */
#include <fuseline/fuseline.h>

#include "gpu.h"

static fuseline_status refuse(const char *kind)
{
    return fl_fail(FUSELINE_ERROR_DEVICE, "tensors are on a %s device; accepted: CPU (this library was built without GPU code)",
                   kind);
}

fuseline_status fl_cuda_run(const struct fl_operator *op, struct fl_types types, int device_id,
                            const struct fl_arguments *arguments, const void *parameters, size_t parameters_size, void *stream)
{
    (void)op, (void)types, (void)device_id, (void)arguments, (void)parameters, (void)parameters_size, (void)stream;
    return refuse("CUDA");
}

fuseline_status fl_rocm_run(const struct fl_operator *op, struct fl_types types, int device_id,
                            const struct fl_arguments *arguments, const void *parameters, size_t parameters_size, void *stream)
{
    (void)op, (void)types, (void)device_id, (void)arguments, (void)parameters, (void)parameters_size, (void)stream;
    return refuse("ROCm");
}

void fl_gpu_info(struct fl_text *text)
{
    fl_text_add(text, "{\"targets\": [], \"runtime\": null, \"error\": \"built without GPU code\", \"devices\": []}");
}

fuseline_status fuseline_set_gpu_runtime(const char *path)
{
    (void)path;
    return FUSELINE_OK;
}
