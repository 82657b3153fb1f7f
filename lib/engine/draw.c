/* draw.c - random draws: every particle has its own counter, so that its draws do not depend on the row it shares.
 *
 * A categorical draw turns a particle's random bits into u in 0 … 2^30 - 1 and counts the thresholds that u reaches:
 *
 *     threshold[c] = 2^30 * P(category <= c)          0 .. |--c0--|c1|---c2---| .. 2^30
 *
 * so a category of probability below 2^-30 is never drawn. The upper 16 bits of u decide nearly always, so whole vectors
 * of particles are compared by them; the other bits are looked at only where the upper ones equal those of a threshold.
 * Particles with equal outcomes share a row. The particles of a row are listed when the list is needed
 * (rws__level_particles). */
#include "engine/outcomes.h"
#include "engine/words.h"

#include <string.h>

#define BITS 30
#define LOW 14 /* bits below the first 16 */

#define PART 2048 /* particles that are compared before the undecided ones among them are looked at */
#define LANES 16  /* thresholds compared at once; rows of them are padded to a multiple */

typedef int16_t h16 __attribute__((vector_size(32), may_alias));

static int padded(int C)
{
    return (C + LANES - 1) / LANES * LANES;
}

/* Thresholds of a row: running sums of probabilities as integers, whose additions are exact in any order, so they never
 * fall and stay put where a probability is zero. The upper halves of thresholds are less by 2^15, so that they compare as
 * signed numbers. A threshold of 2^30 is never reached; its half is the highest one, and its other bits tell it from
 * thresholds below. False if the row is not a distribution.
 *
 * Rounding leaves a rest, of either sign, between the sum of the probabilities and 2^30. The rest is given to the last
 * category that has at least half of the mean probability, because a rare category would be drawn far more often than its
 * density says. The thresholds behind this category move too. If the sum is too large by more than the category has, the
 * thresholds stay as they are; those above 2^30 are never reached. */
static inline __attribute__((always_inline)) bool make_row(const float *p, int C, int width, int32_t *t, int16_t *upper)
{
    const rws_u8 zero = {0};
    const rws_i8 lane = {0, 1, 2, 3, 4, 5, 6, 7};
    const float  least = 0.49f / (float)C;
    rws_u8       carry = zero, all = zero;
    int          last = 0;
#pragma GCC unroll 4
    for (int c = 0; c < width; c += 8) {
        const rws_v8 q = load8(p + c, C - c);
        rws_u8       x = (rws_u8) __builtin_convertvector(q * (float)(1 << BITS), rws_i8);
        const int    big = (int)bits8(q >= least);
        all |= x;
        x += __builtin_shufflevector(x, zero, 8, 0, 1, 2, 8, 4, 5, 6);
        x += __builtin_shufflevector(x, zero, 8, 8, 0, 1, 8, 8, 4, 5);
        x += __builtin_shufflevector(x, zero, 8, 8, 8, 8, 3, 3, 3, 3);
        x += carry;
        carry = __builtin_shufflevector(x, x, 7, 7, 7, 7, 7, 7, 7, 7);
        *(rws_u8 *)(t + c) = x;
        last = big ? c + 31 - __builtin_clz((unsigned)big) : last;
    }
    const uint32_t sum = carry[7];
    if (bits8((rws_i8)all)) return false; /* NaN, infinite or negative */
    if (sum < (uint32_t)(0.99 * (1 << BITS)) || sum > (uint32_t)(1.01 * (1 << BITS))) return false;
    const int32_t rest = (1 << BITS) - (int32_t)sum;
    const rws_i8  add = (rws_i8)zero + (rest < -(int32_t)(least * (float)(1 << BITS)) ? 0 : rest);
#pragma GCC unroll 4
    for (int c = 0; c < width; c += 8) {
        const rws_i8 inside = lane < C - c;
        rws_i8       x = *(rws_i8 *)(t + c) + (add & (lane >= last - c));
        x = (x & inside) | (((rws_i8)zero + (1 << BITS)) & ~inside);
        *(rws_i8 *)(t + c) = x;
        *(h8 *)(upper + c) = halves8((x >> LOW) - 32768);
    }
    return true;
}

