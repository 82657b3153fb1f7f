/* host.c - paths whose programs another language executes: rws_host in rws_train.h.
 *
 * Without a host, a path is resumed by rws__fiber_resume and a path that fails is forgotten where it stands. With a host,
 * the host resumes it, under a lock; and a path that goes no further is led out of the library's frames by
 * rws_host.escape, so that the frames of the interpreter on its stack are left in order. */
#include "engine/internal.h"

void rws__engine_host(rws_engine *e, const rws_host *host)
{
    e->host = host;
}

void rws__host_enter(rws_engine *e)
{
    if (!e->host || e->inside) return;
    e->host->enter();
    e->inside = true;
}

void rws__host_leave(rws_engine *e)
{
    if (!e->host || !e->inside) return;
    e->inside = false;
    e->host->leave();
}

void rws__host_resume(rws_path *path)
{
    if (path->e->host) path->e->host->resume(path, rws__fiber_armed(path->fiber));
    else rws__fiber_resume(path->fiber);
}

void rws__host_escape(rws_path *path)
{
    const rws_host *host = path->e->host;
    if (host && host->escape && !path->overflowed) host->escape(path);
}

void rws__host_wait(rws_path *path)
{
    rws__fiber_yield(path->fiber);
    if (!path->abandoned) return;
    rws__host_escape(path);
    for (;;) rws__fiber_yield(path->fiber);
}

static void abandon(rws_engine *e)
{
    for (uint32_t i = 0; i < e->n_paths; i++) {
        rws_path *path = e->paths[i];
        if (rws__fiber_done(path->fiber) || rws__fiber_armed(path->fiber) || path->overflowed || path->ended) continue;
        path->abandoned = true;
        e->running = path;
        e->host->resume(path, false);
        e->running = NULL;
    }
}

/* A path may stand in a loop that nobody has left, because all particles ended there. */
static bool stands(const rws_engine *e)
{
    for (uint32_t i = 0; i < e->n_paths && e->shares; i++)
        if (e->paths[i]->stands) return true;
    return false;
}

void rws__host_abandon(rws_engine *e)
{
    const rws_status status = e->status;
    if (e->host->escape && (status != RWS_OK || stands(e))) {
        rws__host_enter(e);
        e->status = status == RWS_OK ? RWS_STOPPED : status; /* programs go no further */
        abandon(e);
        e->status = status;
    }
    rws__host_leave(e);
}

void rws__host_forget(rws_engine *e)
{
    bool any = false;
    for (uint32_t i = 0; i < e->n_made && e->host; i++) any |= e->paths[i]->slot != NULL;
    if (!any) return;
    rws__host_enter(e);
    for (uint32_t i = 0; i < e->n_made; i++)
        if (e->paths[i]->slot) e->host->forget(e->paths[i]->slot);
    rws__host_leave(e);
}

/* ---- what a host calls */

void **rws_path_slot(rws_path *path)
{
    return path ? &path->slot : NULL;
}

void rws_path_run(rws_path *path)
{
    if (path) rws__fiber_resume(path->fiber);
}

void *rws_path_stack(const rws_path *path, size_t *bytes)
{
    return path ? rws__fiber_stack(path->fiber, bytes) : NULL;
}

void rws_path_pause(rws_path *path)
{
    if (path) rws__fiber_yield(path->fiber);
}

void rws_path_refuse(rws_path *path, rws_status status, const char *message)
{
    rws_engine *e = path ? path->e : NULL;
    if (e && e->status == RWS_OK)
        e->status = rws_fail(&e->error, status, "%s", message ? message : "The program was refused.");
}

rws_status rws_path_failure(const rws_path *path, const char **message)
{
    if (message) *message = path ? path->e->error.text : "";
    return path ? path->e->status : RWS_BAD_INPUT;
}

bool rws_path_ended(const rws_path *path)
{
    return !path || rws__fiber_done(path->fiber);
}
