/* programs.c - guides and models that do not fit each other. */
#include "planted.h"

/* Category 2 has a logit that no number of particles overcomes. */
static void closed_guide(rws_path *path, const void *state)
{
    const mixture *m = state;
    const rws_var  closed = rws_constants(path, (float[]){0, 0, -1e9f}, 3);
    rws_categorical(path, "z", rws_add(path, closed, rws_mlp(path, m->net, rws_observed(path, "x"))));
}

static void never_guide(rws_path *path, const void *state)
{
    const mixture *m = state;
    const rws_var  closed = rws_constants(path, (float[]){0, 0, -INFINITY}, 3);
    rws_categorical(path, "z", rws_add(path, closed, rws_mlp(path, m->net, rws_observed(path, "x"))));
}

/* One mean for all data, drawn anew for each datum. */
static void global_guide(rws_path *path, const void *state)
{
    const mixture *m = state;
    rws_normal(path, "mean", rws_parameter(path, m->extra), rws_constant(path, 1));
    mixture_guide(path, state);
}

static void global_model(rws_path *path, const void *state)
{
    const mixture *m = state;
    const rws_var  mean = rws_normal(path, "mean", rws_constant(path, 0), rws_constant(path, 3));
    const rws_var  z = rws_categorical(path, "z", rws_parameter(path, m->prior));
    rws_normal(path, "x", rws_add(path, mean, rws_pick(path, rws_parameter(path, m->means), z)), rws_constant(path, 1));
}

static rws_status global_setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    RWS_TRY(mixture_setup(s, random, state, err));
    ((mixture *)*state)->extra = rws_setup_param(s, RWS_PHI, "phi.mean", 1, 1, RWS_ZERO);
    return RWS_OK;
}

static void jump_guide(rws_path *path, const void *state)
{
    const mixture *m = state;
    const rws_var  out = rws_mlp(path, m->net, rws_observed(path, "x"));
    rws_normal(path, "g", rws_slice(path, out, 0, 1), rws_constant(path, 1));
}

static void jump_model(rws_path *path, const void *state)
{
    const mixture *m = state;
    const rws_var  means = rws_parameter(path, m->means);
    const rws_var  g =
        rws_normal(path, "g", rws_slice(path, rws_parameter(path, m->prior), 0, 1), rws_constant(path, 1));
    const int above = rws_branch(path, rws_greater(path, g, rws_constant(path, 0)));
    rws_normal(path, "x", rws_slice(path, means, above ? 2 : 0, 1), rws_constant(path, 1));
}

static rws_status pathwise_setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    rws_setup_gradient(s, "g", RWS_REPARAMETERISED);
    return mixture_setup(s, random, state, err);
}

static void idle_guide(rws_path *path, const void *state)
{
    (void)path, (void)state;
}

static void nan_model(rws_path *path, const void *state)
{
    const mixture *m = state;
    const rws_var  z = rws_categorical(path, "z", rws_parameter(path, m->prior));
    rws_normal(path, "x", rws_apply(path, RWS_LOG, rws_affine(path, z, -1, -1)), rws_constant(path, 1));
}

static void grow(rws_path *path, rws_var logit)
{
    rws_constant(path, 1);
    while (rws_flip(path, "more", logit)) grow(path, logit);
}

static void endless_model(rws_path *path, const void *state)
{
    const mixture *m = state;
    grow(path, rws_constant(path, 5));
    mixture_x(path, m, rws_categorical(path, "z", rws_parameter(path, m->prior)));
}

static void endless_guide(rws_path *path, const void *state)
{
    grow(path, rws_constant(path, 5));
    mixture_guide(path, state);
}

const planted planted_programs[] = {
    {"a category with a logit of -1e9", "reach", RWS_MISTAKE, "z", "cannot propose", NULL, true, closed_guide,
     mixture_model},
    {"a category with a logit of -inf", "reach", RWS_MISTAKE, "z", "cannot propose", NULL, true, never_guide,
     mixture_model},
    {"one mean for all data", "global", RWS_WARNING, "mean", "make them one datum", NULL, false, global_guide,
     global_model, NULL, global_setup},
    {"a branch on a continuous value", "jump", RWS_NOTE, "g", "score", NULL, false, jump_guide, jump_model},
    {"a branch on a value that is to be reparameterised", "jump", RWS_WARNING, NULL, "Choose the score", NULL, false,
     jump_guide, jump_model, NULL, pathwise_setup},
    {"a guide that makes no choice", "program", RWS_MISTAKE, NULL, "visits site \"z\", but the guide does not", NULL,
     false, idle_guide, mixture_model},
    {"the logarithm of a number below 0", "numbers", RWS_MISTAKE, NULL, "x", NULL, false, mixture_guide, nan_model},
    {"branching that never ends", "program", RWS_MISTAKE, NULL, "never ends", NULL, false, endless_guide,
     endless_model},
    {0},
};
