/* program.c - from a configuration to a model that is set up: settings, fields, parameters, method. */
#include "program/program.h"

#include "base/error.h"
#include "base/nearest.h"
#include "base/quote.h"
#include "program/config.h"
#include "program/plugin.h"

#include <limits.h>
#include <string.h>

void rws__program_release(rws_program *p)
{
    if (p->state && p->model->release) p->model->release(p->state);
    rws__setup_release(&p->setup);
    rws__model_unload(p->library);
}

/* ---- choosing */

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
    if (!model) RWS_TRY(rws__model_load(config, NULL, &model, &library, err));
    fill_defaults(config, &model->defaults);
    return RWS_OK;
}

static rws_status check_range(const char *what, double x, double least, double most, rws_error *err)
{
    if (x >= least && x <= most) return RWS_OK;
    return rws_fail(err, RWS_BAD_INPUT, "%s must be between %.0f and %.0f, not %.0f.", what, least, most, x);
}

static rws_status check_config(const rws_config *c, const rws_estimator *e, rws_error *err)
{
    char text[RWS_CONFIG_VALUE];
    for (const rws_config_member *m = rws_config_members; m->name; m++)
        if (!rws__config_fits(m, c))
            return rws_fail(err, RWS_BAD_INPUT, "`%s` must be between %llu and %llu, not %s.", m->name,
                            (unsigned long long)m->least, (unsigned long long)m->most, rws__config_value(m, c, text));
    if (c->particle_shards > c->particles)
        return rws_fail(err, RWS_BAD_INPUT, "`particle_shards` is at most the number of particles, %d, not %d.",
                        c->particles, c->particle_shards);
    if ((double)c->particles * c->batch > 1e9)
        return rws_fail(err, RWS_BAD_INPUT, "`particles` times `batch` must be at most 1000000000, not %.0f.",
                        (double)c->particles * c->batch);
    if (c->particles < e->min_particles)
        return rws_fail(err, RWS_BAD_INPUT,
                        "Method %s needs at least %d particles (it compares each with the others); with "
                        "one use reinforce.",
                        e->name, e->min_particles);
    return RWS_OK;
}

/* The program's own copies of the configuration's texts. */
static rws_status copy_texts(rws_program *p, rws_error *err)
{
    rws_config  *c = &p->config;
    const char **texts[] = {&c->model, &c->method, &c->optimiser, &c->lr};
    bool         memory = true;
    if (c->n_set < 0 || c->n_set > RWS_MAX_SET)
        return rws_fail(err, RWS_BAD_INPUT, "A configuration has at most %d settings, not %d.", RWS_MAX_SET, c->n_set);
    for (int i = 0; i < 4 + c->n_set; i++) {
        const char **text = i < 4 ? texts[i] : &c->set[i - 4];
        if (!*text && i < 4) continue;
        if (!*text) return rws_fail(err, RWS_BAD_INPUT, "Setting %d of the configuration is NULL.", i - 4);
        char *copy = rws_setup_alloc(&p->setup, strlen(*text) + 1);
        memory &= copy != NULL;
        *text = copy ? strcpy(copy, *text) : "";
    }
    return memory ? RWS_OK : rws_no_memory(err, "the configuration");
}

static rws_status choose_model(rws_program *p, const rws_recorded *recorded, rws_error *err)
{
    rws_config *c = &p->config;
    if (!p->model) RWS_TRY(rws__model_load(c, recorded, &p->model, &p->library, err));
    if (!c->model && p->library) c->model = recorded->model;
    if (p->model->abi != RWS_ABI)
        return rws_fail(err, RWS_BAD_INPUT,
                        "The model at hand was built for version %d of rws.h, and this library has %d; build it again.",
                        p->model->abi, RWS_ABI);
    RWS_TRY(rws__model_check(p->model, NULL, err));
    if (!c->model) c->model = p->model->name;
    RWS_TRY(check_range("The model's default at_once", p->model->defaults.at_once, 0, INT_MAX, err));
    RWS_TRY(check_range("The model's default pictures", p->model->defaults.pictures, 0, INT_MAX, err));
    fill_defaults(c, &p->model->defaults);
    return copy_texts(p, err);
}

static rws_status choose_estimator(rws_program *p, rws_error *err)
{
    const rws_config *c = &p->config;
    rws_name_list     names = {0};
    rws_nearest       near = rws__nearest_to(c->method);
    p->method.estimator = rws__estimator_find(c->method);
    if (p->method.estimator) return check_config(c, p->method.estimator, err);
    for (int i = 0; rws_estimators[i]; i++) {
        rws__name_list_add(&names, rws_estimators[i]->name);
        rws__nearest_try(&near, rws_estimators[i]->name);
    }
    return rws_fail(err, RWS_BAD_INPUT, "There is no method \"%s\"%s; the methods are %s.",
                    rws__quote_short(c->method).text, rws__nearest_hint(&near).text, names.text);
}

rws_status rws__program_choose(rws_program *p, const rws_config *config, const rws_recorded *recorded,
                               const rws_model *model, rws_error *err)
{
    *p = (rws_program){.model = model};
    if (!config) return rws_fail(err, RWS_BAD_INPUT, "There is no configuration (NULL).");
    p->config = *config;
    RWS_TRY(choose_model(p, recorded, err));
    return choose_estimator(p, err);
}

