/* sgd.c - stochastic gradient ascent, plain and with momentum.
 *
 *     sgd:       param += lr g
 *     momentum:  mom = momentum * mom + g;  param += lr mom
 *
 * The rate stays outside mom (as in PyTorch, unlike rmsprop.c), so a scheduled drop of the rate acts at once. They are
 * two entries because plain sgd should not carry a state vector it never reads.
 */
#include "optim/optim.h"

static void step_sgd(const rws_optim_config *c, float lr, uint64_t t, size_t n, float *param, const float *grad,
                     float *const slot[2])
{
    (void)t, (void)slot;
    float *restrict p = param;
    const float *restrict grad_ = grad;
    const float l2 = (float)c->l2;
#pragma omp simd
    for (size_t i = 0; i < n; i++) {
        const float g = grad_[i] - l2 * p[i];
        p[i] = lr == 0 ? p[i] : p[i] + lr * g;
    }
}

static void step_momentum(const rws_optim_config *c, float lr, uint64_t t, size_t n, float *param, const float *grad,
                          float *const slot[2])
{
    (void)t;
    float *restrict p = param, *restrict mom = slot[0];
    const float *restrict grad_ = grad;
    const float l2 = (float)c->l2, decay = (float)c->momentum;
#pragma omp simd
    for (size_t i = 0; i < n; i++) {
        const float g = grad_[i] - l2 * p[i];
        const float mom_i = rws__optim_flush(decay * mom[i] + g);
        mom[i] = mom_i;
        p[i] = lr == 0 ? p[i] : p[i] + lr * mom_i;
    }
}

const rws_optimiser rws_optimiser_sgd = {
    .name = "sgd",
    .help = "stochastic gradient ascent",
    .n_slots = 0,
    .defaults = {.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .rho = 0.9, .momentum = 0.0, .l2 = 0.0},
    .step = step_sgd,
};

const rws_optimiser rws_optimiser_momentum = {
    .name = "momentum",
    .help = "stochastic gradient ascent with momentum",
    .n_slots = 1,
    .slot_names = {"mom"},
    .slot_init = {0.0f},
    .defaults = {.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .rho = 0.9, .momentum = 0.9, .l2 = 0.0},
    .step = step_momentum,
};
