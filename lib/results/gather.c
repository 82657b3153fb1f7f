#include "results/gather.h"

#include "base/error.h"
#include "results/stats.h"

#include <glib.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void make_room(rws_gathered *g, int points)
{
    g->x = g_new(double, points + 1);
    g->median = g_new(double, points + 1);
    g->low = g_new(double, points + 1);
    g->high = g_new(double, points + 1);
}

void rws_gather(const rws_result *const *runs, int n, const char *metric, rws_x x, rws_gathered *out)
{
    *out = (rws_gathered){0};
    const rws_history *longest = NULL;
    for (int i = 0; i < n; i++) {
        const rws_history *s = rws_result_history(runs[i], metric);
        if (s && (!longest || s->n > longest->n)) longest = s;
    }
    if (!longest) return;
    const int points = longest->n;
    double   *values = g_new(double, (size_t)n *points), *times = g_new(double, (size_t)n *points);
    for (int i = 0; i < n; i++) {
        const rws_history *s = rws_result_history(runs[i], metric);
        for (int k = 0; k < points; k++) {
            const bool there = s && k < s->n && s->iterations[k] == longest->iterations[k];
            values[i * points + k] = there ? s->values[k] : NAN;
            times[i * points + k] = there && !isnan(s->values[k]) ? s->seconds[k] : NAN;
        }
    }
    make_room(out, points);
    out->n = points;
    out->n_runs = rws_stats_quartiles(values, n, points, out->low, out->median, out->high);
    if (x == RWS_X_SECONDS) rws_stats_quartiles(times, n, points, NULL, out->x, NULL);
    for (int k = 0; k < points && x == RWS_X_ITERATION; k++) out->x[k] = longest->iterations[k];
    g_free(values);
    g_free(times);
}

void rws_gathered_from(rws_gathered *g, double x)
{
    double *const rows[] = {g->x, g->median, g->low, g->high};
    int           first = 0;
    while (first < g->n && g->x[first] < x) first++;
    g->n -= first;
    for (int i = 0; i < 4 && first; i++) memmove(rows[i], rows[i] + first, (size_t)g->n * sizeof *rows[i]);
}

void rws_gathered_release(rws_gathered *g)
{
    g_free(g->x);
    g_free(g->median);
    g_free(g->low);
    g_free(g->high);
    *g = (rws_gathered){0};
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

rws_quartiles rws_quartiles_of(const double *values, int n)
{
    double       *sorted = g_new(double, n + 1);
    rws_quartiles q = {0};
    for (int i = 0; i < n; i++)
        if (!isnan(values[i])) sorted[q.n_runs++] = values[i];
    qsort(sorted, (size_t)q.n_runs, sizeof *sorted, ascending);
    q.median = rws_stats_percentile(sorted, q.n_runs, 50);
    q.low = rws_stats_percentile(sorted, q.n_runs, 25);
    q.high = rws_stats_percentile(sorted, q.n_runs, 75);
    g_free(sorted);
    return q;
}

rws_quartiles rws_gather_last(const rws_result *const *runs, int n, const char *metric)
{
    double *values = g_new(double, n + 1);
    for (int i = 0; i < n; i++) values[i] = rws_result_last(runs[i], metric);
    const rws_quartiles q = rws_quartiles_of(values, n);
    g_free(values);
    return q;
}

static bool number_of(const rws_result *r, const char *key, double *out)
{
    const char *text = rws_result_get(r, key);
    char       *end = NULL;
    *out = text ? g_ascii_strtod(text, &end) : NAN;
    return text && end != text && !*end && isfinite(*out);
}

rws_status rws_gather_over(const rws_result *const *runs, int n, const char *key, const char *metric, rws_gathered *out,
                           rws_error *err)
{
    *out = (rws_gathered){0};
    make_room(out, n);
    const rws_result **some = g_new(const rws_result *, n + 1);
    rws_status         status = RWS_OK;
    /* one value of the key after the other, from the smallest */
    for (double last = -INFINITY; status == RWS_OK;) {
        double next = INFINITY;
        int    n_some = 0;
        for (int i = 0; i < n && status == RWS_OK; i++) {
            double value;
            if (!number_of(runs[i], key, &value)) {
                status = rws_fail(err, RWS_BAD_INPUT, "The run %.100s has no number \"%.60s\" in its configuration.",
                                  runs[i]->name, key);
            } else if (value > last && value <= next) {
                if (value < next) n_some = 0;
                next = value;
                some[n_some++] = runs[i];
            }
        }
        if (n_some == 0) break;
        const rws_quartiles q = rws_gather_last(some, n_some, metric);
        out->x[out->n] = last = next;
        out->median[out->n] = q.median;
        out->low[out->n] = q.low;
        out->high[out->n++] = q.high;
        out->n_runs = MAX(out->n_runs, q.n_runs);
    }
    g_free(some);
    return status;
}
