/* train.c - rws train: trains a run until the end or Ctrl-C, prints its evaluations and draws pictures of them. */
#include "base/error.h"
#include "base/file.h"
#include "base/quote.h"
#include "rws/command.h"
#include "rws/listing.h"
#include "rws/picture_grid.h"
#include "rws/options.h"
#include "rws/progress.h"
#include "rws/output.h"
#include "rws/signals.h"
#include "comm/comm.h"
#include "store/checkpoint.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIN_SAVE_SECONDS 5.0 /* least seconds between two checkpoints, unless --save-every is given */
#define ENDLESS \
    "rws: The program of the model has not returned to the library since the signal: it may be in an endless loop. "
#define MAX_SEEN 100 /* most particles per datum of a picture, which shows the most probable answer */

typedef struct {
    rws_options  options;
    double       save_every; /* seconds */
    uint64_t     pictures;   /* test data in a picture of an evaluation; UINT64_MAX: as many as the model says */
    rws_trainer *trainer;
    rws_progress progress;
    int          rows; /* of the table that are printed */
    bool         wide;
    bool         looked;     /* for sites that no particle visits */
    bool         impossible; /* it was noted that there are impossible test data */
    bool         forbidden;  /* the same for training data */
} session;

/* ---- pictures: the first test data with the answers of the guide */

static rws_status ask_about_test_data(session *s, rws_picture_grid *grid, rws_error *err)
{
    const rws_config *c = rws_trainer_config(s->trainer);
    const int         K = c->eval_particles < MAX_SEEN ? c->eval_particles : MAX_SEEN;
    for (int i = 0; i < c->n_test && (uint64_t)i < s->pictures; i++) {
        rws_answers *a;
        RWS_TRY(rws_trainer_ask(s->trainer, &(rws_question){.test = i, .n_particles = K, .seed = c->seed}, &a, err));
        if (a->n) rws__picture_grid_add(grid, a->list[0].reports, a->list[0].n_reports);
        rws_answers_free(a);
    }
    return RWS_OK;
}

/* Draws RUN/pictures/ITERATION.png. */
static rws_status draw(const session *s, rws_picture_grid *grid, rws_error *err)
{
    const uint64_t done = rws_trainer_iteration(s->trainer);
    char           name[32], title[48];
    snprintf(name, sizeof name, "%08" PRIu64 ".png", done);
    snprintf(title, sizeof title, "iteration %" PRIu64, done);
    char *folder = rws__file_join(s->options.out, "pictures"), *path = folder ? rws__file_join(folder, name) : NULL;
    rws_status status = path ? rws__file_make_folder(folder, err) : rws_no_memory(err, "the path of a picture");
    if (status == RWS_OK && (rws__file_is_link(folder) || rws__file_is_link(path)))
        status = rws_fail(err, RWS_BAD_INPUT, "\"%s\" is or leads through a link.", rws__quote(path).text);
    if (status == RWS_OK) status = rws__picture_grid_draw(grid, title, path, err);
    free(path);
    free(folder);
    return status;
}

/* A failure ends the pictures, not the training. */
static void draw_pictures(session *s)
{
    rws_picture_grid grid = {.pairs = true};
    rws_error        err;
    rws_status       status = ask_about_test_data(s, &grid, &err);
    if (status == RWS_OK && grid.n) status = draw(s, &grid, &err);
    if (status != RWS_OK && status != RWS_STOPPED) {
        rws__progress_clear(&s->progress);
        rws__note("There will be no more pictures: %s", err.text);
    }
    if (status != RWS_OK || !grid.n) s->pictures = 0;
    rws__picture_grid_release(&grid);
}

/* ---- callbacks of training */

static bool stop(void *context)
{
    (void)context;
    return rws__interrupted();
}

static void progress(void *context, const rws_trainer *t)
{
    session *s = context;
    rws__progress_show(&s->progress, rws_trainer_iteration(t));
}

/* Notes, at the first evaluation and at the end, a site that the user names and that no particle has visited. */
static void note_unvisited(session *s, const rws_trainer *t, bool final)
{
    const char *site = s->looked && !final ? NULL : rws_trainer_unvisited(t);
    s->looked = true;
    if (!site) return;
    rws__progress_clear(&s->progress);
    rws__note("No particle has visited site \"%s\"%s, which is given choices or a gradient; is its name right?",
              rws__quote_short(site).text, final ? "" : " yet");
}

/* Notes at the end a parameter that has not learned. */
static void note_unlearned(const rws_trainer *t)
{
    const char *name = rws_trainer_unlearned(t);
    if (name)
        rws__note("The parameter \"%s\" has had no gradient and has not learned: does a program use it? Parameters of "
                  "the guide "
                  "belong to the group phi.",
                  rws__quote_short(name).text);
}

