/* plot.c - rws plot: metrics of runs, as a picture in a file or on the terminal.
 *
 * Runs that differ in their seed only are one curve. One key of the configuration has a panel for each of its values;
 * the other keys in which runs differ make different curves. All numbers are read from stores.
 */
#include "base/error.h"
#include "base/nearest.h"
#include "base/quote.h"
#include "rws/command.h"
#include "rws/screen.h"
#include "rws/select.h"
#include "figure/chart.h"
#include "figure/bundle.h"
#include "figure/terminal.h"
#include "results/results.h"
#include "rws_results.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { MAX_METRICS = 6, MAX_PANELS = 8, MAX_CURVES = 40, MAX_LEVELS = 4 };
enum {
    KEY_LOG = 0x2000,
    KEY_LINEAR,
    KEY_PANELS,
    KEY_TITLE,
    KEY_FROM,
    KEY_WIDTH,
    KEY_HEIGHT,
    KEY_FONT,
    KEY_SMOOTH,
    KEY_MEAN,
    KEY_BASELINE
};

/* A line that curves of the first metric are compared with. */
typedef struct {
    const char *label;
    double      y[2];
} level;

typedef struct {
    rws_select  select;
    char       *metrics[MAX_METRICS];
    int         n_metrics;
    const char *out, *x, *panels, *title;
    const char *font;
    double      from, smooth;
    uint64_t    width, height; /* 0: as usual */
    level       levels[MAX_LEVELS];
    int         n_levels;
    bool        mean;
    int         scale; /* KEY_LOG or KEY_LINEAR; 0: chosen by the numbers */
} plot_options;

typedef struct {
    const plot_options *o;
    const rws_results  *results;
    const rws_result  **runs;      /* all of the results */
    rws_bundles         bundles;   /* of the runs, without regard to x and, unless it is the method, to their panel */
    const char         *panel_key; /* NULL: one panel */
    const char         *panels[MAX_PANELS];
    int                 n_panels; /* at least 1 */
    rws_gathered        gathered[MAX_METRICS][MAX_PANELS][MAX_CURVES];
    rws_curve           curves[MAX_METRICS][MAX_PANELS][MAX_CURVES + MAX_LEVELS];
    double              span[MAX_PANELS][2]; /* the least and the largest x */
    int                 n_curves[MAX_METRICS][MAX_PANELS];
    bool                log[MAX_METRICS];
    char                captions[MAX_METRICS][64]; /* a metric's name with blanks */
} plot;

static bool over_training(const plot_options *o)
{
    return strcmp(o->x, "iteration") == 0 || strcmp(o->x, "seconds") == 0;
}

/* ---- which runs make a curve */

static rws_status find_bundles(plot *p, rws_error *err)
{
    /* Runs of different lengths are one curve, which fewer of them reach. */
    const char *const        leave[] = {p->o->x, over_training(p->o) ? "iterations" : p->o->x, p->panel_key, NULL};
    const rws_bundle_options options = {
        .leave = leave, .most = MAX_CURVES, .advice = "--where, such as --where method=ww"};
    return rws__bundles_make(p->runs, p->results->n, &options, &p->bundles, err);
}

static int by_number(const void *a, const void *b)
{
    return strverscmp(*(const char *const *)a, *(const char *const *)b);
}

static rws_status find_panels(plot *p, rws_error *err)
{
    const char *wanted = p->o->panels ? p->o->panels : "particles";
    p->n_panels = 1;
    if (strcmp(wanted, "none") == 0 || strcmp(wanted, p->o->x) == 0) return RWS_OK;
    const bool differs = rws__bundle_differs(p->runs, p->results->n, wanted);
    if (p->o->panels) RWS_TRY(rws__results_check_key(p->runs, p->results->n, wanted, err));
    if (!differs) return RWS_OK;
    p->panel_key = wanted;
    p->n_panels = 0;
    for (int i = 0; i < p->results->n; i++) {
        const char *value = rws_result_get(&p->results->runs[i], wanted);
        bool        found = !value;
        for (int k = 0; k < p->n_panels && !found; k++) found = strcmp(p->panels[k], value) == 0;
        if (found) continue;
        if (p->n_panels == MAX_PANELS)
            return rws_fail(err, RWS_BAD_INPUT,
                            "\"%s\" has more than %d values, and each would be a panel: choose some with --where, draw "
                            "one panel with --panels none, or make it the x axis with -x %s.",
                            rws__quote_short(wanted).text, MAX_PANELS, rws__quote_short(wanted).text);
        p->panels[p->n_panels++] = value;
    }
    qsort(p->panels, (size_t)p->n_panels, sizeof *p->panels, by_number);
    return RWS_OK;
}

