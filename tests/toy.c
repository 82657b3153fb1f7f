/* toy.c - a program for the tests only: it recurses on flips, draws a continuous value at every leaf, looks at the
 * structure of its data, and has a choice that it does not branch on. Small enough to be run one particle at a time. */
#include "rws.h"

#define DEEPEST 4

typedef struct {
    rws_param *split, *colour, *shift, *kind;
    rws_layer *embed, *cell, *split_net, *colour_net, *leaf_net;
} toy;

static rws_status setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    toy *t = rws_setup_alloc(s, sizeof *t);
    if (!t) return rws_fail(err, RWS_NO_MEMORY, "There is no memory for the toy.");
    rws_setup_field(s, "x", 2);
    rws_setup_field(s, "kind", 1);
    t->split = rws_setup_param(s, RWS_THETA, "theta.split", 1, DEEPEST, RWS_ZERO);
    t->colour = rws_setup_param(s, RWS_THETA, "theta.colour", 1, 3, RWS_ZERO);
    t->shift = rws_setup_param(s, RWS_THETA, "theta.shift", 3, 2, RWS_ZERO);
    t->kind = rws_setup_param(s, RWS_THETA, "theta.kind", 1, 2, RWS_ZERO);
    float *shift = rws_param_values(t->shift), *split = rws_param_values(t->split);
    if (!shift || !split) return rws_fail(err, RWS_NO_MEMORY, "There is no memory for the toy's parameters.");
    for (int i = 0; i < 6; i++) shift[i] = (float)rws_random_normal(random);
    for (int i = 0; i < DEEPEST; i++) split[i] = 0.5f - 0.4f * (float)i;
    t->embed = rws_setup_embedding(s, RWS_PHI, "phi.embed", 2, 3);
    t->cell = rws_setup_gru(s, RWS_PHI, "phi.cell", 2 + 3 + 2, 8);
    t->split_net = rws_setup_mlp(s, RWS_PHI, "phi.split", RWS_RELU, RWS_UNIFORM, (int[]){8, 6, 1}, 3);
    t->colour_net = rws_setup_linear(s, RWS_PHI, "phi.colour", 2, 3, RWS_UNIFORM);
    t->leaf_net = rws_setup_mlp(s, RWS_PHI, "phi.leaf", RWS_ELU, RWS_TRUNCATED, (int[]){8, 5, 4}, 3);
    *state = t;
    return RWS_OK;
}

static rws_status data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                       float *const *fields, rws_error *err)
{
    (void)state, (void)split, (void)first, (void)err;
    for (int i = 0; i < n; i++) {
        fields[0][2 * i] = (float)(2 * rws_random_normal(random));
        fields[0][2 * i + 1] = (float)(2 * rws_random_normal(random) - 1);
        fields[1][i] = (float)rws_random_below(random, 2);
    }
    return RWS_OK;
}

/* ---- the model: a tree of flips; x is the sum of its leaves, shifted by colour */

static rws_var grow(rws_path *path, const toy *t, int depth)
{
    const rws_var logit = rws_slice(path, rws_parameter(path, t->split), depth < DEEPEST ? depth : DEEPEST - 1, 1);
    if (depth < DEEPEST && rws_flip(path, "split", logit)) {
        const rws_var left = grow(path, t, depth + 1);
        return rws_add(path, left, grow(path, t, depth + 1));
    }
    return rws_normal(path, "leaf", rws_constants(path, (float[]){0, 0}, 2), rws_constant(path, 1));
}

static void model(rws_path *path, const void *state)
{
    const toy    *t = state;
    const rws_var colour = rws_categorical(path, "colour", rws_parameter(path, t->colour)),
                  shift = rws_parameter(path, t->shift);
    const rws_var twice = rws_affine(path, colour, 2, 0);
    const rws_var mean = rws_concat(
        path, (rws_var[]){rws_pick(path, shift, twice), rws_pick(path, shift, rws_affine(path, twice, 1, 1))}, 2);
    rws_normal(path, "x", rws_add(path, mean, grow(path, t, 0)), rws_constant(path, 0.7f));
    rws_categorical(path, "kind", rws_parameter(path, t->kind));
}

/* ---- the guide: the same tree, from x and what kind of datum it is */

static void follow(rws_path *path, const toy *t, rws_var embedded, int kind, int depth, rws_var h)
{
    const rws_var side = rws_onehot(path, rws_constant(path, (float)(depth % 2)), 2);
    h = rws_gru(path, t->cell, (rws_var[]){rws_observed(path, "x"), embedded, side}, 3, h);
    if (depth < DEEPEST && rws_flip(path, "split", rws_mlp(path, t->split_net, h))) {
        follow(path, t, embedded, kind, depth + 1, h);
        follow(path, t, embedded, kind, depth + 1, h);
        return;
    }
    const rws_var out = rws_mlp(path, t->leaf_net, h);
    const rws_var sd =
        rws_affine(path, rws_apply(path, RWS_SOFTPLUS, rws_slice(path, out, 2, 2)), 1, kind ? 0.1f : 0.2f);
    const rws_var leaf = rws_normal(path, "leaf", rws_slice(path, out, 0, 2), sd);
    /* a test of a value: nothing depends on it, but the paths part here */
    if (rws_branch(path, rws_greater(path, rws_sum(path, leaf), rws_constant(path, 0)))) rws_alloc(path, 16);
}

static void guide(rws_path *path, const void *state)
{
    const toy *t = state;
    const int  kind = rws_branch(path, rws_observed(path, "kind"));
    rws_var    zeros = rws_constants(path, (float[8]){0}, 8);
    rws_categorical(path, "colour", rws_linear(path, t->colour_net, rws_observed(path, "x")));
    follow(path, t, rws_embedding(path, t->embed, rws_observed(path, "kind")), kind, 0, zeros);
}

const rws_model rws_user_model = {
    .abi = RWS_ABI,
    .name = "toy",
    .help = "a recursive program with a continuous latent, for the tests",
    .defaults = {.batch = 6, .particles = 5, .iterations = 200, .eval_every = 50, .n_test = 6, .shards = 3},
    .setup = setup,
    .data = data,
    .guide = guide,
    .model = model,
};
