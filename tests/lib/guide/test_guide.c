/* test_guide.c - automatic guides: they start at the prior, their gradients are right for every family, scalar mode agrees with
 * batched mode, small models reach their exact evidence, and runs go on where they were. */
#include "files.h"
#include "trained.h"

#include "train/trainer.h"

#include <stdio.h>
#include <string.h>

static void must_be(rws_status status, const rws_error *err)
{
    if (status != RWS_OK) fail_msg("%s", err->text);
}

static rws_var number(rws_path *path, double x)
{
    return rws_constant(path, (float)x);
}

/* ---- a site of every family; x depends on some of them */

static const rws_param *level; /* of the last set-up: each test has one program at a time */

static rws_status zoo_setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    (void)random, (void)state, (void)err;
    rws_setup_field(s, "x", 2);
    rws_setup_series(s, "y", 1, 3);
    level = rws_setup_param(s, RWS_THETA, "level", 1, 1, RWS_ZERO);
    return RWS_OK;
}

static rws_status zoo_data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                           float *const *fields, rws_error *err)
{
    (void)state, (void)split, (void)first, (void)err;
    for (int i = 0; i < n; i++) {
        rws_random_normals(random, 2, fields[0] + 2 * i);
        fields[1][4 * i] = (float)(i % 4);
        rws_random_normals(random, 3, fields[1] + 4 * i + 1);
    }
    return RWS_OK;
}

static void zoo_choices(rws_path *path)
{
    const rws_var c = rws_categorical(path, "categorical", rws_constants(path, (float[]){0, 1, -1, .5f}, 4));
    if (rws_flip(path, "bernoulli", rws_affine(path, c, .5f, -.5f)))
        rws_bernoulli(path, "bits", rws_constants(path, (float[]){0, 1, -1}, 3));
    rws_categoricals(path, "categoricals", rws_constants(path, (float[]){0, 1, 0, 0, 0, 1}, 6), 2);
    rws_multinomial(path, "multinomial", number(path, 4), rws_constants(path, (float[]){0, 1, 0}, 3));
    rws_poisson(path, "poisson", number(path, 3));
    rws_geometric(path, "geometric", number(path, .2));
    rws_binomial(path, "binomial", number(path, 5), number(path, .3));
    rws_negative_binomial(path, "negative binomial", number(path, 2), number(path, .3));
    for (int n = 1; n <= 4; n++) rws_categorical(path, "growing", rws_zeros(path, n));
}

static rws_var zoo_numbers(rws_path *path)
{
    const rws_var one = number(path, 1), two = number(path, 2), half = number(path, .5);
    const rws_var a = rws_normal(path, "normal", rws_constants(path, (float[]){.5f, -1}, 2), two);
    const rws_var b = rws_gamma(path, "gamma", two, number(path, 1.5));
    const rws_var c = rws_log_normal(path, "log-normal", rws_affine(path, b, .2f, 0), half);
    rws_inverse_gamma(path, "inverse gamma", number(path, 3), two);
    rws_exponential(path, "exponential", c);
    rws_half_normal(path, "half-normal", two);
    rws_truncated_normal(path, "truncated normal", half, one, number(path, -1), two);
    rws_uniform(path, "uniform", number(path, -1), two);
    rws_beta(path, "beta", two, number(path, 3));
    rws_laplace(path, "laplace", half, two);
    rws_gumbel(path, "gumbel", half);
    rws_gumbel_scale(path, "gumbel with a scale", half, two);
    rws_student_t(path, "student t", number(path, 5), half, two);
    rws_von_mises(path, "von mises", half, two);
    rws_dirichlet(path, "dirichlet", rws_constants(path, (float[]){1, 2, 3}, 3));
    rws_multivariate_normal(path, "multivariate normal", rws_zeros(path, 2),
                            rws_constants(path, (float[]){1, 0, .5f, 1}, 4));
    const rws_var mean[] = {number(path, -1), one}, sd = half;
    rws_mixture(path, "mixture", rws_zeros(path, 2),
                (rws_component[]){{rws_family_find("normal"), (rws_var[]){mean[0], sd}},
                                  {rws_family_find("normal"), (rws_var[]){mean[1], sd}}},
                2);
    return rws_add(path, a, rws_add(path, b, rws_parameter(path, level)));
}

