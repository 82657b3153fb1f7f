/* multivariate_normal.c - n numbers with a covariance, by their mean and the Cholesky factor L of the covariance.
 *
 * L is a lower triangle with numbers above 0 on its diagonal. It comes as a matrix of n * n numbers, row by row, whose
 * numbers above the diagonal are ignored, or as the n (n + 1) / 2 numbers of the triangle, row by row. With noise e,
 *
 *     a draw       m + L e
 *     log-density  -|z|^2 / 2 - the sum of log L_ii - n / 2 log(2 pi),   z = L^-1 (x - m)
 *     gradients    by x: -w,  by m: w,  by L: w z^T - diag(1 / L_ii),    w = L^-T z
 */
#include "base/error.h"
#include "dist/each.h"
#include "tensor/tangent.h"

extern const rws_op rws_op_multivariate_normal_draw, rws_op_multivariate_normal_density,
    rws_op_multivariate_normal_pull; /* below */

static int length(rws_path *path, const rws_family *f, const rws_var *p)
{
    (void)f;
    const int n = rws_dim(path, p[0]), all = rws_dim(path, p[1]);
    if ((int64_t)all != (int64_t)n * n && 2 * (int64_t)all != (int64_t)n * (n + 1))
        rws__path_mistake(
            path,
            "the Cholesky factor of a multivariate normal of %d numbers has %d numbers; it takes %lld (a matrix) or "
            "%lld (its lower triangle, row by row).",
            n, all, (long long)n * n, (long long)n * (n + 1) / 2);
    return n;
}

static rws_var draw(rws_path *path, const rws_family *f, const rws_var *p, bool stop)
{
    (void)f;
    const int     n = rws_dim(path, p[0]);
    const rws_var in[] = {p[0], p[1], rws_draw_noise(path, RWS_NOISE_NORMAL, n)};
    return rws__record(path, &rws_op_multivariate_normal_draw, (rws_op_args){.stop = stop}, in, 3, n);
}

static rws_var log_density(rws_path *path, const rws_family *f, rws_var value, const rws_var *p)
{
    (void)f;
    const rws_var in[] = {value, p[0], p[1]};
    return rws__record(path, &rws_op_multivariate_normal_density, (rws_op_args){0}, in, 3, 1);
}

const rws_family rws_multivariate_normal_family = {
    .name = "multivariate normal",
    .help = "numbers with a covariance, by their mean and its Cholesky factor",
    .reparameterised = true,
    .n_params = 2,
    .length = length,
    .draw = draw,
    .log_density = log_density,
};

rws_var rws_multivariate_normal(rws_path *path, const char *site, rws_var mean, rws_var factor)
{
    return rws__site_visit_as(path, site, &rws_multivariate_normal_family, (rws_var[]){mean, factor}, __func__);
}

/* ---- ops */

/* Where row i of a factor of n rows begins. */
static size_t row_of(size_t i, size_t n, int dim)
{
    return (size_t)dim == n * n ? i * n : i * (i + 1) / 2;
}

/* Whether the diagonal of a factor is above 0. */
static bool is_factor(const float *L, size_t n, int dim)
{
    for (size_t i = 0; i < n; i++)
        if (!(L[row_of(i, n, dim) + i] > 0)) return false;
    return true;
}

static rws_status explain(const rws_call *c, size_t row, int s, size_t n, const char *site, rws_error *err)
{
    const float *L = rws__view_row(&c->in[s], row);
    for (size_t i = 0; i < n; i++) {
        const float x = L[row_of(i, n, c->in[s].dim) + i];
        if (!(x > 0))
            return rws_fail(err, RWS_BROKEN, "The diagonal of the Cholesky factor%s%s has %g; it must be above 0.",
                            site ? " at site " : "", site ? site : "", rws__plain(x));
    }
    return RWS_OK;
}

