/* bernoulli.c - yes or no, by a logit. One logit makes a choice, like a categorical of two. A vector of logits makes a
 * vector of zeros and ones, drawn and scored component by component, which no program branches on. */
#include "base/vecmath.h"
#include "dist/dist.h"
#include "tensor/rows.h"

extern const rws_op rws_op_log_sigmoids, rws_op_bernoulli_draw, rws_op_bernoulli_density,
    rws_op_bernoulli_defended; /* below */

/* ---- one logit: rows of (log(1 - p), log p) */

static void prepare(rws_path *path, const rws_family *f, rws_var *p)
{
    (void)f;
    p[0] = rws__record(path, &rws_op_log_sigmoids, (rws_op_args){0}, p, 1, 2);
}

static int one(rws_path *path, const rws_family *f, const rws_var *p)
{
    (void)f, (void)path, (void)p;
    return 1;
}

static int two(rws_path *path, const rws_family *f, const rws_var *p)
{
    (void)f, (void)path, (void)p;
    return 2;
}

static rws_var draw(rws_path *path, const rws_family *f, const rws_var *p, bool stop)
{
    (void)f, (void)stop;
    return rws_draw_index(path, p[0]);
}

static rws_var log_density(rws_path *path, const rws_family *f, rws_var value, const rws_var *p)
{
    (void)f;
    return rws__record(path, &rws_op_pick, (rws_op_args){0}, (rws_var[]){p[0], value}, 2, 1);
}

const rws_family rws_bernoulli_family = {
    .name = "bernoulli",
    .help = "yes or no, by a logit",
    .support = RWS_SUPPORT_INDEX,
    .n_params = 1,
    .prepare = prepare,
    .length = one,
    .choices = two,
    .draw = draw,
    .log_density = log_density,
    .draw_defensive = rws__draw_defended,
};

/* ---- a vector of logits */

static rws_var draw_bits(rws_path *path, rws_var logits, float delta)
{
    const rws_var in[] = {logits, rws__draw_counters(path)};
    return rws__record(path, &rws_op_bernoulli_draw, (rws_op_args){.s = delta}, in, 2, rws_dim(path, logits));
}

static rws_var vector_draw(rws_path *path, const rws_family *f, const rws_var *p, bool stop)
{
    (void)f, (void)stop;
    return draw_bits(path, p[0], 0);
}

static rws_var vector_log_density(rws_path *path, const rws_family *f, rws_var value, const rws_var *p)
{
    (void)f;
    rws_var       in[RWS_OP_INPUTS + 1] = {value};
    rws_op_args   args;
    const rws_op *op = rws__var_op(path, p[0], in + 1, &args);
    int           n = 1;
    if (!op || !op->bits_density)
        return rws__record(path, &rws_op_bernoulli_density, (rws_op_args){0}, (rws_var[]){value, p[0]}, 2, 1);
    while (n <= RWS_OP_INPUTS && in[n].id) n++;
    return rws__record(path, op->bits_density, args, in, n, 1);
}

/* Every component is drawn from its own mixture with a fair coin. */
static rws_var vector_draw_defensive(rws_path *path, const rws_family *f, const rws_var *p, rws_var *log_mixture)
{
    (void)f;
    const float   delta = (float)rws__path_proposal(path)->delta;
    const rws_var value = draw_bits(path, p[0], delta);
    *log_mixture =
        rws__record(path, &rws_op_bernoulli_defended, (rws_op_args){.s = delta}, (rws_var[]){value, p[0]}, 2, 1);
    return value;
}

const rws_family rws_bernoulli_vector_family = {
    .name = "bernoulli vector",
    .help = "zeros and ones, by a vector of logits",
    .support = RWS_SUPPORT_BITS,
    .n_params = 1,
    .draw = vector_draw,
    .log_density = vector_log_density,
    .draw_defensive = vector_draw_defensive,
};

rws_var rws_bernoulli(rws_path *path, const char *site, rws_var logits)
{
    const bool alone = rws__dim_for(path, logits, __func__) == 1;
    return rws__site_visit_as(path, site, alone ? &rws_bernoulli_family : &rws_bernoulli_vector_family, &logits,
                              __func__);
}

/* ---- ops */

static void log_sigmoids_forward(rws_call *c)
{
    const float *logit = rws__call_input(c, 0, 1);
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const float x = logit[r], soft = log1pf(expf(-fabsf(x)));
        c->out[2 * r] = -(soft + (x > 0 ? x : 0));
        c->out[2 * r + 1] = -(soft + (x < 0 ? -x : 0));
    }
}

static void log_sigmoids_backward(rws_call *c)
{
    float *g = rws__call_open(c, 0, 1);
    if (g)
        for (size_t r = 0; r < (size_t)c->n; r++)
            g[r] += c->gout[2 * r + 1] * expf(c->out[2 * r]) - c->gout[2 * r] * expf(c->out[2 * r + 1]);
    rws__call_close(c, 0, 1, g);
}

/* Particles of one datum are neighbours and often share a row of logits. Numbers that depend on the logits alone are
 * computed again only when the row of logits changes. */

