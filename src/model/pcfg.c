/* pcfg.c - a probabilistic grammar, section 4.2: trees are drawn by the rules' probabilities, and a sentence is near
 * what the tree says. The rules are known; theta is the logits of their probabilities, a vector per non-terminal.
 *
 * The guide reads the sentence with a GRU, e(x), and derives a tree from the top: at a node of non-terminal a, whose
 * parent chose its production c, a second GRU takes [e(x); c; a] with the parent's output as its state, and a small
 * network of a's own proposes the production. Siblings do not see each other, so all nodes of a depth wait together:
 *
 *     S             core(S)
 *     NP VP         core(NP), core(VP)        in one call, over all particles
 *     NP PP V NP    …
 *
 * A tree ends at the latest where the caps say: a non-terminal deeper than `depth`, or after `nodes` expansions, stays a
 * leaf. It says an unknown word and costs no probability under either side. Expansions are counted depth by depth; with
 * pcfg_core=sequential, whose core runs through the tree in pre-order, they are counted in pre-order.
 */
#include "base/error.h"
#include "data/edit.h"
#include "data/parse.h"
#include "data/sentences.h"
#include "model/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define HIDDEN 100
#define SENTENCE "the sentence" /* the datum; no non-terminal has a blank in its name */

typedef struct {
    rws_grammar *g;
    rws_param  **theta; /* by non-terminal */
    rws_layer   *encoder, *core, **proposal;
    bool        *deep; /* by non-terminal: something is chosen at it or below it */
    bool         sequential, hard;
    int          n_places; /* how often a non-terminal stands in one right-hand side, at most */
    rws_caps     caps;
    int          room;      /* words of the longest sentence */
    float       *log_truth; /* by production; NULL if nobody knows */
    const char  *path[2];   /* files of sentences, by split; NULL: none */
    rws_unknown  unknown;
    rws_corpus  *corpus; /* empty until somebody asks for data */
} pcfg;

static const rws_setting settings[] = {
    {"grammar", "astronomers", 0, 0, "astronomers, orders, garden, or the path of a grammar file"},
    {"likelihood", "relaxed", 0, 0, "relaxed (exp(-distance^2) in words) or hard (the same sentence or nothing)"},
    {"depth", "30", 1, 10000, "non-terminals deeper than this stay leaves", true},
    {"nodes", "2000", 1, 10000, "and so do all after so many have been expanded", true},
    {"pcfg_core", "tree", 0, 0, "tree (states from parent to child) or sequential (along the derivation)"},
    {"rules", "random", 0, 0, "where theta starts: random (logits from N(0, 1)) or grammar (the file's probabilities)"},
    {"data", "grammar", 0, 0,
     "grammar (fresh sentences of its own), or the path of a file with a sentence on each line"},
    {"test_data", "data", 0, 0, "data (every tenth sentence of that file, not learned from), or the path of another"},
    {"unknown", "refuse", 0, 0, "what to do with sentences whose words the grammar does not have: refuse or skip them"},
    {0},
};

/* One of two words. */
static rws_status either(const rws_setup *s, const char *name, const char *no, const char *yes, bool *out,
                         rws_error *err)
{
    const char *text = rws_setup_text(s, name);
    *out = strcmp(text, yes) == 0;
    if (*out || strcmp(text, no) == 0) return RWS_OK;
    return rws_fail(err, RWS_BAD_INPUT, "%s is %s or %s, not \"%s\".", name, no, yes, text);
}

static int n_rules(const rws_grammar *g, int a)
{
    return g->first[a + 1] - g->first[a];
}

/* Where something is chosen, and above. */
static void find_deep(pcfg *m)
{
    const rws_grammar *g = m->g;
    for (int a = 0; a < g->n_nonterminals; a++) m->deep[a] = n_rules(g, a) > 1;
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < g->n_productions; i++) {
            const rws_production *p = &g->productions[i];
            for (int k = 0; k < p->n_right && !m->deep[p->left]; k++)
                if (!p->right[k].word && m->deep[p->right[k].id]) m->deep[p->left] = more = true;
        }
    }
}

