/* ops.c - arithmetic and shape: each op's forward and backward side by side. */
#include "base/error.h"
#include "base/vecmath.h"
#include "tensor/op.h"

#include <string.h>

#define EACH(n, expression)                                  \
    do {                                                     \
        _Pragma("omp simd") for (size_t i = 0; i < (n); i++) \
        {                                                    \
            expression;                                      \
        }                                                    \
    } while (0)

/* g = or += an expression, as a claimed gradient wants it. */
#define GIVE(fresh, n, g, expression)              \
    do {                                           \
        if (fresh) EACH(n, (g)[i] = (expression)); \
        else EACH(n, (g)[i] += (expression));      \
    } while (0)

static size_t size(const rws_call *c)
{
    return (size_t)c->n * (size_t)c->dim;
}

/* ---- affine: s x + t */

static void affine_forward(rws_call *c)
{
    const float *x = rws_call_input(c, 0, c->dim);
    const float  s = c->args.s, t = c->args.t;
    EACH(size(c), c->out[i] = s * x[i] + t);
}

static void affine_backward(rws_call *c)
{
    bool        fresh;
    float      *g = rws_call_claim(c, 0, c->dim, &fresh);
    const float s = c->args.s;
    if (g) GIVE(fresh, size(c), g, s * c->gout[i]);
    rws_call_close(c, 0, c->dim, g);
}

/* ---- add, sub, mul, div: either side may be a single column */

static void add_forward(rws_call *c)
{
    const float *a = rws_call_input(c, 0, c->dim), *b = rws_call_input(c, 1, c->dim);
    EACH(size(c), c->out[i] = a[i] + b[i]);
}

static void add_backward(rws_call *c)
{
    for (int s = 0; s < 2; s++) {
        bool   fresh;
        float *g = rws_call_claim(c, s, c->dim, &fresh);
        if (g) GIVE(fresh, size(c), g, c->gout[i]);
        rws_call_close(c, s, c->dim, g);
    }
}

static void sub_forward(rws_call *c)
{
    const float *a = rws_call_input(c, 0, c->dim), *b = rws_call_input(c, 1, c->dim);
    EACH(size(c), c->out[i] = a[i] - b[i]);
}

static void sub_backward(rws_call *c)
{
    for (int s = 0; s < 2; s++) {
        bool        fresh;
        float      *g = rws_call_claim(c, s, c->dim, &fresh);
        const float sign = s ? -1 : 1;
        if (g) GIVE(fresh, size(c), g, sign * c->gout[i]);
        rws_call_close(c, s, c->dim, g);
    }
}

static void mul_forward(rws_call *c)
{
    const float *a = rws_call_input(c, 0, c->dim), *b = rws_call_input(c, 1, c->dim);
    EACH(size(c), c->out[i] = a[i] * b[i]);
}

static void mul_backward(rws_call *c)
{
    for (int s = 0; s < 2; s++) {
        bool   fresh;
        float *g = rws_call_claim(c, s, c->dim, &fresh);
        if (!g) continue;
        const float *other = rws_call_input(c, 1 - s, c->dim);
        GIVE(fresh, size(c), g, other[i] * c->gout[i]);
        rws_call_close(c, s, c->dim, g);
    }
}

static void div_forward(rws_call *c)
{
    const float *a = rws_call_input(c, 0, c->dim), *b = rws_call_input(c, 1, c->dim);
    EACH(size(c), c->out[i] = a[i] / b[i]);
}

static void div_backward(rws_call *c)
{
    const float *b = rws_call_input(c, 1, c->dim);
    float       *ga = rws_call_open(c, 0, c->dim), *gb = rws_call_open(c, 1, c->dim);
    if (ga) EACH(size(c), ga[i] += c->gout[i] / b[i]);
    rws_call_close(c, 0, c->dim, ga);
    if (gb) EACH(size(c), gb[i] -= c->gout[i] * c->out[i] / b[i]);
    rws_call_close(c, 1, c->dim, gb);
}

/* ---- apply: y = f(x); and its tangent f'(y) dx, whose own gradient needs f'' */

static void apply_forward(rws_call *c)
{
    rws_function_apply((rws_function)c->args.k, size(c), rws_call_input(c, 0, c->dim), c->out);
}

