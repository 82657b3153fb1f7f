/* draw.c - random draws: every particle has its own counter, whatever rows it shares with others.
 *
 * The counter of a draw is (particle / 4, datum, draws before it on the path, block); a block's four words serve four
 * neighbouring particles. A categorical draw turns its word into 30 bits u and counts the thresholds that u reaches:
 *
 *     threshold[c] = 2^30 * P(category <= c)          0 .. |--c0--|c1|---c2---| .. 2^30
 *
 * so a category of probability zero is never drawn, and one below 2^-30 counts as zero. Particles with equal outcomes
 * then share a row. Which particles they are is only worked out when somebody needs to know (level_who).
 */
#include "base/vecmath.h"
#include "engine/internal.h"

#include <string.h>

#define BITS 30
#define CHUNK 1024 /* blocks of random words drawn at a time */

static void particle_counter(const rws_engine *e, uint32_t id, uint32_t *k, uint32_t *datum)
{
    const uint32_t K = (uint32_t)e->pass.n_particles;
    *datum = e->pass.first_datum + id / K;
    *k = e->pass.first_particle + id % K;
}

typedef float   v4 __attribute__((vector_size(16), aligned(4)));
typedef int32_t i4 __attribute__((vector_size(16), aligned(4)));

/* Thresholds of a row: running sums, four at a time. False if the row is not a distribution; rounding may carry a sum a
 * little beyond 1, which does no harm. */
static bool make_row(const float *p, int C, int32_t *t)
{
    const v4 zero = {0};
    v4       carry = zero;
    int      c = 0;
    for (; c + 4 <= C; c += 4) {
        v4 x = *(const v4 *)(p + c);
        x += __builtin_shufflevector(zero, x, 0, 4, 5, 6);
        x += __builtin_shufflevector(zero, x, 0, 1, 4, 5);
        x += carry;
        carry = __builtin_shufflevector(x, x, 3, 3, 3, 3);
        *(i4 *)(t + c) = __builtin_convertvector(x * (float)(1 << BITS), i4);
    }
    float sum = carry[3];
    for (; c < C; c++) t[c] = (int32_t)((sum += p[c]) * (float)(1 << BITS));
    if (!(sum > 0.99f && sum < 1.01f)) return false;
    /* what is left over by rounding belongs to the last category that can happen at all */
    for (c = C - 1; c >= 0; c--) {
        t[c] = 1 << BITS;
        if (p[c] > 0) break;
    }
    return true;
}

/* Thresholds of n rows, of which row i has the probabilities of row map[i]. */
static bool make_thresholds(const float *p, const uint32_t *map, uint32_t n, int C, int32_t *threshold)
{
    for (uint32_t i = 0; i < n; i++)
        if (!make_row(p + (size_t)(map ? map[i] : i) * (size_t)C, C, threshold + (size_t)i * (size_t)C)) return false;
    return true;
}

/* The number of thresholds that u reaches is the category. */
static uint32_t category_of(const int32_t *t, int C, int32_t u)
{
    uint32_t c = 0;
    for (int j = 0; j < C; j++) c += u >= t[j];
    return c;
}

/* reached[c] += how many of n particles reach threshold c. */
static void count_reached(const int32_t *restrict t, int C, const uint32_t *words, uint32_t n,
                          int32_t *restrict reached)
{
    uint32_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const int32_t a = (int32_t)(words[i] >> 2), b = (int32_t)(words[i + 1] >> 2);
        const int32_t c = (int32_t)(words[i + 2] >> 2), d = (int32_t)(words[i + 3] >> 2);
        for (int j = 0; j < C; j++) reached[j] += (a >= t[j]) + (b >= t[j]) + (c >= t[j]) + (d >= t[j]);
    }
    for (; i < n; i++) {
        const int32_t u = (int32_t)(words[i] >> 2);
        for (int j = 0; j < C; j++) reached[j] += u >= t[j];
    }
}

/* The random words of a level's particles, row by row. Blocks are drawn for a window of rows at a time, because one at a
 * time would be slow. */
typedef struct {
    rws_engine *e;
    uint32_t    level, ordinal;
    uint32_t    first, end;       /* rows in the window */
    uint32_t    start[CHUNK + 1]; /* of each of them in words */
    uint32_t    words[4 * CHUNK];
    uint32_t    k[CHUNK], datum[CHUNK], blocks[4 * CHUNK];
    uint16_t    at[CHUNK];
} word_source;

