/* gather.c - medians and quartiles of runs: of a metric point by point, of its last values, and those over a key. */
#include "base/error.h"
#include "base/order.h"
#include "results/results.h"
#include "rws_results.h"

#include <glib.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static rws_status no_memory(rws_error *err)
{
    return rws_no_memory(err, "the median of runs");
}

/* ---- numbers */

/* The percentile of n numbers in ascending order. */
static double percentile(const double *sorted, int n, double percent)
{
    if (n <= 0) return NAN;
    const double rank = (n - 1) * (percent / 100);
    const int    below = (int)rank, above = below + 1 < n ? below + 1 : below;
    const double a = sorted[below], b = sorted[above], t = rank - below;
    if (a == b || t == 0 || isinf(a)) return a; /* of infinities the difference would be NaN */
    if (isinf(b)) return b;
    /* As in numpy, from the nearer end, so that t = 1 gives b exactly. */
    return t < 0.5 ? a + (b - a) * t : b - (b - a) * (1 - t);
}

rws_quartiles rws_quartiles_of(double *values, int n)
{
    int kept = 0;
    for (int i = 0; i < n; i++)
        if (!isnan(values[i])) values[kept++] = values[i];
    if (kept) qsort(values, (size_t)kept, sizeof *values, rws__order_doubles);
    return (rws_quartiles){percentile(values, kept, 50), percentile(values, kept, 25), percentile(values, kept, 75),
                           kept};
}

rws_quartiles rws__means_of(double *values, int n)
{
    double sum = 0, squares = 0;
    int    kept = 0;
    for (int i = 0; i < n; i++)
        if (!isnan(values[i])) sum += values[i], values[kept++] = values[i];
    const double mean = kept ? sum / kept : NAN;
    for (int i = 0; i < kept; i++) squares += (values[i] - mean) * (values[i] - mean);
    const double error = kept > 1 ? sqrt(squares / (kept - 1) / kept) : 0;
    return (rws_quartiles){mean, mean - error, mean + error, kept};
}

rws_status rws_gather_last(const rws_result *const *runs, int n, const char *metric, rws_quartiles *out, rws_error *err)
{
    RWS_NEED(out, err);
    double *values = calloc((size_t)n + 1, sizeof *values);
    *out = (rws_quartiles){NAN, NAN, NAN, 0};
    if (!values) return no_memory(err);
    for (int i = 0; i < n; i++) values[i] = rws_result_last(runs[i], metric);
    *out = rws_quartiles_of(values, n);
    free(values);
    return RWS_OK;
}

/* ---- points */

/* The arrays are parts of one, which begins with x. */
static bool make_room(rws_gathered *g, size_t points)
{
    double *all = calloc(5 * points + 1, sizeof *all);
    *g = (rws_gathered){0};
    if (all) *g = (rws_gathered){0, 0, all, all + points, all + 2 * points, all + 3 * points, all + 4 * points};
    return all != NULL;
}

void rws_gathered_release(rws_gathered *g)
{
    if (!g) return;
    free(g->x);
    *g = (rws_gathered){0};
}

static void add_point(rws_gathered *g, double x, rws_quartiles q)
{
    const int i = g->n++;
    g->x[i] = x, g->median[i] = q.median, g->low[i] = q.low, g->high[i] = q.high, g->count[i] = q.n;
    if (q.n > g->n_runs) g->n_runs = q.n;
}

void rws_gathered_between(rws_gathered *g, double from, double to)
{
    if (!g) return;
    double *const rows[] = {g->x, g->median, g->low, g->high, g->count};
    int           n = 0;
    for (int i = 0; i < g->n; i++) {
        if (g->x[i] < from || g->x[i] > to) continue;
        for (int r = 4; r >= 0; r--) rows[r][n] = rows[r][i];
        n++;
    }
    g->n = n;
}

/* ---- over training */

/* The histories of the metric, each with the place of its next evaluation. */
typedef struct {
    const rws_history **histories;
    int                *at, n;
    double             *values, *seconds, *iterations; /* of a point; of a point; of all evaluations, sorted */
    int                 n_iterations;
} merging;

static void release(merging *m)
{
    free(m->histories);
    free(m->at);
    free(m->values);
    free(m->iterations);
}

/* Finds the histories, and the iterations of all evaluations. False without memory; the caller releases *m in any case.
 * */
