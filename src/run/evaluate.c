/* evaluate.c - metrics: the model's own, and those that every model has. */
#include "run/trainer.h"

#include "base/denormals.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct rws_eval {
    rws_trainer   *t;
    rws_snapshots *shown; /* NULL while metrics are measured */
    const char    *snapshot;
    int            place;
    bool           memory_short; /* a number of the snapshot could not be kept */
};

int rws_eval_size(const rws_eval *e)
{
    return e->t->config.n_test;
}

const float *rws_eval_field(const rws_eval *e, const char *field)
{
    for (int f = 0; f < e->t->setup.n_fields; f++)
        if (strcmp(e->t->setup.fields[f].name, field) == 0) return e->t->test[f];
    return NULL;
}

rws_status rws_eval_go_on(rws_eval *e, rws_error *err)
{
    return rws_trainer_go_on(e->t, 0, err);
}

typedef struct {
    rws_var (*f)(rws_path *path, const void *state);
    const void *state;
} compute_job;

static void compute_program(rws_path *path, void *context)
{
    const compute_job *j = context;
    rws_path_output(path, 0, j->f(path, j->state));
}

rws_status rws_eval_compute(rws_eval *e, rws_var (*f)(rws_path *path, const void *state), int n,
                            const float *const *fields, float *out, rws_error *err)
{
    compute_job job = {f, e->t->state};
    rws_pass    pass = rws_trainer_pass(e->t, RWS_COMPUTE, n, 1, fields, (rws_key){0});
    rws_engine *engine = e->t->engines[0];
    pass.program = compute_program;
    pass.context = &job;
    RWS_TRY(rws_engine_forward(engine, &pass, err));
    int          dim = 0;
    const float *result = rws_engine_result(engine, &dim);
    RWS_CHECK(result);
    memcpy(out, result, (size_t)n * (size_t)dim * sizeof(float));
    return RWS_OK;
}

typedef struct {
    void (*program)(rws_path *path, const void *state);
    const rws_trainer *t;
} dream_job;

static void dream(rws_path *path, void *context)
{
    const dream_job *j = context;
    rws_path_side(path, RWS_SIDE_MODEL);
    j->program(path, j->t->state);
    rws_path_side(path, RWS_SIDE_GUIDE);
    j->t->model->guide(path, j->t->state);
    rws_path_side(path, RWS_SIDE_NONE);
}

rws_status rws_eval_dream(rws_eval *e, void (*program)(rws_path *path, const void *state), int n, double *log_q,
                          rws_error *err)
{
    dream_job     job = {program, e->t};
    const rws_key key = rws_key_for(e->t->config.seed, e->t->iteration, RWS_KEY_TEST, 2);
    rws_pass      pass = rws_trainer_pass(e->t, RWS_SLEEP, 1, n, NULL, key);
    rws_engine   *engine = e->t->engines[0];
    pass.program = dream;
    pass.context = &job;
    RWS_TRY(rws_engine_forward(engine, &pass, err));
    const rws_scores *s = rws_engine_scores(engine);
    *log_q = 0;
    for (int i = 0; i < s->n; i++) *log_q += s->count[i] * s->log_q[i] / n;
    return RWS_OK;
}

rws_status rws_eval_guess(rws_eval *e, const float *const *fields, int K,
                          void (*each)(const rws_particle *p, int count, void *context), void *context, rws_error *err)
{
    return rws_trainer_guess(e->t, fields, K, each, context, err);
}

/* A metric that the model measures by itself; the ranks share them out, one by one. */
typedef struct {
    double value;
    int    rank; /* that measured it */
} measured;

static bool measures_itself(const rws_trainer *t, int i)
{
    return i < t->n_model_metrics && t->model->metrics[i].measure;
}

static rws_status measure_own(rws_trainer *t, measured *out, rws_error *err)
{
    rws_eval e = {.t = t};
    for (int i = 0, k = 0; i < t->n_model_metrics; i++) {
        if (!measures_itself(t, i) || k++ % t->ranks.size != t->ranks.rank) continue;
        RWS_TRY(rws_trainer_go_on(t, 0, err));
        RWS_TRY(t->model->metrics[i].measure(&e, t->state, &out[i].value, err));
        out[i].rank = t->ranks.rank;
    }
    return RWS_OK;
}

