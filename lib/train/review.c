/* review.c - a trainer's programs under review: all of it on request, the cheapest part before a run of a user's program.
 *
 * The whole review looks at a few training data, and counts impossible data among up to MOST_ROWS of each split. What it costs an
 * iteration is measured by the gradients of two iterations, without a step.
 */
#include "train/trainer.h"

#include "base/clock.h"
#include "base/denormals.h"
#include "check/check.h"
#include "program/plugin.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOKED_AT 4
#define MOST_ROWS 2000
#define CHEAP_SECONDS 0.2
#define CHEAP_PARTICLES 8

/* ---- all of it */

static float **data_new(rws_arena *memory, const rws_setup *s, int n)
{
    float **fields = RWS_TRY_NEW(memory, float *, s->n_fields + 1);
    for (int f = 0; f < s->n_fields && fields; f++) {
        const size_t bytes = (size_t)n * (size_t)s->fields[f].dim * sizeof(float);
        fields[f] = rws__arena_try(memory, bytes);
        if (!fields[f]) return NULL;
        memset(fields[f], 0, bytes);
    }
    return fields;
}

static rws_status review_programs(rws_review *r, rws_error *err)
{
    RWS_TRY(rws__check_schedules(r, err));
    if (r->hopeless) return RWS_OK;
    RWS_TRY(rws__check_dreams(r, err));
    RWS_TRY(rws__check_groups(r, err));
    RWS_TRY(rws__check_unused(r, err));
    RWS_TRY(rws__check_global(r, err));
    RWS_TRY(rws__check_jumps(r, err));
    RWS_TRY(rws__check_sums(r, err));
    return rws__check_gradients(r, err);
}

static rws_status review(rws_trainer *t, rws_review *r, rws_error *err)
{
    rws_program *p = &t->program;
    const int    n = MOST_ROWS;
    float      **train = data_new(&r->memory, &p->setup, n);
    if (!train) return rws_no_memory(err, "the data of a review");
    r->fields = (const float *const *)train;
    r->n_data = LOOKED_AT;
    RWS_TRY(rws__check_data(r, n, train, err));
    if (r->hopeless) return RWS_OK;
    RWS_TRY(review_programs(r, err));
    if (r->hopeless) return RWS_OK;
    RWS_TRY(rws__check_kept(r, err));
    RWS_TRY(rws__check_writes(r, err));
    RWS_TRY(rws__check_rows(r, RWS_TRAIN, n, (const float *const *)train, err));
    return rws__check_rows(r, RWS_TEST, p->n_test < n ? p->n_test : n, (const float *const *)t->test, err);
}

/* Fills in what an iteration costs. */
static rws_status measure(rws_trainer *t, rws_check_findings *out, rws_error *err)
{
    const size_t size = t->program.setup.params.size;
    float       *gradient = malloc((size + 1) * sizeof *gradient);
    rws_error    why;
    out->seconds = NAN;
    if (!gradient) return rws_no_memory(err, "a gradient");
    rws_status status = rws_trainer_gradient(t, RWS_TRAIN, 0, gradient, size, &why);
    rws__trainer_take_stats(t);
    const double since = rws__clock_now();
    if (status == RWS_OK) status = rws_trainer_gradient(t, RWS_TRAIN, 1, gradient, size, &why);
    if (status == RWS_OK) out->seconds = rws__clock_now() - since;
    const rws_engine_stats s = rws__trainer_take_stats(t);
    out->rows = s.rows;
    out->paths = s.paths;
    out->calls = s.calls;
    free(gradient);
    return status == RWS_STOPPED || status == RWS_NO_MEMORY ? rws_fail(err, status, "%s", why.text) : RWS_OK;
}

rws_status rws_trainer_check(rws_trainer *t, rws_check_findings **out, rws_error *err)
{
    RWS_TRAINER_ENTER(t, err);
    RWS_NEED(out, err);
    *out = NULL;
    rws_review     r;
    const unsigned denormals = rws__denormals_off();
    rws_status     status = rws__review_begin(&r, &t->program, t->engines[0], NULL, 0, err);
    if (status == RWS_OK) status = review(t, &r, err);
    if (status == RWS_OK) status = rws__review_findings(&r, out, err);
    if (status == RWS_OK) status = measure(t, *out, err);
    rws__denormals_restore(denormals);
    rws__review_release(&r);
    if (status == RWS_OK) return RWS_OK;
    if (status == RWS_STOPPED) rws_fail(err, status, "The review was stopped.");
    rws_check_free(*out);
    *out = NULL;
    return status;
}

