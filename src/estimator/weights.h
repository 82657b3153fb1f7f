/* weights.h - the importance weights of one datum's rows, in log space and double precision. */
#ifndef RWS_ESTIMATOR_WEIGHTS_H
#define RWS_ESTIMATOR_WEIGHTS_H

#include "estimator/estimator.h"

#include <math.h>

/* log(e^a + e^b) */
static inline double rws_log_add(double a, double b)
{
    const double top = a > b ? a : b;
    if (top == -INFINITY) return top;
    return top + log1p(exp((a > b ? b : a) - top));
}

/* The rows of one datum. */
typedef struct {
    int             first, n, K;
    double          L; /* log Z: log of the mean weight of the K particles */
    double         *l; /* log-weight of a particle of each row */
    double         *w; /* normalised weight of each row, all its particles together; sums to 1 */
    const uint32_t *count;
} rws_datum;

/* Rows of datum d under a proposal whose log-density is log_q; l and w point into buffers of at least its rows. Tallies
 * evidence and effective number. False if every particle is impossible: then the datum counts nothing. */
bool rws_datum_weigh(const rws_scores *s, const double *log_q, int d, double *l, double *w, rws_datum *out,
                     rws_tally *tally);

/* Runs f for every datum that is possible, after writing share * w into coef_p. The second half of s->work is f's. */
typedef void (*rws_datum_function)(const rws_method *m, const rws_datum *d, double share, rws_scores *s);
void rws_weigh_each(const rws_method *m, rws_scores *s, double share, rws_tally *tally, rws_datum_function f);

/* What VIMCO and RLOO learn against. For each row, from all particles but one of it: the log of the sum of their weights,
 * to which the geometric mean of those weights is added if asked for. work: as many numbers as rows. */
void rws_leave_one_out(const rws_datum *d, bool with_geometric, double *log_rest, double *work);

#endif
