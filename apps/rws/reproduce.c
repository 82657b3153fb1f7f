/* reproduce.c - rws reproduce: trains the runs of the paper's experiments, draws its figures and checks its claims. */
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/nearest.h"
#include "base/quote.h"
#include "base/text.h"
#include "rws/arguments.h"
#include "sweep/campaign.h"
#include "rws/command.h"
#include "rws/progress.h"
#include "rws/output.h"
#include "models/corpora/cache.h"
#include "paper/paper.h"
#include "rws_results.h"

#include <glib.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXAMPLES "examples/" /* in a sweep, the folder of models that are built from examples/ */

enum { KEY_QUICK = 0x2000, KEY_REPORT, KEY_SWEEP, KEY_EXAMPLES, MAX_EXPERIMENTS = 16, MAX_CLAIMS = 256 };

typedef struct {
    const rws_experiment *wanted[MAX_EXPERIMENTS];
    int                   n_wanted;
    const char           *out;
    const char           *examples; /* folder of the models of examples/; NULL: looked for beside the program */
    bool                  quick, report, sweep;
    rws_campaign_options  campaign;
} reproduce_options;

typedef struct {
    const reproduce_options *o;
    rws_checked              claims[MAX_CLAIMS];
    int                      n_claims;
    rws_campaign_result      total;
    int                      n_begun;   /* experiments */
    int                      n_refused; /* experiments that failed as a whole */
} reproduction;

/* ---- models of examples/ */

/* The folder of the models of examples/, which the caller frees: the one that was named, or the first of build/examples
 * (beside the program) and lib/rws/examples (of an installation) that is there. NULL: none is there. */
static char *find_examples(const reproduce_options *o)
{
    static const char *const places[] = {"examples", "../lib/rws/examples"};
    char                     program[PATH_MAX];
    if (o->examples) return realpath(o->examples, NULL);
    const ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    if (n <= 0) return NULL;
    program[n] = '\0';
    *strrchr(program, '/') = '\0';
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char *folder = rws__file_join(program, places[i]), *found = realpath(folder, NULL);
        free(folder);
        if (found) return found;
    }
    return NULL;
}

/* Fails unless all models that the sweep names by examples/ are in the folder, which may be NULL. */
static rws_status check_examples(const char *text, const char *folder, const char *name, rws_error *err)
{
    static const char advice[] = "build the models by `make examples` and name their folder by --examples DIR";
    if (!folder) return rws_fail(err, RWS_BAD_INPUT, "The models of %s are not there: %s.", name, advice);
    if (strpbrk(folder, " \t\n#"))
        return rws_fail(err, RWS_BAD_INPUT,
                        "The path \"%s\" has a blank or a # in it; make a link without, and name it by --examples.",
                        rws__quote(folder).text);
    while ((text = strstr(text, EXAMPLES))) {
        char *path;
        text += strlen(EXAMPLES);
        rws__need_memory(asprintf(&path, "%s/%.*s", folder, (int)strcspn(text, "\n"), text) > 0, "the path of a model");
        const bool there = access(path, R_OK) == 0;
        if (!there) rws_fail(err, RWS_BAD_INPUT, "There is no model \"%s\": %s.", rws__quote(path).text, advice);
        free(path);
        if (!there) return RWS_BAD_INPUT;
    }
    return RWS_OK;
}

/* Writes `text` with `by` in the place of every `what`. */
static void put_replaced(FILE *to, const char *text, const char *what, const char *by)
{
    for (const char *place; by && (place = strstr(text, what)); text = place + strlen(what))
        fprintf(to, "%.*s%s", (int)(place - text), text, by);
    fputs(text, to);
}

/* Starts `script file` and waits. Its complaints go to stderr. */
static bool run_script(const char *script, const char *file)
{
    const char *const argv[] = {"sh", script, file, NULL};
    int               how = -1;
    return g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, NULL, &how, NULL) && how == 0;
}

