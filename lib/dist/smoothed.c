/* smoothed.c - a categorical choice as a stick of smoothed bits: the relaxations of DVAE (Rolfe 2016), DVAE++ and DVAE#
 * (Vahdat et al. 2018).
 *
 * A choice among C is C - 1 bits, "is it this one, given that it is none before": bit i has the logit
 *
 *     l_i = log pi_i - log sum_{j > i} pi_j,        q_i = sigmoid(l_i)
 *
 * Each bit becomes a number zeta in [0, 1] with the density (1 - q) r(zeta|0) + q r(zeta|1) and the distribution function F,
 * drawn as F^-1(u), and s_i = zeta_i prod_{j < i} (1 - zeta_j) is a point on the simplex. The value of a site is the vector of
 * y_i = logit zeta_i, which is precise near 0 and near 1. Derivatives by l pass through the draw: dy/dl = -(dF/dl) / (dF/dy).
 *
 *     smoothing    r(zeta|0)                        r(zeta|1)
 *     spike        all at 0                         b e^(b zeta) / (e^b - 1)
 *     exponential  e^(-b zeta) / Z                  e^(b (zeta - 1)) / Z,   Z = (1 - e^-b) / b
 *     power        (1/b) zeta^(1/b - 1)             (1/b) (1 - zeta)^(1/b - 1)
 *
 * Densities are by zeta: where they are compared, the factor from zeta to y cancels. All is computed in double.
 */
#include "dist/dist.h"

extern const rws_op rws_op_stick_logits, rws_op_stick_break, rws_op_smooth_draw, rws_op_smooth_density; /* below */

#define SPIKE -100.0f /* the y that stands for zeta = 0 in the smoothing "spike" */
#define CLIP 1e-6     /* uniforms stay within [CLIP, 1 - CLIP] */

static rws_op_args smoothing_of(rws_path *path)
{
    const rws_proposal *proposal = rws__path_proposal(path);
    return (rws_op_args){.k = (int)proposal->smoothing, .s = (float)proposal->sharpness};
}

static rws_var stick_logits(rws_path *path, rws_var log_pi)
{
    return rws__record(path, &rws_op_stick_logits, (rws_op_args){0}, &log_pi, 1, rws_dim(path, log_pi) - 1);
}

rws_var rws__smoothed_draw(rws_path *path, rws_var log_pi)
{
    const int n = rws_dim(path, log_pi) - 1;
    if (n < 1)
        rws__path_mistake(path, "a choice among 1 has no bits that could be smoothed; give it at least 2 categories.");
    const rws_var in[] = {stick_logits(path, log_pi), rws_draw_noise(path, RWS_NOISE_UNIFORM, n)};
    return rws__record(path, &rws_op_smooth_draw, smoothing_of(path), in, 2, n);
}

rws_var rws__smoothed_density(rws_path *path, rws_var y, rws_var log_pi)
{
    return rws__record(path, &rws_op_smooth_density, smoothing_of(path), (rws_var[]){y, stick_logits(path, log_pi)}, 2,
                       1);
}

rws_var rws__stick_break(rws_path *path, rws_var y)
{
    return rws__record(path, &rws_op_stick_break, (rws_op_args){0}, &y, 1, rws_dim(path, y) + 1);
}

rws_var rws_relaxed_density(rws_path *path, rws_var log_s, rws_var log_pi, rws_var temperature)
{
    rws_var v;
    if (rws__path_proposal(path)->how != RWS_SMOOTHED) return rws_concrete_density(path, log_s, log_pi, temperature);
    if (rws__replayed(path, &v)) return v;
    rws_var y = rws__path_noted(path, RWS_NOTE_Z);
    if (rws_dim(path, log_pi) != rws_dim(path, y) + 1)
        rws__path_mistake(path, "rws_relaxed_density takes the log-probabilities of %d categories, not of %d.",
                          rws_dim(path, y) + 1, rws_dim(path, log_pi));
    return rws__returns(path, rws__smoothed_density(path, y, log_pi));
}

/* ---- one bit */

