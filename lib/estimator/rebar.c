/* rebar.c - the bound's gradient with the bound itself, at relaxed choices, as control variate (Tucker et al. 2017).
 *
 *     c = rho1 log mean_k p(s_k, x) / (s_k . pi),   s_k = softmax(g_k / exp(rho2))
 *
 * theta and pi inside c count as constants. rho2 stays above the logarithm of rebar_coldest: the lower the temperature, the
 * faster s_k changes with g_k, and the noisier are the gradients of c.
 */
#include "estimator/control.h"

#include "base/error.h"

static rws_var relaxed_weight(rws_path *path, const rws_method *m, const rws_control *c, rws_var g)
{
    const rws_var tau = rws_apply(path, RWS_EXP, rws_parameter(path, c->log_temperature));
    const rws_var log_s = rws_log_softmax(path, rws_div(path, g, tau));
    const rws_var log_pi = rws_detach(path, rws__path_noted(path, RWS_NOTE_LOG_PI));
    return rws_sub(path, m->model->relaxed(path, m->state, log_s, tau, RWS_RELAX_SOFT),
                   rws_log_sum_exp(path, rws_add(path, log_s, log_pi)));
}

static rws_var frozen_weight(rws_path *path, const rws_method *m, const rws_control *c, rws_var g)
{
    rws__path_freeze(path, RWS_BIT(RWS_THETA) | RWS_BIT(RWS_PHI)); /* g still carries phi */
    const rws_var v = relaxed_weight(path, m, c, g);
    rws__path_freeze(path, 0);
    return v;
}

rws_status rws__controls_add_rebar(rws_controls *c, rws_setup *s, bool scaled, rws_error *err)
{
    const double tau = rws_setup_number(s, "rebar_tau"), coldest = rws_setup_number(s, "rebar_coldest");
    rws_control *new = &c->list[c->n++];
    if (tau < coldest)
        return rws_fail(err, RWS_BAD_INPUT, "rebar_tau=%g is below rebar_coldest=%g; set both.", tau, coldest);
    *new = (rws_control){.v = frozen_weight, .log_mean_exp = true, .log_coldest = (float)log(coldest)};
    if (scaled) {
        new->scale = rws_setup_param(s, RWS_CONTROL, "rho.scale", 1, 1, RWS_ZERO);
        float *scale = rws_param_values(new->scale);
        if (!scale) return rws_no_memory(err, "the parameters of rebar");
        *scale = 1;
    }
    new->log_temperature = rws_setup_param(s, RWS_CONTROL, "rho.log_temperature", 1, 1, RWS_ZERO);
    float *log_temperature = rws_param_values(new->log_temperature);
    if (!log_temperature) return rws_no_memory(err, "the parameters of rebar");
    *log_temperature = (float)log(tau);
    return RWS_OK;
}

static rws_status setup(rws_method *m, rws_setup *s, rws_error *err)
{
    m->own = rws_setup_alloc(s, sizeof(rws_controls));
    if (!m->own) return rws_no_memory(err, "the parameters of rebar");
    return rws__controls_add_rebar(m->own, s, true, err);
}

const rws_estimator rws_estimator_rebar = {
    .name = "rebar",
    .help = "the bound's gradient with the relaxed bound as control variate",
    .when = "For one categorical site and no branches: an unbiased gradient of low variance.",
    .settings = (const rws_setting[]){RWS_REBAR_SETTINGS, {0}},
    .setup = setup,
    RWS_CONTROL_ESTIMATOR,
};
