/* special.c - special functions in double. */
#include "tensor/special.h"

#include <math.h>
#include <stdbool.h>

double rws__lgamma(double x)
{
    int sign;
    return lgamma_r(x, &sign);
}

/* ---- densities with large parameters */

/* log Gamma(x + 1) less Stirling's formula, (x + 1/2) log x - x + log(2 pi) / 2. x is above 0. */
static double stirling_error(double x)
{
    if (x < 16) return rws__lgamma(x + 1) - (x + 0.5) * log(x) + x - 0.91893853320467274178;
    const double z = 1 / (x * x);
    return (1 / 12.0 - z * (1 / 360.0 - z * (1 / 1260.0 - z * (1 / 1680.0 - z / 1188)))) / x;
}

/* x log(x / mean) + mean - x, which is (x - mean)^2 / 2 / mean where the two are near each other. */
static double deviance(double x, double mean)
{
    if (fabs(x - mean) >= 0.1 * (x + mean)) return x * log(x / mean) + mean - x;
    const double v = (x - mean) / (x + mean);
    double       sum = (x - mean) * v, term = 2 * x * v;
    for (int j = 1; j < 100; j++) {
        term *= v * v;
        const double next = sum + term / (2 * j + 1);
        if (next == sum) break;
        sum = next;
    }
    return sum;
}

/* log(1 - x), from x or from y = 1 - x, whichever is smaller: it has more digits. */
static double log_rest(double x, double y)
{
    return x < 0.5 ? log1p(-x) : log(y);
}

double rws__log_binomial(double k, double n, double p, double q)
{
    if (k == 0) return n == 0 ? 0 : n * log_rest(p, q);
    if (k == n) return n * log_rest(q, p);
    return stirling_error(n) - stirling_error(k) - stirling_error(n - k) - deviance(k, n * p) - deviance(n - k, n * q) -
           0.5 * (log(2 * M_PI) + log(k) + log1p(-k / n));
}

double rws__log_poisson(double x, double mean)
{
    return x == 0 ? -mean : -stirling_error(x) - deviance(x, mean) - 0.5 * (log(2 * M_PI) + log(x));
}

/* ---- derivatives of log Gamma: the recurrence moves x up to FAR, where the asymptotic series of Abramowitz and Stegun
 * (6.3.18, 6.4.12, 6.4.14) is accurate to 1e-15; a reflection turns negative arguments into positive ones. */

#define FAR 12

static bool pole(double x)
{
    return x <= 0 && x == floor(x);
}

double rws__digamma(double x)
{
    double below = 0;
    if (pole(x)) return NAN;
    if (x < 0) return rws__digamma(1 - x) - M_PI / tan(M_PI * (x - floor(x)));
    for (; x < FAR; x++) below += 1 / x;
    const double z = 1 / (x * x);
    return log(x) - 0.5 / x - below -
           z * (1 / 12.0 - z * (1 / 120.0 - z * (1 / 252.0 - z * (1 / 240.0 - z * (1 / 132.0 - z * 691 / 32760)))));
}

double rws__trigamma(double x)
{
    double below = 0;
    if (pole(x)) return NAN;
    if (x < 0) {
        const double s = sin(M_PI * (x - floor(x)));
        return M_PI * M_PI / (s * s) - rws__trigamma(1 - x);
    }
    for (; x < FAR; x++) below += 1 / (x * x);
    const double z = 1 / (x * x);
    return below + 0.5 * z +
           (1 + z * (1 / 6.0 - z * (1 / 30.0 - z * (1 / 42.0 - z * (1 / 30.0 - z * (5 / 66.0 - z * 691 / 2730)))))) / x;
}

double rws__tetragamma(double x)
{
    double below = 0;
    if (pole(x)) return NAN;
    if (x < 0) {
        const double s = sin(M_PI * (x - floor(x))), c = cos(M_PI * (x - floor(x)));
        return rws__tetragamma(1 - x) - 2 * M_PI * M_PI * M_PI * c / (s * s * s);
    }
    for (; x < FAR; x++) below += 2 / (x * x * x);
    const double z = 1 / (x * x);
    return -below -
           z * (1 + 1 / x + z * (0.5 - z * (1 / 6.0 - z * (1 / 6.0 - z * (3 / 10.0 - z * (5 / 6.0 - z * 691 / 210))))));
}

/* ---- tails of the normal distribution */

/* Far out, Q(z) = phi(z) / z (1 - 1 / z^2 + 3 / z^4 - 15 / z^6 + 105 / z^8 - …). */
double rws__log_tail(double z)
{
    if (z < 25) return log(0.5 * erfc(z * M_SQRT1_2));
    if (isinf(z)) return -INFINITY;
    const double y = 1 / (z * z);
    return -z * z / 2 - log(z) - 0.91893853320467274178 + log1p(-y * (1 - y * (3 - y * (15 - y * (105 - y * 945)))));
}

