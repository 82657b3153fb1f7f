/* relax.c - the bound's gradient with a learned control variate (Grathwohl et al. 2018): a small network on the datum and
 * the perturbed log-probabilities, averaged over the particles. */
#include "estimator/control.h"

static rws_var network(rws_path *path, const rws_method *m, rws_var g)
{
    rws_var parts[RWS_FIELDS + 1];
    int     n = rws_data_parts(path, m, parts);
    parts[n++] = g;
    return rws_mlp_parts(path, m->own, parts, n);
}

static void program(rws_path *path, void *method)
{
    rws_control_program(path, method, network);
}

static const rws_reduction mean = {.scale = 1};

static void weigh(const rws_method *m, rws_scores *s, double share, rws_tally *tally)
{
    (void)m;
    rws_control_weigh(mean, s, share, tally);
}

static void weigh_second(const rws_method *m, rws_scores *s, double share, float *gradient)
{
    (void)m, (void)gradient;
    rws_control_weigh_second(mean, s, share);
}

static rws_status setup(rws_method *m, rws_setup *s, rws_error *err)
{
    (void)err; /* what cannot be declared is recorded in s */
    const int n = s->relaxed_categories + rws_data_size(s);
    m->own = rws_setup_mlp(s, RWS_CONTROL, "rho", RWS_TANH, RWS_UNIFORM, (int[]){n, 16, 16, 1}, 4);
    return RWS_OK;
}

const rws_estimator rws_estimator_relax = {
    .name = "relax",
    .help = "the bound's gradient with a learned control variate on relaxed choices",
    .min_particles = 1,
    .n_phases = 1,
    .phases = {{RWS_CONTROL_PHASE, .program = program, .weigh = weigh, .weigh_second = weigh_second}},
    .setup = setup,
    .refuses = rws_control_refuses,
};
