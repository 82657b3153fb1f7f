/* asking.c - the routes that ask a trained run: infer, sample, score.
 *
 * A request that carries many data, or wants many samples, is answered line by line while the answers are computed. As
 * many questions are answered at a time as there are threads; others wait, and are refused when they have waited for the
 * time that a question may take.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/quote.h"
#include "ask/answers_json.h"
#include "ask/posterior.h"
#include "program/plugin.h"
#include "serve/core.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LOT = 1000,       /* samples that are drawn at a time */
    MOST_MOMENTS = 8, /* of a choice in marginals; a picture or a code has more */
    MOST_PARTICLES = 1000
};
#define MOST_NUMBERS 2e7 /* in the fields of all samples of a lot */
#define LOOK_EVERY 0.1   /* seconds between two looks whether the client is there */

/* A question that is under way: it holds a posterior. */
typedef struct {
    rws_core  *core;
    rws_warm  *warm;
    rws_posed  posed;
    rws_field *fields; /* all that the model has */
    int        n_fields;
    int        done;  /* data or samples that were answered */
    uint64_t   lots;  /* of samples that were drawn */
    double     spent; /* seconds of drawing samples */
    double     until;
    bool       failed;
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
    return rws_reply_fail(reply, 503, "The server has more questions than it can answer; ask again later.");
}

static void end_work(rws_core *c)
{
    sem_post(&c->work);
}

static bool is_late(void *context)
{
    const asking *a = context;
    return rws_clock_now() > a->until;
}

/* Whether a lot of samples, which may take longer than a question, ends early: the server does, or nobody waits for it. */
static bool is_idle(void *context)
{
    asking      *a = context;
    const double now = rws_clock_now();
    if (a->core->draining) return true;
    if (!a->gone || now - a->looked < LOOK_EVERY) return false;
    a->looked = now;
    return a->gone(a->client);
}

/* ---- the run */

/* The shared object of --model that a run has; NULL: none. rws_posterior_open decides whether it fits. */
static const char *named_object(const rws_core *c, const char *model)
{
    char       *real = model && rws_model_is_path(model) ? realpath(model, NULL) : NULL;
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
    if (!model || rws_model_is_path(model)) return true;
    for (int i = 0; rws_model_at(i); i++)
        if (strcmp(rws_model_at(i)->name, model) == 0) return true;
    return false;
}

/* The folder of the run, the caller's to free; NULL with the reply. *named is the shared object that the user has named for it. */
static char *find_folder(rws_core *c, const rws_request *r, const char **named, rws_reply *reply)
{
    rws_catalogue_read(c->catalogue);
    const rws_listed *run = rws_core_run(c, r, reply);
    const char       *model = run ? rws_result_get(&run->result, "model") : NULL;
    char             *folder = NULL;
    *named = named_object(c, model);
    if (run && !run->folder) rws_reply_fail(reply, 404, "The run's folder is not among the folders that are served.");
    else if (run && !is_known(model))
        rws_reply_fail(reply, 409,
                       "The model \"%s\" is not part of this program: a run that was trained from Python is asked "
                       "there, with rws.open(FOLDER, MODEL). Its curves are shown all the same.",
                       rws_quote(model).text);
    else if (run && model && rws_model_is_path(model) && !*named)
        rws_reply_fail(reply, 403,
                       "The run has a model of its own, \"%s\", which is loaded only if rws serve is started "
                       "with --model and its path.",
                       rws_quote(model).text);
    else if (run && !(folder = strdup(run->folder))) rws_reply_fail(reply, 503, "There is no memory for this reply.");
    rws_catalogue_done(c->catalogue);
    return folder;
}

static void end(void *context)
{
    asking *a = context;
    if (a->warm) rws_warm_give_back(a->core->warm, a->warm);
    rws_posed_release(&a->posed);
    free(a->fields);
    free(a);
}

/* False without memory. */
static bool list_fields(asking *a)
{
    const rws_posterior *p = rws_warm_posterior(a->warm);
    rws_field            field;
    int                  n = 0;
    while (rws_posterior_field(p, n, &field)) n++;
    a->fields = calloc((size_t)n + 1, sizeof *a->fields);
    if (!a->fields) return false;
    while (a->n_fields < n && rws_posterior_field(p, a->n_fields, &a->fields[a->n_fields])) a->n_fields++;
    return true;
}

/* Opens the run's posterior; NULL with the reply. The caller ends it. */
static asking *begin(rws_core *c, const rws_request *r, rws_reply *reply)
{
    rws_config given = {.changed = c->options.changed};
    char      *folder = find_folder(c, r, &given.model, reply);
    asking    *a = folder ? calloc(1, sizeof *a) : NULL;
    if (folder && !a) rws_reply_fail(reply, 503, "There is no memory for this reply.");
    if (a) {
        rws_error err = {""};
        a->core = c;
        const rws_status status = rws_warm_take(c->warm, folder, &given, &a->warm, &err);
        if (status != RWS_OK) {
            rws_reply_status(reply, status, &err);
            a->warm = NULL;
            end(a);
            a = NULL;
        }
    }
    free(folder);
    if (a && !list_fields(a)) {
        rws_reply_fail(reply, 503, "There is no memory for this reply.");
        end(a);
        a = NULL;
    }
    return a;
}

