/* tail.c - the Pareto k of importance weights: the shape of the generalised Pareto distribution that fits the largest of them.
 *
 *     log-weights, counts -> the largest min(K / 5, 3 sqrt(K)) -> exceedances over the largest that is left out -> k
 *
 * The fit is the quasi-Bayesian one of Zhang and Stephens (Technometrics 51, 2009): a grid of b = k / sigma, each weighed by
 * its profile likelihood. The prior of Vehtari, Simpson, Gelman, Yao and Gabry (JMLR 25, 2024), as good as 10 observations of
 * k = 1/2, is added. A row of `count` equal particles counts as often, so that k is that of the particles one by one.
 */
#include "ask/ask.h"

#include "base/list.h"

#include <stdlib.h>

enum { LEAST = 5 /* exceedances that can be fitted */, SPARE = 4096 /* rows that are kept before the tail is cut */ };

void rws__tail_release(rws_tail *t)
{
    free(t->list);
    *t = (rws_tail){0};
}

static int by_weight(const void *a, const void *b)
{
    const rws_tail_entry *x = a, *y = b;
    return rws__number_order(y->log_weight, x->log_weight);
}

/* How many particles of K are in the tail, at most. */
static double tail_size(int K)
{
    return ceil(fmin(K / 5.0, 3 * sqrt(K)));
}

/* Sorts the tail and keeps the rows with the largest weights that have more than tail_size particles together. */
static void cut(rws_tail *t, int K)
{
    double counted = 0;
    int    n = 0;
    qsort(t->list, (size_t)t->n, sizeof *t->list, by_weight);
    while (n < t->n && counted < tail_size(K) + 1) counted += t->list[n++].count;
    t->n = n;
}

bool rws__tail_add(rws_tail *t, double log_weight, double count, int n_particles)
{
    if (t->n == t->capacity && t->n >= SPARE) cut(t, n_particles);
    if (!rws__list_grow(&t->list, t->n, &t->capacity, sizeof *t->list)) return false;
    t->list[t->n++] = (rws_tail_entry){log_weight, count};
    return true;
}

/* ---- the fit */

/* Exceedances over a threshold, the largest first; n is the sum of their counts. */
typedef struct {
    const rws_tail_entry *list; /* log_weight has the exceedance */
    int                   rows;
    double                n;
} exceedances;

/* k of the generalised Pareto distribution, given b. */
static double k_given(const exceedances *e, double b)
{
    double sum = 0;
    for (int i = 0; i < e->rows; i++) sum += e->list[i].count * log1p(-b * e->list[i].log_weight);
    return sum / e->n;
}

/* The first quartile, as Zhang and Stephens count it. */
static double quartile(const exceedances *e)
{
    double left = floor(e->n / 4 + 0.5); /* so many are not above it */
    for (int i = e->rows - 1; i > 0; i--) {
        left -= e->list[i].count;
        if (left <= 0) return e->list[i].log_weight;
    }
    return e->list[0].log_weight;
}

/* The posterior mean of b under the weights exp(log_likelihood); those below 10 epsilon are left out. */
static double mean_of(const double *b, const double *log_likelihood, int m)
{
    double top = -INFINITY, all = 0, kept = 0, sum = 0;
    for (int j = 0; j < m; j++) top = fmax(top, log_likelihood[j]);
    for (int j = 0; j < m; j++) all += exp(log_likelihood[j] - top);
    for (int j = 0; j < m; j++) {
        const double weight = exp(log_likelihood[j] - top) / all;
        if (weight < 10 * 2.220446049250313e-16) continue;
        kept += weight;
        sum += weight * b[j];
    }
    return sum / kept;
}

static double fit(const exceedances *e)
{
    enum { MOST = 1 << 10 };
    const int    m = 30 + (int)fmin(sqrt(e->n), MOST - 30);
    const double low = quartile(e), top = e->list[0].log_weight;
    double       b[MOST], log_likelihood[MOST];
    for (int j = 0; j < m; j++) {
        b[j] = (1 - sqrt(m / (j + 0.5))) / (3 * low) + 1 / top;
        const double k = k_given(e, b[j]);
        log_likelihood[j] = e->n * (log(-b[j] / k) - k - 1);
    }
    return (e->n * k_given(e, mean_of(b, log_likelihood, m)) + 10 * 0.5) / (e->n + 10);
}

double rws__tail_pareto_k(rws_tail *t, int n_particles)
{
    cut(t, n_particles);
    const double most = tail_size(n_particles), top = t->n ? t->list[0].log_weight : -INFINITY;
    double       counted = 0;
    int          at = 0;
    while (at < t->n && counted + t->list[at].count <= most) counted += t->list[at++].count;
    if (at == t->n || !isfinite(top)) return NAN;
    /* row `at` has the largest weight that the tail leaves out */
    const double log_cut = fmax(t->list[at].log_weight - top, log(2.2250738585072014e-308));
    exceedances  e = {t->list, 0, 0};
    for (int i = 0; i < at && t->list[i].log_weight - top > log_cut; i++) {
        t->list[i].log_weight = exp(t->list[i].log_weight - top) - exp(log_cut);
        e.n += t->list[i].count;
        e.rows++;
    }
    const double k = e.n < LEAST ? NAN : fit(&e);
    return isfinite(k) ? k : NAN;
}

double rws_pareto_k(const double *log_weights, const int *counts, int n)
{
    rws_tail t = {0};
    double   K = 0;
    bool     good = log_weights != NULL;
    for (int i = 0; i < n && good; i++) K += counts ? counts[i] : 1;
    for (int i = 0; i < n && good && K <= RWS_MAX_PARTICLES; i++)
        good = !isnan(log_weights[i]) && (!counts || counts[i] > 0) &&
               rws__tail_add(&t, log_weights[i], counts ? counts[i] : 1, (int)K);
    const double k = good && K >= 1 && K <= RWS_MAX_PARTICLES ? rws__tail_pareto_k(&t, (int)K) : NAN;
    rws__tail_release(&t);
    return k;
}

double rws_pareto_k_limit(int n_particles)
{
    return n_particles < 2 ? -INFINITY : fmin(1 - 1 / log10(n_particles), 0.7);
}