static word_source *words_new(rws_engine *e, uint32_t from, uint32_t ordinal)
{
    level_who(e, from);
    word_source *s = RWS_NEW(&e->arena, word_source, 1);
    s->e = e, s->level = from, s->ordinal = ordinal, s->first = s->end = 0;
    return s;
}

static uint32_t particle_at(const level *l, uint32_t i, uint32_t k)
{
    return l->stride ? i * l->stride + k : l->who[l->who_start[i] + k];
}

/* Rows of neighbours: their blocks are whole, so the words need no sorting. */
static const uint32_t *neighbour_words(word_source *s, const level *l, uint32_t i, uint32_t from, uint32_t n)
{
    uint32_t k, d;
    particle_counter(s->e, i * l->stride, &k, &d);
    const uint32_t lane = k % 4, each = (lane + l->stride + 3) / 4;
    if (each > CHUNK / 2) { /* a long row is its own window */
        const uint32_t first = (k + from) / 4, n_blocks = (k + from + n + 3) / 4 - first;
        for (uint32_t b = 0; b < n_blocks; b++) s->k[b] = first + b, s->datum[b] = d;
        rws_rng_blocks(s->e->pass.key, n_blocks, s->k, s->datum, s->ordinal, 0, s->words);
        return s->words + (k + from) % 4;
    }
    if (i < s->first || i >= s->end) {
        uint32_t n_blocks = 0;
        s->first = s->end = i;
        for (; s->end < l->n_rows && n_blocks + each <= CHUNK; s->end++)
            for (uint32_t b = 0; b < each; b++, n_blocks++)
                s->k[n_blocks] = k / 4 + b, s->datum[n_blocks] = d + s->end - i;
        rws_rng_blocks(s->e->pass.key, n_blocks, s->k, s->datum, s->ordinal, 0, s->words);
    }
    return s->words + 4 * (size_t)(i - s->first) * each + lane + from;
}

/* Adds particles from … from + n - 1 of row i to the blocks to be drawn. */
static uint32_t words_note(word_source *s, const level *l, uint32_t i, uint32_t from, uint32_t n, uint32_t n_words,
                           uint32_t n_blocks)
{
    for (uint32_t j = 0; j < n; j++) {
        uint32_t k, d;
        particle_counter(s->e, particle_at(l, i, from + j), &k, &d);
        if (!n_blocks || s->k[n_blocks - 1] != k / 4 || s->datum[n_blocks - 1] != d)
            s->k[n_blocks] = k / 4, s->datum[n_blocks] = d, n_blocks++;
        s->at[n_words + j] = (uint16_t)(4 * (n_blocks - 1) + k % 4);
    }
    return n_blocks;
}

static void words_draw(word_source *s, uint32_t n_words, uint32_t n_blocks)
{
    rws_rng_blocks(s->e->pass.key, n_blocks, s->k, s->datum, s->ordinal, 0, s->blocks);
    for (uint32_t j = 0; j < n_words; j++) s->words[j] = s->blocks[s->at[j]];
}

/* Words of particles from … from + n - 1 of row i; n is at most CHUNK. */
static const uint32_t *row_words(word_source *s, uint32_t i, uint32_t from, uint32_t n)
{
    const level *l = &s->e->levels[s->level];
    if (l->stride) return neighbour_words(s, l, i, from, n);
    if (l->count[i] > CHUNK / 4) {
        words_draw(s, n, words_note(s, l, i, from, n, 0, 0));
        s->first = s->end = 0;
        return s->words;
    }
    if (i < s->first || i >= s->end) {
        uint32_t n_words = 0, n_blocks = 0;
        s->first = s->end = i;
        while (s->end < l->n_rows && n_words + l->count[s->end] <= CHUNK) {
            const uint32_t row = s->end++;
            s->start[row - i] = n_words;
            n_blocks = words_note(s, l, row, 0, l->count[row], n_words, n_blocks);
            n_words += l->count[row];
        }
        words_draw(s, n_words, n_blocks);
    }
    return s->words + s->start[i - s->first] + from;
}

