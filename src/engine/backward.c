/* backward.c - the tape in reverse: from a coefficient per row to the gradient of every parameter.
 *
 * A term of log p or log q at a level counts as much as all the rows below it together. So coefficients are added up
 * along the levels, from the leaves to the root, and each term is seeded once where it lives.
 */
#include "engine/internal.h"
#include "tensor/gemm.h"

float *node_gradient(rws_engine *e, uint32_t id, float *gradient)
{
    node *n = &e->nodes[id];
    if (n->param) return gradient + n->param->offset;
    call *c = &e->calls[n->call];
    if (!c->gradient) c->gradient = RWS_NEW0(&e->arena, float, (size_t)c->c.n *(size_t)c->c.dim);
    return c->gradient + (size_t)n->first_row * (size_t)n->dim;
}

/* gradient of node += coefficient of the rows below it, which are those of level `at` */
static void seed(rws_engine *e, uint32_t id, uint32_t at, const double *coef, unsigned groups, float *gradient)
{
    const node *n = &e->nodes[id];
    if (!(n->depends & groups)) return;
    float          *g = node_gradient(e, id, gradient);
    const uint32_t *map = level_map(e, at, n->level);
    const uint32_t  rows = e->levels[at].n_rows;
    if (map)
        for (uint32_t i = 0; i < rows; i++) g[map[i]] += (float)coef[i];
    else
        for (uint32_t i = 0; i < rows; i++) g[i] += (float)coef[i];
}

/* The part of a table of coefficients that belongs to a leaf whose rows begin at `at`. */
static double *leaf_coef(rws_engine *e, double *table, uint32_t at, uint32_t n)
{
    if (!e->place) return table + at;
    double *coef = RWS_NEW(&e->arena, double, n);
    for (uint32_t row = 0; row < n; row++) coef[row] = table[e->place[at + row]];
    return coef;
}

static void seed_terms(rws_engine *e, unsigned groups, float *gradient)
{
    const rws_scores *s = &e->scores;
    double           *tables[N_COEF] = {s->coef_p, s->coef_q, s->coef_r};
    for (uint32_t l = 0; l < e->n_levels; l++)
        for (int k = 0; k < N_COEF; k++) e->levels[l].coef[k] = NULL;
    uint32_t at = 0;
    for (uint32_t i = 0; i < e->n_leaves; i++) {
        level *l = &e->levels[e->leaves[i]];
        for (int k = 0; k < N_COEF; k++)
            if (l->total[k]) l->coef[k] = leaf_coef(e, tables[k], at, l->n_rows); /* else no terms on the way here */
        for (int slot = 0; slot < RWS_OUTPUTS; slot++) {
            if (!s->coef_out[slot]) continue;
            const double *coef = leaf_coef(e, s->coef_out[slot], at, l->n_rows);
            for (uint32_t up = e->leaves[i]; up != NONE; up = e->levels[up].parent)
                if (e->levels[up].outputs[slot] != NONE) {
                    seed(e, e->levels[up].outputs[slot], e->leaves[i], coef, groups, gradient);
                    break;
                }
        }
        at += l->n_rows;
    }
    for (uint32_t at_level = e->n_levels; at_level-- > 0;) {
        level *l = &e->levels[at_level];
        for (uint32_t t = l->terms; t != NONE; t = e->terms[t].next)
            if (e->terms[t].kind < N_COEF && l->coef[e->terms[t].kind])
                seed(e, e->terms[t].node, at_level, l->coef[e->terms[t].kind], groups, gradient);
        for (int k = 0; k < N_COEF && l->parent != NONE; k++) {
            level *up = &e->levels[l->parent];
            if (!l->coef[k] || !up->total[k]) continue;
            if (!up->coef[k]) up->coef[k] = RWS_NEW0(&e->arena, double, up->n_rows);
            for (uint32_t i = 0; i < l->n_rows; i++) up->coef[k][l->up[i]] += l->coef[k][i];
        }
    }
}

