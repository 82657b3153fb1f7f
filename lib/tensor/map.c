/* map.c - scalar functions whose derivatives are computed from the argument x; those of function.c need only the value.
 * Each function has a loop of its own, so that each loop is vectorised where the C library has a vector form.
 *
 * map is y = f(x); map_tangent is f'(x) dx, the gradient of which needs f''. */
#include "base/error.h"
#include "tensor/rows.h"
#include "tensor/special.h"
#include "tensor/tangent.h"

#include <stdlib.h>

extern const rws_op rws_op_map_tangent; /* below */

static size_t size(const rws_call *c)
{
    return (size_t)c->n * (size_t)c->dim;
}

/* sigmoid(x) */
static inline float logistic(float x)
{
    return 1 / (1 + rws__exp(-x));
}

static inline float softplus(float x)
{
    return (x > 0 ? x : 0) + log1pf(rws__exp(-fabsf(x)));
}

/* e^x - 1 of any x. rws__expm1 is for x up to 88; above 88 the 1 is smaller than the rounding of e^x. */
static inline float expm1_of(float x)
{
    const float near = rws__expm1(x), far = rws__exp(x);
    return x > 88 ? far : near;
}

/* log(1 - e^-x), without the difference of two numbers that are nearly equal */
static inline float log1mexp(float x)
{
    return x < 0.693147181f ? logf(-expm1f(-x)) : log1pf(-expf(-x));
}

static void apply(rws_function f, size_t n, const float *x, float *y)
{
    switch (f) {
    case RWS_SQRT: RWS_EACH(n, y[i] = sqrtf(x[i])); return;
    case RWS_SQUARE: RWS_EACH(n, y[i] = x[i] * x[i]); return;
    case RWS_SIN: RWS_EACH(n, y[i] = sinf(x[i])); return;
    case RWS_COS: RWS_EACH(n, y[i] = cosf(x[i])); return;
    case RWS_ABS: RWS_EACH(n, y[i] = fabsf(x[i])); return;
    case RWS_LOG_SIGMOID: RWS_EACH(n, y[i] = -softplus(-x[i])); return;
    case RWS_LOG1P: RWS_EACH(n, y[i] = log1pf(x[i])); return;
    case RWS_EXPM1: RWS_EACH(n, y[i] = expm1_of(x[i])); return;
    case RWS_LGAMMA: RWS_EACH(n, y[i] = (float)rws__lgamma((double)x[i])); return;
    case RWS_DIGAMMA: RWS_EACH(n, y[i] = (float)rws__digamma((double)x[i])); return;
    case RWS_LOG1MEXP: RWS_EACH(n, y[i] = log1mexp(x[i])); return;
    default: RWS_CHECK(!"a known function");
    }
}

/* out = g f'(x) */
static void slope(rws_function f, size_t n, const float *x, const float *g, float *out)
{
    switch (f) {
    case RWS_SQRT: RWS_EACH(n, out[i] = rws__where(g[i], g[i] * 0.5f / sqrtf(x[i]))); return;
    case RWS_SQUARE: RWS_EACH(n, out[i] = g[i] * 2 * rws__where(g[i], x[i])); return;
    case RWS_SIN: RWS_EACH(n, out[i] = g[i] * cosf(x[i])); return;
    case RWS_COS: RWS_EACH(n, out[i] = -g[i] * sinf(x[i])); return;
    case RWS_ABS: RWS_EACH(n, out[i] = x[i] > 0 ? g[i] : x[i] < 0 ? -g[i] : 0); return;
    case RWS_LOG_SIGMOID: RWS_EACH(n, out[i] = g[i] * logistic(-x[i])); return;
    case RWS_LOG1P: RWS_EACH(n, out[i] = rws__where(g[i], g[i] / (1 + x[i]))); return;
    case RWS_EXPM1: RWS_EACH(n, out[i] = g[i] * rws__where(g[i], rws__exp(x[i]))); return;
    case RWS_LGAMMA: RWS_EACH(n, out[i] = g[i] * rws__where(g[i], (float)rws__digamma((double)x[i]))); return;
    case RWS_DIGAMMA: RWS_EACH(n, out[i] = g[i] * rws__where(g[i], (float)rws__trigamma((double)x[i]))); return;
    case RWS_LOG1MEXP: RWS_EACH(n, out[i] = rws__where(g[i], g[i] / expm1f(x[i]))); return;
    default: RWS_CHECK(!"a known function");
    }
}

