/* layers_model.c - a model whose guide has every layer that PyTorch has, too; torch_layers.py loads its checkpoint into a
 * module and compares what each layer makes of the same data. Each snapshot has the numbers of one layer. */
#include "rws.h"

enum { WIDE = 3, ITEMS = 4, SIZE = WIDE * ITEMS, DATA = 3, MOST = 80 };

typedef struct {
    rws_layer *linear, *mlp, *rnn, *gru, *lstm, *embedding, *both[3], *attention, *narrow, *set, *norm, *residual,
        *conv, *transposed;
} net;

static rws_status setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    static const char *const names[] = {"phi.both_rnn", "phi.both_gru", "phi.both_lstm"};
    const rws_conv conv = {.n_in = 2, .n_out = 3, .rows = 2, .cols = 3, .kernel = 2, .stride = 2, .padding = 1};
    const rws_conv back = {
        .n_in = 2, .n_out = 3, .rows = 2, .cols = 3, .kernel = 3, .stride = 2, .padding = 1, .output_padding = 1};
    net *n = rws_setup_alloc(s, sizeof *n);
    (void)random;
    if (!n) return rws_fail(err, RWS_NO_MEMORY, "There is no memory.");
    rws_setup_field(s, "x", SIZE);
    n->linear = rws_setup_linear(s, RWS_PHI, "phi.linear", SIZE, 2, RWS_UNIFORM);
    n->mlp = rws_setup_mlp(s, RWS_PHI, "phi.mlp", RWS_TANH, RWS_UNIFORM, (int[]){SIZE, 5, 2}, 3);
    n->rnn = rws_setup_rnn(s, RWS_PHI, "phi.rnn", WIDE, WIDE, RWS_UNIFORM);
    n->gru = rws_setup_gru(s, RWS_PHI, "phi.gru", WIDE, WIDE);
    n->lstm = rws_setup_lstm(s, RWS_PHI, "phi.lstm", WIDE, WIDE);
    n->embedding = rws_setup_embedding(s, RWS_PHI, "phi.embedding", 5, 2);
    for (int k = RWS_RNN; k <= RWS_LSTM; k++)
        n->both[k] = rws_setup_bidirectional(s, RWS_PHI, names[k], (rws_recurrent)k, WIDE, 4);
    n->attention = rws_setup_attention(s, RWS_PHI, "phi.attention", WIDE, 3, WIDE);
    n->narrow = rws_setup_attention(s, RWS_PHI, "phi.narrow", 2 * WIDE, 2, WIDE);
    n->set = rws_setup_set_encoder(s, RWS_PHI, "phi.set", RWS_RELU, RWS_MEAN, (int[]){WIDE, 6, 2}, 3);
    n->norm = rws_setup_layer_norm(s, RWS_PHI, "phi.norm", SIZE);
    n->residual = rws_setup_residual_mlp(s, RWS_PHI, "phi.residual", RWS_RELU, SIZE, 6, 2, 2);
    n->conv = rws_setup_conv2d(s, RWS_PHI, "phi.conv", &conv);
    n->transposed = rws_setup_conv_transpose2d(s, RWS_PHI, "phi.transposed", &back);
    *state = n;
    return RWS_OK;
}

/* ---- what each layer makes of x */

static void items_of(rws_path *path, rws_var *items)
{
    const rws_var x = rws_observed(path, "x");
    for (int t = 0; t < ITEMS; t++) items[t] = rws_slice(path, x, t * WIDE, WIDE);
}

static rws_var zeros(rws_path *path)
{
    return rws_constants(path, (float[WIDE]){0}, WIDE);
}

static rws_var run_linear(rws_path *path, const void *state)
{
    return rws_linear(path, ((const net *)state)->linear, rws_observed(path, "x"));
}

static rws_var run_mlp(rws_path *path, const void *state)
{
    return rws_mlp(path, ((const net *)state)->mlp, rws_observed(path, "x"));
}

static rws_var run_cells(rws_path *path, const void *state)
{
    const net *n = state;
    rws_var    items[ITEMS], rnn = zeros(path), gru = rnn, lstm = rnn, c = rnn;
    items_of(path, items);
    for (int t = 0; t < ITEMS; t++) {
        rnn = rws_rnn(path, n->rnn, &items[t], 1, rnn);
        gru = rws_gru(path, n->gru, &items[t], 1, gru);
        lstm = rws_lstm(path, n->lstm, &items[t], 1, lstm, &c);
    }
    return rws_concat(path, (rws_var[]){rnn, gru, lstm, c}, 4);
}

static rws_var run_embedding(rws_path *path, const void *state)
{
    return rws_embedding(path, ((const net *)state)->embedding, rws_constant(path, 3));
}

/* All states, then the last state of each direction. */
static rws_var both(rws_path *path, const void *state, rws_recurrent kind)
{
    rws_var items[ITEMS], states[ITEMS + 1];
    items_of(path, items);
    states[ITEMS] = rws_bidirectional(path, ((const net *)state)->both[kind], items, ITEMS, states);
    return rws_concat(path, states, ITEMS + 1);
}

static rws_var run_both_rnn(rws_path *path, const void *state)
{
    return both(path, state, RWS_RNN);
}

static rws_var run_both_gru(rws_path *path, const void *state)
{
    return both(path, state, RWS_GRU);
}

static rws_var run_both_lstm(rws_path *path, const void *state)
{
    return both(path, state, RWS_LSTM);
}

