/* window.c - resampling along an axis, and glimpses on a canvas. */
#include "nn/window.h"

#include <string.h>
#ifdef __AVX2__
#include <immintrin.h>
#endif

/* ---- along an axis */

void rws__resampler_init(rws_resampler *a, rws_arena *arena, int n_source, int n)
{
    const int wide = rws__lanes_up(n);
    *a = (rws_resampler){.n_source = n_source, .n = n};
    a->at = RWS_NEW(arena, int32_t, wide);
    a->low = RWS_NEW(arena, float, wide);
    a->high = RWS_NEW(arena, float, wide);
    a->by = RWS_NEW(arena, float, wide);
    a->from = RWS_NEW(arena, int32_t, wide / RWS_LANES);
    a->reach = RWS_NEW(arena, int32_t, wide / RWS_LANES);
}

void rws__resampler_lay(rws_resampler *a, float p, float q)
{
    const float half = 0.5f * (float)(a->n_source - 1), step = 2 / (float)(a->n - 1), top = (float)a->n_source;
    const int   wide = rws__lanes_up(a->n), n = a->n;
    int32_t     n_below = 0, n_in = 0;
    int32_t *restrict at = a->at;
    float *restrict low = a->low, *restrict high = a->high, *restrict by = a->by;
#pragma omp simd reduction(+ : n_below, n_in)
    for (int j = 0; j < wide; j++) {
        const float u = (float)j * step - 1, x = (p * u + q + 1) * half;
        const bool  in = (x > -1) & (x < top) & (j < n);
        const float inside = in ? x : 0, below = floorf(inside), frac = inside - below;
        at[j] = in ? (int32_t)below + 1 : 0;
        low[j] = in ? 1 - frac : 0;
        high[j] = frac;
        by[j] = 0;
        n_below += (x <= -1) & (j < n);
        n_in += in;
    }
    /* X rises or falls with j, so the outputs that the source reaches are one interval */
    a->begin = n_in == 0 ? 0 : p >= 0 ? n_below : n - n_below - n_in;
    a->stop = a->begin + n_in;
    a->first = a->begin / RWS_LANES * RWS_LANES;
    a->end = n_in ? rws__lanes_up(a->stop) : a->first;
    for (int j = a->first; j < a->end; j += RWS_LANES) {
        const int first = j > a->begin ? j : a->begin, last = (j + RWS_LANES < a->stop ? j + RWS_LANES : a->stop) - 1;
        const int32_t x = at[first], y = at[last];
        a->from[j / RWS_LANES] = x < y ? x : y;
        a->reach[j / RWS_LANES] = x < y ? y - x : x - y;
    }
}

static void pick_any(const rws_resampler *a, const float *source, int first, int end, float *to)
{
    FOR_SIMD (j, first, end) to[j] = a->low[j] * source[a->at[j]] + a->high[j] * source[a->at[j] + 1];
}

#ifdef __AVX2__
/* Eight of the 16 numbers at `source`, by shuffles of registers, which are faster than a gather. `near`: all are among
 * the first 8. */
static inline __m256 pick_near(const float *source, __m256i at, bool near)
{
    const __m256 one = _mm256_permutevar8x32_ps(_mm256_loadu_ps(source), at);
    if (near) return one;
    const __m256 two = _mm256_permutevar8x32_ps(_mm256_loadu_ps(source + 8), at);
    return _mm256_blendv_ps(one, two, _mm256_castsi256_ps(_mm256_cmpgt_epi32(at, _mm256_set1_epi32(7))));
}