/* In a dream, y has three items; else as many as the datum, by a pass of its own: y does not depend on choices. */
static void zoo_model(rws_path *path, const void *state)
{
    (void)state;
    zoo_choices(path);
    rws_normal(path, "x", zoo_numbers(path), number(path, 1));
    for (int t = 0; t < 3; t++) rws_normal(path, "y", number(path, 0), number(path, 1));
}

static const rws_model zoo = {.abi = RWS_ABI,
                              .name = "zoo",
                              .help = "every family",
                              .defaults = {.batch = 4, .particles = 3, .n_test = 4, .shards = 1},
                              .setup = zoo_setup,
                              .data = zoo_data,
                              .model = zoo_model};

static void disturb(rws_trainer *t, double by)
{
    rws_params *p = rws__trainer_state_of(t).params;
    die         d = {7};
    for (size_t i = p->first[RWS_PHI]; i < p->first[RWS_PHI + 1]; i++) p->value[i] += (float)die_between(&d, -by, by);
    rws_trainer_changed(t);
}

/* The mean of log q over dreams, whose draws do not depend on phi; and its gradient, unless that is NULL. */
static double log_q(rws_trainer *t, rws_engine *e, float *gradient)
{
    rws_error err = {""};
    rws_pass  pass = rws__program_pass(&t->program, RWS_SLEEP, 1, 40, NULL, rws__key_for(3, 0, RWS_KEY_INIT, 9));
    double    sum = 0;
    pass.groups = 1u << RWS_PHI | 1u << RWS_THETA;
    must_be(rws__engine_forward(e, &pass, &err), &err);
    rws_scores *s = rws__engine_scores(e);
    for (int i = 0; i < s->n; i++) {
        sum += s->count[i] * s->log_q[i] / 40;
        s->coef_q[i] = s->count[i] / 40.0;
    }
    if (gradient) must_be(rws__engine_backward(e, pass.groups, gradient, &err), &err);
    return sum;
}

/* Along a random direction of each parameter. Single precision leaves about 1e-5 of the sum of log-densities, and with them
 * the tolerance, over steps of 4e-3. */
static void gradients_are_right_for_every_family(void **state)
{
    (void)state;
    rws_trainer *t = trainer_for(&(rws_config){.method = "ws", .seed = 2}, &zoo);
    rws_params  *p = rws__trainer_state_of(t).params;
    rws_engine  *e = rws__program_engine_new(&t->program);
    float       *gradient = calloc(p->size, sizeof *gradient), *at = calloc(p->size, sizeof *at);
    die          d = {11};
    disturb(t, .1);
    log_q(t, e, gradient);
    for (size_t i = p->first[RWS_THETA]; i < p->first[RWS_THETA + 1]; i++) assert_true(gradient[i] == 0);
    memcpy(at, p->value, p->size * sizeof *at);
    int n_moving = 0;
    for (int i = 0; i < p->n; i++) {
        const rws_param *w = p->list[i];
        const size_t     size = rws__param_size(w);
        double           slope = 0, value[2];
        if (w->group != RWS_PHI) continue;
        for (int sign = 0; sign < 2; sign++) {
            die same = d;
            slope = 0;
            for (size_t k = 0; k < size; k++) {
                const double v = die_between(&same, -1, 1);
                slope += v * (double)gradient[w->offset + k];
                p->value[w->offset + k] = at[w->offset + k] + (float)(sign ? 4e-3 * v : -4e-3 * v);
            }
            rws_trainer_changed(t);
            value[sign] = log_q(t, e, NULL);
        }
        die_next(&d);
        memcpy(p->value, at, p->size * sizeof *at);
        const double by_difference = (value[1] - value[0]) / 8e-3;
        n_moving += slope != 0;
        if (fabs(by_difference - slope) > .03 * fabs(slope) + .02)
            fail_msg("%s: %g by differences, %g by the gradient", w->name, by_difference, slope);
    }
    assert_true(n_moving > 60);
    free(gradient);
    free(at);
    rws__engine_free(e);
    rws_trainer_free(t);
}

