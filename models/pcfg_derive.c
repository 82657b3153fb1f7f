/* pcfg_derive.c - the two programs of the grammar. Both derive a tree from the top: the model by the rules'
 * probabilities, the guide by the probabilities that a network proposes. */
#include "models/pcfg.h"

#include <math.h>
#include <string.h>

/* ---- derivations */

typedef struct {
    int     symbol, depth; /* a non-terminal */
    int     rule;          /* number of its production, from 0; RWS_LEAF: not expanded */
    int     parent, place; /* place: number of siblings with the same symbol to its left */
    int     first_child;   /* index of its first non-terminal child; the others follow */
    rws_var state;         /* of the guide's core */
} branch;

/* The nodes in the order in which they were found; 0 is the start. */
typedef struct {
    branch *node;
    int     n, capacity, n_expanded;
    bool    cut;
} derivation;

/* The log-probabilities of a node's productions; an empty rws_var where there is only one. */
typedef rws_var proposer(rws_path *path, const rws_pcfg *m, derivation *t, int node, void *context);

static void *grown(rws_path *path, const void *old, size_t bytes)
{
    void *p = rws_alloc(path, 2 * bytes);
    return bytes ? memcpy(p, old, bytes) : p;
}

static void add_node(rws_path *path, derivation *t, branch b)
{
    if (t->n == t->capacity) {
        t->node = grown(path, t->node, (size_t)t->capacity * sizeof *t->node);
        t->capacity *= 2;
    }
    t->node[t->n++] = b;
}

static void add_children(rws_path *path, const rws_pcfg *m, derivation *t, int parent)
{
    const branch          b = t->node[parent];
    const rws_production *p = &m->g->productions[m->g->first[b.symbol] + b.rule];
    t->node[parent].first_child = t->n;
    for (int k = 0; k < p->n_right; k++) {
        if (p->right[k].word) continue;
        int place = 0;
        for (int i = t->node[parent].first_child; i < t->n; i++) place += t->node[i].symbol == p->right[k].id;
        add_node(
            path, t,
            (branch){
                .symbol = p->right[k].id, .depth = b.depth + 1, .rule = RWS_LEAF, .parent = parent, .place = place});
    }
}

/* Nodes that are still to be expanded: all of them at once or, in a sequential derivation, the last one first. */
typedef struct {
    int *at, n, capacity;
} agenda;

static void plan(rws_path *path, agenda *a, int node)
{
    if (a->n == a->capacity) {
        a->at = grown(path, a->at, (size_t)a->capacity * sizeof *a->at);
        a->capacity *= 2;
    }
    a->at[a->n++] = node;
}

/* Plans the nodes from `from` on; in a sequential derivation in reverse order, so that the leftmost is the last. */
static void plan_children(rws_path *path, const rws_pcfg *m, agenda *a, const derivation *t, int from)
{
    for (int i = from; i < t->n; i++) plan(path, a, m->sequential ? t->n - 1 - (i - from) : i);
}

/* Derives a tree. The sites of both programs are the names of the non-terminals. */
static derivation *derive(rws_path *path, const rws_pcfg *m, proposer *propose, void *context)
{
    const rws_grammar *g = m->g;
    derivation        *t = rws_alloc(path, sizeof *t);
    *t = (derivation){.node = rws_alloc(path, 32 * sizeof *t->node), .capacity = 32};
    add_node(path, t, (branch){.symbol = g->start, .rule = RWS_LEAF, .parent = -1});
    agenda next = {rws_alloc(path, 32 * sizeof *next.at), 0, 32};
    plan(path, &next, 0);
    while (next.n) {
        const int take = m->sequential ? 1 : next.n;
        int      *now = rws_alloc(path, (size_t)take * sizeof *now), n_awaited = 0;
        rws_var  *log_p = rws_alloc(path, 2 * (size_t)take * sizeof *log_p), *awaited = log_p + take;
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
            if (m->deep[b->symbol]) log_p[i] = propose(path, m, t, now[i], context);
            if (rws__pcfg_rules(g, b->symbol) > 1) awaited[n_awaited++] = log_p[i];
        }
        rws_await(path, awaited, n_awaited);
        for (int i = 0; i < take; i++) {
            branch *b = &t->node[now[i]];
            if (b->rule == RWS_LEAF) continue;
            if (rws__pcfg_rules(g, b->symbol) > 1) b->rule = rws_choose(path, g->nonterminals[b->symbol], log_p[i]);
            const int from = t->n;
            add_children(path, m, t, now[i]);
            plan_children(path, m, &next, t, from);
        }
    }
    return t;
}

