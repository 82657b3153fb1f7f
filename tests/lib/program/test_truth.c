/* test_truth.c - oracles: sums over all choices against sums by hand, truths of simulated data, means over test data. */
#include "files.h"

#include "rws_results.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WAYS = 3, LEAVES = 2, DEPTH = 2 };

typedef enum { PLAIN, CONTINUOUS, ENDLESS, NOT_A_NUMBER, BAD_TRUTH, BAD_SCALE, BAD_LENGTH, BAD_ROW } kind;

static kind kind_now; /* what the model does wrong */

static const double true_ways[2 * WAYS] = {0.2, 0.5, 0.3, 0.6, 0.3, 0.1}, true_sd = 0.8, true_odds[2] = {0.25, 0.9},
                                  true_shift = -0.4;

typedef struct {
    rws_param *ways, *sd, *odds, *shift; /* theta */
    rws_layer *net;
} world;

static rws_status setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    world       *w = ((void)random, (void)err, *state = rws_setup_alloc(s, sizeof *w));
    const double wrong[2] = {0.5, 1.5}, too_few[2 * WAYS - 1] = {0.2, 0.5, 0.3, 0.6, 0.3},
                 too_much[2 * WAYS] = {0.2, 0.5, 0.3, 0.6, 0.3, 0.2};
    if (!w) return RWS_OK;
    rws_setup_field(s, "x", 1);
    w->ways = rws_setup_param(s, RWS_THETA, "theta.ways", 2, WAYS, RWS_UNIFORM);
    w->sd = rws_setup_param(s, RWS_THETA, "theta.sd", 1, 1, RWS_ZERO);
    w->odds = rws_setup_param(s, RWS_THETA, "theta.odds", 1, 2, RWS_UNIFORM);
    w->shift = rws_setup_param(s, RWS_THETA, "theta.shift", 1, 1, RWS_ZERO);
    w->net = rws_setup_mlp(s, RWS_PHI, "phi.net", RWS_TANH, RWS_UNIFORM, (int[]){1, 4, WAYS}, 3);
    if (kind_now == BAD_LENGTH)
        rws_setup_truth_sized(s, w->ways, RWS_LOGITS, too_few, __builtin_object_size(too_few, 0));
    else rws_setup_truth(s, w->ways, RWS_LOGITS, kind_now == BAD_ROW ? too_much : true_ways);
    rws_setup_truth(s, w->sd, RWS_LOGARITHMS, &true_sd);
    rws_setup_truth(s, w->odds, kind_now == BAD_SCALE ? (rws_scale)17 : RWS_LOG_ODDS,
                    kind_now == BAD_TRUTH ? wrong : true_odds);
    rws_setup_truth(s, w->shift, RWS_AS_IS, &true_shift);
    return RWS_OK;
}

static rws_status data(const void *w, rws_split s, uint64_t first, int n, rws_random *g, float *const *to, rws_error *e)
{
    (void)w, (void)s, (void)first, (void)e;
    rws_random_normals(g, (size_t)n, to[0]);
    return RWS_OK;
}

/* The sum of the leaves of a tree: way 0 is 0, way 1 is 1 with probability odds[depth > 0] and else -1, way 2 two trees. */
static float grow(rws_path *path, const world *w, bool guide, int depth)
{
    const rws_var logits = guide ? rws_mlp(path, w->net, rws_observed(path, "x"))
                                 : rws_slice(path, rws_parameter(path, w->ways), depth ? WAYS : 0, WAYS);
    const int     way = rws_choose(path, "way", rws_slice(path, logits, 0, depth < DEPTH ? WAYS : LEAVES));
    if (way == 2) {
        const float a = grow(path, w, guide, depth + 1);
        return a + grow(path, w, guide, depth + 1);
    }
    if (way == 0) return 0;
    return rws_flip(path, "sign",
                    guide ? rws_slice(path, logits, 0, 1) : rws_slice(path, rws_parameter(path, w->odds), depth > 0, 1))
               ? 1
               : -1;
}

