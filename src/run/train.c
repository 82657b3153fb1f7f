/* train.c - the algorithm: one iteration of wake-sleep and its relatives.
 *
 *     next batch; for each phase of the method: forward, weigh, backward on every shard, then step the parameters
 *
 * The phases and their weights are the estimator's (estimator/); shards.c spreads a phase over ranks and threads;
 * update.c adds the gradients up and steps.
 */
#include "run/trainer.h"

#include "base/clock.h"
#include "base/denormals.h"
#include "estimator/weights.h"
#include "run/given.h"

#include <string.h>

rws_status rws_phase_forward(const rws_phase_work *w, rws_shard *s, rws_engine *engine, int first, int end)
{
    rws_proposal   proposal;
    const float   *fields[w->t->setup.n_fields];
    const rws_pass pass = rws_phase_make_pass(w, (int)(s - w->t->shards), first, end, fields, &proposal);
    return rws_engine_forward(engine, &pass, &s->error);
}

rws_status rws_phase_pass(const rws_phase_work *w, rws_shard *s, rws_engine *engine, int first, int end, bool last)
{
    RWS_TRY(rws_phase_forward(w, s, engine, first, end));
    w->phase->weigh(&w->t->method, rws_engine_scores(engine), w->share, &s->tally);
    if (w->phase->labels) rws_weigh_given(rws_engine_scores(engine));
    return rws_shard_backward(w, s, engine, last);
}

rws_status rws_trainer_phase(rws_trainer *t, const rws_phase *phase, rws_key key, int n_data,
                             const float *const *fields, rws_error *err)
{
    const double         n = phase->mode == RWS_SLEEP ? (double)n_data * t->config.particles : n_data;
    const rws_phase      with_labels = rws_phase_with_labels(t, phase);
    const rws_phase_work w = {t, &with_labels, n_data, key, fields, 1 / n};
    RWS_TRY(rws_shards_run(&w, err));
    return phase->extend ? rws_shards_run_second(&w, err) : RWS_OK;
}

void rws_trainer_next_batch(rws_trainer *t)
{
    const rws_config *c = &t->config;
    rws_random        random = rws_random_new(rws_key_for(c->seed, t->iteration, RWS_KEY_DATA, 0), 0);
    const uint64_t    first = t->iteration * (uint64_t)c->batch;
    rws_error        *err = &t->batch_error;
    t->method.progress = (double)t->iteration / (double)c->iterations;
    const rws_status status =
        RWS_CALL_MODEL(t->model, data, err, t->state, RWS_TRAIN, first, c->batch, &random, t->batch);
    t->batch_status = rws_given_gather(t, status, err);
}

/* A step that the estimator makes by other means than phases, on the same sample each time if data are drawn fresh. */
static rws_status step_without_phases(rws_trainer *t, rws_error *err)
{
    rws_params *p = &t->setup.params;
    rws_random  random = rws_random_new(rws_key_for(t->config.seed, 0, RWS_KEY_DATA, 1), 0);
    RWS_TRY(rws_trainer_agree(t, t->method.estimator->step(&t->method, &random, err), err));
    rws_params_transpose(p, RWS_BIT(RWS_THETA), p->value, p->transposed);
    return RWS_OK;
}

static rws_status iterate(rws_trainer *t, rws_error *err)
{
    const rws_config    *c = &t->config;
    const rws_estimator *estimator = t->method.estimator;
    if (estimator->step) return step_without_phases(t, err);
    rws_trainer_next_batch(t);
    t->tally = (rws_tally){0};
    for (int i = 0; i < estimator->n_phases; i++) {
        const rws_phase *phase = &estimator->phases[i];
        const int        stream = phase->mode == RWS_SLEEP ? RWS_KEY_SLEEP : RWS_KEY_WAKE;
        const rws_key    key = rws_key_for(c->seed, t->iteration, stream, (uint32_t)i);
        RWS_TRY(rws_trainer_phase(t, phase, key, c->batch, (const float *const *)t->batch, err));
        RWS_TRY(rws_trainer_update(t, phase->steps, err));
        t->stepped = true;
    }
    if (estimator->remember) estimator->remember(&t->method, &t->tally);
    if (t->tally.impossible == t->tally.n_data && !t->model->defaults.impossible)
        return rws_fail(err, RWS_BROKEN, "Every particle of every datum is impossible under the model.");
    return RWS_OK;
}

rws_status rws_trainer_step(rws_trainer *t, rws_error *err)
{
    rws_error      why;
    uint64_t       steps[RWS_GROUPS];
    const double   since = rws_clock_now();
    const unsigned denormals = rws_denormals_off();
    memcpy(steps, t->steps, sizeof steps);
    const rws_status status = iterate(t, &why);
    t->stepped = false;
    rws_denormals_restore(denormals);
    t->seconds += rws_clock_now() - since;
    if (status == RWS_OK) {
        t->iteration++;
        return RWS_OK;
    }
    rws_shards_forget(t);
    memcpy(t->steps, steps, sizeof steps);
    if (status != RWS_BROKEN) return rws_fail(err, status, "%s", why.text);
    return rws_fail(err, status, "In iteration %llu: %.460s", (unsigned long long)t->iteration + 1, why.text);
}
