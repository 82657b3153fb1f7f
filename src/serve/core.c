#include "serve/core.h"

#include "base/error.h"
#include "figure/style.h"
#include "serve/page.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEARTBEAT 15.0 /* seconds between two lines of a stream of events, at most */

/* ---- replies that are kept: several watchers ask for the same thing when something has changed */

enum { KEPT = 64, MOST_KEY = 2048, MOST_KEPT = 8 << 20, STRIPES = 16 };

typedef struct {
    char    *key; /* path and query */
    uint64_t serial;
    char    *bytes;
    size_t   n;
} kept;

struct rws_reply_cache {
    pthread_mutex_t lock;
    kept            list[KEPT];
    int             next;            /* the place that is overwritten next */
    pthread_mutex_t making[STRIPES]; /* by the hash of the key: a reply that many want is made once */
};

static void cache_free(rws_reply_cache *c)
{
    if (!c) return;
    for (int i = 0; i < KEPT; i++) free(c->list[i].key), free(c->list[i].bytes);
    pthread_mutex_destroy(&c->lock);
    for (int i = 0; i < STRIPES; i++) pthread_mutex_destroy(&c->making[i]);
    free(c);
}

static rws_reply_cache *cache_new(void)
{
    rws_reply_cache *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    pthread_mutex_init(&c->lock, NULL);
    for (int i = 0; i < STRIPES; i++) pthread_mutex_init(&c->making[i], NULL);
    return c;
}

static pthread_mutex_t *stripe_of(rws_reply_cache *c, const char *key)
{
    unsigned hash = 5381;
    for (; *key; key++) hash = 33 * hash + (unsigned char)*key;
    return &c->making[hash % STRIPES];
}

static bool make_key(const rws_request *r, rws_buffer *key)
{
    for (int i = 0; i < r->n_segments; i++) rws_buffer_print(key, "/%s", r->segment[i]);
    for (int i = 0; i < r->n_arguments; i++)
        rws_buffer_print(key, "%c%s=%s", i ? '\2' : '\1', r->arguments[i].name, r->arguments[i].value);
    return !key->starved && key->n < MOST_KEY;
}

static bool cache_find(rws_reply_cache *c, const char *key, uint64_t serial, rws_reply *reply)
{
    bool found = false;
    pthread_mutex_lock(&c->lock);
    for (int i = 0; i < KEPT && !found; i++) {
        const kept *k = &c->list[i];
        if (!k->key || k->serial != serial || strcmp(k->key, key) != 0) continue;
        rws_buffer_add(&reply->body, k->bytes, k->n);
        found = !reply->body.starved;
    }
    pthread_mutex_unlock(&c->lock);
    return found;
}

static void cache_put(rws_reply_cache *c, const char *key, uint64_t serial, const rws_buffer *body)
{
    if (body->n > MOST_KEPT) return;
    kept new = {strdup(key), serial, malloc(body->n + 1), body->n};
    if (new.key &&new.bytes) memcpy(new.bytes, body->bytes, body->n);
    pthread_mutex_lock(&c->lock);
    int at = c->next;
    for (int i = 0; i < KEPT; i++)
        if (c->list[i].key && strcmp(c->list[i].key, key) == 0) at = i;
    if (at == c->next) c->next = (c->next + 1) % KEPT;
    const kept old = c->list[at];
    c->list[at] = new.key &&new.bytes ? new : (kept){0};
    if (!c->list[at].key) free(new.key), free(new.bytes);
    pthread_mutex_unlock(&c->lock);
    free(old.key);
    free(old.bytes);
}

/* ---- life */

rws_status rws_core_new(const rws_serve_options *options, int port, rws_core **out, rws_error *err)
{
    rws_core *c = calloc(1, sizeof *c);
    *out = NULL;
    if (!c) return rws_no_memory(err, "a server");
    c->options = *options;
    c->gate = (rws_gate){options->token, port, options->names, options->n_names, options->anywhere};
    c->limits = (rws_posed_limits){.particles = options->max_particles,
                                   .data = RWS_MAX_DATA,
                                   .work = 10.0 * options->max_particles,
                                   .samples = RWS_MAX_SAMPLES};
    sem_init(&c->work, 0, (unsigned)options->threads);
    pthread_mutex_init(&c->drawing, NULL);
    c->news = rws_news_new();
    c->warm = rws_warm_set_new();
    c->cache = cache_new();
    rws_status status = c->news && c->warm && c->cache ? RWS_OK : rws_no_memory(err, "a server");
    if (status == RWS_OK) status = rws_catalogue_new(options->folders, options->n_folders, &c->catalogue, err);
    if (status != RWS_OK) {
        rws_core_free(c);
        return status;
    }
    rws_catalogue_refresh(c->catalogue);
    *out = c;
    return RWS_OK;
}