/* ---- latent numbers only: gradients pass through the values */

static const rws_param *drift;

static rws_status chain_setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    (void)random, (void)state, (void)err;
    rws_setup_field(s, "x", 1);
    drift = rws_setup_param(s, RWS_THETA, "drift", 1, 1, RWS_ZERO);
    return RWS_OK;
}

static rws_status chain_data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                             float *const *fields, rws_error *err)
{
    (void)state, (void)split, (void)first, (void)err;
    rws_random_normals(random, (size_t)n, fields[0]);
    return RWS_OK;
}

static void chain_model(rws_path *path, const void *state)
{
    (void)state;
    const rws_var a = rws_normal(path, "a", rws_parameter(path, drift), number(path, 1));
    const rws_var b = rws_gamma(path, "b", number(path, 2), rws_apply(path, RWS_EXP, rws_affine(path, a, .5f, 0)));
    const rws_var c = rws_normal(path, "c", rws_mul(path, a, b), number(path, .5));
    rws_normal(path, "x", rws_add(path, b, c), number(path, .5));
}

static const rws_model chain = {.abi = RWS_ABI,
                                .name = "chain",
                                .help = "three numbers",
                                .defaults = {.batch = 10, .particles = 4, .n_test = 10, .shards = 1},
                                .setup = chain_setup,
                                .data = chain_data,
                                .model = chain_model};

static double log_weight(rws_trainer *t, rws_engine *e, float *gradient)
{
    rws_error   err = {""};
    const float x[] = {.3f, -1, 2};
    rws_pass    pass =
        rws__program_pass(&t->program, RWS_WAKE, 3, 5, (const float *const[]){x}, rws__key_for(3, 0, RWS_KEY_INIT, 9));
    double sum = 0;
    pass.groups = 1u << RWS_PHI | 1u << RWS_THETA;
    pass.pathwise = true;
    must_be(rws__engine_forward(e, &pass, &err), &err);
    rws_scores *s = rws__engine_scores(e);
    for (int i = 0; i < s->n; i++) {
        sum += s->count[i] * (s->log_p[i] - s->log_q[i]);
        s->coef_p[i] = s->count[i];
        s->coef_r[i] = -(double)s->count[i];
    }
    if (gradient) must_be(rws__engine_backward(e, 1u << RWS_PHI, gradient, &err), &err);
    return sum;
}

static void gradients_pass_through_values(void **state)
{
    (void)state;
    rws_trainer *t = trainer_for(&(rws_config){.method = "vimco", .seed = 2}, &chain);
    rws_params  *p = rws__trainer_state_of(t).params;
    rws_engine  *e = rws__program_engine_new(&t->program);
    float       *gradient = calloc(p->size, sizeof *gradient), *at = calloc(p->size, sizeof *at);
    die          d = {5};
    disturb(t, .1);
    log_weight(t, e, gradient);
    memcpy(at, p->value, p->size * sizeof *at);
    for (int round = 0; round < 12; round++) {
        double slope = 0, value[2];
        for (int sign = 0; sign < 2; sign++) {
            die same = d;
            slope = 0;
            for (size_t k = p->first[RWS_PHI]; k < p->first[RWS_PHI + 1]; k++) {
                const double v = die_between(&same, -1, 1);
                slope += v * (double)gradient[k];
                p->value[k] = at[k] + (float)(sign ? 3e-4 * v : -3e-4 * v);
            }
            rws_trainer_changed(t);
            value[sign] = log_weight(t, e, NULL);
        }
        for (int k = 0; k < 1000; k++) die_next(&d);
        if (fabs((value[1] - value[0]) / 6e-4 - slope) > .02 * fabs(slope) + .3)
            fail_msg("%g by differences, %g by the gradient", (value[1] - value[0]) / 6e-4, slope);
    }
    free(gradient);
    free(at);
    rws__engine_free(e);
    rws_trainer_free(t);
}

