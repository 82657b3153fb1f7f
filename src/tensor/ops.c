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
    float      *g = rws_call_open(c, 0, c->dim);
    const float s = c->args.s;
    if (g) EACH(size(c), g[i] += s * c->gout[i]);
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
        float *g = rws_call_open(c, s, c->dim);
        if (g) EACH(size(c), g[i] += c->gout[i]);
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
        float      *g = rws_call_open(c, s, c->dim);
        const float sign = s ? -1 : 1;
        if (g) EACH(size(c), g[i] += sign * c->gout[i]);
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
        float *g = rws_call_open(c, s, c->dim);
        if (!g) continue;
        const float *other = rws_call_input(c, 1 - s, c->dim);
        EACH(size(c), g[i] += other[i] * c->gout[i]);
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
    float *g = rws_call_open(c, 0, c->dim);
    if (!g) return;
    float *slope = RWS_NEW(c->arena, float, size(c));
    rws_function_slope((rws_function)c->args.k, size(c), c->out, slope);
    EACH(size(c), g[i] += slope[i] * c->gout[i]);
    rws_call_close(c, 0, c->dim, g);
}

static void apply_tangent_forward(rws_call *c)
{
    const float *y = rws_call_input(c, 0, c->dim), *dx = rws_call_input(c, 1, c->dim);
    rws_function_slope((rws_function)c->args.k, size(c), y, c->out);
    EACH(size(c), c->out[i] *= dx[i]);
}

static void apply_tangent_backward(rws_call *c)
{
    const float *y = rws_call_input(c, 0, c->dim), *dx = rws_call_input(c, 1, c->dim);
    float       *gy = rws_call_open(c, 0, c->dim), *gdx = rws_call_open(c, 1, c->dim);
    float       *factor = RWS_NEW(c->arena, float, size(c));
    if (gy) {
        rws_function_bend((rws_function)c->args.k, size(c), y, factor);
        EACH(size(c), gy[i] += factor[i] * dx[i] * c->gout[i]);
        rws_call_close(c, 0, c->dim, gy);
    }
    if (gdx) {
        rws_function_slope((rws_function)c->args.k, size(c), y, factor);
        EACH(size(c), gdx[i] += factor[i] * c->gout[i]);
        rws_call_close(c, 1, c->dim, gdx);
    }
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

/* Largest and total of a row; eight running results, so that additions do not wait for each other. */
static float row_max(const float *x, size_t n)
{
    float m[8], top;
    for (int k = 0; k < 8; k++) m[k] = x[0];
    size_t j = 0;
    for (; j + 8 <= n; j += 8)
        for (size_t k = 0; k < 8; k++) m[k] = x[j + k] > m[k] ? x[j + k] : m[k];
    for (top = m[0]; j < n; j++) top = x[j] > top ? x[j] : top;
    for (int k = 1; k < 8; k++) top = m[k] > top ? m[k] : top;
    return top;
}

static float row_sum(const float *x, size_t n)
{
    float  s[8] = {0};
    size_t j = 0;
    for (; j + 8 <= n; j += 8)
        for (size_t k = 0; k < 8; k++) s[k] += x[j + k];
    for (size_t k = 0; j < n; j++, k++) s[k] += x[j];
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

static void log_softmax_forward(rws_call *c)
{
    const size_t dim = (size_t)c->dim, n = (size_t)c->n;
    const float *x = rws_call_input(c, 0, c->dim);
    float       *total = RWS_NEW(c->arena, float, n), *log_total = RWS_NEW(c->arena, float, n);
    for (size_t r = 0; r < n; r++) {
        const float *restrict in = x + r * dim;
        float *restrict out = c->out + r * dim;
        const float top = row_max(in, dim); /* all impossible: -inf - -inf is NaN, which the site reports */
        for (size_t j = 0; j < dim; j++) out[j] = in[j] - top;
    }
    EACH(n * dim, c->saved[i] = expf(c->out[i]));
    for (size_t r = 0; r < n; r++) total[r] = row_sum(c->saved + r * dim, dim);
    EACH(n, log_total[i] = logf(total[i]); total[i] = 1 / total[i]);
    for (size_t r = 0; r < n; r++) {
        float *restrict out = c->out + r * dim, *restrict p = c->saved + r * dim;
        const float l = log_total[r], t = total[r];
        for (size_t j = 0; j < dim; j++) out[j] -= l, p[j] *= t;
    }
}

static void log_softmax_backward(rws_call *c)
{
    const size_t dim = (size_t)c->dim;
    float       *g = rws_call_open(c, 0, c->dim);
    if (!g) return;
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const float *gy = c->gout + r * dim, *p = c->saved + r * dim;
        float        total = 0;
#pragma omp simd reduction(+ : total)
        for (size_t j = 0; j < dim; j++) total += gy[j];
#pragma omp simd
        for (size_t j = 0; j < dim; j++) g[r * dim + j] += gy[j] - p[j] * total;
    }
    rws_call_close(c, 0, c->dim, g);
}

/* ---- pick: a[index]; neither is gathered */

static size_t picked(const rws_call *c, size_t r)
{
    const rws_view *a = &c->in[0], *v = &c->in[1];
    const float     index = v->data[v->row ? v->row[r] : r];
    RWS_CHECK(index >= 0 && index < (float)a->dim);
    return (a->row ? a->row[r] : r) * (size_t)a->dim + (size_t)index;
}

static void pick_forward(rws_call *c)
{
    for (size_t r = 0; r < (size_t)c->n; r++) c->out[r] = c->in[0].data[picked(c, r)];
}

static void pick_backward(rws_call *c)
{
    if (!c->gin[0].data) return;
    for (size_t r = 0; r < (size_t)c->n; r++) c->gin[0].data[picked(c, r)] += c->gout[r];
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
