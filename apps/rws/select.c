#include "rws/select.h"

#include "base/error.h"
#include "base/list.h"
#include "base/nearest.h"
#include "base/quote.h"
#include "rws/output.h"
#include "figure/bundle.h"

#include <stdlib.h>
#include <string.h>

enum { KEY_WHERE = 'w' };

static const struct argp_option options[] = {
    {"where", KEY_WHERE, "KEY=VALUE[,VALUE]", 0,
     "Only runs with this value of method, particles, seed, a setting or state (finished, failed, unfinished, "
     "training, "
     "stopped); may be repeated",
     1},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    rws_select *s = state->input;
    switch (key) {
    case ARGP_KEY_INIT: *s = (rws_select){0}; return 0;
    case KEY_WHERE:
        if (s->n_conditions == RWS_SELECT_CONDITIONS)
            return rws__arguments_fail(state, "--where can be given %d times at most.", RWS_SELECT_CONDITIONS);
        s->conditions[s->n_conditions++] = arg;
        return 0;
    case ARGP_KEY_ARG:
        if (s->n_paths == RWS_SELECT_PATHS)
            return rws__arguments_fail(state, "At most %d paths can be given; name the folder above them.",
                                       RWS_SELECT_PATHS);
        s->paths[s->n_paths++] = arg;
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

const struct argp rws_select_argp = {.options = options, .parser = parse, .args_doc = "[PATH...]"};

rws_status rws__select_read(const rws_select *s, rws_results **out, rws_error *err)
{
    const char *const here = ".";
    RWS_TRY(rws_results_read(s->n_paths ? s->paths : &here, s->n_paths ? s->n_paths : 1, out, err));
    rws_status status = rws_results_filter(*out, s->conditions, s->n_conditions, err);
    if (status == RWS_OK && (*out)->n == 0)
        status = rws_fail(err, RWS_BAD_INPUT,
                          s->n_conditions ? "There is no run for which all of --where holds." : "There is no run yet.");
    if (status == RWS_OK) return RWS_OK;
    rws_results_free(*out);
    *out = NULL;
    return status;
}

/* Names, each once. */
typedef struct {
    const char **list;
    int          n, capacity;
} names;

static void add(names *s, const char *name)
{
    for (int i = 0; i < s->n; i++)
        if (strcmp(s->list[i], name) == 0) return;
    rws__need_memory(rws__list_grow(&s->list, s->n, &s->capacity, sizeof *s->list), "a list of names");
    s->list[s->n++] = name;
}

const char **rws__select_keys(const rws_results *r, int *n)
{
    names all = {0};
    for (int i = 0; i < r->n; i++)
        for (int k = 0; k < r->runs[i].n_keys; k++) add(&all, r->runs[i].keys[k].key);
    *n = all.n;
    return all.list;
}

const char **rws__select_metrics(const rws_results *r, int *n)
{
    names all = {0};
    for (int i = 0; i < r->n; i++)
        for (int k = 0; k < r->runs[i].n_histories; k++) add(&all, r->runs[i].histories[k].metric);
    *n = all.n;
    return all.list;
}

static bool differs(const rws_results *r, const char *key)
{
    const char *value = NULL;
    for (int i = 0; i < r->n; i++)
        if (rws__bundle_departs(&r->runs[i], key, &value)) return true;
    return false;
}

int rws__select_differing(const rws_results *r, const char **keys, int capacity)
{
    int          n = 0, n_all;
    const char **all = rws__select_keys(r, &n_all);
    const bool   seed = differs(r, "seed");
    for (int i = 0; i < n_all && n + seed < capacity; i++)
        if (strcmp(all[i], "seed") != 0 && differs(r, all[i])) keys[n++] = all[i];
    if (seed) keys[n++] = "seed";
    free(all);
    return n;
}

rws_status rws__select_check_metric(const rws_results *r, const char *metric, rws_error *err)
{
    for (int i = 0; i < r->n; i++)
        if (rws_result_history(&r->runs[i], metric)) return RWS_OK;
    int           n;
    const char  **known = rws__select_metrics(r, &n);
    rws_name_list list = {0};
    rws_nearest   near = rws__nearest_to(metric);
    for (int i = 0; i < n; i++) {
        rws__name_list_add(&list, rws__quote_short(known[i]).text);
        rws__nearest_try(&near, known[i]);
    }
    free(known);
    if (n == 0)
        return rws_fail(err, RWS_BAD_INPUT, "No run has a metric \"%s\"; no run has been evaluated yet.",
                        rws__quote_short(metric).text);
    return rws_fail(err, RWS_BAD_INPUT, "No run has a metric \"%s\"%s; the metrics are %s.",
                    rws__quote_short(metric).text, rws__nearest_hint(&near).text, list.text);
}
