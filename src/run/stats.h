/* stats.h - the median and the quartiles over repeats, point by point.
 *
 * Every curve of every figure is a median with a band from the 25th to the 75th percentile; this is the one
 * place that computes them. It does not read a store, and it does not decide which runs belong together.
 *
 *     metrics store -> [stats] -> curve -> chart, terminal
 */
#ifndef RWS_RUN_STATS_H
#define RWS_RUN_STATS_H

/* The percentile (0 to 100) of n values in ascending order, by linear interpolation between the two nearest ranks: the
 * default of numpy.percentile. Returns NaN if n is 0. Does not allocate. */
double rws_stats_percentile(const double *sorted, int n, double percent);

/* Median and quartiles per point over n_runs runs of n_points values each, runs[r * n_points + i].
 *
 * A run with a NaN anywhere is dropped whole: a run that broke must not count at the points before it broke. A run that
 * is shorter than the others is therefore passed padded with NaN, and dropped. Infinities are values like any other.
 *
 * Returns the number of runs kept; with 0 all three outputs are NaN throughout. Writes n_points values to each of low,
 * median and high, which belong to the caller; low and high may be NULL. */
int rws_stats_quartiles(const double *runs, int n_runs, int n_points, double *low, double *median, double *high);

#endif
