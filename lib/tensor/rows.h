/* rows.h - loops over one short row of floats.
 *
 * Rows here have a few to a few dozen numbers, so the loops need a short preamble: eight numbers at a time, then four,
 * then one. Expensive functions (an exponential) are faster over many rows at once; see rws__tile.
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

/* For all j < n: eight at a time, then four, then one. The last loop is written so that the compiler sees that it has
 * at most three steps. */
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

/* A vectorised loop over i < n. */
#define RWS_EACH(n, statement)                               \
    do {                                                     \
        _Pragma("omp simd") for (size_t i = 0; i < (n); i++) \
        {                                                    \
            statement;                                       \
        }                                                    \
    } while (0)

#define RWS_TILE 1024 /* numbers of a tile: a tile and what is computed from it fit the first cache */

/* How many rows of dim numbers make a tile. */
static inline size_t rws__tile(size_t dim)
{
    return dim < RWS_TILE ? RWS_TILE / dim : 1;
}

/* Row r of the exponentials of an input, which must be known. */
static inline const float *rws__exp_row(const rws_view *v, size_t r)
{
    return v->exp + rws__view_index(v, r) * (size_t)v->dim;
}

/* Whether the gradient is to be written instead of added to. From now on it is to be added to. */
static inline bool rws__sink_take(rws_sink *g)
{
    const bool fresh = g->fresh;
    g->fresh = false;
    return fresh;
}

/* The sum of all numbers of s and t. */
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

/* The sum of w x without the parts where w is 0, so that x may be infinite there. */
static inline float row_dot_where(const float *w, const float *x, size_t n)
{
    rws_v8 s = {0};
    rws_v4 t = {0};
    float  rest = 0;
    RWS_ROW(n, s += RWS_GET8(w + j) * (rws_v8)((rws_i8)RWS_GET8(x + j) & (RWS_GET8(w + j) != 0)),
            t += RWS_GET4(w + j) * (rws_v4)((rws_i4)RWS_GET4(x + j) & (RWS_GET4(w + j) != 0)),
            rest += w[j] * rws__where(w[j], x[j]));
    return row_fold(s, t) + rest;
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

/* ---- Gradients. Each of these writes an expression to `to` if that is fresh, and adds it otherwise. */
#define RWS_GIVE_ROW(n, to, fresh, value8, value4, value1)                                                     \
    do {                                                                                                       \
        if (fresh) RWS_ROW(n, RWS_AT8((to) + j) = (value8), RWS_AT4((to) + j) = (value4), (to)[j] = (value1)); \
        else RWS_ROW(n, RWS_AT8((to) + j) += (value8), RWS_AT4((to) + j) += (value4), (to)[j] += (value1));    \
    } while (0)

/* Whether the gradient g of a row is 0, so that the row has nothing to give. A fresh row becomes 0 then. */
static inline bool row_gives_nothing(float g, size_t n, bool fresh, float *to)
{
    if (g != 0) return false;
    for (size_t j = 0; fresh && j < n; j++) to[j] = 0;
    return true;
}

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
