/* function.c - scalar functions whose derivatives are functions of their value, applied to many numbers. Each function
 * has a loop of its own, so that each loop is vectorised. */
#include "base/error.h"
#include "tensor/rows.h"

const rws_function_info rws_functions[] = {
    [RWS_LINEAR] = {"linear", "x"},
    [RWS_TANH] = {"tanh", "the hyperbolic tangent"},
    [RWS_RELU] = {"relu", "max(x, 0)"},
    [RWS_ELU] = {"elu", "x above 0, e^x - 1 below"},
    [RWS_SIGMOID] = {"sigmoid", "1 / (1 + e^-x)"},
    [RWS_SOFTPLUS] = {"softplus", "log(1 + e^x)"},
    [RWS_EXP] = {"exp", "e^x"},
    [RWS_LOG] = {"log", "the natural logarithm"},
    [RWS_SQRT] = {"sqrt", "the square root"},
    [RWS_SQUARE] = {"square", "x^2"},
    [RWS_SIN] = {"sin", "the sine"},
    [RWS_COS] = {"cos", "the cosine"},
    [RWS_ABS] = {"abs", "|x|"},
    [RWS_LOG_SIGMOID] = {"log_sigmoid", "-log(1 + e^-x)"},
    [RWS_LOG1P] = {"log1p", "log(1 + x)"},
    [RWS_EXPM1] = {"expm1", "e^x - 1"},
    [RWS_LGAMMA] = {"lgamma", "log |Gamma(x)|"},
    [RWS_DIGAMMA] = {"digamma", "the derivative of lgamma"},
    [RWS_LOG1MEXP] = {"log1mexp", "log(1 - e^-x)"},
};

void rws__function_apply(rws_function f, size_t n, const float *x, float *y)
{
    switch (f) {
    case RWS_LINEAR: RWS_EACH(n, y[i] = x[i]); return;
    case RWS_TANH: RWS_EACH(n, y[i] = rws__tanh(x[i])); return;
    case RWS_RELU: RWS_EACH(n, y[i] = x[i] <= 0 ? 0 : x[i]); return; /* a NaN stays a NaN */
    case RWS_ELU: RWS_EACH(n, float e = rws__expm1(x[i] >= 0 ? 0 : x[i]); y[i] = x[i] > 0 ? x[i] : e); return;
    case RWS_SIGMOID: RWS_EACH(n, y[i] = 1 / (1 + rws__exp(-x[i]))); return;
    case RWS_SOFTPLUS: RWS_EACH(n, float a = fabsf(x[i]); y[i] = (x[i] > 0 ? x[i] : 0) + log1pf(rws__exp(-a))); return;
    case RWS_EXP: RWS_EACH(n, y[i] = rws__exp(x[i])); return;
    case RWS_LOG: RWS_EACH(n, y[i] = logf(x[i])); return;
    default: RWS_CHECK(!"a known function");
    }
}

void rws__function_slope(rws_function f, size_t n, const float *y, const float *g, float *out)
{
    switch (f) {
    case RWS_LINEAR: RWS_EACH(n, out[i] = g[i]); return;
    case RWS_TANH: RWS_EACH(n, out[i] = g[i] * (1 - y[i] * y[i])); return;
    case RWS_RELU: RWS_EACH(n, out[i] = y[i] > 0 ? g[i] : 0); return;
    case RWS_ELU: RWS_EACH(n, out[i] = y[i] > 0 ? g[i] : g[i] * (y[i] + 1)); return;
    case RWS_SIGMOID: RWS_EACH(n, out[i] = g[i] * y[i] * (1 - y[i])); return;
    case RWS_SOFTPLUS: RWS_EACH(n, out[i] = -g[i] * rws__expm1(-y[i])); return;
    case RWS_EXP: RWS_EACH(n, out[i] = g[i] * rws__where(g[i], y[i])); return;
    case RWS_LOG: RWS_EACH(n, out[i] = g[i] * rws__where(g[i], rws__exp(-y[i]))); return;
    default: RWS_CHECK(!"a known function");
    }
}

void rws__function_bend(rws_function f, size_t n, const float *y, const float *g, float *out)
{
    switch (f) {
    case RWS_LINEAR:
    case RWS_RELU: RWS_EACH(n, out[i] = 0); return;
    case RWS_TANH: RWS_EACH(n, out[i] = -2 * g[i] * y[i]); return;
    case RWS_ELU: RWS_EACH(n, out[i] = y[i] > 0 ? 0 : g[i]); return;
    case RWS_SIGMOID: RWS_EACH(n, out[i] = g[i] * (1 - 2 * y[i])); return;
    case RWS_SOFTPLUS: RWS_EACH(n, out[i] = g[i] * rws__exp(-y[i])); return;
    case RWS_EXP: RWS_EACH(n, out[i] = g[i]); return;
    case RWS_LOG: RWS_EACH(n, out[i] = -g[i] * rws__where(g[i], rws__exp(-y[i]))); return;
    default: RWS_CHECK(!"a known function");
    }
}
