/* test_dist.c - the mechanism of distributions: draws that do not depend on their company, parameters that are not allowed,
 * what is impossible, and the special draws of defensive, Gumbel and relaxed passes. */
#include "families.h"

#include <stdio.h>
#include <string.h>

static void every_twin_has_a_family(void **state)
{
    (void)state;
    int n = 0;
    for (; rws_families[n]; n++) {
        if (!subject_of(rws_families[n]->name))
            fail_msg("the family %s has no twin in this test", rws_families[n]->name);
        const subject *s = subject_of(rws_families[n]->name);
        if (strcmp(s->name, "delta") != 0) /* certain, so that its draws are counted like choices */
            assert_true(rws_families[n]->reparameterised == (is_continuous(s) && !s->scored));
        assert_true(rws_families[n]->help && rws_families[n]->help[0]);
        for (int i = 0; i < n; i++) assert_string_not_equal(rws_families[i]->name, rws_families[n]->name);
    }
    assert_int_equal(n, n_families_known());
}

/* ---- a particle's draw does not depend on the particles that share its row, its pass or its call */

/* Per datum, how many particles had each outcome. */
static void tally(const bench *b, const rws_scores *s, double (*seen)[OUTCOMES])
{
    double x[VALUES];
    for (int d = 0; d < s->B; d++)
        for (int i = (int)s->start[d]; i < (int)s->start[d + 1]; i++) {
            value_of(s, i, x);
            seen[d][outcome_of(b, x)] += s->count[i];
        }
}

/* Scalar mode, against values that were drawn together, in any order. */
static void check_set(bench *b, int which, double (*values)[VALUES], int n)
{
    double one[210], other[210];
    assert_true(n <= COUNT(one));
    b->pass.scalar = true;
    const rws_scores *s = bench_draw(b, 45, 3, n / 3);
    assert_int_equal(s->n, n);
    for (int i = 0; i < n; i++) one[i] = values[i][0], other[i] = s->out[0][i];
    qsort(one, (size_t)n, sizeof *one, by_size);
    qsort(other, (size_t)n, sizeof *other, by_size);
    for (int i = 0; i < n; i++)
        if (!near(one[i], other[i], 1e-5 * (1 + fabs(one[i]))))
            fail_msg("%s: %g, and %g in company", named(b, which, "a draw"), other[i], one[i]);
}

static void check_company(bench *b, int which)
{
    enum { B = 3, K = 70, FIRST = 3, PIECE = 26 };
    double together[B][OUTCOMES] = {{0}}, apart[B][OUTCOMES] = {{0}}, values[B * K][VALUES];
    b->pass.first_datum = 5;
    b->pass.first_particle = FIRST;
    const rws_scores *s = bench_draw(b, 45, B, K);
    if (b->subject->outcomes) tally(b, s, together);
    else
        for (int i = 0; i < s->n; i++) value_of(s, i, values[i]);
    if (b->subject->scored) { /* rows of one component are neighbours: the draws agree as a set */
        check_set(b, which, values, B * K);
        return;
    }

    /* every particle alone; in two passes; each datum by itself */
    for (int how = 0; how < 3; how++) {
        memset(apart, 0, sizeof apart);
        b->pass.scalar = how == 0;
        const int n_passes = how == 0 ? 1 : how == 1 ? 2 : B;
        for (int pass = 0; pass < n_passes; pass++) {
            const int first = how == 1 && pass ? PIECE : 0, n = how == 1 ? (pass ? K - PIECE : PIECE) : K,
                      d = how == 2 ? pass : 0;
            b->pass.first_particle = (uint32_t)(FIRST + first);
            b->pass.first_datum = (uint32_t)(5 + d);
            s = bench_draw(b, 45, how == 2 ? 1 : B, n);
            if (b->subject->outcomes) tally(b, s, apart + d);
            for (int i = 0; i < s->n && !b->subject->outcomes; i++) {
                double x[VALUES];
                value_of(s, i, x);
                const double *want = values[(d + i / n) * K + first + i % n];
                for (int j = 0; j < VALUES;
                     j++) /* up to rounding: the last steps of a vectorised loop are computed one by one */
                    if (!near(x[j], want[j], 1e-5 * (1 + fabs(want[j]))))
                        fail_msg("%s: %g, and %g in company", named(b, which, "a draw"), x[j], want[j]);
            }
        }
        if (b->subject->outcomes && memcmp(apart, together, sizeof apart) != 0)
            fail_msg("%s", named(b, which, "draws depend on their company"));
    }
}

static void draws_do_not_depend_on_company(void **state)
{
    (void)state;
    walk(check_company);
}

/* ---- impossible, certain, broken */

static rws_status draw_with(const rws_family *f, const setting *s, rws_error *err)
{
    bench b;
    bench_init(&b, f, s);
    b.pass.context = &b;
    b.pass.n_data = 2;
    b.pass.n_particles = 3;
    const rws_status status = rws__engine_forward(b.engine, &b.pass, err);
    bench_release(&b);
    return status;
}

