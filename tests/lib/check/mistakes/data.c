/* data.c - data that the model cannot have, and functions of data that do too much. */
#include "planted.h"

static rws_status writing_data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                               float *const *fields, rws_error *err)
{
    const mixture *m = state;
    rws_param_values(m->means)[0] = 7;
    return mixture_data(state, split, first, n, random, fields, err);
}

/* Every hundredth waiting time is below 0. */
static rws_status times_data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                             float *const *fields, rws_error *err)
{
    (void)state, (void)split, (void)err;
    for (int i = 0; i < n; i++)
        fields[0][i] = (first + (uint64_t)i) % 100 == 17 ? -3.0f : 0.1f + (float)rws_random_uniform(random);
    return RWS_OK;
}

static void times_model(rws_path *path, const void *state)
{
    const mixture *m = state;
    rws_categorical(path, "z", rws_parameter(path, m->prior));
    rws_gamma(path, "x", rws_apply(path, RWS_EXP, rws_slice(path, rws_parameter(path, m->means), 1, 1)),
              rws_constant(path, 1));
}

static rws_status all_data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                           float *const *fields, rws_error *err)
{
    (void)state, (void)split, (void)first, (void)random, (void)err;
    for (int i = 0; i < n; i++) fields[0][i] = -1;
    return RWS_OK;
}

/* ---- bits */

static rws_status bits_setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    (void)random;
    mixture *m = rws_setup_alloc(s, sizeof *m);
    if (!m) return rws_no_memory(err, "a mixture");
    rws_setup_field(s, "x", 4);
    m->prior = rws_setup_param(s, RWS_THETA, "theta.prior", 1, 3, RWS_ZERO);
    m->means = rws_setup_param(s, RWS_THETA, "theta.means", 1, 4, RWS_UNIFORM);
    m->net = rws_setup_mlp(s, RWS_PHI, "phi.net", RWS_TANH, RWS_UNIFORM, (int[]){4, 8, 3}, 3);
    *state = m;
    return RWS_OK;
}

static void bits_model(rws_path *path, const void *state)
{
    const mixture *m = state;
    const rws_var  z = rws_categorical(path, "z", rws_parameter(path, m->prior));
    rws_bernoulli(path, "x", rws_mul(path, rws_parameter(path, m->means), z));
}

static rws_status fill(float *const *fields, int n, float odd, rws_random *random)
{
    for (int i = 0; i < 4 * n; i++) fields[0][i] = i % 7 == 3 ? odd : (float)rws_random_below(random, 2);
    return RWS_OK;
}

static rws_status grey_data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                            float *const *fields, rws_error *err)
{
    (void)state, (void)split, (void)first, (void)err;
    return fill(fields, n, 16, random);
}

static rws_status signed_data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                              float *const *fields, rws_error *err)
{
    (void)state, (void)split, (void)first, (void)err;
    return fill(fields, n, -1, random);
}

static rws_status half_data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                            float *const *fields, rws_error *err)
{
    (void)state, (void)split, (void)first, (void)err;
    return fill(fields, n, 0.5f, random);
}

static void writing_model(rws_path *path, const void *state)
{
    const mixture *m = state;
    rws_param_values(m->means)[1] += 1e-3f;
    mixture_model(path, state);
}

const planted planted_data[] = {
    {"data that write to a parameter", "writes", RWS_MISTAKE, "theta.means", "undoes", NULL, true, mixture_guide,
     mixture_model, writing_data},
    {"one datum in a hundred below 0", "impossible", RWS_WARNING, "x", "17 (x = -3)", NULL, false, mixture_guide,
     times_model, times_data},
    {"all data below 0", "impossible", RWS_MISTAKE, "x", "2000 of 2000", NULL, false, mixture_guide, times_model,
     all_data},
    {"pixels up to 16", "program", RWS_MISTAKE, NULL, "The data have 16 at site \"x\"", NULL, false, mixture_guide,
     bits_model, grey_data, bits_setup},
    {"bits of one half", "program", RWS_MISTAKE, NULL, "The data have 0.5 at site \"x\"", NULL, false, mixture_guide,
     bits_model, half_data, bits_setup},
    {"a model that writes to a parameter", "writes", RWS_MISTAKE, "theta.means", "A program writes to the parameter",
     NULL, true, mixture_guide, writing_model},
    {"bits of -1 and 1", "program", RWS_MISTAKE, NULL, "The data have -1 at site \"x\"", NULL, false, mixture_guide,
     bits_model, signed_data, bits_setup},
    {0},
};