/* 1 where u < (1 - delta) sigmoid(l) + delta / 2, else 0. Inputs: l, counters. */
static void bernoulli_draw_forward(rws_call *c)
{
    const size_t dim = (size_t)c->dim, padded = (dim + 15) / 16 * 16;
    const float  keep = 1 - c->args.s, floor = c->args.s / 2;
    float       *inverse = RWS_NEW(c->arena, float, dim); /* 1 / sigmoid */
    uint32_t    *words = RWS_NEW(c->arena, uint32_t, padded);
    const float *last = NULL;
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const float *l = rws__view_row(&c->in[0], r);
        float       *out = c->out + r * dim;
        if (l != last)
#pragma omp simd
            for (size_t j = 0; j < dim; j++) inverse[j] = rws__exp(-l[j]) + 1;
        last = l;
        rws__counter_row((const rws_counter *)rws__view_row(&c->in[1], r), padded, words);
#pragma omp simd
        for (size_t j = 0; j < dim; j++) out[j] = (rws__unit(words[j]) - floor) * inverse[j] < keep ? 1 : 0;
    }
}

/* The sum of log(1 + e), as the logarithm of a product. Every factor is between 1 and 2, so a float holds the product
 * of 96 factors and a double that of 900. */
static double log_product(const float *e, size_t n)
{
    double total = 0, product = 1;
    for (size_t from = 0; from < n; from += 96) {
        const size_t end = n - from < 96 ? n : from + 96;
        float        part = 1;
#pragma omp simd reduction(* : part)
        for (size_t j = from; j < end; j++) part *= 1 + e[j];
        product *= (double)part;
        if (product < 0x1p900) continue;
        total += log(product);
        product = 1;
    }
    return total + log(product);
}

/* e = e^-|l| */
static void exp_row(const float *restrict l, size_t n, float *restrict e)
{
#pragma omp simd
    for (size_t j = 0; j < n; j++) e[j] = rws__exp(-fabsf(l[j]));
}

/* The sum of (x - [l > 0]) l, where zero times infinity is zero. */
static float dot_row(const float *restrict x, const float *restrict l, size_t n)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (size_t j = 0; j < n; j++) {
        const float by = l[j] > 0 ? x[j] - 1 : x[j];
        sum += by == 0 ? 0 : by * l[j];
    }
    return sum;
}

/* The sum of x l - softplus(l) = the sum of (x - [l > 0]) l - log(1 + e^-|l|). Inputs: x, l. */
static void bernoulli_density_forward(rws_call *c)
{
    const size_t dim = (size_t)c->in[1].dim;
    float       *e = RWS_NEW(c->arena, float, dim);
    const float *last = NULL;
    double       norm = 0;
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const float *l = rws__view_row(&c->in[1], r);
        if (l != last) {
            exp_row(l, dim, e);
            norm = log_product(e, dim);
        }
        last = l;
        c->out[r] = (float)((double)dot_row(rws__view_row(&c->in[0], r), l, dim) - norm);
    }
}

static void bernoulli_density_backward(rws_call *c)
{
    const size_t dim = (size_t)c->in[1].dim;
    float       *p = RWS_NEW(c->arena, float, dim); /* sigmoid(l) */
    const float *last = NULL;
    const bool   fresh = rws__sink_take(&c->gin[1]);
    rws__call_clear(c, 0);
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const float *restrict x = rws__view_row(&c->in[0], r), *l = rws__view_row(&c->in[1], r), g = c->gout[r];
        float *restrict by_x = rws__call_sink_row(c, 0, r), *restrict by_l = rws__call_sink_row(c, 1, r);
        if (l != last) {
            exp_row(l, dim, p);
#pragma omp simd
            for (size_t j = 0; j < dim; j++) p[j] = (l[j] > 0 ? 1 : p[j]) / (1 + p[j]);
        }
        last = l;
        if (g == 0 && (!by_l || row_gives_nothing(g, dim, fresh, by_l))) continue;
        if (by_l && fresh)
#pragma omp simd
            for (size_t j = 0; j < dim; j++) by_l[j] = g * (x[j] - p[j]);
        else if (by_l)
#pragma omp simd
            for (size_t j = 0; j < dim; j++) by_l[j] += g * (x[j] - p[j]);
        for (size_t j = 0; by_x && j < dim; j++) by_x[j] += g * l[j];
    }
}

/* The sum of log((1 - delta) p + delta / 2), where p is the probability of the bit that was drawn. Inputs: x, l. */
static void bernoulli_defended_forward(rws_call *c)
{
    const int    dim = c->in[1].dim;
    const float *x = rws__call_input(c, 0, dim), *l = rws__call_input(c, 1, dim), keep = 1 - c->args.s,
                floor = c->args.s / 2;
    for (size_t r = 0; r < (size_t)c->n; r++, x += dim, l += dim) {
        float total = 0;
#pragma omp simd reduction(+ : total)
        for (int j = 0; j < dim; j++) total += logf(keep / (1 + expf(x[j] > 0.5f ? -l[j] : l[j])) + floor);
        c->out[r] = total;
    }
}

const rws_op rws_op_log_sigmoids = {
    .name = "log_sigmoids", .forward = log_sigmoids_forward, .backward = log_sigmoids_backward};
const rws_op rws_op_bernoulli_draw = {
    .name = "bernoulli_draw", .constant = true, .binary = true, .forward = bernoulli_draw_forward};
const rws_op rws_op_bernoulli_density = {
    .name = "bernoulli_density", .forward = bernoulli_density_forward, .backward = bernoulli_density_backward};
const rws_op rws_op_bernoulli_defended = {
    .name = "bernoulli_defended", .constant = true, .forward = bernoulli_defended_forward};
