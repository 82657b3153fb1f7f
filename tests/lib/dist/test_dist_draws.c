/* test_dist_draws.c - every family's log-density against its formula, and its sampler against its density. */
#include "families.h"

#include <string.h>

/* ---- densities of values that are given */

static void check_density(bench *b, int which)
{
    float     points[POINTS * WIDEST];
    const int n = points_of(b, points), dim = width_of(b);
    int       n_possible = 0;
    rws__engine_free(b->engine);
    b->observed = true;
    b->fields[0] = (rws_field){"v", dim};
    b->field[0] = points;
    b->engine = rws__engine_new(&b->params, b->fields, 1, NULL);
    const rws_scores *s = bench_draw(b, 1, n, 1);
    assert_int_equal(s->n, n);
    for (int i = 0; i < n; i++) {
        double x[WIDEST];
        for (int j = 0; j < dim; j++) x[j] = (double)points[i * dim + j];
        const double want = density_of(b->subject, b->setting, x);
        if (!as_dense(s->log_p[i], want)) fail_msg("%s is %g, not %g", named(b, which, "a density"), s->log_p[i], want);
        n_possible += isfinite(want);
    }
    assert_true(n_possible > 0);
}

static void densities_are_the_formulas(void **state)
{
    (void)state;
    walk(check_density);
}

/* The Concrete's formula is a density: over (0, 1) it integrates to 1, and up to a point to the probability. */
static void concrete_formula_integrates_to_one(void **state)
{
    (void)state;
    enum { N = 200000 };
    const struct subject *c = subject_of("concrete");
    for (int i = 0; i < 2; i++) {
        const setting *s = &c->settings[i];
        double         total = 0, u[4];
        for (int j = 0; j < N; j++) { /* by t, s_1 = sigmoid(t), ds = s (1 - s) dt */
            const double t = -60 + 120 * (j + 0.5) / N, x[2] = {-log1p(exp(t)), -log1p(exp(-t))};
            total += exp(concrete_density(s, x) + x[0] + x[1]) * 120 / N;
            if (j % 1000) continue;
            concrete_uniforms(s, x, u);
            assert_true(near(total, u[0], 1e-3));
        }
        assert_true(near(total, 1, 1e-6));
    }
}

/* ---- draws against the density */

/* How the draws are made: which particles share a row, and which side draws. */
static const struct layout {
    const char *name;
    rws_mode    mode;
    int         n_particles; /* per datum; 0: all draws are of one datum */
    bool        noisy;
} layouts[] = {
    {"one datum", RWS_WAKE, 0, false},
    {"few particles per datum", RWS_WAKE, 5, false},
    {"one particle per datum", RWS_WAKE, 1, false},
    {"asleep", RWS_SLEEP, 0, false},
    {"after another draw", RWS_WAKE, 0, true},
};

typedef struct {
    bench               *b;
    const struct layout *layout;
} draws;

static double look_at_draws(void *context, int round, int wide)
{
    const draws *d = context;
    bench       *b = d->b;
    const int    n = USUAL * wide, K = d->layout->n_particles ? d->layout->n_particles : n;
    b->pass.mode = d->layout->mode;
    b->noisy = d->layout->noisy;
    const rws_scores *s = bench_draw(b, 10 + (uint64_t)round, n / K, K);
    if (b->subject->outcomes && b->subject->outcome != bits_outcome && K == n && !b->noisy && b->pass.mode == RWS_WAKE)
        assert_true(s->n <= b->subject->outcomes(b->setting)); /* equal draws share a row */
    if (!b->noisy) /* both sides score the drawn value, with the same result */
        for (int i = 0; i < s->n; i += 1 + s->n / 200) {
            double x[VALUES];
            value_of(s, i, x);
            const double want = density_of(b->subject, b->setting, x);
            if (!as_dense(s->log_q[i], want))
                fail_msg("%s drew %g, whose density is %g, not %g", b->family->name, x[0], s->log_q[i], want);
            assert_true(b->pass.mode == RWS_SLEEP ? s->log_p[i] == 0 : s->log_p[i] == s->log_q[i]);
            assert_true(s->log_d[i] == s->log_q[i]);
        }
    return b->subject->outcomes ? look_at_outcomes(b, s, n) : look_at_values(b, s, n);
}

static void check_draws(bench *b, int which)
{
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        stays_likely(named(b, which, layouts[i].name), look_at_draws, &(draws){b, &layouts[i]});
}

static void draws_follow_the_density(void **state)
{
    (void)state;
    walk(check_draws);
}

/* Three categories of the Concrete, where pairs do not say it all: the mean of g / q over draws from q is 1 for any
 * other density g on the simplex; this is Dirichlet(3, 3, 3), whose ratio to q is bounded. */
static double look_at_simplex(void *context, int round, int wide)
{
    bench            *b = context;
    const int         n = USUAL * wide;
    const rws_scores *s = bench_draw(b, 40 + (uint64_t)round, 1, n);
    double           *ratio = malloc((size_t)n * sizeof *ratio);
    for (int i = 0; i < n; i++)
        ratio[i] = exp(lgamma(9) - 3 * lgamma(3) + 2 * (s->out[0][i] + s->out[1][i] + s->out[2][i]) - s->log_q[i]);
    const double p = mean_tail(ratio, (size_t)n, 1, 0);
    free(ratio);
    return p;
}

static void concrete_draws_follow_the_joint_density(void **state)
{
    (void)state;
    bench b;
    bench_init(&b, family_of("concrete"), &subject_of("concrete")->settings[2]);
    stays_likely("concrete of three", look_at_simplex, &b);
    bench_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(densities_are_the_formulas),
        cmocka_unit_test(concrete_formula_integrates_to_one),
        cmocka_unit_test(draws_follow_the_density),
        cmocka_unit_test(concrete_draws_follow_the_joint_density),
    };
    return cmocka_run_group_tests_name("dist_draws", tests, NULL, NULL);
}
