/* tangent.c - directional derivatives of what was computed, as further nodes on the same tape.
 *
 * The derivative of a node along a direction in parameter space is written with ordinary ops on the nodes that are there
 * already. Reverse mode through those then gives second derivatives: forward over reverse.
 */
#include "engine/internal.h"

#include <math.h>

typedef struct {
    rws_engine *e;
    unsigned    groups; /* whose parameters move */
} mover;

static uint32_t record(rws_engine *e, const rws_op *op, rws_op_args args, const uint32_t *in, int n_in, int dim)
{
    return rws_node_op(e, op, args, in, n_in, dim, NONE, 0);
}

static uint32_t add(rws_engine *e, uint32_t a, uint32_t b)
{
    if (!a || !b) return a ? a : b;
    const int n = e->nodes[a].dim, m = e->nodes[b].dim;
    return record(e, &rws_op_add, (rws_op_args){0}, (uint32_t[]){a, b}, 2, n > m ? n : m);
}

static uint32_t scale(rws_engine *e, uint32_t a, float s)
{
    return a ? record(e, &rws_op_affine, (rws_op_args){.s = s}, &a, 1, e->nodes[a].dim) : 0;
}

static uint32_t mul(rws_engine *e, uint32_t a, uint32_t b)
{
    if (!a || !b) return 0;
    const int n = e->nodes[a].dim, m = e->nodes[b].dim;
    return record(e, &rws_op_mul, (rws_op_args){0}, (uint32_t[]){a, b}, 2, n > m ? n : m);
}

static uint32_t dot(rws_engine *e, uint32_t a, uint32_t b)
{
    return a && b ? record(e, &rws_op_dot, (rws_op_args){0}, (uint32_t[]){a, b}, 2, 1) : 0;
}

static uint32_t exp_dot(rws_engine *e, uint32_t a, uint32_t b, uint32_t c)
{
    return record(e, &rws_op_exp_dot, (rws_op_args){0}, (uint32_t[]){a, b, c}, c ? 3 : 2, 1);
}

static uint32_t moved(mover *v, uint32_t id);

/* W and b may move as well as x and the addends. */
static uint32_t dense(mover *v, uint32_t id)
{
    rws_engine *e = v->e;
    const node  n = e->nodes[id];
    rws_op_args args = {.w = n.args.w, .offset = n.args.offset, .k = RWS_LINEAR};
    uint32_t    in[RWS_OP_INPUTS] = {n.in[0] ? moved(v, n.in[0]) : 0};
    int         n_in = 1;
    for (int s = 1; s < n.n_in; s++) {
        const uint32_t d = moved(v, n.in[s]);
        if (d == NONE) return NONE;
        if (d) in[n_in++] = d;
    }
    if (in[0] == NONE) return NONE;
    if (v->groups >> n.args.w->group & 1) {
        const rws_op_args moving = {
            .w = n.args.w, .b = n.args.b, .offset = n.args.offset, .k = RWS_LINEAR, .tangent = true};
        RWS_CHECK(n_in < RWS_OP_INPUTS);
        in[n_in++] = record(e, &rws_op_dense, moving, n.in, 1, n.dim);
    }
    if (!in[0] && n_in == 1) return 0;
    const uint32_t a = record(e, &rws_op_dense, args, in, n_in, n.dim);
    if (n.args.k == RWS_LINEAR) return a;
    return record(e, &rws_op_apply_tangent, (rws_op_args){.k = n.args.k}, (uint32_t[]){id, a}, 2, n.dim);
}

static uint32_t zeros(rws_engine *e, int dim)
{
    return rws_node_leaf(e, ROOT, dim, RWS_NEW0(&e->arena, float, dim));
}

/* The same op on the derivatives. Where an input does not move its derivative is zero. */
static uint32_t linear(mover *v, uint32_t id, const uint32_t *d)
{
    rws_engine *e = v->e;
    const node  n = e->nodes[id];
    uint32_t    in[RWS_OP_INPUTS];
    for (int s = 0; s < n.n_in; s++) in[s] = d[s] ? d[s] : zeros(e, e->nodes[n.in[s]].dim);
    rws_op_args args = n.args;
    args.t = 0;
    return record(e, n.op, args, in, n.n_in, n.dim);
}

/* Of -((x - m) / s)^2 / 2 - …: -(x - m) / s^2 (dx - dm), summed; the standard deviation must not move. */
static uint32_t normal(mover *v, uint32_t id, const uint32_t *d)
{
    rws_engine *e = v->e;
    const node  n = e->nodes[id];
    if (d[2]) return NONE;
    const int dim = e->nodes[n.in[0]].dim;
    uint32_t  by = record(e, &rws_op_sub, (rws_op_args){0}, (uint32_t[]){n.in[1], n.in[0]}, 2, dim);
    by = record(e, &rws_op_div, (rws_op_args){0}, (uint32_t[]){by, n.in[2]}, 2, dim);
    by = record(e, &rws_op_div, (rws_op_args){0}, (uint32_t[]){by, n.in[2]}, 2, dim);
    const uint32_t product = mul(e, by, add(e, d[0], scale(e, d[1], -1)));
    return e->nodes[product].dim == 1 ? product : record(e, &rws_op_sum, (rws_op_args){0}, &product, 1, 1);
}

