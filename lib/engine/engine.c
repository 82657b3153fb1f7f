/* engine.c - makes and frees engines. */
#include "engine/internal.h"

#include "tensor/gemm.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_STACK ((size_t)64 << 10)

/* Engines begin at different stamps, so that a value of one is not taken for a value of another. */
static uint32_t first_stamp(void)
{
    static atomic_uint n_engines;
    return 0x9e3779b9u * atomic_fetch_add(&n_engines, 1);
}

rws_engine *rws__engine_new(const rws_params *params, const rws_field *fields, int n_fields, const rws_limits *limits)
{
    RWS_CHECK(n_fields <= RWS_FIELDS);
    rws_engine *e = calloc(1, sizeof *e);
    if (!e) return NULL;
    e->arena.no_memory = rws__engine_no_memory;
    e->arena.context = e;
    e->params = params;
    e->n_fields = n_fields;
    e->fields = malloc((size_t)n_fields * sizeof *fields + 1);
    e->field_sites = malloc((size_t)n_fields * sizeof *e->field_sites + 1);
    if (!e->fields || !e->field_sites) {
        free(e->fields);
        free(e->field_sites);
        free(e);
        return NULL;
    }
    for (int i = 0; i < n_fields; i++) e->field_sites[i] = NONE;
    if (n_fields) memcpy(e->fields, fields, (size_t)n_fields * sizeof *fields);
    e->limits = limits ? *limits : (rws_limits){0};
    rws_limits *l = &e->limits;
    if (!l->stack_bytes) l->stack_bytes = RWS_STACK_BYTES;
    if (l->stack_bytes < LEAST_STACK) l->stack_bytes = LEAST_STACK;
    if (!l->max_operations) l->max_operations = RWS_MAX_OPERATIONS;
    if (!l->max_paths) l->max_paths = RWS_MAX_PATHS;
    if (!l->max_nodes) l->max_nodes = RWS_MAX_NODES;
    e->requested_low = NONE;
    e->stamp = first_stamp();
    return e;
}

void rws__engine_free(rws_engine *e)
{
    if (!e) return;
    rws__host_forget(e);
    for (uint32_t i = 0; i < e->n_made; i++) {
        rws__fiber_free(e->paths[i]->fiber);
        free(e->paths[i]->log);
        free(e->paths[i]->trace);
        free(e->paths[i]->sites);
        free(e->paths[i]->reports);
        free(e->paths[i]);
    }
    for (uint32_t i = 0; i < e->n_sites; i++) free((char *)e->sites[i].name);
    void *arrays[] = {e->levels, e->terms,   e->nodes,      e->calls,       e->order, e->pending,  e->shared,
                      e->paths,  e->ready,   e->waiting,    e->ends,        e->words, e->fields,   e->sites,
                      e->asked,  e->asks,    e->site_table, e->field_sites, e->items, e->mixtures, e->dependences,
                      e->spare,  e->arrived, e->segments,   e->kept,        e->joins};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) free(arrays[i]);
    rws__arena_free(&e->arena);
    free(e);
}

rws_engine_stats rws__engine_take_stats(rws_engine *e)
{
    if (e->n_row_requests) RWS_ENTER(e, rws__demand_count(e));
    rws_engine_stats s = e->stats;
    e->stats = (rws_engine_stats){0};
    return s;
}

uint64_t rws__engine_allocations(const rws_engine *e)
{
    return e->n_allocations + e->arena.n_blocks;
}