static void what_is_no_distribution_is_said_so(void **state)
{
    (void)state;
    static const struct {
        const char *family;
        setting     setting;
    } broken[] = {
        {"categorical", {3, 0, {-INF, -INF, -INF}, {0}}},
        {"categorical", {3, 0, {0, NAN, 0}, {0}}},
        {"categorical", {2, 0, {0, INF}, {0}}},
        {"bernoulli", {1, 0, {NAN}, {0}}},
        {"bernoulli vector", {2, 0, {0, NAN}, {0}}},
        {"normal", {1, 1, {0}, {NAN}}},
        {"normal", {1, 1, {0}, {-1}}},
        {"uniform", {1, 1, {1}, {NAN}}},
        {"gumbel", {1, 0, {NAN}, {0}}},
        {"concrete", {2, 1, {0, NAN}, {1}}},
        {"concrete", {2, 1, {0, 0}, {-1}}},
        {"exponential", {1, 0, {NAN}, {0}}},
        {"geometric", {1, 0, {NAN}, {0}}},
        {"binomial", {1, 1, {3}, {NAN}}},
        {"log-normal", {1, 1, {NAN}, {1}}},
        {"laplace", {1, 1, {NAN}, {1}}},
        {"half-normal", {1, 0, {-1}, {0}}},
        {"gumbel with a scale", {1, 1, {NAN}, {1}}},
        {"truncated normal", {1, 1, {NAN}, {1}, 1, 1, {0}, {1}}},
    };
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        rws_error err = {{0}};
        if (draw_with(family_of(broken[i].family), &broken[i].setting, &err) != RWS_BROKEN)
            fail_msg("%s, case %zu: not refused", broken[i].family, i);
        if (!strstr(err.text, "\"v\""))
            fail_msg("%s: the message does not name the site: %s", broken[i].family, err.text);
    }
}

/* Parameters that a family does not allow. One side has these, the other has good ones. */
typedef struct {
    const char *family;
    float       bad[PARAMETERS], good[PARAMETERS];
    const char *message;
} bad_parameters;

typedef struct {
    const bad_parameters *what;
    bool                  bad_guide, bad_model, sleep;
    int                   visits; /* of the site, the last of which has the bad parameters */
} bad_case;

static void visit_bad(rws_path *path, const bad_case *c, bool bad)
{
    for (int i = 0; i < c->visits; i++) {
        const float  *p = bad && i + 1 == c->visits ? c->what->bad : c->what->good;
        const rws_var logits[] = {rws_constant(path, p[0]), rws_constant(path, 0)};
        const bool    concrete = strcmp(c->what->family, "concrete") == 0;
        const rws_var in[] = {concrete ? rws_concat(path, logits, 2) : logits[0], rws_constant(path, p[1]),
                              rws_constant(path, p[2]), rws_constant(path, p[3])};
        rws_site_visit(path, "v", family_of(c->what->family), in);
    }
}

static void bad_program(rws_path *path, void *context)
{
    const bad_case *c = context;
    for (int i = 0; i < 2; i++) {
        const bool guide = c->sleep ? i : !i;
        rws__path_side(path, guide ? RWS_SIDE_GUIDE : RWS_SIDE_MODEL);
        visit_bad(path, c, guide ? c->bad_guide : c->bad_model);
    }
}

static void check_bad(const bad_case *c)
{
    const rws_params none = {0};
    for (int scalar = 0; scalar < 2; scalar++)
        for (int pathwise = 0; pathwise < 2; pathwise++) {
            rws_engine      *e = rws__engine_new(&none, (rws_field[1]){{0}}, 0, NULL);
            rws_error        err = {{0}};
            char             message[200], site[40];
            const rws_pass   pass = {.program = bad_program,
                                     .context = (void *)c,
                                     .mode = c->sleep ? RWS_SLEEP : RWS_WAKE,
                                     .scalar = scalar,
                                     .pathwise = pathwise,
                                     .n_data = c->sleep ? 1 : 2,
                                     .n_particles = 3};
            const rws_status status = rws__engine_forward(e, &pass, &err);
            snprintf(site, sizeof site, "\"v\"%s in the %s", c->visits > 1 ? " (visit 1)" : "",
                     c->bad_guide ? "guide" : "model");
            snprintf(message, sizeof message, c->what->message, site);
            assert_string_equal(err.text, message);
            assert_int_equal(status, RWS_BROKEN);
            rws__engine_free(e);
        }
}

