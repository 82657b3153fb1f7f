/* cholesky.c - the Cholesky factor of a symmetric matrix and solutions of triangular systems. Both compute in double
 * and round at the end: matrices of Gaussian processes are nearly singular.
 *
 * Only the lower triangle of an input is read, and only the lower triangle gets a gradient. A matrix that is made by
 * symmetric arithmetic has then the same total derivative as one whose two halves share the gradient.
 */
#include "base/error.h"
#include "tensor/rows.h"
#include "tensor/tangent.h"

#include <string.h>

/* ---- triangular operations on n x n matrices in rows */

/* Factor of the lower triangle of a, over it. Returns 0, or the number of the first row whose pivot is not above 0. */
static int factor_lower(double *a, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++) {
            double sum = 0;
#pragma omp simd reduction(+ : sum)
            for (size_t k = 0; k < j; k++) sum += a[i * n + k] * a[j * n + k];
            const double rest = a[i * n + j] - sum;
            if (i == j && !(rest > 0)) return (int)i + 1;
            a[i * n + j] = i == j ? sqrt(rest) : rest / a[j * n + j];
        }
    return 0;
}

/* z = L^T z */
static void multiply_transposed(const double *l, size_t n, double *z)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t q = 0; q < n; q++) z[i * n + q] *= l[i * n + i];
        for (size_t k = i + 1; k < n; k++)
            for (size_t q = 0; q < n; q++) z[i * n + q] += l[k * n + i] * z[k * n + q];
    }
}

/* z = L^-T z */
static void solve_transposed(const double *l, size_t n, double *z)
{
    for (size_t i = n; i-- > 0;) {
        for (size_t q = 0; q < n; q++) z[i * n + q] /= l[i * n + i];
        for (size_t j = 0; j < i; j++)
            for (size_t q = 0; q < n; q++) z[j * n + q] -= l[i * n + j] * z[i * n + q];
    }
}

/* z = z L^-1 */
static void solve_right(const double *l, size_t n, double *z)
{
    for (size_t r = 0; r < n; r++) {
        double *row = z + r * n;
        for (size_t i = n; i-- > 0;) {
            row[i] /= l[i * n + i];
            for (size_t j = 0; j < i; j++) row[j] -= row[i] * l[i * n + j];
        }
    }
}

static size_t side(int size)
{
    return (size_t)lrint(sqrt((double)size));
}

/* ---- cholesky: L with L L^T = A, zeros above the diagonal */

/* Writes the factor of a over the lower triangle of `work`, n x n. Returns 0, or the number of the first row (from 1)
 * whose pivot is not above 0. */
static int factor(const float *a, size_t n, double *work)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) work[i * n + j] = j <= i ? (double)a[i * n + j] : 0;
    int info = factor_lower(work, n);
    for (size_t i = 0; i < n && !info; i++)
        if (!isfinite(work[i * (n + 1)])) info = (int)i + 1; /* infinity passes the comparison */
    return info;
}

static void cholesky_forward(rws_call *c)
{
    const rws_arena_mark mark = rws__arena_at(c->arena);
    const size_t         size = (size_t)c->dim, n = side(c->dim);
    double              *work = RWS_NEW(c->arena, double, size);
    for (size_t r = 0; r < (size_t)c->n; r++) {
        float     *out = c->out + r * size;
        const bool refused = factor(rws__view_row(&c->in[0], r), n, work) != 0;
        for (size_t i = 0; i < n; i++) /* a refused row becomes the unit matrix, whose gradient is finite */
            for (size_t j = 0; j < n; j++) out[i * n + j] = refused ? i == j : j <= i ? (float)work[i * n + j] : 0;
        c->refused |= refused;
    }
    rws__arena_release(c->arena, mark);
}

