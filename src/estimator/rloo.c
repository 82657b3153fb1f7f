/* rloo.c - the bound's gradient against the log-mean weight of the other particles: signal L - log mean_{j != k} w_j. */
#include "estimator/iwae.h"

static void weigh_datum(const rws_method *m, const rws_datum *d, double share, rws_scores *s)
{
    (void)m;
    double *log_rest = s->work + 2 * s->most;
    rws_leave_one_out(d, false, log_rest, log_rest + s->most);
    for (int i = 0; i < d->n; i++) /* where all others are impossible there is nothing to compare with */
        rws_iwae_row(s, d, i, share, log_rest[i] == -INFINITY ? 0 : d->L - log_rest[i] + log(d->K - 1));
}

static void weigh(const rws_method *m, rws_scores *s, double share, rws_tally *tally)
{
    rws_weigh_each(m, s, share, tally, weigh_datum);
}

const rws_estimator rws_estimator_rloo = {
    .name = "rloo",
    .help = "the bound's gradient with a leave-one-out baseline (arithmetic mean)",
    .min_particles = 2,
    .n_phases = 1,
    .phases = {{RWS_IWAE_PHASE, .weigh = weigh}},
};
