/* rebar.c - the bound's gradient with the bound itself, at relaxed choices, as control variate (Tucker et al. 2017).
 *
 *     c = rho1 log mean_k p(s_k, x) / (s_k . pi),   s_k = softmax(g_k / exp(rho2))
 *
 * theta and pi inside c count as constants. rho2 stays above log 0.1: colder relaxations are unstable.
 */
#include "estimator/control.h"

#include "base/error.h"

#define COLDEST 0.1

typedef struct {
    rws_param *scale, *log_temperature; /* rho1, rho2 */
} own;

static rws_status setup(rws_method *m, rws_setup *s, rws_error *err)
{
    own *o = m->own = rws_setup_alloc(s, sizeof *o);
    if (!o) return rws_no_memory(err, "the parameters of rebar");
    o->scale = rws_setup_param(s, RWS_CONTROL, "rho.scale", 1, 1, RWS_ZERO);
    o->log_temperature = rws_setup_param(s, RWS_CONTROL, "rho.log_temperature", 1, 1, RWS_ZERO);
    if (!rws_param_values(o->scale)) return rws_no_memory(err, "the parameters of rebar");
    rws_param_values(o->scale)[0] = 1;
    return RWS_OK;
}

static rws_var relaxed_weight(rws_path *path, const rws_method *m, rws_var g)
{
    const own    *o = m->own;
    const rws_var tau = rws_apply(path, RWS_EXP, rws_parameter(path, o->log_temperature));
    const rws_var log_s = rws_log_softmax(path, rws_div(path, g, tau));
    const rws_var log_pi = rws_detach(path, rws_path_noted(path, RWS_NOTE_LOG_PI));
    return rws_sub(path, m->model->relaxed(path, m->state, log_s, tau, RWS_RELAX_SOFT),
                   rws_log_sum_exp(path, rws_add(path, log_s, log_pi)));
}

static rws_var frozen_weight(rws_path *path, const rws_method *m, rws_var g)
{
    rws_path_freeze(path, RWS_BIT(RWS_THETA) | RWS_BIT(RWS_PHI)); /* g still carries phi */
    const rws_var v = relaxed_weight(path, m, g);
    rws_path_freeze(path, 0);
    return v;
}

static void program(rws_path *path, void *method)
{
    rws_control_program(path, method, frozen_weight);
}

static rws_reduction reduction(const rws_method *m)
{
    const own *o = m->own;
    return (rws_reduction){.log_mean_exp = true, .scale = (double)o->scale->value[0]};
}

static void weigh(const rws_method *m, rws_scores *s, double share, rws_tally *tally)
{
    rws_control_weigh(reduction(m), s, share, tally);
}

static void weigh_second(const rws_method *m, rws_scores *s, double share, float *gradient)
{
    const own   *o = m->own;
    const double by_scale = rws_control_weigh_second(reduction(m), s, share);
    if (gradient) gradient[o->scale->offset] += (float)by_scale;
}

static void remember(rws_method *m, const rws_tally *tally)
{
    (void)tally;
    const float coldest = (float)log(COLDEST);
    float      *log_temperature = rws_param_values(((own *)m->own)->log_temperature);
    if (*log_temperature < coldest) *log_temperature = coldest;
}

const rws_estimator rws_estimator_rebar = {
    .name = "rebar",
    .help = "the bound's gradient with the relaxed bound as control variate",
    .min_particles = 1,
    .n_phases = 1,
    .phases = {{RWS_CONTROL_PHASE, .program = program, .weigh = weigh, .weigh_second = weigh_second}},
    .setup = setup,
    .refuses = rws_control_refuses,
    .remember = remember,
};
