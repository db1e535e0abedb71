#include <config.h>

#include "images.h"

#include <stdio.h>
#include <string.h>

/* Written by kernels/local.mk: FL_IMAGE(family, OPERAND, RESULT, KIND, number, "file") for each. */
#define FL_IMAGE(family, operand, result, kind, number, file)                                                                    \
    extern const char fl_image_##family##_##operand##_##result##_##kind##_##number[] __attribute__((visibility("hidden")));
#include <kernels/images.def>
#undef FL_IMAGE

static const struct fl_image images[] = {
#define FL_IMAGE(family, operand, result, kind, number, file)                                                                    \
    {#family, {FL_##operand, FL_##result}, FL_IMAGE_##kind, number, fl_image_##family##_##operand##_##result##_##kind##_##number},
#include <kernels/images.def>
#undef FL_IMAGE
};
#define IMAGES (sizeof images / sizeof images[0])

const char *const fl_image_targets[] = {FL_GPU_TARGETS, NULL};

/*
 * The chips that a generic target serves: LLVM's "User Guide for AMDGPU Backend", table of generic processors. AMD's runtime has the same
 * list, which is closed: a chip that came later needs code of its own, or a newer generic version.
 */
static const struct {
    const char *target, *chips;
} generic_targets[] = {
    {"gfx9-generic", " gfx900 gfx902 gfx904 gfx906 gfx909 gfx90c "},
    {"gfx10-1-generic", " gfx1010 gfx1011 gfx1012 gfx1013 "},
    {"gfx10-3-generic", " gfx1030 gfx1031 gfx1032 gfx1033 gfx1034 gfx1035 gfx1036 "},
    {"gfx11-generic", " gfx1100 gfx1101 gfx1102 gfx1103 gfx1150 gfx1151 gfx1152 gfx1153 "},
};

static int generic_serves(const char *target, const char *chip)
{
    char word[66];
    snprintf(word, sizeof word, " %s ", chip);
    for (size_t k = 0; k < sizeof generic_targets / sizeof generic_targets[0]; k++)
        if (strcmp(generic_targets[k].target, target) == 0)
            return strstr(generic_targets[k].chips, word) != NULL;
    return 0;
}

/* 0 if the image does not run there; the higher the better. */
static int fitness(const struct fl_image *image, enum fl_device_kind kind, int number)
{
    switch (image->kind) {
    case FL_IMAGE_HIP:
        return kind == FL_ROCM ? 10 - image->number : 0; /* generic code after the chip's own */
    case FL_IMAGE_PTX:
        return kind == FL_CUDA && image->number <= number ? image->number : 0;
    case FL_IMAGE_SM:
        return kind == FL_CUDA && image->number <= number && image->number / 10 == number / 10 ? 1000 + image->number : 0;
    }
    return 0;
}

const struct fl_image *fl_image_best(enum fl_device_kind kind, const struct fl_architecture *architecture, const char *family,
                                     struct fl_types types, const struct fl_image *after)
{
    const struct fl_image *best = NULL;
    int best_fitness = 0, below = after != NULL ? fitness(after, kind, architecture->number) : 1 << 30;
    for (size_t k = 0; k < IMAGES; k++) {
        int fits = fitness(&images[k], kind, architecture->number);
        if (images[k].types.operand == types.operand && images[k].types.result == types.result &&
            strcmp(images[k].family, family) == 0 && fits > best_fitness && fits < below) {
            best = &images[k];
            best_fitness = fits;
        }
    }
    return best;
}

int fl_image_target_is_for(enum fl_device_kind kind, const char *target)
{
    return (strncmp(target, "gfx", 3) == 0) == (kind == FL_ROCM);
}

int fl_image_covers(enum fl_device_kind kind, const struct fl_architecture *architecture)
{
    if (kind == FL_CUDA)
        return fl_image_best(kind, architecture, images[0].family, images[0].types, NULL) != NULL;
    for (int k = 0; fl_image_targets[k] != NULL; k++) {
        size_t length = strcspn(fl_image_targets[k], ":"); /* what follows are features, "gfx90a:xnack+" */
        if (strncmp(fl_image_targets[k], architecture->name, length) == 0 && architecture->name[length] == '\0')
            return 1;
        if (generic_serves(fl_image_targets[k], architecture->name))
            return 1;
    }
    return 0;
}
