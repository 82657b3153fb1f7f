/* von_mises.c - independent angles with the density exp(k cos(x - location)) / (2 pi I_0(k)), by location and
 * concentration k. A draw is an angle from -pi to pi; any angle can be scored.
 *
 * A draw is the quantile of a uniform number, so its derivative by k is the implicit one, -(dF/dk) / density (Figurnov et
 * al. 2018). With r_j = I_j(k) / I_0(k), the distribution function at location 0 is
 *
 *     F(x) = 1/2 + x / (2 pi) + 1/pi (the sum over j >= 1 of r_j sin(j x) / j),      dr_j/dk = (r_j-1 + r_j+1) / 2 - r_j r_1
 *
 * For large k, t = 2 sqrt(k) sin(x / 2) has the density phi(t) / sqrt(1 - t^2 / (4 k)) up to a constant: nearly a normal.
 */
#include "dist/each.h"
#include "tensor/special.h"

static const char *const positive[] = {NULL, "concentration"};

#define LARGE 300.0 /* concentrations above it are computed from powers of 1 / k */

enum { MAX_TERMS = 200 }; /* of the sum: r_j is about exp(-j^2 / (2 k)) */

/* I_1(k) / I_0(k) = 1 - *rest, where *rest is accurate also if it is small. */
static void first_ratio(double k, double *rest)
{
    if (k > LARGE) {
        const double h = 1 / k;
        *rest = h * (0.5 + h * (0.125 + h * (0.125 + h * 25 / 128)));
        return;
    }
    double p = 0; /* I_j / I_j-1, from the last down to the first */
    for (int j = 60 + (int)k; j > 0; j--) p = 1 / (2 * j / k + p);
    *rest = 1 - p;
}

/* log(I_0(k) e^-k) */
static double log_bessel(double k)
{
    double term = 1, sum = 1;
    if (k < 30) {
        for (int j = 1; term > 1e-17 * sum; j++) sum += term *= k / (2 * j) * (k / (2 * j));
        return log(sum) - k;
    }
    for (int j = 1; j < 30 && term > 1e-17; j++) sum += term *= (2 * j - 1) * (2 * j - 1) / (8 * k * j);
    return log(sum) - log(2 * M_PI * k) / 2;
}

static double density(const double *in, double *slope)
{
    const double d = in[0] - in[1], k = in[2], s = sin(d / 2), low = -2 * s * s; /* cos(d) - 1 */
    double       rest;
    if (!(k > 0) || isnan(d)) return NAN;
    first_ratio(k, &rest);
    slope[1] = k * sin(d);
    slope[0] = -slope[1];
    slope[2] = low + rest;
    return k * low - log_bessel(k) - log(2 * M_PI);
}

/* F(x) - 1/2 for x from 0 to pi, and its derivatives by x and by k. */
typedef struct {
    double share, by_x, by_k;
} half_share;

/* Writes the ratios r_0 … r_n-1 of k and returns n, which is at least 3 and at most MAX_TERMS. */
static int ratios(double k, double *r)
{
    const int n = 24 + (int)(9 * sqrt(k));
    double    p = 0;
    for (int j = n + 40; j >= n; j--) p = 1 / (2 * j / k + p);
    for (int j = n - 1; j > 0; j--) r[j] = p = 1 / (2 * j / k + p);
    r[0] = 1;
    for (int j = 1; j < n; j++)
        if ((r[j] *= r[j - 1]) < 1e-18 && j > 2) return j + 1; /* negligible, like all that follow */
    return n;
}

/* The sine and cosine of j x follow from those of (j - 1) x by a rotation, whose error grows like j times that of a double. */
static half_share share_by_series(const double *r, int n, double x)
{
    const double s1 = sin(x), c1 = cos(x);
    half_share   h = {x / (2 * M_PI), 0.5 / M_PI, 0};
    double       s = s1, c = c1;
    for (int j = 1; j + 1 < n; j++) {
        const double part = s / (j * M_PI), turned = c * c1 - s * s1;
        h.share += r[j] * part;
        h.by_x += r[j] * c / M_PI;
        h.by_k += ((r[j - 1] + r[j + 1]) / 2 - r[j] * r[1]) * part;
        s = s * c1 + c * s1;
        c = turned;
    }
    return h;
}

