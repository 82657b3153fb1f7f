/* rloo.c - the bound's gradient against the log-mean weight of the other particles: signal L - log mean_{j != k} w_j. */
#include "estimator/iwae.h"

static void weigh(const rws_method *m, rws_scores *s, double share, rws_tally *tally)
{
    (void)m;
    const double log_others = log(s->K - 1);
    double      *log_rest = s->work[0];
    rws__weigh(s, share, tally);
    rws__leave_one_out(s, false, log_rest);
    for (int d = 0; d < s->B; d++)
        for (uint32_t i = s->start[d]; i < s->start[d + 1] && s->L[d] > -INFINITY; i++) /* nothing to compare with: 0 */
            rws__iwae_row(s, i, share, log_rest[i] == -INFINITY ? 0 : s->L[d] - log_rest[i] + log_others);
}

const rws_estimator rws_estimator_rloo = {
    .name = "rloo",
    .help = "the bound's gradient with a leave-one-out baseline (arithmetic mean)",
    .min_particles = 2,
    .n_phases = 1,
    .phases = {{RWS_IWAE_PHASE, .weigh = weigh}},
};
