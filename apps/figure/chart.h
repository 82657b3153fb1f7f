/* chart.h - small multiples: a grid of panels with curves, on shared axes.
 *
 * Takes medians and bands as plain arrays and writes the picture: rows share a y axis, columns share an x axis, and
 * every method has its style from style.h. It does not run models, read stores or compute statistics.
 *
 *     stats -> curve -> [chart] -> PNG, SVG or PDF
 *
 * Curves are named at their right end where the names fit there without touching, and otherwise in one legend above all
 * panels. A curve of 16 points or fewer has a mark at each point; a longer solid curve has three marks if there is a
 * legend, for print without colour. All arguments belong to the caller and are only read.
 */
#ifndef RWS_FIGURE_CHART_H
#define RWS_FIGURE_CHART_H

#include "figure/axis.h"
#include "figure/curve.h"
#include "rws.h"

typedef struct {
    const char      *title;  /* "K = 2", above the panel; NULL for none */
    const rws_curve *curves; /* later curves lie on top */
    int              n_curves;
} rws_panel;

typedef enum {
    RWS_NAMES_FIT, /* at the curves' ends if they fit, else in a legend */
    RWS_NAMES_LEGEND,
    RWS_NAMES_NONE,
} rws_names;

typedef struct {
    const char      *title; /* above everything, and in the file's metadata; NULL for none */
    const char      *note;  /* one line below it, in small type; NULL for none */
    int              n_rows, n_columns;
    const rws_panel *panels; /* [n_rows][n_columns] */
    const rws_axis  *x;      /* [n_columns] */
    const rws_axis  *y;      /* [n_rows], or [n_rows][n_columns] with own_y */
    bool             own_y;  /* each panel has a y axis of its own: a different quantity per column */
    rws_names        names;
    double           width;  /* of the page in points; 0 for 504, both columns of a paper */
    double           height; /* of one panel in points; 0 for what suits the width */
    double           dpi;    /* of a PNG; 0 for 220 */
    const char      *font;   /* the family; NULL for the usual one */
} rws_chart;

/* Writes the chart to the path, which ends in .png, .svg or .pdf. A panel without points has a text that says so. Fails
 * with RWS_BAD_INPUT if the ending is another, an axis's fixed range is impossible, the page has no room for its panels
 * or the file cannot be written; a file that was there is then untouched. */
rws_status rws__chart_draw(const rws_chart *chart, const char *path, rws_error *err);

#endif
