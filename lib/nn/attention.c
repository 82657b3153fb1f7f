/* attention.c - a query looks at items and takes the mean of their values, weighted by how well their keys fit:
 *
 *     w_t = softmax over t of (q . k_t / sqrt(d)),     y = sum over t of w_t v_t
 *
 * The numbers of an item are divided among H heads, and every head has a softmax of its own. The layer has the
 * parameters of nn.MultiheadAttention: linear maps before (queries, keys, values) and after. Three ops do the work
 * between them; a row of `items` has T items of `stride` numbers each.
 */
#include "base/vecmath.h"
#include "nn/linear.h"
#include "nn/project.h"
#include "tensor/rows.h"
#include "tensor/tangent.h"

#include <stdio.h>

extern const rws_op rws_op_attention_scores, rws_op_attention_softmax, rws_op_attention_softmax_tangent,
    rws_op_attention_mix; /* below */

typedef struct {
    rws_layer  layer; /* n_in, n_out: of a query and of the result */
    int        heads, n_item;
    rws_param *in[3], *bias; /* the maps of queries, keys and values; one parameter if items are as long as queries */
    rws_linear_layer *out;
} attention;

const rws_layer_kind rws_attention_kind = {"attention",
                                           "several heads over a set or series, like nn.MultiheadAttention"};
const rws_layer_kind rws_dot_attention_kind = {"dot_attention", "softmax(q k / sqrt(d)) v, without parameters"};

/* PyTorch's xavier_uniform_: U(-a, a) with a = sqrt(6 / (rows + cols)). */
static rws_param *xavier(rws_setup *s, rws_group group, const char *name, const char *part, int rows, int cols)
{
    char full[160];
    snprintf(full, sizeof full, "%s.%s", name, part);
    rws_param  *p = rws_setup_param(s, group, full, rows, cols, RWS_UNIFORM);
    const float more = sqrtf(6 * (float)cols / (float)(rows + cols));
    for (size_t i = 0; p->value && i < rws__param_size(p); i++) p->value[i] *= more;
    p->transposed = (size_t)rows * (size_t)cols <= RWS_MAX_TRANSPOSED;
    return p;
}

rws_layer *rws_setup_attention(rws_setup *s, rws_group group, const char *name, int dim, int heads, int n_item)
{
    static const char *const names[] = {"q_proj_weight", "k_proj_weight", "v_proj_weight"};
    char                     full[160];
    attention               *l = rws__layer_new(s, &rws_attention_kind, sizeof *l, name, dim, dim);
    if (!name) name = "";
    if ((heads < 1 || dim % heads) && s->status == RWS_OK)
        s->status =
            rws_fail(&s->error, RWS_BAD_INPUT, "The attention \"%s\" has %d heads, which do not divide its %d numbers.",
                     name, heads, dim);
    l->heads = heads;
    l->n_item = n_item;
    if (n_item == dim) l->in[0] = l->in[1] = l->in[2] = xavier(s, group, name, "in_proj_weight", 3 * dim, dim);
    else
        for (int i = 0; i < 3; i++) l->in[i] = xavier(s, group, name, names[i], dim, i ? n_item : dim);
    snprintf(full, sizeof full, "%s.in_proj_bias", name);
    l->bias = rws_setup_param(s, group, full, 1, 3 * dim, RWS_ZERO);
    snprintf(full, sizeof full, "%s.out_proj", name);
    l->out = rws__linear_new(s, group, full, "weight", "bias", dim, dim, RWS_UNIFORM, dim);
    for (int i = 0; i < dim && l->out->b->value; i++) l->out->b->value[i] = 0; /* as PyTorch */
    return &l->layer;
}

/* Keys or values inside of `all`, which has items of `stride` numbers: they begin at number `first` of each item. */
typedef struct {
    rws_var all;
    int     stride, first;
} items_of;

