/* runs.c - the routes about runs: the list, a run, its curves, snapshots and pictures. */
#include "base/error.h"
#include "base/file.h"
#include "figure/style.h"
#include "serve/core.h"
#include "serve/downsample.h"

#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SPARK = 40, MAX_PICTURE = 1 << 24 };

bool rws__reply_end(rws_reply *reply, const char *type)
{
    reply->type = type;
    if (!reply->body.starved) return true;
    reply->retry = true;
    return rws__reply_fail(reply, 503, "There is no memory for this reply.");
}

/* ---- selecting */

/* Whether the text is one of a list "a,b,c". */
static bool is_among(const char *text, const char *list)
{
    const size_t n = strlen(text);
    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, text, n) == 0 && (at[n] == ',' || !at[n])) return true;
    }
    return false;
}

/* Whether the run is named by `runs`, if the request has it. */
static bool is_named(const rws_request *r, const rws_catalogue_run *run)
{
    for (int i = 0; i < r->n_arguments; i++)
        if (strcmp(r->arguments[i].name, "runs") == 0 && !is_among(run->id, r->arguments[i].value)) return false;
    return true;
}

/* Conditions are those of --where, and asked of all runs in the catalogue. */
static rws_status choose(const rws_core *c, const rws_request *r, const rws_result **results, int *n, rws_error *err)
{
    const char *conditions[RWS_MAX_ARGUMENTS];
    int         n_conditions = 0;
    *n = rws__catalogue_n(c->catalogue);
    for (int i = 0; i < *n; i++) results[i] = &rws__catalogue_at(c->catalogue, i)->result;
    for (int i = 0; i < r->n_arguments; i++)
        if (strcmp(r->arguments[i].name, "where") == 0) conditions[n_conditions++] = r->arguments[i].value;
    return rws_results_choose(results, n, conditions, n_conditions, err);
}

bool rws__core_select(const rws_core *c, const rws_request *r, const rws_catalogue_run ***out, int *n, rws_reply *reply)
{
    const size_t       all = (size_t)rws__catalogue_n(c->catalogue) + 1;
    const rws_result **results = calloc(all, sizeof *results);
    rws_error          err = {""};
    int                n_results = 0;
    *n = 0;
    *out = calloc(all, sizeof **out);
    rws_status status = results && *out ? RWS_OK : rws_no_memory(&err, "this reply");
    if (status == RWS_OK) status = choose(c, r, results, &n_results, &err);
    for (int i = 0; i < n_results && status == RWS_OK; i++) {
        const rws_catalogue_run *run = rws__catalogue_run_of(results[i]);
        if (is_named(r, run)) (*out)[(*n)++] = run;
    }
    free(results);
    return status == RWS_OK || rws__reply_status(reply, status, &err);
}

const rws_catalogue_run *rws__core_run(const rws_core *c, const rws_request *r, rws_reply *reply)
{
    const rws_catalogue_run *run = rws__catalogue_find(c->catalogue, r->segment[2]);
    if (!run) rws__reply_fail(reply, 404, "There is no such run; /api/runs lists them.");
    return run;
}

/* ---- a run as an object */

/* A curve in few points, for the list. */
static void write_spark(const rws_result *r, rws_buffer *out)
{
    const rws_history *h = rws_result_history(r, "log_evidence");
    int                keep[SPARK];
    if (!h && r->n_histories) h = &r->histories[0];
    const int n = h ? rws__downsample(h->iterations, h->values, h->n, SPARK, keep) : 0;
    rws__buffer_open_key(out, "spark", '{');
    rws__buffer_key_text(out, "metric", h ? h->metric : NULL);
    rws__buffer_open_key(out, "values", '[');
    for (int i = 0; i < n; i++) rws__buffer_number(out, h->values[keep[i]]);
    rws__buffer_close(out, ']');
    rws__buffer_close(out, '}');
}

static double time_left(const rws_catalogue_run *run)
{
    const rws_result *r = &run->result;
    if (strcmp(run->state, "training") != 0 || r->iteration == 0 || r->iterations < r->iteration) return NAN;
    return r->seconds / (double)r->iteration * (double)(r->iterations - r->iteration);
}