static asking *begin_posed(rws_core *c, const rws_request *r, rws_posed_kind kind, rws_reply *reply)
{
    asking *a = begin(c, r, reply);
    if (!a) return NULL;
    rws_error        err = {""};
    const rws_status status =
        rws_posed_read(r->body, r->n_body, kind, a->fields, a->n_fields, &c->limits, &a->posed, &err);
    a->until = rws_clock_now() + c->options.max_seconds;
    a->gone = r->gone;
    a->client = r->client;
    if (status == RWS_OK) return a;
    rws_reply_status(reply, status, &err);
    end(a);
    return NULL;
}

/* ---- what can be asked */

static void write_field(const rws_field *f, rws_buffer *out)
{
    rws_buffer_open(out, '{');
    rws_buffer_key_text(out, "name", f->name);
    rws_buffer_key_number(out, "dim", f->dim);
    rws_buffer_key_true(out, "label", f->label);
    rws_buffer_key_number(out, "item", f->item);
    rws_buffer_key_number(out, "most", f->most);
    rws_buffer_close(out, '}');
}

bool rws_answer_askable(rws_core *c, const rws_request *r, rws_reply *reply)
{
    asking *a = begin(c, r, reply);
    if (!a) return false;
    const rws_posterior *p = rws_warm_posterior(a->warm);
    const rws_model     *m = rws_posterior_model(p);
    rws_buffer          *out = &reply->body;
    rws_buffer_open(out, '{');
    rws_buffer_key_text(out, "model", m->name);
    rws_buffer_key_text(out, "help", m->help);
    rws_buffer_key_number(out, "iteration", (double)rws_posterior_iteration(p));
    rws_buffer_key_true(out, "text", m->read != NULL);
    rws_buffer_key_true(out, "picture", m->see != NULL);
    rws_buffer_key_true(out, "exact", m->posterior != NULL);
    rws_buffer_key_number(out, "n_test", rws_posterior_config(p)->n_test);
    rws_buffer_key_number(out, "max_particles", c->limits.particles);
    rws_buffer_key(out, "fields");
    rws_buffer_open(out, '[');
    for (int i = 0; i < a->n_fields; i++) write_field(&a->fields[i], out);
    rws_buffer_close(out, ']');
    rws_buffer_close(out, '}');
    end(a);
    return rws_reply_end(reply, "application/json");
}

/* ---- infer */

static void write_answers(const rws_answers *a, const rws_posed *posed, rws_buffer *out)
{
    rws_buffer_open(out, '{');
    rws_answers_write(a,
                      &(rws_answers_parts){.answers = posed->top,
                                           .particles = posed->listed ? MOST_PARTICLES : 0,
                                           .marginals = posed->marginals ? MOST_MOMENTS : 0},
                      out);
    rws_buffer_close(out, '}');
}

static rws_status infer_one(asking *a, rws_buffer *out, rws_error *err)
{
    rws_question *q = &a->posed.data[a->done].question;
    rws_answers  *answers;
    q->stop = is_late;
    q->context = a;
    a->until = rws_clock_now() + a->core->options.max_seconds; /* the time that it waited for a thread does not count */
    rws_status status = rws_posterior_ask(rws_warm_posterior(a->warm), q, &answers, err);
    if (status == RWS_STOPPED)
        rws_fail(err, status, "The question took more than %g seconds: ask with fewer particles.",
                 a->core->options.max_seconds);
    if (status == RWS_OK) write_answers(answers, &a->posed, out);
    if (status == RWS_OK) rws_answers_free(answers);
    a->done++;
    return status;
}

static void write_error(rws_buffer *out, const char *sentence)
{
    rws_buffer_open(out, '{');
    rws_buffer_key_text(out, "error", sentence);
    rws_buffer_close(out, '}');
}

/* The next line of many answers. A datum that the model does not understand has a line with the sentence. */
static bool next_answer(void *context, rws_buffer *out)
{
    asking   *a = context;
    rws_error err = {""};
    rws_reply busy = {0};
    if (a->failed || a->done == a->posed.n_data) return false;
    if (!begin_work(a->core, &busy)) {
        rws_buffer_add(out, busy.body.bytes, busy.body.n);
        rws_reply_release(&busy);
        a->failed = true;
    } else {
        const rws_status status = infer_one(a, out, &err);
        end_work(a->core);
        a->failed = status != RWS_OK && status != RWS_BAD_INPUT;
        if (status != RWS_OK) write_error(out, err.text);
    }
    rws_buffer_add(out, "\n", 1);
    return true;
}

bool rws_answer_infer(rws_core *c, const rws_request *r, rws_reply *reply)
{
    asking *a = begin_posed(c, r, RWS_POSED_INFER, reply);
    if (!a) return false;
    if (a->posed.many) {
        reply->stream = (rws_stream){a, next_answer, end};
        return rws_reply_end(reply, "application/x-ndjson");
    }
    rws_error err = {""};
    bool      good = begin_work(c, reply);
    if (good) {
        const rws_status status = infer_one(a, &reply->body, &err);
        end_work(c);
        good = status == RWS_OK || rws_reply_status(reply, status, &err);
    }
    end(a);
    return good && rws_reply_end(reply, "application/json");
}

