/* trainer.c - from a configuration to a trainer that is ready for its first step. */
#include "run/trainer.h"

#include "base/quote.h"
#include "run/checkpoint.h"
#include "run/given.h"
#include "run/plugin.h"
#include "tensor/blas.h"
#include "tensor/gemm.h"

#include <glib.h>
#include <limits.h>
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
    rws_pool_free(t->pool);
    rws_blas_unclaim(t->n_claimed);
    for (int i = 0; i < t->n_engines; i++) rws_engine_free(t->engines[i]);
    for (int i = 0; i < t->n_shards && t->shards; i++) {
        free(t->shards[i].gradient);
        free(t->shards[i].touched);
        free(t->shards[i].rows);
    }
    rws_cut_free(t);
    rws_slices_free(t);
    rws_given_close(t);
    for (int i = 0; i < t->setup.n_fields; i++) {
        if (t->batch) free(t->batch[i]);
        if (t->test) free(t->test[i]);
    }
    void *vectors[] = {t->shards, t->outcomes, t->engines, t->slot[0], t->slot[1], t->direction, t->batch, t->test};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) free(vectors[i]);
    if (t->state && t->model->release) t->model->release(t->state);
    rws_setup_release(&t->setup);
    rws_folder_close(t->folder);
    rws_model_unload(t->library);
    free(t);
}

#define DEFAULT(field, fallback) \
    if (!c->field) c->field = d->field ? d->field : (fallback)

static void fill_defaults(rws_config *c, const rws_defaults *d)
{
    if (!c->method) c->method = "ww";
    DEFAULT(batch, 100);
    DEFAULT(particles, 10);
    DEFAULT(shards, 4);
    if (!c->particle_shards) c->particle_shards = 1;
    DEFAULT(n_test, 100);
    if (!c->eval_particles) c->eval_particles = c->particles;
    DEFAULT(optimiser, "adam");
    DEFAULT(lr, "1e-3");
    if (!c->iterations) c->iterations = d->iterations ? (uint64_t)d->iterations : 10000;
    if (!c->eval_every)
        c->eval_every = d->eval_every ? (uint64_t)d->eval_every : c->iterations / 20 + (c->iterations % 20 != 0);
    if (!c->threads) c->threads = 1;
    DEFAULT(limits.stack_bytes, RWS_STACK_BYTES);
    DEFAULT(limits.max_operations, RWS_MAX_OPERATIONS);
    DEFAULT(limits.max_paths, RWS_MAX_PATHS);
    DEFAULT(limits.max_nodes, RWS_MAX_NODES);
}

rws_status rws_config_fill(rws_config *config, const rws_model *model, rws_error *err)
{
    if (!config) return rws_fail(err, RWS_BAD_INPUT, "There is no configuration to be filled in (NULL).");
    void *library = NULL; /* stays open: the texts that are filled in may be its own */
    if (!model) RWS_TRY(rws_model_load(config->model, &model, &library, err));
    fill_defaults(config, &model->defaults);
    return RWS_OK;
}

/* The trainer's own copies of the configuration's texts. */
static rws_status copy_texts(rws_trainer *t, rws_error *err)
{
    rws_config  *c = &t->config;
    const char **texts[] = {&c->model, &c->method, &c->optimiser, &c->lr};
    bool         memory = true;
    if (c->n_set < 0 || c->n_set > RWS_MAX_SET)
        return rws_fail(err, RWS_BAD_INPUT, "A configuration has at most %d settings, not %d.", RWS_MAX_SET, c->n_set);
    for (int i = 0; i < 4 + c->n_set; i++) {
        const char **text = i < 4 ? texts[i] : &c->set[i - 4];
        if (!*text && i < 4) continue;
        if (!*text) return rws_fail(err, RWS_BAD_INPUT, "Setting %d of the configuration is NULL.", i - 4);
        char *copy = rws_setup_alloc(&t->setup, strlen(*text) + 1);
        memory &= copy != NULL;
        *text = copy ? strcpy(copy, *text) : "";
    }
    return memory ? RWS_OK : rws_no_memory(err, "the configuration");
}

static rws_status check_range(const char *option, double x, double least, double most, rws_error *err)
{
    if (x >= least && x <= most) return RWS_OK;
    return rws_fail(err, RWS_BAD_INPUT, "%s must be between %.0f and %.0f, not %.0f.", option, least, most, x);
}

