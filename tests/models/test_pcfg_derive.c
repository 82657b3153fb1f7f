/* test_pcfg_derive.c - the grammar's two programs, tree by tree: against a recursion in double precision without
 * batches, against each particle executed alone, against the exact parser, and at their caps. */
#include "pcfg_world.h"
#include "trees.h"

#include "models/corpora/parse.h"
#include "estimator/weights.h"

#include <stdio.h>
#include <string.h>

static const char sentence_text[] = "astronomers saw stars with telescopes";

/* ------------------------------------------------------------------------------------------- the guide, by
 * recursion */

#define HIDDEN 100

static void gru(const world *w, const char *name, const double *x, int n_in, double *h)
{
    const rws_params *p = &w->setup.params;
    const float *wi = param_of(p, "phi.%s.weight_ih", name)->value, *wh = param_of(p, "phi.%s.weight_hh", name)->value;
    const float *bi = param_of(p, "phi.%s.bias_ih", name)->value, *bh = param_of(p, "phi.%s.bias_hh", name)->value;
    double       a[3 * HIDDEN], c[3 * HIDDEN];
    for (int i = 0; i < 3 * HIDDEN; i++) {
        a[i] = (double)bi[i];
        c[i] = (double)bh[i];
        for (int k = 0; k < n_in; k++) a[i] += (double)wi[i * n_in + k] * x[k];
        for (int k = 0; k < HIDDEN; k++) c[i] += (double)wh[i * HIDDEN + k] * h[k];
    }
    for (int i = 0; i < HIDDEN; i++) {
        const double r = 1 / (1 + exp(-a[i] - c[i])), z = 1 / (1 + exp(-a[HIDDEN + i] - c[HIDDEN + i]));
        const double n = tanh(a[2 * HIDDEN + i] + r * c[2 * HIDDEN + i]);
        h[i] = (1 - z) * n + z * h[i];
    }
}

static void dense(const rws_params *p, const char *name, const char *weight, const char *bias, const double *x,
                  double *y, bool relu)
{
    const rws_param *m = param_of(p, "phi.proposal.%s%s", name, weight),
                    *b = param_of(p, "phi.proposal.%s%s", name, bias);
    for (int i = 0; i < m->rows; i++) {
        y[i] = (double)b->value[i];
        for (int k = 0; k < m->cols; k++) y[i] += (double)m->value[i * m->cols + k] * x[k];
        if (relu && y[i] < 0) y[i] = 0;
    }
}

static double log_proposal(const world *w, int a, const double *h, int choice)
{
    const rws_params *p = &w->setup.params;
    const char       *name = w->g->nonterminals[a];
    const int         n = w->g->first[a + 1] - w->g->first[a];
    double            one[50], two[25], out[32], total = 0;
    dense(p, name, ".0.weight", ".0.bias", h, one, true);
    dense(p, name, ".2.weight", ".2.bias", one, two, true);
    dense(p, name, ".4.weight", ".4.bias", two, out, false);
    for (int i = 0; i < n; i++) total += exp(out[i]);
    return out[choice] - log(total);
}

/* Whether a choice is made at a or, within `depth` steps, below it. */
static bool chooses(const rws_grammar *g, int a, int depth)
{
    if (g->first[a + 1] - g->first[a] > 1) return true;
    for (int k = 0; k < g->productions[g->first[a]].n_right && depth > 0; k++) {
        const rws_symbol s = g->productions[g->first[a]].right[k];
        if (!s.word && chooses(g, s.id, depth - 1)) return true;
    }
    return false;
}

typedef struct {
    const world        *w;
    const rws_sequence *tree;
    int                 next;
    bool                sequential;
    int                 n_addresses;
    double              e[HIDDEN];           /* the sentence */
    double              state[HIDDEN], rule; /* of the step before, if sequential; rule -1: there is none */
} walk;

/* log q of the tree below a node: of non-terminal a, the place-th of its kind there, whose parent had this state and
 * chose this rule. */
