/* ops.c - arithmetic and shape: each op's forward and backward side by side. */
#include "base/error.h"
#include "base/vecmath.h"
#include "tensor/columns.h"
#include "tensor/tangent.h"

#include <string.h>

/* g = expression if the gradient is fresh (rws__call_claim), else g += expression. */
#define GIVE(fresh, n, g, expression)                  \
    do {                                               \
        if (fresh) RWS_EACH(n, (g)[i] = (expression)); \
        else RWS_EACH(n, (g)[i] += (expression));      \
    } while (0)

static size_t size(const rws_call *c)
{
    return (size_t)c->n * (size_t)c->dim;
}

/* ---- affine: s x + t */

static void affine_forward(rws_call *c)
{
    const float *x = rws__call_input(c, 0, c->dim);
    const float  s = c->args.s, t = c->args.t;
    RWS_EACH(size(c), c->out[i] = s * x[i] + t);
}

static void affine_backward(rws_call *c)
{
    bool        fresh;
    float      *g = rws__call_claim(c, 0, c->dim, &fresh);
    const float s = c->args.s;
    if (g) GIVE(fresh, size(c), g, s * c->gout[i]);
    rws__call_close(c, 0, c->dim, g);
}

/* ---- detach: a copy that no gradient passes */

static void detach_forward(rws_call *c)
{
    memcpy(c->out, rws__call_input(c, 0, c->dim), size(c) * sizeof(float));
}

/* ---- add, sub, mul, div: either side may be a single column */

static void add_forward(rws_call *c)
{
    const float *a = rws__call_input(c, 0, c->dim), *b = rws__call_input(c, 1, c->dim);
    RWS_EACH(size(c), c->out[i] = a[i] + b[i]);
}

static void add_backward(rws_call *c)
{
    for (int s = 0; s < 2; s++) {
        bool   fresh;
        float *g = rws__call_claim(c, s, c->dim, &fresh);
        if (g) GIVE(fresh, size(c), g, c->gout[i]);
        rws__call_close(c, s, c->dim, g);
    }
}

static void sub_forward(rws_call *c)
{
    const float *a = rws__call_input(c, 0, c->dim), *b = rws__call_input(c, 1, c->dim);
    RWS_EACH(size(c), c->out[i] = a[i] - b[i]);
}

static void sub_backward(rws_call *c)
{
    for (int s = 0; s < 2; s++) {
        bool        fresh;
        float      *g = rws__call_claim(c, s, c->dim, &fresh);
        const float sign = s ? -1 : 1;
        if (g) GIVE(fresh, size(c), g, sign * c->gout[i]);
        rws__call_close(c, s, c->dim, g);
    }
}

static void mul_forward(rws_call *c)
{
    const size_t dim = (size_t)c->dim;
    if ((c->in[0].row || c->in[1].row) && c->in[0].dim == c->dim &&
        c->in[1].dim == c->dim) { /* rows are read where they are */
        for (size_t r = 0; r < (size_t)c->n; r++)
            row_give_product(rws__view_row(&c->in[0], r), rws__view_row(&c->in[1], r), dim, 1, true, c->out + r * dim);
        return;
    }
    const float *a = rws__call_input(c, 0, c->dim), *b = rws__call_input(c, 1, c->dim);
    RWS_EACH(size(c), c->out[i] = a[i] * b[i]);
}

static void mul_backward(rws_call *c)
{
    for (int s = 0; s < 2; s++) {
        bool   fresh;
        float *g = rws__call_claim(c, s, c->dim, &fresh);
        if (!g) continue;
        const float *other = rws__call_input(c, 1 - s, c->dim);
        GIVE(fresh, size(c), g, rws__where(c->gout[i], other[i]) * c->gout[i]);
        rws__call_close(c, s, c->dim, g);
    }
}

static rws_var mul_tangent(rws_tangent *t) /* a db + b da */
{
    const rws_var b_da = rws__tangent_mul(t, t->d[0], t->in[1]), a_db = rws__tangent_mul(t, t->in[0], t->d[1]);
    return rws__tangent_add(t, a_db, b_da);
}

static void div_forward(rws_call *c)
{
    const float *a = rws__call_input(c, 0, c->dim), *b = rws__call_input(c, 1, c->dim);
    RWS_EACH(size(c), c->out[i] = a[i] / b[i]);
}

