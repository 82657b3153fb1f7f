/* twins_tensor.c - the twins of the ops of the folder tensor, but for matrices, and the shapes to try them with. */
#include "twins.h"

/* The sum of 1 / (k + x)^2 over k = 0, 1, … */
static double bend_of_lgamma(double x)
{
    enum { N = 4000 };
    double total = 1 / (N + x - 0.5);
    for (int k = N - 1; k >= 0; k--) total += 1 / ((k + x) * (k + x));
    return total;
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
    default: break; /* the others have slopes of x */
    }
    fail_msg("no twin for function %d", f);
    return 0;
}

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

static double map_slope(int f, double x)
{
    switch ((rws_function)f) {
    case RWS_SQRT: return 1 / (2 * sqrt(x));
    case RWS_SQUARE: return 2 * x;
    case RWS_SIN: return cos(x);
    case RWS_COS: return -sin(x);
    case RWS_ABS: return x < 0 ? -1 : 1;
    case RWS_LOG_SIGMOID: return 1 / (1 + exp(x));
    case RWS_LOG1P: return 1 / (1 + x);
    case RWS_EXPM1: return exp(x);
    case RWS_LGAMMA: return slope_of_lgamma(x);
    case RWS_DIGAMMA: return bend_of_lgamma(x);
    case RWS_LOG1MEXP: return 1 / (exp(x) - 1);
    default: fail_msg("no twin for function %d", f); return 0;
    }
}

static void map_tangent(const row *r)
{
    EACH(map_slope(r->k, at(r, 0, j)) * at(r, 1, j));
}

static void smaller(const row *r)
{
    EACH(fmin(at(r, 0, j), at(r, 1, j)));
}

static void larger(const row *r)
{
    EACH(fmax(at(r, 0, j), at(r, 1, j)));
}

static void where(const row *r)
{
    EACH(at(r, 0, j) > 0 ? at(r, 1, j) : at(r, 2, j));
}

static void power(const row *r)
{
    EACH(exp(at(r, 1, j) * log(at(r, 0, j))));
}

static void cumulative(const row *r)
{
    for (int j = 0; j < r->dim; j++) r->out[j] = r->in[0][j] + (j ? r->out[j - 1] : 0);
}

static void total(const row *r)
{
    for (int j = 0; j < r->dim; j++) {
        r->out[j] = 0;
        for (int s = 0; s < r->n_in; s++) r->out[j] += at(r, s, j);
    }
}

static void matrix_row(const row *r)
{
    EACH(r->in[0][(int)r->in[1][0] * r->dim + j]);
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

/* The log-softmax of x, or of x / t. */
static void log_softmax(const row *r)
{
    const double t = r->n_in > 1 ? r->in[1][0] : 1;
    double       total = 0;
    for (int j = 0; j < r->dim; j++) total += exp(r->in[0][j] / t);
    EACH(r->in[0][j] / t - log(total));
}

/* The mean of input 1 by the softmax of input 2, or of the sum of inputs 2 and 3. Input 0 holds that softmax and is not
 * read. */
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

static void clip(const row *r)
{
    EACH(fmin(r->t, fmax(r->s, at(r, 0, j))));
}

static const subject list[] = {
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
    {"map", apply, {{1, ONE(FOR_X), .each_map = true}, {5, {{FOR_X, 5}}, .each_map = true}}},
    {"map_tangent",
     map_tangent,
     {{1, TWO(FOR_X, 1, REAL, 1), .each_map = true},
      {5, TWO(FOR_X, 5, REAL, 5), .each_map = true},
      {5, TWO(FOR_X, 5, REAL, 1), .each_map = true}}},
    {"min",
     smaller,
     {{1, TWO(REAL, 1, REAL, 1)},
      {5, TWO(REAL, 5, REAL, 5)},
      {5, TWO(REAL, 1, REAL, 5)},
      {33, TWO(REAL, 33, REAL, 1)}}},
    {"max",
     larger,
     {{1, TWO(REAL, 1, REAL, 1)},
      {5, TWO(REAL, 5, REAL, 5)},
      {5, TWO(REAL, 1, REAL, 5)},
      {33, TWO(REAL, 33, REAL, 1)}}},
    {"where",
     where,
     {{1, THREE(REAL, 1, REAL, 1, REAL, 1)},
      {5, THREE(REAL, 5, REAL, 5, REAL, 5)},
      {5, THREE(REAL, 1, REAL, 5, REAL, 1)},
      {33, THREE(REAL, 33, REAL, 1, REAL, 33)}}},
    {"power",
     power,
     {{1, TWO(POSITIVE, 1, REAL, 1)},
      {5, TWO(POSITIVE, 5, REAL, 5)},
      {5, TWO(POSITIVE, 1, REAL, 5)},
      {33, TWO(POSITIVE, 33, REAL, 1)}}},
    {"cumulative", cumulative, {{1, ONE(REAL)}, {5, {{REAL, 5}}}, {33, {{REAL, 33}}}}},
    {"total",
     total,
     {{1, ONE(REAL)},
      {5, THREE(REAL, 5, REAL, 1, REAL, 5)},
      {33, {{REAL, 33}, {REAL, 33}, {REAL, 33}, {REAL, 1}, {REAL, 33}, {REAL, 33}, {REAL, 33}, {REAL, 33}}}}},
    {"row",
     matrix_row,
     {{1, TWO(REAL, 1, INDEX, 1), .n_index = 1},
      {5, TWO(REAL, 20, INDEX, 1), .n_index = 4},
      {33, TWO(REAL, 66, INDEX, 1), .n_index = 2}}},
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
      {9, {{SMALL, 1}}, .rows = 9, .cols = 1, .k = RWS_TANH},              /* one input … */
      {9, {{SMALL, 2}}, .rows = 9, .cols = 7, .offset = 3, .k = RWS_TANH}, /* … and two */
      {1, {{SMALL, 6}}, .rows = 1, .cols = 6, .bias = true, .k = RWS_SIGMOID},
      {7, {{SMALL, 5}}, .rows = 7, .cols = 11, .offset = 4}, /* some columns of W, without bias */
      {5, {{SMALL, 1}}, .rows = 5, .cols = 4, .offset = 2},  /* one column of W */
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
};
const subject_table tensor_twins = {list, COUNT(list)};
