/* choose.c - the smaller and the larger of two values, one of two by a mask, powers, running sums, sums of many values, and a row of a matrix
 * that an index names. */
#include "base/error.h"
#include "tensor/rows.h"
#include "tensor/tangent.h"

#include <string.h>

static size_t size(const rws_call *c)
{
    return (size_t)c->n * (size_t)c->dim;
}

/* ---- min and max: either side may be a single column. Equal numbers give their gradient to the first. A NaN on either
 * side gives a NaN. */

static void min_forward(rws_call *c)
{
    const float *a = rws__call_input(c, 0, c->dim), *b = rws__call_input(c, 1, c->dim);
    RWS_EACH(size(c), c->out[i] = a[i] <= b[i] || a[i] != a[i] ? a[i] : b[i]);
}

static void max_forward(rws_call *c)
{
    const float *a = rws__call_input(c, 0, c->dim), *b = rws__call_input(c, 1, c->dim);
    RWS_EACH(size(c), c->out[i] = a[i] >= b[i] || a[i] != a[i] ? a[i] : b[i]);
}

/* The output is the number of the first input or of the second; so backward compares with it. */
static void choice_backward(rws_call *c)
{
    const float *a = rws__call_input(c, 0, c->dim);
    float       *ga = rws__call_open(c, 0, c->dim), *gb = rws__call_open(c, 1, c->dim);
    if (ga) RWS_EACH(size(c), ga[i] += a[i] == c->out[i] ? c->gout[i] : 0);
    if (gb) RWS_EACH(size(c), gb[i] += a[i] == c->out[i] ? 0 : c->gout[i]);
    rws__call_close(c, 0, c->dim, ga);
    rws__call_close(c, 1, c->dim, gb);
}

/* da where the first input was chosen, else db: db + [first] (da - db). For max, [first] is a >= b, that is 1 - [b >
 * a].
 */
static rws_var choice_tangent(rws_tangent *t, bool max)
{
    const rws_var sides[] = {max ? t->in[1] : t->in[0], max ? t->in[0] : t->in[1]};
    const rws_var second = rws__tangent_record(t, &rws_op_greater, (rws_op_args){0}, sides, 2, t->dim);
    const rws_var first = rws__tangent_record(t, &rws_op_affine, (rws_op_args){.s = -1, .t = 1}, &second, 1, t->dim);
    const rws_var da = rws__tangent_mul(t, first, t->d[0]), db = rws__tangent_mul(t, second, t->d[1]);
    return rws__tangent_add(t, da, db);
}

static rws_var min_tangent(rws_tangent *t)
{
    return choice_tangent(t, false);
}

static rws_var max_tangent(rws_tangent *t)
{
    return choice_tangent(t, true);
}

/* ---- where: the second input where the first is above 0, else the third; each may be a single column. The side that is not
 * taken gets no gradient, whatever its value is. */

static void where_forward(rws_call *c)
{
    const float *mask = rws__call_input(c, 0, c->dim), *a = rws__call_input(c, 1, c->dim),
                *b = rws__call_input(c, 2, c->dim);
    RWS_EACH(size(c), c->out[i] = mask[i] > 0 ? a[i] : mask[i] <= 0 ? b[i] : mask[i]); /* a NaN stays a NaN */
}

static void where_backward(rws_call *c)
{
    const float *mask = rws__call_input(c, 0, c->dim);
    float       *ga = rws__call_open(c, 1, c->dim), *gb = rws__call_open(c, 2, c->dim);
    rws__call_clear(c, 0);
    if (ga) RWS_EACH(size(c), ga[i] += mask[i] > 0 ? c->gout[i] : 0);
    if (gb) RWS_EACH(size(c), gb[i] += mask[i] > 0 ? 0 : c->gout[i]);
    rws__call_close(c, 1, c->dim, ga);
    rws__call_close(c, 2, c->dim, gb);
}

static rws_var where_tangent(rws_tangent *t)
{
    rws_var in[] = {t->in[0], t->d[1], t->d[2]};
    if (!in[1].id && !in[2].id) return (rws_var){0};
    for (int s = 1; s < 3; s++)
        if (!in[s].id) in[s] = rws__tangent_zeros(t, rws__tangent_dim(t, t->in[s]));
    return rws__tangent_record(t, t->op, (rws_op_args){0}, in, 3, t->dim);
}

/* ---- power: a^b, either side may be a single column. The gradient by b counts a^b log a as 0 where a is 0. */

static void power_forward(rws_call *c)
{
    const float *a = rws__call_input(c, 0, c->dim), *b = rws__call_input(c, 1, c->dim);
    RWS_EACH(size(c), c->out[i] = powf(a[i], b[i]));
}

static void power_backward(rws_call *c)
{
    const float *a = rws__call_input(c, 0, c->dim), *b = rws__call_input(c, 1, c->dim);
    float       *ga = rws__call_open(c, 0, c->dim), *gb = rws__call_open(c, 1, c->dim);
    for (size_t i = 0; ga && i < size(c); i++)
        ga[i] += b[i] == 0 || c->gout[i] == 0 ? 0 : c->gout[i] * b[i] * powf(a[i], b[i] - 1);
    for (size_t i = 0; gb && i < size(c); i++)
        gb[i] += (a[i] == 0 && b[i] >= 0) || c->gout[i] == 0 ? 0 : c->gout[i] * c->out[i] * logf(a[i]);
    rws__call_close(c, 0, c->dim, ga);
    rws__call_close(c, 1, c->dim, gb);
}

