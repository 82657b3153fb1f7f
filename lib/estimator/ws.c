/* ws.c - wake-sleep: theta from weighted particles, then phi from samples of the model just stepped.
 *
 *     g_phi = (1/S) sum_s grad log q(z_s | x_s),   (z_s, x_s) ~ p_theta,   S = K B
 */
#include "estimator/sleep.h"

static void weigh_wake(const rws_method *m, rws_scores *s, double share, rws_tally *tally)
{
    (void)m;
    rws__weigh(s, share, tally);
}

static void weigh_sleep(const rws_method *m, rws_scores *s, double share, rws_tally *tally)
{
    (void)m, (void)tally;
    rws__weigh_dreams(s, share);
}

const rws_estimator rws_estimator_ws = {
    .name = "ws",
    .help = "wake-sleep: phi from the model's own samples",
    .when = "Cheap; phi learns from samples of the model, which must resemble the data early.",
    .min_particles = 1,
    .n_phases = 2,
    .phases = {{.mode = RWS_WAKE,
                .labels = true,
                .gradients = RWS_BIT(RWS_THETA),
                .steps = RWS_BIT(RWS_THETA),
                .weigh = weigh_wake},
               {.mode = RWS_SLEEP, .gradients = RWS_BIT(RWS_PHI), .steps = RWS_BIT(RWS_PHI), .weigh = weigh_sleep}},
};