static int count_places(const rws_grammar *g)
{
    int most = 1;
    for (int i = 0; i < g->n_productions; i++)
        for (int a = 0; a < g->n_nonterminals; a++) {
            int n = 0;
            for (int k = 0; k < g->productions[i].n_right; k++)
                n += !g->productions[i].right[k].word && g->productions[i].right[k].id == a;
            most = n > most ? n : most;
        }
    return most;
}

static const char *joined(rws_setup *s, const char *front, const char *name)
{
    char *text = rws_setup_alloc(s, strlen(front) + strlen(name) + 1);
    return strcat(strcpy(text, front), name);
}

static void declare_rules(rws_setup *s, pcfg *m, rws_random *random, bool from_grammar)
{
    const rws_grammar *g = m->g;
    for (int a = 0; a < g->n_nonterminals; a++) {
        m->theta[a] =
            rws_setup_param(s, RWS_THETA, joined(s, "theta.", g->nonterminals[a]), 1, n_rules(g, a), RWS_ZERO);
        float *logits = rws_param_values(m->theta[a]);
        for (int i = 0; i < n_rules(g, a); i++)
            logits[i] = (float)(from_grammar ? log(g->productions[g->first[a] + i].p) : rws_random_normal(random));
    }
}

static void declare_guide(rws_setup *s, pcfg *m)
{
    const rws_grammar *g = m->g;
    m->encoder = rws_setup_gru(s, RWS_PHI, "phi.encoder", g->n_terminals, HIDDEN);
    m->core =
        rws_setup_gru(s, RWS_PHI, "phi.core", HIDDEN + g->max_productions + g->n_nonterminals * m->n_places, HIDDEN);
    for (int a = 0; a < g->n_nonterminals; a++) {
        const int sizes[] = {HIDDEN, 50, 25, n_rules(g, a)};
        m->proposal[a] =
            rws_setup_mlp(s, RWS_PHI, joined(s, "phi.proposal.", g->nonterminals[a]), RWS_RELU, RWS_UNIFORM, sizes, 4);
    }
}

static bool is_built_in(const char *grammar)
{
    for (int i = 0; rws_grammar_names[i]; i++)
        if (strcmp(rws_grammar_names[i], grammar) == 0) return true;
    return false;
}

/* The path that a setting is, unless it is the word for none. */
static const char *path_of(rws_setup *s, const char *name, const char *none)
{
    return strcmp(rws_setup_text(s, name), none) == 0 ? NULL : rws_setup_path(s, name);
}

static rws_status setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    pcfg *m = rws_setup_alloc(s, sizeof *m);
    bool  from_grammar, skip;
    *state = m;
    if (either(s, "likelihood", "relaxed", "hard", &m->hard, err) != RWS_OK ||
        either(s, "pcfg_core", "tree", "sequential", &m->sequential, err) != RWS_OK ||
        either(s, "rules", "random", "grammar", &from_grammar, err) != RWS_OK ||
        either(s, "unknown", "refuse", "skip", &skip, err) != RWS_OK)
        return RWS_BAD_INPUT;
    const char *grammar = rws_setup_text(s, "grammar");
    RWS_TRY(rws_grammar_find(is_built_in(grammar) ? grammar : rws_setup_path(s, "grammar"), &m->g, err));
    m->unknown = skip ? RWS_UNKNOWN_SKIP : RWS_UNKNOWN_REFUSE;
    m->path[RWS_TRAIN] = path_of(s, "data", "grammar");
    m->path[RWS_TEST] = path_of(s, "test_data", "data");
    m->corpus = rws_setup_alloc(s, sizeof *m->corpus);
    const rws_grammar *g = m->g;
    const size_t       n = (size_t)g->n_nonterminals;
    m->caps = (rws_caps){rws_setup_int(s, "depth"), rws_setup_int(s, "nodes")};
    m->room = 1 + m->caps.max_nodes * (g->max_right > 1 ? g->max_right - 1 : 1);
    m->theta = rws_setup_alloc(s, n * sizeof *m->theta);
    m->proposal = rws_setup_alloc(s, n * sizeof *m->proposal);
    m->deep = rws_setup_alloc(s, n * sizeof *m->deep);
    m->n_places = count_places(g);
    find_deep(m);
    rws_setup_field(s, SENTENCE, 1 + m->room);
    declare_rules(s, m, random, from_grammar);
    declare_guide(s, m);
    const bool known = rws_grammar_is_given(g);
    if (known) m->log_truth = rws_setup_alloc(s, (size_t)g->n_productions * sizeof *m->log_truth);
    for (int i = 0; i < g->n_productions && known; i++) m->log_truth[i] = (float)log(g->productions[i].p);
    return RWS_OK;
}

