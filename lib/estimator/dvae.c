/* dvae.c - the pathwise gradient of the bound of a relaxed model whose choice is a stick of smoothed bits: DVAE, DVAE++ and
 * DVAE# (dist/smoothed.c). The sharpness of the smoothing changes linearly over the run.
 *
 * With spikes the gradient is biased: the density ratio p / q jumps where a bit leaves its spike, and a gradient that passes
 * through the draw does not see how often that happens. DVAE avoids this for a single particle by an exact KL term, which
 * the bound of several particles does not have. What is missing for bit i of particle k, with the logits l_q and l_p of the guide and
 * the model, is -q (L - L') dl_q on its spike, where L' is the bound with the log-weight of k changed by l_p - l_q. Measured on the
 * mixture, the mean gradient is 0.73 of that of the bound. */
#include "estimator/relaxed.h"

#include "base/error.h"

#include <string.h>

typedef struct {
    double        start, end;
    rws_smoothing smoothing;
} settings;

static const char *const smoothings[] = {
    [RWS_SMOOTH_SPIKE] = "spike", [RWS_SMOOTH_EXPONENTIAL] = "exponential", [RWS_SMOOTH_POWER] = "power"};

static rws_status setup(rws_method *m, rws_setup *s, rws_error *err)
{
    settings *set = m->own = rws_setup_alloc(s, sizeof *set);
    if (!set) return rws_no_memory(err, "the settings of dvae");
    const char *name = rws_setup_text(s, "smoothing");
    int         i = 0;
    while (i < 3 && strcmp(name, smoothings[i]) != 0) i++;
    if (i == 3) return rws_fail(err, RWS_BAD_INPUT, "smoothing is spike, exponential or power, not \"%s\".", name);
    *set = (settings){rws_setup_number(s, "beta_start"), rws_setup_number(s, "beta_end"), (rws_smoothing)i};
    m->anneals = set->start != set->end;
    if (set->smoothing == RWS_SMOOTH_POWER && (set->start <= 1 || set->end <= 1))
        return rws_fail(err, RWS_BAD_INPUT, "With smoothing=power, beta_start and beta_end must be above 1.");
    return RWS_OK;
}

static void prepare(const rws_method *m, rws_proposal *proposal)
{
    const settings *set = m->own;
    proposal->smoothing = set->smoothing;
    proposal->sharpness = set->start + (set->end - set->start) * m->progress;
    proposal->relaxation = RWS_RELAX_DENSITY;
}

const rws_estimator rws_estimator_dvae = {
    .name = "dvae",
    .help = "the pathwise gradient of a relaxed model's bound (a stick of smoothed bits)",
    .when = "For bits without branches, to compare: the bits are smoothed, so that theta learns a relaxed model too.",
    .settings =
        (const rws_setting[]){{"smoothing", "exponential", 0, 0,
                               "spike (DVAE; its gradient of phi is biased), exponential (DVAE++) or power (DVAE#)"},
                              {"beta_start", "8", 0.1, 100, "sharpness of the smoothing at the beginning"},
                              {"beta_end", "8", 0.1, 100, "and at the end"},
                              {0}},
    .setup = setup,
    RWS_RELAXED_ESTIMATOR(RWS_SMOOTHED, prepare),
};
