/* test_dist_gradients.c - every family's gradients against central differences, its scores, whose mean is known, and its
 * gradients through a draw, against exact ones. */
#include "families.h"

#include <string.h>

/* ---- scores: the mean of the gradient of log q by its parameters is zero, unless they move the support */

static double expected_score(const bench *b, size_t i)
{
    if (b->subject->support == BOUNDED) { /* a bound that moves by 1 moves the mass by the density at the bound */
        const setting *s = b->setting;
        double         total = 0, p[PARAMETERS];
        int            k = 0;
        for (; i >= (size_t)numbers_in(s, k); k++) i -= (size_t)numbers_in(s, k);
        for (int j = 0; k >= 2 && j < longer(s); j++) {
            parameters_of(s, j, p);
            if ((numbers_in(s, k) == 1 || (size_t)j == i) && isfinite(p[k]))
                total += (k == 2 ? 1 : -1) * exp(b->subject->term(p[k], p));
        }
        return total;
    }
    if (b->subject->density != uniform_density) return 0;
    /* the density changes by 1 / (high - low) everywhere, and the moving ends of the interval compensate for it */
    const bool   high = i >= (size_t)b->setting->n_a;
    double       total = 0;
    const size_t j = high ? i - (size_t)b->setting->n_a : i;
    for (int k = 0; k < longer(b->setting); k++) {
        if ((high ? b->setting->n_b : b->setting->n_a) != 1 && (size_t)k != j) continue;
        const double width = part(b->setting->b, b->setting->n_b, k) - part(b->setting->a, b->setting->n_a, k);
        total += high ? -1 / width : 1 / width;
    }
    return total;
}

/* Tests means of batches, whose spread gives the standard error. */
static double look_at_gradients(bench *b, int round, int wide, double (*expected)(const bench *, size_t),
                                void (*weigh)(rws_scores *s, int row, double by))
{
    enum { EACH = 1000 };
    const size_t n = b->params.size, batches = 32 * (size_t)wide;
    float       *gradient = malloc(n * sizeof *gradient);
    double      *mean = malloc(n * batches * sizeof *mean), p = 1;
    for (size_t i = 0; i < batches; i++) {
        rws_scores *s = bench_draw(b, 1000 * (uint64_t)(round + 1) + i, 1, EACH);
        for (int r = 0; r < s->n; r++) weigh(s, r, (double)s->count[r] / EACH);
        memset(gradient, 0, n * sizeof *gradient);
        rws__engine_backward(b->engine, 1u << RWS_PHI, gradient, NULL);
        for (size_t j = 0; j < n; j++) mean[j * batches + i] = (double)gradient[j];
    }
    for (size_t j = 0; j < n; j++) {
        const double want = expected(b, j);
        p = fmin(p, mean_tail(mean + j * batches, batches, want, 1e-5 * (1 + fabs(want))));
    }
    free(gradient), free(mean);
    return fmin(1, (double)n * p);
}

static void weigh_q(rws_scores *s, int row, double by)
{
    s->coef_q[row] = by;
}

static void weigh_p(rws_scores *s, int row, double by)
{
    s->coef_p[row] = by;
}

static void weigh_out(rws_scores *s, int row, double by)
{
    s->coef_out[0][row] = by;
}

static double look_at_scores(void *context, int round, int wide)
{
    return look_at_gradients(context, round, wide, expected_score, weigh_q);
}

static double look_at_model_scores(void *context, int round, int wide)
{
    return look_at_gradients(context, round, wide, expected_score, weigh_p);
}

static void check_scores(bench *b, int which)
{
    stays_likely(named(b, which, "scores of the guide"), look_at_scores, b);
    stays_likely(named(b, which, "scores of the model"), look_at_model_scores, b);
}

static void scores_have_their_mean(void **state)
{
    (void)state;
    walk(check_scores);
}

/* ---- gradients through a draw */

