/* test_dist_extremes.c - every family's log-density against the GNU Scientific Library, over wide ranges of parameters and
 * values. Where GSL's own density leaves the range of a double the point is left out. A family that is in rws_families but
 * not in this table fails. */
#include "dist/dist.h"
#include "tensor/gemm.h"

#include "support.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_randist.h>
#include <gsl/gsl_sf_bessel.h>
#include <stdio.h>
#include <string.h>

#define SPREAD 9 /* numbers that a parameter takes */

/* Numbers that a parameter or a value takes. */
typedef enum { END, ANY, ABOVE, WIDE, SHAPE, INNER, LOGIT, NUMBER, TRIALS, TAIL } range;

static const double ranges[][SPREAD] = {
    [ANY] = {-1e6, -30, -1, -1e-6, 0, 1e-6, 0.7, 25, 1e6},
    [ABOVE] = {1e-30, 1e-12, 1e-4, 0.1, 1, 3, 1e4, 1e12, 1e30},
    [WIDE] = {1e-20, 1e-8, 1e-3, 0.2, 1, 5, 1e3, 1e8, 1e20},
    [SHAPE] = {1e-6, 1e-3, 0.1, 0.9, 1, 1.1, 30, 1e4, 1e6},
    [INNER] = {1e-30, 1e-10, 1e-3, 0.1, 0.5, 0.9, 0.999, 0.99999, 0.5},
    [LOGIT] = {-80, -20, -3, -0.1, 0, 0.1, 3, 20, 30},
    [NUMBER] = {0, 1, 2, 3, 7, 40, 1000, 20000, 500000},
    [TRIALS] = {0, 1, 2, 3, 10, 50, 1000, 30000, 600000},
    [TAIL] = {-30, -5, -1, 0, 0.3, 1, 4, 20, 35},
};

/* x as a float holds it. GCC 12 leaves a bare cast to float and back out of a vectorised loop. */
static double as_float(double x)
{
    volatile float f = (float)x;
    return (double)f;
}

static double share(double logit)
{
    return 1 / (1 + exp(-logit));
}

static double normal_gsl(double x, const double *p)
{
    return gsl_ran_gaussian_pdf(x - p[0], p[1]);
}

static double uniform_gsl(double x, const double *p)
{
    return gsl_ran_flat_pdf(x, p[0], (double)(float)(p[0] + p[1]));
}

static double exponential_gsl(double x, const double *p)
{
    return gsl_ran_exponential_pdf(x, 1 / p[0]);
}

static double log_normal_gsl(double x, const double *p)
{
    return gsl_ran_lognormal_pdf(x, p[0], p[1]);
}

static double laplace_gsl(double x, const double *p)
{
    return gsl_ran_laplace_pdf(x - p[0], p[1]);
}

static double half_normal_gsl(double x, const double *p)
{
    return 2 * gsl_ran_gaussian_pdf(x, p[0]);
}

static double gumbel_gsl(double x, const double *p)
{
    return gsl_ran_gumbel1_pdf(x - p[0], 1, 1);
}

static double gumbel_scale_gsl(double x, const double *p)
{
    return gsl_ran_gumbel1_pdf((x - p[0]) / p[1], 1, 1) / p[1];
}

static double truncated_gsl(double x, const double *p) /* mean 0, sd 1, from p[0] on */
{
    return gsl_ran_gaussian_tail_pdf(x, p[0], 1);
}

static double gamma_gsl(double x, const double *p)
{
    return gsl_ran_gamma_pdf(x, p[0], 1 / p[1]);
}

static double inverse_gamma_gsl(double x, const double *p)
{
    return gsl_ran_gamma_pdf(1 / x, p[0], 1 / p[1]) / (x * x);
}

static double beta_gsl(double x, const double *p)
{
    return gsl_ran_beta_pdf(x, p[0], p[1]);
}

static double student_gsl(double x, const double *p)
{
    return gsl_ran_tdist_pdf((x - p[1]) / p[2], p[0]) / p[2];
}

static double poisson_gsl(double x, const double *p)
{
    return gsl_ran_poisson_pdf((unsigned)x, p[0]);
}

static double geometric_gsl(double x, const double *p)
{
    return gsl_ran_geometric_pdf((unsigned)x + 1, share(p[0]));
}

