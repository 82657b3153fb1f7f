#include "paper/compare.h"

#include "figure/style.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAST = 10, NAME = 48 };

/* ---- one number for each seed */

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

/* A run of which only the end is kept has one value, which is neither its first nor one on the way. */
static double value_of(const rws_result *r, rws_quantity a)
{
    const rws_history *h = rws_result_history(r, a.metric);
    if (!h || h->n == 0) return NAN;
    switch (a.moment) {
    case RWS_AT_START: return h->n > 1 ? h->values[0] : NAN;
    case RWS_AT_TENTH: return h->n > 1 ? h->values[h->n / 10] : NAN;
    case RWS_AT_THIRD: return h->n > 1 ? h->values[h->n / 3] : NAN;
    case RWS_AT_LAST: return h->n > 1 ? h->values[h->n - 1] : NAN;
    case RWS_WOBBLE: return wobble(h);
    default: break;
    }
    const int first = h->n > LAST ? h->n - LAST : 0;
    double    total = 0;
    for (int i = first; i < h->n; i++) total += h->values[i];
    return total / (h->n - first);
}

static int place_of(const rws_seed_values *s, int seed)
{
    int i = 0;
    while (i < s->n && s->seed[i] != seed) i++;
    return i;
}

static double median_of(const double *values, int n)
{
    double sorted[RWS_MAX_SEEDS];
    memcpy(sorted, values, (size_t)n * sizeof *sorted);
    return rws_quartiles_of(sorted, n).median;
}

rws_seed_values rws__seed_values_of(const rws_query *q, rws_quantity a)
{
    const rws_query_own other[] = {{a.method, a.key, a.value}, {0}};
    rws_query           own = *q;
    if (a.key) own.own = other;
    int                n, runs_of[RWS_MAX_SEEDS] = {0};
    const rws_result **runs = rws__query_runs(&own, a.method, a.K == RWS_MEAN_K ? 0 : a.K, &n);
    rws_seed_values    s = {0};
    for (int i = 0; i < n; i++) {
        const char  *seed = rws_result_get(runs[i], "seed");
        const double value = value_of(runs[i], a);
        const int    at = seed ? place_of(&s, atoi(seed)) : RWS_MAX_SEEDS;
        if (at == RWS_MAX_SEEDS || isnan(value)) continue;
        if (at == s.n) s.seed[s.n++] = atoi(seed);
        s.value[at] += (value - s.value[at]) / ++runs_of[at];
    }
    free(runs);
    const double median = median_of(s.value, s.n);
    for (int i = 0; i < s.n && a.moment == RWS_FROM_MEDIAN; i++) s.value[i] = fabs(s.value[i] - median);
    return s;
}

/* ---- Student's distribution */

/* The probability between -t and t is a finite sum in the cosine of atan(t / sqrt(n)). */
double rws__student(double t, int n)
{
    const double angle = atan(t / sqrt(n)), c = cos(angle), s = sin(angle);
    double       term = n % 2 ? c : 1, sum = 0;
    for (int i = n % 2 ? 1 : 0; i <= n - 2; i += 2) {
        sum += term;
        term *= c * c * (i + 1) / (i + 2);
    }
    const double between = n % 2 ? (angle + s * sum) * 2 / M_PI : s * sum;
    return (1 + between) / 2;
}

double rws__student_quantile(double chance, int n)
{
    double low = -1e6, high = 1e6;
    for (int i = 0; i < 100; i++) {
        const double middle = (low + high) / 2;
        if (rws__student(middle, n) < chance) low = middle;
        else high = middle;
    }
    return high;
}

/* ---- comparisons */

typedef struct {
    double mean, error; /* of the mean */
    int    n;
} summary;

static summary summarise(const double *x, int n)
{
    summary s = {.n = n};
    for (int i = 0; i < n; i++) s.mean += x[i] / n;
    for (int i = 0; i < n; i++) s.error += (x[i] - s.mean) * (x[i] - s.mean);
    s.error = n > 1 ? sqrt(s.error / (n - 1) / n) : NAN;
    return s;
}

