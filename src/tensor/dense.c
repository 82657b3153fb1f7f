/* dense.c - y = f(x W^T + addends + b): the product that networks are made of, and what it comes to for inputs that are
 * zeros and ones, or one-hot.
 *
 * Input 0 is x (its columns meet columns offset … of W), inputs 1 … are addends: shares of the same sum that were
 * computed elsewhere, at the rows where they vary. x may be absent (in[0].data NULL).
 */
#include "base/error.h"
#include "tensor/bits.h"
#include "tensor/gemm.h"
#include "tensor/op.h"
#include "tensor/products.h"

#include <string.h>

static void dense_forward(rws_call *c)
{
    const size_t dim = (size_t)c->dim, n = (size_t)c->n;
    float       *out = c->out;
    const float *from = c->b; /* what the product is added to: the bias, or once there are addends, all of it */
    int          step = 0;
    if (c->n_in > 1 || !c->in[0].data) {
        for (size_t r = 0; r < n; r++) {
            if (c->b) memcpy(out + r * dim, c->b, dim * sizeof(float));
            else memset(out + r * dim, 0, dim * sizeof(float));
        }
        from = out;
        step = c->dim;
    }
    for (int s = 1; s < c->n_in; s++) {
        const rws_view *v = &c->in[s];
        for (size_t r = 0; r < n; r++) {
            const float *restrict add = v->data + (v->row ? v->row[r] : r) * dim;
            float *restrict to = out + r * dim;
#pragma omp simd
            for (size_t j = 0; j < dim; j++) to[j] += add[j];
        }
    }
    if (c->in[0].data) {
        const int    n_x = c->in[0].dim;
        const size_t offset = (size_t)c->args.offset;
        c->kept = rws_call_input(c, 0, n_x);
        if (c->wt) rws_gemm_nn(c->n, c->dim, n_x, c->kept, n_x, c->wt + offset * dim, c->dim, from, step, out, c->dim);
        else rws_gemm_nt(c->n, c->dim, n_x, c->kept, n_x, c->w + offset, c->args.w->cols, from, step, out, c->dim);
    }
    if (c->args.k != RWS_LINEAR) rws_function_apply((rws_function)c->args.k, n * dim, out, out);
}

typedef float v8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef float v4 __attribute__((vector_size(16), aligned(4), may_alias));

/* to[j] += the sum of column j; eight columns at a time, each sum in a register. */
static void add_columns(const float *x, size_t n, size_t dim, float *to)
{
    size_t j = 0;
    for (; j + 8 <= dim; j += 8) {
        v8 sum = {0};
        for (size_t r = 0; r < n; r++) sum += *(const v8 *)(x + r * dim + j);
        *(v8 *)(to + j) += sum;
    }
    for (; j + 4 <= dim; j += 4) {
        v4 sum = {0};
        for (size_t r = 0; r < n; r++) sum += *(const v4 *)(x + r * dim + j);
        *(v4 *)(to + j) += sum;
    }
    for (; j < dim; j++) {
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (size_t r = 0; r < n; r++) sum += x[r * dim + j];
        to[j] += sum;
    }
}

static void dense_backward(rws_call *c)
{
    const size_t dim = (size_t)c->dim, n = (size_t)c->n;
    const float *dy = c->gout;
    if (c->args.k != RWS_LINEAR) {
        float *before = RWS_NEW(c->arena, float, n *dim); /* the function */
        rws_function_slope((rws_function)c->args.k, n * dim, c->out, c->gout, before);
        dy = before;
    }
    if (c->gb) add_columns(dy, n, dim, c->gb);
    for (int s = 1; s < c->n_in; s++) {
        float *g = rws_call_open(c, s, c->dim);
        for (size_t i = 0; g && i < n * dim; i++) g[i] += dy[i];
        rws_call_close(c, s, c->dim, g);
    }
    if (!c->in[0].data) return;
    const int n_x = c->in[0].dim;
    if (c->gw)
        rws_products_add(c->products, (rws_product){c->args.w, c->args.offset, n_x, c->n, c->kept, dy, .bits = false});
    bool   fresh;
    float *gx = rws_call_claim(c, 0, n_x, &fresh);
    if (gx)
        rws_gemm_nn(c->n, n_x, c->dim, dy, c->dim, c->w + c->args.offset, c->args.w->cols, fresh ? NULL : gx, n_x, gx,
                    n_x);
    rws_call_close(c, 0, n_x, gx);
}

/* ---- bits: y = (s x + t) W^T + b where x is zeros and ones; no gradient passes to x */

static void bits_forward(rws_call *c)
{
    const int n_x = c->in[0].dim;
    c->kept = rws_call_input(c, 0, n_x);
    rws_bits_nn(c->n, c->dim, n_x, c->kept, c->args.s, c->args.t, c->wt + (size_t)c->args.offset * (size_t)c->dim,
                c->dim, c->b, 0, c->out, c->dim, c->arena);
}

static void bits_backward(rws_call *c)
{
    const rws_op_args *a = &c->args;
    if (c->gb) add_columns(c->gout, (size_t)c->n, (size_t)c->dim, c->gb);
    if (c->gw)
        rws_products_add(c->products,
                         (rws_product){a->w, a->offset, c->in[0].dim, c->n, c->kept, c->gout, true, a->s, a->t});
}

/* ---- embed: with k = 0, column `index` (one of t) of W counted from offset, which is what a one-hot input adds to a linear layer;
 * with k = 1, row `index` of W, a table of vectors. */

static size_t looked_up(const rws_call *c, size_t r)
{
    const rws_view *v = &c->in[0];
    const float     index = v->data[v->row ? v->row[r] : r];
    RWS_CHECK(index >= 0 && index < (c->args.k ? (float)c->args.w->rows : c->args.t));
    return (size_t)c->args.offset + (size_t)index;
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

const rws_op rws_op_dense = {.name = "dense",
                             .tangent = RWS_TANGENT_DENSE,
                             .defers = true,
                             .forward = dense_forward,
                             .backward = dense_backward};
const rws_op rws_op_bits = {.name = "bits",
                            .tangent = RWS_TANGENT_WEIGHT,
                            .forgets = true,
                            .defers = true,
                            .forward = bits_forward,
                            .backward = bits_backward};
const rws_op rws_op_embed = {
    .name = "embed", .tangent = RWS_TANGENT_WEIGHT, .forward = embed_forward, .backward = embed_backward};