static rws_status check_config(const rws_config *c, const rws_estimator *e, rws_error *err)
{
    RWS_TRY(check_range("--particles", c->particles, 1, RWS_MAX_PARTICLES, err));
    RWS_TRY(check_range("--eval-particles", c->eval_particles, 1, RWS_MAX_PARTICLES, err));
    RWS_TRY(check_range("--batch", c->batch, 1, 1000000, err));
    RWS_TRY(check_range("--eval-data", c->n_test, 1, 1000000, err));
    RWS_TRY(check_range("--shards", c->shards, 1, 1024, err));
    RWS_TRY(check_range("--particle-shards", c->particle_shards, 1, 1024, err));
    RWS_TRY(check_range("--threads", c->threads, 1, 1024, err));
    RWS_TRY(check_range("--iterations", (double)c->iterations, 1, (double)RWS_MAX_ITERATIONS, err));
    RWS_TRY(check_range("--eval-every", (double)c->eval_every, 1, (double)RWS_MAX_ITERATIONS, err));
    if (c->particle_shards > c->particles)
        return rws_fail(err, RWS_BAD_INPUT, "--particle-shards is at most the number of particles, %d, not %d.",
                        c->particles, c->particle_shards);
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

/* Whether the run has the setting, and it is not 0. */
static bool is_set(const rws_trainer *t, const char *setting)
{
    const char *value = rws_setup_given(&t->setup, setting);
    return value && g_ascii_strtod(value, NULL) != 0;
}

static rws_status make_metrics(rws_trainer *t, rws_error *err)
{
    bool      has_evidence = false, has_exact = false, has_truth = false;
    const int most = RWS_MAX_METRICS - 6 - (t->setup.n_truths > 0); /* the library adds as many */
    for (int i = 0; t->model->metrics && t->model->metrics[i].name; i++) {
        if (t->n_metrics == most)
            return rws_fail(err, RWS_BAD_INPUT, "Model %s has more than %d metrics; \"%s\" is one too many.",
                            t->model->name, t->n_metrics, t->model->metrics[i].name);
        t->metric_names[t->n_metrics++] = t->model->metrics[i].name;
        has_evidence |= strcmp(t->model->metrics[i].name, "log_evidence") == 0;
        has_exact |= strcmp(t->model->metrics[i].name, "exact") == 0 && t->model->metrics[i].measure;
        has_truth |= strcmp(t->model->metrics[i].name, "truth") == 0;
    }
    t->n_model_metrics = t->n_metrics;
    if (t->setup.n_truths && has_exact && !has_truth) t->metric_names[t->n_metrics++] = "truth";
    if (t->model->defaults.grad_std) t->metric_names[t->n_metrics++] = "grad_std";
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
                            t->metric_names[i], t->model->name);
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
    const size_t n_fields = (size_t)t->setup.n_fields;
    t->batch = calloc(n_fields, sizeof *t->batch);
    t->test = calloc(n_fields, sizeof *t->test);
    for (size_t f = 0; f < n_fields && t->batch && t->test; f++) {
        const size_t dim = (size_t)t->setup.fields[f].dim;
        t->batch[f] = vector((size_t)t->config.batch * dim);
        t->test[f] = vector((size_t)t->n_test * dim);
        if (!t->batch[f] || !t->test[f]) return false;
    }
    return t->batch && t->test;
}

/* Shards of other ranks have no memory; only shard 0 has, for sums. */
static bool make_shards(rws_trainer *t)
{
    const rws_params *p = &t->setup.params;
    t->shards = calloc((size_t)t->n_shards, sizeof *t->shards);
    if (!rws_shards_make_outcomes(t)) return false;
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
    rws_params *p = &t->setup.params;
    if (!rws_params_pack(p)) return rws_no_memory(err, "the parameters");
    bool memory = (t->direction = vector(p->size)) != NULL;
    for (int i = 0; i < t->optimiser->n_slots; i++) memory &= (t->slot[i] = vector(p->size)) != NULL;
    if (!memory || !make_data(t) || !make_shards(t))
        return rws_fail(err, RWS_NO_MEMORY,
                        "There is no memory for %d shards of %zu parameters, a batch of %d and %d test data.",
                        t->n_shards, p->size, t->config.batch, t->n_test);
    RWS_TRY(rws_cut_new(t, err));
    rws_optimiser_reset(t->optimiser, p->size, t->slot);
    return rws_slices_new(t, err);
}

rws_engine *rws_trainer_engine_new(const rws_trainer *t)
{
    rws_engine *e = rws_engine_new(&t->setup.params, t->setup.fields, t->setup.n_fields, &t->config.limits);
    if (e) rws_engine_set_gradients(e, t->setup.gradients, t->setup.n_gradients);
    if (e) rws_engine_host(e, t->model->host);
    if (e && !t->asking) rws_engine_watch(e, rws_trainer_stops, (void *)t);
    return e;
}

