/* values.c - the public arithmetic: each function checks its shapes and records one op. */
#include "engine/engine.h"

static rws_var binary(rws_path *path, const rws_op *op, const char *name, rws_var a, rws_var b)
{
    rws_var v;
    if (rws__replayed_as(path, &v, name)) return v;
    const int n = rws_dim(path, a), m = rws_dim(path, b);
    if (n != m && n != 1 && m != 1) rws__path_mistake(path, "%s of vectors of %d and %d numbers.", name, n, m);
    return rws__returns(path, rws__record(path, op, (rws_op_args){0}, (rws_var[]){a, b}, 2, n > m ? n : m));
}

/* dim: the length of the result; 0: that of a */
static rws_var unary(rws_path *path, const rws_op *op, const char *name, rws_op_args args, rws_var a, int dim)
{
    rws_var v;
    if (rws__replayed_as(path, &v, name)) return v;
    return rws__returns(path, rws__record(path, op, args, &a, 1, dim ? dim : rws_dim(path, a)));
}

rws_var rws_add(rws_path *path, rws_var a, rws_var b)
{
    return binary(path, &rws_op_add, __func__, a, b);
}

rws_var rws_sub(rws_path *path, rws_var a, rws_var b)
{
    return binary(path, &rws_op_sub, __func__, a, b);
}

rws_var rws_mul(rws_path *path, rws_var a, rws_var b)
{
    return binary(path, &rws_op_mul, __func__, a, b);
}

rws_var rws_div(rws_path *path, rws_var a, rws_var b)
{
    return binary(path, &rws_op_div, __func__, a, b);
}

rws_var rws_greater(rws_path *path, rws_var a, rws_var b)
{
    return binary(path, &rws_op_greater, __func__, a, b);
}

rws_var rws_min(rws_path *path, rws_var a, rws_var b)
{
    return binary(path, &rws_op_min, __func__, a, b);
}

rws_var rws_max(rws_path *path, rws_var a, rws_var b)
{
    return binary(path, &rws_op_max, __func__, a, b);
}

rws_var rws_power(rws_path *path, rws_var a, rws_var b)
{
    return binary(path, &rws_op_power, __func__, a, b);
}

rws_var rws_where(rws_path *path, rws_var mask, rws_var a, rws_var b)
{
    rws_var       v;
    const rws_var in[] = {mask, a, b};
    int           dim = 1;
    if (rws__replayed(path, &v)) return v;
    for (int i = 0; i < 3; i++) dim = rws_dim(path, in[i]) > dim ? rws_dim(path, in[i]) : dim;
    for (int i = 0; i < 3; i++)
        if (rws_dim(path, in[i]) != dim && rws_dim(path, in[i]) != 1)
            rws__path_mistake(path, "rws_where of vectors of %d, %d and %d numbers.", rws_dim(path, mask),
                              rws_dim(path, a), rws_dim(path, b));
    return rws__returns(path, rws__record(path, &rws_op_where, (rws_op_args){0}, in, 3, dim));
}

rws_var rws_affine(rws_path *path, rws_var a, float scale, float shift)
{
    return unary(path, &rws_op_affine, __func__, (rws_op_args){.s = scale, .t = shift}, a, 0);
}

rws_var rws_apply(rws_path *path, rws_function f, rws_var a)
{
    if (f < RWS_LINEAR || f > RWS_LOG1MEXP) rws__path_mistake(path, "rws_apply was given function number %d.", (int)f);
    return unary(path, f > RWS_LOG ? &rws_op_map : &rws_op_apply, __func__, (rws_op_args){.k = (int)f}, a, 0);
}

rws_var rws_clip(rws_path *path, rws_var a, float low, float high)
{
    if (!(low <= high))
        rws__path_mistake(path, "rws_clip takes bounds in order, not %g and %g.", (double)low, (double)high);
    return unary(path, &rws_op_clip, __func__, (rws_op_args){.s = low, .t = high}, a, 0);
}

/* Some pairs of operations are recorded as one op, so that the vector between the two need never be computed: sums of
 * products and of products with an exponential, log-sum-exps of sums, log-softmaxes of quotients. */
