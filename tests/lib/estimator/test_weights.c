/* test_weights.c - coefficients of tables made by hand: against the twin's, at extremes, with symmetries, and with rows
 * that stand for several particles. */
#include "known.h"

#include "base/rng.h"
#include "estimator/weights.h"
#include "models/model.h"

#define MAX_ROWS 64
#define ROOM (MAX_ROWS + RWS_ROWS_BEHIND)

typedef struct {
    rws_scores s;
    uint32_t   start[8], count[MAX_ROWS], datum[MAX_ROWS];
    double     log_p[MAX_ROWS], log_q[MAX_ROWS], out[RWS_OUTPUTS][MAX_ROWS];
    double     coef_p[ROOM], coef_q[ROOM], coef_r[ROOM], coef_out[RWS_OUTPUTS][MAX_ROWS];
    double     l[ROOM], w[ROOM], L[MAX_ROWS], work[3][ROOM];
    rws_tally  tally;
} sheet;

/* B data with n rows each; row i of them all has log-weight l[i] and stands for count[i] particles (NULL: one). */
static void sheet_make(sheet *t, int B, int n, const double *l, const uint32_t *count)
{
    memset(t, 0, sizeof *t);
    for (int i = 0; i < B * n; i++) {
        t->count[i] = count ? count[i] : 1;
        t->datum[i] = (uint32_t)(i / n);
        t->log_q[i] = -1 - 0.1 * i;
        t->log_p[i] = l[i] + t->log_q[i];
        if (i < n) t->s.K += (int)t->count[i];
    }
    for (int d = 0; d <= B; d++) t->start[d] = (uint32_t)(d * n);
    t->s.B = B, t->s.n = B * n;
    t->s.start = t->start, t->s.count = t->count, t->s.datum = t->datum;
    t->s.log_p = t->log_p, t->s.log_q = t->log_q, t->s.log_d = t->log_q;
    t->s.coef_p = t->coef_p, t->s.coef_q = t->coef_q, t->s.coef_r = t->coef_r;
    t->s.l = t->l, t->s.w = t->w, t->s.L = t->L;
    for (int j = 0; j < RWS_OUTPUTS; j++) t->s.out[j] = t->out[j], t->s.coef_out[j] = t->coef_out[j];
    for (int j = 0; j < 3; j++) t->s.work[j] = t->work[j];
}

/* A method without a trainer: the estimator's settings with their defaults, but for the one that `e` gives. */
static rws_method method_for(const known *e, rws_setup *setup)
{
    const rws_estimator *estimator = rws__estimator_find(e->method);
    const size_t         name = e->set ? strcspn(e->set, "=") : 0;
    rws_method           m;
    rws_error            err = {""};
    *setup = (rws_setup){.seed = 1, .relaxed_categories = 4};
    rws_setup_field(setup, "x", 1);
    setup->given = rws_setup_alloc(setup, 8 * sizeof *setup->given);
    for (const rws_setting *s = estimator->settings; s && s->name; s++) {
        const bool given = strlen(s->name) == name && strncmp(s->name, e->set, name) == 0;
        setup->given[setup->n_given++] = (rws_given){s, given ? e->set + name + 1 : s->value};
    }
    if (rws__method_init(&m, estimator, &rws_model_gmm, NULL, setup, &err) != RWS_OK) fail_msg("%s", err.text);
    return m;
}

/* The wake phase that gives phi's gradient, else theta's. */
static void weigh(const known *e, sheet *t, double share)
{
    rws_setup        setup;
    const rws_method m = method_for(e, &setup);
    const int        phase = e->defensive ? 1 : 0;
    m.estimator->phases[phase].weigh(&m, &t->s, share, &t->tally);
    rws__setup_release(&setup);
}

/* The twin's coefficients of a datum's particles. */
static void weigh_plainly(const known *e, const double *l, int K, double share, double *a)
{
    const double none[] = {0, 1};
    if (e->kind == PATHWISE) {
        exact_w(l, K, NULL, a);
        for (int k = 0; k < K; k++) a[k] = -a[k];
    } else if (e->kind == CONTROLLED) exact_reinforce(l, K, NULL, a); /* with a control variate of 0 */
    else e->a(l, K, none, a);
    for (int k = 0; k < K; k++) a[k] *= share * (e->kind == COUNTED ? e->wake : 1);
}

