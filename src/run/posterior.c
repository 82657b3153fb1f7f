/* posterior.c - a trained model and guide that many threads may ask at once.
 *
 *     parameters, model, programs     one, never written to after they were loaded
 *     engines                         one per question that is being answered; kept for the next one
 */
#include "run/ask.h"

#include "base/denormals.h"
#include "run/checkpoint.h"
#include "run/given.h"
#include "run/plugin.h"
#include "tensor/blas.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define AT_ONCE 2000 /* samples of a pass */

/* An engine that waits for a question. */
typedef struct idle {
    rws_engine  *engine;
    struct idle *next;
} idle;

struct rws_posterior {
    rws_trainer    *t;
    pthread_mutex_t lock; /* of the list */
    idle           *engines;
};

/* ---- life */

/* Makes a posterior, which owns the trainer from now on; after a failure the trainer is freed. */
static rws_status posterior_of(rws_trainer *t, rws_posterior **out, rws_error *err)
{
    rws_posterior *p = calloc(1, sizeof *p);
    *out = p;
    if (!p) {
        rws_trainer_free(t);
        return rws_no_memory(err, "a posterior");
    }
    p->t = t;
    pthread_mutex_init(&p->lock, NULL);
    return RWS_OK;
}

rws_status rws_posterior_new(const rws_trainer *t, rws_posterior **out, rws_error *err)
{
    rws_trainer *copy;
    void        *library;
    *out = NULL;
    RWS_TRY(rws_model_load_again(t->library, &library, err)); /* the trainer may be freed before the posterior */
    const rws_status status = rws_trainer_new_for_asking(&t->config, NULL, 0, t->model, &copy, err);
    if (status != RWS_OK) {
        rws_model_unload(library);
        return status;
    }
    copy->library = library;
    RWS_CHECK(copy->setup.params.size == t->setup.params.size);
    memcpy(copy->setup.params.value, t->setup.params.value, t->setup.params.size * sizeof(float));
    copy->iteration = t->iteration;
    rws_trainer_changed(copy);
    return posterior_of(copy, out, err);
}

static rws_status open_run(const char *path, const rws_config *changes, const rws_model *model, rws_folder **folder,
                           rws_trainer **t, rws_error *err)
{
    static const rws_config none;
    const rws_config       *c = changes ? changes : &none;
    rws_config              config;
    double                  seconds;
    if (!path) return rws_fail(err, RWS_BAD_INPUT, "The folder of the run has no name (NULL).");
    RWS_TRY(rws_folder_open(path, &config, folder, err));
    if (!rws_folder_has_checkpoint(*folder))
        return rws_fail(err, RWS_BAD_INPUT, "The run in %s has no checkpoint yet; train it further.", path);
    if (c->n_set < 0 || c->n_set > RWS_MAX_ASK_SET)
        return rws_fail(err, RWS_BAD_INPUT, "At most %d settings may differ from those of training, not %d.",
                        RWS_MAX_ASK_SET, c->n_set);
    for (int i = 0; i < c->n_set; i++)
        if (!c->set[i]) return rws_fail(err, RWS_BAD_INPUT, "Setting %d of the changes is NULL.", i);
    if (c->model) config.model = c->model;
    config.limits = c->limits;
    RWS_TRY(rws_trainer_new_for_asking(&config, c->set, c->n_set, model, t, err));
    return rws_folder_look(*folder, *t, &seconds, err);
}

rws_status rws_posterior_open(const char *path, const rws_config *changes, const rws_model *model, rws_posterior **out,
                              rws_error *err)
{
    rws_folder      *folder = NULL;
    rws_trainer     *t = NULL;
    const rws_status status = open_run(path, changes, model, &folder, &t, err);
    *out = NULL;
    rws_folder_close(folder);
    if (status == RWS_OK) return posterior_of(t, out, err);
    rws_trainer_free(t);
    return status;
}

void rws_posterior_free(rws_posterior *p)
{
    if (!p) return;
    for (idle *e = p->engines, *next; e; e = next) {
        next = e->next;
        rws_engine_free(e->engine);
        free(e);
    }
    pthread_mutex_destroy(&p->lock);
    rws_trainer_free(p->t);
    free(p);
}

