/* gallery.c - the gallery: models of the field from examples/, each compared with its exact log p(x).
 *
 * This experiment is not the paper's, so that it has a table in the place of claims. */
#include "paper/paper.h"

#include "base/text.h"
#include "figure/chart.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Every model, in the order of the table; the last entry has name NULL. */
static const struct {
    const char *name, *title;
    int hidden; /* states whose numbering is arbitrary: 0 … hidden - 1 of rows, and of columns where there are as many */
} models[] = {
    {"hmm", "Hidden Markov model", 3},
    {"slds", "Switching linear dynamics"},
    {"coal", "Change points in coal-mining accidents"},
    {"dp", "Dirichlet-process mixture of galaxies"},
    {"expressions", "Expression induction"},
    {"rules", "Rational rules"},
    {"gp", "Grammar of kernels for airline passengers"},
    {"tracking", "Tracking with clutter"},
    {"lda", "Topics of the manual pages of Linux"},
    {0},
};

/* The finished run of a model with the lowest seed; NULL if there is none. */
static const rws_result *run_of(const rws_query *q, const char *name)
{
    for (int i = 0; i < q->results->n; i++) {
        const rws_result *r = &q->results->runs[i];
        const char       *model = rws_result_get(r, "model"), *slash = model ? strrchr(model, '/') : NULL;
        const size_t      n = strlen(name);
        if (!slash || strncmp(slash + 1, name, n) != 0 || strcmp(slash + 1 + n, ".so") != 0) continue;
        if (strcmp(rws_result_state(r), "finished") == 0) return r;
    }
    return NULL;
}

/* ---- figures */

/* Leaves out the first twentieth of training, which is far below the rest. */
static rws_curve curve_of(const rws_result *r, const char *metric, const char *style, const char *label, rws_line line)
{
    const rws_history *h = rws_result_history(r, metric);
    int                first = 0;
    if (!h) return (rws_curve){0};
    while (first < h->n - 1 && h->iterations[first] < (double)r->iterations / 20) first++;
    return (rws_curve){.method = style,
                       .label = label,
                       .n = h->n - first,
                       .x = h->iterations + first,
                       .y = h->values + first,
                       .line = line};
}

/* An axis of log p(x) that shows one nat at least, so that the noise of an estimate does not look like a difference. */
static rws_axis evidence_axis(const rws_curve *curves, int n)
{
    double low = INFINITY, high = -INFINITY;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < curves[i].n; k++) low = fmin(low, curves[i].y[k]), high = fmax(high, curves[i].y[k]);
    const double middle = (low + high) / 2;
    if (!(high - low < 1)) return (rws_axis){.label = "log p(x)"};
    return (rws_axis){.label = "log p(x)", .low = middle - 0.5, .high = middle + 0.5};
}

/* Two panels: log p(x), as the guide estimates it and as it is; and how far the guide is from the posterior. */
static rws_status draw(const rws_query *q, const char *name, const char *path, rws_error *err)
{
    static const struct {
        const char *metric, *style, *label;
        rws_line    line;
    } lines[] = {{"truth", "vimco", "exact, true numbers", RWS_LINE_DASHED},
                 {"exact", "reinforce", "exact, learned numbers", RWS_LINE_DASHED},
                 {"log_evidence", "ww", "by the guide, learned numbers", RWS_LINE_SOLID}};
    const rws_result *r = run_of(q, name);
    rws_curve         curves[3], kl = {0};
    int               n = 0, m = 0;
    while (strcmp(models[m].name, name) != 0) m++;
    for (int i = 0; r && i < 3; i++) {
        curves[n] = curve_of(r, lines[i].metric, lines[i].style, lines[i].label, lines[i].line);
        n += curves[n].n > 0;
    }
    if (r) kl = curve_of(r, "kl", "ww", "by the guide, learned numbers", RWS_LINE_SOLID);
    const rws_panel panels[] = {{.curves = curves, .n_curves = n}, {.curves = &kl, .n_curves = kl.n > 0}};
    const rws_axis  x[] = {{.label = "iteration"}, {.label = "iteration"}};
    const rws_axis  y[] = {evidence_axis(curves, n), {.label = "KL(q || p)", .scale = RWS_AXIS_LOG}};
    const rws_chart chart = {.title = models[m].title,
                             .n_rows = 1,
                             .n_columns = 2,
                             .panels = panels,
                             .x = x,
                             .y = y,
                             .own_y = true,
                             .names = RWS_NAMES_LEGEND};
    return rws__chart_draw(&chart, path, err);
}

