/* test_by_hand.c - the example that is written out by hand: its gradients are right, and it learns. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wreturn-type" /* only a function named main may end without a return */
#define main by_hand_main
#include "../../examples/by_hand.c"
#undef main
#pragma GCC diagnostic pop

#include "support.h"

#include <string.h>

/* What a step of wake-wake climbs for one datum if the weights are constants: sum_c share_c (log p(c, x) + log q(c | x)). */
static double climbed(const params *p, double x, const double share[C])
{
    double prior[C], hidden[H], q[C], sum = 0;
    softmax(p->theta, prior);
    guide(p, x, hidden, q);
    for (int c = 0; c < C; c++) sum += share[c] * (log_joint(prior, c, x) + log(q[c]));
    return sum;
}

static void at_random(params *p)
{
    double *value = (double *)p;
    for (int i = 0; i < n_params; i++) value[i] = uniform() - 0.5;
}

/* All 372 partial derivatives agree with central differences, for data near and far. */
static void gradients(void **state)
{
    (void)state;
    static params p, moved, g;
    const double  xs[] = {-7, 0.3, 3.5, 95};
    for (int n = 0; n < 4; n++) {
        double prior[C], hidden[H], q[C], share[C];
        at_random(&p);
        softmax(p.theta, prior);
        guide(&p, xs[n], hidden, q);
        weigh(prior, q, xs[n], share);
        memset(&g, 0, sizeof g);
        backward(&p, xs[n], prior, hidden, q, share, &g);
        for (int i = 0; i < n_params; i++) {
            const double e = 1e-6;
            moved = p, ((double *)&moved)[i] += e;
            const double above = climbed(&moved, xs[n], share);
            moved = p, ((double *)&moved)[i] -= e;
            const double slope = (above - climbed(&moved, xs[n], share)) / (2 * e), found = ((const double *)&g)[i];
            if (fabs(slope - found) > 1e-6 * (1 + fabs(slope)))
                fail_msg("x = %g, parameter %d: %.9g, and %.9g by differences", xs[n], i, found, slope);
        }
    }
}

/* The guide is a mixture of the posterior and a uniform: the mean of the shares over many draws is the posterior but for the
 * bias of weights that are divided by their sum, below 0.01 here. The guide is the posterior: all weights are 1 / K. */
static void weights(void **state)
{
    (void)state;
    double       prior[C], posterior[C], q[C], share[C], mean[C] = {0}, logits[C];
    const double x = 42;
    const int    draws = 20000;
    for (int c = 0; c < C; c++) prior[c] = (c + 5) / 290.0, logits[c] = log_joint(prior, c, x);
    softmax(logits, posterior);
    for (int c = 0; c < C; c++) q[c] = 0.7 * posterior[c] + 0.3 / C;
    for (int i = 0; i < draws; i++) {
        double sum = 0;
        weigh(prior, q, x, share);
        for (int c = 0; c < C; c++) assert_true(share[c] >= 0), sum += share[c], mean[c] += share[c] / draws;
        assert_true(fabs(sum - 1) < 1e-12);
    }
    for (int c = 0; c < C; c++) assert_true(fabs(mean[c] - posterior[c]) < 0.01);

    weigh(prior, posterior, x, share);
    for (int c = 0; c < C; c++) assert_true(fabs(share[c] * K - round(share[c] * K)) < 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(gradients), cmocka_unit_test(weights)};
    return cmocka_run_group_tests_name("by_hand", tests, NULL, NULL);
}