static double binomial_gsl(double x, const double *p)
{
    return gsl_ran_binomial_pdf((unsigned)x, share(p[1]), (unsigned)p[0]);
}

static double negative_binomial_gsl(double x, const double *p)
{
    return gsl_ran_negative_binomial_pdf((unsigned)x, share(-p[1]), p[0]);
}

static double bernoulli_gsl(double x, const double *p)
{
    return gsl_ran_bernoulli_pdf((unsigned)x, share(p[0]));
}

static double von_mises_gsl(double x, const double *p)
{
    return exp(p[1] * (cos(x - p[0]) - 1)) / (2 * M_PI * gsl_sf_bessel_I0_scaled(p[1]));
}

static const struct known {
    const char *family;
    double (*pdf)(double x, const double *p); /* NULL: see `why` */
    range       x, p[3];
    const char *why; /* GSL has no such density, or the family is tested below */
} known[] = {
    {"categorical", .why = "an entry of a table"},
    {"bernoulli", bernoulli_gsl, NUMBER, {LOGIT}},
    {"bernoulli vector", .why = "a sum of bernoulli"},
    {"normal", normal_gsl, ANY, {ANY, WIDE}},
    {"uniform", uniform_gsl, ANY, {ANY, SHAPE}},
    {"gumbel", gumbel_gsl, TAIL, {TAIL}},
    {"concrete", .why = "test_dist_draws integrates it"},
    {"exponential", exponential_gsl, ABOVE, {ABOVE}},
    {"log-normal", log_normal_gsl, WIDE, {TAIL, SHAPE}},
    {"laplace", laplace_gsl, ANY, {ANY, WIDE}},
    {"half-normal", half_normal_gsl, WIDE, {WIDE}},
    {"gumbel with a scale", gumbel_scale_gsl, ANY, {ANY, WIDE}},
    {"truncated normal", truncated_gsl, TAIL, {TAIL}},
    {"gamma", gamma_gsl, WIDE, {SHAPE, WIDE}},
    {"inverse gamma", inverse_gamma_gsl, WIDE, {SHAPE, WIDE}},
    {"beta", beta_gsl, INNER, {SHAPE, SHAPE}},
    {"student t", student_gsl, ANY, {SHAPE, TAIL, WIDE}},
    {"poisson", poisson_gsl, NUMBER, {SHAPE}},
    {"geometric", geometric_gsl, NUMBER, {LOGIT}},
    {"binomial", binomial_gsl, NUMBER, {TRIALS, LOGIT}},
    {"negative binomial", negative_binomial_gsl, NUMBER, {SHAPE, LOGIT}},
    {"dirichlet", .why = "vectors are tested below"},
    {"von mises", von_mises_gsl, TAIL, {TAIL, WIDE}},
    {"multivariate normal", .why = "vectors are tested below"},
    {"categoricals", .why = "a sum of categorical"},
    {"multinomial", .why = "vectors are tested below"},
    {"delta", .why = "0 or minus infinity"},
    {"mixture", .why = "a sum of its components"},
};

static const struct known *known_of(const char *family)
{
    for (int i = 0; i < COUNT(known); i++)
        if (strcmp(known[i].family, family) == 0) return &known[i];
    fail_msg("the family %s is not in the table of this test", family);
    return NULL;
}

/* ---- one density by the engine */

typedef struct {
    const rws_family *family;
    float             x[8], p[4][8];
    int               n_x, n_p[4];
} point;

static void program(rws_path *path, void *context)
{
    const point *at = context;
    rws_var      p[4] = {{0}};
    for (int k = 0; k < 4; k++)
        if (at->n_p[k]) p[k] = rws_constants(path, at->p[k], at->n_p[k]);
    rws_path_output(path, 0, rws_log_density(path, at->family, rws_constants(path, at->x, at->n_x), p));
}

static double by_engine(rws_engine *e, point *at)
{
    rws_error      err = {""};
    const rws_pass pass = {.program = program, .context = at, .mode = RWS_COMPUTE, .n_data = 1, .n_particles = 1};
    if (rws_engine_forward(e, &pass, &err) != RWS_OK)
        fail_msg("%s at %g by %g and %g: %s", at->family->name, (double)at->x[0], (double)at->p[0][0],
                 (double)at->p[1][0], err.text);
    return rws_engine_scores(e)->out[0][0];
}