/* The settings with parameter i (those of a first) moved up and down by h. */
static void move(const bench *b, size_t i, double h, setting *up, setting *down)
{
    int k = 0;
    *up = *down = *b->setting;
    for (; i >= (size_t)numbers_in(up, k); k++) i -= (size_t)numbers_in(up, k);
    ((double *)numbers_of(up, k))[i] += h;
    ((double *)numbers_of(down, k))[i] -= h;
}

/* The derivative of a function of the setting by parameter i, by central differences. */
static double derivative(const bench *b, double (*f)(const setting *s), size_t i)
{
    const double h = 1e-4;
    setting      up, down;
    move(b, i, h, &up, &down);
    return (f(&up) - f(&down)) / (2 * h);
}

static double expected_slope(const bench *b, size_t i)
{
    const double h = 1e-4;
    setting      up, down;
    move(b, i, h, &up, &down);
    return (mean_of(b->subject, &up) - mean_of(b->subject, &down)) / (2 * h);
}

static double look_at_slopes(void *context, int round, int wide)
{
    return look_at_gradients(context, round, wide, expected_slope, weigh_out);
}

static void gradient_of(bench *b, void (*weigh)(rws_scores *s, int row, double by), float *gradient)
{
    rws_scores *s = bench_draw(b, 60, 1, 500);
    for (int r = 0; r < s->n; r++) weigh(s, r, (double)s->count[r] / 500);
    memset(gradient, 0, b->params.size * sizeof *gradient);
    rws__engine_backward(b->engine, 1u << RWS_PHI, gradient, NULL);
}

static void weigh_r(rws_scores *s, int row, double by)
{
    s->coef_r[row] = by;
}

static void check_paths(bench *b, int which)
{
    float gradient[PARAMETERS * WIDEST];
    if (!b->family->reparameterised) return;
    assert_true(b->subject->term || b->subject->f);
    b->hand_out = OUT_MEAN;
    gradient_of(b, weigh_out, gradient); /* a value that counts as a constant has no gradient */
    for (size_t i = 0; i < b->params.size; i++) assert_true(gradient[i] == 0);
    b->pass.pathwise = true;
    if (!isnan(mean_of(b->subject, b->setting)))
        stays_likely(named(b, which, "gradients through a draw"), look_at_slopes, b);

    /* log q of a reparameterised value has a gradient by coef_r only */
    gradient_of(b, weigh_q, gradient);
    for (size_t i = 0; i < b->params.size; i++) assert_true(gradient[i] == 0);
    if (!b->subject->order) return;
    gradient_of(b, weigh_r, gradient);
    for (size_t i = 0; i < b->params.size; i++) {
        const double want = derivative(b, b->subject->order, i);
        if (!near((double)gradient[i], want, 1e-4 * (1 + fabs(want))))
            fail_msg("%s: %g, not %g", named(b, which, "log q along the path"), (double)gradient[i], want);
    }
}

static void paths_have_their_gradient(void **state)
{
    (void)state;
    walk(check_paths);
}

/* ---- gradients of the log-density by every parameter and by the value, against central differences of the twin */

typedef struct {
    const bench *b;
    rws_params   params;
    rws_param   *x, *p[PARAMETERS];
} scored;

static void score(rws_path *path, void *context)
{
    const scored *s = context;
    rws_var       p[PARAMETERS] = {{0}};
    for (int k = 0; k < PARAMETERS; k++)
        if (s->p[k]) p[k] = rws_parameter(path, s->p[k]);
    rws__path_output(path, 0, rws_log_density(path, s->b->family, rws_parameter(path, s->x), p));
}

/* The twin at numbers v: first the value, then the parameters. */
static double twin_at(const bench *b, const double *v)
{
    setting s = *b->setting;
    int     at = width_of(b);
    for (int k = 0; k < PARAMETERS; k++)
        for (int i = 0; i < numbers_in(&s, k); i++) ((double *)numbers_of(&s, k))[i] = v[at++];
    return density_of(b->subject, &s, v);
}

