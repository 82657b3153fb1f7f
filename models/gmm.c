/* gmm.c - the Gaussian mixture of section 4.3: z ~ softmax(theta), x ~ N(10 z, 5^2); only the mixture is learned.
 *
 * The guide is a small network on x. The model serves to measure estimators, because everything about it is known: the
 * true mixture is p(z) = (z + 5) / sum, its posterior and evidence are sums over C components.
 */
#include "models/model.h"

#include <math.h>

#define SPACING 10.0
#define SD 5.0

typedef struct {
    int        C;
    float      mult; /* on theta, before the softmax */
    rws_param *theta;
    rws_layer *mlp;
    double    *truth;      /* C: the true mixture */
    double    *log_truth;  /* C */
    float     *cumulative; /* C */
    float     *means;      /* C */
} gmm;

static const rws_setting settings[] = {
    {"start", "far", 0, 0, "far (p(z) falls like e^-z) or near (uniform)"},
    {"components", "20", 2, 1000, "number of components", true},
    {"gmm_hidden", "1", 1, 4, "hidden layers of the guide, of 16 units each", true},
    {"theta_mult", "1", 1e-3, 1e3, "p(z) = softmax(theta_mult * theta)"},
    {0},
};

static rws_status setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    (void)random;
    gmm *m = rws_setup_alloc(s, sizeof *m);
    if (!m) return rws_no_memory(err, "the mixture");
    bool near;
    RWS_TRY(rws__setting_either(s, "start", "far", "near", &near, err));
    m->C = rws_setup_int(s, "components");
    m->mult = (float)rws_setup_number(s, "theta_mult");
    m->truth = rws_setup_alloc(s, (size_t)m->C * sizeof *m->truth);
    m->log_truth = rws_setup_alloc(s, (size_t)m->C * sizeof *m->log_truth);
    m->cumulative = rws_setup_alloc(s, (size_t)m->C * sizeof *m->cumulative);
    m->means = rws_setup_alloc(s, (size_t)m->C * sizeof *m->means);
    m->theta = rws_setup_param(s, RWS_THETA, "theta", 1, m->C, RWS_ZERO);
    float *theta = rws__declared_values(m->theta);
    if (!m->truth || !m->log_truth || !m->cumulative || !m->means || !theta) return rws_no_memory(err, "the mixture");

    double total = 0;
    for (int c = 0; c < m->C; c++) total += c + 5;
    for (int c = 0; c < m->C; c++) {
        m->truth[c] = (c + 5) / total;
        m->log_truth[c] = log(m->truth[c]);
        m->cumulative[c] = (float)m->truth[c] + (c ? m->cumulative[c - 1] : 0);
        m->means[c] = (float)(SPACING * c);
    }

    rws_setup_field(s, "x", 1);
    rws_setup_relaxed(s, "z", m->C);
    for (int c = 0; c < m->C && !near; c++) theta[c] = (float)(m->C - 1 - c) / m->mult;

    int sizes[6] = {1}, n = 1;
    for (int i = 0; i < rws_setup_int(s, "gmm_hidden"); i++) sizes[n++] = 16;
    sizes[n++] = m->C;
    m->mlp = rws_setup_mlp(s, RWS_PHI, "phi.mlp", RWS_TANH, RWS_UNIFORM, sizes, n);
    *state = m;
    return RWS_OK;
}

/* Data are drawn from the true mixture. */
static rws_status data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                       float *const *fields, rws_error *err)
{
    (void)split, (void)first, (void)err;
    const gmm *m = state;
    float     *x = fields[0];
    float      u[256];
    rws_random_normals(random, (size_t)n, x);
    for (int done = 0; done < n; done += 256) {
        const int part = n - done < 256 ? n - done : 256;
        rws_random_uniforms(random, (size_t)part, u);
        for (int i = 0; i < part; i++) {
            int z = 0;
            for (int c = 0; c + 1 < m->C; c++) z += u[i] >= m->cumulative[c];
            x[done + i] = (float)SD * x[done + i] + m->means[z];
        }
    }
    return RWS_OK;
}

/* ---- the two programs */

static void guide(rws_path *path, const void *state)
{
    const gmm *m = state;
    rws_categorical(path, "z", rws_mlp(path, m->mlp, rws_observed(path, "x")));
}

