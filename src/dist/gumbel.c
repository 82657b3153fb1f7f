/* gumbel.c - independent Gumbels of scale 1 at a location; a draw is location - log(-log u). */
#include "base/vecmath.h"
#include "dist/dist.h"

static int length(rws_run *r, const rws_var *p)
{
    return rws_dim(r, p[0]);
}

static rws_var draw(rws_run *r, const rws_var *p, bool stop)
{
    const int     n = rws_dim(r, p[0]);
    const rws_var in[] = {p[0], rws_draw_noise(r, RWS_NOISE_UNIFORM, n)};
    return rws_record(r, &rws_op_gumbel_draw, (rws_op_args){.stop = stop}, in, 2, n);
}

static rws_var log_density(rws_run *r, rws_var value, const rws_var *p)
{
    return rws_record(r, &rws_op_gumbel_density, (rws_op_args){0}, (rws_var[]){value, p[0]}, 2, 1);
}

const rws_family rws_gumbel_family = {
    .name = "gumbel",
    .continuous = true,
    .n_params = 1,
    .size = length,
    .dim = length,
    .draw = draw,
    .log_density = log_density,
};

/* ---- ops; s clips the uniform */

static void gumbel_draw_forward(rws_call *c)
{
    const float *m = rws_call_input(c, 0, c->dim), *u = rws_call_input(c, 1, c->dim), clip = c->args.s;
#pragma omp simd
    for (size_t i = 0; i < (size_t)c->n * (size_t)c->dim; i++) {
        const float v = u[i] < clip ? clip : u[i] > 1 - clip ? 1 - clip : u[i];
        c->out[i] = m[i] + rws_gumbel_of(v);
    }
}

static void gumbel_draw_backward(rws_call *c)
{
    float *g = rws_call_open(c, 0, c->dim);
    for (size_t i = 0; g && i < (size_t)c->n * (size_t)c->dim; i++) g[i] += c->gout[i];
    rws_call_close(c, 0, c->dim, g);
}

/* sum of -d - exp(-d) with d = x - location; inputs x, location */
static void gumbel_density_forward(rws_call *c)
{
    const int    dim = c->in[1].dim;
    const float *x = rws_call_input(c, 0, dim), *m = rws_call_input(c, 1, dim);
    for (size_t r = 0; r < (size_t)c->n; r++) {
        float total = 0;
#pragma omp simd reduction(+ : total)
        for (size_t i = r * (size_t)dim; i < (r + 1) * (size_t)dim; i++) total -= x[i] - m[i] + rws_exp(m[i] - x[i]);
        c->out[r] = total;
    }
}

static void gumbel_density_backward(rws_call *c)
{
    const int    dim = c->in[1].dim;
    const float *x = rws_call_input(c, 0, dim), *m = rws_call_input(c, 1, dim);
    float       *gx = rws_call_open(c, 0, dim), *gm = rws_call_open(c, 1, dim);
    for (size_t i = 0; i < (size_t)c->n * (size_t)dim; i++) {
        const float slope = c->gout[i / (size_t)dim] * (1 - rws_exp(m[i] - x[i]));
        if (gx) gx[i] -= slope;
        if (gm) gm[i] += slope;
    }
    rws_call_close(c, 0, dim, gx);
    rws_call_close(c, 1, dim, gm);
}

const rws_op rws_op_gumbel_draw = {.name = "gumbel_draw",
                                   .tangent = RWS_TANGENT_FIRST,
                                   .forward = gumbel_draw_forward,
                                   .backward = gumbel_draw_backward};
const rws_op rws_op_gumbel_density = {
    .name = "gumbel_density", .forward = gumbel_density_forward, .backward = gumbel_density_backward};
