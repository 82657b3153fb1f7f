/* half_normal.c - independent magnitudes of normals of mean 0, by scale; a draw is scale * |noise|. */
#include "dist/each.h"

static const char *const positive[] = {"scale"};

static double density(const double *in, double *slope)
{
    const double x = in[0], scale = in[1], d = x / scale;
    if (!(scale > 0)) return NAN;
    if (x < 0) return rws__each_impossible(slope, 2);
    slope[0] = -d / scale;
    slope[1] = (d * d - 1) / scale;
    return -d * d / 2 - log(scale) - RWS_LOG_ROOT_2_PI + M_LN2;
}

static double draw(const double *in, double *slope)
{
    if (!(in[0] > 0)) return NAN;
    slope[0] = fabs(in[1]);
    return in[0] * fabs(in[1]);
}

RWS_EACH_EXPLAIN(positive)
RWS_EACH_FAMILY(half_normal, "half-normal", "the magnitude of a normal of mean 0, by scale", RWS_SUPPORT_POSITIVE, 1,
                density, draw, explain, RWS_NOISE_NORMAL)

rws_var rws_half_normal(rws_path *path, const char *site, rws_var scale)
{
    return rws__site_visit_as(path, site, &rws_half_normal_family, &scale, __func__);
}
