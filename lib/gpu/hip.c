/* AMD: libamdhip64, whose notion of where work goes is a thread's current device. */
#include <stdio.h>
#include <string.h>

#include "vendor.h"

static const struct fl_symbol symbols[] = {
#define FL_SYMBOL(member, name, required) {name, offsetof(struct fl_functions, member), required},
#include "symbols-hip.def"
#undef FL_SYMBOL
    {NULL, 0, 0}};

static const char *const sonames[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so", NULL};

static const char *error_name(const struct fl_functions *functions, int error)
{
    return functions->error_name(error);
}

/*
 * The architecture's name is in the device's properties only, a structure that has had two layouts: that of hipGetDeviceProperties
 * (ROCm 5, and kept for old programs since) and that of hipGetDevicePropertiesR0600 (ROCm 6 and newer). So both the
 * offset and what stands there are checked by the text itself.
 */
#define PROPERTIES_SIZE_MOST 16384
#define NAME_OFFSET_6        1160
#define NAME_OFFSET_5        396
#define ARCHITECTURE_PREFIX  "gfx"

static int name_from_properties(int (*get)(void *, int), size_t offset, int index, struct fl_architecture *architecture)
{
    char properties[PROPERTIES_SIZE_MOST] = {0};
    if (get == NULL || get(properties, index) != 0)
        return 0;
    const char *name = properties + offset;
    size_t length = strcspn(name, ":"); /* "gfx90a:sramecc+:xnack-": the rest is of no matter here */
    if (strncmp(name, ARCHITECTURE_PREFIX, strlen(ARCHITECTURE_PREFIX)) != 0 || length >= sizeof architecture->name)
        return 0;
    snprintf(architecture->name, sizeof architecture->name, "%.*s", (int)length, name);
    return 1;
}

static int architecture(const struct fl_functions *functions, int index, struct fl_architecture *architecture)
{
    architecture->number = 0;
    if (name_from_properties(functions->properties_6, NAME_OFFSET_6, index, architecture) ||
        name_from_properties(functions->properties_5, NAME_OFFSET_5, index, architecture))
        return 0;
    snprintf(architecture->name, sizeof architecture->name, "an unknown architecture");
    if (functions->device_name != NULL)
        functions->device_name(architecture->name, (int)sizeof architecture->name, index);
    functions->take_last_error();
    return 0;
}

static int open(const struct fl_functions *functions, int index, void **context)
{
    (void)functions, (void)index;
    *context = NULL;
    return 0;
}

static int enter(const struct fl_functions *functions, int index, void *context, int *saved)
{
    int current, error = functions->get_device(&current);
    (void)context;
    *saved = -1;
    if (error != 0 || current == index)
        return error;
    *saved = current;
    return functions->set_device(index);
}

static int leave(const struct fl_functions *functions, int saved)
{
    return saved < 0 ? 0 : functions->set_device(saved);
}

const struct fl_vendor fl_vendor_hip = {
    .kind = FL_ROCM,
    .label = "ROCm",
    .option = "--with-hip-targets",
    .file = "libamdhip64.so",
    .sonames = sonames,
    .symbols = symbols,
    .error_name = error_name,
    .architecture = architecture,
    .open = open,
    .enter = enter,
    .leave = leave,
};
