/* concrete.c - the Concrete distribution (Maddison et al. 2017) on the log of the simplex.
 *
 * A draw is ls = log softmax((log pi + Gumbel) / tau); its density on the simplex is
 *     log q(s) = lgamma(C) + (C - 1) log tau + sum_i (log pi_i - (tau + 1) ls_i) - C LSE_i(log pi_i - tau ls_i).
 */
#include "base/vecmath.h"
#include "dist/dist.h"
#include "tensor/softmax.h"

extern const rws_op rws_op_concrete_density; /* below */

static void prepare(rws_path *path, const rws_family *f, rws_var *p)
{
    (void)f;
    if (rws_dim(path, p[1]) != 1)
        rws__path_mistake(path, "rws_concrete takes one temperature, not %d.", rws_dim(path, p[1]));
    p[0] = rws_log_softmax(path, p[0]);
}

static rws_var draw(rws_path *path, const rws_family *f, const rws_var *p, bool stop)
{
    (void)f;
    const int     n = rws_dim(path, p[0]);
    const rws_var in[] = {p[0], rws_draw_noise(path, RWS_NOISE_UNIFORM, n)};
    const rws_var g = rws__record(path, &rws_op_gumbel_draw, (rws_op_args){.s = 1e-6f}, in, 2, n);
    const rws_var ls = rws__record(path, &rws_op_log_softmax, (rws_op_args){.k = 1}, (rws_var[]){g, p[1]}, 2, n);
    return stop ? rws_detach(path, ls) : ls;
}

static rws_var log_density(rws_path *path, const rws_family *f, rws_var value, const rws_var *p)
{
    (void)f;
    return rws__record(path, &rws_op_concrete_density, (rws_op_args){0}, (rws_var[]){value, p[0], p[1]}, 3, 1);
}

const rws_family rws_concrete_family = {
    .name = "concrete",
    .help = "the log of a point on the simplex, by logits and temperature",
    .support = RWS_SUPPORT_LOG_SIMPLEX,
    .reparameterised = true,
    .n_params = 2,
    .prepare = prepare,
    .draw = draw,
    .log_density = log_density,
};

rws_var rws_concrete(rws_path *path, const char *site, rws_var logits, rws_var temperature)
{
    return rws__site_visit_as(path, site, &rws_concrete_family, (rws_var[]){logits, temperature}, __func__);
}

rws_var rws_concrete_density(rws_path *path, rws_var log_s, rws_var log_pi, rws_var temperature)
{
    rws_var v;
    if (rws__replayed(path, &v)) return v;
    if (rws_dim(path, log_s) != rws_dim(path, log_pi) || rws_dim(path, temperature) != 1)
        rws__path_mistake(
            path,
            "rws_concrete_density takes two vectors of one length and one temperature, not %d, %d and %d numbers.",
            rws_dim(path, log_s), rws_dim(path, log_pi), rws_dim(path, temperature));
    return rws__returns(path, log_density(path, &rws_concrete_family, log_s, (rws_var[]){log_pi, temperature}));
}

/* ---- the log-density of the formula above. Inputs: ls, log pi, tau. Saves softmax(log pi - tau ls). */

static void concrete_density_forward(rws_call *c)
{
    const int    C = c->in[1].dim;
    int          sign; /* lgammaf would write it to a global, from every thread */
    const float *tau = rws__call_input(c, 2, 1), constant = lgammaf_r((float)C, &sign);
    const size_t n = (size_t)c->n, dim = (size_t)C;
    float        top[RWS_TILE], log_total[RWS_TILE], *minus = RWS_NEW(c->arena, float, n), by_tau = 0;
    for (size_t r = 0; r < n; r++) minus[r] = -tau[r];
    const rws_exponents e = {.x = &c->in[1], .y = &c->in[0], .times = minus};
    rws_v8             *scratch = rws__softmax_scratch(c->arena, dim);
    for (size_t first = 0, end; first < n; first = end) {
        end = first + rws__columns_tile(dim) < n ? first + rws__columns_tile(dim) : n;
        rws__softmax(&e, first, end, dim, (rws_softmax_rows){c->saved, NULL, top, log_total}, scratch);
        for (size_t r = first; r < end; r++) {
            const float sum =
                row_sum(rws__view_row(&c->in[1], r), dim) - (tau[r] + 1) * row_sum(rws__view_row(&c->in[0], r), dim);
            if (r == 0 || tau[r] != tau[r - 1]) {
                by_tau = constant + (float)(C - 1) * logf(tau[r]);
                c->refused |= !(tau[r] > 0);
            }
            c->out[r] = by_tau + (sum - (float)C * (top[r - first] + log_total[r - first]));
        }
    }
}

static rws_status concrete_density_explain(const rws_call *c, size_t row, const char *site, rws_error *err)
{
    return rws__explain_positive(c, row, 2, "temperature", site, err);
}

static void concrete_density_backward(rws_call *c)
{
    const int    C = c->in[1].dim;
    const size_t dim = (size_t)C;
    const float *tau = rws__call_input(c, 2, 1);
    float       *gt = rws__call_open(c, 2, 1);
    rws_sink    *gs = &c->gin[0], *gp = &c->gin[1];
    const bool   fresh_s = rws__sink_take(gs), fresh_p = rws__sink_take(gp);
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const float *p = c->saved + r * dim, g = c->gout[r], t = tau[r];
        if (gs->data) row_give_affine(p, dim, g * t * (float)C, -g * (t + 1), fresh_s, rws__sink_row(gs, r, dim));
        if (gp->data) row_give_affine(p, dim, -g * (float)C, g, fresh_p, rws__sink_row(gp, r, dim));
        if (gt && g != 0) {
            const float *ls = rws__view_row(&c->in[0], r);
            gt[r] += g * ((float)(C - 1) / t + (float)C * row_dot(p, ls, dim) - row_sum(ls, dim));
        }
    }
    rws__call_close(c, 2, 1, gt);
}

const rws_op rws_op_concrete_density = {.name = "concrete_density",
                                        .saves = true,
                                        .forward = concrete_density_forward,
                                        .backward = concrete_density_backward,
                                        .explain = concrete_density_explain};
