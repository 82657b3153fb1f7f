/* frame.h - parts that figures share: type sizes, boxes, axes with their grid, marks and the legend.
 *
 * The callers place panels, with the sizes that are measured here.
 *
 *     axis, style -> [frame] -> chart, bars, hinton -> canvas
 */
#ifndef RWS_FIGURE_FRAME_H
#define RWS_FIGURE_FRAME_H

#include "figure/axis.h"
#include "figure/canvas.h"
#include "figure/curve.h"

typedef struct {
    double x, y, width, height; /* points; (x, y) is the upper left corner */
} rws_box;

/* Type sizes in points. Nothing is set smaller than 7. */
extern const double RWS_SIZE_TITLE, RWS_SIZE_PANEL, RWS_SIZE_LABEL, RWS_SIZE_TICK, RWS_SIZE_KEY;

extern const rws_colour RWS_INK, RWS_GREY, RWS_PALE; /* text; ticks and frames; the grid */

/* The default width of a page: both columns of a two-column paper. */
extern const double RWS_PAGE_WIDTH;

/* One entry of a legend. */
typedef struct {
    const char *method;
    const char *label; /* not NULL */
    rws_line    line;
    double      shade;
    bool        marks; /* the curve has a mark at each of its points */
    bool        bar;   /* a bar's fill instead of a line */
} rws_legend_key;

typedef struct {
    int    n_rows, n_columns;
    double width, height;
    double cell; /* width of a column */
} rws_legend;

/* The layout of the keys within the width: as few rows as possible, with aligned columns. */
rws_legend rws__legend_fit(rws_canvas *canvas, const rws_legend_key *keys, int n_keys, double width);

/* Draws the legend with its upper left corner at (x, y). */
void rws__legend_draw(rws_canvas *canvas, const rws_legend *legend, const rws_legend_key *keys, int n_keys, double x,
                      double y);

/* The width of the widest label of the ticks. */
double rws__ticks_width(rws_canvas *canvas, const rws_tick *ticks, int n_ticks);

/* The grid lines of a panel at its major ticks; either array may be empty. */
void rws__frame_grid(rws_canvas *canvas, rws_box box, rws_range x_range, const rws_tick *x, int n_x, rws_range y_range,
                     const rws_tick *y, int n_y);

/* Draw the axis below or left of a panel: line, tick marks and, with `labels`, the labels. */
void rws__frame_x_axis(rws_canvas *canvas, rws_box box, rws_range range, const rws_tick *ticks, int n_ticks,
                       bool labels);
void rws__frame_y_axis(rws_canvas *canvas, rws_box box, rws_range range, const rws_tick *ticks, int n_ticks,
                       bool labels);

/* Sets cairo's line width, colour and dash for a method's line. */
void rws__frame_pen(rws_canvas *canvas, const char *method, rws_line line, double shade);

/* A method's mark, centred at (x, y). */
void rws__frame_mark(rws_canvas *canvas, const char *method, double shade, double x, double y);

/* A bar's fill: full colour for a method drawn solid, hatched for one drawn dashed. */
void rws__frame_bar(rws_canvas *canvas, const char *method, double shade, rws_box box);

#endif