/* ---- untrained */

static void loose_model(rws_path *path, const void *state)
{
    (void)state;
    const rws_var a = rws_normal(path, "a", rws_parameter(path, drift), number(path, 1));
    rws_gamma(path, "b", number(path, 2), rws_apply(path, RWS_EXP, a));
    rws_flip(path, "c", a);
    rws_exponential(path, "d", number(path, 3));
    rws_normal(path, "x", number(path, 0), number(path, 1));
}

/* Where the data do not depend on the choices, all particles have one weight, log p(x), before anything is learned. */
static void the_guide_starts_at_the_prior(void **state)
{
    (void)state;
    rws_model loose = chain;
    loose.model = loose_model;
    rws_trainer *t = trainer_for(&(rws_config){.method = "ww", .set = {"guide.components=1"}, .n_set = 1}, &loose);
    rws_engine  *e = rws__program_engine_new(&t->program);
    rws_error    err = {""};
    const float  x[] = {.3f, -1, 2};
    rws_pass     pass =
        rws__program_pass(&t->program, RWS_WAKE, 3, 20, (const float *const[]){x}, rws__key_for(3, 0, RWS_KEY_INIT, 9));
    must_be(rws__engine_forward(e, &pass, &err), &err);
    const rws_scores *s = rws__engine_scores(e);
    assert_true(s->n > 30);
    for (int i = 0; i < s->n; i++) {
        const double right = -.5 * log(2 * acos(-1)) - .5 * pow((double)x[s->datum[i]], 2);
        assert_true(fabs(s->log_p[i] - s->log_q[i] - right) < 1e-4);
    }
    rws__engine_free(e);
    rws_trainer_free(t);
}

/* ---- models whose evidence is known by a sum over all choices */

enum { MIXED, BURGLARY, HIDDEN, TREE, CLUSTERS, RARE, LOOPED };

static int              which;
static const rws_param *logits;

static rws_status small_setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    (void)random, (void)state, (void)err;
    if (which == HIDDEN || which == LOOPED || which == CLUSTERS) rws_setup_series(s, "x", 1, 5);
    else rws_setup_field(s, "x", which == BURGLARY ? 2 : 1);
    if (which == HIDDEN || which == LOOPED) rws_setup_field(s, "n", 1);
    logits = rws_setup_param(s, RWS_THETA, "logits", 1, 3, RWS_ZERO);
    rws_param_values(logits)[1] = .5f;
    rws_param_values(logits)[2] = which == RARE ? -40 : 0;
    return RWS_OK;
}

static rws_status small_data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                             float *const *fields, rws_error *err)
{
    (void)state, (void)split, (void)first, (void)err;
    for (int i = 0; i < n; i++)
        if (which == BURGLARY)
            for (int k = 0; k < 2; k++) fields[0][2 * i + k] = (float)rws_random_below(random, 2);
        else if (which == MIXED || which == TREE || which == RARE)
            fields[0][i] = (float)(2 * rws_random_normal(random) + 1);
        else {
            const bool chain_of_states = which == HIDDEN || which == LOOPED;
            const int  length = chain_of_states ? 1 + (int)rws_random_below(random, 4) : 4;
            fields[0][6 * i] = (float)length;
            for (int k = 0; k < 5; k++) fields[0][6 * i + 1 + k] = (float)(2 * rws_random_normal(random));
            if (chain_of_states) fields[1][i] = (float)(length - 1);
        }
    return RWS_OK;
}

static rws_var picked(rws_path *path, const float *of, rws_var z)
{
    return rws_pick(path, rws_constants(path, of, 3), z);
}