void rws__resampler_apply(const rws_resampler *a, const float *source, float *to)
{
    for (int j = a->first; j < a->end; j += RWS_LANES) {
        const int32_t from = a->from[j / RWS_LANES], reach = a->reach[j / RWS_LANES];
        if (reach > 15) {
            pick_any(a, source, j, j + RWS_LANES, to);
            continue;
        }
        const __m256i at = _mm256_sub_epi32(_mm256_loadu_si256((const __m256i *)(a->at + j)), _mm256_set1_epi32(from));
        const __m256  lower = pick_near(source + from, at, reach < 8),
                     upper = pick_near(source + from + 1, at, reach < 8);
        _mm256_storeu_ps(to + j, _mm256_add_ps(_mm256_mul_ps(_mm256_loadu_ps(a->low + j), lower),
                                               _mm256_mul_ps(_mm256_loadu_ps(a->high + j), upper)));
    }
}
#else
void rws__resampler_apply(const rws_resampler *a, const float *source, float *to)
{
    pick_any(a, source, a->first, a->end, to);
}
#endif

/* Not inlined: the caller's arithmetic would be contracted with the last products, to other bits in other builds. */
__attribute__((noinline)) void rws__resampler_slopes(const rws_resampler *a, float *by_p, float *by_q)
{
    const float half = 0.5f * (float)(a->n_source - 1), step = 2 / (float)(a->n - 1);
    float       p = 0, q = 0;
    for (int j = a->begin; j < a->stop; j++) {
        p += a->by[j] * ((float)j * step - 1);
        q += a->by[j];
    }
    *by_p = half * p;
    *by_q = half * q;
}

/* ---- a window */

void rws__window_init(rws_window *w, rws_arena *arena, int rows, int cols, int out_rows, int out_cols)
{
    const size_t stride = (size_t)rws__lanes_up(out_cols), tall = (size_t)rws__lanes_up(out_rows);
    rws__resampler_init(&w->x, arena, cols, out_cols);
    rws__resampler_init(&w->y, arena, rows, out_rows);
    w->stride = (int)stride;
    w->columns = RWS_NEW0(arena, float, (size_t)(rows + 2) * stride);
    w->by_columns = RWS_NEW(arena, float, (size_t)(rows + 2) * stride);
    w->cover_x = RWS_NEW(arena, float, stride);
    w->slope_x = RWS_NEW(arena, float, stride);
    w->cover_y = RWS_NEW(arena, float, tall);
    w->slope_y = RWS_NEW(arena, float, tall);
    w->padded = RWS_NEW0(arena, float, (size_t)cols + 2 + RWS_ROOM);
}

/* The cover is the sum of the weights of those neighbours that the source has; with both neighbours it is exactly 1. */
static void lay_cover(const rws_resampler *a, float *cover, float *slope)
{
    const int n = a->n_source;
    FOR_SIMD (j, a->first, a->end) {
        const bool  in = a->low[j] + a->high[j] != 0, lower = in & (a->at[j] > 0), upper = in & (a->at[j] < n);
        const float low = lower ? a->low[j] : 0, high = upper ? a->high[j] : 0;
        cover[j] = (lower & upper) ? 1 : low + high;
        slope[j] = (upper ? 1.0f : 0) - (lower ? 1.0f : 0);
    }
}

void rws__window_lay(rws_window *w, const float *where, const float *glimpse)
{
    memcpy(w->where, where, sizeof w->where);
    rws__resampler_lay(&w->x, 1 / where[0], -where[2] / where[0]);
    rws__resampler_lay(&w->y, 1 / where[1], -where[3] / where[1]);
    lay_cover(&w->x, w->cover_x, w->slope_x);
    lay_cover(&w->y, w->cover_y, w->slope_y);
    w->glimpse = glimpse;
    if (!glimpse || w->y.begin == w->y.stop) return;
    const rws_resampler *x = &w->x;
    const int            cols = x->n_source;
    for (int r = 0; r < w->y.n_source; r++) {
        memcpy(w->padded + 1, glimpse + (size_t)r * (size_t)cols, (size_t)cols * sizeof *glimpse);
        rws__resampler_apply(x, w->padded, w->columns + (size_t)(r + 1) * (size_t)w->stride);
    }
}