static double log_q_below(walk *k, int a, int place, const double *parent, int parent_rule)
{
    const rws_grammar *g = k->w->g;
    const int          at = k->tree->at[k->next++];
    double             h[HIDDEN] = {0}, log_q = 0;
    if (at == RWS_LEAF) return 0;
    const int choice = at - g->first[a];
    if (chooses(g, a, g->n_nonterminals)) {
        const int n_in = HIDDEN + g->max_productions + k->n_addresses,
                  rule = k->sequential ? (int)k->rule : parent_rule;
        double x[n_in];
        memset(x, 0, sizeof x);
        memcpy(x, k->e, sizeof k->e);
        if (rule >= 0) x[HIDDEN + rule] = 1;
        x[HIDDEN + g->max_productions + a + g->n_nonterminals * place] = 1;
        memcpy(h, k->sequential ? k->state : parent, sizeof h);
        gru(k->w, "core", x, n_in, h);
        if (g->first[a + 1] - g->first[a] > 1) log_q = log_proposal(k->w, a, h, choice);
        memcpy(k->state, h, sizeof h);
        k->rule = choice;
    }
    const rws_production *p = &g->productions[at];
    for (int i = 0; i < p->n_right; i++) {
        int before = 0;
        for (int j = 0; j < i; j++) before += !p->right[j].word && p->right[j].id == p->right[i].id;
        if (!p->right[i].word) log_q += log_q_below(k, p->right[i].id, before, h, choice);
    }
    return log_q;
}

static double log_q_of(const world *w, const float *x, const rws_sequence *tree)
{
    const rws_param *core = param_of(&w->setup.params, "phi.core.weight_ih");
    walk             k = {.w = w, .tree = tree, .rule = -1};
    double           zeros[HIDDEN] = {0}, word[w->g->n_terminals];
    k.sequential = strcmp(rws__setup_given(&w->setup, "pcfg_core"), "sequential") == 0;
    k.n_addresses = core->cols - HIDDEN - w->g->max_productions;
    for (int i = 0; i < (int)x[0]; i++) {
        for (int j = 0; j < w->g->n_terminals; j++) word[j] = j == (int)x[1 + i];
        gru(w, "encoder", word, w->g->n_terminals, k.e);
    }
    const double log_q = log_q_below(&k, w->g->start, 0, zeros, -1);
    assert_int_equal(k.next, tree->n);
    return log_q;
}

/* log p(z, x) of a tree. */
static double log_p_of(const world *w, const float *x, const rws_sequence *tree)
{
    double       log_p[w->g->n_productions];
    int          words[w->dim], row[w->dim];
    rws_sequence made = {0};
    log_theta(w, log_p);
    tree_yield(w->g, tree, &made);
    for (int i = 0; i < (int)x[0]; i++) words[i] = (int)x[1 + i];
    const double d = rws_edit_distance(words, (int)x[0], made.at, made.n, row);
    rws__sequence_release(&made);
    if (strcmp(rws__setup_given(&w->setup, "likelihood"), "hard") == 0)
        return d == 0 ? tree_log_p(tree, log_p) : -INFINITY;
    return tree_log_p(tree, log_p) - d * d;
}

/* Every row of a wake pass, and every row of a sleep pass, has the densities of its tree. Returns the nodes seen. */
static int check_rows(world *w, const float *x, how h)
{
    int n_nodes = 0;
    h.mode = RWS_WAKE;
    rws_scores *s = pass(w, x, h);
    for (int d = 0; d < h.B; d++)
        for (uint32_t i = s->start[d]; i < s->start[d + 1]; i++) {
            rws_sequence tree = tree_of(w, (int)i);
            const float *at = x + (size_t)d * (size_t)w->dim;
            const double q = log_q_of(w, at, &tree), p = log_p_of(w, at, &tree);
            assert_true(near(s->log_q[i], q, 1e-4 * (1 + fabs(q))));
            assert_true(near(s->log_p[i], p, 1e-4 * (1 + fabs(p))));
            n_nodes += tree.n;
            rws__sequence_release(&tree);
        }
    h.mode = RWS_SLEEP;
    s = pass(w, NULL, h);
    for (int i = 0; i < s->n; i++) {
        rws_sequence tree = tree_of(w, i), words = {0};
        tree_yield(w->g, &tree, &words);
        float       *dream = datum_of(w, words.at, words.n);
        const double q = log_q_of(w, dream, &tree);
        assert_true(near(s->log_q[i], q, 1e-4 * (1 + fabs(q))));
        n_nodes += tree.n;
        free(dream);
        rws__sequence_release(&words);
        rws__sequence_release(&tree);
    }
    return n_nodes;
}

