#include "estimator/weights.h"

#include "base/vecmath.h"

/* Two sums that begin anew at each datum stay in registers, without a branch, which the processor could not predict: they
 * are cleared by a mask, all ones if a row is of the same datum as the one before it. */
typedef double  d2 __attribute__((vector_size(16)));
typedef int64_t l2 __attribute__((vector_size(16)));

static inline d2 unless_new(d2 sums, uint32_t datum, uint32_t last)
{
    static const l2 mask[2] = {{0, 0}, {-1, -1}};
    return (d2)((l2)sums & mask[datum == last]);
}

/* The largest log-weight of each datum; where a datum begins, the largest so far is -inf. */
static void find_tops(const rws_scores *s)
{
    static const double add[2] = {-INFINITY, 0};
    const double       *l = s->l;
    double             *L = s->L, top = 0;
    const uint32_t     *datum = s->datum, n = (uint32_t)s->n;
    uint32_t            last = UINT32_MAX;
    for (uint32_t i = 0; i < n; i++) {
        top += add[datum[i] == last];
        top = l[i] > top ? l[i] : top;
        last = datum[i];
        L[last] = top;
    }
}

/* w of a particle becomes that of its row; total and squares become sums over a datum of the weights, and of their squares. */
static void add_weights(const rws_scores *s, double *total, double *squares)
{
    double         *w = s->w;
    const uint32_t *datum = s->datum, *count = s->count, n = (uint32_t)s->n;
    d2              sums = {0};
    uint32_t        last = UINT32_MAX;
    for (uint32_t i = 0; i < n; i++) {
        const double one = w[i], all = one * count[i];
        w[i] = all;
        sums = unless_new(sums, datum[i], last) + (d2){all, all} * (d2){1, one};
        last = datum[i];
        total[last] = sums[0];
        squares[last] = sums[1];
    }
}

/* Exponentials and logarithms are taken of whole tables at once, which vectorises; sums are per datum in between. */
void rws__weigh(rws_scores *s, double share, rws_tally *tally)
{
    const int       n = s->n, B = s->B;
    const uint32_t *datum = s->datum;
    const double   *log_p = s->log_p, *log_d = s->log_d;
    double         *l = s->l, *w = s->w, *L = s->L, *coef = s->coef_p, *ess = coef; /* ess is overwritten at the end */
    double         *log_mean = s->work[0], *scale = s->work[1]; /* a number per datum, and data have rows */
#pragma omp simd
    for (int i = 0; i < n; i++) l[i] = log_p[i] == -INFINITY ? -INFINITY : log_p[i] - log_d[i];
    find_tops(s);
#pragma omp simd
    for (int i = 0; i < n; i++) w[i] = l[i] - (L[datum[i]] == -INFINITY ? 0 : L[datum[i]]);
#pragma omp simd
    for (int i = 0; i < n; i++) w[i] = exp(w[i]);
    add_weights(s, log_mean, scale);
#pragma omp simd
    for (int d = 0; d < B; d++) {
        const double total = log_mean[d], squares = scale[d];
        ess[d] = total == 0 ? 0 : total * total / squares;
        scale[d] = total == 0 ? 1 : 1 / total;
        log_mean[d] = total / s->K;
    }
    for (int d = 0; d < B; d++) tally->ess += ess[d];
#pragma omp simd
    for (int i = 0; i < n; i++) w[i] *= scale[datum[i]];
#pragma omp simd
    for (int i = 0; i < n; i++) coef[i] = share * w[i];
#pragma omp simd
    for (int d = 0; d < B; d++) log_mean[d] = log(log_mean[d]);
    tally->n_data += (uint64_t)B;
    for (int d = 0; d < B; d++) {
        L[d] += log_mean[d];
        if (L[d] == -INFINITY) tally->impossible++;
        else tally->log_evidence += L[d];
    }
}

void rws__weigh_given(rws_scores *s)
{
    for (int i = 0; i < s->n && s->coef_given; i++) s->coef_given[i] = s->coef_p[i];
}

/* log of the sum of the weights of all particles but one of row `without` of a datum, on the scale of its own largest
 * weight; and the same with the geometric mean of those weights added. */
static double log_others(const rws_scores *s, int d, uint32_t without, bool with_geometric)
{
    double top = -INFINITY, total = 0, mean = 0;
    for (uint32_t i = s->start[d]; i < s->start[d + 1]; i++)
        if ((i != without || s->count[i] > 1) && s->l[i] > top) top = s->l[i];
    if (top == -INFINITY) return top;
    for (uint32_t i = s->start[d]; i < s->start[d + 1]; i++) {
        const double others = (double)s->count[i] - (i == without);
        if (others == 0) continue; /* its weight may be infinite on this scale */
        total += others * exp(s->l[i] - top);
        mean += others * s->l[i] / (s->K - 1);
    }
    const double log_sum = top + log(total);
    return with_geometric ? rws__log_add(log_sum, mean) : log_sum;
}

/* Sums run from both ends of a datum, so that nothing is ever subtracted: neither a dominating weight nor one of -inf
 * does harm. Weights are on the scale of their total; the one row that may make up nearly all of it is done over. */
void rws__leave_one_out(rws_scores *s, bool with_geometric, double *log_rest)
{
    const int       n = s->n;
    const uint32_t *datum = s->datum, *count = s->count;
    const double   *l = s->l, *w = s->w, *L = s->L, share = 1.0 / (s->K - 1), log_K = log(s->K);
    double         *mean = s->work[1]; /* of the others' log-weights, less the log of the total */
    double         *sum = s->work[0] == log_rest ? mean : s->work[0];
    d2              sums = {0};
    uint32_t        last = UINT32_MAX;
    for (int i = 0; i < n; i++) {
        const double others = count[i] - 1.0, own = others > 0 ? l[i] : 0; /* which may be -inf */
        sums = unless_new(sums, datum[i], last);
        const d2 before = sums + (d2){others * w[i] / count[i], others} * (d2){1, own};
        log_rest[i] = before[0];
        mean[i] = before[1];
        sums += (d2){w[i], l[i]} * (d2){1, count[i]};
        last = datum[i];
    }
    last = UINT32_MAX;
    for (int i = n; i-- > 0;) {
        sums = unless_new(sums, datum[i], last);
        const d2 all = (d2){log_rest[i], mean[i]} + sums;
        log_rest[i] = all[0];
        mean[i] = all[1];
        sums += (d2){w[i], l[i]} * (d2){1, count[i]};
        last = datum[i];
    }
    if (with_geometric) {
#pragma omp simd
        for (int i = 0; i < n; i++) mean[i] = share * mean[i] - (L[datum[i]] + log_K);
#pragma omp simd
        for (int i = 0; i < n; i++) mean[i] = exp(mean[i]);
    }
#pragma omp simd
    for (int i = 0; i < n; i++) sum[i] = log_rest[i] + (with_geometric ? mean[i] : 0);
#pragma omp simd
    for (int i = 0; i < n; i++) sum[i] = log(sum[i]);
    int far = 0; /* rows whose rest is too small a share of the total */
#pragma omp simd reduction(+ : far)
    for (int i = 0; i < n; i++) {
        far += !(log_rest[i] > 1e-200);
        log_rest[i] = log_rest[i] > 1e-200 ? L[datum[i]] + log_K + sum[i] : NAN;
    }
    for (int i = 0; i < n && far; i++)
        if (isnan(log_rest[i])) log_rest[i] = log_others(s, (int)datum[i], (uint32_t)i, with_geometric);
}