/* A row of thresholds, and the results of comparing particles with its upper halves. */
typedef struct {
    const int32_t *full;
    const h16     *upper;
    h16           *reached, *equal;
    int            n; /* vectors in each */
} comparison;

static comparison compare_new(rws_engine *e, int C)
{
    const int n = padded(C) / LANES;
    return (comparison){.n = n, .reached = RWS_NEW(&e->arena, h16, n), .equal = RWS_NEW(&e->arena, h16, n)};
}

/* Sets the thresholds to those of row i of a level. */
static void compare_with(comparison *m, const thresholds *t, uint32_t i)
{
    if (t->row) i = t->row[i];
    m->full = t->full + (size_t)i * (size_t)(LANES * m->n);
    m->upper = (const h16 *)t->upper + (size_t)i * (size_t)m->n;
}

typedef int16_t loose16 __attribute__((vector_size(32), aligned(2), may_alias)); /* at any address */

static bool lanes_any(h16 x)
{
    uint64_t four[4];
    memcpy(four, &x, sizeof x);
    return (four[0] | four[1] | four[2] | four[3]) != 0;
}

/* The sum of all lanes, if none is negative and the sum is below 2^16: a multiplication adds the four lanes of a word
 * up in its upper end. */
static uint32_t lanes_sum(h16 x)
{
    uint64_t four[4];
    memcpy(four, &x, sizeof x);
    return (uint32_t)((four[0] + four[1] + four[2] + four[3]) * 0x0001000100010001u >> 48);
}

/* Many particles: one threshold at a time, a particle in each lane. n is a multiple of LANES. */
static void compare_many(comparison *m, const half16 *half, uint32_t n)
{
    const half16 *upper = (const half16 *)m->upper;
    half16       *reached = (half16 *)m->reached, *equal = (half16 *)m->equal;
    for (int c = 0; c < LANES * m->n; c++) {
        h16        above = {0}, at = {0};
        const bool never = m->full[c] >= 1 << BITS;
        if (c && upper[c] == upper[c - 1] &&
            never == (m->full[c - 1] >= 1 << BITS)) { /* the same threshold as the one before */
            reached[c] = reached[c - 1];
            equal[c] = equal[c - 1];
            continue;
        }
        if (!never)
#pragma GCC unroll 4
            for (const half16 *next = half; next < half + n; next += LANES) {
                const h16 u = *(const loose16 *)next;
                above -= u > upper[c]; /* a true lane is -1 */
                at |= u == upper[c];
            }
        reached[c] = (int16_t)lanes_sum(above);
        equal[c] = lanes_any(at);
    }
}

/* Few particles: one at a time, a threshold in each lane. `first`: no particles were compared before. True if the upper
 * half of a particle equals that of a threshold. */
static bool compare_few(comparison *m, const half16 *half, uint32_t n, bool first)
{
    h16 any = {0};
    for (int v = 0; v < m->n; v++) {
        const h16 upper = m->upper[v], zero = {0};
        h16       reached = first ? zero : m->reached[v], equal = first ? zero : m->equal[v];
#pragma GCC unroll 4
        for (uint32_t i = 0; i < n; i++) {
            reached -= half[i] > upper;
            equal |= half[i] == upper;
        }
        m->reached[v] = reached;
        m->equal[v] = equal;
        any |= equal;
    }
    return lanes_any(any);
}

/* reached = number of particles whose upper half is above that of each threshold; equal is not 0 where the upper half
 * of a particle equals that of the threshold. True if one does. */
static bool compare(comparison *m, const half16 *half, uint32_t n)
{
    const uint32_t many = n >= 8 * LANES ? n / LANES * LANES : 0;
    if (many) compare_many(m, half, many);
    return compare_few(m, half + many, n - many, !many);
}

static int32_t all_bits(const word_source *s, int16_t half, uint32_t i, uint32_t k)
{
    return (int32_t)(((uint32_t)(half + 32768) << LOW) | rws__words_rest(s, i, k));
}

