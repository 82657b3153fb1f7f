/* test_refine.c - the kernels of refinement leave the posterior as it is, by their whole transition matrices; refined answers are
 * exact where weights are not, and their stated errors hold. */
#include "trained.h"

#include "ask/mixing.h"
#include "ask/posterior.h"
#include "ask/refine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- R-hat */

typedef enum { EVEN, SHIFTED, SCALED, DRIFT, WHOLE } shape;

#include "r_hat.h"

/* As in r_hat.py. */
static double draw(shape s, int c, int t, int n)
{
    const double v = (c * n + t + 1) * 0.6180339887498949, u = floor(4096 * (v - floor(v))) / 4096;
    switch (s) {
    case SHIFTED: return u + 0.125 * c;
    case SCALED: return (u - 0.5) * (1 + 0.5 * c);
    case DRIFT: return u + floor(8.0 * t / n) / 8;
    case WHOLE: return floor(3 * u + 0.25 * c);
    default: return u;
    }
}

static void r_hat_is_that_of_arviz(void **state)
{
    (void)state;
    static double x[3000];
    for (size_t k = 0; k < sizeof arviz_r_hat / sizeof *arviz_r_hat; k++) {
        const int C = arviz_r_hat[k].chains, n = arviz_r_hat[k].n;
        for (int i = 0; i < C * n; i++) x[i] = draw(arviz_r_hat[k].shape, i / n, i % n, n);
        const rws_mixing m = rws__mixing_of(x, C, n);
        if (!(fabs(m.r_hat - arviz_r_hat[k].r_hat) < 1e-12) || !(m.n_effective <= C * n && m.n_effective > 0))
            fail_msg("case %zu: %.12g, and %.12g by ArviZ; %g effective", k, m.r_hat, arviz_r_hat[k].r_hat,
                     m.n_effective);
    }
    for (int i = 0; i < 40; i++) x[i] = 7;
    assert_true(isnan(rws__mixing_of(x, 4, 10).r_hat));
    x[3] = 8;
    assert_true(isnan(rws__mixing_of(x, 4, 3).r_hat) && rws__mixing_of(x, 4, 10).r_hat > 0);
    x[4] = INFINITY;
    assert_true(isnan(rws__mixing_of(x, 4, 10).r_hat) && isnan(rws__mixing_of(x, 4, 10).n_effective));
}

/* ---- a model with a branch: d has three values where a is 1 and else two, and b is visited only where a is 1
 *
 *     state 0, 1: a = 0, d        state 2 … 7: a = 1, b, d */

enum { STATES = 8 };
static const double model_a[] = {0.7, 0.3}, guide_a[] = {0.4, 0.6}, model_b[] = {0.2, 0.8}, guide_b[] = {0.5, 0.5};
static const double model_d[2][3] = {{0.1, 0.9}, {0.2, 0.3, 0.5}},
                    guide_d[3][3] = {{0.6, 0.4}, {0.3, 0.4, 0.3}, {0.1, 0.7, 0.2}};
static const double likely[STATES] = {0.9, 0.05, 0.02, 0.3, 0.6, 0.1, 0.8, 0.4};

static int state_of(int a, int b, int d)
{
    return a ? 2 + 3 * b + d : d;
}

static rws_var logs(rws_path *path, const double *p, int n)
{
    float log_p[3];
    for (int i = 0; i < n; i++) log_p[i] = logf((float)p[i]);
    return rws_constants(path, log_p, n);
}

static rws_status branch_setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    (void)random, (void)err;
    static int nothing;
    rws_setup_field(s, "x", 1);
    *state = &nothing;
    return RWS_OK;
}

static rws_status branch_data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                              float *const *fields, rws_error *err)
{
    (void)state, (void)split, (void)random, (void)err, (void)first;
    for (int i = 0; i < n; i++) fields[0][i] = 1;
    return RWS_OK;
}

static void branch_guide(rws_path *path, const void *state)
{
    (void)state;
    const int a = rws_choose(path, "a", logs(path, guide_a, 2));
    const int b = a ? rws_choose(path, "b", logs(path, guide_b, 2)) : 0;
    rws_choose(path, "d", logs(path, guide_d[a ? 1 + b : 0], 2 + a));
}

