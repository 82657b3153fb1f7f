/* optim.h - one step of gradient ascent on a range of the flat parameter vector.
 *
 * The run holds all parameters in one float32 vector, with the gradient and the optimiser's state ("slots") in vectors
 * of the same layout; an optimiser moves a range of it by one step. It does not know what the numbers mean, does not
 * allocate, and does not choose the learning rate (schedule.h does).
 *
 *     backward -> gradient (+ scheduled rate) -> [optimiser] -> parameters
 *
 * `grad` is the direction of ASCENT, minus the gradient of the loss. With the penalty l2/2 |param|^2 on the loss,
 *
 *     g = grad - l2 * param,      param += step(g),
 *
 * and the moments below are moments of this g. A rate of 0 freezes the parameters: no bit of param changes, and only
 * the optimiser's state follows the gradient. The implementations say so expressly, because -0 + 0 is +0 and rmsprop's
 * momentum would continue. Every element is computed by itself in the same way, so the bits do not
 * depend on how a vector is cut into ranges.
 */
#ifndef RWS_OPTIM_OPTIM_H
#define RWS_OPTIM_OPTIM_H

#include "rws.h"

#include <float.h>

/* Double, because 1 - beta2 in float32 is already wrong in the fifth digit. An optimiser reads only what it needs. */
typedef struct {
    double beta1;    /* adam: decay of the mean of g */
    double beta2;    /* adam: decay of the mean of g^2 */
    double eps;      /* adam: added to the root; rmsprop: added inside it */
    double rho;      /* rmsprop: decay of the mean of g^2 */
    double momentum; /* momentum, rmsprop */
    double l2;       /* all: weight of |param|^2 / 2 in the loss */
} rws_optim_config;

typedef struct {
    const char      *name;          /* as typed on the command line */
    const char      *help;          /* one line for `rws list` */
    int              n_slots;       /* state vectors, each as long as the parameters */
    const char      *slot_names[2]; /* as they stand in the checkpoint */
    float            slot_init[2];  /* what a slot holds before the first step */
    rws_optim_config defaults;
    /* Step t (counted from 1 for each group of parameters that is stepped together) on n elements. The vectors must not
     * overlap; slot[i] is read for i < n_slots only, and points at the same range as param. Cannot fail: the config
     * passed rws__optim_config_check, and a NaN in grad goes into param unless lr is 0, so the caller looks before the
     * step. */
    void (*step)(const rws_optim_config *c, float lr, uint64_t t, size_t n, float *param, const float *grad,
                 float *const slot[2]);
} rws_optimiser;

/* Every optimiser, NULL-terminated. --help and the tests walk this table: one that is not in it does not exist. */
extern const rws_optimiser *const rws_optimisers[];

extern const rws_optimiser rws_optimiser_sgd, rws_optimiser_momentum, rws_optimiser_adam, rws_optimiser_rmsprop;

/* The optimiser of that name, static; NULL if there is none. */
const rws_optimiser *rws__optimiser_find(const char *name);

/* RWS_OK, or RWS_BAD_INPUT with a message that names the first setting out of range. */
rws_status rws__optim_config_check(const rws_optim_config *c, rws_error *err) __attribute__((warn_unused_result));

/* Fills the first n elements of the optimiser's slots with what they hold before step 1. Cannot fail. */
void rws__optimiser_reset(const rws_optimiser *o, size_t n, float *const slot[2]);

/* For the implementations: a decaying state becomes 0 instead of subnormal. Without this 0.9 * x rounds back to x a few
 * steps above zero, and a parameter whose gradient stays 0 (a pixel that is never inked) keeps its state subnormal for
 * the rest of the run, where arithmetic is twice as slow and worse. NaN stays NaN. */
static inline float rws__optim_flush(float x)
{
    return __builtin_fabsf(x) < FLT_MIN ? 0.0f : x;
}

#endif
