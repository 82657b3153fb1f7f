/* test_siblings.c - baselines from particles that made the same choices: the expected gradient is that of the bound, by a sum over
 * all tuples of traces; and its variance, beside that with the baseline of the whole datum. Error level: see assert_mean. */
#include "trained.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 40, K = 3, MANY = 20, TRACES = 100, CHOICES = 8 };

/* ---- programs that make choices, on a path or from a list; they return log p(x | trace) */

typedef struct chooser chooser;
struct chooser {
    rws_path        *path; /* NULL: the choices are listed */
    const rws_param *param;
    const char      *site; /* NULL: "z" */
    const double    *logits;
    int              made, choice[CHOICES], n[CHOICES];
    double           log_density;
};

/* A choice among n, with logits from number `first` on. */
static int choose(chooser *c, int first, int n)
{
    double sum = 0;
    if (c->path)
        return rws_choose(c->path, c->site ? c->site : "z",
                          rws_slice(c->path, rws_parameter(c->path, c->param), first, n));
    for (int i = 0; i < n; i++) sum += exp(c->logits[first + i]);
    c->n[c->made] = n;
    c->log_density += c->logits[first + c->choice[c->made]] - log(sum);
    return c->choice[c->made++];
}

/* Up to three flips, each after a yes. */
static double flips(chooser *c)
{
    static const double fits[] = {-0.5, -4, 0, -2.5};
    int                 n = 0;
    while (n < 3 && choose(c, 2 * n, 2)) n++;
    return fits[n];
}

/* S -> a | b | S S, of depth 3. Appends to a sentence. */
static void derive(chooser *c, int depth, char *sentence)
{
    const int way = choose(c, 3 * depth, depth < 2 ? 3 : 2);
    if (way < 2) strcat(sentence, way ? "b" : "a");
    else derive(c, depth + 1, sentence), derive(c, depth + 1, sentence);
}

static double pcfg(chooser *c)
{
    char   sentence[8] = "";
    double fit = 0;
    derive(c, 0, sentence);
    for (int i = 0; i < 4; i++) fit -= sentence[i] == "aba"[i < 3 ? i : 3] ? 0 : 1.2;
    return fit;
}

/* Four points, each of which joins a cluster of those before it or opens one. */
static double dp(chooser *c)
{
    static const double x[] = {-1, -0.7, 0.9, 0.2};
    double              sum[4] = {x[0]}, squares[4] = {x[0] * x[0]}, n[4] = {1}, fit = 0;
    int                 clusters = 1, first = 0;
    for (int i = 1; i < 4; i++) {
        const int k = choose(c, first + (clusters - 1) * (clusters + 2) / 2, clusters + 1);
        first += (i * (i + 3)) / 2;
        clusters += k == clusters;
        sum[k] += x[i], squares[k] += x[i] * x[i], n[k]++;
    }
    for (int k = 0; k < clusters; k++) fit -= 0.3 + 2 * (squares[k] - sum[k] * sum[k] / n[k]);
    return fit;
}

/* rule -> f0 | f1 | not rule | rule and rule, to a depth of 2, about four objects with two features. */
static unsigned rule(chooser *c, int depth)
{
    const int      way = choose(c, 4 * depth, depth < 2 ? 4 : 2);
    const unsigned a = way < 2 ? (way ? 0xc : 0xa) : rule(c, depth + 1), b = way < 3 ? a : rule(c, depth + 1);
    return (way == 2 ? ~a : a & b) & 0xf;
}

static double rules(chooser *c)
{
    return -1.2 * __builtin_popcount(rule(c, 0) ^ 4);
}

/* A chain of four states, whose last one has a name of its own. */
static double hmm(chooser *c)
{
    static const int x[] = {0, 1, 1, 0};
    double           fit = 0;
    for (int t = 0, z = 0; t < 4; t++) {
        c->site = t < 3 ? "z" : "last";
        z = choose(c, 2 * (t ? 1 + z : 0), 2);
        fit += log(z == x[t] ? 0.8 : 0.2);
    }
    return fit;
}

/* Burglary, earthquake and alarm; two neighbours call. */
static double burglary(chooser *c)
{
    const int burglar = choose(c, 0, 2), quake = burglar ? 0 : choose(c, 2, 2);
    c->site = "last";
    const int alarm = choose(c, burglar ? 4 : quake ? 6 : 8, 2);
    return log(alarm ? 0.9 * 0.7 : 0.05 * 0.01);
}

static double (*const programs[])(chooser *c) = {flips, pcfg, dp, rules, hmm, burglary};
static const char *const names[] = {"three flips", "pcfg of depth 3", "dp of 4 points", "rules", "hmm", "burglary"};
static const int         sizes[] = {6, 8, 16, 10, 6, 10};
enum { PROGRAMS = 4, ALL = 6 };

static int              now; /* which of them */
static const rws_param *theta, *phi;

static float start(int side, int i)
{
    return (float)sin(1 + 5 * side + 2.3 * i);
}

