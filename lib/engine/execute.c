/* execute.c - merging: nodes of all paths with equal call keys become one call.
 *
 *     path 1    … linear(A) - tanh - linear(B) ?           wave 1   linear(A): rows of 1, 2, 3   one product
 *     path 2    … linear(A) - tanh - linear(C) ?    ->     wave 2   tanh
 *     path 3    … linear(A) - tanh - linear(B) ?           wave 3   linear(B): 1, 3;  linear(C): 2
 *
 * Only what leads to a wanted value is computed; the rest (most log-densities) waits for the end of the pass, where it
 * meets the same work of all other paths.
 */
#include "engine/internal.h"

#include <string.h>

/* A node with so many rows has a call to itself: gathering its inputs would cost more than the call. */
#define ALONE 128

static uint32_t n_rows(const rws_engine *e, const node *n)
{
    return e->levels[n->rows].n_rows;
}

/* exp(value) of a node, if its op saved it; else NULL. */
static const float *exponentials(const rws_engine *e, uint32_t id)
{
    const node *n = &e->nodes[id];
    if (!n->op || !n->op->saves_exp) return NULL;
    if (n->op->saves) return n->saved;
    return e->nodes[n->in[0]].rows == n->rows ? exponentials(e, n->in[0]) : NULL;
}

/* Whether node n reads the rows of node m in their order. */
static bool in_order(rws_engine *e, const node *n, const node *m)
{
    if (n->rows == m->rows) return true;
    return e->levels[m->rows].place && n_rows(e, n) == n_rows(e, m) && !rws__level_map(e, n->rows, m->rows);
}

/* Copies the rows that node n reads of its input, which may have several parts. */
static float *gather(rws_engine *e, const node *n, uint32_t in, float *to)
{
    const reading r = rws__node_read(e, in, n->rows);
    const size_t  dim = (size_t)e->nodes[in].dim, rows = n_rows(e, n);
    if (!r.row) memcpy(to, r.value, rows * dim * sizeof(float));
    else
        for (size_t j = 0; j < rows; j++) memcpy(to + j * dim, r.value + r.row[j] * dim, dim * sizeof(float));
    return to + rows * dim;
}

/* Input s of all nodes of a call as one view. */
static void resolve(rws_engine *e, call *c, int s)
{
    const uint32_t *ids = e->order + c->first;
    const node     *first = &e->nodes[ids[0]];
    if (!first->in[s]) { /* absent */
        c->source[s] = 0;
        return;
    }
    const uint32_t source = rws__node_part(e, first->in[s], first->rows);
    c->source[s] = source;
    rws_view *v = &c->c.in[s];
    v->dim = e->nodes[first->in[s]].dim;

    bool         one_source = source != NONE, contiguous = one_source;
    const float *expected = one_source ? e->nodes[source].value : NULL;
    for (uint32_t i = 0; i < c->n_nodes && one_source | contiguous; i++) {
        const node    *n = &e->nodes[ids[i]];
        const uint32_t part = rws__node_part(e, n->in[s], n->rows);
        one_source &= part == source;
        contiguous &= part != NONE;
        if (!contiguous) continue;
        const node *m = &e->nodes[part];
        contiguous &= m->value == expected && m->call == e->nodes[source].call && in_order(e, n, m);
        expected = m->value + (size_t)n_rows(e, n) * (size_t)v->dim;
    }
    if (contiguous && (c->n_nodes == 1 || e->nodes[source].call != NONE)) {
        v->data = e->nodes[source].value;
        if (c->n_nodes == 1 || e->nodes[source].op->saves)
            v->exp = exponentials(e, source); /* then what was saved is contiguous too */
    } else if (one_source) {
        v->data = e->nodes[source].value;
        v->exp = exponentials(e, source);
        v->same = n_rows(e, &e->nodes[source]) == 1;
        const uint32_t from = e->nodes[source].rows;
        if (c->n_nodes == 1) {
            v->row = rws__level_map(e, first->rows, from);
            return;
        }
        uint32_t *row = RWS_NEW(&e->arena, uint32_t, c->c.n), at = 0;
        for (uint32_t i = 0; i < c->n_nodes; i++) {
            const node     *n = &e->nodes[ids[i]];
            const uint32_t *map = rws__level_map(e, n->rows, from);
            for (uint32_t j = 0; j < n_rows(e, n); j++) row[at++] = map ? map[j] : j;
        }
        v->row = row;
    } else {
        c->source[s] = NONE;
        float *to = RWS_NEW(&e->arena, float, (size_t)c->c.n *(size_t)v->dim);
        v->data = to;
        for (uint32_t i = 0; i < c->n_nodes; i++) to = gather(e, &e->nodes[ids[i]], e->nodes[ids[i]].in[s], to);
    }
}

