/*
 * Conversions between the 16-bit types and float, to nearest, ties to even. Written so that compilers vectorise them; float16 by
 * instruction where the instruction set has it. A nan stays a nan, and becomes quiet.
 *
 * The arrays of 16-bit elements may have any alignment.
 */
#ifndef FL_CPU_CONVERT_H
#define FL_CPU_CONVERT_H

#include <stdint.h>
#include <string.h>

#include "../tensor.h"

#if defined(__AVX2__) && defined(__F16C__)
#include <immintrin.h>
#endif

static inline uint32_t fl_float_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float fl_float_from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* A 16-bit element at any address. */
struct fl_unaligned_16 {
    uint16_t bits;
} __attribute__((packed, may_alias));

static inline void fl_bfloat16_to_float(const char *from, float *to, int count)
{
    const struct fl_unaligned_16 *elements = (const struct fl_unaligned_16 *)from;
    for (int i = 0; i < count; i++)
        to[i] = fl_float_from_bits((uint32_t)elements[i].bits << 16);
}

static inline void fl_float_to_bfloat16(const float *from, char *to, int count)
{
    struct fl_unaligned_16 *elements = (struct fl_unaligned_16 *)to;
    for (int i = 0; i < count; i++) {
        uint32_t bits = fl_float_bits(from[i]);
        uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
        uint32_t quiet = (bits >> 16) | 0x40u;
        elements[i].bits = (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
    }
}

static inline float fl_float16_bits_to_float(uint32_t half)
{
    /* With the exponent in float's place the value is 2^112 too small, subnormals included: one exact product mends both. */
    float magnitude = fl_float_from_bits((half & 0x7fffu) << 13) * 0x1p112f;
    uint32_t bits = fl_float_bits(magnitude);
    bits = (half & 0x7c00u) == 0x7c00u ? 0x7f800000u | ((half & 0x3ffu) << 13) : bits;
    bits |= (half & 0x7fffu) > 0x7c00u ? 0x400000u : 0u;
    return fl_float_from_bits(bits | (half & 0x8000u) << 16);
}

static inline uint16_t fl_float_to_float16_bits(float x)
{
    uint32_t bits = fl_float_bits(x), magnitude = bits & 0x7fffffffu;
    uint32_t normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    /* Below the normal range: adding 0.5 leaves the half's bits, rounded, at the end of the significand. */
    uint32_t subnormal = fl_float_bits(fl_float_from_bits(magnitude) + 0.5f) - 0x3f000000u;
    uint32_t half = magnitude < 0x38800000u ? subnormal : normal;
    half = magnitude >= 0x477ff000u ? 0x7c00u : half;
    half = magnitude > 0x7f800000u ? 0x7e00u | ((magnitude >> 13) & 0x3ffu) : half;
    return (uint16_t)(half | (bits >> 16 & 0x8000u));
}

/*
 * From double to float on the way to 16 bits: an inexact result is the odd one of its two neighbours, which lies on no tie of a
 * narrower type. So rounding it to nearest gives what rounding x itself would (Boldo, Melquiond: Emulation of FMA and correctly rounded
 * sums, 2008).
 */
static inline float fl_double_to_odd_float(double x)
{
    float nearest = (float)x;
    uint32_t bits = fl_float_bits(nearest);
    double back = (double)nearest;
    bits -= (back < 0 ? -back : back) > (x < 0 ? -x : x) ? 1u : 0u; /* toward zero */
    bits |= back != x ? 1u : 0u;                                    /* stays nan */
    return fl_float_from_bits(bits);
}

#if defined(__AVX512F__)
#define FL_PIECE 16
#elif defined(__AVX2__) && defined(__F16C__)
#define FL_PIECE 8
#else
#define FL_PIECE 0 /* none */
#endif

/*
 * FL_PIECE elements by instructions, which stay in registers. On the way down: of results of arithmetic on 16-bit numbers, whose nans are
 * quiet and have nothing in the half that goes, so that rounding leaves them.
 */
#if FL_PIECE == 16
static inline void fl_float16_piece(const char *from, float *to)
{
    _mm512_storeu_ps(to, _mm512_cvtph_ps(_mm256_loadu_si256((const void *)from)));
}

static inline void fl_piece_to_float16(const float *from, char *to)
{
    _mm256_storeu_si256((void *)to, _mm512_cvtps_ph(_mm512_loadu_ps(from), _MM_FROUND_TO_NEAREST_INT));
}

static inline void fl_bfloat16_piece(const char *from, float *to)
{
    __m512i bits = _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)from)), 16);
    _mm512_storeu_ps(to, _mm512_castsi512_ps(bits));
}