static void mixed(rws_path *path)
{
    const rws_var z = rws_categorical(path, "z", rws_parameter(path, logits));
    rws_normal(path, "x", picked(path, (float[]){-2, 0, 3}, z), number(path, 1));
}

static void burglary(rws_path *path)
{
    const rws_var p = rws_parameter(path, logits);
    const int     burglar = rws_flip(path, "burglar", rws_slice(path, p, 0, 1));
    const int     quake = !burglar && rws_flip(path, "quake", rws_slice(path, p, 1, 1));
    const int     alarm = rws_flip(path, "alarm", number(path, burglar ? 3 : quake ? -.5 : -4));
    rws_bernoulli(path, "x", rws_constants(path, (float[]){alarm ? 2 : -3, quake ? 1.5f : -4}, 2));
}

static void hidden(rws_path *path)
{
    static const float next[9] = {1, -1, -2, 0, 1, 0, -2, 0, 1};
    rws_var            z = rws_argmax(path, rws_zeros(path, 3));
    const int          n = rws_choose(path, "n", rws_zeros(path, 4)) + 1;
    for (int t = 0; t < n; t++) {
        z = rws_categorical(path, "z", rws_row(path, rws_constants(path, next, 9), 3, z));
        rws_normal(path, "x", picked(path, (float[]){-2, 0, 2}, z), number(path, .7));
    }
}

/* The same chain as a loop that hands on its state. */
typedef struct {
    rws_var z;
    int     t, n;
} link;

static bool step(rws_path *path, const void *env, void *carry)
{
    static const float next[9] = {1, -1, -2, 0, 1, 0, -2, 0, 1};
    link              *c = carry;
    (void)env;
    c->z = rws_categorical(path, "z", rws_row(path, rws_constants(path, next, 9), 3, c->z));
    rws_normal(path, "x", picked(path, (float[]){-2, 0, 2}, c->z), number(path, .7));
    return ++c->t < c->n;
}

static void looped(rws_path *path)
{
    link c = {.z = rws_argmax(path, rws_zeros(path, 3))};
    c.n = rws_choose(path, "n", rws_zeros(path, 4)) + 1;
    RWS_LOOP(path, step, NULL, c, t);
}

/* A tree of sums: a leaf is 1, a node adds up two trees. */
static rws_var tree(rws_path *path, int depth)
{
    if (!depth || !rws_flip(path, "grows", rws_slice(path, rws_parameter(path, logits), depth % 2, 1)))
        return rws_pick(path, rws_constants(path, (float[]){1, -1}, 2),
                        rws_categorical(path, "leaf", rws_zeros(path, 2)));
    const rws_var left = tree(path, depth - 1);
    return rws_add(path, left, tree(path, depth - 1));
}

/* Clusters of points around 0, that a point joins by their sizes; each cluster's points are near its first one. */
static void clusters(rws_path *path)
{
    rws_var first[5] = {{0}};
    int     size[5] = {0}, n = 0;
    for (int t = 0; t < 4; t++) {
        float weights[5];
        for (int k = 0; k < n; k++) weights[k] = logf((float)size[k]);
        weights[n] = 0;
        const int     z = rws_choose(path, "z", rws_constants(path, weights, n + 1));
        const rws_var x = rws_normal(path, "x", z == n ? number(path, 0) : first[z], number(path, z == n ? 2 : .5));
        if (z == n) first[n++] = x;
        size[z]++;
    }
}

static void small_model(rws_path *path, const void *state)
{
    (void)state;
    if (which == MIXED) mixed(path);
    else if (which == BURGLARY) burglary(path);
    else if (which == HIDDEN) hidden(path);
    else if (which == LOOPED) looped(path);
    else if (which == CLUSTERS) clusters(path);
    else rws_normal(path, "x", tree(path, 2), number(path, .7));
}

static rws_status exact(rws_eval *e, const void *state, double *value, rws_error *err)
{
    (void)state;
    return rws_eval_enumerate(e, value, err);
}

