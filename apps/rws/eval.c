/* eval.c - rws eval: measures the metrics of a run at its checkpoint. */
#include "base/error.h"
#include "rws/command.h"
#include "rws/options.h"
#include "rws/reopen.h"
#include "rws/output.h"
#include "comm/comm.h"
#include "train/inspect.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    const char *folder;
    rws_config  given;             /* --model and --changed */
    uint64_t    particles, n_test; /* 0: the run's own */
    uint64_t    threads;           /* 0: all cores */
    rws_limits  limits;
    bool        threads_given, record, json, params;
} eval_options;

enum { KEY_JSON = 0x2000, KEY_EVAL_DATA, KEY_RECORD, KEY_LIMIT, KEY_PARAMS };

static const struct argp_option options[] = {
    {"eval-particles", 'k', "N", 0, "Particles per test datum (default: as in the run)", 0},
    {"eval-data", KEY_EVAL_DATA, "N", 0, "Number of test data (default: as in the run)", 0},
    {"threads", 't', "T", 0, "Threads (0: all cores)", 0},
    {"record", KEY_RECORD, 0, 0, "Also add the numbers to the run's store, as final_ and the metric's name", 0},
    {"params", KEY_PARAMS, 0, 0, "Also print the parameters of the model (theta) that the run has learned", 0},
    {"limit", KEY_LIMIT, "NAME=N", 0, RWS_LIMIT_HELP, 0},
    {"json", KEY_JSON, 0, 0, "Print one JSON object; with --params, one more for each parameter", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    eval_options *o = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &o->given; return 0;
    case 'k': return rws__arguments_count(state, "--eval-particles", arg, 1, RWS_MAX_PARTICLES, &o->particles);
    case KEY_EVAL_DATA: return rws__arguments_count(state, "--eval-data", arg, 1, 1000000, &o->n_test);
    case 't': o->threads_given = true; return rws__arguments_count(state, "--threads", arg, 0, 1024, &o->threads);
    case KEY_LIMIT: return rws__arguments_limit(state, arg, &o->limits);
    case KEY_PARAMS: o->params = true; return 0;
    case KEY_RECORD: o->record = true; return 0;
    case KEY_JSON: o->json = true; return 0;
    case ARGP_KEY_ARG:
        if (o->folder) return rws__arguments_extra(state, arg);
        o->folder = arg;
        return 0;
    case ARGP_KEY_END: return o->folder ? 0 : rws__arguments_fail(state, "Which run? Name its folder.");
    default: return ARGP_ERR_UNKNOWN;
    }
}

static void print_measures(const rws_measures *m)
{
    char text[32];
    printf("%-18s %llu\n", "iteration", (unsigned long long)m->iteration);
    printf("%-18s %.3f\n", "seconds", m->seconds);
    for (int i = 0; i < m->n; i++) printf("%-18s %s\n", m->names[i], rws__output_number(m->value[i], text));
    if (!isnan(m->log_evidence_error)) printf("%-18s %.2g\n", "log_evidence_error", m->log_evidence_error);
    if (m->impossible > 0) printf("%-18s %s\n", "impossible", rws__output_number(m->impossible, text));
}

static void print_param(const rws_param_view *v)
{
    char text[32];
    for (int i = 0; i < v->rows; i++) {
        printf("%-18s", i == 0 ? v->name : "");
        for (int j = 0; j < v->cols; j++)
            printf(" %s", rws__output_number((double)v->values[(size_t)i * (size_t)v->cols + (size_t)j], text));
        putchar('\n');
    }
}

static void print_param_json(const rws_param_view *v)
{
    json_t *o = json_object(), *rows = json_array();
    for (int i = 0; i < v->rows; i++) {
        json_t *row = json_array();
        for (int j = 0; j < v->cols; j++)
            json_array_append_new(row, rws__json_real((double)v->values[(size_t)i * (size_t)v->cols + (size_t)j]));
        json_array_append_new(rows, row);
    }
    json_object_set_new(o, "param", rws__json_string(v->name));
    json_object_set_new(o, "values", rows);
    rws__output_json(o);
}

