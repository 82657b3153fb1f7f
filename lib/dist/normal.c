/* normal.c - independent normals by mean and standard deviation; a draw is mean + sd * noise. */
#include "base/vecmath.h"
#include "dist/dist.h"
#include "tensor/tangent.h"

extern const rws_op rws_op_normal_draw, rws_op_normal_density; /* below */

static rws_var draw(rws_path *path, const rws_family *f, const rws_var *p, bool stop)
{
    (void)f;
    const int     n = rws__dist_longest(path, p, 2);
    const rws_var in[] = {p[0], p[1], rws_draw_noise(path, RWS_NOISE_NORMAL, n)};
    return rws__record(path, &rws_op_normal_draw, (rws_op_args){.stop = stop}, in, 3, n);
}

static rws_var log_density(rws_path *path, const rws_family *f, rws_var value, const rws_var *p)
{
    (void)f;
    return rws__record(path, &rws_op_normal_density, (rws_op_args){0}, (rws_var[]){value, p[0], p[1]}, 3, 1);
}

const rws_family rws_normal_family = {
    .name = "normal",
    .help = "a number, by mean and standard deviation",
    .reparameterised = true,
    .n_params = 2,
    .draw = draw,
    .log_density = log_density,
};

rws_var rws_normal(rws_path *path, const char *site, rws_var mean, rws_var sd)
{
    return rws__site_visit_as(path, site, &rws_normal_family, (rws_var[]){mean, sd}, __func__);
}

rws_var rws_normal_density(rws_path *path, rws_var x, rws_var mean, rws_var sd)
{
    rws_var v;
    if (rws__replayed(path, &v)) return v;
    const rws_var in[] = {x, mean, sd};
    const int     n = rws__dist_longest(path, in, 3);
    for (int i = 0; i < 3; i++)
        if (rws_dim(path, in[i]) != n && rws_dim(path, in[i]) != 1)
            rws__path_mistake(path,
                              "rws_normal_density takes vectors of one length or of 1, not of %d, %d and %d numbers.",
                              rws_dim(path, x), rws_dim(path, mean), rws_dim(path, sd));
    return rws__returns(path, log_density(path, &rws_normal_family, x, in + 1));
}

/* ---- ops */

static void normal_draw_forward(rws_call *c)
{
    const float *m = rws__call_input(c, 0, c->dim), *s = rws__call_input(c, 1, c->dim),
                *e = rws__call_input(c, 2, c->dim);
#pragma omp simd
    for (size_t i = 0; i < (size_t)c->n * (size_t)c->dim; i++) c->out[i] = m[i] + s[i] * e[i];
    c->refused = !rws__call_positive(c, 1);
}

static rws_status normal_draw_explain(const rws_call *c, size_t row, const char *site, rws_error *err)
{
    return rws__explain_positive(c, row, 1, "standard deviation", site, err);
}

static void normal_draw_backward(rws_call *c)
{
    const float *e = rws__call_input(c, 2, c->dim);
    float       *gm = rws__call_open(c, 0, c->dim), *gs = rws__call_open(c, 1, c->dim);
    for (size_t i = 0; gm && i < (size_t)c->n * (size_t)c->dim; i++) gm[i] += c->gout[i];
    for (size_t i = 0; gs && i < (size_t)c->n * (size_t)c->dim; i++) gs[i] += c->gout[i] * e[i];
    rws__call_close(c, 0, c->dim, gm);
    rws__call_close(c, 1, c->dim, gs);
}

static int widest(const rws_call *c)
{
    int n = 1;
    for (int s = 0; s < 3; s++)
        if (c->in[s].dim > n) n = c->in[s].dim;
    return n;
}

