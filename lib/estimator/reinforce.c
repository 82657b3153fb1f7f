/* reinforce.c - the score-function gradient of the bound: signal L, no baseline unless siblings are. */
#include "estimator/iwae.h"
#include "estimator/siblings.h"

static void weigh(const rws_method *m, rws_scores *s, double share, rws_tally *tally)
{
    rws__weigh(s, share, tally);
    double *signal = s->work[0], *of_datum = s->work[1];
    for (int d = 0; d < s->B; d++) of_datum[d] = s->L[d] == -INFINITY ? 0 : s->L[d];
    rws__rows_of_data(s, of_datum, signal);
    rws__iwae_rows(s, share, signal);
    rws__siblings_weigh(m, s, share, RWS_SIGNAL_OWN);
}

const rws_estimator rws_estimator_reinforce = {
    .name = "reinforce",
    .help = "score-function gradient of the K-particle bound, no baseline",
    .when = "To see what the others gain: its variance is the largest.",
    .settings = (const rws_setting[]){RWS_SIBLINGS_SETTING, {0}},
    .min_particles = 1,
    .n_phases = 1,
    .phases = {{RWS_IWAE_PHASE, .weigh = weigh}},
    .setup = rws__siblings_read,
};
