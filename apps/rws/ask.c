#include "rws/ask.h"

#include "base/error.h"
#include "base/text.h"
#include "rws/reopen.h"
#include "rws/output.h"
#include "rws/screen.h"
#include "figure/brackets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the run */

enum { KEY_SET = 0x3000, KEY_JSON, KEY_CHOICES, KEY_LIMIT, KEY_REFINE, KEY_CHAINS, MAX_PRINTED = 32 };

static error_t parse(int key, char *arg, struct argp_state *state)
{
    rws_asked *a = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        a->seed = 1;
        state->child_inputs[0] = &a->changes;
        return 0;
    case 's': return rws__arguments_count(state, "--seed", arg, 0, UINT64_MAX, &a->seed);
    case KEY_REFINE: return rws__arguments_count(state, "--refine", arg, 0, RWS_MAX_REFINE, &a->refine);
    case KEY_CHAINS: return rws__arguments_count(state, "--chains", arg, 2, RWS_MAX_CHAINS, &a->chains);
    case KEY_JSON: a->json = true; return 0;
    case KEY_CHOICES: a->choices = true; return 0;
    case KEY_LIMIT: return rws__arguments_limit(state, arg, &a->changes.limits);
    case KEY_SET:
        if (a->changes.n_set == RWS_MAX_ASK_SET)
            return rws__arguments_fail(state, "--set can be given %d times at most.", RWS_MAX_ASK_SET);
        a->changes.set[a->changes.n_set++] = arg;
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

const struct argp rws_asked_argp = {
    .options =
        (const struct argp_option[]){
            {"seed", 's', "S", 0, "Seed of the random numbers (1)", 0},
            {"refine", KEY_REFINE, "N", 0,
             "Refine answers by N iterations of Markov chains with the guide as proposal, for a guide whose weights "
             "are "
             "too uneven; the first half is warm-up",
             0},
            {"chains", KEY_CHAINS, "C", 0, "Chains of --refine (16)", 0},
            {"set", KEY_SET, "NAME=VALUE", 0, "A setting of the model that differs from training", 0},
            {"choices", KEY_CHOICES, 0, 0, "Also show the random choices, by site and visit", 0},
            {"limit", KEY_LIMIT, "NAME=N", 0, RWS_LIMIT_HELP, 0},
            {"json", KEY_JSON, 0, 0, "Print one JSON object per line", 0},
            {0},
        },
    .parser = parse,
    .children = (const struct argp_child[]){{.argp = &rws_reopen_argp}, {0}},
};

rws_status rws__asked_open(rws_asked *a, rws_error *err)
{
    return rws_posterior_open(a->path, &a->changes, NULL, &a->posterior, err);
}

void rws__asked_close(rws_asked *a)
{
    rws_posterior_free(a->posterior);
}

/* ---- reports */

static void print_value(const char *name, const float *value, int dim, int indent)
{
    printf("%*s%s", indent, "", name);
    for (int i = 0; i < dim; i++) printf(" %g", (double)value[i]);
    putchar('\n');
}

static void print_tree(const char *text, int indent, bool brackets)
{
    rws_text tree;
    printf("%*s%s\n", indent, "", text);
    if (brackets) return;
    FILE *stream = rws__text_open(&tree);
    rws__need_memory(stream != NULL, "a tree");
    rws__brackets_print(text, rws__screen_columns(STDOUT_FILENO) - indent, rws__screen_unicode(), stream);
    char *lines = rws__text_end(&tree);
    rws__need_memory(lines != NULL, "a tree");
    putchar('\n');
    for (char *at = lines, *end; (end = strchr(at, '\n')); at = end + 1)
        printf("%*s%.*s\n", indent, "", (int)(end - at), at);
    free(lines);
}

static bool is_tree(const rws_reported *report)
{
    return report->text && strcmp(report->name, "tree") == 0;
}

/* A tree is a whole one unless "truncated" says that it is not. */
static bool says_nothing(const rws_reported *report)
{
    return !report->text && strcmp(report->name, "truncated") == 0 && report->dim == 1 && report->value[0] == 0;
}

static bool is_known(const rws_reported *report, const char *known)
{
    return known && report->text && strcmp(report->text, known) == 0;
}

/* Which reports of a list are printed. */
typedef struct {
    bool known;  /* a text equal to the datum: another text tells what the answer is */
    bool nought; /* "truncated 0": there is no tree */
    bool names;  /* texts have their names, by which they are told from other reports */
} manner;

static bool is_shown(const rws_reported *report, const char *known, const manner *m)
{
    if (report->text) return m->known || !is_known(report, known);
    return says_nothing(report) ? m->nought : report->dim <= MAX_PRINTED;
}

static manner manner_of(const rws_reported *reports, int n, const char *known)
{
    manner m = {.known = true, .nought = true};
    int    shown = 0;
    for (int i = 0; i < n; i++) {
        m.known &= !reports[i].text || is_known(&reports[i], known);
        m.nought &= !is_tree(&reports[i]);
    }
    for (int i = 0; i < n; i++) shown += !is_tree(&reports[i]) && is_shown(&reports[i], known, &m);
    m.names = shown > 1;
    return m;
}

static void print_report(const rws_reported *report, int indent, bool names, bool brackets)
{
    if (is_tree(report)) print_tree(report->text, indent, brackets);
    else if (report->text) printf("%*s%s%s%s\n", indent, "", names ? report->name : "", names ? " " : "", report->text);
    else print_value(report->name, report->value, report->dim, indent);
}

bool rws__asked_print(const rws_reported *reports, int n, const char *known, int indent, bool brackets)
{
    const manner m = manner_of(reports, n, known);
    bool         any = false;
    for (int texts = 1; texts >= 0; texts--)
        for (int i = 0; i < n; i++) {
            if ((reports[i].text != NULL) != texts || !is_shown(&reports[i], known, &m)) continue;
            print_report(&reports[i], indent, m.names, brackets);
            any = true;
        }
    return any;
}

/* ---- fields */

/* "x [0 3 1]", "y [1 2; 3 4]": what `infer` reads. */
static void print_series(const float *value, const rws_field *f)
{
    printf("%s [", f->name);
    for (int i = 0; i < (int)value[0] * f->item; i++)
        printf("%s%g", i == 0 ? "" : f->item > 1 && i % f->item == 0 ? "; " : " ", (double)value[1 + i]);
    puts("]");
}

int rws__asked_print_fields(const rws_posterior *p, const float *const *fields)
{
    rws_field f;
    int       lines = 0;
    for (int i = 0; rws_posterior_field(p, i, &f); i++) {
        if (f.label) continue;
        if (f.most) print_series(fields[i], &f);
        else print_value(f.name, fields[i], f.dim, 0);
        lines++;
    }
    return lines;
}

/* ---- choices */

void rws__asked_print_choices(const rws_choice *choices, int n, int indent)
{
    for (int i = 0; i < n; i++) {
        const rws_choice *c = &choices[i];
        printf("%*s%s", indent, "", c->site);
        if (c->visit) printf(":%d", c->visit); /* as --given takes it */
        for (int k = 0; k < c->dim; k++) printf(" %g", (double)c->value[k]);
        puts(c->given ? " (given)" : "");
    }
}
