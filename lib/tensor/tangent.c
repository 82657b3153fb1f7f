/* tangent.c - what the rules of several ops share. */
#include "tensor/tangent.h"

static int longer(const rws_tangent *t, rws_var a, rws_var b)
{
    const int n = rws_tangent_dim(t, a), m = rws_tangent_dim(t, b);
    return n > m ? n : m;
}

rws_var rws_tangent_add(rws_tangent *t, rws_var a, rws_var b)
{
    if (!a.id || !b.id) return a.id ? a : b;
    return rws_tangent_record(t, &rws_op_add, (rws_op_args){0}, (rws_var[]){a, b}, 2, longer(t, a, b));
}

rws_var rws_tangent_mul(rws_tangent *t, rws_var a, rws_var b)
{
    if (!a.id || !b.id) return (rws_var){0};
    return rws_tangent_record(t, &rws_op_mul, (rws_op_args){0}, (rws_var[]){a, b}, 2, longer(t, a, b));
}

rws_var rws_tangent_scale(rws_tangent *t, rws_var a, float s)
{
    if (!a.id) return a;
    return rws_tangent_record(t, &rws_op_affine, (rws_op_args){.s = s}, &a, 1, rws_tangent_dim(t, a));
}

rws_var rws_tangent_slice(rws_tangent *t, rws_var a, int first, int n)
{
    return a.id ? rws_tangent_record(t, &rws_op_slice, (rws_op_args){.k = first}, &a, 1, n) : a;
}

rws_var rws_tangent_apply(rws_tangent *t, rws_function f, rws_var a)
{
    const rws_op *op = f > RWS_LOG ? &rws_op_map : &rws_op_apply;
    return rws_tangent_record(t, op, (rws_op_args){.k = (int)f}, &a, 1, rws_tangent_dim(t, a));
}

rws_var rws_tangent_slope(rws_tangent *t, rws_function f, rws_var y, rws_var dx)
{
    if (!dx.id) return dx;
    return rws_tangent_record(t, &rws_op_apply_tangent, (rws_op_args){.k = (int)f}, (rws_var[]){y, dx}, 2,
                              rws_tangent_dim(t, y));
}

rws_var rws_tangent_linear(rws_tangent *t)
{
    rws_var     in[RWS_OP_INPUTS];
    rws_op_args args = t->args;
    args.t = 0;
    for (int s = 0; s < t->n_in; s++) in[s] = t->d[s].id ? t->d[s] : rws_tangent_zeros(t, rws_tangent_dim(t, t->in[s]));
    return rws_tangent_record(t, t->op, args, in, t->n_in, t->dim);
}

rws_var rws_tangent_weight(rws_tangent *t)
{
    rws_op_args args = t->args;
    args.tangent = true;
    return t->weight_moves ? rws_tangent_record(t, t->op, args, t->in, t->n_in, t->dim) : (rws_var){0};
}
