/* pcfg.c - a probabilistic grammar, section 4.1: trees are drawn by the rules' probabilities, and the observed sentence
 * is close to the words at the tree's leaves. The rules are known; theta is the logits of their probabilities, a vector
 * per non-terminal.
 *
 * The guide reads the sentence with a GRU, e(x), and derives a tree from the top: at a node of non-terminal a, whose
 * parent chose its production c, a second GRU takes [e(x); c; a] with the parent's output as its state, and a small
 * network of a's own proposes the production. Siblings do not depend on each other, so all nodes of a depth are
 * computed together:
 *
 *     S             core(S)
 *     NP VP         core(NP), core(VP)        in one call, over all particles
 *     NP PP V NP    …
 *
 * Trees have limits: a non-terminal deeper than `depth`, or after `nodes` expansions, stays a leaf. A leaf stands for
 * an unknown word and has probability 1 in both programs. Expansions are counted depth by depth; with
 * pcfg_core=sequential, whose core runs through the tree in pre-order, they are counted in pre-order.
 */
#include "models/pcfg.h"

#include <math.h>
#include <string.h>

static const rws_setting settings[] = {
    {"grammar", "astronomers", 0, 0, "astronomers, orders, garden, or the path of a grammar file"},
    {"likelihood", "relaxed", 0, 0, "relaxed (exp(-distance^2) in words) or hard (the same sentence or nothing)"},
    {"depth", "30", 1, 10000, "non-terminals deeper than this stay leaves", true},
    {"nodes", "2000", 1, 10000, "non-terminals after so many expansions stay leaves", true},
    {"pcfg_core", "tree", 0, 0, "tree (states from parent to child) or sequential (along the derivation)"},
    {"rules", "random", 0, 0, "where theta starts: random (logits from N(0, 1)) or grammar (the file's probabilities)"},
    {"data", "grammar", 0, 0,
     "grammar (fresh sentences of its own), or the path of a file with a sentence on each line"},
    {"test_data", "data", 0, 0, "data (every tenth sentence of that file, not learned from), or the path of another"},
    {"labelled", "0", 0, 1, "share of the sentences drawn for training whose tree is given to the guide"},
    {"unknown", "refuse", 0, 0, "what to do with sentences whose words the grammar does not have: refuse or skip them"},
    {0},
};

