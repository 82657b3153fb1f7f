/* train.c - the algorithm: one iteration of wake-sleep and its relatives.
 *
 *     next batch; for each phase of the method: forward, weigh, backward on every shard, then step the parameters
 *
 * The phases and their weights are the estimator's (estimator/); shards.c spreads a phase over ranks and threads;
 * update.c adds the gradients up and steps.
 */
#include "train/phase.h"

#include "base/clock.h"
#include "base/denormals.h"
#include "train/given.h"

#include <string.h>

rws_status rws__trainer_phase(rws_trainer *t, const rws_phase *phase, rws_key key, int n_data,
                              const float *const *fields, rws_error *err)
{
    const double         n = phase->mode == RWS_SLEEP ? (double)n_data * t->program.config.particles : n_data;
    const rws_phase      with_labels = rws__phase_with_labels(t, phase);
    const rws_phase_work w = {t, &with_labels, n_data, key, fields, 1 / n, false};
    return rws__shards_run(&w, err);
}

void rws__trainer_next_batch(rws_trainer *t)
{
    const rws_config *c = &t->program.config;
    rws_random        random = rws__random_new(rws__key_for(c->seed, t->program.iteration, RWS_KEY_DATA, 0), 0);
    const uint64_t    first = t->program.iteration * (uint64_t)c->batch;
    rws_error        *err = &t->batch_error;
    t->program.method.progress = (double)t->program.iteration / (double)c->iterations;
    const rws_status status = rws__setup_make_data(&t->program.setup, t->program.model, t->program.state, RWS_TRAIN,
                                                   first, c->batch, &random, t->batch, err);
    t->batch_status = rws__given_gather(t, status, err);
}

/* A step that the estimator makes by other means than phases, on the same sample each time if data are drawn fresh. */
static rws_status step_without_phases(rws_trainer *t, rws_error *err)
{
    rws_params *p = &t->program.setup.params;
    rws_random  random = rws__random_new(rws__key_for(t->program.config.seed, 0, RWS_KEY_DATA, 1), 0);
    RWS_TRY(rws__trainer_agree(t, t->program.method.estimator->step(&t->program.method, &random, err), err));
    rws__params_transpose(p, RWS_BIT(RWS_THETA), p->value, p->transposed);
    return RWS_OK;
}

static rws_status iterate(rws_trainer *t, rws_error *err)
{
    const rws_config    *c = &t->program.config;
    const rws_estimator *estimator = t->program.method.estimator;
    if (estimator->step) return step_without_phases(t, err);
    rws__trainer_next_batch(t);
    t->tally = (rws_tally){0};
    for (int i = 0; i < estimator->n_phases; i++) {
        const rws_phase *phase = &estimator->phases[i];
        const int        stream = phase->mode == RWS_SLEEP ? RWS_KEY_SLEEP : RWS_KEY_WAKE;
        const rws_key    key = rws__key_for(c->seed, t->program.iteration, stream, (uint32_t)i);
        RWS_TRY(rws__trainer_phase(t, phase, key, c->batch, (const float *const *)t->batch, err));
        RWS_TRY(rws__trainer_update(t, phase->steps, err));
        t->stepped = true;
    }
    if (estimator->remember) estimator->remember(&t->program.method, &t->tally);
    rws__trainer_count_impossible(t);
    if (t->tally.impossible == t->tally.n_data && !t->program.model->defaults.impossible)
        return rws_fail(err, RWS_BROKEN,
                        "Every particle of every datum is impossible under the model; the first is %s.", t->forbidden);
    return RWS_OK;
}

rws_status rws_trainer_step(rws_trainer *t, rws_error *err)
{
    RWS_TRAINER_ENTER(t, err);
    rws_error      why;
    uint64_t       steps[RWS_GROUPS];
    const double   since = rws__clock_now();
    const unsigned denormals = rws__denormals_off();
    memcpy(steps, t->steps, sizeof steps);
    const rws_status status = iterate(t, &why);
    t->stepped = false;
    rws__denormals_restore(denormals);
    t->seconds += rws__clock_now() - since;
    if (status == RWS_OK) {
        t->program.iteration++;
        return RWS_OK;
    }
    rws__shards_forget(t);
    memcpy(t->steps, steps, sizeof steps);
    if (status != RWS_BROKEN) return rws_fail(err, status, "%s", why.text);
    return rws_fail(err, status, "In iteration %llu: %.460s", (unsigned long long)t->program.iteration + 1, why.text);
}
