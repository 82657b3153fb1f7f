/* curve.h - one method's line in a panel: pointers to arrays that the caller owns.
 *
 * A chart and the terminal both draw curves. A curve holds no memory; its medians come from rws_gather.
 *
 *     gather -> [curve] -> chart, terminal
 */
#ifndef RWS_FIGURE_CURVE_H
#define RWS_FIGURE_CURVE_H

#include "rws_results.h"

typedef enum {
    RWS_LINE_AS_METHOD, /* as in the method's style */
    RWS_LINE_SOLID,
    RWS_LINE_DASHED,
    RWS_LINE_LEVEL, /* dashed, without marks: a number that curves are compared with */
} rws_line;

/* A point whose x or y is NaN or infinite leaves a gap. */
typedef struct {
    const char   *method; /* the method whose style it has, as on the command line: "ws" */
    const char   *label;  /* its name in the legend; NULL for the method's name */
    int           n;      /* points */
    const double *x;
    const double *y;          /* the median */
    const double *low, *high; /* the band around it; both or neither */
    rws_line      line;
    double        shade; /* 0 to 1, rws__colour_shade: tells several K of one method apart */
} rws_curve;

/* The gathered runs as a curve in the method's style, which borrows their arrays. With fewer than three runs there is
 * no band. */
rws_curve rws__gathered_curve(const rws_gathered *g, const char *method);

#endif
