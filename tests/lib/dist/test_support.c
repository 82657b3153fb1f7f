/* Guide and model may have different families at a site: densities are those of each side's own family, gradients pass
 * through the guide's sampler into the model's density, and families that do not fit are refused by name. */
#include "dist/dist.h"
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static rws_var number(rws_path *path, double x)
{
    return rws_constant(path, (float)x);
}

/* ---- pairs of families */

/* A visit of site "z": a family and its parameters, which have `dim` equal numbers. */
typedef struct {
    const char *family;
    double      p[4];
    int         dim;
} visit;

static double log_choice(double x, double n, double p)
{
    return lgamma(n + 1) - lgamma(x + 1) - lgamma(n - x + 1) + x * log(p) + (n - x) * log1p(-p);
}

/* The log-density of one number, in double. */
static double density(const visit *v, double x)
{
    const double *p = v->p, pi = acos(-1);
    if (strcmp(v->family, "gamma") == 0) return p[0] * log(p[1]) + (p[0] - 1) * log(x) - p[1] * x - lgamma(p[0]);
    if (strcmp(v->family, "log-normal") == 0) return -pow((log(x) - p[0]) / p[1], 2) / 2 - log(p[1] * x * sqrt(2 * pi));
    if (strcmp(v->family, "uniform") == 0) return -log(p[1] - p[0]);
    if (strcmp(v->family, "beta") == 0)
        return (p[0] - 1) * log(x) + (p[1] - 1) * log1p(-x) + lgamma(p[0] + p[1]) - lgamma(p[0]) - lgamma(p[1]);
    if (strcmp(v->family, "normal") == 0) return -pow((x - p[0]) / p[1], 2) / 2 - log(p[1] * sqrt(2 * pi));
    if (strcmp(v->family, "laplace") == 0) return -fabs(x - p[0]) / p[1] - log(2 * p[1]);
    if (strcmp(v->family, "binomial") == 0) return log_choice(x, p[0], 1 / (1 + exp(-p[1])));
    if (strcmp(v->family, "poisson") == 0) return x * log(p[0]) - p[0] - lgamma(x + 1);
    if (strcmp(v->family, "geometric") == 0) return -log1p(exp(-p[0])) - x * log1p(exp(p[0]));
    if (strcmp(v->family, "categorical") == 0) return -log(p[0]); /* p[0] equal choices */
    if (strncmp(v->family, "bernoulli", 9) == 0) return x * p[0] - log1p(exp(p[0]));
    fail_msg("no density of %s", v->family);
    return 0;
}

static rws_var site(rws_path *path, const visit *v)
{
    const rws_family *f = rws_family_find(v->family);
    rws_var           p[RWS_FAMILY_PARAMS];
    const rws_var     ones = rws_affine(path, rws_zeros(path, v->dim ? v->dim : 1), 1, 1);
    if (strcmp(v->family, "categorical") == 0) return rws_categorical(path, "z", rws_zeros(path, (int)v->p[0]));
    for (int i = 0; i < f->n_params; i++) p[i] = rws_mul(path, ones, number(path, v->p[i]));
    return rws_site_visit(path, "z", f, p);
}

/* Two components of one family, the second with its first parameter moved; their equal weights are not in `density`. */
static void mix(rws_path *path, const visit *v)
{
    const rws_family *f = rws_family_find(v->family);
    rws_var           one[RWS_FAMILY_PARAMS], two[RWS_FAMILY_PARAMS];
    for (int i = 0; i < f->n_params; i++) one[i] = two[i] = number(path, v->p[i]);
    two[0] = number(path, v->p[0] + 1);
    rws_mixture(path, "z", rws_zeros(path, 2), (rws_component[]){{f, one}, {f, two}}, 2);
}

static void programs(rws_path *path, void *context)
{
    const visit *pair = context; /* the guide's, the model's */
    const bool   sleep = rws__path_pass(path)->mode == RWS_SLEEP;
    for (int i = 0; i < 2; i++) {
        const int at = sleep ? 1 - i : i;
        rws__path_side(path, at ? RWS_SIDE_MODEL : RWS_SIDE_GUIDE);
        if (pair[at].dim < 0) mix(path, &pair[at]);
        else site(path, &pair[at]);
    }
    rws__path_side(path, RWS_SIDE_NONE);
}

typedef struct {
    double value[8];
    int    dim;
} found;

