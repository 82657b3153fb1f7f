/* infer.c - rws infer: what a trained guide makes of data that the user types, and how probable it is. */
#include "base/error.h"
#include "base/file.h"
#include "cli/ask.h"
#include "cli/command.h"
#include "cli/gallery.h"
#include "cli/report.h"
#include "figure/png.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_TOP = 0x2000, KEY_BRACKETS, MOST_TYPED = 1000, MOST_BYTES = 1 << 28 };

typedef struct {
    rws_asked   asked;
    const char *typed[MOST_TYPED];
    int         n_typed;
    const char *file, *out; /* NULL: none */
    uint64_t    particles, top;
    bool        brackets;
    int         n_done;
    rws_gallery pictures; /* of the best answers */
} infer_options;

static error_t parse(int key, char *arg, struct argp_state *state)
{
    infer_options *o = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &o->asked; return 0;
    case 'k': return rws_arguments_count(state, "--particles", arg, 1, 10000000, &o->particles);
    case 'f': o->file = arg; return 0;
    case 'o': o->out = arg; return 0;
    case KEY_TOP: return rws_arguments_count(state, "--top", arg, 0, INT32_MAX, &o->top);
    case KEY_BRACKETS: o->brackets = true; return 0;
    case ARGP_KEY_ARG:
        if (!o->asked.path) {
            o->asked.path = arg;
            return 0;
        }
        if (o->n_typed == MOST_TYPED)
            return rws_arguments_fail(state, "%d questions can be typed; put more into a --file.", MOST_TYPED);
        o->typed[o->n_typed++] = arg;
        return 0;
    case ARGP_KEY_END:
        if (!o->asked.path) return rws_arguments_fail(state, "Which run? Name its folder.");
        if (!o->n_typed && !o->file)
            return rws_arguments_fail(state, "Ask what? Type it behind the run, or - to be asked from standard input.");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options =
        (const struct argp_option[]){
            {"particles", 'k', "N", 0, "Of the guide, for each datum (1000)", 0},
            {"top", KEY_TOP, "N", 0, "Answers shown, the most probable ones (5; 0: all)", 0},
            {"file", 'f', "FILE", 0, "Also ask about every line of the file", 0},
            {"out", 'o', "FILE", 0, "Also draw the trees or images as a PNG, SVG or PDF", 0},
            {"brackets", KEY_BRACKETS, 0, 0, "Trees in brackets only, not drawn as lines", 0},
            {0},
        },
    .parser = parse,
    .args_doc = "RUN [DATUM...|-]",
    .doc = "Asks a trained run what is behind a datum: what its guide proposes, how probable that is by importance "
           "weights and, where it can be had, exactly. RUN is the folder that `rws train --out` wrote. For a grammar "
           "a datum is a sentence in quotation marks and an answer a tree; it must say just this sentence, unless "
           "--set likelihood=relaxed. For air it is the number of a test image; a PNG, of the size that the run was "
           "trained on and white on black; or an IDX file, FILE or FILE:NUMBER.",
    .children = (const struct argp_child[]){{.argp = &rws_asked_argp}, {0}},
};

/* ---- answers */

/* The first ones, and of those only what is possible if anything is. */
static int n_shown(const infer_options *o, const rws_answers *a)
{
    if (!o->top) return a->n;
    int n = 0;
    while (n < a->n && (a->list[n].posterior > 0 || a->list[n].exact > 0)) n++;
    if (n == 0) n = a->n;
    return (uint64_t)n < o->top ? n : (int)o->top;
}

/* What is exact has no key where nobody knows it, so that an exact log p(x) of null is that of the impossible. */
static void report_json(const infer_options *o, const char *text, const rws_answers *a)
{
    json_t *list = json_array(), *object = json_pack("{s:s,s:i}", "asked", text, "particles", a->n_particles);
    if (!object) object = json_pack("{s:n,s:i}", "asked", "particles", a->n_particles); /* not UTF-8 */
    json_object_set_new(object, "ess", rws_report_real(a->ess));
    json_object_set_new(object, "log_evidence", rws_report_real(a->log_evidence));
    rws_report_known(object, "exact_log_evidence", a->exact_log_evidence);
    for (int i = 0; i < n_shown(o, a); i++) {
        json_t *answer = json_object();
        json_object_set_new(answer, "posterior", rws_report_real(a->list[i].posterior));
        rws_report_known(answer, "exact", a->list[i].exact);
        json_object_set_new(answer, "guide", rws_report_real(a->list[i].guide));
        rws_asked_describe(a->list[i].reports, a->list[i].n_reports, answer);
        json_array_append_new(list, answer);
    }
    json_object_set_new(object, "answers", list);
    rws_report_json(object);
}

static const char *share(double x, char out[static 32])
{
    if (isnan(x)) return strcpy(out, "-");
    snprintf(out, 32, "%.3f", x);
    return out;
}

