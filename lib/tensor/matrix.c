/* matrix.c - matrices of each row: products, transposes, diagonals, triangles. A matrix is a vector of rows * cols
 * numbers, row after row. The factor of a symmetric matrix and solutions by it are in cholesky.c. */
#include "tensor/gemm.h"
#include "tensor/rows.h"
#include "tensor/tangent.h"

#include <string.h>

/* The side of a square matrix that has `size` numbers. */
static size_t side(int size)
{
    return (size_t)lrint(sqrt((double)size));
}

/* ---- matmul: A [m, k] times B [k, p], where args.k is k. Many vectors that are multiplied by one and the same matrix
 * (a parameter) are one product; otherwise each row of the call is a product of its own. */

typedef struct {
    int m, k, p;
} sizes;

static sizes sizes_of(const rws_call *c)
{
    return (sizes){c->in[0].dim / c->args.k, c->args.k, c->in[1].dim / c->args.k};
}

/* Whether B is a vector and A the same matrix in all rows. */
static bool one_matrix(const rws_call *c)
{
    return c->in[0].same && c->in[1].dim == c->args.k;
}

static void matmul_forward(rws_call *c)
{
    const sizes s = sizes_of(c);
    if (one_matrix(c)) { /* out = X A^T */
        rws__gemm_nt(c->n, s.m, s.k, rws__call_input(c, 1, s.k), s.k, c->in[0].data, s.k, NULL, 0, c->out, s.m);
        return;
    }
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const float *a = rws__view_row(&c->in[0], r), *b = rws__view_row(&c->in[1], r);
        float       *out = c->out + r * (size_t)c->dim;
        if (s.p > 1) rws__gemm_nn(s.m, s.p, s.k, a, s.k, b, s.p, NULL, 0, out, s.p);
        else
            for (int i = 0; i < s.m; i++) out[i] = row_dot(a + (size_t)i * (size_t)s.k, b, (size_t)s.k);
    }
}

/* grad X = G A, and grad A = G^T X */
static void one_matrix_backward(rws_call *c, sizes s)
{
    bool   fresh;
    float *gx = rws__call_claim(c, 1, s.k, &fresh);
    if (gx) rws__gemm_nn(c->n, s.k, s.m, c->gout, s.m, c->in[0].data, s.k, fresh ? NULL : gx, s.k, gx, s.k);
    rws__call_close(c, 1, s.k, gx);
    if (!c->gin[0].data) return;
    rws__call_clear(c, 0);
    rws__gemm_tn(s.m, s.k, c->n, c->gout, s.m, rws__call_input(c, 1, s.k), s.k, rws__call_sink_row(c, 0, 0), s.k);
}

/* grad A = G B^T, and grad B = A^T G */
static void matmul_backward(rws_call *c)
{
    const sizes s = sizes_of(c);
    if (one_matrix(c)) {
        one_matrix_backward(c, s);
        return;
    }
    for (int i = 0; i < 2; i++)
        if (c->gin[i].data) rws__call_clear(c, i);
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const float *a = rws__view_row(&c->in[0], r), *b = rws__view_row(&c->in[1], r),
                    *g = c->gout + r * (size_t)c->dim;
        float *ga = rws__call_sink_row(c, 0, r), *gb = rws__call_sink_row(c, 1, r);
        if (ga && s.p > 1) rws__gemm_nt(s.m, s.k, s.p, g, s.p, b, s.p, ga, s.k, ga, s.k);
        else if (ga)
            for (int i = 0; i < s.m; i++) row_give(b, (size_t)s.k, g[i], false, ga + (size_t)i * (size_t)s.k);
        if (gb) rws__gemm_tn(s.k, s.p, s.m, a, s.k, g, s.p, gb, s.p);
    }
}

static rws_var matmul(rws_tangent *t, rws_var a, rws_var b)
{
    if (!a.id || !b.id) return (rws_var){0};
    return rws__tangent_record(t, &rws_op_matmul, t->args, (rws_var[]){a, b}, 2, t->dim);
}

static rws_var matmul_tangent(rws_tangent *t) /* dA B + A dB */
{
    const rws_var by_a = matmul(t, t->d[0], t->in[1]), by_b = matmul(t, t->in[0], t->d[1]);
    return rws__tangent_add(t, by_a, by_b);
}

/* ---- transpose: of a matrix with args.k columns */

/* to[j, i] += from[i, j], or = if `fresh` */
static void turn(const float *from, size_t rows, size_t cols, bool fresh, float *to)
{
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++) to[j * rows + i] = (fresh ? 0 : to[j * rows + i]) + from[i * cols + j];
}

static void transpose_forward(rws_call *c)
{
    const size_t cols = (size_t)c->args.k, dim = (size_t)c->dim;
    for (size_t r = 0; r < (size_t)c->n; r++)
        turn(rws__view_row(&c->in[0], r), dim / cols, cols, true, c->out + r * dim);
}