static void branch_model(rws_path *path, const void *state)
{
    (void)state;
    const int a = rws_choose(path, "a", logs(path, model_a, 2));
    const int b = a ? rws_choose(path, "b", logs(path, model_b, 2)) : 0;
    const int d = rws_choose(path, "d", logs(path, model_d[a], 2 + a));
    rws_report(path, "state", rws_constant(path, (float)state_of(a, b, d)));
    rws_bernoulli(path, "x",
                  rws_constant(path, (float)log(likely[state_of(a, b, d)] / (1 - likely[state_of(a, b, d)]))));
}

static const rws_model branch = {.abi = RWS_ABI,
                                 .name = "branch",
                                 .help = "",
                                 .setup = branch_setup,
                                 .data = branch_data,
                                 .guide = branch_guide,
                                 .model = branch_model};

static rws_posterior *posterior_of(const rws_model *m)
{
    const rws_config c = {.model = m->name, .method = "ww", .seed = 1};
    rws_posterior   *p;
    rws_error        err = {""};
    rws_trainer     *t = trainer_for(&c, m);
    if (rws_posterior_new(t, &p, &err) != RWS_OK) fail_msg("%s", err.text);
    rws_trainer_free(t);
    return p;
}

typedef struct {
    int    a, b, d;
    double p, q; /* p(z, x), q(z) */
} known;

static void know(known *k)
{
    for (int a = 0; a < 2; a++)
        for (int b = 0; b < 1 + a; b++)
            for (int d = 0; d < 2 + a; d++)
                k[state_of(a, b, d)] =
                    (known){a, b, d, model_a[a] * (a ? model_b[b] : 1) * model_d[a][d] * likely[state_of(a, b, d)],
                            guide_a[a] * (a ? guide_b[b] : 1) * guide_d[a ? 1 + b : 0][d]};
}

typedef double matrix[STATES][STATES];

/* i-SIR with two proposals, by the sum over both. */
static void isir_by_hand(const known *k, matrix out)
{
    memset(out, 0, sizeof(matrix));
    for (int i = 0; i < STATES; i++)
        for (int y = 0; y < STATES; y++)
            for (int z = 0; z < STATES; z++) {
                const int    at[] = {i, y, z};
                const double w[] = {k[i].p / k[i].q, k[y].p / k[y].q, k[z].p / k[z].q};
                for (int n = 0; n < 3; n++) out[i][at[n]] += k[y].q * k[z].q * w[n] / (w[0] + w[1] + w[2]);
            }
}

/* Metropolis by the densities of what is drawn again. From a state with a = 0, a drawn again draws b too, and d = 0 or 1 stays;
 * from one with a = 1 and d = 2, d cannot stay. */
static void move_by_hand(const known *k, matrix out)
{
    memset(out, 0, sizeof(matrix));
    for (int i = 0; i < STATES; i++) {
        const known *x = &k[i];
        const int    n = 2 + x->a;
        double       stay = 1;
        for (int j = 0; j < STATES; j++) {
            const known *y = &k[j];
            double       forward = 0, reverse = 0;
            if (j == i) continue;
            if (x->a != y->a && x->d == y->d) {
                forward = guide_a[y->a] * (y->a ? guide_b[y->b] : 1);
                reverse = guide_a[x->a] * (x->a ? guide_b[x->b] : 1);
            } else if (x->a == y->a && x->d == y->d) forward = guide_b[y->b], reverse = guide_b[x->b];
            else if (x->a == y->a && x->b == y->b) {
                forward = guide_d[x->a ? 1 + x->b : 0][y->d];
                reverse = guide_d[x->a ? 1 + x->b : 0][x->d];
            } else continue;
            out[i][j] = forward / n * fmin(1, y->p * reverse * n / (x->p * forward * (2 + y->a)));
            stay -= out[i][j];
        }
        out[i][i] = stay;
    }
}

/* Where the posterior goes under a matrix. */
static double moved(const known *k, const matrix m)
{
    double sum = 0, worst = 0;
    for (int i = 0; i < STATES; i++) sum += k[i].p;
    for (int j = 0; j < STATES; j++) {
        double to = 0;
        for (int i = 0; i < STATES; i++) to += k[i].p / sum * m[i][j];
        worst = fmax(worst, fabs(to - k[j].p / sum));
    }
    return worst;
}

static int where(const rws_state *s)
{
    return (int)s->reports[0].value[0];
}

