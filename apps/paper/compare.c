#include "paper/compare.h"

#include "figure/style.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SEEDS = 20, LAST = 10 };

/* ---- one number for each seed */

typedef struct {
    int    n;
    int    seed[MOST_SEEDS];
    double value[MOST_SEEDS];
} sample;

/* The standard deviation of the second half of a curve about the line through it. */
static double wobble(const rws_history *h)
{
    const int first = h->n / 2, n = h->n - first;
    double    mean = 0, slope = 0, width = 0, squares = 0;
    if (n < 3) return NAN;
    for (int i = first; i < h->n; i++) mean += h->values[i] / n;
    for (int i = 0; i < n; i++) {
        const double x = i - (n - 1) / 2.0;
        slope += x * h->values[first + i];
        width += x * x;
    }
    slope /= width;
    for (int i = 0; i < n; i++) {
        const double x = i - (n - 1) / 2.0, rest = h->values[first + i] - mean - slope * x;
        squares += rest * rest;
    }
    return sqrt(squares / (n - 2));
}

static double value_of(const rws_result *r, rws_quantity a)
{
    const rws_history *h = rws_result_history(r, a.metric);
    if (!h || h->n == 0) return NAN;
    if (a.moment == RWS_AT_START) return h->values[0];
    if (a.moment == RWS_AT_TENTH) return h->values[h->n / 10];
    if (a.moment == RWS_AT_THIRD) return h->values[h->n / 3];
    if (a.moment == RWS_WOBBLE) return wobble(h);
    if (a.moment == RWS_TYPICAL) return rws_quartiles_of(h->values, h->n).median;
    const int first = h->n > LAST ? h->n - LAST : 0;
    double    total = 0;
    for (int i = first; i < h->n; i++) total += h->values[i];
    return total / (h->n - first);
}

static sample sample_of(const rws_query *q, rws_quantity a)
{
    const rws_query_own other[] = {{a.method, a.key, a.value}, {0}};
    const rws_query     own = {q->results, q->where, a.key ? other : q->own, q->starved};
    int                 n;
    const rws_result  **runs = rws_query_runs(&own, a.method, a.K, &n);
    sample              s = {0};
    for (int i = 0; i < n && s.n < MOST_SEEDS; i++) {
        const char  *seed = rws_result_get(runs[i], "seed");
        const double value = value_of(runs[i], a);
        if (!seed || isnan(value)) continue;
        s.seed[s.n] = atoi(seed);
        s.value[s.n++] = value;
    }
    free(runs);
    return s;
}

double *rws_quantity_values(const rws_query *q, rws_quantity a, int *n)
{
    const sample s = sample_of(q, a);
    double      *values = rws_query_alloc(q, s.n, sizeof *values);
    *n = values ? s.n : 0;
    if (values) memcpy(values, s.value, (size_t)s.n * sizeof *values);
    return values;
}

double rws_quantity_median(const rws_query *q, rws_quantity a)
{
    const sample s = sample_of(q, a);
    return rws_quartiles_of(s.value, s.n).median;
}

/* ---- tests */

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The sums of n differences under all 2^n choices of signs, in ascending order. */
static void sums_of_signs(const double *differences, int n, double *sums)
{
    size_t size = 1;
    sums[0] = 0;
    for (int i = 0; i < n; i++, size *= 2)
        for (size_t k = 0; k < size; k++) {
            sums[size + k] = sums[k] - differences[i];
            sums[k] += differences[i];
        }
    qsort(sums, size, sizeof *sums, ascending);
}

/* A sum over all differences is one over the first half and one over the second: while those of the first half rise,
 * fewer and fewer of the second half keep the total below. */
double rws_signs_below(const double *differences, int n)
{
    const size_t n_left = (size_t)1 << n / 2, n_right = (size_t)1 << (n - n / 2);
    double      *left = malloc((n_left + n_right) * sizeof *left), *right = left + n_left;
    double       limit = 0, size = 0, below = 0;
    if (!left) return NAN;
    for (int i = 0; i < n; i++) limit += differences[i], size += fabs(differences[i]);
    limit += 1e-12 * size;
    sums_of_signs(differences, n / 2, left);
    sums_of_signs(differences + n / 2, n - n / 2, right);
    for (size_t l = 0, r = n_right; l < n_left; l++) {
        while (r > 0 && left[l] + right[r - 1] > limit) r--;
        below += (double)r;
    }
    free(left);
    return below / ((double)n_left * (double)n_right);
}

