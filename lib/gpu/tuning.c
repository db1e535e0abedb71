#include "tuning.h"

#include <string.h>

static const struct fl_tuning tunings[FL_FAMILIES] = {
#define FL_TUNING FL_TUNING_ROW
#include "tuning.def"
};

/* Of AMD's generic targets the list has names too, but a device has the name of its chip. */
static const struct {
    const char *architecture;
    enum fl_family family;
} tuned[] = {
#define FL_TUNED(architecture, family) {#architecture, FL_FAMILY_##family},
#include "tuning.def"
};

const struct fl_tuning *fl_tuning_of(const char *architecture)
{
    size_t length = strcspn(architecture, ":");
    if (strncmp(architecture, "sm_", 3) == 0)
        return &tunings[FL_FAMILY_nvidia];
    for (size_t k = 0; k < sizeof tuned / sizeof tuned[0]; k++)
        if (strlen(tuned[k].architecture) == length && memcmp(tuned[k].architecture, architecture, length) == 0)
            return &tunings[tuned[k].family];
    return &tunings[FL_FAMILY_UNLISTED];
}