static void transpose_backward(rws_call *c)
{
    const size_t cols = (size_t)c->args.k, dim = (size_t)c->dim;
    if (!c->gin[0].data) return;
    const bool fresh = rws__sink_take(&c->gin[0]);
    for (size_t r = 0; r < (size_t)c->n; r++)
        turn(c->gout + r * dim, cols, dim / cols, fresh, rws__sink_row(&c->gin[0], r, dim));
}

/* ---- diagonal: of a square matrix; and add_diagonal: A + diag(d), where d may be a single number */

static void diagonal_forward(rws_call *c)
{
    const size_t n = (size_t)c->dim;
    for (size_t r = 0; r < (size_t)c->n; r++)
        for (size_t i = 0; i < n; i++) c->out[r * n + i] = rws__view_row(&c->in[0], r)[i * (n + 1)];
}

static void diagonal_backward(rws_call *c)
{
    const size_t n = (size_t)c->dim;
    if (!c->gin[0].data) return;
    rws__call_clear(c, 0);
    for (size_t r = 0; r < (size_t)c->n; r++)
        for (size_t i = 0; i < n; i++) rws__call_sink_row(c, 0, r)[i * (n + 1)] += c->gout[r * n + i];
}

static void add_diagonal_forward(rws_call *c)
{
    const size_t size = (size_t)c->dim, n = side(c->dim);
    for (size_t r = 0; r < (size_t)c->n; r++) {
        float *out = c->out + r * size;
        memcpy(out, rws__view_row(&c->in[0], r), size * sizeof *out);
        for (size_t i = 0; i < n; i++) out[i * (n + 1)] += rws__view_at(&c->in[1], r, i);
    }
}

static void add_diagonal_backward(rws_call *c)
{
    const size_t size = (size_t)c->dim, n = side(c->dim);
    if (c->gin[0].data) {
        const bool fresh = rws__sink_take(&c->gin[0]);
        for (size_t r = 0; r < (size_t)c->n; r++)
            row_give(c->gout + r * size, size, 1, fresh, rws__sink_row(&c->gin[0], r, size));
    }
    if (!c->gin[1].data) return;
    rws__call_clear(c, 1);
    for (size_t r = 0; r < (size_t)c->n; r++) {
        float *g = rws__call_sink_row(c, 1, r);
        for (size_t i = 0; i < n; i++) g[c->in[1].dim == 1 ? 0 : i] += c->gout[r * size + i * (n + 1)];
    }
}

/* ---- triangle: the lower triangle of a square matrix. args.k says what becomes of the rest:
 *
 *     RWS_TRIANGLE          zeros above the diagonal
 *     RWS_TRIANGLE_HALVED   the same, and half of the diagonal
 *     RWS_TRIANGLE_MIRRORED above the diagonal, the number below it: a symmetric matrix
 */

static void triangle_forward(rws_call *c)
{
    const size_t size = (size_t)c->dim, n = side(c->dim);
    const float  middle = c->args.k == RWS_TRIANGLE_HALVED ? 0.5f : 1;
    const bool   mirrored = c->args.k == RWS_TRIANGLE_MIRRORED;
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const float *a = rws__view_row(&c->in[0], r);
        float       *out = c->out + r * size;
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < n; j++)
                out[i * n + j] = j < i ? a[i * n + j] : j == i ? middle * a[i * n + i] : mirrored ? a[j * n + i] : 0;
    }
}

static void triangle_backward(rws_call *c)
{
    const size_t size = (size_t)c->dim, n = side(c->dim);
    const float  middle = c->args.k == RWS_TRIANGLE_HALVED ? 0.5f : 1;
    const bool   mirrored = c->args.k == RWS_TRIANGLE_MIRRORED;
    if (!c->gin[0].data) return;
    rws__call_clear(c, 0);
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const float *g = c->gout + r * size;
        float       *to = rws__call_sink_row(c, 0, r);
        for (size_t i = 0; i < n; i++) {
            for (size_t j = 0; j < i; j++) to[i * n + j] += g[i * n + j] + (mirrored ? g[j * n + i] : 0);
            to[i * n + i] += middle * g[i * n + i];
        }
    }
}

const rws_op rws_op_matmul = {.name = "matmul",
                              .forgets = true,
                              .tangent = matmul_tangent,
                              .forward = matmul_forward,
                              .backward = matmul_backward};
const rws_op rws_op_transpose = {.name = "transpose",
                                 .forgets = true,
                                 .tangent = rws__tangent_linear,
                                 .forward = transpose_forward,
                                 .backward = transpose_backward};
const rws_op rws_op_diagonal = {.name = "diagonal",
                                .forgets = true,
                                .tangent = rws__tangent_linear,
                                .forward = diagonal_forward,
                                .backward = diagonal_backward};
const rws_op rws_op_add_diagonal = {.name = "add_diagonal",
                                    .forgets = true,
                                    .tangent = rws__tangent_linear,
                                    .forward = add_diagonal_forward,
                                    .backward = add_diagonal_backward};
const rws_op rws_op_triangle = {.name = "triangle",
                                .forgets = true,
                                .tangent = rws__tangent_linear,
                                .forward = triangle_forward,
                                .backward = triangle_backward};
