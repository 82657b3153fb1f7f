/* posterior.c - a trained model and guide that many threads may ask at once.
 *
 *     parameters, model, programs     one, never written to after they were loaded
 *     engines                         one per question that is being answered; kept for the next one
 */
#include "ask/posterior.h"

#include "ask/ask.h"
#include "base/denormals.h"
#include "base/error.h"
#include "store/checkpoint.h"
#include "program/plugin.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define AT_ONCE 2000 /* samples of a pass */

struct rws_posterior {
    rws_program     program;
    pthread_mutex_t lock; /* of the list */
    rws_idle       *engines;
};

/* ---- life */

static rws_status posterior_new(rws_posterior **out, rws_error *err)
{
    RWS_NEED(out, err);
    rws_posterior *p = *out = calloc(1, sizeof *p);
    if (!p) return rws_no_memory(err, "a posterior");
    pthread_mutex_init(&p->lock, NULL);
    return RWS_OK;
}

static rws_status finish(rws_posterior **out, rws_status status)
{
    if (status == RWS_OK) return RWS_OK;
    rws_posterior_free(*out);
    *out = NULL;
    return status;
}

/* Sets the program up with the settings that the model has for asking, then those of the caller. */
static rws_status set_up(rws_posterior *p, const rws_config *config, const rws_recorded *recorded,
                         const rws_model *model, const rws_config *changes, rws_error *err)
{
    const char *more[RWS_MAX_ASK_SET + 1];
    int         n = 0;
    RWS_TRY(rws__program_choose(&p->program, config, recorded, model, err));
    if (p->program.model->ask_setting) more[n++] = p->program.model->ask_setting;
    for (int i = 0; i < changes->n_set; i++) more[n++] = changes->set[i];
    return rws__program_set_up(&p->program, more, n, err);
}

static rws_status check_changes(const rws_config *c, rws_error *err)
{
    if (c->n_set < 0 || c->n_set > RWS_MAX_ASK_SET)
        return rws_fail(err, RWS_BAD_INPUT, "At most %d settings may differ from those of training, not %d.",
                        RWS_MAX_ASK_SET, c->n_set);
    for (int i = 0; i < c->n_set; i++)
        if (!c->set[i]) return rws_fail(err, RWS_BAD_INPUT, "Setting %d of the changes is NULL.", i);
    return RWS_OK;
}

static const rws_config no_changes;

static rws_status copy(rws_posterior *p, const rws_program *from, rws_error *err)
{
    rws_program *to = &p->program;
    RWS_TRY(set_up(p, &from->config, NULL, from->model, &no_changes, err));
    to->library = rws__model_load_again(from->library); /* the original may be released before the copy */
    RWS_CHECK(to->setup.params.size == from->setup.params.size);
    memcpy(to->setup.params.value, from->setup.params.value, to->setup.params.size * sizeof(float));
    to->iteration = from->iteration;
    rws__program_changed(to);
    return RWS_OK;
}

rws_status rws__posterior_copy(const rws_program *from, rws_posterior **out, rws_error *err)
{
    RWS_TRY(posterior_new(out, err));
    return finish(out, copy(*out, from, err));
}

static rws_status open_run(rws_posterior *p, const char *path, const rws_config *changes, const rws_model *model,
                           rws_folder **folder, rws_error *err)
{
    rws_config config;
    if (!path) return rws_fail(err, RWS_BAD_INPUT, "The folder of the run has no name (NULL).");
    RWS_TRY(rws__folder_open(path, &config, folder, err));
    if (!rws__folder_has_checkpoint(*folder))
        return rws_fail(err, RWS_BAD_INPUT, "The run in %s has no checkpoint yet; train it further.", path);
    RWS_TRY(check_changes(changes, err));
    if (changes->model) config.model = changes->model;
    config.changed = changes->changed;
    if (changes->resample != 0) config.resample = changes->resample;
    config.limits = changes->limits;
    RWS_TRY(set_up(p, &config, rws__folder_recorded(*folder), model, changes, err));
    const rws_run_state s = {.config = &p->program.config,
                             .model = p->program.model->name,
                             .params = &p->program.setup.params,
                             .iteration = &p->program.iteration,
                             .optimiser = rws__optimiser_find(p->program.config.optimiser)};
    if (!s.optimiser)
        return rws_fail(err, RWS_BAD_INPUT,
                        "The run in %s was trained by an optimiser that this program does not have.", path);
    RWS_TRY(rws__folder_peek(*folder, &s, err));
    rws__program_changed(&p->program);
    return RWS_OK;
}

