/* stats.h - the median and the quartiles over repeats, point by point.
 *
 * Every curve of every figure is a median with a band from the 25th to the 75th percentile, computed here. This file
 * does not read a store, and it does not decide which runs belong together.
 *
 *     gather -> [stats] -> curve -> chart, terminal
 */
#ifndef RWS_RESULTS_STATS_H
#define RWS_RESULTS_STATS_H

/* The percentile (0 to 100) of n values in ascending order, by linear interpolation between the two nearest ranks: the
 * default of numpy.percentile. Returns NaN if n is 0. Does not allocate. */
double rws_stats_percentile(const double *sorted, int n, double percent);

/* Median and quartiles per point over n_runs runs of n_points values each, runs[r * n_points + i].
 *
 * A run with a NaN anywhere is dropped whole, so that a run that failed does not count at the points before its
 * failure. A run that is shorter than the others is padded with NaN by the caller, and therefore dropped. Infinities
 * are kept.
 *
 * Returns the number of runs kept; with 0 all three outputs are NaN throughout. Writes n_points values to each of low,
 * median and high, which belong to the caller; low and high may be NULL. */
int rws_stats_quartiles(const double *runs, int n_runs, int n_points, double *low, double *median, double *high);

#endif
