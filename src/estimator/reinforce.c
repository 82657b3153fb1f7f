/* reinforce.c - the score-function gradient of the bound: signal L, no baseline. */
#include "estimator/iwae.h"

static void weigh_datum(const rws_method *m, const rws_datum *d, double share, rws_scores *s)
{
    (void)m;
    for (int i = 0; i < d->n; i++) rws_iwae_row(s, d, i, share, d->L);
}

static void weigh(const rws_method *m, rws_scores *s, double share, rws_tally *tally)
{
    rws_weigh_each(m, s, share, tally, weigh_datum);
}

const rws_estimator rws_estimator_reinforce = {
    .name = "reinforce",
    .help = "score-function gradient of the K-particle bound, no baseline",
    .min_particles = 1,
    .n_phases = 1,
    .phases = {{RWS_IWAE_PHASE, .weigh = weigh}},
};