/* The runs of a curve in a panel. Returns how many. */
static int choose(const plot *p, int panel, int curve, const rws_result **out)
{
    int n = 0;
    for (int i = 0; i < p->results->n; i++) {
        const rws_result *r = &p->results->runs[i];
        if (p->panel_key && !rws_result_has(r, p->panel_key, p->panels[panel])) continue;
        if (p->bundles.of[i] == curve) out[n++] = r;
    }
    return n;
}

/* ---- numbers */

/* A mean over the points so far, whose weights fall by `share` from each to the one before it. */
static void smooth(double *values, int n, double share)
{
    double sum = 0, weight = 0;
    for (int i = 0; i < n; i++) {
        if (!isfinite(values[i])) continue;
        sum = share * sum + values[i];
        weight = share * weight + 1;
        values[i] = sum / weight;
    }
}

/* The curve of metric m of bundle l in panel c; widens *least and *most. There is none where nothing was measured. */
static rws_status gather_curve(plot *p, int m, int c, int l, const rws_result **runs, double *least, double *most,
                               rws_error *err)
{
    const plot_options *o = p->o;
    rws_gathered       *g = &p->gathered[m][c][l];
    const int           n = choose(p, c, l, runs);
    const rws_summary   by = o->mean ? rws__means_of : rws_quartiles_of;
    const rws_x         x = strcmp(o->x, "seconds") == 0 ? RWS_X_SECONDS : RWS_X_ITERATION;
    const rws_status    status = over_training(o) ? rws__gather_by(by, runs, n, o->metrics[m], x, g, err)
                                                  : rws__gather_over_by(by, runs, n, o->x, o->metrics[m], g, err);
    double *const       rows[] = {g->median, g->low, g->high};
    for (int r = 0; r < 3 && o->smooth > 0; r++) smooth(rows[r], g->n, o->smooth);
    rws_gathered_between(g, o->from, INFINITY);
    if (g->n == 0) return status;
    rws_curve *curve = &p->curves[m][c][p->n_curves[m][c]++];
    *curve = rws__gathered_curve(g, p->bundles.list[l].method);
    curve->label = p->bundles.list[l].label;
    curve->shade = p->bundles.list[l].shade;
    for (int i = 0; i < g->n; i++) *least = fmin(*least, g->median[i]), *most = fmax(*most, g->median[i]);
    if (p->n_curves[m][c] == 1) p->span[c][0] = g->x[0], p->span[c][1] = g->x[g->n - 1];
    p->span[c][0] = fmin(p->span[c][0], g->x[0]), p->span[c][1] = fmax(p->span[c][1], g->x[g->n - 1]);
    return status;
}

/* The levels, below all other curves of the first metric. */
static void add_levels(plot *p, int panel)
{
    const plot_options *o = p->o;
    rws_curve          *curves = p->curves[0][panel];
    if (!p->n_curves[0][panel]) return;
    for (int i = 0; i < o->n_levels; i++)
        curves[p->n_curves[0][panel]++] = (rws_curve){.method = "true",
                                                      .label = o->levels[i].label,
                                                      .n = 2,
                                                      .x = p->span[panel],
                                                      .y = o->levels[i].y,
                                                      .line = RWS_LINE_LEVEL};
}

