/* trainer.c - from a configuration to a trainer that is ready for its first step. */
#include "train/trainer.h"

#include "base/nearest.h"
#include "base/quote.h"
#include "store/checkpoint.h"
#include "train/given.h"

#include <glib.h>
#include <stdlib.h>
#include <string.h>

/* n zeros, aligned for vectors; NULL without memory. */
static float *vector(size_t n)
{
    float *v = n < SIZE_MAX / sizeof(float) - 64 ? aligned_alloc(64, (n * sizeof(float) / 64 + 1) * 64) : NULL;
    return v ? memset(v, 0, n * sizeof(float)) : NULL;
}

void rws_trainer_free(rws_trainer *t)
{
    if (!t) return;
    rws__pool_free(t->pool);
    for (int i = 0; i < t->n_engines; i++) rws__engine_free(t->engines[i]);
    for (int i = 0; i < t->n_shards && t->shards; i++) {
        free(t->shards[i].gradient);
        free(t->shards[i].touched);
        free(t->shards[i].rows);
    }
    rws__cut_free(t);
    rws__slices_free(t);
    rws__given_close(t);
    for (int i = 0; i < t->program.setup.n_fields; i++) {
        if (t->batch) free(t->batch[i]);
        if (t->test) free(t->test[i]);
    }
    void *vectors[] = {t->shards, t->outcomes, t->engines, t->slot[0], t->slot[1], t->direction, t->batch, t->test};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) free(vectors[i]);
    rws__folder_close(t->folder);
    rws__program_release(&t->program);
    free(t);
}

/* Whether the run has the setting, and it is not 0. */
static bool is_set(const rws_trainer *t, const char *setting)
{
    const char *value = rws__setup_given(&t->program.setup, setting);
    return value && g_ascii_strtod(value, NULL) != 0;
}

static rws_status make_metrics(rws_trainer *t, rws_error *err)
{
    bool      has_evidence = false, has_exact = false, has_truth = false;
    const int most = RWS_MAX_METRICS - 6 - (t->program.setup.n_truths > 0); /* the library adds as many */
    for (int i = 0; t->program.model->metrics && t->program.model->metrics[i].name; i++) {
        if (t->n_metrics == most)
            return rws_fail(err, RWS_BAD_INPUT, "Model %s has more than %d metrics; \"%s\" is one too many.",
                            t->program.model->name, t->n_metrics, t->program.model->metrics[i].name);
        t->metric_names[t->n_metrics++] = t->program.model->metrics[i].name;
        has_evidence |= strcmp(t->program.model->metrics[i].name, "log_evidence") == 0;
        has_exact |= strcmp(t->program.model->metrics[i].name, "exact") == 0 && t->program.model->metrics[i].measure;
        has_truth |= strcmp(t->program.model->metrics[i].name, "truth") == 0;
    }
    t->n_model_metrics = t->n_metrics;
    if (t->program.setup.n_truths && has_exact && !has_truth) t->metric_names[t->n_metrics++] = "truth";
    if (t->program.model->defaults.grad_std) t->metric_names[t->n_metrics++] = "grad_std";
    if (t->grad_snr) t->metric_names[t->n_metrics++] = "snr_theta";
    if (t->grad_snr) t->metric_names[t->n_metrics++] = "snr_phi";
    if (!has_evidence) t->metric_names[t->n_metrics++] = "log_evidence";
    if (!has_evidence) t->metric_names[t->n_metrics++] = "kl";
    t->metric_names[t->n_metrics++] = "ess";
    return RWS_OK;
}

