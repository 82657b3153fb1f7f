/* gumbel.c - independent Gumbels of scale 1 at a location; a draw is location - log(-log u). */
#include "base/vecmath.h"
#include "dist/dist.h"
#include "tensor/rows.h"
#include "tensor/tangent.h"

extern const rws_op rws_op_gumbel_density; /* below */

static rws_var draw(rws_path *path, const rws_family *f, const rws_var *p, bool stop)
{
    (void)f;
    const int     n = rws_dim(path, p[0]);
    const rws_var in[] = {p[0], rws_draw_noise(path, RWS_NOISE_UNIFORM, n)};
    return rws__record(path, &rws_op_gumbel_draw, (rws_op_args){.stop = stop}, in, 2, n);
}

static rws_var log_density(rws_path *path, const rws_family *f, rws_var value, const rws_var *p)
{
    (void)f;
    return rws__record(path, &rws_op_gumbel_density, (rws_op_args){0}, (rws_var[]){value, p[0]}, 2, 1);
}

const rws_family rws_gumbel_family = {
    .name = "gumbel",
    .help = "the largest of many numbers, by location; the scale is 1",
    .reparameterised = true,
    .n_params = 1,
    .draw = draw,
    .log_density = log_density,
};

rws_var rws_gumbel(rws_path *path, const char *site, rws_var location)
{
    return rws__site_visit_as(path, site, &rws_gumbel_family, &location, __func__);
}

/* ---- ops. The uniform u is clipped to [s, 1 - s]. */

/* location - log(-log u). Inputs: location, u. The two logarithms have loops of their own: in one loop the second would
 * wait for the first. */
static void gumbel_draw_forward(rws_call *c)
{
    const size_t dim = (size_t)c->dim, n = (size_t)c->n;
    const float *u = rws__call_input(c, 1, c->dim), low = c->args.s, high = 1 - low;
    for (size_t first = 0, end; first < n; first = end) {
        end = first + rws__tile(dim) < n ? first + rws__tile(dim) : n;
#pragma omp simd
        for (size_t i = first * dim; i < end * dim; i++) c->out[i] = -rws__log(rws__clamp(u[i], low, high));
#pragma omp simd
        for (size_t i = first * dim; i < end * dim; i++) c->out[i] = -rws__log(c->out[i]);
        for (size_t r = first; r < end; r++)
            row_add(c->out + r * dim, rws__view_row(&c->in[0], r), dim, c->out + r * dim);
    }
}

static void gumbel_draw_backward(rws_call *c)
{
    const size_t dim = (size_t)c->dim;
    if (!c->gin[0].data) return;
    const bool fresh = rws__sink_take(&c->gin[0]);
    for (size_t r = 0; r < (size_t)c->n; r++)
        row_give(c->gout + r * dim, dim, 1, fresh, rws__sink_row(&c->gin[0], r, dim));
}

static rws_var gumbel_draw_tangent(rws_tangent *t)
{
    return t->d[0];
}

/* The sum of -d - exp(-d) with d = x - location. Inputs: x, location. */
static void gumbel_density_forward(rws_call *c)
{
    const int    dim = c->in[1].dim;
    const float *x = rws__call_input(c, 0, dim), *m = rws__call_input(c, 1, dim);
    for (size_t r = 0; r < (size_t)c->n; r++) {
        float total = 0;
#pragma omp simd reduction(+ : total)
        for (size_t i = r * (size_t)dim; i < (r + 1) * (size_t)dim; i++) total -= x[i] - m[i] + rws__exp(m[i] - x[i]);
        c->out[r] = total;
    }
}

static void gumbel_density_backward(rws_call *c)
{
    const int    dim = c->in[1].dim;
    const float *x = rws__call_input(c, 0, dim), *m = rws__call_input(c, 1, dim);
    float       *gx = rws__call_open(c, 0, dim), *gm = rws__call_open(c, 1, dim);
    for (size_t i = 0; i < (size_t)c->n * (size_t)dim; i++) {
        const float g = c->gout[i / (size_t)dim], slope = g * rws__where(g, 1 - rws__exp(m[i] - x[i]));
        if (gx) gx[i] -= slope;
        if (gm) gm[i] += slope;
    }
    rws__call_close(c, 0, dim, gx);
    rws__call_close(c, 1, dim, gm);
}

const rws_op rws_op_gumbel_draw = {.name = "gumbel_draw",
                                   .tangent = gumbel_draw_tangent,
                                   .forward = gumbel_draw_forward,
                                   .backward = gumbel_draw_backward};
const rws_op rws_op_gumbel_density = {
    .name = "gumbel_density", .forward = gumbel_density_forward, .backward = gumbel_density_backward};
