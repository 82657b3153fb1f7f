/* test_gmm.c - the Gaussian mixture: its start, its data and its metrics, against numbers that are known.
 *
 * The functions of the model are private to it, so its exact sums are tested through its metrics, on data and with
 * parameters that the test chooses.
 */
#include "lib/estimator/exact.h"
#include "models/model.h"
#include "trained.h"

#include <stdio.h>
#include <string.h>

/* ---- a trainer whose data the test sees or sets ------------------------------------------------------------------ */

static float *seen[2]; /* the last data of each split */
static int    n_seen[2];
static float  chosen;

static rws_status watched_data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                               float *const *fields, rws_error *err)
{
    const rws_status status = rws_model_gmm.data(state, split, first, n, random, fields, err);
    seen[split] = realloc(seen[split], (size_t)n * sizeof(float));
    memcpy(seen[split], fields[0], (size_t)n * sizeof(float));
    n_seen[split] = n;
    return status;
}

static rws_status chosen_data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                              float *const *fields, rws_error *err)
{
    (void)state, (void)split, (void)first, (void)random, (void)err;
    for (int i = 0; i < n; i++) fields[0][i] = chosen;
    return RWS_OK;
}

static rws_trainer *trainer_from(const rws_config *c, bool watched)
{
    static rws_model models[2];
    models[watched] = rws_model_gmm;
    models[watched].data = watched ? watched_data : chosen_data;
    return trainer_for(c, &models[watched]);
}

static rws_trainer *trainer(const char *set)
{
    rws_config c = {.model = "gmm", .method = "ww", .particles = 2, .seed = 1};
    if (set) c.set[c.n_set++] = set;
    return trainer_from(&c, true);
}

/* A trainer for a single datum x. */
static rws_trainer *trainer_at(float x, const char *start)
{
    rws_config c = {.model = "gmm", .method = "ww", .particles = 2, .batch = 1, .n_test = 1, .seed = 1};
    c.set[c.n_set++] = start;
    chosen = x;
    return trainer_from(&c, false);
}

static rws_param *param(rws_trainer *t, const char *name)
{
    return param_of(rws__trainer_state_of(t).params, "%s", name);
}

static void zero_guide(rws_trainer *t)
{
    rws_params *p = rws__trainer_state_of(t).params;
    memset(p->value + p->first[RWS_PHI], 0, (p->first[RWS_PHI + 1] - p->first[RWS_PHI]) * sizeof(float));
    rws_trainer_changed(t);
}

/* The guide becomes the posterior under mixture weights pi, whose logits are linear in x: log pi_c - 2 c^2 + 0.4 c x.
 * The network computes this line near the middle of a tanh, where tanh is linear to 1e-6. */
static void set_guide_to_posterior(rws_trainer *t, const double *log_pi)
{
    const float small = 1e-5f;
    zero_guide(t);
    param(t, "phi.mlp.0.weight")->value[0] = small;
    for (int c = 0; c < 20; c++) {
        param(t, "phi.mlp.2.weight")->value[16 * c] = (float)(0.4 * c / (double)small);
        param(t, "phi.mlp.2.bias")->value[c] = (float)(log_pi[c] - 2.0 * c * c);
    }
    rws_trainer_changed(t);
}

static void true_log_pi(double *log_pi)
{
    exact_truth(20, log_pi);
    for (int c = 0; c < 20; c++) log_pi[c] = log(log_pi[c]);
}

static void set_theta(rws_trainer *t, const double *log_pi)
{
    for (int c = 0; c < 20; c++) param(t, "theta")->value[c] = (float)log_pi[c];
    rws_trainer_changed(t);
}

/* ---- start ------------------------------------------------------------------------------------------------------- */