const rws_config *rws_posterior_config(const rws_posterior *p)
{
    return &p->t->config;
}

const rws_model *rws_posterior_model(const rws_posterior *p)
{
    return p->t->model;
}

uint64_t rws_posterior_iteration(const rws_posterior *p)
{
    return p->t->iteration;
}

bool rws_posterior_field(const rws_posterior *p, int i, rws_field *out)
{
    if (i < 0 || i >= p->t->setup.n_fields) return false;
    *out = p->t->setup.fields[i];
    return true;
}

/* ---- engines */

/* NULL with a sentence without memory. */
static idle *engine_take(rws_posterior *p, rws_error *err)
{
    if (rws_blas_claim(1, err) != RWS_OK) return NULL;
    pthread_mutex_lock(&p->lock);
    idle *e = p->engines;
    if (e) p->engines = e->next;
    pthread_mutex_unlock(&p->lock);
    if (!e && (e = calloc(1, sizeof *e)) && !(e->engine = rws_trainer_engine_new(p->t))) {
        free(e);
        e = NULL;
    }
    if (e) return e;
    rws_blas_unclaim(1);
    rws_no_memory(err, "an engine");
    return NULL;
}

static void engine_give_back(rws_posterior *p, idle *e)
{
    pthread_mutex_lock(&p->lock);
    e->next = p->engines;
    p->engines = e;
    pthread_mutex_unlock(&p->lock);
    rws_blas_unclaim(1);
}

/* ---- asking */

static rws_status check_question(const rws_question *q, rws_error *err)
{
    return q ? RWS_OK : rws_fail(err, RWS_BAD_INPUT, "There is no question (NULL).");
}

rws_status rws_posterior_ask(rws_posterior *p, const rws_question *question, rws_answers **out, rws_error *err)
{
    *out = NULL;
    RWS_TRY(check_question(question, err));
    idle *e = engine_take(p, err);
    if (!e) return RWS_NO_MEMORY;
    const rws_status status = rws_trainer_ask_on(p->t, e->engine, question, out, err);
    engine_give_back(p, e);
    return status;
}

/* ---- scoring */

static rws_status score(rws_posterior *p, rws_engine *engine, const rws_question *q, const rws_choice *choices, int n,
                        rws_arena *memory, rws_score *out, rws_error *err)
{
    float **fields = rws_question_room(p->t, memory);
    if (!fields) return rws_no_memory(err, "a datum");
    RWS_TRY(rws_choices_check(choices, n, err));
    RWS_TRY(rws_question_read(p->t, q, fields, err));
    rws_pass pass = rws_trainer_question(p->t, (const float *const *)fields, q->seed, 0, 1);
    pass.given = choices;
    pass.n_given = n;
    pass.given_all = true;
    RWS_TRY(rws_engine_forward(engine, &pass, err));
    const rws_scores *s = rws_engine_scores(engine);
    *out = (rws_score){s->log_p[0], s->log_q[0] + (s->log_given ? s->log_given[0] : 0)};
    return RWS_OK;
}

rws_status rws_posterior_score(rws_posterior *p, const rws_question *question, const rws_choice *choices, int n,
                               rws_score *out, rws_error *err)
{
    *out = (rws_score){NAN, NAN};
    RWS_TRY(check_question(question, err));
    idle *e = engine_take(p, err);
    if (!e) return RWS_NO_MEMORY;
    rws_arena        memory = {0};
    const unsigned   denormals = rws_denormals_off();
    const rws_status status = score(p, e->engine, question, choices, n, &memory, out, err);
    rws_denormals_restore(denormals);
    rws_arena_free(&memory);
    engine_give_back(p, e);
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
    rws_arena_free(&((samples *)s)->memory);
    free(s);
}

