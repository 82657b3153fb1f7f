/* chart_names.c - the names of a chart's curves: beside the ends of the curves where they fit, else in a legend. */
#include "figure/chart_plan.h"

#include <glib.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A name may stand this many lines away from its curve's end before a legend reads better. */
static const double NAME_REACH = 1.6;

static bool same_name(const rws_curve *a, const rws_curve *b)
{
    return g_strcmp0(a->method, b->method) == 0 && strcmp(rws__chart_label(a), rws__chart_label(b)) == 0;
}

int rws__chart_find_key(const rws_chart_plan *p, const rws_curve *curve)
{
    int k = 0;
    while (k < p->n_keys &&
           (g_strcmp0(p->keys[k].method, curve->method) != 0 || strcmp(p->keys[k].label, rws__chart_label(curve)) != 0))
        k++;
    return k;
}

bool rws__chart_is_solid(const rws_legend_key *key)
{
    return key->line == RWS_LINE_SOLID ||
           (key->line == RWS_LINE_AS_METHOD && rws__style_find(key->method)->n_dash == 0);
}

static void collect_keys(rws_chart_plan *p)
{
    const rws_chart *chart = p->chart;
    int              n = 0;
    for (int i = 0; i < chart->n_rows * chart->n_columns; i++) n += chart->panels[i].n_curves;
    p->keys = g_new0(rws_legend_key, n + 1);
    for (int i = 0; i < chart->n_rows * chart->n_columns; i++) {
        for (int c = 0; c < chart->panels[i].n_curves; c++) {
            const rws_curve *curve = &chart->panels[i].curves[c];
            int              k = rws__chart_find_key(p, curve);
            if (k == p->n_keys) {
                p->keys[p->n_keys++] = (rws_legend_key){.method = curve->method,
                                                        .label = rws__chart_label(curve),
                                                        .line = curve->line,
                                                        .shade = curve->shade};
            }
            if (curve->n > 0 && rws__chart_has_marks(curve)) p->keys[k].marks = true;
            /* The key of curves of one name in several shades has the darkest shade. */
            p->keys[k].shade = fmin(p->keys[k].shade, curve->shade);
        }
    }
}

/* With a legend, solid lines get a few marks, which tell them apart in print without colour. */
static void decide_marks(rws_chart_plan *p)
{
    int n_solid = 0;
    for (int k = 0; k < p->n_keys; k++) n_solid += rws__chart_is_solid(&p->keys[k]);
    p->few_marks = n_solid > 1 && !p->names_at_ends;
    for (int k = 0; k < p->n_keys && p->few_marks; k++) {
        if (rws__chart_is_solid(&p->keys[k])) p->keys[k].marks = true;
    }
}

static int by_target(const void *left, const void *right)
{
    const rws_chart_name *a = left, *b = right;
    return (a->target > b->target) - (a->target < b->target);
}

/* Moves the names, sorted by target, as little as possible (least squares) so that each is a line below the one before
 * and all are beside the panel.
 *
 * With u_i = target_i - i * line the order constraint becomes u_0 <= u_1 <= …: isotonic regression, solved by pooling
 * neighbours that are out of order into blocks with their mean. */
static void separate_names(rws_chart_name *names, int n, double line, double height)
{
    double *mean = g_new(double, n + 1);
    int    *size = g_new(int, n + 1);
    int     n_blocks = 0;
    for (int i = 0; i < n; i++) {
        mean[n_blocks] = names[i].target - i * line;
        size[n_blocks++] = 1;
        while (n_blocks > 1 && mean[n_blocks - 2] > mean[n_blocks - 1]) {
            n_blocks--;
            int total = size[n_blocks - 1] + size[n_blocks];
            mean[n_blocks - 1] = (mean[n_blocks - 1] * size[n_blocks - 1] + mean[n_blocks] * size[n_blocks]) / total;
            size[n_blocks - 1] = total;
        }
    }
    double lowest = height - line * 0.35 - (n - 1) * line;
    for (int block = 0, i = 0; block < n_blocks; block++) {
        double offset = fmax(fmin(mean[block], lowest), line * 0.35);
        for (int k = 0; k < size[block]; k++, i++) names[i].place = offset + i * line;
    }
    g_free(mean);
    g_free(size);
}

int rws__chart_place_names(const rws_chart_plan *p, int row, rws_chart_name **names)
{
    const rws_chart *chart = p->chart;
    int              last = chart->n_columns - 1;
    const rws_panel *panel = rws__chart_panel(chart, row, last);
    rws_range        x = p->x[last].range, y = p->y[row * chart->n_columns + last].range;
    *names = NULL;
    for (int column = 0; column <= last; column++) {
        const rws_panel *other = rws__chart_panel(chart, row, column);
        for (int c = 0; c < other->n_curves; c++) {
            int n_equal = 0;
            for (int k = 0; k < panel->n_curves; k++) n_equal += same_name(&other->curves[c], &panel->curves[k]);
            if (n_equal != 1) return -1;
        }
    }
    rws_chart_name *found = g_new0(rws_chart_name, panel->n_curves + 1);
    bool            fits = panel->n_curves * p->line <= p->height + p->line * 0.3;
    for (int c = 0; c < panel->n_curves && fits; c++) {
        const rws_curve *curve = &panel->curves[c];
        int              end = curve->n - 1;
        while (end >= 0 && (isnan(rws__range_place(x, curve->x[end])) || isnan(rws__range_place(y, curve->y[end]))))
            end--;
        double across = end >= 0 ? rws__range_place(x, curve->x[end]) : NAN;
        double up = end >= 0 ? rws__range_place(y, curve->y[end]) : NAN;
        fits = across > 0.9 && across <= 1 && up >= 0 && up <= 1;
        found[c] = (rws_chart_name){.curve = curve, .target = p->height * (1 - up)};
    }
    if (fits) {
        qsort(found, panel->n_curves, sizeof *found, by_target);
        separate_names(found, panel->n_curves, p->line, p->height);
        for (int c = 0; c < panel->n_curves; c++) {
            if (fabs(found[c].place - found[c].target) > NAME_REACH * p->line) fits = false;
        }
    }
    if (!fits) {
        g_free(found);
        return -1;
    }
    *names = found;
    return panel->n_curves;
}

static void decide_places(rws_chart_plan *p)
{
    rws_text look = {.size = RWS_SIZE_KEY};
    rws__canvas_measure(p->canvas, "Xg", &look, NULL, &p->line);
    p->names_at_ends = p->chart->names == RWS_NAMES_FIT;
    for (int row = 0; row < p->chart->n_rows && p->names_at_ends; row++) {
        rws_chart_name *names;
        if (rws__chart_place_names(p, row, &names) < 0) p->names_at_ends = false;
        g_free(names);
    }
    for (int k = 0; p->names_at_ends && k < p->n_keys; k++) {
        double width;
        rws__canvas_measure(p->canvas, p->keys[k].label, &look, &width, NULL);
        p->name_width = fmax(p->name_width, width);
    }
}

void rws__chart_decide_names(rws_chart_plan *p)
{
    collect_keys(p);
    decide_places(p);
    decide_marks(p);
}