static void test_parameters(void **state)
{
    (void)state;
    const int counts[] = {372, 644};
    for (int hidden = 1; hidden <= 2; hidden++) {
        rws_trainer *t = trainer(hidden == 1 ? NULL : "gmm_hidden=2");
        rws_params  *p = rws__trainer_state_of(t).params;
        assert_int_equal(p->first[RWS_PHI + 1] - p->first[RWS_PHI], counts[hidden - 1]);
        assert_int_equal(p->first[RWS_THETA + 1] - p->first[RWS_THETA], 20);
        assert_int_equal(p->size, 20 + counts[hidden - 1]);

        /* weights and biases are uniform within 1/sqrt(inputs), and not all equal */
        for (int i = 0; i < p->n; i++) {
            const rws_param *q = p->list[i];
            if (q->group != RWS_PHI) continue;
            const bool  first = strncmp(q->name, "phi.mlp.0", 9) == 0;
            const float reach = first ? 1 : 0.25f;
            float       low = 1, high = -1;
            for (size_t k = 0; k < rws__param_size(q); k++) {
                low = fminf(low, q->value[k]);
                high = fmaxf(high, q->value[k]);
            }
            assert_true(low > -reach && high < reach && low < -0.5f * reach && high > 0.5f * reach);
        }
        rws_trainer_free(t);
    }
}

static void test_starts(void **state)
{
    (void)state;
    rws_trainer *t = trainer("start=far");
    for (int c = 0; c < 20; c++) assert_true(param(t, "theta")->value[c] == (float)(19 - c));
    assert_near(metric(t, "p_error"), 0.693922, 1e-6);
    rws_trainer_free(t);
    t = trainer(NULL); /* far is the default */
    assert_near(metric(t, "p_error"), 0.693922, 1e-6);
    rws_trainer_free(t);
    t = trainer("start=near");
    for (int c = 0; c < 20; c++) assert_true(param(t, "theta")->value[c] == 0);
    assert_near(metric(t, "p_error"), 0.088923, 1e-6);
    rws_trainer_free(t);

    rws_config c = {.model = "gmm", .method = "ww", .set = {"start=here"}, .n_set = 1};
    rws_error  err;
    assert_int_equal(rws_trainer_new(&c, NULL, &t, &err), RWS_BAD_INPUT);
    assert_non_null(strstr(err.text, "here"));
    assert_null(t);
}

/* softmax(theta_mult * theta): the same mixture at the start, and theta's gradient carries the factor. */
static void test_theta_mult(void **state)
{
    (void)state;
    rws_trainer *t = trainer("theta_mult=0.5"), *plain = trainer(NULL);
    for (int c = 0; c < 20; c++) assert_true(param(t, "theta")->value[c] == (float)(2 * (19 - c)));
    assert_near(metric(t, "p_error"), 0.693922, 1e-6);
    assert_near(metric(t, "log_evidence"), metric(plain, "log_evidence"), 1e-6);
    const size_t size = rws__trainer_state_of(t).params->size;
    float       *a = malloc(2 * size * sizeof *a), *b = a + size;
    rws_error    err;
    assert_int_equal(rws_trainer_gradient(t, RWS_TEST, 0, a, rws_trainer_size(t), &err), RWS_OK);
    assert_int_equal(rws_trainer_gradient(plain, RWS_TEST, 0, b, rws_trainer_size(plain), &err), RWS_OK);
    float top = 0;
    for (size_t k = 0; k < 20; k++) top = fmaxf(top, fabsf(b[k]));
    assert_true(top > 0.01f);
    for (size_t k = 0; k < 20; k++) assert_near((double)a[k], 0.5 * (double)b[k], 1e-5 * (double)top);
    for (size_t k = 20; k < size; k++) assert_near((double)a[k], (double)b[k], 1e-4);
    free(a);
    rws_trainer_free(t);
    rws_trainer_free(plain);
}

/* ---- what is known exactly --------------------------------------------------------------------------------------- */

