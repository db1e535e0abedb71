/* The instruction set in use. */
#ifndef FL_CPU_SELECT_H
#define FL_CPU_SELECT_H

#include "cpu.h"
#include "variant.h"

/*
 * The best variant that this machine supports, or the one that the environment variable FUSELINE_CPU lowers it to (base, avx2,
 * avx512). Decided at the first call.
 */
const struct fl_cpu_variant *fl_cpu_variant(void);

#endif
