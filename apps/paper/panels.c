#include "paper/panels.h"

#include "base/error.h"
#include "figure/chart.h"
#include "figure/style.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { LABEL = 48, MAX_METHODS = 12, MAX_ROWS = 4, MAX_CURVES = MAX_METHODS * RWS_MAX_K };

static rws_status no_memory(rws_error *err)
{
    return rws_no_memory(err, "the curves of a figure");
}

static int count(const char *const *list)
{
    int n = 0;
    while (list[n]) n++;
    RWS_CHECK(n <= MAX_METHODS);
    return n;
}

/* The gathered runs of a method as a curve. Returns whether there are runs; if not, releases *g. */
static bool add_gathered(rws_gathered *g, const char *method, rws_curve *out)
{
    if (g->n_runs > 0) *out = rws__gathered_curve(g, method);
    else rws_gathered_release(g);
    return g->n_runs > 0;
}

/* Adds the method's curve to the panel, if there are runs. A method may be followed by a setting and a value, "dvae smoothing
 * spike", which then is in the curve's name. */
static rws_status add_curve(const rws_query *q, const char *method, int number, int K, const char *metric,
                            rws_gathered *g, rws_panel *panel, char *label, rws_error *err)
{
    char                name[32], key[32];
    int                 value = 0;
    const bool          own = sscanf(method, "%31s %31s %n", name, key, &value) == 2 && value > 0;
    const rws_query_own other[] = {{name, key, method + value}, {0}};
    rws_query           one = *q;
    rws_curve          *out = (rws_curve *)&panel->curves[panel->n_curves];
    if (own) one.own = other;
    RWS_TRY(rws__query_curve(&one, own ? name : method, K, metric, g, err));
    if (!add_gathered(g, own ? name : method, out)) return RWS_OK;
    panel->n_curves++;
    if (!own) return RWS_OK;
    snprintf(label, LABEL, "%s (%s)", rws__style_name(name), method + value);
    out->method = rws__style_find(name)->method;
    out->label = label;
    out->shade = 0.3 * (number % 3);
    return RWS_OK;
}

rws_status rws__panels_grid(const rws_query *q, const char *title, const char *const *methods,
                            const rws_panels_row *rows, int n_rows, const char *path, rws_error *err)
{
    const rws_particles particles = rws__query_particles(q);
    const int           n_methods = count(methods);
    RWS_CHECK(n_rows <= MAX_ROWS);
    const int columns =
        particles.n ? particles.n : 1; /* without runs there is one empty panel, with a text that says so */
    rws_gathered *gathered = calloc((size_t)(n_rows * columns * n_methods), sizeof *gathered);
    rws_curve    *curves = calloc((size_t)(n_rows * columns * n_methods), sizeof *curves);
    if (!gathered || !curves) {
        free(gathered), free(curves);
        return no_memory(err);
    }
    rws_status status = RWS_OK;
    rws_panel  panels[MAX_ROWS * RWS_MAX_K] = {0};
    rws_axis   x[RWS_MAX_K], y[MAX_ROWS];
    char       titles[RWS_MAX_K][24], labels[MAX_METHODS][LABEL];
    for (int c = 0; c < columns; c++) {
        snprintf(titles[c], sizeof titles[c], "K = %d", particles.K[c]);
        x[c] = (rws_axis){.label = "iteration"};
    }
    for (int r = 0; r < n_rows; r++) {
        y[r] = rows[r].axis;
        for (int c = 0; c < columns; c++) {
            const int  first = (r * columns + c) * n_methods;
            rws_panel *panel = &panels[r * columns + c];
            *panel = (rws_panel){.title = r == 0 && particles.n ? titles[c] : NULL, .curves = &curves[first]};
            for (int m = 0; m < n_methods && particles.n && status == RWS_OK; m++)
                status = add_curve(q, methods[m], m, particles.K[c], rows[r].metric, &gathered[first + m], panel,
                                   labels[m], err);
        }
    }
    char            note[160];
    const rws_chart chart = {.title = title,
                             .note = rws__query_note(q, note, sizeof note),
                             .n_rows = n_rows,
                             .n_columns = columns,
                             .panels = panels,
                             .x = x,
                             .y = y,
                             .names = n_methods > 3 ? RWS_NAMES_LEGEND : RWS_NAMES_FIT};
    if (status == RWS_OK) status = rws__chart_draw(&chart, path, err);
    for (int i = 0; i < n_rows * columns * n_methods; i++) rws_gathered_release(&gathered[i]);
    free(curves);
    free(gathered);
    return status;
}

/* The curves of a panel, with the numbers and names that they borrow. */
typedef struct {
    int          n;
    rws_curve    curves[MAX_CURVES];
    rws_gathered gathered[MAX_CURVES];
    char         names[MAX_CURVES][48];
} bundle;

