/* pool.c - sums, means and maxima of windows.
 *
 * args.k is the kind of pooling and 4 times the rows of a picture, args.offset its columns, args.s and args.t the
 * height and width of a window. The first of equal maxima gets the gradient. */
#include "nn/pool.h"

#include "tensor/rows.h"
#include "tensor/tangent.h"

#include <string.h>

extern const rws_op rws_op_pool, rws_op_pool_mask; /* below */

const rws_layer_kind rws_pool2d_kind = {"pool2d", "the sum, mean or maximum of windows of a picture"};

typedef struct {
    rws_pooling how;
    size_t      rows, cols, high, wide; /* of a picture and of a window */
    size_t      down, across;           /* windows below and beside each other */
    size_t      n;                      /* pictures */
} plan;

static plan plan_of(const rws_call *c)
{
    plan p = {.how = (rws_pooling)(c->args.k % 4), .rows = (size_t)c->args.k / 4, .cols = (size_t)c->args.offset};
    p.high = (size_t)c->args.s;
    p.wide = (size_t)c->args.t;
    p.down = p.rows / p.high;
    p.across = p.cols / p.wide;
    p.n = (size_t)c->in[0].dim / (p.rows * p.cols);
    return p;
}

rws_var rws_pool(rws_path *path, rws_pooling how, rws_var x, int rows, int cols, int high, int wide)
{
    const rws_op_args args = {.k = (int)how + 4 * rows, .offset = cols, .s = (float)high, .t = (float)wide};
    const int         n = rws_dim(path, x) / (rows * cols);
    return rws__record(path, &rws_op_pool, args, &x, 1, n * (rows / high) * (cols / wide));
}

rws_var rws_pool2d(rws_path *path, rws_var pictures, int channels, int rows, int size, rws_pooling how)
{
    rws_var v;
    if (rws__replayed(path, &v)) return v;
    const int dim = rws_dim(path, pictures);
    if (channels < 1 || rows < 1 || dim % channels || dim / channels % rows)
        rws__path_mistake(path, "rws_pool2d takes %d channels of %d rows, not %d numbers.", channels, rows, dim);
    const int cols = dim / channels / rows;
    if (size < 1 || size > rows || size > cols)
        rws__path_mistake(path,
                          "rws_pool2d takes windows of 1 to %d rows and columns from %d x %d pictures, not of %d.",
                          rows < cols ? rows : cols, rows, cols, size);
    if ((unsigned)how > RWS_MAX) rws__path_mistake(path, "rws_pool2d was given pooling number %d.", (int)how);
    return rws__returns(path, rws_pool(path, how, pictures, rows, cols, size, size));
}

/* Executes `statement` for every row i of a picture that lies in windows: the row begins at `x`, its windows at `out`.
 * */
#define EACH_ROW(p, statement)                                                                                \
    for (size_t k = 0; k < (p).n; k++)                                                                        \
        for (size_t i = 0; i < (p).down * (p).high; i++) {                                                    \
            const size_t x = (k * (p).rows + i) * (p).cols, out = (k * (p).down + i / (p).high) * (p).across; \
            statement;                                                                                        \
        }

static void sum_windows(const plan *p, const float *from, float *to)
{
    const float scale = p->how == RWS_MEAN ? 1 / (float)(p->high * p->wide) : 1;
    EACH_ROW(*p, if (p->wide == 1) row_give(from + x, p->across, scale, false, to + out);
             else for (size_t j = 0; j < p->across * p->wide; j++) to[out + j / p->wide] += scale * from[x + j]);
}

static void give_windows(const plan *p, const float *g, float *to)
{
    const float scale = p->how == RWS_MEAN ? 1 / (float)(p->high * p->wide) : 1;
    EACH_ROW(*p, if (p->wide == 1) row_give(g + out, p->across, scale, false, to + x);
             else for (size_t j = 0; j < p->across * p->wide; j++) to[x + j] += scale * g[out + j / p->wide]);
}

static void max_windows(const plan *p, const float *from, float *to)
{
    EACH_ROW(
        *p, for (size_t j = 0; j < p->across * p->wide; j++) {
            float *top = &to[out + j / p->wide];
            *top = from[x + j] > *top || from[x + j] != from[x + j] ? from[x + j] : *top;
        });
}

/* to += g (or 1, if g is NULL) at the first number of each window that is the maximum. `given` has a flag per window.
 * */
static void give_max(const plan *p, const float *from, const float *top, const float *g, uint8_t *given, float *to)
{
    memset(given, 0, p->n * p->down * p->across);
    EACH_ROW(
        *p, for (size_t j = 0; j < p->across * p->wide; j++) {
            const size_t at = out + j / p->wide;
            if (given[at] || from[x + j] != top[at]) continue;
            given[at] = 1;
            to[x + j] += g ? g[at] : 1;
        });
}

static void pool_forward(rws_call *c)
{
    const plan   p = plan_of(c);
    const size_t dim = (size_t)c->dim;
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const float *from = rws__view_row(&c->in[0], r);
        float       *to = c->out + r * dim;
        for (size_t j = 0; j < dim; j++) to[j] = p.how == RWS_MAX ? -INFINITY : 0;
        (p.how == RWS_MAX ? max_windows : sum_windows)(&p, from, to);
    }
}

static void pool_backward(rws_call *c)
{
    const plan   p = plan_of(c);
    const size_t dim = (size_t)c->dim;
    if (!c->gin[0].data) return;
    rws__call_clear(c, 0);
    uint8_t *given = RWS_NEW(c->arena, uint8_t, dim);
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const float *g = c->gout + r * dim;
        float       *to = rws__call_sink_row(c, 0, r);
        if (p.how == RWS_MAX) give_max(&p, rws__view_row(&c->in[0], r), c->out + r * dim, g, given, to);
        else give_windows(&p, g, to);
    }
}

/* The derivative of a maximum: the sum over each window of dx where the maximum is. */
static rws_var pool_tangent(rws_tangent *t)
{
    rws_op_args args = t->args;
    if (args.k % 4 != RWS_MAX) return rws__tangent_record(t, &rws_op_pool, args, t->d, 1, t->dim);
    const rws_var mask = rws__tangent_record(t, &rws_op_pool_mask, args, t->in, 1, rws__tangent_dim(t, t->in[0]));
    const rws_var chosen = rws__tangent_mul(t, mask, t->d[0]);
    args.k += (int)RWS_SUM - (int)RWS_MAX;
    return rws__tangent_record(t, &rws_op_pool, args, &chosen, 1, t->dim);
}

/* ---- pool_mask: 1 where the maximum of a window is, else 0 */

static void pool_mask_forward(rws_call *c)
{
    const plan   p = plan_of(c);
    const size_t dim = (size_t)c->dim, n_windows = p.n * p.down * p.across;
    float       *top = RWS_NEW(c->arena, float, n_windows);
    uint8_t     *given = RWS_NEW(c->arena, uint8_t, n_windows);
    memset(c->out, 0, (size_t)c->n * dim * sizeof *c->out);
    for (size_t r = 0; r < (size_t)c->n; r++) {
        for (size_t j = 0; j < n_windows; j++) top[j] = -INFINITY;
        max_windows(&p, rws__view_row(&c->in[0], r), top);
        give_max(&p, rws__view_row(&c->in[0], r), top, NULL, given, c->out + r * dim);
    }
}

const rws_op rws_op_pool = {
    .name = "pool", .tangent = pool_tangent, .forward = pool_forward, .backward = pool_backward};
const rws_op rws_op_pool_mask = {.name = "pool_mask", .constant = true, .binary = true, .forward = pool_mask_forward};
