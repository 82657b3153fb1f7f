/* test_ops.c - every op of rws_ops against a plain twin in double: values, and gradients by central differences.
 *
 * The twin computes one row. A trial makes random inputs of one shape, lets the op compute n rows of them through a
 * call like the engine's, and compares; with and without row indices, so that several rows may read (and give their
 * gradient to) one row of an input. An op that is in rws_ops but not in the table of twins fails.
 */
#include "base/vecmath.h"
#include "dist/dist.h"
#include "nn/layer.h"
#include "tensor/gemm.h"
#include "tensor/products.h"

#include "support.h"

#include <stdio.h>
#include <string.h>

#define WIDEST 64
#define TOLERANCE 2e-5 /* of the sum of the magnitudes that were added up */

/* ---- shapes: what a trial makes inputs of */

typedef enum {
    NONE,     /* ends the list of inputs */
    ABSENT,   /* an input without data */
    REAL,     /* -2 … 2 */
    SMALL,    /* -0.5 … 0.5 */
    INNER,    /* -0.9 … 0.25, between LOW and POSITIVE */
    LOW,      /* -2 … -1 */
    POSITIVE, /* 0.3 … 2 */
    BIT,      /* 0 or 1 */
    FLAG,     /* the same; has no gradient */
    LOG_PROB, /* -4 … -0.1 */
    FOR_X,    /* where the function of the trial is smooth */
    FOR_Y,    /* a value it may have there */
    NOISE,    /* 0.05 … 0.95; has no gradient */
    COUNTER,  /* words of a counter in place of floats; has no gradient */
    INDEX,    /* 0 … n_index - 1; has no gradient */
    SOFTMAX,  /* of input 2, or of the sum of 2 and 3 if those are equally long; has no gradient of its own */
    WHERE,    /* two scales and two shifts, so that no point falls on a line of the source's grid */
    STEEP,    /* -30 … 30 */
} kind;

typedef struct {
    int dim;
    struct {
        kind kind;
        int  dim;
    } in[RWS_OP_INPUTS];
    int   k;
    float s, t;
    int   rows, cols, offset; /* of the weight, if there is one */
    bool  bias;
    int   n_index;
    bool  each_function; /* k is every rws_function in turn */
    int   source_cols;   /* of a picture that is read or placed; it has k rows */
} shape;

/* What a twin sees: one row of each input. */
typedef struct {
    int           dim, n_in, k, cols, offset;
    double        s, t;
    const double *in[RWS_OP_INPUTS];
    int           in_dim[RWS_OP_INPUTS];
    const double *w, *b;
    double       *out;
} row;

static double at(const row *r, int s, int j)
{
    return r->in[s][r->in_dim[s] == 1 ? 0 : j];
}

static int widest(const row *r)
{
    int n = 1;
    for (int s = 0; s < r->n_in; s++)
        if (r->in_dim[s] > n) n = r->in_dim[s];
    return n;
}

/* ---- twins */

static double function(int f, double x)
{
    switch ((rws_function)f) {
    case RWS_LINEAR: return x;
    case RWS_TANH: return tanh(x);
    case RWS_RELU: return fmax(x, 0);
    case RWS_ELU: return x > 0 ? x : exp(x) - 1;
    case RWS_SIGMOID: return 1 / (1 + exp(-x));
    case RWS_SOFTPLUS: return log(1 + exp(x));
    case RWS_EXP: return exp(x);
    case RWS_LOG: return log(x);
    }
    fail_msg("no twin for function %d", f);
    return 0;
}

/* f'(x) where f(x) = y */
static double slope(int f, double y)
{
    switch ((rws_function)f) {
    case RWS_LINEAR: return 1;
    case RWS_TANH: return 1 / pow(cosh(atanh(y)), 2);
    case RWS_RELU: return y > 0;
    case RWS_ELU: return y > 0 ? 1 : exp(log1p(y));
    case RWS_SIGMOID: return 1 / (2 + 2 * cosh(log(y / (1 - y))));
    case RWS_SOFTPLUS: return 1 / (1 + 1 / (exp(y) - 1));
    case RWS_EXP: return exp(log(y));
    case RWS_LOG: return 1 / exp(y);
    }
    fail_msg("no twin for function %d", f);
    return 0;
}

#define EACH(expression) \
    for (int j = 0; j < r->dim; j++) r->out[j] = (expression)

static void affine(const row *r)
{
    EACH(r->s * at(r, 0, j) + r->t);
}

static void add(const row *r)
{
    EACH(at(r, 0, j) + at(r, 1, j));
}

static void sub(const row *r)
{
    EACH(at(r, 0, j) - at(r, 1, j));
}

static void mul(const row *r)
{
    EACH(at(r, 0, j) * at(r, 1, j));
}

static void quotient(const row *r)
{
    EACH(at(r, 0, j) / at(r, 1, j));
}

static void apply(const row *r)
{
    EACH(function(r->k, at(r, 0, j)));
}

static void apply_tangent(const row *r)
{
    EACH(slope(r->k, at(r, 0, j)) * at(r, 1, j));
}

static void greater(const row *r)
{
    EACH(at(r, 0, j) > at(r, 1, j));
}

static void argmax(const row *r)
{
    int best = 0;
    for (int j = 0; j < r->in_dim[0]; j++)
        if (r->in[0][j] > r->in[0][best]) best = j;
    r->out[0] = best;
}

static void onehot(const row *r)
{
    EACH(j == (int)r->in[0][0]);
}

static void concat(const row *r)
{
    int to = 0;
    for (int s = 0; s < r->n_in; s++)
        for (int j = 0; j < r->in_dim[s]; j++) r->out[to++] = r->in[s][j];
}

static void slice(const row *r)
{
    EACH(r->in[0][r->k + j]);
}

static void sum(const row *r)
{
    r->out[0] = 0;
    for (int j = 0; j < r->in_dim[0]; j++) r->out[0] += r->in[0][j];
}

/* Of x, or of x / t. */
static void log_softmax(const row *r)
{
    const double t = r->n_in > 1 ? r->in[1][0] : 1;
    double       total = 0;
    for (int j = 0; j < r->dim; j++) total += exp(r->in[0][j] / t);
    EACH(r->in[0][j] / t - log(total));
}

/* The softmax of input 2, or of the sum of 2 and 3; input 0 is the same, and not looked at. */
static double mean_of(const row *r, bool two)
{
    double total = 0, weighted = 0;
    for (int j = 0; j < r->in_dim[1]; j++) {
        const double e = exp(r->in[2][j] + (two ? r->in[3][j] : 0));
        total += e;
        weighted += e * r->in[1][j];
    }
    return weighted / total;
}

static void log_softmax_tangent(const row *r)
{
    const double t = r->n_in > 3 ? r->in[3][0] : 1;
    EACH((r->in[1][j] - mean_of(r, false)) / t);
}

static void softmax_dot(const row *r)
{
    r->out[0] = mean_of(r, r->n_in > 3);
}

static void log_softmax_pick(const row *r)
{
    double total = 0;
    for (int j = 0; j < r->in_dim[0]; j++) total += exp(r->in[0][j]);
    r->out[0] = r->in[0][(int)r->in[1][0]] - log(total);
}

static void dot(const row *r)
{
    r->out[0] = 0;
    for (int j = 0; j < r->in_dim[0]; j++) r->out[0] += r->in[0][j] * r->in[1][j];
}

static void exp_dot(const row *r)
{
    r->out[0] = 0;
    for (int j = 0; j < r->in_dim[0]; j++)
        r->out[0] += exp(r->in[0][j]) * r->in[1][j] * (r->n_in > 2 ? r->in[2][j] : 1);
}

static void log_sum_exp(const row *r)
{
    double total = 0;
    for (int j = 0; j < r->in_dim[0]; j++) total += exp(r->in[0][j] + (r->n_in > 1 ? r->in[1][j] : 0));
    r->out[0] = log(total);
}

static void pick(const row *r)
{
    r->out[0] = r->in[0][(int)r->in[1][0]];
}

static void dense(const row *r)
{
    for (int j = 0; j < r->dim; j++) {
        double y = r->b ? r->b[j] : 0;
        for (int s = 1; s < r->n_in; s++) y += r->in[s][j];
        for (int i = 0; r->in[0] && i < r->in_dim[0]; i++) y += r->w[j * r->cols + r->offset + i] * r->in[0][i];
        r->out[j] = function(r->k, y);
    }
}

static void bits(const row *r)
{
    for (int j = 0; j < r->dim; j++) {
        double y = r->b ? r->b[j] : 0;
        for (int i = 0; i < r->in_dim[0]; i++) y += r->w[j * r->cols + r->offset + i] * (r->s * r->in[0][i] + r->t);
        r->out[j] = y;
    }
}