static void release(void *state)
{
    pcfg *m = state;
    rws_grammar_free(m->g);
    if (m->corpus) rws_corpus_release(m->corpus);
}

/* ---- sentences as data: the number of words, then the words */

static void put_sentence(const pcfg *m, const int *tokens, int n, float *x)
{
    memset(x, 0, (size_t)(1 + m->room) * sizeof *x);
    x[0] = (float)n;
    for (int i = 0; i < n; i++) x[1 + i] = (float)tokens[i];
}

/* Sentences of one split: the corpus's, or fresh ones of the grammar's. */
typedef struct {
    const pcfg  *m;
    rws_split    split;
    int          n_file; /* in the corpus; 0: it has none */
    double      *log_p;
    rws_sequence tree, words;
} source;

/* The files that there are were read by whoever asked first. */
static rws_status source_open(source *s, const pcfg *m, rws_split split, rws_error *err)
{
    *s = (source){.m = m, .split = split};
    if (!m->corpus->n[RWS_TRAIN] && !m->corpus->n[RWS_TEST])
        RWS_TRY(rws_corpus_read(m->g, m->path[RWS_TRAIN], m->path[RWS_TEST], m->unknown, m->room, m->corpus, err));
    s->n_file = m->corpus->n[split];
    if (!s->n_file && !m->log_truth)
        return rws_fail(
            err, RWS_BAD_INPUT,
            "The grammar gives no probabilities to draw sentences by; give it some, or sentences (--data).");
    s->log_p = malloc((size_t)m->g->n_productions * sizeof *s->log_p);
    RWS_CHECK(s->log_p);
    rws_grammar_log_p(m->g, s->log_p);
    return RWS_OK;
}

static void source_close(source *s)
{
    free(s->log_p);
    rws_sequence_release(&s->tree);
    rws_sequence_release(&s->words);
}

/* Sentence i of the corpus, or a fresh one; good until the next. */
static const int *source_take(source *s, int i, rws_random *random, int *n_words)
{
    if (s->n_file) return rws_corpus_sentence(s->m->corpus, s->split, i, n_words);
    rws_tree_sample(s->m->g, s->log_p, s->m->caps, random, &s->tree, &s->words);
    *n_words = s->words.n;
    return s->words.at;
}

/* Of a file, training sentences are drawn, each as likely; test sentences come in order, over again if need be. */
static rws_status data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                       float *const *fields, rws_error *err)
{
    const pcfg *m = state;
    source      s;
    RWS_TRY(source_open(&s, m, split, err));
    for (int d = 0; d < n; d++) {
        int i = 0, n_words;
        if (s.n_file && split == RWS_TRAIN) i = (int)rws_random_below(random, (uint32_t)s.n_file);
        else if (s.n_file) i = (int)((first + (uint64_t)d) % (uint64_t)s.n_file);
        const int *words = source_take(&s, i, random, &n_words);
        put_sentence(m, words, n_words, fields[0] + (size_t)d * (size_t)(1 + m->room));
    }
    source_close(&s);
    return RWS_OK;
}

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
typedef rws_var proposer(rws_run *r, const pcfg *m, derivation *t, int node, void *context);

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

static void add_children(rws_run *r, const pcfg *m, derivation *t, int parent)
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
static void plan_children(rws_run *r, const pcfg *m, agenda *a, const derivation *t, int from)
{
    for (int i = from; i < t->n; i++) plan(r, a, m->sequential ? t->n - 1 - (i - from) : i);
}

