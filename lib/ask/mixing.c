/* mixing.c - R-hat compares chains that began apart: if they have forgotten where, each half of each chain varies as all do.
 *
 *     draws -> ranks r of all S -> z = Phi^-1((r - 3/8) / (S + 1/4))     normal, whatever the draws are
 *     W     mean variance within the M halves of n draws
 *     B     n times the variance of their means
 *
 *     R-hat = sqrt(((n - 1) / n W + B / n) / W),        effective draws = S ((n - 1) / n W + B / n) / B
 *
 * The same of |draw - median| sees chains with one mean and different scales. With many short chains the means tell the error
 * without autocorrelations (Margossian et al., 2024).
 */
#include "ask/mixing.h"

#include "ask/ask.h"

#include <stdlib.h>
#include <string.h>

/* The quantile of the standard normal at p, by Newton's method from a rough start. */
static double normal_quantile(double p)
{
    const double low = p < 0.5 ? p : 1 - p, t = sqrt(-2 * log(low));
    double       x = -(t - (2.515517 + 0.802853 * t + 0.010328 * t * t) /
                         (1 + 1.432788 * t + 0.189269 * t * t + 0.001308 * t * t * t));
    for (int i = 0; i < 3; i++) x -= (erfc(-x * M_SQRT1_2) / 2 - low) / (exp(-x * x / 2) / sqrt(2 * M_PI));
    return p < 0.5 ? x : -x;
}

typedef struct {
    double value;
    int    at;
} ranked;

static int by_value(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    return rws__number_order(x->value, y->value);
}

/* Replaces S numbers by z; equal ones share the mean of their ranks. */
static void normalise(double *x, int S, ranked *scratch)
{
    for (int i = 0; i < S; i++) scratch[i] = (ranked){x[i], i};
    qsort(scratch, (size_t)S, sizeof *scratch, by_value);
    for (int i = 0, next; i < S; i = next) {
        for (next = i; next < S && scratch[next].value == scratch[i].value;) next++;
        const double z = normal_quantile(((i + 1 + next) / 2.0 - 0.375) / (S + 0.25));
        for (int k = i; k < next; k++) x[scratch[k].at] = z;
    }
}

/* Compares M sequences of n numbers, which stand one after the other in x. */
static rws_mixing compare(const double *x, int M, int n)
{
    double all = 0, W = 0, B = 0;
    for (int i = 0; i < M * n; i++) all += x[i] / (M * n);
    for (int m = 0; m < M; m++) {
        double mean = 0;
        for (int t = 0; t < n; t++) mean += x[m * n + t] / n;
        for (int t = 0; t < n; t++) W += (x[m * n + t] - mean) * (x[m * n + t] - mean) / (n - 1) / M;
        B += n * (mean - all) * (mean - all) / (M - 1);
    }
    const double S = M * n, variance = (n - 1.0) / n * W + B / n;
    return (rws_mixing){sqrt(variance / W), B > 0 ? fmin(S, S * variance / B) : S};
}

/* Copies the halves of all chains, without the middle draw of an odd number. */
static void split(const double *draws, int n_chains, int n, double *out)
{
    const int half = n / 2;
    for (int c = 0; c < n_chains; c++) {
        memcpy(out + 2 * c * half, draws + c * n, (size_t)half * sizeof *out);
        memcpy(out + (2 * c + 1) * half, draws + c * n + n - half, (size_t)half * sizeof *out);
    }
}

static bool are_equal(const double *x, int n)
{
    int i = 1;
    while (i < n && x[i] == x[0]) i++;
    return i >= n;
}

rws_mixing rws__mixing_of(const double *draws, int n_chains, int n)
{
    const int  half = n / 2, S = 2 * n_chains * half;
    rws_mixing out = {NAN, NAN};
    double    *x = malloc(((size_t)S + 1) * sizeof *x);
    ranked    *scratch = malloc(((size_t)S + 1) * sizeof *scratch);
    if (x && scratch && half >= 2) {
        split(draws, n_chains, n, x);
        for (int i = 0; i < S; i++) scratch[i] = (ranked){x[i], i};
        qsort(scratch, (size_t)S, sizeof *scratch, by_value);
        const double median = (scratch[(S - 1) / 2].value + scratch[S / 2].value) / 2;
        if (!are_equal(x, S) && isfinite(scratch[0].value) && isfinite(scratch[S - 1].value)) {
            normalise(x, S, scratch);
            out = compare(x, 2 * n_chains, half);
            split(draws, n_chains, n, x);
            for (int i = 0; i < S; i++) x[i] = fabs(x[i] - median);
            normalise(x, S, scratch);
            if (!are_equal(x, S)) out.r_hat = fmax(out.r_hat, compare(x, 2 * n_chains, half).r_hat);
        }
    }
    free(x);
    free(scratch);
    return out;
}

/* Sets the draws of a quantity that n numbers of a list have. */
static void take(const rws_quantity *list, int n, const int *state, int S, int n_traces, double *of_trace,
                 double *draws)
{
    const double absent = list[0].value - fabs(list[0].value) - 1; /* below the lowest, which is the first */
    for (int i = 0; i < n_traces; i++) of_trace[i] = absent;
    for (int i = 0; i < n; i++) of_trace[list[i].trace] = list[i].value;
    for (int i = 0; i < S; i++) draws[i] = of_trace[state[i]];
}

bool rws__mixing_worst(const rws_quantities *o, const int *state, int n_chains, int n, rws_mixing *out,
                       char worst[static RWS_QUANTITY_NAME])
{
    const int S = n_chains * n;
    int       n_traces = 0;
    for (int i = 0; i < S; i++) n_traces = state[i] >= n_traces ? state[i] + 1 : n_traces;
    for (int i = 0; i < o->n; i++) n_traces = o->list[i].trace >= n_traces ? o->list[i].trace + 1 : n_traces;
    double *of_trace = malloc(((size_t)n_traces + 1) * sizeof *of_trace),
           *draws = malloc(((size_t)S + 1) * sizeof *draws);
    const bool good = of_trace && draws && !o->starved;
    *out = (rws_mixing){NAN, NAN};
    worst[0] = '\0';
    for (int i = 0, next; i < o->n && good; i = next) {
        next = rws__quantities_end(o, i);
        take(o->list + i, next - i, state, S, n_traces, of_trace, draws);
        const rws_mixing m = rws__mixing_of(draws, n_chains, n);
        if (m.r_hat > out->r_hat || (isnan(out->r_hat) && !isnan(m.r_hat))) {
            out->r_hat = m.r_hat;
            rws__quantity_name(&o->list[i], worst);
        }
        out->n_effective = fmin(m.n_effective, out->n_effective); /* fmin leaves NaN out */
    }
    free(of_trace);
    free(draws);
    return good;
}