static void test_evidence(void **state)
{
    (void)state;
    double log_pi[20];
    true_log_pi(log_pi);
    const struct {
        float  x;
        double log_p;
    } right[] = {{95, -5.312806}, {0, -6.437927}};
    for (int i = 0; i < COUNT(right); i++) {
        rws_trainer *t = trainer_at(right[i].x, "start=near");
        set_theta(t, log_pi);
        assert_near(metric(t, "p_error"), 0, 1e-7);
        assert_near(metric(t, "log_evidence"), right[i].log_p, 2e-6);
        assert_near(exact_evidence(20, log_pi, (double)right[i].x, NULL), right[i].log_p, 1e-6);
        rws_trainer_free(t);
    }
    rws_trainer *t = trainer_at(190, "start=far");
    assert_near(metric(t, "log_evidence"), -21.671979, 2e-6);
    rws_trainer_free(t);
}

/* The posterior's components from q_error: with a guide that is certain of c the square of the error is
 * 1 - 2 p(c|x) + |p(.|x)|^2, with the uniform guide it is |p(.|x)|^2 - 1/20. */
static void test_posterior(void **state)
{
    (void)state;
    const struct {
        float  x;
        int    z;
        double p;
    } right[] = {{0, 0, 0.859940},    {0, 1, 0.139656},  {0, 2, 0.000404},  {190, 17, 0.000272}, {190, 18, 0.114775},
                 {190, 19, 0.884953}, {95, 8, 0.008063}, {95, 9, 0.474073}, {95, 10, 0.507935},  {95, 11, 0.009923}};
    double log_pi[20], posterior[20];
    true_log_pi(log_pi);
    for (int i = 0; i < COUNT(right); i++) {
        rws_trainer *t = trainer_at(right[i].x, "start=near");
        zero_guide(t);
        const double squares = pow(metric(t, "q_error"), 2) + 0.05;
        param(t, "phi.mlp.2.bias")->value[right[i].z] = 200;
        rws_trainer_changed(t);
        assert_near((1 + squares - pow(metric(t, "q_error"), 2)) / 2, right[i].p, 1e-6);
        exact_evidence(20, log_pi, (double)right[i].x, posterior);
        assert_near(posterior[right[i].z], right[i].p, 1e-6);
        rws_trainer_free(t);
    }
}

/* The mean of f over the true mixture, by the trapezoidal rule. */
static double true_mean(double (*f)(double x, const double *log_pi), const double *log_pi)
{
    double p[20], total = 0;
    exact_truth(20, p);
    const double step = 0.02;
    for (double x = -60; x < 250; x += step)
        for (int c = 0; c < 20; c++) total += step * p[c] * exp(exact_log_normal(x, EXACT_SPACING * c)) * f(x, log_pi);
    return total;
}

static double distance_to_truth(const double *q, double x)
{
    double log_pi[20], posterior[20], total = 0;
    true_log_pi(log_pi);
    exact_evidence(20, log_pi, x, posterior);
    for (int c = 0; c < 20; c++) total += pow(q[c] - posterior[c], 2);
    return sqrt(total);
}

static double uniform_distance(double x, const double *log_pi)
{
    (void)log_pi;
    double q[20];
    for (int c = 0; c < 20; c++) q[c] = 0.05;
    return distance_to_truth(q, x);
}

static double posterior_distance(double x, const double *log_pi)
{
    double q[20];
    exact_evidence(20, log_pi, x, q);
    return distance_to_truth(q, x);
}

static double true_evidence(double x, const double *log_pi)
{
    return exact_evidence(20, log_pi, x, NULL);
}

static double test_mean(double (*f)(double x, const double *log_pi), const double *log_pi)
{
    double total = 0;
    for (int i = 0; i < n_seen[RWS_TEST]; i++) total += f((double)seen[RWS_TEST][i], log_pi) / n_seen[RWS_TEST];
    return total;
}

/* q_error: the twin over all data gives the published values, and the metric over the test data equals the twin over
 * the same data. */
