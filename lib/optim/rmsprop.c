/* rmsprop.c - RMSProp with momentum in TensorFlow's form: not centred, s starts at 1, eps is inside the root.
 *
 *     s   = rho s + (1 - rho) g^2
 *     mom = momentum * mom + lr * g / sqrt(s + eps)
 *     param += mom
 *
 * The ones damp the first steps for as long as rho^t exceeds the squared scale of the gradient; with zeros instead, the
 * first step of every parameter would have the length lr / sqrt(1 - rho) whatever its gradient. The rate is inside mom:
 * a scheduled drop of the rate takes some 1 / (1 - momentum) steps to act. A drop to 0 acts at once (optim.h).
 */
#include "optim/optim.h"

static void step_rmsprop(const rws_optim_config *c, float lr, uint64_t t, size_t n, float *param, const float *grad,
                         float *const slot[2])
{
    (void)t;
    float *restrict p = param, *restrict s = slot[0], *restrict mom = slot[1];
    const float *restrict grad_ = grad;
    const float rho = (float)c->rho, a = (float)(1.0 - c->rho);
    const float decay = (float)c->momentum, eps = (float)c->eps, l2 = (float)c->l2;
#pragma omp simd
    for (size_t i = 0; i < n; i++) {
        const float g = grad_[i] - l2 * p[i];
        const float s_i = rws__optim_flush(rho * s[i] + a * (g * g));
        const float mom_i = rws__optim_flush(decay * mom[i] + lr * g / __builtin_sqrtf(s_i + eps));
        s[i] = s_i;
        mom[i] = mom_i;
        p[i] = lr == 0 ? p[i] : p[i] + mom_i;
    }
}

const rws_optimiser rws_optimiser_rmsprop = {
    .name = "rmsprop",
    .help = "RMSProp with momentum: steps scaled by a running mean of the squared gradient that starts at 1",
    .n_slots = 2,
    .slot_names = {"s", "mom"},
    .slot_init = {1.0f, 0.0f},
    .defaults = {.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-10, .rho = 0.9, .momentum = 0.9, .l2 = 0.0},
    .step = step_rmsprop,
};
