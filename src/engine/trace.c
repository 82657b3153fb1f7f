/* trace.c - sites: what one side drew and the other must visit, and the log-densities that gather on the way. */
#include "engine/internal.h"

#include <stdio.h>
#include <string.h>

const char *site_text(rws_engine *e, uint16_t site, uint16_t visit, char out[static 160])
{
    if (visit) snprintf(out, 160, "\"%.100s\" (visit %d)", e->site_names[site], visit + 1);
    else snprintf(out, 160, "\"%.100s\"", e->site_names[site]);
    return out;
}

static uint16_t site_number(rws_run *r, const char *name)
{
    rws_engine *e = r->e;
    for (int i = 0; i < e->n_sites; i++)
        if (e->site_names[i] == name) return (uint16_t)i;
    for (int i = 0; i < e->n_sites; i++)
        if (strcmp(e->site_names[i], name) == 0) return (uint16_t)i;
    if (e->n_sites == MAX_SITES)
        run_fail(r, RWS_BAD_INPUT,
                 "More than %d different site names; loops and recursion may use one name many times.", MAX_SITES);
    /* groups that exist already have never visited it */
    for (uint32_t i = 0; i < e->n_runs; i++)
        e->runs[i]->first[e->n_sites] = e->runs[i]->last[e->n_sites] = e->runs[i]->next[e->n_sites] = NONE;
    e->site_names[e->n_sites] = strdup(name);
    e->n_allocations++;
    return (uint16_t)e->n_sites++;
}

static int field_number(const rws_engine *e, const char *name)
{
    for (int i = 0; i < e->n_fields; i++)
        if (strcmp(e->fields[i].name, name) == 0) return i;
    return -1;
}

static bool draws(const rws_run *r)
{
    return r->side == (r->e->pass.mode == RWS_SLEEP ? RWS_SIDE_MODEL : RWS_SIDE_GUIDE);
}

static const char *side_name(const rws_run *r)
{
    return r->side == RWS_SIDE_MODEL ? "model" : "guide";
}

bool rws_site_find(rws_run *r, const char *name, const char *family, int size, int dim, rws_var *value)
{
    rws_engine *e = r->e;
    char        text[160];
    if (r->side == RWS_SIDE_NONE || e->pass.mode == RWS_COMPUTE)
        run_fail(r, RWS_BAD_INPUT, "Site \"%s\" is visited outside of the guide and the model.", name);
    const int field = field_number(e, name);
    r->site = site_number(r, name);
    if (field >= 0) {
        r->site_visit = 0;
        if (r->side == RWS_SIDE_GUIDE)
            run_fail(r, RWS_BAD_INPUT, "The guide visits site \"%s\", which is data; it reads them with rws_observed.",
                     name);
        if (dim != e->fields[field].dim)
            run_fail(r, RWS_BAD_INPUT, "Site \"%s\" has %d numbers in the model, but the data have %d.", name, dim,
                     e->fields[field].dim);
        r->fields_seen |= 1u << field;
        value->id = r->field[field];
        return value->id != 0;
    }
    if (draws(r)) {
        r->site_visit = r->last[r->site] == NONE ? 0 : (uint16_t)(r->trace[r->last[r->site]].visit + 1);
        return false;
    }
    const uint32_t at = r->next[r->site];
    if (at == NONE) {
        r->site_visit = r->last[r->site] == NONE ? 0 : (uint16_t)(r->trace[r->last[r->site]].visit + 1);
        run_fail(r, RWS_BAD_INPUT, "The %s visits site %s, but the %s does not.", side_name(r),
                 site_text(e, r->site, r->site_visit, text), r->side == RWS_SIDE_MODEL ? "guide" : "model");
    }
    const trace_entry *t = &r->trace[at];
    r->site_visit = t->visit;
    if (strcmp(t->family, family) != 0)
        run_fail(r, RWS_BAD_INPUT, "Site %s is %s in the %s and %s on the other side.",
                 site_text(e, t->site, t->visit, text), family, side_name(r), t->family);
    if (t->size != size)
        run_fail(r, RWS_BAD_INPUT, "Site %s has size %d in the %s and %d on the other side.",
                 site_text(e, t->site, t->visit, text), size, side_name(r), t->size);
    value->id = t->known ? t->known : t->var;
    r->next[r->site] = t->next;
    r->n_scored++;
    return true;
}