/* The words of a tree, and its list of productions (parse_tree.h). */
typedef struct {
    const rws_pcfg   *m;
    const derivation *t;
    int              *rules, n_rules;
    float            *words;
    int               n_words;
} reading;

/* A place in the right-hand side of an expanded node: symbol k is next; `child` is the node of the next
 * non-terminal. */
typedef struct {
    const rws_production *rule;
    int                   k, child;
} place;

/* Adds a node to the reading. Returns whether it was expanded; *below is then the start of its right-hand side. */
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

static reading read_tree(rws_path *path, const rws_pcfg *m, const derivation *t, float *words)
{
    reading out = {m, t, rws_alloc(path, (size_t)t->n * sizeof *out.rules), 0, words, 0};
    place  *stack = rws_alloc(path, (size_t)(t->n_expanded + 1) * sizeof *stack);
    int     n = enter(&out, 0, stack);
    while (n) {
        place *at = &stack[n - 1];
        if (at->k == at->rule->n_right) {
            n--;
            continue;
        }
        const rws_symbol s = at->rule->right[at->k++];
        if (s.word) words[out.n_words++] = (float)s.id;
        else n += enter(&out, at->child++, stack + n);
    }
    return out;
}

/* ---- the two programs */

static rws_var by_rules(rws_path *path, const rws_pcfg *m, derivation *t, int node, void *context)
{
    (void)context;
    const int a = t->node[node].symbol;
    return rws__pcfg_rules(m->g, a) > 1 ? rws_log_softmax(path, rws_parameter(path, m->theta[a])) : (rws_var){0};
}

static rws_var by_truth(rws_path *path, const rws_pcfg *m, derivation *t, int node, void *context)
{
    (void)path, (void)m;
    return ((const rws_var *)context)[t->node[node].symbol];
}

/* The words of the tree, for the likelihood to compare data with, and scratch memory for the words of a datum. */
typedef struct {
    const rws_pcfg *m;
    int            *made, n_made, *datum;
    int            *row; /* scratch memory of rws_edit_distance */
} comparison;

/* log p(x | z) = -Lev(x, s(z))^2; hard: 0 or -inf. */
static double likelihood(const float *datum, const float *made, int dim, const void *context)
{
    (void)dim;
    const comparison *c = context;
    if (c->m->hard) return memcmp(datum, made, (size_t)(1 + c->n_made) * sizeof *made) == 0 ? 0 : -INFINITY;
    const double d = rws_edit_distance(c->datum, rws__pcfg_words(datum, c->datum), c->made, c->n_made, c->row);
    return -d * d;
}

/* The words with blanks between them; an unknown one is a question mark. */
static char *sentence_text(rws_path *path, const rws_pcfg *m, const reading *read)
{
    size_t length = 1;
    for (int i = 0; i < read->n_words; i++)
        length += 2 + (read->words[i] == RWS_OOV ? 0 : strlen(m->g->terminals[(int)read->words[i]]));
    char *text = rws_alloc(path, length), *at = text;
    for (int i = 0; i < read->n_words; i++) {
        if (i) *at++ = ' ';
        at = stpcpy(at, read->words[i] == RWS_OOV ? "?" : m->g->terminals[(int)read->words[i]]);
    }
    return text;
}

