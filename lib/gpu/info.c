/* The GPU part of the info call. */
#include <fuseline/fuseline.h>
#include <stdio.h>

#include "gpu.h"
#include "images.h"
#include "runtime.h"

static const char *const kinds[FL_DEVICE_KINDS] = {[FL_CUDA] = "cuda", [FL_ROCM] = "rocm"};

static int add_devices(struct fl_text *text, struct fl_runtime *runtime, int already)
{
    const struct fl_vendor *vendor = runtime->vendor;
    for (int index = 0; index < runtime->device_count; index++) {
        struct fl_architecture architecture = {"an unknown architecture", 0};
        if (vendor->architecture(&runtime->functions, index, &architecture) != 0)
            fl_runtime_forget_error(runtime);
        fl_text_add(text, "%s{\"index\": %d, \"kind\": \"%s\", \"architecture\": ", already++ != 0 ? ", " : "", index,
                    kinds[vendor->kind]);
        fl_text_add_json(text, architecture.name);
        fl_text_add(text, ", \"supported\": %s}", fl_image_covers(vendor->kind, &architecture) ? "true" : "false");
    }
    return already;
}

void fl_gpu_info(struct fl_text *text)
{
    static const struct fl_vendor *const vendors[] = {&fl_vendor_hip, &fl_vendor_cuda};
    struct fl_runtime *runtimes[2] = {NULL, NULL};
    char buffer[2048] = "", last_error[1024];
    struct fl_text errors = {buffer, sizeof buffer, 0};
    const char *path = NULL;
    int devices = 0, has_devices = 0;

    snprintf(last_error, sizeof last_error, "%s", fuseline_last_error());
    for (int k = 0; k < 2; k++) {
        if (fl_runtime_get(vendors[k], &runtimes[k]) == FUSELINE_OK) {
            if (path == NULL || (runtimes[k]->device_count > 0 && !has_devices))
                path = runtimes[k]->path; /* rather of one that has devices */
            has_devices |= runtimes[k]->device_count > 0;
        } else {
            fl_text_add(&errors, "%s%s", errors.length != 0 ? "; " : "", fuseline_last_error());
            runtimes[k] = NULL;
        }
    }
    fl_fail(FUSELINE_OK, "%s", last_error); /* looking is no failed call */

    fl_text_add(text, "{\"targets\": [");
    for (int k = 0; fl_image_targets[k] != NULL; k++)
        fl_text_add(text, "%s\"%s\"", k != 0 ? ", " : "", fl_image_targets[k]);
    fl_text_add(text, "], \"runtime\": ");
    fl_text_add_json(text, path);
    fl_text_add(text, ", \"error\": ");
    fl_text_add_json(text, path == NULL ? buffer : NULL);
    fl_text_add(text, ", \"devices\": [");
    for (int k = 0; k < 2; k++)
        if (runtimes[k] != NULL)
            devices = add_devices(text, runtimes[k], devices);
    fl_text_add(text, "]}");
}
