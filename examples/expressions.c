/* expressions.c - expression induction: which formula goes through noisy points?
 *     make examples && build/rws train build/examples/expressions.so --method ws
 * A grammar writes a formula, to a depth of 2:     f -> x | 1 | 2 | sin f | f + f | f * f
 * A datum is the values of the formula at ten places, with noise. The metric "exact" is log p(y) by the sum over all 1179
 * formulas. */
#include <math.h>
#include <rws.h>

enum { X, ONE, TWO, SIN, PLUS, TIMES, WAYS, LEAVES = SIN, PLACES = 10, DEPTH = 2, HIDDEN = 64, MOST = 1179 };

static const double true_ways[WAYS] = {0.3, 0.1, 0.1, 0.1, 0.2, 0.2}, true_sd = 0.3;

typedef struct {
    rws_param *ways, *log_sd; /* theta: logits of the six ways to write a formula; of the noise */
    rws_layer *memory, *way;  /* phi: what is written so far; the next way */
} world;

typedef struct {
    float y[PLACES]; /* the values of a formula at x = -2 … 2 */
} values;

static values combine(int way, values a, values b)
{
    for (int i = 0; i < PLACES; i++) {
        const float x = -2 + 4 * (float)i / (PLACES - 1), u = a.y[i], v = b.y[i];
        a.y[i] = (const float[]){x, 1, 2, sinf(u), u + v, u * v}[way];
    }
    return a;
}

static rws_status setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    world *w = ((void)random, (void)err, *state = rws_setup_alloc(s, sizeof *w));
    rws_setup_field(s, "y", PLACES);
    w->ways = rws_setup_param(s, RWS_THETA, "theta.ways", 1, WAYS, RWS_ZERO);
    w->log_sd = rws_setup_param(s, RWS_THETA, "theta.log_sd", 1, 1, RWS_ZERO);
    rws_setup_truth(s, w->ways, RWS_LOGITS, true_ways);
    rws_setup_truth(s, w->log_sd, RWS_LOGARITHMS, &true_sd);
    w->memory = rws_setup_gru(s, RWS_PHI, "phi.memory", WAYS, HIDDEN);
    w->way = rws_setup_mlp(s, RWS_PHI, "phi.way", RWS_RELU, RWS_UNIFORM, (int[]){PLACES + HIDDEN, 128, WAYS}, 3);
    return RWS_OK;
}

/* Writes all formulas of a depth and their true probabilities; returns their number. At depth 0 there are leaves only. */
static int formulas(int depth, values *f, double *p)
{
    double    all = 0, inner_p[MOST];
    values    inner[MOST] = {0};
    const int n_inner = depth ? formulas(depth - 1, inner, inner_p) : 0;
    int       n = LEAVES;
    for (int i = 0; i < (depth ? WAYS : LEAVES); i++) all += true_ways[i];
    for (int i = 0; i < LEAVES; i++) f[i] = combine(i, inner[0], inner[0]), p[i] = true_ways[i] / all;
    for (int a = 0; a < n_inner; a++) {
        f[n] = combine(SIN, inner[a], inner[a]), p[n++] = true_ways[SIN] / all * inner_p[a];
        for (int b = 0; b < n_inner; b++)
            for (int way = PLUS; way <= TIMES; way++, n++)
                f[n] = combine(way, inner[a], inner[b]), p[n] = true_ways[way] / all * inner_p[a] * inner_p[b];
    }
    return n;
}

static rws_status data(const void *w, rws_split s, uint64_t first, int n, rws_random *g, float *const *to, rws_error *e)
{
    values    f[MOST];
    double    p[MOST];
    const int all = formulas(DEPTH, f, p);
    for (int i = 0; i < n; i++) {
        const float *y = f[rws_random_choose(g, p, all)].y;
        for (int j = 0; j < PLACES; j++) to[0][i * PLACES + j] = y[j] + (float)(true_sd * rws_random_normal(g));
    }
    return (void)w, (void)s, (void)first, (void)e, RWS_OK;
}

static values formula(rws_path *path, rws_var ways, int depth)
{
    const int    way = rws_choose(path, "way", rws_slice(path, ways, 0, depth ? WAYS : LEAVES));
    const values a = way >= SIN ? formula(path, ways, depth - 1) : (values){0};
    return combine(way, a, way > SIN ? formula(path, ways, depth - 1) : a);
}

static void model(rws_path *path, const void *state)
{
    const world *w = state;
    const values f = formula(path, rws_parameter(path, w->ways), DEPTH);
    rws_normal(path, "y", rws_constants(path, f.y, PLACES), rws_apply(path, RWS_EXP, rws_parameter(path, w->log_sd)));
}

/* Writes a formula in the same order; h remembers what was written. */
static rws_var guess(rws_path *path, const world *w, rws_var y, rws_var h, int depth)
{
    const rws_var logits = rws_mlp_parts(path, w->way, (rws_var[]){y, h}, 2);
    const int     way = rws_choose(path, "way", rws_slice(path, logits, 0, depth ? WAYS : LEAVES));
    h = rws_gru(path, w->memory, (rws_var[]){rws_onehot_at(path, way, WAYS)}, 1, h);
    if (way >= SIN) h = guess(path, w, y, h, depth - 1);
    return way > SIN ? guess(path, w, y, h, depth - 1) : h;
}

static void guide(rws_path *path, const void *state)
{
    guess(path, state, rws_affine(path, rws_observed(path, "y"), 0.25f, 0), rws_zeros(path, HIDDEN), DEPTH);
}

static rws_status exact(rws_eval *e, const void *state, double *value, rws_error *err)
{
    return (void)state, rws_eval_enumerate(e, value, err);
}

const rws_model rws_user_model = {
    .abi = RWS_ABI,
    .name = "expressions",
    .help = "formulas behind noisy points",
    .metrics = (const rws_metric[]){{"exact", "log p(y) at theta", exact}, {0}},
    .defaults = {.batch = 50, .particles = 10, .iterations = 1500, .n_test = 200, .lr = "5e-3,1200:1e-3"},
    .setup = setup,
    .data = data,
    .guide = guide,
    .model = model,
};
