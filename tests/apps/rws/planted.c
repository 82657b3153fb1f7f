/* planted.c - a user's model that counts in a static variable across choices. */
#include "rws.h"

static rws_status setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    (void)random, (void)state, (void)err;
    rws_setup_field(s, "x", 1);
    rws_setup_param(s, RWS_THETA, "theta.unused", 1, 1, RWS_ZERO);
    return RWS_OK;
}

static rws_status data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                       float *const *fields, rws_error *err)
{
    (void)state, (void)split, (void)first, (void)err;
    for (int i = 0; i < n; i++) fields[0][i] = (float)rws_random_normal(random);
    return RWS_OK;
}

static void guide(rws_path *path, const void *state)
{
    static int heads;
    (void)state;
    heads = 0;
    for (int i = 0; i < 4; i++) {
        const int coin = rws_flip(path, "coin", rws_constant(path, 0.5f * (float)heads));
        heads += coin;
    }
}

static void model(rws_path *path, const void *state)
{
    (void)state;
    int heads = 0;
    for (int i = 0; i < 4; i++) heads += rws_flip(path, "coin", rws_constant(path, 0));
    rws_normal(path, "x", rws_constant(path, (float)heads), rws_constant(path, 1));
}

const rws_model rws_user_model = {
    .abi = RWS_ABI,
    .name = "planted",
    .help = "a planted mistake",
    .defaults = {.batch = 10, .particles = 5, .n_test = 10, .iterations = 2, .shards = 1},
    .setup = setup,
    .data = data,
    .guide = guide,
    .model = model,
};
