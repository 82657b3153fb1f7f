/* evaluate.c - metrics: the model's own, and those that every model has. */
#include "train/trainer.h"

#include "base/denormals.h"

#include <math.h>
#include <stdio.h>
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
    return e->t->program.n_test;
}

const float *rws_eval_field(const rws_eval *e, const char *field)
{
    for (int f = 0; f < e->t->program.setup.n_fields; f++)
        if (strcmp(e->t->program.setup.fields[f].name, field) == 0) return e->t->test[f];
    return NULL;
}

rws_status rws_eval_mean(rws_eval *e, rws_datum_value *f, const void *context, double *value, rws_error *err)
{
    const rws_setup *s = &e->t->program.setup;
    const int        n = e->t->program.n_test;
    const float    **fields = malloc((size_t)(s->n_fields + 1) * sizeof *fields);
    if (!fields) return rws_no_memory(err, "an evaluation");
    *value = 0;
    for (int i = 0; i < n && !isnan(*value); i++) {
        for (int k = 0; k < s->n_fields; k++) fields[k] = e->t->test[k] + (size_t)i * (size_t)s->fields[k].dim;
        const double one = f(fields, context);
        *value += one / n;
        if (isnan(one)) rws_fail(err, RWS_BROKEN, "A metric of the model is not a number for test datum %d.", i);
        else if (isnan(*value))
            rws_fail(err, RWS_BROKEN, "A metric of the model is inf for one test datum and -inf for another.");
    }
    free(fields);
    return isnan(*value) ? RWS_BROKEN : RWS_OK;
}

#define COMBINATIONS (1 << 22) /* particles that share the combinations of choices of a datum */
#define ENUMERATED 64          /* data of a pass, times COMBINATIONS below 2^32 */

/* The log of the sum of e^log_p over the rows of datum d. */
static double log_sum(const rws_scores *s, int d)
{
    double top = -INFINITY, sum = 0;
    for (uint32_t i = s->start[d]; i < s->start[d + 1]; i++) top = fmax(top, s->log_p[i]);
    for (uint32_t i = s->start[d]; i < s->start[d + 1] && isfinite(top); i++) sum += exp(s->log_p[i] - top);
    return isfinite(top) ? top + log(sum) : top;
}

rws_status rws_eval_enumerate(rws_eval *e, double *value, rws_error *err)
{
    rws_trainer  *t = e->t;
    const int     n_test = t->program.n_test;
    const rws_key key = rws__key_for(t->program.config.seed, t->program.iteration, RWS_KEY_TEST, RWS_TEST_ENUMERATION);
    const float  *fields[t->program.setup.n_fields + 1];
    *value = 0;
    for (int first = 0; first < n_test; first += ENUMERATED) {
        const int n = n_test - first < ENUMERATED ? n_test - first : ENUMERATED;
        for (int f = 0; f < t->program.setup.n_fields; f++)
            fields[f] = t->test[f] + (size_t)first * (size_t)t->program.setup.fields[f].dim;
        rws_pass pass = rws__program_pass(&t->program, RWS_WAKE, n, COMBINATIONS, fields, key);
        pass.enumerate = true;
        pass.scalar = false;
        pass.first_datum = (uint32_t)first;
        RWS_TRY(rws__trainer_check_stop(t, 0, err));
        RWS_TRY(rws__engine_forward(t->engines[0], &pass, err));
        for (int d = 0; d < n; d++) *value += log_sum(rws__engine_scores(t->engines[0]), d) / n_test;
    }
    return RWS_OK;
}

rws_status rws_eval_check_stop(rws_eval *e, rws_error *err)
{
    return rws__trainer_check_stop(e->t, 0, err);
}

typedef struct {
    rws_var (*f)(rws_path *path, const void *state);
    const void *state;
} compute_job;

static void compute_program(rws_path *path, void *context)
{
    const compute_job *j = context;
    rws__path_output(path, 0, j->f(path, j->state));
}

rws_status rws_eval_compute(rws_eval *e, rws_var (*f)(rws_path *path, const void *state), int n,
                            const float *const *fields, float *out, rws_error *err)
{
    if (n == 0) return RWS_OK; /* there is nothing to write */
    compute_job job = {f, e->t->program.state};
    rws_pass    pass = rws__program_pass(&e->t->program, RWS_COMPUTE, n, 1, fields, (rws_key){0});
    rws_engine *engine = e->t->engines[0];
    pass.program = compute_program;
    pass.context = &job;
    RWS_TRY(rws__engine_forward(engine, &pass, err));
    int          dim = 0;
    const float *result = rws__engine_result(engine, &dim);
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
    rws__path_side(path, RWS_SIDE_MODEL);
    j->program(path, j->t->program.state);
    rws__path_side(path, RWS_SIDE_GUIDE);
    rws__guide(path);
    rws__path_side(path, RWS_SIDE_NONE);
}