static void embed(const row *r)
{
    const int index = r->offset + (int)r->in[0][0];
    EACH(r->k ? r->w[index * r->cols + j] : r->w[j * r->cols + index]);
}

static void gru(const row *r)
{
    const int     H = r->dim;
    const double *a = r->in[0], *c = r->in[1], *h = r->in[2];
    for (int j = 0; j < H; j++) {
        const double reset = function(RWS_SIGMOID, a[j] + c[j]), update = function(RWS_SIGMOID, a[H + j] + c[H + j]);
        const double fresh = tanh(a[2 * H + j] + reset * c[2 * H + j]);
        r->out[j] = (1 - update) * fresh + update * h[j];
    }
}

/* One point of a picture of rows x cols, bilinear: missing neighbours count as zero. */
static double point(const double *image, int rows, int cols, double y, double x)
{
    const double fx = floor(x), fy = floor(y), dx = fx + 1 - x, dy = fy + 1 - y;
    double       total = 0;
    if (!(x > -1 && x < cols && y > -1 && y < rows)) return 0;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) {
            const int row = (int)fy + i, col = (int)fx + j;
            if (row < 0 || row >= rows || col < 0 || col >= cols) continue;
            total += (i ? 1 - dy : dy) * (j ? 1 - dx : dx) * (image ? image[row * cols + col] : 1);
        }
    return total;
}

static double unit(int j, int n)
{
    return -1 + 2.0 * j / (n - 1);
}

/* Where canvas point j lies in a glimpse, and glimpse point j in an image. */
static double written(int j, int n, int n_source, double scale, double shift)
{
    return ((unit(j, n) - shift) / scale + 1) * (n_source - 1) / 2;
}

static double seen(int j, int n, int n_source, double scale, double shift)
{
    return (scale * unit(j, n) + shift + 1) * (n_source - 1) / 2;
}

static void attend(const row *r)
{
    const int     rows = r->k, cols = r->in_dim[0] / rows, out_rows = r->offset, out_cols = r->dim / out_rows;
    const double *w = r->in[1];
    EACH(point(r->in[0], rows, cols, seen(j / out_cols, out_rows, rows, w[1], w[3]),
               seen(j % out_cols, out_cols, cols, w[0], w[2])));
}

static double placed(const double *glimpse, int rows, int cols, const double *w, int out_rows, int out_cols, int j)
{
    return point(glimpse, rows, cols, written(j / out_cols, out_rows, rows, w[1], w[3]),
                 written(j % out_cols, out_cols, cols, w[0], w[2]));
}

static void place(const row *r)
{
    EACH(placed(r->in[0], r->k, r->in_dim[0] / r->k, r->in[1], r->offset, r->dim / r->offset, j));
}

static void cover(const row *r)
{
    EACH(placed(NULL, r->k, (int)r->t, r->in[0], r->offset, r->dim / r->offset, j));
}

/* The logit of pixel j; inputs from `at` are front, back, glimpse, where, … */
static double pixel(const row *r, int at, int j)
{
    double y = 0, a = 0;
    for (int s = at + 2; s < r->n_in; s += 2) {
        const int cols = r->in_dim[s] / r->k, out_cols = r->in_dim[at] / r->offset;
        y += placed(r->in[s], r->k, cols, r->in[s + 1], r->offset, out_cols, j);
        a += placed(NULL, r->k, cols, r->in[s + 1], r->offset, out_cols, j);
    }
    const double mask = function(RWS_SIGMOID, 20 * a - 10);
    return fmin(16, fmax(-88, y + mask * r->in[at][j] + (mask - 1) * r->in[at + 1][j]));
}

static void picture(const row *r)
{
    EACH(pixel(r, 0, j));
}

static void picture_bits(const row *r)
{
    r->out[0] = 0;
    for (int j = 0; j < r->in_dim[0]; j++) r->out[0] += r->in[0][j] * pixel(r, 1, j) - log1p(exp(pixel(r, 1, j)));
}

static void here(const row *r)
{
    EACH(at(r, 0, j));
}

static void clip(const row *r)
{
    EACH(fmin(r->t, fmax(r->s, at(r, 0, j))));
}

static void defend(const row *r)
{
    EACH(log((1 - r->s) * exp(at(r, 0, j)) + r->s / r->dim));
}

static void defend_at(const row *r)
{
    EACH(log((1 - r->s) * (j == (int)r->in[0][0]) + r->s / r->dim));
}

/* As Tucker et al. write it, with probabilities. */
static void conditional_gumbel(const row *r)
{
    const int    z = (int)r->in[2][0];
    const double top = log(r->in[1][z]);
    EACH(j == z ? -log(-top) : -log(-log(r->in[1][j]) / exp(r->in[0][j]) - top));
}

static void log_sigmoids(const row *r)
{
    const double p = function(RWS_SIGMOID, r->in[0][0]);
    r->out[0] = log(1 - p);
    r->out[1] = log(p);
}

/* Floats that are words, and back; small ones, which are the tiniest of floats and as such survive as doubles. */
static float float_of(uint32_t word)
{
    float x;
    memcpy(&x, &word, sizeof x);
    return x;
}

static uint32_t word_of(double x)
{
    const float as_float = (float)x;
    uint32_t    word;
    memcpy(&word, &as_float, sizeof word);
    return word;
}

static void bernoulli_draw(const row *r)
{
    uint32_t word[5], block[4];
    for (int i = 0; i < 5; i++) word[i] = word_of(r->in[1][i]);
    const rws_key key = {{word[3], word[4]}};
    for (int j = 0; j < r->dim; j++) {
        if (j % 4 == 0) rws_rng_blocks(key, 1, &word[0], &word[1], word[2], (uint32_t)j / 4 + 1, block);
        r->out[j] = (double)rws_unit(block[j % 4]) < (1 - r->s) * function(RWS_SIGMOID, r->in[0][j]) + r->s / 2;
    }
}

/* log p is linear in x; p(1) and p(0) are the two ends. */
static void bernoulli_density(const row *r)
{
    r->out[0] = 0;
    for (int j = 0; j < r->in_dim[1]; j++) {
        const double p = function(RWS_SIGMOID, r->in[1][j]), x = r->in[0][j];
        r->out[0] += x * log(p) + (1 - x) * log(1 - p);
    }
}

static void bernoulli_defended(const row *r)
{
    r->out[0] = 0;
    for (int j = 0; j < r->in_dim[1]; j++) {
        const double p = function(RWS_SIGMOID, r->in[1][j]);
        r->out[0] += log((1 - r->s) * (r->in[0][j] == 1 ? p : 1 - p) + r->s / 2);
    }
}

static void normal_draw(const row *r)
{
    EACH(at(r, 0, j) + at(r, 1, j) * at(r, 2, j));
}

static void normal_density(const row *r)
{
    r->out[0] = 0;
    for (int j = 0; j < widest(r); j++) {
        const double sd = at(r, 2, j);
        r->out[0] += log(exp(-pow(at(r, 0, j) - at(r, 1, j), 2) / (2 * sd * sd)) / (sd * sqrt(2 * M_PI)));
    }
}

static void uniform_draw(const row *r)
{
    EACH((1 - at(r, 2, j)) * at(r, 0, j) + at(r, 2, j) * at(r, 1, j));
}

static void uniform_density(const row *r)
{
    r->out[0] = 0;
    for (int j = 0; j < widest(r); j++) r->out[0] += log(1 / (at(r, 2, j) - at(r, 1, j)));
}

static void gumbel_draw(const row *r)
{
    EACH(at(r, 0, j) - log(-log(at(r, 1, j))));
}

static void gumbel_density(const row *r)
{
    r->out[0] = 0;
    for (int j = 0; j < r->in_dim[1]; j++) {
        const double e = exp(-(r->in[0][j] - r->in[1][j]));
        r->out[0] += log(e * exp(-e));
    }
}

/* Maddison et al., eq. 10, with probabilities and points instead of their logarithms. */
static void concrete_density(const row *r)
{
    const int    C = r->in_dim[1];
    const double tau = r->in[2][0];
    double       front = tgamma(C) * pow(tau, C - 1), total = 0;
    for (int j = 0; j < C; j++) {
        front *= exp(r->in[1][j]) * pow(exp(r->in[0][j]), -tau - 1);
        total += exp(r->in[1][j]) * pow(exp(r->in[0][j]), -tau);
    }
    r->out[0] = log(front / pow(total, C));
}

