/* lines.c - a conditional model: what is known of intercept and slope after some points (x, y)? A datum is a whole data set, whose x
 * are an input: both programs read them, and nobody observes them. The coefficients belong to all points of a datum.
 *     make examples && build/rws train build/examples/lines.so --out lines && build/rws infer lines "[-1 0.5 2] [0.2 0.4 1.5]" */
#include <math.h>
#include <rws.h>
enum { MOST = 8, WIDE = 32 };
static const float noise = 0.5f;
typedef struct {
    rws_layer *points, *head; /* phi: a sum over the points; mean and Cholesky factor of both coefficients */
} world;
static rws_status setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    (void)random, (void)err;
    world *w = *state = rws_setup_alloc(s, sizeof *w);
    rws_setup_series(s, "x", 1, MOST);
    rws_setup_is_input(s, "x");
    rws_setup_series(s, "y", 1, MOST);
    w->points = rws_setup_set_encoder(s, RWS_PHI, "phi.points", RWS_ELU, RWS_SUM, (int[]){2, WIDE, WIDE}, 3);
    w->head = rws_setup_mlp(s, RWS_PHI, "phi.head", RWS_ELU, RWS_UNIFORM, (int[]){WIDE, WIDE, 5}, 3);
    return RWS_OK;
}
static rws_status data(const void *w, rws_split s, uint64_t first, int n, rws_random *g, float *const *to, rws_error *e)
{
    (void)w, (void)s, (void)first, (void)e;
    for (int i = 0; i < n; i++) {
        float       *x = to[0] + i * (1 + MOST), *y = to[1] + i * (1 + MOST);
        const float  intercept = (float)rws_random_normal(g), slope = (float)rws_random_normal(g);
        const double u = rws_random_uniform(g);
        x[0] = y[0] = (float)(1 + (int)(MOST * u));
        for (int t = 1; t <= MOST; t++) x[t] = y[t] = 0;
        for (int t = 1; t <= (int)x[0]; t++) {
            x[t] = (float)rws_random_normal(g);
            y[t] = intercept + slope * x[t] + noise * (float)rws_random_normal(g);
        }
    }
    return RWS_OK;
}
static void model(rws_path *path, const void *state)
{
    (void)state;
    int            n;
    const rws_var  w = rws_normal(path, "w", rws_zeros(path, 2), rws_constant(path, 1));
    const rws_var *x = rws_items(path, "x", &n); /* an input: the model may read it */
    for (int t = 0; t < n; t++) {
        const rws_var rise = rws_mul(path, rws_slice(path, w, 1, 1), x[t]);
        rws_normal(path, "y", rws_add(path, rws_slice(path, w, 0, 1), rise), rws_constant(path, noise));
    }
}
static void guide(rws_path *path, const void *state)
{
    const world *w = state;
    int          n;
    rws_var     *x = rws_items(path, "x", &n);
    for (int t = 0; t < n; t++) x[t] = rws_concat(path, (rws_var[]){x[t], rws_item(path, "y", t)}, 2);
    const rws_var seen = rws_mlp(path, w->head, rws_set_encoder(path, w->points, x, n));
    const rws_var diagonal = rws_apply(path, RWS_EXP, rws_slice(path, seen, 2, 2));
    const rws_var factor[] = {rws_slice(path, diagonal, 0, 1), rws_slice(path, seen, 4, 1),
                              rws_slice(path, diagonal, 1, 1)};
    rws_multivariate_normal(path, "w", rws_slice(path, seen, 0, 2), rws_concat(path, factor, 3));
}
/* log p(y | x) of a datum, point by point: the coefficients are normal with this mean and covariance. */
static double log_evidence(const float *const *fields, const void *context)
{
    (void)context;
    const float *x = fields[0], *y = fields[1];
    double       mean[2] = {0, 0}, a = 1, b = 0, c = 1, total = 0; /* covariance a b; b c */
    for (int t = 1; t <= (int)x[0]; t++) {
        const double u = (double)x[t], along[2] = {a + b * u, b + c * u};
        const double variance = along[0] + along[1] * u + (double)noise * (double)noise;
        const double off = (double)y[t] - mean[0] - mean[1] * u;
        total += -0.5 * off * off / variance - 0.5 * log(2 * M_PI * variance);
        for (int k = 0; k < 2; k++) mean[k] += along[k] * off / variance;
        a -= along[0] * along[0] / variance, b -= along[0] * along[1] / variance, c -= along[1] * along[1] / variance;
    }
    return total;
}
static rws_status exact(rws_eval *e, const void *state, double *value, rws_error *err)
{
    (void)state;
    return rws_eval_mean(e, log_evidence, NULL, value, err);
}
const rws_model rws_user_model = {
    .abi = RWS_ABI,
    .name = "lines",
    .help = "a line through points",
    .metrics = (const rws_metric[]){{"exact", "log p(y | x), exactly", exact}, {0}},
    .defaults = {.particles = 10, .batch = 100, .iterations = 3000, .n_test = 50, .lr = "3e-3,2000:3e-4"},
    .setup = setup,
    .data = data,
    .guide = guide,
    .model = model,
};