static void either(rws_path *path, const world *w, bool guide)
{
    const float sum = grow(path, w, guide, 0);
    if (kind_now == CONTINUOUS) rws_normal(path, "c", rws_constant(path, 0), rws_constant(path, 1));
    for (int i = 0; i < 40 && kind_now == ENDLESS; i++) rws_flip(path, "more", rws_constant(path, 0));
    if (guide) return;
    const rws_var mean = rws_affine(path, rws_parameter(path, w->shift), 1, sum);
    rws_normal(path, "x", mean, rws_apply(path, RWS_EXP, rws_parameter(path, w->sd)));
}

static void model(rws_path *path, const void *state)
{
    either(path, state, false);
}

static void guide(rws_path *path, const void *state)
{
    either(path, state, true);
}

/* ---- the same by hand: the distribution of the sum, which is -4 … 4 */

enum { MOST = 1 << DEPTH, SUMS = 2 * MOST + 1 };

static void sums(const double *ways, const double *odds, int depth, double *p)
{
    const double *w = ways + (depth ? WAYS : 0), all = w[0] + w[1] + (depth < DEPTH ? w[2] : 0), up = odds[depth > 0];
    memset(p, 0, SUMS * sizeof *p);
    p[MOST] = w[0] / all;
    p[MOST + 1] = w[1] / all * up;
    p[MOST - 1] = w[1] / all * (1 - up);
    if (depth == DEPTH) return;
    double inner[SUMS];
    sums(ways, odds, depth + 1, inner);
    for (int a = 0; a < SUMS; a++)
        for (int b = 0; b < SUMS; b++)
            if (inner[a] * inner[b] > 0) p[a + b - MOST] += w[2] / all * inner[a] * inner[b];
}

typedef struct {
    double p[SUMS], sd, shift;
} hand;

static double log_p(const float *const *fields, const void *context)
{
    const hand *h = context;
    double      sum = 0;
    for (int i = 0; i < SUMS; i++) {
        const double z = ((double)fields[0][0] - h->shift - (i - MOST)) / h->sd;
        sum += h->p[i] * exp(-z * z / 2) / h->sd / sqrt(2 * M_PI);
    }
    return kind_now == NOT_A_NUMBER ? NAN : log(sum);
}

static rws_status by_hand(rws_eval *e, const void *state, double *value, rws_error *err)
{
    const world *w = state;
    double       ways[2 * WAYS], odds[2];
    hand         h;
    rws_param_read(w->ways, RWS_LOGITS, ways);
    rws_param_read(w->odds, RWS_LOG_ODDS, odds);
    rws_param_read(w->sd, RWS_LOGARITHMS, &h.sd);
    rws_param_read(w->shift, RWS_AS_IS, &h.shift);
    sums(ways, odds, 0, h.p);
    return rws_eval_mean(e, log_p, &h, value, err);
}

static rws_status truth_by_hand(rws_eval *e, const void *state, double *value, rws_error *err)
{
    hand h = {.sd = true_sd, .shift = true_shift};
    sums(true_ways, true_odds, 0, h.p);
    return (void)state, rws_eval_mean(e, log_p, &h, value, err);
}

static rws_status exact(rws_eval *e, const void *state, double *value, rws_error *err)
{
    return (void)state, rws_eval_enumerate(e, value, err);
}

static const rws_model trees = {
    .abi = RWS_ABI,
    .name = "trees",
    .help = "sums of small trees, for the tests",
    .metrics =
        (const rws_metric[]){{"exact", "", exact}, {"hand", "", by_hand}, {"hand_truth", "", truth_by_hand}, {0}},
    .defaults = {.batch = 8, .particles = 4, .iterations = 20, .eval_every = 10, .n_test = 70},
    .setup = setup,
    .data = data,
    .guide = guide,
    .model = model,
};

static double value_of(const rws_measures *m, const char *metric)
{
    const double value = rws_measures_get(m, metric);
    assert_true(isfinite(value));
    return value;
}

