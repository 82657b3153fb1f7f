/* test_sums.c - sites that are summed: against sums over all that may be drawn. Error level: see assert_mean. */
#include "trained.h"

#include <stdio.h>
#include <string.h>

/* a is drawn; z is summed; z = 1: b is drawn; z = 2: y is summed, and b is drawn. What a particle draws are four flips: a, and b in
 * each of the three rows that have one. Where the guide leaves z out, the datum is observed after z. */
enum { A, B1, B20, B21, DRAWS };
enum { THETA = 7, PHI = 4, ALL = THETA + PHI, K = 3 };

static const rws_param *theta, *phi;
static const float      start[2][THETA] = {{0.3f, 0.2f, -0.4f, 0.5f, 0.8f, -0.6f, 0.1f}, {-0.4f, 0.9f, 0.2f, -0.7f}};
static bool             left_out;

static double fits(int a, int z, int y, int b)
{
    return 1.5 * sin(1 + a + 3 * z + 7 * y + 12 * b) - 1;
}

static rws_status setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    (void)random, (void)state, (void)err;
    rws_setup_field(s, "x", 1);
    theta = rws_setup_param(s, RWS_THETA, "theta", 1, THETA, RWS_ZERO);
    phi = rws_setup_param(s, RWS_PHI, "phi", 1, PHI, RWS_ZERO);
    memcpy(rws_param_values(theta), start[0], THETA * sizeof(float));
    memcpy(rws_param_values(phi), start[1], PHI * sizeof(float));
    return RWS_OK;
}

static rws_status data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                       float *const *fields, rws_error *err)
{
    (void)state, (void)split, (void)first, (void)random, (void)err;
    for (int i = 0; i < n; i++) fields[0][i] = 0;
    return RWS_OK;
}

static rws_var number(rws_path *path, const rws_param *p, int i)
{
    return rws_slice(path, rws_parameter(path, p), i, 1);
}

/* Both programs: b is drawn with logit number b[0] of p, or b[1 + y]. */
static void visit(rws_path *path, const rws_param *p, rws_var z_logits, const int *b, int choice[4])
{
    choice[1] = rws_choose(path, "z", z_logits);
    if (choice[1] == 2) choice[2] = rws_flip(path, "y", number(path, theta, 5));
    if (choice[1] > 0) choice[3] = rws_flip(path, "b", number(path, p, b[choice[1] == 2 ? 1 + choice[2] : 0]));
}

static void guide(rws_path *path, const void *state)
{
    (void)state;
    int choice[4] = {rws_flip(path, "a", number(path, phi, 0))};
    if (!left_out) visit(path, phi, rws_zeros(path, 3), (int[]){1, 2, 3}, choice);
}

static rws_var fit(rws_path *path, rws_var datum, const void *context)
{
    (void)path, (void)datum;
    return *(const rws_var *)context;
}

static rws_var draw(rws_path *path, const void *context)
{
    (void)context;
    return rws_zeros(path, 1);
}

static void model(rws_path *path, const void *state)
{
    (void)state;
    int           choice[4] = {rws_flip(path, "a", number(path, theta, 0))};
    const float   more[] = {0, choice[0] ? 0.8f : 0, 0};
    const rws_var logits =
        rws_add(path, rws_slice(path, rws_parameter(path, theta), 1, 3), rws_constants(path, more, 3));
    if (!left_out) visit(path, theta, logits, (int[]){4, 6, 6}, choice);
    else choice[1] = rws_choose(path, "z", logits);
    const rws_var x = rws_constant(path, (float)fits(choice[0], choice[1], choice[2], choice[3]));
    rws_observe(path, "x", fit, draw, &x);
}

static const rws_model branches = {.abi = RWS_ABI,
                                   .name = "branches",
                                   .help = "summed and drawn choices",
                                   .defaults = {.batch = 1, .particles = K, .n_test = 1, .shards = 1},
                                   .setup = setup,
                                   .data = data,
                                   .guide = guide,
                                   .model = model};

/* ---- the truth */

static double log_flip(double logit, int yes)
{
    return -log1p(exp(yes ? -logit : logit));
}

static double log_q(const double *w, int draws)
{
    double sum = 0;
    for (int i = 0; i < DRAWS; i++) sum += left_out && i ? log(0.5) : log_flip(w[THETA + i], draws >> i & 1);
    return sum;
}

