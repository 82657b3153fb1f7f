/* train.c - the algorithm. */
#include "run/trainer.h"

#include <string.h>

/* Of every datum's coefficients, what the gradient may lack: less than single precision loses. */
#define NEGLIGIBLE 1e-6

typedef struct {
    rws_trainer        *t;
    const rws_phase    *phase;
    int                 n_data;
    rws_key             key;
    const float *const *fields;
    const float        *direction; /* of the second round */
} phase_job;

static double share_of(const phase_job *j)
{
    return 1.0 / (j->phase->mode == RWS_SLEEP ? (double)j->n_data * j->t->config.particles : j->n_data);
}

/* Shard i of n has data [i B / n, (i + 1) B / n), which may be none. */
static bool range_of(const phase_job *j, int i, int *first, int *end)
{
    const int n = j->t->config.shards;
    *first = (int)((int64_t)j->n_data * i / n);
    *end = (int)((int64_t)j->n_data * (i + 1) / n);
    return *first < *end;
}

/* Data of one pass: as many as the model says fit, at least one; all of them if a second round is to find them. */
static int data_at_once(const phase_job *j)
{
    const int limit = j->t->model->defaults.at_once, K = j->t->config.particles;
    if (!limit || j->phase->second) return j->n_data;
    return limit > K ? limit / K : 1;
}

/* Forward, weigh, backward for data first … end - 1. Products of weights can wait if nothing else comes before they are
 * needed. */
static rws_status pass_phase(const phase_job *j, rws_engine *engine, rws_shard *s, int first, int end, bool wait)
{
    rws_trainer *t = j->t;
    const bool   sleep = j->phase->mode == RWS_SLEEP;
    const float *fields[RWS_FIELDS];
    for (int f = 0; f < t->setup.n_fields && !sleep; f++)
        fields[f] = j->fields[f] + (size_t)first * (size_t)t->setup.fields[f].dim;
    const rws_method *m = &t->method;
    const rws_pass    pass = {
           .program = j->phase->program ? j->phase->program : rws_programs,
           .context = &t->method,
           .mode = j->phase->mode,
           .proposal = j->phase->proposal,
           .delta = m->set.delta,
           .wrong_delta = m->set.dww_ref_bug,
           .temperature = m->set.tau_start + (m->set.tau_end - m->set.tau_start) * m->progress,
           .relaxation = m->set.concrete_prior,
           .pathwise = j->phase->pathwise,
           .scalar = t->config.scalar,
           .negligible = t->config.scalar ? 0 : NEGLIGIBLE,
           .groups = j->phase->gradients | (j->phase->second ? RWS_BIT(RWS_CONTROL) : 0),
           .key = j->key,
           .iteration = t->iteration,
           .first_datum = sleep ? 0 : (uint32_t)first,
           .first_particle = sleep ? (uint32_t)(first * t->config.particles) : 0,
           .n_data = sleep ? 1 : end - first,
           .n_particles = sleep ? (end - first) * t->config.particles : t->config.particles,
           .fields = fields,
    };
    RWS_TRY(rws_engine_forward(engine, &pass, &s->error));
    j->phase->weigh(m, rws_engine_scores(engine), share_of(j), &s->tally);
    if (wait) {
        s->products = rws_engine_backward_most(engine, j->phase->gradients, s->gradient, s->touched);
        return RWS_OK;
    }
    rws_engine_backward(engine, j->phase->gradients, s->gradient);
    memset(s->touched, 1, (size_t)t->setup.params.n * sizeof *s->touched);
    return RWS_OK;
}

static rws_shard *shard_begin(const phase_job *j, int i)
{
    rws_shard *s = &j->t->shards[i];
    rws_flush_denormals();
    s->status = RWS_OK;
    s->tally = (rws_tally){0};
    return s;
}

static void shard_phase(void *context, int i, int worker)
{
    const phase_job *j = context;
    rws_trainer     *t = j->t;
    rws_shard       *s = shard_begin(j, i);
    const int        at_once = data_at_once(j);
    const bool       last = t->puts_off && !j->phase->second && !(j->phase->gradients & ~j->phase->steps);
    int              first, end;
    if (!range_of(j, i, &first, &end)) return;
    for (int next; first < end && s->status == RWS_OK; first = next) {
        next = end - first < at_once ? end : first + at_once;
        s->status = pass_phase(j, t->engines[t->engine_per_shard ? i : worker], s, first, next, last && next == end);
    }
}

static void shard_second(void *context, int i, int worker)
{
    (void)worker;
    const phase_job *j = context;
    rws_shard       *s = shard_begin(j, i);
    int              first, end;
    if (!range_of(j, i, &first, &end)) return; /* its engine holds an older pass */
    s->status = j->phase->second(&j->t->method, j->t->engines[i], share_of(j), j->direction, s->gradient, &s->error);
    memset(s->touched, 1, (size_t)j->t->setup.params.n * sizeof *s->touched);
}

