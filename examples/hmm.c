/* hmm.c - a hidden Markov model: the weather of 1 to 60 days, of which only a diary is known.
 *     make examples && build/rws train build/examples/hmm.so --method ww --eval-particles 100
 *     START -> z_0 -> z_1 -> … -> z_{n-1}     the weather (fair, rain, storm): hidden
 *               |      |            |
 *              x_0    x_1         x_{n-1}     the diary, one of five words a day: a series
 * The metrics "exact" and "truth" are log p(x) by the forward algorithm, at theta and at the numbers behind the data. */
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
    w->later = rws_setup_gru(s, RWS_PHI, "phi.later", WORDS, HIDDEN);
    w->guess = rws_setup_mlp(s, RWS_PHI, "phi.guess", RWS_TANH, RWS_UNIFORM, (int[]){HIDDEN + 4, 32, STATES}, 3);
    return RWS_OK;
}
static int draw(rws_random *g, const double *p)
{
    int i = 0;
    for (double u = rws_random_uniform(g); (u -= p[i]) > 0;) i++;
    return i;
}
static rws_status data(const void *w, rws_split s, uint64_t first, int n, rws_random *g, float *const *to, rws_error *e)
{
    (void)w, (void)s, (void)first, (void)e;
    for (int i = 0; i < n; i++) {
        float *x = to[1] + i * (1 + MOST);
        x[0] = 1 + (to[0][i] = (float)rws_random_below(g, MOST)); /* the length of the series; items follow */
        for (int t = 0, z = START; t < MOST; t++) {
            z = draw(g, truth.next[z]);
            x[1 + t] = t < (int)x[0] ? (float)draw(g, truth.says[z]) : 0;
        }
    }
    return RWS_OK;
}
static void model(rws_path *path, const void *state)
{
    const net    *w = state;
    const rws_var next = rws_parameter(path, w->next), says = rws_parameter(path, w->says);
    const int     n = 1 + rws_choose(path, "days", rws_constants(path, (float[MOST]){0}, MOST)); /* observed */
    rws_var       z = rws_constant(path, START);
    for (int t = 0; t < n; t++) {
        z = rws_categorical(path, "z", rws_row(path, next, STATES, z));
        rws_categorical(path, "x", rws_row(path, says, WORDS, z)); /* observed: item t */
    }
}
static void guide(rws_path *path, const void *state)
{
    const net *w = state;
    const int  n = rws_branch(path, rws_length(path, "x"));
    rws_var    h[MOST + 1] = {0}, z = rws_constant(path, START);
    h[n] = rws_constants(path, (float[HIDDEN]){0}, HIDDEN);
    for (int t = n; t-- > 0;)
        h[t] = rws_gru(path, w->later, (rws_var[]){rws_onehot(path, rws_item(path, "x", t), WORDS)}, 1, h[t + 1]);
    for (int t = 0; t < n; t++)
        z = rws_categorical(path, "z", rws_mlp_parts(path, w->guess, (rws_var[]){h[t], rws_onehot(path, z, 4)}, 2));
}
/* The mean of log p(x) over the test data by the forward algorithm: a[z] is p(z_t = z | x_0 … x_t). */
static rws_status forward(rws_eval *e, const numbers *p, double *value)
{
    *value = -log(MOST);
    for (int i = 0; i < rws_eval_size(e); i++) {
        double       a[STATES + 1] = {[START] = 1};
        const float *x = rws_eval_field(e, "x") + i * (1 + MOST);
        for (int t = 1; t <= (int)x[0]; t++) {
            double b[STATES + 1] = {0}, sum = 0;
            for (int j = 0; j < STATES; sum += b[j++])
                for (int k = 0; k <= STATES; k++) b[j] += a[k] * p->next[k][j] * p->says[j][(int)x[t]];
            for (int j = 0; j <= STATES; j++) a[j] = b[j] / sum;
            *value += log(sum) / rws_eval_size(e);
        }
    }
    return RWS_OK;
}
static void softmax(const rws_param *logits, int size, int n, double *p)
{
    for (int i = 0, j = 0; i < size; i += n) {
        double sum = 0;
        for (j = i; j < i + n; j++) sum += p[j] = exp((double)rws_param_values(logits)[j]);
        for (j = i; j < i + n; j++) p[j] /= sum;
    }
}
static rws_status exact(rws_eval *e, const void *state, double *value, rws_error *err)
{
    numbers p;
    softmax(((const net *)state)->next, (STATES + 1) * STATES, STATES, *p.next);
    softmax(((const net *)state)->says, STATES * WORDS, WORDS, *p.says);
    return (void)err, forward(e, &p, value);
}
static rws_status best(rws_eval *e, const void *state, double *value, rws_error *err)
{
    return (void)state, (void)err, forward(e, &truth, value);
}
const rws_model rws_user_model = {
    .abi = RWS_ABI,
    .name = "hmm",
    .help = "the weather behind a diary",
    .metrics =
        (const rws_metric[]){{"exact", "log p(x) at theta", exact}, {"truth", "log p(x) at the truth", best}, {0}},
    .defaults = {.batch = 50, .particles = 10, .iterations = 2000, .n_test = 500, .lr = "1e-2,1500:1e-3"},
    .setup = setup,
    .data = data,
    .guide = guide,
    .model = model,
};