static void note(void *context, const rws_choice *c)
{
    found *f = context;
    f->dim = c->dim;
    for (int i = 0; i < c->dim; i++) f->value[i] = (double)c->value[i];
}

static void check_rows(rws_engine *e, const visit *pair, rws_mode mode)
{
    const rws_scores *s = rws__engine_scores(e);
    for (int row = 0; row < s->n; row++) {
        found  f = {.dim = 0};
        double log_q = 0, log_p = 0;
        assert_int_equal(rws__engine_choices(e, row, note, &f), RWS_OK);
        for (int j = 0; j < f.dim; j++) log_q += density(&pair[0], f.value[j]), log_p += density(&pair[1], f.value[j]);
        assert_true(fabs(s->log_q[row] - log_q) < 2e-4 * (1 + fabs(log_q)));
        if (mode == RWS_WAKE) assert_true(fabs(s->log_p[row] - log_p) < 2e-4 * (1 + fabs(log_p)));
    }
}

static void run(const visit *pair, rws_pass pass, const char *sentence)
{
    const rws_params none = {0};
    rws_engine      *e = rws__engine_new(&none, (rws_field[1]){{0}}, 0, NULL);
    rws_error        err = {""};
    pass.program = programs;
    pass.context = (void *)pair;
    pass.n_data = 1;
    pass.n_particles = 200;
    pass.choices = true;
    const rws_status status = rws__engine_forward(e, &pass, &err);
    if (sentence ? status != RWS_BAD_INPUT || !strstr(err.text, sentence) : status != RWS_OK)
        fail_msg("%s for %s: status %d, \"%s\" instead of \"%s\"", pair[0].family, pair[1].family, status, err.text,
                 sentence ? sentence : "");
    if (!sentence && pair[0].dim >= 0) check_rows(e, pair, pass.mode);
    rws__engine_free(e);
}

static void run_all(const visit *pair, const char *sentence)
{
    for (int scalar = 0; scalar < 2; scalar++) {
        run(pair, (rws_pass){.mode = RWS_WAKE, .scalar = scalar}, sentence);
        run(pair, (rws_pass){.mode = RWS_WAKE, .scalar = scalar, .pathwise = true}, sentence);
        run(pair, (rws_pass){.mode = RWS_SLEEP, .scalar = scalar}, sentence);
    }
}

static void each_side_has_its_own_density(void **unused)
{
    (void)unused;
    const visit pairs[][2] = {
        {{"log-normal", {0.3, 0.5}}, {"gamma", {2, 1.5}}},
        {{"gamma", {2, 1.5}, 3}, {"log-normal", {0.3, 0.5}, 3}},
        {{"beta", {2, 3}}, {"uniform", {0, 1}}},
        {{"uniform", {0, 1}}, {"beta", {2, 3}}},
        {{"laplace", {0.5, 1}, 2}, {"normal", {0, 2}, 2}},
        {{"categorical", {5}}, {"binomial", {4, 0.4}}},
        {{"binomial", {4, 0.4}}, {"categorical", {5}}},
        {{"categorical", {2}}, {"bernoulli", {0.7}}},
        {{"binomial", {1, 0.4}}, {"bernoulli", {0.7}}},
        {{"geometric", {0.2}}, {"poisson", {2}}},
        {{"normal", {0, 1}, -1}, {"laplace", {0.5, 1}}},
        {{"log-normal", {0, 1}, -1}, {"gamma", {2, 1.5}}},
        {{"uniform", {0, 2}, -1}, {"truncated normal", {0, 1, 0, 2}}},
    };
    for (int i = 0; i < COUNT(pairs); i++) run_all(pairs[i], NULL);
}