/* Refuses a metric of the model whose name stands for another number in the results of a run. */
static rws_status check_metric_names(const rws_trainer *t, rws_error *err)
{
    static const char *const keys[] = {"iteration", "seconds", "final", "impossible",
                                       "log_evidence_error"}; /* of --json */
    for (int i = 0; i < t->n_model_metrics; i++) {
        bool taken = false;
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) taken |= strcmp(t->metric_names[i], keys[k]) == 0;
        for (int k = t->n_model_metrics; k < t->n_metrics; k++)
            taken |= strcmp(t->metric_names[i], t->metric_names[k]) == 0;
        if (taken)
            return rws_fail(err, RWS_BAD_INPUT,
                            "Metric \"%s\" of model %s has the name of a number that the library itself measures.",
                            t->metric_names[i], t->program.model->name);
    }
    return RWS_OK;
}

/* Bit g: group g has parameters. */
static unsigned groups_of(const rws_params *p)
{
    unsigned groups = 0;
    for (int i = 0; i < p->n; i++) groups |= 1u << p->list[i]->group;
    return groups;
}

static bool make_data(rws_trainer *t)
{
    const size_t n_fields = (size_t)t->program.setup.n_fields;
    t->batch = calloc(n_fields, sizeof *t->batch);
    t->test = calloc(n_fields, sizeof *t->test);
    for (size_t f = 0; f < n_fields && t->batch && t->test; f++) {
        const size_t dim = (size_t)t->program.setup.fields[f].dim;
        t->batch[f] = vector((size_t)t->program.config.batch * dim);
        t->test[f] = vector((size_t)t->program.n_test * dim);
        if (!t->batch[f] || !t->test[f]) return false;
    }
    return t->batch && t->test;
}

/* Shards of other ranks have no memory; only shard 0 has, for sums. */
static bool make_shards(rws_trainer *t)
{
    const rws_params *p = &t->program.setup.params;
    t->shards = calloc((size_t)t->n_shards, sizeof *t->shards);
    if (!rws__shards_make_outcomes(t)) return false;
    for (int i = 0; i < t->n_shards && t->shards; i++) {
        if (i && (i < t->ranks.first || i >= t->ranks.end)) continue;
        t->shards[i].gradient = vector(p->size);
        t->shards[i].touched = calloc((size_t)p->n + 1, sizeof *t->shards[i].touched);
        if (!t->shards[i].gradient || !t->shards[i].touched) return false;
    }
    return t->shards != NULL;
}

static rws_status make_vectors(rws_trainer *t, rws_error *err)
{
    rws_params *p = &t->program.setup.params;
    bool        memory = (t->direction = vector(p->size)) != NULL;
    for (int i = 0; i < t->optimiser->n_slots; i++) memory &= (t->slot[i] = vector(p->size)) != NULL;
    if (!memory || !make_data(t) || !make_shards(t))
        return rws_fail(err, RWS_NO_MEMORY,
                        "There is no memory for %d shards of %zu parameters, a batch of %d and %d test data.",
                        t->n_shards, p->size, t->program.config.batch, t->program.n_test);
    RWS_TRY(rws__cut_new(t, err));
    rws__optimiser_reset(t->optimiser, p->size, t->slot);
    return rws__slices_new(t, err);
}

static rws_engine *engine_new(rws_trainer *t)
{
    rws_engine *e = rws__program_engine_new(&t->program);
    if (e) rws__engine_watch(e, rws__trainer_should_stop, t);
    return e;
}

static rws_status make_engines(rws_trainer *t, rws_error *err)
{
    const rws_config *c = &t->program.config;
    t->engine_per_shard = t->defers || c->particle_shards > 1;
    for (int i = 0; i < t->program.method.estimator->n_phases; i++)
        t->engine_per_shard |= t->program.method.estimator->phases[i].extend != NULL;
    const int own = t->ranks.end - t->ranks.first, n = t->engine_per_shard && own > c->threads ? own : c->threads;
    t->engines = calloc((size_t)n, sizeof *t->engines);
    while (t->engines && t->n_engines < n && (t->engines[t->n_engines] = engine_new(t))) t->n_engines++;
    return t->n_engines == n ? rws__pool_new(c->threads, &t->pool, err) : rws_no_memory(err, "engines");
}

