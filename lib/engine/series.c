/* series.c - observations one after the other: visit t of an observed site is item t of the datum.
 *
 *     field "x", a series of up to N items of d numbers      a row of the data: | n | item 0 | item 1 | … | unused |
 *
 *     wake     visit t of the site scores item t, for every datum that the path stands for; each must have one
 *     sleep    visit t draws item t; the number of visits is the length of the dream
 *
 * Every visit has an entry in the trace of its path, which counts as scored from the beginning. A path that has ended
 * must have visited the site as often as each of its data has items.
 *
 * The guide of a sleep pass reads items of the dream by number. The first time that a path does so, the nodes of the items
 * are listed in engine.items, and the site's `next` becomes the place of the list, which paths that split off share:
 *
 *     trace          z0 x0 z1 x1 z2 x2          items   … | x0 x1 x2 | …
 *                                                           ^ next
 */
#include "engine/internal.h"

#include <string.h>

static const node *row_node(const rws_path *path, int field)
{
    return &path->e->nodes[path->field[field]];
}

/* The length of the datum behind row i of the path's level. */
static int length_at(rws_path *path, int field, const uint32_t *map, uint32_t i)
{
    const node *n = row_node(path, field);
    return (int)n->value[(map ? map[i] : i) * (size_t)n->dim];
}

uint32_t rws__series_visits(const rws_path *path, int field)
{
    const uint32_t s = path->e->field_sites[field];
    return s == NONE ? 0 : rws__next_visit(path, s);
}

/* Which datum of the whole batch a row of the path's level belongs to, for messages. */
static unsigned long long datum_at(rws_path *path, int field, const uint32_t *map, uint32_t i)
{
    const node  *n = row_node(path, field);
    const size_t row = map ? map[i] : i;
    const float *first = path->e->pass.fields[field];
    return path->e->pass.first_datum + (unsigned long long)((n->value + row * (size_t)n->dim - first) / n->dim);
}

/* A leaf node with item t of all data at the level of the field. A datum that has no such item gets that of a datum of
 * the path: its row is not used, but functions of it are computed, and must stay finite where they are finite for data. */
static uint32_t item_leaf(rws_path *path, int field, uint32_t t, uint32_t row)
{
    rws_engine    *e = path->e;
    const node    *data = row_node(path, field);
    const size_t   dim = (size_t)data->dim, item = (size_t)e->fields[field].item;
    const uint32_t n = e->levels[data->level].n_rows, at = data->level;
    float         *value = RWS_NEW(&e->arena, float, n *item);
    for (uint32_t i = 0; i < n; i++) {
        const float *own = data->value + i * dim, *from = t < (uint32_t)own[0] ? own : data->value + row * dim;
        memcpy(value + i * item, from + 1 + t * item, item * sizeof *value);
    }
    const uint32_t id = rws__node_leaf(e, at, (int)item, value);
    e->nodes[id].seen = e->nodes[path->field[rws__field_place(path, field)]].seen;
    return id;
}

/* Stops with a message unless the datum of row i has an item t. */
static void expect_item(rws_path *path, int field, const uint32_t *map, uint32_t i, uint32_t t)
{
    if (t >= (uint32_t)length_at(path, field, map, i))
        rws__path_fail(path, RWS_BAD_INPUT,
                       "The %s comes to item %u of \"%s\", but datum %llu has only %d (the first is 0).",
                       rws__side_name(path->side), t, path->e->fields[field].name, datum_at(path, field, map, i),
                       length_at(path, field, map, i));
}

/* The item that is visited, where row i has visited more[i] items more than the row with fewest visits. */
static rws_var item_by_row(rws_path *path, int field, const uint32_t *more)
{
    rws_engine    *e = path->e;
    const node    *data = row_node(path, field);
    const size_t   dim = (size_t)data->dim, item = (size_t)e->fields[field].item;
    const uint32_t n = e->levels[path->level].n_rows, *map = rws__level_map(e, path->level, data->level);
    float         *value = RWS_NEW(&e->arena, float, n *item);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t t = path->site_visit + more[i];
        expect_item(path, field, map, i, t);
        memcpy(value + i * item, data->value + (map ? map[i] : i) * dim + 1 + t * item, item * sizeof *value);
    }
    return path_var(path, rws__node_leaf(e, path->level, (int)item, value));
}