/* sigmoid(x) and sigmoid(-x), and their logarithms. */
typedef struct {
    double one, zero, log_one, log_zero;
} chances;

static chances chances_of(double x)
{
    const double e = exp(-fabs(x)), large = 1 / (1 + e), log_large = -log(1 + e);
    return x > 0 ? (chances){large, e * large, log_large, log_large - x}
                 : (chances){e * large, large, log_large + x, log_large};
}

static double log_add(double a, double b)
{
    return (a > b ? a : b) + log(1 + exp(-fabs(a - b)));
}

/* A smoothing, its sharpness b, and the constants of its densities. */
typedef struct {
    rws_smoothing how;
    double        b, log_b, grown, fallen, log_z; /* e^b - 1, e^-b, the log of Z or of (e^b - 1) / b */
} smoothing;

static smoothing smoothing_of_call(const rws_call *c)
{
    const double b = (double)c->args.s;
    const bool   spike = c->args.k == RWS_SMOOTH_SPIKE;
    return (smoothing){
        (rws_smoothing)c->args.k, b, log(b), expm1(b), exp(-b), log((spike ? expm1(b) : -expm1(-b)) / b)};
}

/* log(zeta / rest), where rest = 1 - zeta. *slope is a derivative of zeta and becomes that of the logit. */
static double logit(double zeta, double rest, double *slope)
{
    zeta = zeta < 1e-15 ? 1e-15 : zeta;
    rest = rest < 1e-15 ? 1e-15 : rest;
    *slope /= zeta * rest;
    return log(zeta / rest);
}

static double draw_spike(const smoothing *s, chances q, double u, double *slope)
{
    *slope = 0;
    if (u <= q.zero) return (double)SPIKE;
    const double zeta = log1p(s->grown * (u - q.zero) / q.one) / s->b;
    const double rest = -log1p(-(1 - u) / q.one * s->grown / (1 + s->grown)) / s->b;
    *slope = q.zero * expm1(s->b * rest) / s->b;
    return logit(zeta, rest, slope);
}

/* m = e^(-b zeta) is the positive root of (1 - q) m^2 + c m - q e^-b = 0. */
static double draw_exponential(const smoothing *s, chances q, double u, double *slope)
{
    const double e = s->fallen, c = u * (1 - e) - q.zero + q.one * e, root = sqrt(c * c + 4 * q.zero * q.one * e);
    const double m = c > 0 ? 2 * q.one * e / (c + root) : (root - c) / (2 * q.zero), log_m = log(m);
    const double one = e / m - e, zero = 1 - m; /* F(zeta|1) and F(zeta|0), times 1 - e^-b */
    *slope = q.one * q.zero * (zero - one) / (s->b * (q.zero * m + q.one * e / m));
    return logit(-log_m / s->b, (s->b + log_m) / s->b, slope);
}

/* F(y), dF/dy and dF/dl. */
static double power_function(const smoothing *s, chances q, double y, double *by_y, double *by_l)
{
    const chances zeta = chances_of(y);
    const double  zero = exp(zeta.log_one / s->b), left = exp(zeta.log_zero / s->b);
    *by_y = (q.zero * zero * zeta.zero + q.one * left * zeta.one) / s->b;
    *by_l = q.one * q.zero * (1 - left - zero);
    return q.zero * zero + q.one * (1 - left);
}

/* Newton's method within a bracket; F rises with y. */
static double draw_power(const smoothing *s, chances q, double u, double *slope)
{
    double low = -20 * s->b, high = 20 * s->b, y = 0, by_y, by_l;
    for (int i = 0; i < 200; i++) {
        const double miss = power_function(s, q, y, &by_y, &by_l) - u;
        *slope = -by_l / by_y;
        if (miss > 0) high = y;
        else low = y;
        double next = y - miss / by_y;
        if (!(next > low && next < high)) next = (low + high) / 2;
        const double step = fabs(next - y);
        y = next;
        if (step < 1e-9 * (1 + fabs(y))) break; /* *slope is that of the last point but one, which is close enough */
    }
    return y;
}

