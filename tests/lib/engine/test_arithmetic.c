/* test_arithmetic.c - the public arithmetic as a program uses it: values, gradients, directional derivatives and their
 * gradients, each against a plain function of doubles by central differences; and the messages about mistakes. */
#include "engine/engine.h"

#include "support.h"

#include <string.h>

enum { N = 4, SLOT = 4 };

/* A program computes one number from the parameters a and b, N numbers each; the twin gets both as x[0 … 2 N - 1]. */
typedef struct {
    const char *name;
    rws_var (*program)(rws_path *path, rws_var a, rws_var b);
    double (*twin)(const double *x);
} subject;

/* The sum of w_j v_j with different weights w_j, so that no two components are exchanged unnoticed. */
static rws_var weighted(rws_path *path, rws_var v)
{
    const float w[N] = {0.7f, -1.3f, 0.4f, 1.9f};
    return rws_dot(path, v, rws_constants(path, w, N));
}

static const double weight[N] = {(double)0.7f, (double)-1.3f, (double)0.4f, (double)1.9f};

#define SUM(expression)                                            \
    double total = 0;                                              \
    for (int j = 0; j < N; j++) total += weight[j] * (expression); \
    return total

#define FUNCTION(name, f, argument, expression)                         \
    static rws_var name##_program(rws_path *path, rws_var a, rws_var b) \
    {                                                                   \
        (void)b;                                                        \
        return weighted(path, rws_apply(path, f, argument));            \
    }                                                                   \
    static double name##_twin(const double *x)                          \
    {                                                                   \
        SUM(expression);                                                \
    }

FUNCTION(root, RWS_SQRT, rws_affine(path, a, 1, 3), sqrt(x[j] + 3))
FUNCTION(square, RWS_SQUARE, a, x[j] * x[j])
FUNCTION(sine, RWS_SIN, a, sin(x[j]))
FUNCTION(cosine, RWS_COS, a, cos(x[j]))
FUNCTION(magnitude, RWS_ABS, a, fabs(x[j]))
FUNCTION(log_sigmoid, RWS_LOG_SIGMOID, a, -log1p(exp(-x[j])))
FUNCTION(log_plus, RWS_LOG1P, rws_affine(path, a, 0.3f, 0), log1p((double)0.3f * x[j]))
FUNCTION(exp_minus, RWS_EXPM1, a, expm1(x[j]))
FUNCTION(log_minus, RWS_LOG1MEXP, rws_affine(path, a, 1, 3), log1p(-exp(-x[j] - 3)))
FUNCTION(log_gamma, RWS_LGAMMA, rws_affine(path, a, 1, 3), lgamma(x[j] + 3))

/* log Gamma at 3 + x, 4 + x, … differ by logarithms; so the digamma function is checked by its recurrence. */
static rws_var digamma_program(rws_path *path, rws_var a, rws_var b)
{
    (void)b;
    const rws_var up = rws_apply(path, RWS_DIGAMMA, rws_affine(path, a, 1, 4)),
                  at = rws_apply(path, RWS_DIGAMMA, rws_affine(path, a, 1, 3));
    return weighted(path, rws_sub(path, up, at));
}

static double digamma_twin(const double *x)
{
    SUM(1 / (x[j] + 3));
}

static rws_var min_program(rws_path *path, rws_var a, rws_var b)
{
    return weighted(path, rws_min(path, a, b));
}

static double min_twin(const double *x)
{
    SUM(fmin(x[j], x[N + j]));
}

static rws_var max_program(rws_path *path, rws_var a, rws_var b)
{
    return weighted(path, rws_mul(path, rws_max(path, a, b), rws_max(path, rws_constant(path, 0.3f), a)));
}

static double max_twin(const double *x)
{
    SUM(fmax(x[j], x[N + j]) * fmax((double)0.3f, x[j]));
}

/* The side that is not taken is infinite there, or no number, and its gradient would be, too. */
static rws_var masked_program(rws_path *path, rws_var a, rws_var b)
{
    const float   mask[N] = {1, 0, 1, 0}, poles[N] = {-INFINITY, 0, -INFINITY, 0};
    const rws_var m = rws_constants(path, mask, N), pole = rws_constants(path, poles, N);
    const rws_var infinite =
        rws_apply(path, RWS_LOG, rws_mul(path, rws_apply(path, RWS_SQUARE, b), rws_affine(path, m, -1, 1)));
    return weighted(path, rws_where(path, m, rws_mul(path, a, b), rws_add(path, infinite, pole)));
}