#define FIGURE(name)                                                                    \
    static rws_status draw_##name(const rws_query *q, const char *path, rws_error *err) \
    {                                                                                   \
        return draw(q, #name, path, err);                                               \
    }
FIGURE(hmm)
FIGURE(slds)
FIGURE(coal)
FIGURE(dp)
FIGURE(expressions)
FIGURE(rules)
FIGURE(gp)
FIGURE(tracking)
FIGURE(lda)

#define CAPTION ": log p(x) over the iterations, by the guide and exactly; and the guide's KL(q || p)"
static const rws_paper_figure figures[] = {
    {"hmm", "hmm" CAPTION, draw_hmm},
    {"slds", "slds" CAPTION, draw_slds},
    {"coal", "coal" CAPTION, draw_coal},
    {"dp", "dp" CAPTION, draw_dp},
    {"expressions", "expressions" CAPTION, draw_expressions},
    {"rules", "rules" CAPTION, draw_rules},
    {"gp", "gp" CAPTION, draw_gp},
    {"tracking", "tracking" CAPTION, draw_tracking},
    {"lda", "lda" CAPTION, draw_lda},
    {0},
};

/* ---- the table */

static void put_number(FILE *out, const rws_result *r, const char *metric)
{
    const double value = r ? rws_result_last(r, metric) : NAN;
    if (isfinite(value)) fprintf(out, " %.3f |", value);
    else fputs(" - |", out);
}

/* ---- learned numbers beside the truth, where data are simulated */

enum { MAX_HIDDEN = 4 };

/* The row and the column of a number, by its label: "theta.next[0][1]". -1: it has none. */
static void place_of(const char *label, int *row, int *column)
{
    const char *first = strchr(label, '['), *second = first ? strchr(first + 1, '[') : NULL;
    *row = second ? atoi(first + 1) : -1;
    *column = second ? atoi(second + 1) : first ? atoi(first + 1) : -1;
}

/* How many numbers are in the row of number i. */
static int row_length(const rws_shot *s, int i)
{
    const char *end = strrchr(s->labels[i], '[');
    const int   prefix = end ? (int)(end - s->labels[i]) + 1 : (int)strlen(s->labels[i]) + 1;
    int         n = 0;
    for (int k = 0; k < s->n; k++) n += strncmp(s->labels[k], s->labels[i], (size_t)prefix) == 0;
    return n;
}

/* The number that stands in the place of number i if the hidden states are numbered by `order`. */
static double renumbered(const rws_shot *s, int i, int hidden, const int *order)
{
    int         row, column;
    const int   length = row_length(s, i);
    const char *name_end = strchr(s->labels[i], '[');
    char        label[256];
    place_of(s->labels[i], &row, &column);
    if (row < 0) return s->values[i];
    if (row < hidden) row = order[row];
    if (length == hidden) column = order[column];
    snprintf(label, sizeof label, "%.*s[%d][%d]", (int)(name_end - s->labels[i]), s->labels[i], row, column);
    for (int k = 0; k < s->n; k++)
        if (strcmp(s->labels[k], label) == 0) return s->values[k];
    return NAN;
}

/* Writes the order of hidden states in which learned numbers are nearest to the truth: tries all. */
static void nearest_order(const rws_shot *learned, const rws_shot *truth, int hidden, int *best)
{
    double least = INFINITY;
    int    n = 1;
    for (int i = 0; i < hidden; i++) best[i] = i, n *= i + 1;
    for (int code = 0; code < n && hidden; code++) {
        int    order[MAX_HIDDEN], left[MAX_HIDDEN];
        double away = 0;
        for (int i = 0; i < hidden; i++) left[i] = i;
        for (int i = 0, rest = code; i < hidden; rest /= hidden - i, i++) {
            const int k = rest % (hidden - i);
            order[i] = left[k];
            left[k] = left[hidden - 1 - i];
        }
        for (int i = 0; i < learned->n; i++) away += pow(renumbered(learned, i, hidden, order) - truth->values[i], 2);
        if (away >= least) continue;
        least = away;
        memcpy(best, order, sizeof order);
    }
}

static void put_numbers(FILE *out, const char *model, int hidden, const rws_shot *learned, const rws_shot *truth)
{
    int order[MAX_HIDDEN];
    nearest_order(learned, truth, hidden, order);
    for (int i = 0, n; i < learned->n; i += n) {
        const char *end = strrchr(learned->labels[i], '[');
        n = row_length(learned, i);
        fprintf(out, "| %s | %.*s |", model, end ? (int)(end - learned->labels[i]) : 255, learned->labels[i]);
        for (int k = i; k < i + n; k++) fprintf(out, " %.3f", renumbered(learned, k, hidden, order));
        fputs(" |", out);
        for (int k = i; k < i + n; k++) fprintf(out, " %.4g", truth->values[k]);
        fputs(" |\n", out);
    }
}

static void put_truths(FILE *out, const rws_query *q)
{
    bool any = false;
    for (int i = 0; models[i].name; i++) {
        const rws_result *r = run_of(q, models[i].name);
        const rws_shot   *learned = r ? rws_result_shot(r, "numbers", r->iteration) : NULL;
        const rws_shot   *truth = r ? rws_result_shot(r, "true_numbers", r->iteration) : NULL;
        if (!learned || !truth || learned->n != truth->n) continue;
        if (!any) fputs("\n| model | numbers | learned | truth |\n|---|---|---|---|\n", out);
        any = true;
        put_numbers(out, models[i].name, models[i].hidden, learned, truth);
    }
}

static char *table(const rws_query *q)
{
    rws_text text;
    FILE    *out = rws__text_open(&text);
    if (!out) return NULL;
    fputs("| model | log p(x) by the guide | exact, learned numbers | exact, true numbers | seconds "
          "|\n|---|---|---|---|---|\n",
          out);
    for (int i = 0; models[i].name; i++) {
        const rws_result *r = run_of(q, models[i].name);
        fprintf(out, "| %s |", models[i].name);
        put_number(out, r, "log_evidence");
        put_number(out, r, "exact");
        put_number(out, r, "truth");
        if (r) fprintf(out, " %.0f |\n", r->seconds);
        else fputs(" not trained |\n", out);
    }
    put_truths(out, q);
    return rws__text_end(&text);
}

/* ---- runs */

#define MODEL(name, method, particles, iterations, every, more) \
    RWS_RUNS("examples/" name ".so", method, particles, "1", iterations, every, more)

/* The numbers of particles that measure are such that an estimate is known to about 0.01 nats for each datum. */
static const char sweep[] = MODEL("hmm", "ww", "10", "2000", "100", "eval-particles 100\n") //
    MODEL("slds", "ww", "10", "3000", "150", "eval-particles 100\n")                        //
    MODEL("coal", "ww", "100", "3000", "150", "eval-particles 5000\n")                      //
    MODEL("dp", "ww", "10", "2000", "100", "eval-particles 100\n")                          //
    MODEL("expressions", "ws", "10", "1500", "75", "eval-particles 100\n")                  //
    MODEL("rules", "wws", "10", "1000", "50", "eval-particles 100\n")                       //
    MODEL("gp", "ww", "50", "2000", "100", "eval-particles 1000\n")                         //
    MODEL("tracking", "wws", "10", "1000", "100", "eval-particles 1000\n");
static const char quick[] = MODEL("hmm", "ww", "5", "20", "10", "eval-particles 10\n") //
    MODEL("slds", "ww", "5", "20", "10", "eval-particles 10\n")                        //
    MODEL("coal", "ww", "20", "20", "10", "eval-particles 100\n")                      //
    MODEL("dp", "ww", "5", "20", "10", "eval-particles 10\n")                          //
    MODEL("expressions", "ws", "5", "20", "10", "eval-particles 10\n")                 //
    MODEL("rules", "wws", "5", "20", "10", "eval-particles 10\n")                      //
    MODEL("gp", "ww", "10", "20", "10", "eval-particles 100\n")                        //
    MODEL("tracking", "wws", "5", "10", "5", "eval-particles 10\n");

#define LDA(particles, iterations, every, more) \
    MODEL("lda", "vimco", particles, iterations, every, "set data " RWS_CORPUS "\n" more)
static const char lda[] = LDA("5", "3000", "300", "eval-particles 1000\n");
static const char lda_quick[] = LDA("5", "20", "10", "eval-particles 10\n");

static const rws_query_own own[] = {{0}};
static const rws_variant   variants[] = {{NULL, own}, {0}};
static const rws_claim     claims[] = {{0}};

const rws_experiment rws_experiment_gallery = {
    .name = "gallery",
    .help = "models of the field from examples/, each with its exact value (not of the paper)",
    .examples = true,
    .sweep = sweep,
    .quick = quick,
    .corpus = {.file = "manpages.csv", .script = "lda.sh", .sweep = lda, .quick = lda_quick},
    .variants = variants,
    .figures = figures,
    .claims = claims,
    .table = table,
};
