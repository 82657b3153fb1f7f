/* slds.c - switching linear dynamics: a hidden position that now and then changes the law by which it moves.
 *     make examples && build/rws train build/examples/slds.so
 *     s_0 -> s_1 -> … -> s_9       the law: calm or wild; hidden, it stays the same with probability `stay`
 *      |      |           |
 *     z_0 -> z_1 -> … -> z_9       the position: z_t = a[s_t] z_{t-1} + noise of deviation q[s_t]; hidden
 *      |      |           |
 *     x_0    x_1         x_9       what is seen: z_t + noise of deviation 1/2
 * Given the laws everything is normal, so that the model sums over positions by a Kalman filter, and the guide guesses the
 * laws. The metric "exact" is log p(x) by the sum over all 1024 series of laws. */
#include <math.h>
#include <rws.h>

enum { T = 10, CALM, WILD, STAY = 0, A, Q = A + 2, N = Q + 2, HIDDEN = 32 };

static const double noise = 0.25;                            /* variance of what is seen */
static const double truth[N] = {1.7, 0.95, -0.8, -1.2, 0.4}; /* log-odds of staying; a; log q */

typedef struct {
    rws_param *theta;
    rws_layer *later, *guess; /* phi: sums up x from its end; the law at a time */
} world;

static rws_status setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    world *w = ((void)random, (void)err, *state = rws_setup_alloc(s, sizeof *w));
    rws_setup_series(s, "x", 1, T);
    w->theta = rws_setup_param(s, RWS_THETA, "theta.slds", 1, N, RWS_ZERO);
    rws_setup_truth(s, w->theta, RWS_AS_IS, truth);
    rws_param_values(w->theta)[A] = 0.5f, rws_param_values(w->theta)[Q] = -0.5f;
    w->later = rws_setup_gru(s, RWS_PHI, "phi.later", 1, HIDDEN);
    w->guess = rws_setup_mlp(s, RWS_PHI, "phi.guess", RWS_TANH, RWS_UNIFORM, (int[]){HIDDEN + 4, 32, 1}, 3);
    return RWS_OK;
}

static rws_status data(const void *w, rws_split s, uint64_t first, int n, rws_random *g, float *const *to, rws_error *e)
{
    (void)w, (void)s, (void)first, (void)e;
    for (int i = 0; i < n; i++) {
        float *x = to[0] + i * (1 + T);
        double z = 0;
        int    law = rws_random_uniform(g) < 0.5;
        x[0] = T;
        for (int t = 0; t < T; t++) {
            if (t && rws_random_uniform(g) > 1 / (1 + exp(-truth[STAY]))) law = !law;
            z = truth[A + law] * z + exp(truth[Q + law]) * rws_random_normal(g);
            x[1 + t] = (float)(z + sqrt(noise) * rws_random_normal(g));
        }
    }
    return RWS_OK;
}

/* The Kalman filter: z_t given x_0 … x_t has this mean and variance. */
static void model(rws_path *path, const void *state)
{
    const rws_var all = rws_parameter(path, ((const world *)state)->theta);
    const rws_var zero = rws_constant(path, 0), stay = rws_slice(path, all, STAY, 1);
    rws_var       mean = zero, variance = zero, law = zero;
    const rws_var a2 = rws_slice(path, all, A, 2), q2 = rws_apply(path, RWS_EXP, rws_slice(path, all, Q, 2));
    for (int t = 0; t < T; t++) {
        const rws_var sign = rws_affine(path, law, 2, -1); /* -1 for law 0, 1 for law 1 */
        law = rws_bernoulli(path, "law", t ? rws_mul(path, sign, stay) : zero);
        const rws_var a = rws_pick(path, a2, law), q = rws_pick(path, q2, law);
        mean = rws_mul(path, a, mean);
        variance = rws_add(path, rws_mul(path, rws_mul(path, a, a), variance), rws_mul(path, q, q));
        const rws_var total = rws_affine(path, variance, 1, (float)noise), gain = rws_div(path, variance, total);
        const rws_var x = rws_normal(path, "x", mean, rws_apply(path, RWS_SQRT, total)); /* observed */
        mean = rws_add(path, mean, rws_mul(path, gain, rws_sub(path, x, mean)));
        variance = rws_affine(path, gain, (float)noise, 0);
    }
}

static void guide(rws_path *path, const void *state)
{
    const world *w = state;
    int          n;
    rws_var     *x = rws_items(path, "x", &n), *h = rws_gru_backwards(path, w->later, x, n);
    rws_var      zero = rws_constant(path, 0), law = zero;
    for (int t = 0; t < n; t++) {
        const rws_var about[] = {h[t], law, t > 0 ? x[t - 1] : zero, t > 1 ? x[t - 2] : zero, t > 2 ? x[t - 3] : zero};
        law = rws_bernoulli(path, "law", rws_mlp_parts(path, w->guess, about, 5));
    }
}

/* p(x_t … x_9 | the law at t - 1, the mean and the variance of z_{t-1}), by the sum over the laws from t on. */
static double series(const float *x, const double *theta, int t, int before, double mean, double variance)
{
    double sum = 0;
    for (int law = 0; t < T && law < 2; law++) {
        const double a = theta[A + law], m = a * mean, v = a * a * variance + exp(2 * theta[Q + law]);
        const double total = v + noise, gain = v / total, d = (double)x[t] - m;
        const double p = t ? 1 / (1 + exp(law == before ? -theta[STAY] : theta[STAY])) : 0.5;
        const double rest = series(x, theta, t + 1, law, m + gain * d, gain * noise);
        sum += p * exp(-d * d / total / 2) / sqrt(2 * M_PI * total) * rest;
    }
    return t < T ? sum : 1;
}

static double log_p(const float *const *fields, const void *theta)
{
    return log(series(fields[0] + 1, theta, 0, 0, 0, 0));
}

static rws_status exact(rws_eval *e, const void *state, double *value, rws_error *err)
{
    double theta[N];
    rws_param_read(((const world *)state)->theta, RWS_AS_IS, theta);
    return rws_eval_mean(e, log_p, theta, value, err);
}

const rws_model rws_user_model = {
    .abi = RWS_ABI,
    .name = "slds",
    .help = "switching linear dynamics",
    .metrics = (const rws_metric[]){{"exact", "log p(x) at theta", exact}, {0}},
    .defaults = {.batch = 50, .particles = 10, .iterations = 3000, .n_test = 200, .lr = "1e-2,2500:1e-3"},
    .setup = setup,
    .data = data,
    .guide = guide,
    .model = model,
};
