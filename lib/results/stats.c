#include "results/stats.h"

#include "base/error.h"

#include <glib.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

double rws_stats_percentile(const double *sorted, int n, double percent)
{
    RWS_CHECK(percent >= 0 && percent <= 100);
    if (n <= 0) return NAN;
    double rank = (n - 1) * (percent / 100);
    int    below = (int)rank;
    int    above = below + 1 < n ? below + 1 : below;
    double a = sorted[below], b = sorted[above], t = rank - below;
    /* Without this line inf and inf would give inf - inf = NaN. */
    if (a == b) return a;
    /* As in numpy, from the nearer end, so that t = 1 gives b exactly. */
    return t < 0.5 ? a + (b - a) * t : b - (b - a) * (1 - t);
}

static int ascending(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

int rws_stats_quartiles(const double *runs, int n_runs, int n_points, double *low, double *median, double *high)
{
    RWS_CHECK(n_runs >= 0 && n_points >= 0 && (median || n_points == 0));
    const double **kept = g_new(const double *, n_runs + 1);
    double        *column = g_new(double, n_runs + 1);

    int n_kept = 0;
    for (int r = 0; r < n_runs; r++) {
        const double *run = runs + (size_t)r * n_points;
        bool          whole = true;
        for (int i = 0; i < n_points && whole; i++) whole = !isnan(run[i]);
        if (whole) kept[n_kept++] = run;
    }
    for (int i = 0; i < n_points; i++) {
        for (int r = 0; r < n_kept; r++) column[r] = kept[r][i];
        qsort(column, n_kept, sizeof *column, ascending);
        median[i] = rws_stats_percentile(column, n_kept, 50);
        if (low) low[i] = rws_stats_percentile(column, n_kept, 25);
        if (high) high[i] = rws_stats_percentile(column, n_kept, 75);
    }
    g_free(column);
    g_free(kept);
    return n_kept;
}