/* The corpus of an experiment, which is fetched where `fetch` says so; the caller frees it. NULL: it is not there. */
static char *find_corpus(const rws_experiment *e, const char *folder, bool fetch)
{
    char     *cache, *path = NULL, *script = rws__file_join(folder, e->corpus.script);
    rws_error why;
    if (rws__cache_folder(&cache, &why) == RWS_OK) {
        path = rws__file_join(cache, e->corpus.file);
        if (fetch && access(path, R_OK) != 0 && rws__file_make_folder(cache, &why) == RWS_OK) run_script(script, path);
        if (access(path, R_OK) != 0 || strpbrk(path, " \t\n#")) {
            if (fetch)
                rws__note(
                    "%s: the runs that need \"%s\" are left out, because it is not there and %s could not fetch it "
                    "(its path must have no blank and no #).",
                    e->name, rws__quote(path).text, rws__quote_short(script).text);
            free(path);
            path = NULL;
        }
        free(cache);
    }
    free(script);
    return path;
}

/* A sweep of an experiment, in which the folder examples/ is the real one; the caller frees *out. */
static rws_status with_examples(const reproduce_options *o, const rws_experiment *e, const char *text, char **out,
                                rws_error *err)
{
    char      *folder = e->examples ? find_examples(o) : NULL;
    rws_text   whole;
    rws_status status = e->examples ? check_examples(text, folder, e->name, err) : RWS_OK;
    FILE      *to = status == RWS_OK ? rws__text_open(&whole) : NULL;
    rws__need_memory(to || status != RWS_OK, "the sweep of an experiment");
    if (to) {
        char *corpus = folder && e->corpus.file ? find_corpus(e, folder, !o->sweep) : NULL, *slashed = NULL;
        if (folder) rws__need_memory(asprintf(&slashed, "%s/", folder) > 0, "the path of models");
        put_replaced(to, text, EXAMPLES, slashed);
        if (corpus) {
            rws_text some;
            FILE    *half = rws__text_open(&some);
            rws__need_memory(half != NULL, "the sweep of an experiment");
            put_replaced(half, o->quick ? e->corpus.quick : e->corpus.sweep, RWS_CORPUS, corpus);
            char *more = rws__text_end(&some);
            rws__need_memory(more != NULL, "the sweep of an experiment");
            put_replaced(to, more, EXAMPLES, slashed);
            free(more);
        }
        free(slashed);
        free(corpus);
        *out = rws__text_end(&whole);
        rws__need_memory(*out != NULL, "the sweep of an experiment");
    }
    free(folder);
    return status;
}

/* ---- one experiment */

/* DIR/gmm or DIR/gmm-quick; the caller frees it. */
static char *folder_of(const reproduce_options *o, const rws_experiment *e)
{
    char *folder;
    rws__need_memory(asprintf(&folder, "%s/%s%s", o->out, e->name, o->quick ? "-quick" : "") > 0,
                     "the path of an experiment");
    return folder;
}

/* NULL as the text means that there was no memory for it. */
static rws_status write_text(const char *folder, const char *name, const char *text, rws_error *err)
{
    if (!text) return rws_no_memory(err, "a report");
    char            *path = rws__file_join(folder, name);
    const rws_status status = rws__file_write_text(path, text, err);
    free(path);
    return status;
}

/* The sweep of an experiment; the caller frees it. */
static rws_status sweep_of(const reproduce_options *o, const rws_experiment *e, char **out, rws_error *err)
{
    return with_examples(o, e, o->quick ? e->quick : e->sweep, out, err);
}

/* Trains the runs of the sweep into the folder, without those that are `known` to be finished. */
static rws_status train(reproduction *r, const rws_experiment *e, const char *folder, const rws_results *known,
                        rws_error *err)
{
    char      *text;
    rws_sweep *sweep = NULL;
    RWS_TRY(sweep_of(r->o, e, &text, err));
    rws_status status = rws_sweep_parse(text, strlen(text), e->name, &sweep, err);
    free(text);
    if (status == RWS_OK) status = rws_sweep_check(sweep, true, err);
    if (status == RWS_OK) {
        char what[64];
        if (r->o->n_wanted > 1) snprintf(what, sizeof what, "%s (%d of %d)", e->name, r->n_begun, r->o->n_wanted);
        else snprintf(what, sizeof what, "%s", e->name);
        const double         start = rws__clock_now();
        rws_campaign_options options = r->o->campaign;
        rws_campaign_result  result = {0};
        options.what = what;
        options.folder = folder;
        options.known = known;
        status = rws__campaign_run(sweep, &options, &result, err);
        r->total.finished += result.finished;
        r->total.found += result.found;
        r->total.failed += result.failed;
        if (result.worst > r->total.worst) r->total.worst = result.worst;
        char took[32];
        rws__progress_time(took, sizeof took, rws__clock_now() - start);
        if (status == RWS_OK && !r->o->campaign.json) printf("%s: %s\n", e->name, took);
    }
    rws_sweep_free(sweep);
    return status;
}