static void div_backward(rws_call *c)
{
    const float *b = rws__call_input(c, 1, c->dim);
    float       *ga = rws__call_open(c, 0, c->dim), *gb = rws__call_open(c, 1, c->dim);
    if (ga) RWS_EACH(size(c), ga[i] += rws__where(c->gout[i], c->gout[i] / b[i]));
    rws__call_close(c, 0, c->dim, ga);
    if (gb) RWS_EACH(size(c), gb[i] -= rws__where(c->gout[i], c->gout[i] * c->out[i] / b[i]));
    rws__call_close(c, 1, c->dim, gb);
}

static rws_var div_tangent(rws_tangent *t) /* (da - y db) / b */
{
    const rws_var y_db = rws__tangent_mul(t, t->y, t->d[1]),
                  top = rws__tangent_add(t, t->d[0], rws__tangent_scale(t, y_db, -1));
    return rws__tangent_record(t, &rws_op_div, (rws_op_args){0}, (rws_var[]){top, t->in[1]}, 2, t->dim);
}

/* ---- apply: y = f(x); and apply_tangent: f'(y) dx, the gradient of which needs f'' */

static void apply_forward(rws_call *c)
{
    rws__function_apply((rws_function)c->args.k, size(c), rws__call_input(c, 0, c->dim), c->out);
}

static void apply_backward(rws_call *c)
{
    bool   fresh;
    float *g = rws__call_claim(c, 0, c->dim, &fresh);
    if (!g) return;
    float *by_x = fresh ? g : RWS_NEW(c->arena, float, size(c));
    rws__function_slope((rws_function)c->args.k, size(c), c->out, c->gout, by_x);
    if (!fresh) RWS_EACH(size(c), g[i] += by_x[i]);
    rws__call_close(c, 0, c->dim, g);
}

static rws_var apply_rule(rws_tangent *t) /* f'(y) dx */
{
    return rws__tangent_record(t, &rws_op_apply_tangent, (rws_op_args){.k = t->args.k}, (rws_var[]){t->y, t->d[0]}, 2,
                               t->dim);
}

static void apply_tangent_forward(rws_call *c)
{
    const float *y = rws__call_input(c, 0, c->dim), *dx = rws__call_input(c, 1, c->dim);
    rws__function_slope((rws_function)c->args.k, size(c), y, dx, c->out);
}

static void apply_tangent_backward(rws_call *c)
{
    const float       *y = rws__call_input(c, 0, c->dim), *dx = rws__call_input(c, 1, c->dim);
    const rws_function f = (rws_function)c->args.k;
    bool               fresh_y, fresh_dx;
    float             *gy = rws__call_claim(c, 0, c->dim, &fresh_y), *gdx = rws__call_claim(c, 1, c->dim, &fresh_dx);
    float              by[RWS_TILE];
    for (size_t first = 0; first < size(c); first += RWS_TILE) {
        const size_t n = size(c) - first < RWS_TILE ? size(c) - first : RWS_TILE;
        if (gy) {
            rws__function_bend(f, n, y + first, c->gout + first, by);
            GIVE(fresh_y, n, gy + first, by[i] * rws__where(by[i], dx[first + i]));
        }
        if (gdx) {
            rws__function_slope(f, n, y + first, c->gout + first, by);
            GIVE(fresh_dx, n, gdx + first, by[i]);
        }
    }
    rws__call_close(c, 0, c->dim, gy);
    rws__call_close(c, 1, c->dim, gdx);
}

/* ---- dot: the sum of a b, without a vector of the products */

static void dot_forward(rws_call *c)
{
    for (size_t r = 0; r < (size_t)c->n; r++)
        c->out[r] = row_dot(rws__view_row(&c->in[0], r), rws__view_row(&c->in[1], r), (size_t)c->in[0].dim);
}

static void dot_backward(rws_call *c)
{
    const size_t dim = (size_t)c->in[0].dim;
    for (int s = 0; s < 2; s++) {
        if (!c->gin[s].data) continue;
        const bool fresh = rws__sink_take(&c->gin[s]);
        for (size_t r = 0; r < (size_t)c->n; r++) {
            float *to = rws__sink_row(&c->gin[s], r, dim);
            if (row_gives_nothing(c->gout[r], dim, fresh, to)) continue;
            row_give(rws__view_row(&c->in[1 - s], r), dim, c->gout[r], fresh, to);
        }
    }
}

