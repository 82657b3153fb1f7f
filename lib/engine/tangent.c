/* tangent.c - directional derivatives of what was computed, as further nodes on the same tape.
 *
 * The derivative of a node along a direction in parameter space follows from those of its inputs by the rule of its op
 * (tensor/tangent.h). Derivatives are found from the parameters down, each node once: node.tangent is the node that
 * holds its derivative, 0 if the node does not move, NONE if it is not known (yet).
 */
#include "tensor/tangent.h"
#include "engine/internal.h"

/* ---- what rules may do */

rws_var rws__tangent_record(rws_tangent *t, const rws_op *op, rws_op_args args, const rws_var *in, int n_in, int dim)
{
    uint32_t ids[RWS_OP_INPUTS];
    RWS_CHECK(n_in <= RWS_OP_INPUTS);
    for (int s = 0; s < n_in; s++) ids[s] = in[s].id;
    return (rws_var){rws__node_op(t->engine, op, args, ids, n_in, dim, NONE, 0)};
}

rws_var rws__tangent_saved(rws_tangent *t)
{
    rws_engine *e = t->engine;
    uint32_t    id = 0;
    for (uint32_t part = t->y.id; part; part = e->nodes[part].more) {
        const node     n = e->nodes[part]; /* a copy: the nodes may move */
        const uint32_t leaf = rws__node_leaf(e, n.level, e->nodes[n.in[0]].dim, n.saved);
        e->nodes[leaf].all = n.all;
        e->nodes[leaf].rows = n.rows;
        e->nodes[leaf].more = id;
        id = leaf;
    }
    return (rws_var){id};
}

rws_var rws__tangent_zeros(rws_tangent *t, int dim)
{
    return (rws_var){rws__node_leaf(t->engine, ROOT, dim, RWS_NEW0(&t->engine->arena, float, dim))};
}

int rws__tangent_dim(const rws_tangent *t, rws_var v)
{
    return t->engine->nodes[v.id].dim;
}

/* ---- from the parameters down */

/* Whether no gradient passes through a node to its inputs. */
static bool is_constant(const node *n)
{
    return !n->op || n->op->constant || n->args.stop;
}

/* The first input of a node whose derivative is not known but needed; 0: there is none. */
static uint32_t unknown_input(const rws_engine *e, uint32_t id)
{
    const node     *n = &e->nodes[id];
    uint32_t        n_in;
    const uint32_t *in = node_inputs(e, n, &n_in);
    for (uint32_t s = 0; s < n_in && !is_constant(n); s++)
        if (in[s] && e->nodes[in[s]].tangent == NONE) return in[s];
    return 0;
}

/* The derivative of rows of other nodes: rows of their derivatives. */
static uint32_t derive_join(rws_engine *e, const node *n)
{
    join      of = e->joins[n->in[0]];
    uint32_t *source = RWS_NEW(&e->arena, uint32_t, of.n), zeros = 0, any = 0;
    for (uint32_t s = 0; s < of.n; s++) any |= source[s] = e->nodes[of.source[s]].tangent;
    for (uint32_t s = 0; s < of.n && any; s++) {
        if (!source[s] && !zeros) zeros = rws__node_leaf(e, ROOT, n->dim, RWS_NEW0(&e->arena, float, n->dim));
        if (!source[s]) source[s] = zeros;
    }
    of.source = source;
    return any ? rws__node_join(e, n->level, &of) : 0;
}

/* The derivative of node id if the parameters of these groups move and those of its inputs are known; NONE where no rule
 * is known. */
static uint32_t derive(rws_engine *e, unsigned groups, uint32_t id)
{
    const node n = e->nodes[id]; /* a copy: rules record, which may move the nodes */
    if (n.param)
        return param_moves(n.param, &n.args, groups)
                   ? rws__node_leaf(e, ROOT, n.dim, (float *)e->tangent + n.param->offset)
                   : 0;
    if (is_constant(&n)) return 0;
    if (n.op == &rws__op_join) return derive_join(e, &n);
    rws_tangent t = {.engine = e, .op = n.op, .args = n.args, .dim = n.dim, .n_in = n.n_in, .y = {id}};
    t.weight_moves = n.args.w && param_moves(n.args.w, &n.args, groups);
    bool any = t.weight_moves;
    for (int s = 0; s < n.n_in; s++) {
        t.in[s].id = n.in[s];
        if (n.in[s]) t.d[s].id = e->nodes[n.in[s]].tangent;
        any |= t.d[s].id != 0;
    }
    if (!any) return 0;
    return n.op->tangent ? n.op->tangent(&t).id : NONE;
}

/* The derivative of a node, and before it those of the nodes that it is made of. Nodes that wait for an input are on the
 * list e->pending and not on the stack of the thread, because a chain of nodes may be long. */
static uint32_t derivative(rws_engine *e, unsigned groups, uint32_t id)
{
    e->n_pending = 0;
    if (e->nodes[id].tangent == NONE) *RWS_PUSH(e, e->pending, e->n_pending, e->pending_capacity) = id;
    while (e->n_pending) {
        const uint32_t last = e->pending[e->n_pending - 1], in = unknown_input(e, last);
        if (in) {
            *RWS_PUSH(e, e->pending, e->n_pending, e->pending_capacity) = in;
            continue;
        }
        const uint32_t d = derive(e, groups, last);
        if (d == NONE)
            rws__engine_fail(e, RWS_BAD_INPUT, "The operation \"%s\" has no second derivative here.",
                             e->nodes[last].op->name);
        e->nodes[last].tangent = d;
        e->n_pending--;
    }
    return e->nodes[id].tangent;
}

static void differentiate(rws_engine *e, int from, int to, unsigned groups, const float *direction)
{
    if (e->tangent != direction) {
        float *transposed = RWS_NEW(&e->arena, float, e->params->transposed_size + 16);
        for (uint32_t i = 0; i < e->n_nodes; i++) e->nodes[i].tangent = NONE;
        e->tangent = direction;
        rws__params_transpose(e->params, groups, direction, transposed);
        e->tangent_transposed = transposed;
    }
    for (uint32_t l = 0; l < e->n_levels; l++) {
        if (e->levels[l].outputs[from] == NONE) continue;
        uint32_t d = derivative(e, groups, e->levels[l].outputs[from]);
        if (d == 0) d = rws__node_leaf(e, ROOT, 1, RWS_NEW0(&e->arena, float, 1));
        e->levels[l].outputs[to] = d;
    }
    rws__scores_output(e, to);
}

rws_status rws__engine_tangent(rws_engine *e, int from, int to, unsigned groups, const float *direction, rws_error *err)
{
    RWS_ENTER(e, differentiate(e, from, to, groups, direction));
    return rws__engine_status(e, err);
}