#define MAX_SHAPES 12
#define ONE(a)   \
    {            \
        {        \
            a, 1 \
        }        \
    }
#define TWO(a, n, b, m) \
    {                   \
        {a, n},         \
        {               \
            b, m        \
        }               \
    }
#define THREE(a, n, b, m, c, o) \
    {                           \
        {a, n}, {b, m},         \
        {                       \
            c, o                \
        }                       \
    }

static const struct subject {
    const char *name;
    void (*twin)(const row *r);
    shape  shapes[MAX_SHAPES];
    double slack; /* times the tolerance, where parts cancel within a row; 0: none */
} subjects[] = {
    {"affine",
     affine,
     {{1, ONE(REAL), .s = 2, .t = -1}, {5, {{REAL, 5}}, .s = -0.5f, .t = 3}, {33, {{REAL, 33}}, .s = 1}}},
    {"detach", slice, {{1, ONE(REAL)}, {5, {{REAL, 5}}}}},
    {"add",
     add,
     {{1, TWO(REAL, 1, REAL, 1)},
      {5, TWO(REAL, 5, REAL, 5)},
      {5, TWO(REAL, 1, REAL, 5)},
      {33, TWO(REAL, 33, REAL, 1)}}},
    {"sub",
     sub,
     {{1, TWO(REAL, 1, REAL, 1)},
      {5, TWO(REAL, 5, REAL, 5)},
      {5, TWO(REAL, 1, REAL, 5)},
      {33, TWO(REAL, 33, REAL, 1)}}},
    {"mul",
     mul,
     {{1, TWO(REAL, 1, REAL, 1)},
      {5, TWO(REAL, 5, REAL, 5)},
      {5, TWO(REAL, 1, REAL, 5)},
      {33, TWO(REAL, 33, REAL, 1)}}},
    {"div",
     quotient,
     {{1, TWO(REAL, 1, POSITIVE, 1)},
      {5, TWO(REAL, 5, LOW, 5)},
      {5, TWO(REAL, 1, POSITIVE, 5)},
      {33, TWO(REAL, 33, POSITIVE, 1)}}},
    {"apply",
     apply,
     {{1, ONE(FOR_X), .each_function = true},
      {5, {{FOR_X, 5}}, .each_function = true},
      {33, {{FOR_X, 33}}, .each_function = true}}},
    {"apply_tangent",
     apply_tangent,
     {{1, TWO(FOR_Y, 1, REAL, 1), .each_function = true},
      {5, TWO(FOR_Y, 5, REAL, 5), .each_function = true},
      {5, TWO(FOR_Y, 5, REAL, 1), .each_function = true},
      {33, TWO(FOR_Y, 33, REAL, 33), .each_function = true}}},
    {"here", here, {{1, ONE(REAL)}, {33, {{REAL, 33}}}}},
    {"clip", clip, {{5, {{REAL, 5}}, .s = -1, .t = 1.25f}, {33, {{REAL, 33}}, .s = -0.5f, .t = 9}}},
    {"greater", greater, {{1, TWO(REAL, 1, REAL, 1)}, {5, TWO(REAL, 5, REAL, 1)}, {33, TWO(REAL, 1, REAL, 33)}}},
    {"argmax", argmax, {{1, ONE(REAL)}, {1, {{REAL, 5}}}, {1, {{REAL, 33}}}}},
    {"onehot", onehot, {{1, ONE(INDEX), .n_index = 1}, {5, ONE(INDEX), .n_index = 5}, {33, ONE(INDEX), .n_index = 33}}},
    {"concat",
     concat,
     {{1, ONE(REAL)},
      {9, THREE(REAL, 3, REAL, 1, REAL, 5)},
      {13, {{REAL, 1}, {REAL, 2}, {REAL, 3}, {REAL, 1}, {REAL, 1}, {REAL, 1}, {REAL, 1}, {REAL, 3}}}}},
    {"slice", slice, {{1, ONE(REAL)}, {2, {{REAL, 5}}, .k = 1}, {1, {{REAL, 5}}, .k = 4}, {17, {{REAL, 33}}, .k = 9}}},
    {"sum", sum, {{1, ONE(REAL)}, {1, {{REAL, 5}}}, {1, {{REAL, 33}}}}},
    {"log_softmax",
     log_softmax,
     {{1, ONE(REAL)}, {2, {{REAL, 2}}}, {5, {{REAL, 5}}}, {33, {{REAL, 33}}}, {13, TWO(REAL, 13, POSITIVE, 1)}}},
    {"log_softmax_pick",
     log_softmax_pick,
     {{1, TWO(REAL, 1, INDEX, 1), .n_index = 1},
      {1, TWO(REAL, 5, INDEX, 1), .n_index = 5},
      {1, TWO(REAL, 20, INDEX, 1), .n_index = 20}}},
    {"log_softmax_tangent",
     log_softmax_tangent,
     {{1, THREE(SOFTMAX, 1, REAL, 1, REAL, 1)},
      {13, THREE(SOFTMAX, 13, REAL, 13, REAL, 13)},
      {20, {{SOFTMAX, 20}, {REAL, 20}, {REAL, 20}, {POSITIVE, 1}}}}},
    {"dot", dot, {{1, TWO(REAL, 1, REAL, 1)}, {1, TWO(REAL, 5, REAL, 5)}, {1, TWO(REAL, 33, REAL, 33)}}},
    {"exp_dot",
     exp_dot,
     {{1, TWO(REAL, 1, REAL, 1)}, {1, TWO(REAL, 20, REAL, 20)}, {1, THREE(REAL, 13, REAL, 13, REAL, 13)}}},
    {"log_sum_exp",
     log_sum_exp,
     {{1, ONE(REAL)}, {1, {{REAL, 2}}}, {1, {{REAL, 33}}}, {1, TWO(REAL, 5, REAL, 5)}, {1, TWO(REAL, 20, REAL, 20)}}},
    {"softmax_dot",
     softmax_dot,
     {{1, THREE(SOFTMAX, 1, REAL, 1, REAL, 1)},
      {1, THREE(SOFTMAX, 5, REAL, 5, REAL, 5)},
      {1, {{SOFTMAX, 20}, {REAL, 20}, {REAL, 20}, {REAL, 20}}}}},
    {"pick", pick, {{1, TWO(REAL, 1, INDEX, 1), .n_index = 1}, {1, TWO(REAL, 5, INDEX, 1), .n_index = 5}}},
    {"bits",
     bits,
     {{1, {{FLAG, 1}}, .s = 1, .rows = 1, .cols = 1},
      {5, {{FLAG, 9}}, .s = 2, .t = -1, .rows = 5, .cols = 9, .bias = true},
      {33, {{FLAG, 40}}, .s = 2, .t = -1, .rows = 33, .cols = 51, .offset = 7, .bias = true}}},
    {"dense",
     dense,
     {{4, {{SMALL, 3}}, .rows = 4, .cols = 3, .bias = true, .each_function = true},
      {1, ONE(SMALL), .rows = 1, .cols = 1, .bias = true, .each_function = true},
      {9, {{SMALL, 1}}, .rows = 9, .cols = 1, .k = RWS_TANH},              /* inner dimension 1 … */
      {9, {{SMALL, 2}}, .rows = 9, .cols = 7, .offset = 3, .k = RWS_TANH}, /* … and 2 */
      {1, {{SMALL, 6}}, .rows = 1, .cols = 6, .bias = true, .k = RWS_SIGMOID},
      {7, {{SMALL, 5}}, .rows = 7, .cols = 11, .offset = 4}, /* a block of W alone */
      {5, {{SMALL, 1}}, .rows = 5, .cols = 4, .offset = 2},  /* a column of it */
      {6, {{ABSENT, 0}, {SMALL, 6}, {SMALL, 6}}, .rows = 6, .cols = 2, .bias = true, .k = RWS_TANH},
      {5,
       {{SMALL, 3}, {SMALL, 5}, {SMALL, 5}, {SMALL, 5}},
       .rows = 5,
       .cols = 8,
       .offset = 5,
       .bias = true,
       .k = RWS_TANH},
      {3,
       {{SMALL, 2}, {SMALL, 3}, {SMALL, 3}, {SMALL, 3}, {SMALL, 3}, {SMALL, 3}, {SMALL, 3}, {SMALL, 3}},
       .rows = 3,
       .cols = 2},
      {33, {{SMALL, 17}, {SMALL, 33}}, .rows = 33, .cols = 17, .bias = true, .k = RWS_TANH}}},
    {"embed",
     embed,
     {{1, ONE(INDEX), .rows = 1, .cols = 1, .n_index = 1, .t = 1},
      {4, ONE(INDEX), .rows = 4, .cols = 9, .offset = 2, .n_index = 5, .t = 5},
      {3, ONE(INDEX), .rows = 7, .cols = 3, .k = 1, .n_index = 7},
      {1, ONE(INDEX), .rows = 5, .cols = 1, .k = 1, .n_index = 5}}},
    {"gru",
     gru,
     {{1, THREE(REAL, 3, REAL, 3, REAL, 1)},
      {5, THREE(REAL, 15, REAL, 15, REAL, 5)},
      {17, THREE(REAL, 51, REAL, 51, REAL, 17)}}},
    {"attend",
     attend,
     {{12, TWO(REAL, 30, WHERE, 4), .k = 5, .offset = 3, .source_cols = 6},
      {4, TWO(REAL, 63, WHERE, 4), .k = 9, .offset = 2, .source_cols = 7},
      {60, TWO(REAL, 12, WHERE, 4), .k = 4, .offset = 6, .source_cols = 3}}},
    {"place",
     place,
     {{56, TWO(REAL, 12, WHERE, 4), .k = 3, .offset = 8, .source_cols = 4},
      {9, TWO(REAL, 30, WHERE, 4), .k = 6, .offset = 3, .source_cols = 5},
      {51, TWO(REAL, 4, WHERE, 4), .k = 2, .offset = 3, .source_cols = 2}}},
    {"cover",
     cover,
     {{56, {{WHERE, 4}}, .k = 3, .t = 4, .offset = 8, .source_cols = 4},
      {51, {{WHERE, 4}}, .k = 2, .t = 2, .offset = 3, .source_cols = 2}}},
    {"picture",
     picture,
     {{20, TWO(REAL, 20, REAL, 20), .k = 3, .offset = 4},
      {56, {{REAL, 56}, {REAL, 56}, {REAL, 12}, {WHERE, 4}}, .k = 3, .offset = 8, .source_cols = 4},
      {51,
       {{STEEP, 51}, {STEEP, 51}, {REAL, 4}, {WHERE, 4}, {REAL, 4}, {WHERE, 4}},
       .k = 2,
       .offset = 3,
       .source_cols = 2}}},
    {"picture_bits",
     picture_bits,
     {{1, THREE(BIT, 20, REAL, 20, REAL, 20), .k = 3, .offset = 4},
      {1, {{BIT, 56}, {REAL, 56}, {REAL, 56}, {REAL, 12}, {WHERE, 4}}, .k = 3, .offset = 8, .source_cols = 4},
      {1,
       {{BIT, 51}, {STEEP, 51}, {STEEP, 51}, {REAL, 4}, {WHERE, 4}, {REAL, 4}, {WHERE, 4}, {REAL, 4}, {WHERE, 4}},
       .k = 2,
       .offset = 3,
       .source_cols = 2},
      {1, {{NOISE, 36}, {REAL, 36}, {REAL, 36}, {REAL, 12}, {WHERE, 4}}, .k = 4, .offset = 4, .source_cols = 3}},
     .slack = 10},
    {"defend",
     defend,
     {{2, {{LOG_PROB, 2}}, .s = 0.2f}, {5, {{LOG_PROB, 5}}, .s = 0.01f}, {33, {{LOG_PROB, 33}}, .s = 1}}},
    {"defend_at", defend_at, {{2, ONE(INDEX), .s = 0.2f, .n_index = 2}, {5, ONE(INDEX), .s = 0.01f, .n_index = 5}}},
    {"conditional_gumbel",
     conditional_gumbel,
     {{1, THREE(LOG_PROB, 1, NOISE, 1, INDEX, 1), .s = 1e-6f, .n_index = 1},
      {5, THREE(LOG_PROB, 5, NOISE, 5, INDEX, 1), .s = 1e-6f, .n_index = 5},
      {33, THREE(LOG_PROB, 33, NOISE, 33, INDEX, 1), .s = 1e-6f, .n_index = 33}}},
    {"log_sigmoids", log_sigmoids, {{2, ONE(REAL)}}},
    {"bernoulli_draw",
     bernoulli_draw,
     {{1, TWO(REAL, 1, COUNTER, 5)},
      {5, TWO(REAL, 5, COUNTER, 5), .s = 0.5f},
      {33, TWO(REAL, 33, COUNTER, 5), .s = 0.1f}}},
    {"bernoulli_density",
     bernoulli_density,
     {{1, TWO(BIT, 1, REAL, 1)}, {1, TWO(BIT, 5, REAL, 5)}, {1, TWO(BIT, 33, REAL, 33)}}},
    {"bernoulli_defended",
     bernoulli_defended,
     {{1, TWO(BIT, 1, REAL, 1), .s = 0.5f},
      {1, TWO(BIT, 5, REAL, 5), .s = 0.1f},
      {1, TWO(BIT, 33, REAL, 33), .s = 0.2f}}},
    {"normal_draw",
     normal_draw,
     {{1, THREE(REAL, 1, POSITIVE, 1, NOISE, 1)},
      {5, THREE(REAL, 5, POSITIVE, 5, NOISE, 5)},
      {5, THREE(REAL, 1, POSITIVE, 5, NOISE, 5)},
      {33, THREE(REAL, 33, POSITIVE, 1, NOISE, 33)}}},
    {"normal_density",
     normal_density,
     {{1, THREE(REAL, 1, REAL, 1, POSITIVE, 1)},
      {1, THREE(REAL, 5, REAL, 5, POSITIVE, 5)},
      {1, THREE(REAL, 5, REAL, 1, POSITIVE, 1)},
      {1, THREE(REAL, 5, REAL, 1, POSITIVE, 5)},
      {1, THREE(REAL, 1, REAL, 5, POSITIVE, 1)},
      {1, THREE(REAL, 33, REAL, 33, POSITIVE, 1)}}},
    {"uniform_draw",
     uniform_draw,
     {{1, THREE(LOW, 1, POSITIVE, 1, NOISE, 1)},
      {5, THREE(LOW, 5, POSITIVE, 5, NOISE, 5)},
      {5, THREE(LOW, 1, POSITIVE, 5, NOISE, 5)},
      {33, THREE(LOW, 33, POSITIVE, 1, NOISE, 33)}}},
    {"uniform_density",
     uniform_density,
     {{1, THREE(INNER, 1, LOW, 1, POSITIVE, 1)},
      {1, THREE(INNER, 5, LOW, 5, POSITIVE, 5)},
      {1, THREE(INNER, 5, LOW, 1, POSITIVE, 5)},
      {1, THREE(INNER, 33, LOW, 33, POSITIVE, 1)}}},
    {"gumbel_draw",
     gumbel_draw,
     {{1, TWO(REAL, 1, NOISE, 1)}, {5, TWO(REAL, 5, NOISE, 5), .s = 1e-6f}, {33, TWO(REAL, 33, NOISE, 33)}}},
    {"gumbel_density",
     gumbel_density,
     {{1, TWO(REAL, 1, REAL, 1)}, {1, TWO(REAL, 5, REAL, 5)}, {1, TWO(REAL, 33, REAL, 33)}}},
    {"concrete_density",
     concrete_density,
     {{1, THREE(LOG_PROB, 2, LOG_PROB, 2, POSITIVE, 1)},
      {1, THREE(LOG_PROB, 5, LOG_PROB, 5, POSITIVE, 1)},
      {1, THREE(LOG_PROB, 17, LOG_PROB, 17, POSITIVE, 1)}}},
};
enum { N_SUBJECTS = sizeof subjects / sizeof *subjects };