static bool made_of_two(rws_path *path, rws_var a, const rws_op *op, rws_var *in)
{
    return rws_dim(path, a) > 0 && rws__var_op(path, a, in, NULL) == op && rws_dim(path, in[0]) == rws_dim(path, in[1]);
}

static bool made_by_exp(rws_path *path, rws_var a, rws_var *in)
{
    rws_op_args args;
    return rws__var_op(path, a, in, &args) == &rws_op_apply && args.k == RWS_EXP;
}

rws_var rws_sum(rws_path *path, rws_var a)
{
    rws_var v, in[RWS_OP_INPUTS], power[RWS_OP_INPUTS];
    if (rws__replayed(path, &v)) return v;
    if (!made_of_two(path, a, &rws_op_mul, in))
        return rws__returns(path, rws__record(path, &rws_op_sum, (rws_op_args){0}, &a, 1, 1));
    for (int s = 0; s < 2; s++)
        if (made_by_exp(path, in[s], power)) {
            const rws_var factors[] = {power[0], in[1 - s]};
            return rws__returns(path, rws__record(path, &rws_op_exp_dot, (rws_op_args){0}, factors, 2, 1));
        }
    return rws__returns(path, rws__record(path, &rws_op_dot, (rws_op_args){0}, in, 2, 1));
}

rws_var rws_dot(rws_path *path, rws_var a, rws_var b)
{
    rws_var v;
    if (rws__replayed(path, &v)) return v;
    if (rws_dim(path, a) != rws_dim(path, b))
        rws__path_mistake(path, "rws_dot of vectors of %d and %d numbers.", rws_dim(path, a), rws_dim(path, b));
    return rws__returns(path, rws__record(path, &rws_op_dot, (rws_op_args){0}, (rws_var[]){a, b}, 2, 1));
}

rws_var rws_cumulative_sum(rws_path *path, rws_var a)
{
    return unary(path, &rws_op_cumulative, __func__, (rws_op_args){0}, a, 0);
}

rws_var rws_log_softmax(rws_path *path, rws_var a)
{
    rws_var v, in[RWS_OP_INPUTS];
    if (rws__replayed(path, &v)) return v;
    const int  dim = rws_dim(path, a);
    const bool tempered = rws__var_op(path, a, in, NULL) == &rws_op_div && rws_dim(path, in[1]) == 1;
    return rws__returns(
        path, rws__record(path, &rws_op_log_softmax, (rws_op_args){0}, tempered ? in : &a, tempered ? 2 : 1, dim));
}

rws_var rws_argmax(rws_path *path, rws_var a)
{
    return unary(path, &rws_op_argmax, __func__, (rws_op_args){0}, a, 1);
}

rws_var rws_onehot(rws_path *path, rws_var index, int n)
{
    rws_var v;
    if (rws__replayed(path, &v)) return v;
    if (rws_dim(path, index) != 1) rws__path_mistake(path, "rws_onehot takes one index, not %d.", rws_dim(path, index));
    if (n < 1) rws__path_mistake(path, "rws_onehot makes a vector of at least one number, not of %d.", n);
    return rws__returns(path, rws__record(path, &rws_op_onehot, (rws_op_args){0}, &index, 1, n));
}

rws_var rws_detach(rws_path *path, rws_var a)
{
    return unary(path, &rws_op_detach, __func__, (rws_op_args){0}, a, 0);
}

rws_var rws_slice(rws_path *path, rws_var a, int first, int n)
{
    rws_var v;
    if (rws__replayed(path, &v)) return v;
    if (first < 0 || n <= 0 || n > rws_dim(path, a) - first)
        rws__path_mistake(path, "rws_slice takes %d numbers from place %d of a vector of %d.", n, first,
                          rws_dim(path, a));
    return rws__returns(path, rws__record(path, &rws_op_slice, (rws_op_args){.k = first}, &a, 1, n));
}

