/* siblings.h - baselines from the particles that had made the same choices before.
 *
 * Particles that made the same choices share a row of the engine. Where the particles of a row choose, those of the same row, its
 * siblings, tell what the bound would have been had particle k chosen otherwise; so the mean over siblings takes the place of
 * the mean over all other particles of the datum:
 *
 *     signal of particle k at a choice = L - log( (1/K) (sum_{j != k} w_j + mean of w_j over its siblings j) )
 *
 * with the arithmetic mean (rloo, reinforce, nvil) or the geometric mean (vimco). It does not depend on what particle k chooses, so
 * that the gradient stays unbiased. A particle without siblings has the signal of the method as it is: under rloo and vimco it
 * is compared with all others of its datum, under nvil with the learned baseline, under reinforce with nothing.
 *
 * "The same choices" are those that made rows: particles that took equal discrete values, and branches, share a row until one of
 * them draws a continuous value, from which on each is alone and has no siblings.
 *   - Rows by dependence (engine/depend.c) merge the computation of particles with different choices, not their levels: siblings are
 *     found by levels, so that particles with equal states but other histories are none.
 *   - Loops bring such particles together in one row of a merged level, whose particles have made different choices. The mean over
 *     them would be unbiased too, but a row would have several rows above it; passes with siblings therefore keep paths
 *     apart (rws_pass.apart) and pay for it: as many rows as there are histories.
 *   - In scalar mode nothing is shared, and nobody has siblings.
 *   - Particles of one datum that other shards have are not seen: particle_shards must be 1.
 * It costs a pass over the rows of the table for each level with choices, O(rows x choices), and backward leaves no row out. */
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

/* After rws__weigh: choices get such coefficients if the setting says so. RWS_SIGNAL_OWN: the arithmetic mean, and the signal in work[0]
 * for particles without siblings. */
typedef enum { RWS_SIGNAL_ARITHMETIC, RWS_SIGNAL_GEOMETRIC, RWS_SIGNAL_OWN } rws_signal;
void rws__siblings_weigh(const rws_method *m, rws_scores *s, double share, rws_signal how);

#endif
