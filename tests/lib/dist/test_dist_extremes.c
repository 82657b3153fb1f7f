/* test_dist_extremes.c - every family's log-density against the GNU Scientific Library, over wide ranges of parameters and
 * values. Where GSL's own density leaves the range of a double the point is left out. A family that is in rws_families but
 * not in this table fails. */
#include "dist/dist.h"

#include "support.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_randist.h>
#include <gsl/gsl_sf_bessel.h>
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
    rws__path_output(path, 0, rws_log_density(path, at->family, rws_constants(path, at->x, at->n_x), p));
}

static double by_engine(rws_engine *e, point *at)
{
    rws_error      err = {""};
    const rws_pass pass = {.program = program, .context = at, .mode = RWS_COMPUTE, .n_data = 1, .n_particles = 1};
    if (rws__engine_forward(e, &pass, &err) != RWS_OK)
        fail_msg("%s at %g by %g and %g: %s", at->family->name, (double)at->x[0], (double)at->p[0][0],
                 (double)at->p[1][0], err.text);
    return rws__engine_scores(e)->out[0][0];
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
    rws_engine      *e = rws__engine_new(&none, (rws_field[1]){{0}}, 0, NULL);
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
    rws__engine_free(e);
}

static void vectors_are_those_of_gsl(void **state)
{
    (void)state;
    const rws_params none = {0};
    rws_engine      *e = rws__engine_new(&none, (rws_field[1]){{0}}, 0, NULL);
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

        /* near its mode, where rounded probabilities would be multiplied by the trials */
        const double scale = pow(10, die_between(&d, 1, 7.2));
        for (int j = weight = trials = 0; j < 3; j++) {
            weight += share_of[j] = exp(logits[j] = as_float(die_between(&d, -2, 2)));
            at.p[1][j] = (float)logits[j];
        }
        for (int j = 0; j < 3; j++) {
            share_of[j] /= weight;
            trials += count[j] = (unsigned)(scale * share_of[j] + sqrt(scale) * die_between(&d, 0, 0.5));
            at.x[j] = (float)count[j];
        }
        at.p[0][0] = (float)trials;
        want = gsl_ran_multinomial_lnpdf(3, share_of, count);
        if (!near(by_engine(e, &at), want, 1e-3))
            fail_msg("multinomial of %u trials: %g, not %g", trials, by_engine(e, &at), want);

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
    rws__engine_free(e);
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
    rws__path_side(path, RWS_SIDE_GUIDE);
    const rws_var v = rws_site_visit(path, "v", at->family, p);
    rws__path_side(path, RWS_SIDE_MODEL);
    rws_site_visit(path, "v", at->family, p);
    rws__path_side(path, RWS_SIDE_NONE);
    rws__path_output(path, 0, v);
}

