/* softmax.c - normalised exponentials of rows: their logarithms, sums and means. Every op that needs a softmax saves it
 * for backward, and for a draw. */
#include "base/error.h"
#include "base/vecmath.h"
#include "tensor/softmax.h"
#include "tensor/tangent.h"

#include <string.h>

extern const rws_op rws_op_log_softmax_tangent, rws_op_softmax_dot; /* recorded by the rules of this file */

/* Lane i is x[r + i], a number of row r + i. */
static rws_v8 of_rows(const float *x, size_t r, size_t end)
{
    rws_v8 lanes;
    for (size_t i = 0; i < 8; i++) lanes[i] = x[rws__columns_row(r, i, end)];
    return lanes;
}

static void load_exponents(const rws_exponents *e, size_t r, size_t end, size_t dim, rws_v8 *to, rws_v8 *scratch)
{
    rws__columns_load(e->x, r, end, to);
    if (e->y) {
        rws_v8 times = (rws_v8){0} + 1;
        if (e->times) times = of_rows(e->times, r, end);
        rws__columns_load(e->y, r, end, scratch);
        for (size_t j = 0; j < dim; j++) to[j] += times * scratch[j];
    }
    if (e->t) {
        const rws_v8 scale = 1 / of_rows(e->t, r, end);
        for (size_t j = 0; j < dim; j++) to[j] *= scale;
    }
}

static rws_v8 largest(const rws_v8 *x, size_t dim)
{
    rws_v8 top[2] = {x[0], x[dim - 1]};
    for (size_t j = 0; j + 2 <= dim; j += 2)
        for (size_t k = 0; k < 2; k++) top[k] = rws__larger8(x[j + k], top[k]);
    return rws__larger8(top[0], top[1]);
}

/* x = e^(x - top), and shifted = x - top unless it is NULL. Returns the sum of the exponentials. */
static rws_v8 exponentiate(rws_v8 *x, size_t dim, rws_v8 top, rws_v8 *shifted)
{
    rws_v8 total = {0};
    for (size_t j = 0; j < dim; j++) {
        const rws_v8 y = x[j] - top, e = rws__exp8(y);
        if (shifted) shifted[j] = y;
        x[j] = e;
        total += e;
    }
    return total;
}

/* Every stage is done for all rows before the next begins, so that the latency of one row's sum or maximum is hidden by
 * the other rows. */
void rws__softmax(const rws_exponents *e, size_t first, size_t end, size_t dim, rws_softmax_rows to, rws_v8 *scratch)
{
    const size_t n = (end - first + 7) / 8; /* groups of eight rows */
    const rws_v8 one = (rws_v8){0} + 1, zero = {0};
    rws_v8      *x = scratch, *shifted = scratch + n * dim, *top = (rws_v8 *)to.top, *total = (rws_v8 *)to.log_total;
    for (size_t g = 0; g < n; g++) {
        load_exponents(e, first + 8 * g, end, dim, x + g * dim, shifted);
        top[g] = largest(x + g * dim, dim);
    }
    for (size_t g = 0; g < n; g++)
        total[g] = exponentiate(x + g * dim, dim, top[g], to.log_p ? shifted + g * dim : NULL);
    for (size_t g = 0; g < n; g++) {
        rws__columns_store(x + g * dim, 1 / total[g], zero, first + 8 * g, end, dim, to.p);
        total[g] = rws__log_total8(total[g]);
        if (to.log_p) rws__columns_store(shifted + g * dim, one, -total[g], first + 8 * g, end, dim, to.log_p);
    }
}

/* ---- log_softmax: of x, or of x / t; with k = 1, t is a temperature and must be above 0 */

static void log_softmax_forward(rws_call *c)
{
    const size_t        dim = (size_t)c->dim, n = (size_t)c->n;
    const rws_exponents e = {.x = &c->in[0], .t = c->n_in > 1 ? rws__call_input(c, 1, 1) : NULL};
    float               top[RWS_TILE], log_total[RWS_TILE];
    rws_v8             *scratch = rws__softmax_scratch(c->arena, dim);
    for (size_t first = 0, end; first < n; first = end) {
        end = first + rws__columns_tile(dim) < n ? first + rws__columns_tile(dim) : n;
        rws__softmax(&e, first, end, dim, (rws_softmax_rows){c->saved, c->out, top, log_total}, scratch);
    }
    c->refused = c->args.k && !rws__call_positive(c, 1);
}

static rws_status log_softmax_explain(const rws_call *c, size_t row, const char *site, rws_error *err)
{
    return c->args.k ? rws__explain_positive(c, row, 1, "temperature", site, err) : RWS_OK;
}

/* The gradient by y = x / t is h = g - p sum g, whose sum is 0. The gradient by t is -sum h y / t; as the sum of h is
 * 0, y may be replaced by the output, which differs from y by a constant. */