/* Compares particles whose upper half equals that of a threshold with it by all their bits. */
static void compare_rest(comparison *m, const word_source *s, const half16 *half, uint32_t i, uint32_t from, uint32_t n)
{
    for (int c = 0; c < LANES * m->n; c++) {
        const int16_t upper = m->upper[c / LANES][c % LANES];
        if (!m->equal[c / LANES][c % LANES] || m->full[c] >= 1 << BITS) continue;
        for (uint32_t k = 0; k < n; k++) {
            while (k + LANES <= n && !lanes_any(*(const loose16 *)(half + k) == upper)) k += LANES;
            if (k < n && half[k] == upper && all_bits(s, half[k], i, from + k) >= m->full[c])
                m->reached[c / LANES][c % LANES]++;
        }
    }
}

/* Adds the outcomes of the n particles of row i, any number of them; `reached` has room for a number per threshold and one
 * before: how many particles reach it. */
static void draw_many(comparison *m, word_source *s, uint32_t i, uint32_t n, uint32_t *reached, outcomes *o)
{
    reached[0] = n;
    memset(reached + 1, 0, (size_t)(LANES * m->n) * sizeof *reached);
    for (uint32_t at = 0; at < n; at += PART) {
        const uint32_t part = n - at < PART ? n - at : PART;
        const half16  *half = rws__words_row(s, i, at, part), *lanes = (const half16 *)m->reached;
        if (compare(m, half, part)) compare_rest(m, s, half, i, at, part);
        for (int c = 0; c < LANES * m->n; c++) reached[c + 1] += (uint32_t)lanes[c];
    }
    for (int c = 0; c < LANES * m->n; c += 8)
        list8(o, *(const rws_i8 *)(reached + c) - *(const rws_i8 *)(reached + c + 1), i, (uint32_t)c, s->pack);
}

#define FEW (8 * LANES) /* particles */

/* The same for fewer than FEW particles and V vectors of thresholds, in registers. */
static inline __attribute__((always_inline)) void draw_few(comparison *m, word_source *s, uint32_t i, uint32_t n,
                                                           outcomes *o, const int V)
{
    const half16 *half = rws__words_few(s, i, n);
    h16           reached[2] = {{0}}, equal[2] = {{0}}, before = (h16){0} + (int16_t)n;
#pragma GCC unroll 4
    for (uint32_t k = 0; k < n; k++)
        for (int v = 0; v < V; v++) {
            reached[v] -= half[k] > m->upper[v];
            equal[v] |= half[k] == m->upper[v];
        }
    if (lanes_any(equal[0] | equal[1])) {
        for (int v = 0; v < V; v++) m->reached[v] = reached[v], m->equal[v] = equal[v];
        compare_rest(m, s, half, i, 0, n);
        for (int v = 0; v < V; v++) reached[v] = m->reached[v];
    }
    for (int v = 0; v < V; v++) {
        const h16 count = __builtin_shufflevector(before, reached[v], 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26,
                                                  27, 28, 29, 30) -
                          reached[v];
        const h8 low = __builtin_shufflevector(count, count, 0, 1, 2, 3, 4, 5, 6, 7);
        const h8 high = __builtin_shufflevector(count, count, 8, 9, 10, 11, 12, 13, 14, 15);
        list8(o, __builtin_convertvector(low, rws_i8), i, (uint32_t)(LANES * v), s->pack);
        list8(o, __builtin_convertvector(high, rws_i8), i, (uint32_t)(LANES * v + 8), s->pack);
        before = reached[v];
    }
}

/* The category of one particle: how many thresholds it reaches. */
static uint32_t category_of(comparison *m, const word_source *s, const half16 *half, uint32_t i, uint32_t k)
{
    if (compare(m, half, 1)) compare_rest(m, s, half, i, k, 1);
    h16 sum = {0};
    for (int v = 0; v < m->n; v++) sum += m->reached[v];
    return lanes_sum(sum);
}

