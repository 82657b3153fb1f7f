/* reinforce.c - the score-function gradient of the bound: signal L, no baseline. */
#include "estimator/iwae.h"

static void weigh(const rws_method *m, rws_scores *s, double share, rws_tally *tally)
{
    (void)m;
    rws__weigh(s, share, tally);
    for (int d = 0; d < s->B; d++)
        for (uint32_t i = s->start[d]; i < s->start[d + 1] && s->L[d] > -INFINITY; i++)
            rws__iwae_row(s, i, share, s->L[d]);
}

const rws_estimator rws_estimator_reinforce = {
    .name = "reinforce",
    .help = "score-function gradient of the K-particle bound, no baseline",
    .min_particles = 1,
    .n_phases = 1,
    .phases = {{RWS_IWAE_PHASE, .weigh = weigh}},
};
