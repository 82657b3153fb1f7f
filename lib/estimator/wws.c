/* wws.c - wake-wake-sleep: phi's gradient is half of ww's plus half of ws's. The wake phase adds its half to the gradient of
 * phi and does not step phi; the sleep phase adds the other half and steps. */
#include "estimator/sleep.h"

static void weigh_wake(const rws_method *m, rws_scores *s, double share, rws_tally *tally)
{
    (void)m;
    rws__weigh(s, share, tally);
    for (int i = 0; i < s->n; i++) s->coef_q[i] = 0.5 * share * s->w[i];
}

static void weigh_sleep(const rws_method *m, rws_scores *s, double share, rws_tally *tally)
{
    (void)m, (void)tally;
    rws__weigh_dreams(s, 0.5 * share);
}

const rws_estimator rws_estimator_wws = {
    .name = "wws",
    .help = "wake-wake-sleep: the mean of ww's and ws's gradients of phi",
    .when = "For a start at which no particle is good: it learns from samples of the model too.",
    .min_particles = 1,
    .n_phases = 2,
    .phases = {{.mode = RWS_WAKE,
                .labels = true,
                .gradients = RWS_BIT(RWS_THETA) | RWS_BIT(RWS_PHI),
                .steps = RWS_BIT(RWS_THETA),
                .weigh = weigh_wake},
               {.mode = RWS_SLEEP, .gradients = RWS_BIT(RWS_PHI), .steps = RWS_BIT(RWS_PHI), .weigh = weigh_sleep}},
};