static void densities_are_those_of_the_tree(void **unused)
{
    (void)unused;
    const char *const settings[][6] = {
        {NULL},
        {"pcfg_core=sequential", NULL},
        {"likelihood=hard", NULL},
        {"depth=6", "nodes=40", "grammar=astronomers", NULL},
        {"depth=12", "nodes=25", "pcfg_core=sequential", NULL},
        {"grammar=garden", "nodes=60", NULL},
        {"grammar=orders", "pcfg_core=sequential", NULL},
    };
    for (int i = 0; i < COUNT(settings); i++) {
        world *w = world_new(settings[i]);
        if (i == 3 || i == 4) favour(&w->setup.params, "NP", 2, 2);
        float *x = data(w, 3);
        assert_true(check_rows(w, x, (how){.B = 3, .K = 10, .draw = 3}) > 200);
        free(x);
        world_free(w);
    }
}

/* ----------------------------------------------------------------------------------------------- batched and one by
 * one */

typedef struct {
    char  *tree;
    double log_p, log_q;
} particle;

static int by_tree(const void *a, const void *b)
{
    return strcmp(((const particle *)a)->tree, ((const particle *)b)->tree);
}

/* The particles of every datum, sorted by their trees; a row stands for `count` particles. */
static particle *particles(world *w, const rws_scores *s, int *n)
{
    const int total = s->B * s->K;
    particle *list = calloc((size_t)total, sizeof *list);
    *n = 0;
    for (int d = 0; d < s->B; d++) {
        for (uint32_t i = s->start[d]; i < s->start[d + 1]; i++)
            for (uint32_t k = 0; k < s->count[i]; k++)
                list[(*n)++] =
                    (particle){strdup(rws__engine_report_text(w->engine, (int)i, "tree", 0)), s->log_p[i], s->log_q[i]};
        assert_int_equal(*n, (d + 1) * s->K);
        qsort(list + d * s->K, (size_t)s->K, sizeof *list, by_tree);
    }
    return list;
}

static void compare_scores(world *w, const float *x, how h)
{
    int       n[2];
    particle *list[2];
    for (int scalar = 0; scalar < 2; scalar++) {
        h.scalar = scalar;
        list[scalar] = particles(w, pass(w, x, h), &n[scalar]);
    }
    assert_int_equal(n[0], n[1]);
    for (int i = 0; i < n[0]; i++) {
        const particle *a = &list[0][i], *b = &list[1][i];
        assert_string_equal(a->tree, b->tree);
        assert_true(near(a->log_q, b->log_q, 1e-4 * (1 + fabs(b->log_q))));
        assert_true(near(a->log_p, b->log_p, 1e-4 * (1 + fabs(b->log_p))));
        free(a->tree);
        free(b->tree);
    }
    free(list[0]);
    free(list[1]);
}

