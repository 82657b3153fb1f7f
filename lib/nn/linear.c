/* linear.c - y = W x + b over one or several parts. */
#include "nn/linear.h"

#include <stdio.h>
#include <string.h>

const rws_layer_kind rws_linear_kind = {"linear", "W x + b"};

rws_linear_layer *rws__linear_new(rws_setup *s, rws_group group, const char *name, const char *weight, const char *bias,
                                  int n_in, int n_out, rws_init init, int scale)
{
    char              full[160];
    rws_linear_layer *l = rws__layer_new(s, &rws_linear_kind, sizeof *l, name, n_in, n_out);
    snprintf(full, sizeof full, "%s.%s", l->layer.name, weight);
    l->w = rws__setup_param_scaled(s, group, full, n_out, n_in, init, scale);
    l->w->transposed = n_out == 1 || (size_t)n_in * (size_t)n_out <= RWS_MAX_TRANSPOSED;
    snprintf(full, sizeof full, "%s.%s", l->layer.name, bias);
    l->b = rws__setup_param_scaled(s, group, full, 1, n_out, init == RWS_UNIFORM ? init : RWS_ZERO, scale);
    return l;
}

rws_layer *rws_setup_linear(rws_setup *s, rws_group group, const char *name, int n_in, int n_out, rws_init init)
{
    return &rws__linear_new(s, group, name, "weight", "bias", n_in, n_out, init, n_in)->layer;
}

rws_param *rws_layer_bias(const rws_layer *l)
{
    if (l->kind == &rws_mlp_kind) return rws__mlp_bias(l);
    return l->kind == &rws_linear_kind ? ((const rws_linear_layer *)l)->b : NULL;
}

/* Whether a part holds two different numbers only: it is s x + t where x is zeros and ones. Then sums of columns of W
 * can be looked up, if W has a transposed copy. Leaves x, s and t in *x and *args. */
static bool two_valued(rws_path *path, rws_var part, rws_var *x, rws_op_args *args)
{
    rws_op_args   how = {.s = 1};
    rws_var       in[RWS_OP_INPUTS];
    const rws_op *op = rws__var_op(path, part, in, NULL);
    if (op == &rws_op_affine) {
        rws__var_op(path, part, NULL, &how);
        part = in[0];
        op = rws__var_op(path, part, NULL, NULL);
    }
    if (!op || !op->binary || !args->w->transposed) return false;
    *x = part;
    args->s = how.s, args->t = how.t;
    return true;
}

/* The product of one part with its columns of W, without bias; for a one-hot part it is a column of W. */
static rws_var product(rws_path *path, const rws_linear_layer *l, int offset, rws_var part)
{
    rws_var     in[RWS_OP_INPUTS];
    rws_op_args args = {.w = l->w, .offset = offset};
    if (two_valued(path, part, in, &args)) return rws__record(path, &rws_op_bits, args, in, 1, l->layer.n_out);
    if (rws__var_op(path, part, in, NULL) == &rws_op_onehot)
        return rws__record(path, &rws_op_embed,
                           (rws_op_args){.w = l->w, .offset = offset, .t = (float)rws_dim(path, part)}, in, 1,
                           l->layer.n_out);
    return rws__record(path, &rws_op_dense, (rws_op_args){.w = l->w, .offset = offset, .k = RWS_LINEAR}, &part, 1,
                       l->layer.n_out);
}

/* Replaces addends by their sums until one op takes all that are left, beside x. Returns how many are left. (A dense op
 * without x and W is a sum.) */
static int shorten(rws_path *path, rws_var *addends, int n, int dim)
{
    const int most = RWS_OP_INPUTS - 1;
    while (n > most) {
        rws_var in[RWS_OP_INPUTS] = {{0}};
        n -= most;
        memcpy(in + 1, addends + n, (size_t)most * sizeof *in);
        addends[n++] = rws__record(path, &rws_op_dense, (rws_op_args){.k = RWS_LINEAR}, in, RWS_OP_INPUTS, dim);
    }
    return n;
}

rws_var rws__dense(rws_path *path, const rws_linear_layer *l, rws_function f, const rws_var *parts, int n)
{
    const int n_out = l->layer.n_out;
    int       total = 0, main = -1, offset = 0, main_offset = 0, n_addends = 0;
    if (n < 1) rws__path_mistake(path, "layer \"%s\" takes at least 1 part, not %d.", l->layer.name, n);
    for (int i = 0; i < n; i++) total += rws_dim(path, parts[i]);
    if (total != l->layer.n_in)
        rws__path_mistake(path, "layer \"%s\" takes %d inputs, not %d.", l->layer.name, l->layer.n_in, total);

    rws_var     bits;
    rws_op_args args = {.w = l->w, .b = l->b};
    if (n == 1 && f == RWS_LINEAR && two_valued(path, parts[0], &bits, &args))
        return rws__record(path, &rws_op_bits, args, &bits, 1, n_out);

    /* the part that varies most is multiplied by this op; parts that more particles share have products of their own,
     * at the rows where they vary */
    for (int i = 0; i < n; i++) {
        const bool special =
            rws__var_op(path, parts[i], NULL, NULL) == &rws_op_onehot || two_valued(path, parts[i], &bits, &args);
        if (!special && (main < 0 || rws__var_is_shared(path, parts[main], parts[i]))) main = i, main_offset = offset;
        offset += rws_dim(path, parts[i]);
    }
    /* if even that part is shared, it gets a product of its own, too: the next call of the layer, with other one-hot
     * parts, finds all these products computed */
    if (main >= 0 && n > 1 && rws__var_is_above(path, parts[main])) main = -1, main_offset = 0;
    rws_var few[RWS_OP_INPUTS], *addends = n <= RWS_OP_INPUTS ? few : rws_alloc(path, (size_t)n * sizeof *addends);
    offset = 0;
    for (int i = 0; i < n; i++) {
        if (i != main) addends[n_addends++] = product(path, l, offset, parts[i]);
        offset += rws_dim(path, parts[i]);
    }
    rws_var in[RWS_OP_INPUTS] = {main < 0 ? (rws_var){0} : parts[main]};
    n_addends = shorten(path, addends, n_addends, n_out);
    memcpy(in + 1, addends, (size_t)n_addends * sizeof *in);
    return rws__record(path, &rws_op_dense, (rws_op_args){.w = l->w, .b = l->b, .offset = main_offset, .k = (int)f}, in,
                       1 + n_addends, n_out);
}

rws_var rws_linear_parts(rws_path *path, const rws_layer *l, const rws_var *parts, int n)
{
    rws_var v;
    if (rws__replayed(path, &v)) return v;
    const rws_linear_layer *own = rws__layer_expect(path, l, &rws_linear_kind);
    return rws__returns(path, rws__dense(path, own, RWS_LINEAR, parts, n));
}

rws_var rws_linear(rws_path *path, const rws_layer *l, rws_var x)
{
    return rws_linear_parts(path, l, &x, 1);
}
