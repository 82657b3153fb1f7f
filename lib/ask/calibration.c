/* calibration.c - are ranks uniform? Tests, bands, coverage and the error of confidences, from a table of simulations.
 *
 * The test looks at the empirical distribution function at z = 1/GRID, …: with n uniform ranks, R(z) of them are below z with a
 * binomial distribution, and the statistic is the smallest two-sided binomial probability over all z (Säilynoja, Bürkner and
 * Vehtari, Statistics and Computing 32, 2022). Its p value is exact: the probability that R leaves a region is that of a Markov
 * chain over z, since R(z') - R(z) is binomial given R(z). The simultaneous bands come of the same probability.
 */
#include "ask/ask.h"
#include "base/error.h"

#include <glib.h>
#include <stdlib.h>
#include <string.h>

enum { GRID = RWS_CALIBRATION_GRID, BINS = RWS_CALIBRATION_BINS, LEAST = 50 /* ranks that are tested */ };

/* ---- the distribution of the smallest probability */

/* log n! up to n. */
typedef struct {
    double *log_factorial;
    int     n;
    int     low[GRID - 1], high[GRID - 1]; /* a region for R at each z */
    double *now, *next;                    /* probabilities of R, n + 1 each */
} chain;

static double log_binomial(const chain *c, int n, int r, double p)
{
    return c->log_factorial[n] - c->log_factorial[r] - c->log_factorial[n - r] + r * log(p) + (n - r) * log1p(-p);
}

/* Sets the region where 2 min(P(R <= r), P(R >= r)) is above gamma. */
static void set_region(chain *c, double gamma)
{
    for (int g = 0; g < GRID - 1; g++) {
        const double z = (g + 1.0) / GRID;
        double       below = 0, above = 0;
        int          low = 0, high = c->n;
        while (low < c->n && 2 * (below += exp(log_binomial(c, c->n, low, z))) <= gamma) low++;
        while (high > 0 && 2 * (above += exp(log_binomial(c, c->n, high, z))) <= gamma) high--;
        c->low[g] = low;
        c->high[g] = high;
    }
}

/* The probability that R is in the region at every z. */
static double stay(chain *c)
{
    int low = 0, high = 0;
    c->now[0] = 1;
    for (int g = 0; g < GRID - 1; g++) {
        const double p = 1.0 / (GRID - g);
        for (int s = c->low[g]; s <= c->high[g]; s++) {
            double sum = 0;
            for (int r = low; r <= high && r <= s; r++)
                if (c->now[r] > 0) sum += c->now[r] * exp(log_binomial(c, c->n - r, s - r, p));
            c->next[s] = sum;
        }
        low = c->low[g];
        high = c->high[g];
        double *swap = c->now;
        c->now = c->next;
        c->next = swap;
    }
    double sum = 0;
    for (int r = low; r <= high; r++) sum += c->now[r];
    return fmin(sum, 1);
}

static bool chain_init(chain *c, int n)
{
    *c = (chain){.log_factorial = malloc(((size_t)n + 1) * sizeof(double)),
                 .n = n,
                 .now = malloc(((size_t)n + 1) * sizeof(double)),
                 .next = malloc(((size_t)n + 1) * sizeof(double))};
    for (int i = 0; i <= n && c->log_factorial; i++) c->log_factorial[i] = lgamma(i + 1.0);
    return c->log_factorial && c->now && c->next;
}

static void chain_release(chain *c)
{
    free(c->log_factorial);
    free(c->now);
    free(c->next);
}

/* The smallest two-sided probability over z; R of n at each z. */
static double smallest(const chain *c, const int *R)
{
    double least = 1;
    for (int g = 0; g < GRID - 1; g++) {
        const double z = (g + 1.0) / GRID;
        double       below = 0, above = 0;
        for (int r = 0; r <= R[g]; r++) below += exp(log_binomial(c, c->n, r, z));
        for (int r = c->n; r >= R[g]; r--) above += exp(log_binomial(c, c->n, r, z));
        least = fmin(least, 2 * fmin(below, above));
    }
    return least;
}