void rws_site_expect_choice(rws_run *r, const char *site, rws_var value, int n)
{
    rws_engine *e = r->e;
    const int   field = field_number(e, site);
    if (field < 0 || e->pass.mode == RWS_SLEEP) return;
    const node *data = &e->nodes[value.id];
    for (uint32_t i = 0; i < e->levels[data->level].n_rows; i++)
        if (!(data->value[i] >= 0 && data->value[i] < (float)n && data->value[i] == (float)(int)data->value[i]))
            run_fail(r, RWS_BAD_INPUT, "The data have %g at site \"%s\", which is a choice of 0 to %d.",
                     (double)data->value[i], site, n - 1);
}

void rws_site_put(rws_run *r, const char *name, const char *family, int size, rws_var value)
{
    rws_engine *e = r->e;
    const int   field = field_number(e, name);
    if (field >= 0) {
        r->field[field] = value.id;
        return;
    }
    trace_entry *t = RWS_PUSH(e, r->trace, r->n_trace, r->trace_capacity);
    *t = (trace_entry){
        .family = family, .var = value.id, .next = NONE, .site = r->site, .visit = r->site_visit, .size = size};
    const uint32_t at = r->n_trace - 1;
    if (r->last[r->site] == NONE) r->first[r->site] = at;
    else r->trace[r->last[r->site]].next = at;
    if (r->next[r->site] == NONE) r->next[r->site] = at;
    r->last[r->site] = at;
}

/* In sleep only the guide's densities have a use. */
bool rws_site_scored(const rws_run *r)
{
    return r->e->pass.mode == RWS_WAKE || r->side == RWS_SIDE_GUIDE;
}

void rws_site_term(rws_run *r, rws_term kind, rws_var log_density)
{
    rws_engine *e = r->e;
    RWS_CHECK(e->nodes[log_density.id].dim == 1);
    term *t = RWS_PUSH(e, e->terms, e->n_terms, e->term_capacity);
    *t = (term){log_density.id, e->levels[r->level].terms, r->site, r->site_visit, (uint8_t)kind};
    e->levels[r->level].terms = e->n_terms - 1;
}

/* A leaf that holds what the kernel says of each row's datum. Rows of one datum stand together, mostly. */
static rws_var compare(rws_run *r, const node *data, const float *made, rws_kernel *kernel, const void *context)
{
    rws_engine    *e = r->e;
    const uint32_t n = e->levels[r->level].n_rows, *map = level_map(e, r->level, data->level);
    const int      dim = data->dim;
    float         *value = RWS_NEW(&e->arena, float, n);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t datum = map ? map[i] : i;
        if (i && map && map[i] == map[i - 1]) value[i] = value[i - 1];
        else value[i] = (float)kernel(data->value + datum * (size_t)dim, made, dim, context);
    }
    return (rws_var){node_leaf(e, r->level, 1, value)};
}

void rws_simulate(rws_run *r, const char *site, const float *made, rws_kernel *kernel, const void *context)
{
    rws_engine *e = r->e;
    rws_var     value;
    if (rws_replayed(r, &value)) return;
    const int field = field_number(e, site);
    if (field < 0) run_fail(r, RWS_BAD_INPUT, "The data have no field \"%s\", which the model simulates.", site);
    const int dim = e->fields[field].dim;
    if (rws_site_find(r, site, "simulated", dim, dim, &value))
        rws_site_term(r, RWS_TERM_P, compare(r, &e->nodes[value.id], made, kernel, context));
    else rws_site_put(r, site, "simulated", dim, rws_constants(r, made, dim));
    rws_returns(r, (rws_var){0});
}

void rws_run_output(rws_run *r, int slot, rws_var v)
{
    RWS_CHECK(slot >= 0 && slot < RWS_OUTPUTS);
    r->e->levels[r->level].outputs[slot] = v.id;
}

void rws_run_side(rws_run *r, rws_side side)
{
    r->side = side;
}

uint64_t rws_iteration(const rws_run *r)
{
    return r->e->pass.iteration;
}

const rws_pass *rws_run_pass(const rws_run *r)
{
    return &r->e->pass;
}

void rws_run_note(rws_run *r, int slot, rws_var v)
{
    RWS_CHECK(slot >= 0 && slot < N_NOTES);
    r->note[slot] = v.id;
}

rws_var rws_run_noted(const rws_run *r, int slot)
{
    return (rws_var){r->note[slot]};
}

void rws_run_fields_scored(rws_run *r)
{
    r->fields_seen = ~0u;
}

void rws_run_freeze(rws_run *r, unsigned groups)
{
    r->frozen = groups;
}