/* Rebar's control variate is rho1 log mean exp(v): with v = 0 it is 0, as relax's mean is. */
static void test_weights_against_twin(void **state)
{
    (void)state;
    rws_random g = rws__random_new(rws__key_for(5, 0, RWS_KEY_DATA, 0), 0);
    for (int round = 0; round < 60; round++) {
        const int    K = round % 3 == 0 ? 2 : 2 + (int)rws_random_below(&g, 30), B = 2;
        const double width = pow(10, rws_random_uniform(&g) * 3 - 1), share = 0.25;
        double       l[MAX_ROWS], a[EXACT_MAX_K], w[EXACT_MAX_K];
        for (int i = 0; i < B * K; i++) l[i] = -50 + width * rws_random_normal(&g);
        for (int e = 0; e < COUNT(table); e++) {
            sheet t;
            sheet_make(&t, B, K, l, NULL);
            weigh(&table[e], &t, share);
            for (int d = 0; d < B; d++) {
                double total = 0;
                exact_w(l + d * K, K, NULL, w);
                for (int k = 0; k < K; k++) {
                    total += t.coef_p[d * K + k];
                    assert_true(close_to(t.coef_p[d * K + k], share * w[k], 1e-12));
                }
                assert_true(close_to(total, share, 1e-13));
                if (!table[e].a && table[e].kind == COUNTED) continue;
                weigh_plainly(&table[e], l + d * K, K, share, a);
                for (int k = 0; k < K; k++)
                    if (!close_to(t.coef_q[d * K + k], a[k], 1e-12))
                        fail_msg("%s: coefficient %.17g, not %.17g", label(&table[e], 0, K), t.coef_q[d * K + k], a[k]);
            }
            if (!table[e].defensive) {
                assert_int_equal(t.tally.n_data, B);
                assert_int_equal(t.tally.impossible, 0);
            }
        }
    }
}

/* Numbers worked out by hand. */
static void test_vimco_extremes(void **state)
{
    (void)state;
    const known *vimco = entry("vimco", NULL), *rloo = entry("rloo", NULL);
    sheet        t;

    /* one weight dominates: its baseline is log((1/3)(2 e^-800 + e^-800)) = -800, that of the others log(1/3) */
    sheet_make(&t, 1, 3, (double[]){0, -800, -800}, NULL);
    weigh(vimco, &t, 1);
    assert_true(close_to(t.coef_q[0], 800 - log(3) - 1, 1e-13));
    assert_true(fabs(t.coef_q[1]) < 1e-13 && fabs(t.coef_q[2]) < 1e-13);
    assert_true(t.tally.ess == 1 && close_to(t.tally.log_evidence, -log(3), 1e-13));
    sheet_make(&t, 1, 3, (double[]){0, -800, -800}, NULL);
    weigh(rloo, &t, 1);
    assert_true(close_to(t.coef_q[0], 800 - log(3) - 1, 1e-13));
    assert_true(close_to(t.coef_q[1], log(2) - log(3), 1e-13));

    /* all equal: no signal, the weight is 1/K */
    sheet_make(&t, 1, 5, (double[]){-7, -7, -7, -7, -7}, NULL);
    weigh(vimco, &t, 1);
    for (int k = 0; k < 5; k++) assert_true(close_to(t.coef_q[k], -0.2, 1e-13) && close_to(t.coef_p[k], 0.2, 1e-13));
    assert_true(close_to(t.tally.ess, 5, 1e-13));

    /* K = 2: the baseline of one is the other's weight, l_2 */
    sheet_make(&t, 1, 2, (double[]){-1, -4}, NULL);
    weigh(vimco, &t, 1);
    const double L = log((exp(-1) + exp(-4)) / 2), w = 1 / (1 + exp(-3));
    assert_true(close_to(t.coef_q[0], L + 4 - w, 1e-13));
    assert_true(close_to(t.coef_q[1], L + 1 - (1 - w), 1e-13));

    /* an impossible particle among three: the geometric mean is 0 for the others, the sum is not */
    sheet_make(&t, 1, 3, (double[]){0, -1, -INFINITY}, NULL);
    weigh(vimco, &t, 1);
    const double total = 1 + exp(-1);
    assert_true(close_to(t.coef_q[0], log(total / 3) - (-1 - log(3)) - 1 / total, 1e-13));
    assert_true(close_to(t.coef_q[1], log(total / 3) + log(3) - exp(-1) / total, 1e-13));
    assert_true(close_to(t.coef_q[2], log(total / 3) - log((total + exp(-0.5)) / 3), 1e-13));
    assert_true(t.coef_p[2] == 0);

    /* only one of two possible: there is nothing to compare it with, and the other learns that it was worse */
    for (int i = 0; i < 2; i++) {
        sheet_make(&t, 1, 2, (double[]){-3, -INFINITY}, NULL);
        weigh(i ? rloo : vimco, &t, 1);
        assert_true(close_to(t.coef_q[0], -1, 1e-13));
        assert_true(close_to(t.coef_q[1], -log(2), 1e-13));
    }
}