/* Derives a tree: whoever proposes, the sites are the non-terminals' names. */
static derivation *derive(rws_run *r, const pcfg *m, proposer *propose, void *context)
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
            if (n_rules(g, b->symbol) > 1) awaited[n_awaited++] = log_p[i];
        }
        rws_await(r, awaited, n_awaited);
        for (int i = 0; i < take; i++) {
            branch *b = &t->node[now[i]];
            if (b->rule == RWS_LEAF) continue;
            if (n_rules(g, b->symbol) > 1) b->rule = rws_choose(r, g->nonterminals[b->symbol], log_p[i]);
            const int from = t->n;
            add_children(r, m, t, now[i]);
            plan_children(r, m, &next, t, from);
        }
    }
    return t;
}

/* What a tree says and how it is written down (tree.h), read from left to right. */
typedef struct {
    const pcfg       *m;
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

static reading read_tree(rws_run *r, const pcfg *m, const derivation *t, float *words)
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

static rws_var by_rules(rws_run *r, const pcfg *m, derivation *t, int node, void *context)
{
    (void)context;
    const int a = t->node[node].symbol;
    return n_rules(m->g, a) > 1 ? rws_log_softmax(r, rws_parameter(r, m->theta[a])) : (rws_var){0};
}

static rws_var by_truth(rws_run *r, const pcfg *m, derivation *t, int node, void *context)
{
    (void)r, (void)m;
    return ((const rws_var *)context)[t->node[node].symbol];
}

static int words_of(const float *sentence, int *words)
{
    const int n = (int)sentence[0];
    for (int i = 0; i < n; i++) words[i] = (int)sentence[1 + i];
    return n;
}

/* What likelihoods compare with, and room for what they look at. */
typedef struct {
    const pcfg *m;
    int        *made, n_made, *datum;
} comparison;

/* log p(x | z) = -Lev(x, s(z))^2; hard: 0 or -inf. */
static double likelihood(const float *datum, const float *made, int dim, const void *context)
{
    (void)dim;
    const comparison *c = context;
    if (c->m->hard) return memcmp(datum, made, (size_t)(1 + c->n_made) * sizeof *made) == 0 ? 0 : -INFINITY;
    const double d = rws_edit_distance(c->datum, words_of(datum, c->datum), c->made, c->n_made);
    return -d * d;
}

/* The words with blanks between them; an unknown one is a question mark. */
static char *sentence_text(rws_run *r, const pcfg *m, const reading *read)
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

static void tell(rws_run *r, const pcfg *m, const reading *read, bool cut)
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

static void say(rws_run *r, const pcfg *m, const derivation *t)
{
    float        *made = rws_alloc(r, (size_t)(1 + m->room) * sizeof *made);
    const reading read = read_tree(r, m, t, made + 1);
    comparison   *c = rws_alloc(r, sizeof *c);
    made[0] = (float)read.n_words;
    tell(r, m, &read, t->cut);
    *c = (comparison){.m = m, .made = rws_alloc(r, (size_t)(read.n_words + m->room) * sizeof *c->made)};
    c->n_made = words_of(made, c->made);
    c->datum = c->made + c->n_made;
    rws_simulate(r, SENTENCE, made, likelihood, c);
}

static void model(rws_run *r, const void *state)
{
    say(r, state, derive(r, state, by_rules, NULL));
}

static void truth(rws_run *r, const void *state)
{
    const pcfg *m = state;
    rws_var    *log_p = rws_alloc(r, (size_t)m->g->n_nonterminals * sizeof *log_p);
    for (int a = 0; a < m->g->n_nonterminals; a++)
        log_p[a] = rws_log_softmax(r, rws_constants(r, m->log_truth + m->g->first[a], n_rules(m->g, a)));
    say(r, m, derive(r, m, by_truth, log_p));
}

typedef struct {
    rws_var e; /* the sentence */
    rws_var no_rule, no_state;
    int     last; /* the node visited last, for a sequential core */
} reader;

static rws_var by_guide(rws_run *r, const pcfg *m, derivation *t, int node, void *context)
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
    if (n_rules(m->g, b->symbol) == 1) return (rws_var){0};
    return rws_log_softmax(r, rws_mlp(r, m->proposal[b->symbol], b->state));
}