/* The value and parameters as floats hold them; the second parameter of a uniform and those of a truncated normal are
 * bounds. */
static point point_at(const rws_family *f, double x, const double *p, int n)
{
    point at = {.family = f, .x = {(float)x}, .n_x = 1};
    for (int k = 0; k < n; k++) at.p[k][0] = (float)p[k], at.n_p[k] = 1;
    if (strcmp(f->name, "uniform") == 0) at.p[1][0] = (float)(p[0] + p[1]);
    if (strcmp(f->name, "truncated normal") == 0) {
        for (int k = 0; k < 4; k++) at.n_p[k] = 1;
        at.p[0][0] = 0, at.p[1][0] = 1, at.p[2][0] = (float)p[0], at.p[3][0] = INFINITY;
    }
    return at;
}

static void densities_are_those_of_gsl(void **state)
{
    (void)state;
    const rws_params none = {0};
    rws_engine      *e = rws_engine_new(&none, (rws_field[1]){{0}}, 0, NULL);
    for (int f = 0; rws_families[f]; f++) {
        const struct known *k = known_of(rws_families[f]->name);
        int                 n = 0, compared = 0;
        if (!k->pdf) {
            assert_non_null(k->why);
            continue;
        }
        while (n < 3 && k->p[n]) n++;
        const int all = n == 1 ? SPREAD : n == 2 ? SPREAD * SPREAD : SPREAD * SPREAD * SPREAD;
        for (int i = 0; i < SPREAD * all; i++) {
            double p[3] = {0};
            float  x = (float)ranges[k->x][i % SPREAD];
            for (int j = 0, at = i / SPREAD; j < n; j++, at /= SPREAD) p[j] = as_float(ranges[k->p[j]][at % SPREAD]);
            if (strcmp(k->family, "bernoulli") == 0 && x > 1) continue;
            if (k->pdf == uniform_gsl && (float)(p[0] + p[1]) <= (float)p[0]) continue;
            const double pdf = k->pdf((double)x, p);
            if (!(pdf > 1e-280 && pdf < 1e280)) continue;
            point        at = point_at(rws_families[f], (double)x, p, n);
            const double got = by_engine(e, &at), want = log(pdf);
            compared++;
            if (!near(got, want, 1e-4 * (1 + fabs(want))))
                fail_msg("%s at %g by %g, %g and %g: %.9g, not %.9g", k->family, (double)x, p[0], p[1], p[2], got,
                         want);
        }
        if (compared < SPREAD) fail_msg("%s: only %d points were compared", k->family, compared);
    }
    rws_engine_free(e);
}

static void vectors_are_those_of_gsl(void **state)
{
    (void)state;
    const rws_params none = {0};
    rws_engine      *e = rws_engine_new(&none, (rws_field[1]){{0}}, 0, NULL);
    die              d = {17};
    for (int i = 0; i < 300; i++) {
        double   a[3], x[3], total = 0, weight = 0, logits[3], share_of[3];
        unsigned count[3], trials = 0;
        for (int j = 0; j < 3; j++) {
            a[j] = as_float(pow(10, die_between(&d, -6, 6)));
            total += x[j] = pow(10, die_between(&d, -20, 0));
            weight += share_of[j] = exp(logits[j] = as_float(die_between(&d, -30, 30)));
            trials += count[j] = (unsigned)die_below(&d, 30);
        }
        point at = {.family = rws_family_find("dirichlet"), .n_x = 3, .n_p = {3}};
        for (int j = 0; j < 3; j++) {
            at.x[j] = (float)(x[j] / total), at.p[0][j] = (float)a[j];
            x[j] = as_float(x[j] / total);
        }
        double want = gsl_ran_dirichlet_lnpdf(3, a, x);
        if (!near(by_engine(e, &at), want, 1e-4 * (1 + fabs(want))))
            fail_msg("dirichlet by %.9g, %.9g, %.9g at %.9g, %.9g, %.9g: %.9g, not %.9g", a[0], a[1], a[2], x[0], x[1],
                     x[2], by_engine(e, &at), want);

        at = (point){.family = rws_family_find("multinomial"), .n_x = 3, .n_p = {1, 3}};
        at.p[0][0] = (float)trials;
        for (int j = 0; j < 3; j++) {
            at.x[j] = (float)count[j], at.p[1][j] = (float)logits[j];
            share_of[j] /= weight;
        }
        want = gsl_ran_multinomial_lnpdf(3, share_of, count);
        if (!near(by_engine(e, &at), want, 1e-4 * (1 + fabs(want))))
            fail_msg("multinomial: %g, not %g", by_engine(e, &at), want);

        /* a factor of two rows, with any correlation */
        const double sx = pow(10, die_between(&d, -12, 12)), sy = pow(10, die_between(&d, -12, 12)),
                     rho = die_between(&d, -0.95, 0.95), zx = die_between(&d, -5, 5), zy = die_between(&d, -5, 5);
        at = (point){.family = rws_family_find("multivariate normal"), .n_x = 2, .n_p = {2, 4}};
        at.x[0] = (float)(sx * zx), at.x[1] = (float)(sy * zy);
        at.p[1][0] = (float)sx, at.p[1][2] = (float)(rho * sy), at.p[1][3] = (float)(sqrt(1 - rho * rho) * sy);
        want = log(gsl_ran_bivariate_gaussian_pdf((double)at.x[0], (double)at.x[1], sx, sy, rho));
        if (!near(by_engine(e, &at), want, 1e-4 * (1 + fabs(want))))
            fail_msg("multivariate normal: %g, not %g", by_engine(e, &at), want);
    }
    rws_engine_free(e);
}

