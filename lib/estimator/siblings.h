/* siblings.h - baselines from the particles that had made the same choices before.
 *
 * Particles that made the same choices share a row of the engine. Where the particles of a row choose, those of the same row, its
 * siblings, tell what the bound would have been had particle k chosen otherwise; so the mean over siblings takes the place of
 * the mean over all other particles of the datum:
 *
 *     signal of particle k at a choice = L - log( (1/K) (sum_{j != k} w_j + mean of w_j over its siblings j) )
 *
 * with the arithmetic mean (rloo) or the geometric mean (vimco). It does not depend on what particle k chooses, so that the
 * gradient stays unbiased. A particle without siblings is compared with all others of its datum, as before. */
#ifndef RWS_ESTIMATOR_SIBLINGS_H
#define RWS_ESTIMATOR_SIBLINGS_H

#include "estimator/weights.h"

#define RWS_SIBLINGS_SETTING                                                                                       \
    {                                                                                                              \
        "baseline", "datum", 0, 0,                                                                                 \
            "datum or siblings: from all other particles of the datum, or from those with the same choices so far" \
    }

/* Reads the setting. RWS_BAD_INPUT if it has another value. */
rws_status rws__siblings_read(rws_method *m, rws_setup *s, rws_error *err);

/* After rws__weigh: choices get such coefficients if the setting says so. */
void rws__siblings_weigh(const rws_method *m, rws_scores *s, double share, bool geometric);

#endif
