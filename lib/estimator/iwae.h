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

/* signal: of one particle of each row; any finite number in a row of an impossible datum */
static inline void rws__iwae_rows(rws_scores *s, double share, const double *signal)
{
    const uint32_t *count = s->count;
    const double   *w = s->w;
    double         *q = s->coef_q, *r = s->coef_r;
    for (int i = 0; i < s->n && s->coef_score; i++) s->coef_score[i] = share * count[i] * signal[i];
    for (int i = 0; i < s->n && s->coef_score; i++) q[i] = -share * w[i];
    const int n_mixed = s->coef_score ? 0 : s->n;
#pragma omp simd
    for (int i = 0; i < n_mixed; i++) q[i] = share * ((int32_t)count[i] * signal[i] - w[i]);
#pragma omp simd
    for (int i = 0; i < s->n; i++) r[i] = -share * w[i];
}

#endif
