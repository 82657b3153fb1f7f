#include "estimator/weights.h"

#include "base/vecmath.h"

/* Eight rows at a time. How many rows a datum has cannot be predicted, and most data have at most eight: so a datum is worked
 * on in vectors, whose lanes that belong to the data behind it are masked where they are read. They are written all the same:
 * the next datum overwrites them. Tables of rows have space for that behind their ends (RWS_ROWS_BEHIND). */
typedef double  d8 __attribute__((vector_size(64), aligned(8), may_alias));
typedef int64_t l8 __attribute__((vector_size(64), aligned(8), may_alias));

#define AT8(p) (*(d8 *)(p))
#define GET8(p) (*(const d8 *)(p))
#define LANES(x, ...) __builtin_shufflevector((x), (x), __VA_ARGS__)

/* A mask: those of the eight rows from `first` on that are before `end`. */
static inline l8 rows_before(uint32_t first, uint32_t end)
{
    static const int64_t edge[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
    return *(const l8 *)(edge + 8 - (end - first < 8 ? end - first : 8));
}

static inline d8 only(l8 rows, d8 x)
{
    return (d8)((l8)x & rows);
}

static inline d8 choose8(l8 rows, d8 a, d8 b)
{
    return (d8)(((l8)a & rows) | ((l8)b & ~rows));
}

static inline d8 larger8(d8 a, d8 b)
{
    return choose8(a > b, a, b);
}

/* In every lane, the largest of all lanes; their sum; the sum of the other lanes, from which nothing was subtracted. */
static inline d8 top8(d8 x)
{
    x = larger8(x, LANES(x, 1, 0, 3, 2, 5, 4, 7, 6));
    x = larger8(x, LANES(x, 2, 3, 0, 1, 6, 7, 4, 5));
    return larger8(x, LANES(x, 4, 5, 6, 7, 0, 1, 2, 3));
}

static inline d8 sum8(d8 x)
{
    x += LANES(x, 1, 0, 3, 2, 5, 4, 7, 6);
    x += LANES(x, 2, 3, 0, 1, 6, 7, 4, 5);
    return x + LANES(x, 4, 5, 6, 7, 0, 1, 2, 3);
}

static inline d8 others8(d8 x)
{
    const d8 one = LANES(x, 1, 0, 3, 2, 5, 4, 7, 6), two = x + one, three = one + LANES(two, 2, 3, 0, 1, 6, 7, 4, 5);
    const d8 four = two + LANES(two, 2, 3, 0, 1, 6, 7, 4, 5);
    return three + LANES(four, 4, 5, 6, 7, 0, 1, 2, 3);
}

void rws__rows_of_data(const rws_scores *s, const double *of_datum, double *to)
{
    for (int d = 0; d < s->B; d++)
        for (uint32_t i = s->start[d]; i < s->start[d + 1]; i += 8) AT8(to + i) = (d8){0} + of_datum[d];
}

/* L becomes the largest log-weight of a datum; `to`, the log-weights less that. */
static void take_off_tops(rws_scores *s, double *to)
{
    const d8 least = (d8){0} - INFINITY;
    for (int d = 0; d < s->B; d++) {
        const uint32_t end = s->start[d + 1];
        d8             top = least;
        for (uint32_t i = s->start[d]; i < end; i += 8) {
            const l8 rows = rows_before(i, end);
            top = larger8(choose8(rows, GET8(s->l + i), least), top);
        }
        top = top8(top);
        s->L[d] = top[0];
        top = only(top != least, top);
        for (uint32_t i = s->start[d]; i < end; i += 8) AT8(to + i) = GET8(s->l + i) - top;
    }
}

/* w = the weights of rows, whose particles have weight `one` each, divided by the sum of a datum, which becomes `total`.
 * Returns the sum over data of the effective number of particles. */
static double normalise(rws_scores *s, const double *one, const double *row, double share, double *total)
{
    double ess = 0;
    for (int d = 0; d < s->B; d++) {
        const uint32_t end = s->start[d + 1];
        d8             sum = {0}, squares = {0};
        for (uint32_t i = s->start[d]; i < end; i += 8) {
            const d8 w = only(rows_before(i, end), GET8(row + i));
            sum += w;
            squares += w * only(rows_before(i, end), GET8(one + i));
        }
        sum = sum8(sum), squares = sum8(squares);
        total[d] = sum[0];
        const bool   possible = sum[0] > 0;
        const double scale = 1 / (possible ? sum[0] : 1);
        ess += possible ? sum[0] * sum[0] / squares[0] : 0;
        for (uint32_t i = s->start[d]; i < end; i += 8) {
            const d8 w = GET8(row + i) * scale;
            AT8(s->w + i) = w;
            AT8(s->coef_p + i) = share * w;
        }
    }
    return ess;
}

/* Exponentials and logarithms are taken of whole tables at once. */
void rws__weigh(rws_scores *s, double share, rws_tally *tally)
{
    const int       n = s->n, B = s->B;
    const uint32_t *count = s->count;
    const double   *log_p = s->log_p, *log_d = s->log_d;
    double         *l = s->l, *one = s->work[0], *row = s->work[1], *L = s->L, *log_mean = s->work[2];
#pragma omp simd
    for (int i = 0; i < n; i++) l[i] = log_p[i] == -INFINITY ? -INFINITY : log_p[i] - log_d[i];
    take_off_tops(s, one);
#pragma omp simd
    for (int i = 0; i < n; i++) one[i] = exp(one[i]);
#pragma omp simd
    for (int i = 0; i < n; i++) row[i] = one[i] * (int32_t)count[i];
    tally->ess += normalise(s, one, row, share, log_mean);
#pragma omp simd
    for (int d = 0; d < B; d++) log_mean[d] = log(log_mean[d] / s->K);
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

/* rest = the sum of x over the rows of the same datum, the row itself left out. */
static void sum_others(const rws_scores *s, const double *x, double *rest)
{
    for (int d = 0; d < s->B; d++) {
        const uint32_t first = s->start[d], end = s->start[d + 1];
        d8             before = {0}, after = {0};
        for (uint32_t i = first; i < end; i += 8) AT8(rest + i) = others8(only(rows_before(i, end), GET8(x + i)));
        if (end - first <= 8) continue;
        for (uint32_t i = first; i < end; i += 8) {
            AT8(rest + i) += before;
            before += sum8(only(rows_before(i, end), GET8(x + i)));
        }
        for (uint32_t i = first + (end - first - 1) / 8 * 8;; i -= 8) {
            AT8(rest + i) += after;
            after += sum8(only(rows_before(i, end), GET8(x + i)));
            if (i == first) break;
        }
    }
}

/* l less the log of the sum of all weights of the datum; less nothing if that is 0. */
static void take_off_totals(const rws_scores *s, double *to)
{
    const double log_K = log(s->K);
    for (int d = 0; d < s->B; d++) {
        const double log_total = s->L[d] == -INFINITY ? 0 : s->L[d] + log_K;
        for (uint32_t i = s->start[d]; i < s->start[d + 1]; i += 8) AT8(to + i) = GET8(s->l + i) - log_total;
    }
}

/* In sums over others nothing is ever subtracted: neither a dominating weight nor one of -inf does harm. Weights are on the
 * scale of their total; the one row that may make up nearly all of it is done over. */
const double *rws__leave_one_out(rws_scores *s, bool with_geometric)
{
    const int       n = s->n;
    const uint32_t *count = s->count;
    const double   *w = s->w, share = 1.0 / (s->K - 1), log_K = log(s->K);
    double         *l = s->work[0], *all = s->work[1], *rest = s->work[2], *mean = s->coef_q, *gain = s->work[0];
    int             far = 0; /* rows whose rest is lost beside their own weight */
    sum_others(s, w, rest);
    for (int i = 0; i < n; i++) mean[i] = 0;
    if (with_geometric) {
        take_off_totals(s, l);
#pragma omp simd
        for (int i = 0; i < n; i++) all[i] = l[i] * (int32_t)count[i];
        sum_others(s, all, mean);
#pragma omp simd
        for (int i = 0; i < n; i++) {
            const double same = (int32_t)count[i] - 1;
            mean[i] = exp(share * (mean[i] + (same > 0 ? same * l[i] : 0))); /* l may be -inf */
        }
    }
#pragma omp simd reduction(+ : far)
    for (int i = 0; i < n; i++) {
        rest[i] += ((int32_t)count[i] - 1) * w[i] / (int32_t)count[i];
        far += !(rest[i] > 1e-200);
        mean[i] += rest[i];
    }
#pragma omp simd
    for (int i = 0; i < n; i++) gain[i] = -log(mean[i]);
    for (int i = 0; i < n && far; i++) {
        if (rest[i] > 1e-200) continue;
        const double log_rest = log_others(s, (int)s->datum[i], (uint32_t)i, with_geometric);
        gain[i] = log_rest == -INFINITY ? INFINITY : s->L[s->datum[i]] + log_K - log_rest;
    }
    return gain;
}