static double masked_twin(const double *x)
{
    SUM(j % 2 ? log(x[N + j] * x[N + j]) : x[j] * x[N + j]);
}

static rws_var power_program(rws_path *path, rws_var a, rws_var b)
{
    return weighted(path, rws_power(path, rws_affine(path, a, 1, 3), b));
}

static double power_twin(const double *x)
{
    SUM(pow(x[j] + 3, x[N + j]));
}

static rws_var dot_program(rws_path *path, rws_var a, rws_var b)
{
    return rws_dot(path, a, b);
}

static double dot_twin(const double *x)
{
    double total = 0;
    for (int j = 0; j < N; j++) total += x[j] * x[N + j];
    return total;
}

static rws_var running_program(rws_path *path, rws_var a, rws_var b)
{
    return weighted(path, rws_cumulative_sum(path, rws_mul(path, a, b)));
}

static double running_twin(const double *x)
{
    double sum = 0;
    SUM(sum += x[j] * x[N + j]);
}

/* 30 values: more than one op adds. One of them is a single number. */
static rws_var many_program(rws_path *path, rws_var a, rws_var b)
{
    rws_var parts[30];
    for (int i = 0; i < 29; i++) parts[i] = rws_mul(path, rws_affine(path, a, (float)i, 0), b);
    parts[29] = rws_dot(path, a, a);
    return weighted(path, rws_sum_many(path, parts, 30));
}

static double many_twin(const double *x)
{
    double square = 0;
    for (int j = 0; j < N; j++) square += x[j] * x[j];
    SUM(28 * 29 / 2 * x[j] * x[N + j] + square);
}

static rws_var row_program(rws_path *path, rws_var a, rws_var b)
{
    const rws_var matrix = rws_mul(path, a, b), at = rws_row(path, matrix, 2, rws_constant(path, 1));
    return rws_sum(path, rws_mul(path, at, at));
}

static double row_twin(const double *x)
{
    return pow(x[2] * x[N + 2], 2) + pow(x[3] * x[N + 3], 2);
}

/* The 2 x 2 matrices of a and of b. */
static void products(const double *a, const double *b, double *out)
{
    for (int i = 0; i < 4; i++) out[i] = a[i / 2 * 2] * b[i % 2] + a[i / 2 * 2 + 1] * b[2 + i % 2];
}

static rws_var matmul_program(rws_path *path, rws_var a, rws_var b)
{
    return weighted(path, rws_matmul(path, a, rws_transpose(path, rws_matmul(path, b, a, 2), 2), 2));
}

static double matmul_twin(const double *x)
{
    double ba[4], out[4];
    products(x + N, x, ba);
    products(x, (double[]){ba[0], ba[2], ba[1], ba[3]}, out);
    SUM(out[j]);
}

static rws_var matvec_program(rws_path *path, rws_var a, rws_var b)
{
    const rws_var two = rws_matvec(path, a, rws_slice(path, b, 1, 2)), one = rws_matvec(path, a, rws_mul(path, a, b));
    return rws_add(path, rws_dot(path, two, rws_diagonal(path, b)), one);
}

static double matvec_twin(const double *x)
{
    const double *a = x, *b = x + N;
    double        total = (a[0] * b[1] + a[1] * b[2]) * b[0] + (a[2] * b[1] + a[3] * b[2]) * b[3];
    for (int j = 0; j < N; j++) total += a[j] * a[j] * b[j];
    return total;
}

/* A positive definite matrix: a a^T + 2 on the diagonal, of the 2 x 2 matrix a. */
static rws_var covariance(rws_path *path, rws_var a)
{
    const rws_var square = rws_matmul(path, a, rws_transpose(path, a, 2), 2);
    return rws_add_diagonal(path, square, rws_constant(path, 2));
}

static void covariance_twin(const double *a, double *k)
{
    k[0] = a[0] * a[0] + a[1] * a[1] + 2;
    k[1] = k[2] = a[0] * a[2] + a[1] * a[3];
    k[3] = a[2] * a[2] + a[3] * a[3] + 2;
}

