/* choices.c - values that a pass is given instead of drawing them, and the values at its sites, listed by row of the
 * table after it. */
#include "engine/internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- given
 *
 * The list of a pass holds for every datum, or each datum has a part of it. Where some data of a path have a value for the
 * site that the path visits and others have none, the path parts before the visit:
 *
 *     rows a b c d,                path 1   rows b d   no value is given: draws
 *     values for a and c           path 2   rows a c   starts again, visits the site once more and takes the values
 *
 * so that all rows of a path have taken equally many given choices (rws_path.n_taken). A row whose datum has more given
 * choices is impossible.
 */

/* Choices first … end - 1 of the list are given for a datum. */
typedef struct {
    uint32_t first, end;
} range;

static range range_of(const rws_engine *e, uint32_t datum)
{
    const uint32_t *start = e->pass.given_start;
    return start ? (range){start[datum], start[datum + 1]} : (range){0, e->n_given};
}

void rws__given_begin(rws_engine *e)
{
    const rws_pass *p = &e->pass;
    const uint32_t  n_lists = p->given_start ? (uint32_t)p->n_data : 1;
    e->n_given = p->given_start ? p->given_start[p->n_data] - p->given_start[0] : (uint32_t)p->n_given;
    if (!e->n_given) return;
    e->given_next = RWS_NEW(&e->arena, uint32_t, n_lists);
    for (uint32_t d = 0; d < n_lists; d++) e->given_next[d] = range_of(e, d).first;
    e->given_used = p->given_start ? NULL : RWS_NEW0(&e->arena, bool, e->n_given);
}

bool rws__given_missing(const rws_engine *e, const rws_path *path, uint32_t datum)
{
    const range r = range_of(e, datum);
    return path->n_taken < r.end - r.first && !e->pass.given_where_fits;
}

bool rws__engine_given_reached(const rws_engine *e, int i)
{
    RWS_CHECK(e->given_used && i >= 0 && (uint32_t)i < e->n_given);
    return e->given_used[i];
}

/* Whether everything that the drawing side has chosen in these n segments was given, so that no particle can differ. */
static bool drew_nothing(const rws_engine *e, const past *all, uint32_t n)
{
    for (uint32_t s = 0; s < n; s++)
        for (uint32_t i = 0; i < all[s].in->n_trace; i++)
            if (!all[s].in->trace[i].given && e->sites[all[s].in->trace[i].site].field < 0) return false;
    return true;
}

/* How often the drawing side has visited a site in these n segments. */
static int visits_of(const rws_engine *e, const past *all, uint32_t n, const char *site)
{
    int visits = 0;
    for (uint32_t s = 0; s < n; s++)
        for (uint32_t i = 0; i < all[s].in->n_trace; i++)
            visits += strcmp(e->sites[all[s].in->trace[i].site].name, site) == 0;
    return visits;
}

/* The first choice that is given for a datum and whose site and visit is not in these n segments. */
static const rws_choice *first_missing(const rws_engine *e, const past *all, uint32_t n, uint32_t datum)
{
    const range r = range_of(e, datum);
    for (uint32_t i = r.first; i < r.end; i++)
        if (e->pass.given[i].visit >= visits_of(e, all, n, e->pass.given[i].site)) return &e->pass.given[i];
    return &e->pass.given[r.first];
}

/* Fails the pass if certainly no particle visits the site of a given choice: a choice of a datum whose particles drew
 * nothing, because all their choices were given; or, where the caller says that all choices are given, or in a sleep pass, a
 * choice that no path took. */
void rws__given_end(rws_engine *e)
{
    const char *drew = e->pass.mode == RWS_SLEEP ? "model" : "guide";
    for (uint32_t i = 0; i < e->n_ends && e->n_given && e->pass.given_start; i++) {
        const rws_path *path = e->paths[e->ends[i].path];
        const uint32_t  last = e->ends[i].level, *to_base = e->pass.scalar ? NULL : rws__level_map(e, last, 1);
        for (uint32_t row = 0; row < e->levels[last].n_rows; row++) {
            const uint32_t d = rws__row_datum(e, last, to_base, row);
            if (!rws__given_missing(e, path, d)) continue;
            uint32_t    n;
            const past *all = rws__past_of(e, path, row, &n);
            if (!drew_nothing(e, all, n)) continue;
            const rws_choice *c = first_missing(e, all, n, d);
            rws__engine_fail(
                e, RWS_BAD_INPUT,
                "A value is given for site \"%.100s\" (visit %d) of datum %u, but the %s does not visit it.", c->site,
                c->visit, e->pass.first_datum + d, drew);
        }
    }
    for (uint32_t i = 0; i < e->n_given && !e->pass.given_start; i++) {
        const rws_choice *c = &e->pass.given[i];
        if (e->given_used[i] || (e->pass.mode == RWS_WAKE && !e->pass.given_all)) continue;
        rws__engine_fail(e, RWS_BAD_INPUT,
                         "A value is given for site \"%.100s\" (visit %d), but the %s does not visit it.", c->site,
                         c->visit, drew);
    }
}

