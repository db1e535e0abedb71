/* The info call. */
#include <config.h>

#include <fuseline/fuseline.h>
#include <stdio.h>
#include <string.h>

#include "cpu/cpu.h"
#include "gpu/gpu.h"
#include "text.h"

const char *fuseline_version(void)
{
    return PACKAGE_VERSION;
}

size_t fuseline_info(char *buffer, size_t size)
{
    struct fl_text text = {buffer, size, 0};
    const char *family = "";

    static const char *const families[] = {
#define FL_OPERATOR(kernel, family, ...)  #family,
#define FL_REDUCTION(kernel, family, ...) #family,
#define FL_RULER(...)
#include "operators.def"
    };

    fl_text_add(&text, "{\"version\": \"%s\", \"operators\": [", fuseline_version());
    for (int k = 0; k < (int)(sizeof families / sizeof *families); k++) {
        if (strcmp(family, families[k]) == 0)
            continue;
        fl_text_add(&text, "%s\"%s\"", *family != '\0' ? ", " : "", families[k]);
        family = families[k];
    }
    fl_text_add(&text, "], \"cpu\": {\"variant\": \"%s\", \"threads\": %d}, \"gpu\": ", fl_cpu_variant_name(), fl_cpu_threads());
    fl_gpu_info(&text);
    fl_text_add(&text, "}");
    return text.length;
}