/* ---- before a run */

static bool is_users(const rws_trainer *t)
{
    for (int i = 0; rws_models[i]; i++)
        if (rws_models[i] == t->program.model) return false;
    return true;
}

static rws_status look_at_programs(rws_review *r, rws_error *err)
{
    RWS_TRY(rws__check_schedules(r, err));
    if (r->hopeless) return RWS_OK;
    RWS_TRY(rws__check_groups(r, err));
    RWS_TRY(rws__check_kept(r, err));
    RWS_TRY(rws__check_writes(r, err));
    if (!rws__review_is_late(r)) RWS_TRY(rws__check_dreams(r, err));
    return rws__review_is_late(r) ? RWS_OK : rws__check_global(r, err);
}

/* A mistake is refused; the first warning is kept. */
static rws_status judge(rws_trainer *t, const rws_review *r, rws_error *err)
{
    for (int i = 0; i < r->n; i++) {
        const rws_check_finding *f = &r->list[i];
        if (f->severity == RWS_MISTAKE && !rws__review_is_failure(f))
            return rws_fail(err, RWS_BAD_INPUT, "%.440s `no_check` accepts it.", f->text);
        if (f->severity == RWS_WARNING && !t->doubt[0]) snprintf(t->doubt, sizeof t->doubt, "%s", f->text);
    }
    return RWS_OK;
}

static rws_status check_programs(rws_trainer *t, rws_error *err)
{
    rws_review r;
    rws_status status = rws__review_begin(&r, &t->program, t->engines[0], (const float *const *)t->test,
                                          t->program.n_test < 2 ? 1 : 2, err);
    r.n_particles = CHEAP_PARTICLES;
    r.until = rws__clock_now() + CHEAP_SECONDS;
    if (status == RWS_OK) status = look_at_programs(&r, err);
    if (status == RWS_OK) status = judge(t, &r, err);
    rws__review_release(&r);
    rws__trainer_take_stats(t);
    return status;
}

const char *rws_trainer_doubt(const rws_trainer *t)
{
    return t && t->doubt[0] ? t->doubt : NULL;
}

/* Programs that fail on a single particle are left to the first iteration, whose message says where; so is a request to stop. */
rws_status rws__trainer_check_briefly(rws_trainer *t, rws_error *err)
{
    if (t->checked || t->program.config.no_check || !is_users(t)) return RWS_OK;
    t->checked = true;
    const unsigned   denormals = rws__denormals_off();
    const rws_status status = check_programs(t, err);
    rws__denormals_restore(denormals);
    return rws__trainer_agree(t, status == RWS_STOPPED ? RWS_OK : status, err);
}

/* ---- impossible training data */

void rws__trainer_count_impossible(rws_trainer *t)
{
    t->seen += t->tally.n_data;
    if (!t->tally.impossible || t->program.model->defaults.impossible) return;
    t->impossible += t->tally.impossible;
    if (t->forbidden[0]) return;
    rws_review r;
    rws_error  err;
    char       text[480] = "";
    if (rws__review_begin(&r, &t->program, t->engines[0], NULL, 0, &err) == RWS_OK &&
        rws__find_impossible(&r, t->program.iteration, t->program.config.batch, (const float *const *)t->batch, text,
                             sizeof text, &err) == RWS_OK)
        snprintf(t->forbidden, sizeof t->forbidden, "%s (iteration %llu)", text[0] ? text : "a datum of the batch",
                 (unsigned long long)t->program.iteration + 1);
    rws__review_release(&r);
}

const char *rws_trainer_impossible(const rws_trainer *t)
{
    if (!t || !t->impossible) return NULL;
    rws_trainer *own = (rws_trainer *)t; /* the text is the trainer's */
    snprintf(own->impossible_text, sizeof own->impossible_text,
             "No particle has explained %llu of the %llu training data so far, which teach nothing; the first is %s.",
             (unsigned long long)t->impossible, (unsigned long long)t->seen,
             t->forbidden[0] ? t->forbidden : "not known");
    return t->impossible_text;
}