static rws_status write_claims(const rws_checked *claims, int n, const char *folder, rws_error *err)
{
    static const char *const files[] = {"claims.md", "claims.json"};
    rws_status               status = RWS_OK;
    for (int i = 0; i < 2 && status == RWS_OK; i++) {
        char *text = (i ? rws__paper_json : rws__paper_markdown)(claims, n);
        status = write_text(folder, files[i], text, err);
        free(text);
    }
    return status;
}

/* The report of the experiment, and the numbers of its runs. */
static rws_status write_report(const rws_experiment *e, const rws_results *results, const rws_checked *claims, int n,
                               const char *folder, rws_error *err)
{
    char      *text = rws__paper_document(e, results, claims, n), *csv = rws__paper_csv(e, results);
    rws_status status = write_text(folder, "report.md", text, err);
    if (status == RWS_OK) status = write_text(folder, "final.csv", csv, err);
    free(csv);
    free(text);
    return status;
}

/* Prints the experiment's own table, if it has one, and writes it into the folder. */
static rws_status write_table(const reproduction *r, const rws_experiment *e, const rws_results *results,
                              const char *folder, rws_error *err)
{
    char *text;
    RWS_TRY(rws__paper_table(e, results, &text, err));
    char *path = rws__file_join(folder, "table.md");
    if (text && !r->o->campaign.json) printf("\n%s\n", text);
    const rws_status status = text ? rws__file_write_text(path, text, err) : RWS_OK;
    free(path);
    free(text);
    return status;
}

/* Draws the figures and checks the claims, from results alone. */
static rws_status write_outputs(reproduction *r, const rws_experiment *e, const char *folder,
                                const rws_results *results, rws_error *err)
{
    const int first = r->n_claims;
    const int n = rws__paper_check(e, results, r->claims + first, MAX_CLAIMS - first);
    rws__need_memory(n >= 0, "the claims of an experiment");
    r->n_claims += n;
    rws_status status = rws__paper_draw(e, results, folder, err);
    if (status == RWS_OK && r->n_claims > first)
        status = write_claims(r->claims + first, r->n_claims - first, folder, err);
    if (status == RWS_OK) status = write_table(r, e, results, folder, err);
    if (status == RWS_OK) status = write_report(e, results, r->claims + first, r->n_claims - first, folder, err);
    return status;
}

/* ---- the runs of an experiment: those of runs/, and those that were trained elsewhere and exported to runs.csv */

/* Whether b is the same run as a and is to be shown instead: it is further, or has more metrics (those that are
 * measured at the end), or is equal and not exported. */
static bool replaces(const rws_result *b, const rws_result *a, const char *exported)
{
    if (strcmp(a->name, b->name) != 0 || strcmp(a->store, b->store) == 0) return false;
    if (b->iteration != a->iteration) return b->iteration > a->iteration;
    if (b->n_histories != a->n_histories) return b->n_histories > a->n_histories;
    return strcmp(a->store, exported) == 0;
}

/* Keeps one of two runs that have the same name. */
static void drop_repeated(rws_results *results, const char *exported)
{
    rws_result *runs = results->runs;
    int         n = 0;
    for (int i = 0; i < results->n; i++) {
        bool repeated = false; /* runs of a name stand side by side */
        for (int k = i - 1; k <= i + 1; k += 2)
            repeated = repeated || (k >= 0 && k < results->n && replaces(&runs[k], &runs[i], exported));
        if (!repeated) runs[n++] = runs[i];
    }
    results->n = n;
}

/* The runs of the experiment, for the caller to free. */
static rws_status read_runs(const char *runs, const char *exported, rws_results **out, rws_error *err)
{
    const bool        there = access(exported, F_OK) == 0, alone = there && access(runs, F_OK) != 0;
    const char *const paths[] = {alone ? exported : runs, exported};
    RWS_TRY(rws_results_read(paths, there && !alone ? 2 : 1, out, err));
    drop_repeated(*out, exported);
    return RWS_OK;
}

/* Trains the runs that are in neither place. */
static rws_status train_missing(reproduction *r, const rws_experiment *e, const char *runs, const char *exported,
                                rws_error *err)
{
    rws_results *known = NULL;
    if (access(exported, F_OK) == 0) RWS_TRY(rws_results_read(&exported, 1, &known, err));
    const rws_status status = train(r, e, runs, known, err);
    rws_results_free(known);
    return status;
}

