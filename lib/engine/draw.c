/* draw.c - random draws: every particle has its own counter, so that its draws do not depend on the row it shares.
 *
 * A categorical draw turns a particle's random bits into u in 0 … 2^30 - 1 and counts the thresholds that u reaches:
 *
 *     threshold[c] = 2^30 * P(category <= c)          0 .. |--c0--|c1|---c2---| .. 2^30
 *
 * so a category of probability below 2^-30 is never drawn. The upper 16 bits of u decide nearly always, so whole vectors
 * of particles are compared by them; the other bits are looked at only where the upper ones equal those of a threshold.
 * Particles with equal outcomes share a row. The particles of a row are listed when the list is needed
 * (rws_level_particles). */
#include "base/vecmath.h"
#include "engine/outcomes.h"
#include "engine/words.h"

#include <string.h>

#define BITS 30
#define LOW 14 /* bits below the first 16 */

#define PART 2048 /* particles that are compared before the undecided ones among them are looked at */
#define LANES 16  /* thresholds compared at once; rows of them are padded to a multiple */

typedef float    v4 __attribute__((vector_size(16), aligned(4), may_alias));
typedef uint32_t u4 __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t  i4 __attribute__((vector_size(16), aligned(4), may_alias));
typedef int16_t  h16 __attribute__((vector_size(32), may_alias));

static int padded(int C)
{
    return (C + LANES - 1) / LANES * LANES;
}

typedef int16_t h4 __attribute__((vector_size(8), aligned(2), may_alias));

/* The upper halves of thresholds, less 2^15 so that they compare as signed numbers. A threshold of 2^30 is never
 * reached; its half is the highest one, and its other bits tell it from thresholds below. */
static h4 upper_halves(u4 t)
{
    const u4 upper = t >> LOW, most = (u4){0} + 65535, fits = (u4)(upper < most);
    return __builtin_convertvector((i4)((upper & fits) | (most & ~fits)) - 32768, h4);
}

/* Rounding leaves a rest, of either sign, between the sum of the probabilities and 2^30. The rest is given to the last
 * category that has at least half of the mean probability, because a rare category would be drawn far more often than its
 * density says. The thresholds behind this category move too. If the sum is too large by more than the category has, the
 * thresholds stay as they are; those above 2^30 are never reached. */
static void give_rest(const float *p, int C, int32_t rest, int32_t *t, int16_t *upper)
{
    const float least = 0.49f / (float)C;
    if (rest < -(int32_t)(least * (float)(1 << BITS))) return;
    for (int c = C - 1; c >= 0; c--) {
        t[c] += rest;
        const int32_t half = t[c] >> LOW;
        upper[c] = (int16_t)((half < 65535 ? half : 65535) - 32768);
        if (p[c] >= least) return;
    }
}

/* Thresholds of a row: running sums of probabilities as integers, whose additions are exact in any order, so they never
 * fall and stay put where a probability is zero. False if the row is not a distribution. */
