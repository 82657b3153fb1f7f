/* trainer.c - from a configuration to a trainer that is ready for its first step. */
#include "run/trainer.h"

#include "tensor/gemm.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static float *vector(size_t n)
{
    float *v = aligned_alloc(64, (n * sizeof(float) / 64 + 1) * 64);
    RWS_CHECK(v && "memory for a run");
    memset(v, 0, n * sizeof(float));
    return v;
}

void rws_trainer_free(rws_trainer *t)
{
    if (!t) return;
    rws_pool_free(t->pool);
    for (int i = 0; i < t->n_engines; i++) rws_engine_free(t->engines[i]);
    for (int i = 0; i < t->config.shards && t->shards; i++) {
        free(t->shards[i].gradient);
        free(t->shards[i].touched);
    }
    rws_trainer_uncut(t);
    for (int i = 0; i < RWS_FIELDS; i++) {
        free(t->batch[i]);
        free(t->test[i]);
    }
    void *vectors[] = {t->shards, t->engines, t->slot[0], t->slot[1], t->direction};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) free(vectors[i]);
    if (t->state && t->model->release) t->model->release(t->state);
    rws_setup_release(&t->setup);
    if (t->library) dlclose(t->library);
    free(t);
}

#define DEFAULT(field, fallback) \
    if (!c->field) c->field = d->field ? d->field : (fallback)

static void fill_defaults(rws_config *c, const rws_defaults *d)
{
    DEFAULT(batch, 100);
    DEFAULT(particles, 10);
    DEFAULT(shards, 4);
    DEFAULT(n_test, 100);
    if (!c->eval_particles) c->eval_particles = c->particles;
    DEFAULT(optimiser, "adam");
    DEFAULT(lr, "1e-3");
    if (!c->iterations) c->iterations = d->iterations ? (uint64_t)d->iterations : 10000;
    if (!c->eval_every) c->eval_every = d->eval_every ? (uint64_t)d->eval_every : (c->iterations + 19) / 20;
    if (!c->threads) c->threads = 1;
}

static rws_status check_range(const char *option, double x, double least, double most, rws_error *err)
{
    if (x >= least && x <= most) return RWS_OK;
    return rws_fail(err, RWS_BAD_INPUT, "%s must be between %.0f and %.0f, not %.0f.", option, least, most, x);
}

static rws_status check_config(const rws_config *c, const rws_estimator *e, rws_error *err)
{
    RWS_TRY(check_range("--particles", c->particles, 1, 10000000, err));
    RWS_TRY(check_range("--eval-particles", c->eval_particles, 1, 10000000, err));
    RWS_TRY(check_range("--batch", c->batch, 1, 1000000, err));
    RWS_TRY(check_range("--shards", c->shards, 1, 1024, err));
    RWS_TRY(check_range("--threads", c->threads, 1, 1024, err));
    if ((double)c->particles * c->batch > 1e9)
        return rws_fail(err, RWS_BAD_INPUT, "--particles times --batch must be at most 1000000000, not %.0f.",
                        (double)c->particles * c->batch);
    if (c->particles < e->min_particles)
        return rws_fail(err, RWS_BAD_INPUT,
                        "Method %s needs at least %d particles (it compares each with the others); with "
                        "one use reinforce.",
                        e->name, e->min_particles);
    return RWS_OK;
}

static rws_status make_metrics(rws_trainer *t)
{
    bool has_evidence = false;
    for (int i = 0; t->model->metrics && t->model->metrics[i].name; i++) {
        RWS_CHECK(t->n_metrics < RWS_METRICS - 4);
        t->metric_names[t->n_metrics++] = t->model->metrics[i].name;
        has_evidence |= strcmp(t->model->metrics[i].name, "log_evidence") == 0;
    }
    t->n_model_metrics = t->n_metrics;
    if (t->model->defaults.grad_std) t->metric_names[t->n_metrics++] = "grad_std";
    if (!has_evidence) t->metric_names[t->n_metrics++] = "log_evidence";
    if (!has_evidence) t->metric_names[t->n_metrics++] = "kl";
    t->metric_names[t->n_metrics++] = "ess";
    return RWS_OK;
}

/* Bit g: group g has parameters. */
static unsigned groups_of(const rws_params *p)
{
    unsigned groups = 0;
    for (int i = 0; i < p->n; i++) groups |= 1u << p->list[i]->group;
    return groups;
}

static void make_vectors(rws_trainer *t)
{
    rws_params *p = &t->setup.params;
    rws_config *c = &t->config;
    rws_params_pack(p);
    t->direction = vector(p->size);
    for (int i = 0; i < t->optimiser->n_slots; i++) t->slot[i] = vector(p->size);
    rws_optimiser_reset(t->optimiser, p->size, t->slot);
    for (int f = 0; f < t->setup.n_fields; f++) {
        t->batch[f] = vector((size_t)c->batch * (size_t)t->setup.fields[f].dim);
        t->test[f] = vector((size_t)c->n_test * (size_t)t->setup.fields[f].dim);
    }
    t->shards = calloc((size_t)c->shards, sizeof *t->shards);
    RWS_CHECK(t->shards);
    for (int i = 0; i < c->shards; i++) {
        t->shards[i].gradient = vector(p->size);
        t->shards[i].touched = calloc((size_t)p->n + 1, sizeof *t->shards[i].touched);
        RWS_CHECK(t->shards[i].touched);
    }
    rws_trainer_cut(t);
}