static rws_status reproduce(reproduction *r, const rws_experiment *e, rws_error *err)
{
    char        *folder = folder_of(r->o, e);
    char        *runs = rws__file_join(folder, "runs"), *exported = rws__file_join(folder, "runs.csv");
    rws_results *results = NULL;
    rws__need_memory(runs && exported, "the path of an experiment");
    rws_status status = r->o->report ? RWS_OK : train_missing(r, e, runs, exported, err);
    if (status == RWS_OK) status = read_runs(runs, exported, &results, err);
    if (status == RWS_OK) status = write_outputs(r, e, folder, results, err);
    if (status == RWS_OK && !r->o->campaign.json)
        printf("%s: figures and %s are in %s\n", e->name, e->table ? "the table" : "claims", folder);
    rws_results_free(results);
    free(exported);
    free(runs);
    free(folder);
    return status;
}

/* ---- all of them */

static void print_claims(const reproduction *r)
{
    for (int i = 0; i < r->n_claims; i++) {
        const rws_checked *c = &r->claims[i];
        const char        *verdict = rws_verdict_names[c->finding.verdict];
        if (r->o->campaign.json) {
            rws__output_json(json_pack("{s:s,s:s?,s:s,s:i,s:s}", "claim", c->claim->name, "variant", c->variant,
                                       "verdict", verdict, "seeds", c->finding.seeds, "numbers", c->finding.numbers));
            continue;
        }
        printf("\n%s%s%s%s  %s (%d %s)\n", c->claim->name, c->variant ? " (" : "", c->variant ? c->variant : "",
               c->variant ? ")" : "", verdict, c->finding.seeds, c->finding.seeds == 1 ? "seed" : "seeds");
        printf("    %s\n    %s\n", c->claim->text, c->finding.numbers);
    }
    int counts[RWS_VERDICTS] = {0};
    for (int i = 0; i < r->n_claims; i++) counts[r->claims[i].finding.verdict]++;
    if (r->o->campaign.json)
        rws__output_json(json_pack("{s:b,s:i,s:i,s:i,s:i,s:i}", "final", 1, "hold", counts[RWS_HOLDS], "do_not_hold",
                                   counts[RWS_FAILS], "undecided", counts[RWS_UNDECIDED], "unknown",
                                   counts[RWS_UNKNOWN], "failed_runs", r->total.failed));
    else if (r->n_claims)
        printf(
            "\n%d of %d claims hold, %d do not, %d are undecided at a level of 5 %%, and for %d there are not enough "
            "runs.\n",
            counts[RWS_HOLDS], r->n_claims, counts[RWS_FAILS], counts[RWS_UNDECIDED], counts[RWS_UNKNOWN]);
}

/* If several experiments are wanted, one that fails does not stop the others. */
static rws_status reproduce_all(reproduction *r, rws_error *err)
{
    const reproduce_options *o = r->o;
    for (int i = 0; i < o->n_wanted; i++) {
        r->n_begun++;
        const rws_status status = reproduce(r, o->wanted[i], err);
        if (status == RWS_OK) continue;
        if (status == RWS_STOPPED || o->n_wanted == 1) return status;
        rws__note("%s: %s", o->wanted[i]->name, err->text);
        r->n_refused++;
    }
    if (o->n_wanted > 1 && r->n_claims) RWS_TRY(write_claims(r->claims, r->n_claims, o->out, err));
    print_claims(r);
    if (r->n_refused)
        return rws_fail(err, RWS_BAD_INPUT, "%d of the %d experiments failed.", r->n_refused, o->n_wanted);
    return rws__campaign_verdict(&r->total, err);
}

/* ---- the command */

static const struct argp_option options[] = {
    {"quick", KEY_QUICK, 0, 0, "Fewer and shorter runs: minutes instead of hours", 0},
    {"out", 'o', "DIR", 0, "The folder in which each experiment has its own (default: reproduction)", 0},
    {"report", KEY_REPORT, 0, 0, "Train nothing: figures and claims from the runs that are there", 0},
    {"sweep", KEY_SWEEP, 0, 0, "Only print the experiment's sweep file", 0},
    {"examples", KEY_EXAMPLES, "DIR", 0, "For gallery: the folder of the models (default: beside the program)", 0},
    {0},
};