void rws_core_free(rws_core *c)
{
    if (!c) return;
    rws_catalogue_free(c->catalogue);
    rws_warm_set_free(c->warm);
    rws_news_free(c->news);
    cache_free(c->cache);
    pthread_mutex_destroy(&c->drawing);
    sem_destroy(&c->work);
    free(c);
}

/* The runs that this refresh changed, and those that are gone. */
void rws_core_refresh(rws_core *c)
{
    rws_buffer text = {0};
    if (!rws_catalogue_refresh(c->catalogue)) return;
    rws_catalogue_read(c->catalogue);
    const uint64_t serial = rws_catalogue_serial(c->catalogue);
    rws_buffer_open(&text, '{');
    rws_buffer_key(&text, "serial");
    rws_buffer_number(&text, (double)serial);
    rws_buffer_key(&text, "runs");
    rws_buffer_open(&text, '[');
    for (int i = 0; i < rws_catalogue_n(c->catalogue); i++)
        if (rws_catalogue_at(c->catalogue, i)->serial == serial)
            rws_listed_write(c, rws_catalogue_at(c->catalogue, i), &text);
    rws_buffer_close(&text, ']');
    rws_buffer_key(&text, "gone");
    rws_buffer_open(&text, '[');
    for (int i = 0; rws_catalogue_gone(c->catalogue, i); i++)
        rws_buffer_text(&text, rws_catalogue_gone(c->catalogue, i));
    rws_buffer_close(&text, ']');
    rws_buffer_close(&text, '}');
    rws_catalogue_done(c->catalogue);
    if (!text.starved) rws_news_publish(c->news, text.bytes);
    rws_buffer_release(&text);
}

/* ---- events */

typedef struct {
    rws_core *core;
    uint64_t  after;
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
    switch (rws_news_wait(w->core->news, w->after, HEARTBEAT, &number, &text)) {
    case RWS_NEWS_OVER: return false;
    case RWS_NEWS_NONE: rws_buffer_print(out, ": still here\n\n"); return true;
    case RWS_NEWS_MISSED:
        rws_buffer_print(out, "id: %llu\nevent: reset\ndata: {}\n\n", (unsigned long long)number);
        break;
    case RWS_NEWS_ITEM:
        rws_buffer_print(out, "id: %llu\nevent: runs\ndata: %s\n\n", (unsigned long long)number, text);
        free(text);
    }
    w->after = number;
    return true;
}

static void end_watching(void *context)
{
    watching *w = context;
    w->core->n_watchers--;
    free(w);
}

bool rws_answer_events(rws_core *c, const rws_request *r, rws_reply *reply)
{
    const char *after = r->last_event ? r->last_event : rws_request_argument(r, "after");
    watching   *w = c->n_watchers < RWS_MAX_WATCHERS ? calloc(1, sizeof *w) : NULL;
    if (!w || c->draining) {
        free(w);
        reply->retry = true;
        return rws_reply_fail(reply, 503, "There are too many watchers; try again later.");
    }
    *w = (watching){.core = c, .after = after ? strtoull(after, NULL, 10) : rws_news_latest(c->news)};
    if (w->after > rws_news_latest(c->news)) w->after = UINT64_MAX; /* of a server before this one: reset */
    c->n_watchers++;
    reply->stream = (rws_stream){w, next_event, end_watching};
    return rws_reply_end(reply, "text/event-stream");
}

/* ---- the overview */

