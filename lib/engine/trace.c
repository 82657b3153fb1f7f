/* trace.c - sites: what one side drew and the other must visit, and the log-densities of both. */
#include "engine/internal.h"

#include "base/nearest.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *rws__site_text(const rws_engine *e, uint32_t site, uint32_t visit, char out[static 160])
{
    if (visit) snprintf(out, 160, "\"%.100s\" (visit %u)", e->sites[site].name, visit);
    else snprintf(out, 160, "\"%.100s\"", e->sites[site].name);
    return out;
}

const char *rws__side_name(rws_side side)
{
    return side == RWS_SIDE_MODEL ? "model" : side == RWS_SIDE_GUIDE ? "guide" : "program";
}

static rws_side other_side(rws_side side)
{
    return side == RWS_SIDE_MODEL ? RWS_SIDE_GUIDE : RWS_SIDE_MODEL;
}

void rws__path_comes_to(rws_path *path, const char *site)
{
    if (rws__path_is_nested(path))
        rws__path_mistake(path, "a family visits the site \"%s\" while it draws or scores.", site ? site : "NULL");
    path->coming = site;
}

const char *rws__path_where(const rws_path *path, char out[static 240])
{
    char        text[160];
    const char *side = path->acts ? "model, which runs as its own guide" : rws__side_name(path->side);
    if (path->coming) snprintf(out, 240, "the %s, at site \"%.100s\"", side, path->coming);
    else if (path->site == NONE) snprintf(out, 240, "the %s, before its first site", side);
    else snprintf(out, 240, "the %s, after site %s", side, rws__site_text(path->e, path->site, path->site_visit, text));
    return out;
}

void rws__path_mistake(rws_path *path, const char *format, ...)
{
    char      where[240];
    rws_error what;
    va_list   args;
    va_start(args, format);
    rws__fail_v(&what, RWS_BAD_INPUT, format, args);
    va_end(args);
    rws__path_fail(path, RWS_BAD_INPUT, "In %s: %s", rws__path_where(path, where), what.text);
}

static int field_number(const rws_engine *e, const char *name)
{
    for (int i = 0; i < e->n_fields; i++)
        if (strcmp(e->fields[i].name, name) == 0) return i;
    return -1;
}

static void grow_site_table(rws_engine *e)
{
    const uint32_t size = e->site_table_size ? 2 * e->site_table_size : 64;
    uint32_t      *table = calloc(size, sizeof *table);
    if (!table) rws__engine_no_memory(e);
    e->n_allocations++;
    for (uint32_t i = 0; i < e->n_sites; i++) {
        uint32_t at = (uint32_t)e->sites[i].hash & (size - 1);
        while (table[at]) at = (at + 1) & (size - 1);
        table[at] = i + 1;
    }
    free(e->site_table);
    e->site_table = table;
    e->site_table_size = size;
}

static uint32_t site_number(rws_path *path, const char *name)
{
    rws_engine *e = path->e;
    if (!name) rws__path_mistake(path, "%s was given no name of a site (NULL).", path->function);
    if (2 * e->n_sites >= e->site_table_size) grow_site_table(e);
    const uint64_t hash = rws__hash_name(0x9e3779b97f4a7c15u, name);
    uint32_t       at = (uint32_t)hash & (e->site_table_size - 1);
    for (; e->site_table[at]; at = (at + 1) & (e->site_table_size - 1)) {
        const site *s = &e->sites[e->site_table[at] - 1];
        if (s->hash == hash && strcmp(s->name, name) == 0) return e->site_table[at] - 1;
    }
    if (e->n_sites == MAX_SITES)
        rws__path_mistake(path,
                          "there are %u different names of sites; loops and recursion may use one name many times.",
                          e->n_sites);
    if (e->n_sites == e->site_capacity) e->sites = rws__grow(e, e->sites, &e->site_capacity, sizeof *e->sites);
    const char *copy = strdup(name);
    if (!copy) rws__engine_no_memory(e);
    e->n_allocations++;
    const int field = field_number(e, name);
    e->sites[e->n_sites] = (site){.name = copy, .hash = hash, .field = field, .how = -1};
    if (field >= 0) e->field_sites[field] = e->n_sites;
    for (int i = 0; i < e->n_gradients; i++)
        if (strcmp(e->gradients[i].site, name) == 0) e->sites[e->n_sites].how = (int8_t)e->gradients[i].how;
    e->site_table[at] = ++e->n_sites;
    return e->n_sites - 1;
}

