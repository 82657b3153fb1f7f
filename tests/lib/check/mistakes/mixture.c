/* mixture.c - the model without a mistake, and what the others share with it. */
#include "planted.h"

rws_status mixture_setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    (void)random;
    mixture *m = rws_setup_alloc(s, sizeof *m);
    if (!m) return rws_no_memory(err, "a mixture");
    rws_setup_field(s, "x", 1);
    m->prior = rws_setup_param(s, RWS_THETA, "theta.prior", 1, 3, RWS_ZERO);
    m->means = rws_setup_param(s, RWS_THETA, "theta.means", 1, 3, RWS_ZERO);
    for (int i = 0; i < 3; i++) rws_param_values(m->means)[i] = (float)(2 * i - 2);
    m->net = rws_setup_mlp(s, RWS_PHI, "phi.net", RWS_TANH, RWS_UNIFORM, (int[]){1, 8, 3}, 3);
    *state = m;
    return RWS_OK;
}

rws_status mixture_data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                        float *const *fields, rws_error *err)
{
    (void)state, (void)split, (void)first, (void)err;
    for (int i = 0; i < n; i++)
        fields[0][i] = (float)(2 * (int)rws_random_below(random, 3) - 2 + 0.5 * rws_random_normal(random));
    return RWS_OK;
}

void mixture_guide(rws_path *path, const void *state)
{
    const mixture *m = state;
    rws_categorical(path, "z", rws_mlp(path, m->net, rws_observed(path, "x")));
}

void mixture_x(rws_path *path, const mixture *m, rws_var z)
{
    rws_normal(path, "x", rws_pick(path, rws_parameter(path, m->means), z), rws_constant(path, 1));
}

void mixture_model(rws_path *path, const void *state)
{
    const mixture *m = state;
    mixture_x(path, m, rws_categorical(path, "z", rws_parameter(path, m->prior)));
}
