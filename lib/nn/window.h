/* window.h - a picture that is scaled and shifted onto a part of another, by bilinear interpolation with a border of
 * zeros.
 *
 * Along each axis, point j of the output (u_j = -1 + 2 j / (n - 1)) lies in the source at
 *
 *     X_j = (p u_j + q + 1) (n_source - 1) / 2,         its value is  low_j S[floor X_j] + high_j S[floor X_j + 1]
 *
 * where points outside of the source count as zero. Bilinear interpolation is this along both axes, so pictures are
 * resampled along one axis after the other. Only the part of the output that the source reaches is computed:
 *
 *     source           columns              canvas
 *     +--------+       +-------------+      +-------------------------+
 *     |        |  ->   |             |  ->  |     first      end      |
 *     |        |   x   |             |   y  |       +-----------+     |
 *     +--------+       +-------------+      |       |           |     |
 *
 * Intervals are rounded outwards to whole vectors of RWS_LANES numbers; the weights of the additional points are zero.
 */
#ifndef RWS_NN_WINDOW_H
#define RWS_NN_WINDOW_H

#include "base/arena.h"

#include <math.h>
#include <stdbool.h>

#define RWS_LANES 8

#define FOR_SIMD(j, from, to) _Pragma("omp simd") for (int j = (from); j < (to); j++)

static inline int rws__lanes_up(int n)
{
    return (n + RWS_LANES - 1) / RWS_LANES * RWS_LANES;
}

/* Resampling along one axis. The arrays have a number for each output point, up to a whole vector. */
typedef struct {
    int      n_source, n;
    int      begin, stop; /* the outputs that the source reaches, -1 < X < n_source, are begin … stop - 1 */
    int      first, end;  /* the same interval in whole vectors */
    int32_t *at;          /* 1 + floor X: a place in a source with a zero before and after it */
    float   *low, *high;
    int32_t *from, *reach; /* per vector: the smallest of its `at`, and the largest minus the smallest */
    float   *by;           /* the gradient of X, between begin and stop */
} rws_resampler;

void rws__resampler_init(rws_resampler *a, rws_arena *arena, int n_source, int n);
void rws__resampler_lay(rws_resampler *a, float p, float q); /* computes all but `by` for p and q, and clears `by` */

/* to = the resampled line, from `first` to `end`. The source stands between two zeros and is followed by RWS_ROOM more
 * numbers, which are read but do not count. */
#define RWS_ROOM 16
void rws__resampler_apply(const rws_resampler *a, const float *source, float *to);

/* The gradients of p and q that follow from the gradient of X. */
void rws__resampler_slopes(const rws_resampler *a, float *by_p, float *by_q);

/* Whether `where` has a NaN. Such a window reaches no point; ops make NaN of it, so that it does not pass for an empty
 * one. */
static inline bool rws__where_is_nan(const float where[4])
{
    return isnan(where[0]) || isnan(where[1]) || isnan(where[2]) || isnan(where[3]);
}

/* A glimpse on a canvas. `where` is (scale x, scale y, shift x, shift y): canvas point u shows glimpse point
 * (u - shift) / scale. */
typedef struct {
    rws_resampler x, y;
    float         where[4];
    int           stride;            /* of columns */
    float        *columns;           /* (rows + 2) x stride: the glimpse resampled along x, between two rows of zeros */
    float        *by_columns;        /* the gradient of columns */
    float        *cover_x, *cover_y; /* a placed glimpse of ones is the product of these two lines, its cover */
    float        *slope_x, *slope_y; /* the derivatives of cover_x by X and of cover_y by Y */
    float        *padded;            /* a row of the glimpse between zeros */
    const float  *glimpse;
} rws_window;

void rws__window_init(rws_window *w, rws_arena *arena, int rows, int cols, int out_rows, int out_cols);

/* Places the glimpse at `where`. With glimpse NULL only the cover is computed. The glimpse must last until the window
 * is laid again. */
void rws__window_lay(rws_window *w, const float *where, const float *glimpse);

/* Whether the glimpse reaches row i of the canvas. */
static inline bool rws__window_has(const rws_window *w, int i)
{
    return i >= w->y.begin && i < w->y.stop;
}

/* y[j] += row i of the placed glimpse and a[j] += row i of its cover, from x.first to x.end. y and a may be NULL. */
void rws__window_add(const rws_window *w, int i, float *y, float *a);

/* Backward. rws__window_back takes the gradients of row i of the placed glimpse and of its cover (each may be NULL) to
 * the gradients of the columns and, if `moves`, of X and Y. rws__window_back_end then adds the gradients that follow
 * from these to the gradients of the glimpse and of `where` (each may be NULL). */
void rws__window_back(rws_window *w, int i, const float *by_y, const float *by_a, bool moves);
void rws__window_back_end(rws_window *w, float *by_glimpse, float *by_where);

#endif