/* The integral of phi(s) (1 + s^2 / (8 k) + 3 s^4 / (128 k^2) + 5 s^6 / (1024 k^3)) from 0 to t, over that from -inf to inf,
 * at t = 2 sqrt(k) sin(x / 2). By parts: the integral of s^m phi is (m - 1) that of s^m-2 phi, minus t^m-1 phi(t). */
static half_share share_by_powers(double k, double x)
{
    const double t = 2 * sqrt(k) * sin(x / 2), phi = exp(-t * t / 2 - RWS_LOG_ROOT_2_PI), h = 1 / k;
    const double m0 = 0.5 * erf(t * M_SQRT1_2), m2 = m0 - t * phi, m4 = 3 * m2 - t * t * t * phi,
                 m6 = 5 * m4 - pow(t, 5) * phi;
    const double c2 = h / 8, c4 = 3 * h * h / 128, c6 = 5 * h * h * h / 1024;
    const double up = m0 + c2 * m2 + c4 * m4 + c6 * m6, all = 1 + c2 + 3 * c4 + 15 * c6;
    const double weight = phi * (1 + t * t * (c2 + t * t * (c4 + t * t * c6))); /* d up / dt */
    const double up_k = -h * (c2 * m2 + 2 * c4 * m4 + 3 * c6 * m6), all_k = -h * (c2 + 6 * c4 + 45 * c6);
    return (half_share){up / all, weight * sqrt(k) * cos(x / 2) / all,
                        (up_k + weight * t * h / 2) / all - up * all_k / (all * all)};
}

/* The x from 0 to pi with F(x) - 1/2 = v by Newton's method within a bracket that shrinks, and its derivative by k. */
static double half_quantile(double k, double v, double *by_k)
{
    double     low = 0, high = M_PI, x = v * 2 * M_PI, r[MAX_TERMS];
    const int  n = k > LARGE ? 0 : ratios(k, r);
    half_share h = {0};
    if (k > 1)
        x = fmin(x, v / sqrt(k) * 2.5); /* below the solution, where F is concave and Newton's steps do not overshoot */
    for (int i = 0; i < 200; i++) {
        h = n ? share_by_series(r, n, x) : share_by_powers(k, x);
        const double gap = h.share - v;
        if (gap > 0) high = x;
        else low = x;
        const double next = x - gap / h.by_x;
        if (fabs(next - x) <= 1e-14 * (x + 1e-300) || high - low < 1e-15 * x) break;
        x = next > low && next < high ? next : (low + high) / 2;
    }
    *by_k = h.by_x > 0 ? -h.by_k / h.by_x : 0;
    return x;
}

static double draw(const double *in, double *slope)
{
    const double k = in[1], v = in[2] - 0.5;
    double       by_k;
    if (!(k > 0) || isnan(in[0])) return NAN;
    const double x = copysign(half_quantile(k, fabs(v), &by_k), v);
    slope[0] = 1;
    slope[1] = copysign(1, v) * by_k;
    return remainder(in[0] + x, 2 * M_PI);
}

RWS_EACH_EXPLAIN(positive)
RWS_EACH_FAMILY(von_mises, "von mises", "an angle, by location and concentration", RWS_SUPPORT_ANGLE, 2, density, draw,
                explain, RWS_NOISE_UNIFORM)

rws_var rws_von_mises(rws_path *path, const char *site, rws_var location, rws_var concentration)
{
    return rws__site_visit_as(path, site, &rws_von_mises_family, (rws_var[]){location, concentration}, __func__);
}