static void apply_backward(rws_call *c)
{
    bool   fresh;
    float *g = rws_call_claim(c, 0, c->dim, &fresh);
    if (!g) return;
    float *by_x = fresh ? g : RWS_NEW(c->arena, float, size(c));
    rws_function_slope((rws_function)c->args.k, size(c), c->out, c->gout, by_x);
    if (!fresh) EACH(size(c), g[i] += by_x[i]);
    rws_call_close(c, 0, c->dim, g);
}

static void apply_tangent_forward(rws_call *c)
{
    const float *y = rws_call_input(c, 0, c->dim), *dx = rws_call_input(c, 1, c->dim);
    rws_function_slope((rws_function)c->args.k, size(c), y, dx, c->out);
}

static void apply_tangent_backward(rws_call *c)
{
    const float *y = rws_call_input(c, 0, c->dim), *dx = rws_call_input(c, 1, c->dim);
    bool         fresh_y, fresh_dx;
    float       *gy = rws_call_claim(c, 0, c->dim, &fresh_y), *gdx = rws_call_claim(c, 1, c->dim, &fresh_dx);
    float       *by = RWS_NEW(c->arena, float, size(c));
    if (gy) {
        rws_function_bend((rws_function)c->args.k, size(c), y, c->gout, by);
        GIVE(fresh_y, size(c), gy, by[i] * dx[i]);
        rws_call_close(c, 0, c->dim, gy);
    }
    if (gdx) {
        rws_function_slope((rws_function)c->args.k, size(c), y, c->gout, by);
        GIVE(fresh_dx, size(c), gdx, by[i]);
        rws_call_close(c, 1, c->dim, gdx);
    }
}

/* ---- clip to s … t; no gradient outside */

static void clip_forward(rws_call *c)
{
    const float *x = rws_call_input(c, 0, c->dim), low = c->args.s, high = c->args.t;
    EACH(size(c), float y = x[i] < low ? low : x[i]; c->out[i] = y > high ? high : y);
}

static void clip_backward(rws_call *c)
{
    const float *x = rws_call_input(c, 0, c->dim), low = c->args.s, high = c->args.t;
    bool         fresh;
    float       *g = rws_call_claim(c, 0, c->dim, &fresh);
    if (g) GIVE(fresh, size(c), g, x[i] >= low && x[i] <= high ? c->gout[i] : 0);
    rws_call_close(c, 0, c->dim, g);
}

/* ---- comparisons and other things without a gradient */

static void greater_forward(rws_call *c)
{
    const float *a = rws_call_input(c, 0, c->dim), *b = rws_call_input(c, 1, c->dim);
    EACH(size(c), c->out[i] = a[i] > b[i] ? 1 : 0);
}

static void argmax_forward(rws_call *c)
{
    const int    dim = c->in[0].dim;
    const float *x = rws_call_input(c, 0, dim);
    for (int r = 0; r < c->n; r++, x += dim) {
        int best = 0;
        for (int j = 1; j < dim; j++)
            if (x[j] > x[best]) best = j;
        c->out[r] = (float)best;
    }
}

static void onehot_forward(rws_call *c)
{
    const float *index = rws_call_input(c, 0, 1);
    memset(c->out, 0, size(c) * sizeof(float));
    for (int r = 0; r < c->n; r++) {
        RWS_CHECK(index[r] >= 0 && index[r] < (float)c->dim);
        c->out[(size_t)r * (size_t)c->dim + (size_t)index[r]] = 1;
    }
}

/* ---- concat, slice, sum */

static void concat_forward(rws_call *c)
{
    size_t at = 0;
    for (int s = 0; s < c->n_in; s++) {
        const size_t dim = (size_t)c->in[s].dim;
        const float *x = rws_call_input(c, s, (int)dim);
        for (size_t r = 0; r < (size_t)c->n; r++)
            memcpy(c->out + r * (size_t)c->dim + at, x + r * dim, dim * sizeof(float));
        at += dim;
    }
}

static void concat_backward(rws_call *c)
{
    size_t at = 0;
    for (int s = 0; s < c->n_in; s++) {
        const size_t dim = (size_t)c->in[s].dim;
        float       *g = rws_call_open(c, s, (int)dim);
        if (g)
            for (size_t r = 0; r < (size_t)c->n; r++)
                for (size_t j = 0; j < dim; j++) g[r * dim + j] += c->gout[r * (size_t)c->dim + at + j];
        rws_call_close(c, s, (int)dim, g);
        at += dim;
    }
}