#define WATCHED (1 << 18) /* numbers that calls compute between two questions whether to stop: about a millisecond */

void rws__engine_watch(rws_engine *e, bool (*stop)(void *context), void *context)
{
    e->stop = stop;
    e->stop_context = context;
}

void rws__engine_check_stop(rws_engine *e, const rws_call *k)
{
    e->unwatched += k ? (uint64_t)k->n * (uint64_t)k->dim : WATCHED;
    if (e->unwatched < WATCHED) return;
    e->unwatched = 0;
    if (e->stop && e->stop(e->stop_context)) rws__engine_fail(e, RWS_STOPPED, "The pass was stopped.");
}

static void execute_call(rws_engine *e, uint32_t first, uint32_t n_nodes)
{
    call *c = RWS_PUSH(e, e->calls, e->n_calls, e->call_capacity);
    *c = (call){.first = first, .n_nodes = n_nodes};
    const uint32_t *ids = e->order + first;
    const node     *head = &e->nodes[ids[0]];
    rws_call       *k = &c->c;
    k->op = head->op;
    k->dim = head->dim;
    k->n_in = head->n_in;
    k->args = head->args;
    k->arena = &e->arena;
    k->products = &e->products;
    for (uint32_t i = 0; i < n_nodes; i++) k->n += (int)n_rows(e, &e->nodes[ids[i]]);
    rws__engine_check_stop(e, k);
    for (int s = 0; s < k->n_in; s++) resolve(e, c, s);
    if (k->args.w) {
        const rws_param *w = k->args.w;
        k->w = (k->args.tangent ? e->tangent : e->params->value) + w->offset;
        if (w->transposed) k->wt = (k->args.tangent ? e->tangent_transposed : e->params->transposed) + w->transposed_at;
    }
    if (k->args.b) k->b = (k->args.tangent ? e->tangent : e->params->value) + k->args.b->offset;
    k->out = RWS_NEW(&e->arena, float, (size_t)k->n *(size_t)k->dim);
    if (k->op->saves) k->saved = RWS_NEW(&e->arena, float, (size_t)k->n *(size_t)k->in[0].dim);
    if (k->op == &rws__op_join) rws__join_forward(e, head, k->out);
    else k->op->forward(k);

    uint32_t row = 0;
    for (uint32_t i = 0; i < n_nodes; i++) {
        node *n = &e->nodes[ids[i]];
        n->value = k->out + (size_t)row * (size_t)k->dim;
        if (k->saved) n->saved = k->saved + (size_t)row * (size_t)k->in[0].dim;
        n->call = e->n_calls - 1;
        n->state = e->nodes[n->origin].state = DONE;
        row += n_rows(e, n);
        c->depends |= n->depends;
    }
    e->stats.calls++;
    e->stats.rows += (uint64_t)k->n;
    if (k->refused && e->status == RWS_OK) rws__call_explain(e, e->n_calls - 1);
}

/* Pending nodes of one wave with equal call keys. */
typedef struct {
    uint64_t call_key;
    uint32_t wave, first, last; /* places in pending */
} bunch;