static void test_q_error(void **state)
{
    (void)state;
    double far[20], near[20], truth[20];
    for (int c = 0; c < 20; c++) far[c] = -c, near[c] = -log(20);
    const double log_total = exact_log_sum(far, 20);
    for (int c = 0; c < 20; c++) far[c] -= log_total;
    true_log_pi(truth);
    assert_near(true_mean(uniform_distance, NULL), 0.728, 2e-3);
    assert_near(true_mean(posterior_distance, far), 0.261, 2e-3);
    assert_near(true_mean(posterior_distance, near), 0.0169, 2e-4);
    assert_near(true_mean(true_evidence, truth), -5.2523, 2e-3);

    rws_trainer *t = trainer(NULL);
    assert_int_equal(n_seen[RWS_TEST], 100);
    zero_guide(t);
    assert_near(metric(t, "q_error"), test_mean(uniform_distance, NULL), 1e-6);
    set_guide_to_posterior(t, far);
    assert_near(metric(t, "q_error"), test_mean(posterior_distance, far), 1e-3);
    set_guide_to_posterior(t, near);
    assert_near(metric(t, "q_error"), test_mean(posterior_distance, near), 1e-3);
    set_guide_to_posterior(t, truth);
    assert_near(metric(t, "q_error"), 0, 1e-3);
    set_theta(t, truth);
    assert_near(metric(t, "log_evidence"), test_mean(true_evidence, truth), 1e-6);
    assert_near(metric(t, "ess"), 1, 1e-3); /* all weights are the same */
    rws_trainer_free(t);
}

/* All of the model's metrics at parameters that training has reached, against the twin. */
static void test_metrics(void **state)
{
    (void)state;
    rws_config   c = {.model = "gmm", .method = "ww", .particles = 10, .seed = 3, .lr = "1e-2"};
    rws_trainer *t = trainer_from(&c, true);
    for (int round = 0; round < 3; round++) {
        exact  m = exact_read(rws__trainer_state_of(t).params, 1);
        double p = 0, q = 0, evidence = 0, truth[20], log_pi[20], log_q[20];
        exact_truth(20, truth);
        exact_log_prior(&m, log_pi);
        for (int z = 0; z < 20; z++) p += pow(exp(log_pi[z]) - truth[z], 2);
        for (int i = 0; i < 100; i++) {
            const double x = (double)seen[RWS_TEST][i];
            exact_log_guide(&m, x, log_q);
            for (int z = 0; z < 20; z++) log_q[z] = exp(log_q[z]);
            q += distance_to_truth(log_q, x) / 100;
            evidence += exact_evidence(20, log_pi, x, NULL) / 100;
        }
        assert_near(metric(t, "p_error"), sqrt(p), 1e-7);
        assert_near(metric(t, "q_error"), q, 1e-5);
        assert_near(metric(t, "log_evidence"), evidence, 1e-6);
        exact_release(&m);
        steps(t, 200);
    }
    rws_trainer_free(t);
}

/* With many particles, theta's gradient tends to posterior - prior and phi's, on the last bias, to posterior - q. Their
 * asymptotic variance is known: E_q[(w/Z)^2 (1[z = c] - p(c|x))^2] / K. 40 numbers within 6 standard deviations, and
 * a bias of order 1/K: an error level of 1e-7. The number of particles is raised once before it fails. */