/* Drawn by the guide, scored by the model, and drawn by the model, where nothing scores them. */
static void bad_parameters_are_named(void **state)
{
    (void)state;
    static const bad_parameters list[] = {
        {"normal", {0, -1}, {0, 1}, "The standard deviation at site %s is -1; it must be above 0."},
        {"normal", {0, 0}, {0, 1}, "The standard deviation at site %s is 0; it must be above 0."},
        {"normal", {0, NAN}, {0, 1}, "The standard deviation at site %s is nan; it must be above 0."},
        {"uniform", {3, 1}, {0, 1}, "The bounds at site %s are 3 and 1; the first must be below the second."},
        {"uniform", {1, 1}, {0, 1}, "The bounds at site %s are 1 and 1; the first must be below the second."},
        {"uniform", {0, NAN}, {0, 1}, "The bounds at site %s are 0 and nan; the first must be below the second."},
        {"concrete", {0, 0}, {0, 1}, "The temperature at site %s is 0; it must be above 0."},
        {"concrete", {0, -2}, {0, 1}, "The temperature at site %s is -2; it must be above 0."},
        {"concrete", {0, NAN}, {0, 1}, "The temperature at site %s is nan; it must be above 0."},
        {"exponential", {0}, {1}, "The rate at site %s is 0; it must be above 0."},
        {"log-normal", {0, -1}, {0, 1}, "The standard deviation at site %s is -1; it must be above 0."},
        {"laplace", {0, NAN}, {0, 1}, "The scale at site %s is nan; it must be above 0."},
        {"half-normal", {-2}, {1}, "The scale at site %s is -2; it must be above 0."},
        {"gumbel with a scale", {0, 0}, {0, 1}, "The scale at site %s is 0; it must be above 0."},
        {"truncated normal", {0, 0, 0, 1}, {0, 1, 0, 1}, "The standard deviation at site %s is 0; it must be above 0."},
        {"truncated normal",
         {0, 1, 1, 0},
         {0, 1, 0, 1},
         "The bounds at site %s are 1 and 0; the first must be below the second."},
        {"gamma", {0, 1}, {1, 1}, "The shape at site %s is 0; it must be above 0."},
        {"gamma", {1, NAN}, {1, 1}, "The rate at site %s is nan; it must be above 0."},
        {"inverse gamma", {1, -1}, {1, 1}, "The scale at site %s is -1; it must be above 0."},
        {"beta", {0, 1}, {1, 1}, "The first shape at site %s is 0; it must be above 0."},
        {"beta", {1, -3}, {1, 1}, "The second shape at site %s is -3; it must be above 0."},
        {"student t", {0, 0, 1}, {1, 0, 1}, "The number of degrees of freedom at site %s is 0; it must be above 0."},
        {"student t", {1, 0, 0}, {1, 0, 1}, "The scale at site %s is 0; it must be above 0."},
        {"poisson", {0}, {1}, "The rate at site %s is 0; it must be above 0."},
        {"binomial", {1.5, 0}, {2, 0}, "The number of trials at site %s is 1.5; it must be a whole number."},
        {"binomial", {-1, 0}, {2, 0}, "The number of trials at site %s is -1; it must not be negative."},
        {"negative binomial", {-1, 0}, {2, 0}, "The shape at site %s is -1; it must be above 0."},
        {"dirichlet", {0}, {1}, "The concentration at site %s is 0; it must be above 0."},
        {"dirichlet", {NAN}, {1}, "The concentration at site %s is nan; it must be above 0."},
        {"von mises", {0, 0}, {0, 1}, "The concentration at site %s is 0; it must be above 0."},
        {"multivariate normal",
         {0, -1},
         {0, 1},
         "The diagonal of the Cholesky factor at site %s has -1; it must be above 0."},
    };
    for (int i = 0; i < COUNT(list); i++)
        for (int visits = 1; visits < 3; visits++) {
            check_bad(&(bad_case){&list[i], .bad_guide = true, .visits = visits});
            check_bad(&(bad_case){&list[i], .bad_model = true, .visits = visits});
            check_bad(&(bad_case){&list[i], .bad_model = true, .sleep = true, .visits = visits});
        }
}

/* The log-density outside of any site: values that do not fit, and a bad parameter. */
static void densities_of_misfits(rws_path *path, void *context)
{
    const rws_var two = rws_constants(path, (float[]){1, 2}, 2), three = rws_constants(path, (float[]){1, 2, 3}, 3);
    const rws_var zero = rws_constant(path, 0);
    const int    *which = context;
    rws__path_output(path, 0,
                     *which == 0   ? rws_normal_density(path, two, three, rws_constant(path, 1))
                     : *which == 1 ? rws_concrete_density(path, two, three, rws_constant(path, 1))
                                   : rws_concrete_density(path, two, two, zero));
}

static void densities_outside_of_sites_are_checked(void **state)
{
    (void)state;
    const rws_params  none = {0};
    const char *const messages[] = {
        "In the program, before its first site: rws_normal_density takes vectors of one length or of 1, not of 2, 3 "
        "and 1 numbers.",
        "In the program, before its first site: rws_concrete_density takes two vectors of one length and one "
        "temperature, not 2, 3 and 1 numbers.",
        "The temperature is 0; it must be above 0."};
    for (int i = 0; i < COUNT(messages); i++) {
        rws_engine    *e = rws__engine_new(&none, (rws_field[1]){{0}}, 0, NULL);
        rws_error      err = {{0}};
        const rws_pass pass = {
            .program = densities_of_misfits, .context = &i, .mode = RWS_COMPUTE, .n_data = 1, .n_particles = 1};
        assert_int_not_equal(rws__engine_forward(e, &pass, &err), RWS_OK);
        assert_string_equal(err.text, messages[i]);
        rws__engine_free(e);
    }
}

/* A value that is no number has no density: NaN or a message, but not the -inf of an impossible value. */
static void density_of_nan(rws_path *path, void *context)
{
    const rws_family *f = context;
    const rws_var     zero = rws_constant(path, 0), nan = rws_div(path, zero, zero);
    rws_var           p[RWS_FAMILY_PARAMS];
    for (int i = 0; i < f->n_params; i++) p[i] = rws_constant(path, (float)(i + 1)); /* bounds rise */
    rws__path_output(path, 0, rws_log_density(path, f, nan, p));
}

static void a_value_that_is_no_number_is_not_impossible(void **state)
{
    (void)state;
    const rws_params none = {0};
    for (int i = 0; rws_families[i]; i++) {
        rws_family f = *rws_families[i];
        if (strcmp(f.name, "mixture") == 0) continue; /* its densities are those of its components */
        rws_engine    *e = rws__engine_new(&none, (rws_field[1]){{0}}, 0, NULL);
        rws_error      err = {""};
        const rws_pass pass = {
            .program = density_of_nan, .context = &f, .mode = RWS_COMPUTE, .n_data = 1, .n_particles = 1};
        const rws_status status = rws__engine_forward(e, &pass, &err);
        if (status == RWS_OK && !isnan(rws__engine_scores(e)->out[0][0]))
            fail_msg("%s: the log-density of NaN is %g", f.name, rws__engine_scores(e)->out[0][0]);
        rws__engine_free(e);
    }
}