/* Sets the region that R stays in with a probability of 0.95. */
static void set_band(chain *c)
{
    double low = 1e-3, high = 0.05;
    for (int i = 0; i < 7; i++) {
        const double middle = sqrt(low * high);
        set_region(c, middle);
        if (stay(c) >= 0.95) low = middle;
        else high = middle;
    }
    set_region(c, low);
}

/* ---- a quantity */

typedef struct {
    rws_calibration public;
    rws_arena memory;
} calibration;

static const double *find(const rws_frame *f, const char *name, size_t length, const char *what)
{
    rws_frame_column c;
    for (int i = 0; rws_frame_column_at(f, i, &c); i++)
        if (strncmp(c.name, name, length) == 0 && strcmp(c.name + length, what) == 0) return c.numbers;
    return NULL;
}

/* Counts ranks into bins and intervals. Returns how many there are. */
static int count_ranks(const double *rank, int n_rows, rws_calibrated *out, int *R)
{
    static const double widths[RWS_CALIBRATION_INTERVALS] = RWS_CALIBRATION_WIDTHS;
    int                 n = 0;
    for (int r = 0; r < n_rows; r++) {
        if (isnan(rank[r])) continue;
        n++;
        const int bin = (int)(rank[r] * BINS);
        out->histogram[bin < BINS ? bin : BINS - 1]++;
        for (int g = 0; g < GRID - 1; g++) R[g] += rank[r] < (g + 1.0) / GRID;
        for (int k = 0; k < RWS_CALIBRATION_INTERVALS; k++) out->coverage[k] += fabs(rank[r] - 0.5) < widths[k] / 2;
    }
    for (int k = 0; k < RWS_CALIBRATION_INTERVALS; k++) out->coverage[k] = n ? out->coverage[k] / n : NAN;
    return n;
}

/* The expected calibration error of the most probable values, in ten bins of equal width (Guo et al., 2017). */
static void set_confidence(const double *confidence, const double *correct, int n_rows, rws_calibrated *out)
{
    double sum[10] = {0}, right[10] = {0}, n = 0, hits = 0, error = 0;
    for (int r = 0; r < n_rows && confidence && correct; r++) {
        if (isnan(confidence[r]) || isnan(correct[r])) continue;
        const int bin = confidence[r] < 1 ? (int)(confidence[r] * 10) : 9;
        sum[bin] += confidence[r];
        right[bin] += correct[r];
        hits += correct[r];
        n++;
    }
    for (int b = 0; b < 10; b++) error += fabs(sum[b] - right[b]);
    out->confidence_error = n > 0 ? error / n : NAN;
    out->accuracy = n > 0 ? hits / n : NAN;
}

/* The chain for the present number of ranks, and its bands. Quantities mostly have equally many ranks. */
typedef struct {
    chain chain;
    int   low[GRID - 1], high[GRID - 1];
} bands;

static bool prepare(bands *b, int n)
{
    if (b->chain.n == n) return true;
    chain_release(&b->chain);
    if (!chain_init(&b->chain, n)) return false;
    set_band(&b->chain);
    memcpy(b->low, b->chain.low, sizeof b->low);
    memcpy(b->high, b->chain.high, sizeof b->high);
    return true;
}

/* Sets p, the differences of the distribution function and their bands. */
static bool test(bands *b, const int *R, rws_calibrated *out)
{
    if (!prepare(b, out->n)) return false;
    for (int g = 0; g < GRID - 1; g++) {
        const double z = (g + 1.0) / GRID;
        out->difference[g] = (double)R[g] / out->n - z;
        out->low[g] = (double)b->low[g] / out->n - z;
        out->high[g] = (double)b->high[g] / out->n - z;
    }
    set_region(&b->chain, smallest(&b->chain, R) * (1 + 1e-9));
    out->p = fmax(1 - stay(&b->chain), 0);
    return true;
}

