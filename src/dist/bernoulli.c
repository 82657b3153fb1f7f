/* bernoulli.c - yes or no, by a logit: alone it is a choice like a categorical of two; as a vector it is a value, drawn
 * and scored component by component, which no program branches on. */
#include "base/vecmath.h"
#include "dist/dist.h"

#include <string.h>

/* ---- alone: rows of (log(1 - p), log p) */

static void prepare(rws_run *r, rws_var *p)
{
    p[0] = rws_record(r, &rws_op_log_sigmoids, (rws_op_args){0}, p, 1, 2);
}

static int one(rws_run *r, const rws_var *p)
{
    (void)r, (void)p;
    return 1;
}

static int two(rws_run *r, const rws_var *p)
{
    (void)r, (void)p;
    return 2;
}

static rws_var draw(rws_run *r, const rws_var *p, bool stop)
{
    (void)stop;
    return rws_draw_index(r, p[0]);
}

static rws_var log_density(rws_run *r, rws_var value, const rws_var *p)
{
    return rws_record(r, &rws_op_pick, (rws_op_args){0}, (rws_var[]){p[0], value}, 2, 1);
}

static rws_var draw_defended(rws_run *r, const rws_var *p, rws_var *log_defended)
{
    const rws_var mixture = rws_record(r, &rws_op_defend, (rws_op_args){.s = (float)rws_run_pass(r)->delta}, p, 1, 2);
    const rws_var value = rws_draw_index(r, mixture);
    *log_defended = rws_record(r, &rws_op_pick, (rws_op_args){0}, (rws_var[]){mixture, value}, 2, 1);
    return value;
}

const rws_family rws_bernoulli_family = {
    .name = "bernoulli",
    .n_params = 1,
    .prepare = prepare,
    .size = one,
    .choices = two,
    .dim = one,
    .draw = draw,
    .log_density = log_density,
    .draw_defended = draw_defended,
};

/* ---- as a vector */

static int length(rws_run *r, const rws_var *p)
{
    return rws_dim(r, p[0]);
}

static rws_var draw_bits(rws_run *r, rws_var logits, float delta)
{
    const rws_var in[] = {logits, rws_draw_counters(r)};
    return rws_record(r, &rws_op_bernoulli_draw, (rws_op_args){.s = delta}, in, 2, rws_dim(r, logits));
}

static rws_var vector_draw(rws_run *r, const rws_var *p, bool stop)
{
    (void)stop;
    return draw_bits(r, p[0], 0);
}

static rws_var vector_log_density(rws_run *r, rws_var value, const rws_var *p)
{
    rws_var       in[RWS_OP_INPUTS + 1] = {value};
    rws_op_args   args;
    const rws_op *op = rws_var_op(r, p[0], in + 1, &args);
    int           n = 1;
    if (!op || !op->bits)
        return rws_record(r, &rws_op_bernoulli_density, (rws_op_args){0}, (rws_var[]){value, p[0]}, 2, 1);
    while (n <= RWS_OP_INPUTS && in[n].id) n++;
    return rws_record(r, op->bits, args, in, n, 1);
}

/* Every component has its own mixture with a fair coin. */
static rws_var vector_draw_defended(rws_run *r, const rws_var *p, rws_var *log_defended)
{
    const float   delta = (float)rws_run_pass(r)->delta;
    const rws_var value = draw_bits(r, p[0], delta);
    *log_defended =
        rws_record(r, &rws_op_bernoulli_defended, (rws_op_args){.s = delta}, (rws_var[]){value, p[0]}, 2, 1);
    return value;
}

const rws_family rws_bernoulli_vector_family = {
    .name = "bernoulli vector",
    .n_params = 1,
    .size = length,
    .dim = length,
    .draw = vector_draw,
    .log_density = vector_log_density,
    .draw_defended = vector_draw_defended,
};

/* ---- ops */

static void log_sigmoids_forward(rws_call *c)
{
    const float *logit = rws_call_input(c, 0, 1);
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const float x = logit[r], soft = log1pf(expf(-fabsf(x)));
        c->out[2 * r] = -(soft + (x > 0 ? x : 0));
        c->out[2 * r + 1] = -(soft + (x < 0 ? -x : 0));
    }
}

static void log_sigmoids_backward(rws_call *c)
{
    float *g = rws_call_open(c, 0, 1);
    if (g)
        for (size_t r = 0; r < (size_t)c->n; r++)
            g[r] += c->gout[2 * r + 1] * expf(c->out[2 * r]) - c->gout[2 * r] * expf(c->out[2 * r + 1]);
    rws_call_close(c, 0, 1, g);
}

/* Rows are taken eight numbers at a time. Particles of one datum stand together and often share a row of logits: what
 * depends on those alone is not computed again while the row stays the same. */

static inline rws_v8 load(const float *x, int left)
{
    if (left >= 8) return *(const rws_v8 *)x;
    rws_v8 v = {0};
    memcpy(&v, x, (size_t)left * sizeof(float));
    return v;
}