static rws_var cholesky_program(rws_path *path, rws_var a, rws_var b)
{
    const rws_var l = rws_cholesky(path, rws_add_diagonal(path, covariance(path, a), rws_dot(path, b, b)));
    return weighted(path, l);
}

static double cholesky_twin(const double *x)
{
    double k[4], l[4] = {0}, more = 0;
    for (int j = 0; j < N; j++) more += x[N + j] * x[N + j];
    covariance_twin(x, k);
    l[0] = sqrt(k[0] + more);
    l[2] = k[2] / l[0];
    l[3] = sqrt(k[3] + more - l[2] * l[2]);
    SUM(l[j]);
}

/* The log-density of a Gaussian process, without its constant. */
static rws_var gaussian_program(rws_path *path, rws_var a, rws_var b)
{
    const rws_var l = rws_cholesky(path, covariance(path, a)), y = rws_slice(path, b, 0, 2);
    const rws_var far = rws_dot(path, y, rws_cholesky_solve(path, l, y));
    return rws_add(path, far, rws_log_determinant(path, l));
}

static double gaussian_twin(const double *x)
{
    double k[4];
    covariance_twin(x, k);
    const double *y = x + N, det = k[0] * k[3] - k[1] * k[2];
    return (k[3] * y[0] * y[0] - 2 * k[1] * y[0] * y[1] + k[0] * y[1] * y[1]) / det + log(det);
}

/* Triangular systems with several right sides, both ways; l has numbers above its diagonal, which do not count. */
static rws_var solve_program(rws_path *path, rws_var a, rws_var b)
{
    const rws_var l = rws_add_diagonal(path, a, rws_constants(path, (float[]){4, -5}, 2));
    const rws_var half = rws_triangular_solve(path, l, b, false);
    return weighted(path, rws_triangular_solve(path, l, half, true));
}

static double solve_twin(const double *x)
{
    const double l0 = x[0] + 4, l2 = x[2], l3 = x[3] - 5, *b = x + N;
    double       half[4], out[4];
    for (int q = 0; q < 2; q++) {
        half[q] = b[q] / l0;
        half[2 + q] = (b[2 + q] - l2 * half[q]) / l3;
        out[2 + q] = half[2 + q] / l3;
        out[q] = (half[q] - l2 * out[2 + q]) / l0;
    }
    SUM(out[j]);
}

#define SUBJECT(name)                      \
    {                                      \
#name, name##_program, name##_twin \
    }
static const subject subjects[] = {
    SUBJECT(root),        SUBJECT(square),   SUBJECT(sine),      SUBJECT(cosine),    SUBJECT(magnitude),
    SUBJECT(log_sigmoid), SUBJECT(log_plus), SUBJECT(exp_minus), SUBJECT(log_gamma), SUBJECT(digamma),
    SUBJECT(log_minus),   SUBJECT(masked),   SUBJECT(min),       SUBJECT(max),       SUBJECT(power),
    SUBJECT(dot),         SUBJECT(running),  SUBJECT(many),      SUBJECT(row),       SUBJECT(matmul),
    SUBJECT(matvec),      SUBJECT(cholesky), SUBJECT(gaussian),  SUBJECT(solve),
};

typedef struct {
    const subject *subject;
    rws_params     params;
    rws_param     *a, *b;
    rws_engine    *engine;
} bench;

static void program(rws_path *path, void *context)
{
    const bench *b = context;
    rws__path_output(path, 0, b->subject->program(path, rws_parameter(path, b->a), rws_parameter(path, b->b)));
}

/* The derivative of the twin along a direction. */
static double along(const bench *b, const double *x, const double *direction)
{
    const double h = 1e-5;
    double       up[2 * N], down[2 * N];
    for (int i = 0; i < 2 * N; i++) up[i] = x[i] + h * direction[i], down[i] = x[i] - h * direction[i];
    return (b->subject->twin(up) - b->subject->twin(down)) / (2 * h);
}

