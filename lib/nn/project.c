/* project.c - a linear map for every item. Input: x, T items of w->cols numbers. args.k is the first row of W, args.s
 * the first number of b, args.offset the function. The gradient of W is added at once, because a deferred product is
 * one of a whole parameter. */
#include "nn/project.h"

#include "tensor/gemm.h"
#include "tensor/products.h"
#include "tensor/tangent.h"

extern const rws_op rws_op_project; /* below */

rws_var rws__project(rws_path *path, const char *layer, const rws_param *w, int first, const rws_param *b, int first_b,
                     int n_out, rws_function f, rws_var x)
{
    const rws_op_args args = {.w = w, .b = b, .k = first, .s = (float)first_b, .offset = (int)f};
    const int         n = rws_dim(path, x) / w->cols;
    if ((int64_t)n * n_out > INT32_MAX)
        rws__path_mistake(path,
                          "layer \"%s\" makes %d numbers of each of %d items, more than the %d that a value can have.",
                          layer, n_out, n, INT32_MAX);
    return rws__record(path, &rws_op_project, args, &x, 1, n * n_out);
}

rws_var rws__items_join(rws_path *path, const char *layer, const rws_var *parts, int n, int size, int *n_items)
{
    *n_items = 0;
    for (int i = 0; i < n; i++) {
        const int dim = rws_dim(path, parts[i]);
        if (dim % size)
            rws__path_mistake(path, "layer \"%s\" takes items of %d numbers; %d numbers are no whole items.", layer,
                              size, dim);
        *n_items += dim / size;
    }
    return n == 1 ? parts[0] : rws_concat(path, parts, n);
}

/* How many items all rows have, and how many outputs an item has. */
static int n_items(const rws_call *c)
{
    return c->n * (c->in[0].dim / c->args.w->cols);
}

static int n_outputs(const rws_call *c)
{
    return c->dim / (c->in[0].dim / c->args.w->cols);
}

static void project_forward(rws_call *c)
{
    const int    n_in = c->args.w->cols, n_out = n_outputs(c), n = n_items(c);
    const size_t first = (size_t)c->args.k;
    const float *bias = c->b ? c->b + (size_t)c->args.s : NULL;
    c->kept = rws__call_input(c, 0, c->in[0].dim);
    if (c->wt) rws__gemm_nn(n, n_out, n_in, c->kept, n_in, c->wt + first, c->args.w->rows, bias, 0, c->out, n_out);
    else rws__gemm_nt(n, n_out, n_in, c->kept, n_in, c->w + first * (size_t)n_in, n_in, bias, 0, c->out, n_out);
    if (c->args.offset != RWS_LINEAR)
        rws__function_apply((rws_function)c->args.offset, (size_t)c->n * (size_t)c->dim, c->out, c->out);
}

static void project_backward(rws_call *c)
{
    const int    n_in = c->args.w->cols, n_out = n_outputs(c), n = n_items(c);
    const size_t first = (size_t)c->args.k, size = (size_t)c->n * (size_t)c->dim;
    const float *dy = c->gout;
    if (c->args.offset != RWS_LINEAR) {
        float *before = RWS_NEW(c->arena, float, size); /* the gradient before the function */
        rws__function_slope((rws_function)c->args.offset, size, c->out, c->gout, before);
        dy = before;
    }
    if (c->gb) rws__products_columns(NULL, dy, (size_t)n, (size_t)n_out, c->gb + (size_t)c->args.s);
    if (c->gw) rws__gemm_tn(n_out, n_in, n, dy, n_out, c->kept, n_in, c->gw + first * (size_t)n_in, n_in);
    bool   fresh;
    float *gx = rws__call_claim(c, 0, c->in[0].dim, &fresh);
    if (gx)
        rws__gemm_nn(n, n_in, n_out, dy, n_out, c->w + first * (size_t)n_in, n_in, fresh ? NULL : gx, n_in, gx, n_in);
    rws__call_close(c, 0, c->in[0].dim, gx);
}

/* f'(y) (W dx + dW x + db) */
static rws_var project_tangent(rws_tangent *t)
{
    rws_op_args args = t->args;
    rws_var     sum = {0};
    args.offset = RWS_LINEAR;
    if (t->weight_moves) {
        args.tangent = true;
        sum = rws__tangent_record(t, t->op, args, t->in, 1, t->dim);
    }
    if (t->d[0].id) {
        args.tangent = false;
        args.b = NULL;
        sum = rws__tangent_add(t, rws__tangent_record(t, t->op, args, t->d, 1, t->dim), sum);
    }
    return t->args.offset == RWS_LINEAR ? sum : rws__tangent_slope(t, (rws_function)t->args.offset, t->y, sum);
}

const rws_op rws_op_project = {
    .name = "project", .tangent = project_tangent, .forward = project_forward, .backward = project_backward};
