/* sweep_runs.c - the runs of a sweep that was read: which are of one kind, whether they can be trained, and what is known of them. */
#include "rws_results.h"

#include "base/error.h"
#include "base/text.h"
#include "program/config.h"
#include "program/plugin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- kinds of runs */

/* A line for each value: no word of a sweep has the end of a line in it. */
char *rws_sweep_kind(const rws_sweep_run *run)
{
    const rws_config *c = &run->config;
    char              value[RWS_CONFIG_VALUE];
    rws_text          text;
    FILE             *out = rws__text_open(&text);
    if (!out) return NULL;
    for (const rws_config_member *m = rws_config_members; m->name; m++)
        if (strcmp(m->name, "seed") != 0) fprintf(out, "%s\n", rws__config_value(m, c, value));
    fprintf(out, "%d\n%d\n", run->final_particles, run->final_test);
    for (int i = 0; i < c->n_set; i++) fprintf(out, "%s\n", c->set[i]);
    return rws__text_end(&text);
}

/* The first run of the kind of run i. */
static int first_of_kind(char *const *kinds, int i)
{
    int k = 0;
    while (strcmp(kinds[k], kinds[i]) != 0) k++;
    return k;
}

/* ---- checking the runs */

/* Finds the iterations of run i: those of the first run of its kind, for which the model is set up. */
static rws_status check_run(rws_sweep *s, int i, char *const *kinds, bool objects, uint64_t *iterations, rws_error *err)
{
    const int k = first_of_kind(kinds, i);
    iterations[i] = k < i ? iterations[k] : s->runs[i].config.iterations;
    if (k < i || (!objects && rws__model_is_path(s->runs[i].config.model))) return RWS_OK;
    rws_trainer *t;
    RWS_TRY(rws_trainer_new(&s->runs[i].config, NULL, &t, err));
    iterations[i] = rws_trainer_config(t)->iterations;
    rws_trainer_free(t);
    return RWS_OK;
}

rws_status rws_sweep_check(rws_sweep *s, bool objects, rws_error *err)
{
    RWS_NEED(s, err);
    uint64_t  *iterations = calloc((size_t)s->n + 1, sizeof *iterations);
    char     **kinds = calloc((size_t)s->n + 1, sizeof *kinds);
    rws_status status = iterations && kinds ? RWS_OK : rws_no_memory(err, "a sweep");
    for (int i = 0; i < s->n && status == RWS_OK; i++) {
        kinds[i] = rws_sweep_kind(&s->runs[i]);
        status = kinds[i] ? check_run(s, i, kinds, objects, iterations, err) : rws_no_memory(err, "a sweep");
    }
    for (int i = 0; i < s->n && status == RWS_OK; i++) s->runs[i].config.iterations = iterations[i];
    for (int i = 0; i < s->n && kinds; i++) free(kinds[i]);
    free(kinds);
    free(iterations);
    return status;
}

/* ---- results */

const rws_result *rws_sweep_run_result(const rws_sweep_run *run, const rws_results *results)
{
    for (int i = 0; run && results && i < results->n; i++)
        if (strcmp(results->runs[i].name, run->name) == 0) return &results->runs[i];
    return NULL;
}

bool rws_sweep_run_is_done(const rws_sweep_run *run, const rws_result *result)
{
    if (!run || !result || result->failure || result->iteration < run->config.iterations) return false;
    bool measured = !run->final_particles;
    for (int i = 0; i < result->n_histories; i++)
        measured = measured || strncmp(result->histories[i].metric, "final_", 6) == 0;
    return measured;
}
