/* The entries that take ownership: whatever happens, each tensor's deleter runs exactly once. */
#include "operator.h"

/* True if tensors[k] stands earlier in the list too: an output that is its input, say. */
static int is_repeated(void *const *tensors, int k)
{
    for (int earlier = 0; earlier < k; earlier++)
        if (tensors[earlier] == tensors[k])
            return 1;
    return 0;
}

fuseline_status fl_run_managed(const struct fl_call *call, fuseline_status ready, DLManagedTensor *const *tensors, void *stream)
{
    const DLTensor *borrowed[FL_TENSORS_MOST] = {NULL};
    int count = call->tensors;
    fuseline_status status = ready;

    if (status == FUSELINE_OK) {
        for (int k = 0; k < count; k++)
            borrowed[k] = tensors[k] != NULL ? &tensors[k]->dl_tensor : NULL;
        status = fl_run(call, borrowed, stream);
    }
    for (int k = 0; k < count; k++)
        if (tensors[k] != NULL && !is_repeated((void *const *)tensors, k) && tensors[k]->deleter != NULL)
            tensors[k]->deleter(tensors[k]);
    return status;
}

static fuseline_status check_versioned(const DLManagedTensorVersioned *tensor, const char *name, int is_output)
{
    if (tensor == NULL)
        return FUSELINE_OK; /* the checker says so */
    if (tensor->version.major != DLPACK_MAJOR_VERSION)
        return fl_fail(FUSELINE_ERROR_VERSION, "%s: DLPack version is %u.%u; accepted: %d.x", name,
                       (unsigned)tensor->version.major, (unsigned)tensor->version.minor, DLPACK_MAJOR_VERSION);
    if (is_output && (tensor->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0)
        return fl_fail(FUSELINE_ERROR_READ_ONLY, "%s: is read-only; accepted: a writable output", name);
    return FUSELINE_OK;
}

fuseline_status fl_run_versioned(const struct fl_call *call, fuseline_status ready, DLManagedTensorVersioned *const *tensors,
                                 void *stream)
{
    const DLTensor *borrowed[FL_TENSORS_MOST] = {NULL};
    int count = call->tensors;
    fuseline_status status = ready;

    for (int k = 0; k < count && status == FUSELINE_OK; k++) {
        status = check_versioned(tensors[k], call->names[k], k >= count - call->outputs);
        borrowed[k] = tensors[k] != NULL ? &tensors[k]->dl_tensor : NULL;
    }
    if (status == FUSELINE_OK)
        status = fl_run(call, borrowed, stream);
    for (int k = 0; k < count; k++)
        if (tensors[k] != NULL && !is_repeated((void *const *)tensors, k) && tensors[k]->deleter != NULL)
            tensors[k]->deleter(tensors[k]);
    return status;
}
