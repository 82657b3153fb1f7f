/* gp.c - a grammar of kernels: which Gaussian process are the passengers of airlines?
 *     make examples && build/rws train build/examples/gp.so
 * A grammar writes a kernel, to a depth of 2:     k -> smooth | yearly | line | k + k | k * k
 * and the logarithm of the passengers, in every third month, is a Gaussian process with this kernel and noise. The numbers
 * of the three kernels are learned. The metric "exact" is log p(y) by the sum over all 885 kernels.
 * After D. Duvenaud et al., Structure discovery in nonparametric regression (2013). */
#include <math.h>
#include <rws.h>

enum { SMOOTH, YEARLY, LINE, PLUS, TIMES, WAYS, LEAVES = PLUS, N = 48, DEPTH = 2, HIDDEN = 16 };

/* Thousands of passengers, January, April, July and October of 1949 to 1960: G. Box and G. Jenkins, Time series analysis:
 * forecasting and control (1976), series G. */
static const float passengers[N] = {112, 129, 148, 119, 115, 135, 170, 133, 145, 163, 199, 162, 171, 181, 230, 191,
                                    196, 235, 264, 211, 204, 227, 302, 229, 242, 269, 364, 274, 284, 313, 413, 306,
                                    315, 348, 465, 347, 340, 348, 491, 359, 360, 396, 548, 407, 417, 461, 622, 461};

typedef struct {
    rws_param *ways, *numbers; /* theta: logits of the five ways; log deviation and log length of a kernel, log noise */
    rws_layer *memory, *way;   /* phi: what is written so far; the next way */
    float      shape[LEAVES][N * N];
} world;

static rws_status setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    world *w = ((void)random, (void)err, *state = rws_setup_alloc(s, sizeof *w));
    rws_setup_field(s, "y", N);
    w->ways = rws_setup_param(s, RWS_THETA, "theta.ways", 1, WAYS, RWS_ZERO);
    w->numbers = rws_setup_param(s, RWS_THETA, "theta.numbers", 1, 2 * LEAVES + 1, RWS_ZERO);
    rws_param_values(w->numbers)[2 * LEAVES] = -2;
    w->memory = rws_setup_gru(s, RWS_PHI, "phi.memory", WAYS, HIDDEN);
    w->way = rws_setup_linear(s, RWS_PHI, "phi.way", HIDDEN, WAYS, RWS_ZERO);
    for (int i = 0; i < N * N; i++) {
        const double t = i / N / 4.0, u = i % N / 4.0; /* years */
        w->shape[SMOOTH][i] = (float)(-(t - u) * (t - u) / 2);
        w->shape[YEARLY][i] = (float)(-2 * pow(sin(M_PI * (t - u)), 2));
        w->shape[LINE][i] = (float)(t * u / 36);
    }
    return RWS_OK;
}

/* There is one datum. */
static rws_status data(const void *w, rws_split s, uint64_t first, int n, rws_random *g, float *const *to, rws_error *e)
{
    (void)w, (void)s, (void)first, (void)g, (void)e;
    for (int i = 0; i < n * N; i++) to[0][i] = (logf(passengers[i % N]) - 5.5f) / 0.45f;
    return RWS_OK;
}

/* deviation^2 * exp(shape / length^2), for a line deviation^2 * shape */
static rws_var kernel(rws_path *path, const world *w, rws_var numbers, int depth)
{
    const rws_var ways = rws_slice(path, rws_parameter(path, w->ways), 0, depth ? WAYS : LEAVES);
    const int     way = rws_choose(path, "way", ways);
    if (way >= LEAVES) {
        const rws_var a = kernel(path, w, numbers, depth - 1), b = kernel(path, w, numbers, depth - 1);
        return way == PLUS ? rws_add(path, a, b) : rws_mul(path, a, b);
    }
    const rws_var deviation = rws_slice(path, numbers, 2 * way, 1), length = rws_slice(path, numbers, 2 * way + 1, 1);
    rws_var       shape = rws_constants(path, w->shape[way], N * N);
    if (way != LINE) shape = rws_apply(path, RWS_EXP, rws_div(path, shape, rws_mul(path, length, length)));
    return rws_mul(path, rws_mul(path, deviation, deviation), shape);
}

static void model(rws_path *path, const void *state)
{
    const world  *w = state;
    const rws_var numbers = rws_apply(path, RWS_EXP, rws_parameter(path, w->numbers));
    const rws_var noise = rws_apply(path, RWS_SQUARE, rws_slice(path, numbers, 2 * LEAVES, 1));
    const rws_var k = rws_add_diagonal(path, kernel(path, w, numbers, DEPTH), rws_affine(path, noise, 1, 1e-3f));
    rws_multivariate_normal(path, "y", rws_zeros(path, N), rws_cholesky(path, k)); /* observed */
}

/* Writes a kernel in the same order; h remembers what was written. */
static rws_var guess(rws_path *path, const world *w, rws_var h, int depth)
{
    const int way = rws_choose(path, "way", rws_slice(path, rws_linear(path, w->way, h), 0, depth ? WAYS : LEAVES));
    h = rws_gru(path, w->memory, (rws_var[]){rws_onehot_at(path, way, WAYS)}, 1, h);
    return way < LEAVES ? h : guess(path, w, guess(path, w, h, depth - 1), depth - 1);
}

static void guide(rws_path *path, const void *state)
{
    guess(path, state, rws_zeros(path, HIDDEN), DEPTH);
}

static rws_status exact(rws_eval *e, const void *state, double *value, rws_error *err)
{
    return (void)state, rws_eval_enumerate(e, value, err);
}

const rws_model rws_user_model = {
    .abi = RWS_ABI,
    .name = "gp",
    .help = "a grammar of kernels for the passengers of airlines",
    .metrics = (const rws_metric[]){{"exact", "log p(y) at theta", exact}, {0}},
    .defaults = {.batch = 1, .particles = 50, .iterations = 2000, .n_test = 1, .lr = "1e-2", .shards = 1},
    .setup = setup,
    .data = data,
    .guide = guide,
    .model = model,
};
