/* gamma.c - independent Gammas by shape and rate, and inverse Gammas by shape and scale.
 *
 * A draw is the quantile of a uniform number, so its derivative by the shape is the implicit one,
 * -(dP/dshape) / density (Figurnov et al. 2018). What is too small for a float becomes the smallest float. */
#include "dist/each.h"
#include "tensor/special.h"

static const char *const by_rate[] = {"shape", "rate"}, *const by_scale[] = {"shape", "scale"};

static rws_status explain_rate(const rws_call *c, size_t row, int first, const char *site, rws_error *err)
{
    return rws__each_explain(c, row, first, 2, by_rate, site, err);
}

static rws_status explain_scale(const rws_call *c, size_t row, int first, const char *site, rws_error *err)
{
    return rws__each_explain(c, row, first, 2, by_scale, site, err);
}

#define LARGE 1e5    /* shapes above it have quantiles by Wilson and Hilferty, right to more digits than a float has */
#define TINY (-30.0) /* log-quantiles below it are those of the first term of the series */

double rws__log_gamma_quantile(double a, double u, double *slope)
{
    const double first = (log(u) + rws__lgamma(a + 1)) / a; /* P(a, x) is x^a / Gamma(a + 1) for small x */
    if (first < TINY && a < LARGE) {
        *slope = (rws__digamma(a + 1) - first) / a;
        return first;
    }
    if (a < LARGE) {
        double       by_a;
        const double x = rws__gamma_quantile(a, u, &by_a);
        *slope = by_a / x;
        return log(x);
    }
    const double z = u < 0.5 ? -rws__tail_inverse(log(u)) : rws__tail_inverse(log1p(-u));
    const double root = 1 - 1 / (9 * a) + z / (3 * sqrt(a));
    *slope = 1 / a + 3 * (1 / (9 * a * a) - z / (6 * a * sqrt(a))) / root;
    return log(a) + 3 * log(root);
}

double rws__gamma_draw(double a, double u, double *by_a)
{
    if (a < LARGE) return rws__gamma_quantile(a, u, by_a);
    const double x = exp(rws__log_gamma_quantile(a, u, by_a));
    *by_a *= x;
    return x;
}

static double density(const double *in, double *slope)
{
    const double x = in[0], a = in[1], rate = in[2];
    if (!(a > 0 && rate > 0)) return NAN;
    if (x <= 0) return rws__each_impossible(slope, 3);
    slope[0] = (a - 1) / x - rate;
    slope[1] = log(rate) + log(x) - rws__digamma(a);
    slope[2] = a / rate - x;
    if (a > RWS_LARGE) return rws__log_poisson(a - 1, rate * x) + log(rate);
    return a * log(rate) + (a - 1) * log(x) - rate * x - rws__lgamma(a);
}

static double draw(const double *in, double *slope)
{
    const double a = in[0], rate = in[1];
    if (!(a > 0 && rate > 0)) return NAN;
    const double x = rws__gamma_draw(a, in[2], &slope[0]);
    slope[0] /= rate;
    slope[1] = -x / (rate * rate);
    return rws__each_positive(x / rate);
}

RWS_EACH_FAMILY(gamma, "gamma", "a number above 0, by shape and rate", RWS_SUPPORT_POSITIVE, 2, density, draw,
                explain_rate, RWS_NOISE_UNIFORM)

rws_var rws_gamma(rws_path *path, const char *site, rws_var shape, rws_var rate)
{
    return rws__site_visit_as(path, site, &rws_gamma_family, (rws_var[]){shape, rate}, __func__);
}

static double inverse_density(const double *in, double *slope)
{
    const double x = in[0], a = in[1], scale = in[2];
    if (!(a > 0 && scale > 0)) return NAN;
    if (x <= 0) return rws__each_impossible(slope, 3);
    slope[0] = (scale / x - a - 1) / x;
    slope[1] = log(scale) - log(x) - rws__digamma(a);
    slope[2] = a / scale - 1 / x;
    if (a > RWS_LARGE) return rws__log_poisson(a - 1, scale / x) + log(scale) - 2 * log(x);
    return a * log(scale) - (a + 1) * log(x) - scale / x - rws__lgamma(a);
}

static double inverse_draw(const double *in, double *slope)
{
    const double a = in[0], scale = in[1];
    if (!(a > 0 && scale > 0)) return NAN;
    const double g = rws__each_positive(rws__gamma_draw(a, in[2], &slope[0]));
    slope[0] *= -scale / (g * g);
    slope[1] = 1 / g;
    return rws__each_positive(scale / g);
}

RWS_EACH_FAMILY(inverse_gamma, "inverse gamma", "1 over a gamma, by shape and scale", RWS_SUPPORT_POSITIVE, 2,
                inverse_density, inverse_draw, explain_scale, RWS_NOISE_UNIFORM)

rws_var rws_inverse_gamma(rws_path *path, const char *site, rws_var shape, rws_var scale)
{
    return rws__site_visit_as(path, site, &rws_inverse_gamma_family, (rws_var[]){shape, scale}, __func__);
}
