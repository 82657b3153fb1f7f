/* rules.c - rational rules: which Boolean rule over four features do noisy labels follow?
 *     make examples && build/rws train build/examples/rules.so --method wws
 * A grammar writes a rule, to a depth of 3:     rule -> f0 | f1 | f2 | f3 | not rule | rule and rule | rule or rule
 * The rule labels the 16 objects that four features can make, and some labels are wrong. A concept is the set of objects
 * with label 1: one of 65,536, in 16 bits. The metric "exact" is log p(x) by the sum over all concepts, and "truth" the same
 * at the numbers behind the data. After N. Goodman et al., A rational analysis of rule-based concept learning (2008). */
#include <math.h>
#include <rws.h>
#include <stdlib.h>
#include <string.h>

enum { FEATURES = 4, NOT = FEATURES, AND, OR, WAYS, OBJECTS = 16, CONCEPTS = 1 << OBJECTS, DEPTH = 3, HIDDEN = 64 };

static const unsigned feature[FEATURES] = {0xaaaa, 0xcccc, 0xf0f0, 0xff00}; /* bit o is the feature of object o */
static const double   true_ways[WAYS] = {0.2, 0.15, 0.1, 0.1, 0.15, 0.15, 0.15}, true_right = 0.95;

typedef struct {
    rws_param *ways, *right; /* theta: logits of the seven ways to write a rule; log-odds that a label is right */
    rws_layer *memory, *way; /* phi: what is written so far; the next way */
    double    *truth;        /* true probabilities of all concepts */
} world;

/* p[c], which is 0 at first, becomes the probability of concept c, from one depth to the next. There is room for two. */
static void concepts(const double *ways, double *p)
{
    for (int depth = 0; depth <= DEPTH; depth++) {
        double *next = memset(p + CONCEPTS, 0, CONCEPTS * sizeof *p), all = 0;
        for (int i = 0; i < (depth ? WAYS : FEATURES); i++) all += ways[i];
        for (int i = 0; i < FEATURES; i++) next[feature[i]] += ways[i] / all;
        for (int a = 0; a < CONCEPTS; a++) {
            next[a ^ 0xffff] += ways[NOT] / all * p[a];
            for (int b = 0; p[a] > 0 && b < CONCEPTS; b++) {
                next[a & b] += ways[AND] / all * p[a] * p[b];
                next[a | b] += ways[OR] / all * p[a] * p[b];
            }
        }
        memcpy(p, next, CONCEPTS * sizeof *p);
    }
}

static rws_status setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    world *w = ((void)random, (void)err, *state = rws_setup_alloc(s, sizeof *w));
    rws_setup_field(s, "labels", OBJECTS);
    w->ways = rws_setup_param(s, RWS_THETA, "theta.ways", 1, WAYS, RWS_ZERO);
    w->right = rws_setup_param(s, RWS_THETA, "theta.right", 1, 1, RWS_ZERO);
    rws_param_values(w->right)[0] = 2;
    w->memory = rws_setup_gru(s, RWS_PHI, "phi.memory", WAYS + DEPTH + 1, HIDDEN);
    w->way = rws_setup_mlp(s, RWS_PHI, "phi.way", RWS_RELU, RWS_UNIFORM, (int[]){OBJECTS + HIDDEN, 128, WAYS}, 3);
    if ((w->truth = rws_setup_alloc(s, 2 * CONCEPTS * sizeof(double)))) concepts(true_ways, w->truth);
    return RWS_OK;
}

static rws_status data(const void *w, rws_split s, uint64_t first, int n, rws_random *g, float *const *to, rws_error *e)
{
    (void)s, (void)first, (void)e;
    for (int i = 0, c = 0; i < n * OBJECTS; i += OBJECTS, c = 0) {
        for (double u = rws_random_uniform(g); c < CONCEPTS - 1 && (u -= ((const world *)w)->truth[c]) > 0;) c++;
        for (int o = 0; o < OBJECTS; o++) to[0][i + o] = (c >> o & 1) == (rws_random_uniform(g) < true_right);
    }
    return RWS_OK;
}

