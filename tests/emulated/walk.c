/*
 * The inner loop of machine.py: runs a wave's instructions one after the other, each being a function that the emulator compiled. In C
 * since calls from Python take longer than most of the functions.
 */
#include <stdint.h>

typedef void instruction(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

/* What runs at an address; a function takes some of the buffers, and what it is given beyond them it does not look at. */
struct place {
    instruction *run; /* NULL: not known yet */
    unsigned char taken[6], is_barrier;
};

enum stop { AT_END, AT_BARRIER, AT_UNKNOWN, TOO_LONG };

/* places: one for every 4 bytes from `base` on. Goes on for at most `most` instructions. */
enum stop walk(const struct place *places, uint64_t base, uint64_t count, volatile const uint64_t *counter,
               const uint64_t *buffers, uint64_t most)
{
    for (uint64_t k = 0; k < most; k++) {
        uint64_t at = *counter, index = (at - base) / 4;
        if (at == UINT64_MAX)
            return AT_END;
        if (at % 4 != 0 || index >= count || places[index].run == 0)
            return AT_UNKNOWN;
        const struct place *place = &places[index];
        const unsigned char *taken = place->taken;
        place->run(buffers[taken[0]], buffers[taken[1]], buffers[taken[2]], buffers[taken[3]], buffers[taken[4]],
                   buffers[taken[5]]);
        if (place->is_barrier)
            return AT_BARRIER;
    }
    return TOO_LONG;
}
