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

/* clang-format off */
const subject matrix_subjects[] = {
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
    {"lstm", lstm,
     {{2, {{REAL, 4}, {REAL, 4}, {REAL, 1}}},
      {10, {{REAL, 20}, {REAL, 20}, {REAL, 5}}},
      {34, {{REAL, 68}, {REAL, 68}, {REAL, 17}}}}},
};
/* clang-format on */
const int n_matrix_subjects = sizeof matrix_subjects / sizeof *matrix_subjects;
