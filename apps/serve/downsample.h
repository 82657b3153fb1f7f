/* downsample.h - fewer points of a curve that looks the same.
 *
 * Largest-triangle-three-buckets (S. Steinarsson, Downsampling time series for visual representation, 2013): the points
 * between the first and the last are cut into buckets of equal size, and each bucket keeps the point that makes the
 * largest triangle with the point kept before it and the mean of the next bucket. Peaks stay, noise goes.
 *
 *     history -> [downsample] -> metrics, comparisons -> the page
 */
#ifndef RWS_SERVE_DOWNSAMPLE_H
#define RWS_SERVE_DOWNSAMPLE_H

/* Writes the indices of at most `most` (3 or more) points of n to `keep`, in ascending order, and returns their number.
 * The first and the last point with a number, the least and the largest are kept; points whose y is NaN or infinite are
 * left out if there are more than `most` points. */
int rws__downsample(const double *x, const double *y, int n, int most, int *keep);

#endif