/* The name of the run's folder, which may have been copied or renamed; in a store of several runs the name there. */
static const char *name_of(const rws_catalogue_run *run)
{
    const char *slash = run->alone && run->folder ? strrchr(run->folder, '/') : NULL;
    return slash && slash[1] ? slash + 1 : run->result.name;
}

void rws__catalogue_run_write(const rws_core *c, const rws_catalogue_run *run, rws_buffer *out)
{
    const rws_result *r = &run->result;
    rws__buffer_open(out, '{');
    rws__buffer_key_text(out, "id", run->id);
    rws__buffer_key_text(out, "name", name_of(run));
    rws__buffer_key_text(out, "store", r->store);
    rws__buffer_key_text(out, "folder", run->folder);
    rws__buffer_key_text(out, "state", run->state);
    rws__buffer_key_text(out, "model", rws_result_get(r, "model"));
    rws__buffer_key_text(out, "method", rws_result_get(r, "method"));
    rws__buffer_key_number(out, "iteration", (double)r->iteration);
    rws__buffer_key_number(out, "iterations", (double)r->iterations);
    rws__buffer_key_number(out, "seconds", r->seconds);
    rws__buffer_key_number(out, "time_left", time_left(run));
    rws__buffer_key_text(out, "started", r->started);
    rws__buffer_key_text(out, "host", r->host);
    rws__buffer_key_text(out, "version", r->version);
    rws__buffer_key_text(out, "failure", r->failure);
    rws__buffer_key_true(out, "has_folder", run->folder != NULL);
    rws__buffer_open_key(out, "config", '{');
    for (int i = 0; i < r->n_keys; i++) {
        rws__buffer_key(out, r->keys[i].key);
        rws__buffer_value(out, r->keys[i].value);
    }
    rws__buffer_close(out, '}');
    rws__buffer_open_key(out, "last", '{');
    for (int i = 0; i < r->n_histories; i++)
        rws__buffer_key_number(out, r->histories[i].metric, rws_result_last(r, r->histories[i].metric));
    rws__buffer_close(out, '}');
    write_spark(r, out);
    rws__buffer_key(out, "warnings");
    rws__warnings_write(c, run, out);
    rws__buffer_close(out, '}');
}

void rws__problems_write(const rws_core *c, rws_buffer *out)
{
    rws__buffer_open_key(out, "problems", '[');
    for (int i = 0; rws__catalogue_problem(c->catalogue, i); i++) {
        rws__buffer_open(out, '{');
        rws__buffer_key_text(out, "path", rws__catalogue_problem(c->catalogue, i)->path);
        rws__buffer_key_text(out, "message", rws__catalogue_problem(c->catalogue, i)->message);
        rws__buffer_close(out, '}');
    }
    rws__buffer_close(out, ']');
}

bool rws__answer_runs(rws_core *c, const rws_request *r, rws_reply *reply)
{
    const rws_catalogue_run **runs;
    int                       n;
    rws_buffer               *out = &reply->body;
    rws__catalogue_read(c->catalogue);
    const bool good = rws__core_select(c, r, &runs, &n, reply);
    if (good) {
        rws__buffer_open(out, '{');
        rws__buffer_key_number(out, "serial", (double)rws__catalogue_serial(c->catalogue));
        rws__buffer_key_number(out, "event", (double)rws__changes_latest(c->changes));
        rws__buffer_open_key(out, "runs", '[');
        for (int i = 0; i < n; i++) rws__catalogue_run_write(c, runs[i], out);
        rws__buffer_close(out, ']');
        rws__problems_write(c, out);
        rws__buffer_close(out, '}');
    }
    rws__catalogue_done(c->catalogue);
    free(runs);
    return good && rws__reply_end(reply, "application/json");
}

bool rws__answer_run(rws_core *c, const rws_request *r, rws_reply *reply)
{
    rws__catalogue_read(c->catalogue);
    const rws_catalogue_run *run = rws__core_run(c, r, reply);
    if (run) rws__catalogue_run_write(c, run, &reply->body);
    rws__catalogue_done(c->catalogue);
    return run && rws__reply_end(reply, "application/json");
}

/* ---- curves */