static rws_status measure_models(rws_trainer *t, double *values, rws_error *err)
{
    const int n = t->n_model_metrics;
    measured  mine[RWS_MAX_METRICS], *all = malloc((size_t)t->ranks.size * sizeof mine);
    if (!all) return rws_no_memory(err, "an evaluation");
    for (int i = 0; i < n; i++) mine[i] = (measured){NAN, -1};
    rws_status status = rws_trainer_agree(t, measure_own(t, mine, err), err);
    if (status == RWS_OK && t->ranks.comm) status = rws_comm_gather(t->ranks.comm, mine, sizeof mine, all, err);
    else memcpy(all, mine, sizeof mine);
    for (int rank = 0; rank < t->ranks.size && status == RWS_OK; rank++)
        for (int i = 0; i < n; i++)
            if (all[rank * RWS_MAX_METRICS + i].rank == rank) values[i] = all[rank * RWS_MAX_METRICS + i].value;
    free(all);
    return status;
}

static rws_status measure(rws_trainer *t, rws_measures *out, rws_error *err)
{
    rws_bound  b;
    rws_spread spread = {0};
    *out = (rws_measures){.iteration = t->iteration,
                          .seconds = t->seconds,
                          .n = t->n_metrics,
                          .names = t->metric_names,
                          .log_evidence_error = NAN};
    RWS_TRY(rws_trainer_bound(t, &b, err));
    if (t->model->defaults.grad_std) RWS_TRY(rws_trainer_spread(t, &spread, err));
    RWS_TRY(measure_models(t, out->value, err));
    for (int i = 0; i < t->n_metrics; i++) {
        const char *name = t->metric_names[i];
        if (measures_itself(t, i)) continue;
        if (i < t->n_model_metrics) out->value[i] = b.metric[i];
        else if (strcmp(name, "grad_std") == 0) out->value[i] = spread.std;
        else if (strcmp(name, "snr_theta") == 0) out->value[i] = spread.snr_theta;
        else if (strcmp(name, "snr_phi") == 0) out->value[i] = spread.snr_phi;
        else if (strcmp(name, "log_evidence") == 0) {
            out->value[i] = b.log_evidence;
            out->log_evidence_error = b.log_evidence_error;
        } else {
            out->value[i] = strcmp(name, "kl") == 0 ? b.kl : b.ess;
        }
    }
    return RWS_OK;
}

rws_status rws_trainer_evaluate(rws_trainer *t, rws_measures *out, rws_error *err)
{
    const unsigned   denormals = rws_denormals_off();
    const rws_status status = measure(t, out, err);
    rws_denormals_restore(denormals);
    return status;
}

double rws_measures_get(const rws_measures *m, const char *metric)
{
    for (int i = 0; i < m->n; i++)
        if (strcmp(m->names[i], metric) == 0) return m->value[i];
    return NAN;
}

/* ---- snapshots */

void rws_eval_show(rws_eval *e, const char *label, double value)
{
    if (!e->shown) return; /* a metric is being measured, which has no list */
    e->memory_short |= !rws_snapshots_add(e->shown, &(rws_shown){e->snapshot, e->place++, (char *)label, value});
}

bool rws_trainer_snapshots_due(const rws_trainer *t)
{
    const rws_config *c = &t->config;
    const uint64_t    middle = c->iterations / 2;
    if (!t->model->snapshots || t->iteration == 0) return false;
    if (t->iteration == 1 || t->iteration == c->iterations) return true;
    /* metrics are measured at the multiples of eval_every */
    return t->iteration % c->eval_every == 0 && t->iteration >= middle && t->iteration - middle < c->eval_every;
}

rws_status rws_trainer_snapshots(rws_trainer *t, rws_snapshots *out, rws_error *err)
{
    for (const rws_snapshot *s = t->model->snapshots; s && s->name; s++) {
        rws_eval e = {.t = t, .shown = out, .snapshot = s->name};
        RWS_TRY(rws_trainer_go_on(t, 0, err));
        RWS_TRY(s->measure(&e, t->state, err));
        if (e.memory_short) return rws_no_memory(err, "a snapshot");
    }
    return RWS_OK;
}
