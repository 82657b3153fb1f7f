/* twins_matrix.c - the twins of the ops on matrices and of layers, and the shapes to try them with. */
#include "twins.h"

#include <string.h>

static int side(int size)
{
    return (int)lrint(sqrt((double)size));
}

static void matmul(const row *r)
{
    const int k = r->k, m = r->in_dim[0] / k, p = r->in_dim[1] / k;
    for (int i = 0; i < m * p; i++) {
        r->out[i] = 0;
        for (int j = 0; j < k; j++) r->out[i] += r->in[0][i / p * k + j] * r->in[1][j * p + i % p];
    }
}

static void transpose(const row *r)
{
    const int cols = r->k, rows = r->dim / cols;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < cols; j++) r->out[j * rows + i] = r->in[0][i * cols + j];
}

static void diagonal(const row *r)
{
    for (int i = 0; i < r->dim; i++) r->out[i] = r->in[0][i * r->dim + i];
}

static void add_diagonal(const row *r)
{
    const int n = side(r->dim);
    for (int i = 0; i < r->dim; i++)
        r->out[i] = r->in[0][i] + (i / n == i % n ? r->in[1][r->in_dim[1] == 1 ? 0 : i / n] : 0);
}

static void triangle(const row *r)
{
    const int n = side(r->dim);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            r->out[i * n + j] = j < i    ? r->in[0][i * n + j]
                                : j == i ? r->in[0][i * n + i] / (r->k == RWS_TRIANGLE_HALVED ? 2 : 1)
                                : r->k == RWS_TRIANGLE_MIRRORED ? r->in[0][j * n + i]
                                                                : 0;
}

/* Column by column, by the definition of the product. */
static void cholesky(const row *r)
{
    const int n = side(r->dim);
    double   *l = r->out;
    memset(l, 0, (size_t)r->dim * sizeof *l);
    for (int j = 0; j < n; j++)
        for (int i = j; i < n; i++) {
            double rest = r->in[0][i * n + j];
            for (int k = 0; k < j; k++) rest -= l[i * n + k] * l[j * n + k];
            l[i * n + j] = i == j ? sqrt(rest) : rest / l[j * n + j];
        }
}