static rws_status cholesky_explain(const rws_call *c, size_t row, const char *site, rws_error *err)
{
    const rws_arena_mark mark = rws__arena_at(c->arena);
    const size_t         n = side(c->dim);
    double              *work = RWS_NEW(c->arena, double, n *n);
    const int            at = factor(rws__view_row(&c->in[0], row), n, work);
    rws__arena_release(c->arena, mark);
    if (!at) return RWS_OK;
    return rws_fail(err, RWS_BROKEN,
                    "The matrix of rws_cholesky%s%s is not positive definite: its first %d rows and columns have no "
                    "factor. Adding a small number to its diagonal (rws_add_diagonal) may help.",
                    site ? " after site " : "", site ? site : "", at);
}

/* With P = L^T G, of which the lower triangle and half of the diagonal count, and S = P + P^T: Z = L^-T S L^-1 is the
 * gradient by an element below the diagonal, and half of it the gradient by an element on it. (Murray 2016,
 * arXiv:1602.07527, eq. 10) */
static void cholesky_backward(rws_call *c)
{
    if (!c->gin[0].data) return;
    rws__call_clear(c, 0);
    const rws_arena_mark mark = rws__arena_at(c->arena);
    const size_t         size = (size_t)c->dim, n = side(c->dim);
    double              *l = RWS_NEW(c->arena, double, size), *z = RWS_NEW(c->arena, double, size);
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const float *factor = c->out + r * size, *g = c->gout + r * size;
        float       *to = rws__call_sink_row(c, 0, r);
        for (size_t i = 0; i < size; i++) l[i] = (double)factor[i];
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < n; j++) z[i * n + j] = j <= i ? (double)g[i * n + j] : 0;
        multiply_transposed(l, n, z);
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < i; j++) z[j * n + i] = z[i * n + j];
        solve_transposed(l, n, z);
        solve_right(l, n, z);
        for (size_t i = 0; i < n; i++) {
            for (size_t j = 0; j < i; j++) to[i * n + j] += (float)z[i * n + j];
            to[i * n + i] += (float)(z[i * n + i] / 2);
        }
    }
    rws__arena_release(c->arena, mark);
}

static rws_var triangle(rws_tangent *t, rws_var a, int how)
{
    return rws__tangent_record(t, &rws_op_triangle, (rws_op_args){.k = how}, &a, 1, rws__tangent_dim(t, a));
}

static rws_var transpose(rws_tangent *t, rws_var a, int cols)
{
    return rws__tangent_record(t, &rws_op_transpose, (rws_op_args){.k = cols}, &a, 1, rws__tangent_dim(t, a));
}

static rws_var solve(rws_tangent *t, rws_var l, rws_var b, int transposed)
{
    return rws__tangent_record(t, &rws_op_solve, (rws_op_args){.k = transposed}, (rws_var[]){l, b}, 2,
                               rws__tangent_dim(t, b));
}

static rws_var product(rws_tangent *t, rws_var a, rws_var b, int inner, int dim)
{
    return rws__tangent_record(t, &rws_op_matmul, (rws_op_args){.k = inner}, (rws_var[]){a, b}, 2, dim);
}

/* dL = L (lower triangle and half of the diagonal of L^-1 dA L^-T) */
static rws_var cholesky_tangent(rws_tangent *t)
{
    const int     n = (int)side(t->dim);
    const rws_var da = triangle(t, t->d[0], RWS_TRIANGLE_MIRRORED), left = solve(t, t->y, da, 0);
    const rws_var both = solve(t, t->y, transpose(t, left, n), 0);
    return product(t, t->y, triangle(t, both, RWS_TRIANGLE_HALVED), n, t->dim);
}

/* ---- solve: X = L^-1 B, or L^-T B if args.k is 1; L is n x n and B is n x p */

