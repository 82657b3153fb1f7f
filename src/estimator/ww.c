/* ww.c - wake-wake: both scores count by the normalised weight, w_k. Biased for finite K, consistent.
 *
 * With ww_baseline the guide's counts w_k - 1/K, which has the same expectation because E_q grad log q = 0.
 */
#include "estimator/weights.h"

static void weigh_datum(const rws_method *m, const rws_datum *d, double share, rws_scores *s)
{
    const double baseline = m->set.ww_baseline ? 1.0 / d->K : 0;
    for (int i = 0; i < d->n; i++) s->coef_q[d->first + i] = share * (d->w[i] - d->count[i] * baseline);
}

static void weigh(const rws_method *m, rws_scores *s, double share, rws_tally *tally)
{
    rws_weigh_each(m, s, share, tally, weigh_datum);
}

const rws_estimator rws_estimator_ww = {
    .name = "ww",
    .help = "wake-wake: theta and phi from the same weighted particles",
    .settings =
        (const rws_setting[]){{"ww_baseline", "0", 0, 1, "1: subtract 1/K from the weights of phi's gradient"}, {0}},
    .min_particles = 1,
    .n_phases = 1,
    .phases = {{.mode = RWS_WAKE,
                .gradients = RWS_BIT(RWS_THETA) | RWS_BIT(RWS_PHI),
                .steps = RWS_BIT(RWS_THETA) | RWS_BIT(RWS_PHI),
                .weigh = weigh}},
};