static unsigned rule(rws_path *path, rws_var ways, int depth)
{
    const int      way = rws_choose(path, "way", rws_slice(path, ways, 0, depth ? WAYS : FEATURES));
    const unsigned a = way < NOT ? feature[way] : rule(path, ways, depth - 1);
    const unsigned b = way < AND ? a : rule(path, ways, depth - 1);
    return way == NOT ? ~a : way == AND ? a & b : a | b;
}

static void model(rws_path *path, const void *state)
{
    const world *w = state;
    const unsigned concept = rule(path, rws_parameter(path, w->ways), DEPTH);
    float signs[OBJECTS];
    for (int o = 0; o < OBJECTS; o++) signs[o] = concept >> o & 1 ? 1 : -1;
    rws_bernoulli(path, "labels", rws_mul(path, rws_constants(path, signs, OBJECTS), rws_parameter(path, w->right)));
}

/* Writes a rule in the same order; h remembers what was written. */
static rws_var guess(rws_path *path, const world *w, rws_var labels, rws_var h, int depth)
{
    const rws_var level = rws_onehot(path, rws_constant(path, (float)depth), DEPTH + 1);
    const rws_var logits = rws_mlp_parts(path, w->way, (rws_var[]){labels, h}, 2);
    const int     way = rws_choose(path, "way", rws_slice(path, logits, 0, depth ? WAYS : FEATURES));
    h = rws_gru(path, w->memory, (rws_var[]){rws_onehot(path, rws_constant(path, (float)way), WAYS), level}, 2, h);
    if (way >= NOT) h = guess(path, w, labels, h, depth - 1);
    return way >= AND ? guess(path, w, labels, h, depth - 1) : h;
}

static void guide(rws_path *path, const void *state)
{
    guess(path, state, rws_observed(path, "labels"), rws_constants(path, (float[HIDDEN]){0}, HIDDEN), DEPTH);
}

/* Log p(x) of the test data, where concepts have the probabilities p and a label is right with probability `right`. */
static rws_status total(rws_eval *e, const double *p, double right, double *value)
{
    *value = 0;
    for (int i = 0; i < rws_eval_size(e); i++) {
        double   sum = 0, likelihood[OBJECTS + 1]; /* by the number of labels that are wrong */
        unsigned x = 0;
        for (int o = 0; o < OBJECTS; o++) x |= (unsigned)rws_eval_field(e, "labels")[i * OBJECTS + o] << o;
        for (int n = 0; n <= OBJECTS; n++) likelihood[n] = pow(right, OBJECTS - n) * pow(1 - right, n);
        for (unsigned c = 0; c < CONCEPTS; c++) sum += p[c] * likelihood[__builtin_popcount(c ^ x)];
        *value += log(sum) / rws_eval_size(e);
    }
    return RWS_OK;
}

static rws_status exact(rws_eval *e, const void *state, double *value, rws_error *err)
{
    const world *w = state;
    double       ways[WAYS], *p = calloc(2 * CONCEPTS, sizeof *p);
    if (!p) return rws_fail(err, RWS_NO_MEMORY, "There is no memory for all concepts.");
    for (int i = 0; i < WAYS; i++) ways[i] = exp((double)rws_param_values(w->ways)[i]);
    concepts(ways, p);
    total(e, p, 1 / (1 + exp(-(double)rws_param_values(w->right)[0])), value);
    return free(p), RWS_OK;
}

static rws_status truth(rws_eval *e, const void *state, double *value, rws_error *err)
{
    return (void)err, total(e, ((const world *)state)->truth, true_right, value);
}

const rws_model rws_user_model = {
    .abi = RWS_ABI,
    .name = "rules",
    .help = "Boolean rules behind noisy labels",
    .metrics = (const rws_metric[]){{"exact", "log p(x) at theta", exact}, {"truth", "at the truth", truth}, {0}},
    .defaults = {.batch = 50, .particles = 10, .iterations = 1000, .n_test = 200, .lr = "5e-3,800:1e-3"},
    .setup = setup,
    .data = data,
    .guide = guide,
    .model = model,
};