static void slice_forward(rws_call *c)
{
    const size_t dim = (size_t)c->in[0].dim;
    const float *x = rws_call_input(c, 0, (int)dim) + c->args.k;
    for (size_t r = 0; r < (size_t)c->n; r++)
        memcpy(c->out + r * (size_t)c->dim, x + r * dim, (size_t)c->dim * sizeof(float));
}

static void slice_backward(rws_call *c)
{
    const size_t dim = (size_t)c->in[0].dim, first = (size_t)c->args.k;
    float       *g = rws_call_open(c, 0, (int)dim);
    if (!g) return;
    for (size_t r = 0; r < (size_t)c->n; r++)
        for (size_t j = 0; j < (size_t)c->dim; j++) g[r * dim + first + j] += c->gout[r * (size_t)c->dim + j];
    rws_call_close(c, 0, (int)dim, g);
}

static void sum_forward(rws_call *c)
{
    const size_t dim = (size_t)c->in[0].dim;
    const float *x = rws_call_input(c, 0, (int)dim);
    for (size_t r = 0; r < (size_t)c->n; r++) {
        float total = 0;
#pragma omp simd reduction(+ : total)
        for (size_t j = 0; j < dim; j++) total += x[r * dim + j];
        c->out[r] = total;
    }
}

static void sum_backward(rws_call *c)
{
    const size_t dim = (size_t)c->in[0].dim;
    float       *g = rws_call_open(c, 0, (int)dim);
    if (!g) return;
    for (size_t r = 0; r < (size_t)c->n; r++)
        for (size_t j = 0; j < dim; j++) g[r * dim + j] += c->gout[r];
    rws_call_close(c, 0, (int)dim, g);
}

/* ---- log_softmax: keeps the probabilities, which draws and backward both need */

/* Largest and total of a row, four numbers at a time. */
typedef float   v4 __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t i4 __attribute__((vector_size(16), aligned(4), may_alias));

static inline v4 larger(v4 a, v4 b)
{
    const i4 first = a > b;
    return (v4)(((i4)a & first) | ((i4)b & ~first));
}

static inline float row_max(const float *x, size_t n)
{
    float  top = x[0];
    size_t j = 0;
    if (n >= 4) {
        v4 m = *(const v4 *)x;
        for (j = 4; j + 4 <= n; j += 4) m = larger(*(const v4 *)(x + j), m);
        m = larger(m, __builtin_shufflevector(m, m, 2, 3, 0, 1));
        top = m[0] > m[1] ? m[0] : m[1];
    }
    for (; j < n; j++) top = x[j] > top ? x[j] : top;
    return top;
}

static inline float row_sum(const float *x, size_t n)
{
    v4     s = {0};
    size_t j = 0;
    for (; j + 4 <= n; j += 4) s += *(const v4 *)(x + j);
    s += __builtin_shufflevector(s, s, 2, 3, 0, 1);
    float total = s[0] + s[1];
    for (; j < n; j++) total += x[j];
    return total;
}

/* out = x + shift; x *= scale; to = or += g - p * total: short rows, so no loop may have much of a preamble. */
static inline void row_shift(const float *x, size_t n, float shift, float *out)
{
    size_t j = 0;
    for (; j + 4 <= n; j += 4) *(v4 *)(out + j) = *(const v4 *)(x + j) + shift;
    for (; j < n; j++) out[j] = x[j] + shift;
}

static inline void row_scale(float *x, size_t n, float scale)
{
    size_t j = 0;
    for (; j + 4 <= n; j += 4) *(v4 *)(x + j) *= scale;
    for (; j < n; j++) x[j] *= scale;
}

static inline void row_give(const float *g, const float *p, size_t n, float total, bool fresh, float *to)
{
    size_t j = 0;
    for (; j + 4 <= n; j += 4) {
        v4 y = *(const v4 *)(g + j) - *(const v4 *)(p + j) * total;
        if (!fresh) y += *(const v4 *)(to + j);
        *(v4 *)(to + j) = y;
    }
    for (; j < n; j++) to[j] = g[j] - p[j] * total + (fresh ? 0 : to[j]);
}

