/* rows.h - loops over one short row of floats.
 *
 * Rows here have a few to a few dozen numbers, so a loop must not have much of a preamble: eight at a time, then four,
 * then one. Longer mathematics (an exponential) is better done over many rows at once, see rws_tile.
 */
#ifndef RWS_TENSOR_ROWS_H
#define RWS_TENSOR_ROWS_H

#include "base/vecmath.h"
#include "tensor/op.h"

typedef float   rws_v4 __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t rws_i4 __attribute__((vector_size(16), may_alias));

#define RWS_AT8(p) (*(rws_v8 *)(p))
#define RWS_AT4(p) (*(rws_v4 *)(p))
#define RWS_GET8(p) (*(const rws_v8 *)(p))
#define RWS_GET4(p) (*(const rws_v4 *)(p))

/* For all j < n: eight at a time, then four, then one; the compiler sees that there are at most three of the last. */
#define RWS_ROW(n, statement8, statement4, statement1)           \
    do {                                                         \
        size_t j = 0;                                            \
        for (; j + 8 <= (n); j += 8) statement8;                 \
        if ((n)&4) {                                             \
            statement4;                                          \
            j += 4;                                              \
        }                                                        \
        for (size_t left = (n)&3; left; left--, j++) statement1; \
    } while (0)

#define RWS_TILE 1024 /* numbers */

/* How many rows of dim numbers make a tile: what is computed of it stays in the first cache. */
static inline size_t rws_tile(size_t dim)
{
    return dim < RWS_TILE ? RWS_TILE / dim : 1;
}

static inline const float *rws_exp_row(const rws_view *v, size_t r)
{
    return v->exp + rws_view_index(v, r) * (size_t)v->dim;
}

/* Whether the gradient is to be written instead of added to; from now on it is not. */
static inline bool rws_sink_take(rws_sink *g)
{
    const bool fresh = g->fresh;
    g->fresh = false;
    return fresh;
}

static inline float row_fold(rws_v8 s, rws_v4 t)
{
    t += __builtin_shufflevector(s, s, 0, 1, 2, 3) + __builtin_shufflevector(s, s, 4, 5, 6, 7);
    t += __builtin_shufflevector(t, t, 2, 3, 0, 1);
    return t[0] + t[1];
}

static inline float row_sum(const float *x, size_t n)
{
    rws_v8 s = {0};
    rws_v4 t = {0};
    float  rest = 0;
    RWS_ROW(n, s += RWS_GET8(x + j), t += RWS_GET4(x + j), rest += x[j]);
    return row_fold(s, t) + rest;
}

static inline float row_dot(const float *a, const float *b, size_t n)
{
    rws_v8 s = {0};
    rws_v4 t = {0};
    float  rest = 0;
    RWS_ROW(n, s += RWS_GET8(a + j) * RWS_GET8(b + j), t += RWS_GET4(a + j) * RWS_GET4(b + j), rest += a[j] * b[j]);
    return row_fold(s, t) + rest;
}

static inline rws_v8 larger8(rws_v8 a, rws_v8 b)
{
    const rws_i8 first = a > b;
    return (rws_v8)(((rws_i8)a & first) | ((rws_i8)b & ~first));
}

static inline rws_v4 larger4(rws_v4 a, rws_v4 b)
{
    const rws_i4 first = a > b;
    return (rws_v4)(((rws_i4)a & first) | ((rws_i4)b & ~first));
}

static inline float row_max(const float *x, size_t n)
{
    rws_v8 m = (rws_v8){0} - INFINITY;
    rws_v4 l = (rws_v4){0} - INFINITY;
    float  top = -INFINITY;
    RWS_ROW(n, m = larger8(RWS_GET8(x + j), m), l = larger4(RWS_GET4(x + j), l), top = x[j] > top ? x[j] : top);
    l = larger4(l, larger4(__builtin_shufflevector(m, m, 0, 1, 2, 3), __builtin_shufflevector(m, m, 4, 5, 6, 7)));
    l = larger4(l, __builtin_shufflevector(l, l, 2, 3, 0, 1));
    const float most = l[0] > l[1] ? l[0] : l[1];
    return most > top ? most : top;
}

static inline rws_i4 smaller4(rws_i4 a, rws_i4 b)
{
    const rws_i4 first = a < b;
    return (a & first) | (b & ~first);
}

