/* tangent.c - what the rules of several ops share. */
#include "tensor/tangent.h"

static int longer(const rws_tangent *t, rws_var a, rws_var b)
{
    const int n = rws__tangent_dim(t, a), m = rws__tangent_dim(t, b);
    return n > m ? n : m;
}

rws_var rws__tangent_add(rws_tangent *t, rws_var a, rws_var b)
{
    if (!a.id || !b.id) return a.id ? a : b;
    return rws__tangent_record(t, &rws_op_add, (rws_op_args){0}, (rws_var[]){a, b}, 2, longer(t, a, b));
}

rws_var rws__tangent_mul(rws_tangent *t, rws_var a, rws_var b)
{
    if (!a.id || !b.id) return (rws_var){0};
    return rws__tangent_record(t, &rws_op_mul, (rws_op_args){0}, (rws_var[]){a, b}, 2, longer(t, a, b));
}

rws_var rws__tangent_scale(rws_tangent *t, rws_var a, float s)
{
    if (!a.id) return a;
    return rws__tangent_record(t, &rws_op_affine, (rws_op_args){.s = s}, &a, 1, rws__tangent_dim(t, a));
}

rws_var rws__tangent_slice(rws_tangent *t, rws_var a, int first, int n)
{
    return a.id ? rws__tangent_record(t, &rws_op_slice, (rws_op_args){.k = first}, &a, 1, n) : a;
}

rws_var rws__tangent_apply(rws_tangent *t, rws_function f, rws_var a)
{
    const rws_op *op = f > RWS_LOG ? &rws_op_map : &rws_op_apply;
    return rws__tangent_record(t, op, (rws_op_args){.k = (int)f}, &a, 1, rws__tangent_dim(t, a));
}

rws_var rws__tangent_slope(rws_tangent *t, rws_function f, rws_var y, rws_var dx)
{
    if (!dx.id) return dx;
    return rws__tangent_record(t, &rws_op_apply_tangent, (rws_op_args){.k = (int)f}, (rws_var[]){y, dx}, 2,
                               rws__tangent_dim(t, y));
}

rws_var rws__tangent_linear(rws_tangent *t)
{
    rws_var     in[RWS_OP_INPUTS];
    rws_op_args args = t->args;
    args.t = 0;
    for (int s = 0; s < t->n_in; s++)
        in[s] = t->d[s].id ? t->d[s] : rws__tangent_zeros(t, rws__tangent_dim(t, t->in[s]));
    return rws__tangent_record(t, t->op, args, in, t->n_in, t->dim);
}

rws_var rws__tangent_weight(rws_tangent *t)
{
    rws_op_args args = t->args;
    args.tangent = true;
    return t->weight_moves ? rws__tangent_record(t, t->op, args, t->in, t->n_in, t->dim) : (rws_var){0};
}
