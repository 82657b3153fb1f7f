/* trace.c - sites: what one side drew and the other must visit, and the log-densities that gather on the way. */
#include "engine/internal.h"

#include <stdio.h>
#include <string.h>

const char *rws_site_text(rws_engine *e, uint16_t site, uint16_t visit, char out[static 160])
{
    if (visit) snprintf(out, 160, "\"%.100s\" (visit %d)", e->site_names[site], visit + 1);
    else snprintf(out, 160, "\"%.100s\"", e->site_names[site]);
    return out;
}

static uint16_t site_number(rws_path *path, const char *name)
{
    rws_engine *e = path->e;
    for (int i = 0; i < e->n_sites; i++)
        if (e->site_names[i] == name) return (uint16_t)i;
    for (int i = 0; i < e->n_sites; i++)
        if (strcmp(e->site_names[i], name) == 0) return (uint16_t)i;
    if (e->n_sites == MAX_SITES)
        rws_path_fail(path, RWS_BAD_INPUT,
                      "More than %d different site names; loops and recursion may use one name many times.", MAX_SITES);
    /* groups that exist already have never visited it */
    for (uint32_t i = 0; i < e->n_paths; i++)
        e->paths[i]->first[e->n_sites] = e->paths[i]->last[e->n_sites] = e->paths[i]->next[e->n_sites] = NONE;
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

bool rws_site_is_field(const rws_path *path)
{
    return field_number(path->e, path->e->site_names[path->site]) >= 0;
}

static bool draws(const rws_path *path)
{
    return path->side == (path->e->pass.mode == RWS_SLEEP ? RWS_SIDE_MODEL : RWS_SIDE_GUIDE);
}

static const char *side_name(const rws_path *path)
{
    return path->side == RWS_SIDE_MODEL ? "model" : "guide";
}

bool rws_site_find(rws_path *path, const char *name, const char *family, int size, int dim, rws_var *value)
{
    rws_engine *e = path->e;
    char        text[160];
    if (path->side == RWS_SIDE_NONE || e->pass.mode == RWS_COMPUTE)
        rws_path_fail(path, RWS_BAD_INPUT, "Site \"%s\" is visited outside of the guide and the model.", name);
    const int field = field_number(e, name);
    path->site = site_number(path, name);
    if (field >= 0) {
        path->site_visit = 0;
        if (path->side == RWS_SIDE_GUIDE)
            rws_path_fail(path, RWS_BAD_INPUT,
                          "The guide visits site \"%s\", which is data; it reads them with rws_observed.", name);
        if (dim != e->fields[field].dim)
            rws_path_fail(path, RWS_BAD_INPUT, "Site \"%s\" has %d numbers in the model, but the data have %d.", name,
                          dim, e->fields[field].dim);
        path->fields_seen |= 1u << field;
        value->id = path->field[field];
        return value->id != 0;
    }
    if (draws(path)) {
        path->site_visit =
            path->last[path->site] == NONE ? 0 : (uint16_t)(path->trace[path->last[path->site]].visit + 1);
        return false;
    }
    const uint32_t at = path->next[path->site];
    if (at == NONE) {
        path->site_visit =
            path->last[path->site] == NONE ? 0 : (uint16_t)(path->trace[path->last[path->site]].visit + 1);
        rws_path_fail(path, RWS_BAD_INPUT, "The %s visits site %s, but the %s does not.", side_name(path),
                      rws_site_text(e, path->site, path->site_visit, text),
                      path->side == RWS_SIDE_MODEL ? "guide" : "model");
    }
    const trace_entry *t = &path->trace[at];
    path->site_visit = t->visit;
    if (strcmp(t->family, family) != 0)
        rws_path_fail(path, RWS_BAD_INPUT, "Site %s is %s in the %s and %s on the other side.",
                      rws_site_text(e, t->site, t->visit, text), family, side_name(path), t->family);
    if (t->size != size)
        rws_path_fail(path, RWS_BAD_INPUT, "Site %s has size %d in the %s and %d on the other side.",
                      rws_site_text(e, t->site, t->visit, text), size, side_name(path), t->size);
    value->id = t->known ? t->known : t->var;
    path->next[path->site] = t->next;
    path->n_scored++;
    return true;
}

void rws_site_expect_choice(rws_path *path, const char *site, rws_var value, int n)
{
    rws_engine *e = path->e;
    const int   field = field_number(e, site);
    if (field < 0 || e->pass.mode == RWS_SLEEP) return;
    const node *data = &e->nodes[value.id];
    for (uint32_t i = 0; i < e->levels[data->level].n_rows; i++)
        if (!(data->value[i] >= 0 && data->value[i] < (float)n && data->value[i] == (float)(int)data->value[i]))
            rws_path_fail(path, RWS_BAD_INPUT, "The data have %g at site \"%s\", which is a choice of 0 to %d.",
                          (double)data->value[i], site, n - 1);
}

void rws_site_put(rws_path *path, const char *name, const char *family, int size, rws_var value)
{
    rws_engine *e = path->e;
    const int   field = field_number(e, name);
    if (field >= 0) {
        path->field[field] = value.id;
        return;
    }
    trace_entry *t = RWS_PUSH(e, path->trace, path->n_trace, path->trace_capacity);
    *t = (trace_entry){
        .family = family, .var = value.id, .next = NONE, .site = path->site, .visit = path->site_visit, .size = size};
    const uint32_t at = path->n_trace - 1;
    if (path->last[path->site] == NONE) path->first[path->site] = at;
    else path->trace[path->last[path->site]].next = at;
    if (path->next[path->site] == NONE) path->next[path->site] = at;
    path->last[path->site] = at;
}

/* In sleep only the guide's densities have a use. */
bool rws_site_scored(const rws_path *path)
{
    return path->e->pass.mode == RWS_WAKE || path->side == RWS_SIDE_GUIDE;
}

void rws_site_term(rws_path *path, rws_term kind, rws_var log_density)
{
    rws_engine *e = path->e;
    RWS_CHECK(e->nodes[log_density.id].dim == 1);
    term *t = RWS_PUSH(e, e->terms, e->n_terms, e->term_capacity);
    *t = (term){log_density.id, e->levels[path->level].terms, path->site, path->site_visit, (uint8_t)kind};
    e->levels[path->level].terms = e->n_terms - 1;
}

/* A leaf that holds what the kernel says of each row's datum. Rows of one datum stand together, mostly. */
static rws_var compare(rws_path *path, const node *data, const float *made, rws_kernel *kernel, const void *context)
{
    rws_engine    *e = path->e;
    const uint32_t n = e->levels[path->level].n_rows, *map = rws_level_map(e, path->level, data->level);
    const int      dim = data->dim;
    float         *value = RWS_NEW(&e->arena, float, n);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t datum = map ? map[i] : i;
        if (i && map && map[i] == map[i - 1]) value[i] = value[i - 1];
        else value[i] = (float)kernel(data->value + datum * (size_t)dim, made, dim, context);
    }
    return (rws_var){rws_node_leaf(e, path->level, 1, value)};
}

