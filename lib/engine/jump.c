/* jump.c - programs that branch on a reparameterised draw, so that its gradient must come by the score of its density.
 *
 * A gradient that passes through a value sees the slope of what is computed from it, and not that another value would have taken
 * another branch. A program jumps where it branches on a value or looks at it, and at operations that jump themselves
 * (rws_op.jumps). Every node knows whether it is made of a reparameterised draw (DRAWN). At a jump the draws that the node is
 * made of are found, and if gradients pass through one of them, the pass begins anew with this site's values counted as constants
 * and their density in log q, as for a choice:
 *
 *     g  ->  g > 0  ->  branch           the pass begins anew; g is a constant, and its score has the signal of a choice
 *      \
 *       tanh(g)  ->  mean of x           which is right for what is smooth, too
 *
 * The sites of a pass that come by score are those that a jump is made of in this very pass, so that they depend on nothing but its
 * draws. Whether a particle meets a jump is decided by choices and by values that come by score, so that the gradient is that
 * of the bound whichever particles do. The engine tries the sites of the pass before first, and most passes run once. */
#include "engine/internal.h"

#include <stdio.h>

static _Noreturn void begin_anew(rws_engine *e)
{
    e->again = true;
    rws__engine_fail(e, RWS_STOPPED, "The pass begins anew.");
}

static const char *does(jump how)
{
    return how == JUMP_BRANCH ? "branches on" : how == JUMP_LOOK ? "looks at" : "compares";
}

/* A jump is made of a draw of this site. A user or an author who asks for gradients through its values is taken at their word
 * for comparisons, which may be parts of a smooth function. */
static void found(rws_path *path, uint32_t number, uint32_t id, jump how)
{
    rws_engine *e = path->e;
    site       *s = &e->sites[number];
    const bool  moves = e->nodes[id].depends & e->pass.groups;
    if (moves && s->how == RWS_REPARAMETERISED && how == JUMP_OP) return;
    if (moves && s->how == RWS_REPARAMETERISED)
        rws__path_mistake(path,
                          "the program %s a value that is made of site \"%.100s\", which is to be reparameterised; the "
                          "gradient would leave the jump out. Choose the score for this site, or leave the choice out.",
                          does(how), s->name);
    if (moves && s->scored)
        rws__path_mistake(path,
                          "the program %s a value that is made of site \"%.100s\", which this method relaxes; the "
                          "gradient would leave the jump out. Use another method, such as ww.",
                          does(how), s->name);
    s->jumps = true;
    if (s->scored) return;
    s->scored = true;
    begin_anew(e);
}

/* The site that drew a node. Its number may be too large for the node. */
static uint32_t site_of(const rws_path *path, uint32_t id)
{
    if (path->e->nodes[id].site != NO_SITE) return path->e->nodes[id].site;
    for (uint32_t i = path->n_trace; i-- > 0;)
        if (path->trace[i].var == id) return path->trace[i].site;
    return NONE;
}

void rws__path_jumps(rws_path *path, rws_var v, jump how)
{
    rws_engine   *e = path->e;
    const uint8_t done = how == JUMP_OP ? FOUND_FOR_BRANCH | FOUND_FOR_OP : FOUND_FOR_BRANCH;
    if (!(e->nodes[v.id].depends & DRAWN) || path->side == RWS_SIDE_NONE) return;
    e->n_pending = 0;
    *RWS_PUSH(e, e->pending, e->n_pending, e->pending_capacity) = v.id;
    while (e->n_pending) {
        const uint32_t id = e->pending[--e->n_pending];
        node          *n = &e->nodes[id];
        if (!(n->depends & DRAWN) || n->depends & done) continue;
        n->depends |= how == JUMP_OP ? FOUND_FOR_OP : FOUND_FOR_BRANCH;
        const uint32_t  number = n->depends & IS_DRAW ? site_of(path, id) : NONE;
        uint32_t        n_in;
        const uint32_t *in = node_inputs(e, n, &n_in);
        if (number != NONE) found(path, number, id, how);
        else
            for (uint32_t i = 0; i < n_in; i++) *RWS_PUSH(e, e->pending, e->n_pending, e->pending_capacity) = in[i];
    }
}

void rws__jumps_begin(rws_engine *e)
{
    for (uint32_t i = 0; i < e->n_sites && e->pass.pathwise; i++) e->sites[i].jumps = false;
}

void rws__jumps_end(rws_engine *e)
{
    bool fewer = false;
    for (uint32_t i = 0; i < e->n_sites && e->pass.pathwise; i++) {
        fewer |= e->sites[i].scored && !e->sites[i].jumps;
        e->sites[i].scored = e->sites[i].jumps;
    }
    if (fewer) begin_anew(e);
}