/* Runs a job on every shard, each of which adds to its own gradient, and tallies. */
static rws_status run_shards(phase_job *j, rws_job *job, rws_error *err)
{
    rws_trainer *t = j->t;
    rws_pool_run(t->pool, t->config.shards, job, j);
    for (int i = 0; i < t->config.shards; i++) {
        const rws_shard *s = &t->shards[i];
        if (s->status != RWS_OK) {
            if (s->status == RWS_BROKEN)
                return rws_fail(err, s->status, "In iteration %llu: %s", (unsigned long long)t->iteration + 1,
                                s->error.text);
            *err = s->error;
            return s->status;
        }
        t->tally.log_evidence += s->tally.log_evidence;
        t->tally.ess += s->tally.ess;
        t->tally.signal += s->tally.signal;
        t->tally.signal2 += s->tally.signal2;
        t->tally.n_data += s->tally.n_data;
        t->tally.impossible += s->tally.impossible;
    }
    return RWS_OK;
}

rws_status rws_trainer_phase(rws_trainer *t, int index, rws_key key, int n_data, const float *const *fields,
                             rws_error *err)
{
    phase_job j = {t, &t->method.estimator->phases[index], n_data, key, fields, t->direction};
    RWS_TRY(run_shards(&j, shard_phase, err));
    if (!j.phase->second) return RWS_OK;

    /* the direction in which the second round differentiates: 2 g_phi / D_phi */
    const size_t first = t->setup.params.first[RWS_PHI], end = t->setup.params.first[RWS_PHI + 1];
    rws_trainer_sum(t, RWS_BIT(RWS_PHI));
    memset(t->direction, 0, t->setup.params.size * sizeof(float));
    for (size_t k = first; k < end; k++)
        t->direction[k] = t->shards[0].gradient[k] * (float)(2.0 / (double)(end - first));
    return run_shards(&j, shard_second, err);
}

/* One that the model does by itself, on the same sample every time if its data are drawn. */
static rws_status exact_step(rws_trainer *t, rws_error *err)
{
    rws_params *p = &t->setup.params;
    rws_random  random = rws_random_new(rws_key_for(t->config.seed, 0, RWS_KEY_DATA, 1), 0);
    RWS_TRY(t->model->em(t->state, t->method.set.em_data, &random, err));
    rws_params_transpose(p, RWS_BIT(RWS_THETA), p->value, p->transposed);
    t->iteration++;
    return RWS_OK;
}

/* One iteration of training. */
rws_status rws_trainer_step(rws_trainer *t, rws_error *err)
{
    rws_flush_denormals();
    const rws_config    *c = &t->config;
    const rws_estimator *estimator = t->method.estimator;
    if (estimator->n_phases == 0) return exact_step(t, err);
    rws_random random = rws_random_new(rws_key_for(c->seed, t->iteration, RWS_KEY_DATA, 0), 0);
    RWS_TRY(t->model->data(t->state, RWS_TRAIN, t->iteration * (uint64_t)c->batch, c->batch, &random, t->batch, err));

    t->tally = (rws_tally){0};
    t->method.progress = (double)t->iteration / (double)c->iterations;
    for (int i = 0; i < estimator->n_phases; i++) {
        const rws_phase *phase = &estimator->phases[i];
        const rws_key    key =
            rws_key_for(c->seed, t->iteration, phase->mode == RWS_SLEEP ? RWS_KEY_SLEEP : RWS_KEY_WAKE, (uint32_t)i);
        RWS_TRY(rws_trainer_phase(t, i, key, c->batch, (const float *const *)t->batch, err));
        RWS_TRY(rws_trainer_move(t, phase->steps, err));
    }
    if (estimator->remember) estimator->remember(&t->method, &t->tally);
    if (t->tally.impossible == t->tally.n_data && !t->model->defaults.impossible)
        return rws_fail(err, RWS_BROKEN,
                        "In iteration %llu every particle of every datum is impossible under the model.",
                        (unsigned long long)t->iteration + 1);
    t->iteration++;
    return RWS_OK;
}

/* The same without stepping. */
rws_status rws_trainer_gradient(rws_trainer *t, rws_split split, uint64_t draw, float *gradient, rws_error *err)
{
    rws_flush_denormals();
    const rws_config *c = &t->config;
    const int         n = split == RWS_TEST ? c->n_test : c->batch;
    t->method.progress = (double)t->iteration / (double)c->iterations;
    if (split == RWS_TRAIN) {
        rws_random random = rws_random_new(rws_key_for(c->seed, t->iteration, RWS_KEY_DATA, 0), 0);
        RWS_TRY(t->model->data(t->state, split, t->iteration * (uint64_t)c->batch, n, &random, t->batch, err));
    }
    const size_t size = t->setup.params.size;
    rws_status   status = RWS_OK;
    for (int i = 0; i < t->method.estimator->n_phases && status == RWS_OK; i++) {
        const rws_key key = rws_key_for(c->seed, t->iteration, RWS_KEY_METRIC, (uint32_t)(2 * draw) + (uint32_t)i);
        status = rws_trainer_phase(t, i, key, n, (const float *const *)(split == RWS_TEST ? t->test : t->batch), err);
        rws_trainer_sum(t, ~0u);
    }
    memcpy(gradient, t->shards[0].gradient, size * sizeof(float));
    memset(t->shards[0].gradient, 0, size * sizeof(float));
    memset(t->shards[0].touched, 0, (size_t)t->setup.params.n * sizeof(bool));
    return status;
}
