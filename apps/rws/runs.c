/* runs.c - rws runs: lists runs with their progress and their last metrics, and compares them. */
#include "base/error.h"
#include "rws/command.h"
#include "rws/output.h"
#include "rws/select.h"
#include "rws/listing.h"
#include "rws_results.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_JSON = 0x2000, KEY_COMPARE, KEY_SORT, KEY_WIDE };

typedef struct {
    rws_select   select;
    const char **metrics; /* to be freed */
    int          n_metrics;
    const char  *sort; /* a metric, smallest first; with a '-' in front, largest first */
    bool         compare, json, wide;
} runs_options;

/* Runs that differ in their seed only; in a list, a single run. */
typedef struct {
    const rws_result **runs;
    int                n;
    rws_quartiles     *last; /* by metric */
    double             rank; /* groups are sorted by it */
} group;

static rws_quartiles last_of(const group *g, const char *metric)
{
    rws_quartiles q;
    rws__need_memory(rws_gather_last(g->runs, g->n, metric, &q, NULL) == RWS_OK, "a list of runs");
    return q;
}

static void summarise(group *g, const runs_options *o)
{
    for (int m = 0; m < o->n_metrics; m++) g->last[m] = last_of(g, o->metrics[m]);
    if (!o->sort) return;
    const bool   largest = o->sort[0] == '-';
    const double median = last_of(g, o->sort + largest).median;
    g->rank = largest ? -median : median;
}

static int by_rank(const void *a, const void *b)
{
    const group *x = a, *y = b;
    if (isnan(x->rank) || isnan(y->rank)) return isnan(x->rank) - isnan(y->rank);
    return x->rank != y->rank ? (x->rank > y->rank ? 1 : -1) : (x->runs > y->runs) - (x->runs < y->runs);
}

/* Fills `groups`, `order` and `last`, which are as long as all runs; each group's runs are a part of `order`, and its
 * metrics a part of `last`. Returns the number of groups. */
static int make_groups(const rws_results *r, const runs_options *o, group *groups, const rws_result **order,
                       rws_quartiles *last)
{
    bool *taken = calloc((size_t)r->n, sizeof *taken);
    rws__need_memory(taken != NULL, "a list of runs");
    int n = 0, placed = 0;
    for (int i = 0; i < r->n; i++) {
        if (taken[i]) continue;
        group *g = &groups[n];
        g->runs = order + placed;
        g->last = last + (size_t)n++ * (size_t)o->n_metrics;
        for (int k = i; k < r->n; k++) {
            if (taken[k] || (k > i && !(o->compare && rws_result_same_but_seed(&r->runs[i], &r->runs[k])))) continue;
            taken[k] = true;
            g->runs[g->n++] = &r->runs[k];
        }
        placed += g->n;
        summarise(g, o);
    }
    free(taken);
    if (o->sort) qsort(groups, (size_t)n, sizeof *groups, by_rank);
    return n;
}

/* ---- as JSON */

static json_t *json_config(const rws_result *r)
{
    json_t *o = json_object();
    for (int i = 0; i < r->n_keys; i++) {
        if (strcmp(r->keys[i].key, "seed") != 0)
            json_object_set_new(o, r->keys[i].key, rws__json_value(r->keys[i].value));
    }
    return o;
}

static json_t *json_seed(const rws_result *r)
{
    const char *seed = rws_result_get(r, "seed");
    return seed ? rws__json_value(seed) : NULL;
}

static void print_json_run(const rws_result *r, const runs_options *o)
{
    json_t *j = json_pack("{s:o,s:o,s:s,s:I,s:I,s:o,s:o,s:o,s:o,s:o,s:o?,s:o}", "run", rws__json_string(r->name),
                          "store", rws__json_string(r->store), "state", rws_result_state(r), "iteration",
                          (json_int_t)r->iteration, "iterations", (json_int_t)r->iterations, "seconds",
                          rws__json_real(r->seconds), "host", rws__json_string(r->host), "version",
                          rws__json_string(r->version), "started", rws__json_string(r->started), "failure",
                          rws__json_string(r->failure), "seed", json_seed(r), "config", json_config(r));
    json_t *metrics = json_object();
    for (int m = 0; m < o->n_metrics; m++)
        json_object_set_new(metrics, o->metrics[m], rws__json_real(rws_result_last(r, o->metrics[m])));
    json_object_set_new(j, "metrics", metrics);
    rws__output_json(j);
}

static void print_json_group(const group *g, const runs_options *o)
{
    json_t *j = json_pack("{s:i,s:o}", "runs", g->n, "config", json_config(g->runs[0])), *metrics = json_object();
    for (int m = 0; m < o->n_metrics; m++)
        json_object_set_new(metrics, o->metrics[m],
                            json_pack("{s:o,s:o,s:o}", "median", rws__json_real(g->last[m].median), "low",
                                      rws__json_real(g->last[m].low), "high", rws__json_real(g->last[m].high)));
    json_object_set_new(j, "metrics", metrics);
    rws__output_json(j);
}

/* ---- as a table */

static void add_columns(rws_listing *t, const char *const *keys, int n_keys, const runs_options *o)
{
    if (!o->compare) rws__listing_column(t, "run", RWS_CELL_LEFT);
    for (int k = 0; k < n_keys; k++)
        rws__listing_column(t, keys[k], strcmp(keys[k], "method") != 0 ? RWS_CELL_RIGHT : RWS_CELL_LEFT);
    rws__listing_column(t, o->compare ? "runs" : "state", o->compare ? RWS_CELL_RIGHT : RWS_CELL_LEFT);
    if (!o->compare) rws__listing_column(t, "iteration", RWS_CELL_RIGHT);
    if (!o->compare) rws__listing_column(t, "seconds", RWS_CELL_RIGHT);
    for (int m = 0; m < o->n_metrics; m++) {
        rws__listing_column(t, o->metrics[m], RWS_CELL_RIGHT);
        if (o->compare) rws__listing_column(t, "quartiles", RWS_CELL_LEFT);
    }
}