static inline void fl_piece_to_bfloat16(const float *from, char *to)
{
    __m512i bits = _mm512_castps_si512(_mm512_loadu_ps(from));
    __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    bits = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
    _mm256_storeu_si256((void *)to, _mm512_cvtepi32_epi16(_mm512_srli_epi32(bits, 16)));
}
#elif FL_PIECE == 8
static inline void fl_float16_piece(const char *from, float *to)
{
    _mm256_storeu_ps(to, _mm256_cvtph_ps(_mm_loadu_si128((const void *)from)));
}

static inline void fl_piece_to_float16(const float *from, char *to)
{
    _mm_storeu_si128((void *)to, _mm256_cvtps_ph(_mm256_loadu_ps(from), _MM_FROUND_TO_NEAREST_INT));
}

static inline void fl_bfloat16_piece(const char *from, float *to)
{
    __m256i bits = _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)from)), 16);
    _mm256_storeu_ps(to, _mm256_castsi256_ps(bits));
}

static inline void fl_piece_to_bfloat16(const float *from, char *to)
{
    __m256i bits = _mm256_castps_si256(_mm256_loadu_ps(from));
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    bits = _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd), 16);
    _mm_storeu_si128((void *)to, _mm_packus_epi32(_mm256_castsi256_si128(bits), _mm256_extracti128_si256(bits, 1)));
}
#endif

/* The instruction set's part of a conversion; returns how many elements it did. */
static inline int fl_float16_to_float_simd(const char *from, float *to, int count)
{
    int i = 0;
#if FL_PIECE > 0
    for (; i + FL_PIECE <= count; i += FL_PIECE)
        fl_float16_piece(from + 2 * i, to + i);
#else
    (void)from, (void)to, (void)count;
#endif
    return i;
}

static inline int fl_float_to_float16_simd(const float *from, char *to, int count)
{
    int i = 0;
#if FL_PIECE > 0
    for (; i + FL_PIECE <= count; i += FL_PIECE)
        fl_piece_to_float16(from + i, to + 2 * i);
#else
    (void)from, (void)to, (void)count;
#endif
    return i;
}

static inline void fl_float16_to_float(const char *from, float *to, int count)
{
    const struct fl_unaligned_16 *elements = (const struct fl_unaligned_16 *)from;
    for (int i = fl_float16_to_float_simd(from, to, count); i < count; i++)
        to[i] = fl_float16_bits_to_float(elements[i].bits);
}

static inline void fl_float_to_float16(const float *from, char *to, int count)
{
    struct fl_unaligned_16 *elements = (struct fl_unaligned_16 *)to;
    for (int i = fl_float_to_float16_simd(from, to, count); i < count; i++)
        elements[i].bits = fl_float_to_float16_bits(from[i]);
}

/* Elements that are `step` elements apart: half of an interleaved pair. */
static inline void fl_load_apart_32(enum fl_dtype dtype, const char *from, int step, float *to, int count)
{
    if (dtype == FL_FLOAT32) {
        for (int i = 0; i < count; i++)
            memcpy(&to[i], from + (int64_t)i * step * 4, sizeof *to);
        return;
    }
    const struct fl_unaligned_16 *elements = (const struct fl_unaligned_16 *)from;
    uint16_t together[64];
    for (int done = 0; done < count; done += 64) {
        int part = count - done < 64 ? count - done : 64;
        for (int i = 0; i < part; i++)
            together[i] = elements[(int64_t)(done + i) * step].bits;
        (dtype == FL_FLOAT16 ? fl_float16_to_float : fl_bfloat16_to_float)((const char *)together, to + done, part);
    }
}

static inline void fl_store_apart_32(enum fl_dtype dtype, const float *from, char *to, int step, int count)
{
    if (dtype == FL_FLOAT32) {
        for (int i = 0; i < count; i++)
            memcpy(to + (int64_t)i * step * 4, &from[i], sizeof *from);
        return;
    }
    struct fl_unaligned_16 *elements = (struct fl_unaligned_16 *)to;
    uint16_t together[64];
    for (int done = 0; done < count; done += 64) {
        int part = count - done < 64 ? count - done : 64;
        (dtype == FL_FLOAT16 ? fl_float_to_float16 : fl_float_to_bfloat16)(from + done, (char *)together, part);
        for (int i = 0; i < part; i++)
            elements[(int64_t)(done + i) * step].bits = together[i];
    }
}

#endif
