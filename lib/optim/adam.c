/* adam.c - Adam (Kingma and Ba 2015), with eps added after the bias correction.
 *
 *     m = beta1 m + (1 - beta1) g
 *     v = beta2 v + (1 - beta2) g^2
 *     param += lr * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)
 */
#include "optim/optim.h"

#include "base/error.h"

#include <math.h>

static void step_adam(const rws_optim_config *c, float lr, uint64_t t, size_t n, float *param, const float *grad,
                      float *const slot[2])
{
    RWS_CHECK(t >= 1);
    float *restrict p = param, *restrict m = slot[0], *restrict v = slot[1];
    const float *restrict grad_ = grad;
    /* 1 - beta^t through expm1, which keeps all digits when beta^t is near 1; beta = 0 gives log = -inf and 1. */
    const double correction1 = -expm1((double)t * log(c->beta1));
    const double correction2 = -expm1((double)t * log(c->beta2));
    const float  rate = (float)(lr / correction1), v_scale = (float)(1.0 / correction2);
    const float  b1 = (float)c->beta1, a1 = (float)(1.0 - c->beta1);
    const float  b2 = (float)c->beta2, a2 = (float)(1.0 - c->beta2);
    const float  eps = (float)c->eps, l2 = (float)c->l2;
#pragma omp simd
    for (size_t i = 0; i < n; i++) {
        const float g = grad_[i] - l2 * p[i];
        const float m_i = rws__optim_flush(b1 * m[i] + a1 * g);
        const float v_i = rws__optim_flush(b2 * v[i] + a2 * (g * g));
        m[i] = m_i;
        v[i] = v_i;
        p[i] = lr == 0 ? p[i] : p[i] + rate * m_i / (__builtin_sqrtf(v_i * v_scale) + eps);
    }
}

const rws_optimiser rws_optimiser_adam = {
    .name = "adam",
    .help = "Adam: steps scaled by running means of the gradient and of its square",
    .n_slots = 2,
    .slot_names = {"m", "v"},
    .slot_init = {0.0f, 0.0f},
    .defaults = {.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .rho = 0.9, .momentum = 0.9, .l2 = 0.0},
    .step = step_adam,
};
