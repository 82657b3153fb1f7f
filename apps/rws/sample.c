/* sample.c - rws sample: draws from the model that a run has learned. */
#include "base/error.h"
#include "base/quote.h"
#include "rws/ask.h"
#include "rws/command.h"
#include "rws/datum.h"
#include "rws/picture_grid.h"
#include "rws/output.h"
#include "rws/questions.h"
#include "ask/answers_json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_ONLY = 0x2000, KEY_BRACKETS, KEY_TEST, KEY_GIVEN };

#define NO_TEST UINT64_MAX

typedef struct {
    rws_asked   asked;
    uint64_t    count;
    const char *only;  /* NULL: all reports */
    const char *out;   /* NULL: no drawing */
    const char *given; /* a datum; NULL: samples are not conditioned */
    uint64_t    particles;
    bool        brackets;
    const char *inputs; /* numbers of the inputs; NULL: none are typed */
    uint64_t    test;   /* the test datum whose inputs are taken; NO_TEST: none */
} sample_options;

static error_t parse(int key, char *arg, struct argp_state *state)
{
    sample_options *o = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &o->asked; return 0;
    case 'n': return rws__arguments_count(state, "--count", arg, 1, RWS_MAX_PARTICLES, &o->count);
    case 'o': o->out = arg; return 0;
    case KEY_TEST: return rws__arguments_count(state, "--test", arg, 0, RWS_MAX_TEST - 1, &o->test);
    case 'k': return rws__arguments_count(state, "--particles", arg, 1, RWS_MAX_PARTICLES, &o->particles);
    case KEY_GIVEN: o->given = arg; return 0;
    case KEY_ONLY: o->only = arg; return 0;
    case KEY_BRACKETS: o->brackets = true; return 0;
    case ARGP_KEY_ARG:
        if (o->inputs) return rws__arguments_extra(state, arg);
        *(o->asked.path ? &o->inputs : &o->asked.path) = arg;
        return 0;
    case ARGP_KEY_END:
        if (!o->asked.path) return rws__arguments_fail(state, "Which run? Name its folder.");
        if (o->asked.refine && !o->given)
            return rws__arguments_fail(state, "--refine is about the posterior of a datum: name it by --given.");
        if (!o->inputs || o->test == NO_TEST) return 0;
        return rws__arguments_fail(state, "Samples have the inputs that are typed or those of --test, not both.");
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options =
        (const struct argp_option[]){
            {"count", 'n', "N", 0, "Number of samples (1)", 0},
            {"only", KEY_ONLY, "NAME", 0, "Print only this text of each sample, on a line of its own: sentence, tree",
             0},
            {"test", KEY_TEST, "NUMBER", 0, "Samples of a conditional model at the inputs of this test datum", 0},
            {"given", KEY_GIVEN, "DATUM", 0,
             "Posterior predictions: draw the random choices from the posterior of this datum, as infer takes it, and "
             "new data from them; then compare what is reported of these with what is reported of the datum",
             0},
            {"particles", 'k', "N", 0, "Particles of the guide for --given (1000)", 0},
            {"out", 'o', "FILE", 0, "Also draw the images or trees as a PNG, SVG or PDF", 0},
            {"brackets", KEY_BRACKETS, 0, 0, "Trees in brackets only, not drawn as lines", 0},
            {0},
        },
    .parser = parse,
    .args_doc = "RUN [INPUTS]",
    .doc =
        "Draws samples from the model that a run has learned: for a grammar, sentences with their trees; for air, the "
        "places of objects in an image, which --out draws; for a model whose data are numbers, the fields and what the "
        "model "
        "reports. "
        "RUN is the folder that `rws train --out` wrote. A model with inputs is sampled at INPUTS, the numbers of its "
        "inputs as `rws infer` takes those of a datum: \"0.3 1.2\"; without them, each sample has the inputs of a test "
        "datum that is drawn at random. INPUTS that begin with a minus are written after --.",
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

static rws_status ask(const sample_options *o, rws_samples **out, rws_error *err)
{
    rws_posterior *p = o->asked.posterior;
    rws_datum      datum = {0};
    if (!o->inputs && o->test == NO_TEST) return rws_posterior_sample(p, (int)o->count, o->asked.seed, out, err);
    rws_status         status = o->inputs ? rws__datum_read(p, o->inputs, true, &datum, err) : RWS_OK;
    const rws_question at = {.fields = datum.fields, .test = o->inputs ? 0 : (int)o->test};
    if (status == RWS_OK) status = rws_posterior_sample_at(p, &at, (int)o->count, o->asked.seed, out, err);
    rws__datum_release(&datum);
    return status;
}

/* ---- posterior predictions */

/* A reported number of the datum, under the posterior, and of the data that the model makes. */
typedef struct {
    double mean, sd, share; /* share: of pairs in which the new one is larger, ties counted half */
} statistic;

static double value_in(const rws_reported *list, int n, const char *name)
{
    const rws_reported *r = rws_answer_value(&(rws_answer){.reports = list, .n_reports = n}, name, 0);
    return r && r->dim == 1 ? (double)r->value[0] : NAN;
}

/* Compares all new data with all answers, by the posterior of the answers. */
static statistic compare(const rws_answers *a, const rws_samples *samples, const char *name, double *of_datum)
{
    statistic s = {0};
    double    n = 0, squares = 0, mass = 0, sum = 0;
    for (int i = 0; i < samples->n; i++) {
        const double x = value_in(samples->list[i].reports, samples->list[i].n_reports, name);
        if (isnan(x)) continue;
        n++;
        s.mean += x;
        squares += x * x;
        for (int k = 0; k < a->n; k++) {
            const double y = value_in(a->list[k].reports, a->list[k].n_reports, name), w = a->list[k].posterior;
            if (isnan(y) || !(w > 0)) continue;
            mass += w;
            sum += w * y;
            s.share += w * (x > y ? 1 : x == y ? 0.5 : 0);
        }
    }
    s.mean /= n;
    s.sd = sqrt(fmax(squares / n - s.mean * s.mean, 0));
    s.share /= mass;
    *of_datum = sum / mass;
    return s;
}

static void print_statistic(const sample_options *o, const rws_answers *a, const rws_samples *samples, const char *name)
{
    double          datum;
    const statistic s = compare(a, samples, name, &datum);
    if (!o->asked.json) {
        printf("%-20.20s %12.5g %12.5g %12.5g %8.3f\n", name, datum, s.mean, s.sd, s.share);
        return;
    }
    rws_buffer b = {0};
    rws__buffer_open(&b, '{');
    rws__buffer_key_text(&b, "report", name);
    rws__buffer_key_exact(&b, "datum", datum);
    rws__buffer_key_exact(&b, "mean", s.mean);
    rws__buffer_key_exact(&b, "sd", s.sd);
    rws__buffer_key_exact(&b, "above", s.share);
    rws__buffer_close(&b, '}');
    rws__output_buffer(&b);
}

/* One line for each number that is reported. */
static void print_check(const sample_options *o, const rws_answers *a, const rws_samples *samples)
{
    const rws_sample *first = &samples->list[0];
    bool              heading = !o->asked.json;
    for (int i = 0; i < first->n_reports; i++) {
        bool again = !first->reports[i].value || first->reports[i].dim != 1;
        for (int k = 0; k < i; k++) again |= strcmp(first->reports[k].name, first->reports[i].name) == 0;
        if (again) continue;
        if (heading) printf("\n%-20s %12s %12s %12s %8s\n", "report", "datum", "predicted", "sd", "above");
        heading = false;
        print_statistic(o, a, samples, first->reports[i].name);
    }
}

static rws_status predict(const sample_options *o, rws_answers **a, rws_samples **samples, rws_error *err)
{
    rws_posterior    *p = o->asked.posterior;
    rws_question_list l = {0};
    rws_status        status = rws__questions_add(&l, p, o->given, err);
    if (status == RWS_OK) {
        l.list[0].n_particles = (int)o->particles;
        l.list[0].seed = o->asked.seed;
        l.list[0].particles = true;
        l.list[0].refine = (int)o->asked.refine;
        l.list[0].chains = (int)o->asked.chains;
        status = rws_posterior_ask(p, l.list, a, err);
    }
    if (status == RWS_OK) status = rws_posterior_predict(p, l.list, *a, (int)o->count, o->asked.seed, samples, err);
    rws__questions_release(&l);
    return status;
}

static rws_status run(int argc, char **argv, rws_error *err)
{
    sample_options o = {.count = 1, .test = NO_TEST, .particles = 1000};
    RWS_TRY(rws__arguments_parse(&argp, "rws sample", argc, argv, 0, &o, err));
    rws_samples *samples = NULL;
    rws_answers *answers = NULL;
    rws_status   status = rws__asked_open(&o.asked, err);
    if (status == RWS_OK) status = o.given ? predict(&o, &answers, &samples, err) : ask(&o, &samples, err);
    if (status == RWS_OK && o.out) status = draw(&o, samples, err);
    for (int i = 0; status == RWS_OK && i < samples->n; i++)
        status = report(&o, &samples->list[i], i + 1 == samples->n, err);
    if (status == RWS_OK && answers) print_check(&o, answers, samples);
    rws_answers_free(answers);
    rws_samples_free(samples);
    rws__asked_close(&o.asked);
    return status;
}

const rws_command rws_command_sample = {"sample", "draw from the model that a run has learned", run, &argp};