/* Lists the particles of a drawn level by drawing again: a counter gives the same number twice. */
const uint32_t *level_who(rws_engine *e, uint32_t to)
{
    if (e->levels[to].who || e->levels[to].stride) return e->levels[to].who;
    const draw_record *d = e->levels[to].draw;
    if (!d) { /* a subset of the parent's rows */
        const uint32_t *who = level_who(e, e->levels[to].parent);
        const level    *p = &e->levels[e->levels[to].parent];
        level          *l = &e->levels[to];
        uint32_t       *start = RWS_NEW(&e->arena, uint32_t, l->n_rows);
        if (p->stride) {
            uint32_t n = 0, at = 0;
            for (uint32_t i = 0; i < l->n_rows; i++) n += l->count[i];
            uint32_t *ids = RWS_NEW(&e->arena, uint32_t, n);
            for (uint32_t i = 0; i < l->n_rows; i++) {
                start[i] = at;
                for (uint32_t k = 0; k < l->count[i]; k++) ids[at++] = l->up[i] * p->stride + k;
            }
            who = ids;
        } else {
            for (uint32_t i = 0; i < l->n_rows; i++) start[i] = p->who_start[l->up[i]];
        }
        l->who_start = start;
        return l->who = who;
    }
    word_source *source = words_new(e, d->parent, d->ordinal);
    level       *l = &e->levels[to];
    const level *p = &e->levels[d->parent];
    uint32_t    *start = RWS_NEW(&e->arena, uint32_t, l->n_rows), *fill = RWS_NEW(&e->arena, uint32_t, l->n_rows);
    uint32_t     n = 0;
    for (uint32_t i = 0; i < l->n_rows; i++) start[i] = fill[i] = n, n += l->count[i];
    uint32_t *ids = RWS_NEW(&e->arena, uint32_t, n), *row_of = RWS_NEW(&e->arena, uint32_t, d->n_categories);
    for (uint32_t i = 0; i < p->n_rows; i++) {
        const uint32_t end = i + 1 < p->n_rows ? d->child[i + 1] : l->n_rows;
        for (uint32_t r = d->child[i]; r < end; r++) row_of[d->category[r]] = r;
        for (uint32_t from = 0; from < p->count[i]; from += CHUNK) {
            const uint32_t  m = p->count[i] - from < CHUNK ? p->count[i] - from : CHUNK;
            const uint32_t *words = row_words(source, i, from, m);
            for (uint32_t j = 0; j < m; j++) {
                uint32_t c = category_of(d->threshold + (size_t)i * (size_t)d->n_categories, d->n_categories,
                                         (int32_t)(words[j] >> 2));
                ids[fill[row_of[c]]++] = particle_at(p, i, from + j);
            }
        }
    }
    l->who_start = start;
    return l->who = ids;
}

rws_var rws_draw_index(rws_run *r, rws_var log_probabilities)
{
    rws_engine *e = r->e;
    run_need(r, log_probabilities.id);
    const uint32_t from = r->level, ordinal = r->ordinal++;
    const node    *n = &e->nodes[log_probabilities.id];
    const int      C = n->dim;
    const uint32_t rows = e->levels[from].n_rows;
    const float   *p = n->saved;
    if (!p) {
        const size_t size = (size_t)e->levels[n->level].n_rows * (size_t)C;
        float       *exps = RWS_NEW(&e->arena, float, size);
        rws_function_apply(RWS_EXP, size, n->value, exps);
        p = exps;
    }
    int32_t *threshold = RWS_NEW(&e->arena, int32_t, (size_t)rows * (size_t)C);
    char     text[160];
    if (!make_thresholds(p, level_map(e, from, n->level), rows, C, threshold))
        run_fail(r, RWS_BROKEN, "The probabilities at site %s are not a distribution (NaN or all impossible).",
                 site_text(e, r->site, r->site_visit, text));

    word_source *source = words_new(e, from, ordinal);
    const level *l = &e->levels[from];
    if (l->single) { /* nothing to share: the index is one more number per row */
        float *value = RWS_NEW(&e->arena, float, rows);
        for (uint32_t i = 0; i < rows; i++)
            value[i] =
                (float)category_of(threshold + (size_t)i * (size_t)C, C, (int32_t)(row_words(source, i, 0, 1)[0] >> 2));
        return (rws_var){node_leaf(e, from, 1, value)};
    }
    uint32_t most = 0;
    for (uint32_t i = 0; i < rows; i++) most += l->count[i] < (uint32_t)C ? l->count[i] : (uint32_t)C;
    uint32_t *up = RWS_NEW(&e->arena, uint32_t, most), *count = RWS_NEW(&e->arena, uint32_t, most);
    uint32_t *category = RWS_NEW(&e->arena, uint32_t, most), *child = RWS_NEW(&e->arena, uint32_t, rows);
    int32_t  *reached = RWS_NEW(&e->arena, int32_t, C);
    uint32_t  n_rows = 0;
    bool      single = true;
    for (uint32_t i = 0; i < rows; i++) {
        memset(reached, 0, (size_t)C * sizeof *reached);
        for (uint32_t at = 0; at < l->count[i]; at += CHUNK) {
            const uint32_t m = l->count[i] - at < CHUNK ? l->count[i] - at : CHUNK;
            count_reached(threshold + (size_t)i * (size_t)C, C, row_words(source, i, at, m), m, reached);
        }
        child[i] = n_rows;
        int32_t left = (int32_t)l->count[i]; /* particles of this category or a later one */
        for (uint32_t c = 0; left; left = reached[c++]) {
            const uint32_t here = (uint32_t)(left - reached[c]);
            if (!here) continue;
            up[n_rows] = i, count[n_rows] = here, category[n_rows++] = c;
            single &= here == 1;
        }
    }
    draw_record *d = RWS_NEW(&e->arena, draw_record, 1);
    *d = (draw_record){from, ordinal, C, threshold, child, category};
    const uint32_t to = level_new(e, from, n_rows);
    e->levels[to].up = up;
    e->levels[to].count = count;
    e->levels[to].draw = d;
    e->levels[to].single = single;
    r->level = to;
    float *value = RWS_NEW(&e->arena, float, n_rows);
    for (uint32_t i = 0; i < n_rows; i++) value[i] = (float)category[i];
    return (rws_var){node_leaf(e, to, 1, value)};
}