/* The chance of a mean as far above the bound, if the bound were the truth. */
static double chance_above(summary s, double bound)
{
    if (isinf(bound)) return bound < 0 ? 0 : 1;
    if (s.error <= 1e-12 * fabs(s.mean)) return s.mean > bound ? 0 : s.mean < bound ? 1 : 0.5;
    return rws__student((bound - s.mean) / s.error, s.n - 1);
}

static rws_comparison *next_item(rws_evidence *e, int seeds)
{
    rws_comparison *item = &e->items[e->n < RWS_MAX_ITEMS ? e->n++ : RWS_MAX_ITEMS - 1];
    *item = (rws_comparison){.inside = NAN, .outside = NAN, .seeds = seeds, .group = e->n_groups};
    return item;
}

static rws_comparison *add_mean(rws_evidence *e, summary s, double low, double high)
{
    rws_comparison *item = next_item(e, s.n);
    if (s.n < RWS_MIN_SEEDS) return item;
    const double above_low = chance_above(s, low), above_high = chance_above(s, high);
    item->inside = fmax(above_low, 1 - above_high);
    item->outside = fmin(1 - above_low, above_high);
    return item;
}

static void put(rws_comparison *item, const char *format, va_list args)
{
    vsnprintf(item->text, sizeof item->text, format, args);
}

void rws__evidence_add(rws_evidence *e, const double *numbers, int n, double low, double high, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    put(add_mean(e, summarise(numbers, n), low, high), format, args);
    va_end(args);
    e->n_groups++;
}

/* The chance that of n coins at least `least` show heads. */
static double at_least(int least, int n)
{
    double total = 0;
    for (int k = least; k <= n; k++) total += exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) - n * log(2));
    return total;
}

void rws__evidence_most(rws_evidence *e, int fit, int n, const char *format, ...)
{
    rws_comparison *item = next_item(e, n);
    va_list         args;
    va_start(args, format);
    put(item, format, args);
    va_end(args);
    item->inside = at_least(fit, n);
    item->outside = at_least(n - fit, n);
    e->n_groups++;
}

/* ---- statements */

/* Copies the word at *list and moves behind it; false at the end. */
static bool next_word(const char **list, char *word)
{
    const char *at = *list ? *list + strspn(*list, " ") : "";
    const int   n = (int)strcspn(at, " ");
    snprintf(word, NAME, "%.*s", n, at);
    *list = at + n;
    return n > 0;
}

static bool is_ratio(const rws_statement *p, const char *metric)
{
    if (p->moment == RWS_WOBBLE) return true;
    return p->moment != RWS_FROM_MEDIAN && strcmp(metric, "truncated") != 0 && !strstr(metric, "log_evidence") &&
           !strstr(metric, "kl");
}

static double scaled(double x, bool ratio)
{
    return ratio ? log(x > 0 ? x : 0) : x;
}

static double unscaled(double x, bool ratio)
{
    return ratio ? exp(x) : x;
}

static void name_of(rws_quantity a, char *name)
{
    snprintf(name, NAME, a.key ? "%s (%s)" : "%s", rws__style_name(a.method), a.value);
}

static void put_region(char *text, size_t size, double low, double high)
{
    if (isinf(low)) snprintf(text, size, "below %.3g", high);
    else if (isinf(high)) snprintf(text, size, "above %.3g", low);
    else snprintf(text, size, "within %.3g to %.3g", low, high);
}

/* Appends the mean of the comparison, its interval and what the claim says of it. */
static void put_result(rws_comparison *item, const rws_statement *p, summary s, const char *what, bool ratio)
{
    const size_t n = strlen(item->text), capacity = sizeof item->text - n;
    char         region[48];
    put_region(region, sizeof region, p->low, p->high);
    if (s.n == 0) {
        snprintf(item->text + n, capacity, "; no seed has all runs of it, claimed %s", region);
        return;
    }
    if (s.n < RWS_MIN_SEEDS) {
        snprintf(item->text + n, capacity, "; %s %.3g, claimed %s (%d %s)", what, unscaled(s.mean, ratio), region, s.n,
                 s.n == 1 ? "seed" : "seeds");
        return;
    }
    const double half = s.error * rws__student_quantile(1 - RWS_LEVEL, s.n - 1);
    snprintf(item->text + n, capacity, "; %s %.3g (%.3g to %.3g), claimed %s, p = %.2g", what, unscaled(s.mean, ratio),
             unscaled(s.mean - half, ratio), unscaled(s.mean + half, ratio), region, fmin(item->inside, item->outside));
}