static void log_softmax_backward(rws_call *c)
{
    const size_t dim = (size_t)c->dim;
    const float *t = c->n_in > 1 ? rws__call_input(c, 1, 1) : NULL;
    float       *gt = t ? rws__call_open(c, 1, 1) : NULL;
    rws_sink    *gx = &c->gin[0];
    const bool   fresh = rws__sink_take(gx);
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const float *g = c->gout + r * dim, *p = c->saved + r * dim, *y = c->out + r * dim;
        const float  total = row_sum(g, dim), scale = t ? 1 / t[r] : 1;
        if (gx->data) row_give_rest(g, p, dim, total, scale, fresh, rws__sink_row(gx, r, dim));
        if (gt) gt[r] -= scale * (row_dot_where(g, y, dim) - total * row_dot_where(p, y, dim));
    }
    if (gt) rws__call_close(c, 1, 1, gt);
}

static rws_var log_softmax_rule(rws_tangent *t) /* (dx - sum p dx) / t; the temperature must not move */
{
    if (t->d[1].id) return RWS_NO_TANGENT;
    const rws_var in[] = {rws__tangent_saved(t), t->d[0], t->y, t->in[1]};
    return rws__tangent_record(t, &rws_op_log_softmax_tangent, (rws_op_args){0}, in, t->n_in + 2, t->dim);
}

/* ---- log_softmax_pick: the component of log softmax(x) that an index names; the other components are not computed */

static void log_softmax_pick_forward(rws_call *c)
{
    const size_t        dim = (size_t)c->in[0].dim, n = (size_t)c->n;
    const rws_exponents e = {.x = &c->in[0]};
    float               top[RWS_TILE], log_total[RWS_TILE];
    rws_v8             *scratch = rws__softmax_scratch(c->arena, dim);
    uint32_t           *at = RWS_NEW(c->arena, uint32_t, n);
    for (size_t first = 0, end; first < n; first = end) {
        end = first + rws__columns_tile(dim) < n ? first + rws__columns_tile(dim) : n;
        rws__softmax(&e, first, end, dim, (rws_softmax_rows){c->saved, NULL, top, log_total}, scratch);
        for (size_t r = first; r < end; r++) {
            const float index = rws__view_row(&c->in[1], r)[0];
            RWS_CHECK(index >= 0 && index < (float)dim);
            at[r] = (uint32_t)index;
            c->out[r] = rws__view_row(&c->in[0], r)[at[r]] - top[r - first] - log_total[r - first];
        }
    }
    c->places = at;
}

static void log_softmax_pick_backward(rws_call *c)
{
    const size_t dim = (size_t)c->in[0].dim;
    rws_sink    *gx = &c->gin[0];
    const bool   fresh = rws__sink_take(gx);
    for (size_t r = 0; r < (size_t)c->n && gx->data; r++) {
        float *to = rws__sink_row(gx, r, dim);
        row_give(c->saved + r * dim, dim, -c->gout[r], fresh, to);
        to[c->places[r]] += c->gout[r];
    }
}

/* ---- Derivatives along d. Inputs are p, d, then a, or a and b; p is the softmax of a, or of a + b, and is not
 * differentiated itself. softmax_dot is sum p d, the derivative of a log-sum-exp; its gradient by a is p (d - sum p d).
 * log_softmax_tangent is (d - sum p d) / t, the derivative of a log-softmax; t, the last input, does not move. */

static void log_softmax_tangent_forward(rws_call *c)
{
    const size_t dim = (size_t)c->dim;
    const float *t = c->n_in > 3 ? rws__call_input(c, 3, 1) : NULL;
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const float *d = rws__view_row(&c->in[1], r), mean = row_dot(rws__view_row(&c->in[0], r), d, dim);
        row_shift(d, dim, -mean, c->out + r * dim);
        if (t) row_scale(c->out + r * dim, dim, 1 / t[r], c->out + r * dim);
    }
}

static void log_softmax_tangent_backward(rws_call *c)
{
    const size_t dim = (size_t)c->dim;
    const float *t = c->n_in > 3 ? rws__call_input(c, 3, 1) : NULL;
    float       *gt = t ? rws__call_open(c, 3, 1) : NULL;
    rws_sink    *ga = &c->gin[2], *gd = &c->gin[1];
    const bool   fresh_a = rws__sink_take(ga), fresh_d = rws__sink_take(gd);
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const float *g = c->gout + r * dim, *p = rws__view_row(&c->in[0], r), *y = c->out + r * dim;
        const float  total = row_sum(g, dim), scale = t ? 1 / t[r] : 1;
        if (ga->data) row_give_product(p, y, dim, -total, fresh_a, rws__sink_row(ga, r, dim));
        if (gd->data) row_give_rest(g, p, dim, total, scale, fresh_d, rws__sink_row(gd, r, dim));
        if (gt) gt[r] -= scale * row_dot(g, y, dim);
    }
    if (gt) rws__call_close(c, 3, 1, gt);
}

static void softmax_dot_forward(rws_call *c)
{
    for (size_t r = 0; r < (size_t)c->n; r++)
        c->out[r] = row_dot(rws__view_row(&c->in[0], r), rws__view_row(&c->in[1], r), (size_t)c->in[0].dim);
}

