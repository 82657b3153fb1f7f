/* compare.h - the one rule by which claims are decided.
 *
 * A claim has statements. A statement compares two numbers that each seed gives: by their ratio where the metric is positive (errors, spreads,
 * signal-to-noise ratios), by their difference where it is in nats or a share. The paired differences of the seeds, on a
 * logarithmic scale for ratios, have a mean with a Student interval, and the claim names the region in which this mean should
 * lie. With m comparisons in all, a claim holds if each is shown to lie inside of its region at RWS_LEVEL; it does not hold if one is
 * shown to lie outside at RWS_LEVEL / m, so that either error has the same bound. All else is undecided, and so are fewer than
 * three seeds. A statement about most runs is decided in the same way by a test of signs.
 *
 *     results -> query -> [compare] -> verdicts
 */
#ifndef RWS_PAPER_COMPARE_H
#define RWS_PAPER_COMPARE_H

#include "paper/query.h"

#include <math.h>

#define RWS_LEVEL 0.05
enum { RWS_MIN_SEEDS = 3, RWS_MAX_SEEDS = 20 };

/* The number that is taken from a run: the mean of its last ten values, the last, the first, the one after a tenth or a third of
 * training, the standard deviation of the second half about its straight line; or how far the mean of the last ten is from the median
 * of the seeds. */
typedef enum {
    RWS_AT_END,
    RWS_AT_LAST,
    RWS_AT_START,
    RWS_AT_TENTH,
    RWS_AT_THIRD,
    RWS_WOBBLE,
    RWS_FROM_MEDIAN
} rws_moment;

typedef struct {
    const char *method;
    int         K; /* or RWS_MEAN_K */
    const char *metric;
    rws_moment  moment;
    const char *key, *value; /* a setting that its runs must have, instead of the query's own; or NULL */
} rws_quantity;

/* Special numbers of particles: each K of the results by itself; the mean over them; the slope over log K, which is the exponent
 * of a power of K where the scale is logarithmic. */
enum { RWS_EVERY_K = 0, RWS_MEAN_K = -1, RWS_OVER_K = -2 };

/* Comparisons of each method of `left` with each other one of `right`, for each metric; lists have blanks between. Without `right` a
 * method is compared with itself at K_right, or with a constant, or (RWS_OVER_K) its slope with 0. */
typedef struct {
    const char *metrics, *left, *right;
    int         K, K_right;
    double      low, high; /* the claimed region of left / right, left - right or the slope */
    rws_moment  moment;
    const char *key, *left_values, *right_values; /* a setting of which each value is compared; or NULL */
    double      constant;
} rws_statement;

#define RWS_BELOW(x) .low = -INFINITY, .high = (x)
#define RWS_ABOVE(x) .low = (x), .high = INFINITY

/* The result of the comparisons of a claim. */
typedef struct {
    char   text[240];
    double inside, outside; /* p values of "it is not inside", "it is not outside"; NaN: nothing is shown */
    int    seeds, group;    /* of a group, the comparison that speaks least for the claim is told */
} rws_comparison;

enum { RWS_MAX_ITEMS = 128 };
typedef struct {
    int            n, n_groups;
    rws_comparison items[RWS_MAX_ITEMS];
} rws_evidence;

/* Adds the comparisons of statements, which end with metrics NULL. */
void rws__evidence_compare(rws_evidence *e, const rws_query *q, const rws_statement *statements);

/* Adds a comparison: whether the mean of n numbers lies between low and high. */
void rws__evidence_add(rws_evidence *e, const double *numbers, int n, double low, double high, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

/* Adds whether more than half of all runs fit, if `fit` of n runs do. */
void rws__evidence_most(rws_evidence *e, int fit, int n, const char *format, ...) __attribute__((format(printf, 4, 5)));

/* The verdict and the numbers. */
rws_finding rws__evidence_judge(const rws_evidence *e);

/* A number for each seed, in ascending order of seeds; none that is NaN. */
typedef struct {
    int    n;
    int    seed[RWS_MAX_SEEDS];
    double value[RWS_MAX_SEEDS];
} rws_seed_values;

rws_seed_values rws__seed_values_of(const rws_query *q, rws_quantity a);

/* The chance that Student's t with n > 0 degrees of freedom is at most t, and the t with this chance. */
double rws__student(double t, int n);
double rws__student_quantile(double chance, int n);

#endif
