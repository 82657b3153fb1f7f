/* test_calibration.c - ranks of an exact posterior are uniform, and those of a spoiled guide are not. */
#include "clusters.h"

#include "ask/frame.h"

#include <stdio.h>
#include <string.h>

static rws_calibration *calibrate(int n, int n_particles, uint64_t seed, int threads)
{
    rws_posterior        *p = clusters_posterior();
    rws_frame            *f;
    rws_calibration      *c;
    rws_error             err = {""};
    const rws_simulations how = {.n_particles = n_particles, .seed = seed, .threads = threads};
    assert_int_equal(rws_frame_new(&f, &err), RWS_OK);
    if (rws_posterior_simulate(p, n, &how, f, &err) != RWS_OK) fail_msg("%s", err.text);
    assert_int_equal(rws_frame_rows(f), n);
    assert_int_equal(rws_calibration_new(f, &c, &err), RWS_OK);
    rws_frame_free(f);
    rws_posterior_free(p);
    return c;
}

static const rws_calibrated *find(const rws_calibration *c, const char *name, bool guide)
{
    for (int i = 0; i < c->n; i++)
        if (c->list[i].guide == guide && strcmp(c->list[i].name, name) == 0) return &c->list[i];
    fail_msg("There is no %s.", name);
    return NULL;
}

/* Uniform numbers instead of ranks: the share of p values below 0.05 and 0.2 in 200 repetitions. Error level: 4 standard
 * deviations of these shares, 1e-4. */
static void p_values_are_uniform(void **state)
{
    (void)state;
    rws_random random = rws__random_new(rws__key_for(1, 0, RWS_KEY_DATA, 0), 0);
    double     below[2] = {0};
    for (int repeat = 0; repeat < 200; repeat++) {
        rws_frame       *f;
        rws_calibration *c;
        rws_error        err;
        assert_int_equal(rws_frame_new(&f, &err), RWS_OK);
        for (int i = 0; i < 100; i++)
            assert_true(rws__frame_begin(f) && rws__frame_number(f, "a.rank", rws_random_uniform(&random)));
        assert_int_equal(rws_calibration_new(f, &c, &err), RWS_OK);
        below[0] += c->list[0].p < 0.05;
        below[1] += c->list[0].p < 0.2;
        assert_true(c->n == 1 && c->list[0].n == 100 && c->list[0].p == c->list[0].p_adjusted);
        rws_calibration_free(c);
        rws_frame_free(f);
    }
    assert_true(near(below[0] / 200, 0.05, 4 * sqrt(0.05 * 0.95 / 200)));
    assert_true(near(below[1] / 200, 0.2, 4 * sqrt(0.2 * 0.8 / 200)));
}

/* 200 calibrations of an exact posterior, with few particles. The share with some adjusted p below 0.05 is at most 0.05 (Holm);
 * error level: 4 standard deviations, 3e-5. */
static void an_exact_posterior_passes(void **state)
{
    (void)state;
    int rejected[2] = {0};
    clusters_guide = (spoiled){1, 0};
    for (uint64_t seed = 0; seed < 200; seed++) {
        rws_calibration *c = calibrate(100, 20, seed, 1);
        bool             some[2] = {false};
        assert_int_equal(c->n_impossible, 0);
        for (int i = 0; i < c->n; i++) some[c->list[i].guide] |= c->list[i].p_adjusted < 0.05;
        rejected[0] += some[0];
        rejected[1] += some[1];
        rws_calibration_free(c);
    }
    printf("# exact: %d of 200 rejected by weights, %d by the guide\n", rejected[0], rejected[1]);
    assert_true(rejected[0] / 200.0 < 0.05 + 4 * sqrt(0.05 * 0.95 / 200));
    assert_true(rejected[1] / 200.0 < 0.05 + 4 * sqrt(0.05 * 0.95 / 200));
}

/* The guide fails, and its weights repair it. */
static void a_spoiled_guide_fails(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        int rejected[2] = {0};
        clusters_guide = (const spoiled[]){{1.5f, 0}, {1, 20}}[i];
        for (uint64_t seed = 0; seed < 10; seed++) {
            rws_calibration *c = calibrate(400, i ? 50 : 500, seed, 2);
            bool             some[2] = {false};
            for (int k = 0; k < c->n; k++) some[c->list[k].guide] |= c->list[k].p_adjusted < 0.05;
            rejected[0] += some[0];
            rejected[1] += some[1];
            rws_calibration_free(c);
        }
        printf("# %s: %d of 10 rejected by weights, %d by the guide\n", i ? "one mode dropped" : "temperature 1.5",
               rejected[0], rejected[1]);
        assert_true(rejected[1] == 10);
        if (i == 0) assert_true(rejected[0] <= 3); /* error level 0.001 */
        else assert_int_equal(rejected[0], 10);
    }
}

