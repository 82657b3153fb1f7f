/* core.c - the server without its sockets: its life, the files of the page, and which route answers a request. */
#include "serve/core.h"

#include "base/error.h"
#include "base/hash.h"
#include "serve/page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- life */

/* The milliseconds of the calendar. */
static uint64_t milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return 1000 * (uint64_t)now.tv_sec + (uint64_t)now.tv_nsec / 1000000;
}

rws_status rws__core_new(const rws_serve_options *options, int port, rws_core **out, rws_error *err)
{
    rws_core *c = calloc(1, sizeof *c);
    *out = NULL;
    if (!c) return rws_no_memory(err, "a server");
    c->options = *options;
    c->gate = (rws_gate){options->token, port, options->names, options->n_names, options->anywhere};
    c->limits = (rws_body_limits){.particles = options->max_particles,
                                  .data = RWS_MAX_DATA,
                                  .work = 10.0 * options->max_particles,
                                  .samples = RWS_MAX_SAMPLES};
    sem_init(&c->work, 0, (unsigned)options->threads);
    pthread_mutex_init(&c->drawing, NULL);
    pthread_mutex_init(&c->watching, NULL);
    if (options->max_memory) rws__buffer_limit(options->max_memory);
    c->changes = rws__changes_new(milliseconds()); /* there is less than one item per second */
    c->posteriors = rws__posteriors_new();
    rws_status status = c->changes && c->posteriors ? RWS_OK : rws_no_memory(err, "a server");
    if (status == RWS_OK) status = rws__catalogue_new(options->folders, options->n_folders, &c->catalogue, err);
    if (status != RWS_OK) {
        rws__core_free(c);
        return status;
    }
    *out = c;
    return RWS_OK;
}

void rws__core_free(rws_core *c)
{
    if (!c) return;
    rws__catalogue_free(c->catalogue);
    rws__posteriors_free(c->posteriors);
    rws__changes_free(c->changes);
    pthread_mutex_destroy(&c->drawing);
    pthread_mutex_destroy(&c->watching);
    sem_destroy(&c->work);
    free(c);
}

/* ---- the page */

/* The file of that name; NULL if there is none. */
static const rws_page_file *find_file(const char *name)
{
    for (const rws_page_file *f = rws_page_files; f->name; f++)
        if (strcmp(f->name, name) == 0) return f;
    return NULL;
}

/* "/", or "/NAME" of a file of the page. */
static bool answer_page(const rws_request *r, rws_reply *reply)
{
    const rws_page_file *f = r->n_segments <= 1 ? find_file(r->n_segments ? r->segment[0] : "index.html") : NULL;
    if (!f) return rws__reply_fail(reply, 404, "There is no such page.");
    const size_t   n = (size_t)(f->end - f->bytes);
    const uint64_t hash = rws__hash(RWS_HASH_BEGIN, f->bytes, n);
    snprintf(reply->etag, sizeof reply->etag, "\"%016llx\"", (unsigned long long)hash);
    reply->type = f->type;
    if (r->match && strcmp(r->match, reply->etag) == 0) reply->status = 304;
    else reply->fixed = f->bytes, reply->n_fixed = n;
    return true;
}

/* ---- routes */

/* Whether the segments of the request are those of the path, where {…} stands for any. */
static bool fits(const rws_request *r, const char *path)
{
    int i = 0;
    for (const char *at = path; *at; i++) {
        const size_t n = strcspn(at + 1, "/");
        if (i == r->n_segments) return false;
        if (at[1] != '{' && (strlen(r->segment[i]) != n || strncmp(r->segment[i], at + 1, n) != 0)) return false;
        at += 1 + n;
    }
    return i == r->n_segments;
}

static const rws_route *find_route(const rws_request *r, rws_reply *reply)
{
    const char *other = NULL;
    for (const rws_route *route = rws_routes; route->method; route++) {
        if (!fits(r, route->path)) continue;
        const bool head = strcmp(r->method, "HEAD") == 0 && strcmp(route->method, "GET") == 0;
        if (head || strcmp(r->method, route->method) == 0) return route;
        other = route->method;
    }
    if (!other) rws__reply_fail(reply, 404, "There is no such address; /api lists them.");
    else {
        rws__reply_fail(reply, 405, "This address takes %s.", other);
        reply->allow = other;
    }
    return NULL;
}

/* "/?token=…" turns the token into a cookie, so that it does not stay in the address. */
static bool enter(const rws_core *c, const rws_request *r, rws_reply *reply)
{
    const char *token = rws__request_argument(r, "token");
    if (!c->gate.token || r->n_segments || !token || !rws__token_equal(c->gate.token, token)) return false;
    snprintf(reply->cookie, sizeof reply->cookie, "rws-token=%s; Path=/; HttpOnly; SameSite=Strict", c->gate.token);
    snprintf(reply->location, sizeof reply->location, "/");
    reply->status = 303;
    reply->type = "text/plain; charset=utf-8";
    return true;
}

void rws__core_answer(rws_core *c, const rws_request *r, rws_reply *reply)
{
    const bool get = strcmp(r->method, "GET") == 0 || strcmp(r->method, "HEAD") == 0;
    reply->status = 200;
    if (get && rws__gate_host(&c->gate, r->host) && enter(c, r, reply)) return;
    if (!rws__gate_pass(&c->gate, r, reply)) return;
    if (r->n_segments && strcmp(r->segment[0], "api") == 0) {
        const rws_route *route = find_route(r, reply);
        if (route) route->answer(c, r, reply);
    } else if (get) answer_page(r, reply);
    else {
        rws__reply_fail(reply, 405, "This address takes GET.");
        reply->allow = "GET";
    }
}
