/* infer.c - rws infer: the answers of a trained guide to data that the user names, with their probabilities. */
#include "base/error.h"
#include "base/file.h"
#include "base/quote.h"
#include "ask/posterior.h"
#include "rws/answer_table.h"
#include "rws/ask.h"
#include "rws/command.h"
#include "rws/datum.h"
#include "rws/picture_grid.h"
#include "rws/given.h"
#include "rws/marginal.h"
#include "rws/output.h"
#include "rws/progress.h"
#include "rws/questions.h"
#include "ask/answers_json.h"
#include "ask/ask.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEY_TOP = 0x2000,
    KEY_BRACKETS,
    KEY_TEST,
    KEY_GIVEN,
    KEY_MARGINALS,
    KEY_DATA,
    KEY_TABLE,
    KEY_THREADS,
    MAX_TYPED = 1000,
    MAX_BYTES = 1 << 28
};

typedef struct {
    rws_asked        asked;
    const char      *typed[MAX_TYPED];
    int              n_typed;
    const char      *file, *out; /* NULL: none */
    const char      *data;       /* a file of many data; NULL: none */
    const char      *table;      /* the file of a table of answers; NULL: they are printed */
    uint64_t         threads;    /* for --data and --table; 0: all processors */
    const char      *test;       /* numbers and ranges of test data; NULL: none */
    uint64_t         particles, top;
    bool             brackets, marginals;
    rws_given_list   given;    /* choices that are known */
    int              n_done;   /* data */
    rws_picture_grid pictures; /* of the best answer to each datum */
} infer_options;

static error_t parse_test(const char *text, infer_options *o, const struct argp_state *state)
{
    int         from, to;
    const char *at = text;
    while (rws__datum_range(&at, &from, &to)) continue;
    if (*at || at == text)
        return rws__arguments_fail(
            state, "--test takes numbers and ranges of test data, such as 0-9,12, not \"%.60s\".", text);
    o->test = text;
    return 0;
}