/* Whether the differences lie below 0. */
static rws_verdict judge(double *differences, int n, double *p)
{
    const double below = n ? rws_signs_below(differences, n) : 1;
    for (int i = 0; i < n; i++) differences[i] = -differences[i];
    const double above = n ? rws_signs_below(differences, n) : 1;
    *p = below > above ? above : below;
    if (n == 0 || isnan(*p)) return RWS_UNKNOWN;
    return *p >= RWS_LEVEL ? RWS_UNDECIDED : below < above ? RWS_HOLDS : RWS_FAILS;
}

static rws_compared compare(const rws_query *q, rws_finding *f, rws_quantity a, rws_quantity b, double limit,
                            bool ratios)
{
    const sample x = sample_of(q, a), y = sample_of(q, b);
    double       d[MOST_SEEDS], left[MOST_SEEDS], right[MOST_SEEDS];
    rws_compared c = {0};
    for (int i = 0; i < x.n; i++)
        for (int j = 0; j < y.n; j++) {
            if (x.seed[i] != y.seed[j]) continue;
            left[c.seeds] = x.value[i];
            right[c.seeds] = y.value[j];
            d[c.seeds++] = ratios ? log(x.value[i] / (limit * y.value[j])) : x.value[i] - y.value[j] - limit;
            break;
        }
    c.a = rws_quartiles_of(left, c.seeds).median;
    c.b = rws_quartiles_of(right, c.seeds).median;
    c.verdict = judge(d, c.seeds, &c.p);
    rws_finding_seeds(f, c.seeds);
    return c;
}

rws_compared rws_less(const rws_query *q, rws_finding *f, rws_quantity a, double factor, rws_quantity b)
{
    return compare(q, f, a, b, factor, true);
}

rws_compared rws_below(const rws_query *q, rws_finding *f, rws_quantity a, double shift, rws_quantity b)
{
    return compare(q, f, a, b, shift, false);
}

/* ---- all K together */

rws_compared rws_pooled(const rws_query *q, rws_finding *f, const rws_quantity *a, const rws_quantity *b, int n,
                        double factor)
{
    double       d[RWS_MOST_PAIRS] = {0}, left[RWS_MOST_PAIRS] = {0}, right[RWS_MOST_PAIRS] = {0};
    rws_compared c = {0};
    for (int k = 0; k < n; k++) {
        const sample x = sample_of(q, a[k]), y = sample_of(q, b[k]);
        int          pairs = 0;
        for (int i = 0; i < x.n; i++)
            for (int j = 0; j < y.n; j++) {
                if (x.seed[i] != y.seed[j]) continue;
                pairs++;
                if (c.seeds == RWS_MOST_PAIRS) continue;
                left[c.seeds] = x.value[i];
                right[c.seeds] = y.value[j];
                d[c.seeds++] = factor > 0 ? log(x.value[i] / (factor * y.value[j])) : x.value[i] - y.value[j];
            }
        rws_finding_seeds(f, pairs);
    }
    c.a = rws_quartiles_of(left, c.seeds).median;
    c.b = rws_quartiles_of(right, c.seeds).median;
    c.verdict = judge(d, c.seeds, &c.p);
    return c;
}

void rws_below_at_every_K(const rws_query *q, rws_finding *f, const char *a, const char *b, const char *metric,
                          rws_moment moment, bool ratios)
{
    const rws_particles p = rws_query_particles(q);
    const char         *left = rws_style_name(a), *right = rws_style_name(b);
    rws_quantity        x[RWS_MOST_K], y[RWS_MOST_K];
    rws_compared        c[RWS_MOST_K];
    bool                few = false, agree = true;
    for (int k = 0; k < p.n; k++) {
        x[k] = (rws_quantity){a, p.K[k], metric, moment};
        y[k] = (rws_quantity){b, p.K[k], metric, moment};
        c[k] = ratios ? rws_less(q, f, x[k], 1, y[k]) : rws_below(q, f, x[k], 0, y[k]);
        few = few || c[k].seeds < 5;
        agree = agree && c[k].a < c[k].b;
    }
    for (int k = 0; k < p.n; k++) {
        char ratio[32] = "";
        if (ratios) snprintf(ratio, sizeof ratio, ", ratio %.2f", c[k].a / c[k].b);
        rws_finding_add(f, few && c[k].seeds ? RWS_HOLDS : c[k].verdict, "K = %d: %s %.5g, %s %.5g%s (p = %.2g)",
                        p.K[k], left, c[k].a, right, c[k].b, ratio, c[k].p);
    }
    if (!few || p.n == 0) return;
    const rws_compared all = rws_pooled(q, f, x, y, p.n, ratios ? 1 : 0);
    rws_finding_add(f, all.verdict == RWS_HOLDS && !agree ? RWS_UNDECIDED : all.verdict,
                    "%d pair%s of all K together (p = %.2g)", all.seeds, all.seeds == 1 ? "" : "s", all.p);
}

