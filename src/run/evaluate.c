/* evaluate.c - metrics: the model's own, and those that every model has. */
#include "run/trainer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GRADIENTS 10 /* behind one grad_std */
#define AT_ONCE 4096 /* particles of a pass that only measures, unless a datum has more */

struct rws_eval {
    rws_trainer *t;
};

int rws_eval_size(const rws_eval *e)
{
    return e->t->config.n_test;
}

const float *rws_eval_field(const rws_eval *e, const char *field)
{
    for (int f = 0; f < e->t->setup.n_fields; f++)
        if (strcmp(e->t->setup.fields[f].name, field) == 0) return e->t->test[f];
    RWS_CHECK(!"a field that the model declared");
    return NULL;
}

typedef struct {
    rws_var (*f)(rws_run *r, const void *state);
    const void *state;
} compute_job;

static void compute_program(rws_run *r, void *context)
{
    const compute_job *j = context;
    rws_run_output(r, 0, j->f(r, j->state));
}

rws_status rws_eval_compute(rws_eval *e, rws_var (*f)(rws_run *r, const void *state), int n, const float *const *fields,
                            float *out, rws_error *err)
{
    compute_job    job = {f, e->t->state};
    const rws_pass pass = {.program = compute_program,
                           .context = &job,
                           .mode = RWS_COMPUTE,
                           .n_data = n,
                           .n_particles = 1,
                           .fields = fields,
                           .scalar = e->t->config.scalar};
    rws_engine    *engine = e->t->shards[0].engine;
    RWS_TRY(rws_engine_forward(engine, &pass, err));
    int          dim = 0;
    const float *result = rws_engine_result(engine, &dim);
    RWS_CHECK(result);
    memcpy(out, result, (size_t)n * (size_t)dim * sizeof(float));
    return RWS_OK;
}

typedef struct {
    void (*program)(rws_run *r, const void *state);
    const rws_trainer *t;
} dream_job;

static void dream(rws_run *r, void *context)
{
    const dream_job *j = context;
    rws_run_side(r, RWS_SIDE_MODEL);
    j->program(r, j->t->state);
    rws_run_side(r, RWS_SIDE_GUIDE);
    j->t->model->guide(r, j->t->state);
    rws_run_side(r, RWS_SIDE_NONE);
}

rws_status rws_eval_dream(rws_eval *e, void (*program)(rws_run *r, const void *state), int n, double *log_q,
                          rws_error *err)
{
    dream_job      job = {program, e->t};
    const rws_pass pass = {.program = dream,
                           .context = &job,
                           .mode = RWS_SLEEP,
                           .n_data = 1,
                           .n_particles = n,
                           .scalar = e->t->config.scalar,
                           .key = rws_key_for(e->t->config.seed, e->t->iteration, RWS_KEY_TEST, 2)};
    rws_engine    *engine = e->t->shards[0].engine;
    RWS_TRY(rws_engine_forward(engine, &pass, err));
    const rws_scores *s = rws_engine_scores(engine);
    *log_q = 0;
    for (int i = 0; i < s->n; i++) *log_q += s->count[i] * s->log_q[i] / n;
    return RWS_OK;
}

/* Spread of the guide's gradient at the present parameters: the mean over phi of the standard deviation of 10 draws. */
static rws_status grad_std(rws_trainer *t, double *value, rws_error *err)
{
    const rws_params *p = &t->setup.params;
    const size_t      first = p->first[RWS_PHI], n = p->first[RWS_PHI + 1] - first;
    float            *gradient = malloc(p->size * sizeof *gradient);
    double           *sum = calloc(2 * n, sizeof *sum), total = 0;
    RWS_CHECK(gradient && sum);
    rws_status status = RWS_OK;
    for (uint64_t i = 0; i < GRADIENTS && status == RWS_OK; i++) {
        status = rws_trainer_gradient(t, RWS_TEST, i, gradient, err);
        for (size_t k = 0; k < n; k++) {
            const double g = (double)gradient[first + k];
            sum[2 * k] += g;
            sum[2 * k + 1] += g * g;
        }
    }
    for (size_t k = 0; k < n; k++) {
        const double mean = sum[2 * k] / GRADIENTS, variance = sum[2 * k + 1] / GRADIENTS - mean * mean;
        total += variance > 0 ? sqrt(variance) : 0;
    }
    double divide = (double)n;
    if (t->std_ref) { /* the authors' code divides by the sum of leading dimensions */
        divide = 0;
        for (int i = 0; i < p->n; i++)
            if (p->list[i]->group == RWS_PHI) divide += p->list[i]->rows == 1 ? p->list[i]->cols : p->list[i]->rows;
    }
    *value = total / divide;
    free(gradient);
    free(sum);
    return status;
}

struct rws_particle {
    const rws_trainer *t;
    rws_engine        *engine;
    int                row, datum;
};

const float *rws_particle_datum(const rws_particle *p, const char *field)
{
    const rws_eval e = {(rws_trainer *)p->t};
    for (int f = 0; f < p->t->setup.n_fields; f++)
        if (strcmp(p->t->setup.fields[f].name, field) == 0)
            return rws_eval_field(&e, field) + (size_t)p->datum * (size_t)p->t->setup.fields[f].dim;
    RWS_CHECK(!"a field that the model declared");
    return NULL;
}