/* The place in pass.given of the choice that is given for a datum at a site and visit; NONE: there is none. Choices are
 * mostly visited in the order of the list, so the search begins behind the last one found. */
static uint32_t find(rws_engine *e, uint32_t datum, const char *site, uint32_t visit)
{
    const range r = range_of(e, datum);
    uint32_t   *next = &e->given_next[e->pass.given_start ? datum : 0], at = *next;
    for (uint32_t i = r.first; i < r.end; i++, at = at + 1 < r.end ? at + 1 : r.first) {
        const rws_choice *c = &e->pass.given[at];
        if ((uint32_t)c->visit != visit || strcmp(c->site, site) != 0) continue;
        *next = at + 1 < r.end ? at + 1 : r.first;
        return at;
    }
    return NONE;
}

/* Whether every number of a value that is given may be one at a site. */
static bool fits(const rws_choice *c, int dim, int n_values)
{
    bool good = c->dim == dim;
    for (int i = 0; i < dim && good && n_values; i++)
        good = c->value[i] >= 0 && c->value[i] < (float)n_values && c->value[i] == rintf(c->value[i]);
    return good;
}

/* Fails the pass unless the value fits its site. datum: NONE if the value is given for all data. */
static void check(rws_path *path, const rws_choice *c, int dim, int n_values, uint32_t datum)
{
    char text[160], whose[40] = "";
    rws__site_text(path->e, path->site, path->site_visit, text);
    if (datum != NONE) snprintf(whose, sizeof whose, " of datum %u", path->e->pass.first_datum + datum);
    if (c->dim != dim)
        rws__path_fail(path, RWS_BAD_INPUT, "Site %s%s has %d number%s, but %d %s given.", text, whose, dim,
                       dim == 1 ? "" : "s", c->dim, c->dim == 1 ? "is" : "are");
    for (int i = 0; i < dim; i++) {
        const double x = (double)c->value[i];
        if (!isfinite(x))
            rws__path_fail(path, RWS_BAD_INPUT, "The value given for site %s%s is %g. It must be finite.", text, whose,
                           x);
        if (n_values && !(x >= 0 && x < n_values && x == rint(x)))
            rws__path_fail(path, RWS_BAD_INPUT,
                           "The value given for site %s%s is %g, which is not a choice of 0 to %d.", text, whose, x,
                           n_values - 1);
    }
}

/* Sets at[i] to the place in pass.given of the choice that is given for the datum of row i here, or NONE. Returns for how
 * many rows there is one. */
static uint32_t find_rows(rws_path *path, const uint32_t *more, int dim, int n_values, uint32_t *at)
{
    rws_engine     *e = path->e;
    const uint32_t  n = e->levels[path->level].n_rows;
    const uint32_t *to_base = e->pass.scalar ? NULL : rws__level_map(e, path->level, path->base);
    uint32_t        last = NONE, last_visit = 0, n_found = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t d = e->pass.given_start ? rws__row_datum(e, path->level, to_base, i) : 0;
        const uint32_t visit = path->site_visit + (more ? more[i] : 0);
        at[i] = d == last && visit == last_visit ? at[i - 1] : find(e, d, e->sites[path->site].name, visit);
        last = d;
        last_visit = visit;
        if (at[i] != NONE && e->pass.given_where_fits && !fits(&e->pass.given[at[i]], dim, n_values)) at[i] = NONE;
        n_found += at[i] != NONE;
    }
    return n_found;
}

/* A leaf node at the level of the path with the given values of all rows. */
static rws_var take_rows(rws_path *path, const uint32_t *at, int dim, int n_values)
{
    rws_engine     *e = path->e;
    const uint32_t  n = e->levels[path->level].n_rows;
    const uint32_t *to_base = e->pass.scalar ? NULL : rws__level_map(e, path->level, path->base);
    float          *value = RWS_NEW(&e->arena, float, n *(size_t)dim);
    for (uint32_t i = 0; i < n; i++) {
        const rws_choice *c = &e->pass.given[at[i]];
        const uint32_t    datum = e->pass.given_start ? rws__row_datum(e, path->level, to_base, i) : NONE;
        if (i == 0 || at[i] != at[i - 1]) check(path, c, dim, n_values, datum);
        if (e->given_used) e->given_used[at[i]] = true;
        memcpy(value + i * (size_t)dim, c->value, (size_t)dim * sizeof *value);
    }
    return path_var(path, rws__node_leaf(e, path->level, dim, value));
}

