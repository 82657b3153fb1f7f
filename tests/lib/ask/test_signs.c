/* test_signs.c - the Pareto k is that of ArviZ, standard errors are those of repeated questions, and verdicts fit what is known of
 * the guide. */
#include "clusters.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum { PARETO, GAUSSIAN, HEAVIER, LEVELS, HOLES } formula;

#include "pareto_k.h"

/* As in pareto_k.py. */
static double make(formula f, int i, double a)
{
    const double t = (i + 1) * 0.6180339887498949, u = t - floor(t), e = -log(1 - u);
    switch (f) {
    case GAUSSIAN: return -a * pow(6 * u - 3, 2);
    case HEAVIER: return a * e * e;
    case LEVELS: return a * floor(12 * u * u) / 12;
    case HOLES: return (int)floor(1000 * u) % 3 == 0 ? -INFINITY : a * e;
    default: return a * e;
    }
}

/* ArviZ says infinity where fewer than five weights can be fitted; this library says NaN. */
static void pareto_k_is_that_of_arviz(void **state)
{
    (void)state;
    static double log_weights[20000];
    static int    counts[20000];
    for (size_t c = 0; c < sizeof arviz_k / sizeof *arviz_k; c++) {
        const int n = arviz_k[c].n;
        for (int i = 0; i < n; i++) log_weights[i] = make(arviz_k[c].formula, i, arviz_k[c].a);
        for (int i = 0; i < n; i++) counts[i] = 1 + i % arviz_k[c].most;
        const double k = rws_pareto_k(log_weights, arviz_k[c].most == 1 ? NULL : counts, n);
        if (isinf(arviz_k[c].k) ? !isnan(k) : !(fabs(k - arviz_k[c].k) < 1e-6))
            fail_msg("case %zu: %.12g, and %.12g by ArviZ", c, k, arviz_k[c].k);
    }
}

static void pareto_k_of_odd_weights(void **state)
{
    (void)state;
    const double nothing[] = {-INFINITY, -INFINITY, -INFINITY}, wrong[] = {0, NAN, 1};
    const int    none[] = {1, 0, 1}, many[] = {RWS_MAX_PARTICLES, 1, 1};
    assert_true(isnan(rws_pareto_k(NULL, NULL, 3)) && isnan(rws_pareto_k(nothing, NULL, 0)));
    assert_true(isnan(rws_pareto_k(nothing, NULL, 3)) && isnan(rws_pareto_k(wrong, NULL, 3)));
    assert_true(isnan(rws_pareto_k(wrong, none, 1)) && isnan(rws_pareto_k(nothing, none, 3)));
    assert_true(isnan(rws_pareto_k(nothing, many, 3)));
    assert_near(rws_pareto_k_limit(100), 0.5, 1e-15);
    assert_near(rws_pareto_k_limit(10000000), 0.7, 0);
    assert_true(rws_pareto_k_limit(1) == -INFINITY && rws_pareto_k_limit(0) == -INFINITY);
    assert_null(rws_trust_name((rws_trust)3));
}

static rws_answers *ask(rws_posterior *p, float x, int n, uint64_t seed)
{
    rws_answers       *a;
    rws_error          err = {""};
    const float *const fields[] = {&x};
    const rws_question q = {.fields = fields, .n_particles = n, .seed = seed, .particles = true};
    if (rws_posterior_ask(p, &q, &a, &err) != RWS_OK) fail_msg("%s", err.text);
    return a;
}

enum { EVIDENCE, CLUSTER, MEAN, ESTIMATES };

/* The estimates of an answer and their stated errors: log p(x), p(c = 1 | x) and the mean of z given x. */
static void take(const rws_answers *a, double *value, double *error)
{
    rws_marginals *all;
    rws_error      err = {""};
    if (rws_marginals_new(a, 1, &all, &err) != RWS_OK) fail_msg("%s", err.text);
    value[EVIDENCE] = a->log_evidence, error[EVIDENCE] = a->log_evidence_error;
    for (int i = 0; i < all->n; i++) {
        const rws_marginal *m = &all->list[i];
        if (m->report) value[MEAN] = m->mean[0], error[MEAN] = m->mean_error[0];
        if (strcmp(m->name, "w") == 0 || m->report) continue;
        for (int k = 0; k < m->n_values; k++)
            if (m->values[k].value == 1) value[CLUSTER] = m->values[k].posterior, error[CLUSTER] = m->values[k].error;
    }
    rws_marginals_free(all);
}

/* The spread of 400 answers is the error that they state: the ratio is right to 3.5 %, and 16 % are allowed (4.5 sigma: 7e-6). */
static void errors_are_those_of_repeated_questions(void **state)
{
    (void)state;
    enum { TIMES = 400 };
    rws_posterior *p = clusters_posterior();
    double         sum[ESTIMATES] = {0}, square[ESTIMATES] = {0}, stated[ESTIMATES] = {0};
    clusters_guide = (spoiled){1.5f, 0};
    for (int i = 0; i < TIMES; i++) {
        double       value[ESTIMATES] = {0}, error[ESTIMATES] = {0};
        rws_answers *a = ask(p, 1, 400, (uint64_t)i);
        take(a, value, error);
        for (int e = 0; e < ESTIMATES; e++) {
            sum[e] += value[e];
            square[e] += value[e] * value[e];
            stated[e] += error[e] * error[e];
        }
        rws_answers_free(a);
    }
    for (int e = 0; e < ESTIMATES; e++) {
        const double mean = sum[e] / TIMES, ratio = sqrt((square[e] / TIMES - mean * mean) / (stated[e] / TIMES));
        if (!(fabs(ratio - 1) < 0.16)) fail_msg("estimate %d: spread over stated error is %g", e, ratio);
    }
    assert_near(sum[EVIDENCE] / TIMES, clusters_log_evidence(1), 0.01);
    clusters_guide = (spoiled){1, 0};
    rws_posterior_free(p);
}

static void judged(rws_posterior *p, spoiled guide, int n, rws_trust want, const char *why)
{
    clusters_guide = guide;
    rws_answers *a = ask(p, 1.5f, n, 1);
    if (a->verdict != want || !strstr(a->advice, why))
        fail_msg("%s (%s) of %d particles: k_hat %g, ess %g", rws_trust_name(a->verdict), a->advice, n, a->k_hat,
                 a->ess);
    rws_answers_free(a);
    clusters_guide = (spoiled){1, 0};
}

static void verdicts_fit_the_guide(void **state)
{
    (void)state;
    rws_posterior *p = clusters_posterior();
    judged(p, (spoiled){1, 0}, 1000, RWS_RELIABLE, "even enough");
    judged(p, (spoiled){1.3f, 0}, 1000, RWS_RELIABLE, "even enough");
    judged(p, (spoiled){1, 0}, 50, RWS_DOUBTFUL, "ask with about 100");
    judged(p, (spoiled){1, 0}, 1, RWS_UNRELIABLE, "Only 1 of 1 particles");
    judged(p, (spoiled){0.4f, 0}, 5000, RWS_UNRELIABLE, "heavy tail"); /* too narrow: the variance is infinite */
    judged(p, (spoiled){1, 5}, 2000, RWS_UNRELIABLE, "heavy tail");    /* half of the posterior, from a few particles */
    rws_posterior_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pareto_k_is_that_of_arviz),
        cmocka_unit_test(pareto_k_of_odd_weights),
        cmocka_unit_test(errors_are_those_of_repeated_questions),
        cmocka_unit_test(verdicts_fit_the_guide),
    };
    return cmocka_run_group_tests_name("signs", tests, NULL, NULL);
}
