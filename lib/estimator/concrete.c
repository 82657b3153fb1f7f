/* concrete.c - the pathwise gradient of the bound of a relaxed model: choices are points on the simplex, drawn at a
 * temperature that falls linearly over the run. The relaxed model is another model; evaluation is of the real one. */
#include "estimator/relaxed.h"

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
    m->anneals = set->tau_start != set->tau_end;
    for (int i = 0; i < 3; i++)
        if (strcmp(prior, priors[i]) == 0) {
            set->prior = (rws_relaxation)i;
            return RWS_OK;
        }
    return rws_fail(err, RWS_BAD_INPUT, "concrete_prior is argmax, soft or density, not \"%s\".", prior);
}

static void prepare(const rws_method *m, rws_proposal *proposal)
{
    const settings *set = m->own;
    proposal->temperature = set->tau_start + (set->tau_end - set->tau_start) * m->progress;
    proposal->relaxation = set->prior;
}

const rws_estimator rws_estimator_concrete = {
    .name = "concrete",
    .help = "the pathwise gradient of a relaxed model's bound (Gumbel-softmax)",
    .when = "For one categorical site and no branches: low variance, and a bias that the temperature sets.",
    .settings =
        (const rws_setting[]){{"tau_start", "3", 0.01, 100, "temperature of the relaxation at the beginning"},
                              {"tau_end", "0.5", 0.01, 100, "and at the end"},
                              {"concrete_prior", "argmax", 0, 0, "argmax, soft or density: log p of a relaxed choice"},
                              {0}},
    .setup = setup,
    RWS_RELAXED_ESTIMATOR(RWS_RELAXED, prepare),
};