/* A choice among one has nothing to smooth. */
static void smoothed_alone(rws_path *path, void *context)
{
    (void)context;
    rws__path_side(path, RWS_SIDE_GUIDE);
    rws_categorical(path, "z", rws_constant(path, 0));
}

static void one_category_is_not_smoothed(void **state)
{
    (void)state;
    const rws_params   none = {0};
    rws_engine        *e = rws__engine_new(&none, (rws_field[1]){{0}}, 0, NULL);
    rws_error          err = {""};
    const rws_proposal proposal = {.how = RWS_SMOOTHED, .sharpness = 8};
    const rws_pass     pass = {.program = smoothed_alone, .proposal = &proposal, .n_data = 1, .n_particles = 2};
    assert_int_equal(rws__engine_forward(e, &pass, &err), RWS_BAD_INPUT);
    assert_non_null(
        strstr(err.text, "In the guide, after site \"z\": a choice among 1 has no bits that could be smoothed"));
    rws__engine_free(e);
}

/* A standard deviation of 0 in rows that a branch keeps away from the site is no mistake. */
static void guarded(rws_path *path, void *context)
{
    const float logits[] = {0, 0, 0};
    (void)context;
    for (int side = 0; side < 2; side++) {
        rws__path_side(path, side ? RWS_SIDE_MODEL : RWS_SIDE_GUIDE);
        const rws_var z = rws_categorical(path, "z", rws_constants(path, logits, 3));
        const rws_var sd = rws_mul(path, z, rws_constant(path, 2)); /* at the rows of all z */
        if (rws_branch(path, z) > 0 && side) rws_normal(path, "x", rws_constant(path, 0), sd);
        else if (side) rws_normal(path, "x", rws_constant(path, 0), rws_constant(path, 1));
    }
}

static void rows_that_a_branch_keeps_away_are_not_looked_at(void **state)
{
    (void)state;
    const rws_params none = {0};
    const rws_field  field = {"x", 1};
    const float      x[] = {0.5f, 1}, *fields[] = {x};
    for (int scalar = 0; scalar < 2; scalar++) {
        rws_engine    *e = rws__engine_new(&none, &field, 1, NULL);
        rws_error      err = {{0}};
        const rws_pass pass = {.program = guarded, .scalar = scalar, .n_data = 2, .n_particles = 50, .fields = fields};
        if (rws__engine_forward(e, &pass, &err) != RWS_OK) fail_msg("%s", err.text);
        rws__engine_free(e);
    }
}

/* The length of a table of whole numbers comes from the rates of the path alone: -3 is no rate, but its rows have left the
 * path, and the rows with rates 3, 9 and 15 need tables of more than 16 numbers. */
static void counts_of_some(rws_path *path, void *context)
{
    const float logits[] = {0, 0, 0, 0};
    (void)context;
    for (int side = 0; side < 2; side++) {
        rws__path_side(path, side ? RWS_SIDE_MODEL : RWS_SIDE_GUIDE);
        const rws_var z = rws_categorical(path, "z", rws_constants(path, logits, 4));
        const rws_var rate = rws_affine(path, z, 6, -3); /* at the rows of all z */
        rws_var       n = rws_constant(path, -1);
        if (rws_branch(path, rws_greater(path, z, rws_constant(path, 0)))) n = rws_poisson(path, "n", rate);
        rws__path_output(path, 0, n);
    }
}

static void rows_that_have_left_do_not_shorten_tables(void **state)
{
    (void)state;
    const rws_params none = {0};
    for (int scalar = 0; scalar < 2; scalar++) {
        rws_engine    *e = rws__engine_new(&none, (rws_field[1]){{0}}, 0, NULL);
        rws_error      err = {{0}};
        const rws_pass pass = {.program = counts_of_some, .scalar = scalar, .n_data = 2, .n_particles = 2000};
        double         most = 0;
        if (rws__engine_forward(e, &pass, &err) != RWS_OK) fail_msg("%s", err.text);
        const rws_scores *s = rws__engine_scores(e);
        for (int i = 0; i < s->n; i++) most = fmax(most, s->out[0][i]);
        assert_true(most > 16); /* a third of the draws with rate 15 is */
        rws__engine_free(e);
    }
}

/* Logits with a temperature, which a model scores in rows of their own: the guide has drawn z before a. */
static void tempered_program(rws_path *path, void *context)
{
    const float even[] = {0, 0, 0}, table[] = {0.5f, -1, 2};
    (void)context;
    rws__path_side(path, RWS_SIDE_GUIDE);
    const rws_var z = rws_categorical(path, "z", rws_constants(path, even, 3));
    const rws_var a = rws_categorical(path, "a", rws_constants(path, even, 3));
    rws__path_side(path, RWS_SIDE_MODEL);
    rws_categorical(path, "a", rws_constants(path, even, 3));
    const rws_var logits = rws_mul(path, rws_constants(path, table, 3), rws_affine(path, a, 1, 1));
    rws_categorical(path, "z", rws_log_softmax(path, rws_div(path, logits, rws_constant(path, 2))));
    rws__path_output(path, 0, z);
    rws__path_output(path, 1, a);
}

