/* test_many.c - many questions have the answers of single ones, and the same bits on any number of threads and when a list is
 * continued; a question that fails does not take others with it. */
#include "clusters.h"

#include <stdio.h>
#include <string.h>

enum { N = 150, K = 40 };

/* What is compared of answers. */
typedef struct {
    int         n; /* that were delivered */
    double      log_evidence[N], ess[N], k_hat[N], best[N];
    rws_status  status[N];
    int         stop_after; /* 0: never */
    const char *message;
} results;

static bool take(void *context, int i, rws_answers *a, rws_status status, const char *message)
{
    results *r = context;
    assert_int_equal(i, r->n++); /* in order */
    r->status[i] = status;
    assert_true((status == RWS_OK) == (a != NULL));
    if (a) {
        r->log_evidence[i] = a->log_evidence;
        r->ess[i] = a->ess;
        r->k_hat[i] = a->k_hat;
        r->best[i] = a->n_weighted ? a->particles[0].weight : a->list[0].posterior;
    } else r->message = strdup(message);
    rws_answers_free(a);
    return r->n != r->stop_after;
}

typedef struct {
    float        x[N];
    const float *fields[N][1];
    rws_question list[N];
} questions;

static void make(questions *q, int n_particles)
{
    for (int i = 0; i < N; i++) {
        q->x[i] = -4 + 0.07f * (float)i;
        q->fields[i][0] = &q->x[i];
        q->list[i] =
            (rws_question){.fields = q->fields[i], .n_particles = n_particles, .seed = 7, .particles = i % 2 == 0};
    }
}

static rws_status ask(rws_posterior *p, const rws_question *list, int n, int threads, int first, results *out)
{
    rws_error      err = {""};
    const rws_many how = {.threads = threads, .first = (uint64_t)first, .each = take, .context = out};
    return rws_posterior_ask_many(p, list, n, &how, &err);
}

static void threads_change_no_bit(void **state)
{
    (void)state;
    static questions q;
    static results   one, two, many;
    clusters_guide = (spoiled){1.5f, 0};
    rws_posterior *p = clusters_posterior();
    make(&q, K);
    for (int i = 0; i < N; i++) q.list[i].particles = true;
    assert_int_equal(ask(p, q.list, N, 1, 0, &one), RWS_OK);
    assert_int_equal(ask(p, q.list, N, 2, 0, &two), RWS_OK);
    assert_int_equal(ask(p, q.list, N, 0, 0, &many), RWS_OK);
    assert_int_equal(one.n, N);
    assert_memory_equal(&one, &two, sizeof one);
    assert_memory_equal(&one, &many, sizeof one);
    rws_posterior_free(p);
}

/* The first question has the draws of a single one; others have their own, and the same expectation. */
static void answers_are_those_of_single_questions(void **state)
{
    (void)state;
    static questions q;
    static results   r;
    clusters_guide = (spoiled){1, 0};
    rws_posterior *p = clusters_posterior();
    make(&q, 0);
    assert_int_equal(ask(p, q.list, N, 1, 0, &r), RWS_OK);
    for (int i = 0; i < N; i++) {
        assert_true(near(r.log_evidence[i], clusters_log_evidence((double)q.x[i]), 1e-4));
        assert_true(near(r.ess[i], 1, 1e-4));
    }
    clusters_guide = (spoiled){1.5f, 0};
    for (int i = 0; i < 3; i++) {
        rws_answers *a;
        rws_error    err;
        r.n = 0;
        assert_int_equal(ask(p, q.list + i, 5, 1, 0, &r), RWS_OK);
        assert_int_equal(rws_posterior_ask(p, &q.list[i], &a, &err), RWS_OK);
        assert_true(near(r.log_evidence[0], a->log_evidence, 1e-6) && near(r.ess[0], a->ess, 1e-6));
        rws_answers_free(a);
    }
    make(&q, K); /* equal data, different draws */
    for (int i = 0; i < N; i++) q.x[i] = 0.3f, r.n = 0;
    assert_int_equal(ask(p, q.list, N, 1, 0, &r), RWS_OK);
    for (int i = 1; i < N; i++) assert_true(r.log_evidence[i] != r.log_evidence[i - 1]);
    rws_posterior_free(p);
}