/* Every coefficient of every method is finite whatever is impossible, and those of an impossible datum are zero. */
static void test_impossible(void **state)
{
    (void)state;
    const double l[] = {-INFINITY, -INFINITY, -INFINITY, -1, -INFINITY, -2, -INFINITY, -800, -INFINITY};
    for (int e = 0; e < COUNT(table); e++) {
        sheet t;
        sheet_make(&t, 3, 3, l, NULL);
        weigh(&table[e], &t, 1.0 / 3);
        for (int i = 0; i < 9; i++) {
            const double all[] = {t.coef_p[i], t.coef_q[i], t.coef_r[i], t.coef_out[0][i], t.coef_out[1][i]};
            for (int j = 0; j < COUNT(all); j++) {
                if (!isfinite(all[j]) || (i < 3 && all[j] != 0))
                    fail_msg("%s: coefficient %d of row %d is %g", label(&table[e], 0, 3), j, i, all[j]);
            }
        }
        if (table[e].defensive) continue; /* tallies its first phase only */
        assert_int_equal(t.tally.n_data, 3);
        assert_int_equal(t.tally.impossible, 1);
        assert_true(close_to(t.tally.log_evidence, log((exp(-1) + exp(-2)) / 3) - 800 - log(3), 1e-12));
    }
}

/* A row that stands for c particles counts as much as c rows. Rows of a control variate always stand for one. */
static void test_counts(void **state)
{
    (void)state;
    const double   l[] = {-1, -3.5, -2, -2.2}, apart[] = {-1, -3.5, -3.5, -3.5, -2, -2.2, -2.2};
    const uint32_t count[] = {1, 3, 1, 2};
    for (int e = 0; e < COUNT(table); e++) {
        if (table[e].kind == CONTROLLED) continue;
        sheet t, u;
        sheet_make(&t, 1, 4, l, count);
        sheet_make(&u, 1, 7, apart, NULL);
        weigh(&table[e], &t, 0.5);
        weigh(&table[e], &u, 0.5);
        for (int i = 0, at = 0; i < 4; i++) {
            double p = 0, q = 0, r = 0;
            for (uint32_t c = 0; c < count[i]; c++, at++) p += u.coef_p[at], q += u.coef_q[at], r += u.coef_r[at];
            assert_true(close_to(t.coef_p[i], p, 1e-13));
            if (!close_to(t.coef_q[i], q, 1e-12)) fail_msg("%s: %g, not %g", label(&table[e], 0, 7), t.coef_q[i], q);
            assert_true(close_to(t.coef_r[i], r, 1e-13));
        }
        assert_true(close_to(t.tally.log_evidence, u.tally.log_evidence, 1e-13));
        assert_true(close_to(t.tally.ess, u.tally.ess, 1e-13));
        assert_true(close_to(t.coef_out[0][0], u.coef_out[0][0], 1e-13));
    }
}

/* Which methods do not care how large p is: their coefficients stay when all log-weights move together. */
static bool shifts_away(const known *e)
{
    return (e->kind == COUNTED && e->a != exact_reinforce) || e->kind == PATHWISE;
}

static void test_symmetries(void **state)
{
    (void)state;
    const double l[] = {-1, -3.5, -2, -7}, shuffled[] = {-2, -7, -1, -3.5};
    const int    where[] = {2, 3, 0, 1};
    for (int e = 0; e < COUNT(table); e++) {
        double moved[4];
        sheet  t, u, v;
        for (int i = 0; i < 4; i++) moved[i] = l[i] + 300;
        sheet_make(&t, 1, 4, l, NULL);
        sheet_make(&u, 1, 4, shuffled, NULL);
        sheet_make(&v, 1, 4, moved, NULL);
        weigh(&table[e], &t, 1);
        weigh(&table[e], &u, 1);
        weigh(&table[e], &v, 1);
        for (int i = 0; i < 4; i++) {
            assert_true(close_to(t.coef_p[i], u.coef_p[where[i]], 1e-13));
            assert_true(close_to(t.coef_q[i], u.coef_q[where[i]], 1e-13));
            assert_true(close_to(t.coef_p[i], v.coef_p[i], 1e-12));
            if (shifts_away(&table[e])) assert_true(close_to(t.coef_q[i], v.coef_q[i], 1e-12));
            else assert_true(close_to(t.coef_q[i] + 300, v.coef_q[i], 1e-12));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_weights_against_twin), cmocka_unit_test(test_vimco_extremes),
        cmocka_unit_test(test_impossible),           cmocka_unit_test(test_counts),
        cmocka_unit_test(test_symmetries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