const float *rws_particle_report(const rws_particle *p, const char *name, int time)
{
    return rws_engine_report(p->engine, p->row, name, time, NULL);
}

typedef struct {
    double log_evidence, kl, ess, metric[RWS_METRICS]; /* of those that look at particles */
} bound;

static bool of_particles(const rws_metric *m)
{
    return m->posterior || m->guide;
}

/* Row i of datum `datum`, whose share of the guide's particles is q and of the posterior w; NaN: there is none. */
static void add_particle(const rws_trainer *t, int i, int datum, double q, double w, bound *sum)
{
    const rws_particle p = {t, t->shards[0].engine, i, datum};
    for (int m = 0; m < t->n_model_metrics; m++) {
        const rws_metric *metric = &t->model->metrics[m];
        if (metric->guide) sum->metric[m] += q * metric->guide(&p, t->state);
        if (metric->posterior && !isnan(w)) sum->metric[m] += w * metric->posterior(&p, t->state);
    }
}

static void add_datum(const rws_trainer *t, const rws_scores *s, int d, int first, bound *sum, int *n)
{
    double top = -INFINITY, total = 0, squares = 0, mean = 0;
    for (uint32_t i = s->start[d]; i < s->start[d + 1]; i++) top = fmax(top, s->log_p[i] - s->log_q[i]);
    const bool possible = top > -INFINITY;
    for (uint32_t i = s->start[d]; i < s->start[d + 1]; i++) {
        const double l = s->log_p[i] - s->log_q[i], w = exp(l - top);
        total += s->count[i] * w;
        squares += s->count[i] * w * w;
        mean += s->count[i] * l / s->K;
    }
    const double L = top + log(total / s->K);
    for (uint32_t i = s->start[d]; i < s->start[d + 1]; i++) {
        const double w = s->count[i] * exp(s->log_p[i] - s->log_q[i] - top) / total;
        add_particle(t, (int)i, first + d, (double)s->count[i] / s->K, possible ? w : NAN, sum);
    }
    if (!possible) return; /* under the model: counts nothing */
    sum->log_evidence += L;
    sum->kl += L - mean;
    sum->ess += total * total / squares / s->K;
    ++*n;
}

/* Importance sampling with the guide on the test data: the K-particle bound, KL(q || p) and the effective number of
 * particles as a share of K; means over the data. As many data at a time as keep the particles to a few thousand. */
static rws_status measure_bound(rws_trainer *t, bound *out, rws_error *err)
{
    const rws_config *c = &t->config;
    const int         at_once = c->particles < AT_ONCE ? AT_ONCE / c->particles : 1;
    bound             sum = {0};
    int               n = 0;
    bool              reports = false;
    for (int m = 0; m < t->n_model_metrics; m++) reports |= of_particles(&t->model->metrics[m]);
    for (int first = 0; first < c->n_test; first += at_once) {
        const float *fields[RWS_FIELDS];
        for (int f = 0; f < t->setup.n_fields; f++)
            fields[f] = t->test[f] + (size_t)first * (size_t)t->setup.fields[f].dim;
        const rws_pass pass = {.program = rws_programs,
                               .context = &t->method,
                               .mode = RWS_WAKE,
                               .n_data = c->n_test - first < at_once ? c->n_test - first : at_once,
                               .n_particles = c->particles,
                               .fields = fields,
                               .scalar = c->scalar,
                               .reports = reports,
                               .first_datum = (uint32_t)first,
                               .key = rws_key_for(c->seed, t->iteration, RWS_KEY_TEST, 1)};
        RWS_TRY(rws_engine_forward(t->shards[0].engine, &pass, err));
        for (int d = 0; d < pass.n_data; d++) add_datum(t, rws_engine_scores(t->shards[0].engine), d, first, &sum, &n);
    }
    *out = (bound){sum.log_evidence / n, sum.kl / n, sum.ess / n};
    for (int m = 0; m < t->n_model_metrics; m++)
        out->metric[m] = sum.metric[m] / (t->model->metrics[m].guide ? c->n_test : n);
    return RWS_OK;
}

rws_status rws_trainer_evaluate(rws_trainer *t, rws_measures *out, rws_error *err)
{
    rws_eval e = {t};
    bound    b;
    *out = (rws_measures){.iteration = t->iteration, .n = t->n_metrics};
    RWS_TRY(measure_bound(t, &b, err));
    for (int i = 0; i < t->n_metrics; i++) {
        const char *name = t->metric_names[i];
        if (i < t->n_model_metrics && of_particles(&t->model->metrics[i])) out->value[i] = b.metric[i];
        else if (i < t->n_model_metrics) RWS_TRY(t->model->metrics[i].measure(&e, t->state, &out->value[i], err));
        else if (strcmp(name, "grad_std") == 0) RWS_TRY(grad_std(t, &out->value[i], err));
        else
            out->value[i] = strcmp(name, "log_evidence") == 0 ? b.log_evidence : strcmp(name, "kl") == 0 ? b.kl : b.ess;
    }
    return RWS_OK;
}