static void test_many_particles(void **state)
{
    (void)state;
    bool good = false;
    for (int K = 200000; K <= 2000000 && !good; K *= 10) {
        rws_config c = {.model = "gmm", .method = "ww", .particles = K, .batch = 1, .n_test = 1, .seed = 5};
        c.set[c.n_set++] = "start=near";
        chosen = 98;
        rws_trainer *t = trainer_from(&c, false);
        zero_guide(t);
        for (int z = 0; z < 20; z++) {
            param(t, "theta")->value[z] = 0.1f * (float)(z % 7);
            param(t, "phi.mlp.2.bias")->value[z] = -0.05f * (float)((z - 10) * (z - 10));
        }
        rws_trainer_changed(t);
        exact  m = exact_read(rws__trainer_state_of(t).params, 1);
        double log_pi[20], log_q[20], posterior[20];
        exact_log_prior(&m, log_pi);
        exact_log_guide(&m, 98, log_q);
        exact_evidence(20, log_pi, 98, posterior);
        float *g = malloc(m.n * sizeof *g);
        gradient_of(t, 0, g);
        const size_t bias = param(t, "phi.mlp.2.bias")->offset;
        good = true;
        for (int c2 = 0; c2 < 20; c2++) {
            double variance = 0;
            for (int z = 0; z < 20; z++)
                variance += pow(posterior[z], 2) / exp(log_q[z]) * pow((z == c2) - posterior[c2], 2) / K;
            const double reach = 6 * sqrt(variance) + 20.0 / K + 1e-6;
            good &= fabs((double)g[m.theta + (size_t)c2] - (posterior[c2] - exp(log_pi[c2]))) < reach;
            good &= fabs((double)g[bias + (size_t)c2] - (posterior[c2] - exp(log_q[c2]))) < reach;
        }
        free(g);
        exact_release(&m);
        rws_trainer_free(t);
    }
    assert_true(good);
}

/* From the far start log-weights are hundreds apart; every method must still give finite numbers. */
static void test_far_start(void **state)
{
    (void)state;
    for (int i = 0; rws_estimators[i]; i++) {
        if (!rws_estimators[i]->n_phases) continue; /* em */
        rws_config   c = {.model = "gmm", .method = rws_estimators[i]->name, .particles = 2, .seed = 2};
        rws_trainer *t = trainer_from(&c, true);
        steps(t, 200);
        assert_true(isfinite(metric(t, "p_error")) && isfinite(metric(t, "q_error")) &&
                    isfinite(metric(t, "grad_std")));
        rws_trainer_free(t);
    }
}

/* ---- data -------------------------------------------------------------------------------------------------------- */

static double true_below(double x)
{
    double p[20], total = 0;
    exact_truth(20, p);
    for (int c = 0; c < 20; c++) total += p[c] * 0.5 * erfc(-(x - EXACT_SPACING * c) / (EXACT_SD * sqrt(2)));
    return total;
}

/* Chi-square of n data in 100 intervals of the same probability under the true mixture: with 99 degrees of freedom it
 * leaves (40, 185) with probability below 1e-6. Ten times as many data are drawn before that counts. */
static void test_data(void **state)
{
    (void)state;
    enum { BINS = 100 };
    double square = 0;
    bool   good = false;
    for (int n = 100000; n <= 1000000 && !good; n *= 10) {
        rws_config   c = {.model = "gmm", .method = "ww", .particles = 1, .batch = n, .seed = 11};
        rws_trainer *t = trainer_from(&c, true);
        int          count[BINS] = {0};
        steps(t, 1);
        assert_int_equal(n_seen[RWS_TRAIN], n);
        for (int i = 0; i < n; i++) {
            int bin = (int)(BINS * true_below((double)seen[RWS_TRAIN][i]));
            count[bin < BINS ? bin : BINS - 1]++;
        }
        square = 0;
        for (int i = 0; i < BINS; i++) square += pow(count[i] - (double)n / BINS, 2) / ((double)n / BINS);
        good = square > 40 && square < 185;
        rws_trainer_free(t);
    }
    if (!good) fail_msg("Chi-square is %.1f with %d degrees of freedom.", square, BINS - 1);
}

/* The same test data whatever the seed and the method; training data of their own for every seed and iteration, and
 * the same ones whenever they are drawn again. */
