/* events.c - changes of the catalogue as server-sent events. */
#include "serve/core.h"

#include <stdlib.h>

#define HEARTBEAT 15.0 /* seconds between two lines of a stream of events, at most */

/* ---- what has changed */

/* Publishes the runs that this refresh changed and the ids of the runs that are gone. */
void rws_core_refresh(rws_core *c)
{
    rws_buffer text = {0};
    if (!rws_catalogue_refresh(c->catalogue)) return;
    rws_catalogue_read(c->catalogue);
    const uint64_t serial = rws_catalogue_serial(c->catalogue);
    rws_buffer_open(&text, '{');
    rws_buffer_key_number(&text, "serial", (double)serial);
    rws_buffer_open_key(&text, "runs", '[');
    for (int i = 0; i < rws_catalogue_n(c->catalogue); i++)
        if (rws_catalogue_at(c->catalogue, i)->serial == serial)
            rws_listed_write(c, rws_catalogue_at(c->catalogue, i), &text);
    rws_buffer_close(&text, ']');
    rws_buffer_open_key(&text, "gone", '[');
    for (int i = 0; rws_catalogue_gone(c->catalogue, i); i++)
        rws_buffer_text(&text, rws_catalogue_gone(c->catalogue, i));
    rws_buffer_close(&text, ']');
    rws_problems_write(c, &text);
    rws_buffer_close(&text, '}');
    rws_catalogue_done(c->catalogue);
    rws_changes_publish(c->changes, text.starved ? NULL : text.bytes);
    rws_buffer_release(&text);
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
        rws_buffer_print(out, "retry: 1000\n\n");
        return true;
    }
    switch (rws_changes_wait(w->core->changes, w->after, HEARTBEAT, &number, &text)) {
    case RWS_CHANGES_OVER: return false;
    case RWS_CHANGES_NONE: rws_buffer_print(out, ": still here\n\n"); return true;
    case RWS_CHANGES_MISSED:
        rws_buffer_print(out, "id: %llu\nevent: reset\ndata: {}\n\n", (unsigned long long)number);
        break;
    case RWS_CHANGES_ITEM:
        rws_buffer_print(out, "id: %llu\nevent: runs\ndata: %s\n\n", (unsigned long long)number, text);
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

bool rws_answer_events(rws_core *c, const rws_request *r, rws_reply *reply)
{
    const char *after = r->last_event ? r->last_event : rws_request_argument(r, "after");
    const bool  fits = add_watcher(c, r->from);
    watching   *w = fits && !c->draining ? calloc(1, sizeof *w) : NULL;
    if (!w) {
        if (fits) remove_watcher(c, r->from);
        reply->retry = true;
        return rws_reply_fail(reply, 503, "%s",
                              !fits         ? "There are too many watchers; try again later."
                              : c->draining ? "The server is about to end; try again later."
                                            : "There is no memory for this reply.");
    }
    *w = (watching){
        .core = c, .from = r->from, .after = after ? strtoull(after, NULL, 10) : rws_changes_latest(c->changes)};
    if (w->after > rws_changes_latest(c->changes))
        w->after = UINT64_MAX; /* a number of another server: the watcher starts over */
    reply->stream = (rws_stream){w, next_event, end_watching};
    return rws_reply_end(reply, "text/event-stream");
}
