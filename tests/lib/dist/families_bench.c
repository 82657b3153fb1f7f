/* families_bench.c - a bench: one family, one setting, an engine to draw with. */
#include "families.h"

#include <stdio.h>
#include <string.h>

static rws_var visit(rws_path *path, const bench *b)
{
    if (b->noisy) rws_normal(path, "noise", rws_constant(path, 0), rws_constant(path, 1));
    rws_var p[PARAMETERS] = {{0}};
    for (int k = 0; k < PARAMETERS; k++)
        if (b->p[k]) p[k] = rws_parameter(path, b->p[k]);
    return b->subject->visit ? b->subject->visit(path, p) : rws_site_visit(path, "v", b->family, p);
}

static rws_var sum_of_sigmoids(rws_path *path, rws_var v)
{
    return rws_sum(path, rws_apply(path, RWS_SIGMOID, v));
}

static void program(rws_path *path, void *context)
{
    const bench *b = context;
    const bool   sleep = b->pass.mode == RWS_SLEEP;
    if (b->observed) {
        rws__path_side(path, RWS_SIDE_MODEL);
        visit(path, b);
        return;
    }
    rws__path_side(path, sleep ? RWS_SIDE_MODEL : RWS_SIDE_GUIDE);
    const rws_var v = visit(path, b);
    rws__path_side(path, sleep ? RWS_SIDE_GUIDE : RWS_SIDE_MODEL);
    visit(path, b);
    rws__path_side(path, RWS_SIDE_NONE);
    if (b->hand_out == OUT_MEAN) {
        rws__path_output(path, 0, (b->subject->f ? b->subject->f : sum_of_sigmoids)(path, v));
        return;
    }
    const bool    noted = b->hand_out == OUT_G || b->hand_out == OUT_G_TILDE;
    const rws_var from = noted ? rws__path_noted(path, b->hand_out == OUT_G ? RWS_NOTE_G : RWS_NOTE_G_TILDE) : v;
    const int     n = rws_dim(path, from) < VALUES ? rws_dim(path, from) : VALUES;
    for (int j = 0; j < n; j++) rws__path_output(path, j, rws_slice(path, from, j, 1));
    if (noted) rws__path_output(path, VALUES, v);
}

static rws_param *bench_param(bench *b, const char *name, const double *values, int n)
{
    if (!n) return NULL;
    rws_param *p = rws__params_add(&b->params, RWS_PHI, name, 1, n);
    for (int i = 0; i < n; i++) p->value[i] = (float)values[i];
    return p;
}

void bench_init(bench *b, const rws_family *family, const setting *s)
{
    *b = (bench){.family = family, .own = *family, .subject = subject_of(family->name), .setting = s};
    b->own.context = &s->n;
    if (s->n) b->family = &b->own;
    for (int k = 0; k < PARAMETERS; k++)
        b->p[k] = bench_param(b, (char[]){(char)('a' + k), 0}, numbers_of(s, k), numbers_in(s, k));
    rws__params_pack(&b->params);
    b->engine = rws__engine_new(&b->params, b->fields, 0, NULL);
    b->pass = (rws_pass){
        .program = program, .mode = RWS_WAKE, .groups = 1u << RWS_PHI, .fields = b->field, .proposal = &b->proposal};
    b->proposal = (rws_proposal){.delta = 0.3, .temperature = 0.6};
}

void bench_release(bench *b)
{
    rws__engine_free(b->engine);
    rws__params_release(&b->params);
}

rws_scores *bench_draw(bench *b, uint64_t seed, int n_data, int n_particles)
{
    rws_error err;
    b->pass.context = b;
    b->pass.key = rws__key_for(seed, 0, RWS_KEY_METRIC, 0);
    b->pass.n_data = n_data;
    b->pass.n_particles = n_particles;
    if (rws__engine_forward(b->engine, &b->pass, &err) != RWS_OK) fail_msg("%s: %s", b->family->name, err.text);
    return rws__engine_scores(b->engine);
}

void value_of(const rws_scores *s, int row, double *x)
{
    for (int j = 0; j < VALUES; j++) x[j] = s->out[j] ? s->out[j][row] : 0;
}

/* Whether two log-densities agree, up to float rounding, which grows with their size. */
bool as_dense(double got, double want)
{
    return near(got, want, 5e-5 * (1 + fabs(want)));
}

int outcome_of(const bench *b, const double *x)
{
    for (int o = 0; o < b->subject->outcomes(b->setting); o++) {
        double at[WIDEST] = {0};
        b->subject->outcome(b->setting, o, at);
        if (memcmp(at, x, VALUES * sizeof *x) == 0) return o;
    }
    fail_msg("%s drew what is no outcome of it (%g …)", b->family->name, x[0]);
    return -1;
}

double probability(const bench *b, int outcome)
{
    double x[WIDEST];
    b->subject->outcome(b->setting, outcome, x);
    return exp(density_of(b->subject, b->setting, x));
}

/* Every family with every setting: what most tests walk over. */

void walk(bench_test test)
{
    for (int f = 0; rws_families[f]; f++) {
        const struct subject *s = subject_of(rws_families[f]->name);
        if (!s) fail_msg("the family %s has no twin in this test", rws_families[f]->name);
        for (int i = 0; i < MAX_SETTINGS && s->settings[i].n_a; i++) {
            bench b;
            bench_init(&b, rws_families[f], &s->settings[i]);
            test(&b, i);
            bench_release(&b);
        }
    }
}