static rws_var prior(rws_path *path, const gmm *m)
{
    const rws_var theta = rws_parameter(path, m->theta);
    return m->mult == 1 ? theta : rws_affine(path, theta, m->mult, 0);
}

static void model(rws_path *path, const void *state)
{
    const rws_var z = rws_categorical(path, "z", prior(path, state));
    rws_normal(path, "x", rws_affine(path, z, (float)SPACING, 0), rws_constant(path, (float)SD));
}

/* log p(s, x) with a mixture s of components in the place of one component: x ~ N(s . means, 5^2). */
static rws_var relaxed(rws_path *path, const void *state, rws_var log_s, rws_var temperature, rws_relaxation how)
{
    const gmm    *m = state;
    const rws_var log_pi = rws_log_softmax(path, prior(path, m));
    const rws_var s = rws_apply(path, RWS_EXP, log_s);
    const rws_var mean = rws_sum(path, rws_mul(path, s, rws_constants(path, m->means, m->C)));
    rws_var       log_prior;
    switch (how) {
    case RWS_RELAX_SOFT: log_prior = rws_log_sum_exp(path, rws_add(path, log_s, log_pi)); break;
    case RWS_RELAX_DENSITY: log_prior = rws_relaxed_density(path, log_s, log_pi, temperature); break;
    default: log_prior = rws_pick(path, log_pi, rws_argmax(path, log_s)); break;
    }
    return rws_add(path, log_prior,
                   rws_normal_density(path, rws_observed(path, "x"), mean, rws_constant(path, (float)SD)));
}

/* ---- exact sums over the components */

static double log_normal(double x, double mean)
{
    const double d = (x - mean) / SD;
    return -0.5 * d * d - log(SD) - 0.5 * log(2 * M_PI);
}

/* log p(x) under mixture weights exp(log_pi), and the posterior unless NULL. */
static double log_evidence(const gmm *m, const double *log_pi, double x, double *posterior)
{
    double top = -INFINITY, total = 0;
    for (int c = 0; c < m->C; c++) {
        const double l = log_pi[c] + log_normal(x, SPACING * c);
        if (l > top) top = l;
    }
    for (int c = 0; c < m->C; c++) total += exp(log_pi[c] + log_normal(x, SPACING * c) - top);
    const double log_p = top + log(total);
    for (int c = 0; c < m->C && posterior; c++) posterior[c] = exp(log_pi[c] + log_normal(x, SPACING * c) - log_p);
    return log_p;
}

static void model_log_pi(const gmm *m, double *log_pi)
{
    const float *theta = rws_param_values(m->theta);
    double       top = -INFINITY, total = 0;
    for (int c = 0; c < m->C; c++) log_pi[c] = (double)m->mult * (double)theta[c];
    for (int c = 0; c < m->C; c++) top = fmax(top, log_pi[c]);
    for (int c = 0; c < m->C; c++) total += exp(log_pi[c] - top);
    for (int c = 0; c < m->C; c++) log_pi[c] = log_pi[c] - top - log(total);
}

static rws_status p_error(rws_eval *e, const void *state, double *value, rws_error *err)
{
    (void)e, (void)err;
    const gmm *m = state;
    double     log_pi[1000], total = 0;
    model_log_pi(m, log_pi);
    for (int c = 0; c < m->C; c++) total += pow(exp(log_pi[c]) - m->truth[c], 2);
    *value = sqrt(total);
    return RWS_OK;
}

static rws_var log_guide(rws_path *path, const void *state)
{
    const gmm *m = state;
    return rws_log_softmax(path, rws_mlp(path, m->mlp, rws_observed(path, "x")));
}

/* Mean distance between q(.|x) and the true posterior. */
static rws_status q_error(rws_eval *e, const void *state, double *value, rws_error *err)
{
    const gmm   *m = state;
    const int    n = rws_eval_size(e);
    const float *x = rws_eval_field(e, "x");
    double       posterior[1000], total = 0;
    float        log_q[64 * 1000];
    for (int first = 0; first < n; first += 64) {
        const int        part = n - first < 64 ? n - first : 64;
        const float     *fields[] = {x + first};
        const rws_status status = rws_eval_compute(e, log_guide, part, fields, log_q, err);
        if (status != RWS_OK) return status;
        for (int i = 0; i < part; i++) {
            double squares = 0;
            log_evidence(m, m->log_truth, (double)x[first + i], posterior);
            for (int c = 0; c < m->C; c++) squares += pow(exp((double)log_q[i * m->C + c]) - posterior[c], 2);
            total += sqrt(squares);
        }
    }
    *value = total / n;
    return RWS_OK;
}

