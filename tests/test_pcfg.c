/* test_pcfg.c - the grammar's two programs, tree by tree: against a recursion in double precision that knows nothing of
 * batches, against each particle run alone, and against the exact parser.
 *
 * What the guide proposes is seen through its reports; a tree in brackets is read back into its list of productions.
 */
#include "files.h"

#include "base/error.h"
#include "data/edit.h"
#include "data/parse.h"
#include "estimator/weights.h"
#include "model/model.h"
#include "trained.h"

#include <stdio.h>
#include <string.h>

static const char sentence_text[] = "astronomers saw stars with telescopes";

/* ---------------------------------------------------------------------------------------- the model without a trainer */

typedef struct {
    rws_setup    setup;
    rws_given    given[16];
    void        *state;
    rws_method   method;
    rws_engine  *engine;
    rws_grammar *g;
    int          dim; /* of a datum */
} world;

/* Settings as "name=value", the last one NULL. */
static world *world_new(const char *const *set)
{
    world    *w = calloc(1, sizeof *w);
    rws_error err = {""};
    w->setup.given = w->given;
    w->setup.seed = 5;
    for (const rws_setting *s = rws_model_pcfg.settings; s->name; s++)
        w->given[w->setup.n_given++] = (rws_given){s, s->value};
    for (; *set; set++)
        for (int i = 0; i < w->setup.n_given; i++) {
            const size_t n = strlen(w->given[i].setting->name);
            if (strncmp(*set, w->given[i].setting->name, n) == 0 && (*set)[n] == '=') w->given[i].value = *set + n + 1;
        }
    rws_random random = rws_random_new(rws_key_for(5, 0, RWS_KEY_INIT, 1), 0);
    if (rws_model_pcfg.setup(&w->setup, &random, &w->state, &err) != RWS_OK) fail_msg("%s", err.text);
    rws_params_pack(&w->setup.params);
    w->method = (rws_method){.model = &rws_model_pcfg, .state = w->state};
    w->engine = rws_engine_new(&w->setup.params, w->setup.fields, w->setup.n_fields);
    if (rws_grammar_find(rws_setup_text(&w->setup, "grammar"), &w->g, &err) != RWS_OK) fail_msg("%s", err.text);
    w->dim = w->setup.fields[0].dim;
    return w;
}

static void world_free(world *w)
{
    rws_engine_free(w->engine);
    rws_model_pcfg.release(w->state);
    rws_setup_release(&w->setup);
    rws_grammar_free(w->g);
    free(w);
}

/* Makes long trees likely on one side or on both: a non-terminal's first production gains so much. */
static void favour(const rws_params *params, const char *nonterminal, float theta, float phi)
{
    param_of(params, "theta.%s", nonterminal)->value[0] += theta;
    param_of(params, "phi.proposal.%s.4.bias", nonterminal)->value[0] += phi;
    rws_params_transpose(params, ~0u, params->value, params->transposed);
}

static void log_theta(const world *w, double *log_p)
{
    for (int a = 0; a < w->g->n_nonterminals; a++) {
        const float *logits = param_of(&w->setup.params, "theta.%s", w->g->nonterminals[a])->value;
        const int    first = w->g->first[a], n = w->g->first[a + 1] - first;
        double       total = 0;
        for (int i = 0; i < n; i++) total += exp((double)logits[i]);
        for (int i = 0; i < n; i++) log_p[first + i] = (double)logits[i] - log(total);
    }
}

/* ---- data */

static float *datum_of(const world *w, const int *tokens, int n)
{
    assert_true(n < w->dim);
    float *x = calloc((size_t)w->dim, sizeof *x);
    x[0] = (float)n;
    for (int i = 0; i < n; i++) x[1 + i] = (float)tokens[i];
    return x;
}

static float *datum(const world *w, const char *text)
{
    int tokens[100];
    return datum_of(w, tokens, rws_grammar_tokens(w->g, text, tokens, 100));
}

/* B data of the model's own. */
static float *data(const world *w, int B)
{
    float     *x = calloc((size_t)B * (size_t)w->dim, sizeof *x);
    rws_error  err = {""};
    rws_random random = rws_random_new(rws_key_for(6, 0, RWS_KEY_DATA, 0), 0);
    if (rws_model_pcfg.data(w->state, RWS_TRAIN, 0, B, &random, &x, &err) != RWS_OK) fail_msg("%s", err.text);
    return x;
}

