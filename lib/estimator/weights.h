/* weights.h - importance weights, in log space and double precision. */
#ifndef RWS_ESTIMATOR_WEIGHTS_H
#define RWS_ESTIMATOR_WEIGHTS_H

#include "estimator/estimator.h"

#include <math.h>

/* log(e^a + e^b) */
static inline double rws__log_add(double a, double b)
{
    const double top = a > b ? a : b;
    if (top == -INFINITY) return top;
    return top + log1p(exp((a > b ? b : a) - top));
}

/* Weighs every row: l is the log-weight of one of its particles, w the normalised weight of all of them together (those
 * of a datum sum to 1), L the log of the mean weight of a datum's K particles; coef_p becomes share * w. A datum whose
 * particles are all impossible has L = -inf, w = 0 and counts nothing. Tallies evidence and effective number. */
void rws__weigh(rws_scores *s, double share, rws_tally *tally);

/* The guide's log-density of choices that were given counts by the normalised weight too: coef_given = share * w. For a
 * datum whose choices are all given that is the gradient of log q(z | x). After rws__weigh; nothing if none was given. */
void rws__weigh_given(rws_scores *s);

/* to = for each row, the number of its datum. */
void rws__rows_of_data(const rws_scores *s, const double *of_datum, double *to);

/* The leave-one-out sums of VIMCO and RLOO, after rws__weigh: for each row, the log of the sum of all weights of its datum
 * less the log of that sum over all particles but one of the row, to which the geometric mean of their weights is added if
 * asked for. +inf where the others weigh nothing, as in every row of an impossible datum. The numbers are in work[0]; work
 * and coef_q are overwritten. */
const double *rws__leave_one_out(rws_scores *s, bool with_geometric);

#endif
