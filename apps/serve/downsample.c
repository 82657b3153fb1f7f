#include "serve/downsample.h"

#include "base/error.h"
#include "base/order.h"

#include <math.h>
#include <stdlib.h>

static double area(const double *x, const double *y, int a, int b, double mean_x, double mean_y)
{
    return fabs((x[a] - mean_x) * (y[b] - y[a]) - (x[a] - x[b]) * (mean_y - y[a]));
}

/* The point of from … to - 1 that is farthest from the line of `before` and the mean of to … next - 1. */
static int choose(const double *x, const double *y, const int *at, int before, int from, int to, int next)
{
    double mean_x = 0, mean_y = 0, largest = -1;
    int    best = from;
    for (int i = to; i < next; i++) mean_x += x[at[i]] / (next - to), mean_y += y[at[i]] / (next - to);
    for (int i = from; i < to; i++) {
        const double size = area(x, y, at[before], at[i], mean_x, mean_y);
        if (size > largest) largest = size, best = i;
    }
    return best;
}

/* Puts the least and the largest point in the places of the kept points that are nearest to them. */
static void keep_extremes(const double *y, const int *at, int n, int *keep, int n_pending)
{
    int least = 0, largest = 0;
    for (int i = 1; i < n; i++) {
        if (y[at[i]] < y[at[least]]) least = i;
        if (y[at[i]] > y[at[largest]]) largest = i;
    }
    const int extremes[] = {at[least], at[largest]};
    int       used = -1;
    for (int e = 0; e < 2; e++) {
        int nearest = -1;
        for (int i = 1; i + 1 < n_pending; i++)
            if (i != used && (nearest < 0 || abs(keep[i] - extremes[e]) < abs(keep[nearest] - extremes[e])))
                nearest = i;
        if (extremes[e] == keep[0] || extremes[e] == keep[n_pending - 1] || nearest < 0) continue;
        keep[nearest] = extremes[e];
        used = nearest;
    }
    qsort(keep, (size_t)n_pending, sizeof *keep, rws__order_ints);
}

int rws__downsample(const double *x, const double *y, int n, int most, int *keep)
{
    RWS_CHECK(most >= 3);
    int *at = n > most ? malloc((size_t)n * sizeof *at) : NULL, n_finite = 0, n_pending = 0;
    for (int i = 0; i < n && at; i++)
        if (isfinite(y[i])) at[n_finite++] = i;
    if (!at) { /* few points; or no memory, and then the first ones */
        for (; n_pending < n && n_pending < most; n_pending++) keep[n_pending] = n_pending;
        return n_pending;
    }
    if (n_finite <= most) {
        for (; n_pending < n_finite; n_pending++) keep[n_pending] = at[n_pending];
        free(at);
        return n_pending;
    }
    const double step = (double)(n_finite - 2) / (most - 2);
    int          before = 0;
    keep[n_pending++] = at[0];
    for (int b = 0; b < most - 2; b++) {
        const int from = 1 + (int)(b * step), to = 1 + (int)((b + 1) * step);
        const int next = b + 3 > most - 1 ? n_finite : 1 + (int)((b + 2) * step);
        before = choose(x, y, at, before, from, to, next > n_finite ? n_finite : next);
        keep[n_pending++] = at[before];
    }
    keep[n_pending++] = at[n_finite - 1];
    keep_extremes(y, at, n_finite, keep, n_pending);
    free(at);
    return n_pending;
}
