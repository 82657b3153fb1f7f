/* muprop.c - the bound's gradient with its first-order expansion as control variate (Gu et al. 2016).
 *
 * The expansion is about the mean of the choices, the point s = pi of the simplex, where h(s) is the log-weight of a
 * relaxed choice and e_z the corner of the simplex that a choice z is. Its expectation is added back exactly:
 *
 *     c      = h(pi) + (1/K) sum_k Dh_k,         Dh_k = grad h(pi) . (e_{z_k} - pi)
 *     g_phi  = sum_k (L - c - w_k) grad log q(z_k) + grad h(pi) . grad pi
 *
 * Dh_k is the derivative of h(pi + t (e_{z_k} - pi)) by a parameter t that stays 0. It is known only after forward, so
 * that the first backward is without it and the second backward adds it. theta and pi inside h count as constants.
 */
#include "estimator/control.h"

#include "base/error.h"

#include <string.h>

enum { H, DH }; /* outputs */

#define FLOOR 1e-30f /* added to probabilities before their logarithm */

static const rws_param *parameter(const rws_method *m)
{
    return m->own;
}

static rws_status setup(rws_method *m, rws_setup *s, rws_error *err)
{
    (void)err; /* what cannot be declared is recorded in s */
    m->own = rws_setup_param(s, RWS_CONTROL, "t", 1, 1, RWS_ZERO);
    return RWS_OK;
}

/* h(pi + t (e_z - pi)) */
static rws_var log_weight(rws_path *path, const rws_method *m)
{
    const rws_var log_pi = rws__path_noted(path, RWS_NOTE_LOG_PI), pi = rws_apply(path, RWS_EXP, log_pi);
    const rws_var corner = rws_onehot(path, rws__path_noted(path, RWS_NOTE_Z), rws_dim(path, pi));
    const rws_var moved = rws_mul(path, rws_sub(path, corner, pi), rws_parameter(path, m->own));
    const rws_var log_s = rws_apply(path, RWS_LOG, rws_affine(path, rws_add(path, pi, moved), 1, FLOOR));
    return rws_sub(path, m->model->relaxed(path, m->state, log_s, rws_constant(path, 1), RWS_RELAX_SOFT),
                   rws_log_sum_exp(path, rws_add(path, log_s, rws_detach(path, log_pi))));
}

static void program(rws_path *path, void *method)
{
    rws__control_sides(path, method);
    rws__path_freeze(path, RWS_BIT(RWS_THETA) | RWS_BIT(RWS_PHI)); /* pi still carries phi */
    rws__path_output(path, H, log_weight(path, method));
    rws__path_freeze(path, 0);
}

static void weigh(const rws_method *m, rws_scores *s, double share, rws_tally *tally)
{
    (void)m;
    rws__weigh(s, share, tally);
    for (int d = 0; d < s->B; d++) {
        const bool possible = s->L[d] > -INFINITY;
        for (uint32_t i = s->start[d]; i < s->start[d + 1]; i++) { /* a row is a particle, and h is equal in all */
            s->coef_q[i] = possible ? share * (s->L[d] - s->out[H][i]) - s->coef_p[i] : 0;
            s->coef_out[H][i] = possible ? share / s->K : 0;
        }
    }
}

static rws_status extend(const rws_method *m, rws_engine *e, const float *direction, rws_error *err)
{
    (void)m;
    return rws__engine_tangent(e, H, DH, RWS_BIT(RWS_CONTROL), direction, err);
}

static void weigh_second(const rws_method *m, rws_scores *s, double share, float *gradient)
{
    (void)m, (void)gradient;
    const size_t bytes = (size_t)s->n * sizeof(double);
    memset(s->coef_p, 0, bytes);
    memset(s->coef_r, 0, bytes);
    memset(s->coef_out[H], 0, bytes);
    for (int d = 0; d < s->B; d++) {
        double sum = 0;
        for (uint32_t i = s->start[d]; i < s->start[d + 1]; i++) sum += s->out[DH][i];
        const double coef = s->L[d] > -INFINITY ? -share * sum / s->K : 0;
        for (uint32_t i = s->start[d]; i < s->start[d + 1]; i++) s->coef_q[i] = coef;
    }
}

const rws_estimator rws_estimator_muprop = {
    .name = "muprop",
    .help = "the bound's gradient with its expansion about the mean choice as control variate",
    .when = "For one categorical site and no branches: as rebar, without a temperature.",
    .min_particles = 1,
    .n_phases = 1,
    .phases = {{.mode = RWS_WAKE,
                .drawing = RWS_GUMBEL,
                .gradients = RWS_BIT(RWS_THETA) | RWS_BIT(RWS_PHI),
                .steps = RWS_BIT(RWS_THETA) | RWS_BIT(RWS_PHI),
                .program = program,
                .prepare = rws__control_prepare,
                .weigh = weigh,
                .along = parameter,
                .extend = extend,
                .weigh_second = weigh_second,
                .second_gradients = RWS_BIT(RWS_PHI)}},
    .setup = setup,
    .refuses = rws__control_refuses,
};
