/* dirichlet.c - a point on the simplex, by a vector of concentrations a.
 *
 * A draw is g / (g_1 + … + g_n) with independent Gammas g_i of shape a_i, each a quantile of a uniform number, so that its
 * derivative by a_i is the implicit one (Figurnov et al. 2018). Gammas of small shapes are far below the smallest double, so
 * all is computed from their logarithms. What is too small for a float becomes the smallest float. */
#include "base/error.h"
#include "dist/each.h"
#include "tensor/special.h"
#include "tensor/tangent.h"

extern const rws_op rws_op_dirichlet_draw, rws_op_dirichlet_density; /* below */

#define NEAR_ONE 1e-3 /* numbers of float precision whose sum differs from 1 by more are no point on the simplex */

static rws_var draw(rws_path *path, const rws_family *f, const rws_var *p, bool stop)
{
    (void)f;
    const int     n = rws_dim(path, p[0]);
    const rws_var in[] = {p[0], rws_draw_noise(path, RWS_NOISE_UNIFORM, n)};
    return rws__record(path, &rws_op_dirichlet_draw, (rws_op_args){.stop = stop}, in, 2, n);
}

static rws_var log_density(rws_path *path, const rws_family *f, rws_var value, const rws_var *p)
{
    (void)f;
    return rws__record(path, &rws_op_dirichlet_density, (rws_op_args){0}, (rws_var[]){value, p[0]}, 2, 1);
}

const rws_family rws_dirichlet_family = {
    .name = "dirichlet",
    .help = "numbers above 0 that add up to 1, by their concentrations",
    .support = RWS_SUPPORT_SIMPLEX,
    .reparameterised = true,
    .n_params = 1,
    .draw = draw,
    .log_density = log_density,
};

rws_var rws_dirichlet(rws_path *path, const char *site, rws_var concentrations)
{
    return rws__site_visit_as(path, site, &rws_dirichlet_family, &concentrations, __func__);
}

/* ---- ops */

/* x[i] = log of the point, slope[i] = the derivative of log g_i by a_i. False if a concentration is not above 0. */
static bool log_point(const float *a, const float *u, size_t n, double *x, double *slope)
{
    double top = -INFINITY, total = 0;
    for (size_t i = 0; i < n; i++) {
        if (!(a[i] > 0)) return false;
        x[i] = rws__log_gamma_quantile((double)a[i], (double)u[i], &slope[i]);
        top = fmax(top, x[i]);
    }
    for (size_t i = 0; i < n; i++) total += exp(x[i] - top);
    for (size_t i = 0; i < n; i++) x[i] -= top + log(total);
    return true;
}

static void dirichlet_draw_forward(rws_call *c)
{
    const size_t n = (size_t)c->dim;
    double      *x = RWS_NEW(c->arena, double, 2 * n);
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const bool fine = log_point(rws__view_row(&c->in[0], r), rws__view_row(&c->in[1], r), n, x, x + n);
        for (size_t i = 0; i < n; i++) c->out[r * n + i] = fine ? (float)rws__each_positive(exp(x[i])) : NAN;
        c->refused |= !fine;
    }
}

/* dx_i / da_j = x_i (1[i = j] - x_j) slope_j */
static void dirichlet_draw_backward(rws_call *c)
{
    const size_t n = (size_t)c->dim;
    double      *x = RWS_NEW(c->arena, double, 2 * n);
    float       *g = rws__call_open(c, 0, c->dim);
    for (size_t r = 0; g && r < (size_t)c->n; r++) {
        const float *gout = c->gout + r * n;
        double       mean = 0;
        log_point(rws__view_row(&c->in[0], r), rws__view_row(&c->in[1], r), n, x, x + n);
        for (size_t i = 0; i < n; i++) mean += exp(x[i]) * (double)gout[i];
        for (size_t i = 0; i < n; i++) g[r * n + i] += (float)(exp(x[i]) * ((double)gout[i] - mean) * x[n + i]);
    }
    rws__call_close(c, 0, c->dim, g);
}

static bool on_simplex(const float *x, size_t n)
{
    double total = 0;
    for (size_t i = 0; i < n; i++) {
        if (!(x[i] > 0)) return false;
        total += (double)x[i];
    }
    return fabs(total - 1) < NEAR_ONE;
}

