#include "estimator/weights.h"

#include "base/vecmath.h"

/* Exponentials and logarithms are taken of whole tables at once, which vectorises; sums are per datum in between. */
void rws__weigh(rws_scores *s, double share, rws_tally *tally)
{
    const size_t n = (size_t)s->n;
    for (size_t i = 0; i < n; i++) s->l[i] = s->log_p[i] == -INFINITY ? -INFINITY : s->log_p[i] - s->log_d[i];
    for (int d = 0; d < s->B; d++) {
        double top = -INFINITY;
        for (uint32_t i = s->start[d]; i < s->start[d + 1]; i++) top = s->l[i] > top ? s->l[i] : top;
        s->L[d] = top;
        const double shift = top == -INFINITY ? 0 : top;
        for (uint32_t i = s->start[d]; i < s->start[d + 1]; i++) s->w[i] = s->l[i] - shift;
    }
#pragma omp simd
    for (size_t i = 0; i < n; i++) s->w[i] = exp(s->w[i]);
    double *log_mean = s->work[0]; /* a number per datum, and data have rows */
    for (int d = 0; d < s->B; d++) {
        double total = 0, squares = 0;
        for (uint32_t i = s->start[d]; i < s->start[d + 1]; i++) {
            const double one = s->w[i];
            s->w[i] *= s->count[i];
            total += s->w[i];
            squares += s->w[i] * one;
        }
        log_mean[d] = total / s->K;
        if (total == 0) continue;
        const double scale = 1 / total;
        for (uint32_t i = s->start[d]; i < s->start[d + 1]; i++) s->w[i] *= scale;
        tally->ess += total * total / squares;
    }
    for (size_t i = 0; i < n; i++) s->coef_p[i] = share * s->w[i];
#pragma omp simd
    for (int d = 0; d < s->B; d++) log_mean[d] = log(log_mean[d]);
    tally->n_data += (uint64_t)s->B;
    for (int d = 0; d < s->B; d++) {
        s->L[d] += log_mean[d];
        if (s->L[d] == -INFINITY) tally->impossible++;
        else tally->log_evidence += s->L[d];
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
    double      *mean = s->work[1]; /* of the others' log-weights, less the log of the total */
    const double share = 1.0 / (s->K - 1), log_K = log(s->K);
    for (int d = 0; d < s->B; d++) {
        const double log_total = s->L[d] + log_K;
        double       before = 0, l_before = 0, after = 0, l_after = 0;
        for (uint32_t i = s->start[d]; i < s->start[d + 1]; i++) {
            const double others = s->count[i] - 1.0, l = others > 0 ? s->l[i] : 0; /* which may be -inf */
            log_rest[i] = before + others * s->w[i] / s->count[i];
            mean[i] = l_before + others * l;
            before += s->w[i];
            l_before += s->count[i] * s->l[i];
        }
        for (uint32_t i = s->start[d + 1]; i-- > s->start[d];) {
            log_rest[i] += after;
            mean[i] = share * (mean[i] + l_after) - log_total;
            after += s->w[i];
            l_after += s->count[i] * s->l[i];
        }
    }
    const size_t n = (size_t)s->n;
    if (with_geometric) {
#pragma omp simd
        for (size_t i = 0; i < n; i++) mean[i] = exp(mean[i]);
    }
    double *sum = s->work[0] == log_rest ? mean : s->work[0];
    for (size_t i = 0; i < n; i++) sum[i] = log_rest[i] + (with_geometric ? mean[i] : 0);
#pragma omp simd
    for (size_t i = 0; i < n; i++) sum[i] = log(sum[i]);
    for (int d = 0; d < s->B; d++)
        for (uint32_t i = s->start[d]; i < s->start[d + 1]; i++)
            log_rest[i] = log_rest[i] > 1e-200 ? s->L[d] + log_K + sum[i] : log_others(s, d, i, with_geometric);
}