static bool make_row(const float *p, int C, int32_t *t, int16_t *upper)
{
    const u4 zero = {0};
    u4       carry = zero, all = zero;
    int      c = 0;
    for (; c + 4 <= C; c += 4) {
        u4 x = (u4) __builtin_convertvector(*(const v4 *)(p + c) * (float)(1 << BITS), i4);
        all |= x;
        x += __builtin_shufflevector(zero, x, 0, 4, 5, 6);
        x += __builtin_shufflevector(zero, x, 0, 1, 4, 5);
        x += carry;
        carry = __builtin_shufflevector(x, x, 3, 3, 3, 3);
        *(u4 *)(t + c) = x;
        *(h4 *)(upper + c) = upper_halves(x);
    }
    uint32_t  sum = carry[3], bits = all[0] | all[1] | all[2] | all[3];
    const int vectors = c;
    for (; c < C; c++) {
        const uint32_t x = (uint32_t)(int32_t)(p[c] * (float)(1 << BITS));
        bits |= x;
        t[c] = (int32_t)(sum += x);
    }
    for (; c % 4; c++) t[c] = 1 << BITS;
    if (c > vectors) *(h4 *)(upper + vectors) = upper_halves(*(const u4 *)(t + vectors));
    for (; c < padded(C); c++) t[c] = 1 << BITS, upper[c] = INT16_MAX;
    if (bits >> 31) return false; /* NaN, infinite or negative */
    if (sum < (uint32_t)(0.99 * (1 << BITS)) || sum > (uint32_t)(1.01 * (1 << BITS))) return false;
    give_rest(p, C, (1 << BITS) - (int32_t)sum, t, upper);
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
    return (int32_t)(((uint32_t)(half + 32768) << LOW) | rws_words_rest(s, i, k));
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

/* reached[c + 1] = how many of the n particles of row i reach threshold c; reached[0] = n. */
static void count_row(comparison *m, word_source *s, uint32_t i, uint32_t n, uint32_t *reached)
{
    reached[0] = n;
    for (uint32_t at = 0; at < n; at += PART) {
        const uint32_t part = n - at < PART ? n - at : PART;
        const half16  *half = rws_words_row(s, i, at, part), *lanes = (const half16 *)m->reached;
        if (compare(m, half, part)) compare_rest(m, s, half, i, at, part);
        if (at == 0)
            for (int c = 0; c < LANES * m->n; c++) reached[c + 1] = (uint32_t)lanes[c];
        else
            for (int c = 0; c < LANES * m->n; c++) reached[c + 1] += (uint32_t)lanes[c];
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
    return !l->particles && !l->stride && !l->draw;
}

/* Lists the particles of a level that is a subset of its parent's rows: they are those of the rows that it has at the
 * first ancestor that is another kind of level, or is listed. The ancestor is found in a loop: this runs on the stack of a
 * path, and a path may have split thousands of times. */
static const uint32_t *list_subset(rws_engine *e, uint32_t to)
{
    uint32_t from = e->levels[to].parent;
    while (is_unlisted_subset(&e->levels[from])) from = e->levels[from].parent;
    const uint32_t *particles = rws_level_particles(e, from), *up = rws_level_map(e, to, from);
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

/* Lists the particles of a drawn level by drawing again: a counter gives the same number twice. */
const uint32_t *rws_level_particles(rws_engine *e, uint32_t to)
{
    if (e->levels[to].particles || e->levels[to].stride) return e->levels[to].particles;
    if (is_unlisted_subset(&e->levels[to])) return list_subset(e, to);
    const draw_record *d = e->levels[to].draw;
    word_source       *source = rws_words_new(e, d->parent, d->ordinal);
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
            const half16  *half = rws_words_row(source, i, from, part);
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

/* Rows of probabilities as thresholds, a row for each row of the path's level. */
static thresholds make_thresholds(rws_path *path, rws_var log_probabilities)
{
    rws_engine    *e = path->e;
    const int      dim = e->nodes[log_probabilities.id].dim;
    const size_t   C = (size_t)dim, width = (size_t)padded(dim);
    const reading  r = rws_node_read(e, log_probabilities.id, path->level);
    const uint32_t rows = e->levels[path->level].n_rows, *map = r.row;
    const float   *p = r.exp;
    if (!p) {
        const size_t size = r.n * C;
        float       *exps = RWS_NEW(&e->arena, float, size);
        rws_function_apply(RWS_EXP, size, r.value, exps);
        p = exps;
    }
    int32_t *full = RWS_NEW(&e->arena, int32_t, rows * width);
    int16_t *upper = RWS_NEW(&e->arena, int16_t, rows * width);
    char     text[160];
    for (uint32_t i = 0; i < rows; i++)
        if (!make_row(p + (map ? map[i] : i) * C, (int)C, full + i * width, upper + i * width))
            rws_path_fail(path, RWS_BROKEN,
                          "The probabilities at site %s in the %s are not a distribution (NaN or all impossible).",
                          rws_site_text(e, path->site, path->site_visit, text), rws_side_name(path->side));
    return (thresholds){full, upper};
}

/* A draw outside of a site would be random without a density. */
static void expect_site(rws_path *path, const char *function)
{
    if (path->depth == 0)
        rws_path_mistake(path, "%s was called by the program; it is for the draw of a distribution.", function);
}

rws_var rws_draw_index(rws_path *path, rws_var log_probabilities)
{
    rws_engine *e = path->e;
    expect_site(path, __func__);
    rws_path_expect(path, log_probabilities, __func__);
    if (e->nodes[log_probabilities.id].dim > RWS_INDEX_MOST)
        rws_path_mistake(path, "rws_draw_index was given %d log-probabilities, which is more than %d.",
                         e->nodes[log_probabilities.id].dim, RWS_INDEX_MOST);
    rws_path_need(path, &log_probabilities, 1);
    const uint32_t   from = path->level, ordinal = path->ordinal++;
    const int        C = e->nodes[log_probabilities.id].dim;
    const thresholds threshold = make_thresholds(path, log_probabilities);
    word_source     *source = rws_words_new(e, from, ordinal);
    const level     *l = &e->levels[from];
    const uint32_t   rows = l->n_rows;

    uint32_t most = 0, particles = 0;
    for (uint32_t i = 0; i < rows; i++) {
        most += l->count[i] < (uint32_t)C ? l->count[i] : (uint32_t)C;
        particles += l->count[i];
    }
    uint32_t            *child = RWS_NEW(&e->arena, uint32_t, rows), n_rows = 0;
    outcomes             o = outcomes_new(e, (uint32_t)padded(C), most);
    const rws_arena_mark mark = rws_arena_at(&e->arena);
    outcomes_scratch(e, &o);
    comparison m = compare_new(e, C);
    for (uint32_t first = 0, end; first < rows; first = end) {
        end = rows - first < BLOCK ? rows : first + BLOCK;
        for (uint32_t i = first; i < end; i++) {
            uint32_t *reached = o.reached + (i - first) * o.width;
            child[i] = n_rows;
            compare_with(&m, &threshold, i);
            count_row(&m, source, i, l->count[i], reached);
            n_rows += outcomes_note(&o, i, reached);
        }
        outcomes_list(&o, n_rows);
    }
    rws_arena_release(&e->arena, mark);
    float *value = RWS_NEW(&e->arena, float, n_rows);
    for (uint32_t i = 0; i < n_rows; i++) value[i] = (float)o.category[i];
    if (l->single) return path_var(path, rws_node_leaf(e, from, 1, value)); /* every row was one particle already */

    draw_record *d = RWS_NEW(&e->arena, draw_record, 1);
    *d = (draw_record){from, ordinal, C, threshold, child, o.category};
    const uint32_t to = rws_level_new(e, from, n_rows);
    e->levels[to].up = o.up;
    e->levels[to].count = o.count;
    e->levels[to].draw = d;
    e->levels[to].single = n_rows == particles;
    path->level = to;
    return path_var(path, rws_node_leaf(e, to, 1, value));
}

#define ALONE (1u << 31) /* numbers the blocks of noise_alone */

/* One number for each particle. Four neighbours share a block of four words: a word is a uniform, and two words are two
 * normals (a cosine and a sine). If most particles of the pass are here each block is drawn once, else once for each
 * row. */
static void noise_alone(rws_engine *e, const level *l, uint32_t ordinal, rws_noise kind, float *value)
{
    const uint32_t n = l->n_rows, K = (uint32_t)e->pass.n_particles, lane = e->pass.first_particle % 4;
    const uint32_t each = (lane + K + 3) / 4, all = each * (uint32_t)e->pass.n_data, n_blocks = all < n ? all : n;
    uint32_t      *block = RWS_NEW0(&e->arena, uint32_t, n_blocks), *datum = RWS_NEW0(&e->arena, uint32_t, n_blocks);
    uint32_t      *words = RWS_NEW(&e->arena, uint32_t, 4 * (size_t)n_blocks), *at = RWS_NEW(&e->arena, uint32_t, n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k, d;
        particle_counter(e, particle_at(l, i, 0), &k, &d);
        const uint32_t b = all < n ? (d - e->pass.first_datum) * each + k / 4 - e->pass.first_particle / 4 : i;
        block[b] = k / 4, datum[b] = d;
        at[i] = 4 * b + k % 4;
    }
    rws_rng_blocks(e->pass.key, n_blocks, block, datum, ordinal, ALONE, words);
    if (kind == RWS_NOISE_UNIFORM) {
        for (uint32_t i = 0; i < n; i++) value[i] = rws_unit(words[at[i]]);
        return;
    }
#pragma omp simd
    for (uint32_t i = 0; i < n; i++)
        value[i] = rws_box_muller(rws_unit(words[at[i] & ~1u]), rws_unit(words[at[i] | 1]), (float)(at[i] & 1));
}

#define NOISE_CHUNK 64 /* particles */

/* A vector for each particle, from blocks of its own. They are numbered from 1: particles of one datum that have parted
 * may draw a category (block 0), one number (ALONE) and a vector under the same ordinal, and must not share bits. */
static void noise_vector(rws_engine *e, const level *l, uint32_t ordinal, rws_noise kind, uint32_t dim, float *value)
{
    uint32_t k[NOISE_CHUNK], datum[NOISE_CHUNK], words[4 * NOISE_CHUNK];
    float    four[4 * NOISE_CHUNK];
    for (uint32_t first = 0; first < l->n_rows; first += NOISE_CHUNK) {
        const uint32_t n = l->n_rows - first < NOISE_CHUNK ? l->n_rows - first : NOISE_CHUNK;
        for (uint32_t i = 0; i < n; i++) particle_counter(e, particle_at(l, first + i, 0), &k[i], &datum[i]);
        for (uint32_t j = 0; j < dim; j += 4) {
            rws_rng_blocks(e->pass.key, n, k, datum, ordinal, j / 4 + 1, words);
            if (kind == RWS_NOISE_UNIFORM) {
#pragma omp simd
                for (uint32_t i = 0; i < 4 * n; i++) four[i] = rws_unit(words[i]);
            } else {
#pragma omp simd
                for (uint32_t i = 0; i < 4 * n; i++)
                    four[i] = rws_box_muller(rws_unit(words[i & ~1u]), rws_unit(words[i | 1]), (float)(i & 1));
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
    if (dim < 1) rws_path_mistake(path, "rws_draw_noise was asked for %d numbers.", dim);
    path->level = rws_level_expand(e, path->level);
    rws_level_particles(e, path->level);
    const level   *l = &e->levels[path->level];
    const uint32_t ordinal = path->ordinal++;
    float         *value = RWS_NEW(&e->arena, float, l->n_rows *(size_t)dim);
    rws_arena_mark mark = rws_arena_at(&e->arena);
    if (dim == 1) noise_alone(e, l, ordinal, kind, value);
    else noise_vector(e, l, ordinal, kind, (uint32_t)dim, value);
    rws_arena_release(&e->arena, mark);
    return path_var(path, rws_node_leaf(e, path->level, dim, value));
}

rws_var rws_draw_counters(rws_path *path)
{
    rws_engine *e = path->e;
    path->level = rws_level_expand(e, path->level);
    const uint32_t n = e->levels[path->level].n_rows, ordinal = path->ordinal++;
    rws_level_particles(e, path->level);
    const level *l = &e->levels[path->level];
    rws_counter *c = RWS_NEW(&e->arena, rws_counter, n);
    for (uint32_t i = 0; i < n; i++) {
        c[i] = (rws_counter){.ordinal = ordinal, .key = e->pass.key};
        particle_counter(e, particle_at(l, i, 0), &c[i].particle, &c[i].datum);
    }
    return path_var(path, rws_node_leaf(e, path->level, RWS_COUNTER, (float *)c));
}

rws_var rws_draw_every(rws_path *path, int n)
{
    rws_engine    *e = path->e;
    const uint32_t from = path->level, rows = e->levels[from].n_rows, each = (uint32_t)n;
    const size_t   n_rows = (size_t)rows * each;
    char           text[160];
    for (uint32_t i = 0; i < rows; i++)
        if (e->levels[from].count[i] < each)
            rws_path_fail(
                path, RWS_BAD_INPUT,
                "There are too many combinations of choices to go through them all: at site %s, a particle has "
                "made the last of the choices that fit into %d combinations.",
                rws_site_text(e, path->site, path->site_visit, text), e->pass.n_particles);
    uint32_t *up = RWS_NEW(&e->arena, uint32_t, n_rows), *count = RWS_NEW(&e->arena, uint32_t, n_rows);
    float    *value = RWS_NEW(&e->arena, float, n_rows);
    for (uint32_t i = 0, at = 0; i < rows; i++) {
        const uint64_t all = e->levels[from].count[i];
        for (uint32_t c = 0; c < each; c++, at++) {
            up[at] = i;
            count[at] = (uint32_t)(all * (c + 1) / each - all * c / each);
            value[at] = (float)c;
        }
    }
    const uint32_t to = rws_level_new(e, from, (uint32_t)n_rows);
    e->levels[to].up = up;
    e->levels[to].count = count;
    path->level = to;
    return path_var(path, rws_node_leaf(e, to, 1, value));
}