static const rws_model small = {
    .abi = RWS_ABI,
    .name = "small",
    .help = "a model with known evidence",
    .metrics = (const rws_metric[]){{"exact", "log p(x)", exact}, {0}},
    .defaults = {.batch = 40, .particles = 10, .iterations = 400, .n_test = 60, .lr = "1e-2"},
    .setup = small_setup,
    .data = small_data,
    .model = small_model};

/* The guide itself is near the posterior: the bound with 10 particles, and the effective part of them. theta learns, too. */
static void learns(int model, const char *method, int n, double gap, double least_ess)
{
    which = model;
    rws_trainer *t =
        trainer_for(&(rws_config){.method = method, .seed = 4, .eval_particles = 20, .particles = 10}, &small);
    rws_measures m;
    steps(t, n);
    evaluate(t, &m);
    const double lost = metric_of(t, &m, "exact") - metric_of(t, &m, "log_evidence"), ess = metric_of(t, &m, "ess");
    if (!(fabs(lost) < gap && ess > least_ess))
        fail_msg("model %d by %s: %g nats lost, ess %g, kl %g", model, method, lost, ess, metric_of(t, &m, "kl"));
    rws_trainer_free(t);
}

static void small_models_reach_their_evidence(void **state)
{
    (void)state;
    learns(MIXED, "ww", 400, .01, .97);
    learns(MIXED, "ws", 400, .02, .9);
    learns(BURGLARY, "ww", 400, .01, .95);
    learns(BURGLARY, "ws", 400, .02, .95);
    learns(HIDDEN, "ww", 400, .03, .9);
    learns(HIDDEN, "ws", 400, .05, .8);
    learns(TREE, "ww", 400, .03, .85);
    learns(TREE, "ws", 400, .05, .7);
    learns(CLUSTERS, "ww", 400, .05, .8);
    learns(MIXED, "vimco", 400, .02, .9);
    learns(BURGLARY, "dww", 400, .02, .9);
}

/* ---- inputs: each datum says how many flips there are, and nobody observes that */

static const rws_param *odds;

static rws_status counted_setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    (void)random, (void)state, (void)err;
    rws_setup_field(s, "x", 1);
    rws_setup_input(s, "n", 1);
    odds = rws_setup_param(s, RWS_THETA, "odds", 1, 1, RWS_ZERO);
    return RWS_OK;
}

static rws_status counted_data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                               float *const *fields, rws_error *err)
{
    (void)state, (void)split, (void)first, (void)err;
    for (int i = 0; i < n; i++) {
        fields[1][i] = 1 + (float)rws_random_below(random, 4);
        fields[0][i] = (float)((double)fields[1][i] / 2 + rws_random_normal(random));
    }
    return RWS_OK;
}

static void counted_model(rws_path *path, const void *state)
{
    (void)state;
    rws_var   sum = number(path, 0);
    const int n = rws_branch(path, rws_observed(path, "n"));
    for (int i = 0; i < n; i++) sum = rws_add(path, sum, rws_bernoulli(path, "yes", rws_parameter(path, odds)));
    rws_normal(path, "x", sum, number(path, .6));
}

static void inputs_are_seen_by_both(void **state)
{
    (void)state;
    rws_model counted = small;
    counted.name = "counted";
    counted.setup = counted_setup;
    counted.data = counted_data;
    counted.model = counted_model;
    for (int method = 0; method < 2; method++) {
        rws_trainer *t =
            trainer_for(&(rws_config){.method = method ? "ws" : "ww", .seed = 4, .eval_particles = 20}, &counted);
        rws_measures m;
        steps(t, 300);
        evaluate(t, &m);
        assert_true(fabs(metric_of(t, &m, "exact") - metric_of(t, &m, "log_evidence")) < .03);
        assert_true(metric_of(t, &m, "ess") > .85);
        assert_null(rws_trainer_unguided(t));
        rws_trainer_free(t);
    }
}

/* ---- modes */