static double bound(const rws_statement *p, double x, bool ratio)
{
    return isinf(x) || p->K == RWS_OVER_K ? x : scaled(x, ratio);
}

/* "p error, K = 20: " */
static int put_head(char *text, size_t size, const char *metric, int K)
{
    int n = K > 0 ? snprintf(text, size, "%s, K = %d: ", metric, K) : snprintf(text, size, "%s: ", metric);
    for (int i = 0; i < n && text[i] != ':'; i++)
        if (text[i] == '_') text[i] = ' ';
    return n;
}

/* Compares two quantities on the seeds that both have; b.method NULL: a with the constant. */
static void compare(rws_evidence *e, const rws_query *q, const rws_statement *p, rws_quantity a, rws_quantity b)
{
    const bool            ratio = is_ratio(p, a.metric);
    const rws_seed_values x = rws__seed_values_of(q, a), y = b.method ? rws__seed_values_of(q, b) : x;
    double                d[RWS_MAX_SEEDS], left[RWS_MAX_SEEDS], right[RWS_MAX_SEEDS];
    int                   n = 0;
    if (x.n == 0 && y.n == 0) return; /* an experiment may have fewer numbers of particles */
    for (int i = 0; i < x.n; i++) {
        const int k = place_of(&y, x.seed[i]);
        if (k == y.n) continue;
        left[n] = x.value[i];
        right[n] = b.method ? y.value[k] : p->constant;
        d[n] = scaled(left[n], ratio) - scaled(right[n], ratio);
        n++;
    }
    const summary   s = summarise(d, n);
    rws_comparison *item = add_mean(e, s, bound(p, p->low, ratio), bound(p, p->high, ratio));
    char            name[NAME], other[NAME] = "constant";
    name_of(a, name);
    if (b.method) name_of(b, other);
    if (p->K_right) snprintf(other, sizeof other, "K = %d", b.K);
    const int at = put_head(item->text, sizeof item->text, a.metric, a.K);
    if (n == 0) snprintf(item->text + at, sizeof item->text - (size_t)at, "%s and %s", name, other);
    else
        snprintf(item->text + at, sizeof item->text - (size_t)at, "%s %.4g, %s %.4g", name, median_of(left, n), other,
                 median_of(right, n));
    put_result(item, p, s, ratio ? "ratio" : "difference", ratio);
}

/* The slope over log K of each seed that has all K. */
static void compare_slope(rws_evidence *e, const rws_query *q, const rws_statement *p, rws_quantity a)
{
    const rws_particles K = rws__query_particles(q);
    const bool          ratio = is_ratio(p, a.metric);
    double              slopes[RWS_MAX_SEEDS] = {0}, middle = 0, width = 0;
    int                 seen[RWS_MAX_SEEDS] = {0}, n = 0;
    rws_seed_values     first = {0};
    for (int k = 0; k < K.n; k++) middle += log(K.K[k]) / K.n;
    for (int k = 0; k < K.n; k++) width += pow(log(K.K[k]) - middle, 2);
    for (int k = 0; k < K.n; k++) {
        a.K = K.K[k];
        const rws_seed_values s = rws__seed_values_of(q, a);
        if (k == 0) first = s;
        for (int i = 0; i < s.n; i++) {
            const int at = place_of(&first, s.seed[i]);
            if (at == first.n) continue;
            slopes[at] += (log(K.K[k]) - middle) / width * scaled(s.value[i], ratio);
            seen[at]++;
        }
    }
    for (int i = 0; i < first.n; i++)
        if (seen[i] == K.n && K.n > 1) slopes[n++] = slopes[i];
    const summary   s = summarise(slopes, n);
    rws_comparison *item = add_mean(e, s, p->low, p->high);
    char            name[NAME];
    name_of(a, name);
    const int at = put_head(item->text, sizeof item->text, a.metric, 0);
    snprintf(item->text + at, sizeof item->text - (size_t)at, "%s%s", name,
             p->moment == RWS_AT_START  ? " at the start"
             : p->moment == RWS_AT_LAST ? " when trained"
                                        : "");
    put_result(item, p, s, ratio ? "power of K" : "slope over log K", false);
}