static bool take_by_row(rws_path *path, const uint32_t *more, int dim, int n_values, rws_var *value)
{
    rws_engine    *e = path->e;
    const uint32_t n = e->levels[path->level].n_rows;
    uint32_t      *at = RWS_NEW(&e->arena, uint32_t, n);
    const uint32_t n_found = find_rows(path, more, dim, n_values, at);
    if (n_found == n) {
        *value = take_rows(path, at, dim, n_values);
        return true;
    }
    for (uint32_t i = 0; i < n; i++) at[i] = at[i] != NONE;
    if (n_found) rws__path_split(path, at, 2);
    return false;
}

static bool take_for_all(rws_path *path, int dim, int n_values, rws_var *value)
{
    rws_engine    *e = path->e;
    const uint32_t at = find(e, 0, e->sites[path->site].name, path->site_visit);
    if (at == NONE) return false;
    e->given_used[at] = true;
    check(path, &e->pass.given[at], dim, n_values, NONE);
    *value = path_var(path, rws__node_leaf(e, ROOT, dim, (float *)e->pass.given[at].value));
    return true;
}

/* Rows may have lists of their own, or have visited the site more often than others. */
static bool take(rws_path *path, rws_visit *v)
{
    const uint32_t *more = rws__visits_beyond(path, path->site);
    if (!path->e->pass.given_start && !more) return take_for_all(path, v->dim, v->values.n_values, &v->value);
    return take_by_row(path, more, v->dim, v->values.n_values, &v->value);
}

bool rws__given_take(rws_path *path, rws_visit *v)
{
    rws_engine *e = path->e;
    if (!e->n_given && !e->pass.given_all) return false;
    if (e->n_given && take(path, v)) {
        path->ordinal++; /* so that later draws are the same as after a draw of this value */
        path->n_taken++;
        return true;
    }
    char text[160];
    if (e->pass.given_all && !rws__site_is_field(path))
        rws__path_fail(path, RWS_BAD_INPUT, "No value is given for site %s.",
                       rws__site_text(e, path->site, path->site_visit, text));
    return false;
}

/* ---- listed */

static void read_choices(rws_engine *e, int row, rws_choice_reader *each, void *context)
{
    const origin o = rws__scores_origin(e, row);
    uint32_t     n, *visits = RWS_NEW0(&e->arena, uint32_t, e->n_sites + 1);
    const past  *all = rws__past_of(e, e->paths[e->ends[o.end].path], o.row, &n);
    for (uint32_t s = 0; s < n; s++)
        for (uint32_t i = 0; i < all[s].in->n_trace; i++) {
            const trace_entry *t = &all[s].in->trace[i];
            if (e->sites[t->site].field >= 0) continue; /* an item of a series */
            each(context, &(rws_choice){.site = e->sites[t->site].name,
                                        .visit = (int)visits[t->site]++,
                                        .dim = e->nodes[t->var].dim,
                                        .value = rws__value_at(e, all[s].in->level, all[s].row, t->var),
                                        .given = t->given});
        }
}

rws_status rws__engine_choices(rws_engine *e, int row, rws_choice_reader *each, void *context)
{
    RWS_CHECK(e->pass.choices && row >= 0 && row < e->scores.n);
    RWS_ENTER(e, read_choices(e, row, each, context));
    return e->status;
}

static void read_field(rws_engine *e, int row, int field, const float **value)
{
    const origin    o = rws__scores_origin(e, row);
    const rws_path *path = e->paths[e->ends[o.end].path];
    const uint32_t  id = path->field[field];
    if (!id && e->fields[field].most) *value = rws__series_dream(e, path, o, field);
    if (!id) return;
    rws__request_rows(e, id, e->ends[o.end].level);
    rws__engine_execute(e);
    *value = rws__value_at(e, e->ends[o.end].level, o.row, id);
}

const float *rws__engine_observed(rws_engine *e, int row, int field, int *dim)
{
    const float *value = NULL;
    RWS_CHECK(row >= 0 && row < e->scores.n && field >= 0 && field < e->n_fields);
    if (dim) *dim = e->fields[field].dim;
    RWS_ENTER(e, read_field(e, row, field, &value));
    return e->status == RWS_OK ? value : NULL;
}
