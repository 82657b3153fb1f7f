/* train.c - rws train: step, now and then evaluate and save, until the end or Ctrl-C. */
#include "base/error.h"
#include "cli/clock.h"
#include "cli/command.h"
#include "cli/gallery.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/reopen.h"
#include "cli/report.h"
#include "cli/signals.h"
#include "data/file.h"
#include "optim/schedule.h"
#include "run/checkpoint.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAVE_LEAST 5.0  /* seconds between two checkpoints, which come after evaluations, at least */
#define SAVE_MOST 60.0  /* and at most, where evaluations are rarer */
#define FLUSH_LEAST 1.0 /* seconds between two additions to the store: each brings it to disk */
#define MOST_SEEN 100   /* particles, of which a picture is the best */

typedef struct {
    rws_options  options;
    double       save_every; /* seconds */
    uint64_t     pictures;   /* test data in a picture of an evaluation; UINT64_MAX: as many as the model says */
    rws_trainer *trainer;
    rws_folder  *folder; /* NULL without --out */
    rws_progress progress;
    rws_measures latest;
    bool         heading;    /* the table has one */
    double       seconds;    /* of training until `since`, evaluations and checkpoints left out */
    double       since;      /* when training went on */
    double       saved_at;   /* 0: never */
    double       flushed_at; /* likewise */
    uint64_t     saved;      /* iteration of the checkpoint */
} session;

/* ---- what happens between iterations; the clock of training stands still meanwhile */

static void pause_training(session *s)
{
    s->seconds += rws_clock_now() - s->since;
}

static void continue_training(session *s)
{
    s->since = rws_clock_now();
}

static rws_status save(session *s, rws_error *err)
{
    RWS_TRY(rws_folder_save(s->folder, s->trainer, s->seconds, err));
    s->saved_at = rws_clock_now();
    s->saved = rws_trainer_iteration(s->trainer);
    return RWS_OK;
}

static void report(session *s, bool final)
{
    char brief[128];
    rws_progress_clear(&s->progress);
    rws_report_brief(s->trainer, &s->latest, brief, sizeof brief);
    rws_progress_note(&s->progress, "%s", brief);
    if (s->options.json) {
        rws_report_measures(s->trainer, &s->latest, s->seconds, final);
    } else if (!final) {
        rws_report_row(s->trainer, &s->latest, s->seconds, !s->heading);
        s->heading = true;
    }
}

/* Into the store, not necessarily at once: what was measured after the last checkpoint is measured again anyway. */
static rws_status record(session *s, rws_error *err)
{
    rws_snapshots shown = {0};
    rws_status status = rws_trainer_snapshots_due(s->trainer) ? rws_trainer_snapshots(s->trainer, &shown, err) : RWS_OK;
    if (status == RWS_OK) status = rws_folder_record(s->folder, s->trainer, &s->latest, &shown, s->seconds, err);
    rws_snapshots_release(&shown);
    return status;
}

/* What the guide sees in the first test data, and what the model makes of it. */
static rws_status look(session *s, rws_gallery *gallery, rws_error *err)
{
    const rws_config *c = rws_trainer_config(s->trainer);
    const int         K = c->eval_particles < MOST_SEEN ? c->eval_particles : MOST_SEEN;
    for (int i = 0; i < c->n_test && (uint64_t)i < s->pictures; i++) {
        rws_answers a;
        RWS_TRY(rws_infer_test(s->trainer, i, K, c->seed, &a, err));
        if (a.n) rws_gallery_add(gallery, &a.list[0]);
        rws_answers_release(&a);
    }
    return RWS_OK;
}

/* RUN/pictures/ITERATION.png */
static rws_status hang(const session *s, const rws_gallery *gallery, rws_error *err)
{
    const uint64_t done = rws_trainer_iteration(s->trainer);
    char           name[32], title[48];
    snprintf(name, sizeof name, "%08" PRIu64 ".png", done);
    snprintf(title, sizeof title, "iteration %" PRIu64, done);
    char      *folder = rws_file_join(s->options.out, "pictures"), *path = rws_file_join(folder, name);
    rws_status status = rws_file_make_folder(folder, err);
    if (status == RWS_OK) status = rws_gallery_draw(gallery, title, path, err);
    free(path);
    free(folder);
    return status;
}