static const struct subject *subject_of(const char *name)
{
    for (int i = 0; i < N_SUBJECTS; i++)
        if (strcmp(subjects[i].name, name) == 0) return &subjects[i];
    return NULL;
}

/* ---- a trial */

typedef struct {
    const rws_op         *op;
    const struct subject *subject;
    const shape          *shape;
    int                   k, n, n_in, indexed; /* indexed: bit s for an input read through row indices */
    int                   n_base[RWS_OP_INPUTS];
    double               *in[RWS_OP_INPUTS]; /* the numbers, as the twin reads them */
    uint32_t             *index[RWS_OP_INPUTS];
    float                *sink[RWS_OP_INPUTS], *sink_before[RWS_OP_INPUTS], *zeros[RWS_OP_INPUTS];
    rws_params            params;
    rws_param            *w, *b;
    double               *weights; /* the flat vector */
    float                *gradient, *gradient_before, *gout;
    rws_call              call;
    rws_arena             arena;
    rws_products          products;
    void                 *taken[128];
    int                   n_taken;
} trial;

static const char *describe(const trial *t, char text[static 160])
{
    snprintf(text, 160, "%s, shape %d, k %d, %d rows, indexed %x", t->op->name, (int)(t->shape - t->subject->shapes),
             t->k, t->n, (unsigned)t->indexed);
    return text;
}

