/* pcfg_derive.c - the two programs of the grammar: both derive a tree from the top, one by the rules' probabilities, the
 * other by what a network proposes. */
#include "model/pcfg.h"

#include "data/edit.h"

#include <math.h>
#include <string.h>

/* ---- derivations */

typedef struct {
    int     symbol, depth; /* a non-terminal */
    int     rule;          /* which of its productions, from 0; RWS_LEAF: not expanded */
    int     parent, place; /* place: how many siblings of the same symbol stand to the left of it */
    int     first_child;   /* its non-terminals follow each other from here on */
    rws_var state;         /* of the guide's core */
} branch;

/* The nodes in the order in which they were found; 0 is the start. */
typedef struct {
    branch *node;
    int     n, capacity, n_expanded;
    bool    cut;
} derivation;

/* The log-probabilities of a node's productions; nothing where there is no choice. */
typedef rws_var proposer(rws_run *r, const rws_pcfg *m, derivation *t, int node, void *context);

static void *grown(rws_run *r, const void *old, size_t bytes)
{
    void *p = rws_alloc(r, 2 * bytes);
    return bytes ? memcpy(p, old, bytes) : p;
}

static void add_node(rws_run *r, derivation *t, branch b)
{
    if (t->n == t->capacity) {
        t->node = grown(r, t->node, (size_t)t->capacity * sizeof *t->node);
        t->capacity *= 2;
    }
    t->node[t->n++] = b;
}

static void add_children(rws_run *r, const rws_pcfg *m, derivation *t, int parent)
{
    const branch          b = t->node[parent];
    const rws_production *p = &m->g->productions[m->g->first[b.symbol] + b.rule];
    t->node[parent].first_child = t->n;
    for (int k = 0; k < p->n_right; k++) {
        if (p->right[k].word) continue;
        int place = 0;
        for (int i = t->node[parent].first_child; i < t->n; i++) place += t->node[i].symbol == p->right[k].id;
        add_node(
            r, t,
            (branch){
                .symbol = p->right[k].id, .depth = b.depth + 1, .rule = RWS_LEAF, .parent = parent, .place = place});
    }
}

/* Nodes that are still to be expanded. All of them are next, or in a sequential derivation the last. */
typedef struct {
    int *at, n, capacity;
} agenda;

static void plan(rws_run *r, agenda *a, int node)
{
    if (a->n == a->capacity) {
        a->at = grown(r, a->at, (size_t)a->capacity * sizeof *a->at);
        a->capacity *= 2;
    }
    a->at[a->n++] = node;
}

/* The non-terminals below a node, the leftmost one last if that is where to go on. */
static void plan_children(rws_run *r, const rws_pcfg *m, agenda *a, const derivation *t, int from)
{
    for (int i = from; i < t->n; i++) plan(r, a, m->sequential ? t->n - 1 - (i - from) : i);
}

/* Derives a tree: whoever proposes, the sites are the non-terminals' names. */
static derivation *derive(rws_run *r, const rws_pcfg *m, proposer *propose, void *context)
{
    const rws_grammar *g = m->g;
    derivation        *t = rws_alloc(r, sizeof *t);
    *t = (derivation){.node = rws_alloc(r, 32 * sizeof *t->node), .capacity = 32};
    add_node(r, t, (branch){.symbol = g->start, .rule = RWS_LEAF, .parent = -1});
    agenda next = {rws_alloc(r, 32 * sizeof *next.at), 0, 32};
    plan(r, &next, 0);
    while (next.n) {
        const int take = m->sequential ? 1 : next.n;
        int      *now = rws_alloc(r, (size_t)take * sizeof *now), n_awaited = 0;
        rws_var  *log_p = rws_alloc(r, 2 * (size_t)take * sizeof *log_p), *awaited = log_p + take;
        next.n -= take;
        memcpy(now, next.at + next.n, (size_t)take * sizeof *now);
        for (int i = 0; i < take; i++) {
            branch *b = &t->node[now[i]];
            if (b->depth > m->caps.max_depth || t->n_expanded == m->caps.max_nodes) {
                t->cut = true;
                continue;
            }
            t->n_expanded++;
            b->rule = 0;
            if (m->deep[b->symbol]) log_p[i] = propose(r, m, t, now[i], context);
            if (rws_pcfg_rules(g, b->symbol) > 1) awaited[n_awaited++] = log_p[i];
        }
        rws_await(r, awaited, n_awaited);
        for (int i = 0; i < take; i++) {
            branch *b = &t->node[now[i]];
            if (b->rule == RWS_LEAF) continue;
            if (rws_pcfg_rules(g, b->symbol) > 1) b->rule = rws_choose(r, g->nonterminals[b->symbol], log_p[i]);
            const int from = t->n;
            add_children(r, m, t, now[i]);
            plan_children(r, m, &next, t, from);
        }
    }
    return t;
}