static void extreme_draws_are_possible(void **state)
{
    (void)state;
    const rws_params  none = {0};
    const char *const names[] = {"exponential", "half-normal", "gamma",    "inverse gamma",
                                 "beta",        "log-normal",  "von mises"};
    rws_engine       *e = rws__engine_new(&none, (rws_field[1]){{0}}, 0, NULL);
    for (int f = 0; f < COUNT(names); f++)
        for (int i = 0; i < SPREAD * SPREAD; i++) {
            extreme   at = {.family = rws_family_find(names[f])};
            rws_error err = {""};
            at.n = at.family->n_params;
            at.p[0][0] = (float)ranges[f < 5 ? SHAPE : TAIL][i % SPREAD];
            at.p[1][0] = (float)ranges[SHAPE][i / SPREAD];
            const rws_pass pass = {.program = draw_program,
                                   .context = &at,
                                   .key = rws__key_for(1, 0, RWS_KEY_METRIC, 0),
                                   .n_data = 1,
                                   .n_particles = 20};
            if (rws__engine_forward(e, &pass, &err) != RWS_OK) fail_msg("%s: %s", names[f], err.text);
            const rws_scores *s = rws__engine_scores(e);
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
    rws__engine_free(e);
}

/* With many degrees of freedom a Student t number is nearly the normal noise behind it, and hardly moves with them: its
 * derivative by the log of the degrees is below 5 / sqrt(degrees). */
extern const rws_op rws_op_student_t_draw;

static void many_degrees_of_freedom_are_normal(void **state)
{
    (void)state;
    const float chances[] = {1e-6f, 0.1f, 0.5f, 0.9f, 0.999999f}, location = 0, scale = 1, noise = 1, gout = 1;
    rws_arena   arena = {0};
    for (float degrees = 1e3f; degrees < 2e12f; degrees *= 10)
        for (int i = 0; i < COUNT(chances); i++) {
            float    out, by_degrees = 0;
            rws_call c = {.op = &rws_op_student_t_draw,
                          .n = 1,
                          .dim = 1,
                          .n_in = 5,
                          .in = {{.data = &degrees, .dim = 1},
                                 {.data = &location, .dim = 1},
                                 {.data = &scale, .dim = 1},
                                 {.data = &chances[i], .dim = 1},
                                 {.data = &noise, .dim = 1}},
                          .gin = {{.data = &by_degrees}},
                          .out = &out,
                          .gout = &gout,
                          .arena = &arena};
            c.op->forward(&c);
            c.op->backward(&c);
            const double least = 5 / sqrt((double)degrees) + 1e-6;
            if (!near((double)out, 1, least) || !near((double)by_degrees * (double)degrees, 0, least))
                fail_msg("by %g degrees and %g: %.9g, with a slope of %g", (double)degrees, (double)chances[i],
                         (double)out, (double)by_degrees * (double)degrees);
        }
    rws__arena_free(&arena);
}

/* Log-densities with large parameters, by mpmath with 60 digits at these floats. */
static const struct {
    const char *family;
    double      x, p[3], want;
} large[] = {
    /* clang-format off */
    {"beta", 0.999997973, {1000000, 2}, 12.4952923578309},
    {"beta", 0.999999404, {1000000, 2}, 12.7020288461404},
    {"beta", 0.999993742, {1000000, 2}, 9.39094910532229},
    {"beta", 0.5, {1000000, 1000000}, 7.02853739161738},
    {"beta", 0.500353575, {1000000, 1000000}, 6.52847734335581},
    {"beta", 0.498939335, {1000000, 1000000}, 2.52849373536736},
    {"beta", 9.99998974e-07, {1000000, 9.99999996e+11}, 19.8043287456708},
    {"beta", 1.00099896e-06, {1000000, 9.99999996e+11}, 19.3037011826026},
    {"beta", 9.96999006e-07, {1000000, 9.99999996e+11}, 15.2983052206723},
    {"poisson", 1000000, {1000000}, -7.82669389552014},
    {"gamma", 1000, {1000000, 1000}, -0.918938616538006},
    {"inverse gamma", 0.00100000005, {1000000, 1000}, 12.8965718928008},
    {"binomial", 622459, {1000000, 0.5}, -7.10261750525424},
    {"negative binomial", 1648721, {1000000, 0.5}, -8.5637322818886},
    {"binomial", 335, {1000000, -8}, -3.82626793330748},
    {"negative binomial", 335, {1000000, -8}, -3.826739066141},
    {"poisson", 1001000, {1000000}, -8.32702706222013},
    {"gamma", 1001, {1000000, 1000}, -1.41960503333792},
    {"inverse gamma", 0.000999000971, {1000000, 1000}, 12.397876729466},
    {"binomial", 622944, {1000000, 0.5}, -7.60223574958154},
    {"negative binomial", 1650811, {1000000, 0.5}, -9.06441364620973},
    {"binomial", 354, {1000000, -8}, -4.36305338402339},
    {"negative binomial", 354, {1000000, -8}, -4.35682523742591},
    {"poisson", 997000, {1000000}, -12.3296984034351},
    {"gamma", 997, {1000000, 1000}, -5.42495440623952},
    {"inverse gamma", 0.00100300903, {1000000, 1000}, 8.38452547319065},
    {"binomial", 621005, {1000000, 0.5}, -11.6012022710781},
    {"negative binomial", 1642452, {1000000, 0.5}, -13.0700020761396},
    {"binomial", 280, {1000000, -8}, -8.580200146471},
    {"negative binomial", 281, {1000000, -8}, -8.41889348679974},
    {"student t", 0, {1000000, 0, 1}, -0.918938783204673},
    {"student t", 2.5, {1000000, 0, 1}, -4.0439321426106},
    {"student t", 1000, {1000000, 0, 1}, -346574.855792346},
    {"beta", 0.99999994, {100000000, 2}, 14.2453645688959},
    {"beta", 0.990099013, {100000000, 1000000}, 10.6089125948937},
    {"beta", 0.990108848, {100000000, 1000000}, 10.1110031707745},
    {"beta", 0.990069449, {100000000, 1000000}, 6.11316943863229},
    {"beta", 9.99900003e-05, {100000000, 9.99999996e+11}, 17.5018922032663},
    {"beta", 9.99999975e-05, {100000000, 9.99999996e+11}, 17.0020691369212},
    {"beta", 9.99600088e-05, {100000000, 9.99999996e+11}, 13.0021630536261},
    {"poisson", 100000000, {100000000}, -10.1292789060142},
    {"gamma", 100000, {100000000, 1000}, -3.22152362703205},
    {"inverse gamma", 9.99999975e-06, {100000000, 1000}, 19.8043272962618},
    {"binomial", 62245932, {100000000, 0.5}, -9.40520195624847},
    {"negative binomial", 164872128, {100000000, 0.5}, -10.8663174038612},
    {"binomial", 33535, {100000000, -8}, -6.12894579185536},
    {"negative binomial", 33546, {100000000, -8}, -6.12944620331952},
    {"poisson", 100010000, {100000000}, -10.6293122376809},
    {"gamma", 100010, {100000000, 1000}, -3.72159029119885},
    {"inverse gamma", 9.99900021e-06, {100000000, 1000}, 19.3045733338888},
    {"binomial", 62250780, {100000000, 0.5}, -9.90501216010755},
    {"negative binomial", 164893024, {100000000, 0.5}, -11.3663646167611},
    {"binomial", 33718, {100000000, -8}, -6.63017058950535},
    {"negative binomial", 33729, {100000000, -8}, -6.62881204846879},
    {"poisson", 99970000, {100000000}, -14.6295789510221},
    {"gamma", 99970, {100000000, 1000}, -7.72212378457166},
    {"inverse gamma", 1.00030011e-05, {100000000, 1000}, 15.3025883093788},
    {"binomial", 62231392, {100000000, 0.5}, -13.9037916708261},
    {"negative binomial", 164809440, {100000000, 0.5}, -15.3662083554128},
    {"binomial", 32986, {100000000, -8}, -10.6409693422889},
    {"negative binomial", 32997, {100000000, -8}, -10.641048740894},
    {"student t", 0, {100000000, 0, 1}, -0.918938535704673},
    {"student t", 2.5, {100000000, 0, 1}, -4.04393846929843},
    {"student t", 1000, {100000000, 0, 1}, -497517.466572105},
    {"beta", 0.999899983, {1e+10, 1000000}, 15.1636775886357},
    {"beta", 0.999900103, {1e+10, 1000000}, 14.770950388731},
    {"beta", 0.999899685, {1e+10, 1000000}, 9.937080793523},
    {"beta", 0.00990098994, {1e+10, 9.99999996e+11}, 15.2140806322538},
    {"beta", 0.00990108866, {1e+10, 9.99999996e+11}, 14.7140278411732},
    {"beta", 0.00990069471, {1e+10, 9.99999996e+11}, 10.7179642121975},
    {"poisson", 1e+10, {1e+10}, -12.4318639981832},
    {"gamma", 10000000, {1e+10, 1000}, -5.5241087192011},
    {"inverse gamma", 1.00000001e-07, {1e+10, 1000}, 26.7120818882051},
    {"binomial", 6.22459341e+09, {1e+10, 0.5}, -11.7077889690829},
    {"negative binomial", 1.64872131e+10, {1e+10, 0.5}, -13.1689039019974},
    {"binomial", 3353501, {1e+10, -8}, -8.43152858508602},
    {"negative binomial", 3354626, {1e+10, -8}, -8.43203169620085},
    {"poisson", 1.00001004e+10, {1e+10}, -12.9353935266378},
    {"gamma", 10000100, {1e+10, 1000}, -6.02411538584276},
    {"inverse gamma", 9.99989993e-08, {1e+10, 1000}, 26.2113890187091},
    {"binomial", 6.22464154e+09, {1e+10, 0.5}, -12.2025758942319},
    {"negative binomial", 1.6487422e+10, {1e+10, 0.5}, -13.6702081590864},
    {"binomial", 3355332, {1e+10, -8}, -8.93157159871652},
    {"negative binomial", 3356458, {1e+10, -8}, -8.93213182782242},
    {"poisson", 9.99969997e+09, {1e+10}, -16.932854062635},
    {"gamma", 9999700, {1e+10, 1000}, -10.0241687207761},
    {"inverse gamma", 1.00003e-07, {1e+10, 1000}, 22.2132555970169},
    {"binomial", 6.224448e+09, {1e+10, 0.5}, -16.2003781168941},
    {"negative binomial", 1.64865853e+10, {1e+10, 0.5}, -17.6753080286013},
    {"binomial", 3348008, {1e+10, -8}, -12.9339144981014},
    {"negative binomial", 3349131, {1e+10, -8}, -12.9331241534428},
    {"student t", 0, {1e+10, 0, 1}, -0.918938533229673},
    {"student t", 2.5, {1e+10, 0, 1}, -4.04393853256561},
    {"student t", 1000, {1e+10, 0, 1}, -499975.920655072},
    {"beta", 0.999998987, {9.99999996e+11, 1000000}, -67.6147769180359},
    {"beta", 0.999998987, {9.99999996e+11, 1000000}, -67.6147769180359},
    {"beta", 0.999998987, {9.99999996e+11, 1000000}, -67.6147769180359},
    {"beta", 0.5, {9.99999996e+11, 9.99999996e+11}, 13.9362927935514},
    {"beta", 0.500000358, {9.99999996e+11, 9.99999996e+11}, 13.4247020259},
    {"beta", 0.499998927, {9.99999996e+11, 9.99999996e+11}, 9.33197588467923},
    {"poisson", 9.99999996e+11, {9.99999996e+11}, -14.734449089121},
    {"gamma", 1e+09, {9.99999996e+11, 1000}, -7.8267022028429},
    {"inverse gamma", 9.99999972e-10, {9.99999996e+11, 1000}, 33.6193137227002},
    {"binomial", 6.22459355e+11, {9.99999996e+11, 0.5}, -14.0118643833826},
    {"negative binomial", 1.64872126e+12, {9.99999996e+11, 0.5}, -15.4714876365436},
    {"binomial", 335350144, {9.99999996e+11, -8}, -10.7341140366549},
    {"negative binomial", 335462624, {9.99999996e+11, -8}, -10.7346167983115},
    {"poisson", 1.00000098e+12, {9.99999996e+11}, -15.2176332450903},
    {"gamma", 1.00000102e+09, {9.99999996e+11, 1000}, -8.35518517078123},
    {"inverse gamma", 9.99998973e-10, {9.99999996e+11, 1000}, 33.0877609025133},
    {"binomial", 6.22459814e+11, {9.99999996e+11, 0.5}, -14.511329391676},
    {"negative binomial", 1.64872336e+12, {9.99999996e+11, 0.5}, -15.9753754526416},
    {"binomial", 335368448, {9.99999996e+11, -8}, -11.2346459715506},
    {"negative binomial", 335480960, {9.99999996e+11, -8}, -11.2354411048162},
    {"poisson", 9.99996981e+11, {9.99999996e+11}, -19.2785275658529},
    {"gamma", 999996992, {9.99999996e+11, 1000}, -12.3384194805205},
    {"inverse gamma", 1.00000297e-09, {9.99999996e+11, 1000}, 29.223574943631},
    {"binomial", 6.22457848e+11, {9.99999996e+11, 0.5}, -18.6760408911337},
    {"negative binomial", 1.64871497e+12, {9.99999996e+11, 0.5}, -20.002484306281},
    {"binomial", 335295200, {9.99999996e+11, -8}, -15.2343762097511},
    {"negative binomial", 335407680, {9.99999996e+11, -8}, -15.2332079461621},
    {"student t", 0, {9.99999996e+11, 0, 1}, -0.918938533204923},
    {"student t", 2.5, {9.99999996e+11, 0, 1}, -4.04393853319828},
    {"student t", 1000, {9.99999996e+11, 0, 1}, -500000.668939199},
    {"negative binomial", 30000000, {2, 15}, -21.9603608502564},
    {"negative binomial", 0, {1e+09, -20}, -2.06115362031438},
    {"negative binomial", 5, {9.99999996e+11, -26}, -1.7414751907583},
    {"binomial", 0, {9.99999996e+11, -28}, -0.691440007861643},
    {"binomial", 3, {9.99999996e+11, -27}, -1.77822494257218},
    {"binomial", 16777216, {16777216, 20}, -0.0345804194971964},
    /* clang-format on */
};

static void large_parameters_keep_their_digits(void **state)
{
    (void)state;
    const rws_params none = {0};
    rws_engine      *e = rws__engine_new(&none, (rws_field[1]){{0}}, 0, NULL);
    for (int i = 0; i < COUNT(large); i++) {
        const rws_family *f = rws_family_find(large[i].family);
        point             at = point_at(f, large[i].x, large[i].p, f->n_params);
        const double      got = by_engine(e, &at);
        if (!near(got, large[i].want, 1e-6 * (1 + fabs(large[i].want))))
            fail_msg("%s at %.9g by %.9g and %.9g: %.9g, not %.9g", f->name, large[i].x, large[i].p[0], large[i].p[1],
                     got, large[i].want);
    }
    rws__engine_free(e);
}

int main(void)
{
    gsl_set_error_handler_off();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(densities_are_those_of_gsl),         cmocka_unit_test(vectors_are_those_of_gsl),
        cmocka_unit_test(extreme_draws_are_possible),         cmocka_unit_test(many_degrees_of_freedom_are_normal),
        cmocka_unit_test(large_parameters_keep_their_digits),
    };
    return cmocka_run_group_tests_name("dist_extremes", tests, NULL, NULL);
}