static rws_status gather(plot *p, rws_error *err)
{
    const plot_options *o = p->o;
    const rws_result  **runs = calloc((size_t)p->results->n + 1, sizeof *runs);
    if (!runs) return rws_no_memory(err, "a figure");
    rws_status status = RWS_OK;
    for (int m = 0; m < o->n_metrics; m++) {
        double least = INFINITY, most = -INFINITY;
        for (int c = 0; c < p->n_panels; c++)
            for (int l = 0; l < p->bundles.n && status == RWS_OK; l++)
                status = gather_curve(p, m, c, l, runs, &least, &most, err);
        if (status == RWS_OK && most == -INFINITY && o->from > 0)
            status = rws_fail(err, RWS_BAD_INPUT, "Nothing was measured from --from %g on.", o->from);
        if (status == RWS_OK && o->scale == KEY_LOG && most > -INFINITY && !(most > 0))
            status = rws_fail(err, RWS_BAD_INPUT, "No value of %s is above 0, and --log shows no others: leave it out.",
                              rws__quote_short(o->metrics[m]).text);
        for (int c = 0; c < p->n_panels && m == 0; c++) add_levels(p, c);
        snprintf(p->captions[m], sizeof p->captions[m], "%s", o->metrics[m]);
        for (char *c = p->captions[m]; *c; c++)
            if (*c == '_') *c = ' ';
        p->log[m] = o->scale == KEY_LOG || (o->scale == 0 && least > 0 && most > 20 * least);
    }
    free(runs);
    return status;
}

/* ---- drawing */

static rws_axis x_axis(const plot_options *o)
{
    rws_axis x = {.label = o->x};
    if (strcmp(o->x, "seconds") == 0) x = (rws_axis){.label = "training time", .unit = "s"};
    if (strcmp(o->x, "particles") == 0) x = (rws_axis){.label = "particles K", .scale = RWS_AXIS_LOG};
    return x;
}

static rws_axis y_axis(const plot *p, int metric)
{
    return (rws_axis){.label = p->captions[metric], .scale = p->log[metric] ? RWS_AXIS_LOG : RWS_AXIS_LINEAR};
}

static void panel_title(const plot *p, int panel, char *out, size_t size)
{
    out[0] = '\0';
    if (!p->panel_key) return;
    snprintf(out, size, "%s = %s", strcmp(p->panel_key, "particles") == 0 ? "K" : p->panel_key, p->panels[panel]);
}

static rws_status draw_file(const plot *p, rws_error *err)
{
    rws_panel panels[MAX_METRICS * MAX_PANELS];
    rws_axis  x[MAX_PANELS], y[MAX_METRICS];
    char      titles[MAX_PANELS][128];
    for (int c = 0; c < p->n_panels; c++) {
        x[c] = x_axis(p->o);
        panel_title(p, c, titles[c], sizeof titles[c]);
    }
    for (int m = 0; m < p->o->n_metrics; m++) {
        y[m] = y_axis(p, m);
        for (int c = 0; c < p->n_panels; c++)
            panels[m * p->n_panels + c] = (rws_panel){.title = m == 0 && titles[c][0] ? titles[c] : NULL,
                                                      .curves = p->curves[m][c],
                                                      .n_curves = p->n_curves[m][c]};
    }
    const rws_chart chart = {.title = p->o->title,
                             .n_rows = p->o->n_metrics,
                             .n_columns = p->n_panels,
                             .panels = panels,
                             .x = x,
                             .y = y,
                             .width = p->o->width        ? (double)p->o->width
                                      : p->n_panels == 1 ? 330
                                                         : 0,
                             .height = (double)p->o->height,
                             .font = p->o->font};
    return rws__chart_draw(&chart, p->o->out, err);
}

/* Fixes the ends of the axes of a metric at those that all its panels have together, so that panels below each other can
 * be compared. */
static rws_status share_axes(const plot *p, int m, rws_axis *x, rws_axis *y, rws_error *err)
{
    rws_extent across = rws__extent_empty(), up = rws__extent_empty();
    rws_range  xs, ys;
    for (int c = 0; c < p->n_panels; c++)
        for (int l = 0; l < p->n_curves[m][c]; l++)
            for (int i = 0; i < p->curves[m][c][l].n; i++) {
                if (!isfinite(p->curves[m][c][l].y[i])) continue;
                rws__extent_add(&across, p->curves[m][c][l].x[i]);
                rws__extent_add(&up, p->curves[m][c][l].y[i]);
            }
    RWS_TRY(rws__axis_range(x, &across, NULL, 0, &xs, err));
    RWS_TRY(rws__axis_range(y, &up, NULL, 0.03, &ys, err));
    x->low = xs.low, x->high = xs.high, y->low = ys.low, y->high = ys.high;
    return RWS_OK;
}

