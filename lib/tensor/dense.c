/* dense.c - y = f(x W^T + addends + b): the product that networks are made of, and its forms for an x of zeros and ones
 * and for a one-hot x.
 *
 * Input 0 is x; it is multiplied by the columns of W from `offset` on. Inputs 1 … are addends: parts of the same sum
 * that were computed elsewhere, at the rows where they vary. x may be absent (in[0].data NULL).
 */
#include "base/error.h"
#include "tensor/bits.h"
#include "tensor/gemm.h"
#include "tensor/products.h"
#include "tensor/rows.h"
#include "tensor/tangent.h"

#include <string.h>

#define LIGHT 4096 /* a product with at most so many weights takes no longer than the steps around it */
#define ROWS 64    /* rows that then go through all steps together, while they are in the first cache */

/* Rows `first` to the returned row - 1 go through all steps together. */
static size_t part_end(const rws_call *c, size_t first)
{
    const size_t n = (size_t)c->n;
    return (size_t)c->in[0].dim * (size_t)c->dim > LIGHT || n - first < ROWS ? n : first + ROWS;
}

/* out = bias + addends, to which the product is then added. */
static void add_up(const rws_call *c, size_t first, size_t end)
{
    const size_t dim = (size_t)c->dim;
    for (size_t r = first; r < end; r++) {
        float *to = c->out + r * dim;
        int    s = 1;
        if (c->b && c->n_in > 1) row_add(c->b, rws__view_row(&c->in[s++], r), dim, to);
        else if (c->b) row_scale(c->b, dim, 1, to);
        else if (c->n_in > 1) row_scale(rws__view_row(&c->in[s++], r), dim, 1, to);
        else memset(to, 0, dim * sizeof *to);
        for (; s < c->n_in; s++) row_add(to, rws__view_row(&c->in[s], r), dim, to);
    }
}

static void dense_forward(rws_call *c)
{
    const size_t dim = (size_t)c->dim, n = (size_t)c->n, offset = (size_t)c->args.offset;
    const bool   has_x = c->in[0].data, several = c->n_in > 1 || !has_x;
    const int    n_x = c->in[0].dim, step = several ? c->dim : 0;
    if (has_x) c->kept = rws__call_input(c, 0, n_x);
    for (size_t first = 0, end; first < n; first = end) {
        end = part_end(c, first);
        float       *out = c->out + first * dim;
        const float *from = several ? out : c->b, *x = has_x ? c->kept + first * (size_t)n_x : NULL;
        const int    rows = (int)(end - first);
        if (several) add_up(c, first, end);
        if (has_x && c->wt)
            rws__gemm_nn(rows, c->dim, n_x, x, n_x, c->wt + offset * dim, c->dim, from, step, out, c->dim);
        else if (has_x)
            rws__gemm_nt(rows, c->dim, n_x, x, n_x, c->w + offset, c->args.w->cols, from, step, out, c->dim);
        if (c->args.k != RWS_LINEAR) rws__function_apply((rws_function)c->args.k, (end - first) * dim, out, out);
    }
}

static void dense_backward(rws_call *c)
{
    const size_t dim = (size_t)c->dim, n = (size_t)c->n;
    const int    n_x = c->in[0].dim;
    const bool   linear = c->args.k == RWS_LINEAR;
    float       *before = linear ? NULL : RWS_NEW(c->arena, float, n *dim); /* the gradient before the function */
    const float *dy = linear ? c->gout : before;
    bool         fresh = false;
    float       *gx = c->in[0].data ? rws__call_claim(c, 0, n_x, &fresh) : NULL;
    for (size_t first = 0, end; first < n; first = end) {
        end = part_end(c, first);
        const size_t at = first * dim, size = (end - first) * dim;
        float       *to = gx ? gx + first * (size_t)n_x : NULL;
        if (!linear) rws__function_slope((rws_function)c->args.k, size, c->out + at, c->gout + at, before + at);
        if (c->gb) rws__products_columns(NULL, dy + at, end - first, dim, c->gb);
        if (gx)
            rws__gemm_nn((int)(end - first), n_x, c->dim, dy + at, c->dim, c->w + c->args.offset, c->args.w->cols,
                         fresh ? NULL : to, n_x, to, n_x);
    }
    if (c->in[0].data) rws__call_close(c, 0, n_x, gx);
    for (int s = 1; s < c->n_in; s++) {
        if (!c->gin[s].data) continue;
        const bool new = rws__sink_take(&c->gin[s]);
        for (size_t r = 0; r < n; r++) row_give(dy + r * dim, dim, 1, new, rws__sink_row(&c->gin[s], r, dim));
    }
    if (c->in[0].data && c->gw)
        rws__products_add(c->products, (rws_product){c->args.w, c->args.offset, n_x, c->n, c->kept, dy, .bits = false});
}