/* Transitions of 1000 chains in 200 iterations against a matrix. Error level: 64 numbers beyond 5 standard deviations, 4e-5. */
static void expect_transitions(rws_status kernel(rws_chains *, rws_error *), const matrix m)
{
    enum { C = 1000, ITERATIONS = 200 };
    static int         from[C];
    double             count[STATES] = {0}, gone[STATES][STATES] = {{0}};
    float              one = 1, *fields[] = {&one};
    rws_error          err = {""};
    rws_chains         c;
    rws_posterior     *p = posterior_of(&branch);
    rws_idle          *e = rws__posterior_take(p, &err);
    const rws_question q = {.seed = 5};
    assert_int_equal(rws__chains_begin(&c, rws__posterior_program(p), e->engine, &q, fields, C, 2, 0, &err), RWS_OK);
    for (int t = 0; t < ITERATIONS; t++) {
        if (t % 10 == 0) assert_int_equal(rws__chains_resample(&c, &err), RWS_OK);
        for (int i = 0; i < C; i++) from[i] = where(&c.now[i]);
        if (kernel(&c, &err) != RWS_OK) fail_msg("%s", err.text);
        for (int i = 0; i < C; i++) count[from[i]]++, gone[from[i]][where(&c.now[i])]++;
    }
    for (int i = 0; i < STATES; i++)
        for (int j = 0; j < STATES; j++) {
            const double want = count[i] * m[i][j], sd = sqrt(want * (1 - m[i][j]));
            if (!(fabs(gone[i][j] - want) <= 5 * sd + 1e-9))
                fail_msg("from %d to %d: %g of %g, not %g", i, j, gone[i][j], count[i], want);
        }
    assert_true(count[1] > 1000 && count[2] > 100);
    rws__chains_release(&c);
    rws__posterior_give_back(p, e);
    rws_posterior_free(p);
}

static void kernels_have_the_posterior(void **state)
{
    (void)state;
    known  k[STATES];
    matrix m;
    know(k);
    isir_by_hand(k, m);
    assert_near(moved(k, m), 0, 1e-14);
    expect_transitions(rws__chains_resample, m);
    move_by_hand(k, m);
    assert_near(moved(k, m), 0, 1e-14);
    expect_transitions(rws__chains_move, m);
}

static rws_answers *ask(rws_posterior *p, rws_question q)
{
    rws_answers *a;
    rws_error    err = {""};
    if (rws_posterior_ask(p, &q, &a, &err) != RWS_OK) fail_msg("%s", err.text);
    return a;
}

static double posterior_of_state(const rws_answers *a, int s, double *error)
{
    for (int i = 0; i < a->n; i++)
        if (rws_answer_value(&a->list[i], "state", 0)->value[0] == (float)s) {
            if (error) *error = a->list[i].error;
            return a->list[i].posterior;
        }
    return 0;
}

/* The sum of z^2 over 100 questions, 6 states and the marginals of a: those states are probable enough to be nearly normal. Error
 * level: with 15 degrees of freedom z^2 is 1.15 on average; the mean of 100 such leaves 0.7 to 1.8 with probability 1e-4. */
static void stated_errors_hold(void **state)
{
    (void)state;
    enum { REPEATS = 100 };
    known          k[STATES];
    double         sum = 0, z[STATES] = {0}, given = 0;
    rws_posterior *p = posterior_of(&branch);
    know(k);
    for (int i = 0; i < STATES; i++) sum += k[i].p;
    for (uint64_t seed = 0; seed < REPEATS; seed++) {
        rws_answers   *a = ask(p, (rws_question){.n_particles = 48, .refine = 40, .seed = seed, .particles = true});
        rws_marginals *m;
        double         error = 0, total = 0;
        assert_true(a->n_chains == 16 && a->n_draws == 16 * 20 && a->r_hat < 1.3 && a->n_effective <= a->n_draws);
        assert_int_equal(rws_marginals_new(a, 1, &m, NULL), RWS_OK);
        for (int i = 0; i < STATES; i++) {
            const double at = posterior_of_state(a, i, &error);
            total += at;
            if (k[i].p / sum > 0.1) z[i] += pow((at - k[i].p / sum) / error, 2) / REPEATS;
        }
        assert_near(total, 1, 1e-12);
        for (int i = 0; i < m->n; i++) {
            const rws_marginal *b = &m->list[i];
            if (strcmp(b->name, "b") == 0)
                given += pow((b->posterior - 1 + (k[0].p + k[1].p) / sum) / b->error, 2) / REPEATS;
        }
        for (int i = 0; i < a->n_weighted; i++)
            assert_true(a->particles[i].chain ? a->particles[i].count == 0 : a->particles[i].weight == 0);
        rws_marginals_free(m);
        rws_answers_free(a);
    }
    for (int i = 0; i < STATES; i++) assert_true(z[i] == 0 || (z[i] > 0.7 && z[i] < 1.8));
    assert_true(given > 0.7 && given < 1.8);
    rws_posterior_free(p);
}