static rws_status make_engines(rws_trainer *t, rws_error *err)
{
    const rws_config *c = &t->config;
    t->engine_per_shard = t->defers || c->particle_shards > 1;
    for (int i = 0; i < t->method.estimator->n_phases; i++)
        t->engine_per_shard |= t->method.estimator->phases[i].extend != NULL;
    const int own = t->ranks.end - t->ranks.first, n = t->engine_per_shard && own > c->threads ? own : c->threads;
    const int claim = t->asking ? 0 : c->threads; /* a posterior claims a thread for each question */
    RWS_TRY(rws_blas_claim(claim, err));
    t->n_claimed = claim;
    t->engines = calloc((size_t)n, sizeof *t->engines);
    while (t->engines && t->n_engines < n && (t->engines[t->n_engines] = rws_trainer_engine_new(t))) t->n_engines++;
    return t->n_engines == n ? rws_pool_new(c->threads, &t->pool, err) : rws_no_memory(err, "engines");
}

/* Runs the model's setup, then the estimator's. */
static rws_status set_up(rws_trainer *t, const rws_estimator *e, rws_error *err)
{
    t->setup.seed = t->config.seed;
    t->setup.model = t->model->name;
    t->setup.owner = t->model;
    rws_random       random = rws_random_new(rws_key_for(t->config.seed, 0, RWS_KEY_INIT, 1), 0);
    const rws_status status = RWS_CALL_MODEL(t->model, setup, err, &t->setup, &random, &t->state);
    if (t->setup.status != RWS_OK) return rws_fail(err, t->setup.status, "%s", t->setup.error.text);
    RWS_TRY(status);
    RWS_TRY(rws_trainer_make_gradients(t, err));
    RWS_TRY(rws_method_init(&t->method, e, t->model, t->state, &t->setup, err));
    if (t->setup.status != RWS_OK) return rws_fail(err, t->setup.status, "%s", t->setup.error.text);
    if (t->setup.n_fields == 0)
        return rws_fail(err, RWS_BAD_INPUT, "Model %s declares no data (rws_setup_field).", t->model->name);
    return RWS_OK;
}

static rws_status make_test(rws_trainer *t, rws_error *err)
{
    rws_random random = rws_random_new(rws_key_for(0, 0, RWS_KEY_TEST, RWS_TEST_DATA), 0);
    return RWS_CALL_MODEL(t->model, data, err, t->state, RWS_TEST, 0, t->n_test, &random, t->test);
}

static rws_status choose_model(rws_trainer *t, rws_error *err)
{
    rws_config *c = &t->config;
    if (!t->model) RWS_TRY(rws_model_load(c->model, &t->model, &t->library, err));
    if (t->model->abi != RWS_ABI)
        return rws_fail(err, RWS_BAD_INPUT,
                        "The model at hand was built for version %d of rws.h, and this library has %d; build it again.",
                        t->model->abi, RWS_ABI);
    RWS_TRY(rws_model_check(t->model, NULL, err));
    if (!c->model) c->model = t->model->name;
    RWS_TRY(check_range("The model's default at_once", t->model->defaults.at_once, 0, INT_MAX, err));
    RWS_TRY(check_range("The model's default pictures", t->model->defaults.pictures, 0, INT_MAX, err));
    fill_defaults(c, &t->model->defaults);
    return copy_texts(t, err);
}

static rws_status choose_estimator(const rws_config *c, const rws_estimator **out, rws_error *err)
{
    rws_name_list names = {0};
    *out = rws_estimator_find(c->method);
    if (*out) return check_config(c, *out, err);
    for (int i = 0; rws_estimators[i]; i++) rws_name_list_add(&names, rws_estimators[i]->name);
    return rws_fail(err, RWS_BAD_INPUT, "There is no method \"%s\"; the methods are %s.",
                    rws_quote_short(c->method).text, names.text);
}

static rws_status choose_optimiser(rws_trainer *t, rws_error *err)
{
    const rws_config *c = &t->config;
    rws_name_list     names = {0};
    t->optimiser = rws_optimiser_find(c->optimiser);
    if (!t->optimiser) {
        for (int i = 0; rws_optimisers[i]; i++) rws_name_list_add(&names, rws_optimisers[i]->name);
        return rws_fail(err, RWS_BAD_INPUT, "There is no optimiser \"%s\"; the optimisers are %s.",
                        rws_quote_short(c->optimiser).text, names.text);
    }
    t->optim = t->optimiser->defaults;
    t->optim.l2 = c->l2;
    RWS_TRY(rws_optim_config_check(&t->optim, err));
    return rws_schedule_parse(c->lr, &t->schedule, err);
}