/* ---- passes */

typedef struct {
    int      B, K;
    uint32_t draw;
    rws_mode mode;
    bool     scalar;
    unsigned groups;
} how;

static rws_scores *pass(world *w, const float *x, how h)
{
    rws_error      err = {""};
    const rws_pass p = {.program = rws_programs,
                        .context = &w->method,
                        .mode = h.mode,
                        .n_data = h.mode == RWS_SLEEP ? 1 : h.B,
                        .n_particles = h.K,
                        .fields = &x,
                        .scalar = h.scalar,
                        .reports = true,
                        .groups = h.groups,
                        .key = rws_key_for(1, h.draw, RWS_KEY_WAKE, 0)};
    if (rws_engine_forward(w->engine, &p, &err) != RWS_OK) fail_msg("%s", err.text);
    return rws_engine_scores(w->engine);
}

/* ---- trees from their text */

static int read_node(const rws_grammar *g, const char **at, rws_sequence *tree)
{
    char name[64];
    int  length = 0;
    *at += **at == ' ';
    const bool open = **at == '(';
    *at += open;
    while (**at && !strchr(" ()", **at)) name[length++] = *(*at)++;
    name[length] = '\0';
    const int a = rws_grammar_nonterminal(g, name);
    if (!open && a < 0) return -1 - rws_grammar_terminal(g, name); /* a word, as a negative number */
    const int place = tree->n;
    rws_sequence_push(tree, RWS_LEAF);
    if (!open) return a;
    int below[64], n = 0;
    while (**at != ')') below[n++] = read_node(g, at, tree);
    ++*at;
    for (int i = g->first[a]; i < g->first[a + 1] && tree->at[place] == RWS_LEAF; i++) {
        const rws_production *p = &g->productions[i];
        bool                  same = p->n_right == n;
        for (int k = 0; k < n && same; k++)
            same = p->right[k].word ? below[k] == -1 - p->right[k].id : below[k] == p->right[k].id;
        if (same) tree->at[place] = i;
    }
    assert_int_not_equal(tree->at[place], RWS_LEAF);
    return a;
}

static rws_sequence tree_of(world *w, int row)
{
    rws_sequence tree = {0};
    const char  *text = rws_engine_report_text(w->engine, row, "tree", 0);
    assert_non_null(text);
    assert_int_equal(read_node(w->g, &text, &tree), w->g->start);
    assert_int_equal(*text, '\0');
    return tree;
}

static bool has_leaf(const rws_sequence *tree)
{
    for (int i = 0; i < tree->n; i++)
        if (tree->at[i] == RWS_LEAF) return true;
    return false;
}

/* ------------------------------------------------------------------------------------------- the guide, by recursion */

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