static double draw_bit(const smoothing *s, double l, double u, double *slope)
{
    const chances q = chances_of(l);
    u = u < CLIP ? CLIP : u > 1 - CLIP ? 1 - CLIP : u;
    switch (s->how) {
    case RWS_SMOOTH_SPIKE: return draw_spike(s, q, u, slope);
    case RWS_SMOOTH_POWER: return draw_power(s, q, u, slope);
    default: return draw_exponential(s, q, u, slope);
    }
}

/* log ((1 - q) e^zero + q e^one). zero_y and one_y are the derivatives of the exponents by y; *by_y and *by_l become the
 * derivatives of the result by y and by the logit of q. */
static double mixture(chances q, double zero, double one, double zero_y, double one_y, double *by_y, double *by_l)
{
    const double  a = zero + q.log_zero, c = one + q.log_one;
    const chances w = chances_of(c - a);
    *by_y = w.zero * zero_y + w.one * one_y;
    *by_l = w.one - q.one;
    return c - w.log_one;
}

static double density_of_bit(const smoothing *s, double y, double l, double *by_y, double *by_l)
{
    const chances q = chances_of(l);
    if (s->how == RWS_SMOOTH_SPIKE && y <= (double)SPIKE) {
        *by_y = 0, *by_l = -q.one;
        return q.log_zero;
    }
    const chances zeta = chances_of(y);
    const double  b = s->b, power = 1 / b - 1, bend = b * zeta.one * zeta.zero;
    switch (s->how) {
    case RWS_SMOOTH_SPIKE: *by_y = bend, *by_l = q.zero; return q.log_one + b * zeta.one - s->log_z;
    case RWS_SMOOTH_POWER:
        return mixture(q, power * zeta.log_one, power * zeta.log_zero, power * zeta.zero, -power * zeta.one, by_y,
                       by_l) -
               s->log_b;
    default: return mixture(q, -b * zeta.one, -b * zeta.zero, -bend, bend, by_y, by_l) - s->log_z;
    }
}

/* ---- ops. Arguments: k the smoothing, s its sharpness b. */

/* Inputs: logits l, uniforms u. */
static void smooth_draw_forward(rws_call *c)
{
    const smoothing s = smoothing_of_call(c);
    const float    *l = rws__call_input(c, 0, c->dim), *u = rws__call_input(c, 1, c->dim);
    for (size_t i = 0; i < (size_t)c->n * (size_t)c->dim; i++) {
        double slope;
        c->out[i] = (float)draw_bit(&s, (double)l[i], (double)u[i], &slope);
        c->saved[i] = (float)slope;
    }
}

static void smooth_draw_backward(rws_call *c)
{
    float *g = rws__call_open(c, 0, c->dim);
    for (size_t i = 0; g && i < (size_t)c->n * (size_t)c->dim; i++) g[i] += c->gout[i] * c->saved[i];
    rws__call_close(c, 0, c->dim, g);
}

/* The sum over the bits. Inputs: y, logits l. */
static void smooth_density_forward(rws_call *c)
{
    const smoothing s = smoothing_of_call(c);
    const int       dim = c->in[1].dim;
    const float    *y = rws__call_input(c, 0, dim), *l = rws__call_input(c, 1, dim);
    for (size_t r = 0; r < (size_t)c->n; r++) {
        double total = 0, by_y, by_l;
        for (size_t i = r * (size_t)dim; i < (r + 1) * (size_t)dim; i++)
            total += density_of_bit(&s, (double)y[i], (double)l[i], &by_y, &by_l);
        c->out[r] = (float)total;
    }
}

static void smooth_density_backward(rws_call *c)
{
    const smoothing s = smoothing_of_call(c);
    const int       dim = c->in[1].dim;
    const float    *y = rws__call_input(c, 0, dim), *l = rws__call_input(c, 1, dim);
    float          *gy = rws__call_open(c, 0, dim), *gl = rws__call_open(c, 1, dim);
    for (size_t i = 0; i < (size_t)c->n * (size_t)dim; i++) {
        double by_y, by_l;
        density_of_bit(&s, (double)y[i], (double)l[i], &by_y, &by_l);
        if (gy) gy[i] += c->gout[i / (size_t)dim] * (float)by_y;
        if (gl) gl[i] += c->gout[i / (size_t)dim] * (float)by_l;
    }
    rws__call_close(c, 0, dim, gy);
    rws__call_close(c, 1, dim, gl);
}