static void report_text(const infer_options *o, const char *text, const rws_answers *a)
{
    char one[32], two[32], three[32];
    printf("%s%s\n", o->n_done ? "\n" : "", text);
    if (isnan(a->exact_log_evidence)) printf("  log p(x) %s", rws_report_number(a->log_evidence, one));
    else
        printf("  log p(x) %s, exactly %s", rws_report_number(a->log_evidence, one),
               rws_report_number(a->exact_log_evidence, two));
    printf("; %d particles, as good as %.0f of the posterior\n", a->n_particles, a->ess * a->n_particles);
    if (a->exact_log_evidence == -INFINITY) printf("  The model cannot make this. What the guide proposes:\n");
    else if (a->log_evidence == -INFINITY)
        printf("  No particle explains this. What the guide proposes, and what does:\n");
    const int n = n_shown(o, a);
    double    rest = 0;
    for (int i = 0; i < n; i++) {
        const rws_answer *at = &a->list[i];
        printf("\n  posterior %s   exact %s   guide %s\n", share(at->posterior, one), share(at->exact, two),
               share(at->guide, three));
        rws_asked_print(at->reports, at->n_reports, text, 4, o->brackets);
    }
    for (int i = n; i < a->n; i++) rest += a->list[i].guide;
    if (n < a->n)
        printf("\n  and %d more, impossible or less probable: %.3f of what the guide proposed (--top 0 shows them)\n",
               a->n - n, rest);
}

static rws_status draw_trees(const infer_options *o, const char *text, const rws_answers *a, rws_error *err)
{
    const int n = n_shown(o, a);
    char(*room)[96] = calloc((size_t)n + 1, sizeof *room), one[32], two[32];
    const char **captions = calloc((size_t)n + 1, sizeof *captions);
    RWS_CHECK(room && captions);
    for (int i = 0; i < n; i++) {
        snprintf(room[i], sizeof *room, "%s (exact %s)", share(a->list[i].posterior, one),
                 share(a->list[i].exact, two));
        captions[i] = room[i];
    }
    const rws_status status = rws_gallery_trees(a->list, n, captions, text, o->out, err);
    free(room);
    free(captions);
    return status;
}

/* ---- questions */

static rws_status ask(const infer_options *o, const char *text, rws_answers **a, rws_error *err)
{
    rws_posterior *p = o->asked.posterior;
    rws_question   q = {.text = text, .n_particles = (int)o->particles, .seed = o->asked.seed};
    if (!rws_posterior_model(p)->see || !rws_png_is(text)) return rws_posterior_ask(p, &q, a, err);
    rws_grey picture;
    RWS_TRY(rws_png_read(text, &picture, err));
    q.text = NULL;
    q.picture = &picture;
    const rws_status status = rws_posterior_ask(p, &q, a, err);
    rws_png_release(&picture);
    return status;
}

static rws_status answer(infer_options *o, const char *text, rws_error *err)
{
    rws_answers *a;
    if (o->out && o->n_done && !o->pictures.n)
        return rws_fail(err, RWS_BAD_INPUT, "--out draws the answers to one question; ask the others by themselves.");
    RWS_TRY(ask(o, text, &a, err));
    const bool picture = o->out && a->n && rws_gallery_add(&o->pictures, a->list[0].reports, a->list[0].n_reports);
    const rws_status status = o->out && !picture ? draw_trees(o, text, a, err) : RWS_OK;
    if (status == RWS_OK && o->asked.json) report_json(o, text, a);
    else if (status == RWS_OK) report_text(o, text, a);
    o->n_done++;
    rws_answers_free(a);
    return status;
}

/* A line without its end; one without words is no question. */
static rws_status answer_line(infer_options *o, char *line, rws_error *err)
{
    line[strcspn(line, "\r\n")] = '\0';
    return line[strspn(line, " \t")] ? answer(o, line, err) : RWS_OK;
}

static rws_status answer_stream(infer_options *o, rws_error *err)
{
    char      *line = NULL;
    size_t     size = 0;
    rws_status status = RWS_OK;
    while (status == RWS_OK && getline(&line, &size, stdin) >= 0) {
        status = answer_line(o, line, err);
        fflush(stdout); /* whoever types wants to read */
    }
    free(line);
    return status;
}

static rws_status answer_file(infer_options *o, rws_error *err)
{
    uint8_t *bytes;
    size_t   size;
    RWS_TRY(rws_file_read(o->file, MOST_BYTES, &bytes, &size, err));
    rws_status status = RWS_OK;
    bytes[size] = '\0'; /* there is room for it */
    for (char *at = (char *)bytes, *end = at + size; at < end && status == RWS_OK;) {
        char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop) stop = end;
        *stop = '\0';
        status = answer_line(o, at, err);
        at = stop + 1;
    }
    free(bytes);
    return status;
}

static rws_status run(int argc, char **argv, rws_error *err)
{
    infer_options o = {.particles = 1000, .top = 5, .pictures.pairs = true};
    RWS_TRY(rws_arguments_parse(&argp, "rws infer", argc, argv, 0, &o, err));
    rws_status status = rws_asked_open(&o.asked, err);
    for (int i = 0; i < o.n_typed && status == RWS_OK; i++)
        status = strcmp(o.typed[i], "-") == 0 ? answer_stream(&o, err) : answer(&o, o.typed[i], err);
    if (status == RWS_OK && o.file) status = answer_file(&o, err);
    if (status == RWS_OK && o.pictures.n) status = rws_gallery_draw(&o.pictures, NULL, o.out, err);
    rws_gallery_release(&o.pictures);
    rws_asked_close(&o.asked);
    return status;
}

const rws_command rws_command_infer = {"infer", "ask a run what is behind a datum: a sentence, an image", run};
