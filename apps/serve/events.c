/* events.c - changes of the catalogue as server-sent events. */
#include "serve/core.h"

#include <stdlib.h>

#define HEARTBEAT 15.0 /* seconds between two lines of a stream of events, at most */

/* ---- what has changed */

/* Publishes the runs that this refresh changed and the ids of the runs that are gone. */
void rws__core_refresh(rws_core *c)
{
    rws_buffer text = {0};
    if (!rws__catalogue_refresh(c->catalogue)) return;
    rws__catalogue_read(c->catalogue);
    const uint64_t serial = rws__catalogue_serial(c->catalogue);
    rws__buffer_open(&text, '{');
    rws__buffer_key_number(&text, "serial", (double)serial);
    rws__buffer_open_key(&text, "runs", '[');
    for (int i = 0; i < rws__catalogue_n(c->catalogue); i++)
        if (rws__catalogue_at(c->catalogue, i)->serial == serial)
            rws__catalogue_run_write(c, rws__catalogue_at(c->catalogue, i), &text);
    rws__buffer_close(&text, ']');
    rws__buffer_open_key(&text, "gone", '[');
    for (int i = 0; rws__catalogue_gone(c->catalogue, i); i++)
        rws__buffer_text(&text, rws__catalogue_gone(c->catalogue, i));
    rws__buffer_close(&text, ']');
    rws__problems_write(c, &text);
    rws__buffer_close(&text, '}');
    rws__catalogue_done(c->catalogue);
    rws__changes_publish(c->changes, text.starved ? NULL : text.bytes);
    rws__buffer_release(&text);
}

/* ---- the stream of a watcher */

typedef struct {
    rws_core *core;
    uint64_t  after, from;
    bool      begun;
} watching;

static bool next_event(void *context, rws_buffer *out)
{
    watching *w = context;
    uint64_t  number;
    char     *text;
    if (!w->begun) {
        w->begun = true;
        rws__buffer_print(out, "retry: 1000\n\n");
        return true;
    }
    switch (rws__changes_wait(w->core->changes, w->after, HEARTBEAT, &number, &text)) {
    case RWS_CHANGES_OVER: return false;
    case RWS_CHANGES_NONE: rws__buffer_print(out, ": still here\n\n"); return true;
    case RWS_CHANGES_MISSED:
        rws__buffer_print(out, "id: %llu\nevent: reset\ndata: {}\n\n", (unsigned long long)number);
        break;
    case RWS_CHANGES_ITEM:
        rws__buffer_print(out, "id: %llu\nevent: runs\ndata: %s\n\n", (unsigned long long)number, text);
        free(text);
    }
    w->after = number;
    return true;
}

/* Notes a watcher from this address; false if there are too many, in all or from there. */
static bool add_watcher(rws_core *c, uint64_t from)
{
    int same = 0;
    pthread_mutex_lock(&c->watching);
    for (int i = 0; i < c->n_watchers; i++) same += c->watchers[i] == from;
    const bool fits = c->n_watchers < RWS_MAX_WATCHERS && same < RWS_WATCHERS_FROM_ONE;
    if (fits) c->watchers[c->n_watchers++] = from;
    pthread_mutex_unlock(&c->watching);
    return fits;
}

static void remove_watcher(rws_core *c, uint64_t from)
{
    int i = 0;
    pthread_mutex_lock(&c->watching);
    while (c->watchers[i] != from) i++;
    c->watchers[i] = c->watchers[--c->n_watchers];
    pthread_mutex_unlock(&c->watching);
}

static void end_watching(void *context)
{
    watching *w = context;
    remove_watcher(w->core, w->from);
    free(w);
}

bool rws__answer_events(rws_core *c, const rws_request *r, rws_reply *reply)
{
    const char *after = r->last_event ? r->last_event : rws__request_argument(r, "after");
    const bool  fits = add_watcher(c, r->from);
    watching   *w = fits && !c->draining ? calloc(1, sizeof *w) : NULL;
    if (!w) {
        if (fits) remove_watcher(c, r->from);
        reply->retry = true;
        return rws__reply_fail(reply, 503, "%s",
                               !fits         ? "There are too many watchers; try again later."
                               : c->draining ? "The server is about to end; try again later."
                                             : "There is no memory for this reply.");
    }
    *w = (watching){
        .core = c, .from = r->from, .after = after ? strtoull(after, NULL, 10) : rws__changes_latest(c->changes)};
    if (w->after > rws__changes_latest(c->changes))
        w->after = UINT64_MAX; /* a number of another server: the watcher starts over */
    reply->stream = (rws_stream){w, next_event, end_watching};
    return rws__reply_end(reply, "text/event-stream");
}