static bool begin(const rws_result *const *runs, int n, const char *metric, merging *m)
{
    size_t total = 0;
    *m =
        (merging){.histories = calloc((size_t)n + 1, sizeof *m->histories), .at = calloc((size_t)n + 1, sizeof *m->at)};
    m->values = calloc(2 * (size_t)n + 1, sizeof *m->values);
    if (!m->histories || !m->at || !m->values) return false;
    m->seconds = m->values + n;
    for (int i = 0; i < n; i++) {
        const rws_history *h = rws_result_history(runs[i], metric);
        if (!h) continue;
        m->histories[m->n++] = h;
        total += (size_t)h->n;
    }
    m->iterations = calloc(total + 1, sizeof *m->iterations);
    if (!m->iterations) return false;
    bool   sorted = true;
    size_t k = 0;
    for (int i = 0; i < m->n; i++)
        for (int e = 0; e < m->histories[i]->n; e++, k++) {
            m->iterations[k] = m->histories[i]->iterations[e];
            sorted = sorted && (k == 0 || m->iterations[k] >= m->iterations[k - 1]);
        }
    if (!sorted) qsort(m->iterations, total, sizeof *m->iterations, rws__order_doubles);
    for (k = 0; k < total; k++)
        if (k == 0 || m->iterations[k] != m->iterations[m->n_iterations - 1])
            m->iterations[m->n_iterations++] = m->iterations[k];
    return true;
}

/* Adds the point of an iteration, if any run has a value there. */
static void add_iteration(merging *m, rws_summary by, double iteration, rws_x x, rws_gathered *out)
{
    int n = 0;
    for (int i = 0; i < m->n; i++) {
        const rws_history *h = m->histories[i];
        const int          at = m->at[i];
        if (at >= h->n || h->iterations[at] != iteration) continue;
        m->at[i]++;
        if (!isnan(h->values[at])) m->values[n] = h->values[at], m->seconds[n++] = h->seconds[at];
    }
    if (n == 0) return;
    const double seconds = x == RWS_X_SECONDS ? rws_quartiles_of(m->seconds, n).median : 0;
    add_point(out, x == RWS_X_SECONDS ? seconds : iteration, by(m->values, n));
}

rws_status rws__gather_by(rws_summary by, const rws_result *const *runs, int n, const char *metric, rws_x x,
                          rws_gathered *out, rws_error *err)
{
    merging m;
    RWS_NEED(out, err);
    *out = (rws_gathered){0};
    const bool good = begin(runs, n, metric, &m) && (m.n_iterations == 0 || make_room(out, (size_t)m.n_iterations));
    for (int i = 0; i < m.n_iterations && good; i++) add_iteration(&m, by, m.iterations[i], x, out);
    release(&m);
    return good ? RWS_OK : no_memory(err);
}

rws_status rws_gather(const rws_result *const *runs, int n, const char *metric, rws_x x, rws_gathered *out,
                      rws_error *err)
{
    return rws__gather_by(rws_quartiles_of, runs, n, metric, x, out, err);
}

/* ---- over a key */

static bool number_of(const rws_result *r, const char *key, double *out)
{
    const char *text = rws_result_get(r, key);
    char       *end = NULL;
    *out = text ? g_ascii_strtod(text, &end) : NAN;
    return text && end != text && !*end && isfinite(*out);
}

/* The last values of the runs with the smallest number of the key above *last, which becomes that number. Their number
 * is returned. */
static int next_values(const rws_result *const *runs, int n, const char *key, const char *metric, double *last,
                       double *values)
{
    double next = INFINITY, value;
    int    n_values = 0;
    for (int i = 0; i < n; i++) {
        if (!number_of(runs[i], key, &value) || value <= *last || value > next) continue;
        if (value < next) n_values = 0;
        next = value;
        values[n_values++] = rws_result_last(runs[i], metric);
    }
    *last = next;
    return n_values;
}

rws_status rws__gather_over_by(rws_summary by, const rws_result *const *runs, int n, const char *key,
                               const char *metric, rws_gathered *out, rws_error *err)
{
    double last;
    RWS_NEED(out, err);
    *out = (rws_gathered){0};
    if (n) RWS_TRY(rws__results_check_key(runs, n, key, err));
    for (int i = 0; i < n; i++)
        if (!number_of(runs[i], key, &last))
            return rws_fail(err, RWS_BAD_INPUT, "The run %.100s has no number \"%.60s\" in its configuration.",
                            runs[i]->name, key);
    double    *values = calloc((size_t)n + 1, sizeof *values);
    const bool good = values && make_room(out, (size_t)n);
    last = -INFINITY;
    for (int k; good && (k = next_values(runs, n, key, metric, &last, values)) > 0;)
        add_point(out, last, by(values, k));
    free(values);
    return good ? RWS_OK : no_memory(err);
}

rws_status rws_gather_over(const rws_result *const *runs, int n, const char *key, const char *metric, rws_gathered *out,
                           rws_error *err)
{
    return rws__gather_over_by(rws_quartiles_of, runs, n, key, metric, out, err);
}