static error_t parse_given(const char *text, infer_options *o, const struct argp_state *state)
{
    rws_error err;
    if (rws__given_list_add(&o->given, text, &err) == RWS_OK) return 0;
    return rws__arguments_fail(state, "%s", err.text);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    infer_options *o = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &o->asked; return 0;
    case 'k': return rws__arguments_count(state, "--particles", arg, 1, RWS_MAX_PARTICLES, &o->particles);
    case 'f': o->file = arg; return 0;
    case 'o': o->out = arg; return 0;
    case KEY_TOP: return rws__arguments_count(state, "--top", arg, 0, INT32_MAX, &o->top);
    case KEY_GIVEN: return parse_given(arg, o, state);
    case KEY_TEST: return parse_test(arg, o, state);
    case KEY_DATA: o->data = arg; return 0;
    case KEY_TABLE:
        o->table = arg;
        return rws__answer_table_is(arg) ? 0 : rws__arguments_fail(state, "--table writes a .csv or a .jsonl file.");
    case KEY_THREADS: return rws__arguments_count(state, "--threads", arg, 0, 1024, &o->threads);
    case KEY_MARGINALS: o->marginals = true; return 0;
    case KEY_BRACKETS: o->brackets = true; return 0;
    case ARGP_KEY_ARG:
        if (!o->asked.path) {
            o->asked.path = arg;
            return 0;
        }
        if (o->n_typed == MAX_TYPED)
            return rws__arguments_fail(state, "%d data can be typed; put more into a --file.", MAX_TYPED);
        o->typed[o->n_typed++] = arg;
        return 0;
    case ARGP_KEY_END:
        if (!o->asked.path) return rws__arguments_fail(state, "Which run? Name its folder.");
        if (!o->n_typed && !o->file && !o->test && !o->data)
            return rws__arguments_fail(state,
                                       "Which datum? Type it after the run, or - to read data from standard input, "
                                       "or name test data, as in --test 0-9.");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options =
        (const struct argp_option[]){
            {"particles", 'k', "N", 0, "Particles of the guide for each datum (1000)", 0},
            {"top", KEY_TOP, "N", 0, "Number of answers that are shown, the most probable ones (5; 0: all)", 0},
            {"test", KEY_TEST, "LIST", 0,
             "Also ask about test data, by numbers from 0 and ranges: 0-9,12; with the same numbers as eval", 0},
            {"given", KEY_GIVEN, "SITE[:VISIT]=VALUE[,...]", 0,
             "Random choices that are known: answers are then of the posterior given the datum and these; the first "
             "visit is 0; several numbers of a value have blanks between them; may be repeated",
             0},
            {"marginals", KEY_MARGINALS, 0, 0,
             "Also show the posterior of each random choice by itself: probabilities, or mean and standard deviation",
             0},
            {"file", 'f', "FILE", 0, "Also ask about every line of the file", 0},
            {"data", KEY_DATA, "FILE", 0,
             "Also ask about all data of a file, many at once: a table (CSV, NPY, safetensors) with a column for each "
             "number "
             "of the fields, JSON lines (.jsonl), lines as they would be typed, a folder with PNGs",
             0},
            {"table", KEY_TABLE, "FILE", 0,
             "Write a row for each datum to FILE, .csv or .jsonl, instead of printing answers; after an interruption "
             "the "
             "same command continues",
             0},
            {"threads", KEY_THREADS, "N", 0, "Threads for --data and --table (0: as many as there are processors)", 0},
            {"out", 'o', "FILE", 0,
             "Also draw the trees, the images or the posterior of discrete choices as a PNG, SVG or PDF", 0},
            {"brackets", KEY_BRACKETS, 0, 0, "Trees in brackets only, not drawn as lines", 0},
            {0},
        },
    .parser = parse,
    .args_doc = "RUN [DATUM...|-]",
    .doc =
        "Infers the random choices behind a datum: prints the answers that the guide of a run proposes, with their "
        "posterior probability by importance weights and, where the model can compute it, the exact one. RUN is the "
        "folder that `rws train --out` wrote. For a grammar a datum is a sentence in quotation marks and an answer a "
        "tree; the words of the tree must be exactly this sentence, unless --set likelihood=relaxed. For air a datum "
        "is a PNG of the "
        "size that the run was trained on, white on black; an IDX file, FILE or FILE:NUMBER; or the number of a test "
        "image: in all of these a pixel is ink if it is above half grey, whereas --test has the random pixels of "
        "eval. For a model that reads no text a datum is the numbers of its fields: \"0.3 1.2\"; those of a series "
        "stand in "
        "brackets: \"2 [0 1]\". A datum that begins with a minus is written after --.",
    .children = (const struct argp_child[]){{.argp = &rws_asked_argp}, {0}},
};

/* ---- answers */

/* The number of answers that are shown: at most --top of the possible ones, or of all if none is possible. */
static int n_shown(const infer_options *o, const rws_answers *a)
{
    if (!o->top) return a->n;
    int n = 0;
    while (n < a->n && (a->list[n].posterior > 0 || a->list[n].exact > 0)) n++;
    if (n == 0) n = a->n;
    return (uint64_t)n < o->top ? n : (int)o->top;
}

/* The number of particles that are shown. */
static int n_particles_shown(const infer_options *o, const rws_answers *a)
{
    return o->top && (uint64_t)a->n_weighted > o->top ? (int)o->top : a->n_weighted;
}

/* `test` is -1 for a datum that was typed. */
static void report_json(const infer_options *o, const char *text, int test, const rws_answers *a)
{
    rws_buffer b = {0};
    rws__buffer_open(&b, '{');
    rws__buffer_key_text(&b, "asked", text);
    if (test >= 0) rws__buffer_key_number(&b, "test", test);
    if (o->given.n) {
        rws__buffer_key(&b, "given");
        rws__choices_write(o->given.list, o->given.n, &b);
    }
    rws__answers_write(a,
                       &(rws_answers_shown){.answers = n_shown(o, a),
                                            .particles = o->asked.choices ? n_particles_shown(o, a) : 0,
                                            .marginals = o->marginals ? INT_MAX : 0},
                       &b);
    rws__buffer_close(&b, '}');
    rws__output_buffer(&b);
}