rws_status rws_eval_dream(rws_eval *e, void (*program)(rws_path *path, const void *state), int n, double *log_q,
                          rws_error *err)
{
    dream_job          job = {program, e->t};
    const rws_program *p = &e->t->program;
    const uint64_t     seed = p->config.seed;
    const bool         inputs = rws__setup_has_inputs(&p->setup);
    const rws_key      key = rws__key_for(seed, p->iteration, RWS_KEY_TEST, RWS_TEST_DREAM);
    rws_arena          memory = {0};
    rws_pass           pass = rws__program_pass(p, RWS_SLEEP, inputs ? n : 1, inputs ? 1 : n, NULL, key);
    pass.program = dream;
    pass.context = &job;
    if (inputs)
        pass.fields =
            rws__program_draw_inputs(p, (const float *const *)e->t->test, p->n_test,
                                     rws__key_for(seed, p->iteration, RWS_KEY_TEST, RWS_TEST_INPUTS), 0, n, &memory);
    rws_status status = RWS_OK;
    if (inputs && !pass.fields) status = rws_no_memory(err, "the inputs of samples");
    if (status == RWS_OK) status = rws__engine_forward(e->t->engines[0], &pass, err);
    *log_q = 0;
    if (status == RWS_OK) {
        const rws_scores *s = rws__engine_scores(e->t->engines[0]);
        for (int i = 0; i < s->n; i++) *log_q += s->count[i] * s->log_q[i] / n;
    }
    rws__arena_free(&memory);
    return status;
}

rws_status rws_eval_guess(rws_eval *e, const float *const *fields, int K,
                          void (*each)(const rws_particle *p, int count, void *context), void *context, rws_error *err)
{
    return rws__trainer_guess(e->t, fields, K, each, context, err);
}

/* The value of a metric that the model's own function measures. The ranks take such metrics in turn. */
typedef struct {
    double value;
    int    rank; /* that measured it */
} measured;

static bool measures_itself(const rws_trainer *t, int i)
{
    return i < t->n_model_metrics && t->program.model->metrics[i].measure;
}

static rws_status measure_own(rws_trainer *t, measured *out, rws_error *err)
{
    rws_eval e = {.t = t};
    for (int i = 0, k = 0; i < t->n_model_metrics; i++) {
        if (!measures_itself(t, i) || k++ % t->ranks.size != t->ranks.rank) continue;
        RWS_TRY(rws__trainer_check_stop(t, 0, err));
        RWS_TRY(RWS_CALL_ENTRY(t->program.model, "metric", &t->program.model->metrics[i], measure, err, &e,
                               t->program.state, &out[i].value));
        out[i].rank = t->ranks.rank;
    }
    return RWS_OK;
}

static rws_status measure_models(rws_trainer *t, double *values, rws_error *err)
{
    const int n = t->n_model_metrics;
    measured  mine[RWS_MAX_METRICS], *all = malloc((size_t)t->ranks.size * sizeof mine);
    for (int i = 0; i < n; i++) mine[i] = (measured){NAN, -1};
    rws_status status = all ? measure_own(t, mine, err) : rws_no_memory(err, "an evaluation");
    status = rws__trainer_agree(t, status, err);
    if (status == RWS_OK && t->ranks.comm) status = rws__comm_gather(t->ranks.comm, mine, sizeof mine, all, err);
    else if (status == RWS_OK) memcpy(all, mine, sizeof mine);
    for (int rank = 0; rank < t->ranks.size && status == RWS_OK; rank++)
        for (int i = 0; i < n; i++)
            if (all[rank * RWS_MAX_METRICS + i].rank == rank) values[i] = all[rank * RWS_MAX_METRICS + i].value;
    free(all);
    return status;
}

/* Measures the metric "exact" with the parameters whose truth is known at their true values. Every rank measures it. */
static rws_status measure_truth(rws_trainer *t, double *value, rws_error *err)
{
    const rws_metric *m = t->program.model->metrics;
    const rws_setup  *s = &t->program.setup;
    const size_t      size = s->params.size * sizeof(float);
    float            *learned = malloc(size);
    rws_eval          e = {.t = t};
    if (!learned) return rws_no_memory(err, "an evaluation");
    memcpy(learned, s->params.value, size);
    for (int i = 0; i < s->n_truths; i++)
        memcpy(s->truths[i].param->value, s->truths[i].values, rws__param_size(s->truths[i].param) * sizeof(float));
    rws_trainer_changed(t);
    while (strcmp(m->name, "exact") != 0) m++;
    const rws_status status = RWS_CALL_ENTRY(t->program.model, "metric", m, measure, err, &e, t->program.state, value);
    memcpy(s->params.value, learned, size);
    rws_trainer_changed(t);
    free(learned);
    return status;
}

