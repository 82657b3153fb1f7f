/* truncated_normal.c - independent normals given that they are between low and high; either bound may be infinite.
 *
 * With a = (low - mean) / sd, b = (high - mean) / sd and z = (x - mean) / sd, a draw solves
 * (Phi(z) - Phi(a)) / (Phi(b) - Phi(a)) = u. All is computed from logarithms of tail probabilities on the side of 0 where
 * the interval lies, so an interval far out in a tail is as accurate as one in the middle. */
#include "dist/each.h"
#include "tensor/special.h"

static const char *const positive[] = {NULL, "standard deviation", NULL, NULL};

static bool valid(double sd, double low, double high)
{
    return sd > 0 && low < high;
}

/* log(Phi(b) - Phi(a)), a < b */
static double log_mass(double a, double b)
{
    if (a >= 0) return rws__log_tail(a) + log(-expm1(rws__log_tail(b) - rws__log_tail(a)));
    if (b <= 0) return log_mass(-b, -a);
    return log(0.5 * (erf(b * M_SQRT1_2) - erf(a * M_SQRT1_2)));
}

/* The density of a standard normal at a bound, divided by e^log_mass; 0 at an infinite bound. */
static double edge(double a, double log_m)
{
    return isinf(a) ? 0 : exp(-a * a / 2 - RWS_LOG_ROOT_2_PI - log_m);
}

static double times(double a, double edge_at_a)
{
    return edge_at_a == 0 ? 0 : a * edge_at_a;
}

static double density(const double *in, double *slope)
{
    const double x = in[0], m = in[1], sd = in[2], low = in[3], high = in[4];
    if (!valid(sd, low, high) || isnan(m) || isnan(x)) return NAN;
    if (x < low || x > high) return rws__each_impossible(slope, 5);
    const double a = (low - m) / sd, b = (high - m) / sd, z = (x - m) / sd, log_m = log_mass(a, b);
    const double at_a = edge(a, log_m), at_b = edge(b, log_m);
    slope[0] = -z / sd;
    slope[1] = (z + at_b - at_a) / sd;
    slope[2] = (z * z - 1 + times(b, at_b) - times(a, at_a)) / sd;
    slope[3] = at_a / sd;
    slope[4] = -at_b / sd;
    return -z * z / 2 - RWS_LOG_ROOT_2_PI - log(sd) - log_m;
}

/* z with the share u of the interval below it. */
static double quantile(double a, double b, double u)
{
    if (a < 0 && (b <= 0 || 0.5 * (erfc(-a * M_SQRT1_2) * (1 - u) + erfc(-b * M_SQRT1_2) * u) < 0.5))
        return -quantile(-b, -a, 1 - u);
    if (a < 0) return rws__tail_inverse(log(0.5 * (erfc(a * M_SQRT1_2) * (1 - u) + erfc(b * M_SQRT1_2) * u)));
    return rws__tail_inverse(rws__log_tail(a) + log1p(u * expm1(rws__log_tail(b) - rws__log_tail(a))));
}

/* The density at a bound divided by the density at z. */
static double ratio(double bound, double z)
{
    return isinf(bound) ? 0 : exp((z - bound) * (z + bound) / 2);
}

static double draw(const double *in, double *slope)
{
    const double m = in[0], sd = in[1], low = in[2], high = in[3], u = in[4];
    if (!valid(sd, low, high) || isnan(m)) return NAN;
    const double a = (low - m) / sd, b = (high - m) / sd, z = fmin(fmax(quantile(a, b, u), a), b);
    const double by_a = (1 - u) * ratio(a, z), by_b = u * ratio(b, z), x = m + sd * z;
    slope[0] = 1 - by_a - by_b;
    slope[1] = z - times(a, by_a) - times(b, by_b);
    slope[2] = by_a;
    slope[3] = by_b;
    return x < low ? low : x > high ? high : x;
}

static rws_status explain(const rws_call *c, size_t row, int first, const char *site, rws_error *err)
{
    RWS_TRY(rws__each_explain(c, row, first, 4, positive, site, err));
    return rws__explain_bounds(c, row, first + 2, site, err);
}

static void bounds(rws_path *path, const rws_family *f, const rws_var *p, rws_var bound[2])
{
    (void)path, (void)f;
    bound[0] = p[2], bound[1] = p[3];
}

RWS_EACH_FAMILY(truncated_normal, "truncated normal",
                "a normal between two bounds, by mean, standard deviation, low and high", RWS_SUPPORT_INTERVAL, 4,
                density, draw, explain, RWS_NOISE_UNIFORM, .bounds = bounds)

rws_var rws_truncated_normal(rws_path *path, const char *site, rws_var mean, rws_var sd, rws_var low, rws_var high)
{
    return rws__site_visit_as(path, site, &rws_truncated_normal_family, (rws_var[]){mean, sd, low, high}, __func__);
}