/* Intervals of a calibrated posterior cover what they say. Error level: 4 standard deviations, 6e-5 each. */
static void intervals_cover(void **state)
{
    (void)state;
    enum { N = 2000 };
    const double widths[] = RWS_CALIBRATION_WIDTHS;
    clusters_guide = (spoiled){1, 0};
    rws_calibration      *c = calibrate(N, 100, 5, 0), *same = calibrate(N, 100, 5, 1);
    const rws_calibrated *z = find(c, "z", false), *k = find(c, "c", true), *w = find(c, "w.visits", false);
    int                   total = 0;
    for (int i = 0; i < 3; i++) assert_true(near(z->coverage[i], widths[i], 4 * sqrt(widths[i] * (1 - widths[i]) / N)));
    for (int i = 0; i < RWS_CALIBRATION_BINS; i++) total += z->histogram[i];
    assert_true(total == z->n && z->n == N && isnan(z->confidence_error));
    assert_true(k->confidence_error < 0.05 && k->accuracy > 0.6 && w->n > 500 && w->p > 1e-4);
    assert_true(find(c, "w:1", false)->n < N && find(c, "report.z", true)->n == N);
    assert_int_equal(c->n, same->n);
    for (int i = 0; i < c->n; i++)
        assert_memory_equal(c->list[i].histogram, same->list[i].histogram, sizeof z->histogram);
    for (int g = 0; g < RWS_CALIBRATION_GRID - 1; g++) assert_true(z->low[g] < 0 && z->high[g] > 0);
    rws_calibration_free(c);
    rws_calibration_free(same);
}

static bool stop_at_300(void *context, int n)
{
    (void)context;
    return n < 300;
}

static void simulations_continue(void **state)
{
    (void)state;
    rws_posterior   *p = clusters_posterior();
    rws_frame       *whole, *part;
    rws_error        err = {""};
    rws_simulations  how = {.n_particles = 10, .seed = 2, .threads = 1};
    rws_frame_column a, b;
    assert_int_equal(rws_frame_new(&whole, &err), RWS_OK);
    assert_int_equal(rws_frame_new(&part, &err), RWS_OK);
    assert_int_equal(rws_posterior_simulate(p, 300, &how, whole, &err), RWS_OK);
    assert_int_equal(rws_posterior_simulate(p, RWS_SIMULATIONS, &how, part, &err), RWS_OK);
    assert_int_equal(rws_posterior_simulate(p, 300, &how, part, &err), RWS_OK);
    for (int i = 0; rws_frame_column_at(whole, i, &a); i++) {
        assert_true(rws_frame_column_at(part, i, &b) && strcmp(a.name, b.name) == 0);
        assert_memory_equal(a.numbers, b.numbers, 300 * sizeof(double));
    }
    assert_int_equal(rws_posterior_simulate(p, 400, &how, part, &err), RWS_BAD_INPUT);
    assert_int_equal(rws_posterior_simulate(NULL, 1, &how, part, &err), RWS_BAD_INPUT);
    assert_int_equal(rws_posterior_simulate(p, -1, &how, part, &err), RWS_BAD_INPUT);
    assert_int_equal(rws_calibration_new(NULL, NULL, &err), RWS_BAD_INPUT);
    rws_frame_free(part);
    assert_int_equal(rws_frame_new(&part, &err), RWS_OK);
    how.done = stop_at_300;
    assert_int_equal(rws_posterior_simulate(p, 1000, &how, part, &err), RWS_STOPPED);
    assert_int_equal(rws_frame_rows(part), 300);
    rws_frame_free(part);
    rws_frame_free(whole);
    rws_calibration_free(NULL);
    rws_posterior_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(p_values_are_uniform),  cmocka_unit_test(an_exact_posterior_passes),
        cmocka_unit_test(a_spoiled_guide_fails), cmocka_unit_test(intervals_cover),
        cmocka_unit_test(simulations_continue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
