/* laplace.c - independent numbers with the density exp(-|x - location| / scale) / (2 scale); a draw is the location plus or
 * minus the scale times an exponential. */
#include "dist/each.h"

static const char *const positive[] = {NULL, "scale"};

static double density(const double *in, double *slope)
{
    const double d = in[0] - in[1], scale = in[2];
    if (!(scale > 0)) return NAN;
    slope[1] = d > 0 ? 1 / scale : d < 0 ? -1 / scale : 0;
    slope[0] = -slope[1];
    slope[2] = (fabs(d) / scale - 1) / scale;
    return -fabs(d) / scale - log(2 * scale);
}

static double draw(const double *in, double *slope)
{
    const double u = in[2], step = u < 0.5 ? log(2 * u) : -log(2 * (1 - u));
    if (!(in[1] > 0)) return NAN;
    slope[0] = 1;
    slope[1] = step;
    return in[0] + in[1] * step;
}

RWS_EACH_EXPLAIN(positive)
RWS_EACH_FAMILY(laplace, "laplace", "a number with exponential tails on both sides, by location and scale",
                RWS_SUPPORT_REAL, 2, density, draw, explain, RWS_NOISE_UNIFORM)

rws_var rws_laplace(rws_path *path, const char *site, rws_var location, rws_var scale)
{
    return rws__site_visit_as(path, site, &rws_laplace_family, (rws_var[]){location, scale}, __func__);
}