/* lgamma(sum a) + the sum of (a_i - 1) log x_i - lgamma(a_i). Inputs: x, a. */
static void dirichlet_density_forward(rws_call *c)
{
    const size_t n = (size_t)c->in[1].dim;
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const float *x = rws__view_row(&c->in[0], r), *a = rws__view_row(&c->in[1], r);
        double       sum = 0, total = 0;
        bool         fine = true;
        for (size_t i = 0; i < n; i++) {
            fine &= a[i] > 0 && !isnan(x[i]);
            sum += (double)a[i];
            total += ((double)a[i] - 1) * log((double)x[i]) - rws__lgamma((double)a[i]);
        }
        c->out[r] = !fine ? NAN : on_simplex(x, n) ? (float)(total + rws__lgamma(sum)) : -INFINITY;
        c->refused |= !fine;
    }
}

static void dirichlet_density_backward(rws_call *c)
{
    const size_t n = (size_t)c->in[1].dim;
    float       *gx = rws__call_open(c, 0, c->in[1].dim), *ga = rws__call_open(c, 1, c->in[1].dim);
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const float *x = rws__view_row(&c->in[0], r), *a = rws__view_row(&c->in[1], r);
        const double g = (double)c->gout[r];
        double       sum = 0;
        if (!on_simplex(x, n)) continue;
        for (size_t i = 0; i < n; i++) sum += (double)a[i];
        const double all = ga ? rws__digamma(sum) : 0;
        for (size_t i = 0; i < n; i++) {
            if (gx) gx[r * n + i] += (float)(g * ((double)a[i] - 1) / (double)x[i]);
            if (ga) ga[r * n + i] += (float)(g * (log((double)x[i]) + all - rws__digamma((double)a[i])));
        }
    }
    rws__call_close(c, 0, c->in[1].dim, gx);
    rws__call_close(c, 1, c->in[1].dim, ga);
}

/* The sum of (a_i - 1) / x_i dx_i + (log x_i + psi(sum a) - psi(a_i)) da_i, psi being the digamma function. */
static rws_var dirichlet_density_tangent(rws_tangent *t)
{
    const rws_op_args none = {0}, log_of = {.k = RWS_LOG}, psi = {.k = RWS_DIGAMMA};
    const rws_var     x = t->in[0], a = t->in[1];
    const int         n = rws__tangent_dim(t, a);
    rws_var           by_x = {0}, by_a = {0};
    if (t->d[0].id) {
        by_x = rws__tangent_record(t, &rws_op_affine, (rws_op_args){.s = 1, .t = -1}, &a, 1, n);
        by_x = rws__tangent_record(t, &rws_op_div, none, (rws_var[]){by_x, x}, 2, n);
    }
    if (t->d[1].id) {
        const rws_var sum = rws__tangent_record(t, &rws_op_sum, none, &a, 1, 1);
        const rws_var all = rws__tangent_record(t, &rws_op_map, psi, &sum, 1, 1);
        const rws_var each = rws__tangent_record(t, &rws_op_map, psi, &a, 1, n);
        const rws_var logs = rws__tangent_record(t, &rws_op_apply, log_of, &x, 1, n);
        by_a = rws__tangent_record(t, &rws_op_sub, none, (rws_var[]){logs, each}, 2, n);
        by_a = rws__tangent_record(t, &rws_op_add, none, (rws_var[]){by_a, all}, 2, n);
    }
    const rws_var moved = rws__tangent_add(t, rws__tangent_mul(t, by_x, t->d[0]), rws__tangent_mul(t, by_a, t->d[1]));
    return rws__tangent_record(t, &rws_op_sum, none, &moved, 1, 1);
}

static rws_status draw_explain(const rws_call *c, size_t row, const char *site, rws_error *err)
{
    return rws__explain_positive(c, row, 0, "concentration", site, err);
}

static rws_status density_explain(const rws_call *c, size_t row, const char *site, rws_error *err)
{
    return rws__explain_positive(c, row, 1, "concentration", site, err);
}

const rws_op rws_op_dirichlet_draw = {.name = "dirichlet_draw",
                                      .forgets = true,
                                      .forward = dirichlet_draw_forward,
                                      .backward = dirichlet_draw_backward,
                                      .explain = draw_explain};
const rws_op rws_op_dirichlet_density = {.name = "dirichlet_density",
                                         .forgets = true,
                                         .forward = dirichlet_density_forward,
                                         .backward = dirichlet_density_backward,
                                         .tangent = dirichlet_density_tangent,
                                         .explain = density_explain};
