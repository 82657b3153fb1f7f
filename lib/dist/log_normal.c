/* log_normal.c - independent numbers whose logarithms are normal; a draw is exp(mean + sd * noise). */
#include "dist/each.h"

static const char *const positive[] = {NULL, "standard deviation"};

static double density(const double *in, double *slope)
{
    const double x = in[0], sd = in[2];
    if (!(sd > 0)) return NAN;
    if (x <= 0) return rws__each_impossible(slope, 3);
    const double d = (log(x) - in[1]) / sd;
    slope[0] = -(1 + d / sd) / x;
    slope[1] = d / sd;
    slope[2] = (d * d - 1) / sd;
    return -d * d / 2 - log(sd) - log(x) - RWS_LOG_ROOT_2_PI;
}

static double draw(const double *in, double *slope)
{
    if (!(in[1] > 0)) return NAN;
    const double x = rws__each_positive(exp(in[0] + in[1] * in[2]));
    slope[0] = x;
    slope[1] = x * in[2];
    return isnan(in[0]) ? NAN : x;
}

RWS_EACH_EXPLAIN(positive)
RWS_EACH_FAMILY(log_normal, "log-normal", "a number whose logarithm is normal, by mean and standard deviation of that",
                RWS_SUPPORT_POSITIVE, 2, density, draw, explain, RWS_NOISE_NORMAL)

rws_var rws_log_normal(rws_path *path, const char *site, rws_var mean, rws_var sd)
{
    return rws__site_visit_as(path, site, &rws_log_normal_family, (rws_var[]){mean, sd}, __func__);
}