static const char *share(double x, char out[static 32])
{
    if (isnan(x)) return strcpy(out, "-");
    snprintf(out, 32, "%.3f", x);
    return out;
}

static void print_particles(const infer_options *o, const rws_answers *a)
{
    char      one[32], two[32], three[32];
    const int n = n_particles_shown(o, a);
    for (int i = 0; i < n; i++) {
        const rws_weighted *w = &a->particles[i];
        printf("\n  weight %s   %d particle%s   log p %s   log q %s\n", share(w->weight, one), w->count,
               w->count == 1 ? "" : "s", rws__output_number(w->log_p, two), rws__output_number(w->log_q, three));
        rws__asked_print_choices(w->choices, w->n_choices, 4);
    }
    if (n < a->n_weighted) printf("\n  and %d more with less weight (--top 0 shows them)\n", a->n_weighted - n);
}

static bool has_reports(const rws_answers *a)
{
    for (int i = 0; i < a->n; i++)
        if (a->list[i].n_reports) return true;
    return false;
}

static bool has_exact(const rws_answers *a)
{
    for (int i = 0; i < a->n; i++)
        if (!isnan(a->list[i].exact)) return true;
    return false;
}

/* The evidence, and what the weights say of the answer. */
static void print_evidence(const infer_options *o, const rws_answers *a)
{
    char one[32];
    printf("  log p(x%s) %s", o->given.n ? ", given" : "", rws__output_number(a->log_evidence, one));
    if (a->log_evidence_error > 0) printf(" +- %.2g", a->log_evidence_error);
    if (!isnan(a->exact_log_evidence)) printf(", exactly %s", rws__output_number(a->exact_log_evidence, one));
    printf("; %d particles, effective sample size %.0f", a->n_particles, a->ess * a->n_particles);
    if (a->verdict == RWS_RELIABLE) puts(", reliable");
    else printf("\n  %s: %s\n", rws_trust_name(a->verdict), a->advice);
}

static void report_text(const infer_options *o, const char *text, const rws_answers *a)
{
    char       one[32], two[32], three[32];
    const bool exactly = has_exact(a), silent = !has_reports(a);
    printf("%s%s\n", o->n_done ? "\n" : "", text);
    print_evidence(o, a);
    if (a->exact_log_evidence == -INFINITY) printf("  This datum is impossible under the model. The guide proposes:\n");
    else if (a->log_evidence == -INFINITY)
        printf("  No particle explains this datum%s. The guide proposes%s:\n", o->given.n ? " with these choices" : "",
               exactly ? ", and the exact posterior has" : "");
    const int n = silent ? a->n : n_shown(o, a);
    double    rest = 0;
    if (silent && !o->asked.choices && !o->marginals)
        printf("  The model reports nothing; --choices and --marginals show its random choices.\n");
    for (int i = 0; i < n && !silent; i++) {
        const rws_answer *at = &a->list[i];
        printf("\n  posterior %s", share(at->posterior, one));
        if (at->error >= 0.0005) printf(" +- %s", share(at->error, one));
        if (exactly) printf("   exact %s", share(at->exact, two));
        printf("   guide %s\n", share(at->guide, three));
        if (!rws__asked_print(at->reports, at->n_reports, text, 4, o->brackets))
            puts(at->n_reports ? "    numbers that --json shows" : "    nothing is reported");
    }
    for (int i = n; i < a->n; i++) rest += a->list[i].guide;
    if (n < a->n)
        printf("\n  and %d more, impossible or less probable: %.3f of the guide's particles (--top 0 shows them)\n",
               a->n - n, rest);
    if (o->marginals) rws__marginals_print(a);
    if (o->asked.choices) print_particles(o, a);
}