/* Compares the quantity with all that the part names on its right. */
static void compare_right(rws_evidence *e, const rws_query *q, const rws_statement *p, rws_quantity a)
{
    const char *methods = p->right ? p->right : a.method;
    char        method[NAME], value[NAME];
    if (p->K == RWS_OVER_K) return compare_slope(e, q, p, a);
    if (!p->right && !p->K_right) return compare(e, q, p, a, (rws_quantity){0});
    while (next_word(&methods, method)) {
        const char *values = p->right_values ? p->right_values : "-";
        while (next_word(&values, value)) {
            rws_quantity b = {method, p->K_right ? p->K_right : a.K, a.metric, p->moment, NULL, NULL};
            if (p->right_values) b.key = p->key, b.value = value;
            if (p->K_right || strcmp(method, a.method) != 0 || p->key) compare(e, q, p, a, b);
        }
    }
}

static void compare_left(rws_evidence *e, const rws_query *q, const rws_statement *p, const char *metric, int K)
{
    const char *methods = p->left;
    char        method[NAME], value[NAME];
    while (next_word(&methods, method)) {
        const char *values = p->left_values ? p->left_values : "-";
        while (next_word(&values, value)) {
            rws_quantity a = {method, K, metric, p->moment, NULL, NULL};
            if (p->left_values) a.key = p->key, a.value = value;
            compare_right(e, q, p, a);
            if (!p->right) e->n_groups++;
        }
    }
    e->n_groups++;
}

void rws__evidence_compare(rws_evidence *e, const rws_query *q, const rws_statement *statements)
{
    const rws_particles all = rws__query_particles(q);
    for (const rws_statement *p = statements; p->metrics; p++) {
        const char *metrics = p->metrics;
        char        metric[NAME];
        while (next_word(&metrics, metric)) {
            if (p->K != RWS_EVERY_K) compare_left(e, q, p, metric, p->K);
            for (int k = 0; k < all.n && p->K == RWS_EVERY_K; k++) compare_left(e, q, p, metric, all.K[k]);
        }
    }
}

/* ---- verdicts */

static rws_verdict verdict_of(const rws_comparison *item, int n)
{
    if (item->seeds == 0) return RWS_UNKNOWN;
    if (item->inside < RWS_LEVEL) return RWS_HOLDS;
    return item->outside * n < RWS_LEVEL ? RWS_FAILS : RWS_UNDECIDED;
}

/* Whether a speaks less for the claim than b. */
static bool is_worse(const rws_comparison *a, const rws_comparison *b, int n)
{
    const rws_verdict x = verdict_of(a, n), y = verdict_of(b, n);
    if (x != y) return x > y;
    return a->outside < b->outside || (a->outside == b->outside && a->inside > b->inside);
}

rws_finding rws__evidence_judge(const rws_evidence *e)
{
    rws_finding f = rws__finding_new();
    for (int group = 0, i = 0; group < e->n_groups; group++) {
        const rws_comparison *worst = NULL;
        int                   n = 0;
        for (; i < e->n && e->items[i].group == group; i++, n++) {
            rws__finding_seeds(&f, e->items[i].seeds);
            if (!worst || is_worse(&e->items[i], worst, e->n)) worst = &e->items[i];
        }
        if (!worst) continue;
        char of[48] = "";
        if (n > 1) snprintf(of, sizeof of, " (the least favourable of %d)", n);
        rws__finding_add(&f, verdict_of(worst, e->n), "%s%s", worst->text, of);
    }
    if (e->n == 0) f.verdict = RWS_UNKNOWN;
    return f;
}
