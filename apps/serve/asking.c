/* asking.c - the routes that ask a trained run: infer, sample, score, calibrate.
 *
 * A request that carries many data, or wants many samples, is answered line by line while the answers are computed. As
 * many questions are answered at a time as there are threads; others wait, and are refused when they have waited for the
 * time that a question may take.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/quote.h"
#include "ask/answers_json.h"
#include "ask/ask.h"
#include "ask/posterior.h"
#include "program/plugin.h"
#include "serve/core.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BATCH = 1000,      /* samples that are drawn at a time */
    SIMULATIONS = 300, /* of a calibration, unless the request says how many */
    MAX_MOMENTS = 8,   /* of a choice in marginals; a picture or a code has more */
    MAX_PARTICLES = 1000
};
#define MAX_NUMBERS 2e7 /* in the fields of all samples of a batch */
#define LOOK_EVERY 0.1  /* seconds between two looks whether the client is there */

/* A question that is under way: it holds a posterior. */
typedef struct {
    rws_core   *core;
    rws_opened *opened;
    rws_body    body;
    rws_field  *fields; /* all that the model has */
    int         n_fields;
    int         done;    /* data or samples that were answered */
    uint64_t    batches; /* of samples that were drawn */
    double      spent;   /* seconds of drawing samples */
    double      until;
    bool        failed;
    bool (*gone)(void *client); /* of the request */
    void  *client;
    double looked; /* when the client was looked for last */
} asking;

/* ---- one at a time for each thread */

static bool begin_work(rws_core *c, rws_reply *reply)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)ceil(c->options.max_seconds);
    int code;
    while ((code = sem_clockwait(&c->work, CLOCK_MONOTONIC, &until)) != 0 && errno == EINTR) continue;
    if (code == 0) return true;
    reply->retry = true;
    return rws__reply_fail(reply, 503, "The server has more questions than it can answer; ask again later.");
}

static void end_work(rws_core *c)
{
    sem_post(&c->work);
}

static bool is_late(void *context)
{
    const asking *a = context;
    return rws__clock_now() > a->until;
}

/* Whether a batch of samples, which may take longer than a question, ends early: the server ends, or the client has left. */
static bool is_idle(void *context)
{
    asking      *a = context;
    const double now = rws__clock_now();
    if (a->core->draining) return true;
    if (!a->gone || now - a->looked < LOOK_EVERY) return false;
    a->looked = now;
    return a->gone(a->client);
}

/* ---- the run */

/* The shared object of --model that a run has; NULL: none. rws_posterior_open decides whether it fits. */
static const char *named_object(const rws_core *c, const char *model)
{
    char       *real = model && rws__model_is_path(model) ? realpath(model, NULL) : NULL;
    const char *named = NULL;
    for (int i = 0; i < c->options.n_models && real && !named; i++) {
        char *other = realpath(c->options.models[i], NULL);
        if (other && strcmp(other, real) == 0) named = c->options.models[i];
        free(other);
    }
    free(real);
    return named;
}

/* Whether the model is a path or the name of a built-in model. The model of a run from Python is neither. */
static bool is_known(const char *model)
{
    if (!model || rws__model_is_path(model)) return true;
    for (int i = 0; rws_model_at(i); i++)
        if (strcmp(rws_model_at(i)->name, model) == 0) return true;
    return false;
}

/* The folder of the run, the caller's to free; NULL with the reply. *named is the shared object that the user has named for it. */
static char *find_folder(rws_core *c, const rws_request *r, const char **named, rws_reply *reply)
{
    rws__catalogue_read(c->catalogue);
    const rws_catalogue_run *run = rws__core_run(c, r, reply);
    const char              *model = run ? rws_result_get(&run->result, "model") : NULL;
    char                    *folder = NULL;
    *named = named_object(c, model);
    if (run && !run->folder) rws__reply_fail(reply, 404, "The run's folder is not among the folders that are served.");
    else if (run && !is_known(model))
        rws__reply_fail(reply, 409,
                        "The model \"%s\" is not part of this program: a run that was trained from Python is asked "
                        "there, with rws.open(FOLDER, MODEL). Its curves are shown all the same.",
                        rws__quote(model).text);
    else if (run && model && rws__model_is_path(model) && !*named)
        rws__reply_fail(reply, 403,
                        "The run has a model of its own, \"%s\", which is loaded only if rws serve is started "
                        "with --model and its path.",
                        rws__quote(model).text);
    else if (run && !(folder = strdup(run->folder))) rws__reply_fail(reply, 503, "There is no memory for this reply.");
    rws__catalogue_done(c->catalogue);
    return folder;
}