const char *named(const bench *b, int which, const char *what)
{
    static char text[120];
    snprintf(text, sizeof text, "%s, setting %d: %s", b->family->name, which, what);
    return text;
}

/* Tests that x and y, both of mean 0, are independent: neither they nor their squares are correlated. */
static double independence_tail(const double *x, const double *y, size_t n, double x_square, double y_square)
{
    double *pair = malloc(n * sizeof *pair);
    for (size_t i = 0; i < n; i++) pair[i] = x[i] * y[i];
    double p = mean_tail(pair, n, 0, 1e-9);
    for (size_t i = 0; i < n; i++) pair[i] = (x[i] * x[i] - x_square) * (y[i] * y[i] - y_square);
    p = fmin(p, mean_tail(pair, n, 0, 1e-9));
    free(pair);
    return 2 * p;
}

enum { LAGS = 4 }; /* a block of random words serves so many neighbours */

/* Discrete families: tests how often each outcome came and, where rows are single particles, that neighbours are
 * independent. */
double look_at_outcomes(const bench *b, const rws_scores *s, int n)
{
    const int n_outcomes = b->subject->outcomes(b->setting);
    double    seen[OUTCOMES] = {0}, expected[OUTCOMES], total = 0, mean = 0, square = 0, x[VALUES];
    double   *which = malloc((size_t)n * sizeof *which);
    for (int o = 0; o < n_outcomes; o++) {
        expected[o] = n * probability(b, o);
        mean += o * probability(b, o);
        square += o * o * probability(b, o);
    }
    for (int i = 0; i < s->n; i++) {
        value_of(s, i, x);
        const int o = outcome_of(b, x);
        seen[o] += s->count[i];
        total += s->count[i];
        which[i] = o - mean;
    }
    assert_true(total == n);
    double p = counts_tail(seen, expected, n_outcomes);
    square -= mean * mean;
    for (int lag = 1; lag <= LAGS && s->n == n; lag++)
        p = fmin(p, independence_tail(which, which + lag, (size_t)(n - lag), square, square));
    free(which);
    return fmin(1, (1 + LAGS) * p);
}

/* Continuous families: tests each uniform alone, against those of the next particles, and against the others of its own
 * particle. */
double look_at_values(const bench *b, const rws_scores *s, int n)
{
    enum { MOST = 6 };
    double *u = malloc(MOST * (size_t)n * sizeof *u), p = 1, x[VALUES], at[MOST];
    int     m = 0, looks = 0;
    assert_int_equal(s->n, n);
    for (int i = 0; i < n; i++) {
        value_of(s, i, x);
        m = uniforms_of(b->subject, b->setting, x, at);
        for (int j = 0; j < m; j++) u[j * n + i] = at[j] - 0.5;
    }
    for (int j = 0; j < m; j++) {
        const double *mine = u + j * n;
        for (int lag = 1; lag <= LAGS && !b->subject->scored; lag++, looks++) /* rows of a component are neighbours */
            p = fmin(p, independence_tail(mine, mine + lag, (size_t)(n - lag), 1 / 12.0, 1 / 12.0));
        for (int k = 0; k < j && (b->subject->apart || b->subject->term); k++, looks++)
            p = fmin(p, independence_tail(mine, u + k * n, (size_t)n, 1 / 12.0, 1 / 12.0));
    }
    for (int j = 0; j < m; j++, looks++) {
        for (int i = 0; i < n; i++) u[j * n + i] += 0.5;
        p = fmin(p, uniform_tail(u + j * n, (size_t)n));
    }
    free(u);
    return fmin(1, looks * p);
}

/* Component j of a point made of the numbers x, which are between -2 and 5 and whose exponentials add up to `total`.
 * inside: the point is within bounds that the family has. */
static double point_of(const bench *b, const double *x, int j, double total, bool inside)
{
    double p[PARAMETERS];
    parameters_of(b->setting, j, p);
    if (b->subject->density == concrete_density) return x[j] - log(total);
    if (b->subject->density == dirichlet_density && inside) return exp(x[j]) / total;
    if (b->subject->density == uniform_density && inside) return p[0] + (x[j] + 2) / 7 * (p[1] - p[0]);
    if (b->subject->support == BOUNDED && inside) return p[2] + (x[j] + 2) / 7 * (fmin(p[3], p[2] + 2) - p[2]);
    if (b->subject->support == UNIT && inside) return (x[j] + 2) / 7;
    return x[j];
}

/* Values across the line (or the simplex), most of them possible. */
int points_of(const bench *b, float *to)
{
    const int dim = width_of(b);
    double    x[WIDEST] = {0};
    die       d = {3};
    if (b->subject->outcomes) {
        const int n = b->subject->outcomes(b->setting);
        for (int o = 0; o < n; o++) {
            b->subject->outcome(b->setting, o, x);
            for (int j = 0; j < dim; j++) to[o * dim + j] = (float)x[j];
        }
        return n;
    }
    for (int i = 0; i < POINTS; i++) {
        double total = 0;
        for (int j = 0; j < dim; j++) x[j] = die_between(&d, -2, 5);
        for (int j = 0; j < dim; j++) total += exp(x[j]);
        for (int j = 0; j < dim; j++) to[i * dim + j] = (float)point_of(b, x, j, total, i % 2);
    }
    return POINTS;
}
