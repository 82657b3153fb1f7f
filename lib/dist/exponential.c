/* exponential.c - independent exponentials by rate; a draw is -log(u) / rate. */
#include "dist/each.h"

static const char *const positive[] = {"rate"};

static double density(const double *in, double *slope)
{
    const double x = in[0], rate = in[1];
    if (!(rate > 0)) return NAN;
    if (x < 0) return rws__each_impossible(slope, 2);
    slope[0] = -rate;
    slope[1] = 1 / rate - x;
    return log(rate) - rate * x;
}

static double draw(const double *in, double *slope)
{
    if (!(in[0] > 0)) return NAN;
    const double x = -log(in[1]) / in[0];
    slope[0] = -x / in[0];
    return x;
}

RWS_EACH_EXPLAIN(positive)
RWS_EACH_FAMILY(exponential, "exponential", "a number above 0, by its rate", RWS_SUPPORT_POSITIVE, 1, density, draw,
                explain, RWS_NOISE_UNIFORM)

rws_var rws_exponential(rws_path *path, const char *site, rws_var rate)
{
    return rws__site_visit_as(path, site, &rws_exponential_family, &rate, __func__);
}