static void softmax_dot_backward(rws_call *c)
{
    const size_t dim = (size_t)c->in[0].dim;
    for (int s = 1; s < c->n_in; s++) {
        if (!c->gin[s].data) continue;
        const bool fresh = rws__sink_take(&c->gin[s]);
        for (size_t r = 0; r < (size_t)c->n; r++) {
            const float *p = rws__view_row(&c->in[0], r), g = c->gout[r];
            float       *to = rws__sink_row(&c->gin[s], r, dim);
            if (row_gives_nothing(g, dim, fresh, to)) continue;
            if (s == 1) row_give(p, dim, g, fresh, to);
            else row_give_centred(p, rws__view_row(&c->in[1], r), dim, c->out[r], g, fresh, to);
        }
    }
}

/* ---- log_sum_exp of a, or of a + b, without a vector of the sums */

static void log_sum_exp_rows(rws_call *c, size_t first, size_t end, size_t dim, rws_v8 *scratch)
{
    const rws_exponents e = {.x = &c->in[0], .y = c->n_in > 1 ? &c->in[1] : NULL};
    float               top[RWS_TILE], log_total[RWS_TILE];
    rws__softmax(&e, first, end, dim, (rws_softmax_rows){c->saved, NULL, top, log_total}, scratch);
    for (size_t r = first; r < end; r++) {
        c->out[r] = top[r - first] + log_total[r - first];
        if (top[r - first] == -INFINITY) { /* all exponents are -inf */
            c->out[r] = -INFINITY;
            memset(c->saved + r * dim, 0, dim * sizeof(float));
        }
    }
}

/* If e^a and e^b are known, the sum of their products is the answer. A row where that sum is too small for a float is
 * computed from a and b. */
static void multiply_exponentials(rws_call *c, size_t dim)
{
    const size_t n = (size_t)c->n;
    const float  least = 1e-30f;
    float       *total = RWS_NEW(c->arena, float, n);
    for (size_t r = 0; r < n; r++) {
        const float *ea = rws__exp_row(&c->in[0], r), *eb = rws__exp_row(&c->in[1], r);
        float       *p = c->saved + r * dim;
        total[r] = row_dot(ea, eb, dim);
        row_give_product(ea, eb, dim, 1 / total[r], true, p);
    }
    RWS_EACH(n, c->out[i] = rws__log_total(total[i]));
    rws_v8 *scratch = rws__softmax_scratch(c->arena, dim);
    for (size_t r = 0; r < n; r++)
        if (!(total[r] > least)) log_sum_exp_rows(c, r, r + 1, dim, scratch);
}

static void log_sum_exp_forward(rws_call *c)
{
    const size_t n = (size_t)c->n, dim = (size_t)c->in[0].dim;
    if (c->n_in > 1 && c->in[0].exp && c->in[1].exp) {
        multiply_exponentials(c, dim);
        return;
    }
    rws_v8 *scratch = rws__softmax_scratch(c->arena, dim);
    for (size_t first = 0, end; first < n; first = end) {
        end = first + rws__columns_tile(dim) < n ? first + rws__columns_tile(dim) : n;
        log_sum_exp_rows(c, first, end, dim, scratch);
    }
}

static void log_sum_exp_backward(rws_call *c)
{
    const size_t dim = (size_t)c->in[0].dim;
    for (int s = 0; s < c->n_in; s++) {
        if (!c->gin[s].data) continue;
        const bool fresh = rws__sink_take(&c->gin[s]);
        for (size_t r = 0; r < (size_t)c->n; r++)
            row_give(c->saved + r * dim, dim, c->gout[r], fresh, rws__sink_row(&c->gin[s], r, dim));
    }
}

static rws_var log_sum_exp_tangent(rws_tangent *t) /* sum p (da + db) */
{
    const rws_var p = rws__tangent_saved(t), in[] = {p, rws__tangent_add(t, t->d[0], t->d[1]), t->in[0], t->in[1]};
    return rws__tangent_record(t, &rws_op_softmax_dot, (rws_op_args){0}, in, t->n_in + 2, 1);
}

const rws_op rws_op_log_softmax = {.name = "log_softmax",
                                   .tangent = log_softmax_rule,
                                   .saves = true,
                                   .saves_exp = true,
                                   .forward = log_softmax_forward,
                                   .backward = log_softmax_backward,
                                   .explain = log_softmax_explain};
const rws_op rws_op_log_softmax_pick = {.name = "log_softmax_pick",
                                        .saves = true,
                                        .forward = log_softmax_pick_forward,
                                        .backward = log_softmax_pick_backward};
const rws_op rws_op_log_softmax_tangent = {
    .name = "log_softmax_tangent", .forward = log_softmax_tangent_forward, .backward = log_softmax_tangent_backward};
const rws_op rws_op_log_sum_exp = {.name = "log_sum_exp",
                                   .tangent = log_sum_exp_tangent,
                                   .saves = true,
                                   .forward = log_sum_exp_forward,
                                   .backward = log_sum_exp_backward};
const rws_op rws_op_softmax_dot = {
    .name = "softmax_dot", .forward = softmax_dot_forward, .backward = softmax_dot_backward};