/* Number j of a particle: with dim 1 neighbours share a block as above; else a particle has blocks of its own, numbered
 * from 1 so that they are never those. A normal needs two words and leaves a sine for the odd neighbour. */
rws_var rws_draw_noise(rws_run *r, rws_noise kind, int dim)
{
    rws_engine *e = r->e;
    r->level = level_expand(e, r->level);
    const uint32_t n = e->levels[r->level].n_rows, ordinal = r->ordinal++;
    level_who(e, r->level);
    const level   *l = &e->levels[r->level];
    const size_t   size = (size_t)n * (size_t)dim;
    float         *value = RWS_NEW(&e->arena, float, size);
    const uint32_t blocks_each = dim == 1 ? 1 : ((uint32_t)dim + 3) / 4;
    rws_arena_mark mark = rws_arena_at(&e->arena);
    uint32_t      *k = RWS_NEW(&e->arena, uint32_t, n), *datum = RWS_NEW(&e->arena, uint32_t, n);
    uint32_t      *lane = RWS_NEW(&e->arena, uint32_t, n), *words = RWS_NEW(&e->arena, uint32_t, 4 * (size_t)n);
    for (uint32_t i = 0; i < n; i++) {
        particle_counter(e, particle_at(l, i, 0), &k[i], &datum[i]);
        lane[i] = k[i] % 4;
        if (dim == 1) k[i] /= 4;
    }
    for (uint32_t b = 0; b < blocks_each; b++) {
        rws_rng_blocks(e->pass.key, n, k, datum, ordinal, dim == 1 ? 0 : b + 1, words);
        const int first = 4 * (int)b, m = dim - first < 4 ? dim - first : 4;
        for (int j = 0; j < m; j++) {
            float *out = value + first + j;
            if (kind == RWS_NOISE_UNIFORM) {
                for (uint32_t i = 0; i < n; i++)
                    out[(size_t)i * (size_t)dim] = rws_unit(words[4 * i + (dim == 1 ? lane[i] : (uint32_t)j)]);
            } else if (dim == 1) {
#pragma omp simd
                for (uint32_t i = 0; i < n; i++)
                    out[i] = rws_box_muller(rws_unit(words[4 * i + (lane[i] & 2)]),
                                            rws_unit(words[4 * i + (lane[i] & 2) + 1]), (float)(lane[i] & 1));
            } else {
#pragma omp simd
                for (uint32_t i = 0; i < n; i++)
                    out[(size_t)i * (size_t)dim] =
                        rws_box_muller(rws_unit(words[4 * i + ((uint32_t)j & 2)]),
                                       rws_unit(words[4 * i + ((uint32_t)j & 2) + 1]), (float)(j & 1));
            }
        }
    }
    rws_arena_release(&e->arena, mark);
    return (rws_var){node_leaf(e, r->level, dim, value)};
}