static error_t want(const char *name, reproduce_options *o, const struct argp_state *state)
{
    const bool  all = strcmp(name, "all") == 0;
    bool        found = false;
    rws_nearest near = rws__nearest_to(name);
    for (int i = 0; rws_experiments[i]; i++) {
        rws__nearest_try(&near, rws_experiments[i]->name);
        if (all ? rws_experiments[i]->examples : strcmp(rws_experiments[i]->name, name) != 0) continue;
        found = true;
        bool known = false;
        for (int k = 0; k < o->n_wanted; k++) known = known || o->wanted[k] == rws_experiments[i];
        if (!known && o->n_wanted < MAX_EXPERIMENTS) o->wanted[o->n_wanted++] = rws_experiments[i];
    }
    return found ? 0
                 : rws__arguments_fail(state, "There is no experiment \"%s\"%s; see rws reproduce --help.",
                                       rws__quote_short(name).text, rws__nearest_hint(&near).text);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    reproduce_options *o = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &o->campaign; return 0;
    case KEY_QUICK: o->quick = true; return 0;
    case 'o': return rws__arguments_folder(state, "--out", arg, &o->out);
    case KEY_REPORT: o->report = true; return 0;
    case KEY_SWEEP: o->sweep = true; return 0;
    case KEY_EXAMPLES: return rws__arguments_folder(state, "--examples", arg, &o->examples);
    case ARGP_KEY_ARG: return want(arg, o, state);
    case ARGP_KEY_END:
        if (o->sweep && o->n_wanted > 1 && !o->campaign.json)
            return rws__arguments_fail(
                state, "--sweep prints the sweep file of one experiment, and runs of several may have the "
                       "same name: name one, or add --json.");
        return o->n_wanted ? 0 : rws__arguments_fail(state, "Which experiment? See rws reproduce --help.");
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* One entry of a list: lines of at most 78 characters, the text in a column of its own. */
static void list_entry(FILE *stream, const char *name, const char *text)
{
    enum { INDENT = 16, WIDTH = 78 };
    int column = fprintf(stream, "  %-*s", INDENT - 2, name);
    while (*text) {
        const int length = (int)strcspn(text, " ");
        if (column + 1 + length > WIDTH) column = fprintf(stream, "\n%*s", INDENT, "") - 1;
        column += fprintf(stream, "%s%.*s", column > INDENT ? " " : "", length, text);
        text += length + (text[length] == ' ');
    }
}

static void list_experiments(FILE *stream)
{
    fputs("Experiments:\n", stream);
    for (int i = 0; rws_experiments[i]; i++) {
        list_entry(stream, rws_experiments[i]->name, rws_experiments[i]->help);
        fputc('\n', stream);
    }
    list_entry(stream, "all", "all experiments of the paper");
}

static char *help_filter(int key, const char *text, void *input)
{
    (void)input;
    return rws__arguments_below(key, text, list_experiments);
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "EXPERIMENT...",
    .doc =
        "Repeats experiments of the paper: trains their runs (those that are finished are skipped), draws the figures "
        "and checks the claims. Runs that were exported to DIR/EXPERIMENT/runs.csv count as well.\v ",
    .help_filter = help_filter,
    .children = (const struct argp_child[]){{.argp = &rws_campaign_argp}, {0}},
};

static rws_status run(int argc, char **argv, rws_error *err)
{
    reproduce_options o = {.out = "reproduction"};
    RWS_TRY(rws__arguments_parse(&argp, "rws reproduce", argc, argv, 0, &o, err));
    for (int i = 0; i < o.n_wanted && o.sweep; i++) {
        char *text;
        RWS_TRY(sweep_of(&o, o.wanted[i], &text, err));
        if (o.campaign.json)
            rws__output_json(json_pack("{s:s,s:o}", "experiment", o.wanted[i]->name, "sweep", rws__json_string(text)));
        else fputs(text, stdout);
        free(text);
    }
    if (o.sweep) return RWS_OK;
    reproduction *r = calloc(1, sizeof *r);
    if (!r) return rws_no_memory(err, "a reproduction");
    r->o = &o;
    const rws_status status = reproduce_all(r, err);
    free(r);
    return status;
}

const rws_command rws_command_reproduce = {"reproduce", "the paper's experiments: runs, figures, claims", run, &argp};