static void end(void *context)
{
    asking *a = context;
    if (a->opened) rws__posteriors_give_back(a->core->posteriors, a->opened);
    rws__body_release(&a->body);
    free(a->fields);
    free(a);
}

/* False without memory. */
static bool list_fields(asking *a)
{
    const rws_posterior *p = rws__opened_posterior(a->opened);
    rws_field            field;
    int                  n = 0;
    while (rws_posterior_field(p, n, &field)) n++;
    a->fields = calloc((size_t)n + 1, sizeof *a->fields);
    if (!a->fields) return false;
    while (a->n_fields < n && rws_posterior_field(p, a->n_fields, &a->fields[a->n_fields])) a->n_fields++;
    return true;
}

/* Ends a question that failed. NULL, for `return fail(…)`. */
static asking *fail(asking *a, rws_status status, const rws_error *err, rws_reply *reply)
{
    rws__reply_status(reply, status, err);
    end(a);
    return NULL;
}

/* Opens the run's posterior; NULL with the reply. The caller ends it. */
static asking *begin(rws_core *c, const rws_request *r, rws_reply *reply)
{
    rws_config given = {.changed = c->options.changed};
    rws_error  err = {""};
    char      *folder = find_folder(c, r, &given.model, reply);
    asking    *a = folder ? calloc(1, sizeof *a) : NULL;
    rws_status status = RWS_OK;
    if (a) {
        *a = (asking){.core = c, .gone = r->gone, .client = r->client};
        status = rws__posteriors_take(c->posteriors, folder, &given, &a->opened, &err);
        if (status == RWS_OK && !list_fields(a)) status = rws_no_memory(&err, "this reply");
    } else if (folder) rws__reply_fail(reply, 503, "There is no memory for this reply.");
    free(folder);
    return status == RWS_OK ? a : fail(a, status, &err, reply);
}

static asking *begin_body(rws_core *c, const rws_request *r, rws_body_kind kind, rws_reply *reply)
{
    asking *a = begin(c, r, reply);
    if (!a) return NULL;
    rws_error        err = {""};
    const rws_status status =
        rws__body_read(r->body, r->n_body, kind, a->fields, a->n_fields, &c->limits, &a->body, &err);
    a->until = rws__clock_now() + c->options.max_seconds;
    return status == RWS_OK ? a : fail(a, status, &err, reply);
}

/* Answers with what `write` writes when its turn comes, and ends the question. */
static bool answer_once(asking *a, rws_status (*write)(asking *, rws_buffer *, rws_error *), rws_reply *reply)
{
    rws_error err = {""};
    bool      good = begin_work(a->core, reply);
    if (good) {
        const rws_status status = write(a, &reply->body, &err);
        end_work(a->core);
        good = status == RWS_OK || rws__reply_status(reply, status, &err);
    }
    end(a);
    return good && rws__reply_end(reply, "application/json");
}

static void write_error(rws_buffer *out, const char *message)
{
    rws__buffer_open(out, '{');
    rws__buffer_key_text(out, "error", message);
    rws__buffer_close(out, '}');
}

