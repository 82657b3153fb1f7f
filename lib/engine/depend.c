/* depend.c - rows by dependence: what a value is made of, and the projections that have a row for each such combination.
 *
 * Particles with other histories are other rows, even where a value does not depend on all of the history:
 *
 *     level    rows: datum and z1 z2        f(z2)     g(x, z2)
 *              0 a a                        a         0 a
 *              0 b a                        a         0 a
 *              0 b b                        b         0 b
 *              1 a a                        a         1 a
 *              1 b b                        b         1 b
 *     projection                            {z2}      {datum, z2}
 *
 * A dependence is a level of the tree, the base, and the drawn indices below it that a value is made of. It has an entry
 * in engine.dependences, listed by its home, the level of the last index. A projection costs a pass over the rows of the
 * home, so it is made when the nodes that it serves are worth it. One with several indices is made from that of all but the
 * last, as pairs. */
#include "engine/internal.h"

#include <string.h>

#define MAX_INDICES 16 /* of a dependence; a value that is made of more is computed for all rows of its home */
#define LEAST_ROWS 8   /* of a home */
#define WORTH 8        /* of the work of the nodes for a row; less is not worth a pass over the rows */

void rws__dependence_begin(rws_engine *e)
{
    e->n_dependences = 0;
    *RWS_PUSH(e, e->dependences, e->n_dependences, e->dependence_capacity) = (dependence){0}; /* 0 stands for none */
}

static uint32_t values_of(const rws_engine *e, uint32_t index)
{
    return e->dependences[e->nodes[index].needs].values;
}

static bool is_subset(const level *l, uint32_t at)
{
    return l->cover == at && !l->place && !l->merge;
}

/* Looks at the draws between home and base. Returns whether every one of them is an index of the dependence, so that rows of
 * the home are told apart as they are. Else sets `most`, a bound of the number of combinations. */
static bool tells_apart(const rws_engine *e, dependence *d)
{
    uint32_t i = d->n, subset = 0; /* rows of the lowest of the subsets that were passed last */
    bool     all = true;
    for (uint32_t at = d->home; at != d->base; at = e->levels[at].parent) {
        const level *l = &e->levels[at];
        if (is_subset(l, at)) {
            if (!subset) subset = l->n_rows;
            continue;
        }
        subset = 0;
        while (i && d->index[i - 1] > l->drawn) i--;
        all &= l->drawn && i && d->index[i - 1] == l->drawn;
    }
    uint64_t most = subset ? subset : e->levels[d->base].n_rows;
    for (uint32_t k = 0; k < d->n && most < d->most; k++) most *= values_of(e, d->index[k]);
    if (most < d->most) d->most = (uint32_t)most;
    return all;
}

static uint64_t hash_index(uint32_t base, const uint32_t *index, uint32_t n)
{
    uint64_t h = base;
    for (uint32_t i = 0; i < n; i++) h = hash_word(h, index[i]);
    return h;
}

static uint32_t find(rws_engine *e, uint32_t base, const uint32_t *index, uint32_t n)
{
    const uint32_t home = e->nodes[index[n - 1]].level;
    const uint64_t h = hash_index(base, index, n);
    uint32_t       place = 0;
    for (uint32_t id; (id = rws__numbers_next(&e->known_dependences, h, &place));) {
        const dependence *d = &e->dependences[id];
        if (d->base == base && d->n == n && memcmp(d->index, index, n * sizeof *index) == 0) return id;
    }
    uint32_t *copy = RWS_NEW(&e->arena, uint32_t, n);
    memcpy(copy, index, n * sizeof *index);
    dependence *d = RWS_PUSH(e, e->dependences, e->n_dependences, e->dependence_capacity);
    *d = (dependence){.base = base, .home = home, .next = e->levels[home].dependence, .n = n, .index = copy};
    d->most = e->levels[home].n_rows;
    d->rows = tells_apart(e, d) ? home : NONE;
    e->levels[home].dependence = e->n_dependences - 1;
    return rws__numbers_add(e, &e->known_dependences, h, e->n_dependences - 1);
}

void rws__dependence_index(rws_engine *e, uint32_t id, uint32_t n_values)
{
    const uint32_t at = e->nodes[id].level, n = e->levels[at].n_rows;
    if (e->pass.scalar || n < LEAST_ROWS) return;
    uint32_t *index = RWS_NEW(&e->arena, uint32_t, 1);
    *index = id;
    *RWS_PUSH(e, e->dependences, e->n_dependences, e->dependence_capacity) =
        (dependence){.base = ROOT,
                     .home = at,
                     .next = e->levels[at].dependence,
                     .n = 1,
                     .index = index,
                     .values = n_values,
                     .most = n < n_values ? n : n_values,
                     .rows = NONE};
    e->nodes[id].needs = e->levels[at].dependence =
        rws__numbers_add(e, &e->known_dependences, hash_index(ROOT, index, 1), e->n_dependences - 1);
}

/* ---- the dependence of an operation */

static bool add_index(uint32_t *index, uint32_t *n, uint32_t id)
{
    uint32_t i = *n;
    while (i && index[i - 1] > id) i--;
    if (i && index[i - 1] == id) return true;
    if (*n == MAX_INDICES) return false;
    memmove(index + i + 1, index + i, (*n - i) * sizeof *index);
    index[i] = id;
    ++*n;
    return true;
}

