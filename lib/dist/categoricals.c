/* categoricals.c - several indices at once, each one of C by its own row of logits.
 *
 * Up to SHARED indices are drawn one after the other, so that particles with equal indices share a row. More than SHARED
 * indices are drawn by one op, and every particle has a row of its own, because particles with equal indices are rare.
 */
#include "base/error.h"
#include "dist/dist.h"
#include "tensor/tangent.h"

#include <string.h>

extern const rws_op rws_op_categoricals_prepare, rws_op_categoricals_draw, rws_op_categoricals_density,
    rws_op_categoricals_defended; /* below */

#define SHARED 8

static int n_of(const rws_family *f)
{
    return *(const int *)f->context;
}

static int categories(rws_path *path, const rws_family *f, const rws_var *p)
{
    return rws_dim(path, p[0]) / n_of(f);
}

static void prepare(rws_path *path, const rws_family *f, rws_var *p)
{
    const int all = rws_dim(path, p[0]), n = n_of(f);
    if (n < 1 || all % n != 0)
        rws__path_mistake(path, "rws_categoricals takes as many logits for each of %d indices, not %d logits.", n, all);
    p[0] = rws__record(path, &rws_op_categoricals_prepare, (rws_op_args){.k = all / n}, p, 1, all);
}

static int length(rws_path *path, const rws_family *f, const rws_var *p)
{
    (void)path, (void)p;
    return n_of(f);
}

static int size(rws_path *path, const rws_family *f, const rws_var *p)
{
    (void)f;
    return rws_dim(path, p[0]);
}

/* delta: the weight of the uniform distribution that each index is mixed with. */
static rws_var draw_with(rws_path *path, const rws_family *f, const rws_var *p, float delta)
{
    const int n = n_of(f), C = categories(path, f, p);
    if (n > SHARED) {
        const rws_var in[] = {p[0], rws_draw_noise(path, RWS_NOISE_UNIFORM, n)};
        return rws__record(path, &rws_op_categoricals_draw, (rws_op_args){.k = C, .s = delta}, in, 2, n);
    }
    rws_var index[SHARED];
    for (int i = 0; i < n; i++) {
        rws_var log_pi = n == 1 ? p[0] : rws_slice(path, p[0], i * C, C);
        if (delta > 0) log_pi = rws__record(path, &rws_op_defend, (rws_op_args){.s = delta}, &log_pi, 1, C);
        index[i] = rws_draw_index(path, log_pi);
    }
    return n == 1 ? index[0] : rws_concat(path, index, n);
}

static rws_var draw(rws_path *path, const rws_family *f, const rws_var *p, bool stop)
{
    (void)stop;
    return draw_with(path, f, p, 0);
}

static rws_var log_density(rws_path *path, const rws_family *f, rws_var value, const rws_var *p)
{
    const rws_op_args args = {.k = categories(path, f, p)};
    return rws__record(path, &rws_op_categoricals_density, args, (rws_var[]){value, p[0]}, 2, 1);
}

static rws_var draw_defensive(rws_path *path, const rws_family *f, const rws_var *p, rws_var *log_mixture)
{
    const rws_op_args args = {.k = categories(path, f, p), .s = (float)rws__path_proposal(path)->delta};
    const rws_var     value = draw_with(path, f, p, args.s);
    *log_mixture = rws__record(path, &rws_op_categoricals_defended, args, (rws_var[]){value, p[0]}, 2, 1);
    return value;
}

static const int alone = 1;

const rws_family rws_categoricals_family = {
    .name = "categoricals",
    .help = "several indices at once, each one of C, by rows of logits",
    .support = RWS_SUPPORT_INDEX,
    .n_params = 1,
    .context = &alone,
    .prepare = prepare,
    .length = length,
    .choices = categories,
    .size = size,
    .draw = draw,
    .log_density = log_density,
    .draw_defensive = draw_defensive,
};

rws_var rws_categoricals(rws_path *path, const char *site, rws_var logits, int n)
{
    rws_family f = rws_categoricals_family;
    f.context = &n;
    return rws__site_visit_as(path, site, &f, &logits, __func__);
}

/* ---- ops. args.k is C, args.s is delta. */

/* Log-softmax of each row of C logits. */
static void categoricals_prepare_forward(rws_call *c)
{
    const size_t C = (size_t)c->args.k;
    for (size_t r = 0; r < (size_t)c->n; r++)
        for (size_t at = 0; at < (size_t)c->dim; at += C) {
            const float *l = rws__view_row(&c->in[0], r) + at;
            float       *out = c->out + r * (size_t)c->dim + at, top = -INFINITY;
            double       total = 0;
            for (size_t j = 0; j < C; j++) top = l[j] > top || isnan(l[j]) ? l[j] : top;
            for (size_t j = 0; j < C; j++) total += exp((double)(l[j] - top));
            for (size_t j = 0; j < C; j++) out[j] = (float)((double)(l[j] - top) - log(total));
        }
}

static void categoricals_prepare_backward(rws_call *c)
{
    const size_t C = (size_t)c->args.k, all = (size_t)c->n * (size_t)c->dim;
    float       *g = rws__call_open(c, 0, c->dim);
    for (size_t at = 0; g && at < all; at += C) {
        double total = 0;
        for (size_t j = at; j < at + C; j++) total += (double)c->gout[j];
        for (size_t j = at; j < at + C; j++) g[j] += (float)((double)c->gout[j] - exp((double)c->out[j]) * total);
    }
    rws__call_close(c, 0, c->dim, g);
}