static rws_status draw_trees(const infer_options *o, const char *text, const rws_answers *a, rws_error *err)
{
    const int n = n_shown(o, a);
    char(*texts)[96] = calloc((size_t)n + 1, sizeof *texts), one[32], two[32];
    const char **captions = calloc((size_t)n + 1, sizeof *captions);
    rws__need_memory(texts && captions, "the captions of trees");
    for (int i = 0; i < n; i++) {
        snprintf(texts[i], sizeof *texts, "%s (exact %s)", share(a->list[i].posterior, one),
                 share(a->list[i].exact, two));
        captions[i] = texts[i];
    }
    const rws_status status = rws__answer_trees_draw(a->list, n, captions, text, o->out, err);
    free(texts);
    free(captions);
    return status;
}

/* Trees or, of a model without, bars. */
static rws_status draw_answers(const infer_options *o, const char *text, const rws_answers *a, rws_error *err)
{
    const char *method = rws_posterior_config(o->asked.posterior)->method;
    rws_status  status = RWS_OK;
    const bool  trees = a->n && rws_answer_text(&a->list[0], "tree");
    if (trees) return draw_trees(o, text, a, err);
    if (rws__marginals_draw(a, method, text, o->out, &status, err)) return status;
    return rws_fail(err, RWS_BAD_INPUT,
                    "--out draws trees, pictures or choices with few values, and this answer has none of them.");
}

/* ---- questions */

/* Sets what the questions of a command have in common. */
static void set_common(const infer_options *o, rws_question *q)
{
    q->n_particles = (int)o->particles;
    q->seed = o->asked.seed;
    q->particles = o->asked.choices || o->marginals || o->table || o->out;
    q->given = o->given.list;
    q->n_given = o->given.n;
}

/* Asks about the datum that was typed or, if that is NULL, about a test datum. */
static rws_status ask(const infer_options *o, const char *typed, int test, rws_answers **a, rws_error *err)
{
    rws_question_list l = {0};
    rws_status        status =
        typed ? rws__questions_add(&l, o->asked.posterior, typed, err) : rws__questions_add_test(&l, test, err);
    if (status == RWS_OK) {
        set_common(o, l.list);
        status = rws_posterior_ask(o->asked.posterior, l.list, a, err);
    }
    rws__questions_release(&l);
    return status;
}

/* Draws and prints answers, which it frees. `test` is -1 for a datum that was typed. */
static rws_status show(infer_options *o, const char *text, int test, rws_answers *a, rws_error *err)
{
    const bool picture =
        o->out && a->n && rws__picture_grid_add(&o->pictures, a->list[0].reports, a->list[0].n_reports);
    const rws_status status = o->out && !picture ? draw_answers(o, text, a, err) : RWS_OK;
    if (status == RWS_OK && o->asked.json) report_json(o, text, test, a);
    else if (status == RWS_OK) report_text(o, text, a);
    o->n_done++;
    rws_answers_free(a);
    return status;
}

static rws_status answer(infer_options *o, const char *typed, int test, rws_error *err)
{
    rws_answers *a;
    char         name[32];
    snprintf(name, sizeof name, "test datum %d", test);
    const char *text = typed ? typed : name;
    if (o->out && o->n_done && !o->pictures.n)
        return rws_fail(err, RWS_BAD_INPUT,
                        "--out draws the trees or the choices of one datum; ask about the others one by one.");
    RWS_TRY(ask(o, typed, test, &a, err));
    return show(o, text, typed ? -1 : test, a, err);
}

/* A datum on a line, whose end is cut off. A line of spaces is skipped. */
static rws_status answer_line(infer_options *o, char *line, rws_error *err)
{
    line[strcspn(line, "\r\n")] = '\0';
    return line[strspn(line, " \t")] ? answer(o, line, 0, err) : RWS_OK;
}

