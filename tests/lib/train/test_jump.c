/* test_jump.c - programs that jump at a continuous value: expected gradients are compared with integrals, under every method that
 * differentiates through values. Error level: see assert_mean. */
#include "trained.h"

#include "train/trainer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* a ~ normal, and a mean of x that jumps at a = 0. With b: b ~ normal around a mean that jumps at a = 0 in the guide, and the
 * program looks at b only where a is above 0, so that some passes have one site by score and some have two. */
typedef enum { BRANCH, COMPARE, LOOK, INDEX, NESTED, KINDS } kind;

enum { THETA = 2, PHI = 5 };

typedef struct {
    kind       kind;
    rws_param *theta, *phi;
} jumper;

static const float x = 0.7f, start[THETA + PHI] = {0.3f, -0.6f, 0.2f, -0.3f, 0.1f, 0.8f, -0.2f};

static rws_status setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    (void)random;
    static const char *const names[KINDS] = {"branch", "compare", "look", "index", "nested"};
    jumper                  *m = rws_setup_alloc(s, sizeof *m);
    if (!m) return rws_fail(err, RWS_NO_MEMORY, "There is no memory.");
    rws_setup_field(s, "x", 1);
    m->theta = rws_setup_param(s, RWS_THETA, "theta", 1, THETA, RWS_ZERO);
    m->phi = rws_setup_param(s, RWS_PHI, "phi", 1, PHI, RWS_ZERO);
    memcpy(rws_param_values(m->theta), start, sizeof(float[THETA]));
    memcpy(rws_param_values(m->phi), start + THETA, sizeof(float[PHI]));
    while (strcmp(names[m->kind], rws_setup_text(s, "kind")) != 0) m->kind++;
    *state = m;
    return RWS_OK;
}

static rws_status data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                       float *const *fields, rws_error *err)
{
    (void)state, (void)split, (void)first, (void)random, (void)err;
    for (int i = 0; i < n; i++) fields[0][i] = x;
    return RWS_OK;
}

static rws_var at(rws_path *path, const rws_param *p, int i)
{
    return rws_slice(path, rws_parameter(path, p), i, 1);
}

static rws_var above(rws_path *path, rws_var a)
{
    return rws_greater(path, a, rws_constant(path, 0));
}

static void guide(rws_path *path, const void *state)
{
    const jumper *m = state;
    const rws_var a = rws_normal(path, "a", at(path, m->phi, 0), rws_apply(path, RWS_EXP, at(path, m->phi, 1)));
    if (m->kind != NESTED) return;
    const rws_var mean = at(path, m->phi, rws_branch(path, above(path, a)) ? 3 : 2);
    rws_normal(path, "b", rws_add(path, mean, a), rws_apply(path, RWS_EXP, at(path, m->phi, 4)));
}

/* The mean of x, which is theta[1] - a where a is above 0, else a / 2. */
static rws_var mean_of(rws_path *path, const jumper *m, rws_var a)
{
    const rws_var low = rws_affine(path, a, 0.5f, 0), high = rws_sub(path, at(path, m->theta, 1), a);
    if (m->kind == LOOK) return rws_look(path, a)[0] > 0 ? high : low;
    if (m->kind == INDEX) return rws_pick(path, rws_concat(path, (rws_var[]){low, high}, 2), above(path, a));
    if (m->kind == COMPARE) return rws_add(path, low, rws_mul(path, above(path, a), rws_sub(path, high, low)));
    return rws_branch(path, above(path, a)) ? high : low;
}

static void model(rws_path *path, const void *state)
{
    const jumper *m = state;
    const rws_var one = rws_constant(path, 1), a = rws_normal(path, "a", at(path, m->theta, 0), one);
    rws_var       mean = mean_of(path, m, a);
    if (m->kind == NESTED) {
        const rws_var b = rws_normal(path, "b", a, one);
        mean = rws_add(path, mean, rws_apply(path, RWS_TANH, b));
        if (rws_branch(path, above(path, a)) && rws_look(path, b)[0] > 0) mean = rws_affine(path, mean, 1, 1);
    }
    rws_normal(path, "x", mean, one);
}

