/* rloo.c - the bound's gradient against the log-mean weight of the other particles: signal L - log mean_{j != k} w_j. */
#include "estimator/iwae.h"
#include "estimator/siblings.h"

static void weigh(const rws_method *m, rws_scores *s, double share, rws_tally *tally)
{
    const double more = log(s->K) - log(s->K - 1);
    rws__weigh(s, share, tally);
    const double *gain = rws__leave_one_out(s, false);
    double       *signal = s->work[1];
    for (int i = 0; i < s->n; i++)
        signal[i] = gain[i] == INFINITY ? 0 : gain[i] - more; /* nothing to compare with: 0 */
    rws__iwae_rows(s, share, signal);
    rws__siblings_weigh(m, s, share, RWS_SIGNAL_ARITHMETIC);
}

const rws_estimator rws_estimator_rloo = {
    .name = "rloo",
    .help = "the bound's gradient with a leave-one-out baseline (arithmetic mean)",
    .when = "To compare: as vimco, with the simpler mean.",
    .settings = (const rws_setting[]){RWS_SIBLINGS_SETTING, {0}},
    .min_particles = 2,
    .n_phases = 1,
    .phases = {{RWS_IWAE_PHASE, .weigh = weigh}},
    .setup = rws__siblings_read,
};