/* The sum of -((x - m) / s)^2 / 2 - log s - log(2 pi) / 2. Inputs: x, m, s. NaN where s is not above 0. */
static void normal_density_forward(rws_call *c)
{
    const int    dim = widest(c);
    const size_t n = (size_t)c->n;
    const float *x = rws__call_input(c, 0, dim), *m = rws__call_input(c, 1, dim);
    const float *s = dim == 1 && c->in[2].same ? c->in[2].data : rws__call_input(c, 2, dim);
    if (dim == 1 && c->in[2].same) { /* all rows have one standard deviation, so one logarithm is enough */
        const float scale = 1 / s[0], constant = -logf(s[0]) - 0.918938533f;
#pragma omp simd
        for (size_t i = 0; i < n; i++) {
            const float d = (x[i] - m[i]) * scale;
            c->out[i] = constant - 0.5f * d * d;
        }
        return;
    }
    if (dim == 1) {
#pragma omp simd
        for (size_t i = 0; i < n; i++) {
            const float d = (x[i] - m[i]) / s[i];
            c->out[i] = -0.5f * d * d - logf(s[i]) - 0.918938533f;
        }
        return;
    }
    for (size_t r = 0; r < n; r++) {
        float total = 0;
#pragma omp simd reduction(+ : total)
        for (size_t i = r * (size_t)dim; i < (r + 1) * (size_t)dim; i++) {
            const float d = (x[i] - m[i]) / s[i];
            total += -0.5f * d * d - logf(s[i]) - 0.918938533f;
        }
        c->out[r] = total;
    }
}

static rws_status normal_density_explain(const rws_call *c, size_t row, const char *site, rws_error *err)
{
    return rws__explain_positive(c, row, 2, "standard deviation", site, err);
}

static void normal_density_backward(rws_call *c)
{
    const int    dim = widest(c);
    const float *x = rws__call_input(c, 0, dim), *m = rws__call_input(c, 1, dim), *s = rws__call_input(c, 2, dim);
    float       *gx = rws__call_open(c, 0, dim), *gm = rws__call_open(c, 1, dim), *gs = rws__call_open(c, 2, dim);
    if (dim == 1 && !gs) {
        float *slope = RWS_NEW(c->arena, float, c->n);
#pragma omp simd
        for (size_t i = 0; i < (size_t)c->n; i++)
            slope[i] = rws__where(c->gout[i], c->gout[i] * (x[i] - m[i]) / (s[i] * s[i]));
        for (size_t i = 0; gx && i < (size_t)c->n; i++) gx[i] -= slope[i];
        for (size_t i = 0; gm && i < (size_t)c->n; i++) gm[i] += slope[i];
    } else
        for (size_t r = 0; r < (size_t)c->n; r++) {
            const float g = c->gout[r];
            if (g == 0) continue;
            for (size_t i = r * (size_t)dim; i < (r + 1) * (size_t)dim; i++) {
                const float d = (x[i] - m[i]) / s[i], slope = g * d / s[i];
                if (gx) gx[i] -= slope;
                if (gm) gm[i] += slope;
                if (gs) gs[i] += g * (d * d - 1) / s[i];
            }
        }
    rws__call_close(c, 0, dim, gx);
    rws__call_close(c, 1, dim, gm);
    rws__call_close(c, 2, dim, gs);
}

/* The sum of (m - x) / s^2 (dx - dm). The standard deviation must not move. */
static rws_var normal_density_tangent(rws_tangent *t)
{
    if (t->d[2].id) return RWS_NO_TANGENT;
    const rws_var x = t->in[0], m = t->in[1], s = t->in[2];
    int           dim = rws__tangent_dim(t, x);
    for (int i = 1; i < 3; i++) dim = rws__tangent_dim(t, t->in[i]) > dim ? rws__tangent_dim(t, t->in[i]) : dim;
    rws_var slope = rws__tangent_record(t, &rws_op_sub, (rws_op_args){0}, (rws_var[]){m, x}, 2, dim);
    for (int i = 0; i < 2; i++)
        slope = rws__tangent_record(t, &rws_op_div, (rws_op_args){0}, (rws_var[]){slope, s}, 2, dim);
    const rws_var moved = rws__tangent_add(t, t->d[0], rws__tangent_scale(t, t->d[1], -1));
    const rws_var product = rws__tangent_mul(t, slope, moved);
    if (rws__tangent_dim(t, product) == 1) return product;
    return rws__tangent_record(t, &rws_op_sum, (rws_op_args){0}, &product, 1, 1);
}

const rws_op rws_op_normal_draw = {.name = "normal_draw",
                                   .forward = normal_draw_forward,
                                   .backward = normal_draw_backward,
                                   .explain = normal_draw_explain};
const rws_op rws_op_normal_density = {.name = "normal_density",
                                      .tangent = normal_density_tangent,
                                      .forward = normal_density_forward,
                                      .backward = normal_density_backward,
                                      .explain = normal_density_explain};
