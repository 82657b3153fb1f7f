/* concrete.c - the Concrete distribution (Maddison et al. 2017) on the log of the simplex.
 *
 * A draw is ls = log softmax((log pi + Gumbel) / tau); its density on the simplex is
 *     log q(s) = lgamma(C) + (C - 1) log tau + sum_i (log pi_i - (tau + 1) ls_i) - C LSE_i(log pi_i - tau ls_i).
 */
#include "base/vecmath.h"
#include "dist/dist.h"

static void prepare(rws_run *r, rws_var *p)
{
    if (rws_dim(r, p[1]) != 1) rws_give_up(r, "rws_concrete takes one temperature, not %d.", rws_dim(r, p[1]));
    p[0] = rws_log_softmax(r, p[0]);
}

static int length(rws_run *r, const rws_var *p)
{
    return rws_dim(r, p[0]);
}

static rws_var draw(rws_run *r, const rws_var *p, bool stop)
{
    const int     n = rws_dim(r, p[0]);
    const rws_var in[] = {p[0], rws_draw_noise(r, RWS_NOISE_UNIFORM, n)};
    const rws_var g = rws_record(r, &rws_op_gumbel_draw, (rws_op_args){.s = 1e-6f}, in, 2, n);
    const rws_var ls = rws_log_softmax(r, rws_div(r, g, p[1]));
    return stop ? rws_detach(r, ls) : ls;
}

static rws_var log_density(rws_run *r, rws_var value, const rws_var *p)
{
    return rws_record(r, &rws_op_concrete_density, (rws_op_args){0}, (rws_var[]){value, p[0], p[1]}, 3, 1);
}

const rws_family rws_concrete_family = {
    .name = "concrete",
    .continuous = true,
    .n_params = 2,
    .prepare = prepare,
    .size = length,
    .dim = length,
    .draw = draw,
    .log_density = log_density,
};

rws_var rws_concrete_density(rws_run *r, rws_var log_s, rws_var log_pi, rws_var temperature)
{
    rws_var v;
    if (rws_replayed(r, &v)) return v;
    if (rws_dim(r, log_s) != rws_dim(r, log_pi) || rws_dim(r, temperature) != 1)
        rws_give_up(
            r, "rws_concrete_density takes two vectors of one length and one temperature, not %d, %d and %d numbers.",
            rws_dim(r, log_s), rws_dim(r, log_pi), rws_dim(r, temperature));
    return rws_returns(r, log_density(r, log_s, (rws_var[]){log_pi, temperature}));
}

/* ---- ops: inputs ls, log pi, tau; saves softmax(log pi - tau ls) */

static void concrete_density_forward(rws_call *c)
{
    const int    C = c->in[1].dim;
    const float *ls = rws_call_input(c, 0, C), *lp = rws_call_input(c, 1, C), *tau = rws_call_input(c, 2, 1);
    const float  constant = lgammaf((float)C);
    const size_t n = (size_t)c->n, dim = (size_t)C;
    for (size_t r = 0; r < n; r++) {
        const float *restrict s = ls + r * dim, *restrict p = lp + r * dim;
        float *restrict y = c->saved + r * dim;
        const float t = tau[r];
        float       sum = 0, top = -INFINITY;
#pragma omp simd reduction(+ : sum) reduction(max : top)
        for (size_t j = 0; j < dim; j++) {
            y[j] = p[j] - t * s[j];
            sum += p[j] - (t + 1) * s[j];
            top = y[j] > top ? y[j] : top;
        }
        for (size_t j = 0; j < dim; j++) y[j] -= top;
        c->out[r] = sum - (float)C * top;
    }
#pragma omp      simd
    for (size_t i = 0; i < n * dim; i++) c->saved[i] = rws_exp(c->saved[i]);
    for (size_t r = 0; r < n; r++) {
             float *restrict y = c->saved + r * dim;
             float total = 0;
#pragma omp simd reduction(+ : total)
        for (size_t j = 0; j < dim; j++) total += y[j];
        const float scale = 1 / total;
        for (size_t j = 0; j < dim; j++) y[j] *= scale;
        c->out[r] += constant + (float)(C - 1) * logf(tau[r]) - (float)C * logf(total);
    }
}

static void concrete_density_backward(rws_call *c)
{
    const int    C = c->in[1].dim;
    const float *ls = rws_call_input(c, 0, C), *tau = rws_call_input(c, 2, 1);
    float       *gs = rws_call_open(c, 0, C), *gp = rws_call_open(c, 1, C), *gt = rws_call_open(c, 2, 1);
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const float g = c->gout[r], t = tau[r];
        float       by_tau = (float)(C - 1) / t;
        for (size_t i = r * (size_t)C; i < (r + 1) * (size_t)C; i++) {
            const float share = (float)C * c->saved[i];
            if (gs) gs[i] += g * (t * share - (t + 1));
            if (gp) gp[i] += g * (1 - share);
            by_tau += (share - 1) * ls[i];
        }
        if (gt) gt[r] += g * by_tau;
    }
    rws_call_close(c, 0, C, gs);
    rws_call_close(c, 1, C, gp);
    rws_call_close(c, 2, 1, gt);
}

const rws_op rws_op_concrete_density = {.name = "concrete_density",
                                        .saves = true,
                                        .forward = concrete_density_forward,
                                        .backward = concrete_density_backward};
