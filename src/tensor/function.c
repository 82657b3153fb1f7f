/* function.c - scalar functions whose derivatives are functions of their value, applied to many numbers. */
#include "base/error.h"
#include "base/vecmath.h"
#include "tensor/op.h"

/* One loop per function, so that each vectorises. */
#define EACH(expression)                                   \
    do {                                                   \
        _Pragma("omp simd") for (size_t i = 0; i < n; i++) \
        {                                                  \
            expression;                                    \
        }                                                  \
    } while (0)

void rws_function_apply(rws_function f, size_t n, const float *x, float *y)
{
    switch (f) {
    case RWS_LINEAR: EACH(y[i] = x[i]); return;
    case RWS_TANH: EACH(y[i] = rws_tanh(x[i])); return;
    case RWS_RELU: EACH(y[i] = x[i] > 0 ? x[i] : 0); return;
    case RWS_ELU: EACH(float e = rws_expm1(x[i] < 0 ? x[i] : 0); y[i] = x[i] > 0 ? x[i] : e); return;
    case RWS_SIGMOID: EACH(y[i] = 1 / (1 + rws_exp(-x[i]))); return;
    case RWS_SOFTPLUS: EACH(float a = fabsf(x[i]); y[i] = (x[i] > 0 ? x[i] : 0) + log1pf(rws_exp(-a))); return;
    case RWS_EXP: EACH(y[i] = rws_exp(x[i])); return;
    case RWS_LOG: EACH(y[i] = logf(x[i])); return;
    }
    RWS_CHECK(!"a known function");
}

void rws_function_slope(rws_function f, size_t n, const float *y, const float *g, float *out)
{
    switch (f) {
    case RWS_LINEAR: EACH(out[i] = g[i]); return;
    case RWS_TANH: EACH(out[i] = g[i] * (1 - y[i] * y[i])); return;
    case RWS_RELU: EACH(out[i] = y[i] > 0 ? g[i] : 0); return;
    case RWS_ELU: EACH(out[i] = y[i] > 0 ? g[i] : g[i] * (y[i] + 1)); return;
    case RWS_SIGMOID: EACH(out[i] = g[i] * y[i] * (1 - y[i])); return;
    case RWS_SOFTPLUS: EACH(out[i] = -g[i] * rws_expm1(-y[i])); return;
    case RWS_EXP: EACH(out[i] = g[i] * y[i]); return;
    case RWS_LOG: EACH(out[i] = g[i] * rws_exp(-y[i])); return;
    }
    RWS_CHECK(!"a known function");
}

void rws_function_bend(rws_function f, size_t n, const float *y, const float *g, float *out)
{
    switch (f) {
    case RWS_LINEAR:
    case RWS_RELU: EACH(out[i] = 0); return;
    case RWS_TANH: EACH(out[i] = -2 * g[i] * y[i]); return;
    case RWS_ELU: EACH(out[i] = y[i] > 0 ? 0 : g[i]); return;
    case RWS_SIGMOID: EACH(out[i] = g[i] * (1 - 2 * y[i])); return;
    case RWS_SOFTPLUS: EACH(out[i] = g[i] * rws_exp(-y[i])); return;
    case RWS_EXP: EACH(out[i] = g[i]); return;
    case RWS_LOG: EACH(out[i] = -g[i] * rws_exp(-y[i])); return;
    }
    RWS_CHECK(!"a known function");
}
