/* chart_plan.h - what the files of a chart share: the plan of its page, which ranges (chart_ranges.c) and names of curves
 * (chart_names.c) are found for before it is laid out and drawn (chart.c).
 */
#ifndef RWS_FIGURE_CHART_PLAN_H
#define RWS_FIGURE_CHART_PLAN_H

#include "figure/canvas.h"
#include "figure/chart.h"
#include "figure/frame.h"

/* Curves with this many points or fewer show where their points are. */
enum { RWS_MARKS_UP_TO = 16 };

typedef struct {
    rws_range range;
    rws_tick  ticks[RWS_MAX_TICKS];
    int       n_ticks;
} rws_chart_scale;

typedef struct {
    const rws_curve *curve;
    double           target, place; /* where the curve ends and where its name goes, points below the panel's top */
} rws_chart_name;

typedef struct {
    const rws_chart *chart;
    rws_canvas      *canvas;
    rws_chart_scale *x;    /* [n_columns] */
    rws_chart_scale *y;    /* [n_rows * n_columns]; equal along a row unless own_y */
    rws_legend_key  *keys; /* one per name of a curve, in order of appearance */
    int              n_keys;
    bool             names_at_ends;
    bool             few_marks; /* on long solid curves */
    double           name_width;
    double           line;         /* height of a line of names */
    double           height;       /* of a panel */
    double          *left, *width; /* [n_columns] of the panels */
    double          *top;          /* [n_rows] of the panels */
    double           tick_height, label_height;
} rws_chart_plan;

static inline const char *rws__chart_label(const rws_curve *curve)
{
    return curve->label ? curve->label : rws__style_name(curve->method);
}

static inline bool rws__chart_has_marks(const rws_curve *curve)
{
    return curve->n <= RWS_MARKS_UP_TO && curve->line != RWS_LINE_LEVEL;
}

static inline const rws_panel *rws__chart_panel(const rws_chart *chart, int row, int column)
{
    return &chart->panels[row * chart->n_columns + column];
}

static inline const rws_axis *rws__chart_y_axis(const rws_chart *chart, int row, int column)
{
    return chart->own_y ? &chart->y[row * chart->n_columns + column] : &chart->y[row];
}

/* Finds the ranges of all axes. */
rws_status rws__chart_find_ranges(rws_chart_plan *p, rws_error *err) __attribute__((warn_unused_result));

/* Lists the names of curves, decides whether they stand at the ends of the curves or in a legend, and which lines get marks. */
void rws__chart_decide_names(rws_chart_plan *p);

/* The key of a curve: its index, or n_keys if it has none yet; and whether its line is solid. */
int  rws__chart_find_key(const rws_chart_plan *p, const rws_curve *curve);
bool rws__chart_is_solid(const rws_legend_key *key);

/* Finds where the names of a row's curves go, beside its last panel. Returns their number, or -1 if they do not fit: a
 * curve of the row is not in that panel, or twice, or does not reach its right edge; or a name would stand too far
 * from its end. *names is then NULL; else it is the caller's to free. */
int rws__chart_place_names(const rws_chart_plan *p, int row, rws_chart_name **names);

#endif