/* Scores, softmax and mix of all heads; the result has n_out numbers. keys.first must be 0. */
static rws_var attend(rws_path *path, int heads, rws_var query, items_of keys, items_of values, int n_out, int n_items)
{
    const rws_op_args scores = {.k = heads,
                                .offset = keys.stride,
                                .s = 1 / sqrtf((float)(rws_dim(path, query) / heads))},
                      mix = {.k = heads, .offset = values.stride, .s = (float)values.first};
    const rws_var s =
        rws__record(path, &rws_op_attention_scores, scores, (rws_var[]){keys.all, query}, 2, heads * n_items);
    const rws_var w = rws__record(path, &rws_op_attention_softmax, (rws_op_args){.k = heads}, &s, 1, heads * n_items);
    return rws__record(path, &rws_op_attention_mix, mix, (rws_var[]){values.all, w}, 2, n_out);
}

rws_var rws_attention(rws_path *path, const rws_layer *l, rws_var query, const rws_var *items, int n)
{
    rws_var v;
    int     n_items = 0;
    if (rws__replayed(path, &v)) return v;
    const attention *own = rws__layer_expect(path, l, &rws_attention_kind);
    const int        dim = l->n_in;
    if (rws_dim(path, query) != dim)
        rws__path_mistake(path, "layer \"%s\" takes a query of %d numbers, not %d.", l->name, dim,
                          rws_dim(path, query));
    if (n < 0) rws__path_mistake(path, "layer \"%s\" was given %d items.", l->name, n);
    if (n == 0) v = rws_zeros(path, dim);
    else {
        const rws_var all = rws__items_join(path, l->name, items, n, own->n_item, &n_items);
        const rws_var q = rws__project(path, l->name, own->in[0], 0, own->bias, 0, dim, RWS_LINEAR, query);
        if (own->in[0] == own->in[1]) { /* keys and values are made by one product, side by side */
            const rws_var both = rws__project(path, l->name, own->in[1], dim, own->bias, dim, 2 * dim, RWS_LINEAR, all);
            v = attend(path, own->heads, q, (items_of){both, 2 * dim, 0}, (items_of){both, 2 * dim, dim}, dim, n_items);
        } else {
            const rws_var keys = rws__project(path, l->name, own->in[1], 0, own->bias, dim, dim, RWS_LINEAR, all),
                          values = rws__project(path, l->name, own->in[2], 0, own->bias, 2 * dim, dim, RWS_LINEAR, all);
            v = attend(path, own->heads, q, (items_of){keys, dim, 0}, (items_of){values, dim, 0}, dim, n_items);
        }
    }
    return rws__returns(path, rws__dense(path, own->out, RWS_LINEAR, &v, 1));
}

rws_var rws_dot_attention(rws_path *path, rws_var query, const rws_var *keys, const rws_var *values, int n)
{
    rws_var v;
    int     n_items, n_values;
    if (rws__replayed(path, &v)) return v;
    if (n < 1) rws__path_mistake(path, "rws_dot_attention takes at least one item, not %d.", n);
    const int dim = rws_dim(path, query);
    for (int i = 0; i < n; i++)
        if (rws_dim(path, keys[i]) % dim)
            rws__path_mistake(
                path, "rws_dot_attention takes keys of %d numbers, as its query has; %d numbers are no whole keys.",
                dim, rws_dim(path, keys[i]));
    const rws_var k = rws__items_join(path, "rws_dot_attention", keys, n, dim, &n_items),
                  u = rws__items_join(path, "rws_dot_attention", values, n, 1, &n_values);
    if (n_values % n_items)
        rws__path_mistake(path, "rws_dot_attention was given %d keys, but %d numbers as values.", n_items, n_values);
    const int size = n_values / n_items;
    return rws__returns(path, attend(path, 1, query, (items_of){k, dim, 0}, (items_of){u, size, 0}, size, n_items));
}

/* ---- attention_scores: s_ht = scale q_h . k_ht, H x T. Inputs: items with keys, the query (H x d). args.k is H,
 * args.offset the numbers of an item, args.s the scale. */