/* Leaves out the first tenth of training, in which the evidence rises so far that the rest would look flat. */
static rws_status over_iterations(const rws_query *q, const char *method, const rws_particles *p, bundle *out,
                                  rws_error *err)
{
    for (int k = 0; k < p->n; k++) {
        rws_curve    *curve = &out->curves[out->n];
        rws_gathered *g = &out->gathered[out->n];
        RWS_TRY(rws__query_curve(q, method, p->K[k], "log_evidence", g, err));
        if (g->n > 0) rws_gathered_between(g, 0.1 * g->x[g->n - 1], INFINITY);
        if (!add_gathered(g, method, curve)) continue;
        snprintf(out->names[out->n], sizeof *out->names, "%s, K = %d", rws__style_name(method), p->K[k]);
        curve->label = out->names[out->n++];
        curve->shade = p->n > 1 ? 0.7 * (p->n - 1 - k) / (p->n - 1) : 0; /* the largest K has the full colour */
    }
    return RWS_OK;
}

static rws_status over_particles(const rws_query *q, const char *method, const char *metric, bundle *out,
                                 rws_error *err)
{
    int                n;
    const rws_result **runs = rws__query_runs(q, method, 0, &n);
    if (!runs) return no_memory(err);
    rws_gathered    *g = &out->gathered[out->n];
    const rws_status status = rws_gather_over(runs, n, "particles", metric, g, err);
    out->n += add_gathered(g, method, &out->curves[out->n]);
    free(runs);
    return status;
}

/* Panels side by side, each with a vertical axis of its own. */
static rws_status draw_row(const rws_query *q, const char *title, const rws_panel *panels, const rws_axis *x,
                           const rws_axis *y, int n, const char *path, rws_error *err)
{
    char            note[160];
    const rws_chart chart = {.title = title,
                             .note = rws__query_note(q, note, sizeof note),
                             .n_rows = 1,
                             .n_columns = n,
                             .panels = panels,
                             .x = x,
                             .y = y,
                             .own_y = true,
                             .names = RWS_NAMES_LEGEND};
    return rws__chart_draw(&chart, path, err);
}

static rws_status release(bundle *bundles, int n, rws_status status)
{
    for (int i = 0; i < n; i++)
        for (int k = 0; k < bundles[i].n; k++) rws_gathered_release(&bundles[i].gathered[k]);
    free(bundles);
    return status;
}

rws_status rws__panels_three(const rws_query *q, const char *title, const char *const *methods, const char *path,
                             rws_error *err)
{
    const rws_particles p = rws__query_particles(q);
    rws_status          status = RWS_OK;
    bundle             *three = calloc(3, sizeof *three);
    const int           n_methods = count(methods);
    if (!three) return no_memory(err);
    for (int m = 0; m < n_methods && status == RWS_OK; m++) {
        status = over_iterations(q, methods[m], &p, &three[0], err);
        if (status == RWS_OK) status = over_particles(q, methods[m], "final_log_evidence", &three[1], err);
        if (status == RWS_OK) status = over_particles(q, methods[m], "final_kl", &three[2], err);
    }
    double ticks[RWS_MAX_K];
    for (int k = 0; k < p.n; k++) ticks[k] = p.K[k];
    const rws_axis  particles = {.label = "particles K", .scale = RWS_AXIS_LOG, .ticks = ticks, .n_ticks = p.n};
    const rws_panel panels[] = {{"training", three[0].curves, three[0].n},
                                {"final", three[1].curves, three[1].n},
                                {"final", three[2].curves, three[2].n}};
    const rws_axis  x[] = {{.label = "iteration"}, particles, particles};
    const rws_axis  y[] = {
         {.label = "log evidence", .robust = true}, {.label = "log evidence", .robust = true}, {.label = "KL(q || p)"}};
    if (status == RWS_OK) status = draw_row(q, title, panels, x, y, 3, path, err);
    return release(three, 3, status);
}

rws_status rws__panels_over_particles(const rws_query *q, const char *title, const char *const *methods,
                                      const rws_panels_row *metrics, int n, const char *path, rws_error *err)
{
    const rws_particles p = rws__query_particles(q);
    rws_status          status = RWS_OK;
    bundle             *bundles = calloc((size_t)n, sizeof *bundles);
    RWS_CHECK(n <= RWS_PANELS);
    if (!bundles) return no_memory(err);
    double    ticks[RWS_MAX_K];
    rws_panel panels[RWS_PANELS] = {0};
    rws_axis  x[RWS_PANELS], y[RWS_PANELS];
    for (int k = 0; k < p.n; k++) ticks[k] = p.K[k];
    for (int i = 0; i < n; i++) {
        for (int m = 0; methods[m] && status == RWS_OK && (m == 0 || !metrics[i].alone); m++)
            status = over_particles(q, metrics[i].alone ? metrics[i].alone : methods[m], metrics[i].metric, &bundles[i],
                                    err);
        panels[i] = (rws_panel){.curves = bundles[i].curves, .n_curves = bundles[i].n};
        x[i] = (rws_axis){.label = "particles K", .scale = RWS_AXIS_LOG, .ticks = ticks, .n_ticks = p.n};
        y[i] = metrics[i].axis;
    }
    if (status == RWS_OK) status = draw_row(q, title, panels, x, y, n, path, err);
    return release(bundles, n, status);
}