/* ---- draws with extreme parameters are finite numbers of the support, with finite log-densities */

typedef struct {
    const rws_family *family;
    float             p[3][1];
    int               n;
} extreme;

static void draw_program(rws_path *path, void *context)
{
    const extreme *at = context;
    rws_var        p[3] = {{0}};
    for (int k = 0; k < at->n; k++) p[k] = rws_constants(path, at->p[k], 1);
    rws_path_side(path, RWS_SIDE_GUIDE);
    const rws_var v = rws_site_visit(path, "v", at->family, p);
    rws_path_side(path, RWS_SIDE_MODEL);
    rws_site_visit(path, "v", at->family, p);
    rws_path_side(path, RWS_SIDE_NONE);
    rws_path_output(path, 0, v);
}

static void extreme_draws_are_possible(void **state)
{
    (void)state;
    const rws_params  none = {0};
    const char *const names[] = {"exponential", "half-normal", "gamma",    "inverse gamma",
                                 "beta",        "log-normal",  "von mises"};
    rws_engine       *e = rws_engine_new(&none, (rws_field[1]){{0}}, 0, NULL);
    for (int f = 0; f < COUNT(names); f++)
        for (int i = 0; i < SPREAD * SPREAD; i++) {
            extreme   at = {.family = rws_family_find(names[f])};
            rws_error err = {""};
            at.n = at.family->n_params;
            at.p[0][0] = (float)ranges[f < 5 ? SHAPE : TAIL][i % SPREAD];
            at.p[1][0] = (float)ranges[SHAPE][i / SPREAD];
            const rws_pass pass = {.program = draw_program,
                                   .context = &at,
                                   .key = rws_key_for(1, 0, RWS_KEY_METRIC, 0),
                                   .n_data = 1,
                                   .n_particles = 20};
            if (rws_engine_forward(e, &pass, &err) != RWS_OK) fail_msg("%s: %s", names[f], err.text);
            const rws_scores *s = rws_engine_scores(e);
            for (int r = 0; r < s->n; r++) {
                const double x = s->out[0][r];
                const bool   inside = at.family->support == RWS_SUPPORT_POSITIVE ? x > 0
                                      : at.family->support == RWS_SUPPORT_UNIT   ? x > 0 && x < 1
                                                                                 : true;
                if (!isfinite(x) || !inside || isnan(s->log_q[r]))
                    fail_msg("%s by %g and %g drew %g, with the log-density %g", names[f], (double)at.p[0][0],
                             (double)at.p[1][0], x, s->log_q[r]);
            }
        }
    rws_engine_free(e);
}

int main(void)
{
    rws_error err;
    if (rws_gemm_init(&err) != RWS_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    gsl_set_error_handler_off();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(densities_are_those_of_gsl),
        cmocka_unit_test(vectors_are_those_of_gsl),
        cmocka_unit_test(extreme_draws_are_possible),
    };
    return cmocka_run_group_tests_name("dist_extremes", tests, NULL, NULL);
}