/* Whether something is chosen at a or, within `depth` steps, below it. */
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
    double              state[HIDDEN], rule; /* of the step before, if sequential; -1: there was none */
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
    k.sequential = strcmp(rws_setup_text(&w->setup, "pcfg_core"), "sequential") == 0;
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
    int          words[w->dim];
    rws_sequence made = {0};
    log_theta(w, log_p);
    rws_tree_yield(w->g, tree, &made);
    for (int i = 0; i < (int)x[0]; i++) words[i] = (int)x[1 + i];
    const double d = rws_edit_distance(words, (int)x[0], made.at, made.n);
    rws_sequence_release(&made);
    if (strcmp(rws_setup_text(&w->setup, "likelihood"), "hard") == 0)
        return d == 0 ? rws_tree_log_p(tree, log_p) : -INFINITY;
    return rws_tree_log_p(tree, log_p) - d * d;
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
            rws_sequence_release(&tree);
        }
    h.mode = RWS_SLEEP;
    s = pass(w, NULL, h);
    for (int i = 0; i < s->n; i++) {
        rws_sequence tree = tree_of(w, i), words = {0};
        rws_tree_yield(w->g, &tree, &words);
        float       *dream = datum_of(w, words.at, words.n);
        const double q = log_q_of(w, dream, &tree);
        assert_true(near(s->log_q[i], q, 1e-4 * (1 + fabs(q))));
        n_nodes += tree.n;
        free(dream);
        rws_sequence_release(&words);
        rws_sequence_release(&tree);
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

/* ----------------------------------------------------------------------------------------------- batched and one by one */

typedef struct {
    char  *tree;
    double log_p, log_q;
} particle;

static int by_tree(const void *a, const void *b)
{
    return strcmp(((const particle *)a)->tree, ((const particle *)b)->tree);
}

/* The particles of every datum, sorted by their trees; a row stands for as many as it counts. */
static particle *particles(world *w, const rws_scores *s, int *n)
{
    const int total = s->B * s->K;
    particle *list = calloc((size_t)total, sizeof *list);
    *n = 0;
    for (int d = 0; d < s->B; d++) {
        for (uint32_t i = s->start[d]; i < s->start[d + 1]; i++)
            for (uint32_t k = 0; k < s->count[i]; k++)
                list[(*n)++] =
                    (particle){strdup(rws_engine_report_text(w->engine, (int)i, "tree", 0)), s->log_p[i], s->log_q[i]};
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

static rws_trainer *trainer(const char *method, rws_config c, const char *const *set)
{
    c.model = "pcfg";
    c.method = method;
    c.seed = 7;
    for (; *set; set++) c.set[c.n_set++] = *set;
    return trainer_for(&c, NULL);
}

static void compare_gradients(const char *method, const char *const *set, float theta, float phi)
{
    rws_config   c = {.batch = 4, .particles = 10};
    rws_trainer *t[2];
    for (int scalar = 0; scalar < 2; scalar++) {
        c.scalar = scalar;
        t[scalar] = trainer(method, c, set);
        favour(rws_trainer_state_of(t[scalar]).params, "NP", theta, phi);
    }
    const size_t n = rws_trainer_state_of(t[0]).params->size;
    float       *g[2] = {malloc(n * sizeof **g), malloc(n * sizeof **g)};
    for (uint64_t draw = 0; draw < 2; draw++) {
        for (int scalar = 0; scalar < 2; scalar++) gradient_of(t[scalar], draw, g[scalar]);
        assert_close(g[1], g[0], n, 1e-4, method);
    }
    const rws_engine_stats batched = rws_trainer_take_stats(t[0]), scalar = rws_trainer_take_stats(t[1]);
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

/* ------------------------------------------------------------------------------------------------ importance sampling */

static rws_status the_sentence(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                               float *const *fields, rws_error *err)
{
    (void)state, (void)split, (void)first, (void)random, (void)err;
    const float x[] = {5, 0, 2, 3, 5, 4};
    for (int i = 0; i < n; i++) memcpy(fields[0] + i * 2002, x, sizeof x);
    return RWS_OK;
}

/* A world at the grammar's own probabilities whose guide has had some practice with the sentence. */
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
    const rws_params *from = rws_trainer_state_of(t).params, *to = &w->setup.params;
    memcpy(to->value + to->first[RWS_PHI], from->value + from->first[RWS_PHI],
           (to->first[RWS_PHI + 1] - to->first[RWS_PHI]) * sizeof(float));
    rws_params_transpose(to, ~0u, to->value, to->transposed);
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

/* The weights of many particles for the sentence. The share of those whose tree begins so is written too. */
static void weigh_sentence(world *w, int round, int wide, const char *begins, double *weight, double *share)
{
    float *x = datum(w, sentence_text);
    double with = 0, all = 0;
    size_t n = 0;
    for (int p = 0; p < wide * PASSES; p++) {
        const rws_scores *s = pass(w, x, (how){.B = 1, .K = PER_PASS, .draw = (uint32_t)(1000 * round + p)});
        for (int i = 0; i < s->n; i++) {
            const double v = exp(s->log_p[i] - s->log_q[i]);
            const char  *tree = rws_engine_report_text(w->engine, i, "tree", 0);
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
    rws_weigh(s, 1.0 / 3, &tally);
    log_theta(w, log_p);
    for (int i = 0; i < s->n; i++) {
        rws_sequence tree = tree_of(w, i);
        for (int k = 0; k < tree.n; k++) {
            if (tree.at[k] == RWS_LEAF) continue;
            const int a = w->g->productions[tree.at[k]].left;
            want[tree.at[k]] += s->w[i] / 3;
            for (int r = w->g->first[a]; r < w->g->first[a + 1]; r++) want[r] -= s->w[i] / 3 * exp(log_p[r]);
        }
        rws_sequence_release(&tree);
    }
    rws_engine_backward(w->engine, groups, gradient);
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
    world         *w = hard;
    float         *x = datum(w, sentence_text), *gradient = calloc(w->setup.params.size, sizeof *gradient);
    const unsigned groups = RWS_BIT(RWS_THETA);
    const int      N = w->g->n_productions;
    int            tokens[8];
    double         log_p[N], counts[N];
    rws_chart     *chart;
    for (uint32_t p = 0; p < PASSES; p++) {
        rws_tally   tally = {0};
        rws_scores *s = pass(w, x, (how){.B = 1, .K = PER_PASS, .draw = 500 + p, .groups = groups});
        rws_weigh(s, 1.0 / PASSES, &tally);
        assert_int_equal(tally.impossible, 0);
        rws_engine_backward(w->engine, groups, gradient);
    }
    log_theta(w, log_p);
    const int n = rws_grammar_tokens(w->g, sentence_text, tokens, 8);
    assert_int_equal(rws_chart_new(w->g, RWS_CHART_SUM, log_p, tokens, n, &chart, NULL), RWS_OK);
    rws_chart_expected_counts(chart, counts);
    rws_chart_free(chart);
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

/* --------------------------------------------------------------------------------------------------- sizes and caps */

static size_t group_size(const world *w, rws_group g)
{
    return w->setup.params.first[g + 1] - w->setup.params.first[g];
}

static void parameters_are_those_of_the_paper(void **unused)
{
    (void)unused;
    assert_int_equal(group_size(hard, RWS_THETA), 12);
    assert_int_equal(group_size(hard, RWS_PHI), 134862);
}

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
                    const float *cut = rws_engine_report(w->engine, i, "truncated", 0, NULL);
                    assert_true(*cut == has_leaf(&tree));
                    n_cut += *cut > 0;
                    rws_sequence_release(&tree);
                }
            }
            assert_true(n_cut > 0);
            free(x);
            world_free(w);
        }
}

/* Programs run on small stacks; a derivation from left to right of NP -> NP PP alone goes down as far as it may. */
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
    assert_true(rws_tree_depth(w->g, &tree) == 3000);
    rws_sequence_release(&tree);
    world_free(w);
}

/* A tree of one node says two unknown words, at no cost; they match no word, but those that nobody knows. */
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

/* An untrained guide's share of trees with a leaf, given the sentences of the test data, is what its proposals make it:
 * all of them, none, or what a plain count of particles says. */
static void the_truncated_share_is_measured(void **unused)
{
    (void)unused;
    const char *const all[] = {"nodes=1", NULL}, *const few[] = {"depth=5", "likelihood=hard", NULL};
    const rws_config c = {.n_test = 5, .particles = 400};
    rws_trainer     *t = trainer("ww", c, all);
    assert_true(metric(t, "truncated") == 1);
    rws_trainer_free(t);

    t = trainer("ww", c, few);
    world *w = world_new(few);
    memcpy(w->setup.params.value, rws_trainer_state_of(t).params->value, w->setup.params.size * sizeof(float));
    rws_params_transpose(&w->setup.params, ~0u, w->setup.params.value, w->setup.params.transposed);
    float            *x = data(w, 5);
    const rws_scores *s = pass(w, x, (how){.B = 5, .K = 2000});
    double            share = 0;
    for (int i = 0; i < s->n; i++) {
        rws_sequence tree = tree_of(w, i);
        share += has_leaf(&tree) ? s->count[i] / 10000.0 : 0;
        rws_sequence_release(&tree);
    }
    assert_true(share > 0.05 && share < 0.95);
    assert_true(near(metric(t, "truncated"), share, 0.05)); /* other sentences, which an untrained guide hardly hears */
    free(x);
    world_free(w);
    rws_trainer_free(t);
}

/* ------------------------------------------------------------------------------------------------------------ metrics */

/* At the truth p_error is 0; q_error is the guide's -log q at samples of the truth. */
static void errors_are_what_they_say(void **unused)
{
    (void)unused;
    const char *const truth[] = {"rules=grammar", NULL}, *const other[] = {NULL};
    rws_trainer *t = trainer("ws", (rws_config){.n_test = 2}, truth);
    assert_true(fabs(metric(t, "p_error")) < 1e-7);
    rws_trainer_free(t);

    t = trainer("ws", (rws_config){.n_test = 2}, other);
    world *w = world_new(truth);
    memcpy(w->setup.params.value, rws_trainer_state_of(t).params->value, w->setup.params.size * sizeof(float));
    double learned[12], true_p[12], kl = 0;
    log_theta(w, learned);
    rws_grammar_log_p(w->g, true_p);
    for (int i = 0; i < 12; i++) kl += exp(true_p[i]) * (true_p[i] - learned[i]) / 6;
    assert_true(near(metric(t, "p_error"), kl, 1e-5));

    /* log q of trees of the truth, drawn by the model at the truth */
    world       *dreamer = world_new(truth);
    rws_params  *p = &dreamer->setup.params;
    const size_t phi = p->first[RWS_PHI];
    memcpy(p->value + phi, w->setup.params.value + phi, (p->first[RWS_PHI + 1] - phi) * sizeof(float));
    rws_params_transpose(p, ~0u, p->value, p->transposed);
    const rws_scores *s = pass(dreamer, NULL, (how){.B = 1, .K = 2000, .mode = RWS_SLEEP});
    double           *each = malloc(2000 * sizeof *each), mean = 0, square = 0;
    int               n = 0;
    for (int i = 0; i < s->n; i++)
        for (uint32_t k = 0; k < s->count[i]; k++) each[n++] = -s->log_q[i];
    for (int i = 0; i < n; i++) mean += each[i] / n;
    for (int i = 0; i < n; i++) square += (each[i] - mean) * (each[i] - mean) / n;
    const double error = sqrt(square / 100 + square / n);
    assert_true(fabs(metric(t, "q_error") - mean) < 5 * error);
    free(each);
    world_free(dreamer);
    world_free(w);
    rws_trainer_free(t);
}

/* ------------------------------------------------------------------------------------------------ sentences from files */

/* Writes a file; returns the setting that names it, which is valid until the fourth call from here. */
static const char *set_file(const char *setting, const char *text)
{
    static char sets[4][64];
    static int  next;
    char       *set = sets[next++ % 4];
    spill(setting, text, strlen(text));
    snprintf(set, sizeof sets[0], "%s=%s", setting, in_folder(setting));
    return set;
}

/* Training sentences are drawn from nine tenths of the file, all of them and nothing else; tests come from the rest. */
static void sentences_come_from_a_file(void **unused)
{
    (void)unused;
    char text[2000] = "";
    for (int i = 0; i < 20; i++)
        for (int k = 0; k <= i; k++) strcat(text, k < i ? "stars " : "stars\n");
    const char *set = set_file("data", text);
    world      *w = world_new((const char *const[]){set, NULL});
    rws_random  random = rws_random_new(rws_key_for(2, 0, RWS_KEY_DATA, 0), 0);
    float      *x = malloc(1000 * (size_t)w->dim * sizeof *x);
    rws_error   err = {""};
    int         seen[21] = {0};
    assert_int_equal(rws_model_pcfg.data(w->state, RWS_TRAIN, 7, 1000, &random, &x, &err), RWS_OK);
    for (int i = 0; i < 1000; i++) {
        const float *at = x + (size_t)i * (size_t)w->dim;
        seen[(int)at[0]]++;
        for (int k = 0; k < (int)at[0]; k++) assert_true(at[1 + k] == 3);
    }
    for (int n = 1; n <= 20; n++) assert_true(n % 10 ? seen[n] > 20 && seen[n] < 110 : seen[n] == 0);
    assert_int_equal(rws_model_pcfg.data(w->state, RWS_TEST, 1, 3, &random, &x, &err), RWS_OK);
    assert_true(x[0] == 20 && x[w->dim] == 10 && x[2 * w->dim] == 20);
    free(x);
    world_free(w);

    set = set_file("data", "stars saw ears\nstars saw moons\n");
    rws_config   c = {.model = "pcfg", .method = "ww", .set = {set}, .n_set = 1, .seed = 1};
    rws_trainer *t;
    assert_int_equal(rws_trainer_new(&c, &t, &err), RWS_BAD_INPUT);
    assert_non_null(strstr(err.text, "line 2: the grammar has no word \"moons\""));
    c.set[c.n_set++] = "unknown=skip";
    assert_int_equal(rws_trainer_new(&c, &t, &err), RWS_OK);
    rws_trainer_free(t);
}

/* Where nobody knows the probabilities there is no error to measure; but there is log p(x), by the parser. */
static void a_grammar_without_probabilities_learns(void **unused)
{
    (void)unused;
    const char *const set[] = {set_file("grammar", "start S\nS -> S S | a | b\n"), set_file("data", "a b\nb\na a a\n"),
                               NULL};
    rws_trainer      *t = trainer("ws", (rws_config){.n_test = 3, .particles = 5}, set);
    rws_error         err = {""};
    steps(t, 1);
    assert_true(isnan(metric(t, "p_error")) && isnan(metric(t, "q_error")));
    const float *theta = param_of(rws_trainer_state_of(t).params, "theta.S")->value;
    double       p[3], total = 0;
    for (int i = 0; i < 3; i++) total += p[i] = exp((double)theta[i]);
    for (int i = 0; i < 3; i++) p[i] /= total;
    const double want = log(p[0] * p[1] * p[2]) + log(p[2]) + log(2 * p[0] * p[0] * p[1] * p[1] * p[1]);
    assert_true(near(metric(t, "log_p_exact"), want / 3, 1e-5));
    rws_trainer_free(t);

    rws_config c = {.model = "pcfg", .method = "ws", .set = {set[0]}, .n_set = 1, .seed = 1};
    assert_int_equal(rws_trainer_new(&c, &t, &err), RWS_BAD_INPUT);
    assert_non_null(strstr(err.text, "--data"));
}

/* -------------------------------------------------------------------------------------------------------------- em */

/* On a sample that is always the same log p(x) never falls, and soon rises no more. */
static void em_climbs(void **unused)
{
    (void)unused;
    const char *const learned =
        set_file("data", "stars saw ears\nears saw stars with ears with ears\nstars saw ears with stars\n");

    /* fewer than ten sentences: what is learned from is what is tested with */
    rws_trainer *t = trainer("em", (rws_config){.n_test = 3}, (const char *const[]){learned, NULL});
    double       before = metric(t, "log_p_exact"), rise = INFINITY;
    for (int i = 0; i < 100; i++) {
        steps(t, 1);
        const double now = metric(t, "log_p_exact");
        assert_true(now >= before - 1e-6);
        rise = now - before;
        before = now;
    }
    assert_true(rise < 1e-5);
    rws_trainer_free(t);

    t = trainer("em", (rws_config){0}, (const char *const[]){"em_data=200", NULL});
    const double start = metric(t, "p_error");
    steps(t, 20);
    assert_int_equal(rws_trainer_iteration(t), 20);
    assert_true(metric(t, "p_error") < 0.02 && metric(t, "p_error") < start);
    rws_trainer_free(t);
}

/* Where a sentence has one tree, one step counts its rules, wherever it starts. */
static void em_counts_rules(void **unused)
{
    (void)unused;
    const char  *set[] = {set_file("data", "take the cup\nwait then take the red ball\n"
                                            "put the box on the table then take the blue box\n"),
                          "grammar=orders", NULL};
    rws_trainer *t = trainer("em", (rws_config){0}, set);
    rws_error    err = {""};
    steps(t, 1);
    static const struct {
        const char *nonterminal;
        int         n;
        double      counts[4]; /* in the order of grammars/orders.pcfg */
    } want[] = {{"Order", 2, {3, 2}}, {"Act", 4, {3, 0, 1, 1}}, {"Thing", 2, {2, 2}},
                {"Place", 2, {1, 0}}, {"Object", 3, {1, 1, 2}}, {"Colour", 3, {1, 0, 1}}};
    for (int k = 0; k < COUNT(want); k++) {
        const float *theta = param_of(rws_trainer_state_of(t).params, "theta.%s", want[k].nonterminal)->value;
        double       all = 0;
        for (int i = 0; i < want[k].n; i++) all += want[k].counts[i];
        for (int i = 0; i < want[k].n; i++) assert_true(near(exp((double)theta[i]), want[k].counts[i] / all, 1e-6));
    }
    rws_trainer_free(t);

    set[0] = set_file("data", "take take\n");
    t = trainer("em", (rws_config){0}, set);
    assert_int_equal(rws_trainer_step(t, &err), RWS_BAD_INPUT);
    assert_string_equal(err.text, "The grammar derives none of the sentences to learn from.");
    rws_trainer_free(t);
}

/* -------------------------------------------------------------------------------------------------------------- runs */

/* The rules of NP are a distribution; trees come by falling frequency, whole and of the right root; a grammar that does
 * not know the words has none. */
static void snapshots_show_rules_and_trees(void **unused)
{
    (void)unused;
    const char *const truth[] = {"rules=grammar", NULL}, *const orders[] = {"grammar=orders", NULL};
    rws_trainer  *t = trainer("ws", (rws_config){.n_test = 2}, truth);
    rws_snapshots s = {0};
    rws_error     err = {""};
    double        total = 0, before = 1;
    int           n_rules = 0, n_trees = 0;
    assert_int_equal(rws_trainer_snapshots(t, &s, &err), RWS_OK);
    for (int i = 0; i < s.n; i++) {
        const rws_shown *x = &s.list[i];
        if (strcmp(x->snapshot, "np") == 0) {
            total += x->value;
            n_rules++;
            if (strcmp(x->label, "NP PP") == 0) assert_true(near(x->value, 0.4, 1e-6));
        } else if (strcmp(x->snapshot, "trees") == 0) {
            assert_true(x->value > 0 && x->value <= before && strncmp(x->label, "(S (NP ", 7) == 0);
            before = x->value;
            n_trees++;
        }
    }
    assert_true(n_rules == 6 && n_trees == 5 && near(total, 1, 1e-6));
    rws_snapshots_release(&s);
    rws_trainer_free(t);

    t = trainer("ws", (rws_config){.n_test = 2}, orders);
    assert_int_equal(rws_trainer_snapshots(t, &s, &err), RWS_OK);
    for (int i = 0; i < s.n; i++) assert_true(strcmp(s.list[i].snapshot, "trees") != 0);
    rws_snapshots_release(&s);
    rws_trainer_free(t);
}

static void threads_change_nothing(void **unused)
{
    (void)unused;
    const char *const methods[] = {"ws", "ww", "vimco"}, *const none[] = {NULL};
    for (int m = 0; m < COUNT(methods); m++) {
        rws_trainer *t[2];
        for (int i = 0; i < 2; i++) {
            t[i] = trainer(methods[m], (rws_config){.threads = i + 1, .shards = 2, .batch = 4, .particles = 5}, none);
            steps(t[i], 10);
        }
        const rws_params *a = rws_trainer_state_of(t[0]).params, *b = rws_trainer_state_of(t[1]).params;
        assert_memory_equal(a->value, b->value, a->size * sizeof(float));
        for (int i = 0; i < 2; i++) rws_trainer_free(t[i]);
    }
}

/* Trees have no largest size; but what has been done before needs no new memory. */
static void nothing_is_allocated_once_warm(void **unused)
{
    (void)unused;
    const char *const methods[] = {"ws", "ww", "vimco"}, *const none[] = {NULL};
    for (int m = 0; m < COUNT(methods); m++) {
        rws_trainer *t = trainer(methods[m], (rws_config){.particles = 5}, none);
        float       *g = malloc(rws_trainer_state_of(t).params->size * sizeof *g);
        uint64_t     before = 0;
        for (uint64_t i = 0; i < 100; i++) {
            if (i == 10) before = rws_trainer_allocations(t);
            gradient_of(t, i % 10, g);
        }
        assert_int_equal(rws_trainer_allocations(t), before);
        free(g);
        rws_trainer_free(t);
    }
}

int main(void)
{
#define WITH_FILES(f) cmocka_unit_test_setup_teardown(f, folder_make, folder_remove)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(densities_are_those_of_the_tree),
        cmocka_unit_test(batched_equals_scalar),
        cmocka_unit_test(the_hard_posterior_is_exact),
        cmocka_unit_test(the_relaxed_evidence_is_exact),
        cmocka_unit_test(the_gradient_of_theta_counts_rules),
        cmocka_unit_test(the_gradient_of_theta_approaches_the_exact_one),
        cmocka_unit_test(parameters_are_those_of_the_paper),
        cmocka_unit_test(caps_leave_leaves),
        cmocka_unit_test(deep_trees_fit),
        cmocka_unit_test(leaves_say_unknown_words),
        cmocka_unit_test(the_truncated_share_is_measured),
        cmocka_unit_test(errors_are_what_they_say),
        WITH_FILES(sentences_come_from_a_file),
        WITH_FILES(a_grammar_without_probabilities_learns),
        WITH_FILES(em_climbs),
        WITH_FILES(em_counts_rules),
        cmocka_unit_test(snapshots_show_rules_and_trees),
        cmocka_unit_test(threads_change_nothing),
        cmocka_unit_test(nothing_is_allocated_once_warm),
    };
    return cmocka_run_group_tests(tests, practise, forget);
}