/* The model of clusters.h, which cannot be asked by a text. */
static void only_what_is_wrong_fails(void **state)
{
    (void)state;
    static questions q;
    static results   r, good;
    rws_posterior   *p = clusters_posterior();
    make(&q, K);
    for (int i = 0; i < N; i++) q.list[i].particles = true;
    assert_int_equal(ask(p, q.list, N, 1, 0, &good), RWS_OK);
    q.list[17].fields = NULL, q.list[17].text = "1";
    q.x[90] = (float)NAN;
    assert_int_equal(ask(p, q.list, N, 2, 0, &r), RWS_OK);
    assert_int_equal(r.n, N);
    for (int i = 0; i < N; i++)
        if (i == 17 || i == 90) assert_int_equal(r.status[i], RWS_BAD_INPUT);
        else assert_true(r.status[i] == RWS_OK && near(r.log_evidence[i], good.log_evidence[i], 1e-5));
    if (!strstr(r.message, "is nan")) fail_msg("%s", r.message);
    rws_posterior_free(p);
}

/* A list that is cut at the end of a block and continued has the bits of the whole. */
static void a_list_can_be_continued(void **state)
{
    (void)state;
    static questions q;
    static results   all, half;
    enum { CUT = 64 }; /* 16384 / K = 409 particles: 2^8; with K = 256, 64 */
    rws_posterior *p = clusters_posterior();
    make(&q, 256);
    for (int i = 0; i < N; i++) q.list[i].particles = false;
    assert_int_equal(ask(p, q.list, N, 1, 0, &all), RWS_OK);
    assert_int_equal(ask(p, q.list + CUT, N - CUT, 2, CUT, &half), RWS_OK);
    assert_memory_equal(all.log_evidence + CUT, half.log_evidence, (N - CUT) * sizeof(double));
    all.n = 0, all.stop_after = 20;
    assert_int_equal(ask(p, q.list, N, 1, 0, &all), RWS_STOPPED);
    assert_int_equal(all.n, 20);
    rws_posterior_free(p);
}

static void test_data_are_those_of_evaluations(void **state)
{
    (void)state;
    rws_question   list[12] = {{0}};
    static results many;
    rws_posterior *p = clusters_posterior();
    for (int i = 0; i < 4; i++) list[i] = (rws_question){.test = i == 3 ? 5000 : i, .n_particles = 20000, .seed = 3};
    assert_int_equal(ask(p, list, 4, 1, 0, &many), RWS_OK);
    for (int i = 0; i < 4; i++) {
        rws_answers *a;
        rws_error    err;
        assert_int_equal(rws_posterior_ask(p, &list[i], &a, &err), RWS_OK);
        assert_true(near(a->log_evidence, many.log_evidence[i], 1e-2));
        rws_answers_free(a);
    }
    rws_posterior_free(p);
}

/* ---- the table */

static double number_in(const rws_frame *f, const char *name, int row)
{
    rws_frame_column c;
    for (int i = 0; rws_frame_column_at(f, i, &c); i++)
        if (strcmp(c.name, name) == 0) return c.numbers[row];
    fail_msg("There is no column %s.", name);
    return 0;
}

/* Rows are those of the marginals; a choice that a row does not have is missing there. */
static void a_table_has_the_marginals(void **state)
{
    (void)state;
    static questions q;
    rws_frame       *f;
    rws_error        err;
    clusters_guide = (spoiled){1, 0};
    rws_posterior *p = clusters_posterior();
    make(&q, 2000);
    assert_int_equal(rws_frame_new(&f, &err), RWS_OK);
    for (int i = 0; i < 3; i++) {
        rws_answers   *a;
        rws_marginals *m;
        q.list[i].particles = true;
        assert_int_equal(rws_posterior_ask(p, &q.list[i], &a, &err), RWS_OK);
        assert_int_equal(rws_frame_add(f, a, NULL, 4, &err), RWS_OK);
        assert_int_equal(rws_marginals_new(a, 4, &m, &err), RWS_OK);
        for (int k = 0; k < m->n; k++) {
            const rws_marginal *at = &m->list[k];
            if (strcmp(at->name, "c") == 0) {
                assert_true(number_in(f, "c=0", i) == at->values[0].posterior);
                assert_true(number_in(f, "c", i) == at->values[0].value);
            }
            if (strcmp(at->name, "w") == 0 && at->visit == 1)
                assert_true(number_in(f, "w:1.visited", i) == at->posterior &&
                            number_in(f, "w:1.mean", i) == *at->mean);
            if (strcmp(at->name, "z") == 0 && at->report) assert_true(number_in(f, "report.z.sd", i) == *at->sd);
        }
        assert_true(number_in(f, "log_evidence", i) == a->log_evidence);
        rws_marginals_free(m);
        rws_answers_free(a);
    }
    assert_int_equal(rws_frame_add(f, NULL, "It went wrong.", 4, &err), RWS_OK);
    assert_int_equal(rws_frame_rows(f), 4);
    assert_true(isnan(number_in(f, "log_evidence", 3)));
    rws_frame_column c = {0};
    for (int i = 0; rws_frame_column_at(f, i, &c) && strcmp(c.name, "error") != 0;) i++;
    assert_true(c.texts && !c.texts[0] && strcmp(c.texts[3], "It went wrong.") == 0);
    rws_frame_free(f);
    rws_posterior_free(p);
}