static rws_var run_attention(rws_path *path, const void *state)
{
    rws_var items[ITEMS];
    items_of(path, items);
    return rws_attention(path, ((const net *)state)->attention, items[0], items, ITEMS);
}

static rws_var run_narrow(rws_path *path, const void *state)
{
    const rws_var x = rws_observed(path, "x");
    return rws_attention(path, ((const net *)state)->narrow, rws_slice(path, x, 0, 2 * WIDE), &x, 1);
}

static rws_var run_dot(rws_path *path, const void *state)
{
    rws_var items[ITEMS];
    (void)state;
    items_of(path, items);
    return rws_dot_attention(path, items[1], items, items, ITEMS);
}

static rws_var run_set(rws_path *path, const void *state)
{
    const rws_var x = rws_observed(path, "x");
    return rws_set_encoder(path, ((const net *)state)->set, &x, 1);
}

static rws_var run_norm(rws_path *path, const void *state)
{
    return rws_layer_norm(path, ((const net *)state)->norm, rws_observed(path, "x"));
}

static rws_var run_residual(rws_path *path, const void *state)
{
    const rws_var x = rws_observed(path, "x");
    return rws_residual_mlp(path, ((const net *)state)->residual, &x, 1);
}

static rws_var run_conv(rws_path *path, const void *state)
{
    return rws_conv2d(path, ((const net *)state)->conv, rws_observed(path, "x"));
}

static rws_var run_transposed(rws_path *path, const void *state)
{
    return rws_conv_transpose2d(path, ((const net *)state)->transposed, rws_observed(path, "x"));
}

static rws_var run_pool(rws_path *path, const void *state)
{
    const rws_var x = rws_observed(path, "x");
    (void)state;
    return rws_concat(path, (rws_var[]){rws_pool2d(path, x, 1, 4, 2, RWS_MAX), rws_pool2d(path, x, 2, 2, 2, RWS_MEAN)},
                      2);
}

/* clang-format off */
#define LAYERS(LAYER)                                                                                              \
    LAYER(linear) LAYER(mlp) LAYER(cells) LAYER(embedding) LAYER(both_rnn) LAYER(both_gru) LAYER(both_lstm)        \
    LAYER(attention) LAYER(narrow) LAYER(dot) LAYER(set) LAYER(norm) LAYER(residual) LAYER(conv) LAYER(transposed) \
    LAYER(pool)
/* clang-format on */

/* The numbers of a layer for DATA fixed data. */
static rws_status show(rws_eval *e, rws_var (*run)(rws_path *path, const void *state), int dim, rws_error *err)
{
    float        x[DATA * SIZE], out[DATA * MOST];
    const float *fields[] = {x};
    for (int i = 0; i < DATA * SIZE; i++) x[i] = (float)((i * 37 + 11) % 41) / 20 - 1;
    const rws_status status = rws_eval_compute(e, run, DATA, fields, out, err);
    for (int i = 0; i < DATA * dim && status == RWS_OK; i++) rws_eval_show(e, NULL, (double)out[i]);
    return status;
}

enum {
    DIM_linear = 2,
    DIM_mlp = 2,
    DIM_cells = 12,
    DIM_embedding = 2,
    DIM_both_rnn = 40,
    DIM_both_gru = 40,
    DIM_both_lstm = 40,
    DIM_attention = 3,
    DIM_narrow = 6,
    DIM_dot = 3,
    DIM_set = 2,
    DIM_norm = 12,
    DIM_residual = 2,
    DIM_conv = 12,
    DIM_transposed = 72,
    DIM_pool = 4
};

#define SHOW(name)                                                                \
    static rws_status show_##name(rws_eval *e, const void *state, rws_error *err) \
    {                                                                             \
        (void)state;                                                              \
        return show(e, run_##name, DIM_##name, err);                              \
    }
#define SNAPSHOT(name) {#name, "what the layer makes of fixed data", show_##name},
#define RUN(name) run_##name,

LAYERS(SHOW)
static const rws_snapshot snapshots[] = {LAYERS(SNAPSHOT){0}};

/* ---- a program that trains them all: q(z | x) has the mean of all their numbers */

static void guide(rws_path *path, const void *state)
{
    static rws_var (*const run[])(rws_path *, const void *) = {LAYERS(RUN)};
    enum { N = sizeof run / sizeof *run };
    rws_var sums[N];
    for (int i = 0; i < N; i++) sums[i] = rws_sum(path, rws_apply(path, RWS_TANH, run[i](path, state)));
    rws_normal(path, "z", rws_affine(path, rws_sum_many(path, sums, N), 0.1f, 0), rws_constant(path, 1));
}

static void model(rws_path *path, const void *state)
{
    (void)state;
    const rws_var one = rws_constant(path, 1), z = rws_normal(path, "z", rws_constant(path, 0), one);
    rws_normal(path, "x", rws_mul(path, z, rws_constants(path, (float[SIZE]){1, 2, 3, -1}, SIZE)), one);
}

static rws_status data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                       float *const *fields, rws_error *err)
{
    (void)state, (void)split, (void)first, (void)err;
    rws_random_normals(random, (size_t)n * SIZE, fields[0]);
    return RWS_OK;
}

const rws_model rws_user_model = {
    .abi = RWS_ABI,
    .name = "layers",
    .help = "every layer that PyTorch has, too",
    .snapshots = snapshots,
    .defaults = {.batch = 20, .particles = 5, .iterations = 200, .eval_every = 200, .n_test = 10, .lr = "1e-2"},
    .setup = setup,
    .data = data,
    .guide = guide,
    .model = model,
};