static bool wanted(const rws_engine *e, const call *c, int s, unsigned groups)
{
    if (c->source[s] != NONE && (c->n_nodes == 1 || c->c.in[s].row)) return e->nodes[c->source[s]].depends & groups;
    for (uint32_t i = 0; i < c->n_nodes; i++)
        if (e->nodes[e->nodes[e->order[c->first + i]].in[s]].depends & groups) return true;
    return false;
}

/* Rows that were gathered from several nodes give their gradients back to them. */
static void scatter(rws_engine *e, const call *c, int s, unsigned groups, const float *from, float *gradient)
{
    const size_t dim = (size_t)c->c.in[s].dim;
    for (uint32_t i = 0; i < c->n_nodes; i++) {
        const node    *n = &e->nodes[e->order[c->first + i]];
        const uint32_t rows = e->levels[n->level].n_rows;
        if (e->nodes[n->in[s]].depends & groups) {
            float          *to = node_gradient(e, n->in[s], gradient);
            const uint32_t *map = level_map(e, n->level, e->nodes[n->in[s]].level);
            for (uint32_t r = 0; r < rows; r++) {
                float *restrict row = to + (map ? map[r] : r) * dim;
                for (size_t j = 0; j < dim; j++) row[j] += from[r * dim + j];
            }
        }
        from += rows * dim;
    }
}

/* Whether input s is all of another call's output, which is used once here and has no gradient yet. */
static bool is_whole(const rws_engine *e, const call *c, int s)
{
    const node *n = &e->nodes[c->source[s]];
    if (n->param || c->c.in[s].row || e->calls[n->call].gradient || e->calls[n->call].c.n != c->c.n) return false;
    for (int i = 0; i < c->c.n_in; i++)
        if (i != s && c->source[i] && c->source[i] != NONE && e->nodes[c->source[i]].call == n->call) return false;
    return true;
}

static void backward_call(rws_engine *e, call *c, unsigned groups, float *gradient)
{
    rws_call *k = &c->c;
    k->gout = c->gradient;
    float *gathered[RWS_OP_INPUTS] = {0};
    for (int s = 0; s < k->n_in; s++) {
        k->gin[s] = (rws_sink){0};
        if (!c->source[s] || !wanted(e, c, s, groups)) continue;
        if (c->source[s] == NONE) {
            gathered[s] = RWS_NEW0(&e->arena, float, (size_t)k->n *(size_t)k->in[s].dim);
            k->gin[s].data = gathered[s];
        } else if (is_whole(e, c, s)) {
            call *source = &e->calls[e->nodes[c->source[s]].call];
            source->gradient = RWS_NEW(&e->arena, float, (size_t)k->n *(size_t)k->in[s].dim);
            k->gin[s] = (rws_sink){.data = source->gradient, .fresh = true};
        } else {
            k->gin[s] = (rws_sink){node_gradient(e, c->source[s], gradient), k->in[s].row, false};
        }
    }
    const rws_param *w = k->args.w, *b = k->args.b;
    k->gw = w && !k->args.tangent && groups >> w->group & 1 ? gradient + w->offset : NULL;
    k->gb = b && !k->args.tangent && groups >> b->group & 1 ? gradient + b->offset : NULL;
    k->op->backward(k);
    for (int s = 0; s < k->n_in; s++) rws_call_clear(k, s); /* what the op has no gradient for */
    for (int s = 0; s < k->n_in; s++)
        if (gathered[s]) scatter(e, c, s, groups, gathered[s], gradient);
}

void rws_engine_backward(rws_engine *e, unsigned groups, float *gradient)
{
    RWS_CHECK((groups & ~e->pass.groups) == 0);
    const uint64_t flops = rws_gemm_flops;
    for (uint32_t i = 0; i < e->n_calls; i++) e->calls[i].gradient = NULL;
    seed_terms(e, groups, gradient);
    for (uint32_t i = e->n_calls; i-- > 0;) {
        call *c = &e->calls[i];
        if (c->gradient && c->c.op->backward && c->depends & groups) backward_call(e, c, groups, gradient);
    }
    rws_products_flush(&e->products, gradient, &e->arena);
    e->stats.flops += rws_gemm_flops - flops;
}
