/* choices.c - values that a pass is given instead of drawing them, and the values at its sites, listed by row of the
 * table after it. */
#include "engine/internal.h"

#include <math.h>
#include <string.h>

/* ---- given */

void rws_given_begin(rws_engine *e)
{
    const rws_pass *p = &e->pass;
    e->given_next = 0;
    if (!p->n_given) return;
    if (p->proposal != RWS_PLAIN && p->proposal != RWS_DEFENSIVE)
        e->status = rws_fail(&e->error, RWS_BAD_INPUT, "Choices can be given only where they would be drawn plainly.");
    e->given_used = RWS_NEW0(&e->arena, bool, p->n_given);
}

void rws_given_end(rws_engine *e)
{
    for (int i = 0; i < e->pass.n_given; i++) {
        const rws_choice *c = &e->pass.given[i];
        if (e->given_used[i]) continue;
        e->status = rws_fail(&e->error, RWS_BAD_INPUT,
                             "A value is given for site \"%.100s\" (visit %d), but the %s does not come by it.",
                             c->site, c->visit + 1, e->pass.mode == RWS_SLEEP ? "model" : "guide");
        return;
    }
}

/* Choices are mostly visited in the order of the list, so the search begins behind the last one found. */
static const rws_choice *find(rws_engine *e, const char *site, int visit)
{
    const int n = e->pass.n_given;
    for (int i = 0; i < n; i++) {
        const int         at = e->given_next + i < n ? e->given_next + i : e->given_next + i - n;
        const rws_choice *c = &e->pass.given[at];
        if (c->visit != visit || strcmp(c->site, site) != 0) continue;
        e->given_used[at] = true;
        e->given_next = at + 1 < n ? at + 1 : 0;
        return c;
    }
    return NULL;
}

static void check(rws_path *path, const rws_choice *c, int dim, int n_values)
{
    char text[160];
    rws_site_text(path->e, path->site, path->site_visit, text);
    if (c->dim != dim)
        rws_path_fail(path, RWS_BAD_INPUT, "Site %s has %d numbers, but %d are given.", text, dim, c->dim);
    for (int i = 0; i < dim; i++) {
        const double x = (double)c->value[i];
        if (!isfinite(x)) rws_path_fail(path, RWS_BAD_INPUT, "The value given for site %s is %g.", text, x);
        if (n_values && !(x >= 0 && x < n_values && x == rint(x)))
            rws_path_fail(path, RWS_BAD_INPUT, "The value given for site %s is %g, which is not a choice of 0 to %d.",
                          text, x, n_values - 1);
    }
}

bool rws_site_given(rws_path *path, int dim, int n_values, rws_var *value)
{
    rws_engine *e = path->e;
    if (!e->pass.n_given && !e->pass.given_all) return false;
    const rws_choice *c = find(e, e->sites[path->site].name, (int)path->site_visit);
    char              text[160];
    if (!c) {
        if (e->pass.given_all && !rws_site_is_field(path))
            rws_path_fail(path, RWS_BAD_INPUT, "No value is given for site %s.",
                          rws_site_text(e, path->site, path->site_visit, text));
        return false;
    }
    check(path, c, dim, n_values);
    path->ordinal++; /* so that later draws are the same as after a draw of this value */
    *value = path_var(path, rws_node_leaf(e, ROOT, dim, (float *)c->value));
    return true;
}

/* ---- listed */

static void read_choices(rws_engine *e, int row, rws_choice_reader *each, void *context)
{
    const origin    o = rws_scores_origin(e, row);
    const rws_path *path = e->paths[e->ends[o.end].path];
    for (uint32_t i = 0; i < path->n_trace; i++) {
        const trace_entry *t = &path->trace[i];
        if (e->sites[t->site].field >= 0) continue; /* an item of a series */
        each(context, e->sites[t->site].name, (int)t->visit, e->nodes[t->var].dim, rws_value_at(e, o, t->var));
    }
}

rws_status rws_engine_choices(rws_engine *e, int row, rws_choice_reader *each, void *context)
{
    RWS_CHECK(e->pass.choices && row >= 0 && row < e->scores.n);
    RWS_ENTER(e, read_choices(e, row, each, context));
    return e->status;
}

static void read_field(rws_engine *e, int row, int field, const float **value)
{
    const origin    o = rws_scores_origin(e, row);
    const rws_path *path = e->paths[e->ends[o.end].path];
    const uint32_t  id = path->field[field];
    if (!id && e->fields[field].most) *value = rws_series_dream(e, path, o, field);
    if (!id) return;
    rws_ask(e, id, e->ends[o.end].level);
    rws_engine_execute(e);
    *value = rws_value_at(e, o, id);
}

const float *rws_engine_observed(rws_engine *e, int row, int field, int *dim)
{
    const float *value = NULL;
    RWS_CHECK(row >= 0 && row < e->scores.n && field >= 0 && field < e->n_fields);
    if (dim) *dim = e->fields[field].dim;
    RWS_ENTER(e, read_field(e, row, field, &value));
    return e->status == RWS_OK ? value : NULL;
}