/* f'(y) (dx W^T + derivatives of the addends + x dW^T + db): W and b may move as well as x and the addends. */
static rws_var dense_tangent(rws_tangent *t)
{
    rws_op_args args = {.w = t->args.w, .offset = t->args.offset, .k = RWS_LINEAR};
    rws_var     in[RWS_OP_INPUTS] = {t->d[0]};
    int         n_in = 1;
    for (int s = 1; s < t->n_in; s++)
        if (t->d[s].id) in[n_in++] = t->d[s];
    if (t->weight_moves) {
        const rws_op_args moving = {
            .w = t->args.w, .b = t->args.b, .offset = t->args.offset, .k = RWS_LINEAR, .tangent = true};
        const rws_var by_w = rws__tangent_record(t, &rws_op_dense, moving, t->in, 1, t->dim);
        if (n_in < RWS_OP_INPUTS) in[n_in++] = by_w;
        else in[n_in - 1] = rws__tangent_add(t, in[n_in - 1], by_w);
    }
    const rws_var a = rws__tangent_record(t, &rws_op_dense, args, in, n_in, t->dim);
    if (t->args.k == RWS_LINEAR) return a;
    return rws__tangent_record(t, &rws_op_apply_tangent, (rws_op_args){.k = t->args.k}, (rws_var[]){t->y, a}, 2,
                               t->dim);
}

/* ---- bits: y = (s x + t) W^T + b, where x is zeros and ones and has no gradient */

static void bits_forward(rws_call *c)
{
    const int n_x = c->in[0].dim;
    c->kept = rws__call_input(c, 0, n_x);
    rws__bits_nn(c->n, c->dim, n_x, c->kept, c->args.s, c->args.t, c->wt + (size_t)c->args.offset * (size_t)c->dim,
                 c->dim, c->b, 0, c->out, c->dim, c->arena);
}

static void bits_backward(rws_call *c)
{
    const rws_op_args *a = &c->args;
    if (c->gb) rws__products_columns(NULL, c->gout, (size_t)c->n, (size_t)c->dim, c->gb);
    if (c->gw)
        rws__products_add(c->products,
                          (rws_product){a->w, a->offset, c->in[0].dim, c->n, c->kept, c->gout, true, a->s, a->t});
}

/* ---- embed: a look-up by index. With k = 0, column offset + index of W, of t columns: what a one-hot part adds to a
 * linear layer. With k = 1, row index of W, which is a table of vectors. */

static uint32_t n_words(const rws_call *c)
{
    return (uint32_t)(c->args.k ? c->args.w->rows : (int)c->args.t);
}

/* The row or column of the table for row r of the call; the first one if the index is out of range. */
static size_t looked_up(rws_call *c, size_t r)
{
    const uint32_t at = rws__index(rws__view_row(&c->in[0], r)[0], n_words(c));
    c->refused |= at == n_words(c);
    return (size_t)c->args.offset + (at < n_words(c) ? at : 0);
}

static rws_status embed_explain(const rws_call *c, size_t row, const char *site, rws_error *err)
{
    return rws__explain_index(c, row, 0, n_words(c), c->args.k ? "rws_embedding" : "rws_onehot", site, err);
}

static void embed_forward(rws_call *c)
{
    const size_t dim = (size_t)c->dim;
    const float *table = c->args.k ? c->w : c->wt;
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const size_t at = looked_up(c, r);
        if (table) memcpy(c->out + r * dim, table + at * dim, dim * sizeof(float));
        else
            for (size_t j = 0; j < dim; j++) c->out[r * dim + j] = c->w[j * (size_t)c->args.w->cols + at];
    }
}

static void embed_backward(rws_call *c)
{
    const size_t dim = (size_t)c->dim, cols = (size_t)c->args.w->cols;
    if (!c->gw) return;
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const size_t at = looked_up(c, r);
        float       *g = c->args.k ? c->gw + at * cols : c->gw + at;
        const size_t step = c->args.k ? 1 : cols;
        for (size_t j = 0; j < dim; j++) g[j * step] += c->gout[r * dim + j];
    }
}

const rws_op rws_op_dense = {
    .name = "dense", .tangent = dense_tangent, .defers = true, .forward = dense_forward, .backward = dense_backward};
const rws_op rws_op_bits = {.name = "bits",
                            .tangent = rws__tangent_weight,
                            .forgets = true,
                            .defers = true,
                            .forward = bits_forward,
                            .backward = bits_backward};
const rws_op rws_op_embed = {.name = "embed",
                             .tangent = rws__tangent_weight,
                             .forward = embed_forward,
                             .backward = embed_backward,
                             .explain = embed_explain};