static void families_that_do_not_fit_are_named(void **unused)
{
    (void)unused;
    const struct {
        visit       pair[2];
        const char *sentence;
    } list[] = {
        {{{"normal", {0, 1}}, {"gamma", {2, 2}}}, "use a family such as gamma or log-normal."},
        {{{"gamma", {2, 2}}, {"normal", {0, 1}}}, "use a family such as normal, student t or laplace."},
        {{{"beta", {2, 2}}, {"uniform", {0, 2}}},
         "uniform has values from 0 to 2 in the model and beta from 0 to 1 in the guide, which cannot reach all of "
         "them. "
         "Give both the same bounds."},
        {{{"uniform", {-1, 1}}, {"beta", {2, 2}}},
         "beta has values from 0 to 1 in the model and uniform from -1 to 1 in the guide, which draws values that are "
         "impossible."},
        {{{"poisson", {2}}, {"normal", {0, 1}}}, "use a family such as normal"},
        {{{"categorical", {4}}, {"binomial", {4, 0.4}}},
         "binomial has values from 0 to 4 in the model and categorical from 0 to 3 in the guide, which cannot reach"},
        {{{"categorical", {9}}, {"poisson", {2}}}, "(a choice of 0 to 8)"},
        {{{"poisson", {2}}, {"categorical", {9}}}, "use a family such as categorical, with as many choices."},
        {{{"normal", {0, 1}}, {"von mises", {0, 1}}}, "von mises (an angle)"},
        {{{"normal", {0, 1}}, {"delta", {0}}}, "delta (a number that is certain)"},
    };
    for (int i = 0; i < COUNT(list); i++) {
        run(list[i].pair, (rws_pass){.mode = RWS_WAKE}, list[i].sentence);
        run(list[i].pair, (rws_pass){.mode = RWS_WAKE, .scalar = true}, list[i].sentence);
        run(list[i].pair, (rws_pass){.mode = RWS_SLEEP}, list[i].sentence);
    }
}

/* Parameters of one number hold for each number of a value that the other side has drawn; who draws says how many there are. */
static void single_numbers_are_spread(void **unused)
{
    (void)unused;
    const struct {
        visit       pair[2]; /* several numbers in the guide, one in the model */
        const char *sentence;
    } list[] = {
        {{{"normal", {0.5, 2}, 3}, {"normal", {0, 1}}}, "in the guide and 1 in the model; a model that dreams"},
        {{{"log-normal", {0, 1}, 2}, {"gamma", {2, 2}}}, "Site \"z\" has 2 numbers in the guide and 1 in the model"},
        {{{"poisson", {3}, 2}, {"poisson", {2}}}, "Site \"z\" has size 2 in the guide and 1 in the model"},
        {{{"bernoulli vector", {0.3}, 3}, {"bernoulli", {0.7}}},
         "Site \"z\" has 3 numbers in the guide and 1 in the model"},
    };
    for (int i = 0; i < COUNT(list); i++)
        for (int scalar = 0; scalar < 2; scalar++) {
            const visit turned[] = {list[i].pair[1], list[i].pair[0]};
            run(list[i].pair, (rws_pass){.mode = RWS_WAKE, .scalar = scalar}, NULL);
            run(list[i].pair, (rws_pass){.mode = RWS_SLEEP, .scalar = scalar}, list[i].sentence);
            run(turned, (rws_pass){.mode = RWS_SLEEP, .scalar = scalar}, NULL);
            run(turned, (rws_pass){.mode = RWS_WAKE, .scalar = scalar}, "in the model and 1 in the guide");
        }
}

static void a_guide_may_count_further(void **unused)
{
    (void)unused;
    const visit      pair[] = {{"poisson", {3}}, {"binomial", {2, 0.4}}};
    const rws_params none = {0};
    rws_engine      *e = rws__engine_new(&none, (rws_field[1]){{0}}, 0, NULL);
    const rws_pass   pass = {
          .program = programs, .context = (void *)pair, .n_data = 1, .n_particles = 200, .choices = true};
    assert_int_equal(rws__engine_forward(e, &pass, NULL), RWS_OK);
    const rws_scores *s = rws__engine_scores(e);
    int               beyond = 0;
    for (int row = 0; row < s->n; row++) {
        found f = {.dim = 0};
        assert_int_equal(rws__engine_choices(e, row, note, &f), RWS_OK);
        beyond += f.value[0] > 2;
        assert_true((s->log_p[row] == -INFINITY) == (f.value[0] > 2));
    }
    assert_true(beyond > 0);
    rws__engine_free(e);
}

/* ---- bounds that a guide makes of the datum */

static void narrow_guide(rws_path *path, const void *state)
{
    const bool    fixed = *(const bool *)state;
    const rws_var x = fixed ? number(path, 0.5) : rws_observed(path, "x");
    rws_truncated_normal(path, "z", x, number(path, 1), rws_affine(path, x, 1, -0.25f), rws_affine(path, x, 1, 0.25f));
}