/* Given a choice, chains have the posterior given this choice too. Error level: 5 standard errors with 15 degrees of freedom,
 * 2e-4 each. */
static void given_choices_stay(void **state)
{
    (void)state;
    known            k[STATES];
    const float      two = 1;
    const rws_choice d = {.site = "d", .value = &two, .dim = 1};
    rws_posterior   *p = posterior_of(&branch);
    know(k);
    const double sum = k[1].p + k[3].p + k[6].p;
    rws_answers *a =
        ask(p, (rws_question){.n_particles = 160, .refine = 200, .given = &d, .n_given = 1, .particles = true});
    for (int i = 0; i < STATES; i++) {
        double       error = 0;
        const double at = posterior_of_state(a, i, &error);
        if (i == 1 || i == 3 || i == 6) assert_near(at, k[i].p / sum, 5 * error);
        else assert_true(at == 0);
    }
    for (int i = 0; i < a->n_weighted; i++)
        for (int c = 0; c < a->particles[i].n_choices; c++)
            assert_true(a->particles[i].choices[c].given == (strcmp(a->particles[i].choices[c].site, "d") == 0));
    assert_int_equal(a->verdict, RWS_RELIABLE);
    rws_answers_free(a);
    rws_posterior_free(p);
}

/* ---- many bits, of which neighbours must differ, and a guide that knows nothing: weights find one of 4096 states, chains all */

enum { BITS = 12 };

static double bits_log_p(unsigned bits)
{
    double sum = 0;
    for (int i = 0; i < BITS; i++) {
        const int b = bits >> i & 1, before = i ? bits >> (i - 1) & 1 : 0;
        sum += (b ? 1.5 : 0) + (b && before ? -3 : 0);
    }
    return sum;
}

static void bits_guide(rws_path *path, const void *state)
{
    (void)state;
    for (int i = 0; i < BITS; i++) rws_flip(path, "bit", rws_constant(path, 0));
}

static void bits_model(rws_path *path, const void *state)
{
    (void)state;
    unsigned bits = 0;
    for (int i = 0; i < BITS; i++) bits |= (unsigned)rws_flip(path, "bit", rws_constant(path, 0)) << i;
    rws_factor(path, "fit", rws_constant(path, (float)bits_log_p(bits)), false);
    rws_bernoulli(path, "x", rws_constant(path, 0));
}

/* The largest error of the marginals of bits. */
static double worst_bit(const rws_answers *a, double *stated)
{
    double exact[BITS] = {0}, sum = 0, worst = 0;
    for (unsigned s = 0; s < 1u << BITS; s++) {
        sum += exp(bits_log_p(s));
        for (int i = 0; i < BITS; i++) exact[i] += (s >> i & 1) * exp(bits_log_p(s));
    }
    rws_marginals *m;
    assert_int_equal(rws_marginals_new(a, 1, &m, NULL), RWS_OK);
    assert_int_equal(m->n, BITS);
    *stated = 0;
    for (int i = 0; i < BITS; i++) {
        const rws_marginal_value *one = &m->list[i].values[m->list[i].n_values - 1];
        const double              at = one->value == 1 ? one->posterior : 0;
        worst = fmax(worst, fabs(at - exact[m->list[i].visit] / sum));
        *stated = fmax(*stated, one->error);
    }
    rws_marginals_free(m);
    return worst;
}