static void tempered_logits_are_scored_as_drawn(void **state)
{
    (void)state;
    const double     table[] = {0.5, -1, 2};
    const rws_params none = {0};
    rws_engine      *e = rws__engine_new(&none, (rws_field[1]){{0}}, 0, NULL);
    rws_error        err = {{0}};
    const rws_pass   pass = {.program = tempered_program, .n_data = 1, .n_particles = 200};
    if (rws__engine_forward(e, &pass, &err) != RWS_OK) fail_msg("%s", err.text);
    const rws_scores *s = rws__engine_scores(e);
    assert_int_equal(s->n, 9);
    for (int i = 0; i < s->n; i++) {
        setting one = {.n_a = 3};
        for (int j = 0; j < 3; j++) one.a[j] = table[j] * (s->out[1][i] + 1) / 2;
        assert_true(as_dense(s->log_p[i], log_share(&one, (int)s->out[0][i]) - log(3)));
    }
    rws__engine_free(e);
}

/* A long run with what cannot happen first, in the middle and last: it never does. Sums of the same numbers in another
 * order differ in the last bit, one of 2^24; a sampler that forgets it is found out by 10^8 draws. */
static void the_impossible_never_happens(void **state)
{
    (void)state;
    static const setting logits[] = {{5, 0, {-INF, 2, -INF, 2, -INF}, {0}},
                                     {4, 0, {-200, 0, -1e30, 0}, {0}},
                                     {2, 0, {-INF, 0}, {0}},
                                     {5, 0, {-3, -3, 1, -INF, -2}, {0}},
                                     {7, 0, {1, -3, -3, -3, -3, -3, -INF}, {0}}};
    const int            draws[] = {500000, 500000, 500000, 100000000, 40000000};
    for (int i = 0; i < 5; i++)
        for (int apart = 0; apart < 2; apart++) {
            const int n = apart ? 25000 : draws[i];
            bench     b;
            uint64_t  total = 0;
            bench_init(&b, family_of("categorical"), &logits[i]);
            const rws_scores *s = bench_draw(&b, 50, apart ? n : 1, apart ? 1 : n);
            for (int r = 0; r < s->n; r++) {
                assert_true(logits[i].a[(int)s->out[0][r]] > -100 && isfinite(s->log_q[r]));
                total += s->count[r];
            }
            assert_int_equal(total, n);
            bench_release(&b);
        }
}

/* ---- defensive draws */

/* The probability of an outcome under the mixture: every choice, and every bit of a vector, is mixed with a uniform one
 * by itself. */
static double defended(const bench *b, int outcome)
{
    const double delta = b->proposal.delta;
    double       x[WIDEST], total = 1;
    if (b->subject->outcome == number_outcome) return (1 - delta) * probability(b, outcome) + delta / b->setting->n_a;
    if (b->subject->outcome == digits_outcome) {
        const int C = b->setting->n_a / b->setting->n;
        digits_outcome(b->setting, outcome, x);
        for (int i = 0; i < b->setting->n; i++) {
            setting one = {.n_a = C};
            memcpy(one.a, b->setting->a + i * C, (size_t)C * sizeof(double));
            total *= (1 - delta) * exp(log_share(&one, (int)x[i])) + delta / C;
        }
        return total;
    }
    bits_outcome(b->setting, outcome, x);
    for (int j = 0; j < b->setting->n_a; j++)
        total *= (1 - delta) * sigmoid(x[j] == 1 ? b->setting->a[j] : -b->setting->a[j]) + delta / 2;
    return total;
}

static double look_at_defended(void *context, int round, int wide)
{
    bench            *b = context;
    const int         n = USUAL * wide, n_outcomes = b->subject->outcomes(b->setting);
    const rws_scores *s = bench_draw(b, 70 + (uint64_t)round, 1, n);
    double            seen[OUTCOMES] = {0}, expected[OUTCOMES], x[VALUES];
    for (int o = 0; o < n_outcomes; o++) expected[o] = n * defended(b, o);
    for (int i = 0; i < s->n; i++) {
        value_of(s, i, x);
        const int o = outcome_of(b, x);
        seen[o] += s->count[i];
        assert_true(as_dense(s->log_d[i], log(defended(b, o))));
        assert_true(as_dense(s->log_q[i], density_of(b->subject, b->setting, x)));
        assert_true(s->log_p[i] == s->log_q[i]);
    }
    return counts_tail(seen, expected, n_outcomes);
}

static void check_defended(bench *b, int which)
{
    b->proposal.how = RWS_DEFENSIVE;
    if (!b->family->choices && b->family->support != RWS_SUPPORT_BITS) { /* drawn as in a plain pass */
        const rws_scores *s = bench_draw(b, 70, 1, 100);
        for (int i = 0; i < s->n; i++) assert_true(s->log_d[i] == s->log_q[i]);
        return;
    }
    assert_non_null(b->family->draw_defensive);
    for (int i = 0; i < 2; i++) {
        b->proposal.delta = i ? 0.05 : 0.5;
        stays_likely(named(b, which, "defensive draws"), look_at_defended, b);
    }
}

static void defensive_draws_follow_the_mixture(void **state)
{
    (void)state;
    walk(check_defended);
}

/* dww_ref_bug: draws z from q, notes the mixture's density there, then replaces z by a uniform one with probability
 * delta. So (z, what is used) has a joint law, and log_d tells z apart where the mixture's probabilities differ. */
