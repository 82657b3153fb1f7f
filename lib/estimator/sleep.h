/* sleep.h - the sleep phase that ws and wws share. */
#ifndef RWS_ESTIMATOR_SLEEP_H
#define RWS_ESTIMATOR_SLEEP_H

#include "estimator/weights.h"

/* Every sample of the model counts the same. */
static inline void rws__weigh_dreams(rws_scores *s, double share)
{
    for (int i = 0; i < s->n; i++) s->coef_q[i] = share * s->count[i];
}

#endif
