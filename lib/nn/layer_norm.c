/* layer_norm.c - the numbers of a vector with mean 0 and variance 1, then a scale and a shift for each:
 *
 *     y = (x - mean(x)) / sqrt(var(x) + 1e-5),   out = y scale + shift
 *
 * var is the mean of squares, as in PyTorch's nn.LayerNorm. The op `normalise` makes y and saves 1 / sd in its first
 * number.
 */
#include "nn/layer_norm.h"

#include "tensor/rows.h"
#include "tensor/tangent.h"

#include <stdio.h>

#define EPSILON 1e-5f /* PyTorch's */

extern const rws_op rws_op_normalise; /* below */

const rws_layer_kind rws_layer_norm_kind = {"layer_norm", "mean 0 and variance 1, then a scale and a shift"};

rws_norm_layer *rws__norm_new(rws_setup *s, rws_group group, const char *name, int n)
{
    char            full[160];
    rws_norm_layer *l = rws__layer_new(s, &rws_layer_norm_kind, sizeof *l, name, n, n);
    snprintf(full, sizeof full, "%s.weight", l->layer.name);
    l->scale = rws_setup_param(s, group, full, 1, n, RWS_ZERO);
    for (int i = 0; i < n && l->scale->value; i++) l->scale->value[i] = 1;
    snprintf(full, sizeof full, "%s.bias", l->layer.name);
    l->shift = rws_setup_param(s, group, full, 1, n, RWS_ZERO);
    return l;
}

rws_layer *rws_setup_layer_norm(rws_setup *s, rws_group group, const char *name, int n)
{
    return &rws__norm_new(s, group, name, n)->layer;
}

rws_var rws__norm(rws_path *path, const rws_norm_layer *l, rws_var x)
{
    const int n = l->layer.n_in;
    if (rws_dim(path, x) != n)
        rws__path_mistake(path, "layer \"%s\" takes %d inputs, not %d.", l->layer.name, n, rws_dim(path, x));
    const rws_var y = rws__record(path, &rws_op_normalise, (rws_op_args){0}, &x, 1, n);
    return rws_add(path, rws_mul(path, y, rws_parameter(path, l->scale)), rws_parameter(path, l->shift));
}

rws_var rws_layer_norm(rws_path *path, const rws_layer *l, rws_var x)
{
    rws_var v;
    if (rws__replayed(path, &v)) return v;
    return rws__returns(path, rws__norm(path, rws__layer_expect(path, l, &rws_layer_norm_kind), x));
}

static void normalise_forward(rws_call *c)
{
    const size_t dim = (size_t)c->dim;
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const float *x = rws__view_row(&c->in[0], r);
        float       *out = c->out + r * dim;
        row_shift(x, dim, -row_sum(x, dim) / (float)dim, out);
        const float scale = 1 / sqrtf(row_dot(out, out, dim) / (float)dim + EPSILON);
        row_scale(out, dim, scale, out);
        c->saved[r * dim] = scale;
    }
}

/* grad x = (g - mean(g) - y mean(g y)) / sd */
static void normalise_backward(rws_call *c)
{
    const size_t dim = (size_t)c->dim;
    if (!c->gin[0].data) return;
    const bool fresh = rws__sink_take(&c->gin[0]);
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const float *y = c->out + r * dim, *g = c->gout + r * dim, scale = c->saved[r * dim];
        const float  mean = row_sum(g, dim) / (float)dim, along = row_dot(g, y, dim) / (float)dim;
        float       *to = rws__sink_row(&c->gin[0], r, dim);
        row_give_rest(g, y, dim, along, scale, fresh, to);
        row_shift(to, dim, -mean * scale, to);
    }
}

static rws_var mean(rws_tangent *t, rws_var a)
{
    const rws_var sum = rws__tangent_record(t, &rws_op_sum, (rws_op_args){0}, &a, 1, 1);
    return rws__tangent_scale(t, sum, 1 / (float)t->dim);
}

static rws_var quotient(rws_tangent *t, rws_var a, rws_var b)
{
    return rws__tangent_record(t, &rws_op_div, (rws_op_args){0}, (rws_var[]){a, b}, 2, t->dim);
}

/* With sd = sqrt(var(x) + epsilon): dy = (dx - mean(dx) - y mean(y dx)) / sd */
static rws_var normalise_tangent(rws_tangent *t)
{
    const rws_var x = t->in[0], dx = t->d[0];
    const rws_var centred = rws__tangent_add(t, x, rws__tangent_scale(t, mean(t, x), -1));
    const rws_var square = mean(t, rws__tangent_mul(t, centred, centred));
    const rws_var moved = rws__tangent_record(t, &rws_op_affine, (rws_op_args){.s = 1, .t = EPSILON}, &square, 1, 1);
    const rws_var sd = rws__tangent_apply(t, RWS_SQRT, moved);
    const rws_var along = rws__tangent_mul(t, t->y, mean(t, rws__tangent_mul(t, t->y, dx)));
    const rws_var rest = rws__tangent_add(t, mean(t, dx), along);
    return quotient(t, rws__tangent_add(t, dx, rws__tangent_scale(t, rest, -1)), sd);
}

const rws_op rws_op_normalise = {.name = "normalise",
                                 .saves = true,
                                 .tangent = normalise_tangent,
                                 .forward = normalise_forward,
                                 .backward = normalise_backward};
