/* audit.c - what a pass has done at single sites and with single parameters: for reviews of programs (lib/check).
 *
 * A term is a node, and everything that it is computed from are the nodes behind it. The search ends at values of sites: what
 * these were drawn from is the affair of their own terms.
 *
 *     log q(z)  <-  z                the term's own value
 *               <-  logits  <-  phi.net.0.weight, x        made of phi and of the datum
 */
#include "engine/internal.h"

#include <string.h>

enum { SEEN = 1, SITE = 2 }; /* marks of nodes: it was visited; it is the value at a site */

typedef struct {
    rws_engine *e;
    uint8_t    *mark;
} audit;

static audit audit_begin(rws_engine *e)
{
    audit a = {e, RWS_NEW0(&e->arena, uint8_t, e->n_nodes)};
    e->n_pending = 0;
    for (uint32_t i = 0; i < e->n_paths; i++)
        for (uint32_t k = 0; k < e->paths[i]->n_trace; k++) a.mark[e->paths[i]->trace[k].var] |= SITE;
    for (uint32_t i = 0; i < e->n_segments; i++)
        for (uint32_t k = 0; k < e->segments[i]->n_trace; k++) a.mark[e->segments[i]->trace[k].var] |= SITE;
    return a;
}

static void visit(audit *a, uint32_t id)
{
    rws_engine *e = a->e;
    if (a->mark[id] & SEEN) return;
    a->mark[id] |= SEEN;
    *RWS_PUSH(e, e->pending, e->n_pending, e->pending_capacity) = id;
}

/* The next node behind those that were visited, whose inputs are visited too; NULL: there is none. */
static const node *next(audit *a, uint32_t own, uint32_t *id)
{
    rws_engine *e = a->e;
    if (!e->n_pending) return NULL;
    *id = e->pending[--e->n_pending];
    if (*id == own || a->mark[*id] & SITE) return &e->nodes[*id];
    uint32_t        n_in;
    const uint32_t *in = node_inputs(e, &e->nodes[*id], &n_in);
    for (uint32_t i = 0; i < n_in; i++) visit(a, in[i]);
    return &e->nodes[*id];
}

/* The parameters that a node is, or that its op computes with, and NULL behind them. */
typedef struct {
    const rws_param *list[4];
} params;

static params params_of(const node *n)
{
    params p = {{n->param}};
    int    at = n->param != NULL;
    if (n->op && n->args.w) p.list[at++] = n->args.w;
    if (n->op && n->args.b) p.list[at] = n->args.b;
    return p;
}

static unsigned made_of(const audit *a, const node *n, uint32_t id, uint32_t own)
{
    if (id == own || id == 0) return 0;
    if (a->mark[id] & SITE) return RWS_MADE_OF_CHOICES;
    unsigned     of = !n->op && !n->param && n->level != ROOT ? RWS_MADE_OF_DATA : 0;
    const params p = params_of(n);
    for (int i = 0; p.list[i]; i++) of |= 1u << p.list[i]->group;
    return of;
}

static unsigned trace_back(audit *a, const term *t, uint32_t own)
{
    unsigned    all = 0;
    uint32_t    id;
    const node *n;
    for (uint32_t i = 0; i < a->e->n_nodes; i++) a->mark[i] &= (uint8_t)~SEEN;
    visit(a, t->node);
    while ((n = next(a, own, &id))) all |= made_of(a, n, id, own);
    return all;
}

/* ---- the terms of a row */

/* The entry of a term in the n segments of its row. */
static const trace_entry *entry_of(const past *all, uint32_t n, const term *t)
{
    for (uint32_t s = 0; s < n; s++)
        for (uint32_t i = 0; i < all[s].in->n_trace; i++)
            if (all[s].in->trace[i].site == t->site && all[s].in->trace[i].visit == t->visit)
                return &all[s].in->trace[i];
    return NULL;
}

static rws_row_term describe(audit *a, const trace_entry *entry, uint32_t base, const term *t, uint32_t at,
                             double value)
{
    rws_engine *e = a->e;
    const bool  branched = e->levels[at].cover != ROOT && e->levels[at].cover > base;
    return (rws_row_term){.site = e->sites[t->site].name,
                          .number = (int)t->site,
                          .visit = (int)t->visit,
                          .guided = t->kind != RWS_TERM_P,
                          .n_values = entry && e->nodes[entry->var].dim == 1 ? entry->n_values : 0,
                          .value = value,
                          .made_of = trace_back(a, t, entry ? entry->var : 0) | (branched ? RWS_MADE_OF_BRANCH : 0)};
}

static void read_terms(rws_engine *e, int row, rws_term_reader *each, void *context)
{
    const origin    o = rws__scores_origin(e, row);
    const rws_path *path = e->paths[e->ends[o.end].path];
    audit           a = audit_begin(e);
    uint32_t        r = o.row, n;
    const past     *all = rws__past_of(e, path, o.row, &n);
    for (uint32_t at = e->ends[o.end].level; at != NONE; at = rws__level_before(e, at, &r))
        for (uint32_t k = e->levels[at].terms; k != NONE; k = e->terms[k].next) {
            const term *t = &e->terms[k];
            if (t->kind == RWS_TERM_D) continue;
            const reading      value = rws__node_read(e, t->node, at);
            const rws_row_term out =
                describe(&a, entry_of(all, n, t), path->base, t, at, (double)value.value[value.row ? value.row[r] : r]);
            each(context, &out);
        }
}

rws_status rws__engine_terms(rws_engine *e, int row, rws_term_reader *each, void *context)
{
    RWS_CHECK(row >= 0 && row < e->scores.n);
    RWS_ENTER(e, read_terms(e, row, each, context));
    return e->status;
}

/* ---- parameters */

static void add_use(audit *a, bool guided, rws_use *uses)
{
    uint32_t    id;
    const node *n;
    while ((n = next(a, NONE, &id))) {
        const params p = params_of(n);
        for (int i = 0; p.list[i] && !(a->mark[id] & SITE); i++)
            *(guided ? &uses[p.list[i]->number].guide : &uses[p.list[i]->number].model) = true;
    }
}

static void read_uses(rws_engine *e, rws_use *uses)
{
    for (uint32_t i = 1; i < e->n_nodes; i++) {
        const params p = params_of(&e->nodes[i]);
        for (int k = 0; p.list[k]; k++) uses[p.list[k]->number].recorded = true;
    }
    for (int guided = 0; guided < 2; guided++) {
        audit a = audit_begin(e);
        for (uint32_t i = 0; i < e->n_terms; i++)
            if ((e->terms[i].kind != RWS_TERM_P) == guided) visit(&a, e->terms[i].node);
        add_use(&a, guided, uses);
    }
}

rws_status rws__engine_uses(rws_engine *e, rws_use *uses)
{
    RWS_ENTER(e, read_uses(e, uses));
    return e->status;
}

/* ---- jumps */

const char *rws__engine_jump(const rws_engine *e, uint32_t i, bool *end)
{
    *end = i >= e->n_sites;
    return !*end && e->sites[i].jumps && e->sites[i].how < 0 ? e->sites[i].name : NULL;
}