static double look_at_wrong_delta(void *context, int round, int wide)
{
    bench            *b = context;
    const int         n = USUAL * wide, C = b->subject->outcomes(b->setting);
    const rws_scores *s = bench_draw(b, 80 + (uint64_t)round, 1, n);
    double            seen[OUTCOMES] = {0}, expected[OUTCOMES];
    for (int z = 0; z < C; z++)
        for (int used = 0; used < C; used++)
            expected[z * C + used] =
                n * probability(b, z) * ((1 - b->proposal.delta) * (z == used) + b->proposal.delta / C);
    for (int i = 0; i < s->n; i++) {
        int z = 0;
        while (z < C && !as_dense(s->log_d[i], log(defended(b, z)))) z++;
        assert_true(z < C);
        assert_true(as_dense(s->log_q[i], log(probability(b, (int)s->out[0][i]))));
        seen[z * C + (int)s->out[0][i]] += s->count[i];
    }
    return counts_tail(seen, expected, C * C);
}

static void wrong_delta_is_wrong_as_described(void **state)
{
    (void)state;
    static const char *const single[] = {"categorical", "bernoulli"};
    for (int i = 0; i < COUNT(single); i++) {
        bench b;
        bench_init(&b, family_of(single[i]), &subject_of(single[i])->settings[0]);
        b.proposal.how = RWS_DEFENSIVE;
        b.proposal.wrong_delta = true;
        stays_likely("wrong delta", look_at_wrong_delta, &b);
        bench_release(&b);
    }
}

/* ---- Gumbel and relaxed passes */

typedef struct {
    bench *perturbed, *conditional; /* the same pass, handing out g and g~ */
} gumbels;

/* The law of (z, g~) is that of (argmax g, g). So g~_i alone is a Gumbel at log pi_i; and given z, which leaves g and
 * g~ independent, they agree in mean and square. */
static double look_at_gumbels(void *context, int round, int wide)
{
    enum { C = 3 };
    const gumbels    *both = context;
    const int         n = USUAL * wide;
    const rws_scores *s = bench_draw(both->perturbed, 90 + (uint64_t)round, 1, n);
    const rws_scores *t = bench_draw(both->conditional, 90 + (uint64_t)round, 1, n);
    double            seen[C] = {0}, expected[C], p = 1, *x = malloc((size_t)n * sizeof *x);
    assert_true(s->n == n && t->n == n);
    for (int i = 0; i < n; i++) {
        const int z = (int)s->out[VALUES][i];
        assert_true(s->out[VALUES][i] == t->out[VALUES][i]);
        for (int j = 0; j < C; j++) {
            assert_true(s->out[j][i] <= s->out[z][i]);
            assert_true(t->out[j][i] <= t->out[z][i]);
        }
        assert_true(as_dense(s->log_q[i], log_share(both->perturbed->setting, z)));
        seen[z]++;
    }
    for (int j = 0; j < C; j++) expected[j] = n * probability(both->perturbed, j);
    p = fmin(p, counts_tail(seen, expected, C));
    for (int j = 0; j < C; j++)
        for (int k = 0; k < 2; k++) {
            const double *g = (k ? t : s)->out[j];
            for (int i = 0; i < n; i++) x[i] = exp(-exp(log_share(both->perturbed->setting, j) - g[i]));
            p = fmin(p, uniform_tail(x, (size_t)n));
        }
    for (int i = 0; i < n; i++) x[i] = exp(-exp(-t->out[(int)t->out[VALUES][i]][i])); /* the largest is a Gumbel at 0 */
    p = fmin(p, uniform_tail(x, (size_t)n));
    for (int z = 0; z < C; z++)
        for (int j = 0; j < C; j++)
            for (int power = 1; power <= 2; power++) {
                size_t m = 0;
                for (int i = 0; i < n; i++)
                    if ((int)s->out[VALUES][i] == z) x[m++] = pow(s->out[j][i], power) - pow(t->out[j][i], power);
                p = fmin(p, mean_tail(x, m, 0, 0));
            }
    free(x);
    return fmin(1, 26 * p);
}

static void conditional_gumbels_have_the_law_of_gumbels(void **state)
{
    (void)state;
    bench         g, conditional;
    const setting s = {3, 0, {1, -0.5, 0}, {0}};
    bench_init(&g, family_of("categorical"), &s);
    bench_init(&conditional, family_of("categorical"), &s);
    g.proposal.how = conditional.proposal.how = RWS_GUMBEL;
    g.hand_out = OUT_G;
    conditional.hand_out = OUT_G_TILDE;
    stays_likely("perturbed log-probabilities", look_at_gumbels, &(gumbels){&g, &conditional});
    bench_release(&g);
    bench_release(&conditional);
}

/* In a Gumbel pass impossible categories stay impossible, in g and in g~. */
static void impossible_gumbels(void **state)
{
    (void)state;
    const setting s = {3, 0, {0, -INF, 1}, {0}};
    for (int k = 0; k < 2; k++) {
        bench b;
        bench_init(&b, family_of("categorical"), &s);
        b.proposal.how = RWS_GUMBEL;
        b.hand_out = k ? OUT_G_TILDE : OUT_G;
        const rws_scores *t = bench_draw(&b, 95, 1, USUAL);
        for (int i = 0; i < t->n; i++)
            assert_true(t->out[1][i] == -INF && t->out[VALUES][i] != 1 && isfinite(t->out[0][i]) &&
                        isfinite(t->out[2][i]));
        bench_release(&b);
    }
}

