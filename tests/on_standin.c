/*
 * In the place of libinternal.la, for tests that are written for it: every "variant" is a device that a stand-in runtime plays, and
 * the library under test is the whole one. See tests/standin/standin.h, and TEST_ON_STANDIN in tensors.h.
 */
#include <config.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fuseline/fuseline.h>

#include "internal.h"
#include "standin/standin.h"
#include "tensors.h"

DLDevice test_device;
static struct standin *hip, *cuda;

/* A device with waves of 32 lanes, one with waves of 64, one of NVIDIA's: as far as there is code for them. */
const struct fl_cpu_variant fl_cpu_base = {.name = "a device with waves of 32 lanes"};
static const struct fl_cpu_variant wide_waves = {.name = "a device with waves of 64 lanes"};
static const struct fl_cpu_variant nvidia = {.name = "a CUDA device"};
static const struct fl_cpu_variant *found[4];
const struct fl_cpu_variant *const *const test_variants = found;

/* Every second time, kernels get one block and have to stride. */
void test_use_variant(const struct fl_cpu_variant *variant)
{
    static unsigned few;
    few ^= 1;
    hip->blocks_most = cuda->blocks_most = few;
    if (variant == &fl_cpu_base)
        variant = found[0]; /* what tests take for the simplest */
    test_device = variant == &nvidia       ? (DLDevice){kDLCUDA, 0}
                  : variant == &wide_waves ? (DLDevice){kDLROCM, 1}
                                           : (DLDevice){kDLROCM, 0};
}

static struct standin *open_standin(const char *file)
{
    char path[1024];
    const char *folder = getenv("builddir");
    snprintf(path, sizeof path, "%s/tests/standin/%s", folder != NULL ? folder : ".", file);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL || fuseline_set_gpu_runtime(path) != FUSELINE_OK) {
        fprintf(stderr, "%s\n", library == NULL ? dlerror() : fuseline_last_error());
        exit(99);
    }
    struct standin *standin = dlsym(library, "standin");
    standin->is_synchronous = 1;
    return standin;
}

/* The first of the library's targets with as many digits: gfx942 has three, gfx1151 four. */
static int find_target(const char *info, size_t digits, char *target)
{
    const char *at = strstr(info, "\"targets\""), *end = strchr(at, ']');
    while ((at = strstr(at, "\"gfx")) != NULL && at < end) {
        size_t length = strcspn(at + 4, "\"");
        if (length == digits) {
            snprintf(target, 32, "gfx%.*s", (int)length, at + 4);
            return 1;
        }
        at += 4;
    }
    return 0;
}

__attribute__((constructor)) static void set_up(void)
{
    char info[8192];
    int count = 0;
    hip = open_standin("libamdhip64.so");
    cuda = open_standin("libcuda.so");
    unsetenv("FUSELINE_GPU_RUNTIME");
    const char *only = getenv("FUSELINE_TEST_TARGETS"); /* the first is wanted alone: tests/emulated */
    if (only != NULL) {
        snprintf(hip->architecture[0], sizeof hip->architecture[0], "%.*s", (int)strcspn(only, ","), only);
        found[count++] = &fl_cpu_base;
        test_use_variant(found[0]);
        return;
    }
    fuseline_info(info, sizeof info);
    if (find_target(info, 4, hip->architecture[0]))
        found[count++] = &fl_cpu_base;
    if (find_target(info, 3, hip->architecture[1]))
        found[count++] = &wide_waves;
    if (strstr(info, "\"ptx_") != NULL)
        found[count++] = &nvidia;
    test_use_variant(found[0]);
}
