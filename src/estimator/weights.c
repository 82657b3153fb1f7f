#include "base/vecmath.h"
#include "estimator/weights.h"

bool rws_datum_weigh(const rws_scores *s, const double *log_q, int d, double *l, double *w, rws_datum *out,
                     rws_tally *tally)
{
    const int first = (int)s->start[d], n = (int)s->start[d + 1] - first;
    double    top = -INFINITY, total = 0, squares = 0;
    for (int i = 0; i < n; i++) {
        const double log_p = s->log_p[first + i];
        l[i] = log_p == -INFINITY ? -INFINITY : log_p - log_q[first + i];
        if (l[i] > top) top = l[i];
    }
    tally->n_data++;
    if (top == -INFINITY) {
        tally->impossible++;
        return false;
    }
#pragma omp simd
    for (int i = 0; i < n; i++) w[i] = exp(l[i] - top);
    for (int i = 0; i < n; i++) {
        const double one = w[i];
        w[i] *= s->count[first + i];
        total += w[i];
        squares += w[i] * one;
    }
    for (int i = 0; i < n; i++) w[i] *= 1 / total;
    *out = (rws_datum){first, n, s->K, top + log(total / s->K), l, w, s->count + first};
    tally->log_evidence += out->L;
    tally->ess += total * total / squares;
    return true;
}

void rws_weigh_each(const rws_method *m, rws_scores *s, double share, rws_tally *tally, rws_datum_function f)
{
    for (int d = 0; d < s->B; d++) {
        rws_datum datum;
        if (!rws_datum_weigh(s, s->log_d, d, s->work, s->work + s->most, &datum, tally)) continue;
        for (int i = 0; i < datum.n; i++) s->coef_p[datum.first + i] = share * datum.w[i];
        if (f) f(m, &datum, share, s);
    }
}

/* log of the sum of the weights of all particles but one of row i, by its own largest weight: for the rare row without
 * which nothing is left on the scale of the whole. */
static double log_others(const rws_datum *d, int i)
{
    double top = -INFINITY, total = 0;
    for (int j = 0; j < d->n; j++)
        if ((j != i || d->count[j] > 1) && d->l[j] > top) top = d->l[j];
    if (top == -INFINITY) return top;
    for (int j = 0; j < d->n; j++) total += (d->count[j] - (j == i)) * exp(d->l[j] - top);
    return top + log(total);
}

/* Sums from both ends, so that nothing is ever subtracted: neither a dominating weight nor one of -inf does harm. Weights
 * are on the scale of their total; at most one row can make up nearly all of it. */
void rws_leave_one_out(const rws_datum *d, bool with_geometric, double *log_rest, double *work)
{
    const double log_total = d->L + log(d->K);
    double       before = 0, l_before = 0, after = 0, l_after = 0;
    double      *mean = work; /* of the others' log-weights */
    for (int i = 0; i < d->n; i++) {
        const double one = d->w[i] / d->count[i], others = d->count[i] - 1.0;
        log_rest[i] = before + others * one;
        mean[i] = l_before + (others > 0 ? others * d->l[i] : 0);
        before += d->w[i];
        l_before += d->count[i] * d->l[i];
    }
    for (int i = d->n - 1; i >= 0; i--) {
        log_rest[i] += after;
        mean[i] += l_after;
        after += d->w[i];
        l_after += d->count[i] * d->l[i];
    }
    int lone = -1; /* the row without which next to nothing is left */
    for (int i = 0; i < d->n; i++)
        if (log_rest[i] < 1e-200) lone = i;
    if (with_geometric) {
        const double share = 1.0 / (d->K - 1);
#pragma omp simd
        for (int i = 0; i < d->n; i++) log_rest[i] += exp(share * mean[i] - log_total);
    }
#pragma omp simd
    for (int i = 0; i < d->n; i++) log_rest[i] = log_total + log(log_rest[i]);
    if (lone < 0) return;
    log_rest[lone] = log_others(d, lone);
    if (!with_geometric) return;
    double l_total = 0;
    for (int j = 0; j < d->n; j++)
        if (j != lone) l_total += d->count[j] * d->l[j];
    log_rest[lone] = rws_log_add(log_rest[lone], l_total / (d->K - 1));
}