void rws__engine_set_gradients(rws_engine *e, const rws_site_gradient *list, int n)
{
    e->gradients = list;
    e->n_gradients = n;
}

bool rws__engine_has_site(const rws_engine *e, const char *name)
{
    for (uint32_t i = 0; i < e->n_sites; i++)
        if (strcmp(e->sites[i].name, name) == 0) return true;
    return false;
}

/* Whether gradients pass through values at the site that is being visited. */
static bool is_pathwise(rws_path *path, const rws_visit *v)
{
    const int8_t how = path->e->sites[path->site].how;
    if (how == RWS_REPARAMETERISED && !v->reparameterised && v->what != RWS_VISIT_FOUND)
        rws__path_fail(path, RWS_BAD_INPUT,
                       "Site \"%s\" is %s, which cannot be reparameterised; its gradient comes by score.",
                       path->e->sites[path->site].name, v->family);
    return v->reparameterised && path->e->pass.pathwise && how != RWS_SCORE;
}

/* A value that was drawn carries what it depends on to all that is made of it, and one that does not carry gradients hides
 * what it was drawn from, whose gradient comes by the density of this value. */
static void note_draw(rws_path *path, const rws_visit *v)
{
    node *n = &path->e->nodes[v->value.id];
    if (path->site < NO_SITE) n->site = (uint16_t)path->site;
    if (v->moves || n->depends & path->e->pass.groups) n->depends |= DRAWN | IS_DRAW;
    else n->depends &= (uint8_t)~DRAWN;
}

/* The entry of a site on a path, which grows its table as it visits sites. */
static visited *visited_at(rws_path *path, uint32_t number)
{
    while (path->n_sites <= number)
        *RWS_PUSH(path->e, path->sites, path->n_sites, path->site_capacity) = (visited){NONE, NONE};
    return &path->sites[number];
}

bool rws__site_is_field(const rws_path *path)
{
    return path->e->sites[path->site].field >= 0;
}

bool rws__path_draws(const rws_path *path)
{
    return path->side == (path->e->pass.mode == RWS_SLEEP ? RWS_SIDE_MODEL : RWS_SIDE_GUIDE);
}

static void find_field(rws_path *path, int field, const char *name, int dim)
{
    const rws_engine *e = path->e;
    path->site_visit = 0;
    if (path->side == RWS_SIDE_GUIDE)
        rws__path_fail(path, RWS_BAD_INPUT,
                       "The guide visits site \"%s\", which is data; it reads them with rws_observed.", name);
    if (dim != e->fields[field].dim)
        rws__path_fail(path, RWS_BAD_INPUT, "Site \"%s\" has %d numbers in the model, but the data have %d.", name, dim,
                       e->fields[field].dim);
    if (field_seen(path, field))
        rws__path_fail(path, RWS_BAD_INPUT,
                       "The model visits site \"%s\" twice; it is observed, and a datum has one value there.", name);
    path->fields_seen[field / 64] |= (uint64_t)1 << field % 64;
}

/* What the other side drew at the site that is being visited. NULL: it has not visited it so often. */
static const trace_entry *next_entry(rws_path *path, trace_entry *joined)
{
    visited *at = visited_at(path, path->site);
    if (path->history) {
        if (!rws__history_next(path, joined)) return NULL;
        path->sites[path->site].next = joined->visit + 1;
        return joined;
    }
    path->site_visit = rws__next_visit(path, path->site);
    if (at->next == NONE) return NULL;
    const trace_entry *t = &path->trace[at->next];
    at->next = t->next;
    path->site_visit = t->visit;
    path->n_scored++;
    return t;
}