static void scores_forward(rws_call *c)
{
    const size_t stride = (size_t)c->args.offset, H = (size_t)c->args.k, T = (size_t)c->in[0].dim / stride,
                 d = (size_t)c->in[1].dim / H;
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const float *items = rws__view_row(&c->in[0], r), *q = rws__view_row(&c->in[1], r);
        float       *out = c->out + r * H * T;
        for (size_t h = 0; h < H; h++)
            for (size_t t = 0; t < T; t++)
                out[h * T + t] = c->args.s * row_dot(q + h * d, items + t * stride + h * d, d);
    }
}

static void scores_backward(rws_call *c)
{
    const size_t stride = (size_t)c->args.offset, H = (size_t)c->args.k, T = (size_t)c->in[0].dim / stride,
                 d = (size_t)c->in[1].dim / H;
    for (int s = 0; s < 2; s++)
        if (c->gin[s].data) rws__call_clear(c, s);
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const float *items = rws__view_row(&c->in[0], r), *q = rws__view_row(&c->in[1], r), *g = c->gout + r * H * T;
        float       *to_items = rws__call_sink_row(c, 0, r), *to_q = rws__call_sink_row(c, 1, r);
        for (size_t h = 0; h < H; h++)
            for (size_t t = 0; t < T; t++) {
                const float  by = c->args.s * g[h * T + t];
                const size_t at = t * stride + h * d;
                if (to_items) row_give(q + h * d, d, by, false, to_items + at);
                if (to_q) row_give(items + at, d, by, false, to_q + h * d);
            }
    }
}

/* The rule of an op that is linear in each of its two inputs: f(da, b) + f(a, db). */
static rws_var bilinear_tangent(rws_tangent *t)
{
    rws_var by[2] = {{0}};
    for (int s = 0; s < 2; s++) {
        const rws_var in[] = {s ? t->in[0] : t->d[0], s ? t->d[1] : t->in[1]};
        if (t->d[s].id) by[s] = rws__tangent_record(t, t->op, t->args, in, 2, t->dim);
    }
    return rws__tangent_add(t, by[0], by[1]);
}

/* ---- attention_softmax: the softmax of each of args.k equal parts; and its tangent y (dx - y . dx), of y and dx */

static void softmax_forward(rws_call *c)
{
    const size_t T = (size_t)(c->dim / c->args.k), n = (size_t)c->n * (size_t)c->args.k;
    const float *x = rws__call_input(c, 0, c->dim);
    for (size_t p = 0; p < n; p++) {
        const float *from = x + p * T;
        float       *y = c->out + p * T, top = from[0], total = 0;
        for (size_t t = 1; t < T; t++) top = from[t] > top ? from[t] : top;
#pragma omp simd reduction(+ : total)
        for (size_t t = 0; t < T; t++) {
            y[t] = rws__exp(from[t] - top);
            total += y[t];
        }
        row_scale(y, T, 1 / total, y);
    }
}

static void softmax_backward(rws_call *c)
{
    const size_t T = (size_t)(c->dim / c->args.k), n = (size_t)c->n * (size_t)c->args.k;
    bool         fresh;
    float       *g = rws__call_claim(c, 0, c->dim, &fresh);
    for (size_t p = 0; p < n && g; p++) {
        const float *y = c->out + p * T, *from = c->gout + p * T;
        row_give_centred(y, from, T, row_dot(y, from, T), 1, fresh, g + p * T);
    }
    rws__call_close(c, 0, c->dim, g);
}

static rws_var softmax_rule(rws_tangent *t)
{
    return rws__tangent_record(t, &rws_op_attention_softmax_tangent, t->args, (rws_var[]){t->y, t->d[0]}, 2, t->dim);
}