/* The categories of particles from … from + n - 1 of row i, n <= LANES. */
static void categories_of(comparison *m, const word_source *s, const half16 *half, uint32_t i, uint32_t from,
                          uint32_t n, int16_t out[LANES])
{
    const half16 *upper = (const half16 *)m->upper;
    h16           reached = {0}, equal = {0};
    if (n == LANES) {
        const h16 u = *(const loose16 *)half;
        for (int c = 0; c < LANES * m->n && m->full[c] < 1 << BITS; c++) {
            reached -= u > upper[c];
            equal |= u == upper[c];
        }
        memcpy(out, &reached, sizeof reached);
    }
    if (n < LANES || lanes_any(equal))
        for (uint32_t k = 0; k < n; k++) out[k] = (int16_t)category_of(m, s, half + k, i, from + k);
}

/* Whether a level is a subset of its parent's rows whose particles are not listed yet. */
static bool is_unlisted_subset(const level *l)
{
    return !l->particles && !l->stride && !l->draw && !l->merge && !l->values;
}

/* Lists the particles of a level that is a subset of its parent's rows: they are those of the rows that it has at the
 * first ancestor that is another kind of level, or is listed. The ancestor is found in a loop: this runs on the stack of a
 * path, and a path may have split thousands of times. */
static const uint32_t *list_subset(rws_engine *e, uint32_t to)
{
    uint32_t from = e->levels[to].parent;
    while (is_unlisted_subset(&e->levels[from])) from = e->levels[from].parent;
    const uint32_t *particles = rws__level_particles(e, from), *up = rws__level_map(e, to, from);
    const level    *p = &e->levels[from];
    level          *l = &e->levels[to];
    uint32_t       *start = RWS_NEW(&e->arena, uint32_t, l->n_rows);
    if (p->stride) {
        uint32_t n = 0, at = 0;
        for (uint32_t i = 0; i < l->n_rows; i++) n += l->count[i];
        uint32_t *ids = RWS_NEW(&e->arena, uint32_t, n);
        for (uint32_t i = 0; i < l->n_rows; i++) {
            start[i] = at;
            for (uint32_t k = 0; k < l->count[i]; k++) ids[at++] = up[i] * p->stride + k;
        }
        particles = ids;
    } else {
        for (uint32_t i = 0; i < l->n_rows; i++) start[i] = p->particles_start[up[i]];
    }
    l->particles_start = start;
    return l->particles = particles;
}

/* Lists the particles of a merged level, row by row from the rows of its parts. */
static const uint32_t *list_merged(rws_engine *e, uint32_t to)
{
    const merge *m = e->levels[to].merge;
    for (uint32_t p = 0; p < m->n; p++) rws__level_particles(e, m->parts[p].level);
    level    *l = &e->levels[to];
    uint32_t *start = RWS_NEW(&e->arena, uint32_t, l->n_rows), n = 0, at = 0;
    for (uint32_t i = 0; i < l->n_rows; i++) n += l->count[i];
    uint32_t *ids = RWS_NEW(&e->arena, uint32_t, n);
    for (uint32_t i = 0; i < l->n_rows; i++) {
        start[i] = at;
        for (uint32_t k = 0; k < l->count[i]; k++)
            ids[at++] = particle_at(&e->levels[m->parts[m->part[i]].level], m->row[i], k);
    }
    l->particles_start = start;
    return l->particles = ids;
}

/* Lists the particles of a level that a summed site has made. */
static const uint32_t *list_summed(rws_engine *e, uint32_t to)
{
    rws__level_particles(e, e->levels[to].parent);
    level       *l = &e->levels[to];
    const level *p = &e->levels[l->parent];
    uint32_t    *start = RWS_NEW(&e->arena, uint32_t, l->n_rows), n = 0, at = 0;
    for (uint32_t i = 0; i < l->n_rows; i++) n += l->count[i];
    uint32_t *ids = RWS_NEW(&e->arena, uint32_t, n);
    for (uint32_t i = 0; i < l->n_rows; i++) {
        start[i] = at;
        for (uint32_t k = 0; k < l->count[i]; k++) ids[at++] = particle_at(p, l->up[i], k) * l->values + i % l->values;
    }
    l->particles_start = start;
    return l->particles = ids;
}