static rws_status choose_optimiser(rws_trainer *t, rws_error *err)
{
    const rws_config *c = &t->program.config;
    rws_name_list     names = {0};
    rws_nearest       near = rws__nearest_to(c->optimiser);
    t->optimiser = rws__optimiser_find(c->optimiser);
    if (!t->optimiser) {
        for (int i = 0; rws_optimisers[i]; i++) {
            rws__name_list_add(&names, rws_optimisers[i]->name);
            rws__nearest_try(&near, rws_optimisers[i]->name);
        }
        return rws_fail(err, RWS_BAD_INPUT, "There is no optimiser \"%s\"%s; the optimisers are %s.",
                        rws__quote_short(c->optimiser).text, rws__nearest_hint(&near).text, names.text);
    }
    t->optim = t->optimiser->defaults;
    t->optim.l2 = c->l2;
    RWS_TRY(rws__optim_config_check(&t->optim, err));
    return rws__schedule_parse(c->lr, &t->schedule, err);
}

/* An automatic guide starts with data of mean 0 and standard deviation 1. */
static rws_status scale_guide(rws_trainer *t, rws_error *err)
{
    rws_program *p = &t->program;
    rws_random   random = rws__random_new(rws__key_for(p->config.seed, 0, RWS_KEY_INIT, RWS_INIT_GUIDE_SCALE), 0);
    if (!p->guide) return RWS_OK;
    RWS_TRY(rws__setup_make_data(&p->setup, p->model, p->state, RWS_TRAIN, 0, p->config.batch, &random, t->batch, err));
    rws__guide_scale(p->guide, p->config.batch, (const float *const *)t->batch);
    rws__program_changed(p);
    return RWS_OK;
}

static rws_status build(rws_trainer *t, const rws_config *config, const rws_recorded *recorded, const rws_model *model,
                        rws_error *err)
{
    const rws_config *c = &t->program.config;
    t->use = (pthread_mutex_t)PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    RWS_TRY(rws__program_choose(&t->program, config, recorded, model, err));
    RWS_TRY(choose_optimiser(t, err));
    t->n_shards = c->shards * c->particle_shards;
    t->ranks = rws__ranks_make(rws__comm_world(), t->n_shards);
    RWS_TRY(rws__program_set_up(&t->program, NULL, 0, err));
    if (t->program.method.siblings && c->particle_shards > 1)
        return rws_fail(
            err, RWS_BAD_INPUT,
            "Setting baseline=siblings needs all particles of a datum in one shard: `particle_shards` is 1 then.");
    if (rws__setup_summed(&t->program.setup, NULL) && c->particle_shards > 1)
        return rws_fail(
            err, RWS_BAD_INPUT,
            "Site \"%s\" is summed, which needs all particles of a datum in one shard: `particle_shards` is 1 then.",
            rws__setup_summed(&t->program.setup, NULL));
    RWS_TRY(rws__schedule_cover(&t->schedule, groups_of(&t->program.setup.params), c->lr, err));
    t->std_ref = is_set(t, "std_ref");
    const char *draws = rws__setup_given(&t->program.setup, "grad_snr");
    t->grad_snr = draws ? (int)g_ascii_strtod(draws, NULL) : 0;
    RWS_TRY(rws__given_open(t, err));
    RWS_TRY(make_vectors(t, err));
    RWS_TRY(scale_guide(t, err));
    RWS_TRY(make_engines(t, err));
    RWS_TRY(rws__program_make_test(&t->program, t->program.n_test, t->test, err));
    RWS_TRY(make_metrics(t, err));
    return check_metric_names(t, err);
}

rws_status rws__trainer_enter(rws_trainer *t, rws_error *err)
{
    RWS_NEED(t, err);
    if (pthread_mutex_trylock(&t->use) == 0) return RWS_OK;
    return rws_fail(err, RWS_BAD_INPUT,
                    "Another thread is using this trainer; a trainer belongs to one thread at a time.");
}

void rws__trainer_leave(rws_trainer **t)
{
    pthread_mutex_unlock(&(*t)->use);
}