int rws__site_numbers(rws_path *path, const char *name)
{
    rws_engine *e = path->e;
    trace_entry joined;
    const int   observed = rws__site_observes(path, name);
    if (observed || path->side == RWS_SIDE_NONE || rws__path_draws(path)) return observed;
    path->site = site_number(path, name);
    const uint32_t     next = visited_at(path, path->site)->next;
    const trace_entry *t = path->history  ? rws__history_next(path, &joined) ? &joined : NULL
                           : next == NONE ? NULL
                                          : &path->trace[next];
    return t ? e->nodes[t->known ? t->known : t->var].dim : 0;
}

/* The field or the other site that a site was probably meant to be, for a message. */
static rws_nearest_text meant(const rws_path *path, const char *name)
{
    const rws_engine *e = path->e;
    rws_nearest       near = rws__nearest_to(name);
    for (int f = 0; f < e->n_fields; f++) rws__nearest_try(&near, e->fields[f].name);
    for (uint32_t i = 0; i < path->n_trace; i++)
        if (strcmp(e->sites[path->trace[i].site].name, name) != 0)
            rws__nearest_try(&near, e->sites[path->trace[i].site].name);
    return rws__nearest_hint(&near);
}

/* Takes the value that the other side drew at the site that is being visited. */
static void take(rws_path *path, rws_visit *v)
{
    trace_entry        joined;
    const trace_entry *t = next_entry(path, &joined);
    char               text[160];
    if (!t)
        rws__path_fail(path, RWS_BAD_INPUT, "The %s visits site %s%s, but the %s does not%s.",
                       rws__side_name(path->side), rws__site_text(path->e, path->site, path->site_visit, text),
                       meant(path, path->e->sites[path->site].name).text, rws__side_name(other_side(path->side)),
                       path->side == RWS_SIDE_MODEL
                           ? "; only sites with the name of a field of the data may be visited by the model alone"
                           : "");
    const bool same = strcmp(t->family, v->family) == 0;
    if (same && t->size != v->size)
        rws__path_fail(path, RWS_BAD_INPUT, "Site %s has size %d in the %s and %d in the %s%s.",
                       rws__site_text(path->e, t->site, t->visit, text), v->size, rws__side_name(path->side), t->size,
                       rws__side_name(other_side(path->side)),
                       path->side == RWS_SIDE_GUIDE && t->size == 1
                           ? "; a model that dreams says how many numbers a value has"
                           : "");
    v->value = path_var(path, t->known ? t->known : t->var);
    v->other = same ? NULL : t->family;
    v->other_values = (rws_values){.support = (rws_support)t->support,
                                   .n_values = t->n_values,
                                   .low = path_var(path, t->low),
                                   .high = path_var(path, t->high)};
}

/* Whether the model comes to a site that is summed, and that the guide has not visited (so often). */
static bool is_left_out(rws_path *path)
{
    const uint32_t s = path->site;
    if (path->e->sites[s].how != RWS_SUMMED || path->e->pass.mode != RWS_WAKE) return false;
    const history *h = path->history;
    return h ? s >= h->n_sites || h->start[s][path->e->levels[h->level].n_rows] == 0
             : visited_at(path, s)->next == NONE;
}

/* The place of a site in the trace. Returns true and sets the value if it has one already (drawn by the other side, or
 * observed); false if it is to be drawn, after which `put` records it. */
