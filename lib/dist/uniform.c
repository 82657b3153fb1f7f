/* uniform.c - independent numbers between low and high; a draw is low + (high - low) u. */
#include "base/vecmath.h"
#include "dist/dist.h"

extern const rws_op rws_op_uniform_draw, rws_op_uniform_density; /* below */

static rws_var draw(rws_path *path, const rws_family *f, const rws_var *p, bool stop)
{
    (void)f;
    const int     n = rws__dist_longest(path, p, 2);
    const rws_var in[] = {p[0], p[1], rws_draw_noise(path, RWS_NOISE_UNIFORM, n)};
    return rws__record(path, &rws_op_uniform_draw, (rws_op_args){.stop = stop}, in, 3, n);
}

static rws_var log_density(rws_path *path, const rws_family *f, rws_var value, const rws_var *p)
{
    (void)f;
    return rws__record(path, &rws_op_uniform_density, (rws_op_args){0}, (rws_var[]){value, p[0], p[1]}, 3, 1);
}

static void bounds(rws_path *path, const rws_family *f, const rws_var *p, rws_var bound[2])
{
    (void)path, (void)f;
    bound[0] = p[0], bound[1] = p[1];
}

const rws_family rws_uniform_family = {
    .name = "uniform",
    .help = "a number between low and high",
    .support = RWS_SUPPORT_INTERVAL,
    .reparameterised = true,
    .n_params = 2,
    .bounds = bounds,
    .draw = draw,
    .log_density = log_density,
};

rws_var rws_uniform(rws_path *path, const char *site, rws_var low, rws_var high)
{
    return rws__site_visit_as(path, site, &rws_uniform_family, (rws_var[]){low, high}, __func__);
}

/* ---- ops */

static void uniform_draw_forward(rws_call *c)
{
    const float *a = rws__call_input(c, 0, c->dim), *b = rws__call_input(c, 1, c->dim),
                *u = rws__call_input(c, 2, c->dim);
    int outside = 0;
    for (size_t i = 0; i < (size_t)c->n * (size_t)c->dim; i++) c->out[i] = a[i] + (b[i] - a[i]) * u[i];
    for (size_t i = 0; i < (size_t)c->n * (size_t)c->dim; i++) outside |= !(a[i] < b[i]);
    c->refused = outside;
}

rws_status rws__explain_bounds(const rws_call *c, size_t row, int low, const char *site, rws_error *err)
{
    const rws_view *a = &c->in[low], *b = &c->in[low + 1];
    for (size_t j = 0; j < (size_t)(a->dim > b->dim ? a->dim : b->dim); j++)
        if (!(rws__view_at(a, row, j) < rws__view_at(b, row, j)))
            return rws_fail(err, RWS_BROKEN, "The bounds%s%s are %g and %g; the first must be below the second.",
                            site ? " at site " : "", site ? site : "", rws__plain(rws__view_at(a, row, j)),
                            rws__plain(rws__view_at(b, row, j)));
    return RWS_OK;
}

static rws_status uniform_draw_explain(const rws_call *c, size_t row, const char *site, rws_error *err)
{
    return rws__explain_bounds(c, row, 0, site, err);
}

static void uniform_draw_backward(rws_call *c)
{
    const float *u = rws__call_input(c, 2, c->dim);
    float       *ga = rws__call_open(c, 0, c->dim), *gb = rws__call_open(c, 1, c->dim);
    for (size_t i = 0; ga && i < (size_t)c->n * (size_t)c->dim; i++) ga[i] += c->gout[i] * (1 - u[i]);
    for (size_t i = 0; gb && i < (size_t)c->n * (size_t)c->dim; i++) gb[i] += c->gout[i] * u[i];
    rws__call_close(c, 0, c->dim, ga);
    rws__call_close(c, 1, c->dim, gb);
}

static int widest(const rws_call *c)
{
    return c->in[1].dim > c->in[2].dim ? c->in[1].dim : c->in[2].dim;
}

/* The sum of -log(high - low); -inf where x is outside, NaN where x is NaN or low is not below high. Inputs: x, low, high. */
static void uniform_density_forward(rws_call *c)
{
    const int    dim = widest(c);
    const float *x = rws__call_input(c, 0, dim), *a = rws__call_input(c, 1, dim), *b = rws__call_input(c, 2, dim);
    for (size_t r = 0; r < (size_t)c->n; r++) {
        float total = 0;
        for (size_t i = r * (size_t)dim; i < (r + 1) * (size_t)dim; i++)
            total += !(a[i] < b[i]) || isnan(x[i])  ? NAN
                     : x[i] >= a[i] && x[i] <= b[i] ? -logf(b[i] - a[i])
                                                    : -INFINITY;
        c->out[r] = total;
    }
}

static rws_status uniform_density_explain(const rws_call *c, size_t row, const char *site, rws_error *err)
{
    return rws__explain_bounds(c, row, 1, site, err);
}

static void uniform_density_backward(rws_call *c)
{
    const int    dim = widest(c);
    const float *x = rws__call_input(c, 0, dim), *a = rws__call_input(c, 1, dim), *b = rws__call_input(c, 2, dim);
    float       *ga = rws__call_open(c, 1, dim), *gb = rws__call_open(c, 2, dim);
    for (size_t i = 0; i < (size_t)c->n * (size_t)dim; i++) {
        const bool  within = x[i] >= a[i] && x[i] <= b[i]; /* elsewhere the density is -inf and has no slope */
        const float slope = within ? c->gout[i / (size_t)dim] / (b[i] - a[i]) : 0;
        if (ga) ga[i] += slope;
        if (gb) gb[i] -= slope;
    }
    rws__call_close(c, 1, dim, ga);
    rws__call_close(c, 2, dim, gb);
}

const rws_op rws_op_uniform_draw = {.name = "uniform_draw",
                                    .forward = uniform_draw_forward,
                                    .backward = uniform_draw_backward,
                                    .explain = uniform_draw_explain};
const rws_op rws_op_uniform_density = {.name = "uniform_density",
                                       .forward = uniform_density_forward,
                                       .backward = uniform_density_backward,
                                       .explain = uniform_density_explain};