/* Lists the particles of a drawn level by drawing again: a counter gives the same number twice. */
const uint32_t *rws__level_particles(rws_engine *e, uint32_t to)
{
    if (e->levels[to].particles || e->levels[to].stride) return e->levels[to].particles;
    if (is_unlisted_subset(&e->levels[to])) return list_subset(e, to);
    if (e->levels[to].merge) return list_merged(e, to);
    if (e->levels[to].values) return list_summed(e, to);
    const draw_record *d = e->levels[to].draw;
    word_source       *source = rws__words_new(e, d->parent, d->at_draw);
    level             *l = &e->levels[to];
    const level       *p = &e->levels[d->parent];
    uint32_t          *start = RWS_NEW(&e->arena, uint32_t, l->n_rows), *fill = RWS_NEW(&e->arena, uint32_t, l->n_rows);
    uint32_t           n = 0;
    for (uint32_t i = 0; i < l->n_rows; i++) start[i] = fill[i] = n, n += l->count[i];
    uint32_t  *ids = RWS_NEW(&e->arena, uint32_t, n), *row_of = RWS_NEW(&e->arena, uint32_t, d->n_categories);
    comparison m = compare_new(e, d->n_categories);
    for (uint32_t i = 0; i < p->n_rows; i++) {
        const uint32_t end = i + 1 < p->n_rows ? d->child[i + 1] : l->n_rows;
        if (end - d->child[i] == 1) { /* all particles of the row have one outcome */
            for (uint32_t k = 0; k < p->count[i]; k++) ids[fill[d->child[i]]++] = particle_at(p, i, k);
            continue;
        }
        for (uint32_t r = d->child[i]; r < end; r++) row_of[d->category[r]] = r;
        compare_with(&m, &d->threshold, i);
        for (uint32_t from = 0; from < p->count[i]; from += WORDS_CHUNK) {
            const uint32_t part = p->count[i] - from < WORDS_CHUNK ? p->count[i] - from : WORDS_CHUNK;
            const half16  *half = rws__words_row(source, i, from, part);
            for (uint32_t j = 0; j < part; j += LANES) {
                const uint32_t few = part - j < LANES ? part - j : LANES;
                int16_t        category[LANES];
                categories_of(&m, source, half + j, i, from + j, few, category);
                for (uint32_t k = 0; k < few; k++) ids[fill[row_of[category[k]]]++] = particle_at(p, i, from + j + k);
            }
        }
    }
    l->particles_start = start;
    return l->particles = ids;
}

static bool has(const uint32_t *list, uint32_t n, uint32_t x)
{
    while (n && list[n - 1] != x) n--;
    return n > 0;
}

/* Rows of probabilities as thresholds, a row for each row of the path's level, or for each row of probabilities if these are
 * far fewer. Some of them may be read by other paths only. */
static thresholds make_thresholds(rws_path *path, rws_var log_probabilities)
{
    rws_engine    *e = path->e;
    const int      dim = e->nodes[log_probabilities.id].dim;
    const size_t   C = (size_t)dim, width = (size_t)padded(dim);
    const reading  r = rws__node_read(e, log_probabilities.id, path->level);
    const uint32_t here = e->levels[path->level].n_rows;
    const bool     shared = r.row && r.n <= here / 2;
    const uint32_t rows = shared ? r.n : here, *map = shared ? NULL : r.row;
    const float   *p = r.exp;
    if (!p) {
        const size_t size = r.n * C;
        float       *exps = RWS_NEW(&e->arena, float, size);
        rws__function_apply(RWS_EXP, size, r.value, exps);
        p = exps;
    }
    int32_t *full = RWS_NEW(&e->arena, int32_t, rows * width);
    int16_t *upper = RWS_NEW(&e->arena, int16_t, rows * width);
    char     text[160];
    for (uint32_t i = 0; i < rows; i++)
        if (!make_row(p + (map ? map[i] : i) * C, dim, (int)width, full + i * width, upper + i * width) &&
            (!shared || has(r.row, here, i)))
            rws__path_fail(path, RWS_BROKEN,
                           "The probabilities at site %s in the %s are not a distribution (NaN or all impossible).",
                           rws__site_text(e, path->site, path->site_visit, text), rws__side_name(path->side));
    return (thresholds){full, upper, shared ? r.row : NULL};
}