static bool find(rws_path *path, rws_visit *visit)
{
    rws_engine *e = path->e;
    const char *name = visit->site;
    if (path->side == RWS_SIDE_NONE || e->pass.mode == RWS_COMPUTE)
        rws__path_fail(path, RWS_BAD_INPUT, "Site \"%s\" is visited outside of the guide and the model.",
                       name ? name : "NULL");
    path->site = site_number(path, name);
    path->coming = NULL;
    const int field = e->sites[path->site].field;
    if (field >= 0 && e->fields[field].label)
        rws__path_fail(path, RWS_BAD_INPUT,
                       "Site \"%s\" has the name of a label of the data; give the label another name "
                       "(rws_setup_label_site says which site it belongs to).",
                       name);
    if (field >= 0 && e->fields[field].input)
        rws__path_fail(
            path, RWS_BAD_INPUT,
            "The %s visits site \"%s\", which is an input: programs read it with %s, and nobody observes it. "
            "A field that the model observes is declared with rws_setup_field.",
            rws__side_name(path->side), name, e->fields[field].most ? "rws_item" : "rws_observed");
    if (field >= 0 && e->fields[field].most) {
        if (path->side == RWS_SIDE_GUIDE)
            rws__path_fail(path, RWS_BAD_INPUT,
                           "The guide visits site \"%s\", which is data; it reads them with rws_item.", name);
        path->site_visit = rws__next_visit(path, path->site);
        return rws__series_find(path, field, visit);
    }
    if (field >= 0) {
        find_field(path, field, name, visit->dim);
        visit->value = path_var(path, path->field[field]);
        return visit->value.id != 0;
    }
    if (path->met && path->side == RWS_SIDE_GUIDE)
        rws__path_mistake(path,
                          "the guide draws site \"%s\" behind the loop that it shares with the model, which has ended "
                          "by then. Let it draw in the step that ends the loop.",
                          name);
    if (rws__path_draws(path) || is_left_out(path)) {
        path->site_visit = rws__next_visit(path, path->site);
        return false;
    }
    take(path, visit);
    return true;
}

bool rws__visit_fits(const rws_visit *v, float x)
{
    const uint32_t n = (uint32_t)v->values.n_values;
    return rws__index(x, n) < n;
}

const char *rws__visit_expects(const rws_visit *v, char out[static 80])
{
    if (v->values.support == RWS_SUPPORT_BITS) return "0 or 1; rws_observe scores grey values";
    snprintf(out, 80, "a choice of 0 to %d", v->values.n_values - 1);
    return out;
}

/* Whether all data of a field are zeros and ones; a pass looks once. */
static bool are_bits(rws_engine *e, int field, const float *x, size_t n)
{
    int others = 0;
    if (e->bits_seen[field / 64] >> field % 64 & 1) return true;
#pragma omp simd reduction(| : others)
    for (size_t i = 0; i < n; i++) others |= x[i] != 0 && x[i] != 1;
    if (others) return false;
    e->bits_seen[field / 64] |= (uint64_t)1 << field % 64;
    return true;
}

/* Stops with a message if the site is observed and the data hold anything that the family cannot have. */
static void expect_fit(rws_path *path, const rws_visit *v)
{
    rws_engine *e = path->e;
    const int   field = e->sites[path->site].field;
    char        text[80];
    if (field < 0 || e->pass.mode == RWS_SLEEP) return;
    if (e->fields[field].most) {
        rws__series_expect(path, field, v);
        return;
    }
    const node  *data = &e->nodes[v->value.id];
    const size_t dim = (size_t)data->dim, n = e->levels[data->level].n_rows * dim;
    if (v->values.support == RWS_SUPPORT_BITS && !e->pass.scalar && are_bits(e, field, data->value, n)) return;
    for (size_t i = 0; i < n; i++)
        if (!rws__visit_fits(v, data->value[i]) && rws__path_has_row(path, data->level, i / dim))
            rws__path_fail(path, RWS_BAD_INPUT, "The data have %g at site \"%s\", which is %s.", (double)data->value[i],
                           v->site, rws__visit_expects(v, text));
}

