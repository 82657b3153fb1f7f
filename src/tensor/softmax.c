/* softmax.c - normalised exponentials of rows: their logarithms, sums and means. Every op keeps the softmax, which
 * backward (and a draw) needs. */
#include "base/vecmath.h"
#include "tensor/rows.h"

#include <string.h>

#define EACH(from, to, expression)                                 \
    do {                                                           \
        _Pragma("omp simd") for (size_t i = (from); i < (to); i++) \
        {                                                          \
            expression;                                            \
        }                                                          \
    } while (0)

/* What the exponentials are taken of: rows of x, of x + y or of x / t. */
typedef struct {
    const rws_view *x, *y;
    const float    *t;
} exponents;

/* p = softmax of each row of e; the row's log-sum-exp is top + log_total. shifted = e - top, and may be p. A row that is all
 * impossible has p = NaN. */
static void softmax(exponents e, size_t n, size_t dim, float *shifted, float *p, float *top, float *log_total)
{
    for (size_t first = 0, end; first < n; first = end) {
        end = first + rws_tile(dim) < n ? first + rws_tile(dim) : n;
        for (size_t r = first; r < end; r++) {
            const float *row = rws_view_row(e.x, r);
            float       *to = shifted + r * dim;
            if (e.y) row_add(row, rws_view_row(e.y, r), dim, to);
            if (e.t) row_scale(row, dim, 1 / e.t[r], to);
            if (e.y || e.t) row = to;
            top[r] = row_max(row, dim);
            row_shift(row, dim, -top[r], to);
        }
        EACH(first * dim, end * dim, p[i] = rws_exp(shifted[i]));
        for (size_t r = first; r < end; r++) {
            log_total[r] = row_sum(p + r * dim, dim);
            row_scale(p + r * dim, dim, 1 / log_total[r], p + r * dim);
        }
    }
    EACH(0, n, log_total[i] = logf(log_total[i]));
}

/* ---- log_softmax: of x, or of x / t */

static void log_softmax_forward(rws_call *c)
{
    const size_t dim = (size_t)c->dim, n = (size_t)c->n;
    float       *top = RWS_NEW(c->arena, float, n), *log_total = RWS_NEW(c->arena, float, n);
    exponents    e = {.x = &c->in[0], .t = c->n_in > 1 ? rws_call_input(c, 1, 1) : NULL};
    softmax(e, n, dim, c->out, c->saved, top, log_total);
    for (size_t r = 0; r < n; r++) row_shift(c->out + r * dim, dim, -log_total[r], c->out + r * dim);
}

/* By y = x / t: g - p sum g =: h, whose sum is 0. By t: -sum h y / t, where y may as well be the output. */
static void log_softmax_backward(rws_call *c)
{
    const size_t dim = (size_t)c->dim;
    const float *t = c->n_in > 1 ? rws_call_input(c, 1, 1) : NULL;
    float       *gt = t ? rws_call_open(c, 1, 1) : NULL;
    rws_sink    *gx = &c->gin[0];
    const bool   fresh = rws_sink_take(gx);
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const float *g = c->gout + r * dim, *p = c->saved + r * dim, *y = c->out + r * dim;
        const float  total = row_sum(g, dim), scale = t ? 1 / t[r] : 1;
        if (gx->data) row_give_rest(g, p, dim, total, scale, fresh, rws_sink_row(gx, r, dim));
        if (gt) gt[r] -= scale * (row_dot(g, y, dim) - total * row_dot(p, y, dim));
    }
    if (gt) rws_call_close(c, 1, 1, gt);
}

/* ---- log_softmax_tangent: inputs y = log softmax(x / t), dx and perhaps t, which does not move: (dx - sum e^y dx) / t */

static void log_softmax_tangent_forward(rws_call *c)
{
    const size_t dim = (size_t)c->dim, n = (size_t)c->n;
    const float *y = rws_call_input(c, 0, c->dim), *t = c->n_in > 2 ? rws_call_input(c, 2, 1) : NULL;
    EACH(0, n * dim, c->saved[i] = rws_exp(y[i]));
    for (size_t r = 0; r < n; r++) {
        const float *dx = rws_view_row(&c->in[1], r), mean = row_dot(dx, c->saved + r * dim, dim);
        row_shift(dx, dim, -mean, c->out + r * dim);
        if (t) row_scale(c->out + r * dim, dim, 1 / t[r], c->out + r * dim);
    }
}