static void write_colour(const rws_colour *colour, rws_buffer *out)
{
    char text[8];
    snprintf(text, sizeof text, "#%02x%02x%02x", (unsigned)lrint(255 * colour->red) & 255,
             (unsigned)lrint(255 * colour->green) & 255, (unsigned)lrint(255 * colour->blue) & 255);
    rws_buffer_text(out, text);
}

static void write_styles(rws_buffer *out)
{
    rws_buffer_key(out, "methods");
    rws_buffer_open(out, '[');
    for (const rws_style *s = rws_styles; s->method; s++) {
        rws_buffer_open(out, '{');
        rws_buffer_key(out, "method");
        rws_buffer_text(out, s->method);
        rws_buffer_key(out, "name");
        rws_buffer_text(out, s->name);
        rws_buffer_key(out, "colour");
        write_colour(&s->colour, out);
        rws_buffer_key(out, "dash");
        rws_buffer_numbers(out, s->dash, s->n_dash);
        rws_buffer_close(out, '}');
    }
    rws_buffer_close(out, ']');
}

static void write_limits(const rws_core *c, rws_buffer *out)
{
    const struct {
        const char *name;
        double      value;
    } limits[] = {{"body_bytes", RWS_MAX_BODY},
                  {"points", RWS_MAX_POINTS},
                  {"particles", c->limits.particles},
                  {"particles_in_all", c->limits.work},
                  {"data", c->limits.data},
                  {"samples", c->limits.samples},
                  {"seconds", c->options.max_seconds},
                  {"connections", RWS_MAX_CONNECTIONS},
                  {"watchers", RWS_MAX_WATCHERS}};
    rws_buffer_key(out, "limits");
    rws_buffer_open(out, '{');
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        rws_buffer_key(out, limits[i].name);
        rws_buffer_number(out, limits[i].value);
    }
    rws_buffer_close(out, '}');
}

bool rws_answer_overview(rws_core *c, const rws_request *r, rws_reply *reply)
{
    rws_buffer *out = &reply->body;
    (void)r;
    rws_buffer_open(out, '{');
    rws_buffer_key(out, "version");
    rws_buffer_text(out, RWS_VERSION_STRING);
    rws_buffer_key(out, "folders");
    rws_buffer_open(out, '[');
    for (int i = 0; i < c->options.n_folders; i++) rws_buffer_text(out, c->options.folders[i]);
    rws_buffer_close(out, ']');
    rws_buffer_key(out, "routes");
    rws_buffer_open(out, '[');
    for (const rws_route *route = rws_routes; route->method; route++) {
        char text[128];
        snprintf(text, sizeof text, "%s %s", route->method, route->path);
        rws_buffer_text(out, text);
    }
    rws_buffer_close(out, ']');
    write_styles(out);
    write_limits(c, out);
    rws_buffer_close(out, '}');
    return rws_reply_end(reply, "application/json");
}

/* ---- the page */

const rws_page_file *rws_page_find(const char *name)
{
    for (const rws_page_file *f = rws_page_files; f->name; f++)
        if (strcmp(f->name, name) == 0) return f;
    return NULL;
}

static bool send_file(const rws_page_file *f, const rws_request *r, rws_reply *reply)
{
    uint64_t hash = 14695981039346656037u;
    for (const char *at = f->bytes; at < f->end; at++) hash = (hash ^ (unsigned char)*at) * 1099511628211u;
    snprintf(reply->etag, sizeof reply->etag, "\"%016llx\"", (unsigned long long)hash);
    reply->type = f->type;
    if (r->match && strcmp(r->match, reply->etag) == 0) {
        reply->status = 304;
        return true;
    }
    reply->fixed = f->bytes;
    reply->n_fixed = (size_t)(f->end - f->bytes);
    return true;
}

bool rws_answer_openapi(rws_core *c, const rws_request *r, rws_reply *reply)
{
    (void)c;
    return send_file(rws_page_find("openapi.json"), r, reply);
}

/* "/", or "/NAME" of a file of the page. */
static bool answer_page(const rws_core *c, const rws_request *r, rws_reply *reply)
{
    const rws_page_file *f = r->n_segments <= 1 ? rws_page_find(r->n_segments ? r->segment[0] : "index.html") : NULL;
    (void)c;
    return f ? send_file(f, r, reply) : rws_reply_fail(reply, 404, "There is no such page.");
}