/* A relaxed categorical is a Concrete at the pass's temperature. */
static double look_at_relaxed(void *context, int round, int wide)
{
    bench  *b = context;
    setting s = *b->setting;
    s.n_b = 1;
    s.b[0] = b->proposal.temperature;
    const bench       as_concrete = {.family = family_of("concrete"), .subject = subject_of("concrete"), .setting = &s};
    const rws_scores *t = bench_draw(b, 97 + (uint64_t)round, 1, USUAL * wide);
    for (int i = 0; i < t->n; i += 37) {
        double x[VALUES], soft = 0;
        value_of(t, i, x);
        for (int j = 0; j < s.n_a; j++) soft += exp(x[j] + log_share(&s, j));
        assert_true(
            as_dense(t->log_q[i], b->proposal.relaxation == RWS_RELAX_SOFT ? log(soft) : concrete_density(&s, x)));
        assert_true(t->log_p[i] == t->log_q[i]);
    }
    return look_at_values(&as_concrete, t, USUAL * wide);
}

static void relaxed_choices_are_concrete(void **state)
{
    (void)state;
    static const setting logits[] = {{2, 0, {0.5, -0.5}, {0}}, {3, 0, {1, -0.5, 0}, {0}}};
    for (int i = 0; i < 4; i++) {
        bench b;
        bench_init(&b, family_of("categorical"), &logits[i % 2]);
        b.proposal.how = RWS_RELAXED;
        b.proposal.relaxation = i / 2 ? RWS_RELAX_SOFT : RWS_RELAX_DENSITY;
        stays_likely("a relaxed categorical", look_at_relaxed, &b);
        bench_release(&b);
    }
}

/* ---- many categoricals, which are drawn together */

static double look_at_many(void *context, int round, int wide)
{
    bench            *b = context;
    const int         n = USUAL * wide, C = b->setting->n_a / b->setting->n;
    const rws_scores *s = bench_draw(b, 30 + (uint64_t)round, 1, n);
    double            p = 1;
    assert_int_equal(s->n, n);
    for (int j = 0; j < VALUES; j++) { /* an index with the one after it */
        double    seen[OUTCOMES] = {0}, expected[OUTCOMES];
        const int next = (j + 1) % VALUES;
        for (int i = 0; i < n; i++) seen[(int)s->out[j][i] * C + (int)s->out[next][i]]++;
        for (int o = 0; o < C * C; o++) {
            const int at[] = {j * C + o / C, next * C + o % C};
            expected[o] = n;
            for (int k = 0; k < 2; k++) {
                setting   one = {.n_a = C};
                const int row = at[k] / C;
                memcpy(one.a, b->setting->a + row * C, (size_t)C * sizeof(double));
                const double log_p = log_share(&one, at[k] % C), floor = b->proposal.how == RWS_DEFENSIVE ? 0.3 / C : 0;
                expected[o] *= floor > 0 ? 0.7 * exp(log_p) + floor : exp(log_p);
            }
        }
        p = fmin(p, counts_tail(seen, expected, C * C));
    }
    return fmin(1, VALUES * p);
}

static void many_categoricals_follow_their_density(void **state)
{
    (void)state;
    static const setting many = {
        30,
        0,
        {0, 1, 2, 0.5, -0.5, 0, -INF, 0, 1, 3, 0, -3, 0, 0, 0, 1, 1, 0, 2, 0, 1, 0, 1, 0, 1, 1, 1, 2, 2, 0},
        {0},
        .n = 10};
    for (int defensive = 0; defensive < 2; defensive++) {
        bench b;
        bench_init(&b, family_of("categoricals"), &many);
        b.proposal.how = defensive ? RWS_DEFENSIVE : RWS_PLAIN;
        stays_likely("ten categoricals", look_at_many, &b);
        bench_release(&b);
    }
}

/* ---- mixtures: whole numbers that are often 0, families that differ, and what the other side may be */

static const double inflated[] = {0.5, -0.3, 4.3}; /* logits of zero and of a Poisson, and its rate */

static void visit_inflated(rws_path *path)
{
    const rws_var       zero = rws_constant(path, 0), rate = rws_constant(path, (float)inflated[2]);
    const rws_component components[] = {{rws_family_find("delta"), &zero}, {rws_family_find("poisson"), &rate}};
    const float         logits[] = {(float)inflated[0], (float)inflated[1]};
    rws_mixture(path, "v", rws_constants(path, logits, 2), components, 2);
}

static void inflated_program(rws_path *path, void *context)
{
    (void)context;
    rws__path_side(path, RWS_SIDE_GUIDE);
    visit_inflated(path);
    rws__path_side(path, RWS_SIDE_MODEL);
    visit_inflated(path);
    rws__path_side(path, RWS_SIDE_NONE);
}

static double look_at_inflated(void *context, int round, int wide)
{
    enum { MOST = 40 };
    const int      n = USUAL * wide;
    const double   share = 1 / (1 + exp(inflated[1] - inflated[0]));
    double         seen[MOST] = {0}, expected[MOST];
    rws_error      err = {""};
    rws_engine    *e = context;
    const rws_pass pass = {.program = inflated_program,
                           .key = rws__key_for(20 + (uint64_t)round, 0, RWS_KEY_METRIC, 0),
                           .n_data = 1,
                           .n_particles = n};
    if (rws__engine_forward(e, &pass, &err) != RWS_OK) fail_msg("%s", err.text);
    const rws_scores *s = rws__engine_scores(e);
    for (int k = 0; k < MOST; k++)
        expected[k] = n * ((k == 0) * share + (1 - share) * exp(k * log(inflated[2]) - inflated[2] - lgamma(k + 1)));
    for (int i = 0; i < s->n; i++) { /* the log-density tells the number: no two are equal */
        int k = 0;
        while (k < MOST && !near(s->log_q[i], log(expected[k] / n), 1e-4)) k++;
        assert_true(k < MOST);
        seen[k] += s->count[i];
    }
    assert_true(s->n < 3 * MOST); /* equal draws share a row */
    return counts_tail(seen, expected, MOST);
}

