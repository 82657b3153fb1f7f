/* outcomes.h - from how many particles reach each threshold to the rows of the drawn level; a part of draw.c.
 *
 * A row has outcome c if reached[c] > reached[c + 1], where reached[0] counts all of its particles. Outcomes are marked
 * as bits, a block of rows at a time, and then listed in one loop over all bits of the block: the number of turns of a
 * loop over the bits of one row could not be predicted by the processor. */
#ifndef RWS_ENGINE_OUTCOMES_H
#define RWS_ENGINE_OUTCOMES_H

#include "engine/internal.h"

#ifdef __AVX2__
#include <immintrin.h>
#endif

#define BLOCK 32 /* rows */

/* Up to 64 neighbouring categories of a row, at least one of which has particles. */
typedef struct {
    uint64_t        present; /* bit c: category first + c is an outcome */
    const uint32_t *reached;
    uint32_t        row, first;
} span;

typedef struct {
    uint32_t *up, *count, *category; /* of the drawn level's rows */
    uint32_t  n, n_spans;
    uint32_t *reached; /* of the rows of a block, `width` apart */
    size_t    width;
    span     *spans;
} outcomes;

/* For draws of `padded` categories, a multiple of 8, with up to `most` outcomes in all. */
static outcomes outcomes_new(rws_engine *e, uint32_t padded, uint32_t most)
{
    return (outcomes){.up = RWS_NEW(&e->arena, uint32_t, most),
                      .count = RWS_NEW(&e->arena, uint32_t, most),
                      .category = RWS_NEW(&e->arena, uint32_t, most),
                      .width = padded + 8};
}

static void outcomes_scratch(rws_engine *e, outcomes *o)
{
    o->reached = RWS_NEW(&e->arena, uint32_t, BLOCK * o->width);
    o->spans = RWS_NEW(&e->arena, span, BLOCK * (o->width / 64 + 1) + 1);
}

/* Bit c of the answer: reached[c] differs from reached[c + 1]. */
static inline uint32_t eight_present(const uint32_t *reached)
{
#ifdef __AVX2__
    const __m256i here = _mm256_loadu_si256((const __m256i *)reached);
    const __m256i next = _mm256_loadu_si256((const __m256i *)(reached + 1));
    return 0xff ^ (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(here, next)));
#else
    uint32_t bits = 0;
    for (int c = 0; c < 8; c++) bits |= (uint32_t)(reached[c] != reached[c + 1]) << c;
    return bits;
#endif
}

/* Marks the outcomes of a row and returns their number; `reached` is filled in, in its place in the block. */
static uint32_t outcomes_note(outcomes *o, uint32_t row, const uint32_t *reached)
{
    uint32_t n = 0;
    for (uint32_t first = 0, end; first + 8 < o->width; first = end) {
        uint64_t present = 0;
        end = o->width - 8 - first < 64 ? (uint32_t)o->width - 8 : first + 64;
        for (uint32_t c = first; c < end; c += 8) present |= (uint64_t)eight_present(reached + c) << (c - first);
        if (present) o->spans[o->n_spans++] = (span){present, reached + first, row, first};
        n += (uint32_t)__builtin_popcountll(present);
    }
    return n;
}

/* Lists the outcomes that were marked; then `end` are listed in all. */
static void outcomes_list(outcomes *o, uint32_t end)
{
    const span *s = o->spans;
    uint64_t    left = s->present;
    o->spans[o->n_spans] = *s; /* the loop reads one span behind the last */
    for (uint32_t i = o->n; i < end; i++) {
        const uint32_t c = (uint32_t)__builtin_ctzll(left);
        o->up[i] = s->row;
        o->count[i] = s->reached[c] - s->reached[c + 1];
        o->category[i] = s->first + c;
        left &= left - 1;
        s += left == 0;
        left |= s->present & -(uint64_t)(left == 0); /* no branch: it could not be predicted */
    }
    o->n = end;
    o->n_spans = 0;
}

#endif