/* Exact sizes from malloc, so that a sanitizer sees one number too many. */
static void *take(trial *t, size_t n, size_t item)
{
    assert_in_range(t->n_taken, 0, 127);
    void *p = malloc(n * item);
    assert_non_null(p);
    return t->taken[t->n_taken++] = p;
}

static float *take_floats(trial *t, die *d, size_t n)
{
    float *p = take(t, n, sizeof *p);
    for (size_t i = 0; i < n; i++) p[i] = d ? (float)die_between(d, -1, 1) : NAN;
    return p;
}

static double domain(int f, die *d)
{
    const double x = die_between(d, 0.2, 2) * (die_below(d, 2) ? 1 : -1); /* away from the kinks at 0 */
    return f == RWS_LOG ? fabs(x) : x;
}

static double make(const trial *t, kind kind, die *d)
{
    switch (kind) {
    case SMALL: return die_between(d, -0.5, 0.5);
    case INNER: return die_between(d, -0.9, 0.25);
    case LOW: return die_between(d, -2, -1);
    case POSITIVE: return die_between(d, 0.3, 2);
    case BIT:
    case FLAG: return die_below(d, 2);
    case LOG_PROB: return die_between(d, -4, -0.1);
    case FOR_X: return domain(t->k, d);
    case FOR_Y: return t->k == RWS_RELU ? die_between(d, 0.2, 2) : function(t->k, domain(t->k, d));
    case NOISE: return die_between(d, 0.05, 0.95);
    case COUNTER: return (double)float_of((uint32_t)die_below(d, 1 << 20));
    case INDEX: return die_below(d, t->shape->n_index);
    case STEEP: return die_between(d, -30, 30);
    default: return die_between(d, -2, 2);
    }
}

/* Whether points along an axis stay away from the lines of the source's grid, where the slope jumps. */
static bool smooth(const trial *t, int n, int n_source, double scale, double shift)
{
    for (int j = 0; j < n; j++) {
        const double x = (strcmp(t->op->name, "attend") == 0 ? seen : written)(j, n, n_source, scale, shift);
        if (fabs(x - rint(x)) < 1e-3) return false;
    }
    return true;
}

static void make_where(const trial *t, float *w, die *d)
{
    const shape *s = t->shape;
    const int    size = strcmp(t->op->name, "picture_bits") == 0 ? s->in[0].dim : s->dim;
    do
        for (int i = 0; i < 4; i++) w[i] = (float)(i < 2 ? die_between(d, 0.2, 1.2) : die_between(d, -0.9, 0.9));
    while (!smooth(t, size / s->offset, s->source_cols, (double)w[0], (double)w[2]) ||
           !smooth(t, s->offset, s->k, (double)w[1], (double)w[3]));
}

static bool has_gradient(kind kind)
{
    return kind != ABSENT && kind != FLAG && kind != NOISE && kind != COUNTER && kind != INDEX && kind != SOFTMAX;
}

static bool kinked(int f)
{
    return f == RWS_RELU || f == RWS_ELU || f == RWS_LOG;
}

/* A weight with a neighbour before it in the flat vector. The bias keeps what enters a kinked function away from 0. */
static void make_weights(trial *t, die *d)
{
    const shape *s = t->shape;
    rws_params_add(&t->params, RWS_THETA, "other", 3, 7);
    t->w = rws_params_add(&t->params, RWS_PHI, "w", s->rows, s->cols);
    const bool either = strcmp(t->op->name, "dense") == 0 || strcmp(t->op->name, "embed") == 0; /* with and without */
    t->w->transposed = (strcmp(t->op->name, "dense") == 0 || s->k == 0) && !(either && t->indexed == 0x555);
    t->b = s->bias ? rws_params_add(&t->params, RWS_PHI, "b", 1, s->rows) : NULL;
    for (int p = 0; p < t->params.n; p++)
        for (size_t i = 0; i < rws_param_size(t->params.list[p]); i++)
            t->params.list[p]->value[i] = (float)die_between(d, -0.5, 0.5);
    for (int j = 0; t->b && kinked(t->k) && j < s->rows; j++) t->b->value[j] = t->k != RWS_LOG && j % 2 ? -2.5f : 2.5f;
    rws_params_pack(&t->params);
    t->weights = take(t, t->params.size, sizeof(double));
    for (size_t i = 0; i < t->params.size; i++) t->weights[i] = (double)t->params.value[i];
    t->gradient_before = take_floats(t, d, t->params.size);
    t->gradient = take_floats(t, NULL, t->params.size);
    t->call.args.w = t->w;
    t->call.args.b = t->b;
    t->call.args.offset = s->offset;
    t->call.w = t->params.value + t->w->offset;
    t->call.wt = t->w->transposed ? t->params.transposed + t->w->transposed_at : NULL;
    t->call.b = t->b ? t->params.value + t->b->offset : NULL;
}

static void make_input(trial *t, int s, die *d)
{
    const int dim = t->shape->in[s].dim;
    if (t->shape->in[s].kind == ABSENT) return;
    /* a third as many rows as are read: most are read by several, some by none */
    t->n_base[s] = t->indexed >> s & 1 ? (t->n + 5) / 3 : t->n;
    const size_t size = (size_t)t->n_base[s] * (size_t)dim;
    float       *data = take_floats(t, d, size);
    t->in[s] = take(t, size, sizeof(double));
    for (size_t i = 0; i < size; i++) {
        if (t->shape->in[s].kind != WHERE) data[i] = (float)make(t, t->shape->in[s].kind, d);
        else if (i % 4 == 0) make_where(t, data + i, d);
    }
    for (size_t i = 0; i < size; i++) t->in[s][i] = (double)data[i];
    if (t->indexed >> s & 1) {
        t->index[s] = take(t, (size_t)t->n, sizeof(uint32_t));
        for (int i = 0; i < t->n; i++) t->index[s][i] = (uint32_t)die_below(d, t->n_base[s]);
    }
    t->call.in[s] = (rws_view){data, t->index[s], dim};
    t->sink_before[s] = take_floats(t, d, size);
    t->sink[s] = take_floats(t, NULL, size);
    t->zeros[s] = take_floats(t, NULL, size);
    memset(t->zeros[s], 0, size * sizeof(float));
}

static int base_row(const trial *t, int s, int i)
{
    return t->index[s] ? (int)t->index[s][i] : i;
}

static void make_softmax(trial *t)
{
    const int dim = t->shape->in[0].dim;
    for (int i = 0; i < t->n; i++) {
        float       *p = (float *)t->call.in[0].data + i * dim;
        const float *a = t->call.in[2].data + base_row(t, 2, i) * dim, *b = NULL;
        double       total = 0;
        if (t->n_in > 3 && t->shape->in[3].dim == dim) b = t->call.in[3].data + base_row(t, 3, i) * dim;
        for (int j = 0; j < dim; j++) total += exp((double)a[j] + (b ? (double)b[j] : 0));
        for (int j = 0; j < dim; j++) p[j] = (float)(exp((double)a[j] + (b ? (double)b[j] : 0)) / total);
    }
}

static void trial_init(trial *t, const rws_op *op, const shape *shape, int k, int n, int indexed, die *d)
{
    *t = (trial){.op = op, .subject = subject_of(op->name), .shape = shape, .k = k, .n = n, .indexed = indexed};
    while (t->n_in < RWS_OP_INPUTS && shape->in[t->n_in].kind != NONE) t->n_in++;
    t->call = (rws_call){.op = op,
                         .n = n,
                         .dim = shape->dim,
                         .n_in = t->n_in,
                         .arena = &t->arena,
                         .products = &t->products,
                         .args = {.k = k, .s = shape->s, .t = shape->t, .offset = shape->offset}};
    if (shape->in[0].kind == SOFTMAX) t->indexed &= ~1; /* each row has its own */
    for (int s = 0; s < t->n_in; s++) make_input(t, s, d);
    if (shape->in[0].kind == SOFTMAX) make_softmax(t);
    if (shape->rows) make_weights(t, d);
    t->call.out = take_floats(t, NULL, (size_t)n * (size_t)shape->dim);
    if (op->saves) t->call.saved = take_floats(t, NULL, (size_t)n * (size_t)shape->in[0].dim);
    t->gout = take_floats(t, d, (size_t)n * (size_t)shape->dim);
    t->call.gout = t->gout;
}