static void sums_over_all_choices_are_exact(void **state)
{
    (void)state;
    rws_trainer *t;
    rws_error    err = {""};
    rws_measures m;
    kind_now = PLAIN;
    for (int threads = 1; threads <= 2; threads++)
        for (int scalar = 0; scalar < 2; scalar++) {
            must(rws_trainer_new(&(rws_config){.threads = threads, .scalar = scalar}, &trees, &t, &err), &err);
            for (int round = 0; round < 3; round++) {
                must(rws_trainer_evaluate(t, &m, &err), &err);
                assert_float_equal(value_of(&m, "exact"), value_of(&m, "hand"), 2e-6);
                assert_float_equal(value_of(&m, "truth"), value_of(&m, "hand_truth"), 2e-6);
                assert_true(fabs(value_of(&m, "exact") - value_of(&m, "truth")) > 1e-4); /* the truth was put back */
                must(rws_trainer_step(t, &err), &err);
            }
            rws_trainer_free(t);
        }
}

static void learned_numbers_stand_beside_the_truth(void **state)
{
    rws_trainer *t;
    rws_results *r;
    rws_error    err = {""};
    const char  *place = in_folder("run");
    (void)state;
    kind_now = PLAIN;
    must(rws_trainer_new(&(rws_config){0}, &trees, &t, &err), &err);
    must(rws_trainer_keep(t, place, &err), &err);
    must(rws_trainer_train(t, NULL, &err), &err);
    must(rws_results_read(&place, 1, &r, &err), &err);
    assert_int_equal(r->n, 1);
    const rws_shot *learned = rws_result_shot(&r->runs[0], "numbers", 20),
                   *truth = rws_result_shot(&r->runs[0], "true_numbers", 20);
    assert_non_null(learned);
    assert_non_null(truth);
    assert_int_equal(learned->n, 2 * WAYS + 1 + 2 + 1);
    assert_int_equal(truth->n, learned->n);
    assert_string_equal(learned->labels[WAYS + 1], "theta.ways[1][1]");
    assert_string_equal(learned->labels[2 * WAYS], "theta.sd");
    assert_string_equal(learned->labels[2 * WAYS + 2], "theta.odds[1]");
    for (int i = 0; i < 2 * WAYS; i++) assert_float_equal(truth->values[i], true_ways[i], 1e-12);
    assert_float_equal(truth->values[2 * WAYS], true_sd, 1e-12);
    assert_float_equal(learned->values[0] + learned->values[1] + learned->values[2], 1, 1e-9);
    rws_param_view sd;
    assert_true(rws_trainer_find(t, "theta.sd", &sd));
    assert_float_equal(learned->values[2 * WAYS], exp((double)sd.values[0]), 1e-9);
    rws_results_free(r);
    rws_trainer_free(t);
}

static void mistakes_get_a_sentence(void **state)
{
    (void)state;
    static const struct {
        kind        what;
        rws_status  status;
        const char *words;
        bool        in_setup;
    } wrong[] = {
        {CONTINUOUS, RWS_BAD_INPUT, "site \"c\" is not a choice among finitely many", false},
        {ENDLESS, RWS_BAD_INPUT, "too many combinations", false},
        {NOT_A_NUMBER, RWS_BROKEN, "not a number for test datum 0", false},
        {BAD_TRUTH, RWS_BAD_INPUT, "\"theta.odds\" has 1.5 as number 1, which is not a probability", true},
        {BAD_SCALE, RWS_BAD_INPUT, "rws_setup_truth takes a parameter", true},
        {BAD_LENGTH, RWS_BAD_INPUT, "The truth of parameter \"theta.ways\" takes 6 numbers, and the array has 5.",
         true},
        {BAD_ROW, RWS_BAD_INPUT, "\"theta.ways\" has probabilities in row 1 that add up to 1.1, not to 1", true},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        rws_trainer *t;
        rws_error    err = {""};
        rws_measures m;
        kind_now = wrong[i].what;
        rws_status status = rws_trainer_new(&(rws_config){0}, &trees, &t, &err);
        assert_true((status != RWS_OK) == wrong[i].in_setup);
        if (status == RWS_OK) status = rws_trainer_evaluate(t, &m, &err);
        assert_int_equal(status, wrong[i].status);
        assert_sentence(&err, wrong[i].words);
        if (t) rws_trainer_free(t);
    }
    kind_now = PLAIN;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_over_all_choices_are_exact),
        cmocka_unit_test_setup_teardown(learned_numbers_stand_beside_the_truth, folder_make, folder_remove),
        cmocka_unit_test(mistakes_get_a_sentence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
