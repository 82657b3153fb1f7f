/* hmm.c - a hidden Markov model: the weather of 1 to 60 days, of which only a diary is known. States: fair, rain, storm.
 *     make examples && build/rws train build/examples/hmm.so --method ww
 *
 *     z_0 -> z_1 -> z_2 -> … -> z_{n-1}      the weather: hidden
 *      |      |      |            |
 *     x_0    x_1    x_2          x_{n-1}     the diary: a series
 *
 * The metrics "exact" and "truth" are log p(x) by the forward algorithm, at theta and at the numbers that made the data. */
#include <math.h>
#include <rws.h>
enum { STATES = 3, SYMBOLS = 5, MOST = 60, HIDDEN = 32 };
typedef struct {
    rws_param *first, *next, *says; /* theta: logits of the first state, of the next, and of what is written */
    rws_layer *later, *guess; /* phi: what comes after a day, and the weather from this, the day and the day before */
    rws_layer *day;
} net;
static const double true_first[STATES] = {0.6, 0.3, 0.1};
static const double true_next[STATES][STATES] = {{0.85, 0.1, 0.05}, {0.2, 0.7, 0.1}, {0.1, 0.4, 0.5}};
static const double true_says[STATES][SYMBOLS] = {
    {0.7, 0.2, 0.06, 0.02, 0.02}, {0.05, 0.15, 0.6, 0.15, 0.05}, {0.02, 0.03, 0.1, 0.25, 0.6}};

static rws_status setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    (void)err;
    net *w = *state = rws_setup_alloc(s, sizeof *w);
    if (!w) return RWS_OK; /* the setup has failed already */
    rws_setup_field(s, "days", 1);
    rws_setup_series(s, "x", 1, MOST);
    w->first = rws_setup_param(s, RWS_THETA, "theta.first", 1, STATES, RWS_ZERO);
    w->next = rws_setup_param(s, RWS_THETA, "theta.next", STATES, STATES, RWS_ZERO);
    w->says = rws_setup_param(s, RWS_THETA, "theta.says", STATES, SYMBOLS, RWS_ZERO);
    for (int i = 0; i < STATES * SYMBOLS; i++) rws_param_values(w->says)[i] = 0.5f * (float)rws_random_normal(random);
    for (int i = 0; i < STATES; i++) rws_param_values(w->next)[i * STATES + i] = 1; /* days resemble the day before */
    w->day = rws_setup_embedding(s, RWS_PHI, "phi.day", SYMBOLS, 8);
    w->later = rws_setup_gru(s, RWS_PHI, "phi.later", 8, HIDDEN);
    w->guess = rws_setup_mlp(s, RWS_PHI, "phi.guess", RWS_TANH, RWS_UNIFORM, (int[]){HIDDEN + STATES, 32, STATES}, 3);
    return RWS_OK;
}

static int draw(rws_random *g, const double *p)
{
    double u = rws_random_uniform(g);
    int    i = 0;
    while ((u -= p[i]) > 0) i++;
    return i;
}

static rws_status data(const void *state, rws_split split, uint64_t first, int n, rws_random *g, float *const *fields,
                       rws_error *err)
{
    (void)state, (void)split, (void)first, (void)err;
    for (int i = 0; i < n; i++) {
        float    *x = fields[1] + i * (1 + MOST);
        const int days = 1 + (int)rws_random_below(g, MOST);
        fields[0][i] = (float)(days - 1);
        x[0] = (float)days;
        for (int t = 0, z = 0; t < MOST; t++) {
            z = draw(g, t ? true_next[z] : true_first);
            x[1 + t] = t < days ? (float)draw(g, true_says[z]) : 0;
        }
    }
    return RWS_OK;
}

static void model(rws_path *path, const void *state)
{
    const net    *w = state;
    const rws_var next = rws_parameter(path, w->next), says = rws_parameter(path, w->says);
    const int     n = 1 + rws_choose(path, "days", rws_constants(path, (float[MOST]){0}, MOST)); /* observed */
    rws_var       logits = rws_parameter(path, w->first);
    for (int t = 0; t < n; t++) {
        const rws_var z = rws_categorical(path, "z", logits);
        rws_categorical(path, "x", rws_row(path, says, SYMBOLS, z)); /* observed: day t of the diary */
        logits = rws_row(path, next, STATES, z);
    }
}