static rws_status mean_log_evidence(rws_eval *e, const void *state, double *value, rws_error *err)
{
    (void)err;
    const gmm   *m = state;
    const float *x = rws_eval_field(e, "x");
    double       log_pi[1000], total = 0;
    model_log_pi(m, log_pi);
    for (int i = 0; i < rws_eval_size(e); i++) total += log_evidence(m, log_pi, (double)x[i], NULL);
    *value = total / rws_eval_size(e);
    return RWS_OK;
}

static const rws_metric metrics[] = {
    {"p_error", "distance between p(z) and the true mixture (L2)", p_error},
    {"q_error", "distance between q(z|x) and the true posterior, mean over the test data (L2)", q_error},
    {"log_evidence", "log p(x), exact, mean over the test data", mean_log_evidence},
    {0},
};

/* ---- snapshots for Hinton diagrams: p(z), and q(z|x) at x = 0, 95 and 190, beside the truth */

static rws_status show_p(rws_eval *e, const void *state, rws_error *err)
{
    (void)err;
    const gmm *m = state;
    double     log_pi[1000];
    model_log_pi(m, log_pi);
    for (int c = 0; c < m->C; c++) rws_eval_show(e, NULL, exp(log_pi[c]));
    return RWS_OK;
}

static rws_status show_true_p(rws_eval *e, const void *state, rws_error *err)
{
    (void)err;
    const gmm *m = state;
    for (int c = 0; c < m->C; c++) rws_eval_show(e, NULL, m->truth[c]);
    return RWS_OK;
}

static rws_status show_q(rws_eval *e, const gmm *m, float x, rws_error *err)
{
    float            log_q[1000];
    const float     *fields[] = {&x};
    const rws_status status = rws_eval_compute(e, log_guide, 1, fields, log_q, err);
    for (int c = 0; c < m->C && status == RWS_OK; c++) rws_eval_show(e, NULL, exp((double)log_q[c]));
    return status;
}

static rws_status show_true_q(rws_eval *e, const gmm *m, double x)
{
    double posterior[1000];
    log_evidence(m, m->log_truth, x, posterior);
    for (int c = 0; c < m->C; c++) rws_eval_show(e, NULL, posterior[c]);
    return RWS_OK;
}

#define SHOW_Q_AT(place)                                                                  \
    static rws_status show_q_##place(rws_eval *e, const void *state, rws_error *err)      \
    {                                                                                     \
        return show_q(e, state, place, err);                                              \
    }                                                                                     \
    static rws_status show_true_q_##place(rws_eval *e, const void *state, rws_error *err) \
    {                                                                                     \
        (void)err;                                                                        \
        return show_true_q(e, state, place);                                              \
    }
SHOW_Q_AT(0)
SHOW_Q_AT(95)
SHOW_Q_AT(190)

static const rws_snapshot snapshots[] = {
    {"p", "p(z)", show_p},
    {"q_0", "q(z|x = 0)", show_q_0},
    {"q_95", "q(z|x = 95)", show_q_95},
    {"q_190", "q(z|x = 190)", show_q_190},
    {"true_p", "the true p(z)", show_true_p},
    {"true_q_0", "the true posterior at x = 0", show_true_q_0},
    {"true_q_95", "the true posterior at x = 95", show_true_q_95},
    {"true_q_190", "the true posterior at x = 190", show_true_q_190},
    {0},
};

const rws_model rws_model_gmm = {
    .abi = RWS_ABI,
    .name = "gmm",
    .help = "Gaussian mixture: 20 components, only their weights are learned",
    .settings = settings,
    .metrics = metrics,
    .snapshots = snapshots,
    .defaults = {.batch = 100,
                 .particles = 20,
                 .iterations = 100000,
                 .eval_every = 1000,
                 .n_test = 100,
                 .optimiser = "adam",
                 .lr = "1e-3",
                 .shards = 1,
                 .grad_std = true},
    .setup = setup,
    .data = data,
    .guide = guide,
    .model = model,
    .relaxed = relaxed,
};
