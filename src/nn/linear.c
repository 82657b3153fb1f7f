/* linear.c - y = W x + b over one or several parts. */
#include "nn/layer.h"

#include "base/error.h"

#include <stdio.h>
#include <string.h>

void rws_layer_expect(rws_path *path, const rws_layer *l, rws_layer_kind kind, const char *function)
{
    if (!l || l->kind != kind)
        rws_give_up(path, "%s was given a layer of another kind (\"%s\").", function, l ? l->name : "NULL");
}

const char *rws_layer_name(rws_setup *s, const char *name)
{
    return strcpy(rws_setup_alloc(s, strlen(name) + 1), name);
}

static rws_layer *linear_new(rws_setup *s, rws_group group, const char *name, const char *weight, const char *bias,
                             int n_in, int n_out, rws_init init, int scale)
{
    char       full[160];
    rws_layer *l = rws_setup_alloc(s, sizeof *l);
    *l = (rws_layer){.kind = RWS_LAYER_LINEAR, .name = rws_layer_name(s, name), .n_in = n_in, .n_out = n_out};
    snprintf(full, sizeof full, "%s.%s", name, weight);
    l->w = rws_setup_param_scaled(s, group, full, n_out, n_in, init, scale);
    l->w->transposed = n_out == 1 || (size_t)n_in * (size_t)n_out <= RWS_TRANSPOSED_MOST;
    snprintf(full, sizeof full, "%s.%s", name, bias);
    l->b = rws_setup_param_scaled(s, group, full, 1, n_out, init == RWS_UNIFORM ? init : RWS_ZERO, scale);
    return l;
}

rws_layer *rws_setup_linear(rws_setup *s, rws_group group, const char *name, int n_in, int n_out, rws_init init)
{
    return linear_new(s, group, name, "weight", "bias", n_in, n_out, init, n_in);
}

rws_param *rws_layer_bias(const rws_layer *l)
{
    RWS_CHECK(l->kind == RWS_LAYER_LINEAR && "a linear layer");
    return l->b;
}

/* The two maps of a recurrent cell, from the input and from the state; both start by the size of the state if uniform. */
static rws_layer *cell_new(rws_setup *s, rws_group group, rws_layer_kind kind, const char *name, int n_in, int n_hidden,
                           int gates, rws_init init)
{
    rws_layer *l = rws_setup_alloc(s, sizeof *l);
    *l = (rws_layer){.kind = kind, .name = name, .n_in = n_in, .n_out = n_hidden, .n_parts = 2};
    l->parts = rws_setup_alloc(s, 2 * sizeof *l->parts);
    const int scale = init == RWS_UNIFORM ? n_hidden : 0;
    l->parts[0] =
        linear_new(s, group, name, "weight_ih", "bias_ih", n_in, gates * n_hidden, init, scale ? scale : n_in);
    l->parts[1] = linear_new(s, group, name, "weight_hh", "bias_hh", n_hidden, gates * n_hidden, init, n_hidden);
    l->name = l->parts[0]->name;
    return l;
}

rws_layer *rws_setup_rnn(rws_setup *s, rws_group group, const char *name, int n_in, int n_hidden, rws_init init)
{
    return cell_new(s, group, RWS_LAYER_RNN, name, n_in, n_hidden, 1, init);
}

rws_layer *rws_setup_gru(rws_setup *s, rws_group group, const char *name, int n_in, int n_hidden)
{
    return cell_new(s, group, RWS_LAYER_GRU, name, n_in, n_hidden, 3, RWS_UNIFORM);
}

/* Whether a part holds two different numbers only: then it is s x + t of bits x, and sums of columns of W can be looked up
 * in the transposed copy. */
static bool two_valued(rws_path *path, rws_var part, rws_var *x, rws_op_args *args)
{
    rws_op_args   how = {.s = 1};
    rws_var       in[RWS_OP_INPUTS];
    const rws_op *op = rws_var_op(path, part, in, NULL);
    if (op == &rws_op_affine) {
        rws_var_op(path, part, NULL, &how);
        part = in[0];
        op = rws_var_op(path, part, NULL, NULL);
    }
    if (!op || !op->binary || !args->w->transposed) return false;
    *x = part;
    args->s = how.s, args->t = how.t;
    return true;
}

/* A part as a product of its own, without bias: W_part x, or for a one-hot part a column of W. */
static rws_var product(rws_path *path, const rws_layer *l, int offset, rws_var part)
{
    rws_var     in[RWS_OP_INPUTS];
    rws_op_args args = {.w = l->w, .offset = offset};
    if (two_valued(path, part, in, &args)) return rws_record(path, &rws_op_bits, args, in, 1, l->n_out);
    if (rws_var_op(path, part, in, NULL) == &rws_op_onehot)
        return rws_record(path, &rws_op_embed,
                          (rws_op_args){.w = l->w, .offset = offset, .t = (float)rws_dim(path, part)}, in, 1, l->n_out);
    return rws_record(path, &rws_op_dense, (rws_op_args){.w = l->w, .offset = offset, .k = RWS_LINEAR}, &part, 1,
                      l->n_out);
}

rws_var rws_dense(rws_path *path, const rws_layer *l, rws_function f, const rws_var *parts, int n)
{
    int     total = 0, main = -1, offset = 0, main_offset = 0, n_in = 1;
    rws_var in[RWS_OP_INPUTS] = {{0}};
    if (n < 1 || n >= RWS_OP_INPUTS)
        rws_give_up(path, "Layer \"%s\" takes 1 to %d parts, not %d.", l->name, RWS_OP_INPUTS - 1, n);
    for (int i = 0; i < n; i++) total += rws_dim(path, parts[i]);
    if (total != l->n_in) rws_give_up(path, "Layer \"%s\" takes %d inputs, not %d.", l->name, l->n_in, total);

    rws_var     bits;
    rws_op_args args = {.w = l->w, .b = l->b};
    if (n == 1 && f == RWS_LINEAR && two_valued(path, parts[0], &bits, &args))
        return rws_record(path, &rws_op_bits, args, &bits, 1, l->n_out);

    /* the part that varies most is multiplied here; what is shared by more particles has its own product further up */
    for (int i = 0; i < n; i++) {
        const bool special =
            rws_var_op(path, parts[i], NULL, NULL) == &rws_op_onehot || two_valued(path, parts[i], &bits, &args);
        if (!special && (main < 0 || rws_var_is_shared(path, parts[main], parts[i]))) main = i, main_offset = offset;
        offset += rws_dim(path, parts[i]);
    }
    /* a sum that is shared as a whole may meet again with other one-hot parts: its products are then there already */
    if (main >= 0 && n > 1 && rws_var_is_above(path, parts[main])) main = -1, main_offset = 0;
    offset = 0;
    for (int i = 0; i < n; i++) {
        if (i == main) in[0] = parts[i];
        else in[n_in++] = product(path, l, offset, parts[i]);
        offset += rws_dim(path, parts[i]);
    }
    return rws_record(path, &rws_op_dense, (rws_op_args){.w = l->w, .b = l->b, .offset = main_offset, .k = (int)f}, in,
                      n_in, l->n_out);
}

rws_var rws_linear_parts(rws_path *path, const rws_layer *l, const rws_var *parts, int n)
{
    rws_var v;
    if (rws_replayed(path, &v)) return v;
    rws_layer_expect(path, l, RWS_LAYER_LINEAR, "rws_linear");
    return rws_returns(path, rws_dense(path, l, RWS_LINEAR, parts, n));
}

rws_var rws_linear(rws_path *path, const rws_layer *l, rws_var x)
{
    return rws_linear_parts(path, l, &x, 1);
}