static void report_tree(rws_path *path, const rws_pcfg *m, const reading *read, bool cut)
{
    if (!rws_reports(path)) return;
    rws_report_text(path, "sentence", sentence_text(path, m, read));
    const rws_sequence rules = {.at = read->rules, .n = read->n_rules};
    const size_t       length = rws__parse_tree_text(m->g, &rules, NULL, 0);
    char              *text = rws_alloc(path, length + 1);
    if (length == 0 || rws__parse_tree_text(m->g, &rules, text, length + 1) != length)
        rws_give_up(path, "There is no memory for the text of a tree.");
    rws_report_text(path, "tree", text);
    rws_report(path, "truncated", rws_constant(path, cut));
}

/* The sentence of the tree, as the program's observation. */
static void emit_sentence(rws_path *path, const rws_pcfg *m, const derivation *t)
{
    float        *made = rws_alloc(path, (size_t)(1 + m->max_words) * sizeof *made);
    const reading read = read_tree(path, m, t, made + 1);
    comparison   *c = rws_alloc(path, sizeof *c);
    made[0] = (float)read.n_words;
    report_tree(path, m, &read, t->cut);
    *c = (comparison){.m = m, .made = rws_alloc(path, (size_t)(2 * read.n_words + 1 + m->max_words) * sizeof *c->made)};
    c->n_made = rws__pcfg_words(made, c->made);
    c->row = c->made + c->n_made;
    c->datum = c->row + c->n_made + 1;
    rws_simulate(path, RWS_PCFG_SENTENCE, made, likelihood, c);
}

void rws__pcfg_model(rws_path *path, const void *state)
{
    emit_sentence(path, state, derive(path, state, by_rules, NULL));
}

void rws__pcfg_truth(rws_path *path, const void *state)
{
    const rws_pcfg *m = state;
    rws_var        *log_p = rws_alloc(path, (size_t)m->g->n_nonterminals * sizeof *log_p);
    for (int a = 0; a < m->g->n_nonterminals; a++)
        log_p[a] = rws_log_softmax(path, rws_constants(path, m->log_truth + m->g->first[a], rws__pcfg_rules(m->g, a)));
    emit_sentence(path, m, derive(path, m, by_truth, log_p));
}

typedef struct {
    rws_var e; /* the sentence */
    rws_var no_rule, no_state;
    int     last; /* the node visited last, for a sequential core */
} reader;

static rws_var by_guide(rws_path *path, const rws_pcfg *m, derivation *t, int node, void *context)
{
    reader       *g = context;
    branch       *b = &t->node[node];
    const int     before = m->sequential ? g->last : b->parent;
    const int     address = b->symbol + m->g->n_nonterminals * b->place;
    const bool    top = before < 0;
    const rws_var rule =
        top ? g->no_rule : rws_onehot(path, rws_constant(path, (float)t->node[before].rule), m->g->max_productions);
    const rws_var parts[] = {g->e, rule,
                             rws_onehot(path, rws_constant(path, (float)address), m->g->n_nonterminals * m->n_places)};
    b->state = rws_gru(path, m->core, parts, 3, top ? g->no_state : t->node[before].state);
    g->last = node;
    if (rws__pcfg_rules(m->g, b->symbol) == 1) return (rws_var){0};
    return rws_log_softmax(path, rws_mlp(path, m->proposal[b->symbol], b->state));
}

void rws__pcfg_guide(rws_path *path, const void *state)
{
    const rws_pcfg *m = state;
    const rws_var   unknown = rws_zeros(path, m->g->n_terminals);
    reader          g = {.last = -1};
    g.no_rule = rws_zeros(path, m->g->max_productions);
    g.e = g.no_state = rws_zeros(path, RWS_PCFG_HIDDEN);
    const float *x = rws_look(path, rws_observed(path, RWS_PCFG_SENTENCE));
    for (int i = 0; i < (int)x[0]; i++) {
        const rws_var word =
            x[1 + i] == RWS_OOV ? unknown : rws_onehot(path, rws_constant(path, x[1 + i]), m->g->n_terminals);
        g.e = rws_gru(path, m->encoder, &word, 1, g.e);
    }
    derive(path, m, by_guide, &g);
}