/* ---- setting up */

/* A guide that is made of the model's program takes the place of one that is missing. */
static rws_status make_guide(rws_program *p, rws_error *err)
{
    const rws_estimator *e = p->method.estimator;
    rws_guide_sizes      sizes;
    bool                 automatic;
    RWS_TRY(rws__program_guide_sizes(p, &sizes, &automatic, err));
    if (!automatic) return RWS_OK;
    for (int i = 0; i < e->n_phases; i++)
        if (e->phases[i].drawing >= RWS_GUMBEL)
            return rws_fail(err, RWS_BAD_INPUT,
                            "Method %s needs a guide that is written by hand; model %s has an automatic one. Methods "
                            "such as ww, ws and vimco do without.",
                            e->name, p->model->name);
    rws_status status;
    p->guide = rws__guide_new(&p->setup, p->model, p->state, &p->config.limits, &sizes, &status, err);
    return status;
}

/* Sites are summed under methods whose guide draws choices as they are, and which tell particles apart by their weights alone. */
static rws_status check_sums(const rws_program *p, rws_error *err)
{
    const rws_estimator *e = p->method.estimator;
    const char          *site = rws__setup_summed(&p->setup, NULL);
    bool                 draws = e->n_phases > 0;
    for (int i = 0; i < e->n_phases; i++) draws &= e->phases[i].drawing < RWS_GUMBEL;
    if (site && !draws)
        return rws_fail(err, RWS_BAD_INPUT,
                        "Method %s does not apply where sites are summed (\"%s\"): it relaxes choices, or draws none. "
                        "Take ww, ws, wws, dww, reinforce, rloo, nvil or vimco, or draw the site (site.%s=score).",
                        e->name, site, site);
    if (site && p->method.siblings)
        return rws_fail(err, RWS_BAD_INPUT,
                        "Setting baseline=siblings does not go with summed sites (\"%s\"), in whose rows a particle is "
                        "more than once.",
                        site);
    return RWS_OK;
}

/* Runs the model's setup, then the estimator's. */
static rws_status run_setups(rws_program *p, rws_error *err)
{
    p->setup.seed = p->config.seed;
    p->setup.model = p->model->name;
    p->setup.owner = p->model;
    rws_random       random = rws__random_new(rws__key_for(p->config.seed, 0, RWS_KEY_INIT, RWS_INIT_MODEL), 0);
    const rws_status status = RWS_CALL_MODEL(p->model, setup, err, &p->setup, &random, &p->state);
    if (p->setup.status != RWS_OK) return rws_fail(err, p->setup.status, "%s", p->setup.error.text);
    RWS_TRY(status);
    RWS_TRY(rws__program_make_gradients(p, err));
    RWS_TRY(make_guide(p, err));
    RWS_TRY(rws__method_init(&p->method, p->method.estimator, p->model, p->state, &p->setup, err));
    RWS_TRY(check_sums(p, err));
    if (p->setup.status != RWS_OK) return rws_fail(err, p->setup.status, "%s", p->setup.error.text);
    if (p->setup.n_fields == 0)
        return rws_fail(err, RWS_BAD_INPUT, "Model %s declares no data (rws_setup_field).", p->model->name);
    return RWS_OK;
}

rws_status rws__program_set_up(rws_program *p, const char *const *more, int n, rws_error *err)
{
    RWS_TRY(rws__program_make_settings(p, p->method.estimator, more, n, err));
    RWS_TRY(run_setups(p, err));
    p->n_test = p->setup.n_test && p->setup.n_test < p->config.n_test ? p->setup.n_test : p->config.n_test;
    return rws__params_pack(&p->setup.params) ? RWS_OK : rws_no_memory(err, "the parameters");
}

void rws__program_changed(rws_program *p)
{
    rws__params_transpose(&p->setup.params, ~0u, p->setup.params.value, p->setup.params.transposed);
}

/* ---- what trainers and posteriors make of it */

rws_engine *rws__program_engine_new(const rws_program *p)
{
    rws_engine *e = rws__engine_new(&p->setup.params, p->setup.fields, p->setup.n_fields, &p->config.limits);
    if (e) rws__engine_set_gradients(e, p->setup.gradients, p->setup.n_gradients);
    if (e) rws__engine_host(e, p->model->host);
    if (e) rws__engine_automatic(e, rws__guide_automatic(p->guide));
    return e;
}

rws_status rws__program_make_test(const rws_program *p, int n, float *const *data, rws_error *err)
{
    rws_random random = rws__random_new(rws__key_for(0, 0, RWS_KEY_TEST, RWS_TEST_DATA), 0);
    return rws__setup_make_data(&p->setup, p->model, p->state, RWS_TEST, 0, n, &random, data, err);
}

bool rws__program_param(const rws_program *p, int i, rws_param_view *out)
{
    if (!out || i < 0 || i >= p->setup.params.n) return false;
    const rws_param *from = p->setup.params.list[i];
    *out = (rws_param_view){from->name, from->group, from->rows, from->cols, from->offset, from->value};
    out->n_dims = rws__param_shape(from, out->shape);
    return true;
}
