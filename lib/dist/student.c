/* student.c - independent Student t numbers by degrees of freedom, location and scale.
 *
 * A draw is location + scale * noise * sqrt(degrees / 2 / g), where g is a Gamma of shape degrees / 2; so the derivative by
 * the degrees passes through g too. */
#include "dist/each.h"
#include "tensor/special.h"

static const char *const positive[] = {"number of degrees of freedom", NULL, "scale"};

static double density(const double *in, double *slope)
{
    const double v = in[1], scale = in[3], z = (in[0] - in[2]) / scale;
    if (!(v > 0 && scale > 0)) return NAN;
    const double q = log1p(z * z / v), pull = (v + 1) * z / (v + z * z) / scale;
    slope[0] = -pull;
    slope[1] = 0.5 * (rws__digamma((v + 1) / 2) - rws__digamma(v / 2) - 1 / v - q + (v + 1) / v * z * z / (v + z * z));
    slope[2] = pull;
    slope[3] = pull * z - 1 / scale;
    if (v > RWS_LARGE) /* Gamma((v + 1) / 2) / Gamma(v / 2) is sqrt(v / 2) (1 - 1 / (4 v) + …) */
        return -RWS_LOG_ROOT_2_PI - 0.25 / v - log(scale) - (v + 1) / 2 * q;
    return rws__lgamma((v + 1) / 2) - rws__lgamma(v / 2) - 0.5 * log(M_PI * v) - log(scale) - (v + 1) / 2 * q;
}

/* Inputs: degrees, location, scale, a uniform number for g, a normal number. */
static double draw(const double *in, double *slope)
{
    const double v = in[0], scale = in[2];
    if (!(v > 0 && scale > 0)) return NAN;
    double       by_shape;
    const double g = rws__each_positive(rws__gamma_draw(v / 2, in[3], &by_shape)), step = in[4] * sqrt(v / (2 * g));
    slope[0] = scale * step / 2 * (1 / v - by_shape / (2 * g));
    slope[1] = 1;
    slope[2] = step;
    return in[1] + scale * step;
}

RWS_EACH_EXPLAIN(positive)
RWS_EACH_DENSITY(student_t, 3, density, explain)

static rws_status draw_explain(const rws_call *c, size_t row, const char *site, rws_error *err)
{
    return explain(c, row, 0, site, err);
}

static void draw_forward(rws_call *c)
{
    rws__each_draw_forward(c, 5, draw);
}

static void draw_backward(rws_call *c)
{
    rws__each_draw_backward(c, 5, draw);
}

const rws_op rws_op_student_t_draw = {.name = "student_t_draw",
                                      .forgets = true,
                                      .forward = draw_forward,
                                      .backward = draw_backward,
                                      .explain = draw_explain};

static rws_var draw_value(rws_path *path, const rws_family *f, const rws_var *p, bool stop)
{
    (void)f;
    const int     dim = rws__dist_longest(path, p, 3);
    const rws_var in[] = {p[0], p[1], p[2], rws_draw_noise(path, RWS_NOISE_UNIFORM, dim),
                          rws_draw_noise(path, RWS_NOISE_NORMAL, dim)};
    return rws__record(path, &rws_op_student_t_draw, (rws_op_args){.stop = stop}, in, 5, dim);
}

const rws_family rws_student_t_family = {
    .name = "student t",
    .help = "a number with heavy tails, by degrees of freedom, location and scale",
    .reparameterised = true,
    .n_params = 3,
    .draw = draw_value,
    .log_density = student_t_log_density,
};

rws_var rws_student_t(rws_path *path, const char *site, rws_var degrees, rws_var location, rws_var scale)
{
    return rws__site_visit_as(path, site, &rws_student_t_family, (rws_var[]){degrees, location, scale}, __func__);
}
