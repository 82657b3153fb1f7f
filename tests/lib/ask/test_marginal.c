/* test_marginal.c - the distribution of each choice by itself, against sums worked out by hand. */
#include "ask/ask.h"

#include "support.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const rws_marginal *find(const rws_marginals *m, const char *name, int visit, int dim)
{
    for (int i = 0; i < m->n; i++)
        if (strcmp(m->list[i].name, name) == 0 && m->list[i].visit == visit && m->list[i].dim == dim)
            return &m->list[i];
    return NULL;
}

/* Three kinds of particles of four: n is a number, w has two sizes, x is continuous, big is a picture. */
static const float      one = 1, two = 2, half = 0.5f, three_halves = 1.5f, pair[] = {1, 3}, picture[20];
static const rws_choice a[] = {{.site = "n", .value = &one, .dim = 1},
                               {.site = "n", .visit = 1, .value = &two, .dim = 1},
                               {.site = "w", .value = pair, .dim = 2},
                               {.site = "x", .value = &half, .dim = 1}};
static const rws_choice b[] = {{.site = "n", .value = &two, .dim = 1}, {.site = "x", .value = &three_halves, .dim = 1}};
static const rws_choice c[] = {{.site = "n", .value = &one, .dim = 1},
                               {.site = "w", .value = &half, .dim = 1},
                               {.site = "big", .value = picture, .dim = 20}};
static const rws_reported said[] = {{.name = "sum", .value = &two, .dim = 1}, {.name = "why", .text = "so"}};

static void test_sums(void **state)
{
    (void)state;
    const rws_weighted particles[] = {{.weight = 0.5, .count = 1, .choices = a, .n_choices = 4},
                                      {.weight = 0.3, .count = 2, .choices = b, .n_choices = 2},
                                      {.weight = 0.2, .count = 1, .choices = c, .n_choices = 3}};
    const rws_answer   answer = {.reports = said, .n_reports = 2, .guide = 1, .posterior = 1};
    const rws_answers  answers = {&answer, 1, particles, 3, .n_particles = 4};
    rws_marginals     *m;
    rws_error          err;
    assert_int_equal(rws_marginals_new(&answers, 8, &m, &err), RWS_OK);
    assert_int_equal(m->n, 6); /* sum; n, n:1, w of both sizes, x */
    assert_true(m->list[0].report);
    const rws_marginal *n = find(m, "n", 0, 1);
    assert_int_equal(n->n_values, 2);
    assert_near(n->posterior, 1, 1e-15);
    assert_near(n->values[0].posterior, 0.7, 1e-15);
    assert_near(n->values[0].guide, 0.5, 1e-15);
    assert_near(n->values[1].posterior, 0.3, 1e-15);
    assert_near(find(m, "n", 1, 1)->posterior, 0.5, 0);
    assert_near(find(m, "w", 0, 2)->posterior, 0.5, 0);
    assert_near(find(m, "w", 0, 2)->mean[1], 3, 0);
    assert_near(find(m, "w", 0, 1)->posterior, 0.2, 0);
    const rws_marginal *x = find(m, "x", 0, 1);
    assert_null(x->values);
    assert_near(x->mean[0], (0.5 * 0.5 + 0.3 * 1.5) / 0.8, 1e-15);
    assert_near(x->sd[0], sqrt(0.625 * 0.375), 1e-15);
    assert_null(find(m, "big", 0, 20));
    rws_marginals_free(m);
    assert_int_equal(rws_marginals_new(&answers, INT_MAX, &m, &err), RWS_OK);
    assert_int_equal(m->n, 7); /* with big */
    assert_non_null(find(m, "big", 0, 20));
    rws_marginals_free(m);
}

static void test_many_values_and_impossible(void **state)
{
    (void)state;
    enum { MANY = RWS_MARGINAL_VALUES + 1 };
    static float        values[MANY];
    static rws_choice   choices[MANY];
    static rws_weighted particles[MANY];
    rws_answers         answers = {.particles = particles, .n_particles = MANY};
    rws_marginals      *m;
    rws_error           err;
    for (int i = 0; i < MANY; i++) {
        values[i] = 1e6f + (float)i;
        choices[i] = (rws_choice){.site = "n", .value = &values[i], .dim = 1};
        particles[i] = (rws_weighted){.weight = 1.0 / MANY, .count = 1, .choices = &choices[i], .n_choices = 1};
    }
    for (answers.n_weighted = MANY - 1; answers.n_weighted <= MANY; answers.n_weighted++) {
        assert_int_equal(rws_marginals_new(&answers, INT_MAX, &m, &err), RWS_OK);
        assert_int_equal(m->n, 1);
        assert_int_equal(m->list[0].n_values, answers.n_weighted < MANY ? MANY - 1 : 0);
        if (answers.n_weighted == MANY) assert_near(m->list[0].mean[0], 1e6 + (MANY - 1) / 2.0, 1e-6);
        rws_marginals_free(m);
    }
    for (int i = 0; i < 2; i++) particles[i].weight = NAN;
    answers.n_weighted = 2;
    assert_int_equal(rws_marginals_new(&answers, INT_MAX, &m, &err), RWS_OK);
    assert_true(m->n == 1 && isnan(m->list[0].posterior) && m->list[0].guide > 0);
    rws_marginals_free(m);
    answers.n_weighted = 0;
    assert_int_equal(rws_marginals_new(&answers, INT_MAX, &m, &err), RWS_OK);
    assert_int_equal(m->n, 0);
    rws_marginals_free(m);
}

