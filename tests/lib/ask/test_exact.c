/* test_exact.c - calibration of exact posteriors that are computed by other means: the trees of the grammar by the inside algorithm,
 * the states of a hidden Markov model by the backward one. Both pass; the second, tempered or with a mode dropped, fails.
 *
 * Of 200 calibrations (100 of trees) of an exact posterior, the share with an adjusted p below 0.05 is at most 0.05. Error level: 4 standard
 * deviations of this share, 3e-5. */
#include "trained.h"

#include "ask/ask.h"
#include "models/pcfg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What is wrong with the guides: log q of each choice is divided by a temperature, and a mode is made improbable. */
typedef struct {
    float temperature, dropped;
} spoiled;

static spoiled guide_is = {1, 0};

static rws_var choice(rws_path *path, const double *weights, int n, int mode)
{
    float *logits = rws_alloc(path, (size_t)n * sizeof *logits);
    for (int i = 0; i < n; i++) {
        logits[i] = weights[i] > 0 ? (float)log(weights[i]) / guide_is.temperature : -INFINITY;
        if (i == mode) logits[i] -= guide_is.dropped;
    }
    return rws_constants(path, logits, n);
}

/* ---- trees: the derivation goes from left to right, and what is still to be derived is a stack of symbols */

typedef struct {
    const rws_grammar *g;
    int                n, *word;
    double            *inside; /* by non-terminal, first word and the one behind the last */
} chart;

static double *in(const chart *c, int a, int i, int j)
{
    return &c->inside[(a * (c->n + 1) + i) * (c->n + 1) + j];
}

/* The probability that a production derives words i … j - 1; the grammar has rules A -> B C and A -> word. */
static double derives(const chart *c, const rws_production *p, int i, int j)
{
    double sum = 0;
    if (p->n_right == 1) return j == i + 1 && p->right[0].id == c->word[i] ? p->p : 0;
    for (int k = i + 1; k < j; k++) sum += *in(c, p->right[0].id, i, k) * *in(c, p->right[1].id, k, j);
    return p->p * sum;
}

static void fill(chart *c)
{
    for (int length = 1; length <= c->n; length++)
        for (int i = 0; i + length <= c->n; i++)
            for (int r = 0; r < c->g->n_productions; r++) {
                const rws_production *p = &c->g->productions[r];
                *in(c, p->left, i, i + length) += derives(c, p, i, i + length);
            }
}

/* rest[i] = the probability that the stack, whose top is its last entry, derives words i … n - 1. */
static void rest_of(const chart *c, const int *stack, int depth, double *rest)
{
    for (int i = 0; i <= c->n; i++) rest[i] = i == c->n;
    for (int s = 0; s < depth; s++)
        for (int i = 0; i <= c->n; i++) {
            double sum = 0;
            for (int k = i + 1; k <= c->n; k++) sum += *in(c, stack[s], i, k) * rest[k];
            rest[i] = sum; /* rest[k] of larger k is not read again */
        }
}

static void tree_guide(rws_path *path, const void *state)
{
    const rws_pcfg *m = state;
    chart           c = {.g = m->g, .word = rws_alloc(path, (size_t)m->max_words * sizeof *c.word)};
    c.n = rws__pcfg_words(rws_look(path, rws_observed(path, RWS_PCFG_SENTENCE)), c.word);
    const size_t cells = (size_t)m->g->n_nonterminals * (size_t)(c.n + 1) * (size_t)(c.n + 1);
    c.inside = memset(rws_alloc(path, cells * sizeof *c.inside), 0, cells * sizeof *c.inside);
    fill(&c);
    double *rest = rws_alloc(path, (size_t)(c.n + 1) * sizeof *rest);
    int    *stack = rws_alloc(path, (size_t)(2 * m->caps.max_nodes) * sizeof *stack), depth = 1, at = 0;
    stack[0] = m->g->start;
    while (depth) {
        const int a = stack[--depth], n = rws__pcfg_rules(m->g, a);
        double    weights[16];
        assert_true(n <= 16);
        rest_of(&c, stack, depth, rest);
        for (int r = 0; r < n; r++) {
            weights[r] = 0;
            for (int k = at + 1; k <= c.n; k++)
                weights[r] += derives(&c, &m->g->productions[m->g->first[a] + r], at, k) * rest[k];
        }
        if (*in(&c, m->g->start, 0, c.n) == 0) /* the model cut the tree: a short one that explains nothing */
            for (int r = 0; r < n; r++)
                weights[r] = r == (m->g->productions[m->g->first[a + 1] - 1].n_right == 1 ? n - 1 : 0);
        const char *name = m->g->nonterminals[a];
        const int rule = n > 1 ? rws_choose(path, name, choice(path, weights, n, strcmp(name, "VP") == 0 ? 1 : -1)) : 0;
        const rws_production *p = &m->g->productions[m->g->first[a] + rule];
        if (p->n_right == 1) at += at < c.n;
        else stack[depth++] = p->right[1].id, stack[depth++] = p->right[0].id;
    }
}

/* ---- states of a hidden Markov model */

enum { STATES = 3, STEPS = 6 };
static const double begin[STATES] = {0.5, 0.3, 0.2},
                    next[STATES][STATES] = {{0.8, 0.15, 0.05}, {0.1, 0.7, 0.2}, {0.3, 0.2, 0.5}},
                    mean[STATES] = {-1, 0, 1.5};

static rws_status hmm_setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    (void)random, (void)state, (void)err;
    rws_setup_field(s, "x", STEPS);
    return RWS_OK;
}

