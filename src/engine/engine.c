/* engine.c - the engine's life. */
#include "engine/internal.h"

#include "tensor/gemm.h"

#include <stdlib.h>
#include <string.h>

rws_engine *rws_engine_new(const rws_params *params, const rws_field *fields, int n_fields)
{
    RWS_CHECK(n_fields <= RWS_FIELDS);
    rws_engine *e = calloc(1, sizeof *e);
    RWS_CHECK(e && "memory for the engine");
    e->params = params;
    e->n_fields = n_fields;
    memcpy(e->fields, fields, (size_t)n_fields * sizeof *fields);
    return e;
}

void rws_engine_free(rws_engine *e)
{
    if (!e) return;
    for (uint32_t i = 0; i < e->n_made; i++) {
        rws_fiber_free(e->paths[i]->fiber);
        free(e->paths[i]->log);
        free(e->paths[i]->trace);
        free(e->paths[i]->reports);
        free(e->paths[i]);
    }
    for (int i = 0; i < e->n_sites; i++) free((char *)e->site_names[i]);
    void *arrays[] = {e->levels, e->terms, e->nodes,   e->calls,  e->order,  e->pending, e->shared,
                      e->paths,  e->ready, e->waiting, e->leaves, e->enders, e->words,   e->products.list};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) free(arrays[i]);
    rws_arena_free(&e->arena);
    free(e);
}

rws_engine_stats rws_engine_take_stats(rws_engine *e)
{
    rws_engine_stats s = e->stats;
    e->stats = (rws_engine_stats){0};
    return s;
}

uint64_t rws_engine_allocations(const rws_engine *e)
{
    return e->n_allocations + e->arena.n_blocks;
}
