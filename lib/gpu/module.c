#include "module.h"

#include <stdio.h>
#include <string.h>

#include "../text.h"
#include "images.h"

void fl_kernel_name(const struct fl_operator *op, struct fl_types types, enum fl_mode mode, char name[FL_KERNEL_NAME_SIZE])
{
    static const char *const modes[FL_MODES] = {"vector", "rows", "pairs", "rows_full", "pairs_full", "element"};
    const char *operand = fl_dtype_name[types.operand], *result = fl_dtype_name[types.result];
    if (types.operand == types.result)
        snprintf(name, FL_KERNEL_NAME_SIZE, "fl_%s_%s_%s", op->kernel, operand, modes[mode]);
    else
        snprintf(name, FL_KERNEL_NAME_SIZE, "fl_%s_%s_%s_%s", op->kernel, operand, result, modes[mode]);
}

/* What the runtimes say of code that was not built for the device (the numbers are the same with both where both have them). */
static int means_no_code(int error)
{
    switch (error) {
    case 98:  /* invalid device function */
    case 200: /* invalid image */
    case 209: /* no binary for GPU */
    case 303: /* shared object initialisation failed */
        return 1;
    default:
        return 0;
    }
}

static fuseline_status no_code(const struct fl_runtime *runtime, const struct fl_device *device)
{
    char buffer[512] = "";
    struct fl_text embedded = {buffer, sizeof buffer, 0};
    enum fl_device_kind kind = runtime->vendor->kind;
    int is_generic = 0;
    for (int k = 0; fl_image_targets[k] != NULL; k++)
        if (fl_image_target_is_for(kind, fl_image_targets[k])) {
            fl_text_add(&embedded, "%s%s", embedded.length != 0 ? ", " : "", fl_image_targets[k]);
            is_generic |= strstr(fl_image_targets[k], "-generic") != NULL;
        }
    if (is_generic)
        fl_text_add(&embedded, " (generic code is loaded by ROCm 6.4 and newer)");
    return fl_fail(
        FUSELINE_ERROR_ARCHITECTURE,
        "%s device %d is %s, for which this library has no code; it has code for %s; configure's option %s adds others",
        runtime->vendor->label, device->index, device->architecture.name, buffer, runtime->vendor->option);
}

static fuseline_status load(struct fl_runtime *runtime, struct fl_device *device, const char *family, struct fl_types types,
                            void **module)
{
    enum fl_device_kind kind = runtime->vendor->kind;
    const struct fl_image *image = NULL;
    int error = 0; /* of the first image that is for the device and could not be loaded, if there is one */

    while ((image = fl_image_best(kind, &device->architecture, family, types, image)) != NULL) {
        int latest = runtime->functions.module_load(module, image->data);
        if (latest == 0)
            return FUSELINE_OK;
        fl_runtime_forget_error(runtime);
        if (error == 0 || means_no_code(error))
            error = latest;
    }
    *module = NULL;
    if (error == 0 || means_no_code(error) || !fl_image_covers(kind, &device->architecture))
        return no_code(runtime, device);
    return fl_runtime_fail(runtime, error, "loading the code of %s for %s on %s device %d (%s)", family,
                           fl_dtype_name[types.operand], runtime->vendor->label, device->index, device->architecture.name);
}

static fuseline_status look_up(struct fl_runtime *runtime, struct fl_device *device, const struct fl_operator *op,
                               struct fl_types types, enum fl_mode mode, void **function)
{
    const struct fl_operator *first = fl_operators; /* of the family: the modules' place */
    char name[FL_KERNEL_NAME_SIZE];

    while (strcmp(first->family, op->family) != 0)
        first++;
    void **module = &device->modules[first->index][types.operand][types.result];
    if (*module == NULL)
        FL_TRY(load(runtime, device, op->family, types, module));
    fl_kernel_name(op, types, mode, name);
    int error = runtime->functions.module_function(function, *module, name);
    if (error != 0)
        return fl_runtime_fail(runtime, error, "looking up %s on %s device %d (%s)", name, runtime->vendor->label, device->index,
                               device->architecture.name);
    atomic_store_explicit(&device->functions[op->index][types.operand][types.result][mode], *function, memory_order_release);
    return FUSELINE_OK;
}

fuseline_status fl_module_function(struct fl_runtime *runtime, struct fl_device *device, const struct fl_operator *op,
                                   struct fl_types types, enum fl_mode mode, void **function)
{
    fuseline_status status = FUSELINE_OK;

    *function = atomic_load_explicit(&device->functions[op->index][types.operand][types.result][mode], memory_order_acquire);
    if (__builtin_expect(*function != NULL, 1))
        return FUSELINE_OK;
    pthread_mutex_lock(&fl_gpu_lock);
    *function = device->functions[op->index][types.operand][types.result][mode];
    if (*function == NULL)
        status = look_up(runtime, device, op, types, mode, function);
    pthread_mutex_unlock(&fl_gpu_lock);
    return status;
}
