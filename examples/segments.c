/* segments.c - a semi-Markov model: a hidden state lasts for some days; what is seen of a day depends on its state.
 *     make examples && build/rws train build/examples/segments.so --method ww --eval-particles 100
 *     state    s s s s | r r | s s s | …         and how long it lasts: hidden
 *     x        . . . .   . .   . . .             a number a day: a series, of 1 to `days` days
 * A day is a step of a loop that carries the day, the state and how long it still lasts. So a program is executed for each of these
 * triples and not for each history: compare `--set form=plain`, where the same step is in a loop of C. */
#include <math.h>
#include <rws.h>
#include <string.h>

enum { STATES = 3, START = STATES };

typedef struct {
    int        days, lasts;
    bool       plain, shared, equal;
    rws_param *next, *last, *mean; /* theta */
    rws_layer *state, *stay;       /* phi */
} net;

static rws_status setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    net *w = ((void)err, (void)random, *state = rws_setup_alloc(s, sizeof *w));
    w->days = rws_setup_int(s, "days");
    w->lasts = rws_setup_int(s, "lasts");
    w->plain = strcmp(rws_setup_text(s, "form"), "plain") == 0;
    w->shared = strcmp(rws_setup_text(s, "form"), "shared") == 0;
    w->equal = rws_setup_int(s, "equal");
    rws_setup_field(s, "days", 1);
    rws_setup_series(s, "x", 1, w->days);
    w->next = rws_setup_param(s, RWS_THETA, "theta.next", STATES + 1, STATES, RWS_ZERO);
    w->last = rws_setup_param(s, RWS_THETA, "theta.last", STATES, w->lasts, RWS_ZERO);
    w->mean = rws_setup_param(s, RWS_THETA, "theta.mean", STATES, 1, RWS_ZERO);
    for (int i = 0; i < STATES; i++) rws_param_values(w->mean)[i] = (float)i - 1;
    w->state = rws_setup_mlp(s, RWS_PHI, "phi.state", RWS_TANH, RWS_UNIFORM, (int[]){5, 16, STATES}, 3);
    w->stay = rws_setup_mlp(s, RWS_PHI, "phi.stay", RWS_TANH, RWS_UNIFORM, (int[]){5, 16, w->lasts}, 3);
    return RWS_OK;
}

static rws_status data(const void *state, rws_split s, uint64_t first, int n, rws_random *g, float *const *to,
                       rws_error *e)
{
    const net *w = ((void)s, (void)first, (void)e, state);
    for (int i = 0; i < n; i++) {
        float *x = to[1] + i * (1 + w->days);
        to[0][i] = (float)(w->equal ? w->days - 1 : (int)rws_random_below(g, (uint32_t)w->days));
        x[0] = 1 + to[0][i];
        for (int t = 0, z = 0, left = 0; t < w->days; t++, left--) {
            if (!left)
                z = (z + 1 + (int)rws_random_below(g, 2)) % STATES,
                left = 1 + (int)rws_random_below(g, (uint32_t)w->lasts);
            x[1 + t] = t < (int)x[0] ? 1.5f * (float)(z - 1) + 0.7f * (float)rws_random_normal(g) : 0;
        }
    }
    return RWS_OK;
}

/* What was computed before the days, and what a day hands to the next. */
typedef struct {
    const net *w;
    rws_var    days, next, last, mean, sd;
} before;

typedef struct {
    int t, state, left;
} day;

static rws_var slice(rws_path *path, rws_var table, int row, int n)
{
    return rws_slice(path, table, row * n, n);
}

static rws_var guess(rws_path *path, const rws_layer *l, const day *c)
{
    return rws_mlp_parts(
        path, l, (rws_var[]){rws_item(path, "x", c->t), rws_onehot(path, rws_constant(path, (float)c->state), 4)}, 2);
}

static bool goes_on(rws_path *path, const before *b, day *c)
{
    if (c->t < b->w->days && rws_branch(path, rws_greater(path, b->days, rws_constant(path, (float)c->t)))) return true;
    *c = (day){0}; /* nothing is left to tell, so all particles are one path behind the loop */
    return false;
}

static bool guide_day(rws_path *path, const void *env, void *carry)
{
    const before *b = env;
    day          *c = carry;
    if (!goes_on(path, b, c)) return false;
    if (c->left == 0) {
        c->state = rws_choose(path, "state", guess(path, b->w->state, c));
        c->left = 1 + rws_choose(path, "lasts", guess(path, b->w->stay, c));
    }
    return c->t++, c->left--, true;
}

static bool model_day(rws_path *path, const void *env, void *carry)
{
    const before *b = env;
    day          *c = carry;
    if (!goes_on(path, b, c)) return false;
    if (c->left == 0) {
        c->state = rws_choose(path, "state", slice(path, b->next, c->state, STATES));
        c->left = 1 + rws_choose(path, "lasts", slice(path, b->last, c->state, b->w->lasts));
    }
    rws_normal(path, "x", slice(path, b->mean, c->state, 1), b->sd); /* observed: item t */
    return c->t++, c->left--, true;
}

static void run(rws_path *path, rws_step *step, const before *b)
{
    day c = {.state = START};
    if (b->w->shared) RWS_SHARED_LOOP(path, "days", step, b, c, t);
    else if (!b->w->plain) RWS_LOOP(path, step, b, c, t);
    else
        while (step(path, b, &c)) continue;
}

static void guide(rws_path *path, const void *state)
{
    const before b = {.w = state, .days = rws_length(path, "x")};
    run(path, guide_day, &b);
}

static void model(rws_path *path, const void *state)
{
    const net *w = state;
    before     b = {.w = w, .next = rws_parameter(path, w->next), .last = rws_parameter(path, w->last)};
    b.mean = rws_parameter(path, w->mean);
    b.sd = rws_constant(path, 0.7f);
    b.days = rws_affine(path, rws_categorical(path, "days", rws_zeros(path, w->days)), 1, 1); /* observed */
    run(path, model_day, &b);
}

const rws_model rws_user_model = {
    .abi = RWS_ABI,
    .name = "segments",
    .help = "states that last for some days",
    .settings =
        (const rws_setting[]){{"form", "loop", 0, 0,
                               "loop (rws_loop), shared (rws_shared_loop, for --resample), plain (a loop of C)", false},
                              {"days", "40", 1, 500, "of the longest series", true},
                              {"lasts", "4", 1, 20, "days of the longest segment; 1: a hidden Markov model", true},
                              {"equal", "0", 0, 1, "whether all series are as long", true},
                              {0}},
    .defaults = {.batch = 20, .particles = 10, .iterations = 1000, .n_test = 100, .lr = "1e-2"},
    .setup = setup,
    .data = data,
    .guide = guide,
    .model = model,
};
