/* dp.c - a Dirichlet-process mixture: how many clusters do eight galaxies make?
 *     make examples && build/rws train build/examples/dp.so
 * Galaxies come one by one, like guests into a Chinese restaurant: a galaxy joins a cluster of n galaxies with a
 * probability proportional to n, or opens a new one with a probability proportional to alpha. The velocities of a cluster
 * are normal around a mean of its own, which is integrated out. A datum is 8 of 82 measured velocities, drawn at random.
 * The metric "exact" is log p(x) by the sum over all 4140 partitions of 8 galaxies. */
#include <math.h>
#include <rws.h>

enum { N = 8, GALAXIES = 82, HIDDEN = 32 };

/* Velocities in km/s of galaxies in the Corona Borealis region: K. Roeder, Density estimation with confidence sets
 * exemplified by superclusters and voids in the galaxies, JASA 85 (1990), 617-624. */
static const float velocity[GALAXIES] = {
    9172,  9350,  9483,  9558,  9775,  10227, 10406, 16084, 16170, 18419, 18552, 18600, 18927, 19052,
    19070, 19330, 19343, 19349, 19440, 19473, 19529, 19541, 19547, 19663, 19846, 19856, 19863, 19914,
    19918, 19973, 19989, 20166, 20175, 20179, 20196, 20215, 20221, 20415, 20629, 20795, 20821, 20846,
    20875, 20986, 21137, 21492, 21701, 21814, 21921, 21960, 22185, 22209, 22242, 22249, 22314, 22374,
    22495, 22746, 22747, 22888, 22914, 23206, 23241, 23263, 23484, 23538, 23542, 23666, 23706, 23711,
    24129, 24285, 24289, 24366, 24717, 24990, 25633, 26960, 26995, 32065, 32789, 34279};

typedef struct {
    rws_param *theta; /* log alpha, log sd of the means of clusters, log sd within a cluster */
    rws_layer *fits;  /* phi: how well a galaxy fits a cluster, in view of all galaxies */
} world;

static rws_status setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    world *w = ((void)random, (void)err, *state = rws_setup_alloc(s, sizeof *w));
    rws_setup_series(s, "x", 1, N);
    w->theta = rws_setup_param(s, RWS_THETA, "theta.dp", 1, 3, RWS_ZERO);
    rws_param_values(w->theta)[1] = 1;
    w->fits = rws_setup_mlp(s, RWS_PHI, "phi.fits", RWS_TANH, RWS_UNIFORM, (int[]){N + 4, HIDDEN, HIDDEN, 1}, 4);
    return RWS_OK;
}

/* Eight different galaxies, in units of 1000 km/s above 20000. */
static rws_status data(const void *w, rws_split s, uint64_t first, int n, rws_random *g, float *const *to, rws_error *e)
{
    (void)w, (void)s, (void)first, (void)e;
    for (int i = 0; i < n; i++) {
        int    order[GALAXIES];
        float *x = to[0] + i * (1 + N);
        rws_random_sample(g, GALAXIES, N, order);
        x[0] = N;
        for (int j = 0; j < N; j++) x[1 + j] = (velocity[order[j]] - 20000) / 1000;
    }
    return RWS_OK;
}

/* The next velocity of a cluster of n whose velocities add up to `sum` is normal; v0 and v are the variances of means
 * and within a cluster:     mean = sum / (n + v / v0), variance = v / (n + v / v0) + v. */
static void model(rws_path *path, const void *state)
{
    const rws_var theta = rws_apply(path, RWS_EXP, rws_parameter(path, ((const world *)state)->theta));
    const rws_var alpha = rws_slice(path, theta, 0, 1), sd = rws_slice(path, theta, 2, 1);
    const rws_var root = rws_div(path, sd, rws_slice(path, theta, 1, 1)), ratio = rws_mul(path, root, root);
    rws_var       sum[N + 1], weight[N + 1];
    int           n[N + 1] = {0}, clusters = 0;

    for (int i = 0; i < N; i++) {
        sum[clusters] = rws_constant(path, 0);
        weight[clusters] = alpha;
        const int     k = rws_choose(path, "z", rws_apply(path, RWS_LOG, rws_concat(path, weight, clusters + 1)));
        const rws_var precision = rws_affine(path, ratio, 1, (float)n[k]); /* in units of 1 / v */
        const rws_var spread = rws_apply(path, RWS_SQRT, rws_div(path, rws_affine(path, precision, 1, 1), precision));
        const rws_var mean = rws_div(path, sum[k], precision);
        const rws_var x = rws_normal(path, "x", mean, rws_mul(path, sd, spread)); /* observed */
        clusters += k == clusters;
        sum[k] = rws_add(path, sum[k], x);
        weight[k] = rws_constant(path, (float)++n[k]);
    }
    rws_report(path, "clusters", rws_constant(path, (float)clusters));
}

static void guide(rws_path *path, const void *state)
{
    const world *w = state;
    int          length, n[N + 1] = {0}, clusters = 0;
    rws_var     *x = rws_items(path, "x", &length), all = rws_concat(path, x, length), sum[N + 1], fit[N + 1];

    for (int i = 0; i < length; i++) {
        sum[clusters] = rws_constant(path, 0);
        for (int k = 0; k <= clusters; k++) {
            const rws_var mean = rws_affine(path, sum[k], 1.0f / (float)(n[k] ? n[k] : 1), 0);
            const rws_var away = rws_apply(path, RWS_SQUARE, rws_sub(path, x[i], mean));
            const rws_var about[] = {all, x[i], rws_apply(path, RWS_LOG1P, away), rws_constant(path, (float)n[k]),
                                     rws_constant(path, (float)i)};
            fit[k] = rws_mlp_parts(path, w->fits, about, 5);
        }
        const int k = rws_choose(path, "z", rws_concat(path, fit, clusters + 1));
        clusters += k == clusters;
        sum[k] = rws_add(path, sum[k], x[i]);
        n[k]++;
    }
}

static rws_status exact(rws_eval *e, const void *state, double *value, rws_error *err)
{
    return (void)state, rws_eval_enumerate(e, value, err);
}

const rws_model rws_user_model = {
    .abi = RWS_ABI,
    .name = "dp",
    .help = "a Dirichlet-process mixture of galaxies",
    .metrics = (const rws_metric[]){{"exact", "log p(x) at theta", exact}, {0}},
    .defaults = {.batch = 20, .particles = 10, .iterations = 2000, .n_test = 50, .lr = "1e-2,1000:3e-3,1700:1e-3"},
    .setup = setup,
    .data = data,
    .guide = guide,
    .model = model,
};
