/* level.c - sets of rows: how they are refined, and the maps from their rows to rows of ancestors. */
#include "engine/internal.h"

uint32_t rws_level_new(rws_engine *e, uint32_t parent, uint32_t n_rows)
{
    level *l = RWS_PUSH(e, e->levels, e->n_levels, e->level_capacity);
    *l = (level){.parent = parent, .n_rows = n_rows, .terms = NONE, .map_to = NONE};
    for (int i = 0; i < RWS_OUTPUTS; i++) l->outputs[i] = NONE;
    return e->n_levels - 1;
}

/* The root has one row, so every row is mapped to row 0. */
static const uint32_t *map_to_root(rws_engine *e, uint32_t n)
{
    if (n > e->n_zeros) {
        e->n_zeros = 2 * n;
        e->zeros = RWS_NEW0(&e->arena, uint32_t, e->n_zeros);
    }
    return e->zeros;
}

/* The map to the data, which most levels are asked for. Every level on the way keeps its own, so that a chain of levels
 * costs no more than their rows, in whatever order they are asked. */
static const uint32_t *map_to_data(rws_engine *e, uint32_t from)
{
    uint32_t depth = 0, top = from;
    for (; !e->levels[top].to_data && e->levels[top].parent != DATA; top = e->levels[top].parent) depth++;
    if (!e->levels[top].to_data) e->levels[top].to_data = e->levels[top].up;
    uint32_t *way = depth ? RWS_NEW(&e->arena, uint32_t, depth) : NULL, at = from;
    for (uint32_t i = depth; i > 0; at = e->levels[at].parent) way[--i] = at;
    for (uint32_t k = 0; k < depth; k++) {
        level          *l = &e->levels[way[k]];
        const uint32_t *above = e->levels[l->parent].to_data;
        uint32_t       *map = RWS_NEW(&e->arena, uint32_t, l->n_rows);
        for (uint32_t i = 0; i < l->n_rows; i++) map[i] = above[l->up[i]];
        l->to_data = map;
    }
    return e->levels[from].to_data;
}

/* Any other map is composed upwards. The last one is kept: a map to a level further up continues it, because ancestors
 * have smaller numbers, and maps that were kept on the way are taken as a whole. */
const uint32_t *rws_level_map(rws_engine *e, uint32_t from, uint32_t ancestor)
{
    if (from == ancestor) return NULL;
    level *l = &e->levels[from];
    if (l->parent == ancestor) return l->up;
    if (ancestor == ROOT) return map_to_root(e, l->n_rows);
    if (ancestor == DATA) return map_to_data(e, from);
    if (l->map_to == ancestor) return l->map;
    const bool      further = l->map_to != NONE && l->map_to > ancestor;
    uint32_t        at = further ? l->map_to : l->parent;
    const uint32_t *map = further ? l->map : l->up;
    uint32_t       *to = RWS_NEW(&e->arena, uint32_t, l->n_rows);
    for (bool first = true; at != ancestor; first = false) {
        const level    *m = &e->levels[at];
        const bool      far = m->map_to != NONE && m->map_to >= ancestor;
        const uint32_t *above = far ? m->map : m->up;
        for (uint32_t i = 0; i < l->n_rows; i++) to[i] = above[(first ? map : to)[i]];
        at = far ? m->map_to : m->parent;
    }
    l->map_to = ancestor;
    return l->map = to;
}

uint32_t rws_level_expand(rws_engine *e, uint32_t from)
{
    if (e->levels[from].single) return from;
    const uint32_t *particles = rws_level_particles(e, from);
    const level    *l = &e->levels[from];
    uint32_t        n = 0;
    for (uint32_t i = 0; i < l->n_rows; i++) n += l->count[i];
    uint32_t *up = RWS_NEW(&e->arena, uint32_t, n), *ids = RWS_NEW(&e->arena, uint32_t, n);
    uint32_t *one = RWS_NEW(&e->arena, uint32_t, n), *start = RWS_NEW(&e->arena, uint32_t, n);
    uint32_t  at = 0;
    for (uint32_t i = 0; i < l->n_rows; i++)
        for (uint32_t k = 0; k < l->count[i]; k++, at++) {
            up[at] = i;
            ids[at] = l->stride ? i * l->stride + k : particles[l->particles_start[i] + k];
            one[at] = 1;
            start[at] = at;
        }
    uint32_t to = rws_level_new(e, from, n);
    e->levels[to].up = up;
    e->levels[to].count = one;
    e->levels[to].particles = ids;
    e->levels[to].particles_start = start;
    e->levels[to].single = true;
    return to;
}