static rws_status draw_terminal(const plot *p, rws_error *err)
{
    struct winsize size = {0};
    const bool     terminal = isatty(STDOUT_FILENO);
    if (terminal) ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    int width = size.ws_col >= 40 ? size.ws_col : 80, height = size.ws_row >= 12 ? size.ws_row - 1 : 24;
    width = p->o->width ? (int)p->o->width : width < 120 ? width : 120;
    height = p->o->height ? (int)p->o->height : height < 24 ? height : 24;
    for (int m = 0; m < p->o->n_metrics; m++) {
        rws_axis x = x_axis(p->o), y = y_axis(p, m);
        if (p->n_panels > 1) RWS_TRY(share_axes(p, m, &x, &y, err));
        for (int c = 0; c < p->n_panels; c++) {
            char title[256], panel[128];
            panel_title(p, c, panel, sizeof panel);
            snprintf(title, sizeof title, "%s%s%s", p->o->title ? p->o->title : "", p->o->title && panel[0] ? ", " : "",
                     panel);
            const rws_terminal t = {.title = title[0] ? title : NULL,
                                    .curves = p->curves[m][c],
                                    .n_curves = p->n_curves[m][c],
                                    .x = x,
                                    .y = y,
                                    .width = width,
                                    .height = height,
                                    .unicode = rws__screen_unicode(),
                                    .colour = terminal};
            RWS_TRY(rws__terminal_draw(&t, stdout, err));
        }
    }
    return RWS_OK;
}

/* ---- the command */

static const struct argp_option options[] = {
    {"out", 'o', "FILE", 0, "Draw to a file: .png, .svg or .pdf (default: on the terminal)", 2},
    {"x", 'x', "KEY", 0,
     "The x axis: iteration (default), seconds, or a number of the configuration such as particles, with the final "
     "values of the metrics",
     2},
    {"from", KEY_FROM, "X", 0, "Leave out everything before this point of the x axis", 2},
    {"panels", KEY_PANELS, "KEY", 0, "A panel for each value of this key (default: particles; none: one panel)", 2},
    {"log", KEY_LOG, 0, 0, "A logarithmic y axis (default: if the largest number is 20 times the smallest)", 2},
    {"linear", KEY_LINEAR, 0, 0, "A linear y axis", 2},
    {"title", KEY_TITLE, "TEXT", 0, "The title of the figure", 2},
    {"mean", KEY_MEAN, 0, 0, "The mean over seeds, with its standard error, instead of median and quartiles", 2},
    {"smooth", KEY_SMOOTH, "SHARE", 0, "Smooth curves: each point keeps this share (0 to 0.999) of the ones before it",
     2},
    {"baseline", KEY_BASELINE, "NAME=VALUE", 0, "A dashed line to compare the first METRIC with; may be repeated", 2},
    {"width", KEY_WIDTH, "N", 0, "Width in points of 1/72 inch, of a file; in characters on the terminal", 2},
    {"height", KEY_HEIGHT, "N", 0, "Height of a panel, likewise", 2},
    {"font", KEY_FONT, "FAMILY", 0, "Font of a file (default DejaVu Sans)", 2},
    {0},
};

static error_t parse_metrics(char *text, plot_options *o, const struct argp_state *state)
{
    for (char *rest = NULL, *part = strtok_r(text, ",", &rest); part; part = strtok_r(NULL, ",", &rest)) {
        if (o->n_metrics == MAX_METRICS)
            return rws__arguments_fail(state, "At most %d metrics can be drawn at once.", MAX_METRICS);
        o->metrics[o->n_metrics++] = part;
    }
    return o->n_metrics ? 0 : rws__arguments_fail(state, "Which metric? `rws runs` shows them.");
}

