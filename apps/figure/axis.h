/* axis.h - from values to places: the range of an axis, its ticks and their labels.
 *
 * Everything that has a scale (charts, bars, the terminal) gets its range, its ticks and its mapping here, so that the
 * same data look the same everywhere. It does not draw and does not measure text.
 *
 *     curves -> extent -> [range, ticks] -> chart, bars, terminal
 *
 * A value that is NaN or infinite has no place. On a logarithmic axis the place of a value <= 0 is below every range.
 */
#ifndef RWS_FIGURE_AXIS_H
#define RWS_FIGURE_AXIS_H

#include "rws.h"

#include <stdbool.h>

typedef enum {
    RWS_AXIS_LINEAR,
    RWS_AXIS_LOG,
} rws_axis_scale;

/* An axis as the caller describes it. Zero-initialised: linear, range and ticks from the data, no label. */
typedef struct {
    const char    *label; /* "p error"; NULL for none */
    const char    *unit;  /* "s" shows as "label (s)"; NULL for none */
    rws_axis_scale scale;
    double         low, high; /* an end that is NaN comes from the data, and so do both if low == high */
    const double  *ticks;     /* labelled ticks at just these values (K = 2, 5, 10, 20); NULL to choose nice ones */
    int            n_ticks;
    bool robust; /* of a chart's y axis: curves far from the middle half leave the range, and a mark says so */
} rws_axis;

/* The extent of the values that have a place. */
typedef struct {
    double low, high;      /* low > high if there are no values */
    double least_positive; /* infinite if no value is positive */
} rws_extent;

/* A range that can be drawn: low < high, both finite; both positive on a logarithmic scale. */
typedef struct {
    rws_axis_scale scale;
    double         low, high;
} rws_range;

typedef struct {
    double value;
    bool   minor;    /* a minor tick has no text */
    char   text[40]; /* UTF-8: "0.05", "20k", "10⁻³"; in ASCII "1e-3" */
} rws_tick;

enum { RWS_MAX_TICKS = 128 };

/* The extent of nothing. */
rws_extent rws__extent_empty(void);

/* Widens the extent to hold the value. A value that is not finite changes nothing. */
void rws__extent_add(rws_extent *extent, double value);

/* The range to draw. Both ends come from the axis where it fixes them, else from the values in core, widened by those
 * in fringe (bands) as far as one decade or one core's width, padded by the given share of the width, and rounded to a
 * tick that is almost reached. A logarithmic range that is chosen here spans twelve decades at most; lower values are
 * clipped. Without data the range is 0 to 1, or 0.1 to 1. fringe may be NULL.
 *
 * Fails with RWS_BAD_INPUT if the axis fixes a range that is upside down, infinite, or not positive where it must
 * be. */
rws_status rws__axis_range(const rws_axis *axis, const rws_extent *core, const rws_extent *fringe, double padding,
                           rws_range *out, rws_error *err);

/* Where the value lies: 0 at the low end, 1 at the high end, at most one width beyond either. NaN if it has no
 * place. */
double rws__range_place(rws_range range, double value);

/* Fills ticks (RWS_MAX_TICKS of them belong to the caller) with about `wanted` labelled ticks and the minor ones
 * between, in ascending order within each kind. Returns their number. */
int rws__axis_ticks(const rws_axis *axis, rws_range range, int wanted, bool ascii, rws_tick *ticks);

/* Writes "label (unit)" into text, or the empty string. Returns text. */
char *rws__axis_caption(const rws_axis *axis, char *text, size_t size);

#endif