/* A draw outside of a site would be random without a density. */
static void expect_site(rws_path *path, const char *function)
{
    if (path->depth == 0)
        rws__path_mistake(path, "%s was called by the program; it is for the draw of a distribution.", function);
}

/* The value of an index that was drawn for the rows of a level. */
static rws_var index_at(rws_path *path, uint32_t at, float *value, int n_values)
{
    const uint32_t id = rws__node_leaf(path->e, at, 1, value);
    rws__dependence_index(path->e, id, (uint32_t)n_values);
    return path_var(path, id);
}

/* The same for a level that the draw has made. */
static rws_var drawn_at(rws_path *path, uint32_t to, float *value, int n_values)
{
    const rws_var index = index_at(path, to, value, n_values);
    path->e->levels[to].drawn = index.id;
    path->level = to;
    return index;
}

rws_var rws_draw_index(rws_path *path, rws_var log_probabilities)
{
    rws_engine *e = path->e;
    expect_site(path, __func__);
    rws__path_expect(path, log_probabilities, __func__);
    if (e->nodes[log_probabilities.id].dim > RWS_MAX_INDEX)
        rws__path_mistake(path, "rws_draw_index was given %d log-probabilities, which is more than %d.",
                          e->nodes[log_probabilities.id].dim, RWS_MAX_INDEX);
    rws__path_need(path, &log_probabilities, 1);
    const uint32_t   from = path->level;
    const ordinals   at_draw = rws__path_ordinals(path);
    const int        C = e->nodes[log_probabilities.id].dim;
    const thresholds threshold = make_thresholds(path, log_probabilities);
    word_source     *source = rws__words_new(e, from, at_draw);
    const level     *l = &e->levels[from];
    const uint32_t   rows = l->n_rows;

    size_t most = 8, particles = 0;
    for (uint32_t i = 0; i < rows; i++) {
        most += l->count[i] < (uint32_t)C ? l->count[i] : (uint32_t)C;
        particles += l->count[i];
    }
    uint32_t  *child = RWS_NEW(&e->arena, uint32_t, rows);
    outcomes   o = {.up = RWS_NEW(&e->arena, uint32_t, most),
                    .count = RWS_NEW(&e->arena, uint32_t, most),
                    .category = RWS_NEW(&e->arena, uint32_t, most),
                    .value = RWS_NEW(&e->arena, float, most)};
    comparison m = compare_new(e, C);
    uint32_t  *reached = RWS_NEW(&e->arena, uint32_t, padded(C) + 1);
    for (uint32_t i = 0; i < rows; i++) {
        child[i] = o.n;
        compare_with(&m, &threshold, i);
        if (m.n == 1 && l->count[i] < FEW) draw_few(&m, source, i, l->count[i], &o, 1);
        else if (m.n == 2 && l->count[i] < FEW) draw_few(&m, source, i, l->count[i], &o, 2);
        else draw_many(&m, source, i, l->count[i], reached, &o);
    }
    if (l->single) return index_at(path, from, o.value, C); /* every row was one particle already */

    draw_record *d = RWS_NEW(&e->arena, draw_record, 1);
    *d = (draw_record){from, at_draw, C, threshold, child, o.category};
    const uint32_t to = rws__level_new(e, from, o.n);
    e->levels[to].up = o.up;
    e->levels[to].count = o.count;
    e->levels[to].draw = d;
    e->levels[to].single = o.n == particles;
    return drawn_at(path, to, o.value, C);
}

#define ALONE (1u << 31) /* numbers the blocks of noise_alone */

/* Blocks of random words of n particles, those of the rows from `first` on if rows have ordinals of their own. */
static void blocks_at_draw(const rws_engine *e, ordinals o, uint32_t first, uint32_t n, const uint32_t *k,
                           const uint32_t *datum, uint32_t number, uint32_t *out)
{
    if (o.row) rws__rng_blocks_at(e->pass.key, n, k, datum, o.row + first, number, out);
    else rws__rng_blocks(e->pass.key, n, k, datum, o.all, number, out);
}

/* One number for each particle. Four neighbours share a block of four words: a word is a uniform, and two words are two
 * normals (a cosine and a sine). If most particles of the pass are here each block is drawn once, else once for each
 * row. */
