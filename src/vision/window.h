/* window.h - a picture stretched over a part of another, by bilinear interpolation with a border of zeros.
 *
 * Along each axis, point j of the output (u_j = -1 + 2 j / (n - 1)) lies in the source at
 *
 *     X_j = (p u_j + q + 1) (n_source - 1) / 2,         its value is  low_j S[floor X_j] + high_j S[floor X_j + 1]
 *
 * where what the source does not have counts as zero. The value of a pixel is that in both directions, so pictures are
 * resampled along one axis after the other, and only the part that the source reaches is touched:
 *
 *     source           columns              canvas
 *     +--------+       +-------------+      +-------------------------+
 *     |        |  ->   |             |  ->  |     first      end      |
 *     |        |   x   |             |   y  |       +-----------+     |
 *     +--------+       +-------------+      |       |           |     |
 *
 * Intervals are rounded outwards to whole vectors of RWS_LANES; weights there are zero. Used by the ops of this room.
 */
#ifndef RWS_VISION_WINDOW_H
#define RWS_VISION_WINDOW_H

#include "base/arena.h"

#include <stdbool.h>

#define RWS_LANES 8

#define FOR_SIMD(j, from, to) _Pragma("omp simd") for (int j = (from); j < (to); j++)

static inline int rws_lanes_up(int n)
{
    return (n + RWS_LANES - 1) / RWS_LANES * RWS_LANES;
}

typedef struct {
    int      n_source, n;
    int      begin, stop; /* outputs that the source reaches: -1 < X < n_source */
    int      first, end;  /* the same in whole vectors */
    int32_t *at;          /* 1 + floor X: a place in a source with a zero before and after it */
    float   *low, *high;
    int32_t *from, *reach; /* per vector: the least of its `at`, and how much larger the largest is */
    float   *by;           /* gradient of X, between begin and stop */
} rws_resampler;

void rws_resampler_init(rws_resampler *a, rws_arena *arena, int n_source, int n);
void rws_resampler_lay(rws_resampler *a, float p, float q); /* |p| > 0 or n_source anywhere; clears `by` */

/* to = the resampled line, from `first` to `end`. The source lies between two zeros, with room for RWS_ROOM more numbers
 * behind, which do not count. */
#define RWS_ROOM 16
void rws_resampler_apply(const rws_resampler *a, const float *source, float *to);

/* What the gradient of X is by p and by q. */
void rws_resampler_slopes(const rws_resampler *a, float *by_p, float *by_q);

/* A glimpse on a canvas. `where` is (scale x, scale y, shift x, shift y): canvas point u shows glimpse point
 * (u - shift) / scale. */
typedef struct {
    rws_resampler x, y;
    float         where[4];
    int           stride;  /* of columns */
    float        *columns; /* (rows + 2) x stride: the glimpse, and a row of zeros at either end, resampled along x */
    float        *by_columns;                  /* its gradient */
    float        *cover_x;                     /* of a glimpse of ones, which is the product of two lines */
    float        *cover_y, *slope_x, *slope_y; /* and their derivatives by X and Y */
    float        *padded;                      /* a row of the glimpse between zeros */
    const float  *glimpse;
} rws_window;

void rws_window_init(rws_window *w, rws_arena *arena, int rows, int cols, int out_rows, int out_cols);

/* Lays the glimpse (NULL: only its cover is wanted). Both must last until the window is laid anew. */
void rws_window_lay(rws_window *w, const float *where, const float *glimpse);

static inline bool rws_window_has(const rws_window *w, int i)
{
    return i >= w->y.begin && i < w->y.stop;
}

/* y[j] += row i of what is placed, a[j] += of its cover, from first to end of the x axis; either may be NULL. */
void rws_window_add(const rws_window *w, int i, float *y, float *a);

/* Backward: from the gradients of row i of what was placed and of its cover (either may be NULL) to those of the columns
 * and, if `moves`, of the axes; then from those to the gradients of the glimpse and of where, which are added to. */
void rws_window_back(rws_window *w, int i, const float *by_y, const float *by_a, bool moves);
void rws_window_back_end(rws_window *w, float *by_glimpse, float *by_where);

#endif