static void guide(rws_run *r, const void *state)
{
    const pcfg   *m = state;
    const float   zeros[HIDDEN] = {0};
    float        *no_word = rws_alloc(r, (size_t)(m->g->n_terminals + m->g->max_productions) * sizeof *no_word);
    const rws_var unknown = rws_constants(r, no_word, m->g->n_terminals);
    reader        g = {.no_rule = rws_constants(r, no_word, m->g->max_productions),
                       .no_state = rws_constants(r, zeros, HIDDEN),
                       .last = -1};
    const float  *x = rws_look(r, rws_observed(r, SENTENCE));
    g.e = g.no_state;
    for (int i = 0; i < (int)x[0]; i++) {
        const rws_var word =
            x[1 + i] == RWS_OOV ? unknown : rws_onehot(r, rws_constant(r, x[1 + i]), m->g->n_terminals);
        g.e = rws_gru(r, m->encoder, &word, 1, g.e);
    }
    derive(r, m, by_guide, &g);
}

/* ---- how far from the truth */

static void log_softmax(const float *logits, int n, double *out)
{
    double top = -INFINITY, total = 0;
    for (int i = 0; i < n; i++) top = fmax(top, (double)logits[i]);
    for (int i = 0; i < n; i++) total += exp((double)logits[i] - top);
    for (int i = 0; i < n; i++) out[i] = (double)logits[i] - top - log(total);
}

/* The logs of the learned probabilities, by production; the caller's to free. */
static double *log_theta(const pcfg *m)
{
    double *log_p = malloc((size_t)m->g->n_productions * sizeof *log_p);
    RWS_CHECK(log_p);
    for (int a = 0; a < m->g->n_nonterminals; a++)
        log_softmax(rws_param_values(m->theta[a]), n_rules(m->g, a), log_p + m->g->first[a]);
    return log_p;
}

/* KL(truth || theta), mean over the non-terminals. */
static rws_status p_error(rws_eval *e, const void *state, double *value, rws_error *err)
{
    (void)e, (void)err;
    const pcfg *m = state;
    *value = m->log_truth ? 0 : NAN;
    if (!m->log_truth) return RWS_OK;
    double *log_p = log_theta(m);
    for (int i = 0; i < m->g->n_productions; i++) {
        const double p = m->g->productions[i].p;
        *value += p * (log(p) - log_p[i]) / m->g->n_nonterminals;
    }
    free(log_p);
    return RWS_OK;
}

#define DREAMS 100

static rws_status q_error(rws_eval *e, const void *state, double *value, rws_error *err)
{
    const pcfg *m = state;
    *value = NAN;
    if (!m->log_truth) return RWS_OK;
    const rws_status status = rws_eval_dream(e, truth, DREAMS, value, err);
    *value = -*value;
    return status;
}

#define LONGEST 100 /* words that are parsed at every evaluation */

/* log p(x) by the exact parser, mean over the test sentences that the grammar derives. */
static rws_status log_p_exact(rws_eval *e, const void *state, double *value, rws_error *err)
{
    const pcfg  *m = state;
    const float *x = rws_eval_field(e, SENTENCE);
    double      *log_p = log_theta(m), total = 0, log_x;
    int          n = 0, words[LONGEST];
    rws_status   status = RWS_OK;
    for (int d = 0; d < rws_eval_size(e) && status == RWS_OK; d++, x += 1 + m->room) {
        if (x[0] > LONGEST) { /* a mean over the short ones would be another number */
            n = 0;
            break;
        }
        status = rws_parse_log_p(m->g, log_p, words, words_of(x, words), &log_x, err);
        if (status == RWS_OK && log_x > -INFINITY) total += log_x, n++;
    }
    *value = n ? total / n : NAN;
    free(log_p);
    return status;
}

static double truncated(const rws_particle *p, const void *state)
{
    (void)state;
    return (double)rws_particle_report(p, "truncated", 0)[0];
}

static const rws_metric metrics[] = {
    {"p_error", "KL from the true to the learned rule probabilities, mean over the non-terminals", p_error},
    {"q_error", "-log q(z|x), mean over 100 trees and sentences of the true grammar", q_error},
    {"log_p_exact", "log p(x) by an exact parser, mean over the test sentences if none has more than 100 words",
     log_p_exact},
    {"truncated", "share of the guide's trees that meet a cap", .guide = truncated},
    {0},
};