static const rws_model jumps = {.abi = RWS_ABI,
                                .name = "jumps",
                                .help = "a mean that jumps",
                                .settings = (const rws_setting[]){{"kind", "branch", 0, 0, "how it jumps"}, {0}},
                                .defaults = {.batch = 1, .particles = 2, .n_test = 1, .shards = 1},
                                .setup = setup,
                                .data = data,
                                .guide = guide,
                                .model = model};

static double log_normal(double v, double mean, double sd)
{
    const double d = (v - mean) / sd;
    return -0.5 * d * d - log(sd) - 0.5 * log(2 * M_PI);
}

static double log_q(const double *phi, double a, double b, bool nested)
{
    return log_normal(a, phi[0], exp(phi[1])) + (nested ? log_normal(b, phi[a > 0 ? 3 : 2] + a, exp(phi[4])) : 0);
}

static double log_p(const double *theta, double a, double b, bool nested)
{
    double mean = a > 0 ? theta[1] - a : 0.5 * a;
    if (nested) mean += tanh(b) + (a > 0 && b > 0);
    return log_normal(a, theta[0], 1) + (nested ? log_normal(b, a, 1) : 0) + log_normal((double)x, mean, 1);
}

/* Sums over cells that meet at the jumps, by their middle, which is exact to rounding on each side of a jump for derivatives
 * that are small at both ends but the error at the jump, of the order of h squared. */
#define N 360
#define H (14.0 / N)

static double point(int i)
{
    return -7 + (i + 0.5) * H;
}

/* E log((w_1 + w_2) / 2), without b. */
static double bound_of_two(const double *n)
{
    double l[N], p[N], total = 0;
    for (int i = 0; i < N; i++) {
        const double q = log_q(n + THETA, point(i), 0, false);
        l[i] = log_p(n, point(i), 0, false) - q;
        p[i] = H * exp(q);
    }
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N && p[i] > 1e-14; j++) {
            const double top = fmax(l[i], l[j]);
            total += p[i] * p[j] * (top + log1p(exp(-fabs(l[i] - l[j]))) - log(2));
        }
    return total;
}

/* E log w, with b. */
static double bound_of_one(const double *n)
{
    double total = 0;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            const double a = point(i), b = point(j), q = log_q(n + THETA, a, b, true);
            total += H * H * exp(q) * (log_p(n, a, b, true) - q);
        }
    return total;
}

static void right_gradient(bool nested, double *right)
{
    double       n[THETA + PHI], (*bound)(const double *) = nested ? bound_of_one : bound_of_two;
    const double h = 1e-4;
    for (int i = 0; i < THETA + PHI; i++) n[i] = (double)start[i];
    for (int i = 0; i < THETA + PHI; i++) {
        n[i] = (double)start[i] + h;
        const double up = bound(n);
        n[i] = (double)start[i] - h;
        right[i] = (up - bound(n)) / (2 * h);
        n[i] = (double)start[i];
    }
}

static rws_config config_of(const char *method, const char *setting, int particles)
{
    return (rws_config){
        .model = "jumps", .method = method, .particles = particles, .seed = 3, .set = {setting}, .n_set = 1};
}

static void gradients_are_those_of_the_bound(void **state)
{
    (void)state;
    static const char *const kinds[] = {"kind=branch", "kind=compare", "kind=look", "kind=index"};
    static const char *const methods[] = {"reinforce", "rloo", "vimco", "nvil"};
    double                   right[THETA + PHI], of_nested[THETA + PHI];
    right_gradient(false, right);
    right_gradient(true, of_nested);
    for (int m = 0; m < 4; m++)
        for (int k = 0; k < 5; k++) {
            if (k == 4 && methods[m][0] == 'v') continue; /* the integral is for one particle */
            if (k == 4 && strcmp(methods[m], "rloo") == 0) continue;
            const rws_config c = config_of(methods[m], k < 4 ? kinds[k] : "kind=nested", k < 4 ? 2 : 1);
            rws_trainer     *t = trainer_for(&c, &jumps);
            char             what[80];
            snprintf(what, sizeof what, "%s, %s", methods[m], c.set[0]);
            assert_mean(what, t, k < 4 ? right : of_nested, THETA + PHI, k < 4 ? 3000 : 6000, 2e-4);
            rws_trainer_free(t);
        }
}

