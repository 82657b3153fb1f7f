/* function.c - scalar functions whose derivatives are functions of their value, applied to many numbers. */
#include "base/error.h"
#include "base/vecmath.h"
#include "tensor/op.h"

/* One loop per function, so that each vectorises; x, y and the result are the only memory touched. */
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
    case RWS_TANH: EACH(y[i] = tanhf(x[i])); return;
    case RWS_RELU: EACH(y[i] = x[i] > 0 ? x[i] : 0); return;
    case RWS_ELU: EACH(float e = expm1f(x[i] < 0 ? x[i] : 0); y[i] = x[i] > 0 ? x[i] : e); return;
    case RWS_SIGMOID: EACH(y[i] = 1 / (1 + expf(-x[i]))); return;
    case RWS_SOFTPLUS: EACH(float a = fabsf(x[i]); y[i] = (x[i] > 0 ? x[i] : 0) + log1pf(expf(-a))); return;
    case RWS_EXP: EACH(y[i] = expf(x[i])); return;
    case RWS_LOG: EACH(y[i] = logf(x[i])); return;
    }
    RWS_CHECK(!"a known function");
}

void rws_function_slope(rws_function f, size_t n, const float *y, float *slope)
{
    switch (f) {
    case RWS_LINEAR: EACH(slope[i] = 1); return;
    case RWS_TANH: EACH(slope[i] = 1 - y[i] * y[i]); return;
    case RWS_RELU: EACH(slope[i] = y[i] > 0 ? 1 : 0); return;
    case RWS_ELU: EACH(slope[i] = y[i] > 0 ? 1 : y[i] + 1); return;
    case RWS_SIGMOID: EACH(slope[i] = y[i] * (1 - y[i])); return;
    case RWS_SOFTPLUS: EACH(slope[i] = -expm1f(-y[i])); return;
    case RWS_EXP: EACH(slope[i] = y[i]); return;
    case RWS_LOG: EACH(slope[i] = expf(-y[i])); return;
    }
    RWS_CHECK(!"a known function");
}

void rws_function_bend(rws_function f, size_t n, const float *y, float *bend)
{
    switch (f) {
    case RWS_LINEAR:
    case RWS_RELU: EACH(bend[i] = 0 * y[i]); return;
    case RWS_TANH: EACH(bend[i] = -2 * y[i]); return;
    case RWS_ELU: EACH(bend[i] = y[i] > 0 ? 0 : 1); return;
    case RWS_SIGMOID: EACH(bend[i] = 1 - 2 * y[i]); return;
    case RWS_SOFTPLUS: EACH(bend[i] = expf(-y[i])); return;
    case RWS_EXP: EACH(bend[i] = 1 + 0 * y[i]); return;
    case RWS_LOG: EACH(bend[i] = -expf(-y[i])); return;
    }
    RWS_CHECK(!"a known function");
}