static void compare_gradients(const char *method, const char *const *set, float theta, float phi)
{
    rws_config   c = {.batch = 4, .particles = 10};
    rws_trainer *t[2];
    for (int scalar = 0; scalar < 2; scalar++) {
        c.scalar = scalar;
        t[scalar] = trainer(method, c, set);
        favour(rws__trainer_state_of(t[scalar]).params, "NP", theta, phi);
    }
    const size_t n = rws__trainer_state_of(t[0]).params->size;
    float       *g[2] = {malloc(n * sizeof **g), malloc(n * sizeof **g)};
    for (uint64_t draw = 0; draw < 2; draw++) {
        for (int scalar = 0; scalar < 2; scalar++) gradient_of(t[scalar], draw, g[scalar]);
        assert_close(g[1], g[0], n, 1e-4, method);
    }
    const rws_engine_stats batched = rws__trainer_take_stats(t[0]), scalar = rws__trainer_take_stats(t[1]);
    assert_true(batched.calls < scalar.calls / 4); /* merging works */
    assert_true(batched.rows < scalar.rows);       /* and so does sharing */
    for (int i = 0; i < 2; i++) free(g[i]), rws_trainer_free(t[i]);
}

static void batched_equals_scalar(void **unused)
{
    (void)unused;
    const char *const settings[][5] = {
        {NULL},
        {"pcfg_core=sequential", NULL},
        {"depth=10", "nodes=60", NULL},
        {"grammar=garden", "nodes=80", NULL},
    };
    for (int i = 0; i < COUNT(settings); i++) {
        const float more = i == 2 ? 2 : 0; /* supercritical: caps fire */
        world      *w = world_new(settings[i]);
        favour(&w->setup.params, "NP", more, more);
        float *x = data(w, 4);
        compare_scores(w, x, (how){.B = 4, .K = 10, .draw = 1});
        compare_scores(w, NULL, (how){.B = 1, .K = 40, .draw = 2, .mode = RWS_SLEEP});
        free(x);
        world_free(w);
        compare_gradients("ws", settings[i], more, more);
        if (i == 3) continue;
        compare_gradients("ww", settings[i], more, more);
        compare_gradients("vimco", settings[i], more, more);
    }
}

/* ------------------------------------------------------------------------------------------------ importance
 * sampling */

static rws_status the_sentence(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                               float *const *fields, rws_error *err)
{
    (void)state, (void)split, (void)first, (void)random, (void)err;
    const float x[2002] = {5, 0, 2, 3, 5, 4};
    for (int i = 0; i < n; i++) memcpy(fields[0] + i * 2002, x, sizeof x);
    return RWS_OK;
}

/* A world at the grammar's own probabilities whose guide was trained on the sentence for a while. */
static world *practised(const char *likelihood)
{
    char set[32];
    snprintf(set, sizeof set, "likelihood=%s", likelihood);
    world     *w = world_new((const char *const[]){"rules=grammar", set, NULL});
    rws_model  model = rws_model_pcfg;
    rws_config c = {.model = "pcfg", .method = "ww", .particles = 20, .lr = "5e-3", .seed = 3, .n_test = 1};
    model.data = the_sentence;
    assert_int_equal(w->dim, 2002);
    c.set[c.n_set++] = "rules=grammar";
    rws_trainer *t = trainer_for(&c, &model);
    steps(t, 100);
    const rws_params *from = rws__trainer_state_of(t).params, *to = &w->setup.params;
    memcpy(to->value + to->first[RWS_PHI], from->value + from->first[RWS_PHI],
           (to->first[RWS_PHI + 1] - to->first[RWS_PHI]) * sizeof(float));
    rws__params_transpose(to, ~0u, to->value, to->transposed);
    rws_trainer_free(t);
    return w;
}

static world *hard, *relaxed;

static int practise(void **unused)
{
    (void)unused;
    hard = practised("hard");
    relaxed = practised("relaxed");
    return 0;
}

static int forget(void **unused)
{
    (void)unused;
    world_free(hard);
    world_free(relaxed);
    return 0;
}

enum { PER_PASS = 1000, PASSES = 50 };

/* The weights of many particles for the sentence, and the share of the particles whose tree begins with the given
 * text. */