/* ---- sample */

static int lot_of(const asking *a)
{
    double numbers = 1;
    for (int i = 0; i < a->n_fields; i++) numbers += a->fields[i].dim;
    const int most = (int)fmin(LOT, fmax(1, MOST_NUMBERS / numbers)), left = a->posed.samples - a->done;
    return left < most ? left : most;
}

/* Writes samples, each followed by `after`. RWS_STOPPED if the lot ends early. */
static rws_status write_samples(asking *a, const rws_samples *samples, const char *after, rws_buffer *out)
{
    for (int i = 0; i < samples->n; i++) {
        if (is_idle(a)) return RWS_STOPPED;
        rws_sample_write(rws_warm_posterior(a->warm), &samples->list[i], a->posed.listed, out);
        rws_buffer_add(out, after, strlen(after));
        a->done++;
    }
    return RWS_OK;
}

/* Draws the next lot, whose seed is that of the request plus the number of the lot, and writes its samples. RWS_STOPPED if
 * the lots before have taken the time of a question, the client has gone away, or the server ends. */
static rws_status sample_lot(asking *a, const char *after, rws_buffer *out, rws_error *err)
{
    rws_samples *samples;
    const double began = rws_clock_now();
    if (a->spent > a->core->options.max_seconds)
        return rws_fail(err, RWS_STOPPED,
                        "The samples took more than %g seconds, and %d of %d were drawn: ask for fewer.",
                        a->core->options.max_seconds, a->done, a->posed.samples);
    rws_status status = rws_posterior_sample_unless(rws_warm_posterior(a->warm), lot_of(a), a->posed.seed + a->lots++,
                                                    is_idle, a, &samples, err);
    if (status == RWS_OK) {
        status = write_samples(a, samples, after, out);
        rws_samples_free(samples);
    }
    a->spent += rws_clock_now() - began;
    if (status != RWS_STOPPED) return status;
    return rws_fail(err, status, "The server is about to end, and %d of %d samples were drawn; try again later.",
                    a->done, a->posed.samples);
}

static bool next_samples(void *context, rws_buffer *out)
{
    asking   *a = context;
    rws_error err = {""};
    rws_reply busy = {0};
    if (a->failed || a->done >= a->posed.samples) return false;
    rws_status status = RWS_STOPPED;
    if (begin_work(a->core, &busy)) {
        status = sample_lot(a, "\n", out, &err);
        end_work(a->core);
    } else snprintf(err.text, sizeof err.text, "The server has more questions than it can answer; ask again later.");
    rws_reply_release(&busy);
    a->failed = status != RWS_OK;
    if (a->failed) write_error(out, err.text);
    if (a->failed) rws_buffer_add(out, "\n", 1);
    return true;
}

bool rws_answer_sample(rws_core *c, const rws_request *r, rws_reply *reply)
{
    asking *a = begin_posed(c, r, RWS_POSED_SAMPLE, reply);
    if (!a) return false;
    if (r->accept && strstr(r->accept, "application/x-ndjson")) {
        reply->stream = (rws_stream){a, next_samples, end};
        return rws_reply_end(reply, "application/x-ndjson");
    }
    rws_error err = {""};
    bool      good =
        a->posed.samples <= lot_of(a) || rws_reply_fail(reply, 400,
                                                        "More than %d samples come as lines: send the header \"Accept: "
                                                        "application/x-ndjson\".",
                                                        lot_of(a));
    good = good && begin_work(c, reply);
    if (good) {
        rws_buffer_open(&reply->body, '{');
        rws_buffer_key(&reply->body, "samples");
        rws_buffer_open(&reply->body, '[');
        const rws_status status = sample_lot(a, "", &reply->body, &err);
        end_work(c);
        rws_buffer_close(&reply->body, ']');
        rws_buffer_close(&reply->body, '}');
        good = status == RWS_OK || rws_reply_status(reply, status, &err);
    }
    end(a);
    return good && rws_reply_end(reply, "application/json");
}

/* ---- score */

bool rws_answer_score(rws_core *c, const rws_request *r, rws_reply *reply)
{
    asking *a = begin_posed(c, r, RWS_POSED_SCORE, reply);
    if (!a) return false;
    rws_error err = {""};
    rws_score score;
    bool      good = begin_work(c, reply);
    if (good) {
        const rws_status status = rws_posterior_score(rws_warm_posterior(a->warm), &a->posed.data[0].question,
                                                      a->posed.choices, a->posed.n_choices, &score, &err);
        end_work(c);
        good = status == RWS_OK || rws_reply_status(reply, status, &err);
    }
    if (good) {
        rws_buffer_open(&reply->body, '{');
        rws_buffer_key_number(&reply->body, "log_p", score.log_p);
        rws_buffer_key_number(&reply->body, "log_q", score.log_q);
        rws_buffer_close(&reply->body, '}');
    }
    end(a);
    return good && rws_reply_end(reply, "application/json");
}