enum { MOST_L = 205 }; /* the largest sum of i * rank(i) for RWS_TREND_K numbers is 204 */

/* counts[L] += orders of the ranks, from place `at` on, whose sum of (place + 1) * rank is L */
static void count_orders(int *ranks, int at, int n, int L, double *counts)
{
    if (at == n) {
        counts[L]++;
        return;
    }
    for (int i = at; i < n; i++) {
        int keep = ranks[at];
        ranks[at] = ranks[i], ranks[i] = keep;
        count_orders(ranks, at + 1, n, L + (at + 1) * ranks[at], counts);
        keep = ranks[at];
        ranks[at] = ranks[i], ranks[i] = keep;
    }
}

/* The values of a seed for all K; false if one is missing. */
static bool values_of_seed(const sample *samples, int n, int seed, double *values)
{
    for (int k = 0; k < n; k++) {
        bool found = false;
        for (int i = 0; i < samples[k].n && !found; i++)
            if (samples[k].seed[i] == seed) values[k] = samples[k].value[i], found = true;
        if (!found) return false;
    }
    return true;
}

rws_trend rws_trend_of(const rws_query *q, rws_finding *f, rws_quantity a, const int *K, int n, int sign)
{
    sample    samples[RWS_TREND_K];
    double    one[MOST_L] = {0}, all[MOST_SEEDS * MOST_L] = {1}, above = 0, below = 0, total = 0;
    int       ranks[RWS_TREND_K], found = 0;
    rws_trend t = {.verdict = RWS_UNKNOWN, .p = 1};
    if (n < 2 || n > RWS_TREND_K) return t;
    for (int k = 0; k < n; k++) {
        a.K = K[k];
        samples[k] = sample_of(q, a);
        ranks[k] = k + 1;
    }
    count_orders(ranks, 0, n, 0, one);
    for (int i = 0; i < samples[0].n; i++) {
        double values[RWS_TREND_K];
        if (!values_of_seed(samples, n, samples[0].seed[i], values)) continue;
        for (int k = 0; k < n; k++) {
            int rank = 1;
            for (int j = 0; j < n; j++) rank += sign * values[j] < sign * values[k];
            found += (k + 1) * rank;
        }
        double next[MOST_SEEDS * MOST_L] = {0};
        for (int L = 0; L <= t.seeds * (MOST_L - 1); L++)
            for (int m = 0; m < MOST_L && all[L] > 0; m++) next[L + m] += all[L] * one[m];
        memcpy(all, next, sizeof all);
        t.seeds++;
    }
    rws_finding_seeds(f, t.seeds);
    if (t.seeds == 0) return t;
    for (int L = 0; L < MOST_SEEDS * MOST_L; L++) {
        total += all[L];
        if (L >= found) above += all[L];
        if (L <= found) below += all[L];
    }
    t.p = fmin(above, below) / total;
    t.verdict = t.seeds < 2 || t.p >= RWS_LEVEL ? RWS_UNDECIDED : above < below ? RWS_HOLDS : RWS_FAILS;
    return t;
}

/* The chance that of n coins at least `least` show heads. */
static double at_least(int least, int n)
{
    double total = 0;
    for (int k = least; k <= n; k++) total += exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) - n * log(2));
    return total;
}

rws_verdict rws_most(int fit, int n)
{
    if (n == 0) return RWS_UNKNOWN;
    if (at_least(fit, n) < RWS_LEVEL) return RWS_HOLDS;
    return at_least(n - fit, n) < RWS_LEVEL ? RWS_FAILS : RWS_UNDECIDED;
}