static bool moves(const bench *b, int i)
{
    if (i < width_of(b)) return is_continuous(b->subject); /* whole numbers do not move */
    const char *name = b->family->name;
    if (strcmp(name, "delta") == 0) return false;
    return i > width_of(b) || (strcmp(name, "binomial") != 0 && strcmp(name, "multinomial") != 0); /* trials */
}

/* The derivative of the twin at v along d. */
static double along(const bench *b, const double *v, const double *d, int n)
{
    const double h = 1e-4;
    double       up[WIDEST * (PARAMETERS + 1)], down[WIDEST * (PARAMETERS + 1)];
    for (int i = 0; i < n; i++) up[i] = v[i] + (d[i] == 0 ? 0 : h * d[i]), down[i] = v[i] - (d[i] == 0 ? 0 : h * d[i]);
    return (twin_at(b, up) - twin_at(b, down)) / (2 * h);
}

/* Densities that have no second derivatives, at least not by all of their parameters; the message says so. */
static bool has_tangent(const char *family)
{
    const char *const without[] = {"categorical", "bernoulli", "bernoulli vector", "normal",      "uniform",
                                   "gumbel",      "concrete",  "categoricals",     "multinomial", "delta"};
    for (int i = 0; i < COUNT(without); i++)
        if (strcmp(family, without[i]) == 0) return false;
    return true;
}

/* The directional derivative, and its gradient, against differences. The points must be away from the ends of supports. */
static void check_tangent(const bench *b, int which, rws_engine *e, double *v, const size_t *place, int n)
{
    enum { SLOT = 3 };
    float       direction[WIDEST * (PARAMETERS + 1)] = {0}, gradient[WIDEST * (PARAMETERS + 1)] = {0};
    double      d[WIDEST * (PARAMETERS + 1)] = {0};
    rws_error   err = {""};
    rws_scores *s = rws__engine_scores(e);
    for (int i = 0; i < n; i++) {
        const bool factor = strcmp(b->family->name, "multivariate normal") == 0 && i >= 2 * width_of(b);
        if (!moves(b, i) || factor || !isfinite(v[i]) || fabs(v[i]) > 200 || (v[i] != 0 && fabs(v[i]) < 0.02)) continue;
        direction[place[i]] = (float)(fmin(fabs(v[i]) + (v[i] == 0), 1) * (i % 2 ? 0.3 : -0.2));
        d[i] = (double)direction[place[i]];
    }
    const rws_status status = rws__engine_tangent(e, 0, SLOT, 1u << RWS_PHI, direction, &err);
    if (status != RWS_OK) {
        if (has_tangent(b->family->name) || !strstr(err.text, "has no second derivative here."))
            fail_msg("%s: \"%s\"", named(b, which, "a tangent"), err.text);
        return;
    }
    const double want = along(b, v, d, n);
    if (!near(s->out[SLOT][0], want, 1e-3 * (1 + fabs(want))))
        fail_msg("%s is %g, not %g", named(b, which, "a tangent"), s->out[SLOT][0], want);
    s->coef_out[0][0] = 0;
    s->coef_out[SLOT][0] = 1;
    assert_int_equal(rws__engine_backward(e, 1u << RWS_PHI, gradient, NULL), RWS_OK);
    for (int i = 0; i < n; i++) {
        const double was = v[i], h = 1e-4 * fmin(1, fmax(fabs(was), 0.01));
        if (d[i] == 0) continue;
        v[i] = was + h;
        const double up = along(b, v, d, n);
        v[i] = was - h;
        const double down = along(b, v, d, n), second = (up - down) / (2 * h);
        v[i] = was;
        if (isfinite(second) && !near((double)gradient[place[i]], second, 0.02 * (1 + fabs(second))))
            fail_msg("%s by number %d is %g, not %g", named(b, which, "a second derivative"), i,
                     (double)gradient[place[i]], second);
    }
}