/* Notes at the first evaluation what the look at the programs was not sure of. */
static void note_doubt(session *s, const rws_trainer *t)
{
    if (!s->looked && rws_trainer_doubt(t)) rws__note("%s", rws_trainer_doubt(t));
}

/* Notes at the end a site for which the automatic guide has no network. */
static void note_unguided(const rws_trainer *t)
{
    const char *site = rws_trainer_unguided(t);
    if (site)
        rws__note(
            "The automatic guide has no network of its own for site \"%s\": no draw from the prior came to it before "
            "training. All such sites share one.",
            rws__quote_short(site).text);
}

/* Notes, the first time and at the end, training data that no particle explains. */
static void note_impossible(session *s, const rws_trainer *t, bool final)
{
    const char *message = s->forbidden && !final ? NULL : rws_trainer_impossible(t);
    if (!message) return;
    s->forbidden = true;
    rws__progress_clear(&s->progress);
    rws__note("%s", message);
}

static rws_status evaluated(void *context, rws_trainer *t, const rws_measures *m, bool final, rws_error *err)
{
    (void)err;
    session *s = context;
    char     brief[128];
    rws__progress_clear(&s->progress);
    rws__output_brief(m, brief, sizeof brief);
    rws__progress_note(&s->progress, "%s", brief);
    if (s->options.json) {
        rws__output_measures(rws_trainer_model(t), m, rws_trainer_seconds(t), final);
    } else if (!final) {
        rws__output_row(m, m->seconds, s->rows++, s->wide);
    }
    if (!s->impossible) rws__output_impossible(m);
    s->impossible |= m->impossible > 0;
    if (!final && s->options.out && s->pictures && rws_rank() == 0) draw_pictures(s);
    note_doubt(s, t);
    note_impossible(s, t, final);
    note_unvisited(s, t, final);
    if (final) note_unlearned(t);
    if (final) note_unguided(t);
    return RWS_OK;
}

/* Where the run is, and what may be done with it. */
static void tell_next(const session *s)
{
    char folder[400];
    if (!s->options.out)
        rws__note("Training has ended, and nothing is kept; with --out DIR the run can be asked and resumed.");
    else if (rws__shell_word(s->options.out, folder, sizeof folder))
        rws__note("The run is in %s. Next: rws infer %s --test 0, rws plot %s %s, rws serve %s.", folder, folder,
                  rws_trainer_model(s->trainer)->metrics ? rws_trainer_model(s->trainer)->metrics[0].name
                                                         : "log_evidence",
                  folder, folder);
}

static rws_status train(session *s, rws_error *err)
{
    const rws_config *c = rws_trainer_config(s->trainer);
    char              what[96];
    snprintf(what, sizeof what, "%s on %s", c->method, rws_trainer_model(s->trainer)->name);
    rws__progress_init(&s->progress, what, rws_trainer_iteration(s->trainer), c->iterations);
    rws__signals_catch();
    rws__signals_watch(rws_rank() > 0    ? NULL
                       : !s->options.out ? ENDLESS "Training has ended.\n"
                                         : ENDLESS
                           "The last checkpoint of the run is whole; continue with --resume.\n");
    const rws_watch  watch = {.context = s,
                              .stop = stop,
                              .progress = progress,
                              .evaluated = evaluated,
                              .save_every = s->save_every > 0 ? s->save_every : -1};
    const rws_status status = rws_trainer_train(s->trainer, &watch, err);
    rws__signals_unwatch();
    rws__progress_clear(&s->progress);
    if (status == RWS_OK && isatty(STDERR_FILENO)) tell_next(s);
    if (status != RWS_STOPPED) return status;
    const uint64_t done = rws_trainer_iteration(s->trainer);
    if (!s->options.out)
        return rws_fail(err, RWS_STOPPED, "Stopped after iteration %" PRIu64 "; without --out nothing is kept.", done);
    char       model[200], out[200];
    const bool fits = rws__shell_word(rws_trainer_config(s->trainer)->model, model, sizeof model) &&
                      rws__shell_word(s->options.out, out, sizeof out);
    if (!fits)
        return rws_fail(err, RWS_STOPPED,
                        "Stopped after iteration %" PRIu64 "; the same --out with --resume continues.", done);
    return rws_fail(err, RWS_STOPPED,
                    "Stopped after iteration %" PRIu64 "; continue with: rws train %s --out %s --resume", done, model,
                    out);
}

/* ---- beginning */

static void note_warnings(const session *s)
{
    const rws_config *c = rws_trainer_config(s->trainer);
    const int         n = c->shards * c->particle_shards;
    if (rws_n_ranks() > n)
        rws__note("%d ranks share %d shards, so that %d of them have nothing to do; a new run may have more --shards.",
                  rws_n_ranks(), n, rws_n_ranks() - n);
    const char *warnings = rws_trainer_warnings(s->trainer);
    if (warnings[0]) rws__note("%s", warnings);
}