static rws_var dot(rws_tangent *t, rws_var a, rws_var b)
{
    if (!a.id || !b.id) return (rws_var){0};
    return rws__tangent_record(t, &rws_op_dot, (rws_op_args){0}, (rws_var[]){a, b}, 2, 1);
}

static rws_var dot_tangent(rws_tangent *t) /* sum of a db + b da */
{
    const rws_var b_da = dot(t, t->d[0], t->in[1]), a_db = dot(t, t->in[0], t->d[1]);
    return rws__tangent_add(t, a_db, b_da);
}

/* ---- exp_dot: the sum of e^a b, or of e^a b c if there is a third input. Saves e^a b. */

static void exp_dot_forward(rws_call *c)
{
    const size_t dim = (size_t)c->in[0].dim, n = (size_t)c->n;
    const float *e = c->saved;
    if (c->in[0].exp && !c->in[0].row) {
        e = c->in[0].exp;
    } else {
        const float *a = rws__call_input(c, 0, (int)dim);
        RWS_EACH(n * dim, c->saved[i] = rws__exp(a[i]));
    }
    for (size_t r = 0; r < n; r++) {
        float *kept = c->saved + r * dim;
        row_give_product(e + r * dim, rws__view_row(&c->in[1], r), dim, 1, true, kept);
        c->out[r] = c->n_in > 2 ? row_dot(kept, rws__view_row(&c->in[2], r), dim) : row_sum(kept, dim);
    }
}

static void exp_dot_backward(rws_call *c)
{
    const size_t dim = (size_t)c->in[0].dim, n = (size_t)c->n;
    float       *e = NULL;
    bool         fresh[3];
    for (int s = 0; s < c->n_in; s++) fresh[s] = rws__sink_take(&c->gin[s]);
    if (c->gin[1].data) { /* only this gradient needs e^a */
        const float *a = rws__call_input(c, 0, (int)dim);
        e = RWS_NEW(c->arena, float, n *dim);
        RWS_EACH(n * dim, e[i] = rws__exp(a[i]));
    }
    for (size_t r = 0; r < n; r++) {
        const float *kept = c->saved + r * dim, *by = c->n_in > 2 ? rws__view_row(&c->in[2], r) : NULL, g = c->gout[r];
        float       *to[3] = {0};
        for (int s = 0; s < c->n_in; s++)
            if (c->gin[s].data) {
                float *at = rws__sink_row(&c->gin[s], r, dim);
                to[s] = row_gives_nothing(g, dim, fresh[s], at) ? NULL : at;
            }
        if (to[0] && by) row_give_product(kept, by, dim, g, fresh[0], to[0]);
        if (to[0] && !by) row_give(kept, dim, g, fresh[0], to[0]);
        if (to[1] && by) row_give_product(e + r * dim, by, dim, g, fresh[1], to[1]);
        if (to[1] && !by) row_give(e + r * dim, dim, g, fresh[1], to[1]);
        if (to[2]) row_give(kept, dim, g, fresh[2], to[2]);
    }
}

static rws_var exp_dot(rws_tangent *t, rws_var a, rws_var b, rws_var c)
{
    return rws__tangent_record(t, &rws_op_exp_dot, (rws_op_args){0}, (rws_var[]){a, b, c}, c.id ? 3 : 2, 1);
}

static rws_var exp_dot_tangent(rws_tangent *t) /* sum of e^a b da + e^a db */
{
    rws_var by_a = {0}, by_b = {0};
    if (t->n_in > 2) return RWS_NO_TANGENT;
    if (t->d[1].id) by_b = exp_dot(t, t->in[0], t->d[1], (rws_var){0});
    if (t->d[0].id) by_a = exp_dot(t, t->in[0], t->in[1], t->d[0]);
    return rws__tangent_add(t, by_a, by_b);
}

/* ---- clip: x, but not below s and not above t; outside of these no gradient passes */

static void clip_forward(rws_call *c)
{
    const float *x = rws__call_input(c, 0, c->dim), low = c->args.s, high = c->args.t;
    RWS_EACH(size(c), float y = x[i] < low ? low : x[i]; c->out[i] = y > high ? high : y);
}