static void mixtures_of_whole_numbers(void **state)
{
    (void)state;
    const rws_params none = {0};
    rws_engine      *e = rws__engine_new(&none, (rws_field[1]){{0}}, 0, NULL);
    stays_likely("a Poisson with more zeros", look_at_inflated, e);
    rws__engine_free(e);
}

/* What the two sides visit, and what is said. */
static void mixed_program(rws_path *path, void *context)
{
    const int           which = *(const int *)context;
    const rws_var       one = rws_constant(path, 1), two = rws_constants(path, (float[]){1, 2}, 2);
    const rws_var       scalar[] = {one, one}, wide[] = {two, one};
    const rws_family   *normal = rws_family_find("normal");
    const rws_component good[] = {{normal, scalar}, {normal, scalar}}, uneven[] = {{normal, scalar}, {normal, wide}},
                        empty[] = {{normal, scalar}, {NULL, NULL}}, bare[] = {{normal, scalar}, {normal, NULL}};
    const rws_component *volatile nothing = NULL; /* which the compiler would warn of */
    rws__path_side(path, RWS_SIDE_GUIDE);
    switch (which) {
    case 0:
    case 1: rws_mixture(path, "v", two, good, 2); break;
    case 2: rws_mixture(path, "v", one, good, 2); break;
    case 3: rws_mixture(path, "v", two, uneven, 2); break;
    case 4: rws_mixture(path, "v", two, empty, 2); break;
    case 5: rws_mixture(path, "v", two, bare, 2); break;
    case 6: rws_mixture(path, "v", two, nothing, 2); break;
    case 7: rws_site_visit(path, "v", rws_family_find("mixture"), &two); break;
    case 8: rws_categoricals(path, "v", rws_constants(path, (float[]){1, 2, 3}, 3), 2); break;
    case 9: rws_multinomial(path, "v", two, two); break;
    case 10: rws_multivariate_normal(path, "v", two, two); break;
    default: rws_multivariate_normal(path, "v", rws_zeros(path, 50000), two);
    }
    rws__path_side(path, RWS_SIDE_MODEL);
    if (which == 0) rws_normal(path, "v", one, one);
    else rws_exponential(path, "v", one);
}

static void mixtures_that_do_not_fit(void **state)
{
    (void)state;
    const rws_params  none = {0};
    const char *const messages[] = {
        NULL, /* a mixture of normals on one side, a normal on the other */
        "Site \"v\" is exponential (a number above 0) in the model and normal (any number) in the guide.",
        "rws_mixture was given 1 logits for 2 components.",
        "In the guide, at site \"v\": components 0 and 1 of a mixture have values of 1 and 2 numbers.",
        "rws_mixture was given no family (NULL).",
        "component 1 of a mixture was given no parameters (NULL).",
        "rws_mixture takes at least one component, not 0.",
        "a mixture was visited without components; rws_mixture takes them.",
        "rws_categoricals takes as many logits for each of 2 indices, not 3 logits.",
        "rws_multinomial takes one number of trials, not 2.",
        "In the guide, at site \"v\": the Cholesky factor of a multivariate normal of 2 numbers has 2 numbers; it "
        "takes 4 (a matrix) or 3",
        "of 50000 numbers has 2 numbers; it takes 2500000000 (a matrix) or 1250025000 (its lower triangle, row by row)",
    };
    for (int i = 0; i < COUNT(messages); i++) {
        rws_engine      *e = rws__engine_new(&none, (rws_field[1]){{0}}, 0, NULL);
        rws_error        err = {""};
        const rws_pass   pass = {.program = mixed_program, .context = &i, .n_data = 1, .n_particles = 4};
        const rws_status status = rws__engine_forward(e, &pass, &err);
        if (messages[i] ? status != RWS_BAD_INPUT || !strstr(err.text, messages[i]) : status != RWS_OK)
            fail_msg("case %d: status %d, \"%s\"", i, status, err.text);
        rws__engine_free(e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_twin_has_a_family),
        cmocka_unit_test(draws_do_not_depend_on_company),
        cmocka_unit_test(what_is_no_distribution_is_said_so),
        cmocka_unit_test(bad_parameters_are_named),
        cmocka_unit_test(densities_outside_of_sites_are_checked),
        cmocka_unit_test(a_value_that_is_no_number_is_not_impossible),
        cmocka_unit_test(one_category_is_not_smoothed),
        cmocka_unit_test(rows_that_a_branch_keeps_away_are_not_looked_at),
        cmocka_unit_test(rows_that_have_left_do_not_shorten_tables),
        cmocka_unit_test(tempered_logits_are_scored_as_drawn),
        cmocka_unit_test(the_impossible_never_happens),
        cmocka_unit_test(defensive_draws_follow_the_mixture),
        cmocka_unit_test(wrong_delta_is_wrong_as_described),
        cmocka_unit_test(conditional_gumbels_have_the_law_of_gumbels),
        cmocka_unit_test(impossible_gumbels),
        cmocka_unit_test(relaxed_choices_are_concrete),
        cmocka_unit_test(many_categoricals_follow_their_density),
        cmocka_unit_test(mixtures_of_whole_numbers),
        cmocka_unit_test(mixtures_that_do_not_fit),
    };
    return cmocka_run_group_tests_name("dist", tests, NULL, NULL);
}
