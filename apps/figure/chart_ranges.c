/* chart_ranges.c - the ranges of the axes of a chart, from its curves. */
#include "figure/chart_plan.h"

#include "base/error.h"
#include "base/order.h"

#include <math.h>
#include <stdlib.h>

static void add_x(rws_extent *extent, bool *marks, const rws_panel *panel)
{
    for (int c = 0; c < panel->n_curves; c++) {
        const rws_curve *curve = &panel->curves[c];
        if (rws__chart_has_marks(curve) && curve->n > 0) *marks = true;
        for (int i = 0; i < curve->n; i++) {
            if (isfinite(curve->y[i])) rws__extent_add(extent, curve->x[i]);
        }
    }
}

/* Values more than three widths of the middle half away from it do not stretch a robust axis, if there are enough to
 * tell. */
static rws_status find_fences(const rws_panel *panel, double fences[2], rws_error *err)
{
    enum { ENOUGH = 8 };
    int n = 0;
    for (int c = 0; c < panel->n_curves; c++) n += panel->curves[c].n;
    double *values = malloc(((size_t)n + 1) * sizeof *values);
    if (!values) return rws_no_memory(err, "the values of a chart");
    n = 0;
    for (int c = 0; c < panel->n_curves; c++)
        for (int i = 0; i < panel->curves[c].n; i++)
            if (isfinite(panel->curves[c].y[i])) values[n++] = panel->curves[c].y[i];
    qsort(values, (size_t)n, sizeof *values, rws__order_doubles);
    const double low = n ? values[n / 4] : 0, high = n ? values[n - 1 - n / 4] : 0;
    fences[0] = n < ENOUGH ? -INFINITY : low - 3 * (high - low);
    fences[1] = n < ENOUGH ? INFINITY : high + 3 * (high - low);
    free(values);
    return RWS_OK;
}

/* Removes from the extent what lies beyond the fences. */
static void keep_within(rws_extent *extent, const rws_panel *panel, const double fences[2])
{
    *extent = rws__extent_empty();
    for (int c = 0; c < panel->n_curves; c++)
        for (int i = 0; i < panel->curves[c].n; i++)
            if (panel->curves[c].y[i] >= fences[0] && panel->curves[c].y[i] <= fences[1])
                rws__extent_add(extent, panel->curves[c].y[i]);
}

static void add_y(rws_extent *core, rws_extent *fringe, const rws_panel *panel)
{
    for (int c = 0; c < panel->n_curves; c++) {
        const rws_curve *curve = &panel->curves[c];
        for (int i = 0; i < curve->n; i++) {
            if (!isfinite(curve->x[i])) continue;
            rws__extent_add(core, curve->y[i]);
            if (!curve->low) continue;
            rws__extent_add(fringe, curve->low[i]);
            rws__extent_add(fringe, curve->high[i]);
        }
    }
}

rws_status rws__chart_find_ranges(rws_chart_plan *p, rws_error *err)
{
    const rws_chart *chart = p->chart;
    for (int column = 0; column < chart->n_columns; column++) {
        rws_extent extent = rws__extent_empty();
        bool       marks = false;
        for (int row = 0; row < chart->n_rows; row++) add_x(&extent, &marks, rws__chart_panel(chart, row, column));
        /* A long curve runs from edge to edge; marks need a margin around them. */
        RWS_TRY(rws__axis_range(&chart->x[column], &extent, NULL, marks ? 0.06 : 0, &p->x[column].range, err));
    }
    for (int row = 0; row < chart->n_rows; row++) {
        rws_extent core = rws__extent_empty(), fringe = rws__extent_empty();
        for (int column = 0; column < chart->n_columns; column++) {
            if (chart->own_y) {
                core = rws__extent_empty();
                fringe = rws__extent_empty();
            }
            add_y(&core, &fringe, rws__chart_panel(chart, row, column));
            if (!chart->own_y && column + 1 < chart->n_columns) continue;
            if (chart->own_y && rws__chart_y_axis(chart, row, column)->robust) {
                double fences[2] = {0};
                RWS_TRY(find_fences(rws__chart_panel(chart, row, column), fences, err));
                keep_within(&core, rws__chart_panel(chart, row, column), fences);
                fringe = rws__extent_empty();
            }
            rws_range range;
            RWS_TRY(rws__axis_range(rws__chart_y_axis(chart, row, column), &core, &fringe, 0.05, &range, err));
            for (int c = chart->own_y ? column : 0; c <= column; c++) p->y[row * chart->n_columns + c].range = range;
        }
    }
    return RWS_OK;
}