/* p = softmax of rows of x; their log-sum-exp is top + log_total. shifted = x - top, and may be p. A row that is all
 * impossible has p = NaN. */
static void softmax(const float *x, size_t n, size_t dim, float *shifted, float *p, float *top, float *log_total)
{
    for (size_t r = 0; r < n; r++) {
        top[r] = row_max(x + r * dim, dim);
        row_shift(x + r * dim, dim, -top[r], shifted + r * dim);
    }
    EACH(n * dim, p[i] = expf(shifted[i]));
    for (size_t r = 0; r < n; r++) {
        log_total[r] = row_sum(p + r * dim, dim);
        row_scale(p + r * dim, dim, 1 / log_total[r]);
    }
    EACH(n, log_total[i] = logf(log_total[i]));
}

static void log_softmax_forward(rws_call *c)
{
    const size_t dim = (size_t)c->dim, n = (size_t)c->n;
    float       *top = RWS_NEW(c->arena, float, n), *log_total = RWS_NEW(c->arena, float, n);
    softmax(rws_call_input(c, 0, c->dim), n, dim, c->out, c->saved, top, log_total);
    for (size_t r = 0; r < n; r++) row_shift(c->out + r * dim, dim, -log_total[r], c->out + r * dim);
}

static void log_softmax_backward(rws_call *c)
{
    const size_t dim = (size_t)c->dim;
    bool         fresh;
    float       *g = rws_call_claim(c, 0, c->dim, &fresh);
    if (!g) return;
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const float *gy = c->gout + r * dim;
        row_give(gy, c->saved + r * dim, dim, row_sum(gy, dim), fresh, g + r * dim);
    }
    rws_call_close(c, 0, c->dim, g);
}

/* ---- log_sum_exp, and its derivative along da: sum softmax(a) da */

static void log_sum_exp_forward(rws_call *c)
{
    const int    dim = c->in[0].dim;
    const size_t n = (size_t)c->n, d = (size_t)dim;
    float       *top = RWS_NEW(c->arena, float, n);
    softmax(rws_call_input(c, 0, dim), n, d, c->saved, c->saved, top, c->out);
    for (size_t r = 0; r < n; r++) {
        if (top[r] == -INFINITY) { /* all impossible */
            c->out[r] = 0;
            memset(c->saved + r * d, 0, d * sizeof(float));
        }
        c->out[r] += top[r];
    }
}

static void log_sum_exp_backward(rws_call *c)
{
    const size_t dim = (size_t)c->in[0].dim;
    float       *g = rws_call_open(c, 0, (int)dim);
    if (!g) return;
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const float *restrict p = c->saved + r * dim;
        float *restrict to = g + r * dim;
        const float gy = c->gout[r];
        for (size_t j = 0; j < dim; j++) to[j] += gy * p[j];
    }
    rws_call_close(c, 0, (int)dim, g);
}

static void softmax_dot_forward(rws_call *c)
{
    const size_t dim = (size_t)c->in[0].dim, n = (size_t)c->n;
    const float *x = rws_call_input(c, 0, (int)dim), *dx = rws_call_input(c, 1, (int)dim);
    softmax(x, n, dim, c->saved, c->saved, RWS_NEW(c->arena, float, n), c->out);
    for (size_t r = 0; r < n; r++) {
        float total = 0;
#pragma omp simd reduction(+ : total)
        for (size_t j = r * dim; j < (r + 1) * dim; j++) total += c->saved[j] * dx[j];
        c->out[r] = total;
    }
}

static void softmax_dot_backward(rws_call *c)
{
    const size_t dim = (size_t)c->in[0].dim;
    const float *dx = rws_call_input(c, 1, (int)dim);
    float       *gx = rws_call_open(c, 0, (int)dim), *gdx = rws_call_open(c, 1, (int)dim);
    for (size_t r = 0; r < (size_t)c->n; r++)
        for (size_t j = r * dim; j < (r + 1) * dim; j++) {
            const float gp = c->gout[r] * c->saved[j];
            if (gx) gx[j] += gp * (dx[j] - c->out[r]);
            if (gdx) gdx[j] += gp;
        }
    rws_call_close(c, 0, (int)dim, gx);
    rws_call_close(c, 1, (int)dim, gdx);
}