/* The sites of earlier passes are no more than a guess: an engine that has seen other data has the same gradients, to the bit. */
static void passes_do_not_depend_on_earlier_ones(void **state)
{
    (void)state;
    const rws_config c = config_of("reinforce", "kind=nested", 1);
    rws_trainer     *used = trainer_for(&c, &jumps);
    bool             differ = false;
    float            first[THETA + PHI], a[THETA + PHI], b[THETA + PHI];
    for (uint64_t draw = 0; draw < 40; draw++) {
        rws_trainer *fresh = trainer_for(&c, &jumps);
        gradient_of(used, draw, a);
        gradient_of(fresh, draw, b);
        assert_memory_equal(a, b, sizeof a);
        if (draw == 0) memcpy(first, a, sizeof a);
        differ |= memcmp(first, a, sizeof a) != 0;
        rws_trainer_free(fresh);
    }
    assert_true(differ);
    rws_trainer_free(used);
}

/* Every particle alone, with the same draws. */
static void batched_is_scalar(void **state)
{
    (void)state;
    rws_config   c = config_of("vimco", "kind=nested", 6);
    rws_trainer *together = trainer_for(&c, &jumps);
    c.scalar = true;
    rws_trainer *alone = trainer_for(&c, &jumps);
    for (uint64_t draw = 0; draw < 20; draw++) {
        float a[THETA + PHI], b[THETA + PHI];
        gradient_of(together, draw, a);
        gradient_of(alone, draw, b);
        assert_close(a, b, THETA + PHI, 1e-4, "nested");
    }
    rws_trainer_free(together);
    rws_trainer_free(alone);
}

/* A choice that is the user's holds, or is refused. A comparison may be a part of a smooth function. */
static void choices_of_the_user_hold(void **state)
{
    (void)state;
    rws_error  err = {""};
    rws_config c = config_of("vimco", "kind=branch", 2);
    c.set[c.n_set++] = "site.a=reparameterised";
    rws_trainer *t = trainer_for(&c, &jumps);
    assert_int_equal(rws_trainer_step(t, &err), RWS_BAD_INPUT);
    assert_string_equal(err.text,
                        "In the model, after site \"a\": the program branches on a value that is made of site "
                        "\"a\", which is to be reparameterised; the gradient would leave the jump out. Choose "
                        "the score for this site, or leave the choice out.");
    rws_trainer_free(t);
    c.set[0] = "kind=compare";
    t = trainer_for(&c, &jumps);
    steps(t, 3);
    rws_trainer_free(t);
    c.set[0] = "kind=branch";
    c.method = "ww"; /* which does not differentiate through values */
    t = trainer_for(&c, &jumps);
    steps(t, 3);
    rws_trainer_free(t);
}

/* ---- ranges that are learned */

static void guide_of_range(rws_path *path, const void *state)
{
    const jumper *m = state;
    const rws_var low = rws_affine(path, at(path, m->phi, 0), 1, -5), high = rws_affine(path, low, 1, 9);
    rws_uniform(path, "a", low, high);
}

static void model_of_range(rws_path *path, const void *state)
{
    const jumper *m = state;
    const rws_var a = rws_uniform(path, "a", rws_constant(path, -9), rws_constant(path, 9));
    rws_normal(path, "x", mean_of(path, m, a), rws_constant(path, 1));
}

static void no_gradient_is_right_for_a_range(void **state)
{
    (void)state;
    rws_model ranged = jumps;
    ranged.guide = guide_of_range;
    ranged.model = model_of_range;
    rws_error    err = {""};
    rws_config   c = config_of("vimco", "kind=branch", 2);
    rws_trainer *t = trainer_for(&c, &ranged);
    assert_int_equal(rws_trainer_step(t, &err), RWS_BAD_INPUT);
    assert_non_null(strstr(err.text, "The guide draws a uniform at site \"a\" whose range is learned"));
    rws_trainer_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_those_of_the_bound),
        cmocka_unit_test(passes_do_not_depend_on_earlier_ones),
        cmocka_unit_test(batched_is_scalar),
        cmocka_unit_test(choices_of_the_user_hold),
        cmocka_unit_test(no_gradient_is_right_for_a_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