typedef struct {
    double      since, points;
    const char *names; /* NULL: all */
} wanted;

static bool read_wanted(const rws_request *r, wanted *w, rws_reply *reply)
{
    w->names = rws__request_argument(r, "metric");
    return rws__request_count(r, "since", -1, 1e18, -1, &w->since, reply) &&
           rws__request_count(r, "points", 3, RWS_MAX_POINTS, 1000, &w->points, reply);
}

static void write_kept(rws_buffer *out, const char *key, const double *values, const int *keep, int n)
{
    rws__buffer_open_key(out, key, '[');
    for (int i = 0; i < n; i++) rws__buffer_number(out, values[keep[i]]);
    rws__buffer_close(out, ']');
}

/* The points after iteration `since`. n is how many there are before they are thinned out. */
static void write_history(const rws_history *h, const wanted *w, int *keep, rws_buffer *out)
{
    int first = 0;
    while (first < h->n && h->iterations[first] <= w->since) first++;
    const int n = rws__downsample(h->iterations + first, h->values + first, h->n - first, (int)w->points, keep);
    rws__buffer_open(out, '{');
    rws__buffer_key_text(out, "name", h->metric);
    rws__buffer_key_number(out, "n", h->n - first);
    write_kept(out, "iterations", h->iterations + first, keep, n);
    write_kept(out, "seconds", h->seconds + first, keep, n);
    write_kept(out, "values", h->values + first, keep, n);
    rws__buffer_close(out, '}');
}

static void write_histories(const rws_catalogue_run *run, const wanted *w, int *keep, rws_buffer *out)
{
    const rws_result *r = &run->result;
    rws__buffer_open(out, '{');
    rws__buffer_key_text(out, "id", run->id);
    rws__buffer_key_text(out, "name", r->name);
    rws__buffer_key_number(out, "iteration", (double)r->iteration);
    rws__buffer_open_key(out, "metrics", '[');
    for (int i = 0; i < r->n_histories; i++)
        if (!w->names || is_among(r->histories[i].metric, w->names)) write_history(&r->histories[i], w, keep, out);
    rws__buffer_close(out, ']');
    rws__buffer_close(out, '}');
}

bool rws__answer_metrics_of(rws_core *c, const rws_request *r, rws_reply *reply)
{
    wanted w;
    if (!read_wanted(r, &w, reply)) return false;
    int *keep = malloc(RWS_MAX_POINTS * sizeof *keep);
    if (!keep) return rws__reply_fail(reply, 503, "There is no memory for this reply.");
    rws__catalogue_read(c->catalogue);
    const rws_catalogue_run *run = rws__core_run(c, r, reply);
    if (run) write_histories(run, &w, keep, &reply->body);
    rws__catalogue_done(c->catalogue);
    free(keep);
    return run && rws__reply_end(reply, "application/json");
}

bool rws__answer_metrics(rws_core *c, const rws_request *r, rws_reply *reply)
{
    wanted                    w;
    const rws_catalogue_run **runs;
    int                       n;
    if (!read_wanted(r, &w, reply)) return false;
    int *keep = malloc(RWS_MAX_POINTS * sizeof *keep);
    if (!keep) return rws__reply_fail(reply, 503, "There is no memory for this reply.");
    rws__catalogue_read(c->catalogue);
    const bool good = rws__core_select(c, r, &runs, &n, reply);
    if (good) {
        rws__buffer_open(&reply->body, '{');
        rws__buffer_key(&reply->body, "runs");
        rws__buffer_open(&reply->body, '[');
        for (int i = 0; i < n; i++) write_histories(runs[i], &w, keep, &reply->body);
        rws__buffer_close(&reply->body, ']');
        rws__buffer_close(&reply->body, '}');
    }
    rws__catalogue_done(c->catalogue);
    free(runs);
    free(keep);
    return good && rws__reply_end(reply, "application/json");
}

/* ---- snapshots */

