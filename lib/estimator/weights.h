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

/* The leave-one-out sums of VIMCO and RLOO. For each row, over all particles but one of it: the log of the sum of weights,
 * to which the geometric mean of those weights is added if asked for; -inf where there is nothing. After rws__weigh. */
void rws__leave_one_out(rws_scores *s, bool with_geometric, double *log_rest);

#endif