/* ---- somebody asks */

static rws_status read_typed(const void *state, const char *text, float *const *fields, rws_error *err)
{
    const pcfg *m = state;
    int        *words = malloc((size_t)m->room * sizeof *words), n;
    RWS_CHECK(words);
    const rws_status status = rws_sentences_type(m->g, text, m->room, words, &n, err);
    if (status == RWS_OK) put_sentence(m, words, n, fields[0]);
    free(words);
    return status;
}

#define MOST_TREES 10000

static void tell_trees(const pcfg *m, const rws_parses *parses, rws_teller *tell_one, void *context)
{
    for (int i = 0; i < parses->n_trees; i++) {
        const size_t length = rws_tree_text(m->g, &parses->trees[i], NULL, 0) + 1;
        char        *text = malloc(length);
        RWS_CHECK(text);
        rws_tree_text(m->g, &parses->trees[i], text, length);
        tell_one(context, "tree", text, parses->posterior[i]);
        free(text);
    }
}

/* By the parser, which knows the hard likelihood only, and for sentences whose trees can be counted out. */
static rws_status posterior(const void *state, const float *const *fields, rws_teller *tell_one, void *context,
                            double *log_evidence, rws_error *err)
{
    const pcfg *m = state;
    rws_parses  parses;
    *log_evidence = NAN;
    if (!m->hard || fields[0][0] > LONGEST) return RWS_OK;
    int              words[LONGEST];
    const int        n = words_of(fields[0], words);
    double          *log_p = log_theta(m);
    const rws_status status = rws_parses_init(&parses, m->g, log_p, words, n, MOST_TREES, err);
    if (status == RWS_OK && parses.n_all <= MOST_TREES) {
        *log_evidence = parses.log_evidence;
        tell_trees(m, &parses, tell_one, context);
    }
    rws_parses_release(&parses);
    free(log_p);
    return status;
}

/* ---- expectation and maximisation, by the exact parser */

#define LEAST 1e-30 /* of a probability, so that its log is a number */

static rws_status add_counts(const pcfg *m, const double *log_p, const int *words, int n_words, double *counts,
                             rws_error *err)
{
    rws_chart *chart;
    double     more[m->g->n_productions];
    RWS_TRY(rws_chart_new(m->g, RWS_CHART_SUM, log_p, words, n_words, &chart, err));
    if (rws_chart_total(chart) > -INFINITY) {
        rws_chart_expected_counts(chart, more);
        for (int i = 0; i < m->g->n_productions; i++) counts[i] += more[i];
    }
    rws_chart_free(chart);
    return RWS_OK;
}

/* p(a -> r) becomes the share of r in how often a's rules are expected to be used, given the sentences. */
static rws_status em(const void *state, int n_fresh, rws_random *random, rws_error *err)
{
    const pcfg        *m = state;
    const rws_grammar *g = m->g;
    source             s;
    RWS_TRY(source_open(&s, m, RWS_TRAIN, err));
    double    *log_p = log_theta(m), *counts = calloc((size_t)g->n_productions, sizeof *counts), all = 0;
    rws_status status = RWS_OK;
    RWS_CHECK(counts);
    for (int i = 0; i < (s.n_file ? s.n_file : n_fresh) && status == RWS_OK; i++) {
        int        n_words;
        const int *words = source_take(&s, i, random, &n_words);
        status = add_counts(m, log_p, words, n_words, counts, err);
    }
    for (int a = 0; a < g->n_nonterminals && status == RWS_OK; a++) {
        float *logits = rws_param_values(m->theta[a]);
        double total = 0;
        for (int i = g->first[a]; i < g->first[a + 1]; i++) total += counts[i];
        for (int i = 0; i < n_rules(g, a) && total > 0; i++)
            logits[i] = (float)log(fmax(counts[g->first[a] + i] / total, LEAST));
        all += total;
    }
    if (status == RWS_OK && all == 0)
        status = rws_fail(err, RWS_BAD_INPUT, "The grammar derives none of the sentences to learn from.");
    free(counts);
    free(log_p);
    source_close(&s);
    return status;
}

/* ---- what figures show: the rules of NP, and the trees that the guide draws most often for an ambiguous sentence */