static void noise_alone(rws_engine *e, const level *l, ordinals at_draw, rws_noise kind, float *value)
{
    const uint32_t n = l->n_rows, K = (uint32_t)e->pass.n_particles, lane = e->pass.first_particle % 4;
    const uint32_t each = (lane + K + 3) / 4, all = at_draw.row || l->width > 1 ? n : each * (uint32_t)e->pass.n_data;
    const uint32_t n_blocks = all < n ? all : n;
    uint32_t      *block = RWS_NEW0(&e->arena, uint32_t, n_blocks), *datum = RWS_NEW0(&e->arena, uint32_t, n_blocks);
    uint32_t      *words = RWS_NEW(&e->arena, uint32_t, 4 * (size_t)n_blocks), *at = RWS_NEW(&e->arena, uint32_t, n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k, d;
        particle_counter(e, l, particle_at(l, i, 0), &k, &d);
        const uint32_t b = all < n ? (d - e->pass.first_datum) * each + k / 4 - e->pass.first_particle / 4 : i;
        block[b] = k / 4, datum[b] = d;
        at[i] = 4 * b + k % 4;
    }
    blocks_at_draw(e, at_draw, 0, n_blocks, block, datum, ALONE, words);
    if (kind == RWS_NOISE_UNIFORM) {
        for (uint32_t i = 0; i < n; i++) value[i] = rws__unit(words[at[i]]);
        return;
    }
#pragma omp simd
    for (uint32_t i = 0; i < n; i++)
        value[i] = rws__box_muller(rws__unit(words[at[i] & ~1u]), rws__unit(words[at[i] | 1]), (float)(at[i] & 1));
}

#define NOISE_CHUNK 64 /* particles */

/* A vector for each particle, from blocks of its own. They are numbered from 1: particles of one datum that have parted
 * may draw a category (block 0), one number (ALONE) and a vector under the same ordinal, and must not share bits. */
static void noise_vector(rws_engine *e, const level *l, ordinals at_draw, rws_noise kind, uint32_t dim, float *value)
{
    uint32_t k[NOISE_CHUNK], datum[NOISE_CHUNK], words[4 * NOISE_CHUNK];
    float    four[4 * NOISE_CHUNK];
    for (uint32_t first = 0; first < l->n_rows; first += NOISE_CHUNK) {
        const uint32_t n = l->n_rows - first < NOISE_CHUNK ? l->n_rows - first : NOISE_CHUNK;
        for (uint32_t i = 0; i < n; i++) particle_counter(e, l, particle_at(l, first + i, 0), &k[i], &datum[i]);
        for (uint32_t j = 0; j < dim; j += 4) {
            blocks_at_draw(e, at_draw, first, n, k, datum, j / 4 + 1, words);
            if (kind == RWS_NOISE_UNIFORM) {
#pragma omp simd
                for (uint32_t i = 0; i < 4 * n; i++) four[i] = rws__unit(words[i]);
            } else {
#pragma omp simd
                for (uint32_t i = 0; i < 4 * n; i++)
                    four[i] = rws__box_muller(rws__unit(words[i & ~1u]), rws__unit(words[i | 1]), (float)(i & 1));
            }
            float *to = value + (size_t)first * dim + j;
            if (j + 4 <= dim)
                for (uint32_t i = 0; i < n; i++) memcpy(to + (size_t)i * dim, four + 4 * i, 4 * sizeof(float));
            else
                for (uint32_t i = 0; i < n; i++) memcpy(to + (size_t)i * dim, four + 4 * i, (dim - j) * sizeof(float));
        }
    }
}

rws_var rws_draw_noise(rws_path *path, rws_noise kind, int dim)
{
    rws_engine *e = path->e;
    expect_site(path, __func__);
    if (dim < 1) rws__path_mistake(path, "rws_draw_noise was asked for %d numbers.", dim);
    path->level = rws__level_expand(e, path->level);
    rws__level_particles(e, path->level);
    const level   *l = &e->levels[path->level];
    const ordinals at_draw = rws__path_ordinals(path);
    float         *value = RWS_NEW(&e->arena, float, l->n_rows *(size_t)dim);
    rws_arena_mark mark = rws__arena_at(&e->arena);
    if (dim == 1) noise_alone(e, l, at_draw, kind, value);
    else noise_vector(e, l, at_draw, kind, (uint32_t)dim, value);
    rws__arena_release(&e->arena, mark);
    return path_var(path, rws__node_leaf(e, path->level, dim, value));
}

