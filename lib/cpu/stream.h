/*
 * Stores past the caches, for results that these could not hold anyway: a line that is written whole need not be read from memory
 * first, and nothing else is thrown out for it.
 */
#ifndef FL_CPU_STREAM_H
#define FL_CPU_STREAM_H

#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <immintrin.h>
#define FL_CAN_STREAM 1
#else
#define FL_CAN_STREAM 0
#endif

#include "variant.h"

#define FL_LINE FL_STREAM_ALIGNMENT

/* One line, to an address that is aligned. */
static inline void fl_stream_line(char *to, const char *from)
{
#if defined(__AVX512F__)
    _mm512_stream_si512((void *)to, _mm512_loadu_si512((const void *)from));
#elif defined(__AVX2__)
    for (int k = 0; k < FL_LINE; k += 32)
        _mm256_stream_si256((void *)(to + k), _mm256_loadu_si256((const void *)(from + k)));
#elif FL_CAN_STREAM
    for (int k = 0; k < FL_LINE; k += 16)
        _mm_stream_si128((void *)(to + k), _mm_loadu_si128((const void *)(from + k)));
#else
    memcpy(to, from, FL_LINE);
#endif
}

/* Before another thread is told of what was written. */
static inline void fl_stream_end(void)
{
#if FL_CAN_STREAM
    _mm_sfence();
#endif
}

#endif