/* The datum that the model made in a row of the engine's table; labels are NULL. NULL without memory. */
static const float *const *copy_fields(const rws_trainer *t, rws_engine *engine, int row, rws_arena *memory)
{
    const float **fields = RWS_TRY_NEW(memory, const float *, t->setup.n_fields + 1);
    for (int f = 0; f < t->setup.n_fields && fields; f++) {
        int dim;
        fields[f] = NULL;
        if (t->setup.fields[f].label) continue;
        const float *made = rws_engine_observed(engine, row, f, &dim);
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

/* A caller's wish to stop; `stop` may be NULL. */
typedef struct {
    bool (*stop)(void *context);
    void *context;
} stopper;

/* Adds the samples of the engine's pass to the list, from number `at` on, and moves on. */
static rws_status add_samples(const rws_trainer *t, rws_engine *engine, const stopper *s, rws_sample *list, int *at,
                              rws_arena *memory, rws_error *err)
{
    const rws_scores *scores = rws_engine_scores(engine);
    for (int i = 0; i < scores->n; i++) {
        if (s->stop && s->stop(s->context)) return rws_fail(err, RWS_STOPPED, "The samples were stopped.");
        rws_sample made = {.fields = copy_fields(t, engine, i, memory)};
        made.reports = rws_reports_of_row(memory, engine, i, &made.n_reports);
        made.choices = rws_choices_of_row(memory, engine, i, &made.n_choices);
        if (!made.fields || !made.reports || !made.choices) return rws_no_memory(err, "samples");
        for (uint32_t k = 0; k < scores->count[i]; k++) list[(*at)++] = made;
    }
    return RWS_OK;
}

static rws_status sample(rws_posterior *p, rws_engine *engine, int n, uint64_t seed, const stopper *s, samples *out,
                         rws_error *err)
{
    rws_trainer  *t = p->t;
    rws_arena    *memory = &out->memory;
    rws_sample   *list = RWS_TRY_NEW(memory, rws_sample, n + 1);
    rws_random    random = rws_random_new(rws_key_for(seed, t->iteration, RWS_KEY_TEST, RWS_TEST_ORDER), 0);
    const rws_key key = rws_key_for(seed, t->iteration, RWS_KEY_TEST, RWS_TEST_SAMPLE);
    if (!list) return rws_no_memory(err, "samples");
    for (int first = 0; first < n; first += AT_ONCE) {
        rws_pass pass = rws_trainer_pass(t, RWS_SLEEP, 1, n - first < AT_ONCE ? n - first : AT_ONCE, NULL, key);
        pass.first_particle = (uint32_t)first;
        pass.reports = pass.asked = pass.choices = true;
        RWS_TRY(rws_engine_forward(engine, &pass, err));
        int at = first;
        RWS_TRY(add_samples(t, engine, s, list, &at, memory, err));
        shuffle(list + first, at - first, &random);
    }
    out->public = (rws_samples){list, n};
    return RWS_OK;
}

rws_status rws_posterior_sample_unless(rws_posterior *p, int n, uint64_t seed, bool (*stop)(void *context),
                                       void *context, rws_samples **out, rws_error *err)
{
    const stopper when = {stop, context};
    *out = NULL;
    if (n < 1 || n > RWS_MAX_PARTICLES)
        return rws_fail(err, RWS_BAD_INPUT, "1 to %d samples can be drawn at a time, not %d.", RWS_MAX_PARTICLES, n);
    samples *s = calloc(1, sizeof *s);
    idle    *e = s ? engine_take(p, err) : NULL;
    if (!e) {
        free(s);
        return rws_no_memory(err, "samples");
    }
    const unsigned denormals = rws_denormals_off();
    rws_engine_watch(e->engine, stop, context);
    const rws_status status = sample(p, e->engine, n, seed, &when, s, err);
    rws_engine_watch(e->engine, NULL, NULL);
    rws_denormals_restore(denormals);
    engine_give_back(p, e);
    if (status == RWS_OK) *out = &s->public;
    else rws_samples_free(&s->public);
    return status;
}

rws_status rws_posterior_sample(rws_posterior *p, int n, uint64_t seed, rws_samples **out, rws_error *err)
{
    return rws_posterior_sample_unless(p, n, seed, NULL, NULL, out, err);
}