/* The next lines of a reply, written by `write`; false after a failure, whose message is the last line. */
static bool next_lines(asking *a, rws_status (*write)(asking *, rws_buffer *, rws_error *), rws_buffer *out)
{
    rws_error err = {""};
    rws_reply busy = {0};
    if (a->failed) return false;
    if (begin_work(a->core, &busy)) {
        a->failed = write(a, out, &err) != RWS_OK;
        end_work(a->core);
        if (a->failed) write_error(out, err.text);
    } else {
        a->failed = true;
        rws__buffer_add(out, busy.body.bytes, busy.body.n);
    }
    if (a->failed) rws__buffer_add(out, "\n", 1);
    rws__reply_release(&busy);
    return true;
}

/* ---- what can be asked */

static void write_field(const rws_field *f, rws_buffer *out)
{
    rws__buffer_open(out, '{');
    rws__buffer_key_text(out, "name", f->name);
    rws__buffer_key_number(out, "dim", f->dim);
    rws__buffer_key_true(out, "label", f->label);
    rws__buffer_key_true(out, "input", f->input);
    rws__buffer_key_number(out, "item", f->item);
    rws__buffer_key_number(out, "most", f->most);
    rws__buffer_close(out, '}');
}

bool rws__answer_askable(rws_core *c, const rws_request *r, rws_reply *reply)
{
    asking *a = begin(c, r, reply);
    if (!a) return false;
    const rws_posterior *p = rws__opened_posterior(a->opened);
    const rws_model     *m = rws_posterior_model(p);
    rws_buffer          *out = &reply->body;
    rws__buffer_open(out, '{');
    rws__buffer_key_text(out, "model", m->name);
    rws__buffer_key_text(out, "help", m->help);
    rws__buffer_key_number(out, "iteration", (double)rws_posterior_iteration(p));
    rws__buffer_key_true(out, "text", m->read != NULL);
    rws__buffer_key_true(out, "picture", m->see != NULL);
    rws__buffer_key_true(out, "exact", m->posterior != NULL);
    rws__buffer_key_number(out, "n_test", rws_posterior_config(p)->n_test);
    rws__buffer_key_number(out, "max_particles", c->limits.particles);
    rws__buffer_open_key(out, "fields", '[');
    for (int i = 0; i < a->n_fields; i++) write_field(&a->fields[i], out);
    rws__buffer_close(out, ']');
    rws__buffer_close(out, '}');
    end(a);
    return rws__reply_end(reply, "application/json");
}

/* ---- infer */

static void write_answers(const rws_answers *a, const rws_body *body, rws_buffer *out)
{
    rws__buffer_open(out, '{');
    rws__answers_write(a,
                       &(rws_answers_shown){.answers = body->top,
                                            .particles = body->listed ? MAX_PARTICLES : 0,
                                            .marginals = body->marginals ? MAX_MOMENTS : 0},
                       out);
    rws__buffer_close(out, '}');
}

static rws_status refuse_late(const asking *a, rws_error *err)
{
    return rws_fail(err, RWS_STOPPED, "The question took more than %g seconds: ask with fewer particles.",
                    a->core->options.max_seconds);
}

static rws_status infer_one(asking *a, rws_buffer *out, rws_error *err)
{
    rws_question *q = &a->body.data[a->done].question;
    rws_answers  *answers;
    q->stop = is_late;
    q->context = a;
    a->until =
        rws__clock_now() + a->core->options.max_seconds; /* the time that it waited for a thread does not count */
    rws_status status = rws_posterior_ask(rws__opened_posterior(a->opened), q, &answers, err);
    if (status == RWS_STOPPED) refuse_late(a, err);
    if (status == RWS_OK) write_answers(answers, &a->body, out);
    if (status == RWS_OK) rws_answers_free(answers);
    a->done++;
    return status;
}

/* What a part of many answers is written to. */
typedef struct {
    asking     *a;
    rws_buffer *out;
} lines;

/* Writes a line for each question; a datum that the model does not understand has a line with the message. */
static bool write_line(void *context, int i, rws_answers *answers, rws_status status, const char *message)
{
    const lines *l = context;
    (void)i, (void)status;
    if (answers) write_answers(answers, &l->a->body, l->out);
    else write_error(l->out, message);
    rws__buffer_add(l->out, "\n", 1);
    rws_answers_free(answers);
    l->a->done++;
    return true;
}