/* A question of `length` bytes: text behind a zero byte would be left out without a word. */
static rws_status answer_bytes(infer_options *o, char *line, size_t length, rws_error *err)
{
    if (strlen(line) == length) return answer_line(o, line, err);
    return rws_fail(err, RWS_BAD_INPUT, "\"%s\" is followed by a zero byte; a question is text without zero bytes.",
                    rws__quote_short(line).text);
}

static rws_status answer_stream(infer_options *o, rws_error *err)
{
    char      *line = NULL;
    size_t     size = 0;
    rws_status status = RWS_OK;
    ssize_t    length;
    while (status == RWS_OK && (length = getline(&line, &size, stdin)) >= 0) {
        status = answer_bytes(o, line, (size_t)length, err);
        fflush(stdout); /* before the next line is typed */
    }
    free(line);
    return status;
}

static rws_status answer_file(infer_options *o, rws_error *err)
{
    uint8_t *bytes;
    size_t   size;
    RWS_TRY(rws__file_read(o->file, MAX_BYTES, &bytes, &size, err));
    rws_status status = RWS_OK;
    bytes[size] = '\0'; /* the memory has one byte more */
    for (char *at = (char *)bytes, *end = at + size; at < end && status == RWS_OK;) {
        char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop) stop = end;
        *stop = '\0';
        status = answer_bytes(o, at, (size_t)(stop - at), err);
        at = stop + 1;
    }
    free(bytes);
    return status;
}

static rws_status answer_test(infer_options *o, rws_error *err)
{
    int from, to;
    for (const char *at = o->test; rws__datum_range(&at, &from, &to);)
        for (int i = from; i <= to; i++) RWS_TRY(answer(o, NULL, i, err));
    return RWS_OK;
}

/* ---- many questions */

typedef struct {
    infer_options    *o;
    rws_question_list questions;
    rws_answer_table  table; /* with --table */
    rws_progress      progress;
    int               first; /* the first question that is asked */
    rws_status        status;
    rws_error         error;
} many;

/* Takes the answers to a question. Without a table, the first question that fails ends the command. */
static bool take(void *context, int i, rws_answers *a, rws_status status, const char *message)
{
    many       *m = context;
    const char *name = rws__questions_name(&m->questions, m->first + i);
    if (m->o->table) {
        m->status = rws__answer_table_add(&m->table, name, a, message, &m->error);
        rws_answers_free(a);
    } else if (a) {
        rws__progress_clear(&m->progress);
        m->status = show(m->o, name, -1, a, &m->error);
    } else m->status = rws_fail(&m->error, status, "%s: %s", rws__quote_short(name).text, message);
    rws__progress_show(&m->progress, (uint64_t)(m->first + i + 1));
    return m->status == RWS_OK;
}

/* All data that the options name, in the order typed, --file, --test, --data. */
static rws_status collect(const infer_options *o, rws_question_list *l, rws_error *err)
{
    const rws_posterior *p = o->asked.posterior;
    int                  from, to;
    for (int i = 0; i < o->n_typed; i++) RWS_TRY(rws__questions_add(l, p, o->typed[i], err));
    if (o->file) RWS_TRY(rws__questions_add_file(l, p, o->file, err));
    for (const char *at = o->test; at && rws__datum_range(&at, &from, &to);)
        for (int i = from; i <= to; i++) RWS_TRY(rws__questions_add_test(l, i, err));
    if (o->data) RWS_TRY(rws__questions_add_file(l, p, o->data, err));
    for (int i = 0; i < l->n; i++) set_common(o, &l->list[i]);
    return RWS_OK;
}