void rws_simulate(rws_path *path, const char *site, const float *made, rws_kernel *kernel, const void *context)
{
    rws_engine *e = path->e;
    rws_var     value;
    if (rws_replayed(path, &value)) return;
    const int field = field_number(e, site);
    if (field < 0)
        rws_path_fail(path, RWS_BAD_INPUT, "The data have no field \"%s\", which the model simulates.", site);
    const int dim = e->fields[field].dim;
    if (rws_site_find(path, site, "simulated", dim, dim, &value))
        rws_site_term(path, RWS_TERM_P, compare(path, &e->nodes[value.id], made, kernel, context));
    else rws_site_put(path, site, "simulated", dim, rws_constants(path, made, dim));
    rws_returns(path, (rws_var){0});
}

void rws_path_output(rws_path *path, int slot, rws_var v)
{
    RWS_CHECK(slot >= 0 && slot < RWS_OUTPUTS);
    path->e->levels[path->level].outputs[slot] = v.id;
}

void rws_path_side(rws_path *path, rws_side side)
{
    path->side = side;
}

uint64_t rws_iteration(const rws_path *path)
{
    return path->e->pass.iteration;
}

const rws_pass *rws_path_pass(const rws_path *path)
{
    return &path->e->pass;
}

void rws_path_note(rws_path *path, int slot, rws_var v)
{
    RWS_CHECK(slot >= 0 && slot < N_NOTES);
    path->note[slot] = v.id;
}

rws_var rws_path_noted(const rws_path *path, int slot)
{
    return (rws_var){path->note[slot]};
}

void rws_path_fields_scored(rws_path *path)
{
    path->fields_seen = ~0u;
}

void rws_path_freeze(rws_path *path, unsigned groups)
{
    path->frozen = groups;
}