static void value_gradient_and_tangent(void **state)
{
    bench     b = {.subject = *state};
    die       d = {31};
    rws_error err;
    double    x[2 * N], direction[2 * N], unit[2 * N];
    float     gradient[2 * N] = {0}, moves[2 * N];
    b.a = rws__params_add(&b.params, RWS_PHI, "a", 1, N);
    b.b = rws__params_add(&b.params, RWS_PHI, "b", 1, N);
    for (int i = 0; i < 2 * N; i++) {
        float *to = i < N ? &b.a->value[i] : &b.b->value[i - N];
        *to = (float)((i % 2 ? 1 : -1) * die_between(&d, 0.5, 1.5)); /* away from 0, where |x| has no slope */
        x[i] = (double)*to;
        moves[i] = (float)die_between(&d, -1, 1);
        direction[i] = (double)moves[i];
    }
    rws__params_pack(&b.params);
    b.engine = rws__engine_new(&b.params, (rws_field[1]){{0}}, 0, NULL);
    const rws_pass pass = {
        .program = program, .context = &b, .mode = RWS_WAKE, .groups = 1u << RWS_PHI, .n_data = 1, .n_particles = 1};
    if (rws__engine_forward(b.engine, &pass, &err) != RWS_OK) fail_msg("%s: %s", b.subject->name, err.text);
    rws_scores *s = rws__engine_scores(b.engine);
    assert_near(s->out[0][0], b.subject->twin(x), 1e-5 * (1 + fabs(b.subject->twin(x))));
    s->coef_out[0][0] = 1;
    assert_int_equal(rws__engine_backward(b.engine, 1u << RWS_PHI, gradient, NULL), RWS_OK);
    for (int i = 0; i < 2 * N; i++) {
        memset(unit, 0, sizeof unit);
        unit[i] = 1;
        assert_near((double)gradient[i], along(&b, x, unit), 2e-5 * (1 + fabs(along(&b, x, unit))));
    }
    if (rws__engine_tangent(b.engine, 0, SLOT, 1u << RWS_PHI, moves, &err) != RWS_OK)
        fail_msg("%s: %s", b.subject->name, err.text);
    assert_near(s->out[SLOT][0], along(&b, x, direction), 2e-5 * (1 + fabs(along(&b, x, direction))));
    s->coef_out[0][0] = 0;
    s->coef_out[SLOT][0] = 1;
    memset(gradient, 0, sizeof gradient);
    assert_int_equal(rws__engine_backward(b.engine, 1u << RWS_PHI, gradient, NULL), RWS_OK);
    for (int i = 0; i < 2 * N; i++) {
        const double h = 1e-4, was = x[i];
        double       end[2];
        for (int k = 0; k < 2; k++) {
            x[i] = was + (k ? -h : h);
            end[k] = along(&b, x, direction);
        }
        x[i] = was;
        const double want = (end[0] - end[1]) / (2 * h);
        if (!near((double)gradient[i], want, 1e-4 * (1 + fabs(want))))
            fail_msg("%s: second derivative %d is %g, not %g", b.subject->name, i, (double)gradient[i], want);
    }
    rws__engine_free(b.engine);
    rws__params_release(&b.params);
}

/* ---- parameters that count as constants */

static void frozen_program(rws_path *path, void *context)
{
    const bench  *b = context;
    const rws_var x = rws_parameter(path, b->b);
    rws__path_freeze(path, 1u << RWS_THETA | 1u << RWS_PHI);
    const rws_var v = rws__record(path, &rws_op_dense, (rws_op_args){.w = b->a}, &x, 1, N);
    rws__path_freeze(path, 0);
    rws__path_output(path, 0, weighted(path, v));
}