static void weigh_sentence(world *w, int round, int wide, const char *begins, double *weight, double *share)
{
    float *x = datum(w, sentence_text);
    double with = 0, all = 0;
    size_t n = 0;
    for (int p = 0; p < wide * PASSES; p++) {
        const rws_scores *s = pass(w, x, (how){.B = 1, .K = PER_PASS, .draw = (uint32_t)(1000 * round + p)});
        for (int i = 0; i < s->n; i++) {
            const double v = exp(s->log_p[i] - s->log_q[i]);
            const char  *tree = rws__engine_report_text(w->engine, i, "tree", 0);
            for (uint32_t k = 0; k < s->count[i]; k++) weight[n++] = v;
            all += s->count[i] * v;
            if (strncmp(tree, begins, strlen(begins)) == 0) with += s->count[i] * v;
        }
    }
    *share = with / all;
    free(x);
}

typedef struct {
    world *w;
    double evidence;
} evidence_test;

static double evidence_look(void *context, int round, int wide)
{
    const evidence_test *e = context;
    const size_t         n = (size_t)(PER_PASS * PASSES * wide);
    double              *weight = malloc(n * sizeof *weight), share;
    weigh_sentence(e->w, round, wide, "", weight, &share);
    const double tail = mean_tail(weight, n, e->evidence, 0);
    free(weight);
    return tail;
}

/* The mean weight is p(x), and weighted trees have their exact posterior probabilities: 4/7 for the one in which the
 * stars have telescopes, 3/7 for the other. */
static void the_hard_posterior_is_exact(void **unused)
{
    (void)unused;
    evidence_test e = {hard, 0.000882};
    double       *weight = malloc(PER_PASS * PASSES * sizeof *weight), share, mean = 0;
    stays_likely("p(x)", evidence_look, &e);
    weigh_sentence(hard, 0, 1, "(S (NP astronomers) (VP (V saw) (NP (NP stars)", weight, &share);
    for (int i = 0; i < PER_PASS * PASSES; i++) mean += weight[i] / (PER_PASS * PASSES);
    assert_true(near(log(mean), log(e.evidence), 0.05));
    assert_true(near(share, 4.0 / 7, 0.02));
    free(weight);
}

static void the_relaxed_evidence_is_exact(void **unused)
{
    (void)unused;
    evidence_test e = {relaxed, exp(-5.1016528)};
    double       *weight = malloc(PER_PASS * PASSES * sizeof *weight), share, mean = 0;
    stays_likely("Z(x)", evidence_look, &e);
    weigh_sentence(relaxed, 0, 1, "", weight, &share);
    for (int i = 0; i < PER_PASS * PASSES; i++) mean += weight[i] / (PER_PASS * PASSES);
    assert_true(near(log(mean), -5.1016528, 0.02));
    free(weight);
}

/* The gradient of theta from K particles is the weighted mean of counts minus expectations, of their very trees. */
static void the_gradient_of_theta_counts_rules(void **unused)
{
    (void)unused;
    world         *w = relaxed;
    float         *x = data(w, 3), *gradient = calloc(w->setup.params.size, sizeof *gradient);
    const unsigned groups = RWS_BIT(RWS_THETA);
    const int      N = w->g->n_productions;
    rws_scores    *s = pass(w, x, (how){.B = 3, .K = 50, .groups = groups});
    rws_tally      tally = {0};
    double         log_p[N], want[N];
    memset(want, 0, sizeof want);
    rws__weigh(s, 1.0 / 3, &tally);
    log_theta(w, log_p);
    for (int i = 0; i < s->n; i++) {
        rws_sequence tree = tree_of(w, i);
        for (int k = 0; k < tree.n; k++) {
            if (tree.at[k] == RWS_LEAF) continue;
            const int a = w->g->productions[tree.at[k]].left;
            want[tree.at[k]] += s->w[i] / 3;
            for (int r = w->g->first[a]; r < w->g->first[a + 1]; r++) want[r] -= s->w[i] / 3 * exp(log_p[r]);
        }
        rws__sequence_release(&tree);
    }
    rws__engine_backward(w->engine, groups, gradient, NULL);
    for (int a = 0; a < w->g->n_nonterminals; a++) {
        const rws_param *p = param_of(&w->setup.params, "theta.%s", w->g->nonterminals[a]);
        for (int i = 0; i < p->cols; i++)
            assert_true(near((double)gradient[p->offset + (size_t)i], want[w->g->first[a] + i], 1e-4));
    }
    free(gradient);
    free(x);
}