/* x [n, p] = L^-1 x or L^-T x, by rows of L */
static void substitute(const float *l, size_t n, size_t p, bool transposed, double *x)
{
    for (size_t step = 0; step < n; step++) {
        const size_t i = transposed ? n - 1 - step : step;
        const float *row = l + i * n;
        const double pivot = (double)row[i];
        if (transposed) {
            for (size_t q = 0; q < p; q++) x[i * p + q] /= pivot;
            for (size_t j = 0; j < i; j++)
                for (size_t q = 0; q < p; q++) x[j * p + q] -= (double)row[j] * x[i * p + q];
        } else if (p == 1) {
            double sum = 0;
#pragma omp simd reduction(+ : sum)
            for (size_t j = 0; j < i; j++) sum += (double)row[j] * x[j];
            x[i] = (x[i] - sum) / pivot;
        } else {
            for (size_t j = 0; j < i; j++)
                for (size_t q = 0; q < p; q++) x[i * p + q] -= (double)row[j] * x[j * p + q];
            for (size_t q = 0; q < p; q++) x[i * p + q] /= pivot;
        }
    }
}

static void solve_forward(rws_call *c)
{
    const rws_arena_mark mark = rws__arena_at(c->arena);
    const size_t         size = (size_t)c->dim, n = side(c->in[0].dim);
    double              *x = RWS_NEW(c->arena, double, size);
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const float *l = rws__view_row(&c->in[0], r), *b = rws__view_row(&c->in[1], r);
        for (size_t i = 0; i < size; i++) x[i] = (double)b[i];
        substitute(l, n, size / n, c->args.k, x);
        for (size_t i = 0; i < size; i++) c->out[r * size + i] = (float)x[i];
    }
    rws__arena_release(c->arena, mark);
}

/* grad B = L^-T G, and grad L = -(grad B) X^T; for L^-T B, grad B = L^-1 G and grad L = -X (grad B)^T. */
static void solve_backward(rws_call *c)
{
    const rws_arena_mark mark = rws__arena_at(c->arena);
    const size_t         size = (size_t)c->dim, n = side(c->in[0].dim), p = size / n;
    double              *gb = RWS_NEW(c->arena, double, size), *x = RWS_NEW(c->arena, double, size);
    for (int s = 0; s < 2; s++)
        if (c->gin[s].data) rws__call_clear(c, s);
    for (size_t r = 0; r < (size_t)c->n; r++) {
        float *to_l = rws__call_sink_row(c, 0, r), *to_b = rws__call_sink_row(c, 1, r);
        for (size_t i = 0; i < size; i++) gb[i] = (double)c->gout[r * size + i], x[i] = (double)c->out[r * size + i];
        substitute(rws__view_row(&c->in[0], r), n, p, !c->args.k, gb);
        for (size_t i = 0; i < size && to_b; i++) to_b[i] += (float)gb[i];
        const double *left = c->args.k ? x : gb, *right = c->args.k ? gb : x;
        for (size_t i = 0; i < n && to_l; i++)
            for (size_t j = 0; j <= i; j++) {
                double sum = 0;
                for (size_t q = 0; q < p; q++) sum += left[i * p + q] * right[j * p + q];
                to_l[i * n + j] -= (float)sum;
            }
    }
    rws__arena_release(c->arena, mark);
}

/* dX = L^-1 (dB - dL X), and with L^T in the place of L if transposed */
static rws_var solve_tangent(rws_tangent *t)
{
    const int n = (int)side(rws__tangent_dim(t, t->in[0]));
    rws_var   right = t->d[1];
    if (t->d[0].id) {
        rws_var dl = triangle(t, t->d[0], RWS_TRIANGLE);
        if (t->args.k) dl = transpose(t, dl, n);
        right = rws__tangent_add(t, right, rws__tangent_scale(t, product(t, dl, t->y, n, t->dim), -1));
    }
    return solve(t, t->in[0], right, t->args.k);
}

const rws_op rws_op_cholesky = {.name = "cholesky",
                                .tangent = cholesky_tangent,
                                .forward = cholesky_forward,
                                .backward = cholesky_backward,
                                .explain = cholesky_explain};
const rws_op rws_op_solve = {
    .name = "solve", .tangent = solve_tangent, .forward = solve_forward, .backward = solve_backward};