static void clip_backward(rws_call *c)
{
    const float *x = rws__call_input(c, 0, c->dim), low = c->args.s, high = c->args.t;
    bool         fresh;
    float       *g = rws__call_claim(c, 0, c->dim, &fresh);
    if (g) GIVE(fresh, size(c), g, x[i] >= low && x[i] <= high ? c->gout[i] : 0);
    rws__call_close(c, 0, c->dim, g);
}

/* ---- ops without a gradient: greater, argmax, onehot */

static void greater_forward(rws_call *c)
{
    const float *a = rws__call_input(c, 0, c->dim), *b = rws__call_input(c, 1, c->dim);
    RWS_EACH(size(c), c->out[i] = a[i] > b[i] ? 1 : 0);
}

static void argmax_forward(rws_call *c)
{
    const size_t dim = (size_t)c->in[0].dim, n = (size_t)c->n;
    rws_v8      *x = RWS_NEW(c->arena, rws_v8, dim);
    for (size_t r = 0; r < n; r += 8) {
        rws_v8 top = (rws_v8){0} - INFINITY, at = {0};
        rws__columns_load(&c->in[0], r, n, x);
        for (size_t j = 0; j < dim; j++) { /* the first of equals */
            const rws_i8 more = x[j] > top, place = (rws_i8)((rws_v8){0} + (float)j);
            at = (rws_v8)(((rws_i8)at & ~more) | (place & more));
            top = rws__larger8(x[j], top);
        }
        for (size_t i = 0; i < 8 && r + i < n; i++) c->out[r + i] = at[i];
    }
}

static void onehot_forward(rws_call *c)
{
    const float *index = rws__call_input(c, 0, 1);
    memset(c->out, 0, size(c) * sizeof(float));
    for (int r = 0; r < c->n; r++) {
        const uint32_t at = rws__index(index[r], (uint32_t)c->dim);
        if (at < (uint32_t)c->dim) c->out[(size_t)r * (size_t)c->dim + at] = 1;
        else c->refused = true;
    }
}

static rws_status onehot_explain(const rws_call *c, size_t row, const char *site, rws_error *err)
{
    return rws__explain_index(c, row, 0, (uint32_t)c->dim, "rws_onehot", site, err);
}

/* ---- concat, slice, sum */

static void concat_forward(rws_call *c)
{
    size_t at = 0;
    for (int s = 0; s < c->n_in; s++) {
        const size_t dim = (size_t)c->in[s].dim;
        const float *x = rws__call_input(c, s, (int)dim);
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
        float       *g = rws__call_open(c, s, (int)dim);
        if (g)
            for (size_t r = 0; r < (size_t)c->n; r++)
                for (size_t j = 0; j < dim; j++) g[r * dim + j] += c->gout[r * (size_t)c->dim + at + j];
        rws__call_close(c, s, (int)dim, g);
        at += dim;
    }
}

static void slice_forward(rws_call *c)
{
    const size_t dim = (size_t)c->in[0].dim;
    const float *x = rws__call_input(c, 0, (int)dim) + c->args.k;
    for (size_t r = 0; r < (size_t)c->n; r++)
        memcpy(c->out + r * (size_t)c->dim, x + r * dim, (size_t)c->dim * sizeof(float));
}

static void slice_backward(rws_call *c)
{
    const size_t dim = (size_t)c->in[0].dim, first = (size_t)c->args.k;
    float       *g = rws__call_open(c, 0, (int)dim);
    if (!g) return;
    for (size_t r = 0; r < (size_t)c->n; r++)
        for (size_t j = 0; j < (size_t)c->dim; j++) g[r * dim + first + j] += c->gout[r * (size_t)c->dim + j];
    rws__call_close(c, 0, (int)dim, g);
}

static void sum_forward(rws_call *c)
{
    const size_t dim = (size_t)c->in[0].dim;
    const float *x = rws__call_input(c, 0, (int)dim);
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
    float       *g = rws__call_open(c, 0, (int)dim);
    if (!g) return;
    for (size_t r = 0; r < (size_t)c->n; r++)
        for (size_t j = 0; j < dim; j++) g[r * dim + j] += c->gout[r];
    rws__call_close(c, 0, (int)dim, g);
}

/* ---- pick: a[index]. Rows of a are not gathered. Forward leaves the indices for backward. */