/* Training goes on without them. */
static void draw_pictures(session *s)
{
    rws_gallery gallery = {.pairs = true};
    rws_error   err;
    rws_status  status = look(s, &gallery, &err);
    if (status == RWS_OK && gallery.n) status = hang(s, &gallery, &err);
    if (status != RWS_OK) {
        rws_progress_clear(&s->progress);
        rws_note("There will be no more pictures: %s", err.text);
    }
    if (status != RWS_OK || !gallery.n) s->pictures = 0;
    rws_gallery_release(&gallery);
}

static rws_status evaluate(session *s, bool last, rws_error *err)
{
    RWS_TRY(rws_trainer_evaluate(s->trainer, &s->latest, err));
    report(s, false);
    if (!s->folder) return RWS_OK;
    RWS_TRY(record(s, err));
    if (s->pictures) draw_pictures(s);
    const double now = rws_clock_now();
    if (last || !s->saved_at || now - s->saved_at >= s->save_every) return save(s, err);
    if (now - s->flushed_at < FLUSH_LEAST) return RWS_OK;
    s->flushed_at = now;
    return rws_folder_flush(s->folder, err);
}

/* ---- the loop */

static rws_status stopped(session *s, rws_error *err)
{
    const uint64_t done = rws_trainer_iteration(s->trainer);
    if (!s->folder)
        return rws_fail(err, RWS_STOPPED, "Stopped after iteration %" PRIu64 "; without --out nothing is kept.", done);
    if (s->saved != done || !s->saved_at) RWS_TRY(save(s, err));
    return rws_fail(err, RWS_STOPPED,
                    "Stopped after iteration %" PRIu64 "; go on with: rws train %s --out '%s' --resume", done,
                    rws_trainer_config(s->trainer)->model, s->options.out);
}

static rws_status iterate(session *s, rws_error *err)
{
    const rws_config *c = rws_trainer_config(s->trainer);
    rws_pace          pace = rws_pace_start();
    for (uint64_t done = rws_trainer_iteration(s->trainer); done < c->iterations && !rws_interrupted();) {
        RWS_TRY(rws_trainer_step(s->trainer, err));
        done++;
        const bool last = done == c->iterations, due = rws_pace_due(&pace);
        if (done == 1 || done % c->eval_every == 0 || last) {
            pause_training(s);
            RWS_TRY(evaluate(s, last, err));
            continue_training(s);
        } else if (due && s->folder && rws_clock_now() - s->saved_at >= fmax(SAVE_MOST, s->save_every)) {
            pause_training(s);
            RWS_TRY(save(s, err));
            continue_training(s);
        }
        if (due) rws_progress_show(&s->progress, done);
    }
    return RWS_OK;
}

