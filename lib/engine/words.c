#include "engine/words.h"

#include "engine/outcomes.h"

#include <stdlib.h>
#include <string.h>

word_source *rws__words_new(rws_engine *e, uint32_t from, ordinals at_draw)
{
    rws__level_particles(e, from);
    if (!e->words) {
        e->words = malloc(sizeof *e->words);
        if (!e->words) rws__engine_no_memory(e);
        e->n_allocations++;
        outcomes_pack(e->words->pack);
    }
    word_source *s = e->words;
    s->e = e, s->level = from, s->at_draw = at_draw, s->first = s->end = s->each = 0;
    return s;
}

uint32_t rws__words_rest(const word_source *s, uint32_t i, uint32_t particle)
{
    uint32_t k, datum, block[4];
    particle_counter(s->e, &s->e->levels[s->level], particle_at(&s->e->levels[s->level], i, particle), &k, &datum);
    rws__rng_blocks(s->e->pass.key, 1, &k, &datum, ordinal_of(s->at_draw, i), 1u << 30, block);
    return block[0] & 0x3fff;
}

/* Rows of neighbouring particles, whose blocks are whole: their halves are in order already. They have not parted yet, so
 * that they have one ordinal. */
static const half16 *neighbours(word_source *s, const level *l, uint32_t i, uint32_t from, uint32_t n)
{
    uint32_t k, d;
    particle_counter(s->e, l, i * l->stride, &k, &d);
    const uint32_t lane = k % 8, each = (lane + l->stride + 7) / 8;
    if (8 * each > WORDS_CHUNK / 2) { /* a long row is drawn by itself */
        const uint32_t first = (k + from) / 8, n_blocks = (k + from + n + 7) / 8 - first;
        for (uint32_t b = 0; b < n_blocks; b++) s->k[b] = first + b, s->datum[b] = d;
        rws__rng_blocks(s->e->pass.key, n_blocks, s->k, s->datum, s->at_draw.all, 0, s->block);
        return (const half16 *)s->block + (k + from) % 8;
    }
    if (i < s->first || i >= s->end) {
        uint32_t n_blocks = 0;
        s->first = s->end = i;
        s->each = each, s->lane = lane;
        for (; s->end < l->n_rows && 8 * (n_blocks + each) <= WORDS_CHUNK; s->end++)
            for (uint32_t b = 0; b < each; b++, n_blocks++)
                s->k[n_blocks] = k / 8 + b, s->datum[n_blocks] = d + s->end - i;
        rws__rng_blocks(s->e->pass.key, n_blocks, s->k, s->datum, s->at_draw.all, 0, s->block);
    }
    return (const half16 *)s->block + 8 * (size_t)(i - s->first) * each + lane + from;
}

/* Adds particles from … from + n - 1 of row i to the blocks to be drawn. */
static uint32_t note(word_source *s, const level *l, uint32_t i, uint32_t from, uint32_t n, uint32_t n_noted,
                     uint32_t n_blocks)
{
    const uint32_t ordinal = ordinal_of(s->at_draw, i);
    for (uint32_t j = 0; j < n; j++) {
        uint32_t k, d;
        particle_counter(s->e, l, particle_at(l, i, from + j), &k, &d);
        if (!n_blocks || s->k[n_blocks - 1] != k / 8 || s->datum[n_blocks - 1] != d ||
            s->ordinal[n_blocks - 1] != ordinal)
            s->k[n_blocks] = k / 8, s->datum[n_blocks] = d, s->ordinal[n_blocks] = ordinal, n_blocks++;
        s->at[n_noted + j] = (uint16_t)(8 * (n_blocks - 1) + k % 8);
    }
    return n_blocks;
}

static void draw_noted(word_source *s, uint32_t n_noted, uint32_t n_blocks)
{
    if (s->at_draw.row) rws__rng_blocks_at(s->e->pass.key, n_blocks, s->k, s->datum, s->ordinal, 0, s->block);
    else rws__rng_blocks(s->e->pass.key, n_blocks, s->k, s->datum, s->at_draw.all, 0, s->block);
    const char *bytes = (const char *)s->block;
    for (uint32_t j = 0; j < n_noted; j++) memcpy(&s->half[j], bytes + 2 * (size_t)s->at[j], 2);
}

const half16 *rws__words_row(word_source *s, uint32_t i, uint32_t from, uint32_t n)
{
    const level *l = &s->e->levels[s->level];
    if (l->stride) return neighbours(s, l, i, from, n);
    if (l->count[i] > WORDS_CHUNK / 4) {
        draw_noted(s, n, note(s, l, i, from, n, 0, 0));
        s->first = s->end = 0;
        return s->half;
    }
    if (i < s->first || i >= s->end) {
        uint32_t n_noted = 0, n_blocks = 0;
        s->first = s->end = i;
        while (s->end < l->n_rows && n_noted + l->count[s->end] <= WORDS_CHUNK) {
            const uint32_t row = s->end++;
            s->start[row - i] = n_noted;
            n_blocks = note(s, l, row, 0, l->count[row], n_noted, n_blocks);
            n_noted += l->count[row];
        }
        draw_noted(s, n_noted, n_blocks);
    }
    return s->half + s->start[i - s->first] + from;
}
