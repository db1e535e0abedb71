/*
 * Calls on a framework's own Python objects, through the DLPack exchange table that its tensor type carries. No Python
 * symbol is linked: the table's functions do what needs Python.
 */
#include "operator.h"

#if DLPACK_MAJOR_VERSION > 1 || DLPACK_MINOR_VERSION >= 3

fuseline_status fl_run_objects(const struct fl_operator *op, const struct DLPackExchangeAPI *api, void *const *objects,
                               const struct fl_parameters *parameters)
{
    DLTensor tensors[FL_OPERANDS_MOST];
    const DLTensor *borrowed[FL_OPERANDS_MOST];
    void *stream = NULL;
    int count = op->inputs + op->outputs;

    if (api == NULL)
        return fl_fail(FUSELINE_ERROR_ARGUMENT, "api: is NULL");
    if (api->header.version.major != DLPACK_MAJOR_VERSION)
        return fl_fail(FUSELINE_ERROR_VERSION, "api: DLPack version is %u.%u; accepted: %d.x",
                       (unsigned)api->header.version.major, (unsigned)api->header.version.minor, DLPACK_MAJOR_VERSION);
    if (api->dltensor_from_py_object_no_sync == NULL || api->current_work_stream == NULL)
        return fl_fail(FUSELINE_ERROR_ARGUMENT, "api: lacks dltensor_from_py_object_no_sync or current_work_stream");
    for (int k = 0; k < count; k++) {
        if (objects[k] == NULL)
            return fl_fail(FUSELINE_ERROR_ARGUMENT, "%s: object is NULL", op->names[k]);
        if (api->dltensor_from_py_object_no_sync(objects[k], &tensors[k]) != 0)
            return fl_fail(FUSELINE_ERROR_EXCHANGE, "%s: the framework could not describe it as a DLPack tensor", op->names[k]);
        borrowed[k] = &tensors[k];
    }
    DLDevice device = tensors[0].device;
    if (device.device_type == kDLCUDA || device.device_type == kDLROCM || device.device_type == kDLCUDAManaged)
        if (api->current_work_stream(device.device_type, device.device_id, &stream) != 0)
            return fl_fail(FUSELINE_ERROR_EXCHANGE, "%s: the framework did not tell its current stream", op->names[0]);
    return fl_run(op, borrowed, parameters, stream);
}

#else

fuseline_status fl_run_objects(const struct fl_operator *op, const struct DLPackExchangeAPI *api, void *const *objects,
                               const struct fl_parameters *parameters)
{
    (void)op, (void)api, (void)objects, (void)parameters;
    return fl_fail(FUSELINE_ERROR_VERSION,
                   "api: this library was built with DLPack %d.%d, which has no exchange table; accepted: 1.3",
                   DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION);
}

#endif