rws_status rws_posterior_open(const char *path, const rws_config *changes, const rws_model *model, rws_posterior **out,
                              rws_error *err)
{
    rws_folder *folder = NULL;
    RWS_TRY(posterior_new(out, err));
    const rws_status status = open_run(*out, path, changes ? changes : &no_changes, model, &folder, err);
    rws__folder_close(folder);
    return finish(out, status);
}

void rws_posterior_free(rws_posterior *p)
{
    if (!p) return;
    for (rws_idle *e = p->engines, *next; e; e = next) {
        next = e->next;
        rws__engine_free(e->engine);
        free(e);
    }
    pthread_mutex_destroy(&p->lock);
    rws__program_release(&p->program);
    free(p);
}

const rws_config *rws_posterior_config(const rws_posterior *p)
{
    return p ? &p->program.config : NULL;
}

const rws_model *rws_posterior_model(const rws_posterior *p)
{
    return p ? p->program.model : NULL;
}

uint64_t rws_posterior_iteration(const rws_posterior *p)
{
    return p ? p->program.iteration : 0;
}

bool rws_posterior_field(const rws_posterior *p, int i, rws_field *out)
{
    return p && rws__program_field(&p->program, i, out);
}

bool rws_posterior_param(const rws_posterior *p, int i, rws_param_view *out)
{
    return p && rws__program_param(&p->program, i, out);
}

const rws_program *rws__posterior_program(const rws_posterior *p)
{
    return &p->program;
}

/* ---- engines */

rws_idle *rws__posterior_take(rws_posterior *p, rws_error *err)
{
    pthread_mutex_lock(&p->lock);
    rws_idle *e = p->engines;
    if (e) p->engines = e->next;
    pthread_mutex_unlock(&p->lock);
    if (!e && (e = calloc(1, sizeof *e)) && !(e->engine = rws__program_engine_new(&p->program))) {
        free(e);
        e = NULL;
    }
    if (e) return e;
    rws_no_memory(err, "an engine");
    return NULL;
}

void rws__posterior_give_back(rws_posterior *p, rws_idle *e)
{
    pthread_mutex_lock(&p->lock);
    e->next = p->engines;
    p->engines = e;
    pthread_mutex_unlock(&p->lock);
}

/* ---- asking */

static rws_status check_question(const rws_question *q, rws_error *err)
{
    return q ? RWS_OK : rws_fail(err, RWS_BAD_INPUT, "There is no question (NULL).");
}

rws_status rws_posterior_ask(rws_posterior *p, const rws_question *question, rws_answers **out, rws_error *err)
{
    RWS_NEED(p, err);
    RWS_NEED(out, err);
    *out = NULL;
    RWS_TRY(check_question(question, err));
    rws_idle *e = rws__posterior_take(p, err);
    if (!e) return RWS_NO_MEMORY;
    const rws_status status = rws__program_ask(&p->program, e->engine, NULL, question, out, err);
    rws__posterior_give_back(p, e);
    return status;
}

/* ---- scoring */

static rws_status score(rws_posterior *p, rws_engine *engine, const rws_question *q, const rws_choice *choices, int n,
                        rws_arena *memory, rws_score *out, rws_error *err)
{
    float **fields = rws__question_memory(&p->program, 1, memory);
    if (!fields) return rws_no_memory(err, "a datum");
    RWS_TRY(rws__choices_check(choices, n, err));
    RWS_TRY(rws__question_read(&p->program, NULL, q, false, fields, err));
    rws_pass pass = rws__program_question(&p->program, (const float *const *)fields, q->seed, 0, 1);
    pass.given = choices;
    pass.n_given = n;
    pass.given_all = true;
    RWS_TRY(rws__engine_forward(engine, &pass, err));
    const rws_scores *s = rws__engine_scores(engine);
    *out = (rws_score){s->log_p[0], s->log_q[0] + (s->log_given ? s->log_given[0] : 0)};
    return RWS_OK;
}