/* ---- as a model */

static rws_status setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    (void)random, (void)state, (void)err;
    rws_setup_field(s, "x", 1);
    theta = rws_setup_param(s, RWS_THETA, "theta", 1, sizes[now], RWS_ZERO);
    phi = rws_setup_param(s, RWS_PHI, "phi", 1, sizes[now], RWS_ZERO);
    for (int i = 0; i < sizes[now]; i++) {
        rws_param_values((rws_param *)theta)[i] = start(0, i);
        rws_param_values((rws_param *)phi)[i] = start(1, i);
    }
    return RWS_OK;
}

static rws_status data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                       float *const *fields, rws_error *err)
{
    (void)state, (void)split, (void)first, (void)random, (void)err;
    for (int i = 0; i < n; i++) fields[0][i] = 0;
    return RWS_OK;
}

static void guide(rws_path *path, const void *state)
{
    (void)state;
    programs[now](&(chooser){.path = path, .param = phi});
}

static rws_var fit(rws_path *path, rws_var datum, const void *context)
{
    (void)path, (void)datum;
    return *(const rws_var *)context;
}

static void model(rws_path *path, const void *state)
{
    (void)state;
    const double  fits = programs[now](&(chooser){.path = path, .param = theta});
    const rws_var x = rws_constant(path, (float)fits);
    rws_observe(path, "x", fit, NULL, &x);
}

static const rws_model tree = {.abi = RWS_ABI,
                               .name = "tree",
                               .help = "choices that depend on choices",
                               .defaults = {.batch = 1, .particles = K, .n_test = 1, .shards = 1},
                               .setup = setup,
                               .data = data,
                               .guide = guide,
                               .model = model};

/* ---- the truth */

/* Lists the probabilities and weights of all traces; returns how many there are. */
static int list_traces(const double *w, double *chance, double *weight)
{
    chooser c = {.logits = w + sizes[now]};
    int     n = 0;
    do {
        c.made = 0, c.log_density = 0;
        const double fits = programs[now](&c);
        const double log_q = c.log_density;
        chooser      p = c;
        p.logits = w, p.made = 0, p.log_density = 0;
        programs[now](&p);
        assert_true(n < TRACES && c.made <= CHOICES);
        chance[n] = exp(log_q);
        weight[n++] = exp(p.log_density + fits - log_q);
        while (c.made && c.choice[c.made - 1] + 1 == c.n[c.made - 1]) c.choice[--c.made] = 0;
        if (c.made) c.choice[c.made - 1]++;
    } while (c.made);
    return n;
}

/* The expected bound of three particles. */
static double bound(const double *w)
{
    double    chance[TRACES], weight[TRACES], all = 0;
    const int n = list_traces(w, chance, weight);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            for (int k = 0; k < n; k++)
                all += chance[i] * chance[j] * chance[k] * log((weight[i] + weight[j] + weight[k]) / K);
    return all;
}

static void differentiate(double *right)
{
    double w[MOST];
    for (int i = 0; i < 2 * sizes[now]; i++) w[i] = (double)start(i >= sizes[now], i % sizes[now]);
    for (int i = 0; i < 2 * sizes[now]; i++) {
        const double at = w[i];
        w[i] = at + 1e-5;
        right[i] = bound(w);
        w[i] = at - 1e-5;
        right[i] = (right[i] - bound(w)) / 2e-5;
        w[i] = at;
    }
}

static rws_trainer *trainer(const char *method, const char *baseline, int particles)
{
    return trainer_for(
        &(rws_config){.method = method, .seed = 3, .set = {baseline}, .n_set = 1, .particles = particles}, &tree);
}

static void the_gradient_is_that_of_the_bound(void **state)
{
    static const char *const methods[] = {"rloo", "vimco", "reinforce", "nvil"};
    (void)state;
    for (now = 0; now < PROGRAMS; now++) {
        double right[MOST];
        differentiate(right);
        for (int m = 0; m < 4; m++) {
            char what[80];
            snprintf(what, sizeof what, "%s, %s", methods[m], names[now]);
            rws_trainer *t = trainer(methods[m], "baseline=siblings", K);
            assert_mean(what, t, right, 2 * (size_t)sizes[now], 2000, 1e-6);
            rws_trainer_free(t);
        }
    }
}

/* The sum over phi of the variances of the gradient, from so many draws. */
static double variance(const char *method, const char *baseline)
{
    enum { DRAWS = 2000 };
    rws_trainer *t = trainer(method, baseline, MANY);
    double       sum[MOST] = {0}, squares[MOST] = {0}, all = 0;
    float       *g = malloc(rws_trainer_size(t) * sizeof *g);
    const int    n = sizes[now];
    for (int draw = 0; draw < DRAWS; draw++) {
        gradient_of(t, (uint64_t)draw, g);
        for (int i = n; i < 2 * n; i++) sum[i] += (double)g[i], squares[i] += (double)g[i] * (double)g[i];
    }
    for (int i = n; i < 2 * n; i++) all += squares[i] / DRAWS - sum[i] * sum[i] / DRAWS / DRAWS;
    free(g);
    rws_trainer_free(t);
    return all;
}

