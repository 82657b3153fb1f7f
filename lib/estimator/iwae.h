/* iwae.h - what the estimators of the importance-weighted bound's gradient have in common.
 *
 *     g_theta = sum_k w_k grad log p
 *     g_phi   = sum_k (signal_k - w_k) grad log q,     signal_k = L minus a baseline of the method's own
 *
 * and for continuous values, which are reparameterised, w_k times the total derivative of the log-weight.
 */
#ifndef RWS_ESTIMATOR_IWAE_H
#define RWS_ESTIMATOR_IWAE_H

#include "estimator/weights.h"

#define RWS_IWAE_PHASE                                                                                      \
    .mode = RWS_WAKE, .pathwise = true, .labels = true, .gradients = RWS_BIT(RWS_THETA) | RWS_BIT(RWS_PHI), \
    .steps = RWS_BIT(RWS_THETA) | RWS_BIT(RWS_PHI)

/* signal: of one particle of row i, or anything if the datum is impossible */
static inline void rws__iwae_row(rws_scores *s, uint32_t i, double share, double signal)
{
    s->coef_q[i] = share * (s->count[i] * signal - s->w[i]);
    s->coef_r[i] = -share * s->w[i];
}

#endif
