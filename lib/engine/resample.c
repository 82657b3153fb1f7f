/* resample.c - particle filters: at the end of a step of the loop that guide and model share, particles are drawn anew by weight.
 *
 * The particles of a datum that have arrived take part: those that are about to make the next step, those that have left the
 * loop, and those that are impossible. Systematic resampling gives a row that stands for c particles of weight w
 * n = floor or ceil of N c w / sum(c w) particles of the N that take part; its offset is a random number with a counter of its
 * own. A row that gets particles is a row of a new level below its own, with n as its count; copies cost nothing:
 *
 *     arrived     rows  0 1 2 3       counts 3 1 4 2, weights …
 *      |
 *     resampled   rows  0 2           counts 8 2, up: 0 2
 *
 * Afterwards all of them have the mean of the weights, so that the sum of all weights is what it was: the mean weight at the end has
 * the evidence as its expectation. Each row takes particles of the datum with their numbers, by which they draw; draws
 * go on behind the last draw that any of these particles has made, so that no random number is used twice. */
#include "engine/words.h"

#include <math.h>
#include <string.h>

#define RESAMPLING (3u << 30) /* numbers the blocks of these draws */

/* A row of a path that takes part. */
typedef struct {
    uint32_t path, row, datum, count, more; /* more: the particles that it gets */
    double   l;
} member;

typedef struct {
    rws_engine *e;
    rws_path  **paths;
    uint32_t    n_paths, n, ordinal;
    member     *members;  /* path by path, row by row */
    uint32_t  **of_path;  /* by path and row: the member */
    uint32_t   *start;    /* by datum: its first place in `sorted`; one more at the end */
    uint32_t   *sorted;   /* members by datum */
    bool       *chosen;   /* by datum: it is resampled */
    double     *log_mean; /* by datum: the log of the mean weight */
} crowd;

static uint32_t last_ordinal(const rws_engine *e, const rws_path *path)
{
    const merge    *m = path->before;
    const uint32_t *base = m ? m->ordinal.base : NULL;
    uint32_t        most = 0;
    for (uint32_t i = 0; base && i < e->levels[m->level].n_rows; i++) most = base[i] > most ? base[i] : most;
    return path->ordinal + most;
}

static void gather(crowd *c)
{
    rws_engine *e = c->e;
    for (uint32_t p = 0; p < c->n_paths; p++) c->n += e->levels[c->paths[p]->level].n_rows;
    c->members = RWS_NEW(&e->arena, member, c->n);
    c->of_path = RWS_NEW(&e->arena, uint32_t *, c->n_paths);
    c->start = RWS_NEW0(&e->arena, uint32_t, e->pass.n_data + 2);
    c->sorted = RWS_NEW(&e->arena, uint32_t, c->n);
    c->n = 0;
    for (uint32_t p = 0; p < c->n_paths; p++) {
        const uint32_t at = c->paths[p]->level, *map = rws__level_map(e, at, DATA), last = last_ordinal(e, c->paths[p]);
        const uint32_t *count = e->levels[at].count, n = e->levels[at].n_rows;
        c->ordinal = last > c->ordinal ? last : c->ordinal;
        if (e->levels[at].width > 1)
            rws__engine_fail(e, RWS_BAD_INPUT,
                             "Particles whose sites are summed cannot be resampled; set `resample` to 0.");
        c->of_path[p] = RWS_NEW(&e->arena, uint32_t, n);
        for (uint32_t i = 0; i < n; i++) {
            c->of_path[p][i] = c->n;
            const uint32_t d = rws__row_datum(e, at, map, i);
            c->members[c->n++] = (member){p, i, d, count[i], count[i], rws__row_weight(e, at, i)};
            c->start[d + 2]++;
        }
    }
    for (int d = 0; d < e->pass.n_data; d++) c->start[d + 2] += c->start[d + 1];
    for (uint32_t i = 0; i < c->n; i++) c->sorted[c->start[c->members[i].datum + 1]++] = i;
}

/* ---- how many particles a row gets */

/* Whether a datum is resampled: its effective number of particles is low, and all weights are numbers. */
static bool is_due(crowd *c, uint32_t d)
{
    double   top = -INFINITY, sum = 0, squares = 0;
    uint32_t n = 0;
    for (uint32_t i = c->start[d]; i < c->start[d + 1]; i++) {
        const double l = c->members[c->sorted[i]].l;
        if (isnan(l) || l == INFINITY) return false; /* the table will say where it comes from */
        top = fmax(top, l);
    }
    if (top == -INFINITY) return false;
    for (uint32_t i = c->start[d]; i < c->start[d + 1]; i++) {
        const member *m = &c->members[c->sorted[i]];
        const double  w = exp(m->l - top);
        sum += m->count * w;
        squares += m->count * w * w;
        n += m->count;
    }
    c->log_mean[d] = top + log(sum / n);
    return sum * sum <= c->e->pass.resample * n * squares * (1 + 1e-9);
}

/* Sets `more` of the members of a datum. u: the offset, in (0, 1). */
static void share_out(crowd *c, uint32_t d, double u)
{
    double   sum = 0;
    uint32_t n = 0, given = 0;
    for (uint32_t i = c->start[d]; i < c->start[d + 1]; i++) n += c->members[c->sorted[i]].count;
    for (uint32_t i = c->start[d]; i < c->start[d + 1]; i++) {
        member *m = &c->members[c->sorted[i]];
        sum += m->count * exp(m->l - c->log_mean[d]); /* of n in all */
        const uint32_t up_to = sum > u ? (uint32_t)fmin(ceil(sum - u), n) : 0;
        m->more = up_to > given ? up_to - given : 0;
        given += m->more;
    }
    for (uint32_t i = c->start[d + 1]; given < n && i-- > c->start[d];) { /* what rounding has left over */
        member *m = &c->members[c->sorted[i]];
        if (m->l == -INFINITY) continue;
        m->more += n - given;
        given = n;
    }
}