static void log_softmax_tangent_backward(rws_call *c)
{
    const size_t dim = (size_t)c->dim;
    const float *t = c->n_in > 2 ? rws_call_input(c, 2, 1) : NULL;
    float       *gt = t ? rws_call_open(c, 2, 1) : NULL;
    rws_sink    *gy = &c->gin[0], *gdx = &c->gin[1];
    const bool   fresh_y = rws_sink_take(gy), fresh_dx = rws_sink_take(gdx);
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const float *g = c->gout + r * dim, *p = c->saved + r * dim;
        const float  total = row_sum(g, dim), scale = t ? 1 / t[r] : 1;
        if (gy->data)
            row_give_product(p, rws_view_row(&c->in[1], r), dim, -total * scale, fresh_y, rws_sink_row(gy, r, dim));
        if (gdx->data) row_give_rest(g, p, dim, total, scale, fresh_dx, rws_sink_row(gdx, r, dim));
        if (gt) gt[r] -= scale * row_dot(g, c->out + r * dim, dim);
    }
    if (gt) rws_call_close(c, 2, 1, gt);
}

/* ---- log_sum_exp: of a, or of a + b, which is never there as a vector */

static void log_sum_exp_forward(rws_call *c)
{
    const size_t n = (size_t)c->n, dim = (size_t)c->in[0].dim;
    float       *top = RWS_NEW(c->arena, float, n);
    exponents    e = {.x = &c->in[0], .y = c->n_in > 1 ? &c->in[1] : NULL};
    softmax(e, n, dim, c->saved, c->saved, top, c->out);
    for (size_t r = 0; r < n; r++) {
        if (top[r] == -INFINITY) { /* all impossible */
            c->out[r] = 0;
            memset(c->saved + r * dim, 0, dim * sizeof(float));
        }
        c->out[r] += top[r];
    }
}

static void log_sum_exp_backward(rws_call *c)
{
    const size_t dim = (size_t)c->in[0].dim;
    for (int s = 0; s < c->n_in; s++) {
        if (!c->gin[s].data) continue;
        const bool fresh = rws_sink_take(&c->gin[s]);
        for (size_t r = 0; r < (size_t)c->n; r++)
            row_give(c->saved + r * dim, dim, c->gout[r], fresh, rws_sink_row(&c->gin[s], r, dim));
    }
}

/* ---- softmax_dot: the derivative of that along d: sum softmax(a) d, or sum softmax(a + b) d. Inputs a, d and perhaps b. */

static void softmax_dot_forward(rws_call *c)
{
    const size_t dim = (size_t)c->in[0].dim, n = (size_t)c->n;
    const float *d = rws_call_input(c, 1, (int)dim);
    exponents    e = {.x = &c->in[0], .y = c->n_in > 2 ? &c->in[2] : NULL};
    softmax(e, n, dim, c->saved, c->saved, RWS_NEW(c->arena, float, n), c->out);
    for (size_t r = 0; r < n; r++) c->out[r] = row_dot(c->saved + r * dim, d + r * dim, dim);
}

static void softmax_dot_backward(rws_call *c)
{
    const size_t dim = (size_t)c->in[0].dim;
    const float *d = rws_call_input(c, 1, (int)dim);
    for (int s = 0; s < c->n_in; s += 2) {
        if (!c->gin[s].data) continue;
        const bool fresh = rws_sink_take(&c->gin[s]);
        for (size_t r = 0; r < (size_t)c->n; r++)
            row_give_centred(c->saved + r * dim, d + r * dim, dim, c->out[r], c->gout[r], fresh,
                             rws_sink_row(&c->gin[s], r, dim));
    }
    bool   fresh;
    float *gd = rws_call_claim(c, 1, (int)dim, &fresh);
    for (size_t r = 0; gd && r < (size_t)c->n; r++) row_give(c->saved + r * dim, dim, c->gout[r], fresh, gd + r * dim);
    rws_call_close(c, 1, (int)dim, gd);
}

const rws_op rws_op_log_softmax = {.name = "log_softmax",
                                   .tangent = RWS_TANGENT_SOFTMAX,
                                   .saves = true,
                                   .forward = log_softmax_forward,
                                   .backward = log_softmax_backward};
const rws_op rws_op_log_softmax_tangent = {.name = "log_softmax_tangent",
                                           .saves = true,
                                           .forward = log_softmax_tangent_forward,
                                           .backward = log_softmax_tangent_backward};
const rws_op rws_op_log_sum_exp = {.name = "log_sum_exp",
                                   .tangent = RWS_TANGENT_LOG_SUM_EXP,
                                   .saves = true,
                                   .forward = log_sum_exp_forward,
                                   .backward = log_sum_exp_backward};
const rws_op rws_op_softmax_dot = {
    .name = "softmax_dot", .saves = true, .forward = softmax_dot_forward, .backward = softmax_dot_backward};
