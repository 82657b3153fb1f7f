/* beta.c - independent Betas by two shapes. A draw is the quantile of a uniform number, so its derivatives by the shapes are
 * the implicit ones. A draw is at least the smallest float and at most 1 - 2^-24, the largest float below 1. */
#include "dist/each.h"
#include "tensor/special.h"

static const char *const positive[] = {"first shape", "second shape"};

static double density(const double *in, double *slope)
{
    const double x = in[0], a = in[1], b = in[2];
    if (!(a > 0 && b > 0)) return NAN;
    if (x <= 0 || x >= 1) return rws__each_impossible(slope, 3);
    const double both = rws__digamma(a + b);
    slope[0] = (a - 1) / x - (b - 1) / (1 - x);
    slope[1] = log(x) + both - rws__digamma(a);
    slope[2] = log1p(-x) + both - rws__digamma(b);
    if (a + b > RWS_LARGE && a >= 1 && b >= 1) return log(a + b - 1) + rws__log_binomial(a - 1, a + b - 2, x, 1 - x);
    return (a - 1) * log(x) + (b - 1) * log1p(-x) + rws__lgamma(a + b) - rws__lgamma(a) - rws__lgamma(b);
}

static double draw(const double *in, double *slope)
{
    if (!(in[0] > 0 && in[1] > 0)) return NAN;
    const double x = rws__each_positive(rws__beta_quantile(in[0], in[1], in[2], &slope[0], &slope[1]));
    return x > 1 - 0x1p-24 ? 1 - 0x1p-24 : x;
}

RWS_EACH_EXPLAIN(positive)
RWS_EACH_FAMILY(beta, "beta", "a number between 0 and 1, by two shapes", RWS_SUPPORT_UNIT, 2, density, draw, explain,
                RWS_NOISE_UNIFORM)

rws_var rws_beta(rws_path *path, const char *site, rws_var a, rws_var b)
{
    return rws__site_visit_as(path, site, &rws_beta_family, (rws_var[]){a, b}, __func__);
}