/* The number of the first particle of a datum that takes part. */
static uint32_t first_particle(const crowd *c, uint32_t d)
{
    uint32_t first = UINT32_MAX;
    for (uint32_t i = c->start[d]; i < c->start[d + 1]; i++) {
        const member  *m = &c->members[c->sorted[i]];
        const uint32_t id = particle_at(&c->e->levels[c->paths[m->path]->level], m->row, 0);
        first = id < first ? id : first;
    }
    return first;
}

static double offset(const crowd *c, uint32_t d)
{
    uint32_t k, datum, words[4];
    particle_counter(c->e, &c->e->levels[DATA], first_particle(c, d), &k, &datum);
    rws__rng_row(c->e->pass.key, 1, k, datum, c->ordinal, RESAMPLING, words);
    return (words[0] + 0.5) * 0x1p-32;
}

/* ---- the new levels */

/* The particles of each datum in ascending order; those of datum d begin at place d K. */
static uint32_t *pool_of(const crowd *c)
{
    rws_engine    *e = c->e;
    const uint32_t K = (uint32_t)e->pass.n_particles, B = (uint32_t)e->pass.n_data;
    bool          *mine = RWS_NEW0(&e->arena, bool, (size_t)K *B);
    uint32_t      *pool = RWS_NEW(&e->arena, uint32_t, (size_t)K * B);
    for (uint32_t i = 0; i < c->n; i++) {
        const member *m = &c->members[i];
        for (uint32_t k = 0; k < m->count && c->chosen[m->datum]; k++)
            mine[particle_at(&e->levels[c->paths[m->path]->level], m->row, k)] = true;
    }
    for (uint32_t d = 0; d < B; d++)
        for (uint32_t k = 0, at = d * K; k < K; k++)
            if (mine[d * K + k]) pool[at++] = d * K + k;
    return pool;
}

/* The level of the rows of a path that have got particles. pool: see pool_of; next[d]: the next of datum d. */
static uint32_t resampled_level(crowd *c, uint32_t p, const uint32_t *pool, uint32_t *next)
{
    rws_engine    *e = c->e;
    const uint32_t from = c->paths[p]->level, n_from = e->levels[from].n_rows;
    uint32_t      *rows = RWS_NEW(&e->arena, uint32_t, n_from), n = 0, n_particles = 0, at = 0;
    for (uint32_t i = 0; i < n_from; i++) {
        const member *m = &c->members[c->of_path[p][i]];
        n_particles += m->more;
        if (m->more) rows[n++] = i;
    }
    if (!n) return NONE;
    const uint32_t to = rws__level_subset(e, from, rows, n);
    uint32_t      *count = RWS_NEW(&e->arena, uint32_t, n), *start = RWS_NEW(&e->arena, uint32_t, n);
    uint32_t      *ids = RWS_NEW(&e->arena, uint32_t, n_particles);
    double        *more = RWS_NEW0(&e->arena, double, n);
    bool           single = true;
    rws__level_sum(e, to);
    for (uint32_t i = 0; i < n; i++) {
        const member *m = &c->members[c->of_path[p][rows[i]]];
        count[i] = m->more;
        start[i] = at;
        single &= count[i] == 1;
        if (e->levels[to].total[RWS_TERM_W]) more[i] = e->levels[to].total[RWS_TERM_W][i];
        if (c->chosen[m->datum]) more[i] += c->log_mean[m->datum] - m->l;
        for (uint32_t k = 0; k < m->more; k++)
            ids[at++] = c->chosen[m->datum] ? pool[next[m->datum]++] : particle_at(&e->levels[from], rows[i], k);
    }
    level *l = &e->levels[to];
    l->count = count;
    l->single = single;
    l->particles = ids;
    l->particles_start = start;
    l->total[RWS_TERM_W] = more;
    return to;
}

static void renew(crowd *c)
{
    rws_engine     *e = c->e;
    const uint32_t  B = (uint32_t)e->pass.n_data;
    const uint32_t *pool = pool_of(c);
    uint32_t       *next = RWS_NEW(&e->arena, uint32_t, B);
    for (uint32_t d = 0; d < B; d++) next[d] = d * (uint32_t)e->pass.n_particles;
    for (uint32_t p = 0; p < c->n_paths; p++) {
        const uint32_t to = resampled_level(c, p, pool, next);
        if (to != NONE) rws__segment_below(c->paths[p], to, c->ordinal + 1);
        else rws__path_recycle(c->paths[p]), c->paths[p] = NULL;
    }
}

void rws__resample(rws_engine *e, rws_path **paths, uint32_t n)
{
    const uint32_t B = (uint32_t)e->pass.n_data;
    crowd          c = {.e = e, .paths = paths, .n_paths = n};
    uint64_t       before = e->stats.resampled;
    c.chosen = RWS_NEW0(&e->arena, bool, B);
    c.log_mean = RWS_NEW(&e->arena, double, B);
    gather(&c);
    for (uint32_t d = 0; d < B; d++) e->stats.resampled += c.chosen[d] = c.start[d] < c.start[d + 1] && is_due(&c, d);
    if (e->stats.resampled == before) return;
    for (uint32_t p = 0; p < n; p++) rws__level_particles(e, paths[p]->level);
    for (uint32_t d = 0; d < B; d++)
        if (c.chosen[d]) share_out(&c, d, offset(&c, d));
    renew(&c);
}