uint32_t rws__dependence_join(rws_engine *e, const node *n, uint32_t at_least)
{
    uint32_t base = at_least, only = 0, n_index = 0, index[MAX_INDICES];
    bool     several = false;
    for (int s = 0; s < n->n_in; s++) {
        const node    *m = &e->nodes[n->in[s]];
        const uint32_t above = m->needs ? e->dependences[m->needs].base : m->level;
        if (above > base) base = above;
        if (!m->needs) continue;
        several |= only && only != m->needs;
        only = m->needs;
    }
    if (base == n->level || e->tangent) return 0; /* derivatives read rows that forward saved */
    if (!several && e->dependences[only].base == base) return only;
    for (int s = 0; s < n->n_in; s++) {
        const dependence *d = &e->dependences[e->nodes[n->in[s]].needs];
        for (uint32_t k = 0; k < d->n; k++)
            if (e->nodes[d->index[k]].level > base && !add_index(index, &n_index, d->index[k])) return 0;
    }
    const uint32_t id = find(e, base, index, n_index);
    return e->dependences[id].rows == n->level ? 0 : id;
}

/* An op that copies costs next to nothing for a row, unless there are several paths, whose rows are gathered for one call. */
void rws__dependence_work(rws_engine *e, const node *n)
{
    const rws_op *op = n->op;
    const bool    copies =
        e->n_paths == 1 && (op == &rws_op_pick || op == &rws_op_row || op == &rws_op_onehot || op == &rws_op_embed);
    uint32_t work = 0;
    for (int s = 0; s < n->n_in; s++) work += n->in[s] ? (uint32_t)e->nodes[n->in[s]].dim : 0;
    if (n->args.w && n->in[0]) work += (uint32_t)n->dim * (uint32_t)e->nodes[n->in[0]].dim;
    e->dependences[n->needs].work += copies ? (uint32_t)n->dim : 4 * work;
}

bool rws__node_is_coarse(const rws_engine *e, const node *n)
{
    const dependence *d = &e->dependences[n->needs];
    return n->needs && d->most <= e->levels[n->level].n_rows - e->levels[n->level].n_rows / 4;
}

uint32_t rws__node_most_rows(const rws_engine *e, const node *n)
{
    return n->needs ? e->dependences[n->needs].most : e->levels[n->level].n_rows;
}

/* ---- projections */

/* The number of rows of a level that rows below it stand on; map: to that level. Rows are in the order of the rows above
 * them. */
static uint64_t n_runs(const uint32_t *map, uint32_t n)
{
    uint64_t runs = 1;
    for (uint32_t i = 1; i < n && map; i++) runs += map[i] != map[i - 1];
    return runs;
}

/* The projection of the home onto pairs (row of level `of`, value of the last index); the home itself if that has not many
 * fewer rows. */
static uint32_t pair(rws_engine *e, const dependence *d, uint32_t of)
{
    const uint32_t home = d->home, index = d->index[d->n - 1], n = e->levels[home].n_rows, C = values_of(e, index);
    const bool     tree = !e->levels[of].projected;
    if (of == home || n < LEAST_ROWS) return home;
    const uint32_t *map = of == ROOT ? NULL : rws__level_map(e, home, of);
    const float    *value = e->nodes[index].value;
    const uint64_t  size = C * (tree ? n_runs(map, n) : e->levels[of].n_rows);
    const uint32_t  most = n - n / 4;
    if (size > 4 * (uint64_t)n) return home;
    const rws_arena_mark mark = rws__arena_at(&e->arena);
    uint32_t *place = RWS_NEW(&e->arena, uint32_t, n), *up = RWS_NEW(&e->arena, uint32_t, size < most ? size : most);
    const rws_arena_mark scratch = rws__arena_at(&e->arena);
    uint32_t            *row_of = RWS_NEW(&e->arena, uint32_t, size), n_rows = 0, first = 0;
    memset(row_of, 0xff, size * sizeof *row_of);
    for (uint32_t i = 0; i < n; i++) {
        if (!tree) first = map ? map[i] : i;
        else if (map && i) first += map[i] != map[i - 1];
        uint32_t *row = &row_of[first * C + (uint32_t)value[i]];
        if (*row == NONE) {
            if (n_rows == most) {
                rws__arena_release(&e->arena, mark);
                return home;
            }
            up[n_rows] = i;
            *row = n_rows++;
        }
        place[i] = *row;
    }
    rws__arena_release(&e->arena, scratch);
    const uint32_t to = rws__level_new(e, home, n_rows);
    level         *l = &e->levels[to];
    l->up = up;
    l->place = place;
    l->projected = true;
    return to;
}

static uint32_t project(rws_engine *e, uint32_t id)
{
    dependence d = e->dependences[id]; /* a copy: entries may move */
    if (d.rows != NONE) return d.rows;
    const uint32_t of = d.n == 1 ? d.base : project(e, find(e, d.base, d.index, d.n - 1));
    return e->dependences[id].rows = pair(e, &d, of);
}

uint32_t rws__dependence_rows(rws_engine *e, uint32_t id)
{
    const dependence *d = &e->dependences[id];
    return d->rows == NONE && d->work < WORTH ? d->home : project(e, id);
}
