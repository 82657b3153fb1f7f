/* compare.h - comparisons of methods over seeds, each with an error level.
 *
 * A quantity is a number for each seed, mostly the mean of a metric over the last ten evaluations of a run. Two quantities
 * are compared on the seeds that both have, by a permutation test: if there were no difference, each seed's difference
 * would be as likely to have the other sign. A statement holds, or does not hold, if fewer than RWS_LEVEL of the 2^n
 * choices of signs have a sum as far on that side; else it is undecided. Fewer than five seeds decide nothing about a
 * single K. For a statement about all K, pairs of runs with the same K and seed may be pooled, and a trend with K has a
 * test of its own.
 *
 *     results -> query -> [compare] -> verdicts of the parts of a claim
 */
#ifndef RWS_PAPER_COMPARE_H
#define RWS_PAPER_COMPARE_H

#include "paper/query.h"

#define RWS_LEVEL 0.05

/* The number that is taken from a run: the mean of its last ten values, the median of all, the first one, the one after a tenth
 * or a third of training, or the standard deviation of the second half about its straight line. */
typedef enum { RWS_AT_END, RWS_TYPICAL, RWS_AT_START, RWS_AT_TENTH, RWS_AT_THIRD, RWS_WOBBLE } rws_moment;

typedef struct {
    const char *method;
    int         K;
    const char *metric;
    rws_moment  moment;
    const char *key, *value; /* a setting that its runs must have, instead of the query's own; or NULL */
} rws_quantity;

typedef struct {
    rws_verdict verdict;
    double      a, b; /* medians over the seeds that were compared */
    double      p;    /* share of the choices of signs that are as far on the side that was found */
    int         seeds;
} rws_compared;

/* Whether a < factor * b, by ratios; and whether a < b + shift, by differences. The number of seeds is noted in the finding. */
rws_compared rws_less(const rws_query *q, rws_finding *f, rws_quantity a, double factor, rws_quantity b);
rws_compared rws_below(const rws_query *q, rws_finding *f, rws_quantity a, double shift, rws_quantity b);

/* The same for the pairs a[i], b[i] of n numbers of particles together: whether a < factor * b, or, with factor 0, a < b.
 * The medians are those over all pairs, and `seeds` counts pairs. Pairs beyond RWS_MOST_PAIRS, which is enough for eight
 * numbers of particles with five seeds, are left out. */
enum { RWS_MOST_PAIRS = 40 };
rws_compared rws_pooled(const rws_query *q, rws_finding *f, const rws_quantity *a, const rws_quantity *b, int n,
                        double factor);

/* Adds to the finding whether method a is below method b at every K of the results, by differences or by ratios: by the seeds
 * of each K, or, where a K has fewer than five seeds, by the pairs of all K together; the medians must then agree at each K. */
void rws_below_at_every_K(const rws_query *q, rws_finding *f, const char *a, const char *b, const char *metric,
                          rws_moment moment, bool ratios);

/* Whether a quantity rises with K (sign 1), or falls (-1), over the n numbers of particles: Page's test. If K did not
 * matter, every order of a seed's runs would be as likely. Only seeds that have all K count, and one seed decides
 * nothing. */
typedef struct {
    rws_verdict verdict;
    double      p; /* share of the orders that go as far in the direction that was found */
    int         seeds;
} rws_trend;

enum { RWS_TREND_K = 8 };
rws_trend rws_trend_of(const rws_query *q, rws_finding *f, rws_quantity a, const int *K, int n, int sign);

/* The median over seeds. */
double rws_quantity_median(const rws_query *q, rws_quantity a);

/* The values, one for each seed in ascending order of seeds; the caller frees the list. NULL and 0 without memory. */
double *rws_quantity_values(const rws_query *q, rws_quantity a, int *n);

/* Whether more than half of all runs fit, if `fit` of n runs do: a sign test at RWS_LEVEL. */
rws_verdict rws_most(int fit, int n);

/* The share of the choices of signs of n differences, at most RWS_MOST_PAIRS, whose sum is at least as low as theirs. NaN
 * without memory. */
double rws_signs_below(const double *differences, int n);

#endif