void rws__trace_add(rws_path *path, const rws_visit *visit)
{
    rws_engine  *e = path->e;
    trace_entry *t = RWS_PUSH(e, path->trace, path->n_trace, path->trace_capacity);
    *t = (trace_entry){.family = visit->family,
                       .var = visit->value.id,
                       .next = NONE,
                       .site = path->site,
                       .visit = path->site_visit,
                       .size = visit->size,
                       .n_values = visit->values.n_values,
                       .low = visit->values.low.id,
                       .high = visit->values.high.id,
                       .support = (uint8_t)visit->values.support};
    const uint32_t at = path->n_trace - 1;
    visited       *v = visited_at(path, path->site);
    if (v->last != NONE) path->trace[v->last].next = at;
    if (v->next == NONE && !rws__site_is_field(path)) v->next = at;
    v->last = at;
}

/* What the model goes through by itself, nobody has to score. */
static void put_latent(rws_path *path, const rws_visit *v)
{
    const uint32_t next = visited_at(path, path->site)->next;
    rws__trace_add(path, v);
    if (rws__path_draws(path)) return;
    path->sites[path->site].next = next;
    path->n_scored++;
}

static void put(rws_path *path, const rws_visit *v)
{
    const int field = path->e->sites[path->site].field;
    if (field < 0) put_latent(path, v);
    else if (path->e->fields[field].most) rws__series_put(path, field, v);
    else path->field[field] = v->value.id;
}

void rws__site_term(rws_path *path, rws_term kind, rws_var log_density)
{
    rws_engine *e = path->e;
    RWS_CHECK(e->nodes[log_density.id].dim == 1);
    term *t = RWS_PUSH(e, e->terms, e->n_terms, e->term_capacity);
    *t = (term){.node = log_density.id,
                .next = e->levels[path->level].terms,
                .site = path->site,
                .kind = kind,
                .visit = path->site_visit};
    e->levels[path->level].terms = e->n_terms - 1;
}

void rws__visit_begin(rws_path *path, rws_visit *v)
{
    const rws_pass *pass = &path->e->pass;
    const bool      sleep = pass->mode == RWS_SLEEP, guided = path->side == RWS_SIDE_GUIDE;
    if (find(path, v)) {
        v->what = RWS_VISIT_FOUND;
        if (v->values.n_values) expect_fit(path, v);
    } else if (rws__given_take(path, v)) v->what = RWS_VISIT_GIVEN;
    else if (sleep) v->what = RWS_VISIT_DREAM;
    else v->what = pass->enumerate || path->e->sites[path->site].how == RWS_SUMMED ? RWS_VISIT_SUM : RWS_VISIT_GUIDE;
    v->pathwise = is_pathwise(path, v);
    v->by_jump = v->pathwise && path->e->sites[path->site].scored;
    v->scored = sleep ? guided : !(guided && v->what == RWS_VISIT_SUM);
}

void rws__visit_end(rws_path *path, const rws_visit *v, rws_var log_density, rws_var log_drawn)
{
    const bool sleep = path->e->pass.mode == RWS_SLEEP;
    rws_term   kind = v->pathwise && !v->by_jump ? RWS_TERM_R : RWS_TERM_Q;
    if (v->what == RWS_VISIT_GUIDE && path->e->pass.pathwise) note_draw(path, v);
    if (v->what != RWS_VISIT_FOUND) path->e->nodes[v->value.id].seen = false;
    if (v->what != RWS_VISIT_FOUND) put(path, v);
    if (v->what == RWS_VISIT_GIVEN && !rws__site_is_field(path)) path->trace[path->n_trace - 1].given = true;
    if (!sleep && path->side == RWS_SIDE_MODEL) kind = RWS_TERM_P;
    else if (!sleep && v->what == RWS_VISIT_GIVEN) kind = RWS_TERM_G;
    if (log_density.id) rws__site_term(path, kind, log_density);
    if (log_drawn.id) rws__site_term(path, RWS_TERM_D, log_drawn);
}

