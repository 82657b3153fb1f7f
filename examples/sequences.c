/* sequences.c - a hidden Markov model on sequences of different length: python/hmm.py, line by line in C.
 *     make examples && build/rws train build/examples/sequences.so --data sequences.npy
 * A row of the table is the length less one, the length, and the items. */
#include <rws.h>
enum { STATES = 3, LONGEST = 8, HIDDEN = 16 };
typedef struct {
    rws_table *rows;
    rws_param *lengths, *first, *next, *mean;
    rws_layer *cell, *out;
} hmm;
static rws_status setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    (void)random, (void)err;
    hmm *m = *state = rws_setup_alloc(s, sizeof *m);
    m->rows = rws_setup_table(s, "data", NULL);
    rws_setup_table_field(s, m->rows, "n", "1");
    rws_setup_table_row_series(s, m->rows, "y", "2:10", 1);
    m->lengths = rws_setup_param(s, RWS_THETA, "theta.lengths", 1, LONGEST, RWS_ZERO);
    m->first = rws_setup_param(s, RWS_THETA, "theta.first", 1, STATES, RWS_ZERO);
    m->next = rws_setup_param(s, RWS_THETA, "theta.next", STATES, STATES, RWS_ZERO);
    m->mean = rws_setup_param(s, RWS_THETA, "theta.mean", 1, STATES, RWS_ZERO);
    for (int i = 0; i < STATES; i++) rws_param_values(m->mean)[i] = (float)(i - 1);
    m->cell = rws_setup_gru(s, RWS_PHI, "phi.cell", 1, HIDDEN);
    m->out = rws_setup_linear(s, RWS_PHI, "phi.out", HIDDEN + STATES, STATES, RWS_UNIFORM);
    return RWS_OK;
}
static rws_status data(const void *m, rws_split s, uint64_t first, int n, rws_random *g, float *const *to, rws_error *e)
{
    return rws_table_fill(((const hmm *)m)->rows, s, first, n, g, to, e);
}
static void guide(rws_path *path, const void *state)
{
    static const float zeros[HIDDEN];
    const hmm         *m = state;
    rws_var            h = rws_constants(path, zeros, HIDDEN), z = {0};
    const int          n = rws_branch(path, rws_length(path, "y"));
    for (int t = 0; t < n; t++) {
        const rws_var y = rws_item(path, "y", t);
        h = rws_gru(path, m->cell, &y, 1, h);
        const rws_var before = t ? rws_onehot(path, z, STATES) : rws_constants(path, zeros, STATES);
        z = rws_categorical(path, "z", rws_linear_parts(path, m->out, (rws_var[]){h, before}, 2));
    }
}
static void model(rws_path *path, const void *state)
{
    const hmm *m = state;
    const int  n = rws_choose(path, "n", rws_parameter(path, m->lengths)) + 1;
    rws_var    z = {0};
    for (int t = 0; t < n; t++) {
        z = rws_categorical(path, "z",
                            t ? rws_row(path, rws_parameter(path, m->next), STATES, z) : rws_parameter(path, m->first));
        rws_normal(path, "y", rws_pick(path, rws_parameter(path, m->mean), z), rws_constant(path, 0.5f));
    }
}
const rws_model rws_user_model = {
    .abi = RWS_ABI,
    .name = "hmm",
    .help = "a hidden Markov model with normal observations",
    .settings = (const rws_setting[]){{"data", "", 0, 0, "rows of a length and items", false}, {0}},
    .defaults = {.batch = 50, .particles = 10, .iterations = 2000, .shards = 1, .lr = "1e-2"},
    .setup = setup,
    .data = data,
    .guide = guide,
    .model = model,
};