static void test_repeatability(void **state)
{
    (void)state;
    float test[100], train[3][100];
    for (uint64_t seed = 1; seed <= 3; seed++) {
        rws_config c = {.model = "gmm", .method = seed == 2 ? "vimco" : "ws", .particles = (int)seed + 1, .seed = seed};
        if (seed == 3) c.batch = 37;
        rws_trainer *t = trainer_from(&c, true);
        if (seed == 1) memcpy(test, seen[RWS_TEST], sizeof test);
        assert_memory_equal(test, seen[RWS_TEST], sizeof test);
        for (int i = 0; i < 3 && seed < 3; i++) {
            steps(t, 1);
            if (seed == 1) memcpy(train[i], seen[RWS_TRAIN], sizeof train[i]);
            else assert_memory_not_equal(train[i], seen[RWS_TRAIN], sizeof train[i]);
            if (i > 0) assert_memory_not_equal(train[i], train[i - 1], sizeof train[i]);
        }
        rws_trainer_free(t);
    }
    rws_config   c = {.model = "gmm", .method = "reinforce", .particles = 5, .seed = 1};
    rws_trainer *t = trainer_from(&c, true);
    for (int i = 0; i < 3; i++) {
        steps(t, 1);
        assert_memory_equal(train[i], seen[RWS_TRAIN], sizeof train[i]);
    }
    assert_memory_not_equal(train[0], test, sizeof test);
    rws_trainer_free(t);
}

/* ---- spread of the gradient -------------------------------------------------------------------------------------- */

/* grad_std from ten gradients on the test data, of every method; evaluation changes nothing. */
static void test_grad_std(void **state)
{
    (void)state;
    for (int i = 0; rws_estimators[i]; i++) {
        if (!rws_estimators[i]->n_phases) continue; /* em */
        rws_config   c = {.model = "gmm", .method = rws_estimators[i]->name, .particles = 3, .seed = 2};
        rws_trainer *t = trainer_from(&c, true);
        rws_error    err;
        steps(t, 5);
        const rws_params *p = rws__trainer_state_of(t).params;
        const size_t      first = p->first[RWS_PHI], n = p->first[RWS_PHI + 1] - first;
        float            *g = malloc(10 * p->size * sizeof *g), *values = malloc(p->size * sizeof *values);
        memcpy(values, p->value, p->size * sizeof *values);
        for (uint64_t draw = 0; draw < 10; draw++)
            assert_int_equal(rws_trainer_gradient(t, RWS_TEST, draw, g + draw * p->size, rws_trainer_size(t), &err),
                             RWS_OK);
        double total = 0;
        for (size_t k = first; k < first + n; k++) {
            double mean = 0, squares = 0;
            for (size_t d = 0; d < 10; d++) mean += (double)g[d * p->size + k] / 10;
            for (size_t d = 0; d < 10; d++) squares += pow((double)g[d * p->size + k] - mean, 2) / 10;
            total += sqrt(squares) / (double)n;
        }
        assert_true(total > 0);
        const double measured = metric(t, "grad_std");
        assert_near(measured, total, 1e-6 * total);
        assert_true(metric(t, "grad_std") == measured);
        assert_memory_equal(values, p->value, p->size * sizeof *values);
        free(g);
        free(values);
        rws_trainer_free(t);
    }
}

/* The authors divide by the sum of leading dimensions: 16 + 16 + 20 + 20, or 32 more with two hidden layers. */
static void test_std_ref(void **state)
{
    (void)state;
    const double ratio[] = {372.0 / 72, 644.0 / 104};
    for (int hidden = 1; hidden <= 2; hidden++) {
        double value[2];
        for (int ref = 0; ref < 2; ref++) {
            rws_config c = {.model = "gmm", .method = "ww", .particles = 3, .seed = 2};
            c.set[c.n_set++] = hidden == 1 ? "gmm_hidden=1" : "gmm_hidden=2";
            c.set[c.n_set++] = ref ? "std_ref=1" : "std_ref=0";
            rws_trainer *t = trainer_from(&c, true);
            value[ref] = metric(t, "grad_std");
            rws_trainer_free(t);
        }
        assert_near(value[1] / value[0], ratio[hidden - 1], 1e-9);
    }
}