/* A weight that is frozen has no gradient and does not move, though its input has one. */
static void frozen_weights_are_constants(void **state)
{
    (void)state;
    bench     b = {0};
    die       d = {37};
    rws_error err;
    float     gradient[N * N + N] = {0}, moves[N * N + N];
    b.a = rws__params_add(&b.params, RWS_THETA, "a", N, N);
    b.b = rws__params_add(&b.params, RWS_PHI, "b", 1, N);
    b.a->transposed = true;
    for (int i = 0; i < N * N; i++) b.a->value[i] = (float)die_between(&d, -1, 1);
    for (int i = 0; i < N; i++) b.b->value[i] = (float)die_between(&d, -1, 1);
    for (int i = 0; i < N * N + N; i++) moves[i] = i < N * N ? 1 : 0;
    rws__params_pack(&b.params);
    rws__params_transpose(&b.params, ~0u, b.params.value, b.params.transposed);
    b.engine = rws__engine_new(&b.params, (rws_field[1]){{0}}, 0, NULL);
    const unsigned groups = 1u << RWS_THETA | 1u << RWS_PHI;
    const rws_pass pass = {
        .program = frozen_program, .context = &b, .mode = RWS_WAKE, .groups = groups, .n_data = 1, .n_particles = 1};
    if (rws__engine_forward(b.engine, &pass, &err) != RWS_OK) fail_msg("%s", err.text);
    rws_scores *s = rws__engine_scores(b.engine);
    s->coef_out[0][0] = 1;
    assert_int_equal(rws__engine_backward(b.engine, groups, gradient, NULL), RWS_OK);
    for (int i = 0; i < N * N; i++) assert_true(gradient[i] == 0);
    for (int i = 0; i < N; i++) assert_true(gradient[N * N + i] != 0);
    if (rws__engine_tangent(b.engine, 0, SLOT, 1u << RWS_THETA, moves, &err) != RWS_OK) fail_msg("%s", err.text);
    assert_true(!s->out[SLOT] || s->out[SLOT][0] == 0);
    rws__engine_free(b.engine);
    rws__params_release(&b.params);
}

/* ---- long chains */

enum { LINKS = 20000 };

static void chain_program(rws_path *path, void *context)
{
    rws_var v = rws_parameter(path, context);
    for (int i = 0; i < LINKS; i++) v = rws_affine(path, rws_apply(path, RWS_LINEAR, v), 1, 0.5f);
    rws__path_output(path, 0, v);
}

/* The length of a program is no limit for second derivatives: they take no stack. */
static void long_chains_have_tangents(void **state)
{
    (void)state;
    rws_params       params = {0};
    const rws_param *p = rws__params_add(&params, RWS_PHI, "p", 1, 1);
    float            gradient = 0, moves = 3;
    rws_error        err = {""};
    rws__params_pack(&params);
    rws_engine    *e = rws__engine_new(&params, (rws_field[1]){{0}}, 0, NULL);
    const rws_pass pass = {.program = chain_program,
                           .context = (void *)p,
                           .mode = RWS_WAKE,
                           .groups = 1u << RWS_PHI,
                           .n_data = 1,
                           .n_particles = 1};
    if (rws__engine_forward(e, &pass, &err) != RWS_OK) fail_msg("%s", err.text);
    rws_scores *s = rws__engine_scores(e);
    assert_near(s->out[0][0], 0.5 * LINKS, 1e-3);
    s->coef_out[0][0] = 1;
    assert_int_equal(rws__engine_backward(e, 1u << RWS_PHI, &gradient, NULL), RWS_OK);
    assert_true(gradient == 1);
    if (rws__engine_tangent(e, 0, SLOT, 1u << RWS_PHI, &moves, &err) != RWS_OK) fail_msg("%s", err.text);
    assert_true(s->out[SLOT][0] == 3);
    rws__engine_free(e);
    rws__params_release(&params);
}

/* ---- mistakes */