/* Output i: log pi_i - tail_i, where tail_i = log sum_{j > i} pi_j. */
static void stick_logits_forward(rws_call *c)
{
    const size_t C = (size_t)c->dim + 1;
    const float *log_pi = rws__call_input(c, 0, c->dim + 1);
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const float *p = log_pi + r * C;
        double       tail = (double)p[C - 1];
        for (size_t i = C - 1; i-- > 0;) {
            c->out[r * (C - 1) + i] = (float)((double)p[i] - tail);
            tail = log_add(tail, (double)p[i]);
        }
    }
}

/* The gradient of log pi_j is g_j - sum_{i < j} g_i pi_j e^(-tail_i); the sum is kept relative to the last tail, so that no
 * exponential is above 1. */
static void stick_logits_backward(rws_call *c)
{
    const size_t C = (size_t)c->dim + 1;
    const float *log_pi = rws__call_input(c, 0, c->dim + 1);
    float       *g = rws__call_open(c, 0, c->dim + 1);
    double      *tail = RWS_NEW(c->arena, double, C);
    for (size_t r = 0; g && r < (size_t)c->n; r++) {
        const float *p = log_pi + r * C, *gout = c->gout + r * (C - 1);
        double       sum = 0;
        tail[C - 2] = (double)p[C - 1];
        for (size_t i = C - 2; i-- > 0;) tail[i] = log_add(tail[i + 1], (double)p[i + 1]);
        for (size_t j = 0; j < C; j++) {
            if (sum != 0) g[r * C + j] -= (float)(sum * exp((double)p[j] - tail[j - 1]));
            if (j + 1 == C) break;
            g[r * C + j] += gout[j];
            sum = (sum != 0 ? sum * exp(tail[j] - tail[j - 1]) : 0) + (double)gout[j];
        }
    }
    rws__call_close(c, 0, c->dim + 1, g);
}

/* log s from y. */
static void stick_break_forward(rws_call *c)
{
    const size_t C = (size_t)c->dim;
    const float *y = rws__call_input(c, 0, c->dim - 1);
    for (size_t r = 0; r < (size_t)c->n; r++) {
        double left = 0; /* log of what is left of the stick */
        for (size_t i = 0; i + 1 < C; i++) {
            const chances zeta = chances_of((double)y[r * (C - 1) + i]);
            c->out[r * C + i] = (float)(left + zeta.log_one);
            left += zeta.log_zero;
        }
        c->out[r * C + C - 1] = (float)left;
    }
}

static void stick_break_backward(rws_call *c)
{
    const size_t C = (size_t)c->dim;
    const float *y = rws__call_input(c, 0, c->dim - 1);
    float       *g = rws__call_open(c, 0, c->dim - 1);
    for (size_t r = 0; g && r < (size_t)c->n; r++) {
        double after = (double)c->gout[r * C + C - 1];
        for (size_t i = C - 1; i-- > 0;) {
            const chances zeta = chances_of((double)y[r * (C - 1) + i]);
            const double  own = (double)c->gout[r * C + i];
            g[r * (C - 1) + i] += (float)(own * zeta.zero - after * zeta.one);
            after += own;
        }
    }
    rws__call_close(c, 0, c->dim - 1, g);
}

const rws_op rws_op_stick_logits = {
    .name = "stick_logits", .forward = stick_logits_forward, .backward = stick_logits_backward};
const rws_op rws_op_stick_break = {
    .name = "stick_break", .forward = stick_break_forward, .backward = stick_break_backward};
const rws_op rws_op_smooth_draw = {
    .name = "smooth_draw", .saves = true, .forward = smooth_draw_forward, .backward = smooth_draw_backward};
const rws_op rws_op_smooth_density = {
    .name = "smooth_density", .forward = smooth_density_forward, .backward = smooth_density_backward};
