/* automatic.c - what the engine knows of a guide that is made of the model's own program (lib/guide). */
#include "engine/internal.h"

#include <string.h>

void rws__engine_automatic(rws_engine *e, const rws_automatic *a)
{
    e->automatic = a;
}

void rws__guide(rws_path *path)
{
    const rws_engine *e = path->e;
    if (e->automatic) e->automatic->run(path, e->automatic);
    else e->pass.model->guide(path, e->pass.state);
}

void rws__path_acts(rws_path *path, bool acts)
{
    path->acts = acts;
}

const rws_automatic *rws__path_actor(const rws_path *path)
{
    return path->acts ? path->e->automatic : NULL;
}

void *rws__path_memory(rws_path *path)
{
    if (!path->memory) path->memory = rws__arena_zero(&path->e->arena, path->e->automatic->bytes);
    return path->memory;
}

rws_var rws__path_value(const rws_path *path, uint32_t id)
{
    return path_var(path, id);
}

bool rws__path_guided(rws_path *path, const char *site, uint32_t visit, rws_var *value)
{
    const rws_engine *e = path->e;
    const bool        sleep = e->pass.mode == RWS_SLEEP;
    for (uint32_t i = 0; i < path->n_trace; i++) {
        const trace_entry *t = &path->trace[i];
        if (t->visit != visit || strcmp(e->sites[t->site].name, site) != 0) continue;
        const uint32_t next = path->sites[t->site].next; /* the first visit that is not scored yet */
        *value = path_var(path, t->known ? t->known : t->var);
        return !sleep || next == NONE || path->trace[next].visit > visit;
    }
    return false;
}