static bool lines_are_late(void *context)
{
    return is_late(((const lines *)context)->a);
}

/* Answers the next questions, as many as share a pass, in the time of one. */
static rws_status infer_lines(asking *a, rws_buffer *out, rws_error *err)
{
    rws_posterior *p = rws__opened_posterior(a->opened);
    lines          l = {a, out};
    const int      most = rws__questions_at_once(rws__posterior_program(p), a->body.particles),
              left = a->body.n_data - a->done, n = left < most ? left : most;
    const rws_many how = {
        .threads = 1, .first = (uint64_t)a->done, .each = write_line, .stop = lines_are_late, .context = &l};
    rws_question *list = malloc((size_t)n * sizeof *list);
    if (!list) return rws_no_memory(err, "answers");
    for (int i = 0; i < n; i++) list[i] = a->body.data[a->done + i].question;
    a->until = rws__clock_now() + a->core->options.max_seconds;
    const rws_status status = rws_posterior_ask_many(p, list, n, &how, err);
    free(list);
    return status == RWS_STOPPED ? refuse_late(a, err) : status;
}

static bool next_answer(void *context, rws_buffer *out)
{
    asking *a = context;
    return a->done < a->body.n_data && next_lines(a, infer_lines, out);
}

bool rws__answer_infer(rws_core *c, const rws_request *r, rws_reply *reply)
{
    asking *a = begin_body(c, r, RWS_BODY_INFER, reply);
    if (!a) return false;
    if (a->body.many) {
        reply->stream = (rws_stream){a, next_answer, end};
        return rws__reply_end(reply, "application/x-ndjson");
    }
    return answer_once(a, infer_one, reply);
}

/* ---- sample */

static int batch_of(const asking *a)
{
    double numbers = 1;
    for (int i = 0; i < a->n_fields; i++) numbers += a->fields[i].dim;
    const int most = (int)fmin(BATCH, fmax(1, MAX_NUMBERS / numbers)), left = a->body.samples - a->done;
    return left < most ? left : most;
}

/* Writes samples, each followed by `after`. RWS_STOPPED if the batch ends early. */
static rws_status write_samples(asking *a, const rws_samples *samples, const char *after, rws_buffer *out)
{
    for (int i = 0; i < samples->n; i++) {
        if (is_idle(a)) return RWS_STOPPED;
        rws__sample_write(rws__opened_posterior(a->opened), &samples->list[i], a->body.listed, out);
        rws__buffer_add(out, after, strlen(after));
        a->done++;
    }
    return RWS_OK;
}

/* Draws the next batch, whose seed is that of the request plus the number of the batch, and writes its samples. RWS_STOPPED if
 * the batches before have taken the time of a question, the client has gone away, or the server ends. */
static rws_status sample_batch(asking *a, const char *after, rws_buffer *out, rws_error *err)
{
    rws_samples *samples;
    const double began = rws__clock_now();
    if (a->spent > a->core->options.max_seconds)
        return rws_fail(err, RWS_STOPPED,
                        "The samples took more than %g seconds, and %d of %d were drawn: ask for fewer.",
                        a->core->options.max_seconds, a->done, a->body.samples);
    rws_status status = rws__posterior_sample_unless(rws__opened_posterior(a->opened),
                                                     a->body.n_data ? &a->body.data[0].question : NULL, batch_of(a),
                                                     a->body.seed + a->batches++, is_idle, a, &samples, err);
    if (status == RWS_OK) {
        status = write_samples(a, samples, after, out);
        rws_samples_free(samples);
    }
    a->spent += rws__clock_now() - began;
    if (status != RWS_STOPPED) return status;
    return rws_fail(err, status, "The server is about to end, and %d of %d samples were drawn; try again later.",
                    a->done, a->body.samples);
}

static rws_status write_all_samples(asking *a, rws_buffer *out, rws_error *err)
{
    rws__buffer_open(out, '{');
    rws__buffer_open_key(out, "samples", '[');
    RWS_TRY(sample_batch(a, "", out, err));
    rws__buffer_print(out, "]}");
    return RWS_OK;
}