#define EXAMPLE "astronomers saw stars with telescopes"
#define GUESSES 1000
#define BEST 5

static rws_status show_rules(rws_eval *e, const pcfg *m, bool truth)
{
    const int a = rws_grammar_nonterminal(m->g, "NP"), n = a < 0 ? 0 : n_rules(m->g, a);
    double    log_p[n + 1];
    if (n == 0 || (truth && !m->log_truth)) return RWS_OK;
    log_softmax(rws_param_values(m->theta[a]), n, log_p);
    for (int i = 0; i < n; i++) {
        const rws_production *p = &m->g->productions[m->g->first[a] + i];
        char                  label[256] = "";
        for (int k = 0; k < p->n_right; k++) {
            const rws_symbol s = p->right[k];
            const char      *name = s.word ? m->g->terminals[s.id] : m->g->nonterminals[s.id];
            if (k) strncat(label, " ", sizeof label - strlen(label) - 1);
            strncat(label, name, sizeof label - strlen(label) - 1);
        }
        rws_eval_show(e, label, truth ? p->p : exp(log_p[i]));
    }
    return RWS_OK;
}

static rws_status show_np(rws_eval *e, const void *state, rws_error *err)
{
    (void)err;
    return show_rules(e, state, false);
}

static rws_status show_true_np(rws_eval *e, const void *state, rws_error *err)
{
    (void)err;
    return show_rules(e, state, true);
}

/* Different trees and how often each was drawn. */
typedef struct {
    struct {
        char *text;
        int   count;
    } * list;
    int n;
} tally;

static void count_tree(const rws_particle *p, int count, void *context)
{
    tally      *t = context;
    const char *text = rws_particle_text(p, "tree", 0);
    int         i = 0;
    while (i < t->n && strcmp(t->list[i].text, text) != 0) i++;
    if (i == t->n) t->list[t->n++].text = strdup(text);
    t->list[i].count += count;
}

static rws_status show_trees(rws_eval *e, const void *state, rws_error *err)
{
    const pcfg *m = state;
    int         words[8];
    const int   n = rws_grammar_tokens(m->g, EXAMPLE, words, 8);
    float      *x = calloc((size_t)(1 + m->room), sizeof *x);
    tally       t = {calloc(GUESSES, sizeof *t.list), 0};
    rws_status  status = RWS_OK;
    bool        known = n <= m->room;
    x[0] = (float)n;
    for (int i = 0; i < n && known; i++) {
        x[1 + i] = (float)words[i];
        known = words[i] != RWS_OOV;
    }
    if (known) status = rws_eval_guess(e, (const float *const[]){x}, GUESSES, count_tree, &t, err);
    for (int k = 0; k < BEST && k < t.n && status == RWS_OK; k++) {
        int best = 0;
        for (int i = 1; i < t.n; i++)
            if (t.list[i].count > t.list[best].count) best = i;
        rws_eval_show(e, t.list[best].text, (double)t.list[best].count / GUESSES);
        t.list[best].count = 0;
    }
    for (int i = 0; i < t.n; i++) free(t.list[i].text);
    free(t.list);
    free(x);
    return status;
}

static const rws_snapshot snapshots[] = {
    {"np", "probabilities of the rules of NP", show_np},
    {"true_np", "the same in the true grammar", show_true_np},
    {"trees", "the trees that the guide draws most often for \"" EXAMPLE "\", and how often", show_trees},
    {0},
};

const rws_model rws_model_pcfg = {
    .abi = RWS_ABI,
    .name = "pcfg",
    .help = "probabilistic grammar: rule probabilities learned from sentences, with a parser",
    .settings = settings,
    .metrics = metrics,
    .snapshots = snapshots,
    .defaults = {.batch = 2,
                 .particles = 20,
                 .iterations = 2000,
                 .eval_every = 10,
                 .n_test = 10,
                 .optimiser = "adam",
                 .lr = "1e-3",
                 .shards = 1,
                 .impossible = true},
    .setup = setup,
    .release = release,
    .data = data,
    .guide = guide,
    .model = model,
    .em = em,
    .read = read_typed,
    .posterior = posterior,
    .asked = "likelihood=hard",
};
