/* dww.c - wake-wake with a defensive proposal: theta as in ww, then phi from new particles, each of whose choices is
 * drawn uniformly with probability delta. They are weighted by the density of that mixture and the stepped theta; the
 * score is the guide's own.
 */
#include "estimator/weights.h"

#include "base/error.h"

#include <string.h>

typedef struct {
    double delta;
    bool   wrong_density;
} settings;

static rws_status setup(rws_method *m, rws_setup *s, rws_error *err)
{
    settings *set = m->own = rws_setup_alloc(s, sizeof *set);
    if (!set) return rws_no_memory(err, "the settings of dww");
    set->delta = rws_setup_number(s, "delta");
    set->wrong_density = rws_setup_number(s, "dww_ref_bug") != 0;
    return RWS_OK;
}

static void prepare(const rws_method *m, rws_proposal *proposal)
{
    const settings *set = m->own;
    proposal->delta = set->delta;
    proposal->wrong_delta = set->wrong_density;
}

static void weigh_theta(const rws_method *m, rws_scores *s, double share, rws_tally *tally)
{
    (void)m;
    rws__weigh(s, share, tally);
}

static void weigh_phi(const rws_method *m, rws_scores *s, double share, rws_tally *tally)
{
    (void)m, (void)tally; /* evidence and ess are those of the guide's own particles */
    rws_tally unused = {0};
    rws__weigh(s, share, &unused);
    memcpy(s->coef_q, s->coef_p, (size_t)s->n * sizeof(double));
}

const rws_estimator rws_estimator_dww = {
    .name = "dww",
    .help = "defensive wake-wake: phi from a mixture of the guide and uniform choices",
    .when = "For few particles, or where the guide has closed a branch that it needs.",
    .settings = (const rws_setting[]){{"delta", "0.2", 0, 1, "share of uniform choices in the proposal"},
                                      {"dww_ref_bug", "0", 0, 1,
                                       "1: the density at the wrong sample, as the authors' code", true},
                                      {0}},
    .min_particles = 1,
    .n_phases = 2,
    .phases = {{.mode = RWS_WAKE, .gradients = RWS_BIT(RWS_THETA), .steps = RWS_BIT(RWS_THETA), .weigh = weigh_theta},
               {.mode = RWS_WAKE,
                .drawing = RWS_DEFENSIVE,
                .labels = true,
                .gradients = RWS_BIT(RWS_PHI),
                .steps = RWS_BIT(RWS_PHI),
                .prepare = prepare,
                .weigh = weigh_phi}},
    .setup = setup,
};