/* b in a row with a flip of the guide's. */
static double one(const double *w, int draws, int which, int a, int z, int y, double logit)
{
    const int b = draws >> which & 1;
    return exp(log_flip(logit, b) - log_flip(w[THETA + which], b) + fits(a, z, y, b));
}

/* The weight of a particle. */
static double weight(const double *w, int draws)
{
    const int    a = draws & 1;
    const double l[] = {exp(w[1]), exp(w[2] + 0.8 * a), exp(w[3])}, all = l[0] + l[1] + l[2];
    const double first = exp(log_flip(w[0], a) - log_flip(w[THETA], a)) / all;
    if (left_out)
        return first * (l[0] * exp(fits(a, 0, 0, 0)) + l[1] * exp(fits(a, 1, 0, 0)) + l[2] * exp(fits(a, 2, 0, 0)));
    double sum = l[0] * exp(fits(a, 0, 0, 0)) + l[1] * one(w, draws, B1, a, 1, 0, w[4]);
    for (int y = 0; y < 2; y++) sum += l[2] * exp(log_flip(w[5], y)) * one(w, draws, B20 + y, a, 2, y, w[6]);
    return first * sum;
}

/* The expected bound of n particles that are drawn with the guide of `drawn` and weighed with w. */
static double bound(const double *w, const double *drawn, int n)
{
    const int m = 1 << DRAWS;
    double    all = 0;
    for (int tuple = 0; tuple < (int)pow(m, n); tuple++) {
        double chance = 0, mean = 0;
        for (int k = 0, rest = tuple; k < n; k++, rest /= m) {
            chance += log_q(drawn, rest % m);
            mean += weight(w, rest % m) / n;
        }
        all += exp(chance) * log(mean);
    }
    return all;
}

/* The gradient of the bound or, of ww, that with fixed draws, downhill for the guide. */
static void differentiate(bool ww, double *right)
{
    double w[ALL], at[ALL];
    for (int i = 0; i < ALL; i++) w[i] = at[i] = (double)(i < THETA ? start[0][i] : start[1][i - THETA]);
    for (int i = 0; i < ALL; i++) {
        double side[2];
        for (int k = 0; k < 2; k++) {
            w[i] = at[i] + (k ? 1e-5 : -1e-5);
            side[k] = bound(w, ww ? at : w, K);
        }
        w[i] = at[i];
        right[i] = (side[1] - side[0]) / 2e-5 * (ww && i >= THETA ? -1 : 1);
    }
}

static rws_config config(const char *method, const char *sums, const char *more)
{
    rws_config c = {.method = method, .seed = 3, .particles = K};
    char      *list = strdup(sums);
    for (char *site = strtok(list, " "); site; site = strtok(NULL, " ")) {
        char *set = malloc(32);
        snprintf(set, 32, "site.%s=sum", site);
        c.set[c.n_set++] = set;
    }
    free(list);
    if (more) c.set[c.n_set++] = strdup(more);
    return c;
}

static void release(rws_config *c)
{
    for (int i = 0; i < c->n_set; i++) free((char *)c->set[i]);
}

static rws_trainer *trainer(const char *method, const char *sums, const char *more)
{
    rws_config   c = config(method, sums, more);
    rws_trainer *t = trainer_for(&c, &branches);
    release(&c);
    return t;
}

/* ---- gradients */

static void gradients_are_right_on_average(void **state)
{
    (void)state;
    static const char *const methods[] = {"reinforce", "rloo", "nvil", "vimco", "ww"};
    for (int variant = 0; variant < 10; variant++) {
        double      right[ALL];
        const char *method = methods[variant % 5];
        left_out = variant >= 5;
        differentiate(strcmp(method, "ww") == 0, right);
        rws_trainer *t = trainer(method, left_out ? "z" : "z y", NULL);
        assert_mean(method, t, right, left_out ? THETA + 1 : ALL, 4000, 1e-6);
        rws_trainer_free(t);
    }
    left_out = false;
}