static void add_row(rws_listing *t, const group *g, const char *const *keys, int n_keys, const runs_options *o)
{
    const rws_result *first = g->runs[0];
    if (!o->compare) rws__listing_cell(t, "%s", first->name);
    for (int k = 0; k < n_keys; k++) {
        const char *value = rws_result_get(first, keys[k]);
        rws__listing_cell(t, "%s", value ? value : "");
    }
    if (o->compare) rws__listing_cell(t, "%d", g->n);
    else {
        rws__listing_cell(t, "%s", rws_result_state(first));
        rws__listing_cell(t, "%" PRIu64, first->iteration);
        rws__listing_cell(t, "%.1f", first->seconds);
    }
    for (int m = 0; m < o->n_metrics; m++) {
        rws__listing_number(t, g->last[m].median);
        if (o->compare && isnan(g->last[m].median)) rws__listing_cell(t, "%s", "");
        else if (o->compare) rws__listing_cell(t, "%.4g … %.4g", g->last[m].low, g->last[m].high);
    }
}

static void print_failure(const rws_result *r)
{
    char *line;
    rws__need_memory(asprintf(&line, "%s: %s", r->name, r->failure) >= 0, "a line");
    rws__output_tame(line);
    puts(line);
    free(line);
}

static void print_table(const group *groups, int n, const rws_results *r, const runs_options *o)
{
    int          n_keys;
    const char **keys = rws__select_keys(r, &n_keys); /* the differing ones, which are some of them, take its place */
    if (n_keys) n_keys = rws__select_differing(r, keys, n_keys);
    if (o->compare && n_keys && strcmp(keys[n_keys - 1], "seed") == 0) n_keys--;
    rws_listing *t = rws__listing_new();
    add_columns(t, keys, n_keys, o);
    for (int i = 0; i < n; i++) add_row(t, &groups[i], keys, n_keys, o);
    rws__listing_print(t, 0, o->wide);
    free(keys);
    for (int i = 0; i < r->n && !o->compare; i++)
        if (r->runs[i].failure) print_failure(&r->runs[i]);
}

static void list(const rws_results *r, const runs_options *o)
{
    group             *groups = calloc((size_t)r->n, sizeof *groups);
    const rws_result **order = calloc((size_t)r->n, sizeof *order);
    rws_quartiles     *last = calloc((size_t)r->n * (size_t)o->n_metrics + 1, sizeof *last);
    rws__need_memory(groups && order && last, "a list of runs");
    const int n = make_groups(r, o, groups, order, last);
    if (!o->json) print_table(groups, n, r, o);
    for (int i = 0; i < n && o->json; i++) {
        if (o->compare) print_json_group(&groups[i], o);
        else print_json_run(groups[i].runs[0], o);
    }
    free(last);
    free(order);
    free(groups);
}

/* ---- the command */

static const struct argp_option options[] = {
    {"metric", 'm', "NAME", 0, "Show this metric; may be repeated (default: all)", 2},
    {"compare", KEY_COMPARE, 0, 0, "One row for all runs that differ in their seed only: median and quartiles", 2},
    {"sort", KEY_SORT, "METRIC", 0, "Sort by this metric, smallest first; with a - in front, largest first", 2},
    {"json", KEY_JSON, 0, 0, "Print one JSON object per line", 2},
    {"wide", KEY_WIDE, 0, 0, RWS_WIDE_HELP, 2},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    runs_options *o = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &o->select; return 0;
    case 'm':
        o->metrics = realloc(o->metrics, (size_t)(o->n_metrics + 1) * sizeof *o->metrics);
        rws__need_memory(o->metrics != NULL, "a list of metrics");
        o->metrics[o->n_metrics++] = arg;
        return 0;
    case KEY_COMPARE: o->compare = true; return 0;
    case KEY_SORT: o->sort = arg; return 0;
    case KEY_JSON: o->json = true; return 0;
    case KEY_WIDE: o->wide = true; return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .doc = "Lists runs and their last metrics. PATH is a run, a sweep, a folder with some of them (default: the "
           "current folder), a metrics.sqlite, or a file.csv that `rws export` wrote.",
    .children = (const struct argp_child[]){{.argp = &rws_select_argp}, {0}},
};

static rws_status check_metrics(const runs_options *o, const rws_results *r, rws_error *err)
{
    for (int m = 0; m < o->n_metrics; m++) RWS_TRY(rws__select_check_metric(r, o->metrics[m], err));
    return o->sort ? rws__select_check_metric(r, o->sort + (o->sort[0] == '-'), err) : RWS_OK;
}

static rws_status run(int argc, char **argv, rws_error *err)
{
    runs_options o = {0};
    rws_results *r = NULL;
    rws_status   status = rws__arguments_parse(&argp, "rws runs", argc, argv, 0, &o, err);
    if (status == RWS_OK) status = rws__select_read(&o.select, &r, err);
    if (status == RWS_OK) status = check_metrics(&o, r, err);
    if (status == RWS_OK && !o.metrics) o.metrics = rws__select_metrics(r, &o.n_metrics);
    if (status == RWS_OK) list(r, &o);
    rws_results_free(r);
    free(o.metrics);
    return status;
}

const rws_command rws_command_runs = {"runs", "list, filter and compare runs", run, &argp};
