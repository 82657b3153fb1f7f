/* ww.c - wake-wake: both scores count by the normalised weight, w_k. Biased for finite K, consistent.
 *
 * With ww_baseline the guide's score counts w_k - 1/K, which has the same expectation because E_q grad log q = 0.
 */
#include "estimator/weights.h"

#include "base/error.h"

#include <string.h>

typedef struct {
    bool baseline;
} settings;

static rws_status setup(rws_method *m, rws_setup *s, rws_error *err)
{
    settings *set = m->own = rws_setup_alloc(s, sizeof *set);
    if (!set) return rws_no_memory(err, "the settings of ww");
    set->baseline = rws_setup_number(s, "ww_baseline") != 0;
    return RWS_OK;
}

static void weigh(const rws_method *m, rws_scores *s, double share, rws_tally *tally)
{
    const settings *set = m->own;
    const double    baseline = set->baseline ? share / s->K : 0;
    rws__weigh(s, share, tally);
    double *score = s->coef_score ? s->coef_score : s->coef_q;
    memcpy(s->coef_q, s->coef_p, (size_t)s->n * sizeof(double));
    for (int i = 0; i < s->n && baseline != 0; i++)
        if (s->L[s->datum[i]] > -INFINITY) score[i] -= s->count[i] * baseline;
}

const rws_estimator rws_estimator_ww = {
    .name = "ww",
    .help = "wake-wake: theta and phi from the same weighted particles",
    .when = "The first choice for programs that branch, with 10 particles or more.",
    .settings =
        (const rws_setting[]){{"ww_baseline", "0", 0, 1, "1: subtract 1/K from the weights of phi's gradient", true},
                              {0}},
    .min_particles = 1,
    .n_phases = 1,
    .phases = {{.mode = RWS_WAKE,
                .labels = true,
                .gradients = RWS_BIT(RWS_THETA) | RWS_BIT(RWS_PHI),
                .steps = RWS_BIT(RWS_THETA) | RWS_BIT(RWS_PHI),
                .weigh = weigh}},
    .setup = setup,
};