/* Inputs: m, L, noise. args.k is 1 if L is the direction in which a factor moves; its diagonal may then have any numbers. */
static void multivariate_normal_draw_forward(rws_call *c)
{
    const size_t n = (size_t)c->dim;
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const float *m = rws__view_row(&c->in[0], r), *L = rws__view_row(&c->in[1], r),
                    *e = rws__view_row(&c->in[2], r);
        for (size_t i = 0; i < n; i++) {
            const float *row = L + row_of(i, n, c->in[1].dim);
            double       total = (double)m[i];
            for (size_t j = 0; j <= i; j++) total += (double)row[j] * (double)e[j];
            c->out[r * n + i] = (float)total;
        }
        c->refused |= !c->args.k && !is_factor(L, n, c->in[1].dim);
    }
}

static void multivariate_normal_draw_backward(rws_call *c)
{
    const size_t n = (size_t)c->dim, all = (size_t)c->in[1].dim;
    float       *gm = rws__call_open(c, 0, c->dim), *gL = rws__call_open(c, 1, c->in[1].dim);
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const float *e = rws__view_row(&c->in[2], r), *g = c->gout + r * n;
        for (size_t i = 0; i < n; i++) {
            if (gm) gm[r * n + i] += g[i];
            float *row = gL ? gL + r * all + row_of(i, n, (int)all) : NULL;
            for (size_t j = 0; row && j <= i; j++) row[j] += g[i] * e[j];
        }
    }
    rws__call_close(c, 0, c->dim, gm);
    rws__call_close(c, 1, c->in[1].dim, gL);
}

static rws_status draw_explain(const rws_call *c, size_t row, const char *site, rws_error *err)
{
    return c->args.k ? RWS_OK : explain(c, row, 1, (size_t)c->dim, site, err);
}

/* z = L^-1 (x - m) */
static void solve(const float *x, const float *m, const float *L, size_t n, int dim, double *z)
{
    for (size_t i = 0; i < n; i++) {
        const float *row = L + row_of(i, n, dim);
        double       total = (double)x[i] - (m ? (double)m[i] : 0);
        for (size_t j = 0; j < i; j++) total -= (double)row[j] * z[j];
        z[i] = total / (double)row[i];
    }
}

/* z becomes w = L^-T z, from the last number to the first. */
static void solve_transposed(const float *L, size_t n, int dim, double *z)
{
    for (size_t i = n; i-- > 0;) {
        const float *row = L + row_of(i, n, dim);
        z[i] /= (double)row[i];
        for (size_t j = 0; j < i; j++) z[j] -= (double)row[j] * z[i];
    }
}

/* Inputs: x, m, L. */
static void multivariate_normal_density_forward(rws_call *c)
{
    const size_t n = (size_t)c->in[1].dim;
    double      *z = RWS_NEW(c->arena, double, n);
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const float *L = rws__view_row(&c->in[2], r);
        double       total = -RWS_LOG_ROOT_2_PI * (double)n;
        solve(rws__view_row(&c->in[0], r), rws__view_row(&c->in[1], r), L, n, c->in[2].dim, z);
        for (size_t i = 0; i < n; i++) total -= z[i] * z[i] / 2 + log((double)L[row_of(i, n, c->in[2].dim) + i]);
        const bool fine = is_factor(L, n, c->in[2].dim);
        c->out[r] = fine ? (float)total : NAN;
        c->refused |= !fine;
    }
}

static void multivariate_normal_density_backward(rws_call *c)
{
    const size_t n = (size_t)c->in[1].dim, all = (size_t)c->in[2].dim;
    double      *z = RWS_NEW(c->arena, double, 2 * n), *w = z + n;
    float *gx = rws__call_open(c, 0, (int)n), *gm = rws__call_open(c, 1, (int)n), *gL = rws__call_open(c, 2, (int)all);
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const float *L = rws__view_row(&c->in[2], r);
        const double g = (double)c->gout[r];
        if (g == 0) continue;
        solve(rws__view_row(&c->in[0], r), rws__view_row(&c->in[1], r), L, n, (int)all, z);
        for (size_t i = 0; i < n; i++) w[i] = z[i];
        solve_transposed(L, n, (int)all, w);
        for (size_t i = 0; i < n; i++) {
            if (gx) gx[r * n + i] -= (float)(g * w[i]);
            if (gm) gm[r * n + i] += (float)(g * w[i]);
            if (!gL) continue;
            float       *to = gL + r * all + row_of(i, n, (int)all);
            const float *row = L + row_of(i, n, (int)all);
            for (size_t j = 0; j <= i; j++) to[j] += (float)(g * (w[i] * z[j] - (i == j ? 1 / (double)row[i] : 0)));
        }
    }
    rws__call_close(c, 0, (int)n, gx);
    rws__call_close(c, 1, (int)n, gm);
    rws__call_close(c, 2, (int)all, gL);
}

