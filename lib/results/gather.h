/* gather.h - the median and the quartiles of runs that differ only in their seed.
 *
 *     results -> [gather] -> rws runs; curve -> chart, terminal
 *
 * A run with a NaN anywhere is left out whole, and so is a run with fewer evaluations than the longest (stats.h).
 */
#ifndef RWS_RESULTS_GATHER_H
#define RWS_RESULTS_GATHER_H

#include "rws_train.h"

/* Medians and quartiles over the evaluations. A zeroed one is empty. */
typedef struct {
    int     n, n_runs; /* points; runs of each point (in rws_gather_over: the largest number of runs of a point) */
    double *x, *median, *low, *high;
} rws_gathered;

typedef enum { RWS_X_ITERATION, RWS_X_SECONDS } rws_x;

/* The metric of these runs over iterations, or over seconds: then x is the median of the runs' seconds at that
 * evaluation. *out is empty if no run has the metric. The caller releases it. */
void rws_gather(const rws_result *const *runs, int n, const char *metric, rws_x x, rws_gathered *out);

/* The last values of the metric over a number of the configuration, such as "particles". RWS_BAD_INPUT if a run has no
 * such number. The caller releases *out, also after a failure. */
rws_status rws_gather_over(const rws_result *const *runs, int n, const char *key, const char *metric, rws_gathered *out,
                           rws_error *err) __attribute__((warn_unused_result));

/* Removes the points before x. */
void rws_gathered_from(rws_gathered *g, double x);

void rws_gathered_release(rws_gathered *g);

typedef struct {
    double median, low, high; /* NaN without runs */
    int    n_runs;
} rws_quartiles;

/* The quartiles of the metric's last values; a run without the metric, or with a NaN as its last value, is left out. */
rws_quartiles rws_gather_last(const rws_result *const *runs, int n, const char *metric);

/* The quartiles of n numbers; NaNs are left out. */
rws_quartiles rws_quartiles_of(const double *values, int n);

#endif