static void chains_find_what_weights_miss(void **state)
{
    (void)state;
    rws_model model = branch;
    model.guide = bits_guide;
    model.model = bits_model;
    rws_posterior *p = posterior_of(&model);
    double         stated, before = 0, after = 0, largest = 0;
    for (uint64_t seed = 0; seed < 2; seed++) {
        rws_answers *plain = ask(p, (rws_question){.n_particles = 64, .seed = seed, .particles = true});
        rws_answers *a = ask(p, (rws_question){.n_particles = 64, .seed = seed, .particles = true, .refine = 500});
        before = fmax(before, worst_bit(plain, &stated));
        after = fmax(after, worst_bit(a, &stated));
        largest = fmax(largest, stated);
        assert_true(plain->verdict != RWS_RELIABLE && a->verdict == RWS_RELIABLE && a->r_hat < 1.05);
        assert_true(plain->n_chains == 0 && isnan(plain->r_hat) && isnan(plain->n_effective));
        assert_true(a->log_evidence == plain->log_evidence && a->ess == plain->ess && a->k_hat == plain->k_hat);
        rws_answers_free(plain);
        rws_answers_free(a);
    }
    print_message("# marginals of %d bits: error %.3f by weights, %.3f by chains, which state %.3f\n", BITS, before,
                  after, largest);
    assert_true(before > 0.15 && after < 5 * largest && largest < 0.03);
    rws_posterior_free(p);
}

/* ---- verdicts, refusals, threads */

static void short_and_lost_chains_are_told(void **state)
{
    (void)state;
    rws_posterior *p = posterior_of(&branch);
    rws_answers   *a = ask(p, (rws_question){.refine = 4});
    assert_true(a->verdict == RWS_DOUBTFUL && strstr(a->advice, "8 iterations or more") && isnan(a->r_hat));
    assert_true(a->n_draws == 32 && a->n_weighted == 0 && a->list[0].error > 0);
    rws_answers_free(a);
    a = ask(p, (rws_question){.refine = 8, .chains = 2, .n_particles = 2});
    assert_true(a->verdict != RWS_RELIABLE && a->n_draws == 8);
    rws_answers_free(a);

    rws_error          err = {""};
    const rws_question wrong[] = {
        {.refine = -1}, {.refine = RWS_MAX_REFINE + 1}, {.refine = 1, .chains = 1}, {.chains = RWS_MAX_CHAINS + 1}};
    for (int i = 0; i < 4; i++) assert_int_equal(rws_posterior_ask(p, &wrong[i], &a, &err), RWS_BAD_INPUT);
    assert_string_equal(err.text, "Answers are refined by 2 to 1000 chains, not 1001.");
    rws_posterior_free(p);
}

typedef struct {
    rws_answers *a[6];
} taken;

static bool take(void *context, int i, rws_answers *a, rws_status status, const char *message)
{
    if (status != RWS_OK) fail_msg("%s", message);
    ((taken *)context)->a[i] = a;
    return true;
}

/* Many questions are refined with draws of their own, the same on any number of threads. */
static void many_are_refined(void **state)
{
    (void)state;
    rws_posterior *p = posterior_of(&branch);
    rws_question   list[6];
    taken          by[2];
    for (int i = 0; i < 6; i++) list[i] = (rws_question){.n_particles = 4096, .refine = 10, .particles = true};
    for (int k = 0; k < 2; k++) {
        const rws_many how = {.threads = 1 + k, .each = take, .context = &by[k]};
        assert_int_equal(rws_posterior_ask_many(p, list, 6, &how, NULL), RWS_OK);
    }
    for (int i = 0; i < 6; i++) {
        assert_true(by[0].a[i]->n_effective == by[1].a[i]->n_effective &&
                    by[0].a[i]->n_weighted == by[1].a[i]->n_weighted);
        assert_true(by[0].a[i]->list[0].posterior == by[1].a[i]->list[0].posterior);
        if (i) assert_true(by[0].a[i]->list[0].posterior != by[0].a[i - 1]->list[0].posterior);
    }
    for (int i = 0; i < 12; i++) rws_answers_free(by[i / 6].a[i % 6]);
    rws_posterior_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(r_hat_is_that_of_arviz),
        cmocka_unit_test(kernels_have_the_posterior),
        cmocka_unit_test(stated_errors_hold),
        cmocka_unit_test(given_choices_stay),
        cmocka_unit_test(chains_find_what_weights_miss),
        cmocka_unit_test(short_and_lost_chains_are_told),
        cmocka_unit_test(many_are_refined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
