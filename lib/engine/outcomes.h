/* outcomes.h - vectors of 8 categories in a draw: their probabilities become thresholds, and the numbers of particles that
 * took them become rows of the drawn level. A part of draw.c.
 *
 * No branch depends on what was drawn, because the processor could not predict it. What portable C has no vectors for is
 * written twice, plainly and for AVX2; a test compares the two. */
#ifndef RWS_ENGINE_OUTCOMES_H
#define RWS_ENGINE_OUTCOMES_H

#include "base/vecmath.h"

#ifdef __AVX2__
#include <immintrin.h>
#endif

typedef uint32_t rws_u8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef int16_t  h8 __attribute__((vector_size(16), aligned(2), may_alias));

/* The rows of a drawn level in their order. Each array has room for 8 more. */
typedef struct {
    uint32_t *up, *count, *category;
    float    *value; /* the category */
    uint32_t  n;
} outcomes;

/* pack[bits]: the numbers of the bits that are set, a byte each. */
static inline void outcomes_pack(uint64_t pack[static 256])
{
    memset(pack, 0, 256 * sizeof *pack);
    for (int bits = 0; bits < 256; bits++)
        for (int j = 7; j >= 0; j--)
            if (bits >> j & 1) pack[bits] = pack[bits] << 8 | (uint64_t)j;
}

static inline rws_v8 plain_load8(const float *p, int n)
{
    rws_v8 x = {0};
    for (int j = 0; j < 8 && j < n; j++) x[j] = p[j];
    return x;
}

static inline uint32_t plain_bits8(rws_i8 x)
{
    uint32_t bits = 0;
    for (int j = 0; j < 8; j++) bits |= (uint32_t)(x[j] < 0) << j;
    return bits;
}

static inline h8 plain_halves8(rws_i8 x)
{
    h8 half;
    for (int j = 0; j < 8; j++) half[j] = (int16_t)(x[j] < INT16_MAX ? x[j] : INT16_MAX);
    return half;
}

static inline void plain_list8(outcomes *o, rws_i8 count, uint32_t row, uint32_t first)
{
    for (uint32_t j = 0; j < 8; j++) {
        o->up[o->n] = row;
        o->count[o->n] = (uint32_t)count[j];
        o->category[o->n] = first + j;
        o->value[o->n] = (float)(first + j);
        o->n += count[j] != 0;
    }
}

#ifdef __AVX2__

/* The first n of 8 numbers, and zeros. */
static inline rws_v8 load8(const float *p, int n)
{
    const rws_i8 lane = {0, 1, 2, 3, 4, 5, 6, 7};
    return (rws_v8)_mm256_maskload_ps(p, (__m256i)(lane < n));
}

/* Bit j: lane j is negative. */
static inline uint32_t bits8(rws_i8 x)
{
    return (uint32_t)_mm256_movemask_ps((__m256)x);
}

/* Numbers from -2^15 on; those from 2^15 on become 2^15 - 1. */
static inline h8 halves8(rws_i8 x)
{
    return (h8)_mm_packs_epi32(_mm256_castsi256_si128((__m256i)x), _mm256_extracti128_si256((__m256i)x, 1));
}

/* Adds a row for each of the categories first … first + 7 that has particles. */
static inline void list8(outcomes *o, rws_i8 count, uint32_t row, uint32_t first, const uint64_t *pack)
{
    const uint32_t bits = bits8(count != 0);
    const __m256i  place = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)pack[bits]));
    const rws_i8   category = (rws_i8)place + (int32_t)first;
    *(rws_u8 *)(o->up + o->n) = (rws_u8){0} + row;
    *(rws_i8 *)(o->count + o->n) = (rws_i8)_mm256_permutevar8x32_epi32((__m256i)count, place);
    *(rws_i8 *)(o->category + o->n) = category;
    *(rws_v8 *)(o->value + o->n) = __builtin_convertvector(category, rws_v8);
    o->n += (uint32_t)__builtin_popcount(bits);
}

#else

#define load8 plain_load8
#define bits8 plain_bits8
#define halves8 plain_halves8
#define list8(o, count, row, first, pack) ((void)(pack), plain_list8((o), (count), (row), (first)))

#endif

#endif
