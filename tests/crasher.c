/* crasher.c - a model for the tests only: its guide reads a pointer that is NULL. */
#include "rws.h"

static rws_status setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    (void)random, (void)state, (void)err;
    rws_setup_field(s, "x", 1);
    return RWS_OK;
}

static rws_status data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                       float *const *fields, rws_error *err)
{
    (void)state, (void)split, (void)first, (void)random, (void)err;
    for (int i = 0; i < n; i++) fields[0][i] = 0;
    return RWS_OK;
}

static void guide(rws_path *path, const void *state)
{
    const float *const volatile nothing = state;
    rws_flip(path, "choice", rws_constant(path, nothing[0]));
}

static void model(rws_path *path, const void *state)
{
    (void)state;
    rws_flip(path, "choice", rws_constant(path, 0));
}

const rws_model rws_user_model = {
    .abi = RWS_ABI, .name = "crasher", .setup = setup, .data = data, .guide = guide, .model = model};