static void trial_release(trial *t)
{
    for (int i = 0; i < t->n_taken; i++) free(t->taken[i]);
    rws_params_release(&t->params);
    rws_arena_free(&t->arena);
    free(t->products.list);
}

static void twin_row(const trial *t, int i, double *out)
{
    const shape *sh = t->shape;
    row          r = {.dim = sh->dim,
                      .n_in = t->n_in,
                      .k = t->k,
                      .cols = sh->cols,
                      .offset = sh->offset,
                      .s = (double)sh->s,
                      .t = (double)sh->t,
                      .out = out};
    for (int s = 0; s < t->n_in; s++) {
        r.in_dim[s] = sh->in[s].dim;
        r.in[s] = t->in[s] ? t->in[s] + (size_t)base_row(t, s, i) * (size_t)sh->in[s].dim : NULL;
    }
    if (t->w) r.w = t->weights + t->w->offset;
    if (t->b) r.b = t->weights + t->b->offset;
    t->subject->twin(&r);
}

static void check_forward(trial *t)
{
    char   text[160];
    double want[WIDEST];
    t->op->forward(&t->call);
    for (int i = 0; i < t->n; i++) {
        twin_row(t, i, want);
        for (int j = 0; j < t->shape->dim; j++) {
            const double got = (double)t->call.out[i * t->shape->dim + j];
            if (!near(got, want[j], TOLERANCE * (1 + fabs(want[j]))))
                fail_msg("%s: value (%d, %d) is %.9g, not %.9g", describe(t, text), i, j, got, want[j]);
        }
    }
}

/* The derivative of sum gout * out by one number, by central differences over the rows that read it; *scale becomes the
 * sum of the magnitudes of its parts. */
static double difference(trial *t, double *x, int s, int base, double *scale)
{
    const double was = *x, h = 1e-5 * (1 + fabs(was));
    double       up[WIDEST], down[WIDEST], total = 0;
    *scale = 1;
    for (int i = 0; i < t->n; i++) {
        if (s >= 0 && base_row(t, s, i) != base) continue;
        *x = was + h;
        twin_row(t, i, up);
        *x = was - h;
        twin_row(t, i, down);
        *x = was;
        for (int j = 0; j < t->shape->dim; j++) {
            const double part = (double)t->gout[i * t->shape->dim + j] * (up[j] - down[j]) / (2 * h);
            total += part;
            *scale += fabs(part);
        }
    }
    return total;
}

static double tolerance(const trial *t)
{
    return TOLERANCE * (t->subject->slack ? t->subject->slack : 1);
}

static void check_sink(trial *t, int s)
{
    char   text[160];
    double scale;
    for (int b = 0; b < t->n_base[s]; b++)
        for (int j = 0; j < t->shape->in[s].dim; j++) {
            const int    place = b * t->shape->in[s].dim + j;
            const double by = difference(t, &t->in[s][place], s, b, &scale);
            const double got = (double)t->sink[s][place], want = (double)t->sink_before[s][place] + by;
            if (!near(got, want, tolerance(t) * scale))
                fail_msg("%s: gradient of input %d at (%d, %d) is %.9g, not %.9g", describe(t, text), s, b, j,
                         got - (double)t->sink_before[s][place], by);
        }
}

static void check_weights(trial *t)
{
    char   text[160];
    double scale;
    for (size_t i = 0; i < t->params.size; i++) {
        const double by = difference(t, &t->weights[i], -1, 0, &scale);
        const double got = (double)t->gradient[i], want = (double)t->gradient_before[i] + by;
        if (!near(got, want, TOLERANCE * scale))
            fail_msg("%s: gradient of parameter %zu is %.9g, not %.9g", describe(t, text), i,
                     got - (double)t->gradient_before[i], by);
    }
}

static size_t sink_size(const trial *t, int s)
{
    return (size_t)t->n_base[s] * (size_t)t->shape->in[s].dim;
}

/* Backward with some gradients wanted: bit s for input s, bit n_in for the weights. It adds to what is there, except
 * where a sink is fresh: there it writes. */
static void check_backward(trial *t, unsigned wanted, bool fresh)
{
    float *kept[RWS_OP_INPUTS];
    memcpy(kept, t->sink_before, sizeof kept);
    for (int s = 0; s < t->n_in; s++) {
        t->call.gin[s] = (rws_sink){0};
        if (!t->in[s] || !has_gradient(t->shape->in[s].kind)) continue;
        memcpy(t->sink[s], t->sink_before[s], sink_size(t, s) * sizeof(float));
        if (!(wanted >> s & 1)) continue;
        t->call.gin[s] = (rws_sink){t->sink[s], t->index[s], fresh && !t->index[s]};
        if (!t->call.gin[s].fresh) continue;
        for (size_t i = 0; i < sink_size(t, s); i++) t->sink[s][i] = NAN;
        t->sink_before[s] = t->zeros[s];
    }
    const bool weights = t->w && wanted >> t->n_in & 1;
    if (t->w) memcpy(t->gradient, t->gradient_before, t->params.size * sizeof(float));
    t->call.gw = weights ? t->gradient + t->w->offset : NULL;
    t->call.gb = weights && t->b ? t->gradient + t->b->offset : NULL;
    t->op->backward(&t->call);
    for (int s = 0; s < t->n_in; s++) rws_call_clear(&t->call, s); /* as the engine does, for what no op writes to */
    if (t->w) rws_products_flush(&t->products, t->gradient, &t->arena);

    for (int s = 0; s < t->n_in; s++) {
        if (!t->in[s] || !has_gradient(t->shape->in[s].kind)) continue;
        if (wanted >> s & 1) check_sink(t, s);
        else assert_memory_equal(t->sink[s], t->sink_before[s], sink_size(t, s) * sizeof(float));
    }
    if (weights) check_weights(t);
    else if (t->w) assert_memory_equal(t->gradient, t->gradient_before, t->params.size * sizeof(float));
    memcpy(t->sink_before, kept, sizeof kept);
}

static void check_trial(const rws_op *op, const shape *shape, int k, int n, int indexed, die *d)
{
    trial t;
    trial_init(&t, op, shape, k, n, indexed, d);
    check_forward(&t);
    if (!op->constant) {
        check_backward(&t, ~0u, false);
        check_backward(&t, ~0u, true);
        for (int s = 0; s <= t.n_in && n < 30; s++) check_backward(&t, 1u << s, s % 2); /* one alone */
    }
    trial_release(&t);
}

/* One test for each op. */
static void op_equals_its_twin(void **state)
{
    const rws_op         *op = *state;
    const struct subject *subject = subject_of(op->name);
    if (!subject) fail_msg("the op %s has no twin in this test", op->name);
    assert_non_null(op->forward);
    assert_true(op->constant == !op->backward);
    const int n_rows[] = {1, 3, 37}, indexed[] = {0, 0xfff, 0x555, 0xaaa};
    die       d = {41};
    int       n_shapes = 0;
    for (const shape *s = subject->shapes; s < subject->shapes + MAX_SHAPES && s->dim; s++, n_shapes++)
        for (int n = 0; n < 3; n++)
            for (int i = 0; i < 4; i++)
                for (int k = s->each_function ? 0 : s->k; k <= (s->each_function ? RWS_LOG : s->k); k++)
                    check_trial(op, s, k, n_rows[n], indexed[i], &d);
    assert_true(n_shapes > 0);
}

static void every_twin_has_an_op(void **state)
{
    (void)state;
    int n = 0;
    for (; rws_ops[n]; n++)
        for (int i = 0; i < n; i++) assert_string_not_equal(rws_ops[i]->name, rws_ops[n]->name);
    for (int i = 0; i < N_SUBJECTS; i++) {
        bool found = false;
        for (int j = 0; j < n; j++) found |= strcmp(rws_ops[j]->name, subjects[i].name) == 0;
        if (!found) fail_msg("the twin of %s has no op in rws_ops", subjects[i].name);
    }
    assert_int_equal(n, N_SUBJECTS);
}

/* ---- at the ends of the number line: -inf is data, NaN never comes of it */