/* The same numbers, particle by particle. */
static void scalar_mode_agrees(void **state)
{
    (void)state;
    for (which = MIXED; which <= CLUSTERS; which++) {
        const rws_config c = {.method = "ww", .seed = 5, .batch = 6, .particles = 4};
        rws_config       alone = c;
        alone.scalar = true;
        rws_trainer *a = trainer_for(&c, &small), *b = trainer_for(&alone, &small);
        disturb(a, .1);
        disturb(b, .1);
        const size_t n = rws_trainer_size(a);
        float       *x = calloc(n, sizeof *x), *y = calloc(n, sizeof *y);
        gradient_of(a, 3, x);
        gradient_of(b, 3, y);
        assert_close(x, y, n, 1e-4, "scalar mode");
        free(x);
        free(y);
        rws_trainer_free(a);
        rws_trainer_free(b);
    }
}

static void a_loop_has_the_numbers_of_its_plain_twin(void **state)
{
    (void)state;
    float *gradient[2];
    size_t n = 0;
    for (int i = 0; i < 2; i++) {
        which = i ? LOOPED : HIDDEN;
        rws_trainer *t = trainer_for(&(rws_config){.method = "ww", .seed = 5, .batch = 20}, &small);
        disturb(t, .1);
        n = rws_trainer_size(t);
        gradient[i] = calloc(n, sizeof(float));
        gradient_of(t, 3, gradient[i]);
        rws_trainer_free(t);
    }
    assert_close(gradient[0], gradient[1], n, 1e-5, "a loop");
    free(gradient[0]);
    free(gradient[1]);
}

static void a_run_goes_on_where_it_was(void **state)
{
    (void)state;
    which = HIDDEN;
    rws_error    err = {""};
    rws_trainer *whole = trainer_for(&(rws_config){.method = "ww", .iterations = 8}, &small),
                *t = trainer_for(&(rws_config){.method = "ww", .iterations = 4}, &small);
    must(rws_trainer_keep(t, in_folder("run"), &err), &err);
    must(rws_trainer_train(t, NULL, &err), &err);
    rws_trainer_free(t);
    must(rws_trainer_resume(in_folder("run"), &(rws_config){.iterations = 8, .threads = 2}, &small, &t, &err), &err);
    must(rws_trainer_train(t, NULL, &err), &err);
    steps(whole, 8);
    const rws_params *a = rws__trainer_state_of(t).params, *b = rws__trainer_state_of(whole).params;
    assert_int_equal(a->size, b->size);
    assert_memory_equal(a->value, b->value, a->size * sizeof(float));
    rws_posterior *p;
    rws_answers   *answers;
    must(rws_posterior_open(in_folder("run"), NULL, &small, &p, &err), &err);
    must(rws_posterior_ask(p, &(rws_question){.test = 1, .n_particles = 40}, &answers, &err), &err);
    assert_true(isfinite(answers->log_evidence));
    rws_answers_free(answers);
    rws_posterior_free(p);
    rws_trainer_free(whole);
    rws_trainer_free(t);
}

/* ---- by hand and automatic */

static void burglar_by_hand(rws_path *path, const void *state)
{
    (void)state;
    rws_flip(path, "burglar", rws_sum(path, rws_affine(path, rws_observed(path, "x"), .5f, -.5f)));
}

static void a_guide_may_leave_sites_out(void **state)
{
    (void)state;
    which = BURGLARY;
    rws_model partial = small;
    rws_error err = {""};
    partial.guide = burglar_by_hand;
    rws_trainer *t = trainer_for(&(rws_config){.method = "ww"}, &partial);
    assert_refused(rws_trainer_step(t, &err), RWS_BAD_INPUT, &err, "The model visits site", "the guide does not");
    rws_trainer_free(t);
    for (int method = 0; method < 2; method++) {
        const rws_config c = {.method = method ? "ws" : "ww", .set = {"guide=rest"}, .n_set = 1, .eval_particles = 200};
        t = trainer_for(&c, &partial);
        steps(t, 300);
        rws_measures m;
        evaluate(t, &m);
        assert_true(fabs(metric_of(t, &m, "exact") - metric_of(t, &m, "log_evidence")) < .05);
        rws_trainer_free(t);
    }
}