static void check_exact(bench *b, int which)
{
    enum { MOST = 7 }; /* points */
    float     points[POINTS * WIDEST];
    const int n = points_of(b, points), dim = width_of(b);
    int       looked = 0;
    if (b->subject->visit) return; /* no parameters of its own: its components have theirs */
    for (int at = 0; at < n && looked < MOST; at++) {
        scored s = {.b = b};
        double v[WIDEST * (PARAMETERS + 1)];
        size_t place[WIDEST * (PARAMETERS + 1)]; /* of each number in the flat vector */
        int    all = dim;
        for (int j = 0; j < dim; j++) v[j] = (double)points[at * dim + j];
        for (int k = 0; k < PARAMETERS; k++)
            for (int i = 0; i < numbers_in(b->setting, k); i++) v[all++] = (double)(float)numbers_of(b->setting, k)[i];
        if (!(fabs(twin_at(b, v)) < 1e6)) continue; /* impossible, or differences drown in rounding */
        looked++;
        s.x = rws__params_add(&s.params, RWS_PHI, "x", 1, dim);
        for (int k = 0, from = dim; k < PARAMETERS; from += numbers_in(b->setting, k++)) {
            if (!numbers_in(b->setting, k)) continue;
            const bool still = k == 1 && strcmp(b->family->name, "multivariate normal") == 0; /* has no tangent */
            s.p[k] = rws__params_add(&s.params, still ? RWS_THETA : RWS_PHI, (char[]){(char)('a' + k), 0}, 1,
                                     numbers_in(b->setting, k));
            for (int i = 0; i < numbers_in(b->setting, k); i++) s.p[k]->value[i] = (float)v[from + i];
        }
        for (int j = 0; j < dim; j++) s.x->value[j] = (float)v[j];
        rws__params_pack(&s.params);
        for (int j = 0; j < dim; j++) place[j] = s.x->offset + (size_t)j;
        for (int k = 0, to = dim; k < PARAMETERS; k++)
            for (int i = 0; i < numbers_in(b->setting, k); i++) place[to++] = s.p[k]->offset + (size_t)i;
        rws_engine    *e = rws__engine_new(&s.params, (rws_field[1]){{0}}, 0, NULL);
        rws_error      err;
        float         *gradient = calloc((size_t)all, sizeof *gradient);
        const rws_pass pass = {.program = score,
                               .context = &s,
                               .mode = RWS_WAKE,
                               .groups = 1u << RWS_PHI | 1u << RWS_THETA,
                               .n_data = 1,
                               .n_particles = 1};
        if (rws__engine_forward(e, &pass, &err) != RWS_OK) fail_msg("%s: %s", named(b, which, "a score"), err.text);
        rws__engine_scores(e)->coef_out[0][0] = 1;
        assert_int_equal(rws__engine_backward(e, 1u << RWS_PHI | 1u << RWS_THETA, gradient, NULL), RWS_OK);
        for (int i = 0; i < all; i++) {
            const double was = v[i], h = 1e-5 * fmax(fabs(was), 1e-2);
            if (!moves(b, i) || !isfinite(was)) continue;
            v[i] = was + h;
            const double up = twin_at(b, v);
            v[i] = was - h;
            const double down = twin_at(b, v), want = (up - down) / (2 * h);
            v[i] = was;
            if (isfinite(up) && isfinite(down) && !near((double)gradient[place[i]], want, 2e-3 * (1 + fabs(want))))
                fail_msg("%s by number %d at %g: %g, not %g", named(b, which, "a gradient"), i, v[0],
                         (double)gradient[place[i]], want);
        }
        check_tangent(b, which, e, v, place, all);
        free(gradient);
        rws__engine_free(e);
        rws__params_release(&s.params);
    }
    assert_true(looked > 0);
}

static void gradients_are_those_of_the_formulas(void **state)
{
    (void)state;
    walk(check_exact);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_those_of_the_formulas),
        cmocka_unit_test(scores_have_their_mean),
        cmocka_unit_test(paths_have_their_gradient),
    };
    return cmocka_run_group_tests_name("dist_gradients", tests, NULL, NULL);
}