/* ---- routes */

const rws_route rws_routes[] = {
    {"GET", "/api", rws_answer_overview, false},
    {"GET", "/api/openapi.json", rws_answer_openapi, false},
    {"GET", "/api/runs", rws_answer_runs, true},
    {"GET", "/api/runs/{run}", rws_answer_run, true},
    {"GET", "/api/runs/{run}/metrics", rws_answer_metrics_of, true},
    {"GET", "/api/runs/{run}/snapshots", rws_answer_snapshots, true},
    {"GET", "/api/runs/{run}/pictures", rws_answer_pictures, false},
    {"GET", "/api/runs/{run}/pictures/{iteration}", rws_answer_picture, false},
    {"GET", "/api/runs/{run}/ask", rws_answer_askable, false},
    {"POST", "/api/runs/{run}/infer", rws_answer_infer, false},
    {"POST", "/api/runs/{run}/sample", rws_answer_sample, false},
    {"POST", "/api/runs/{run}/score", rws_answer_score, false},
    {"GET", "/api/metrics", rws_answer_metrics, true},
    {"GET", "/api/compare", rws_answer_compare, true},
    {"GET", "/api/compare.svg", rws_answer_compare_svg, false},
    {"GET", "/api/compare.pdf", rws_answer_compare_pdf, false},
    {"GET", "/api/compare.png", rws_answer_compare_png, false},
    {"GET", "/api/compare.csv", rws_answer_compare_csv, false},
    {"GET", "/api/events", rws_answer_events, false},
    {0},
};

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
    if (!other) rws_reply_fail(reply, 404, "There is no such address; /api lists them.");
    else {
        rws_reply_fail(reply, 405, "This address takes %s.", other);
        reply->allow = other;
    }
    return NULL;
}

static bool answer_cached(rws_core *c, const rws_route *route, const rws_request *r, rws_reply *reply)
{
    rws_buffer key = {0};
    rws_catalogue_read(c->catalogue);
    const uint64_t serial = rws_catalogue_serial(c->catalogue);
    rws_catalogue_done(c->catalogue);
    const bool keep = make_key(r, &key);
    bool       good = keep && cache_find(c->cache, key.bytes, serial, reply);
    if (!good && keep) {
        pthread_mutex_t *making = stripe_of(c->cache, key.bytes);
        pthread_mutex_lock(making);
        good = cache_find(c->cache, key.bytes, serial, reply); /* another thread has made it meanwhile */
        if (!good && (good = route->answer(c, r, reply))) cache_put(c->cache, key.bytes, serial, &reply->body);
        pthread_mutex_unlock(making);
    } else if (!good) good = route->answer(c, r, reply);
    if (good) rws_reply_end(reply, "application/json");
    rws_buffer_release(&key);
    return good;
}

/* "/?token=…" turns the token into a cookie, so that it does not stay in the address. */
static bool enter(const rws_core *c, const rws_request *r, rws_reply *reply)
{
    const char *token = rws_request_argument(r, "token");
    if (!c->gate.token || r->n_segments || !token || !rws_token_equal(c->gate.token, token)) return false;
    snprintf(reply->cookie, sizeof reply->cookie, "rws-token=%s; Path=/; HttpOnly; SameSite=Strict", c->gate.token);
    snprintf(reply->location, sizeof reply->location, "/");
    reply->status = 303;
    reply->type = "text/plain; charset=utf-8";
    return true;
}

void rws_core_answer(rws_core *c, const rws_request *r, rws_reply *reply)
{
    const bool get = strcmp(r->method, "GET") == 0 || strcmp(r->method, "HEAD") == 0;
    reply->status = 200;
    if (get && rws_gate_host(&c->gate, r->host) && enter(c, r, reply)) return;
    if (!rws_gate_pass(&c->gate, r, reply)) return;
    if (r->n_segments && strcmp(r->segment[0], "api") == 0) {
        const rws_route *route = find_route(r, reply);
        if (route && route->cached) answer_cached(c, route, r, reply);
        else if (route) route->answer(c, r, reply);
    } else if (get) answer_page(c, r, reply);
    else {
        rws_reply_fail(reply, 405, "This address takes GET.");
        reply->allow = "GET";
    }
}