static void bad_program(rws_path *path, void *context)
{
    const rws_var two = rws_constants(path, (float[]){1, 2}, 2), three = rws_constants(path, (float[]){1, 2, 3}, 3);
    rws_var       v = two;
    switch (*(const int *)context) {
    case 0: v = rws_dot(path, two, three); break;
    case 1: v = rws_power(path, two, three); break;
    case 2: v = rws_sum_many(path, (rws_var[]){two, three}, 2); break;
    case 3: v = rws_sum_many(path, &two, 0); break;
    case 4: v = rws_row(path, three, 2, rws_constant(path, 0)); break;
    case 5: v = rws_row(path, three, 1, two); break;
    case 6: v = rws_row(path, three, 1, rws_constant(path, 3)); break;
    case 7: v = rws_row(path, three, 1, rws_constant(path, 0.5f)); break;
    case 8: v = rws_matvec(path, three, two); break;
    case 9: v = rws_matmul(path, two, three, 2); break;
    case 10: v = rws_transpose(path, three, 2); break;
    case 11: v = rws_diagonal(path, three); break;
    case 12: v = rws_add_diagonal(path, rws_concat(path, (rws_var[]){two, two}, 2), three); break;
    case 13: v = rws_cholesky(path, two); break;
    case 14: v = rws_cholesky_solve(path, rws_concat(path, (rws_var[]){two, two}, 2), three); break;
    case 15: v = rws_triangular_solve(path, two, three, true); break;
    case 16: v = rws_log_determinant(path, three); break;
    case 17: v = rws_dot_attention(path, two, &two, &two, 0); break;
    case 18: v = rws_dot_attention(path, two, &three, &two, 1); break;
    case 19: v = rws_dot_attention(path, rws_constant(path, 1), &two, &three, 1); break;
    case 20: v = rws_pool2d(path, three, 2, 1, 1, RWS_MAX); break;
    case 21: v = rws_pool2d(path, three, 1, 3, 2, RWS_MAX); break;
    case 22: v = rws_pool2d(path, three, 1, 1, 1, (rws_pooling)7); break;
    default: v = rws_apply(path, (rws_function)99, two); break;
    }
    rws__path_output(path, 0, rws_sum(path, v));
}

static void mistakes_are_said(void **state)
{
    (void)state;
    static const char *const messages[] = {
        "rws_dot of vectors of 2 and 3 numbers.",
        "rws_power of vectors of 2 and 3 numbers.",
        "rws_sum_many of vectors of 3 and 2 numbers.",
        "rws_sum_many takes at least one value, not 0.",
        "rws_row takes rows of 2 numbers from 3.",
        "rws_row takes one index, not 2.",
        "The index of rws_row is 3; it must be a whole number from 0 to 2.",
        "The index of rws_row is 0.5; it must be a whole number from 0 to 2.",
        "rws_matvec of a matrix of 3 numbers and a vector of 2.",
        "rws_matmul takes a matrix with 2 columns and one with 2 rows, not 2 and 3 numbers.",
        "rws_transpose takes a matrix with 2 columns, not 3 numbers.",
        "rws_diagonal takes a square matrix, not 3 numbers.",
        "rws_add_diagonal adds 1 or 2 numbers to a matrix of 2 rows, not 3.",
        "rws_cholesky takes a square matrix, not 2 numbers.",
        "rws_cholesky_solve takes a right side of 2 rows, not 3 numbers.",
        "rws_triangular_solve takes a square matrix, not 2 numbers.",
        "rws_log_determinant takes a square matrix, not 3 numbers.",
        "rws_dot_attention takes at least one item, not 0.",
        "rws_dot_attention takes keys of 2 numbers, as its query has; 3 numbers are no whole keys.",
        "rws_dot_attention was given 2 keys, but 3 numbers as values.",
        "rws_pool2d takes 2 channels of 1 rows, not 3 numbers.",
        "rws_pool2d takes windows of 1 to 1 rows and columns from 3 x 1 pictures, not of 2.",
        "rws_pool2d was given pooling number 7.",
        "rws_apply was given function number 99.",
    };
    for (int i = 0; i < COUNT(messages); i++) {
        const rws_params none = {0};
        rws_engine      *e = rws__engine_new(&none, (rws_field[1]){{0}}, 0, NULL);
        rws_error        err = {{0}};
        const rws_pass pass = {.program = bad_program, .context = &i, .mode = RWS_WAKE, .n_data = 1, .n_particles = 1};
        assert_int_equal(rws__engine_forward(e, &pass, &err), RWS_BAD_INPUT);
        if (!strstr(err.text, messages[i])) fail_msg("%s instead of %s", err.text, messages[i]);
        rws__engine_free(e);
    }
}

int main(void)
{
    struct CMUnitTest tests[COUNT(subjects) + 3] = {cmocka_unit_test(mistakes_are_said),
                                                    cmocka_unit_test(frozen_weights_are_constants),
                                                    cmocka_unit_test(long_chains_have_tangents)};
    for (int i = 0; i < COUNT(subjects); i++)
        tests[i + 3] =
            (struct CMUnitTest){subjects[i].name, value_gradient_and_tangent, NULL, NULL, (void *)&subjects[i]};
    return _cmocka_run_group_tests("arithmetic", tests, COUNT(tests), NULL, NULL);
}
