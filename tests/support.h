/* support.h - what the tests of numbers share: a die of their own, the tails that statistical tests end in, and the
 * rule by which such a test may fail.
 *
 * The rule: a test looks at a sample and returns a p-value. Below LEVEL the sample is widened fourfold, with new
 * numbers, and looked at again; only a test that stays below LEVEL in all ROUNDS fails. A correct program fails one
 * such test in 1 / LEVEL^ROUNDS = 10^12 choices of the seeds; and the seeds are fixed, so what passed once passes
 * always.
 */
#ifndef RWS_TESTS_SUPPORT_H
#define RWS_TESTS_SUPPORT_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define LEVEL 1e-4
#define ROUNDS 3

/* ---- a die: 64-bit steps of an additive counter, mixed */

typedef struct {
    uint64_t state;
} die;

static inline uint64_t die_next(die *d)
{
    uint64_t x = d->state += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
    x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
    return x ^ (x >> 32);
}

static inline double die_between(die *d, double low, double high)
{
    return low + (high - low) * ((double)(die_next(d) >> 11) + 0.5) * 0x1p-53;
}

static inline int die_below(die *d, int n)
{
    return (int)(die_next(d) % (uint64_t)n);
}

/* ---- tails: the probability of something at least as far out */

static inline double normal_tail(double z)
{
    return erfc(fabs(z) / sqrt(2));
}

/* Upper tail of a chi-square variable: the upper incomplete gamma function at (dof / 2, x / 2), by a series or a continued
 * fraction. */
static inline double chi_square_tail(double x, int dof)
{
    const double a = dof / 2.0;
    x /= 2;
    if (x <= 0) return 1;
    const double front = exp(a * log(x) - x - lgamma(a));
    if (x < a + 1) {
        double term = 1 / a, sum = term;
        for (int n = 1; n < 10000 && term > 1e-16 * sum; n++) sum += term *= x / (a + n);
        return 1 - front * sum;
    }
    double b = x + 1 - a, c = 1e300, d = 1 / b, h = d;
    for (int n = 1; n < 10000; n++) {
        const double an = -n * (n - a);
        b += 2;
        d = 1 / (an * d + b);
        c = b + an / c;
        h *= c * d;
        if (fabs(c * d - 1) < 1e-15) break;
    }
    return front * h;
}

/* Pearson's test of n counts against expected ones. A cell that is expected to be empty must be; thin cells are pooled
 * with the ones after them. */
static inline double counts_tail(const double *seen, const double *expected, int n)
{
    double x = 0, s = 0, e = 0;
    int    cells = 0;
    for (int i = 0; i < n; i++) {
        if (expected[i] == 0 && seen[i] != 0) return 0;
        s += seen[i];
        e += expected[i];
        if (e < 5 && i + 1 < n) continue;
        if (e > 0) x += (s - e) * (s - e) / e, cells++;
        s = e = 0;
    }
    return cells < 2 ? 1 : chi_square_tail(x, cells - 1);
}

static inline int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Kolmogorov's and Smirnov's test that u, which it sorts, is uniform on (0, 1); Stephens' form of the tail. */
static inline double uniform_tail(double *u, size_t n)
{
    double d = 0, tail = 0;
    qsort(u, n, sizeof *u, by_size);
    for (size_t i = 0; i < n; i++) {
        if (!(u[i] >= 0 && u[i] <= 1)) return 0;
        d = fmax(d, fmax((double)(i + 1) / (double)n - u[i], u[i] - (double)i / (double)n));
    }
    const double root = sqrt((double)n), x = (root + 0.12 + 0.11 / root) * d;
    for (int k = 1; k <= 100; k++) tail += (k % 2 ? 2 : -2) * exp(-2 * k * k * x * x);
    return x < 0.2 ? 1 : fmin(fmax(tail, 0), 1);
}

/* That the mean of x is `mean`, by its own standard error; differences below `rounding` count as none. */
static inline double mean_tail(const double *x, size_t n, double mean, double rounding)
{
    double sum = 0, square = 0;
    for (size_t i = 0; i < n; i++) sum += x[i];
    const double at = sum / (double)n;
    for (size_t i = 0; i < n; i++) square += (x[i] - at) * (x[i] - at);
    const double error = sqrt(square / (double)(n - 1) / (double)n);
    if (fabs(at - mean) <= rounding) return 1;
    return error > 0 ? normal_tail((at - mean) / error) : 0;
}

/* ---- the rule. `look` draws a sample of `wide` times its usual size, with numbers that depend on `round`. */

typedef double (*test_look)(void *context, int round, int wide);

static inline void stays_likely(const char *what, test_look look, void *context)
{
    double p = 1;
    for (int round = 0, wide = 1; round < ROUNDS; round++, wide *= 4)
        if ((p = look(context, round, wide)) >= LEVEL) return;
    fail_msg("%s: p = %g after widening the sample twice", what, p);
}

/* ---- comparisons */

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

#define assert_near(value, expected, error)                                                                        \
    do {                                                                                                           \
        double value_ = (value), expected_ = (expected);                                                           \
        if (!(fabs(value_ - expected_) <= (error))) fail_msg("%s is %.17g, not %.17g", #value, value_, expected_); \
    } while (0)

static inline bool near(double got, double want, double tolerance)
{
    if (isnan(got) || isnan(want)) return false;
    if (isinf(got) || isinf(want)) return got == want;
    return fabs(got - want) <= tolerance;
}

/* The larger one; NaN if one of them is, which fmax would hide. */
static inline double worse(double a, double b)
{
    return a > b || isnan(a) ? a : b;
}

/* Relative to the wanted number if that is large. */
static inline bool close_to(double got, double want, double tolerance)
{
    return fabs(got - want) <= tolerance * (1 + fabs(want));
}

#endif