/* With many particles it is the parser's: expected counts minus N_a p_r, the gradient of log p(x). */
static void the_gradient_of_theta_approaches_the_exact_one(void **unused)
{
    (void)unused;
    world           *w = hard;
    float           *x = datum(w, sentence_text), *gradient = calloc(w->setup.params.size, sizeof *gradient);
    const unsigned   groups = RWS_BIT(RWS_THETA);
    const int        N = w->g->n_productions;
    int              tokens[8];
    double           log_p[N], counts[N];
    rws_parse_chart *chart;
    for (uint32_t p = 0; p < PASSES; p++) {
        rws_tally   tally = {0};
        rws_scores *s = pass(w, x, (how){.B = 1, .K = PER_PASS, .draw = 500 + p, .groups = groups});
        rws__weigh(s, 1.0 / PASSES, &tally);
        assert_int_equal(tally.impossible, 0);
        rws__engine_backward(w->engine, groups, gradient, NULL);
    }
    log_theta(w, log_p);
    const int n = rws__grammar_tokens(w->g, sentence_text, tokens, 8);
    assert_int_equal(rws__parse_chart_new(w->g, RWS_PARSE_SUM, log_p, tokens, n, &chart, NULL), RWS_OK);
    assert_int_equal(rws__parse_chart_expected_counts(chart, counts, NULL), RWS_OK);
    rws__parse_chart_free(chart);
    for (int a = 0; a < w->g->n_nonterminals; a++) {
        const rws_param *p = param_of(&w->setup.params, "theta.%s", w->g->nonterminals[a]);
        double           visits = 0;
        for (int r = w->g->first[a]; r < w->g->first[a + 1]; r++) visits += counts[r];
        for (int i = 0; i < p->cols; i++) {
            const int    r = w->g->first[a] + i;
            const double want = counts[r] - visits * exp(log_p[r]);
            assert_true(near((double)gradient[p->offset + (size_t)i], want, 0.05));
        }
    }
    free(gradient);
    free(x);
}

/* ------------------------------------------------------------------------------------------------------------- caps */

/* Whether the caps allow a node to be expanded: by its depth, and by how many were before it, depth by depth or, in a
 * sequential derivation, in pre-order. */
typedef struct {
    int  depth, order; /* order: in which it is found */
    bool leaf;
} found;

static void list_nodes(const rws_grammar *g, const rws_sequence *tree, int *next, int depth, found *list, int *n)
{
    const int at = tree->at[(*next)++];
    list[*n] = (found){depth, *n, at == RWS_LEAF};
    ++*n;
    for (int k = 0; at != RWS_LEAF && k < g->productions[at].n_right; k++)
        if (!g->productions[at].right[k].word) list_nodes(g, tree, next, depth + 1, list, n);
}

static int by_depth(const void *a, const void *b)
{
    const found *x = a, *y = b;
    return x->depth != y->depth ? x->depth - y->depth : x->order - y->order;
}

static void check_caps(const rws_grammar *g, const rws_sequence *tree, int depth, int nodes, bool sequential)
{
    found *list = calloc((size_t)tree->n, sizeof *list);
    int    n = 0, next = 0, n_expanded = 0;
    list_nodes(g, tree, &next, 0, list, &n);
    assert_int_equal(n, tree->n);
    if (!sequential) qsort(list, (size_t)n, sizeof *list, by_depth);
    for (int i = 0; i < n; i++) {
        assert_int_equal(list[i].leaf, list[i].depth > depth || n_expanded == nodes);
        n_expanded += !list[i].leaf;
    }
    free(list);
}

