#include "paper/panels.h"

#include "base/error.h"
#include "figure/chart.h"
#include "figure/style.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_K = 10, MOST_METHODS = 12, MOST_ROWS = 4 };

static int count(const char *const *list)
{
    int n = 0;
    while (list[n]) n++;
    RWS_CHECK(n <= MOST_METHODS);
    return n;
}

/* The curve of a method, into room that the caller releases. Returns whether there is one. */
static bool add_curve(const rws_query *q, const char *method, int K, const char *metric, const rws_result **runs,
                      rws_gathered *g, rws_curve *out)
{
    rws_gather(runs, rws_query_runs(q, method, K, runs), metric, RWS_X_ITERATION, g);
    *out = rws_gathered_curve(g, method);
    return g->n_runs > 0;
}

rws_status rws_panels_grid(const rws_query *q, const char *title, const char *const *methods,
                           const rws_panels_row *rows, int n_rows, const char *path, rws_error *err)
{
    int       K[MOST_K];
    const int n_K = rws_query_particles(q, K, MOST_K), n_methods = count(methods);
    RWS_CHECK(n_rows <= MOST_ROWS);
    const int          columns = n_K ? n_K : 1; /* without runs: an empty panel, which says so */
    rws_gathered      *gathered = calloc((size_t)(n_rows * columns * n_methods), sizeof *gathered);
    rws_curve         *curves = calloc((size_t)(n_rows * columns * n_methods), sizeof *curves);
    const rws_result **runs = calloc((size_t)q->results->n + 1, sizeof *runs);
    RWS_CHECK(gathered && curves && runs);
    rws_panel panels[MOST_ROWS * MOST_K] = {0};
    rws_axis  x[MOST_K], y[MOST_ROWS];
    char      titles[MOST_K][24];
    for (int c = 0; c < columns; c++) {
        snprintf(titles[c], sizeof titles[c], "K = %d", n_K ? K[c] : 0);
        x[c] = (rws_axis){.label = "iteration"};
    }
    for (int r = 0; r < n_rows; r++) {
        y[r] = rows[r].axis;
        for (int c = 0; c < columns; c++) {
            const int  first = (r * columns + c) * n_methods;
            rws_panel *panel = &panels[r * columns + c];
            *panel = (rws_panel){.title = r == 0 && n_K ? titles[c] : NULL, .curves = &curves[first]};
            for (int m = 0; m < n_methods && n_K; m++)
                panel->n_curves += add_curve(q, methods[m], K[c], rows[r].metric, runs, &gathered[first + m],
                                             &curves[first + panel->n_curves]);
        }
    }
    const rws_chart  chart = {.title = title,
                              .n_rows = n_rows,
                              .n_columns = columns,
                              .panels = panels,
                              .x = x,
                              .y = y,
                              .names = n_methods > 3 ? RWS_NAMES_LEGEND : RWS_NAMES_FIT};
    const rws_status status = rws_chart_draw(&chart, path, err);
    for (int i = 0; i < n_rows * columns * n_methods; i++) rws_gathered_release(&gathered[i]);
    free(runs);
    free(curves);
    free(gathered);
    return status;
}

rws_status rws_panels_three(const rws_query *q, const char *title, const char *const *methods, const char *curve,
                            const char *evidence, const char *kl, const char *path, rws_error *err)
{
    int                K[MOST_K];
    const int          n_K = rws_query_particles(q, K, MOST_K), n_methods = count(methods);
    rws_gathered       over_time[MOST_METHODS * MOST_K] = {0}, over_K[2][MOST_METHODS] = {0};
    rws_curve          left[MOST_METHODS * MOST_K], right[2][MOST_METHODS];
    char               names[MOST_METHODS * MOST_K][48];
    int                n_left = 0, n_right[2] = {0};
    rws_status         status = RWS_OK;
    const rws_result **runs = calloc((size_t)q->results->n + 1, sizeof *runs);
    RWS_CHECK(runs);
    for (int m = 0; m < n_methods; m++) {
        for (int k = 0; k < n_K; k++) {
            if (!add_curve(q, methods[m], K[k], curve, runs, &over_time[m * MOST_K + k], &left[n_left])) continue;
            snprintf(names[n_left], sizeof names[n_left], "%s, K = %d", rws_style_name(methods[m]), K[k]);
            left[n_left].label = names[n_left];
            left[n_left].shade = n_K > 1 ? 0.7 * (n_K - 1 - k) / (n_K - 1) : 0; /* many particles: full colour */
            n_left++;
        }
        for (int i = 0; i < 2 && status == RWS_OK; i++) {
            const int n = rws_query_runs(q, methods[m], 0, runs);
            status = rws_gather_over(runs, n, "particles", i ? kl : evidence, &over_K[i][m], err);
            if (over_K[i][m].n_runs > 0) right[i][n_right[i]++] = rws_gathered_curve(&over_K[i][m], methods[m]);
        }
    }
    double ticks[MOST_K];
    for (int k = 0; k < n_K; k++) ticks[k] = K[k];
    const rws_axis  particles = {.label = "particles K", .scale = RWS_AXIS_LOG, .ticks = ticks, .n_ticks = n_K};
    const rws_panel panels[] = {
        {"training", left, n_left}, {"final", right[0], n_right[0]}, {"final", right[1], n_right[1]}};
    const rws_axis  x[] = {{.label = "iteration"}, particles, particles};
    const rws_axis  y[] = {{.label = "log evidence"}, {.label = "log evidence"}, {.label = "KL(q || p)"}};
    const rws_chart chart = {.title = title,
                             .n_rows = 1,
                             .n_columns = 3,
                             .panels = panels,
                             .x = x,
                             .y = y,
                             .own_y = true,
                             .names = RWS_NAMES_LEGEND};
    if (status == RWS_OK) status = rws_chart_draw(&chart, path, err);
    for (int i = 0; i < MOST_METHODS * MOST_K; i++) rws_gathered_release(&over_time[i]);
    for (int i = 0; i < 2 * MOST_METHODS; i++) rws_gathered_release(&over_K[i / MOST_METHODS][i % MOST_METHODS]);
    free(runs);
    return status;
}