/* Newton's method on log Q, which is concave. Q(z) <= exp(-z^2 / 2) / 2 gives a start that is not below the solution,
 * so the steps go down to it. */
double rws__tail_inverse(double log_q)
{
    double z = sqrt(fmax(0, -2 * (log_q + M_LN2)));
    for (int i = 0; i < 60; i++) {
        const double at = rws__log_tail(z), hazard = exp(-z * z / 2 - 0.91893853320467274178 - at);
        const double step = (at - log_q) / hazard;
        z += step;
        if (!(fabs(step) > 1e-15 * (1 + z))) break;
    }
    return z;
}

/* ---- the incomplete Gamma function, with its derivative by the shape */

#define MAX_TERMS 100000
#define EPSILON 1e-16

/* P(a, x) = x^a e^-x / Gamma(a + 1) (1 + x / (a + 1) + x^2 / ((a + 1) (a + 2)) + …), for x < a + 1. */
static rws_gamma_cdf gamma_series(double a, double x)
{
    double term = 1, slope = 0, sum = 1, slopes = 0; /* slope: of log term by a */
    for (int n = 1; n < MAX_TERMS && term > EPSILON * sum; n++) {
        term *= x / (a + n);
        slope -= 1 / (a + n);
        sum += term;
        slopes += term * slope;
    }
    const double p = exp(a * log(x) - x - rws__lgamma(a + 1)) * sum;
    return (rws_gamma_cdf){p, 1 - p, p * (log(x) - rws__digamma(a + 1) + slopes / sum)};
}

/* A number and its derivatives by two shapes. */
typedef struct {
    double x, by[2];
} dual;

/* One step of Lentz' method for a continued fraction 1 + c1 / (1 + c2 / (1 + …)) with dual coefficients, or of the like
 * with 1 replaced by b: d = 1 / (b + c d), e = b + c / e. The value is multiplied by d e, and the derivatives of its
 * logarithm are added to. */
static double lentz(dual b, dual c, dual *d, dual *e, double *log_slope)
{
    const double down = b.x + c.x * d->x, up = b.x + c.x / e->x;
    for (int k = 0; k < 2; k++) {
        const double down_by = b.by[k] + c.by[k] * d->x + c.x * d->by[k];
        const double up_by = b.by[k] + c.by[k] / e->x - c.x * e->by[k] / (e->x * e->x);
        d->by[k] = -down_by / (down * down);
        e->by[k] = up_by;
        log_slope[k] += up_by / up - down_by / down;
    }
    d->x = 1 / down;
    e->x = up;
    return up / down;
}

/* Q(a, x) = x^a e^-x / Gamma(a) / (x + 1 - a - 1 (1 - a) / (x + 3 - a - 2 (2 - a) / (x + 5 - a - …))), for x >= a + 1.
 * */
static rws_gamma_cdf gamma_fraction(double a, double x)
{
    const double first = x + 1 - a;
    dual         d = {1 / first, {1 / (first * first), 0}}, e = {1e300, {0, 0}};
    double       value = d.x, log_slope[2] = {1 / first, 0}, step = 0;
    for (int n = 1; n < MAX_TERMS && fabs(step - 1) > EPSILON; n++)
        value *= step = lentz((dual){x + 2 * n + 1 - a, {-1, 0}}, (dual){-n * (n - a), {n, 0}}, &d, &e, log_slope);
    const double q = exp(a * log(x) - x - rws__lgamma(a)) * value;
    return (rws_gamma_cdf){1 - q, q, -q * (log(x) - rws__digamma(a) + log_slope[0])};
}

rws_gamma_cdf rws__gamma_below(double a, double x)
{
    if (x <= 0) return (rws_gamma_cdf){0, 1, 0};
    if (isinf(x)) return (rws_gamma_cdf){1, 0, 0};
    return x < a + 1 ? gamma_series(a, x) : gamma_fraction(a, x);
}

/* Newton's method on y = log x, kept within a bracket that shrinks. The start is Wilson and Hilferty's, or for small
 * shapes the first term of the series. */
double rws__gamma_quantile(double a, double u, double *by_a)
{
    double       low = -1e4, high = 1e4, y = (log(u) + rws__lgamma(a + 1)) / a;
    const double z = u < 0.5 ? -rws__tail_inverse(log(u)) : rws__tail_inverse(log1p(-u));
    const double root = 1 - 1 / (9 * a) + z / (3 * sqrt(a));
    if (a > 0.5 && root > 0.1) y = log(a) + 3 * log(root);
    for (int i = 0; i < 200; i++) {
        const rws_gamma_cdf s = rws__gamma_below(a, exp(y));
        const double        gap = u < 0.5 ? s.below - u : 1 - u - s.above;
        const double        density = exp(a * y - exp(y) - rws__lgamma(a)); /* of y */
        if (gap > 0) high = y;
        else low = y;
        const double step = -gap / density, next = y + step;
        const bool   inside = next > low && next < high;
        if (inside && fabs(step) < 1e-13 * (1 + fabs(y))) {
            y = next;
            break;
        }
        if (gap == 0 || high - low < 1e-14 * (1 + fabs(y))) break;
        y = inside && fabs(step) < 20 ? next : inside ? y + copysign(20, step) : (low + high) / 2;
        if (!(y > low && y < high)) y = (low + high) / 2;
    }
    const double x = exp(y);
    *by_a = x == 0 ? 0 : -rws__gamma_below(a, x).by_a * x / exp(a * y - x - rws__lgamma(a));
    return x;
}