/* What was asked, on one line. */
static char *describe(const infer_options *o, const rws_question_list *l)
{
    rws_buffer           b = {0};
    const rws_posterior *p = o->asked.posterior;
    char                 data[32];
    snprintf(data, sizeof data, "%016" PRIx64, rws__questions_fingerprint(l, p));
    rws__buffer_open(&b, '{');
    rws__buffer_key_text(&b, "model", rws_posterior_model(p)->name);
    rws__buffer_key_number(&b, "iteration", (double)rws_posterior_iteration(p));
    rws__buffer_key_number(&b, "particles", (double)o->particles);
    rws__buffer_key(&b, "seed");
    rws__buffer_print(&b, "%" PRIu64, o->asked.seed);
    rws__buffer_key_number(&b, "questions", l->n);
    rws__buffer_key_text(&b, "data", data);
    rws__buffer_open_key(&b, "set", '[');
    for (int i = 0; i < o->asked.changes.n_set; i++) rws__buffer_text(&b, o->asked.changes.set[i]);
    rws__buffer_close(&b, ']');
    rws__buffer_key(&b, "given");
    rws__choices_write(o->given.list, o->given.n, &b);
    rws__buffer_close(&b, '}');
    rws__need_memory(!b.starved, "a table of answers");
    return b.bytes;
}

static rws_status open_table(many *m, rws_error *err)
{
    char     *about = describe(m->o, &m->questions);
    const int block = rws__questions_at_once(rws__posterior_program(m->o->asked.posterior), (int)m->o->particles);
    const rws_status status = rws__answer_table_open(&m->table, m->o->table, about, block, err);
    free(about);
    m->first = m->table.n_done;
    if (status == RWS_OK && m->first) rws__note("%d of %d answers are there already.", m->first, m->questions.n);
    return status;
}

static rws_status ask_many(many *m, rws_error *err)
{
    RWS_TRY(collect(m->o, &m->questions, err));
    if (m->o->table) RWS_TRY(open_table(m, err));
    rws__progress_init(&m->progress, "infer", (uint64_t)m->first, (uint64_t)m->questions.n);
    const rws_many   how = {.threads = (int)m->o->threads, .first = (uint64_t)m->first, .each = take, .context = m};
    const rws_status status = rws_posterior_ask_many(m->o->asked.posterior, m->questions.list + m->first,
                                                     m->questions.n - m->first, &how, err);
    rws__progress_clear(&m->progress);
    if (m->status != RWS_OK) return rws_fail(err, m->status, "%s", m->error.text);
    return status == RWS_OK && m->o->table ? rws__answer_table_finish(&m->table, err) : status;
}

static rws_status answer_many(infer_options *o, rws_error *err)
{
    many             m = {.o = o, .table.file = -1};
    const rws_status status = ask_many(&m, err);
    rws__answer_table_close(&m.table);
    rws__questions_release(&m.questions);
    return status;
}

static rws_status answer_all(infer_options *o, rws_error *err)
{
    if (o->table) return answer_many(o, err);
    for (int i = 0; i < o->n_typed; i++)
        RWS_TRY(strcmp(o->typed[i], "-") == 0 ? answer_stream(o, err) : answer(o, o->typed[i], 0, err));
    if (o->file) RWS_TRY(answer_file(o, err));
    if (o->test) RWS_TRY(answer_test(o, err));
    if (!o->data) return RWS_OK;
    o->n_typed = 0;
    o->file = o->test = NULL;
    return answer_many(o, err);
}

static rws_status run(int argc, char **argv, rws_error *err)
{
    infer_options o = {.particles = 1000, .top = 5, .pictures.pairs = true};
    rws_status    status = rws__arguments_parse(&argp, "rws infer", argc, argv, 0, &o, err);
    if (status != RWS_OK) { /* choices may have been read before what was refused */
        rws__given_list_release(&o.given);
        return status;
    }
    status = rws__asked_open(&o.asked, err);
    if (status == RWS_OK) status = answer_all(&o, err);
    if (status == RWS_OK && o.pictures.n) status = rws__picture_grid_draw(&o.pictures, NULL, o.out, err);
    rws__picture_grid_release(&o.pictures);
    rws__given_list_release(&o.given);
    rws__asked_close(&o.asked);
    return status;
}

const rws_command rws_command_infer = {"infer", "infer the random choices behind a datum: a sentence, an image", run,
                                       &argp};
