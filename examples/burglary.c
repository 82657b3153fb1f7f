/* burglary.c - a model of your own: a burglary, an earthquake or nothing, when the neighbours call?
 *
 *     make examples && build/rws train build/examples/burglary.so --method ww
 *
 * Burglaries and earthquakes happen at unknown rates, which are to be learned; either may set off the alarm; John and
 * Mary call, more likely if it rings; the radio reports earthquakes. We see who called and what the radio said. */
#include <math.h>
#include <rws.h>

typedef struct {
    rws_param *burglary, *earthquake; /* theta: log-odds of the two rates */
    rws_layer *listen;                /* phi: from the evidence to four log-odds */
} world;

static float log_odds(double p)
{
    return (float)log(p / (1 - p));
}

/* Runs once: what a datum looks like, and what there is to learn. */
static rws_status setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    (void)random, (void)err;
    world *w = rws_setup_alloc(s, sizeof *w);
    rws_setup_field(s, "evidence", 3);
    w->burglary = rws_setup_param(s, RWS_THETA, "theta.burglary", 1, 1, RWS_ZERO);
    w->earthquake = rws_setup_param(s, RWS_THETA, "theta.earthquake", 1, 1, RWS_ZERO);
    w->listen = rws_setup_mlp(s, RWS_PHI, "phi.listen", RWS_TANH, RWS_UNIFORM, (int[]){3, 8, 4}, 3);
    *state = w;
    return RWS_OK;
}

/* The generative program, for ONE particle. rws_flip gives an int to branch on; a site may be visited or not. */
static void model(rws_path *path, const void *state)
{
    const world *w = state;
    const int    burglary = rws_flip(path, "burglary", rws_parameter(path, w->burglary));
    const int    quake = !burglary && rws_flip(path, "earthquake", rws_parameter(path, w->earthquake));
    const int    alarm = rws_flip(path, "alarm", rws_constant(path, log_odds(burglary ? 0.95 : quake ? 0.4 : 0.01)));
    const double john = alarm ? 0.9 : 0.05, mary = alarm ? 0.7 : 0.01, radio = quake ? 0.8 : 0.02;
    const float  logits[] = {log_odds(john), log_odds(mary), log_odds(radio)};
    rws_bernoulli(path, "evidence", rws_constants(path, logits, 3)); /* named like a field of the data: observed */
}

/* The inference program: knows the evidence, visits the same sites and takes the same turns. */
static void guide(rws_path *path, const void *state)
{
    const world  *w = state;
    const rws_var heard = rws_mlp(path, w->listen, rws_observed(path, "evidence"));
    const int     burglary = rws_flip(path, "burglary", rws_slice(path, heard, 0, 1));
    if (!burglary) rws_flip(path, "earthquake", rws_slice(path, heard, 1, 1));
    rws_flip(path, "alarm", rws_slice(path, heard, burglary ? 2 : 3, 1));
}

/* Data: here simulated with rates 0.15 and 0.3; yours would read a file in setup and copy from it. */
static rws_status data(const void *w, rws_split split, uint64_t first, int n, rws_random *g, float *const *to,
                       rws_error *e)
{
    (void)w, (void)split, (void)first, (void)e;
    for (int i = 0; i < n; i++) {
        const bool burglary = rws_random_uniform(g) < 0.15, quake = !burglary && rws_random_uniform(g) < 0.3;
        const bool alarm = rws_random_uniform(g) < (burglary ? 0.95 : quake ? 0.4 : 0.01);
        to[0][3 * i] = rws_random_uniform(g) < (alarm ? 0.9 : 0.05);
        to[0][3 * i + 1] = rws_random_uniform(g) < (alarm ? 0.7 : 0.01);
        to[0][3 * i + 2] = rws_random_uniform(g) < (quake ? 0.8 : 0.02);
    }
    return RWS_OK;
}

/* A metric of its own; the library adds log_evidence, kl and ess. */
static rws_status rate(rws_eval *e, const void *state, double *value, rws_error *err)
{
    (void)e, (void)err;
    *value = 1 / (1 + exp(-(double)rws_param_values(((const world *)state)->burglary)[0]));
    return RWS_OK;
}

const rws_model rws_user_model = {
    .abi = RWS_ABI,
    .name = "burglary",
    .help = "a burglary, an earthquake or nothing, when the neighbours call?",
    .metrics = (const rws_metric[]){{"burglary", "learned rate of burglaries", rate}, {0}},
    .defaults = {.particles = 10, .iterations = 20000, .eval_every = 4000, .lr = "1e-3,10000:/10", .shards = 1},
    .setup = setup,
    .data = data,
    .guide = guide,
    .model = model,
};