static error_t parse_level(char *text, plot_options *o, const struct argp_state *state)
{
    char *equals = strrchr(text, '=');
    if (!equals || equals == text)
        return rws__arguments_fail(state, "--baseline takes NAME=VALUE, not \"%s\".", rws__quote_short(text).text);
    if (o->n_levels == MAX_LEVELS)
        return rws__arguments_fail(state, "--baseline can be given %d times at most.", MAX_LEVELS);
    level *l = &o->levels[o->n_levels++];
    *equals = '\0';
    l->label = text;
    const error_t error = rws__arguments_real(state, "--baseline", equals + 1, -1e300, 1e300, &l->y[0]);
    l->y[1] = l->y[0];
    return error;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    plot_options *o = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &o->select; return 0;
    case 'o': o->out = arg; return 0;
    case 'x': o->x = arg; return 0;
    case KEY_FROM: return rws__arguments_real(state, "--from", arg, 0, 1e15, &o->from);
    case KEY_PANELS: o->panels = arg; return 0;
    case KEY_LOG:
    case KEY_LINEAR:
        if (o->scale && o->scale != key) return rws__arguments_fail(state, "--log and --linear do not go together.");
        o->scale = key;
        return 0;
    case KEY_TITLE: o->title = arg; return 0;
    case KEY_MEAN: o->mean = true; return 0;
    case KEY_SMOOTH: return rws__arguments_real(state, "--smooth", arg, 0, 0.999, &o->smooth);
    case KEY_BASELINE: return parse_level(arg, o, state);
    case KEY_WIDTH: return rws__arguments_count(state, "--width", arg, 1, 5000, &o->width);
    case KEY_HEIGHT: return rws__arguments_count(state, "--height", arg, 1, 5000, &o->height);
    case KEY_FONT: o->font = arg; return 0;
    case ARGP_KEY_ARG:
        if (o->n_metrics) return ARGP_ERR_UNKNOWN; /* a path */
        return parse_metrics(arg, o, state);
    case ARGP_KEY_END: return o->n_metrics ? 0 : rws__arguments_fail(state, "Which metric? `rws runs` shows them.");
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "METRIC[,METRIC...]",
    .doc =
        "Draws metrics of runs: the median over seeds, with a band between the quartiles. PATH is as for `rws runs`.",
    .children = (const struct argp_child[]){{.argp = &rws_select_argp}, {0}},
};

static rws_status check_metrics(const plot_options *o, const rws_results *r, rws_error *err)
{
    for (int m = 0; m < o->n_metrics; m++) RWS_TRY(rws__select_check_metric(r, o->metrics[m], err));
    return RWS_OK;
}

static rws_status draw(plot *p, rws_error *err)
{
    RWS_TRY(check_metrics(p->o, p->results, err));
    RWS_TRY(find_panels(p, err));
    RWS_TRY(find_bundles(p, err));
    RWS_TRY(gather(p, err));
    return p->o->out ? draw_file(p, err) : draw_terminal(p, err);
}

static rws_status run(int argc, char **argv, rws_error *err)
{
    plot_options o = {.x = "iteration"};
    rws_results *results;
    RWS_TRY(rws__arguments_parse(&argp, "rws plot", argc, argv, 0, &o, err));
    RWS_TRY(rws__select_read(&o.select, &results, err));
    plot *p = calloc(1, sizeof *p);
    if (p) p->runs = calloc((size_t)results->n + 1, sizeof *p->runs);
    if (!p || !p->runs) {
        free(p);
        rws_results_free(results);
        return rws_no_memory(err, "a figure");
    }
    p->o = &o;
    p->results = results;
    for (int i = 0; i < results->n; i++) p->runs[i] = &results->runs[i];
    const rws_status status = draw(p, err);
    rws_gathered    *all = &p->gathered[0][0][0];
    for (size_t i = 0; i < sizeof p->gathered / sizeof *all; i++) rws_gathered_release(&all[i]);
    rws__bundles_release(&p->bundles);
    free(p->runs);
    free(p);
    rws_results_free(results);
    return status;
}

const rws_command rws_command_plot = {"plot", "draw metrics of runs, as a picture or on the terminal", run, &argp};