rws_status rws_posterior_score(rws_posterior *p, const rws_question *question, const rws_choice *choices, int n,
                               rws_score *out, rws_error *err)
{
    RWS_NEED(p, err);
    RWS_NEED(out, err);
    *out = (rws_score){NAN, NAN};
    RWS_TRY(check_question(question, err));
    rws_idle *e = rws__posterior_take(p, err);
    if (!e) return RWS_NO_MEMORY;
    rws_arena        memory = {0};
    const unsigned   denormals = rws__denormals_off();
    const rws_status status = score(p, e->engine, question, choices, n, &memory, out, err);
    rws__denormals_restore(denormals);
    rws__arena_free(&memory);
    rws__posterior_give_back(p, e);
    return status;
}

/* ---- sampling */

typedef struct {
    rws_samples public;
    rws_arena memory;
} samples;

void rws_samples_free(rws_samples *s)
{
    if (!s) return;
    rws__arena_free(&((samples *)s)->memory);
    free(s);
}

/* The datum that the model made in a row of the engine's table; labels are NULL. NULL without memory. */
static const float *const *copy_fields(const rws_program *program, rws_engine *engine, int row, rws_arena *memory)
{
    const float **fields = RWS_TRY_NEW(memory, const float *, program->setup.n_fields + 1);
    for (int f = 0; f < program->setup.n_fields && fields; f++) {
        int dim;
        fields[f] = NULL;
        if (program->setup.fields[f].label) continue;
        const float *made = rws__engine_observed(engine, row, f, &dim);
        float       *copy = made ? RWS_TRY_NEW(memory, float, dim) : NULL;
        if (!copy) return NULL;
        fields[f] = memcpy(copy, made, (size_t)dim * sizeof(float));
    }
    return fields;
}

/* Samples come in random order, whereas rows are in the order of their choices. */
static void shuffle(rws_sample *list, int n, rws_random *random)
{
    for (int i = n - 1; i > 0; i--) {
        const int        j = (int)rws_random_below(random, (uint32_t)(i + 1));
        const rws_sample swap = list[i];
        list[i] = list[j];
        list[j] = swap;
    }
}

/* A caller's request to stop; `stop` may be NULL. */
typedef struct {
    bool (*stop)(void *context);
    void *context;
} stopper;

/* Adds the samples of the engine's pass to the list, from number `at` on, and moves on. */
static rws_status add_samples(const rws_program *program, rws_engine *engine, const stopper *s, rws_sample *list,
                              int *at, rws_arena *memory, rws_error *err)
{
    const rws_scores *scores = rws__engine_scores(engine);
    for (int i = 0; i < scores->n; i++) {
        if (s->stop && s->stop(s->context)) return rws_fail(err, RWS_STOPPED, "The samples were stopped.");
        rws_sample made = {.fields = copy_fields(program, engine, i, memory)};
        made.reports = rws__reports_of_row(memory, engine, i, &made.n_reports);
        made.choices = rws__choices_of_row(memory, engine, i, &made.n_choices);
        if (!made.fields || !made.reports || !made.choices) return rws_no_memory(err, "samples");
        for (uint32_t k = 0; k < scores->count[i]; k++) list[(*at)++] = made;
    }
    return RWS_OK;
}

/* What the samples of a model with inputs are conditional on: the datum of a question, or test data drawn at random. */
static rws_status find_inputs(const rws_program *p, const rws_question *at, rws_arena *memory, float ***data,
                              rws_error *err)
{
    *data = NULL;
    if (!rws__setup_has_inputs(&p->setup))
        return at ? rws_fail(err, RWS_BAD_INPUT, "Model %s has no inputs that samples could be given.", p->model->name)
                  : RWS_OK;
    *data = rws__question_memory(p, at ? 1 : p->n_test, memory);
    if (!*data) return rws_no_memory(err, "the inputs of samples");
    return at ? rws__question_read(p, NULL, at, true, *data, err) : rws__program_make_test(p, p->n_test, *data, err);
}