/* The seed is fixed, and the variances differ by more than their errors (about 4 %). Where the tree is deep and its particles are
 * few, the mean over a few siblings is worse than that over all others: rloo and vimco vary more than without. */
static void the_gradient_varies_less(void **state)
{
    static const char *const methods[] = {"rloo", "vimco", "reinforce", "nvil"};
    (void)state;
    for (now = 0; now < PROGRAMS; now++)
        for (int m = 0; m < 4; m++) {
            const double all = variance(methods[m], "baseline=datum"), few = variance(methods[m], "baseline=siblings");
            print_message("%-16s %-10s variance %.4f with the baseline of the datum, %.4f with siblings\n", names[now],
                          methods[m], all, few);
            const bool less = now == 0 || m > 1;
            if (!(few < (less ? 1 : 1.6) * all)) fail_msg("%s: %g with siblings, %g without", methods[m], few, all);
        }
}

/* ---- the same programs with sums */

/* log p(x), and its gradient by theta. */
static double evidence(const double *w)
{
    double    chance[TRACES], weight[TRACES], sum = 0;
    const int n = list_traces(w, chance, weight);
    for (int i = 0; i < n; i++) sum += chance[i] * weight[i];
    return log(sum);
}

static void sums_over_all_choices_are_exact(void **state)
{
    (void)state;
    for (now = 0; now < ALL; now++) {
        double w[MOST];
        float  g[MOST];
        for (int i = 0; i < 2 * sizes[now]; i++) w[i] = (double)start(i >= sizes[now], i % sizes[now]);
        const rws_config c = {.method = "ww", .particles = 2, .set = {"site.z=sum", "site.last=sum"}, .n_set = 2};
        rws_trainer     *t = trainer_for(&c, &tree);
        gradient_of(t, 0, g);
        assert_true(fabs(metric(t, "log_evidence") - evidence(w)) < 1e-6);
        for (int i = 0; i < sizes[now]; i++) {
            double side[2];
            for (int k = 0; k < 2; k++) {
                const double at = w[i];
                w[i] += k ? 1e-4 : -1e-4;
                side[k] = evidence(w);
                w[i] = at;
            }
            if (!(fabs((double)g[i] - (side[1] - side[0]) / 2e-4) < 1e-6))
                fail_msg("%s: number %d is %.9g, not %.9g", names[now], i, (double)g[i], (side[1] - side[0]) / 2e-4);
        }
        rws_trainer_free(t);
    }
}

/* The last choice alone is summed: the bound is tighter, and the gradient varies less. Means and variances over fixed draws. */
static void a_sum_over_the_last_choice_helps(void **state)
{
    (void)state;
    for (now = PROGRAMS; now < ALL; now++) {
        double bounds[2];
        for (int sum = 0; sum < 2; sum++) {
            bounds[sum] = 0;
            for (uint64_t seed = 1; seed <= 400; seed++) {
                rws_config c = {.method = "ww", .particles = 2, .eval_particles = 2, .seed = seed};
                if (sum) c.set[c.n_set++] = "site.last=sum";
                rws_trainer *t = trainer_for(&c, &tree);
                bounds[sum] += metric(t, "log_evidence") / 400;
                rws_trainer_free(t);
            }
        }
        const double drawn = variance("vimco", "site.last=score"), summed = variance("vimco", "site.last=sum");
        print_message("%-16s bound %.4f drawn, %.4f summed; variance of vimco's gradient %.4f and %.4f\n", names[now],
                      bounds[0], bounds[1], drawn, summed);
        assert_true(bounds[1] > bounds[0] && summed < drawn);
    }
}

static void mistakes_are_named(void **state)
{
    (void)state;
    rws_trainer *t;
    rws_error    err = {""};
    rws_config   c = {.method = "rloo", .set = {"baseline=none"}, .n_set = 1};
    now = 0;
    assert_int_equal(rws_trainer_new(&c, &tree, &t, &err), RWS_BAD_INPUT);
    assert_non_null(strstr(err.text, "datum or siblings"));
    c.set[0] = "baseline=siblings";
    c.particle_shards = 2;
    c.particles = 4;
    assert_int_equal(rws_trainer_new(&c, &tree, &t, &err), RWS_BAD_INPUT);
    assert_non_null(strstr(err.text, "one shard"));
    c.method = "ww";
    assert_int_equal(rws_trainer_new(&c, &tree, &t, &err), RWS_BAD_INPUT);
    if (!strstr(err.text, "reinforce and rloo and nvil and vimco")) fail_msg("%s", err.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_gradient_is_that_of_the_bound),
        cmocka_unit_test(the_gradient_varies_less),
        cmocka_unit_test(sums_over_all_choices_are_exact),
        cmocka_unit_test(a_sum_over_the_last_choice_helps),
        cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
