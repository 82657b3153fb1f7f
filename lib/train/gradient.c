/* gradient.c - the gradient of an iteration without its step: for metrics of gradients, and for callers. */
#include "train/trainer.h"

#include "base/denormals.h"

#include <string.h>

static rws_status add_phases(rws_trainer *t, rws_split split, uint64_t draw, rws_error *err)
{
    const rws_config    *c = &t->program.config;
    const rws_estimator *estimator = t->program.method.estimator;
    const int            n = split == RWS_TEST ? t->program.n_test : c->batch;
    float *const        *fields = split == RWS_TEST ? t->test : t->batch;
    t->program.method.progress = (double)t->program.iteration / (double)c->iterations;
    t->batch_status = RWS_OK;
    if (split == RWS_TRAIN) rws__trainer_next_batch(t);
    for (int i = 0; i < estimator->n_phases; i++) {
        const rws_key key =
            rws__key_for(c->seed, t->program.iteration, RWS_KEY_METRIC, (uint32_t)(2 * draw) + (uint32_t)i);
        RWS_TRY(rws__trainer_phase(t, &estimator->phases[i], key, n, (const float *const *)fields, err));
        RWS_TRY(rws__trainer_sum(t, ~0u, err));
    }
    return RWS_OK;
}

rws_status rws_trainer_gradient(rws_trainer *t, rws_split split, uint64_t draw, float *gradient, size_t size,
                                rws_error *err)
{
    RWS_TRAINER_ENTER(t, err);
    RWS_NEED(gradient, err);
    if (size != t->program.setup.params.size)
        return rws_fail(err, RWS_BAD_INPUT, "The gradient has %zu numbers, not %zu.", t->program.setup.params.size,
                        size);
    const unsigned   denormals = rws__denormals_off();
    const rws_status status = add_phases(t, split, draw, err);
    rws__denormals_restore(denormals);
    memcpy(gradient, t->shards[0].gradient, size * sizeof(float));
    rws__shards_forget(t);
    return status;
}

static bool is_zero(const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (x[i] != 0) return false;
    return true;
}

/* Every optimiser's memory of a number whose gradient has always been zero has a zero in it. */
const char *rws_trainer_unlearned(const rws_trainer *t)
{
    if (!t) return NULL;
    const rws_params *p = &t->program.setup.params;
    if (t->ranks.comm) return NULL; /* each rank has the memory of its own slices only */
    for (int i = 0; i < p->n; i++) {
        const rws_param *param = p->list[i];
        if ((param->group != RWS_THETA && param->group != RWS_PHI) || t->steps[param->group] == 0 || param->unused)
            continue;
        for (int k = 0; k < t->optimiser->n_slots; k++)
            if (is_zero(t->slot[k] + param->offset, rws__param_size(param))) return param->name;
    }
    return NULL;
}

const char *rws_trainer_unguided(const rws_trainer *t)
{
    return t ? rws__guide_unknown(t->program.guide) : NULL;
}