/* Describes the ranks of a column. */
static bool describe(const rws_frame *f, const rws_frame_column *column, bool guide, bands *b, rws_arena *memory,
                     rws_calibrated *out)
{
    const size_t length = strlen(column->name) - strlen(guide ? ".rank_guide" : ".rank");
    char        *name = rws__arena_try(memory, length + 1);
    int          R[GRID - 1] = {0};
    if (!name) return false;
    memcpy(name, column->name, length);
    name[length] = '\0';
    *out = (rws_calibrated){.name = name, .guide = guide, .p = NAN, .p_adjusted = NAN};
    out->n = count_ranks(column->numbers, rws_frame_rows(f), out, R);
    set_confidence(find(f, name, length, guide ? ".confidence_guide" : ".confidence"),
                   find(f, name, length, guide ? ".correct_guide" : ".correct"), rws_frame_rows(f), out);
    return out->n < LEAST || test(b, R, out);
}

/* ---- all */

static int by_p(const void *a, const void *b)
{
    const rws_calibrated *x = *(rws_calibrated *const *)a, *y = *(rws_calibrated *const *)b;
    return (x->p > y->p) - (x->p < y->p);
}

/* Holm's adjustment, over all tested quantities of the posterior or of the guide. */
static bool adjust(rws_calibrated *list, int n, bool guide)
{
    rws_calibrated **tested = malloc(((size_t)n + 1) * sizeof *tested);
    int              m = 0;
    double           most = 0;
    for (int i = 0; i < n && tested; i++)
        if (list[i].guide == guide && !isnan(list[i].p)) tested[m++] = &list[i];
    if (tested) qsort(tested, (size_t)m, sizeof *tested, by_p);
    for (int i = 0; i < m; i++) {
        most = fmax(most, fmin(1, (m - i) * tested[i]->p));
        tested[i]->p_adjusted = most;
    }
    free(tested);
    return tested != NULL;
}

static rws_status make(const rws_frame *f, calibration *out, rws_error *err)
{
    rws_frame_column c;
    int              n = 0;
    bands            b = {.chain.n = -1};
    bool             good = true;
    while (rws_frame_column_at(f, n, &c)) n++;
    rws_calibrated *list = RWS_TRY_NEW(&out->memory, rws_calibrated, n + 1);
    out->public.list = list;
    for (int guide = 0; guide < 2 && list; guide++)
        for (int i = 0; rws_frame_column_at(f, i, &c) && good; i++)
            if (c.numbers && g_str_has_suffix(c.name, guide ? ".rank_guide" : ".rank"))
                good = describe(f, &c, guide, &b, &out->memory, &list[out->public.n++]);
    chain_release(&b.chain);
    const double *impossible = find(f, "impossible", strlen("impossible"), "");
    for (int r = 0; impossible && r < rws_frame_rows(f); r++) out->public.n_impossible += impossible[r] == 1;
    out->public.n_simulations = rws_frame_rows(f);
    good = good && list && adjust(list, out->public.n, false) && adjust(list, out->public.n, true);
    return good ? RWS_OK : rws_no_memory(err, "a calibration");
}

rws_status rws_calibration_new(const rws_frame *f, rws_calibration **out, rws_error *err)
{
    RWS_NEED(out, err);
    *out = NULL;
    RWS_NEED(f, err);
    calibration *c = calloc(1, sizeof *c);
    if (!c) return rws_no_memory(err, "a calibration");
    const rws_status status = make(f, c, err);
    *out = &c->public;
    if (status == RWS_OK) return RWS_OK;
    rws_calibration_free(*out);
    *out = NULL;
    return status;
}

void rws_calibration_free(rws_calibration *c)
{
    if (!c) return;
    rws__arena_free(&((calibration *)c)->memory);
    free(c);
}
