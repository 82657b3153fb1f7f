/* gather.h - runs that differ in their seed only become one curve: the median, with a band between the quartiles.
 *
 *     results -> [gather] -> curve -> chart, terminal
 *
 * A run with a NaN anywhere is left out whole, and so is one that has not got as far as the others (stats.h).
 */
#ifndef RWS_RUN_GATHER_H
#define RWS_RUN_GATHER_H

#include "run/results.h"

/* Numbers over the evaluations. Zeroed, it is empty. */
typedef struct {
    int     n, n_runs; /* points; runs behind each, or the most behind one */
    double *x, *median, *low, *high;
} rws_gathered;

typedef enum { RWS_X_ITERATION, RWS_X_SECONDS } rws_x;

/* The metric of these runs. Over seconds, a point is where half of the runs had it earlier. Without a run that was
 * measured, *out is empty. The caller releases it. */
void rws_gather(const rws_result *const *runs, int n, const char *metric, rws_x x, rws_gathered *out);

/* The last values of the metric over a number of the configuration: "particles". RWS_BAD_INPUT if a run has no such
 * number. The caller releases *out also then. */
rws_status rws_gather_over(const rws_result *const *runs, int n, const char *key, const char *metric, rws_gathered *out,
                           rws_error *err) __attribute__((warn_unused_result));

/* Leaves out the points before x. */
void rws_gathered_from(rws_gathered *g, double x);

void rws_gathered_release(rws_gathered *g);

typedef struct {
    double median, low, high; /* NaN without runs */
    int    n_runs;
} rws_quartiles;

/* Of the metric's last values; a run without, or with a NaN there, is left out. */
rws_quartiles rws_gather_last(const rws_result *const *runs, int n, const char *metric);

/* Of some numbers; NaNs are left out. */
rws_quartiles rws_quartiles_of(const double *values, int n);

#endif