/* Samples first … first + n - 1. */
static rws_status sample_pass(const rws_program *p, const rws_question *at, float *const *data, uint64_t seed,
                              int first, int n, rws_arena *memory, rws_pass *pass, rws_error *err)
{
    const rws_key key = rws__key_for(seed, p->iteration, RWS_KEY_TEST, RWS_TEST_SAMPLE);
    const bool    own = data && !at; /* each sample has inputs of its own */
    *pass = rws__program_pass(p, RWS_SLEEP, own ? n : 1, own ? 1 : n, (const float *const *)data, key);
    pass->reports = pass->asked = pass->choices = true;
    if (own) pass->first_datum = (uint32_t)first;
    else pass->first_particle = (uint32_t)first;
    if (own)
        pass->fields = rws__program_draw_inputs(p, (const float *const *)data, p->n_test,
                                                rws__key_for(seed, p->iteration, RWS_KEY_TEST, RWS_TEST_INPUTS),
                                                (uint32_t)first, n, memory);
    return !own || pass->fields ? RWS_OK : rws_no_memory(err, "the inputs of samples");
}

static rws_status sample(rws_posterior *p, rws_engine *engine, const rws_question *at, int n, uint64_t seed,
                         const stopper *s, samples *out, rws_error *err)
{
    rws_program *program = &p->program;
    rws_arena   *memory = &out->memory;
    float      **data;
    rws_sample  *list = RWS_TRY_NEW(memory, rws_sample, n + 1);
    rws_random   random = rws__random_new(rws__key_for(seed, program->iteration, RWS_KEY_TEST, RWS_TEST_ORDER), 0);
    if (!list) return rws_no_memory(err, "samples");
    RWS_TRY(find_inputs(program, at, memory, &data, err));
    for (int first = 0; first < n; first += AT_ONCE) {
        rws_pass pass;
        RWS_TRY(
            sample_pass(program, at, data, seed, first, n - first < AT_ONCE ? n - first : AT_ONCE, memory, &pass, err));
        RWS_TRY(rws__engine_forward(engine, &pass, err));
        int at = first;
        RWS_TRY(add_samples(program, engine, s, list, &at, memory, err));
        shuffle(list + first, at - first, &random);
    }
    out->public = (rws_samples){list, n};
    return RWS_OK;
}

/* ---- the posterior's predictions */

/* Draws n data of the model given the choices of a particle, and adds them to the list. */
static rws_status replicate(rws_posterior *p, rws_engine *engine, const rws_weighted *w, int n, rws_key key, int *at,
                            rws_sample *list, rws_arena *memory, rws_error *err)
{
    const stopper never = {NULL, NULL};
    rws_pass      pass = rws__program_pass(&p->program, RWS_SLEEP, 1, n, NULL, key);
    pass.first_particle = (uint32_t)*at;
    pass.reports = pass.asked = pass.choices = true;
    pass.given = w->choices;
    pass.n_given = w->n_choices;
    RWS_TRY(rws__engine_forward(engine, &pass, err));
    return add_samples(&p->program, engine, &never, list, at, memory, err);
}

/* How many of n draws from the weights each particle has; the caller frees them. NULL without memory. */
static int *draw_counts(const rws_answers *a, int n, rws_random *random)
{
    int    *counts = calloc((size_t)a->n_weighted + 1, sizeof *counts);
    double *weights = malloc(((size_t)a->n_weighted + 1) * sizeof *weights);
    for (int i = 0; i < a->n_weighted && weights; i++) weights[i] = a->particles[i].weight;
    for (int i = 0; i < n && counts && weights; i++) counts[rws_random_choose(random, weights, a->n_weighted)]++;
    if (!weights) {
        free(counts);
        counts = NULL;
    }
    free(weights);
    return counts;
}