static bunch *find_bunch(bunch *bunches, uint32_t *n, uint32_t *table, uint32_t mask, const node *m)
{
    for (uint32_t at = ((uint32_t)m->call_key ^ m->wave * 0x9e3779b9u) & mask;; at = (at + 1) & mask) {
        if (!table[at]) {
            table[at] = ++*n;
            bunches[*n - 1] = (bunch){m->call_key, m->wave, NONE, NONE};
        }
        bunch *b = &bunches[table[at] - 1];
        if (b->call_key == m->call_key && b->wave == m->wave) return b;
    }
}

/* Orders pending nodes by wave, and those of equal call keys next to each other; bunches of a wave stay in the order of
 * their first nodes. */
static void bring_together(rws_engine *e)
{
    rws_arena_mark mark = rws__arena_at(&e->arena);
    const uint32_t n = e->n_pending;
    uint32_t       mask = 63, n_bunches = 0, n_waves = 0;
    while (mask < 2 * n) mask = 2 * mask + 1;
    uint32_t *table = RWS_NEW0(&e->arena, uint32_t, mask + 1), *next = RWS_NEW(&e->arena, uint32_t, n);
    bunch    *bunches = RWS_NEW(&e->arena, bunch, n);
    for (uint32_t i = 0; i < n; i++) {
        const node *m = &e->nodes[e->pending[i]];
        bunch      *b = find_bunch(bunches, &n_bunches, table, mask, m);
        next[i] = NONE;
        if (b->first == NONE) b->first = i;
        else next[b->last] = i;
        b->last = i;
        if (m->wave >= n_waves) n_waves = m->wave + 1;
    }
    uint32_t *start = RWS_NEW0(&e->arena, uint32_t, n_waves + 1), *order = RWS_NEW(&e->arena, uint32_t, n_bunches);
    for (uint32_t i = 0; i < n_bunches; i++) start[bunches[i].wave + 1]++;
    for (uint32_t w = 0; w < n_waves; w++) start[w + 1] += start[w];
    for (uint32_t i = 0; i < n_bunches; i++) order[start[bunches[i].wave]++] = i;
    uint32_t *sorted = RWS_NEW(&e->arena, uint32_t, n), at = 0;
    for (uint32_t i = 0; i < n_bunches; i++)
        for (uint32_t k = bunches[order[i]].first; k != NONE; k = next[k]) sorted[at++] = e->pending[k];
    memcpy(e->pending, sorted, n * sizeof *sorted);
    rws__arena_release(&e->arena, mark);
}

void rws__engine_execute(rws_engine *e)
{
    rws__demand(e);
    if (e->n_pending == 0) return;
    for (uint32_t i = 0; i < e->n_pending; i++) {
        node           *m = &e->nodes[e->pending[i]];
        uint32_t        wave = 0, n_in;
        const uint32_t *ids = node_inputs(e, m, &n_in);
        for (uint32_t s = 0; s < n_in; s++) {
            const node *in = &e->nodes[ids[s]];
            if (ids[s] && in->state == NEEDED && in->wave >= wave) wave = in->wave + 1;
        }
        m->wave = e->nodes[m->origin].wave = wave;
    }
    if (!e->pass.scalar) bring_together(e);
    const uint32_t base = e->n_order;
    for (uint32_t i = 0; i < e->n_pending; i++) *RWS_PUSH(e, e->order, e->n_order, e->order_capacity) = e->pending[i];
    const uint32_t n_pending = e->n_pending;
    for (uint32_t i = 0, m; i < n_pending; i += m) {
        const node *head = &e->nodes[e->order[base + i]];
        for (m = 1; i + m < n_pending && !e->pass.scalar && n_rows(e, head) < ALONE; m++) {
            const node *next = &e->nodes[e->order[base + i + m]];
            if (next->wave != head->wave || next->call_key != head->call_key || n_rows(e, next) >= ALONE) break;
        }
        execute_call(e, base + i, m);
    }
}