rws_var rws__draw_counters(rws_path *path)
{
    rws_engine *e = path->e;
    path->level = rws__level_expand(e, path->level);
    const uint32_t n = e->levels[path->level].n_rows;
    const ordinals at_draw = rws__path_ordinals(path);
    rws__level_particles(e, path->level);
    const level *l = &e->levels[path->level];
    rws_counter *c = RWS_NEW(&e->arena, rws_counter, n);
    for (uint32_t i = 0; i < n; i++) {
        c[i] = (rws_counter){.ordinal = ordinal_of(at_draw, i), .key = e->pass.key};
        particle_counter(e, l, particle_at(l, i, 0), &c[i].particle, &c[i].datum);
    }
    return path_var(path, rws__node_leaf(e, path->level, RWS_COUNTER, (float *)c));
}

/* In a pass that enumerates a row has no more particles than combinations that fit. */
static void expect_combinations(rws_path *path, uint32_t n)
{
    rws_engine *e = path->e;
    char        text[160];
    for (uint32_t i = 0; i < e->levels[path->level].n_rows; i++)
        if (e->levels[path->level].count[i] < n)
            rws__path_fail(
                path, RWS_BAD_INPUT,
                "There are too many combinations of choices to go through them all: at site %s, a particle has "
                "made the last of the choices that fit into %d combinations.",
                rws__site_text(e, path->site, path->site_visit, text), e->pass.n_particles);
}

#define MOST_SUMMED 4096 /* rows of a particle: rws.h */

static void expect_width(rws_path *path, uint64_t n)
{
    rws_engine    *e = path->e;
    const uint64_t width = e->levels[path->level].width, all = (uint64_t)e->pass.n_data * (uint64_t)e->pass.n_particles;
    char           text[160];
    if (width * n > MOST_SUMMED)
        rws__path_fail(path, RWS_BAD_INPUT,
                       "Site %s is summed: %d values for each of the %d rows that a particle has by sums before it are "
                       "%d rows, and a particle has at most %d. Draw some of these sites or visits (site.NAME=score).",
                       rws__site_text(e, path->site, path->site_visit, text), (int)n, (int)width, (int)(width * n),
                       MOST_SUMMED);
    if (all * width * n > INT32_MAX)
        rws__path_fail(
            path, RWS_BAD_INPUT,
            "Site %s is summed: %d rows for each of %.0f particles of a pass are more than 2^31. Ask for fewer "
            "particles or data at once.",
            rws__site_text(e, path->site, path->site_visit, text), (int)(width * n), (double)all);
}

rws_var rws__draw_every(rws_path *path, int n)
{
    rws_engine    *e = path->e;
    const uint32_t from = path->level, rows = e->levels[from].n_rows, each = (uint32_t)n;
    const size_t   n_rows = (size_t)rows * each;
    const bool     shares = e->pass.enumerate;
    if (shares) expect_combinations(path, each);
    else expect_width(path, each);
    uint32_t *up = RWS_NEW(&e->arena, uint32_t, n_rows), *count = RWS_NEW(&e->arena, uint32_t, n_rows);
    float    *value = RWS_NEW(&e->arena, float, n_rows);
    for (uint32_t i = 0, at = 0; i < rows; i++) {
        const uint64_t all = e->levels[from].count[i];
        for (uint32_t c = 0; c < each; c++, at++) {
            up[at] = i;
            count[at] = (uint32_t)(shares ? all * (c + 1) / each - all * c / each : all);
            value[at] = (float)c;
        }
    }
    const uint32_t to = rws__level_new(e, from, (uint32_t)n_rows);
    level         *l = &e->levels[to];
    l->up = up;
    l->count = count;
    if (!shares) l->values = each, l->width *= each, l->single = e->levels[from].single;
    return drawn_at(path, to, value, n);
}