/* The op on one row repeated, so that vector forms and their remainders are both met; the first row is returned. */
static void run_extreme(const rws_op *op, rws_op_args args, int n_in, const rws_view *in, int dim, float *out,
                        float *saved)
{
    enum { N = 19 };
    static float    outs[N * WIDEST], saves[N * WIDEST];
    static uint32_t index[N]; /* zeros */
    rws_arena       arena = {0};
    rws_call        c = {
               .op = op, .n = N, .dim = dim, .n_in = n_in, .out = outs, .saved = saves, .args = args, .arena = &arena};
    for (int s = 0; s < n_in; s++) c.in[s] = (rws_view){in[s].data, index, in[s].dim};
    op->forward(&c);
    for (int i = 1; i < N; i++)
        for (int j = 0; j < dim; j++) {
            const double x = (double)outs[j], y = (double)outs[i * dim + j];
            if (!near(y, x, 1e-6 * fabs(x))) fail_msg("%s: row %d is %g and row 0 %g", op->name, i, y, x);
        }
    memcpy(out, outs, (size_t)dim * sizeof(float));
    if (saved) memcpy(saved, saves, (size_t)in[0].dim * sizeof(float));
    rws_arena_free(&arena);
}

static void expect(const char *what, const float *got, const double *want, int n)
{
    for (int i = 0; i < n; i++)
        if (!near((double)got[i], want[i], 1e-5 * (1 + fabs(want[i]))))
            fail_msg("%s: number %d is %g, not %g", what, i, (double)got[i], want[i]);
}

/* Exponentials that are at hand change nothing, not even where their products vanish. */
static void exponentials_at_hand_change_nothing(void **state)
{
    (void)state;
    enum { DIM = 13, N = 3 };
    const rws_op *const ops[] = {&rws_op_log_sum_exp, &rws_op_exp_dot};
    rws_arena           arena = {0};
    die                 d = {17};
    float               a[N * DIM], b[N * DIM], exp_a[N * DIM], exp_b[N * DIM], out[2][N], saved[2][N * DIM];
    for (int i = 0; i < N * DIM; i++) {
        a[i] = (float)die_between(&d, -4, 0), b[i] = (float)die_between(&d, -4, 0);
        if (i / DIM == 1) *(i % 2 ? &a[i] : &b[i]) -= 60;  /* products of about e^-60 */
        if (i / DIM == 2) *(i % 2 ? &a[i] : &b[i]) -= 200; /* one factor is 0 everywhere */
        exp_a[i] = rws_exp(a[i]), exp_b[i] = rws_exp(b[i]);
    }
    for (int o = 0; o < 2; o++) {
        for (int k = 0; k < 2; k++) {
            rws_call c = {.op = ops[o], .n = N, .dim = 1, .n_in = 2, .out = out[k], .saved = saved[k], .arena = &arena};
            c.in[0] = (rws_view){.data = a, .dim = DIM, .exp = k ? exp_a : NULL};
            c.in[1] = (rws_view){.data = b, .dim = DIM, .exp = k ? exp_b : NULL};
            ops[o]->forward(&c);
        }
        for (int i = 0; i < N; i++)
            assert_true(near((double)out[1][i], (double)out[0][i], 2e-6 * fabs((double)out[0][i])));
        for (int i = 0; i < N * DIM; i++) assert_true(near((double)saved[1][i], (double)saved[0][i], 1e-5));
    }
    rws_arena_free(&arena);
}

static void log_softmax_of_impossible_and_huge(void **state)
{
    (void)state;
    const double inf = (double)INFINITY;
    static const struct {
        float  x[5];
        double log_p[5], p[5];
    } known[] = {
#define I (-(double)INFINITY)
        {{0, -INFINITY, 0, 0, 0},
         {-1.3862943611199, I, -1.3862943611199, -1.3862943611199, -1.3862943611199},
         {0.25, 0, 0.25, 0.25, 0.25}},
        {{-INFINITY, -INFINITY, 7, -INFINITY, -INFINITY}, {I, I, 0, I, I}, {0, 0, 1, 0, 0}},
        {{-INFINITY, 1e30f, -INFINITY, 1e30f, 0},
         {I, -0.693147180559945, I, -0.693147180559945, -1e30},
         {0, 0.5, 0, 0.5, 0}},
        {{1e4f, 0, -1e4f, 1e4f, -INFINITY},
         {-0.693147180559945, -10000.6931471806, -20000.6931471806, -0.693147180559945, I},
         {0.5, 0, 0, 0.5, 0}},
        {{-1e30f, -1e30f, -INFINITY, -INFINITY, -INFINITY},
         {-0.693147180559945, -0.693147180559945, I, I, I},
         {0.5, 0.5, 0, 0, 0}},
#undef I
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        float out[5], p[5];
        run_extreme(&rws_op_log_softmax, (rws_op_args){0}, 1, &(rws_view){.data = known[i].x, .dim = 5}, 5, out, p);
        expect("log_softmax", out, known[i].log_p, 5);
        expect("its probabilities", p, known[i].p, 5);

        float  log_total;
        double top = -inf;
        for (int j = 0; j < 5; j++)
            if (known[i].log_p[j] > -2) top = (double)known[i].x[j] - known[i].log_p[j];
        run_extreme(&rws_op_log_sum_exp, (rws_op_args){0}, 1, &(rws_view){.data = known[i].x, .dim = 5}, 1, &log_total,
                    p);
        expect("log_sum_exp", &log_total, &top, 1);
        expect("its probabilities", p, known[i].p, 5);

        /* the gradient of an entry that is possible, by entries that are not: zero */
        rws_arena arena = {0};
        float     gout[5] = {0}, gin[5] = {0};
        int       chosen = 0;
        while (known[i].log_p[chosen] == -inf) chosen++;
        gout[chosen] = 1;
        rws_call c = {.op = &rws_op_log_softmax,
                      .n = 1,
                      .dim = 5,
                      .n_in = 1,
                      .in = {{known[i].x, NULL, 5}},
                      .gin = {{gin, NULL}},
                      .out = out,
                      .saved = p,
                      .gout = gout,
                      .arena = &arena};
        rws_op_log_softmax.backward(&c);
        for (int j = 0; j < 5; j++) assert_true(near((double)gin[j], (j == chosen) - known[i].p[j], 1e-6));
        rws_arena_free(&arena);
    }
}

static void functions_at_the_ends(void **state)
{
    (void)state;
    const double inf = (double)INFINITY;
    const float  x[6] = {-INFINITY, -1e4f, -200, 200, 1e4f, INFINITY};
    const double want[][6] = {
        [RWS_LINEAR] = {-inf, -1e4, -200, 200, 1e4, inf},
        [RWS_TANH] = {-1, -1, -1, 1, 1, 1},
        [RWS_RELU] = {0, 0, 0, 200, 1e4, inf},
        [RWS_ELU] = {-1, -1, -1, 200, 1e4, inf},
        [RWS_SIGMOID] = {0, 0, 0, 1, 1, 1},
        [RWS_SOFTPLUS] = {0, 0, 0, 200, 1e4, inf},
        [RWS_EXP] = {0, 0, 0, inf, inf, inf},
    };
    const double want_slope[][6] = {
        [RWS_LINEAR] = {1, 1, 1, 1, 1, 1},    [RWS_TANH] = {0},    [RWS_RELU] = {0, 0, 0, 1, 1, 1},
        [RWS_ELU] = {0, 0, 0, 1, 1, 1},       [RWS_SIGMOID] = {0}, [RWS_SOFTPLUS] = {0, 0, 0, 1, 1, 1},
        [RWS_EXP] = {0, 0, 0, inf, inf, inf},
    };
    for (int f = RWS_LINEAR; f <= RWS_EXP; f++) {
        float y[6], slopes[6];
        run_extreme(&rws_op_apply, (rws_op_args){.k = f}, 1, &(rws_view){.data = x, .dim = 6}, 6, y, NULL);
        expect("a function", y, want[f], 6);
        rws_function_slope((rws_function)f, 6, y, (float[]){1, 1, 1, 1, 1, 1}, slopes);
        expect("its slope", slopes, want_slope[f], 6);
    }
    const float ends[3] = {0, 1, INFINITY};
    float       logs[3];
    run_extreme(&rws_op_apply, (rws_op_args){.k = RWS_LOG}, 1, &(rws_view){.data = ends, .dim = 3}, 3, logs, NULL);
    expect("the logarithm", logs, (double[]){-inf, 0, inf}, 3);
}

