/* parameters.c - parameters of the wrong program, unused ones, and gradients that are lost. */
#include "planted.h"

static rws_status more_setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    RWS_TRY(mixture_setup(s, random, state, err));
    mixture *m = *state;
    m->extra = rws_setup_param(s, RWS_THETA, "theta.extra", 1, 1, RWS_ZERO);
    m->other = rws_setup_mlp(s, RWS_THETA, "net", RWS_TANH, RWS_UNIFORM, (int[]){1, 8, 3}, 3);
    rws_param_values(m->extra)[0] = 0.5f;
    return RWS_OK;
}

static rws_status extra_setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    RWS_TRY(mixture_setup(s, random, state, err));
    mixture *m = *state;
    m->extra = rws_setup_param(s, RWS_THETA, "theta.extra", 1, 1, RWS_ZERO);
    rws_param_values(m->extra)[0] = 0.5f;
    return RWS_OK;
}

/* The model asks the guide's network. */
static void phi_model(rws_path *path, const void *state)
{
    const mixture *m = state;
    mixture_x(path, m, rws_categorical(path, "z", rws_mlp(path, m->net, rws_constant(path, 0.3f))));
}

/* The guide's network was declared for theta. */
static void theta_guide(rws_path *path, const void *state)
{
    const mixture *m = state;
    rws_categorical(path, "z", rws_mlp(path, m->other, rws_observed(path, "x")));
}

static void theta_model(rws_path *path, const void *state)
{
    const mixture *m = state;
    const rws_var  z = rws_categorical(path, "z", rws_parameter(path, m->prior));
    rws_normal(path, "x", rws_pick(path, rws_parameter(path, m->means), z),
               rws_apply(path, RWS_EXP, rws_parameter(path, m->extra)));
}

static void numbers_model(rws_path *path, const void *state)
{
    const mixture *m = state;
    const rws_var  z = rws_categorical(path, "z", rws_parameter(path, m->prior));
    const rws_var  mean = rws_pick(path, rws_parameter(path, m->means), z);
    rws_normal(path, "x", mean, rws_constant(path, rws_param_values(m->extra)[0]));
}

static void detached_model(rws_path *path, const void *state)
{
    const mixture *m = state;
    const rws_var  z = rws_categorical(path, "z", rws_detach(path, rws_parameter(path, m->prior)));
    mixture_x(path, m, z);
}

static void half_model(rws_path *path, const void *state)
{
    const mixture *m = state;
    const rws_var  means = rws_parameter(path, m->means), z = rws_categorical(path, "z", rws_parameter(path, m->prior));
    const rws_var  sum = rws_add(path, means, rws_detach(path, means));
    rws_normal(path, "x", rws_pick(path, sum, z), rws_constant(path, 1));
}

static void looked_model(rws_path *path, const void *state)
{
    const mixture *m = state;
    const rws_var  z = rws_categorical(path, "z", rws_parameter(path, m->prior));
    const rws_var  mean = rws_pick(path, rws_parameter(path, m->means), z);
    rws_normal(path, "x", mean, rws_constant(path, rws_look(path, rws_parameter(path, m->extra))[0]));
}

const planted planted_parameters[] = {
    {"the model uses the guide's network", "group", RWS_MISTAKE, "phi.net.0.weight", "theta", NULL, true, mixture_guide,
     phi_model},
    {"the guide's network is theta's, under wws", "group", RWS_MISTAKE, "net.0.weight", "phi", "wws", true, theta_guide,
     theta_model, NULL, more_setup},
    {"the guide's network is theta's, under ww", "group", RWS_WARNING, "net.0.weight", "phi", NULL, false, theta_guide,
     theta_model, NULL, more_setup},
    {"a parameter that nobody uses", "unused", RWS_WARNING, "theta.extra", "rws_setup_unused", NULL, false,
     mixture_guide, mixture_model, NULL, extra_setup},
    {"plain numbers of a parameter", "gradient", RWS_WARNING, "theta.extra", "rws_parameter", NULL, false,
     mixture_guide, numbers_model, NULL, extra_setup},
    {"a detached prior", "gradient", RWS_WARNING, "theta.prior", "rws_detach", NULL, false, mixture_guide,
     detached_model},
    {"a half of a gradient", "gradient", RWS_MISTAKE, "theta.means", "gradient", NULL, false, mixture_guide,
     half_model},
    {"a look at a parameter", "gradient", RWS_WARNING, "theta.extra", "rws_look", NULL, false, mixture_guide,
     looked_model, NULL, extra_setup},
    {0},
};