/* The sum over parameters of |mean| by that of the deviations, from the same gradients. */
static void compare_snr(const char *setting, size_t draws)
{
    rws_config c = {.model = "gmm", .method = "vimco", .particles = 3, .seed = 2};
    c.set[c.n_set++] = setting;
    rws_trainer      *t = trainer_from(&c, true);
    const rws_params *p = rws__trainer_state_of(t).params;
    float            *g = malloc(draws * p->size * sizeof *g);
    rws_error         err = {""};
    for (uint64_t i = 0; i < draws; i++)
        assert_int_equal(rws_trainer_gradient(t, RWS_TEST, i, g + i * p->size, p->size, &err), RWS_OK);
    for (int group = RWS_THETA; group <= RWS_PHI; group++) {
        double signal = 0, noise = 0;
        for (size_t k = p->first[group]; k < p->first[group + 1]; k++) {
            double mean = 0, variance = 0;
            for (size_t i = 0; i < draws; i++) mean += (double)g[i * p->size + k] / (double)draws;
            for (size_t i = 0; i < draws; i++) variance += pow((double)g[i * p->size + k] - mean, 2) / (double)draws;
            signal += fabs(mean);
            noise += sqrt(variance);
        }
        assert_near(metric(t, group == RWS_THETA ? "snr_theta" : "snr_phi"), signal / noise, 1e-4 * signal / noise);
    }
    free(g);
    rws_trainer_free(t);
}

static void test_grad_snr(void **state)
{
    (void)state;
    compare_snr("grad_snr=1", 10);
    compare_snr("grad_snr=25", 25);
}

/* ---- snapshots --------------------------------------------------------------------------------------------------- */

static double shown(const rws_snapshots *s, const char *name, int place)
{
    for (int i = 0; i < s->n; i++)
        if (strcmp(s->list[i].snapshot, name) == 0 && s->list[i].place == place) return s->list[i].value;
    fail_msg("There is no number %d in the snapshot %s.", place, name);
    return NAN;
}

static void test_snapshots(void **state)
{
    (void)state;
    rws_trainer  *t = trainer("start=near");
    rws_snapshots s = {0};
    rws_error     err = {""};
    assert_int_equal(rws__trainer_snapshots(t, &s, &err), RWS_OK);
    assert_int_equal(s.n, 8 * 20);
    assert_near(shown(&s, "p", 7), 1.0 / 20, 1e-7);
    assert_near(shown(&s, "true_p", 19), 24.0 / 290, 1e-12);
    assert_near(shown(&s, "true_q_0", 0), 0.859940, 1e-6);
    assert_near(shown(&s, "true_q_95", 10), 0.507935, 1e-6);
    assert_near(shown(&s, "true_q_190", 18), 0.114775, 1e-6);
    double total = 0;
    for (int c = 0; c < 20; c++) total += shown(&s, "q_95", c);
    assert_near(total, 1, 1e-5);
    rws__snapshots_release(&s);
    rws_trainer_free(t);

    /* 10 iterations, evaluated every third: snapshots at the first, at the first past the middle, at the last */
    const rws_config c = {.model = "gmm", .method = "ww", .particles = 2, .seed = 1, .iterations = 10, .eval_every = 3};
    t = trainer_from(&c, true);
    assert_false(rws__trainer_snapshots_due(t));
    for (int i = 1; i <= 10; i++) {
        steps(t, 1);
        assert_int_equal(rws__trainer_snapshots_due(t), i == 1 || i == 6 || i == 10);
    }
    rws_trainer_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parameters),    cmocka_unit_test(test_starts),         cmocka_unit_test(test_theta_mult),
        cmocka_unit_test(test_evidence),      cmocka_unit_test(test_posterior),      cmocka_unit_test(test_q_error),
        cmocka_unit_test(test_metrics),       cmocka_unit_test(test_many_particles), cmocka_unit_test(test_data),
        cmocka_unit_test(test_repeatability), cmocka_unit_test(test_far_start),      cmocka_unit_test(test_grad_std),
        cmocka_unit_test(test_grad_snr),      cmocka_unit_test(test_std_ref),        cmocka_unit_test(test_snapshots),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    for (int i = 0; i < 2; i++) free(seen[i]);
    return failed;
}
