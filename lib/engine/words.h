/* words.h - the random bits of particles, drawn for many at a time; included by the files of this folder only.
 *
 * A draw of a choice needs 16 random bits of its particle, and 14 more if the 16 do not decide. The 16 bits are half a word:
 * counter (particle / 8, datum, ordinal, 0) holds the halves of eight neighbours. The 14 bits are at counter (particle,
 * datum, ordinal, 2^30). */
#ifndef RWS_ENGINE_WORDS_H
#define RWS_ENGINE_WORDS_H

#include "engine/internal.h"

typedef int16_t half16 __attribute__((may_alias)); /* half of a random word */

#define WORDS_CHUNK 4096 /* particles at a time, at most */

typedef struct word_source {
    rws_engine *e;
    uint32_t    level;
    ordinals    at_draw;
    uint32_t    first, end; /* rows whose bits are at hand */
    uint32_t    each, lane; /* blocks of a row of neighbours, and the first half of its first block; or each is 0 */
    uint64_t    pack[256];  /* see outcomes.h */
    uint32_t    start[WORDS_CHUNK];
    int16_t     half[WORDS_CHUNK + 16];
    uint16_t    at[WORDS_CHUNK];
    uint32_t    k[WORDS_CHUNK], datum[WORDS_CHUNK], ordinal[WORDS_CHUNK], block[4 * WORDS_CHUNK];
} word_source;

/* A source for the particles of a level at one draw. An engine has one: it is good until the next is made. */
word_source *rws__words_new(rws_engine *e, uint32_t level, ordinals at_draw);

/* 16 bits, as a signed number, of each of particles from … from + n - 1 of row i; n is at most WORDS_CHUNK. */
const half16 *rws__words_row(word_source *s, uint32_t i, uint32_t from, uint32_t n);

/* The same for all particles of a row of few. */
static inline const half16 *rws__words_few(word_source *s, uint32_t i, uint32_t n)
{
    if (!s->each || i < s->first || i >= s->end) return rws__words_row(s, i, 0, n);
    return (const half16 *)s->block + 8 * (size_t)(i - s->first) * s->each + s->lane;
}

/* The other 14 bits of particle k of row i. */
uint32_t rws__words_rest(const word_source *s, uint32_t i, uint32_t k);

/* The number of a particle of a row, and its counters. Parts of a particle that sums have made (sums.c) have numbers of their own,
 * and counters that are at least 700,000 particles apart. */
static inline uint32_t particle_at(const level *l, uint32_t i, uint32_t k)
{
    return l->stride ? i * l->stride + k : l->particles[l->particles_start[i] + k];
}

static inline void particle_counter(const rws_engine *e, const level *l, uint32_t id, uint32_t *k, uint32_t *datum)
{
    const uint32_t K = (uint32_t)e->pass.n_particles, part = l->width == 1 ? 0 : id % l->width;
    const uint32_t at = l->width == 1 ? id : id / l->width, d = at < K ? 0 : at / K;
    *datum = e->pass.first_datum + d;
    *k = e->pass.first_particle + at - d * K + part * 0x9e3779b0u;
}

#endif