static rws_var power_tangent(rws_tangent *t) /* b a^(b-1) da + a^b log a db */
{
    rws_var by_a = {0}, by_b = {0};
    if (t->d[0].id) {
        const int     n = rws__tangent_dim(t, t->in[1]);
        const rws_var less = rws__tangent_record(t, &rws_op_affine, (rws_op_args){.s = 1, .t = -1}, &t->in[1], 1, n);
        const rws_var power = rws__tangent_record(t, t->op, (rws_op_args){0}, (rws_var[]){t->in[0], less}, 2, t->dim);
        by_a = rws__tangent_mul(t, rws__tangent_mul(t, power, t->in[1]), t->d[0]);
    }
    if (t->d[1].id) {
        const int     n = rws__tangent_dim(t, t->in[0]);
        const rws_var log_a = rws__tangent_record(t, &rws_op_apply, (rws_op_args){.k = RWS_LOG}, &t->in[0], 1, n);
        by_b = rws__tangent_mul(t, rws__tangent_mul(t, t->y, log_a), t->d[1]);
    }
    return rws__tangent_add(t, by_a, by_b);
}

/* ---- cumulative: y_j = x_0 + … + x_j */

static void cumulative_forward(rws_call *c)
{
    const size_t dim = (size_t)c->dim;
    const float *x = rws__call_input(c, 0, c->dim);
    for (size_t r = 0; r < (size_t)c->n; r++) {
        double total = 0;
        for (size_t j = r * dim; j < (r + 1) * dim; j++) c->out[j] = (float)(total += (double)x[j]);
    }
}

static void cumulative_backward(rws_call *c)
{
    const size_t dim = (size_t)c->dim;
    float       *g = rws__call_open(c, 0, c->dim);
    for (size_t r = 0; g && r < (size_t)c->n; r++) {
        double total = 0;
        for (size_t j = (r + 1) * dim; j-- > r * dim;) g[j] += (float)(total += (double)c->gout[j]);
    }
    rws__call_close(c, 0, c->dim, g);
}

/* ---- total: the sum of all inputs, component by component; each has as many columns as the output, or one */

static void total_forward(rws_call *c)
{
    memset(c->out, 0, size(c) * sizeof(float));
    for (int s = 0; s < c->n_in; s++) {
        const float *x = rws__call_input(c, s, c->dim);
        RWS_EACH(size(c), c->out[i] += x[i]);
    }
}

static void total_backward(rws_call *c)
{
    for (int s = 0; s < c->n_in; s++) {
        float *g = rws__call_open(c, s, c->dim);
        if (g) RWS_EACH(size(c), g[i] += c->gout[i]);
        rws__call_close(c, s, c->dim, g);
    }
}

/* ---- row: dim components of a, from dim * index on. Rows of a are not gathered. */

static void row_forward(rws_call *c)
{
    const size_t   dim = (size_t)c->dim;
    const uint32_t n_rows = (uint32_t)(c->in[0].dim / c->dim), n = (uint32_t)c->n;
    uint32_t      *at = RWS_NEW(c->arena, uint32_t, n);
    for (uint32_t r = 0; r < n; r++) {
        at[r] = rws__index(rws__view_row(&c->in[1], r)[0], n_rows);
        if (at[r] == n_rows) c->refused = true, at[r] = 0;
        memcpy(c->out + r * dim, rws__view_row(&c->in[0], r) + at[r] * dim, dim * sizeof(float));
    }
    c->places = at;
}

static void row_backward(rws_call *c)
{
    const size_t dim = (size_t)c->dim;
    if (!c->gin[0].data) return;
    rws__call_clear(c, 0);
    for (size_t r = 0; r < (size_t)c->n; r++) {
        float       *to = rws__sink_row(&c->gin[0], r, (size_t)c->in[0].dim) + c->places[r] * dim;
        const float *g = c->gout + r * dim;
        for (size_t j = 0; j < dim; j++) to[j] += g[j];
    }
}

static rws_status row_explain(const rws_call *c, size_t row, const char *site, rws_error *err)
{
    return rws__explain_index(c, row, 1, (uint32_t)(c->in[0].dim / c->dim), "rws_row", site, err);
}

static rws_var row_tangent(rws_tangent *t)
{
    if (!t->d[0].id) return (rws_var){0};
    return rws__tangent_record(t, t->op, (rws_op_args){0}, (rws_var[]){t->d[0], t->in[1]}, 2, t->dim);
}

const rws_op rws_op_min = {.name = "min", .tangent = min_tangent, .forward = min_forward, .backward = choice_backward};
const rws_op rws_op_max = {.name = "max", .tangent = max_tangent, .forward = max_forward, .backward = choice_backward};
const rws_op rws_op_where = {
    .name = "where", .jumps = 1, .tangent = where_tangent, .forward = where_forward, .backward = where_backward};
const rws_op rws_op_power = {
    .name = "power", .tangent = power_tangent, .forward = power_forward, .backward = power_backward};
const rws_op rws_op_cumulative = {.name = "cumulative",
                                  .forgets = true,
                                  .tangent = rws__tangent_linear,
                                  .forward = cumulative_forward,
                                  .backward = cumulative_backward};
const rws_op rws_op_total = {.name = "total",
                             .forgets = true,
                             .tangent = rws__tangent_linear,
                             .forward = total_forward,
                             .backward = total_backward};
const rws_op rws_op_row = {
    .name = "row", .tangent = row_tangent, .forward = row_forward, .backward = row_backward, .explain = row_explain};
