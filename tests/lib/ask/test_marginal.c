/* test_marginal.c - the distribution of each choice by itself, against sums worked out by hand. */
#include "ask/marginal.h"

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
    rws_marginals      m;
    rws_error          err;
    assert_int_equal(rws_marginals_make(&answers, true, 8, &m, &err), RWS_OK);
    assert_int_equal(m.n, 6); /* sum; n, n:1, w of both sizes, x */
    assert_true(m.list[0].report);
    const rws_marginal *n = find(&m, "n", 0, 1);
    assert_int_equal(n->n_values, 2);
    assert_near(n->posterior, 1, 1e-15);
    assert_near(n->values[0].posterior, 0.7, 1e-15);
    assert_near(n->values[0].guide, 0.5, 1e-15);
    assert_near(n->values[1].posterior, 0.3, 1e-15);
    assert_near(find(&m, "n", 1, 1)->posterior, 0.5, 0);
    assert_near(find(&m, "w", 0, 2)->posterior, 0.5, 0);
    assert_near(find(&m, "w", 0, 2)->mean[1], 3, 0);
    assert_near(find(&m, "w", 0, 1)->posterior, 0.2, 0);
    const rws_marginal *x = find(&m, "x", 0, 1);
    assert_null(x->values);
    assert_near(x->mean[0], (0.5 * 0.5 + 0.3 * 1.5) / 0.8, 1e-15);
    assert_near(x->sd[0], sqrt(0.625 * 0.375), 1e-15);
    assert_null(find(&m, "big", 0, 20));
    rws_marginals_release(&m);
    assert_int_equal(rws_marginals_make(&answers, false, INT_MAX, &m, &err), RWS_OK);
    assert_int_equal(m.n, 6); /* without sum, with big */
    assert_non_null(find(&m, "big", 0, 20));
    rws_marginals_release(&m);
}

static void test_many_values_and_impossible(void **state)
{
    (void)state;
    enum { MANY = RWS_MARGINAL_VALUES + 1 };
    static float        values[MANY];
    static rws_choice   choices[MANY];
    static rws_weighted particles[MANY];
    rws_answers         answers = {.particles = particles, .n_particles = MANY};
    rws_marginals       m;
    rws_error           err;
    for (int i = 0; i < MANY; i++) {
        values[i] = 1e6f + (float)i;
        choices[i] = (rws_choice){.site = "n", .value = &values[i], .dim = 1};
        particles[i] = (rws_weighted){.weight = 1.0 / MANY, .count = 1, .choices = &choices[i], .n_choices = 1};
    }
    for (answers.n_weighted = MANY - 1; answers.n_weighted <= MANY; answers.n_weighted++) {
        assert_int_equal(rws_marginals_make(&answers, false, INT_MAX, &m, &err), RWS_OK);
        assert_int_equal(m.n, 1);
        assert_int_equal(m.list[0].n_values, answers.n_weighted < MANY ? MANY - 1 : 0);
        if (answers.n_weighted == MANY) assert_near(m.list[0].mean[0], 1e6 + (MANY - 1) / 2.0, 1e-6);
        rws_marginals_release(&m);
    }
    for (int i = 0; i < 2; i++) particles[i].weight = NAN;
    answers.n_weighted = 2;
    assert_int_equal(rws_marginals_make(&answers, false, INT_MAX, &m, &err), RWS_OK);
    assert_true(m.n == 1 && isnan(m.list[0].posterior) && m.list[0].guide > 0);
    rws_marginals_release(&m);
    answers.n_weighted = 0;
    assert_int_equal(rws_marginals_make(&answers, true, INT_MAX, &m, &err), RWS_OK);
    assert_int_equal(m.n, 0);
    rws_marginals_release(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_many_values_and_impossible),
    };
    return cmocka_run_group_tests_name("marginal", tests, NULL, NULL);
}