/* x' given x = 0.5 in the model of clusters.h: a mixture over c with weights p(c | x), mean (x + mean of c) / 2 and variance 3/2.
 * Error level: 4.5 standard deviations of mean and variance, about 1e-5. */
static void predictions_are_of_the_posterior(void **state)
{
    (void)state;
    enum { N = 4000 };
    const double       prior[] = {0.2, 0.5, 0.3}, mean[] = {-2, 0, 3};
    const float        x = 0.5f, *fields[] = {&x};
    double             all = 0, m = 0, square = 0, sum = 0, squares = 0;
    const rws_question q = {.fields = fields, .n_particles = 20000, .seed = 4, .particles = true};
    rws_answers       *a;
    rws_samples       *s;
    rws_error          err = {""};
    clusters_guide = (spoiled){1, 0};
    rws_posterior *p = clusters_posterior();
    assert_int_equal(rws_posterior_ask(p, &q, &a, &err), RWS_OK);
    if (rws_posterior_predict(p, NULL, a, N, 3, &s, &err) != RWS_OK) fail_msg("%s", err.text);
    assert_int_equal(s->n, N);
    for (int c = 0; c < 3; c++) {
        const double w = prior[c] * exp(-(0.5 - mean[c]) * (0.5 - mean[c]) / 4), at = (0.5 + mean[c]) / 2;
        all += w, m += w * at, square += w * (at * at + 1.5);
    }
    for (int i = 0; i < N; i++) {
        const double made = (double)s->list[i].fields[0][0];
        sum += made, squares += made * made;
    }
    const double variance = square / all - m * m / all / all;
    assert_true(near(sum / N, m / all, 4.5 * sqrt(2 * variance / N)));
    assert_true(near(squares / N - sum * sum / N / N, variance, 4.5 * variance * sqrt(4.0 / N)));
    rws_samples_free(s);
    assert_int_equal(rws_posterior_predict(p, NULL, a, 0, 3, &s, &err), RWS_BAD_INPUT);
    assert_int_equal(rws_posterior_predict(p, NULL, NULL, 1, 3, &s, &err), RWS_BAD_INPUT);
    assert_int_equal(rws_posterior_predict(NULL, NULL, a, 1, 3, &s, &err), RWS_BAD_INPUT);
    rws_answers_free(a);
    rws_posterior_free(p);
}

static void wrong_lists_are_refused(void **state)
{
    (void)state;
    rws_posterior *p = clusters_posterior();
    rws_error      err = {""};
    static results r;
    assert_int_equal(ask(p, NULL, 3, 1, 0, &r), RWS_BAD_INPUT);
    assert_int_equal(ask(p, NULL, 0, 1, 0, &r), RWS_OK);
    assert_int_equal(ask(p, NULL, 0, -1, 0, &r), RWS_BAD_INPUT);
    assert_int_equal(rws_posterior_ask_many(p, NULL, 0, &(rws_many){0}, &err), RWS_BAD_INPUT);
    assert_int_equal(rws_posterior_ask_many(NULL, NULL, 0, &(rws_many){.each = take}, &err), RWS_BAD_INPUT);
    assert_int_equal(rws_frame_new(NULL, &err), RWS_BAD_INPUT);
    assert_int_equal(rws_frame_add(NULL, NULL, NULL, 0, &err), RWS_BAD_INPUT);
    assert_true(rws_frame_rows(NULL) == 0 && !rws_frame_column_at(NULL, 0, NULL));
    rws_frame_free(NULL);
    rws_posterior_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_change_no_bit),
        cmocka_unit_test(answers_are_those_of_single_questions),
        cmocka_unit_test(only_what_is_wrong_fails),
        cmocka_unit_test(a_list_can_be_continued),
        cmocka_unit_test(test_data_are_those_of_evaluations),
        cmocka_unit_test(a_table_has_the_marginals),
        cmocka_unit_test(predictions_are_of_the_posterior),
        cmocka_unit_test(wrong_lists_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