/* A number that is reported as NaN has a place in the order: the other values are still counted together. */
static void test_reports_of_nan(void **state)
{
    (void)state;
    enum { N = 40 };
    static const float  values[] = {2, NAN, 1, NAN};
    static rws_reported reports[N];
    static rws_answer   list[N];
    const rws_answers   answers = {.list = list, .n = N, .n_particles = N};
    rws_marginals      *m;
    rws_error           err;
    for (int i = 0; i < N; i++) {
        reports[i] = (rws_reported){.name = i % 2 ? "odd" : "even", .value = &values[i % 4], .dim = 1};
        list[i] = (rws_answer){.reports = &reports[i], .n_reports = 1, .guide = 1.0 / N, .posterior = 1.0 / N};
    }
    assert_int_equal(rws_marginals_new(&answers, 1, &m, &err), RWS_OK);
    assert_int_equal(m->n, 2);
    assert_int_equal(m->list[0].n_values, 2);
    assert_near(m->list[0].values[1].posterior, 0.25, 1e-12);
    assert_true(!m->list[1].values && isnan(m->list[1].mean[0]));
    rws_marginals_free(m);
}

static void test_order_by_weight(void **state)
{
    (void)state;
    static const double weights[] = {0, NAN, 0.25, 0, NAN, 0.5, NAN, 0.25, 0, NAN};
    static const int    want[] = {5, 2, 7, 0, 3, 8, 1, 4, 6, 9};
    enum { N = sizeof weights / sizeof *weights };
    rws_weighted particles[N];
    rws_arena    memory = {0};
    for (int i = 0; i < N; i++) particles[i] = (rws_weighted){.weight = weights[i], .count = i};
    const rws_weighted *sorted = rws__particles_sort(&memory, particles, N);
    for (int i = 0; i < N; i++) assert_int_equal(sorted[i].count, want[i]);
    rws__arena_free(&memory);
    assert_true(rws__number_order(NAN, NAN) == 0 && rws__number_order(NAN, -INFINITY) < 0 &&
                rws__number_order(1, NAN) > 0);
}

/* The JSON object of answers: every key, and numbers that are not finite. */
static void test_json(void **state)
{
    (void)state;
    static const float        third = 1.0f / 3;
    static const rws_choice   given[] = {{.site = "z", .visit = 1, .value = &third, .dim = 1, .given = true}};
    static const rws_weighted particles[] = {
        {.weight = 1, .count = 3, .log_p = -0.1, .log_q = -INFINITY, .log_given = -2, .choices = given, .n_choices = 1},
        {.weight = NAN, .count = 1}};
    static const rws_answer list[] = {{said, 2, .guide = 1.0 / 3, .posterior = NAN, .exact = 0, .error = 0.5},
                                      {.exact = NAN}};
    const rws_answers answers = {list, 2, particles, 2, 4, 0.1, -INFINITY, NAN, NAN, 0.25, 0, RWS_UNRELIABLE, "Why."};
    static const char want[] =
        "{\"particles\":4,\"log_evidence\":null,\"log_evidence_error\":null,\"ess\":0.1,\"k_hat\":0.25,\"k_limit\":0,"
        "\"verdict\":\"unreliable\",\"advice\":\"Why.\",\"n_answers\":2,\"answers\":[{\"posterior\":null,"
        "\"error\":0.5,\"exact\":0,\"guide\":0.33333333333333331,\"reports\":{\"sum\":2,\"why\":\"so\"}}],"
        "\"marginals\":["
        "{\"report\":\"sum\",\"visit\":0,\"posterior\":null,\"error\":null,\"guide\":0.33333333333333331,\"values\":["
        "{\"value\":2,\"posterior\":null,\"error\":null,\"guide\":0.33333333333333331}]},{\"site\":\"z\",\"visit\":1,"
        "\"posterior\":1,\"error\":0,\"guide\":0.75,\"mean\":[0.3333333432674408],\"mean_error\":[0],\"sd\":[0]}],"
        "\"particles_listed\":[{\"weight\":1,\"count\":3,"
        "\"answer\":0,\"log_p\":-0.1,\"log_q\":null,\"log_given\":-2,\"choices\":[{\"site\":\"z\",\"visit\":1,"
        "\"value\":0.333333343}]}]}";
    char     *text;
    rws_error err;
    assert_int_equal(rws_answers_json(&answers, &(rws_answers_shown){1, 1, 8}, &text, &err), RWS_OK);
    assert_string_equal(text, want);
    free(text);
    assert_int_equal(rws_answers_json(&answers, &(rws_answers_shown){0}, &text, &err), RWS_OK);
    assert_string_equal(text, "{\"particles\":4,\"log_evidence\":null,\"log_evidence_error\":null,\"ess\":0.1,"
                              "\"k_hat\":0.25,\"k_limit\":0,\"verdict\":\"unreliable\",\"advice\":\"Why.\","
                              "\"n_answers\":2,\"answers\":[]}");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),           cmocka_unit_test(test_many_values_and_impossible),
        cmocka_unit_test(test_reports_of_nan), cmocka_unit_test(test_order_by_weight),
        cmocka_unit_test(test_json),
    };
    return cmocka_run_group_tests_name("marginal", tests, NULL, NULL);
}
