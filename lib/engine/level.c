/* level.c - sets of rows: how they are refined, and the maps from their rows to rows of ancestors. */
#include "engine/internal.h"

#include <string.h>

uint32_t rws__level_new(rws_engine *e, uint32_t parent, uint32_t n_rows)
{
    level *l = RWS_PUSH(e, e->levels, e->n_levels, e->level_capacity);
    *l = (level){.parent = parent, .n_rows = n_rows, .terms = NONE, .summed = NONE};
    l->width = parent == NONE ? 1 : e->levels[parent].width;
    for (int i = 0; i < N_MAPS; i++) l->maps[i].to = NONE;
    for (int i = 0; i < N_IMAGES; i++) l->images[i].at = NONE;
    l->cover = parent == NONE ? ROOT : e->levels[parent].cover; /* a draw leaves no row without rows below */
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

/* The map to the data, which is asked of most levels. Every level on the way keeps its map, so that the maps of a chain of
 * levels cost no more than their rows, in whatever order they are asked for. */
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

void rws__level_note_map(rws_engine *e, uint32_t from, uint32_t to, const uint32_t *map)
{
    level *l = &e->levels[from];
    l->maps[l->next_map++ % N_MAPS] = (known_map){to, map};
}

/* The known map from a level that leads furthest towards an ancestor; at least that to the parent. Ancestors have smaller
 * numbers. */
static known_map map_towards(const rws_engine *e, uint32_t from, uint32_t ancestor)
{
    const level *l = &e->levels[from];
    known_map    best = {l->parent, l->up};
    for (int i = 0; i < N_MAPS; i++) {
        const known_map *m = &l->maps[i];
        if (m->map && m->to < best.to && m->to >= ancestor && !e->levels[m->to].place) best = *m;
    }
    return best;
}

/* The map to an ancestor that is neither the root nor the data nor the parent, composed upwards. */
static const uint32_t *map_up(rws_engine *e, uint32_t from, uint32_t ancestor)
{
    const uint32_t n = e->levels[from].n_rows;
    uint32_t      *map = RWS_NEW(&e->arena, uint32_t, n);
    known_map      m = map_towards(e, from, ancestor);
    memcpy(map, m.map, n * sizeof *map);
    while (m.to != ancestor) {
        m = map_towards(e, m.to, ancestor);
        for (uint32_t i = 0; i < n; i++) map[i] = m.map[map[i]];
    }
    return map;
}

/* The map to a level beside an ancestor. */
static const uint32_t *map_beside(rws_engine *e, uint32_t from, uint32_t to)
{
    const level         *l = &e->levels[from], *beside = &e->levels[to];
    const uint32_t      *above = rws__level_map(e, from, beside->parent);
    const rws_arena_mark mark = rws__arena_at(&e->arena);
    uint32_t            *map = RWS_NEW(&e->arena, uint32_t, l->n_rows);
    bool                 same = l->n_rows == beside->n_rows;
    for (uint32_t i = 0; i < l->n_rows; i++) {
        map[i] = beside->place[above ? above[i] : i];
        same &= map[i] == i;
    }
    if (same) rws__arena_release(&e->arena, mark);
    return same ? NULL : map;
}

const uint32_t *rws__level_map(rws_engine *e, uint32_t from, uint32_t to)
{
    const level *l = &e->levels[from];
    if (from == to) return NULL;
    if (l->parent == to) return l->up;
    if (e->levels[to].parent == from && e->levels[to].place) return e->levels[to].place;
    if (to == ROOT) return map_to_root(e, l->n_rows);
    if (to == DATA) return map_to_data(e, from);
    for (int i = 0; i < N_MAPS; i++)
        if (l->maps[i].to == to) return l->maps[i].map;
    const uint32_t *map = e->levels[to].place ? map_beside(e, from, to) : map_up(e, from, to);
    rws__level_note_map(e, from, to, map);
    return map;
}

bool rws__path_has_row(const rws_path *path, uint32_t at, size_t row)
{
    const uint32_t *map = rws__level_map(path->e, path->level, at), n = path->e->levels[path->level].n_rows;
    for (uint32_t i = 0; i < n; i++)
        if ((map ? map[i] : i) == row) return true;
    return false;
}

uint32_t rws__level_expand(rws_engine *e, uint32_t from)
{
    if (e->levels[from].single) return from;
    const uint32_t *particles = rws__level_particles(e, from);
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
    uint32_t to = rws__level_new(e, from, n);
    e->levels[to].up = up;
    e->levels[to].count = one;
    e->levels[to].particles = ids;
    e->levels[to].particles_start = start;
    e->levels[to].single = true;
    return to;
}