static void make_engines(rws_trainer *t)
{
    const rws_config *c = &t->config;
    t->engine_per_shard = t->puts_off;
    for (int i = 0; i < t->method.estimator->n_phases; i++)
        t->engine_per_shard |= t->method.estimator->phases[i].second != NULL;
    const int n = t->engine_per_shard && c->shards > c->threads ? c->shards : c->threads;
    t->engines = calloc((size_t)n, sizeof *t->engines);
    RWS_CHECK(t->engines);
    while (t->n_engines < n)
        t->engines[t->n_engines++] = rws_engine_new(&t->setup.params, t->setup.fields, t->setup.n_fields);
    t->pool = rws_pool_new(c->threads);
}

static rws_status build(rws_trainer *t, rws_error *err)
{
    rws_config *c = &t->config;
    RWS_TRY(rws_gemm_init(err));
    if (!t->model) RWS_TRY(rws_trainer_find_model(t, c->model, err));
    fill_defaults(c, &t->model->defaults);
    const rws_estimator *e = rws_estimator_find(c->method);
    if (!e) return rws_fail(err, RWS_BAD_INPUT, "There is no method \"%s\"; `rws list` shows them.", c->method);
    RWS_TRY(check_config(c, e, err));
    t->optimiser = rws_optimiser_find(c->optimiser);
    if (!t->optimiser)
        return rws_fail(err, RWS_BAD_INPUT, "There is no optimiser \"%s\"; `rws list` shows them.", c->optimiser);
    t->optim = t->optimiser->defaults;
    t->optim.l2 = c->l2;
    RWS_TRY(rws_optim_config_check(&t->optim, err));
    RWS_TRY(rws_schedule_parse(c->lr, &t->schedule, err));
    RWS_TRY(rws_trainer_settle(t, e, err));

    t->setup.seed = c->seed;
    rws_random random = rws_random_new(rws_key_for(c->seed, 0, RWS_KEY_INIT, 1), 0);
    RWS_TRY(t->model->setup(&t->setup, &random, &t->state, err));
    RWS_TRY(rws_method_init(&t->method, e, t->model, t->state, &t->setup, err));
    if (t->setup.status != RWS_OK) {
        *err = t->setup.error;
        return t->setup.status;
    }
    if (t->setup.n_fields == 0)
        return rws_fail(err, RWS_BAD_INPUT, "Model %s declares no data (rws_setup_field).", t->model->name);
    RWS_TRY(rws_schedule_cover(&t->schedule, groups_of(&t->setup.params), c->lr, err));
    const char *std_ref = rws_setup_given(&t->setup, "std_ref");
    t->std_ref = std_ref && strtod(std_ref, NULL) != 0;
    make_vectors(t);
    make_engines(t);
    random = rws_random_new(rws_key_for(0, 0, RWS_KEY_TEST, 0), 0);
    if (!c->asking) RWS_TRY(t->model->data(t->state, RWS_TEST, 0, c->n_test, &random, t->test, err));
    return make_metrics(t);
}

rws_status rws_trainer_new(const rws_config *config, rws_trainer **out, rws_error *err)
{
    return rws_trainer_new_with(config, NULL, out, err);
}

rws_status rws_trainer_new_with(const rws_config *config, const rws_model *model, rws_trainer **out, rws_error *err)
{
    rws_trainer *t = calloc(1, sizeof *t);
    RWS_CHECK(t && "memory for a run");
    t->config = *config;
    t->model = model;
    const rws_status status = build(t, err);
    if (status != RWS_OK) {
        rws_trainer_free(t);
        t = NULL;
    }
    *out = t;
    return status;
}

const rws_config *rws_trainer_config(const rws_trainer *t)
{
    return &t->config;
}

const rws_model *rws_trainer_model(const rws_trainer *t)
{
    return t->model;
}

const rws_estimator *rws_trainer_estimator(const rws_trainer *t)
{
    return t->method.estimator;
}

uint64_t rws_trainer_iteration(const rws_trainer *t)
{
    return t->iteration;
}

const rws_given *rws_trainer_settings(const rws_trainer *t, int *n)
{
    *n = t->setup.n_given;
    return t->setup.given;
}

int rws_trainer_n_metrics(const rws_trainer *t)
{
    return t->n_metrics;
}

const char *rws_trainer_metric_name(const rws_trainer *t, int i)
{
    return t->metric_names[i];
}

rws_engine_stats rws_trainer_take_stats(rws_trainer *t)
{
    rws_engine_stats total = {0};
    for (int i = 0; i < t->n_engines; i++) {
        const rws_engine_stats s = rws_engine_take_stats(t->engines[i]);
        total.rows += s.rows;
        total.particles += s.particles;
        total.calls += s.calls;
        total.flops += s.flops;
    }
    total.flops += t->flops;
    t->flops = 0;
    return total;
}

uint64_t rws_trainer_allocations(const rws_trainer *t)
{
    uint64_t total = 0;
    for (int i = 0; i < t->n_engines; i++) total += rws_engine_allocations(t->engines[i]);
    return total;
}

rws_trainer_state rws_trainer_state_of(rws_trainer *t)
{
    return (rws_trainer_state){&t->setup.params, t->optimiser,  {t->slot[0], t->slot[1]},
                               t->steps,         &t->iteration, t->method.memory};
}

void rws_trainer_state_loaded(rws_trainer *t)
{
    rws_params_transpose(&t->setup.params, ~0u, t->setup.params.value, t->setup.params.transposed);
}