/* Item t as a value, for which every datum of the path must have one. Paths share its node. */
static rws_var item(rws_path *path, int field, uint32_t t)
{
    rws_engine     *e = path->e;
    const rws_field f = e->fields[field];
    const uint32_t *map = rws__level_map(e, path->level, row_node(path, field)->level);
    for (uint32_t i = 0; i < e->levels[path->level].n_rows; i++) expect_item(path, field, map, i, t);
    const uint32_t row = map ? map[0] : 0;
    if (e->pass.scalar) return path_var(path, item_leaf(path, field, t, row)); /* every path has data of its own */
    const uint32_t place = rws__field_place(path, field);
    if (!e->item_nodes) e->item_nodes = RWS_NEW0(&e->arena, uint32_t *, 2 * e->n_fields);
    if (!e->item_nodes[place]) e->item_nodes[place] = RWS_NEW0(&e->arena, uint32_t, f.most);
    uint32_t *id = &e->item_nodes[place][t];
    if (!*id) *id = item_leaf(path, field, t, row);
    return path_var(path, *id);
}

void rws__series_put(rws_path *path, int field, const rws_visit *v)
{
    rws__trace_add(path, v);
    path->n_scored++;
    path->sites[path->e->field_sites[field]].next = NONE; /* a list of the items is too short now */
}

bool rws__series_find(rws_path *path, int field, rws_visit *v)
{
    const rws_field f = path->e->fields[field];
    if (v->dim != f.item)
        rws__path_fail(path, RWS_BAD_INPUT, "Site \"%s\" has %d numbers in the model, but an item of the data has %d.",
                       f.name, v->dim, f.item);
    if (path->site_visit >= (uint32_t)f.most)
        rws__path_fail(path, RWS_BAD_INPUT,
                       "The model makes more than %d items of \"%s\", the most that were declared for this series.",
                       f.most, f.name);
    if (path->e->pass.mode == RWS_SLEEP) return false;
    const uint32_t *more = rws__visits_beyond(path, path->site);
    v->value = more ? item_by_row(path, field, more) : item(path, field, path->site_visit);
    rws__series_put(path, field, v);
    return true;
}

/* What item t of all data is known to be in this pass: as rws_visit.values, a choice of so many or -1 for bits; 0: nothing. */
static int32_t *item_fits(rws_engine *e, int field, uint32_t t)
{
    if (!e->item_fits) e->item_fits = RWS_NEW0(&e->arena, int32_t *, e->n_fields);
    if (!e->item_fits[field]) e->item_fits[field] = RWS_NEW0(&e->arena, int32_t, e->fields[field].most);
    return &e->item_fits[field][t];
}

void rws__series_expect(rws_path *path, int field, const rws_visit *v)
{
    const node     *data = row_node(path, field);
    const uint32_t *more = rws__visits_beyond(path, path->site), at = more ? path->level : data->level;
    const uint32_t *map = rws__level_map(path->e, at, data->level);
    int32_t        *fits = more || path->e->pass.scalar ? NULL : item_fits(path->e, field, path->site_visit);
    const int32_t   kind = v->values.support == RWS_SUPPORT_BITS ? -1 : v->values.n_values;
    char            text[80];
    bool            all = true;
    for (uint32_t i = 0; i < path->e->levels[at].n_rows && !(fits && *fits == kind); i++) {
        const uint32_t datum = map ? map[i] : i, t = path->site_visit + (more ? more[i] : 0);
        const float   *row = data->value + datum * (size_t)data->dim;
        for (int j = 0; j < path->e->fields[field].item && (uint32_t)row[0] > t; j++) {
            const float x = row[1 + t * (size_t)path->e->fields[field].item + (size_t)j];
            if (rws__visit_fits(v, x)) continue;
            all = false;
            if (!rws__path_has_row(path, data->level, datum)) continue;
            rws__path_fail(path, RWS_BAD_INPUT, "Item %u of \"%s\" is %g, which is not %s.", t,
                           path->e->fields[field].name, (double)x, rws__visit_expects(v, text));
        }
    }
    if (fits && all) *fits = kind;
}

void rws__series_check_end(rws_path *path, int field)
{
    rws_engine    *e = path->e;
    const uint32_t visits = rws__series_visits(path, field);
    if (e->pass.mode == RWS_SLEEP || field_seen(path, field)) return; /* seen: rws__path_fields_scored */
    const uint32_t *map = rws__level_map(e, path->level, row_node(path, field)->level);
    const uint32_t *more = visits ? rws__visits_beyond(path, e->field_sites[field]) : NULL;
    for (uint32_t i = 0; i < e->levels[path->level].n_rows; i++) {
        const uint32_t n = visits + (more ? more[i] : 0);
        if (n == (uint32_t)length_at(path, field, map, i)) continue;
        e->status = rws_fail(&e->error, RWS_BAD_INPUT,
                             "The model visits site \"%s\" %u times, but datum %llu has %d items there.",
                             e->fields[field].name, n, datum_at(path, field, map, i), length_at(path, field, map, i));
        return;
    }
}