static rws_status predict(rws_posterior *p, rws_engine *engine, const rws_answers *a, int n, uint64_t seed,
                          samples *out, rws_error *err)
{
    rws_sample   *list = RWS_TRY_NEW(&out->memory, rws_sample, n + 1);
    rws_random    random = rws__random_new(rws__key_for(seed, p->program.iteration, RWS_KEY_TEST, RWS_TEST_ORDER), 1);
    const rws_key key = rws__key_for(seed, p->program.iteration, RWS_KEY_TEST, RWS_TEST_SAMPLE);
    int          *counts = list ? draw_counts(a, n, &random) : NULL, at = 0;
    rws_status    status = counts ? RWS_OK : rws_no_memory(err, "samples");
    for (int i = 0; i < a->n_weighted && status == RWS_OK; i++)
        if (counts[i]) status = replicate(p, engine, &a->particles[i], counts[i], key, &at, list, &out->memory, err);
    free(counts);
    if (status != RWS_OK) return status;
    shuffle(list, n, &random);
    out->public = (rws_samples){list, n};
    return RWS_OK;
}

/* ---- samples of both kinds */

/* What samples are made of: the prior at the inputs `at`, or the particles of answers. */
typedef struct {
    const rws_answers  *answers; /* NULL: the prior */
    const rws_question *at;
    int                 n;
    uint64_t            seed;
    stopper             when;
} wanted;

static rws_status draw_samples(rws_posterior *p, rws_engine *engine, const wanted *w, samples *out, rws_error *err)
{
    if (w->answers) return predict(p, engine, w->answers, w->n, w->seed, out, err);
    rws__engine_watch(engine, w->when.stop, w->when.context);
    const rws_status status = sample(p, engine, w->at, w->n, w->seed, &w->when, out, err);
    rws__engine_watch(engine, NULL, NULL);
    return status;
}

static rws_status make_samples(rws_posterior *p, const wanted *w, rws_samples **out, rws_error *err)
{
    if (w->n < 1 || w->n > RWS_MAX_PARTICLES)
        return rws_fail(err, RWS_BAD_INPUT, "1 to %d samples can be drawn at a time, not %d.", RWS_MAX_PARTICLES, w->n);
    samples  *s = calloc(1, sizeof *s);
    rws_idle *e = s ? rws__posterior_take(p, err) : NULL;
    if (!e) {
        free(s);
        return rws_no_memory(err, "samples");
    }
    const unsigned   denormals = rws__denormals_off();
    const rws_status status = draw_samples(p, e->engine, w, s, err);
    rws__denormals_restore(denormals);
    rws__posterior_give_back(p, e);
    if (status == RWS_OK) *out = &s->public;
    else rws_samples_free(&s->public);
    return status;
}

rws_status rws_posterior_predict(rws_posterior *p, const rws_answers *a, int n, uint64_t seed, rws_samples **out,
                                 rws_error *err)
{
    RWS_NEED(p, err);
    RWS_NEED(out, err);
    *out = NULL;
    RWS_NEED(a, err);
    if (rws__setup_has_inputs(&p->program.setup))
        return rws_fail(err, RWS_BAD_INPUT, "Posterior predictions of a model that has inputs are not possible.");
    if (!a->n_weighted || !(a->ess > 0))
        return rws_fail(err, RWS_BAD_INPUT,
                        "There is no posterior to predict from: the question must ask for particles, and one of them "
                        "must be possible.");
    return make_samples(p, &(wanted){.answers = a, .n = n, .seed = seed}, out, err);
}

rws_status rws__posterior_sample_unless(rws_posterior *p, const rws_question *at, int n, uint64_t seed,
                                        bool (*stop)(void *context), void *context, rws_samples **out, rws_error *err)
{
    RWS_NEED(p, err);
    RWS_NEED(out, err);
    *out = NULL;
    return make_samples(p, &(wanted){.at = at, .n = n, .seed = seed, .when = {stop, context}}, out, err);
}

rws_status rws_posterior_sample(rws_posterior *p, int n, uint64_t seed, rws_samples **out, rws_error *err)
{
    return rws__posterior_sample_unless(p, NULL, n, seed, NULL, NULL, out, err);
}

rws_status rws_posterior_sample_at(rws_posterior *p, const rws_question *inputs, int n, uint64_t seed,
                                   rws_samples **out, rws_error *err)
{
    RWS_TRY(check_question(inputs, err));
    return rws__posterior_sample_unless(p, inputs, n, seed, NULL, NULL, out, err);
}