static rws_status measure(rws_trainer *t, rws_measures *out, rws_error *err)
{
    rws_bound          b;
    rws_gradient_noise spread = {0};
    *out = (rws_measures){.iteration = t->program.iteration,
                          .seconds = t->seconds,
                          .n = t->n_metrics,
                          .names = t->metric_names,
                          .log_evidence_error = NAN};
    RWS_TRY(rws__trainer_bound(t, &b, err));
    out->impossible = b.impossible;
    if (t->program.model->defaults.grad_std) RWS_TRY(rws__trainer_gradient_noise(t, &spread, err));
    RWS_TRY(measure_models(t, out->value, err));
    for (int i = 0; i < t->n_metrics; i++) {
        const char *name = t->metric_names[i];
        if (measures_itself(t, i)) continue;
        if (i < t->n_model_metrics) out->value[i] = b.metric[i];
        else if (strcmp(name, "truth") == 0) RWS_TRY(rws__trainer_agree(t, measure_truth(t, &out->value[i], err), err));
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
    RWS_TRAINER_ENTER(t, err);
    RWS_NEED(out, err);
    const unsigned   denormals = rws__denormals_off();
    const rws_status status = measure(t, out, err);
    rws__denormals_restore(denormals);
    return status;
}

double rws_measures_get(const rws_measures *m, const char *metric)
{
    for (int i = 0; m && metric && i < m->n; i++)
        if (strcmp(m->names[i], metric) == 0) return m->value[i];
    return NAN;
}

/* ---- snapshots */

void rws_eval_show(rws_eval *e, const char *label, double value)
{
    if (!e->shown) return; /* a metric is being measured, which has no list */
    e->memory_short |= !rws__snapshots_add(e->shown, &(rws_shown){e->snapshot, e->place++, (char *)label, value});
}

bool rws__trainer_snapshots_due(const rws_trainer *t)
{
    const rws_config *c = &t->program.config;
    const uint64_t    middle = c->iterations / 2;
    if ((!t->program.model->snapshots && !t->program.setup.n_truths) || t->program.iteration == 0) return false;
    if (t->program.iteration == 1 || t->program.iteration == c->iterations) return true;
    /* metrics are measured at the multiples of eval_every */
    return t->program.iteration % c->eval_every == 0 && t->program.iteration >= middle &&
           t->program.iteration - middle < c->eval_every;
}

/* The learned numbers of the parameters with a known truth, and the truth. */
static rws_status show_truths(rws_trainer *t, rws_snapshots *out, rws_error *err)
{
    rws_eval learned = {.t = t, .shown = out, .snapshot = "numbers"};
    rws_eval truth = {.t = t, .shown = out, .snapshot = "true_numbers"};
    for (const rws_truth *k = t->program.setup.truths; k < t->program.setup.truths + t->program.setup.n_truths; k++) {
        double *numbers = malloc(rws__param_size(k->param) * sizeof *numbers);
        if (!numbers) return rws_no_memory(err, "a snapshot");
        rws_param_read(k->param, k->scale, numbers);
        for (int i = 0; i < k->param->rows * k->param->cols; i++) {
            const int  row = i / k->param->cols, column = i % k->param->cols;
            char       label[RWS_PARAM_NAME + 32];
            const bool one_row = k->param->rows == 1, one_column = k->param->cols == 1;
            int        n = snprintf(label, sizeof label, "%s", k->param->name);
            if (!one_row) n += snprintf(label + n, sizeof label - (size_t)n, "[%d]", row);
            if (!one_column) snprintf(label + n, sizeof label - (size_t)n, "[%d]", column);
            rws_eval_show(&learned, label, numbers[i]);
            rws_eval_show(&truth, label, k->numbers[i]);
        }
        free(numbers);
    }
    return learned.memory_short || truth.memory_short ? rws_no_memory(err, "a snapshot") : RWS_OK;
}

rws_status rws__trainer_snapshots(rws_trainer *t, rws_snapshots *out, rws_error *err)
{
    for (const rws_snapshot *s = t->program.model->snapshots; s && s->name; s++) {
        rws_eval e = {.t = t, .shown = out, .snapshot = s->name};
        RWS_TRY(rws__trainer_check_stop(t, 0, err));
        RWS_TRY(RWS_CALL_ENTRY(t->program.model, "snapshot", s, measure, err, &e, t->program.state));
        if (e.memory_short) return rws_no_memory(err, "a snapshot");
    }
    return show_truths(t, out, err);
}
