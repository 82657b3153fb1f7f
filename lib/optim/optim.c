#include "optim/optim.h"

#include "base/error.h"

#include <math.h>
#include <string.h>

const rws_optimiser *const rws_optimisers[] = {
    &rws_optimiser_sgd, &rws_optimiser_momentum, &rws_optimiser_adam, &rws_optimiser_rmsprop, NULL,
};

const rws_optimiser *rws__optimiser_find(const char *name)
{
    for (const rws_optimiser *const *o = rws_optimisers; *o; o++) {
        if (strcmp((*o)->name, name) == 0) return *o;
    }
    return NULL;
}

rws_status rws__optim_config_check(const rws_optim_config *c, rws_error *err)
{
    /* Written so that a NaN fails every test. */
    const struct {
        const char *name;
        double      value;
    } decays[] = {{"beta1", c->beta1}, {"beta2", c->beta2}, {"rho", c->rho}, {"momentum", c->momentum}};
    for (size_t i = 0; i < sizeof decays / sizeof *decays; i++) {
        if (!(decays[i].value >= 0.0 && decays[i].value < 1.0)) {
            return rws_fail(err, RWS_BAD_INPUT, "The optimiser's %s must be at least 0 and below 1, not %g.",
                            decays[i].name, decays[i].value);
        }
    }
    /* The steps are in float32: an eps that vanishes there would leave 0/0 where the gradient is 0. */
    if (!(c->eps >= FLT_MIN && c->eps <= 1.0)) {
        return rws_fail(err, RWS_BAD_INPUT, "The optimiser's eps must be between %g and 1, not %g.", (double)FLT_MIN,
                        c->eps);
    }
    if (!(c->l2 >= 0.0 && c->l2 <= FLT_MAX)) {
        return rws_fail(err, RWS_BAD_INPUT, "The optimiser's l2 must be finite and not negative, not %g.", c->l2);
    }
    return RWS_OK;
}

void rws__optimiser_reset(const rws_optimiser *o, size_t n, float *const slot[2])
{
    for (int s = 0; s < o->n_slots; s++) {
        for (size_t i = 0; i < n; i++) slot[s][i] = o->slot_init[s];
    }
}