/* What a tree says and how it is written down (tree.h), read from left to right. */
typedef struct {
    const rws_pcfg   *m;
    const derivation *t;
    int              *rules, n_rules;
    float            *words;
    int               n_words;
} reading;

/* A place in the right-hand side of an expanded node: the next symbol, and the node it is if it is a non-terminal. */
typedef struct {
    const rws_production *rule;
    int                   k, child;
} place;

/* Comes to a node. Returns whether there is something below it. */
static bool enter(reading *out, int node, place *below)
{
    const branch *b = &out->t->node[node];
    const int     rule = b->rule == RWS_LEAF ? RWS_LEAF : out->m->g->first[b->symbol] + b->rule;
    out->rules[out->n_rules++] = rule;
    if (rule == RWS_LEAF) {
        out->words[out->n_words++] = RWS_OOV;
        return false;
    }
    *below = (place){&out->m->g->productions[rule], 0, b->first_child};
    return true;
}

static reading read_tree(rws_run *r, const rws_pcfg *m, const derivation *t, float *words)
{
    reading out = {m, t, rws_alloc(r, (size_t)t->n * sizeof *out.rules), 0, words, 0};
    place  *path = rws_alloc(r, (size_t)(t->n_expanded + 1) * sizeof *path);
    int     n = enter(&out, 0, path);
    while (n) {
        place *at = &path[n - 1];
        if (at->k == at->rule->n_right) {
            n--;
            continue;
        }
        const rws_symbol s = at->rule->right[at->k++];
        if (s.word) words[out.n_words++] = (float)s.id;
        else n += enter(&out, at->child++, path + n);
    }
    return out;
}

/* ---- the two programs */

static rws_var by_rules(rws_run *r, const rws_pcfg *m, derivation *t, int node, void *context)
{
    (void)context;
    const int a = t->node[node].symbol;
    return rws_pcfg_rules(m->g, a) > 1 ? rws_log_softmax(r, rws_parameter(r, m->theta[a])) : (rws_var){0};
}

static rws_var by_truth(rws_run *r, const rws_pcfg *m, derivation *t, int node, void *context)
{
    (void)r, (void)m;
    return ((const rws_var *)context)[t->node[node].symbol];
}

/* What likelihoods compare with, and room for what they look at. */
typedef struct {
    const rws_pcfg *m;
    int            *made, n_made, *datum;
} comparison;

/* log p(x | z) = -Lev(x, s(z))^2; hard: 0 or -inf. */
static double likelihood(const float *datum, const float *made, int dim, const void *context)
{
    (void)dim;
    const comparison *c = context;
    if (c->m->hard) return memcmp(datum, made, (size_t)(1 + c->n_made) * sizeof *made) == 0 ? 0 : -INFINITY;
    const double d = rws_edit_distance(c->datum, rws_pcfg_words(datum, c->datum), c->made, c->n_made);
    return -d * d;
}

/* The words with blanks between them; an unknown one is a question mark. */
static char *sentence_text(rws_run *r, const rws_pcfg *m, const reading *read)
{
    size_t length = 1;
    for (int i = 0; i < read->n_words; i++)
        length += 2 + (read->words[i] == RWS_OOV ? 0 : strlen(m->g->terminals[(int)read->words[i]]));
    char *text = rws_alloc(r, length), *at = text;
    for (int i = 0; i < read->n_words; i++) {
        if (i) *at++ = ' ';
        at = stpcpy(at, read->words[i] == RWS_OOV ? "?" : m->g->terminals[(int)read->words[i]]);
    }
    return text;
}