static void caps_leave_leaves(void **unused)
{
    (void)unused;
    const struct {
        int depth, nodes;
    } caps[] = {{1, 2000}, {5, 2000}, {30, 1}, {30, 2}, {30, 17}, {4, 9}};
    for (int sequential = 0; sequential < 2; sequential++)
        for (int c = 0; c < COUNT(caps); c++) {
            char depth[32], nodes[32];
            snprintf(depth, sizeof depth, "depth=%d", caps[c].depth);
            snprintf(nodes, sizeof nodes, "nodes=%d", caps[c].nodes);
            world *w = world_new(
                (const char *const[]){depth, nodes, sequential ? "pcfg_core=sequential" : "pcfg_core=tree", NULL});
            favour(&w->setup.params, "NP", 1, 1);
            float *x = datum(w, "stars moons");
            int    n_cut = 0;
            for (rws_mode mode = RWS_WAKE; mode <= RWS_SLEEP; mode++) {
                const rws_scores *s = pass(w, x, (how){.B = 1, .K = 100, .mode = mode});
                for (int i = 0; i < s->n; i++) {
                    rws_sequence tree = tree_of(w, i);
                    check_caps(w->g, &tree, caps[c].depth, caps[c].nodes, sequential);
                    const float *cut = rws__engine_report(w->engine, i, "truncated", 0, NULL);
                    assert_true(*cut == has_leaf(&tree));
                    n_cut += *cut > 0;
                    rws__sequence_release(&tree);
                }
            }
            assert_true(n_cut > 0);
            free(x);
            world_free(w);
        }
}

/* Programs have small stacks; a sequential derivation with NP -> NP PP alone is as deep as the caps allow. */
static void deep_trees_fit(void **unused)
{
    (void)unused;
    const char *const deep[] = {"depth=10000", "nodes=3000", "pcfg_core=sequential", NULL};
    world            *w = world_new(deep);
    favour(&w->setup.params, "NP", 30, 0);
    const rws_scores *s = pass(w, NULL, (how){.B = 1, .K = 1, .mode = RWS_SLEEP});
    assert_int_equal(s->n, 1);
    rws_sequence tree = tree_of(w, 0);
    check_caps(w->g, &tree, 10000, 3000, true);
    assert_true(tree_depth(w->g, &tree) == 3000);
    rws__sequence_release(&tree);
    world_free(w);
}

/* A tree of one node yields two unknown words with probability 1; they match no word except unknown ones. */
static void leaves_say_unknown_words(void **unused)
{
    (void)unused;
    static const struct {
        const char *text;
        double      distance;
    } list[] = {{"stars", 2}, {"stars with", 2}, {"moons", 1}, {"moons comets", 0}, {"stars moons", 1}};
    world *w = world_new((const char *const[]){"nodes=1", NULL});
    for (int i = 0; i < COUNT(list); i++) {
        float            *x = datum(w, list[i].text);
        const rws_scores *s = pass(w, x, (how){.B = 1, .K = 4});
        assert_int_equal(s->n, 1);
        assert_int_equal(s->count[0], 4);
        assert_true(s->log_q[0] == 0);
        assert_true(s->log_p[0] == -list[i].distance * list[i].distance);
        free(x);
    }
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(densities_are_those_of_the_tree),
        cmocka_unit_test(batched_equals_scalar),
        cmocka_unit_test(the_hard_posterior_is_exact),
        cmocka_unit_test(the_relaxed_evidence_is_exact),
        cmocka_unit_test(the_gradient_of_theta_counts_rules),
        cmocka_unit_test(the_gradient_of_theta_approaches_the_exact_one),
        cmocka_unit_test(caps_leave_leaves),
        cmocka_unit_test(deep_trees_fit),
        cmocka_unit_test(leaves_say_unknown_words),
    };
    return cmocka_run_group_tests(tests, practise, forget);
}
