/* delta.c - numbers that equal their parameter: the log-density is 0 at the parameter and minus infinity elsewhere. */
#include "dist/each.h"

static double density(const double *in, double *slope)
{
    for (int i = 0; i < 2; i++) slope[i] = 0;
    if (isnan(in[0]) || isnan(in[1])) return NAN;
    return in[0] == in[1] ? 0 : -INFINITY;
}

static rws_status explain(const rws_call *c, size_t row, int first, const char *site, rws_error *err)
{
    (void)c, (void)row, (void)first, (void)site, (void)err;
    return RWS_OK;
}

RWS_EACH_DENSITY(delta, 1, density, explain)

static rws_var draw(rws_path *path, const rws_family *f, const rws_var *p, bool stop)
{
    (void)path, (void)f, (void)stop;
    return p[0];
}

const rws_family rws_delta_family = {
    .name = "delta",
    .help = "numbers that are certain",
    .support = RWS_SUPPORT_CERTAIN,
    .reparameterised = true,
    .n_params = 1,
    .draw = draw,
    .log_density = delta_log_density,
};

rws_var rws_delta(rws_path *path, const char *site, rws_var at)
{
    return rws__site_visit_as(path, site, &rws_delta_family, &at, __func__);
}
