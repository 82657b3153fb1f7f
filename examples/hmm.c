/* hmm.c - a hidden Markov model: the weather of 1 to 60 days is hidden, and only a diary is known.
 *     make examples && build/rws train build/examples/hmm.so --method ww --eval-particles 100
 *     START -> z_0 -> z_1 -> … -> z_{n-1}     the weather (fair, rain, storm): hidden
 *               |      |            |
 *              x_0    x_1         x_{n-1}     the diary, one of five words a day: a series
 * The metric "exact" is log p(x) by the forward algorithm. */
#include <math.h>
#include <rws.h>

enum { STATES = 3, START = STATES, WORDS = 5, MOST = 60, HIDDEN = 32 };

typedef struct {
    double next[STATES + 1][STATES], says[STATES][WORDS]; /* probabilities of the next state and of the word */
} numbers;

static const numbers truth = {
    {{0.85, 0.1, 0.05}, {0.2, 0.7, 0.1}, {0.1, 0.4, 0.5}, {0.6, 0.3, 0.1}},
    {{0.7, 0.2, 0.06, 0.02, 0.02}, {0.05, 0.15, 0.6, 0.15, 0.05}, {0.02, 0.03, 0.1, 0.25, 0.6}}};

typedef struct {
    rws_param *next, *says;   /* theta: their logits */
    rws_layer *later, *guess; /* phi: sums up the diary from its end; the weather of a day */
} net;

static rws_status setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    net *w = ((void)err, *state = rws_setup_alloc(s, sizeof *w));
    rws_setup_field(s, "days", 1);
    rws_setup_series(s, "x", 1, MOST);
    w->next = rws_setup_param(s, RWS_THETA, "theta.next", STATES + 1, STATES, RWS_ZERO);
    w->says = rws_setup_param(s, RWS_THETA, "theta.says", STATES, WORDS, RWS_ZERO);
    for (int i = 0; i < STATES * WORDS; i++) rws_param_values(w->says)[i] = (float)rws_random_normal(random);
    rws_setup_truth(s, w->next, RWS_LOGITS, *truth.next);
    rws_setup_truth(s, w->says, RWS_LOGITS, *truth.says);
    w->later = rws_setup_gru(s, RWS_PHI, "phi.later", WORDS, HIDDEN);
    w->guess = rws_setup_mlp(s, RWS_PHI, "phi.guess", RWS_TANH, RWS_UNIFORM, (int[]){HIDDEN + 4, 32, STATES}, 3);
    return RWS_OK;
}

static rws_status data(const void *w, rws_split s, uint64_t first, int n, rws_random *g, float *const *to, rws_error *e)
{
    (void)w, (void)s, (void)first, (void)e;
    for (int i = 0; i < n; i++) {
        float *x = to[1] + i * (1 + MOST);
        x[0] = 1 + (to[0][i] = (float)rws_random_below(g, MOST)); /* the length of the series; items follow */
        for (int t = 0, z = START; t < MOST; t++) {
            z = rws_random_choose(g, truth.next[z], STATES);
            x[1 + t] = t < (int)x[0] ? (float)rws_random_choose(g, truth.says[z], WORDS) : 0;
        }
    }
    return RWS_OK;
}

static void model(rws_path *path, const void *state)
{
    const net    *w = state;
    const rws_var next = rws_parameter(path, w->next), says = rws_parameter(path, w->says);
    const int     n = 1 + rws_choose(path, "days", rws_zeros(path, MOST)); /* observed */
    rws_var       z = rws_constant(path, START);
    for (int t = 0; t < n; t++) {
        z = rws_categorical(path, "z", rws_row(path, next, STATES, z));
        rws_categorical(path, "x", rws_row(path, says, WORDS, z)); /* observed: item t */
    }
}

static void guide(rws_path *path, const void *state)
{
    const net *w = state;
    int        n;
    rws_var   *x = rws_items(path, "x", &n), z = rws_constant(path, START);
    for (int t = 0; t < n; t++) x[t] = rws_onehot(path, x[t], WORDS);
    const rws_var *h = rws_gru_backwards(path, w->later, x, n);
    for (int t = 0; t < n; t++)
        z = rws_categorical(path, "z", rws_mlp_parts(path, w->guess, (rws_var[]){h[t], rws_onehot(path, z, 4)}, 2));
}

/* The forward algorithm: a[z] is p(z_t = z | x_0 … x_t). */
static double log_p(const float *const *fields, const void *theta)
{
    const numbers *p = theta;
    const float   *x = fields[1];
    double         a[STATES + 1] = {[START] = 1}, value = -log(MOST);
    for (int t = 1; t <= (int)x[0]; t++) {
        double b[STATES + 1] = {0}, sum = 0;
        for (int j = 0; j < STATES; sum += b[j++])
            for (int k = 0; k <= STATES; k++) b[j] += a[k] * p->next[k][j] * p->says[j][(int)x[t]];
        for (int j = 0; j <= STATES; j++) a[j] = b[j] / sum;
        value += log(sum);
    }
    return value;
}

static rws_status exact(rws_eval *e, const void *state, double *value, rws_error *err)
{
    numbers theta;
    rws_param_read(((const net *)state)->next, RWS_LOGITS, *theta.next);
    rws_param_read(((const net *)state)->says, RWS_LOGITS, *theta.says);
    return rws_eval_mean(e, log_p, &theta, value, err);
}

const rws_model rws_user_model = {
    .abi = RWS_ABI,
    .name = "hmm",
    .help = "the weather behind a diary",
    .metrics = (const rws_metric[]){{"exact", "log p(x) at theta", exact}, {0}},
    .defaults = {.batch = 50, .particles = 10, .iterations = 2000, .n_test = 500, .lr = "1e-2,1500:1e-3"},
    .setup = setup,
    .data = data,
    .guide = guide,
    .model = model,
};
