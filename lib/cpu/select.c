/* Chooses the instruction set, once. */
#include <config.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "select.h"

#if FL_WITH_X86_VARIANTS
#include <cpuid.h>

/* Whether the processor and the operating system (which must save the wide registers: XGETBV) support a variant. */
static int has_avx2(void)
{
    unsigned a, b, c, d;
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

static int has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif

static const struct fl_cpu_variant *chosen;

static void choose(void)
{
    chosen = &fl_cpu_base;
#if FL_WITH_X86_VARIANTS
    const char *wish = getenv("FUSELINE_CPU");
    if (wish != NULL && strcmp(wish, "base") == 0)
        return;
    if (has_avx2())
        chosen = &fl_cpu_avx2;
    if (wish != NULL && strcmp(wish, "avx2") == 0)
        return;
    if (has_avx512())
        chosen = &fl_cpu_avx512;
#endif
}

const struct fl_cpu_variant *fl_cpu_variant(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, choose);
    return chosen;
}

const char *fl_cpu_variant_name(void)
{
    return fl_cpu_variant()->name;
}