/* One node joins as many parts as an op has inputs; joins of more are joins of such joins. */
static rws_var join(rws_path *path, const rws_var *parts, int n)
{
    int64_t dim = 0;
    if (n > RWS_OP_INPUTS) {
        const int m = (n + RWS_OP_INPUTS - 1) / RWS_OP_INPUTS;
        rws_var  *joined = rws_alloc(path, (size_t)m * sizeof *joined);
        for (int i = 0; i < m; i++) {
            const int left = n - i * RWS_OP_INPUTS;
            joined[i] = join(path, parts + i * RWS_OP_INPUTS, left < RWS_OP_INPUTS ? left : RWS_OP_INPUTS);
        }
        return join(path, joined, m);
    }
    for (int i = 0; i < n; i++) dim += rws_dim(path, parts[i]);
    if (dim > INT32_MAX) rws__path_mistake(path, "rws_concat makes a vector of too many numbers.");
    return rws__record(path, &rws_op_concat, (rws_op_args){0}, parts, n, (int)dim);
}

rws_var rws_concat(rws_path *path, const rws_var *parts, int n)
{
    rws_var v;
    if (rws__replayed(path, &v)) return v;
    if (n < 1 || !parts) rws__path_mistake(path, "rws_concat takes at least one part, not %d.", parts ? n : 0);
    return rws__returns(path, join(path, parts, n));
}

rws_var rws_pick(rws_path *path, rws_var a, rws_var index)
{
    rws_var v;
    if (rws__replayed(path, &v)) return v;
    if (rws_dim(path, index) != 1) rws__path_mistake(path, "rws_pick takes one index, not %d.", rws_dim(path, index));
    return rws__returns(path, rws__record(path, &rws_op_pick, (rws_op_args){0}, (rws_var[]){a, index}, 2, 1));
}

rws_var rws_log_sum_exp(rws_path *path, rws_var a)
{
    rws_var v, in[RWS_OP_INPUTS];
    if (rws__replayed(path, &v)) return v;
    const bool two = made_of_two(path, a, &rws_op_add, in);
    return rws__returns(path, rws__record(path, &rws_op_log_sum_exp, (rws_op_args){0}, two ? in : &a, two ? 2 : 1, 1));
}

/* One node adds as many parts as an op has inputs; sums of more are sums of such sums. */
static rws_var add_up(rws_path *path, const rws_var *parts, int n, int dim)
{
    if (n <= RWS_OP_INPUTS) return rws__record(path, &rws_op_total, (rws_op_args){0}, parts, n, dim);
    const int m = (n + RWS_OP_INPUTS - 1) / RWS_OP_INPUTS;
    rws_var  *sums = rws_alloc(path, (size_t)m * sizeof *sums);
    for (int i = 0; i < m; i++) {
        const int left = n - i * RWS_OP_INPUTS;
        sums[i] = add_up(path, parts + i * RWS_OP_INPUTS, left < RWS_OP_INPUTS ? left : RWS_OP_INPUTS, dim);
    }
    return add_up(path, sums, m, dim);
}

rws_var rws_sum_many(rws_path *path, const rws_var *parts, int n)
{
    rws_var v;
    int     dim = 1;
    if (rws__replayed(path, &v)) return v;
    if (n < 1 || !parts) rws__path_mistake(path, "rws_sum_many takes at least one value, not %d.", parts ? n : 0);
    for (int i = 0; i < n; i++) dim = rws_dim(path, parts[i]) > dim ? rws_dim(path, parts[i]) : dim;
    for (int i = 0; i < n; i++)
        if (rws_dim(path, parts[i]) != dim && rws_dim(path, parts[i]) != 1)
            rws__path_mistake(path, "rws_sum_many of vectors of %d and %d numbers.", dim, rws_dim(path, parts[i]));
    return rws__returns(path, add_up(path, parts, n, dim));
}

rws_var rws_row(rws_path *path, rws_var a, int n, rws_var index)
{
    rws_var v;
    if (rws__replayed(path, &v)) return v;
    if (rws_dim(path, index) != 1) rws__path_mistake(path, "rws_row takes one index, not %d.", rws_dim(path, index));
    if (n < 1 || rws_dim(path, a) % n)
        rws__path_mistake(path, "rws_row takes rows of %d numbers from %d.", n, rws_dim(path, a));
    return rws__returns(path, rws__record(path, &rws_op_row, (rws_op_args){0}, (rws_var[]){a, index}, 2, n));
}
