/* sticks.c - a Dirichlet-process mixture by breaking a stick: python/sticks.py, line by line in C.
 *     make examples && build/rws train build/examples/sticks.so --data numbers.npy */
#include <rws.h>
enum { MOST = 12, N = 2000 };
#define ALPHA 1.5
typedef struct {
    rws_table *rows;
    rws_param *v, *mean;
    rws_layer *cell, *out;
} sticks;
static rws_status setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    (void)random, (void)err;
    sticks *m = *state = rws_setup_alloc(s, sizeof *m);
    m->rows = rws_setup_table(s, "data", NULL);
    rws_setup_table_field(s, m->rows, "x", "1");
    m->v = rws_setup_param(s, RWS_THETA, "theta.v", 1, MOST, RWS_ZERO);
    m->mean = rws_setup_param(s, RWS_THETA, "theta.mean", 1, MOST, RWS_ZERO);
    for (int i = 0; i < MOST; i++) {
        rws_param_values(m->v)[i] = -0.5f;
        rws_param_values(m->mean)[i] = (float)(i == MOST - 1 ? 8.0 : i * (16.0 / (MOST - 1)) - 8);
    }
    m->cell = rws_setup_gru(s, RWS_PHI, "phi.cell", 1, 16);
    m->out = rws_setup_linear(s, RWS_PHI, "phi.out", 16, 1, RWS_UNIFORM);
    return RWS_OK;
}
static rws_status data(const void *m, rws_split s, uint64_t first, int n, rws_random *g, float *const *to, rws_error *e)
{
    return rws_table_fill(((const sticks *)m)->rows, s, first, n, g, to, e);
}
static void guide(rws_path *path, const void *state)
{
    static const float zeros[16];
    const sticks      *m = state;
    rws_var            h = rws_constants(path, zeros, 16);
    const rws_var      x = rws_affine(path, rws_observed(path, "x"), 0.2f, 0);
    for (int k = 0; k < MOST - 1; k++) {
        h = rws_gru(path, m->cell, &x, 1, h);
        if (rws_flip(path, "here", rws_linear(path, m->out, h))) break;
    }
}
static void model(rws_path *path, const void *state)
{
    const sticks *m = state;
    const rws_var left = rws_apply(path, RWS_LOG_SIGMOID, rws_affine(path, rws_parameter(path, m->v), -1, 0));
    rws_factor(path, "pieces", rws_affine(path, rws_sum(path, left), (float)((ALPHA - 1) / N), 0), true);
    int k = 0;
    while (k < MOST - 1 && !rws_flip(path, "here", rws_slice(path, rws_parameter(path, m->v), k, 1))) k++;
    rws_report(path, "cluster", rws_constant(path, (float)k));
    rws_normal(path, "x", rws_slice(path, rws_parameter(path, m->mean), k, 1), rws_constant(path, 0.7f));
}
const rws_model rws_user_model = {
    .abi = RWS_ABI,
    .name = "sticks",
    .help = "a Dirichlet-process mixture of normals",
    .settings = (const rws_setting[]){{"data", "", 0, 0, "a column of numbers", false}, {0}},
    .defaults = {.batch = 100, .particles = 10, .iterations = 3000, .shards = 1, .lr = "1e-2"},
    .setup = setup,
    .data = data,
    .guide = guide,
    .model = model,
};