/* The first index at which the sum of the probabilities is above u. If rounding keeps the sum below u, it is the last index
 * with a probability above 0. C if the row is not a distribution. */
static size_t index_at(const float *log_pi, size_t C, double keep, double floor, double u)
{
    double below = 0;
    size_t last = C;
    for (size_t j = 0; j < C; j++) {
        const double p = keep * exp((double)log_pi[j]) + floor;
        if (!(p >= 0)) return C;
        below += p;
        if (p > 0) last = j;
        if (u < below) return j;
    }
    return below > 0.99 ? last : C;
}

/* Inputs: log-probabilities, uniform numbers. */
static void categoricals_draw_forward(rws_call *c)
{
    const size_t C = (size_t)c->args.k, n = (size_t)c->dim;
    const double keep = 1 - (double)c->args.s, floor = (double)c->args.s / (double)C;
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const float *log_pi = rws__view_row(&c->in[0], r), *u = rws__view_row(&c->in[1], r);
        for (size_t i = 0; i < n; i++) {
            const size_t index = index_at(log_pi + i * C, C, keep, floor, (double)u[i]);
            c->out[r * n + i] = index < C ? (float)index : NAN;
            c->refused |= index == C;
        }
    }
}

static rws_status draw_explain(const rws_call *c, size_t row, const char *site, rws_error *err)
{
    for (size_t i = 0; i < (size_t)c->dim; i++)
        if (isnan(c->out[row * (size_t)c->dim + i]))
            return rws_fail(err, RWS_BROKEN,
                            "The probabilities at site %s are not a distribution (NaN or all impossible).",
                            site ? site : "");
    return RWS_OK;
}

/* The sum of the log-probabilities of the indices. Inputs: indices, log-probabilities. */
static void categoricals_density_forward(rws_call *c)
{
    const size_t C = (size_t)c->args.k, n = (size_t)c->in[0].dim;
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const float *x = rws__view_row(&c->in[0], r), *log_pi = rws__view_row(&c->in[1], r);
        double       total = 0;
        for (size_t i = 0; i < n; i++) {
            const uint32_t index = rws__index(x[i], (uint32_t)C);
            total += index < C ? (double)log_pi[i * C + index] : NAN;
            c->refused |= index == C;
        }
        c->out[r] = (float)total;
    }
}

static void categoricals_density_backward(rws_call *c)
{
    const size_t C = (size_t)c->args.k, n = (size_t)c->in[0].dim;
    float       *g = rws__call_open(c, 1, c->in[1].dim);
    for (size_t r = 0; g && r < (size_t)c->n; r++)
        for (size_t i = 0; i < n; i++) {
            const uint32_t index = rws__index(rws__view_row(&c->in[0], r)[i], (uint32_t)C);
            if (index < C) g[(r * n + i) * C + index] += c->gout[r]; /* forward refuses any other index */
        }
    rws__call_close(c, 1, c->in[1].dim, g);
}

/* The density is linear in the log-probabilities, and indices do not move. */
static rws_var categoricals_density_tangent(rws_tangent *t)
{
    if (t->d[0].id) return RWS_NO_TANGENT;
    return rws__tangent_record(t, t->op, t->args, (rws_var[]){t->in[0], t->d[1]}, 2, 1);
}

static rws_status density_explain(const rws_call *c, size_t row, const char *site, rws_error *err)
{
    for (int i = 0; i < c->in[0].dim; i++) {
        const float x = rws__view_row(&c->in[0], row)[i];
        if (rws__index(x, (uint32_t)c->args.k) == (uint32_t)c->args.k)
            return rws_fail(err, RWS_BROKEN, "An index%s%s is %g; it must be a whole number from 0 to %d.",
                            site ? " at site " : "", site ? site : "", rws__plain(x), c->args.k - 1);
    }
    return RWS_OK;
}

static void categoricals_defended_forward(rws_call *c)
{
    const size_t C = (size_t)c->args.k, n = (size_t)c->in[0].dim;
    const double keep = 1 - (double)c->args.s, floor = (double)c->args.s / (double)C;
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const float *x = rws__view_row(&c->in[0], r), *log_pi = rws__view_row(&c->in[1], r);
        double       total = 0;
        for (size_t i = 0; i < n; i++) {
            const uint32_t index = rws__index(x[i], (uint32_t)C); /* C for the NaN of a draw that was refused */
            total += index < C ? log(keep * exp((double)log_pi[i * C + index]) + floor) : NAN;
        }
        c->out[r] = (float)total;
    }
}

const rws_op rws_op_categoricals_prepare = {
    .name = "categoricals_prepare", .forward = categoricals_prepare_forward, .backward = categoricals_prepare_backward};
const rws_op rws_op_categoricals_draw = {
    .name = "categoricals_draw", .constant = true, .forward = categoricals_draw_forward, .explain = draw_explain};
const rws_op rws_op_categoricals_density = {.name = "categoricals_density",
                                            .forgets = true,
                                            .forward = categoricals_density_forward,
                                            .backward = categoricals_density_backward,
                                            .tangent = categoricals_density_tangent,
                                            .explain = density_explain};
const rws_op rws_op_categoricals_defended = {
    .name = "categoricals_defended", .constant = true, .forward = categoricals_defended_forward};
