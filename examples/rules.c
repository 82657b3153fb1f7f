/* rules.c - rational rules: which Boolean rule over four features do noisy labels follow?
 *     make examples && build/rws train build/examples/rules.so --method wws
 * A grammar writes a rule, to a depth of 3:     rule -> f0 | f1 | f2 | f3 | not rule | rule and rule | rule or rule
 * The rule labels the 16 objects that four features can make, and some labels are wrong. A concept, the set of objects with
 * label 1, is one of 65,536, as 16 bits. The metric "exact" is log p(x) by the sum over all of them.
 * After N. Goodman et al., A rational analysis of rule-based concept learning (2008). */
#include <math.h>
#include <rws.h>
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
    rws_setup_truth(s, w->ways, RWS_LOGITS, true_ways);
    rws_setup_truth(s, w->right, RWS_LOG_ODDS, &true_right);
    w->memory = rws_setup_gru(s, RWS_PHI, "phi.memory", WAYS + DEPTH + 1, HIDDEN);
    w->way = rws_setup_mlp(s, RWS_PHI, "phi.way", RWS_RELU, RWS_UNIFORM, (int[]){OBJECTS + HIDDEN, 128, WAYS}, 3);
    if ((w->truth = rws_setup_alloc(s, 2 * CONCEPTS * sizeof(double)))) concepts(true_ways, w->truth);
    return RWS_OK;
}

static rws_status data(const void *w, rws_split s, uint64_t first, int n, rws_random *g, float *const *to, rws_error *e)
{
    for (int i = 0; i < n * OBJECTS; i += OBJECTS) {
        const int c = rws_random_choose(g, ((const world *)w)->truth, CONCEPTS);
        for (int o = 0; o < OBJECTS; o++) to[0][i + o] = (c >> o & 1) == (rws_random_uniform(g) < true_right);
    }
    return (void)s, (void)first, (void)e, RWS_OK;
}

/* Writes a rule and returns its concept. The guide looks at the labels, and h remembers what it wrote; the model has NULL. */
static unsigned rule(rws_path *path, const world *w, const rws_var *labels, rws_var *h, int depth)
{
    const rws_var ways =
        labels ? rws_mlp_parts(path, w->way, (rws_var[]){*labels, *h}, 2) : rws_parameter(path, w->ways);
    const int     way = rws_choose(path, "way", rws_slice(path, ways, 0, depth ? WAYS : FEATURES));
    const rws_var written[] = {rws_onehot_at(path, way, WAYS), rws_onehot_at(path, depth, DEPTH + 1)};
    if (labels) *h = rws_gru(path, w->memory, written, 2, *h);
    const unsigned a = way < NOT ? feature[way] : rule(path, w, labels, h, depth - 1);
    const unsigned b = way < AND ? a : rule(path, w, labels, h, depth - 1);
    return way == NOT ? ~a : way == AND ? a & b : a | b;
}

static void model(rws_path *path, const void *state)
{
    const rws_var  right = rws_parameter(path, ((const world *)state)->right);
    const unsigned members = rule(path, state, NULL, NULL, DEPTH);
    float          signs[OBJECTS];
    for (int o = 0; o < OBJECTS; o++) signs[o] = members >> o & 1 ? 1 : -1;
    rws_bernoulli(path, "labels", rws_mul(path, rws_constants(path, signs, OBJECTS), right)); /* observed */
}

static void guide(rws_path *path, const void *state)
{
    rws_var labels = rws_observed(path, "labels"), h = rws_zeros(path, HIDDEN);
    rule(path, state, &labels, &h, DEPTH);
}

static double log_p(const float *const *fields, const void *p)
{
    unsigned x = 0;
    for (int o = 0; o < OBJECTS; o++) x |= (unsigned)fields[0][o] << o;
    return log(((const double *)p)[x]);
}

/* From the probabilities of concepts to those of labels: the label of one object after the other may be wrong. */
static rws_status exact(rws_eval *e, const void *state, double *value, rws_error *err)
{
    double ways[WAYS], right, p[2 * CONCEPTS] = {0};
    rws_param_read(((const world *)state)->ways, RWS_LOGITS, ways);
    rws_param_read(((const world *)state)->right, RWS_LOG_ODDS, &right);
    concepts(ways, p);
    for (int o = 0; o < OBJECTS; o++, memcpy(p, p + CONCEPTS, CONCEPTS * sizeof *p))
        for (int c = 0; c < CONCEPTS; c++) p[CONCEPTS + c] = right * p[c] + (1 - right) * p[c ^ 1 << o];
    return rws_eval_mean(e, log_p, p, value, err);
}

const rws_model rws_user_model = {
    .abi = RWS_ABI,
    .name = "rules",
    .help = "Boolean rules behind noisy labels",
    .metrics = (const rws_metric[]){{"exact", "log p(x) at theta", exact}, {0}},
    .defaults = {.batch = 50, .particles = 10, .iterations = 1000, .n_test = 200, .lr = "5e-3,800:1e-3"},
    .setup = setup,
    .data = data,
    .guide = guide,
    .model = model,
};