static rws_status build(rws_trainer *t, const char *const *ask_set, int n_ask_set, rws_error *err)
{
    const rws_config    *c = &t->config;
    const rws_estimator *e;
    RWS_TRY(rws_gemm_init(err));
    RWS_TRY(choose_model(t, err));
    RWS_TRY(choose_estimator(c, &e, err));
    RWS_TRY(choose_optimiser(t, err));
    t->n_shards = c->shards * c->particle_shards;
    t->ranks = rws_ranks_make(t->asking ? NULL : rws_comm_world(), t->n_shards);
    RWS_TRY(rws_trainer_make_settings(t, e, ask_set, n_ask_set, err));
    RWS_TRY(set_up(t, e, err));
    t->n_test = t->setup.n_test && t->setup.n_test < c->n_test ? t->setup.n_test : c->n_test;
    RWS_TRY(rws_schedule_cover(&t->schedule, groups_of(&t->setup.params), c->lr, err));
    t->std_ref = is_set(t, "std_ref");
    t->grad_snr = is_set(t, "grad_snr");
    RWS_TRY(rws_given_open(t, err));
    RWS_TRY(make_vectors(t, err));
    RWS_TRY(make_engines(t, err));
    if (!t->asking) RWS_TRY(make_test(t, err));
    RWS_TRY(make_metrics(t, err));
    return check_metric_names(t, err);
}

static rws_status trainer_new(const rws_config *config, bool asking, const char *const *ask_set, int n_ask_set,
                              const rws_model *model, rws_trainer **out, rws_error *err)
{
    *out = NULL;
    if (!config) return rws_fail(err, RWS_BAD_INPUT, "A trainer needs a configuration, not NULL.");
    rws_trainer *t = *out = calloc(1, sizeof *t);
    rws_status   status = t ? RWS_OK : rws_no_memory(err, "a trainer");
    if (t) {
        t->config = *config;
        t->model = model;
        t->asking = asking;
        status = build(t, ask_set, n_ask_set, err);
    }
    if (!asking) status = rws_comm_agree(rws_comm_world(), status, err);
    if (status == RWS_OK) status = rws_trainer_meet(t, err);
    if (status == RWS_OK) status = rws_slices_share(t, err);
    if (status != RWS_OK) {
        rws_trainer_free(t);
        *out = NULL;
    }
    return status;
}

rws_status rws_trainer_new(const rws_config *config, const rws_model *model, rws_trainer **out, rws_error *err)
{
    return trainer_new(config, false, NULL, 0, model, out, err);
}

rws_status rws_trainer_new_for_asking(const rws_config *config, const char *const *ask_set, int n_ask_set,
                                      const rws_model *model, rws_trainer **out, rws_error *err)
{
    rws_config c = *config;
    c.threads = c.shards = c.particle_shards = c.batch =
        1; /* questions need none of them, and their memory is not taken */
    return trainer_new(&c, true, ask_set, n_ask_set, model, out, err);
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

double rws_trainer_seconds(const rws_trainer *t)
{
    return t->seconds;
}

rws_folder *rws_trainer_folder(const rws_trainer *t)
{
    return t->folder;
}

int rws_trainer_n_params(const rws_trainer *t)
{
    return t->setup.params.n;
}

size_t rws_trainer_size(const rws_trainer *t)
{
    return t->setup.params.size;
}

bool rws_trainer_param(rws_trainer *t, int i, rws_param_view *out)
{
    if (i < 0 || i >= t->setup.params.n) return false;
    const rws_param *p = t->setup.params.list[i];
    *out = (rws_param_view){p->name, p->group, p->rows, p->cols, p->offset, p->value};
    out->n_dims = rws_param_shape(p, out->shape);
    return true;
}

bool rws_trainer_find(rws_trainer *t, const char *name, rws_param_view *out)
{
    for (int i = 0; rws_trainer_param(t, i, out); i++)
        if (strcmp(out->name, name) == 0) return true;
    return false;
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

void rws_trainer_count_rows(rws_trainer *t, bool on)
{
    for (int i = 0; i < t->n_engines; i++) rws_engine_count_rows(t->engines[i], on);
}

rws_engine_stats rws_trainer_take_stats(rws_trainer *t)
{
    rws_engine_stats total = {0};
    for (int i = 0; i < t->n_engines; i++) {
        const rws_engine_stats s = rws_engine_take_stats(t->engines[i]);
        total.rows += s.rows;
        total.needed += s.needed;
        total.particles += s.particles;
        total.calls += s.calls;
        total.flops += s.flops;
    }
    total.flops += t->flops;
    t->flops = 0;
    return total;
}

uint64_t rws_trainer_data_hash(const rws_trainer *t, rws_split split)
{
    return t->data_hash[split];
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

void rws_trainer_changed(rws_trainer *t)
{
    rws_params_transpose(&t->setup.params, ~0u, t->setup.params.value, t->setup.params.transposed);
}