static rws_status hmm_data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                           float *const *fields, rws_error *err)
{
    (void)state, (void)split, (void)first, (void)err;
    for (int i = 0; i < n * STEPS; i++) fields[0][i] = (float)rws_random_normal(random);
    return RWS_OK;
}

static void hmm_model(rws_path *path, const void *state)
{
    (void)state;
    float         at[STEPS];
    const double *p = begin;
    for (int t = 0; t < STEPS; t++) {
        float logits[STATES];
        for (int k = 0; k < STATES; k++) logits[k] = (float)log(p[k]);
        const int z = rws_choose(path, "z", rws_constants(path, logits, STATES));
        at[t] = (float)mean[z];
        p = next[z];
    }
    rws_normal(path, "x", rws_constants(path, at, STEPS), rws_constant(path, 1));
}

static void hmm_guide(rws_path *path, const void *state)
{
    (void)state;
    const float  *x = rws_look(path, rws_observed(path, "x"));
    double        later[STEPS][STATES];
    const double *p = begin;
    for (int t = STEPS - 1; t >= 0; t--)
        for (int k = 0; k < STATES; k++) {
            double sum = t == STEPS - 1;
            for (int j = 0; j < STATES && t < STEPS - 1; j++) sum += next[k][j] * later[t + 1][j];
            later[t][k] = exp(-pow((double)x[t] - mean[k], 2) / 2) * sum;
        }
    for (int t = 0; t < STEPS; t++) {
        double weights[STATES];
        for (int k = 0; k < STATES; k++) weights[k] = p[k] * later[t][k];
        p = next[rws_choose(path, "z", choice(path, weights, STATES, 2))];
    }
}

static const rws_model hmm = {.abi = RWS_ABI,
                              .name = "hmm",
                              .help = "",
                              .setup = hmm_setup,
                              .data = hmm_data,
                              .guide = hmm_guide,
                              .model = hmm_model};

/* ---- calibrations */

static rws_posterior *posterior_of(const rws_model *m, rws_config c)
{
    rws_posterior *p;
    rws_error      err = {""};
    c.model = m->name;
    c.method = "ww";
    c.seed = 1;
    rws_trainer *t = trainer_for(&c, m);
    if (rws_posterior_new(t, &p, &err) != RWS_OK) fail_msg("%s", err.text);
    rws_trainer_free(t);
    return p;
}

/* Whether a calibration rejects some quantity, by the weights and by the guide. */
static void calibrate(rws_posterior *p, int n, int n_particles, uint64_t seed, bool rejects[2])
{
    rws_frame            *f;
    rws_calibration      *c;
    rws_error             err = {""};
    const rws_simulations how = {.n_particles = n_particles, .seed = seed, .threads = 1};
    assert_int_equal(rws_frame_new(&f, &err), RWS_OK);
    if (rws_posterior_simulate(p, n, &how, f, &err) != RWS_OK) fail_msg("%s", err.text);
    assert_int_equal(rws_calibration_new(f, &c, &err), RWS_OK);
    rejects[0] = rejects[1] = false;
    for (int i = 0; i < c->n; i++) rejects[c->list[i].guide] |= c->list[i].p_adjusted < 0.05;
    rws_calibration_free(c);
    rws_frame_free(f);
}

static void count(rws_posterior *p, const char *what, int repeats, int n, int n_particles, int rejected[2])
{
    rejected[0] = rejected[1] = 0;
    for (int seed = 0; seed < repeats; seed++) {
        bool rejects[2];
        calibrate(p, n, n_particles, (uint64_t)seed, rejects);
        rejected[0] += rejects[0];
        rejected[1] += rejects[1];
    }
    print_message("# %s: %d of %d rejected by weights, %d by the guide\n", what, rejected[0], repeats, rejected[1]);
}

/* An exact guide passes; the weights repair a tempered one (error level of more than 3 of 10: 0.001), but not one that drops a
 * mode. */
static void expect_verdicts(rws_posterior *p, int repeats, float temperature, int n_many, int n_particles)
{
    const double most = repeats * 0.05 + 4 * sqrt(repeats * 0.05 * 0.95);
    int          rejected[2];
    guide_is = (spoiled){1, 0};
    count(p, "exact", repeats, 60, 10, rejected);
    assert_true(rejected[0] < most && rejected[1] < most);
    if (!n_many) { /* most sentences have one tree, which no temperature changes */
        rws_posterior_free(p);
        return;
    }
    guide_is = (spoiled){temperature, 0};
    count(p, "tempered", 10, n_many, n_particles, rejected);
    assert_true(rejected[0] <= 3 && rejected[1] == 10);
    guide_is = (spoiled){1, 20};
    count(p, "one mode dropped", 10, n_many, n_particles, rejected);
    assert_true(rejected[0] == 10 && rejected[1] == 10);
    rws_posterior_free(p);
}

static void states_are_tested(void **state)
{
    (void)state;
    expect_verdicts(posterior_of(&hmm, (rws_config){0}), 200, 1.5f, 800, 50);
}

static void trees_are_tested(void **state)
{
    (void)state;
    rws_model exact = rws_model_pcfg;
    exact.guide = tree_guide;
    exact.posterior = NULL; /* the parser's answers are not needed */
    const rws_config c = {.set = {"rules=grammar", "pcfg_core=sequential", "likelihood=hard", "depth=2000"},
                          .n_set = 4};
    expect_verdicts(posterior_of(&exact, c), 100, 1, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(trees_are_tested), cmocka_unit_test(states_are_tested)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