/* Where the largest number is, the first of equals. */
static inline size_t row_argmax(const float *x, size_t n)
{
    const float  top = row_max(x, n);
    const rws_i4 lane = {0, 1, 2, 3};
    rws_i4       best = (rws_i4){0} + INT32_MAX;
    int32_t      last = INT32_MAX;
    size_t       j = 0;
    for (; j + 4 <= n; j += 4) {
        const rws_i4 other = (rws_i4)(RWS_GET4(x + j) != top);
        best = smaller4(best, (lane + (int32_t)j) | (other & INT32_MAX));
    }
    for (size_t left = n & 3; left; left--, j++) last = x[j] == top && last == INT32_MAX ? (int32_t)j : last;
    best = smaller4(best, __builtin_shufflevector(best, best, 2, 3, 0, 1));
    const int32_t first = best[0] < best[1] ? best[0] : best[1], at = first < last ? first : last;
    return at < INT32_MAX ? (size_t)at : 0;
}

/* out = x + shift */
static inline void row_shift(const float *x, size_t n, float shift, float *out)
{
    RWS_ROW(n, RWS_AT8(out + j) = RWS_GET8(x + j) + shift, RWS_AT4(out + j) = RWS_GET4(x + j) + shift,
            out[j] = x[j] + shift);
}

/* out = scale x */
static inline void row_scale(const float *x, size_t n, float scale, float *out)
{
    RWS_ROW(n, RWS_AT8(out + j) = RWS_GET8(x + j) * scale, RWS_AT4(out + j) = RWS_GET4(x + j) * scale,
            out[j] = x[j] * scale);
}

/* out = x + y */
static inline void row_add(const float *x, const float *y, size_t n, float *out)
{
    RWS_ROW(n, RWS_AT8(out + j) = RWS_GET8(x + j) + RWS_GET8(y + j),
            RWS_AT4(out + j) = RWS_GET4(x + j) + RWS_GET4(y + j), out[j] = x[j] + y[j]);
}

/* out = x + scale y */
static inline void row_combine(const float *x, const float *y, size_t n, float scale, float *out)
{
    RWS_ROW(n, RWS_AT8(out + j) = RWS_GET8(x + j) + RWS_GET8(y + j) * scale,
            RWS_AT4(out + j) = RWS_GET4(x + j) + RWS_GET4(y + j) * scale, out[j] = x[j] + y[j] * scale);
}

/* Gradients: to = or += … */
#define RWS_GIVE_ROW(n, to, fresh, value8, value4, value1)                                                     \
    do {                                                                                                       \
        if (fresh) RWS_ROW(n, RWS_AT8((to) + j) = (value8), RWS_AT4((to) + j) = (value4), (to)[j] = (value1)); \
        else RWS_ROW(n, RWS_AT8((to) + j) += (value8), RWS_AT4((to) + j) += (value4), (to)[j] += (value1));    \
    } while (0)

/* scale x */
static inline void row_give(const float *x, size_t n, float scale, bool fresh, float *to)
{
    RWS_GIVE_ROW(n, to, fresh, RWS_GET8(x + j) * scale, RWS_GET4(x + j) * scale, x[j] * scale);
}

/* scale x + shift */
static inline void row_give_affine(const float *x, size_t n, float scale, float shift, bool fresh, float *to)
{
    RWS_GIVE_ROW(n, to, fresh, RWS_GET8(x + j) * scale + shift, RWS_GET4(x + j) * scale + shift, x[j] * scale + shift);
}

/* scale x y */
static inline void row_give_product(const float *x, const float *y, size_t n, float scale, bool fresh, float *to)
{
    RWS_GIVE_ROW(n, to, fresh, RWS_GET8(x + j) * RWS_GET8(y + j) * scale, RWS_GET4(x + j) * RWS_GET4(y + j) * scale,
                 x[j] * y[j] * scale);
}

/* scale p (x - shift) */
static inline void row_give_centred(const float *p, const float *x, size_t n, float shift, float scale, bool fresh,
                                    float *to)
{
    RWS_GIVE_ROW(n, to, fresh, RWS_GET8(p + j) * (RWS_GET8(x + j) - shift) * scale,
                 RWS_GET4(p + j) * (RWS_GET4(x + j) - shift) * scale, p[j] * (x[j] - shift) * scale);
}

/* scale (x - total p) */
static inline void row_give_rest(const float *x, const float *p, size_t n, float total, float scale, bool fresh,
                                 float *to)
{
    RWS_GIVE_ROW(n, to, fresh, (RWS_GET8(x + j) - RWS_GET8(p + j) * total) * scale,
                 (RWS_GET4(x + j) - RWS_GET4(p + j) * total) * scale, (x[j] - p[j] * total) * scale);
}

#endif