static void refused(const rws_model *model, const char *method, const char *set, const char *words)
{
    rws_trainer     *t;
    rws_error        err = {""};
    const rws_config c = {.method = method, .set = {set}, .n_set = set ? 1 : 0};
    assert_refused(rws_trainer_new(&c, model, &t, &err), RWS_BAD_INPUT, &err, words, "");
}

static void mistakes_are_named(void **state)
{
    (void)state;
    which = MIXED;
    refused(&small, "ww", "guide=hand", "has no guide of its own");
    refused(&small, "ww", "guide=rest", "has no guide of its own");
    refused(&small, "ww", "guide=other", "hand, automatic or rest");
    refused(&small, "ww", "guide.width=0", "guide.width");
    rws_model relaxed = small;
    relaxed.relaxed = NULL;
    refused(&relaxed, "relax", NULL, "a guide that is written by hand");
}

/* ---- a site that prior draws do not find */

static void rare_model(rws_path *path, const void *state)
{
    (void)state;
    const int     there = rws_flip(path, "there", rws_slice(path, rws_parameter(path, logits), 2, 1));
    const rws_var at = there ? rws_normal(path, "rare", number(path, 0), number(path, 1)) : number(path, 0);
    rws_normal(path, "x", at, number(path, 1));
}

/* The path of a site is closed when sites are looked for, and opened afterwards. */
static void a_site_that_is_met_later_is_named(void **state)
{
    (void)state;
    which = RARE;
    rws_model      rare = small;
    rws_param_view view;
    rws_measures   m;
    rare.model = rare_model;
    rare.metrics = NULL;
    rws_trainer *t = trainer_for(&(rws_config){.method = "ww"}, &rare);
    steps(t, 1);
    assert_null(rws_trainer_unguided(t));
    assert_true(rws_trainer_find(t, "logits", &view));
    view.values[2] = 0;
    rws_trainer_changed(t);
    steps(t, 200);
    evaluate(t, &m);
    assert_true(isfinite(metric_of(t, &m, "log_evidence")));
    assert_string_equal(rws_trainer_unguided(t), "rare");
    assert_null(rws_trainer_unlearned(t));
    rws_trainer_free(t);
}

/* ---- a head that never stops */

static void walk_model(rws_path *path, const void *state)
{
    (void)state;
    int n = 0;
    while (rws_flip(path, "more", number(path, -1))) n++;
    rws_normal(path, "x", number(path, n), number(path, 1));
}

static void a_guide_that_goes_on_for_ever_ends_as_the_prior_does(void **state)
{
    (void)state;
    which = RARE;
    rws_model      walk = small;
    rws_param_view view;
    rws_error      err = {""};
    walk.model = walk_model;
    walk.metrics = NULL;
    rws_trainer *t = trainer_for(&(rws_config){.method = "ww", .batch = 4}, &walk);
    assert_true(rws_trainer_find(t, "phi.auto.out.more.bias", &view));
    view.values[0] = 1000;
    rws_trainer_changed(t);
    assert_int_equal(rws_trainer_step(t, &err), RWS_OK);
    rws_trainer_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_right_for_every_family),
        cmocka_unit_test(gradients_pass_through_values),
        cmocka_unit_test(the_guide_starts_at_the_prior),
        cmocka_unit_test(small_models_reach_their_evidence),
        cmocka_unit_test(inputs_are_seen_by_both),
        cmocka_unit_test(scalar_mode_agrees),
        cmocka_unit_test(a_loop_has_the_numbers_of_its_plain_twin),
        cmocka_unit_test_setup_teardown(a_run_goes_on_where_it_was, folder_make, folder_remove),
        cmocka_unit_test(a_guide_may_leave_sites_out),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(a_site_that_is_met_later_is_named),
        cmocka_unit_test(a_guide_that_goes_on_for_ever_ends_as_the_prior_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