static void softmax_tangent_forward(rws_call *c)
{
    const size_t T = (size_t)(c->dim / c->args.k), n = (size_t)c->n * (size_t)c->args.k;
    const float *y = rws__call_input(c, 0, c->dim), *dx = rws__call_input(c, 1, c->dim);
    for (size_t p = 0; p < n; p++)
        row_give_centred(y + p * T, dx + p * T, T, row_dot(y + p * T, dx + p * T, T), 1, true, c->out + p * T);
}

/* grad dx = y (g - y . g), and grad y = g (dx - y . dx) - dx (y . g) */
static void softmax_tangent_backward(rws_call *c)
{
    const size_t T = (size_t)(c->dim / c->args.k), n = (size_t)c->n * (size_t)c->args.k;
    const float *y = rws__call_input(c, 0, c->dim), *dx = rws__call_input(c, 1, c->dim), *g = c->gout;
    float       *gy = rws__call_open(c, 0, c->dim), *gdx = rws__call_open(c, 1, c->dim);
    for (size_t p = 0; p < n; p++) {
        const size_t at = p * T;
        const float  by_g = row_dot(y + at, g + at, T), by_dx = row_dot(y + at, dx + at, T);
        if (gdx) row_give_centred(y + at, g + at, T, by_g, 1, false, gdx + at);
        for (size_t t = at; t < at + T && gy; t++) gy[t] += g[t] * (dx[t] - by_dx) - dx[t] * by_g;
    }
    rws__call_close(c, 0, c->dim, gy);
    rws__call_close(c, 1, c->dim, gdx);
}

/* ---- attention_mix: y_h = sum over t of w_ht v_ht. Inputs: items with values, weights (H x T). args.k is H,
 * args.offset the numbers of an item, args.s the number of an item where its value begins. */

static void mix_forward(rws_call *c)
{
    const size_t stride = (size_t)c->args.offset, H = (size_t)c->args.k, T = (size_t)c->in[0].dim / stride,
                 d = (size_t)c->dim / H, first = (size_t)c->args.s;
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const float *items = rws__view_row(&c->in[0], r) + first, *w = rws__view_row(&c->in[1], r);
        float       *out = c->out + r * H * d;
        for (size_t h = 0; h < H; h++)
            for (size_t t = 0; t < T; t++) row_give(items + t * stride + h * d, d, w[h * T + t], t == 0, out + h * d);
    }
}

static void mix_backward(rws_call *c)
{
    const size_t stride = (size_t)c->args.offset, H = (size_t)c->args.k, T = (size_t)c->in[0].dim / stride,
                 d = (size_t)c->dim / H, first = (size_t)c->args.s;
    for (int s = 0; s < 2; s++)
        if (c->gin[s].data) rws__call_clear(c, s);
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const float *items = rws__view_row(&c->in[0], r), *w = rws__view_row(&c->in[1], r), *g = c->gout + r * H * d;
        float       *to_items = rws__call_sink_row(c, 0, r), *to_w = rws__call_sink_row(c, 1, r);
        for (size_t h = 0; h < H; h++)
            for (size_t t = 0; t < T; t++) {
                const size_t at = first + t * stride + h * d;
                if (to_items) row_give(g + h * d, d, w[h * T + t], false, to_items + at);
                if (to_w) to_w[h * T + t] += row_dot(g + h * d, items + at, d);
            }
    }
}

const rws_op rws_op_attention_scores = {.name = "attention_scores",
                                        .forgets = true,
                                        .tangent = bilinear_tangent,
                                        .forward = scores_forward,
                                        .backward = scores_backward};
const rws_op rws_op_attention_softmax = {
    .name = "attention_softmax", .tangent = softmax_rule, .forward = softmax_forward, .backward = softmax_backward};
const rws_op rws_op_attention_softmax_tangent = {.name = "attention_softmax_tangent",
                                                 .forgets = true,
                                                 .forward = softmax_tangent_forward,
                                                 .backward = softmax_tangent_backward};
const rws_op rws_op_attention_mix = {.name = "attention_mix",
                                     .forgets = true,
                                     .tangent = bilinear_tangent,
                                     .forward = mix_forward,
                                     .backward = mix_backward};