static rws_status density_explain(const rws_call *c, size_t row, const char *site, rws_error *err)
{
    return explain(c, row, 2, (size_t)c->in[1].dim, site, err);
}

/* (L L^T)^-1 y, for tangents. Inputs: y, L. L must not move, since it gets no gradient. */
static void multivariate_normal_pull_forward(rws_call *c)
{
    const size_t n = (size_t)c->dim;
    double      *z = RWS_NEW(c->arena, double, n);
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const float *L = rws__view_row(&c->in[1], r);
        solve(rws__view_row(&c->in[0], r), NULL, L, n, c->in[1].dim, z);
        solve_transposed(L, n, c->in[1].dim, z);
        for (size_t i = 0; i < n; i++) c->out[r * n + i] = (float)z[i];
    }
}

/* The gradient of y is (L L^T)^-1 g, because the matrix is symmetric. */
static void multivariate_normal_pull_backward(rws_call *c)
{
    const size_t n = (size_t)c->dim;
    double      *z = RWS_NEW(c->arena, double, n);
    float       *g = rws__call_open(c, 0, c->dim);
    for (size_t r = 0; g && r < (size_t)c->n; r++) {
        const float *L = rws__view_row(&c->in[1], r);
        solve(c->gout + r * n, NULL, L, n, c->in[1].dim, z);
        solve_transposed(L, n, c->in[1].dim, z);
        for (size_t i = 0; i < n; i++) g[r * n + i] += (float)z[i];
    }
    rws__call_close(c, 0, c->dim, g);
}

/* w . (dm - dx). The factor must not move. */
static rws_var multivariate_normal_density_tangent(rws_tangent *t)
{
    const int n = rws__tangent_dim(t, t->in[1]);
    if (t->d[2].id) return RWS_NO_TANGENT;
    const rws_var y = rws__tangent_record(t, &rws_op_sub, (rws_op_args){0}, t->in, 2, n);
    const rws_var w =
        rws__tangent_record(t, &rws_op_multivariate_normal_pull, (rws_op_args){0}, (rws_var[]){y, t->in[2]}, 2, n);
    const rws_var moved = rws__tangent_add(t, t->d[1], rws__tangent_scale(t, t->d[0], -1));
    return rws__tangent_record(t, &rws_op_dot, (rws_op_args){0}, (rws_var[]){w, moved}, 2, 1);
}

/* dm + dL e: the op is linear in both, and the noise does not move. */
static rws_var multivariate_normal_draw_tangent(rws_tangent *t)
{
    if (!t->d[1].id) return t->d[0];
    const rws_var m = t->d[0].id ? t->d[0] : rws__tangent_zeros(t, t->dim);
    return rws__tangent_record(t, t->op, (rws_op_args){.k = 1}, (rws_var[]){m, t->d[1], t->in[2]}, 3, t->dim);
}

const rws_op rws_op_multivariate_normal_draw = {.name = "multivariate_normal_draw",
                                                .forgets = true,
                                                .forward = multivariate_normal_draw_forward,
                                                .backward = multivariate_normal_draw_backward,
                                                .explain = draw_explain,
                                                .tangent = multivariate_normal_draw_tangent};
const rws_op rws_op_multivariate_normal_density = {.name = "multivariate_normal_density",
                                                   .forgets = true,
                                                   .forward = multivariate_normal_density_forward,
                                                   .backward = multivariate_normal_density_backward,
                                                   .explain = density_explain,
                                                   .tangent = multivariate_normal_density_tangent};
const rws_op rws_op_multivariate_normal_pull = {.name = "multivariate_normal_pull",
                                                .forgets = true,
                                                .forward = multivariate_normal_pull_forward,
                                                .backward = multivariate_normal_pull_backward};