static void append(rws_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A second sentence. */
static void append(rws_error *err, const char *format, ...)
{
    const size_t n = strlen(err->text);
    va_list      args;
    va_start(args, format);
    vsnprintf(err->text + n, sizeof err->text - n, format, args);
    va_end(args);
}

/* The sentence names the iteration, also if it was a metric or the checkpoint that met the NaN, and the checkpoint that
 * is left. */
static void describe_break(const session *s, rws_error *err)
{
    const rws_error was = *err;
    if (!strstr(was.text, "iteration"))
        rws_fail(err, RWS_BROKEN, "After iteration %" PRIu64 ": %.400s", rws_trainer_iteration(s->trainer), was.text);
    if (s->saved_at) append(err, " The checkpoint of iteration %" PRIu64 " is kept.", s->saved);
}

static void note_break(session *s, rws_error *err)
{
    rws_error other;
    describe_break(s, err);
    if (!s->folder) return;
    /* one sentence is enough; that the store could not be told does not change what happened */
    if (rws_folder_fail(s->folder, rws_trainer_iteration(s->trainer), err->text, &other) != RWS_OK)
        rws_note("%s", other.text);
}

static rws_status train(session *s, rws_error *err)
{
    const rws_config *c = rws_trainer_config(s->trainer);
    char              what[96];
    snprintf(what, sizeof what, "%s on %s", c->method, rws_trainer_model(s->trainer)->name);
    rws_progress_init(&s->progress, what, rws_trainer_iteration(s->trainer), c->iterations);
    rws_signals_catch();

    continue_training(s);
    const rws_status status = iterate(s, err);
    pause_training(s);
    rws_progress_clear(&s->progress);
    if (status == RWS_BROKEN) note_break(s, err);
    if (status != RWS_OK) return status;
    if (rws_trainer_iteration(s->trainer) < c->iterations) return stopped(s, err);
    report(s, true);
    return RWS_OK;
}

/* ---- beginning */

static rws_status begin(session *s, rws_error *err)
{
    rws_options *o = &s->options;
    rws_options_fill(o);
    RWS_TRY(rws_trainer_new(&o->config, &s->trainer, err));
    return o->out ? rws_folder_create(o->out, s->trainer, &s->folder, err) : RWS_OK;
}

/* A run that goes on may have more iterations and other rates, but for those that it has had. */
static rws_status amend(session *s, const rws_config *stored, const rws_config *config, rws_error *err)
{
    const uint64_t done = rws_trainer_iteration(s->trainer);
    rws_schedule   had, has;
    if (config->iterations == stored->iterations && strcmp(config->lr, stored->lr) == 0 && !s->options.model)
        return RWS_OK;
    RWS_TRY(rws_schedule_parse(stored->lr, &had, err));
    RWS_TRY(rws_schedule_parse(config->lr, &has, err));
    if (!rws_schedule_agree(&had, &has, done))
        return rws_fail(err, RWS_BAD_INPUT,
                        "--lr %s contradicts the run in %s, which has had %s so far; only from iteration %" PRIu64
                        " on may it be another, as in 1e-3,%" PRIu64 ":1e-4.",
                        config->lr, s->options.out, stored->lr, done, done);
    return rws_folder_amend(s->folder, config, err);
}

static rws_status begin_again(session *s, rws_error *err)
{
    const rws_options *o = &s->options;
    rws_config         stored, config;
    RWS_TRY(rws_reopen(o->out, o->model, &stored, &s->folder, err));
    const bool begun = rws_folder_has_checkpoint(s->folder);
    rws_status status = rws_options_resume(o, &stored, o->out, &config, err);
    if (status != RWS_OK && !begun) append(err, " It has no checkpoint yet: without --resume it begins anew.");
    if (status == RWS_OK) status = rws_folder_lock(s->folder, err);
    if (status == RWS_OK) status = rws_trainer_new(&config, &s->trainer, err);
    if (status != RWS_OK) return status;
    if (begun) {
        RWS_TRY(rws_folder_load(s->folder, s->trainer, &s->seconds, err));
        s->saved = rws_trainer_iteration(s->trainer);
        s->saved_at = rws_clock_now();
    } else {
        RWS_TRY(rws_folder_restart(s->folder, err));
    }
    return amend(s, &stored, &config, err);
}

static rws_status finished(session *s, rws_error *err)
{
    RWS_TRY(rws_trainer_evaluate(s->trainer, &s->latest, err));
    rws_note("The run in %s is finished: %" PRIu64 " iterations are done; --iterations would extend it.",
             s->options.out, rws_trainer_iteration(s->trainer));
    if (s->options.json) rws_report_measures(s->trainer, &s->latest, s->seconds, true);
    else rws_report_row(s->trainer, &s->latest, s->seconds, true);
    return RWS_OK;
}

enum { KEY_SAVE_EVERY = 0x3000, KEY_PICTURES };

static const struct argp_option options[] = {
    {"save-every", KEY_SAVE_EVERY, "SECONDS", 0,
     "Between two checkpoints, at least (default 5; 0: at every evaluation)", 3},
    {"pictures", KEY_PICTURES, "N", 0,
     "Test data in the pictures that evaluations of a model of images leave in --out (default 10; 0: no pictures)", 3},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    session *s = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &s->options; return 0;
    case KEY_SAVE_EVERY: return rws_arguments_real(state, "--save-every", arg, 0, 1e6, &s->save_every);
    case KEY_PICTURES: return rws_arguments_count(state, "--pictures", arg, 0, 1000, &s->pictures);
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .doc = "Trains a model and its guide. MODEL is a name from `rws list`, or the path of a shared object.",
    .children = (const struct argp_child[]){{.argp = &rws_options_argp}, {0}},
};

static rws_status run(int argc, char **argv, rws_error *err)
{
    session s = {.save_every = SAVE_LEAST, .pictures = UINT64_MAX};
    RWS_TRY(rws_arguments_parse(&argp, "rws train", argc, argv, 0, &s, err));
    rws_status status = s.options.resume ? begin_again(&s, err) : begin(&s, err);
    if (status == RWS_OK) {
        const uint64_t most = (uint64_t)rws_trainer_model(s.trainer)->defaults.pictures;
        if (s.pictures == UINT64_MAX || !most) s.pictures = most;
        const bool over = rws_trainer_iteration(s.trainer) >= rws_trainer_config(s.trainer)->iterations;
        status = over ? finished(&s, err) : train(&s, err);
    }
    rws_trainer_free(s.trainer);
    rws_folder_close(s.folder);
    return status;
}

const rws_command rws_command_train = {"train", "train a model by one of the methods", run};