static rws_status begin(session *s, rws_error *err)
{
    rws_options *o = &s->options;
    rws__options_fill(o);
    RWS_TRY(rws_trainer_new(&o->config, NULL, &s->trainer, err));
    if (o->out) RWS_TRY(rws_trainer_keep(s->trainer, o->out, err));
    note_warnings(s);
    return RWS_OK;
}

/* The options that were given must agree with the run, except those that may change. */
static rws_status check_resume(const rws_options *o, rws_error *err)
{
    rws_folder *folder = NULL;
    rws_config  stored, config;
    rws_status  status = rws__folder_open(o->out, &stored, &folder, err);
    if (status == RWS_OK) {
        status = rws__options_resume(o, &stored, rws__folder_recorded(folder), &config, err);
        if (status != RWS_OK && !rws__folder_has_checkpoint(folder))
            rws__error_append(err, " It has no checkpoint yet: without --resume it begins anew.");
    }
    rws__folder_close(folder);
    return status;
}

/* The options that were given and may differ from the run's own. */
static rws_config changes_of(const rws_options *o)
{
    rws_config changes = {.model = rws__options_model(o),
                          .changed = o->config.changed,
                          .no_check = o->config.no_check,
                          .limits = o->config.limits};
    if (rws__options_given(o, "threads"))
        changes.threads = o->config.threads ? o->config.threads : rws__options_cores();
    if (rws__options_given(o, "iterations")) changes.iterations = o->config.iterations;
    if (rws__options_given(o, "lr")) changes.lr = o->config.lr;
    return changes;
}

static rws_status begin_again(session *s, rws_error *err)
{
    const rws_options *o = &s->options;
    const rws_config   changes = changes_of(o);
    RWS_TRY(rws__comm_agree(rws__comm_world(), rws_rank() == 0 ? check_resume(o, err) : RWS_OK, err));
    RWS_TRY(rws_trainer_resume(o->out, &changes, NULL, &s->trainer, err));
    note_warnings(s);
    return RWS_OK;
}

static rws_status finished(session *s, rws_error *err)
{
    rws_measures m;
    RWS_TRY(rws_trainer_evaluate(s->trainer, &m, err));
    rws__note("The run in %s is finished: %" PRIu64 " iterations are done; --iterations would extend it.",
              s->options.out, m.iteration);
    if (s->options.json) rws__output_measures(rws_trainer_model(s->trainer), &m, m.seconds, true);
    else rws__output_row(&m, m.seconds, 0, s->wide);
    return RWS_OK;
}

enum { KEY_SAVE_EVERY = 0x3000, KEY_PICTURES, KEY_WIDE };

static const struct argp_option options[] = {
    {"save-every", KEY_SAVE_EVERY, "SECONDS", 0,
     "Least time between two checkpoints (default 5; 0: a checkpoint at every evaluation)", 3},
    {"pictures", KEY_PICTURES, "N", 0,
     "Number of test data in the pictures that evaluations of a model of images write to --out (default 10; 0: no "
     "pictures)",
     3},
    {"wide", KEY_WIDE, 0, 0, RWS_WIDE_HELP, 3},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    session *s = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &s->options; return 0;
    case KEY_SAVE_EVERY: return rws__arguments_real(state, "--save-every", arg, 0, 1e6, &s->save_every);
    case KEY_WIDE: s->wide = true; return 0;
    case KEY_PICTURES: return rws__arguments_count(state, "--pictures", arg, 0, 1000, &s->pictures);
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .doc = "Trains a model and its guide, and prints the metrics of every evaluation. MODEL is a name from `rws list`, "
           "or the path of a shared object.",
    .children = (const struct argp_child[]){{.argp = &rws_options_argp}, {0}},
};

static rws_status run(int argc, char **argv, rws_error *err)
{
    session s = {.save_every = MIN_SAVE_SECONDS, .pictures = UINT64_MAX};
    RWS_TRY(rws__arguments_parse(&argp, "rws train", argc, argv, 0, &s, err));
    const char *hint = s.options.out ? " The last checkpoint of the run is whole; continue with --resume." : "";
    RWS_TRY(rws__command_join(hint, err));
    rws_status status = s.options.resume ? begin_again(&s, err) : begin(&s, err);
    if (status == RWS_OK) {
        const uint64_t most = (uint64_t)rws_trainer_model(s.trainer)->defaults.pictures;
        if (s.pictures == UINT64_MAX || !most) s.pictures = most;
        const bool over = rws_trainer_iteration(s.trainer) >= rws_trainer_config(s.trainer)->iterations;
        status = over ? finished(&s, err) : train(&s, err);
    }
    rws_trainer_free(s.trainer);
    return status;
}

const rws_command rws_command_train = {"train", "train a model by one of the methods", run, &argp, .ranks = true};