/* ---- the incomplete Beta function, with its derivatives by the shapes */

/* I_x(a, b) = x^a y^b / (a B(a, b)) / (1 + c1 / (1 + c2 / …)), y = 1 - x, for x below the mean (Numerical Recipes 6.4,
 * with derivatives as Boik and Robison-Cox have them). */
static double beta_fraction(double a, double b, double x, double y, double *by_a, double *by_b)
{
    const dual one = {1, {0, 0}};
    dual       d = {0, {0, 0}}, e = one;
    double     value = 1, log_slope[2] = {0, 0}, step;
    /* 1 / (1 + c1 / (1 + …)): first the leading 1, then c1 = -(a + b) x / (a + 1) and the pairs that follow */
    {
        const double c = -(a + b) * x / (a + 1);
        const dual   c1 = {c, {-x / (a + 1) - c / (a + 1), -x / (a + 1)}};
        const double down = 1 + c1.x;
        d.x = 1 / down;
        for (int k = 0; k < 2; k++) {
            d.by[k] = -c1.by[k] / (down * down);
            log_slope[k] = -c1.by[k] / down;
        }
        value = d.x;
    }
    for (int m = 1; m < MAX_TERMS; m++) {
        const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        const dual   c2 = {even,
                           {-even * (1 / (a + 2 * m - 1) + 1 / (a + 2 * m)), m * x / ((a + 2 * m - 1) * (a + 2 * m))}};
        const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        const dual   c3 = {
              odd, {odd * (1 / (a + m) + 1 / (a + b + m) - 1 / (a + 2 * m) - 1 / (a + 2 * m + 1)), odd / (a + b + m)}};
        step = lentz(one, c2, &d, &e, log_slope);
        step *= lentz(one, c3, &d, &e, log_slope);
        value *= step;
        if (fabs(step - 1) < EPSILON) break;
    }
    const double share =
        exp(rws__lgamma(a + b) - rws__lgamma(a + 1) - rws__lgamma(b) + a * log(x) + b * log(y)) * value;
    *by_a = share * (log(x) + rws__digamma(a + b) - rws__digamma(a + 1) + log_slope[0]);
    *by_b = share * (log(y) + rws__digamma(a + b) - rws__digamma(b) + log_slope[1]);
    return share;
}

rws_beta_cdf rws__beta_below(double a, double b, double x, double y)
{
    rws_beta_cdf s = {0, 1, 0, 0};
    if (x <= 0) return s;
    if (y <= 0) return (rws_beta_cdf){1, 0, 0, 0};
    if (x * (a + b + 2) < a + 1) {
        s.below = beta_fraction(a, b, x, y, &s.by_a, &s.by_b);
        s.above = 1 - s.below;
    } else {
        s.above = beta_fraction(b, a, y, x, &s.by_b, &s.by_a);
        s.below = 1 - s.above;
        s.by_a = -s.by_a;
        s.by_b = -s.by_b;
    }
    return s;
}

/* Newton's method on t = log(x / (1 - x)), kept within a bracket that shrinks. */
double rws__beta_quantile(double a, double b, double u, double *by_a, double *by_b)
{
    const double log_norm = rws__lgamma(a + b) - rws__lgamma(a) - rws__lgamma(b);
    double       low = -700, high = 700, t = log(a) - log(b), x = 0, y = 1, density = 0;
    for (int i = 0; i < 200; i++) {
        x = 1 / (1 + exp(-t)), y = 1 / (1 + exp(t));
        const rws_beta_cdf s = rws__beta_below(a, b, x, y);
        const double       gap = u < 0.5 ? s.below - u : 1 - u - s.above;
        density = exp(log_norm + a * log(x) + b * log(y)); /* of t */
        if (gap > 0) high = t;
        else low = t;
        const double step = -gap / density, next = t + step;
        if (gap == 0 || fabs(step) < 1e-13 * (1 + fabs(t)) || high - low < 1e-13 * (1 + fabs(t))) break;
        t = next > low && next < high ? next : (low + high) / 2;
    }
    const rws_beta_cdf s = rws__beta_below(a, b, x, y);
    *by_a = density > 0 ? -s.by_a * x * y / density : 0;
    *by_b = density > 0 ? -s.by_b * x * y / density : 0;
    return x;
}