void rws__window_add(const rws_window *w, int i, float *y, float *a)
{
    const rws_resampler *x = &w->x;
    const float          low = w->y.low[i], high = w->y.high[i], cover = w->cover_y[i];
    const float *restrict lower = w->columns + (size_t)w->y.at[i] * (size_t)w->stride, *restrict upper =
                                                                                           lower + w->stride;
    if (y)
        FOR_SIMD (j, x->first, x->end) y[j] += low * lower[j] + high * upper[j];
    if (a)
        FOR_SIMD (j, x->first, x->end) a[j] += cover * w->cover_x[j];
}

void rws__window_back(rws_window *w, int i, const float *by_y, const float *by_a, bool moves)
{
    const rws_resampler *x = &w->x;
    const float          low = w->y.low[i], high = w->y.high[i];
    const size_t         at = (size_t)w->y.at[i] * (size_t)w->stride;
    const float         *lower = w->columns + at, *upper = lower + w->stride;
    float *restrict by_lower = w->by_columns + at, *restrict by_upper = by_lower + w->stride;
    if (i == w->y.begin) memset(w->by_columns, 0, (size_t)(w->y.n_source + 2) * (size_t)w->stride * sizeof(float));
    float slope = 0;
    if (by_y)
        FOR_SIMD (j, x->first, x->end) {
            by_lower[j] += low * by_y[j];
            by_upper[j] += high * by_y[j];
        }
    if (!moves) return;
    if (by_y)
#pragma omp simd reduction(+ : slope)
        for (int j = x->first; j < x->end; j++) slope += by_y[j] * (upper[j] - lower[j]);
    if (by_a) {
        const float cover = w->cover_y[i], bend = w->slope_y[i];
#pragma omp simd reduction(+ : slope)
        for (int j = x->first; j < x->end; j++) {
            x->by[j] += by_a[j] * cover * w->slope_x[j];
            slope += by_a[j] * bend * w->cover_x[j];
        }
    }
    w->y.by[i] += slope;
}

/* From the gradients of p = 1 / scale and q = -shift / scale to those of scale and shift. */
static void back_where(const rws_resampler *a, float scale, float shift, float *by_scale, float *by_shift)
{
    float by_p, by_q;
    rws__resampler_slopes(a, &by_p, &by_q);
    if (by_p == 0 && by_q == 0) return; /* also where the scale is 0 */
    *by_scale += (by_q * shift - by_p) / (scale * scale);
    *by_shift -= by_q / scale;
}

void rws__window_back_end(rws_window *w, float *by_glimpse, float *by_where)
{
    const rws_resampler *x = &w->x;
    const size_t         cols = (size_t)x->n_source;
    if (w->y.begin == w->y.stop) return;
    for (size_t r = 0; r < (size_t)w->y.n_source && w->glimpse; r++) {
        const float *by = w->by_columns + (r + 1) * (size_t)w->stride;
        if (by_where) {
            const float *from = memcpy(w->padded + 1, w->glimpse + r * cols, cols * sizeof *from);
            from--;
            for (int j = x->begin; j < x->stop; j++) x->by[j] += by[j] * (from[x->at[j] + 1] - from[x->at[j]]);
        }
        if (by_glimpse) {
            float *to = w->padded; /* with space for the gradients of the zeros on either side */
            memset(to, 0, (cols + 2) * sizeof *to);
            for (int j = x->begin; j < x->stop; j++) {
                to[x->at[j]] += x->low[j] * by[j];
                to[x->at[j] + 1] += x->high[j] * by[j];
            }
            for (size_t k = 0; k < cols; k++) by_glimpse[r * cols + k] += to[k + 1];
            to[0] = to[cols + 1] = 0;
        }
    }
    if (!by_where) return;
    back_where(x, w->where[0], w->where[2], &by_where[0], &by_where[2]);
    back_where(&w->y, w->where[1], w->where[3], &by_where[1], &by_where[3]);
}