static void print_params(rws_trainer *t, bool json)
{
    rws_param_view v;
    for (int i = 0; rws_trainer_param(t, i, &v); i++) {
        if (v.group != RWS_THETA) continue;
        if (json) print_param_json(&v);
        else print_param(&v);
    }
}

static rws_status record(rws_folder *folder, const rws_measures *m, rws_error *err)
{
    char        names[RWS_MAX_METRICS][64];
    const char *pointers[RWS_MAX_METRICS + 1];
    double      values[RWS_MAX_METRICS + 1];
    for (int i = 0; i < m->n; i++) {
        snprintf(names[i], sizeof names[i], "final_%s", m->names[i]);
        pointers[i] = names[i];
        values[i] = m->value[i];
    }
    pointers[m->n] = "final_impossible";
    values[m->n] = m->impossible;
    return rws__folder_add(folder, m->iteration, m->seconds, m->n + (m->impossible > 0), pointers, values, err);
}

static rws_status open_run(const eval_options *o, rws_config *config, rws_folder **folder, rws_error *err)
{
    RWS_TRY(rws__reopen(o->folder, &o->given, config, folder, err));
    if (o->record && rws_rank() == 0)
        RWS_TRY(rws__folder_lock(*folder, err)); /* a second sweep must not measure the same meanwhile */
    return rws__reopen_checkpoint(o->folder, *folder, err);
}

/* Every rank reads the folder; rank 0 prints and records. */
static rws_status measure(const eval_options *o, rws_folder **folder, rws_trainer **trainer, rws_error *err)
{
    rws_comm    *comm = rws__comm_world();
    rws_config   config;
    rws_measures m;
    RWS_TRY(rws__comm_agree(comm, open_run(o, &config, folder, err), err));
    config.limits = o->limits;
    if (o->particles) config.eval_particles = (int)o->particles;
    if (o->n_test) config.n_test = (int)o->n_test;
    if (o->threads_given) config.threads = o->threads ? (int)o->threads : rws__options_cores();
    RWS_TRY(rws__trainer_open(&config, rws__folder_recorded(*folder), NULL, trainer, err));
    if (!o->n_test) RWS_TRY(rws__comm_agree(comm, rws__trainer_hash_data(*trainer, err), err));
    RWS_TRY(rws__comm_agree(comm, rws__trainer_peek(*trainer, *folder, err), err));
    if (rws__folder_warnings(*folder)[0] && rws_rank() == 0) rws__note("%s", rws__folder_warnings(*folder));
    RWS_TRY(rws_trainer_evaluate(*trainer, &m, err));
    rws__output_impossible(&m);
    if (o->record && rws_rank() == 0) RWS_TRY(record(*folder, &m, err));
    if (o->json) rws__output_measures(rws_trainer_model(*trainer), &m, m.seconds, true);
    else print_measures(&m);
    if (o->params) print_params(*trainer, o->json);
    return RWS_OK;
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "RUN",
    .doc = "Measures the metrics of a trained run. RUN is the folder that `rws train --out` wrote; it is not changed, "
           "unless --record adds the numbers to it.",
    .children = (const struct argp_child[]){{.argp = &rws_reopen_argp}, {0}},
};

static rws_status run(int argc, char **argv, rws_error *err)
{
    eval_options o = {0};
    RWS_TRY(rws__arguments_parse(&argp, "rws eval", argc, argv, 0, &o, err));
    RWS_TRY(rws__command_join("", err));
    rws_folder      *folder = NULL;
    rws_trainer     *trainer = NULL;
    const rws_status status = measure(&o, &folder, &trainer, err);
    rws_trainer_free(trainer);
    rws__folder_close(folder);
    return status;
}

const rws_command rws_command_eval = {"eval", "measure a run with more particles or other test data", run, &argp,
                                      .ranks = true};