static void densities_at_the_ends(void **state)
{
    (void)state;
    const double inf = (double)INFINITY;
    float        out[5];

    /* log(1 - p), log p by a logit */
    const struct {
        float  logit;
        double out[2];
    } coins[] = {
        {-INFINITY, {0, -inf}}, {INFINITY, {-inf, 0}}, {1e4f, {-1e4, 0}}, {-1e4f, {0, -1e4}}, {-50, {-1.9e-22, -50}}};
    for (size_t i = 0; i < sizeof coins / sizeof *coins; i++) {
        run_extreme(&rws_op_log_sigmoids, (rws_op_args){0}, 1, &(rws_view){.data = &coins[i].logit, .dim = 1}, 2, out,
                    NULL);
        expect("log_sigmoids", out, coins[i].out, 2);
    }

    /* what cannot happen happens with probability delta / C in the mixture, and what must with the rest */
    const float log_pi[4] = {-INFINITY, 0, -INFINITY, -INFINITY};
    run_extreme(&rws_op_defend, (rws_op_args){.s = 0.25f}, 1, &(rws_view){.data = log_pi, .dim = 4}, 4, out, NULL);
    expect("defend", out, (double[]){log(0.0625), log(0.8125), log(0.0625), log(0.0625)}, 4);

    /* a perturbed impossible category stays impossible */
    const float    v[4] = {0.3f, 0.6f, 0.9f, 0.5f}, z = 1;
    const rws_view conditional[] = {{.data = log_pi, .dim = 4}, {.data = v, .dim = 4}, {.data = &z, .dim = 1}};
    run_extreme(&rws_op_conditional_gumbel, (rws_op_args){.s = 1e-6f}, 3, conditional, 4, out, NULL);
    expect("conditional_gumbel", out, (double[]){-inf, -log(-log((double)v[1])), -inf, -inf}, 4);

    /* the clip keeps the uniform's ends finite */
    const float    u[3] = {0, 0.5f, 1}, m[3] = {0, 0, 0};
    const rws_view gumbel[] = {{.data = m, .dim = 3}, {.data = u, .dim = 3}};
    run_extreme(&rws_op_gumbel_draw, (rws_op_args){.s = 1e-6f}, 2, gumbel, 3, out, NULL);
    assert_true(near((double)out[0], -log(-log(1e-6)), 1e-4) && out[2] > 12 && out[2] < 15);

    /* outside of the interval, and far out in the tails */
    const float  low = -1, high = 3, points[][1] = {{-1.001f}, {3.001f}, {0}};
    const double inside[] = {-inf, -inf, -log(4)};
    for (int i = 0; i < 3; i++) {
        const rws_view in[] = {{.data = points[i], .dim = 1}, {.data = &low, .dim = 1}, {.data = &high, .dim = 1}};
        run_extreme(&rws_op_uniform_density, (rws_op_args){0}, 3, in, 1, out, NULL);
        expect("uniform_density", out, &inside[i], 1);
    }
    const float    zero = 0, one = 1, far = 1e15f, left = -200;
    const rws_view in[] = {{.data = &far, .dim = 1}, {.data = &zero, .dim = 1}, {.data = &one, .dim = 1}};
    run_extreme(&rws_op_normal_density, (rws_op_args){0}, 3, in, 1, out, NULL);
    expect("normal_density", out, (double[]){-5e29}, 1);
    const rws_view in_gumbel[] = {{.data = &left, .dim = 1}, {.data = &zero, .dim = 1}};
    run_extreme(&rws_op_gumbel_density, (rws_op_args){0}, 2, in_gumbel, 1, out, NULL);
    expect("gumbel_density", out, (double[]){-inf}, 1);

    /* bits that are all but certain */
    const float    bits[4] = {0, 1, 0, 1}, logits[4] = {-1e4f, 1e4f, 1e4f, -1e4f};
    const rws_view vector[] = {{.data = bits, .dim = 4}, {.data = logits, .dim = 4}};
    run_extreme(&rws_op_bernoulli_density, (rws_op_args){0}, 2, vector, 1, out, NULL);
    expect("bernoulli_density", out, (double[]){-2e4}, 1);
    run_extreme(&rws_op_bernoulli_defended, (rws_op_args){.s = 0.5f}, 2, vector, 1, out, NULL);
    expect("bernoulli_defended", out, (double[]){2 * log(0.75) + 2 * log(0.25)}, 1);
    const float certain[4] = {-INFINITY, INFINITY, -1e4f, 1e4f};
    for (uint32_t i = 0; i < 1000; i++) {
        const rws_counter counter = {i, 0, 0, {{1, 2}}};
        const rws_view    draw[] = {{.data = certain, .dim = 4}, {.data = (const float *)&counter, .dim = RWS_COUNTER}};
        run_extreme(&rws_op_bernoulli_draw, (rws_op_args){0}, 2, draw, 4, out, NULL);
        expect("bernoulli_draw", out, (double[]){0, 1, 0, 1}, 4);
    }
    run_extreme(&rws_op_bernoulli_density, (rws_op_args){0}, 2,
                (rws_view[]){{.data = bits, .dim = 4}, {.data = certain, .dim = 4}}, 1, out, NULL);
    expect("bernoulli_density", out, (double[]){0}, 1);
}

/* Reading or placing a whole picture at its own size gives that picture; one point further out it is gone. */
static void pictures_at_identity(void **state)
{
    (void)state;
    enum { ROWS = 5, COLS = 7 };
    float picture[ROWS * COLS], out[ROWS * COLS];
    die   d = {5};
    for (int i = 0; i < ROWS * COLS; i++) picture[i] = (float)die_between(&d, -2, 2);
    const rws_op_args   args = {.k = ROWS, .offset = ROWS};
    const rws_op *const ops[] = {&rws_op_attend, &rws_op_place};
    for (int i = 0; i < 2; i++) {
        const float    where[4] = {1, 1, 0, 0}, beside[4] = {1, 1, i ? 2.4f : -2.4f, 0};
        const rws_view in[] = {{.data = picture, .dim = ROWS * COLS}, {.data = where, .dim = 4}},
                       away[] = {in[0], {.data = beside, .dim = 4}};
        run_extreme(ops[i], args, 2, in, ROWS * COLS, out, NULL);
        for (int j = 0; j < ROWS * COLS; j++) assert_true(near((double)out[j], (double)picture[j], 1e-5));
        run_extreme(ops[i], args, 2, away, ROWS * COLS, out, NULL);
        for (int j = 0; j < ROWS * COLS; j++) assert_true(out[j] == 0);
    }
}

/* A background beyond the clip, a huge glimpse and one of no size: the bounds, and no NaN. */
static void pictures_at_the_ends(void **state)
{
    (void)state;
    float front[16], back[16], bits[16], out[16], total;
    for (int i = 0; i < 16; i++) front[i] = 0, back[i] = 200, bits[i] = i % 2;
    const float glimpse[4] = {1e6f, 1e6f, 1e6f, 1e6f}, whole[4] = {1.5f, 1.5f, 0, 0},
                none[4] = {1e-4f, 1e-4f, 0.1f, 0.1f};
    const rws_view    view_bits = {.data = bits, .dim = 16}, view_front = {.data = front, .dim = 16};
    const rws_view    view_back = {.data = back, .dim = 16}, view_glimpse = {.data = glimpse, .dim = 4};
    const rws_view    in[] = {view_bits, view_front, view_back, view_glimpse, {.data = whole, .dim = 4}};
    const rws_view    small[] = {view_bits, view_front, view_back, view_glimpse, {.data = none, .dim = 4}};
    const rws_op_args args = {.k = 2, .offset = 4};
    run_extreme(&rws_op_picture, args, 4, in + 1, 16, out, NULL);
    for (int i = 0; i < 16; i++) assert_true(out[i] == 16);
    run_extreme(&rws_op_picture, args, 4, small + 1, 16, out, NULL);
    for (int i = 0; i < 16; i++) assert_true(out[i] == -88);
    run_extreme(&rws_op_picture_bits, args, 5, in, 1, &total, NULL);
    expect("bits of a picture", &total, (double[]){8 * 16 - 16 * log1p(exp(16))}, 1);
    run_extreme(&rws_op_picture_bits, args, 5, small, 1, &total, NULL);
    expect("bits of a background", &total, (double[]){-8 * 88}, 1);
}

int main(void)
{
    rws_error err;
    if (rws_gemm_init(&err) != RWS_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    struct CMUnitTest tests[128] = {
        cmocka_unit_test(every_twin_has_an_op),
        cmocka_unit_test(log_softmax_of_impossible_and_huge),
        cmocka_unit_test(functions_at_the_ends),
        cmocka_unit_test(densities_at_the_ends),
        cmocka_unit_test(pictures_at_identity),
        cmocka_unit_test(pictures_at_the_ends),
        cmocka_unit_test(exponentials_at_hand_change_nothing),
    };
    size_t n = 7;
    for (int i = 0; rws_ops[i] && n < 128; i++)
        tests[n++] = (struct CMUnitTest){rws_ops[i]->name, op_equals_its_twin, NULL, NULL, (void *)rws_ops[i]};
    return _cmocka_run_group_tests("ops", tests, n, NULL, NULL);
}