static void tell(rws_run *r, const rws_pcfg *m, const reading *read, bool cut)
{
    if (!rws_reports(r)) return;
    rws_report_text(r, "sentence", sentence_text(r, m, read));
    const rws_sequence rules = {.at = read->rules, .n = read->n_rules};
    const size_t       length = rws_tree_text(m->g, &rules, NULL, 0) + 1;
    char              *text = rws_alloc(r, length);
    rws_tree_text(m->g, &rules, text, length);
    rws_report_text(r, "tree", text);
    rws_report(r, "truncated", rws_constant(r, cut));
}

static void say(rws_run *r, const rws_pcfg *m, const derivation *t)
{
    float        *made = rws_alloc(r, (size_t)(1 + m->room) * sizeof *made);
    const reading read = read_tree(r, m, t, made + 1);
    comparison   *c = rws_alloc(r, sizeof *c);
    made[0] = (float)read.n_words;
    tell(r, m, &read, t->cut);
    *c = (comparison){.m = m, .made = rws_alloc(r, (size_t)(read.n_words + m->room) * sizeof *c->made)};
    c->n_made = rws_pcfg_words(made, c->made);
    c->datum = c->made + c->n_made;
    rws_simulate(r, RWS_PCFG_SENTENCE, made, likelihood, c);
}

void rws_pcfg_model(rws_run *r, const void *state)
{
    say(r, state, derive(r, state, by_rules, NULL));
}

void rws_pcfg_truth(rws_run *r, const void *state)
{
    const rws_pcfg *m = state;
    rws_var        *log_p = rws_alloc(r, (size_t)m->g->n_nonterminals * sizeof *log_p);
    for (int a = 0; a < m->g->n_nonterminals; a++)
        log_p[a] = rws_log_softmax(r, rws_constants(r, m->log_truth + m->g->first[a], rws_pcfg_rules(m->g, a)));
    say(r, m, derive(r, m, by_truth, log_p));
}

typedef struct {
    rws_var e; /* the sentence */
    rws_var no_rule, no_state;
    int     last; /* the node visited last, for a sequential core */
} reader;

static rws_var by_guide(rws_run *r, const rws_pcfg *m, derivation *t, int node, void *context)
{
    reader       *g = context;
    branch       *b = &t->node[node];
    const int     before = m->sequential ? g->last : b->parent;
    const int     address = b->symbol + m->g->n_nonterminals * b->place;
    const bool    top = before < 0;
    const rws_var rule =
        top ? g->no_rule : rws_onehot(r, rws_constant(r, (float)t->node[before].rule), m->g->max_productions);
    const rws_var parts[] = {g->e, rule,
                             rws_onehot(r, rws_constant(r, (float)address), m->g->n_nonterminals * m->n_places)};
    b->state = rws_gru(r, m->core, parts, 3, top ? g->no_state : t->node[before].state);
    g->last = node;
    if (rws_pcfg_rules(m->g, b->symbol) == 1) return (rws_var){0};
    return rws_log_softmax(r, rws_mlp(r, m->proposal[b->symbol], b->state));
}

void rws_pcfg_guide(rws_run *r, const void *state)
{
    const rws_pcfg *m = state;
    const float     zeros[RWS_PCFG_HIDDEN] = {0};
    float          *no_word = rws_alloc(r, (size_t)(m->g->n_terminals + m->g->max_productions) * sizeof *no_word);
    const rws_var   unknown = rws_constants(r, no_word, m->g->n_terminals);
    reader          g = {.no_rule = rws_constants(r, no_word, m->g->max_productions),
                         .no_state = rws_constants(r, zeros, RWS_PCFG_HIDDEN),
                         .last = -1};
    const float    *x = rws_look(r, rws_observed(r, RWS_PCFG_SENTENCE));
    g.e = g.no_state;
    for (int i = 0; i < (int)x[0]; i++) {
        const rws_var word =
            x[1 + i] == RWS_OOV ? unknown : rws_onehot(r, rws_constant(r, x[1 + i]), m->g->n_terminals);
        g.e = rws_gru(r, m->encoder, &word, 1, g.e);
    }
    derive(r, m, by_guide, &g);
}
