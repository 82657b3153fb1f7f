/* bars.h - grouped bars: one group per category, one bar per method in it.
 *
 * For a few numbers side by side, such as the true probabilities of a grammar's productions and those that each method
 * learned. The scale always begins at zero.
 *
 *     [bars] -> PNG, SVG or PDF
 *
 * All arguments belong to the caller and are only read.
 */
#ifndef RWS_FIGURE_BARS_H
#define RWS_FIGURE_BARS_H

#include "figure/axis.h"
#include "rws.h"

typedef struct {
    const char   *method;     /* its style: "true", "ws" */
    const char   *label;      /* NULL for the method's name */
    const double *values;     /* one per group; NaN leaves the place empty */
    const double *low, *high; /* a whisker on each bar; both or neither */
} rws_bar_series;

typedef struct {
    const char           *title; /* NULL for none */
    int                   n_groups, n_series;
    const char *const    *groups; /* the name under each group; long ones are broken, then slanted */
    const rws_bar_series *series;
    rws_axis              y;                  /* linear; low and high as in axis.h; a range from the data includes 0 */
    bool                  numbers;            /* write each value over its bar, where it fits */
    double                width, height, dpi; /* as in chart.h; height is that of the bars' panel */
} rws_bars;

/* Writes the bars to the path, which ends in .png, .svg or .pdf. Fails with RWS_BAD_INPUT if the ending is another, the
 * axis is logarithmic or its fixed range impossible, or the file cannot be written; a file that was there is then
 * untouched. */
rws_status rws__bars_draw(const rws_bars *bars, const char *path, rws_error *err);

#endif
