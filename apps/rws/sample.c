/* sample.c - rws sample: draws from the model that a run has learned. */
#include "base/error.h"
#include "base/quote.h"
#include "rws/ask.h"
#include "rws/command.h"
#include "rws/picture_grid.h"
#include "rws/output.h"
#include "ask/answers_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_ONLY = 0x2000, KEY_BRACKETS };

typedef struct {
    rws_asked   asked;
    uint64_t    count;
    const char *only; /* NULL: all reports */
    const char *out;  /* NULL: no drawing */
    bool        brackets;
} sample_options;

static error_t parse(int key, char *arg, struct argp_state *state)
{
    sample_options *o = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &o->asked; return 0;
    case 'n': return rws__arguments_count(state, "--count", arg, 1, RWS_MAX_PARTICLES, &o->count);
    case 'o': o->out = arg; return 0;
    case KEY_ONLY: o->only = arg; return 0;
    case KEY_BRACKETS: o->brackets = true; return 0;
    case ARGP_KEY_ARG:
        if (o->asked.path) return rws__arguments_extra(state, arg);
        o->asked.path = arg;
        return 0;
    case ARGP_KEY_END: return o->asked.path ? 0 : rws__arguments_fail(state, "Which run? Name its folder.");
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options =
        (const struct argp_option[]){
            {"count", 'n', "N", 0, "Number of samples (1)", 0},
            {"only", KEY_ONLY, "NAME", 0, "Print only this text of each sample, on a line of its own: sentence, tree",
             0},
            {"out", 'o', "FILE", 0, "Also draw the images or trees as a PNG, SVG or PDF", 0},
            {"brackets", KEY_BRACKETS, 0, 0, "Trees in brackets only, not drawn as lines", 0},
            {0},
        },
    .parser = parse,
    .args_doc = "RUN",
    .doc =
        "Draws samples from the model that a run has learned: for a grammar, sentences with their trees; for air, the "
        "places of objects in an image, which --out draws; for a model whose data are numbers, the fields and what the "
        "model "
        "reports. "
        "RUN is the folder that `rws train --out` wrote.",
    .children = (const struct argp_child[]){{.argp = &rws_asked_argp}, {0}},
};

static const char *text_of(const rws_sample *s, const char *name)
{
    return rws_answer_text(&(rws_answer){.reports = s->reports, .n_reports = s->n_reports}, name);
}

static void report_json(const rws_asked *a, const rws_sample *s)
{
    rws_buffer b = {0};
    rws__sample_write(a->posterior, s, a->choices, &b);
    rws__output_buffer(&b);
}

/* Samples of more than one line have an empty line between them. */
static void report_text(const sample_options *o, const rws_sample *s, bool last)
{
    const rws_model *m = rws_posterior_model(o->asked.posterior);
    const rws_answer reported = {.reports = s->reports, .n_reports = s->n_reports};
    /* The fields are printed if a datum of this model is a list of numbers, neither a text nor a picture. */
    const bool numbers = !m->read && !m->see && !rws_answer_value(&reported, "picture", 0);
    bool       several = false;
    if (numbers || !s->n_reports) several = rws__asked_print_fields(o->asked.posterior, s->fields) > 1 || s->n_reports;
    if (s->n_reports) several = rws__asked_print(s->reports, s->n_reports, NULL, 0, o->brackets) || several;
    if (o->asked.choices) rws__asked_print_choices(s->choices, s->n_choices, 2);
    if ((several || o->asked.choices) && !last) putchar('\n');
}

static rws_status report(const sample_options *o, const rws_sample *s, bool last, rws_error *err)
{
    const char *text = o->only ? text_of(s, o->only) : NULL;
    if (o->only && !text)
        return rws_fail(
            err, RWS_BAD_INPUT,
            "--only %s: the model reports no such text; --json without --only shows the names of its texts.",
            rws__quote_short(o->only).text);
    if (text && o->asked.json) rws__output_json(json_pack("{s:o}", o->only, rws__json_string(text)));
    else if (text) puts(text);
    else if (o->asked.json) report_json(&o->asked, s);
    else report_text(o, s, last);
    return RWS_OK;
}

static rws_status draw(const sample_options *o, const rws_samples *samples, rws_error *err)
{
    rws_picture_grid g = {0};
    bool             pictures = true;
    for (int i = 0; i < samples->n && pictures; i++)
        pictures = rws__picture_grid_add(&g, samples->list[i].reports, samples->list[i].n_reports);
    rws_answer *answers = calloc((size_t)samples->n + 1, sizeof *answers);
    for (int i = 0; i < samples->n && answers; i++)
        answers[i] = (rws_answer){.reports = samples->list[i].reports, .n_reports = samples->list[i].n_reports};
    rws_status status = RWS_OK;
    if (!answers) status = rws_no_memory(err, "drawings");
    else if (pictures) status = rws__picture_grid_draw(&g, NULL, o->out, err);
    else status = rws__answer_trees_draw(answers, samples->n, NULL, NULL, o->out, err);
    free(answers);
    rws__picture_grid_release(&g);
    return status;
}

static rws_status run(int argc, char **argv, rws_error *err)
{
    sample_options o = {.count = 1};
    RWS_TRY(rws__arguments_parse(&argp, "rws sample", argc, argv, 0, &o, err));
    rws_samples *samples = NULL;
    rws_status   status = rws__asked_open(&o.asked, err);
    if (status == RWS_OK) status = rws_posterior_sample(o.asked.posterior, (int)o.count, o.asked.seed, &samples, err);
    if (status == RWS_OK && o.out) status = draw(&o, samples, err);
    for (int i = 0; status == RWS_OK && i < samples->n; i++)
        status = report(&o, &samples->list[i], i + 1 == samples->n, err);
    rws_samples_free(samples);
    rws__asked_close(&o.asked);
    return status;
}

const rws_command rws_command_sample = {"sample", "draw from the model that a run has learned", run, &argp};