/* ---- pick: a[index]; neither is gathered. Forward leaves the indices for backward. */

static void pick_forward(rws_call *c)
{
    const rws_view *a = &c->in[0], *v = &c->in[1];
    const uint32_t  dim = (uint32_t)a->dim;
    uint32_t       *at = RWS_NEW(c->arena, uint32_t, c->n);
    bool            inside = true;
    for (uint32_t r = 0; r < (uint32_t)c->n; r++) {
        const int index = (int)v->data[v->row ? v->row[r] : r];
        inside &= (uint32_t)index < dim;
        at[r] = (uint32_t)index;
    }
    RWS_CHECK(inside && "an index of the vector it picks from");
    for (uint32_t r = 0; r < (uint32_t)c->n; r++) c->out[r] = a->data[(a->row ? a->row[r] : r) * (size_t)dim + at[r]];
    c->places = at;
}

static void pick_backward(rws_call *c)
{
    if (!c->gin[0].data) return;
    rws_call_clear(c, 0);
    const rws_sink *g = &c->gin[0];
    const size_t    dim = (size_t)c->in[0].dim;
    for (uint32_t r = 0; r < (uint32_t)c->n; r++) g->data[(g->row ? g->row[r] : r) * dim + c->places[r]] += c->gout[r];
}

const rws_op rws_op_affine = {
    .name = "affine", .tangent = RWS_TANGENT_LINEAR, .forward = affine_forward, .backward = affine_backward};
const rws_op rws_op_add = {
    .name = "add", .tangent = RWS_TANGENT_LINEAR, .forward = add_forward, .backward = add_backward};
const rws_op rws_op_sub = {
    .name = "sub", .tangent = RWS_TANGENT_LINEAR, .forward = sub_forward, .backward = sub_backward};
const rws_op rws_op_mul = {
    .name = "mul", .tangent = RWS_TANGENT_PRODUCT, .forward = mul_forward, .backward = mul_backward};
const rws_op rws_op_div = {
    .name = "div", .tangent = RWS_TANGENT_QUOTIENT, .forward = div_forward, .backward = div_backward};
const rws_op rws_op_apply = {
    .name = "apply", .tangent = RWS_TANGENT_APPLY, .forward = apply_forward, .backward = apply_backward};
const rws_op rws_op_apply_tangent = {
    .name = "apply_tangent", .forward = apply_tangent_forward, .backward = apply_tangent_backward};
const rws_op rws_op_clip = {.name = "clip", .forward = clip_forward, .backward = clip_backward};
const rws_op rws_op_greater = {.name = "greater", .constant = true, .forward = greater_forward};
const rws_op rws_op_argmax = {.name = "argmax", .constant = true, .forward = argmax_forward};
const rws_op rws_op_onehot = {.name = "onehot", .constant = true, .forward = onehot_forward};
const rws_op rws_op_concat = {
    .name = "concat", .tangent = RWS_TANGENT_LINEAR, .forward = concat_forward, .backward = concat_backward};
const rws_op rws_op_slice = {
    .name = "slice", .tangent = RWS_TANGENT_LINEAR, .forward = slice_forward, .backward = slice_backward};
const rws_op rws_op_sum = {
    .name = "sum", .tangent = RWS_TANGENT_LINEAR, .forward = sum_forward, .backward = sum_backward};
const rws_op rws_op_log_softmax = {.name = "log_softmax",
                                   .tangent = RWS_TANGENT_SOFTMAX,
                                   .saves = true,
                                   .forward = log_softmax_forward,
                                   .backward = log_softmax_backward};
const rws_op rws_op_pick = {
    .name = "pick", .tangent = RWS_TANGENT_PICK, .forward = pick_forward, .backward = pick_backward};
const rws_op rws_op_log_sum_exp = {.name = "log_sum_exp",
                                   .tangent = RWS_TANGENT_LOG_SUM_EXP,
                                   .saves = true,
                                   .forward = log_sum_exp_forward,
                                   .backward = log_sum_exp_backward};
const rws_op rws_op_softmax_dot = {
    .name = "softmax_dot", .saves = true, .forward = softmax_dot_forward, .backward = softmax_dot_backward};