/* out = g f''(x) */
static void bend(rws_function f, size_t n, const float *x, const float *g, float *out)
{
    switch (f) {
    case RWS_SQRT: RWS_EACH(n, out[i] = rws__where(g[i], g[i] * -0.25f / (x[i] * sqrtf(x[i])))); return;
    case RWS_SQUARE: RWS_EACH(n, out[i] = g[i] * 2); return;
    case RWS_SIN: RWS_EACH(n, out[i] = -g[i] * sinf(x[i])); return;
    case RWS_COS: RWS_EACH(n, out[i] = -g[i] * cosf(x[i])); return;
    case RWS_ABS: RWS_EACH(n, out[i] = 0); return;
    case RWS_LOG_SIGMOID: RWS_EACH(n, out[i] = -g[i] * logistic(x[i]) * logistic(-x[i])); return;
    case RWS_LOG1P: RWS_EACH(n, out[i] = rws__where(g[i], -g[i] / ((1 + x[i]) * (1 + x[i])))); return;
    case RWS_EXPM1: RWS_EACH(n, out[i] = g[i] * rws__where(g[i], rws__exp(x[i]))); return;
    case RWS_LGAMMA: RWS_EACH(n, out[i] = g[i] * rws__where(g[i], (float)rws__trigamma((double)x[i]))); return;
    case RWS_DIGAMMA: RWS_EACH(n, out[i] = g[i] * rws__where(g[i], (float)rws__tetragamma((double)x[i]))); return;
    case RWS_LOG1MEXP: RWS_EACH(n, out[i] = rws__where(g[i], g[i] / (expm1f(x[i]) * expm1f(-x[i])))); return;
    default: RWS_CHECK(!"a known function");
    }
}

static void map_forward(rws_call *c)
{
    apply((rws_function)c->args.k, size(c), rws__call_input(c, 0, c->dim), c->out);
}

static void map_backward(rws_call *c)
{
    bool   fresh;
    float *g = rws__call_claim(c, 0, c->dim, &fresh);
    if (!g) return;
    float *by_x = fresh ? g : RWS_NEW(c->arena, float, size(c));
    slope((rws_function)c->args.k, size(c), rws__call_input(c, 0, c->dim), c->gout, by_x);
    if (!fresh) RWS_EACH(size(c), g[i] += by_x[i]);
    rws__call_close(c, 0, c->dim, g);
}

static rws_var map_rule(rws_tangent *t) /* f'(x) dx */
{
    return rws__tangent_record(t, &rws_op_map_tangent, (rws_op_args){.k = t->args.k}, (rws_var[]){t->in[0], t->d[0]}, 2,
                               t->dim);
}

static void map_tangent_forward(rws_call *c)
{
    const float *x = rws__call_input(c, 0, c->dim), *dx = rws__call_input(c, 1, c->dim);
    slope((rws_function)c->args.k, size(c), x, dx, c->out);
}

static void map_tangent_backward(rws_call *c)
{
    const float       *x = rws__call_input(c, 0, c->dim), *dx = rws__call_input(c, 1, c->dim);
    const rws_function f = (rws_function)c->args.k;
    float             *gx = rws__call_open(c, 0, c->dim), *gdx = rws__call_open(c, 1, c->dim);
    float              by[RWS_TILE];
    for (size_t first = 0; first < size(c); first += RWS_TILE) {
        const size_t n = size(c) - first < RWS_TILE ? size(c) - first : RWS_TILE;
        if (gx) {
            bend(f, n, x + first, c->gout + first, by);
            RWS_EACH(n, gx[first + i] += by[i] * rws__where(by[i], dx[first + i]));
        }
        if (gdx) {
            slope(f, n, x + first, c->gout + first, by);
            RWS_EACH(n, gdx[first + i] += by[i]);
        }
    }
    rws__call_close(c, 0, c->dim, gx);
    rws__call_close(c, 1, c->dim, gdx);
}

const rws_op rws_op_map = {
    .name = "map", .forgets = true, .tangent = map_rule, .forward = map_forward, .backward = map_backward};
const rws_op rws_op_map_tangent = {
    .name = "map_tangent", .forgets = true, .forward = map_tangent_forward, .backward = map_tangent_backward};
