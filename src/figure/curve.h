/* curve.h - one method's line in a panel: plain arrays that someone else owns.
 *
 * What a chart and the terminal both draw. It does not compute medians (stats.h does) and holds no memory.
 *
 *     stats -> [curve] -> chart, terminal
 */
#ifndef RWS_FIGURE_CURVE_H
#define RWS_FIGURE_CURVE_H

typedef enum {
    RWS_LINE_AS_METHOD, /* what the method's style says */
    RWS_LINE_SOLID,
    RWS_LINE_DASHED,
} rws_line;

/* A point whose x or y is NaN or infinite leaves a gap. */
typedef struct {
    const char   *method; /* whose style it has, as typed on the command line: "ws" */
    const char   *label;  /* what the legend calls it; NULL for the method's name */
    int           n;      /* points */
    const double *x;
    const double *y;          /* the median */
    const double *low, *high; /* the band around it; both or neither */
    rws_line      line;
    double        shade; /* 0 to 1 lighter: tells several K of one method apart */
} rws_curve;

#endif