void rws_factor(rws_path *path, const char *name, rws_var log_weight, bool in_prior)
{
    rws_var v;
    if (path->acts || rws__replayed(path, &v)) return;
    if (path->side != RWS_SIDE_MODEL) rws__path_mistake(path, "rws_factor was called outside of the model.");
    if (rws__dim_for(path, log_weight, "rws_factor") != 1)
        rws__path_mistake(path, "rws_factor takes one log-weight, not %d.", rws_dim(path, log_weight));
    rws__path_expect_unseen(path, log_weight);
    path->site = site_number(path, name);
    path->site_visit = 0;
    if (path->e->pass.mode == RWS_WAKE) rws__site_term(path, RWS_TERM_P, log_weight);
    else if (!in_prior)
        rws__path_fail(
            path, RWS_BAD_INPUT,
            "The model has the factor \"%s\", so that it cannot be sampled from; use a method without a sleep "
            "phase, such as ww.",
            name);
    rws__returns(path, (rws_var){0});
}

/* A leaf node with the kernel's log-density of the datum of each row. Rows of one datum mostly follow each other, so the
 * kernel is called once for neighbours of one datum. */
static rws_var compare(rws_path *path, const node *data, const float *made, rws_kernel *kernel, const void *context)
{
    rws_engine    *e = path->e;
    const uint32_t n = e->levels[path->level].n_rows, *map = rws__level_map(e, path->level, data->level);
    const int      dim = data->dim;
    float         *value = RWS_NEW(&e->arena, float, n);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t datum = map ? map[i] : i;
        if (i && map && map[i] == map[i - 1]) value[i] = value[i - 1];
        else value[i] = (float)kernel(data->value + datum * (size_t)dim, made, dim, context);
    }
    return path_var(path, rws__node_leaf(e, path->level, 1, value));
}

void rws_simulate(rws_path *path, const char *site, const float *made, rws_kernel *kernel, const void *context)
{
    rws_engine *e = path->e;
    rws_var     value;
    if (path->acts || rws__replayed(path, &value)) return;
    if (!site || !made || !kernel) rws__path_mistake(path, "rws_simulate was given NULL.");
    const int field = field_number(e, site);
    if (field < 0)
        rws__path_fail(path, RWS_BAD_INPUT, "The data have no field \"%s\"%s, which the model simulates.", site,
                       meant(path, site).text);
    if (e->fields[field].most)
        rws__path_fail(path, RWS_BAD_INPUT,
                       "The model simulates \"%s\", which is a series; a kernel takes a whole field.", site);
    const int dim = e->fields[field].dim;
    rws_visit v = {.site = site, .family = "simulated", .size = dim, .dim = dim};
    if (find(path, &v)) rws__site_term(path, RWS_TERM_P, compare(path, &e->nodes[v.value.id], made, kernel, context));
    else {
        v.value = rws_constants(path, made, dim);
        put(path, &v);
    }
    rws__returns(path, (rws_var){0});
}

void rws__path_output(rws_path *path, int slot, rws_var v)
{
    RWS_CHECK(slot >= 0 && slot < RWS_OUTPUTS);
    if (v.id == 0 || v.stamp != path->stamp) rws__path_mistake(path, "the program returns no value of its own path.");
    path->e->levels[path->level].outputs[slot] = v.id;
}

void rws__path_side(rws_path *path, rws_side side)
{
    path->side = side;
    if (side == RWS_SIDE_NONE || rws__path_draws(path) || path->scored) return;
    if (path->before && !path->history) rws__history_make(path);
}

uint64_t rws_iteration(const rws_path *path)
{
    return path->e->pass.iteration;
}

const rws_pass *rws__path_pass(const rws_path *path)
{
    return &path->e->pass;
}

void rws__path_note(rws_path *path, int slot, rws_var v)
{
    RWS_CHECK(slot >= 0 && slot < RWS_NOTES);
    path->note[slot] = v.id;
}

rws_var rws__path_noted(const rws_path *path, int slot)
{
    return path_var(path, path->note[slot]);
}

void rws__path_fields_scored(rws_path *path)
{
    memset(path->fields_seen, 0xff, sizeof path->fields_seen);
}

void rws__path_freeze(rws_path *path, unsigned groups)
{
    path->frozen = groups;
}