rws_status rws__trainer_open(const rws_config *config, const rws_recorded *recorded, const rws_model *model,
                             rws_trainer **out, rws_error *err)
{
    RWS_NEED(out, err);
    rws_trainer *t = *out = calloc(1, sizeof *t);
    rws_status   status = t ? build(t, config, recorded, model, err) : rws_no_memory(err, "a trainer");
    status = rws__comm_agree(rws__comm_world(), status, err);
    if (status == RWS_OK) status = rws__trainer_meet(t, err);
    if (status == RWS_OK) status = rws__slices_map(t, err);
    if (status == RWS_OK) return RWS_OK;
    rws_trainer_free(t);
    *out = NULL;
    return status;
}

rws_status rws_trainer_new(const rws_config *config, const rws_model *model, rws_trainer **out, rws_error *err)
{
    return rws__trainer_open(config, NULL, model, out, err);
}

const rws_config *rws_trainer_config(const rws_trainer *t)
{
    return t ? &t->program.config : NULL;
}

const rws_model *rws_trainer_model(const rws_trainer *t)
{
    return t ? t->program.model : NULL;
}

uint64_t rws_trainer_iteration(const rws_trainer *t)
{
    return t ? t->program.iteration : 0;
}

double rws_trainer_seconds(const rws_trainer *t)
{
    return t ? t->seconds : 0;
}

int rws_trainer_n_params(const rws_trainer *t)
{
    return t ? t->program.setup.params.n : 0;
}

size_t rws_trainer_size(const rws_trainer *t)
{
    return t ? t->program.setup.params.size : 0;
}

bool rws_trainer_param(rws_trainer *t, int i, rws_param_view *out)
{
    return t && rws__program_param(&t->program, i, out);
}

bool rws_trainer_find(rws_trainer *t, const char *name, rws_param_view *out)
{
    for (int i = 0; name && rws_trainer_param(t, i, out); i++)
        if (strcmp(out->name, name) == 0) return true;
    return false;
}

void rws__trainer_count_rows(rws_trainer *t, bool on)
{
    for (int i = 0; i < t->n_engines; i++) rws__engine_count_rows(t->engines[i], on);
}

rws_engine_stats rws__trainer_take_stats(rws_trainer *t)
{
    rws_engine_stats total = {0};
    for (int i = 0; i < t->n_engines; i++) {
        const rws_engine_stats s = rws__engine_take_stats(t->engines[i]);
        total.rows += s.rows;
        total.needed += s.needed;
        total.history += s.history;
        total.nodes += s.nodes;
        total.paths += s.paths;
        total.operations += s.operations;
        total.ended += s.ended;
        total.ended_clock += s.ended_clock;
        total.resampled += s.resampled;
        total.particles += s.particles;
        total.calls += s.calls;
        total.flops += s.flops;
    }
    total.flops += t->flops;
    t->flops = 0;
    return total;
}

uint64_t rws__trainer_allocations(const rws_trainer *t)
{
    uint64_t total = 0;
    for (int i = 0; i < t->n_engines; i++) total += rws__engine_allocations(t->engines[i]);
    return total;
}

rws_run_state rws__trainer_state_of(rws_trainer *t)
{
    rws_program *p = &t->program;
    return (rws_run_state){.config = &p->config,
                           .settings = p->setup.given,
                           .n_settings = p->setup.n_given,
                           .model = p->model->name,
                           .object = p->library ? rws__model_object(p->library)->fingerprint : NULL,
                           .params = &p->setup.params,
                           .iteration = &p->iteration,
                           .memory = p->method.memory,
                           .optimiser = t->optimiser,
                           .slot = {t->slot[0], t->slot[1]},
                           .steps = t->steps,
                           .seconds = &t->seconds,
                           .data_hash = {t->data_hash[0], t->data_hash[1]}};
}

void rws_trainer_changed(rws_trainer *t)
{
    if (t) rws__program_changed(&t->program);
}