/* Marks the non-terminals with more than one rule, and those that lead to one. */
static void find_deep(rws_pcfg *m)
{
    const rws_grammar *g = m->g;
    for (int a = 0; a < g->n_nonterminals; a++) m->deep[a] = rws__pcfg_rules(g, a) > 1;
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

/* NULL without memory. */
static const char *joined(rws_setup *s, const char *front, const char *name)
{
    char *text = rws_setup_alloc(s, strlen(front) + strlen(name) + 1);
    return text ? strcat(strcpy(text, front), name) : NULL;
}

static rws_status declare_rules(rws_setup *s, rws_pcfg *m, rws_random *random, bool from_grammar, rws_error *err)
{
    const rws_grammar *g = m->g;
    for (int a = 0; a < g->n_nonterminals; a++) {
        const char *name = joined(s, "theta.", g->nonterminals[a]);
        if (name) m->theta[a] = rws_setup_param(s, RWS_THETA, name, 1, rws__pcfg_rules(g, a), RWS_ZERO);
        if (name && rws__pcfg_rules(g, a) == 1) rws_setup_unused(s, name); /* one rule is certain */
        float *logits = rws__declared_values(m->theta[a]);
        if (!logits) return rws_no_memory(err, "the probabilities of the rules");
        for (int i = 0; i < rws__pcfg_rules(g, a); i++)
            logits[i] = (float)(from_grammar ? log(g->productions[g->first[a] + i].p) : rws_random_normal(random));
    }
    return RWS_OK;
}

static rws_status declare_guide(rws_setup *s, rws_pcfg *m, rws_error *err)
{
    const rws_grammar *g = m->g;
    m->encoder = rws_setup_gru(s, RWS_PHI, "phi.encoder", g->n_terminals, RWS_PCFG_HIDDEN);
    m->core = rws_setup_gru(s, RWS_PHI, "phi.core",
                            RWS_PCFG_HIDDEN + g->max_productions + g->n_nonterminals * m->n_places, RWS_PCFG_HIDDEN);
    for (int a = 0; a < g->n_nonterminals; a++) {
        const int   sizes[] = {RWS_PCFG_HIDDEN, 50, 25, rws__pcfg_rules(g, a)};
        const char *name = joined(s, "phi.proposal.", g->nonterminals[a]);
        if (!name) return rws_no_memory(err, "the guide's networks");
        m->proposal[a] = rws_setup_mlp(s, RWS_PHI, name, RWS_RELU, RWS_UNIFORM, sizes, 4);
        if (rws__pcfg_rules(g, a) == 1) rws_setup_unused(s, name);
    }
    return RWS_OK;
}

/* Labels with the productions of a tree, for each non-terminal in the order of the guide's visits. */
static rws_status declare_labels(rws_setup *s, rws_pcfg *m, rws_error *err)
{
    const rws_grammar *g = m->g;
    int                field = 1;
    m->labelled = rws_setup_number(s, "labelled");
    if (m->path[RWS_TRAIN]) {
        if (m->labelled > 0)
            return rws_fail(err, RWS_BAD_INPUT,
                            "labelled is about sentences that are drawn from the grammar; trees of the sentences in a "
                            "file are given by `given=FILE`.");
        rws_setup_label(s, "datum", 1);
        m->number = field;
    }
    m->label = rws_setup_alloc(s, (size_t)g->n_nonterminals * sizeof *m->label);
    if (!m->label) return rws_no_memory(err, "the labels of trees");
    for (int a = 0; a < g->n_nonterminals && m->labelled > 0; a++) {
        if (rws__pcfg_rules(g, a) == 1) continue;
        const char *name = joined(s, "rules of ", g->nonterminals[a]);
        if (!name) return rws_no_memory(err, "the labels of trees");
        rws_setup_label_series(s, name, 1, m->caps.max_nodes);
        rws_setup_label_site(s, name, g->nonterminals[a]);
        m->label[a] = field++;
    }
    return RWS_OK;
}

/* The path in a setting; *path is NULL if the setting is the word `none`. */
static rws_status path_of(rws_setup *s, const char *name, const char *none, const char **path, rws_error *err)
{
    *path = NULL;
    if (strcmp(rws_setup_text(s, name), none) == 0) return RWS_OK;
    *path = rws_setup_path(s, name);
    return *path ? RWS_OK : rws_no_memory(err, "the path of a file");
}

static rws_status find_grammar(rws_setup *s, rws_grammar **out, rws_error *err)
{
    const char *name = rws_setup_text(s, "grammar");
    for (int i = 0; rws_grammar_names[i]; i++)
        if (strcmp(rws_grammar_names[i], name) == 0) return rws__grammar_find(name, out, err);
    const char *path = rws_setup_path(s, "grammar");
    return path ? rws__grammar_read(path, out, err) : rws_no_memory(err, "the path of a grammar");
}

static rws_status setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    rws_pcfg *m = rws_setup_alloc(s, sizeof *m);
    bool      from_grammar, skip;
    *state = m;
    if (!m) return rws_no_memory(err, "the grammar's model");
    RWS_TRY(rws__setting_either(s, "likelihood", "relaxed", "hard", &m->hard, err));
    RWS_TRY(rws__setting_either(s, "pcfg_core", "tree", "sequential", &m->sequential, err));
    RWS_TRY(rws__setting_either(s, "rules", "random", "grammar", &from_grammar, err));
    RWS_TRY(rws__setting_either(s, "unknown", "refuse", "skip", &skip, err));
    RWS_TRY(find_grammar(s, &m->g, err));
    m->unknown = skip ? RWS_UNKNOWN_SKIP : RWS_UNKNOWN_REFUSE;
    RWS_TRY(path_of(s, "data", "grammar", &m->path[RWS_TRAIN], err));
    RWS_TRY(path_of(s, "test_data", "data", &m->path[RWS_TEST], err));
    if (!m->path[RWS_TRAIN] && rws__grammar_is_given(m->g)) RWS_TRY(rws__sentences_finite(m->g, err));
    m->corpus = rws_setup_alloc(s, sizeof *m->corpus);
    const rws_grammar *g = m->g;
    const size_t       n = (size_t)g->n_nonterminals;
    m->caps = (rws_caps){rws_setup_int(s, "depth"), rws_setup_int(s, "nodes")};
    m->max_words = 1 + m->caps.max_nodes * (g->max_right > 1 ? g->max_right - 1 : 1);
    m->theta = rws_setup_alloc(s, n * sizeof *m->theta);
    m->proposal = rws_setup_alloc(s, n * sizeof *m->proposal);
    m->deep = rws_setup_alloc(s, n * sizeof *m->deep);
    const bool known = rws__grammar_is_given(g);
    if (known) m->log_truth = rws_setup_alloc(s, (size_t)g->n_productions * sizeof *m->log_truth);
    if (!m->corpus || !m->theta || !m->proposal || !m->deep || (known && !m->log_truth))
        return rws_no_memory(err, "the grammar's model");
    for (int i = 0; i < g->n_productions && known; i++) m->log_truth[i] = (float)log(g->productions[i].p);
    m->n_places = count_places(g);
    find_deep(m);
    rws_setup_field(s, RWS_PCFG_SENTENCE, 1 + m->max_words);
    RWS_TRY(declare_labels(s, m, err));
    RWS_TRY(declare_rules(s, m, random, from_grammar, err));
    return declare_guide(s, m, err);
}

static void release(void *state)
{
    rws_pcfg *m = state;
    if (!m) return;
    rws__grammar_free(m->g);
    if (m->corpus) rws__corpus_release(m->corpus);
}

const rws_model rws_model_pcfg = {
    .abi = RWS_ABI,
    .name = "pcfg",
    .help = "probabilistic grammar: rule probabilities learned from sentences, with a parser",
    .settings = settings,
    .metrics = rws_pcfg_metrics,
    .snapshots = rws_pcfg_snapshots,
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
    .data = rws__pcfg_data,
    .guide = rws__pcfg_guide,
    .model = rws__pcfg_model,
    .em = rws__pcfg_em,
    .read = rws__pcfg_read,
    .posterior = rws__pcfg_posterior,
    .ask_setting = "likelihood=hard",
};