static rws_status sample_lines(asking *a, rws_buffer *out, rws_error *err)
{
    return sample_batch(a, "\n", out, err);
}

static bool next_samples(void *context, rws_buffer *out)
{
    asking *a = context;
    return a->done < a->body.samples && next_lines(a, sample_lines, out);
}

bool rws__answer_sample(rws_core *c, const rws_request *r, rws_reply *reply)
{
    asking *a = begin_body(c, r, RWS_BODY_SAMPLE, reply);
    if (!a) return false;
    if (r->accept && strstr(r->accept, "application/x-ndjson")) {
        reply->stream = (rws_stream){a, next_samples, end};
        return rws__reply_end(reply, "application/x-ndjson");
    }
    if (a->body.samples <= batch_of(a)) return answer_once(a, write_all_samples, reply);
    rws__reply_fail(reply, 400, "More than %d samples come as lines: send the header \"Accept: application/x-ndjson\".",
                    batch_of(a));
    end(a);
    return false;
}

/* ---- score */

static rws_status write_score(asking *a, rws_buffer *out, rws_error *err)
{
    rws_score score;
    RWS_TRY(rws_posterior_score(rws__opened_posterior(a->opened), &a->body.data[0].question, a->body.choices,
                                a->body.n_choices, &score, err));
    rws__buffer_open(out, '{');
    rws__buffer_key_number(out, "log_p", score.log_p);
    rws__buffer_key_number(out, "log_q", score.log_q);
    rws__buffer_close(out, '}');
    return RWS_OK;
}

bool rws__answer_score(rws_core *c, const rws_request *r, rws_reply *reply)
{
    asking *a = begin_body(c, r, RWS_BODY_SCORE, reply);
    return a && answer_once(a, write_score, reply);
}

/* ---- calibrate */

static bool is_over(void *context)
{
    return is_late(context) || is_idle(context);
}

static rws_status simulate(asking *a, rws_frame *f, rws_calibration **out, rws_error *err)
{
    const rws_simulations how = {.n_particles = a->body.particles,
                                 .refine = a->body.refine,
                                 .seed = a->body.seed,
                                 .threads = 1,
                                 .stop = is_over,
                                 .context = a};
    a->until = rws__clock_now() + a->core->options.max_seconds;
    const rws_status status = rws_posterior_simulate(rws__opened_posterior(a->opened), a->body.samples, &how, f, err);
    if (status == RWS_STOPPED)
        return rws_fail(err, status, "%d of %d simulations took %g seconds: ask for fewer, or with fewer particles.",
                        rws_frame_rows(f), a->body.samples, a->core->options.max_seconds);
    return status == RWS_OK ? rws_calibration_new(f, out, err) : status;
}

static rws_status write_calibration(asking *a, rws_buffer *out, rws_error *err)
{
    rws_frame       *f;
    rws_calibration *c = NULL;
    RWS_TRY(rws_frame_new(&f, err));
    const rws_status status = simulate(a, f, &c, err);
    rws_frame_free(f);
    if (status != RWS_OK) return status;
    rws__buffer_open(out, '{');
    rws__buffer_key_number(out, "simulations", c->n_simulations);
    rws__buffer_key_number(out, "impossible", c->n_impossible);
    rws__buffer_open_key(out, "quantities", '[');
    for (int i = 0; i < c->n; i++) rws__calibrated_write(&c->list[i], out);
    rws__buffer_close(out, ']');
    rws__buffer_close(out, '}');
    rws_calibration_free(c);
    return RWS_OK;
}

bool rws__answer_calibrate(rws_core *c, const rws_request *r, rws_reply *reply)
{
    asking *a = begin_body(c, r, RWS_BODY_CALIBRATE, reply);
    if (!a) return false;
    if (a->body.samples == 1) a->body.samples = SIMULATIONS;
    return answer_once(a, write_calibration, reply);
}