/* Nothing is drawn: one particle has the gradient of log p(x), and any number of them too. */
static void a_sum_over_all_sites_is_exact(void **state)
{
    (void)state;
    double w[ALL], right[ALL], evidence = 0;
    for (int i = 0; i < ALL; i++) w[i] = (double)(i < THETA ? start[0][i] : start[1][i - THETA]);
    for (int i = 0; i < ALL; i++) {
        double side[2] = {0, 0};
        for (int k = 0; k < 2; k++) {
            const double at = w[i];
            w[i] += k ? 1e-4 : -1e-4;
            for (int d = 0; d < 1 << DRAWS; d++) side[k] += exp(log_q(w, d)) * weight(w, d);
            w[i] = at;
        }
        right[i] = i < THETA ? (log(side[1]) - log(side[0])) / 2e-4 : 0;
        evidence = (log(side[0]) + log(side[1])) / 2;
    }
    for (int variant = 0; variant < 4; variant++) {
        float      g[ALL];
        rws_config c = config(variant % 2 ? "vimco" : "ww", "a b y z", NULL);
        c.scalar = variant > 1;
        rws_trainer *t = trainer_for(&c, &branches);
        gradient_of(t, 0, g);
        for (int i = 0; i < ALL; i++)
            if (!(fabs((double)g[i] - right[i]) < 1e-6))
                fail_msg("number %d: %.9g, not %.9g", i, (double)g[i], right[i]);
        assert_true(fabs(metric(t, "log_evidence") - evidence) < 1e-6);
        assert_true(fabs(metric(t, "kl")) < 1e-6 && fabs(metric(t, "ess") - 1) < 1e-6);
        rws_trainer_free(t);
        release(&c);
    }
}

/* Rows that particles share, beside particles that run alone. */
static void scalar_mode_has_the_same_gradients(void **state)
{
    (void)state;
    static const char *const methods[] = {"ww", "ws", "wws", "dww", "rloo", "vimco"};
    for (int m = 0; m < 6; m++)
        for (int draw = 0; draw < 20; draw++) {
            float g[2][ALL];
            for (int scalar = 0; scalar < 2; scalar++) {
                rws_config c = config(methods[m], draw % 2 ? "z y" : "z", NULL);
                c.scalar = scalar;
                c.particles = 7;
                rws_trainer *t = trainer_for(&c, &branches);
                gradient_of(t, (uint64_t)draw, g[scalar]);
                rws_trainer_free(t);
                release(&c);
            }
            assert_close(g[0], g[1], ALL, 1e-5, methods[m]);
        }
}

/* ---- mistakes */

static void expect(const rws_config *c, const rws_model *m, const char *part, const char *other)
{
    rws_trainer *t = NULL;
    rws_error    err = {""};
    rws_status   status = rws_trainer_new(c, m, &t, &err);
    if (status == RWS_OK) status = rws_trainer_step(t, &err);
    rws_trainer_free(t);
    assert_int_equal(status, RWS_BAD_INPUT);
    if (!strstr(err.text, part) || !strstr(err.text, other)) fail_msg("%s", err.text);
}

static rws_status one_field(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    (void)random, (void)state, (void)err;
    rws_setup_field(s, "x", 1);
    return RWS_OK;
}

static void long_model(rws_path *path, const void *state)
{
    (void)state;
    rws_var sum = rws_constant(path, 0);
    for (int i = 0; i < 7; i++) sum = rws_add(path, sum, rws_categorical(path, "z", rws_zeros(path, 5)));
    rws_normal(path, "x", rws_normal(path, "u", sum, rws_constant(path, 1)), rws_constant(path, 1));
}

static const rws_model long_one = {.abi = RWS_ABI,
                                   .name = "long",
                                   .help = "many choices",
                                   .defaults = {.batch = 1, .particles = K, .n_test = 1, .shards = 1},
                                   .setup = one_field,
                                   .data = data,
                                   .model = long_model};

static void mistakes_are_named(void **state)
{
    (void)state;
    rws_config c[] = {config("rloo", "z", "baseline=siblings"), config("ww", "z", NULL), config("rebar", "z", NULL),
                      config("ww", "u", NULL), config("ww", "z", NULL)};
    expect(&c[0], &branches, "summed sites (\"z\")", "baseline=siblings");
    c[1].particle_shards = 3;
    expect(&c[1], &branches, "\"z\" is summed", "one shard");
    c[2].model = "gmm";
    expect(&c[2], NULL, "rebar does not apply", "site.z=score");
    expect(&c[3], &long_one, "site \"u\" is not a choice among finitely many", "normal");
    expect(&c[4], &long_one, "5 values for each of the 3125 rows", "15625 rows, and a particle has at most 4096");
    for (int i = 0; i < 5; i++) release(&c[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sum_over_all_sites_is_exact),
        cmocka_unit_test(gradients_are_right_on_average),
        cmocka_unit_test(scalar_mode_has_the_same_gradients),
        cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
