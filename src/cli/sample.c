/* sample.c - rws sample: what a trained model says by itself. */
#include "base/error.h"
#include "cli/ask.h"
#include "cli/command.h"
#include "cli/gallery.h"
#include "cli/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_ONLY = 0x2000, KEY_BRACKETS };

typedef struct {
    rws_asked   asked;
    uint64_t    count;
    const char *only; /* NULL: all that it tells */
    const char *out;  /* NULL: no drawing */
    bool        brackets;
} sample_options;

static error_t parse(int key, char *arg, struct argp_state *state)
{
    sample_options *o = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &o->asked; return 0;
    case 'n': return rws_arguments_count(state, "--count", arg, 1, 10000000, &o->count);
    case 'o': o->out = arg; return 0;
    case KEY_ONLY: o->only = arg; return 0;
    case KEY_BRACKETS: o->brackets = true; return 0;
    case ARGP_KEY_ARG:
        if (o->asked.path) return rws_arguments_extra(state, arg);
        o->asked.path = arg;
        return 0;
    case ARGP_KEY_END: return o->asked.path ? 0 : rws_arguments_fail(state, "Which run? Name its folder.");
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options =
        (const struct argp_option[]){
            {"count", 'n', "N", 0, "How many (1)", 0},
            {"only", KEY_ONLY, "NAME", 0, "Print only this text of each, on a line: sentence, tree", 0},
            {"out", 'o', "FILE", 0, "Also draw the images or trees as a PNG, SVG or PDF", 0},
            {"brackets", KEY_BRACKETS, 0, 0, "Trees in brackets only, not drawn as lines", 0},
            {0},
        },
    .parser = parse,
    .args_doc = "RUN",
    .doc = "Draws from the model that a run has learned: for a grammar, sentences with their trees; for air, "
           "where objects are in an image, which --out shows. RUN is the folder that `rws train --out` wrote.",
    .children = (const struct argp_child[]){{.argp = &rws_asked_argp}, {0}},
};

static const char *text_of(const rws_sample *s, const char *name)
{
    return rws_answer_text(&(rws_answer){.reports = s->reports, .n_reports = s->n_reports}, name);
}

static rws_status report(const sample_options *o, const rws_sample *s, bool last, rws_error *err)
{
    if (o->asked.json) {
        json_t *object = json_object();
        rws_asked_describe(s->reports, s->n_reports, object);
        rws_report_json(object);
    } else if (o->only) {
        const char *text = text_of(s, o->only);
        if (!text) return rws_fail(err, RWS_BAD_INPUT, "--only %s: the model tells no such text.", o->only);
        puts(text);
    } else if (rws_asked_print(s->reports, s->n_reports, NULL, 0, o->brackets) && !last) {
        putchar('\n');
    }
    return RWS_OK;
}

static rws_status draw(const sample_options *o, const rws_samples *samples, rws_error *err)
{
    rws_gallery g = {0};
    bool        pictures = true;
    for (int i = 0; i < samples->n && pictures; i++)
        pictures = rws_gallery_add(&g, samples->list[i].reports, samples->list[i].n_reports);
    rws_answer *answers = calloc((size_t)samples->n + 1, sizeof *answers);
    for (int i = 0; i < samples->n && answers; i++)
        answers[i] = (rws_answer){.reports = samples->list[i].reports, .n_reports = samples->list[i].n_reports};
    rws_status status = RWS_OK;
    if (!answers) status = rws_no_memory(err, "drawings");
    else if (pictures) status = rws_gallery_draw(&g, NULL, o->out, err);
    else status = rws_gallery_trees(answers, samples->n, NULL, NULL, o->out, err);
    free(answers);
    rws_gallery_release(&g);
    return status;
}

static rws_status run(int argc, char **argv, rws_error *err)
{
    sample_options o = {.count = 1};
    RWS_TRY(rws_arguments_parse(&argp, "rws sample", argc, argv, 0, &o, err));
    rws_samples *samples = NULL;
    rws_status   status = rws_asked_open(&o.asked, err);
    if (status == RWS_OK) status = rws_posterior_sample(o.asked.posterior, (int)o.count, o.asked.seed, &samples, err);
    if (status == RWS_OK && o.out) status = draw(&o, samples, err);
    for (int i = 0; status == RWS_OK && i < samples->n; i++)
        status = report(&o, &samples->list[i], i + 1 == samples->n, err);
    rws_samples_free(samples);
    rws_asked_close(&o.asked);
    return status;
}

const rws_command rws_command_sample = {"sample", "draw from the model that a run has learned", run};
