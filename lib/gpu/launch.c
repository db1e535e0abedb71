/* One launch, on the caller's stream, with the caller's current device left as it was. */
#include "geometry.h"
#include "gpu.h"
#include "images.h"
#include "module.h"
#include "runtime.h"

static int has_code(enum fl_device_kind kind)
{
    for (int k = 0; fl_image_targets[k] != NULL; k++)
        if (fl_image_target_is_for(kind, fl_image_targets[k]))
            return 1;
    return 0;
}

/* The device is current. */
static fuseline_status launch(struct fl_runtime *runtime, struct fl_device *device, const struct fl_operator *op,
                              struct fl_types types, const struct fl_arguments *arguments, const void *parameters, void *stream)
{
    struct fl_geometry geometry = fl_geometry(arguments, op, types, device->tuning);
    void *function, *kernel_parameters[] = {(void *)arguments, &geometry.division, (void *)parameters};

    FL_TRY(fl_module_function(runtime, device, op, types, geometry.mode, &function));
    int error =
        runtime->functions.launch(function, geometry.blocks, 1, 1, FL_BLOCK_THREADS, 1, 1, 0, stream, kernel_parameters, NULL);
    if (__builtin_expect(error != 0, 0)) {
        char name[FL_KERNEL_NAME_SIZE];
        fl_kernel_name(op, types, geometry.mode, name);
        return fl_runtime_fail(runtime, error, "launching %s on %s device %d", name, runtime->vendor->label, device->index);
    }
    return FUSELINE_OK;
}

static fuseline_status run(const struct fl_vendor *vendor, const struct fl_operator *op, struct fl_types types, int device_id,
                           const struct fl_arguments *arguments, const void *parameters, void *stream)
{
    struct fl_runtime *runtime;
    struct fl_device *device;
    int saved, error;

    if (arguments->columns == 0)
        return FUSELINE_OK;
    if (!has_code(vendor->kind))
        return fl_fail(
            FUSELINE_ERROR_DEVICE,
            "tensors are on %s device %d, but this library was built without any %s code; configure's option %s adds it",
            vendor->label, device_id, vendor->label, vendor->option);
    FL_TRY(fl_runtime_get(vendor, &runtime));
    FL_TRY(fl_runtime_device(runtime, device_id, &device));
    if ((error = vendor->enter(&runtime->functions, device_id, device->context, &saved)) != 0)
        return fl_runtime_fail(runtime, error, "making %s device %d the current one", vendor->label, device_id);
    fuseline_status status = launch(runtime, device, op, types, arguments, parameters, stream);
    if ((error = vendor->leave(&runtime->functions, saved)) != 0 && status == FUSELINE_OK)
        return fl_runtime_fail(runtime, error, "restoring the current %s device", vendor->label);
    return status;
}

fuseline_status fl_cuda_run(const struct fl_operator *op, struct fl_types types, int device_id,
                            const struct fl_arguments *arguments, const void *parameters, size_t parameters_size, void *stream)
{
    (void)parameters_size;
    return run(&fl_vendor_cuda, op, types, device_id, arguments, parameters, stream);
}

fuseline_status fl_rocm_run(const struct fl_operator *op, struct fl_types types, int device_id,
                            const struct fl_arguments *arguments, const void *parameters, size_t parameters_size, void *stream)
{
    (void)parameters_size;
    return run(&fl_vendor_hip, op, types, device_id, arguments, parameters, stream);
}