static inline void store(float *x, int left, rws_v8 v)
{
    if (left >= 8) *(rws_v8 *)x = v;
    else memcpy(x, &v, (size_t)left * sizeof(float));
}

static inline rws_v8 uniforms(const uint32_t *words) /* rws_unit */
{
    return (__builtin_convertvector((rws_i8)(*(const rws_u8 *)words >> 9), rws_v8) + 0.5f) * 0x1p-23f;
}

/* 1 where u < (1 - delta) sigmoid(l) + delta / 2; inputs l and counters */
static void bernoulli_draw_forward(rws_call *c)
{
    const int    dim = c->dim, padded = (dim + 15) / 16 * 16;
    const float  keep = 1 - c->args.s, floor = c->args.s / 2;
    const rws_v8 zero = {0}, one = zero + 1;
    float       *inverse = RWS_NEW(c->arena, float, padded); /* 1 / sigmoid */
    uint32_t    *words = RWS_NEW(c->arena, uint32_t, padded);
    const float *last = NULL;
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const float *l = rws_view_row(&c->in[0], r);
        for (int j = 0; j < dim && l != last; j += 8) *(rws_v8 *)(inverse + j) = rws_exp8(-load(l + j, dim - j)) + 1;
        last = l;
        rws_counter_row((const rws_counter *)rws_view_row(&c->in[1], r), (size_t)padded, words);
        for (int j = 0; j < dim; j += 8) {
            const rws_i8 yes = (uniforms(words + j) - floor) * *(const rws_v8 *)(inverse + j) < keep;
            store(c->out + r * (size_t)dim + j, dim - j, rws_choose8(yes, one, zero));
        }
    }
}

/* sum of log(1 + e^-|l|): the logarithm of products, which do not overflow */
static double log_sum(const float *l, int dim)
{
    enum { MOST = 960 }; /* factors of at most 2, in a double */
    double total = 0;
    for (int from = 0; from < dim; from += MOST) {
        const int end = dim - from < MOST ? dim : from + MOST;
        rws_v8    product = (rws_v8){0} + 1;
        for (int j = from; j < end; j += 8) product *= rws_exp8(rws_minus_abs8(load(l + j, end - j))) + 1;
        double all =
            exp2((double)(end - from - (end - from + 7) / 8 * 8)); /* what fills up the last eight is 1 + e^0 */
        for (int i = 0; i < 8; i++) all *= (double)product[i];
        total += log(all);
    }
    return total;
}

/* sum of x l - softplus(l) = sum of (x - [l > 0]) l - log(1 + e^-|l|); inputs x, l. Nothing times infinity is nothing. */
static void bernoulli_density_forward(rws_call *c)
{
    const int    dim = c->in[1].dim;
    const float *last = NULL;
    double       norm = 0;
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const float *x = rws_view_row(&c->in[0], r), *l = rws_view_row(&c->in[1], r);
        rws_v8       sum = {0};
        if (l != last) norm = log_sum(l, dim);
        last = l;
        for (int j = 0; j < dim; j += 8) {
            const rws_v8 v = load(l + j, dim - j),
                         by = load(x + j, dim - j) - rws_choose8(v > 0, (rws_v8){0} + 1, (rws_v8){0});
            sum += (rws_v8)((rws_i8)(by * v) & (rws_i8)(by != 0));
        }
        double total = -norm;
        for (int i = 0; i < 8; i++) total += (double)sum[i];
        c->out[r] = (float)total;
    }
}

static void bernoulli_density_backward(rws_call *c)
{
    const int    dim = c->in[1].dim;
    rws_sink    *gx = &c->gin[0], *gl = &c->gin[1];
    const bool   fresh = gl->fresh;
    float       *p = RWS_NEW(c->arena, float, dim + 8); /* sigmoid(l) */
    const float *last = NULL;
    rws_call_clear(c, 0);
    gl->fresh = false;
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const float *x = rws_view_row(&c->in[0], r), *l = rws_view_row(&c->in[1], r), g = c->gout[r];
        for (int j = 0; j < dim && l != last; j += 8) {
            const rws_v8 v = load(l + j, dim - j), e = rws_exp8(rws_minus_abs8(v)), one = (rws_v8){0} + 1;
            *(rws_v8 *)(p + j) = rws_choose8(v > 0, one, e) / (e + 1);
        }
        last = l;
        if (gl->data) {
            float *to = rws_call_sink_row(c, 1, r);
            for (int j = 0; j < dim; j += 8) {
                rws_v8 by = g * (load(x + j, dim - j) - *(const rws_v8 *)(p + j));
                if (!fresh) by += load(to + j, dim - j);
                store(to + j, dim - j, by);
            }
        }
        if (gx->data) {
            float *to = rws_call_sink_row(c, 0, r);
            for (int j = 0; j < dim; j++) to[j] += g * l[j];
        }
    }
}

/* sum of log((1 - delta) p + delta / 2), p the probability of the bit that was drawn */
static void bernoulli_defended_forward(rws_call *c)
{
    const int    dim = c->in[1].dim;
    const float *x = rws_call_input(c, 0, dim), *l = rws_call_input(c, 1, dim), keep = 1 - c->args.s,
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
