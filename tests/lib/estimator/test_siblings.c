/* test_siblings.c - baselines from particles that made the same choices: the expected gradient is that of the bound, by a sum over
 * all tuples of traces, and it varies less than with the baseline of the whole datum. Error level: see assert_mean. */
#include "trained.h"

#include <stdio.h>
#include <string.h>

/* Up to three flips, each after a yes: the traces no, yes no, yes yes no, yes yes yes. */
enum { TRACES = 4, FLIPS = 3, K = 3, MANY = 20 };

static const rws_param *theta, *phi;
static const float      start[2][FLIPS] = {{0.3f, -0.5f, 0.8f}, {-0.4f, 0.9f, 0.2f}};
static const float      fits[TRACES] = {-0.5f, -4, 0, -2.5f}; /* log p(x | trace) */

static rws_status setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    (void)random, (void)state, (void)err;
    rws_setup_field(s, "x", 1);
    theta = rws_setup_param(s, RWS_THETA, "theta", 1, FLIPS, RWS_ZERO);
    phi = rws_setup_param(s, RWS_PHI, "phi", 1, FLIPS, RWS_ZERO);
    memcpy(rws_param_values(theta), start[0], sizeof start[0]);
    memcpy(rws_param_values(phi), start[1], sizeof start[1]);
    return RWS_OK;
}

static rws_status data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                       float *const *fields, rws_error *err)
{
    (void)state, (void)split, (void)first, (void)random, (void)err;
    for (int i = 0; i < n; i++) fields[0][i] = 0;
    return RWS_OK;
}

static int flips(rws_path *path, const rws_param *logits)
{
    int n = 0;
    while (n < FLIPS && rws_flip(path, "z", rws_slice(path, rws_parameter(path, logits), n, 1))) n++;
    return n;
}

static void guide(rws_path *path, const void *state)
{
    (void)state;
    flips(path, phi);
}

static rws_var fit(rws_path *path, rws_var datum, const void *context)
{
    (void)path, (void)datum;
    return *(const rws_var *)context;
}

static void model(rws_path *path, const void *state)
{
    (void)state;
    const rws_var x = rws_constant(path, fits[flips(path, theta)]);
    rws_observe(path, "x", fit, NULL, &x);
}

static const rws_model tree = {.abi = RWS_ABI,
                               .name = "tree",
                               .help = "up to three flips",
                               .defaults = {.batch = 1, .particles = K, .n_test = 1, .shards = 1},
                               .setup = setup,
                               .data = data,
                               .guide = guide,
                               .model = model};

static double log_flip(double logit, bool yes)
{
    return -log1p(exp(yes ? -logit : logit));
}

static double log_trace(const double *logits, int trace)
{
    double sum = 0;
    for (int i = 0; i < FLIPS && i <= trace; i++) sum += log_flip(logits[i], i < trace);
    return sum;
}

/* The expected bound of K particles. */
static double bound(const double *w)
{
    double all = 0;
    for (int tuple = 0; tuple < TRACES * TRACES * TRACES; tuple++) {
        double log_q = 0, mean = 0;
        for (int k = 0, rest = tuple; k < K; k++, rest /= TRACES) {
            const int    z = rest % TRACES;
            const double q = log_trace(w + FLIPS, z);
            log_q += q;
            mean += exp(log_trace(w, z) + (double)fits[z] - q) / K;
        }
        all += exp(log_q) * log(mean);
    }
    return all;
}

static rws_trainer *trainer(const char *method, const char *baseline, int particles)
{
    return trainer_for(
        &(rws_config){.method = method, .seed = 3, .set = {baseline}, .n_set = 1, .particles = particles}, &tree);
}

static void the_gradient_is_that_of_the_bound(void **state)
{
    (void)state;
    double w[2 * FLIPS], right[2 * FLIPS];
    for (int i = 0; i < 2 * FLIPS; i++) w[i] = (double)start[i / FLIPS][i % FLIPS];
    for (int i = 0; i < 2 * FLIPS; i++) {
        const double at = w[i];
        w[i] = at + 1e-5;
        right[i] = bound(w);
        w[i] = at - 1e-5;
        right[i] = (right[i] - bound(w)) / 2e-5;
        w[i] = at;
    }
    for (int method = 0; method < 2; method++) {
        rws_trainer *t = trainer(method ? "vimco" : "rloo", "baseline=siblings", K);
        assert_mean(method ? "vimco" : "rloo", t, right, 2 * FLIPS, 4000, 1e-6);
        rws_trainer_free(t);
    }
}

/* The sum over phi of the variances of the gradient, from so many draws. */
static double variance(const char *method, const char *baseline)
{
    enum { DRAWS = 4000 };
    rws_trainer *t = trainer(method, baseline, MANY);
    double       sum[2 * FLIPS] = {0}, squares[2 * FLIPS] = {0}, all = 0;
    for (int draw = 0; draw < DRAWS; draw++) {
        float g[2 * FLIPS] = {0};
        gradient_of(t, (uint64_t)draw, g);
        for (int i = FLIPS; i < 2 * FLIPS; i++) sum[i] += (double)g[i], squares[i] += (double)g[i] * (double)g[i];
    }
    for (int i = FLIPS; i < 2 * FLIPS; i++) all += squares[i] / DRAWS - sum[i] * sum[i] / DRAWS / DRAWS;
    rws_trainer_free(t);
    return all;
}

/* The seed is fixed, and the variances differ by much more than their errors (about 3 %). */
static void the_gradient_varies_less(void **state)
{
    (void)state;
    for (int method = 0; method < 2; method++) {
        const char  *name = method ? "vimco" : "rloo";
        const double all = variance(name, "baseline=datum"), siblings = variance(name, "baseline=siblings");
        print_message("%s: variance %g with the baseline of the datum, %g with siblings\n", name, all, siblings);
        if (!(siblings < all)) fail_msg("%s: %g with siblings, %g without", name, siblings, all);
    }
}

static void mistakes_are_named(void **state)
{
    (void)state;
    rws_trainer *t;
    rws_error    err = {""};
    rws_config   c = {.method = "rloo", .set = {"baseline=none"}, .n_set = 1};
    assert_int_equal(rws_trainer_new(&c, &tree, &t, &err), RWS_BAD_INPUT);
    assert_non_null(strstr(err.text, "datum or siblings"));
    c.set[0] = "baseline=siblings";
    c.particle_shards = 2;
    c.particles = 4;
    assert_int_equal(rws_trainer_new(&c, &tree, &t, &err), RWS_BAD_INPUT);
    assert_non_null(strstr(err.text, "one shard"));
    c.method = "nvil";
    assert_int_equal(rws_trainer_new(&c, &tree, &t, &err), RWS_BAD_INPUT);
    assert_non_null(strstr(err.text, "rloo and vimco"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_gradient_is_that_of_the_bound),
        cmocka_unit_test(the_gradient_varies_less),
        cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
