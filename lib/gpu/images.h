/* The device code in this library: one image per operator's family, dtypes and kind, put in by kernels/embed.S. */
#ifndef FL_GPU_IMAGES_H
#define FL_GPU_IMAGES_H

#include "../operator.h"
#include "vendor.h"

enum fl_image_kind {
    FL_IMAGE_HIP, /* a clang offload bundle, for all of AMD's targets at once: the runtime picks */
    FL_IMAGE_PTX, /* text that the driver translates at loading, for this and newer compute capabilities */
    FL_IMAGE_SM   /* machine code for one compute capability, and higher minor numbers of the same major one */
};

struct fl_image {
    const char *family;
    struct fl_types types;
    enum fl_image_kind kind;
    int number;       /* 10 * major + minor of the compute capability; FL_IMAGE_HIP: 0, or 6 for generic targets */
    const char *data; /* PTX ends in a NUL */
};

/*
 * The best image for a device: machine code before PTX, newer before older, a chip's own before generic. `after` is the one to go on from when that
 * could not be loaded, NULL at first. Returns NULL when there is none (left).
 */
const struct fl_image *fl_image_best(enum fl_device_kind kind, const struct fl_architecture *architecture, const char *family,
                                     struct fl_types types, const struct fl_image *after);

/* What configure was told to build: "gfx1151", "ptx_75", "sm_90", ...; ends in NULL. */
extern const char *const fl_image_targets[];

/* True if a target in the list above is for that kind of device. */
int fl_image_target_is_for(enum fl_device_kind kind, const char *target);

/* True if code that runs on such a device is embedded, as far as the architecture's name or number tells. */
int fl_image_covers(enum fl_device_kind kind, const struct fl_architecture *architecture);

#endif