static void wide_model(rws_path *path, const void *state)
{
    (void)state;
    const rws_var z = rws_uniform(path, "z", number(path, 0), number(path, 10));
    rws_uniform(path, "x", rws_affine(path, z, 1, -0.25f), rws_affine(path, z, 1, 0.25f));
}

static void a_guide_may_narrow_by_the_datum(void **unused)
{
    (void)unused;
    const rws_params none = {0};
    const rws_field  field = {"x", 1};
    const float      x[] = {0.5f, 3, 9.9f}, *fields[] = {x};
    const rws_model  m = {.guide = narrow_guide, .model = wide_model};
    for (int fixed = 0; fixed < 2; fixed++)
        for (int n = 2; n < 4; n++) { /* the last datum has bounds beyond the model's */
            const bool       state = fixed;
            rws_engine      *e = rws__engine_new(&none, &field, 1, NULL);
            rws_error        err = {""};
            const rws_pass   pass = {.model = &m, .state = &state, .n_data = n, .n_particles = 4, .fields = fields};
            const rws_status status = rws__engine_forward(e, &pass, &err);
            assert_int_equal(status, fixed || n == 3 ? RWS_BAD_INPUT : RWS_OK);
            if (fixed) assert_non_null(strstr(err.text, "which cannot reach all of them"));
            else if (n == 3) assert_non_null(strstr(err.text, "which draws values that are impossible"));
            rws__engine_free(e);
        }
}

/* ---- gradients through the guide's sampler into the model's density */

typedef struct {
    rws_params params;
    rws_param *mean;
} moving;

static void moving_programs(rws_path *path, void *context)
{
    const moving *m = context;
    rws__path_side(path, RWS_SIDE_GUIDE);
    rws_log_normal(path, "z", rws_parameter(path, m->mean), number(path, 0.5));
    rws__path_side(path, RWS_SIDE_MODEL);
    rws_gamma(path, "z", number(path, 2.5), number(path, 1.5));
    rws__path_side(path, RWS_SIDE_NONE);
}

/* The sum of log p - log q over the particles, and its gradient by the mean of the guide. */
static double bound(moving *m, bool pathwise, double *slope)
{
    rws_engine    *e = rws__engine_new(&m->params, (rws_field[1]){{0}}, 0, NULL);
    const rws_pass pass = {.program = moving_programs,
                           .context = m,
                           .groups = 1u << RWS_PHI,
                           .pathwise = pathwise,
                           .n_data = 1,
                           .n_particles = 50};
    float          gradient[16] = {0};
    double         total = 0;
    assert_int_equal(rws__engine_forward(e, &pass, NULL), RWS_OK);
    rws_scores *s = rws__engine_scores(e);
    for (int i = 0; i < s->n; i++) {
        total += (double)s->count[i] * (s->log_p[i] - s->log_q[i]);
        s->coef_p[i] = s->count[i];
        *(pathwise ? &s->coef_r[i] : &s->coef_q[i]) = -(double)s->count[i];
    }
    assert_int_equal(rws__engine_backward(e, 1u << RWS_PHI, gradient, NULL), RWS_OK);
    *slope = (double)gradient[m->mean->offset];
    rws__engine_free(e);
    return total;
}

static void gradients_pass_through_the_guide(void **unused)
{
    (void)unused;
    moving      m = {{0}, NULL};
    const float h = 1e-2f;
    double      slope, other, score = 0;
    m.mean = rws__params_add(&m.params, RWS_PHI, "mean", 1, 1);
    assert_true(rws__params_pack(&m.params));
    m.mean->value[0] = 0.2f;
    bound(&m, true, &slope);
    bound(&m, false, &score);
    m.mean->value[0] = 0.2f + h;
    const double up = bound(&m, true, &other);
    m.mean->value[0] = 0.2f - h;
    const double down = bound(&m, true, &other);
    assert_true(fabs((up - down) / (2 * (double)h) - slope) < 1e-3 * (1 + fabs(slope)));
    assert_true(fabs(score - slope) > 0.1); /* a drawn value is a constant there: log p has no slope */
    rws__params_release(&m.params);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_side_has_its_own_density),   cmocka_unit_test(families_that_do_not_fit_are_named),
        cmocka_unit_test(single_numbers_are_spread),       cmocka_unit_test(a_guide_may_count_further),
        cmocka_unit_test(a_guide_may_narrow_by_the_datum), cmocka_unit_test(gradients_pass_through_the_guide),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