static void guide(rws_path *path, const void *state)
{
    const net *w = state;
    const int  n = rws_branch(path, rws_length(path, "x"));
    rws_var    later[MOST + 1] = {0}, before = rws_constants(path, (float[STATES]){0}, STATES);
    later[n] = rws_constants(path, (float[HIDDEN]){0}, HIDDEN);
    for (int t = n - 1; t >= 0; t--) { /* the diary, read backwards */
        const rws_var day = rws_embedding(path, w->day, rws_item(path, "x", t));
        later[t] = rws_gru(path, w->later, &day, 1, later[t + 1]);
    }
    for (int t = 0; t < n; t++) {
        const rws_var z = rws_categorical(path, "z", rws_mlp_parts(path, w->guess, (rws_var[]){later[t], before}, 2));
        rws_report(path, "weather", z);
        before = rws_onehot(path, z, STATES);
    }
}

/* log p(x) of a diary by the forward algorithm: a[z] is p(z_t, x_0 … x_t). */
static double forward(const float *x, const double *first, const double *next, const double *says)
{
    double a[STATES], log_p = -log(MOST);
    for (int t = 0; t < (int)x[0]; t++) {
        double b[STATES] = {0}, sum = 0;
        for (int j = 0; j < STATES; j++) {
            for (int i = 0; i < STATES; i++) b[j] += t ? a[i] * next[i * STATES + j] : i == j ? first[j] : 0;
            sum += b[j] *= says[j * SYMBOLS + (int)x[1 + t]];
        }
        for (int j = 0; j < STATES; j++) a[j] = b[j] / sum;
        log_p += log(sum);
    }
    return log_p;
}

static void softmax(const rws_param *p, int rows, int n, double *out)
{
    for (int i = 0; i < rows; i++, out += n) {
        double sum = 0;
        for (int j = 0; j < n; j++) sum += out[j] = exp((double)rws_param_values(p)[i * n + j]);
        for (int j = 0; j < n; j++) out[j] /= sum;
    }
}

static double forward_at(const net *w, const float *x)
{
    double first[STATES], next[STATES * STATES], says[STATES * SYMBOLS];
    softmax(w->first, 1, STATES, first);
    softmax(w->next, STATES, STATES, next);
    softmax(w->says, STATES, SYMBOLS, says);
    return forward(x, first, next, says);
}

static rws_status exact(rws_eval *e, const void *state, double *value, rws_error *err)
{
    (void)err;
    *value = 0;
    for (int i = 0; i < rws_eval_size(e); i++)
        *value += forward_at(state, rws_eval_field(e, "x") + i * (1 + MOST)) / rws_eval_size(e);
    return RWS_OK;
}

static rws_status truth(rws_eval *e, const void *state, double *value, rws_error *err)
{
    (void)state, (void)err;
    *value = 0;
    for (int i = 0; i < rws_eval_size(e); i++)
        *value +=
            forward(rws_eval_field(e, "x") + i * (1 + MOST), true_first, *true_next, *true_says) / rws_eval_size(e);
    return RWS_OK;
}

static rws_status posterior(const void *state, const float *const *fields, rws_teller *tell, void *context,
                            double *log_p, rws_error *err)
{
    (void)tell, (void)context, (void)err; /* the probability of each state of each day is not told, only log p(x) */
    *log_p = forward_at(state, fields[1]);
    return RWS_OK;
}

const rws_model rws_user_model = {
    .abi = RWS_ABI,
    .name = "hmm",
    .help = "the weather behind a diary",
    .metrics = (const rws_metric[]){{"exact", "log p(x) at theta, by the forward algorithm", exact},
                                    {"truth", "log p(x) at the numbers that made the data", truth},
                                    {0}},
    .defaults =
        {.batch = 50, .particles = 20, .iterations = 4000, .eval_every = 1000, .n_test = 500, .lr = "1e-2,2000:1e-3"},
    .setup = setup,
    .data = data,
    .guide = guide,
    .model = model,
    .posterior = posterior,
};
