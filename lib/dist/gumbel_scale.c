/* gumbel_scale.c - independent Gumbels by location and scale; a draw is location - scale * log(-log u). Gumbels of scale 1
 * have ops of their own (gumbel.c), which the relaxed draws use. */
#include "dist/each.h"

static const char *const positive[] = {NULL, "scale"};

static double density(const double *in, double *slope)
{
    const double scale = in[2], d = (in[0] - in[1]) / scale, e = exp(-d);
    if (!(scale > 0)) return NAN;
    slope[0] = (e - 1) / scale;
    slope[1] = (1 - e) / scale;
    slope[2] = (d * (1 - e) - 1) / scale;
    return -d - e - log(scale);
}

static double draw(const double *in, double *slope)
{
    const double step = -log(-log(in[2]));
    if (!(in[1] > 0)) return NAN;
    slope[0] = 1;
    slope[1] = step;
    return in[0] + in[1] * step;
}

RWS_EACH_EXPLAIN(positive)
RWS_EACH_FAMILY(gumbel_scale, "gumbel with a scale", "the largest of many numbers, by location and scale",
                RWS_SUPPORT_REAL, 2, density, draw, explain, RWS_NOISE_UNIFORM)

rws_var rws_gumbel_scale(rws_path *path, const char *site, rws_var location, rws_var scale)
{
    return rws__site_visit_as(path, site, &rws_gumbel_scale_family, (rws_var[]){location, scale}, __func__);
}