/* What the op of a node has kept, as a constant. */
static uint32_t saved(rws_engine *e, uint32_t id)
{
    const node n = e->nodes[id];
    return rws_node_leaf(e, n.level, e->nodes[n.in[0]].dim, n.saved);
}

/* The derivative of node id; 0 where it does not move; NONE where no rule is known. */
static uint32_t derive(mover *v, uint32_t id)
{
    rws_engine *e = v->e;
    const node  n = e->nodes[id];
    if (n.param)
        return v->groups >> n.param->group & 1 ? rws_node_leaf(e, ROOT, n.dim, (float *)e->tangent + n.param->offset)
                                               : 0;
    if (!n.op || n.op->constant || n.args.stop) return 0;
    if (n.op->tangent == RWS_TANGENT_DENSE) return dense(v, id);
    if (n.op->tangent == RWS_TANGENT_WEIGHT) {
        rws_op_args moving = n.args;
        moving.tangent = true;
        return v->groups >> n.args.w->group & 1 ? record(e, n.op, moving, n.in, n.n_in, n.dim) : 0;
    }

    uint32_t d[RWS_OP_INPUTS] = {0};
    bool     any = false;
    for (int s = 0; s < n.n_in; s++) {
        d[s] = moved(v, n.in[s]);
        if (d[s] == NONE) return NONE;
        any |= d[s] != 0;
    }
    if (!any) return 0;
    switch (n.op->tangent) {
    case RWS_TANGENT_LINEAR: return linear(v, id, d);
    case RWS_TANGENT_PRODUCT: return add(e, mul(e, n.in[0], d[1]), mul(e, d[0], n.in[1]));
    case RWS_TANGENT_QUOTIENT: { /* (da - y db) / b */
        const uint32_t top = add(e, d[0], scale(e, mul(e, id, d[1]), -1));
        return record(e, &rws_op_div, (rws_op_args){0}, (uint32_t[]){top, n.in[1]}, 2, n.dim);
    }
    case RWS_TANGENT_APPLY:
        return record(e, &rws_op_apply_tangent, (rws_op_args){.k = n.args.k}, (uint32_t[]){id, d[0]}, 2, n.dim);
    case RWS_TANGENT_DOT: return add(e, dot(e, n.in[0], d[1]), dot(e, d[0], n.in[1]));
    case RWS_TANGENT_EXP_DOT:
        if (n.n_in > 2) return NONE;
        return add(e, d[0] ? exp_dot(e, n.in[0], n.in[1], d[0]) : 0, d[1] ? exp_dot(e, n.in[0], d[1], 0) : 0);
    case RWS_TANGENT_SOFTMAX:
        if (d[1]) return NONE;
        return record(e, &rws_op_log_softmax_tangent, (rws_op_args){0}, (uint32_t[]){saved(e, id), d[0], id, n.in[1]},
                      n.n_in + 2, n.dim);
    case RWS_TANGENT_LOG_SUM_EXP:
        return record(e, &rws_op_softmax_dot, (rws_op_args){0},
                      (uint32_t[]){saved(e, id), add(e, d[0], d[1]), n.in[0], n.in[1]}, n.n_in + 2, 1);
    case RWS_TANGENT_PICK: return record(e, &rws_op_pick, (rws_op_args){0}, (uint32_t[]){d[0], n.in[1]}, 2, 1);
    case RWS_TANGENT_FIRST: return d[0];
    case RWS_TANGENT_SLOPE: return mul(e, saved(e, id), d[0]);
    case RWS_TANGENT_NORMAL: return normal(v, id, d);
    default: return NONE;
    }
}

static uint32_t moved(mover *v, uint32_t id)
{
    if (v->e->nodes[id].tangent == NONE) {
        const uint32_t d = derive(v, id);
        v->e->nodes[id].tangent = d;
        if (d == NONE && v->e->status == RWS_OK)
            v->e->status = rws_fail(&v->e->error, RWS_BAD_INPUT, "The operation \"%s\" has no second derivative here.",
                                    v->e->nodes[id].op->name);
    }
    return v->e->nodes[id].tangent;
}

rws_status rws_engine_tangent(rws_engine *e, int from, int to, unsigned groups, const float *direction, rws_error *err)
{
    if (e->tangent != direction) {
        for (uint32_t i = 0; i < e->n_nodes; i++) e->nodes[i].tangent = NONE;
        e->tangent = direction;
        float *transposed = RWS_NEW(&e->arena, float, e->params->transposed_size + 16);
        rws_params_transpose(e->params, groups, direction, transposed);
        e->tangent_transposed = transposed;
    }
    mover v = {e, groups};
    for (uint32_t l = 0; l < e->n_levels; l++) {
        if (e->levels[l].outputs[from] == NONE) continue;
        uint32_t d = moved(&v, e->levels[l].outputs[from]);
        if (d == 0) d = zeros(e, 1);
        e->levels[l].outputs[to] = d;
    }
    if (e->status == RWS_OK) rws_scores_output(e, to);
    if (e->status != RWS_OK && err) *err = e->error;
    return e->status;
}