static void write_shot(const rws_shot *s, rws_buffer *out)
{
    rws__buffer_open(out, '{');
    rws__buffer_key_text(out, "name", s->name);
    rws__buffer_key_number(out, "iteration", (double)s->iteration);
    rws__buffer_key(out, "values");
    rws__buffer_numbers(out, s->values, s->n);
    rws__buffer_open_key(out, "labels", '[');
    for (int i = 0; i < s->n; i++) rws__buffer_text(out, s->labels[i]);
    rws__buffer_close(out, ']');
    rws__buffer_close(out, '}');
}

bool rws__answer_snapshots(rws_core *c, const rws_request *r, rws_reply *reply)
{
    rws__catalogue_read(c->catalogue);
    const rws_catalogue_run *run = rws__core_run(c, r, reply);
    if (run) {
        rws__buffer_open(&reply->body, '{');
        rws__buffer_key(&reply->body, "snapshots");
        rws__buffer_open(&reply->body, '[');
        for (int i = 0; i < run->result.n_shots; i++) write_shot(&run->result.shots[i], &reply->body);
        rws__buffer_close(&reply->body, ']');
        rws__buffer_close(&reply->body, '}');
    }
    rws__catalogue_done(c->catalogue);
    return run && rws__reply_end(reply, "application/json");
}

/* ---- pictures: RUN/pictures/00010000.png */

/* The folder with the pictures of the run, the caller's to free; NULL with the reply. */
static char *pictures_of(rws_core *c, const rws_request *r, rws_reply *reply)
{
    rws__catalogue_read(c->catalogue);
    const rws_catalogue_run *run = rws__core_run(c, r, reply);
    char                    *folder = run && run->folder ? rws__file_join(run->folder, "pictures") : NULL;
    if (folder && !rws__catalogue_holds(c->catalogue, folder)) {
        free(folder);
        folder = strdup(""); /* there are none, or a link leads outside */
    }
    if (run && !run->folder) rws__reply_fail(reply, 404, "The run's folder is not among the folders that are served.");
    else if (run && !folder) rws__reply_fail(reply, 503, "There is no memory for this reply.");
    rws__catalogue_done(c->catalogue);
    return folder;
}

static int is_picture(const struct dirent *item)
{
    const size_t n = strspn(item->d_name, "0123456789");
    return n > 0 && n < 19 && strcmp(item->d_name + n, ".png") == 0;
}

bool rws__answer_pictures(rws_core *c, const rws_request *r, rws_reply *reply)
{
    char           *folder = pictures_of(c, r, reply);
    struct dirent **list = NULL;
    if (!folder) return false;
    const int n = folder[0] ? scandir(folder, &list, is_picture, versionsort) : 0;
    rws__buffer_open(&reply->body, '{');
    rws__buffer_key(&reply->body, "iterations");
    rws__buffer_open(&reply->body, '[');
    for (int i = 0; i < n; i++) {
        rws__buffer_number(&reply->body, strtod(list[i]->d_name, NULL));
        free(list[i]);
    }
    rws__buffer_close(&reply->body, ']');
    rws__buffer_close(&reply->body, '}');
    free(list);
    free(folder);
    return rws__reply_end(reply, "application/json");
}

/* The name of the file is made from the number, and never taken from the request. */
bool rws__answer_picture(rws_core *c, const rws_request *r, rws_reply *reply)
{
    char          *end, name[32];
    const uint64_t iteration = strtoull(r->segment[4], &end, 10);
    rws_error      err = {""};
    uint8_t       *bytes;
    size_t         size;
    if (!isdigit((unsigned char)r->segment[4][0]) || *end)
        return rws__reply_fail(reply, 400, "A picture is named by the number of its iteration.");
    char *folder = pictures_of(c, r, reply);
    if (!folder) return false;
    snprintf(name, sizeof name, "%08" PRIu64 ".png", iteration);
    char      *path = folder[0] ? rws__file_join(folder, name) : NULL;
    const bool inside = path && rws__catalogue_holds(c->catalogue, path);
    const bool good = inside && rws__file_read(path, MAX_PICTURE, &bytes, &size, &err) == RWS_OK;
    if (good) {
        rws__buffer_add(&reply->body, (const char *)bytes, size);
        free(bytes);
    } else rws__reply_fail(reply, 404, "There is no picture of iteration %" PRIu64 ".", iteration);
    free(path);
    free(folder);
    return good && rws__reply_end(reply, "image/png");
}
