/* concrete.c - the pathwise gradient of the bound of a relaxed model: choices are points on the simplex, drawn at a
 * temperature that falls linearly over the run. The relaxed model is another model; evaluation is of the real one. */
#include "estimator/control.h"

#include "base/error.h"

#include <string.h>

typedef struct {
    double         tau_start, tau_end;
    rws_relaxation prior;
} settings;

static const char *const priors[] = {
    [RWS_RELAX_ARGMAX] = "argmax", [RWS_RELAX_SOFT] = "soft", [RWS_RELAX_DENSITY] = "density"};

static rws_status setup(rws_method *m, rws_setup *s, rws_error *err)
{
    settings *set = m->own = rws_setup_alloc(s, sizeof *set);
    if (!set) return rws_no_memory(err, "the settings of concrete");
    const char *prior = rws_setup_text(s, "concrete_prior");
    set->tau_start = rws_setup_number(s, "tau_start");
    set->tau_end = rws_setup_number(s, "tau_end");
    for (int i = 0; i < 3; i++)
        if (strcmp(prior, priors[i]) == 0) {
            set->prior = (rws_relaxation)i;
            return RWS_OK;
        }
    return rws_fail(err, RWS_BAD_INPUT, "concrete_prior is argmax, soft or density, not \"%s\".", prior);
}

/* Coefficients of scores have no signal here: everything is reparameterised. */
static const char *refuses(const rws_model *model, const rws_setup *s)
{
    for (int i = 0; i < s->n_gradients; i++)
        if (s->gradients[i].how == RWS_SCORE) return "it reparameterises everything, and a site is to have its score";
    return rws_control_refuses(model, s);
}

static void prepare(const rws_method *m, rws_pass *pass)
{
    const settings *set = m->own;
    pass->temperature = set->tau_start + (set->tau_end - set->tau_start) * m->progress;
    pass->relaxation = set->prior;
}

static void program(rws_path *path, void *method)
{
    const rws_method *m = method;
    const rws_pass   *pass = rws_path_pass(path);
    rws_path_side(path, RWS_SIDE_GUIDE);
    m->model->guide(path, m->state);
    rws_path_side(path, RWS_SIDE_MODEL);
    rws_var log_s;
    RWS_CHECK(rws_site_find(path, m->setup->relaxed_site, "categorical", m->setup->relaxed_categories, 1, &log_s));
    rws_path_fields_scored(path);
    rws_path_side(path, RWS_SIDE_NONE);
    const rws_var tau = rws_constant(path, (float)pass->temperature);
    rws_site_term(path, RWS_TERM_P, m->model->relaxed(path, m->state, log_s, tau, pass->relaxation));
}

static void weigh(const rws_method *m, rws_scores *s, double share, rws_tally *tally)
{
    (void)m;
    rws_weigh(s, share, tally);
    for (int i = 0; i < s->n; i++) s->coef_q[i] = -share * s->w[i];
}

const rws_estimator rws_estimator_concrete = {
    .name = "concrete",
    .help = "the pathwise gradient of a relaxed model's bound (Gumbel-softmax)",
    .settings =
        (const rws_setting[]){{"tau_start", "3", 0.01, 100, "temperature of the relaxation at the beginning"},
                              {"tau_end", "0.5", 0.01, 100, "and at the end"},
                              {"concrete_prior", "argmax", 0, 0, "argmax, soft or density: log p of a relaxed choice"},
                              {0}},
    .min_particles = 1,
    .n_phases = 1,
    .phases = {{.mode = RWS_WAKE,
                .proposal = RWS_RELAXED,
                .pathwise = true,
                .gradients = RWS_BIT(RWS_THETA) | RWS_BIT(RWS_PHI),
                .steps = RWS_BIT(RWS_THETA) | RWS_BIT(RWS_PHI),
                .program = program,
                .prepare = prepare,
                .weigh = weigh}},
    .setup = setup,
    .refuses = refuses,
};
