/*
 * Calls on a framework's own Python objects, through the DLPack exchange table that its tensor type carries. No Python
 * symbol is linked: the table's functions do what needs Python.
 */
#include "operator.h"

#if DLPACK_MAJOR_VERSION > 1 || DLPACK_MINOR_VERSION >= 3

fuseline_status fl_run_objects(const struct fl_call *call, const struct DLPackExchangeAPI *api, void *const *objects)
{
    DLTensor tensors[FL_TENSORS_MOST];
    const DLTensor *borrowed[FL_TENSORS_MOST] = {NULL};
    void *stream = NULL;

    if (api == NULL)
        return fl_fail(FUSELINE_ERROR_ARGUMENT, "api: is NULL");
    if (api->header.version.major != DLPACK_MAJOR_VERSION)
        return fl_fail(FUSELINE_ERROR_VERSION, "api: DLPack version is %u.%u; accepted: %d.x",
                       (unsigned)api->header.version.major, (unsigned)api->header.version.minor, DLPACK_MAJOR_VERSION);
    if (api->dltensor_from_py_object_no_sync == NULL || api->current_work_stream == NULL)
        return fl_fail(FUSELINE_ERROR_ARGUMENT, "api: lacks dltensor_from_py_object_no_sync or current_work_stream");
    for (int k = 0; k < call->tensors; k++) {
        if (objects[k] == NULL)
            continue; /* optional, or the checker says so */
        if (api->dltensor_from_py_object_no_sync(objects[k], &tensors[k]) != 0)
            return fl_fail(FUSELINE_ERROR_EXCHANGE, "%s: the framework could not describe it as a DLPack tensor", call->names[k]);
        borrowed[k] = &tensors[k];
    }
    if (borrowed[0] == NULL)
        return fl_run(call, borrowed, NULL);
    DLDevice device = tensors[0].device;
    if (device.device_type == kDLCUDA || device.device_type == kDLROCM || device.device_type == kDLCUDAManaged)
        if (api->current_work_stream(device.device_type, device.device_id, &stream) != 0)
            return fl_fail(FUSELINE_ERROR_EXCHANGE, "%s: the framework did not tell its current stream", call->names[0]);
    return fl_run(call, borrowed, stream);
}

#else

fuseline_status fl_run_objects(const struct fl_call *call, const struct DLPackExchangeAPI *api, void *const *objects)
{
    (void)call, (void)api, (void)objects;
    return fl_fail(FUSELINE_ERROR_VERSION,
                   "api: this library was built with DLPack %d.%d, which has no exchange table; accepted: 1.3",
                   DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION);
}

#endif