void rws__series_check_data(rws_engine *e, int field)
{
    const rws_field f = e->fields[field];
    for (int d = 0; d < e->pass.n_data; d++) {
        const float n = e->pass.fields[field][(size_t)d * (size_t)f.dim];
        if (!(n >= 0 && n <= (float)f.most && n == (float)(int)n))
            rws__engine_fail(
                e, RWS_BAD_INPUT,
                "The series \"%s\" of datum %llu has a length of %g; it must be a whole number from 0 to %d.", f.name,
                (unsigned long long)e->pass.first_datum + (unsigned)d, rws__plain(n), f.most);
    }
}

/* A dream as a row of data: its length, its items, zeros. */
const float *rws__series_dream(rws_engine *e, const rws_path *path, origin o, int field)
{
    const rws_field f = e->fields[field];
    float          *row = RWS_NEW0(&e->arena, float, f.dim);
    uint32_t        n, made = 0;
    const past     *all = rws__past_of(e, path, o.row, &n);
    for (uint32_t s = 0; s < n; s++)
        for (uint32_t i = 0; i < all[s].in->n_trace; i++) {
            const trace_entry *t = &all[s].in->trace[i];
            if (e->sites[t->site].field != field) continue;
            rws__request_rows(e, t->var, all[s].in->level);
            rws__engine_execute(e);
            memcpy(row + 1 + made++ * (size_t)f.item, rws__value_at(e, all[s].in->level, all[s].row, t->var),
                   (size_t)f.item * sizeof(float));
        }
    row[0] = (float)made;
    return row;
}

/* ---- for programs that read them */

static int series_of(rws_path *path, const char *name, const char *function)
{
    const int field = rws__field_to_read(path, name, function);
    if (!path->e->fields[field].most)
        rws__path_fail(path, RWS_BAD_INPUT, "%s reads \"%s\", which is not a series; rws_observed reads it.", function,
                       name);
    return field;
}

/* Lists the nodes of all items that the path has made. */
static void list_items(rws_path *path, visited *v, uint32_t n)
{
    rws_engine    *e = path->e;
    const uint32_t site = path->trace[v->last].site;
    v->next = e->n_items;
    for (uint32_t i = 0; i < n; i++) *RWS_PUSH(e, e->items, e->n_items, e->item_capacity) = 0;
    for (uint32_t i = 0; i < path->n_trace; i++)
        if (path->trace[i].site == site) e->items[v->next + path->trace[i].visit] = path->trace[i].var;
}

/* The length of a dream, which may differ from row to row where paths have come together. */
static rws_var dream_length(rws_path *path, int field)
{
    rws_engine     *e = path->e;
    const uint32_t  n = e->levels[path->level].n_rows, visits = rws__series_visits(path, field);
    const uint32_t *more = visits ? rws__visits_beyond(path, e->field_sites[field]) : NULL;
    if (!more) return rws_constant(path, (float)visits);
    float *length = RWS_NEW(&e->arena, float, n);
    for (uint32_t i = 0; i < n; i++) length[i] = (float)(visits + more[i]);
    return path_var(path, rws__node_leaf(e, path->level, 1, length));
}

rws_var rws_length(rws_path *path, const char *name)
{
    rws_var v;
    if (rws__replayed(path, &v)) return v;
    const int field = series_of(path, name, "rws_length");
    if (!field_is_given(path->e, field)) return rws__returns(path, dream_length(path, field));
    const rws_var row = path_var(path, path->field[rws__field_place(path, field)]);
    return rws__returns(path, rws__record(path, &rws_op_slice, (rws_op_args){.k = 0}, &row, 1, 1));
}

rws_var rws_item(rws_path *path, const char *name, int t)
{
    rws_engine *e = path->e;
    rws_var     v;
    if (rws__replayed(path, &v)) return v;
    const int field = series_of(path, name, "rws_item");
    if (t < 0) rws__path_mistake(path, "rws_item was asked for item %d of \"%s\".", t, name);
    if (field_is_given(path->e, field)) return rws__returns(path, item(path, field, (uint32_t)t));
    const uint32_t visits = rws__series_visits(path, field);
    const uint32_t made = path->history && e->field_sites[field] != NONE
                              ? rws__history_item(path, e->field_sites[field], (uint32_t)t)
                              : 0;
    if (made) return rws__returns(path, path_var(path, made));
    if ((uint32_t)t >= visits || path->history)
        rws__path_fail(path, RWS_BAD_INPUT,
                       "The guide comes to item %d of \"%s\", but the dream has only %u (the first is 0).", t, name,
                       visits);
    visited *site = &path->sites[path->e->field_sites[field]];
    if (site->next == NONE) list_items(path, site, visits);
    return rws__returns(path, path_var(path, path->e->items[site->next + (uint32_t)t]));
}