static void solve(const row *r)
{
    const int     n = side(r->in_dim[0]), p = r->dim / n;
    const double *l = r->in[0];
    for (int q = 0; q < p; q++)
        for (int step = 0; step < n; step++) {
            const int i = r->k ? n - 1 - step : step;
            double    rest = r->in[1][i * p + q];
            for (int j = 0; j < n; j++) {
                if (r->k ? j > i : j < i) rest -= (r->k ? l[j * n + i] : l[i * n + j]) * r->out[j * p + q];
            }
            r->out[i * p + q] = rest / l[i * n + i];
        }
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
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

static void lstm(const row *r)
{
    const int     H = r->dim / 2;
    const double *a = r->in[0], *b = r->in[1], *c = r->in[2];
    for (int j = 0; j < H; j++) {
        const double i = sigmoid(a[j] + b[j]), f = sigmoid(a[H + j] + b[H + j]), g = tanh(a[2 * H + j] + b[2 * H + j]),
                     o = sigmoid(a[3 * H + j] + b[3 * H + j]);
        r->out[H + j] = f * c[j] + i * g;
        r->out[j] = o * tanh(r->out[H + j]);
    }
}

/* Rows k … of W applied to each item; the bias begins at number s, and the function is `offset`. */
static void project(const row *r)
{
    const int n_items = r->in_dim[0] / r->cols, n_out = r->dim / n_items;
    for (int i = 0; i < r->dim; i++) {
        const int o = i % n_out;
        double    sum = r->b ? r->b[(int)r->s + o] : 0;
        for (int j = 0; j < r->cols; j++) sum += r->w[(r->k + o) * r->cols + j] * r->in[0][i / n_out * r->cols + j];
        r->out[i] = function(r->offset, sum);
    }
}

static void attention_scores(const row *r)
{
    const int n_items = r->in_dim[0] / r->offset, d = r->in_dim[1] / r->k;
    for (int i = 0; i < r->dim; i++) {
        const int h = i / n_items, t = i % n_items;
        r->out[i] = 0;
        for (int j = 0; j < d; j++) r->out[i] += r->s * r->in[1][h * d + j] * r->in[0][t * r->offset + h * d + j];
    }
}

static double share(const double *x, int n, int at)
{
    double total = 0;
    for (int i = 0; i < n; i++) total += exp(x[i] - x[at]);
    return 1 / total;
}

static void attention_softmax(const row *r)
{
    const int n = r->dim / r->k;
    for (int i = 0; i < r->dim; i++) r->out[i] = share(r->in[0] + i / n * n, n, i % n);
}

static void attention_softmax_tangent(const row *r)
{
    const int n = r->dim / r->k;
    for (int i = 0; i < r->dim; i++) {
        double mean = 0;
        for (int j = i / n * n; j < i / n * n + n; j++) mean += r->in[0][j] * r->in[1][j];
        r->out[i] = r->in[0][i] * (r->in[1][i] - mean);
    }
}

static void attention_mix(const row *r)
{
    const int n_items = r->in_dim[0] / r->offset, d = r->dim / r->k;
    for (int i = 0; i < r->dim; i++) {
        r->out[i] = 0;
        for (int t = 0; t < n_items; t++)
            r->out[i] += r->in[1][i / d * n_items + t] * r->in[0][t * r->offset + (int)r->s + i];
    }
}

/* The place in the picture of number q of window i. */
static int in_window(const row *r, int i, int q)
{
    const int rows = r->k / 4, cols = r->offset, high = (int)r->s, wide = (int)r->t, across = cols / wide,
              per = rows / high * across;
    return i / per * rows * cols + (i % per / across * high + q / wide) * cols + i % across * wide + q % wide;
}

static void pool(const row *r)
{
    const int size = (int)r->s * (int)r->t;
    for (int i = 0; i < r->dim; i++) {
        double sum = 0, top = -1e9;
        for (int q = 0; q < size; q++) {
            sum += r->in[0][in_window(r, i, q)];
            top = fmax(top, r->in[0][in_window(r, i, q)]);
        }
        r->out[i] = r->k % 4 == RWS_MAX ? top : r->k % 4 == RWS_MEAN ? sum / size : sum;
    }
}

static void pool_mask(const row *r)
{
    const int size = (int)r->s * (int)r->t, cols = r->offset, rows = r->k / 4,
              n = r->dim / (rows * cols) * (rows / (int)r->s) * (cols / (int)r->t);
    memset(r->out, 0, (size_t)r->dim * sizeof *r->out);
    for (int i = 0; i < n; i++) {
        int best = in_window(r, i, 0);
        for (int q = 1; q < size; q++)
            if (r->in[0][in_window(r, i, q)] > r->in[0][best]) best = in_window(r, i, q);
        r->out[best] = 1;
    }
}

static void normalise(const row *r)
{
    double mean = 0, square = 0;
    for (int i = 0; i < r->dim; i++) mean += r->in[0][i] / r->dim;
    for (int i = 0; i < r->dim; i++) square += pow(r->in[0][i] - mean, 2) / r->dim;
    for (int i = 0; i < r->dim; i++) r->out[i] = (r->in[0][i] - mean) / sqrt(square + (double)1e-5f);
}

/* A convolution, number by number of its kernels: out (o, i, j) of the small side and x (c, y, x) of the picture meet where
 * y = i stride + a - padding. transposed: from the small side to the picture. */
static void convolve(const row *r, bool transposed)
{
    const int rows = r->k >> 16, cols = r->k & 0xffff, K = r->offset & 0xff, stride = r->offset >> 8 & 0xff,
              padding = r->offset >> 16, C = r->cols / (K * K), down = (rows + 2 * padding - K) / stride + 1,
              across = (cols + 2 * padding - K) / stride + 1,
              n_small = (transposed ? r->in_dim[0] : r->dim) / (down * across);
    const int channel = transposed ? rows * cols : down * across;
    for (int i = 0; i < r->dim; i++) r->out[i] = r->b ? r->b[i / channel] : 0;
    for (int o = 0; o < n_small; o++)
        for (int c = 0; c < C; c++)
            for (int i = 0; i < down * across; i++)
                for (int a = 0; a < K * K; a++) {
                    const int y = i / across * stride + a / K - padding, x = i % across * stride + a % K - padding;
                    if (y < 0 || y >= rows || x < 0 || x >= cols) continue;
                    const int    small = o * down * across + i, large = (c * rows + y) * cols + x;
                    const double w = r->w[o * r->cols + c * K * K + a];
                    r->out[transposed ? large : small] += w * r->in[0][transposed ? small : large];
                }
}

static void conv2d(const row *r)
{
    convolve(r, false);
}

static void conv_transpose2d(const row *r)
{
    convolve(r, true);
}

#define SIDES(rows, cols) ((rows) << 16 | (cols))
#define KERNEL(size, stride, padding) ((size) | (stride) << 8 | (padding) << 16)
#define POOL(how, rows) ((int)(how) + 4 * (rows))

/* clang-format off */
static const subject list[] = {
    {"matmul", matmul,
     {{1, {{REAL, 1}, {REAL, 1}}, .k = 1},
      {3, {{REAL, 6}, {REAL, 2}}, .k = 2},
      {1, {{REAL, 17}, {REAL, 17}}, .k = 17},
      {12, {{REAL, 10}, {REAL, 30}}, .k = 5},
      {64, {{REAL, 24}, {REAL, 24}}, .k = 3}}},
    {"transpose", transpose, {{1, {{REAL, 1}}, .k = 1}, {6, {{REAL, 6}}, .k = 2}, {35, {{REAL, 35}}, .k = 7}}},
    {"diagonal", diagonal, {{1, {{REAL, 1}}}, {3, {{REAL, 9}}}, {7, {{REAL, 49}}}}},
    {"add_diagonal", add_diagonal,
     {{1, {{REAL, 1}, {REAL, 1}}}, {9, {{REAL, 9}, {REAL, 1}}}, {25, {{REAL, 25}, {REAL, 5}}}}},
    {"triangle", triangle,
     {{1, {{REAL, 1}}},
      {16, {{REAL, 16}}, .k = RWS_TRIANGLE},
      {16, {{REAL, 16}}, .k = RWS_TRIANGLE_HALVED},
      {16, {{REAL, 16}}, .k = RWS_TRIANGLE_MIRRORED}}},
    {"cholesky", cholesky,
     {{1, {{COVARIANCE, 1}}}, {4, {{COVARIANCE, 4}}}, {9, {{COVARIANCE, 9}}}, {49, {{COVARIANCE, 49}}}}, .slack = 5},
    {"solve", solve,
     {{1, {{FACTOR, 1}, {REAL, 1}}},
      {3, {{FACTOR, 9}, {REAL, 3}}},
      {3, {{FACTOR, 9}, {REAL, 3}}, .k = 1},
      {7, {{FACTOR, 49}, {REAL, 7}}},
      {20, {{FACTOR, 25}, {REAL, 20}}},
      {20, {{FACTOR, 25}, {REAL, 20}}, .k = 1}}, .slack = 5},
    {"gru",
     gru,
     {{1, THREE(REAL, 3, REAL, 3, REAL, 1)},
      {5, THREE(REAL, 15, REAL, 15, REAL, 5)},
      {17, THREE(REAL, 51, REAL, 51, REAL, 17)}}},
    {"lstm", lstm,
     {{2, {{REAL, 4}, {REAL, 4}, {REAL, 1}}},
      {10, {{REAL, 20}, {REAL, 20}, {REAL, 5}}},
      {34, {{REAL, 68}, {REAL, 68}, {REAL, 17}}}}},
    {"project", project,
     {{1, {{SMALL, 1}}, .rows = 1, .cols = 1},
      {6, {{SMALL, 9}}, .rows = 2, .cols = 3, .bias = true, .offset = RWS_TANH},
      {8, {{SMALL, 6}}, .rows = 7, .cols = 3, .bias = true, .k = 2, .s = 2, .offset = RWS_SOFTPLUS},
      {15, {{SMALL, 15}}, .rows = 6, .cols = 5, .bias = true, .k = 0, .s = 1},
      {40, {{SMALL, 28}}, .rows = 21, .cols = 7, .k = 11}}},
    {"attention_scores", attention_scores,
     {{1, {{REAL, 1}, {REAL, 1}}, .k = 1, .offset = 1, .s = 0.5f},
      {4, {{REAL, 20}, {REAL, 3}}, .k = 1, .offset = 5, .s = 0.7f},
      {10, {{REAL, 40}, {REAL, 6}}, .k = 2, .offset = 8, .s = 1}}},
    {"attention_softmax", attention_softmax,
     {{1, {{REAL, 1}}, .k = 1}, {5, {{STEEP, 5}}, .k = 1}, {12, {{REAL, 12}}, .k = 3}, {34, {{REAL, 34}}, .k = 2}}},
    {"attention_softmax_tangent", attention_softmax_tangent,
     {{1, {{REAL, 1}, {REAL, 1}}, .k = 1}, {12, {{REAL, 12}, {REAL, 12}}, .k = 3}}},
    {"attention_mix", attention_mix,
     {{1, {{REAL, 1}, {REAL, 1}}, .k = 1, .offset = 1},
      {3, {{REAL, 20}, {REAL, 4}}, .k = 1, .offset = 5, .s = 2},
      {6, {{REAL, 40}, {REAL, 10}}, .k = 2, .offset = 8, .s = 1}}},
    {"pool", pool,
     {{1, {{REAL, 1}}, .k = POOL(RWS_SUM, 1), .offset = 1, .s = 1, .t = 1},
      {3, {{REAL, 12}}, .k = POOL(RWS_SUM, 4), .offset = 3, .s = 4, .t = 1},
      {9, {{REAL, 45}}, .k = POOL(RWS_MEAN, 5), .offset = 9, .s = 5, .t = 1},
      {5, {{REAL, 15}}, .k = POOL(RWS_MAX, 3), .offset = 5, .s = 3, .t = 1},
      {8, {{REAL, 50}}, .k = POOL(RWS_MAX, 5), .offset = 5, .s = 2, .t = 2},
      {12, {{REAL, 60}}, .k = POOL(RWS_MEAN, 5), .offset = 6, .s = 2, .t = 2},
      {4, {{REAL, 36}}, .k = POOL(RWS_SUM, 6), .offset = 6, .s = 3, .t = 3}}},
    {"pool_mask", pool_mask,
     {{15, {{REAL, 15}}, .k = POOL(RWS_MAX, 3), .offset = 5, .s = 3, .t = 1},
      {50, {{REAL, 50}}, .k = POOL(RWS_MAX, 5), .offset = 5, .s = 2, .t = 2}}},
    {"normalise", normalise, {{2, {{REAL, 2}}}, {5, {{REAL, 5}}}, {33, {{REAL, 33}}}}, .slack = 5},
    {"conv2d", conv2d,
     {{1, {{REAL, 1}}, .rows = 1, .cols = 1, .bias = true, .k = SIDES(1, 1), .offset = KERNEL(1, 1, 0)},
      {24, {{REAL, 20}}, .rows = 2, .cols = 4, .bias = true, .k = SIDES(5, 4), .offset = KERNEL(2, 1, 0)},
      {18, {{REAL, 70}}, .rows = 3, .cols = 18, .bias = true, .k = SIDES(5, 7), .offset = KERNEL(3, 3, 1)},
      {12, {{REAL, 12}}, .rows = 1, .cols = 9, .k = SIDES(4, 3), .offset = KERNEL(3, 1, 1)},
      {32, {{REAL, 9}}, .rows = 2, .cols = 25, .k = SIDES(3, 3), .offset = KERNEL(5, 2, 4)}}},
    {"conv_transpose2d", conv_transpose2d,
     {{1, {{REAL, 1}}, .rows = 1, .cols = 1, .bias = true, .n_bias = 1, .k = SIDES(1, 1), .offset = KERNEL(1, 1, 0)},
      {20, {{REAL, 24}}, .rows = 2, .cols = 4, .bias = true, .n_bias = 1, .k = SIDES(5, 4), .offset = KERNEL(2, 1, 0)},
      {50, {{REAL, 12}}, .rows = 3, .cols = 18, .bias = true, .n_bias = 2, .k = SIDES(5, 5), .offset = KERNEL(3, 3, 1)},
      {12, {{REAL, 12}}, .rows = 1, .cols = 9, .k = SIDES(4, 3), .offset = KERNEL(3, 1, 1)}}},
};
/* clang-format on */
const subject_table matrix_twins = {list, COUNT(list)};