static void pick_forward(rws_call *c)
{
    const rws_view *a = &c->in[0];
    const uint32_t  dim = (uint32_t)a->dim, n = (uint32_t)c->n;
    const float    *index = rws__call_input(c, 1, 1);
    uint32_t       *at = RWS_NEW(c->arena, uint32_t, n), outside = 0;
#pragma omp simd reduction(| : outside)
    for (uint32_t r = 0; r < n; r++) {
        at[r] = (uint32_t)(int)index[r];
        outside |= (at[r] >= dim) | ((float)(int)at[r] != index[r]);
    }
    for (uint32_t r = 0; r < n && outside; r++) at[r] = rws__index(index[r], dim) % dim;
    c->refused = outside;
    for (uint32_t r = 0; r < n; r++) c->out[r] = a->data[(a->row ? a->row[r] : r) * (size_t)dim + at[r]];
    c->places = at;
}

static void pick_backward(rws_call *c)
{
    if (!c->gin[0].data) return;
    rws__call_clear(c, 0);
    const rws_sink *g = &c->gin[0];
    const size_t    dim = (size_t)c->in[0].dim;
    const uint32_t *at = c->places, n = (uint32_t)c->n;
    for (uint32_t r = 0; r < n; r++) g->data[(g->row ? g->row[r] : r) * dim + at[r]] += c->gout[r];
}

static rws_status pick_explain(const rws_call *c, size_t row, const char *site, rws_error *err)
{
    return rws__explain_index(c, row, 1, (uint32_t)c->in[0].dim, "rws_pick", site, err);
}

static rws_var pick_tangent(rws_tangent *t)
{
    return rws__tangent_record(t, &rws_op_pick, (rws_op_args){0}, (rws_var[]){t->d[0], t->in[1]}, 2, 1);
}

const rws_op rws_op_affine = {
    .name = "affine", .tangent = rws__tangent_linear, .forward = affine_forward, .backward = affine_backward};
const rws_op rws_op_detach = {.name = "detach", .constant = true, .saves_exp = true, .forward = detach_forward};
const rws_op rws_op_add = {
    .name = "add", .tangent = rws__tangent_linear, .forward = add_forward, .backward = add_backward};
const rws_op rws_op_sub = {
    .name = "sub", .tangent = rws__tangent_linear, .forward = sub_forward, .backward = sub_backward};
const rws_op rws_op_mul = {.name = "mul", .tangent = mul_tangent, .forward = mul_forward, .backward = mul_backward};
const rws_op rws_op_div = {.name = "div", .tangent = div_tangent, .forward = div_forward, .backward = div_backward};
const rws_op rws_op_apply = {
    .name = "apply", .tangent = apply_rule, .forward = apply_forward, .backward = apply_backward};
const rws_op rws_op_apply_tangent = {
    .name = "apply_tangent", .forward = apply_tangent_forward, .backward = apply_tangent_backward};
const rws_op rws_op_clip = {.name = "clip", .forgets = true, .forward = clip_forward, .backward = clip_backward};
const rws_op rws_op_dot = {.name = "dot", .tangent = dot_tangent, .forward = dot_forward, .backward = dot_backward};
const rws_op rws_op_exp_dot = {.name = "exp_dot",
                               .tangent = exp_dot_tangent,
                               .saves = true,
                               .forward = exp_dot_forward,
                               .backward = exp_dot_backward};
const rws_op rws_op_greater = {
    .name = "greater", .constant = true, .jumps = 3, .binary = true, .forward = greater_forward};
const rws_op rws_op_argmax = {.name = "argmax", .constant = true, .jumps = 1, .forward = argmax_forward};
const rws_op rws_op_onehot = {.name = "onehot", .constant = true, .forward = onehot_forward, .explain = onehot_explain};
const rws_op rws_op_concat = {
    .name = "concat", .tangent = rws__tangent_linear, .forward = concat_forward, .backward = concat_backward};
const rws_op rws_op_slice = {
    .name = "slice", .tangent = rws__tangent_linear, .forward = slice_forward, .backward = slice_backward};
const rws_op rws_op_sum = {
    .name = "sum", .tangent = rws__tangent_linear, .forward = sum_forward, .backward = sum_backward};
const rws_op rws_op_pick = {.name = "pick",
                            .tangent = pick_tangent,
                            .forward = pick_forward,
                            .backward = pick_backward,
                            .explain = pick_explain};
