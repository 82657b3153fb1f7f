/* test_paper.c - the claims of the paper on invented results: each claim holds on results like the paper's, does not
 * hold after one number is changed, and is unknown if runs are missing. The experiments' sweeps are valid sweep
 * files. */
#include "files.h"

#include "paper/compare.h"
#include "paper/paper.h"
#include "rws_results.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FULL = 2000000, MAX_RUNS = 400, SEEDS = 5, MAX_METRICS = 8, MAX_SHOTS = 30, POINTS = 20, COMPONENTS = 20 };

/* ---- results without a store */

typedef struct {
    rws_result     result;
    rws_result_key keys[12];
    char           texts[4][64];
    rws_history    histories[MAX_METRICS];
    double         values[MAX_METRICS][POINTS], iterations[POINTS], seconds[POINTS];
    rws_shot       shots[MAX_SHOTS];
    double         shown[MAX_SHOTS][COMPONENTS];
    const char    *labels[MAX_SHOTS][COMPONENTS];
} made;

static made       *runs;
static rws_results results;
static rws_result  list[MAX_RUNS];

static int begin(void **state)
{
    (void)state;
    runs = calloc(MAX_RUNS, sizeof *runs);
    results = (rws_results){.n = 0, .runs = list};
    return runs ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    free(runs);
    return 0;
}

/* The results as they are now. */
static const rws_results *all(void)
{
    for (int i = 0; i < results.n; i++) list[i] = runs[i].result;
    return &results;
}

static made *add(const char *model, const char *method, int K, int seed)
{
    assert_true(results.n < MAX_RUNS);
    made *m = &runs[results.n++];
    *m = (made){0};
    snprintf(m->texts[0], 64, "%d", K);
    snprintf(m->texts[1], 64, "%d", seed);
    snprintf(m->texts[2], 64, "%s-%s-k%d-s%d", model, method, K, seed);
    const rws_result_key keys[] = {
        {"model", model}, {"method", method}, {"particles", m->texts[0]}, {"seed", m->texts[1]}};
    memcpy(m->keys, keys, sizeof keys);
    m->result = (rws_result){.name = m->texts[2],
                             .store = "made up",
                             .iteration = FULL,
                             .iterations = FULL,
                             .n_keys = 4,
                             .keys = m->keys,
                             .histories = m->histories,
                             .shots = m->shots};
    for (int i = 0; i < POINTS; i++) m->iterations[i] = m->seconds[i] = 50.0 * (i + 1);
    return m;
}

static void set(made *m, const char *key, const char *value)
{
    m->keys[m->result.n_keys++] = (rws_result_key){key, value};
}

/* From one value to the last in a straight line, where it stays for the second half. */
static void measure(made *m, const char *metric, double first, double last)
{
    const int n = m->result.n_histories++;
    for (int i = 0; i < POINTS; i++)
        m->values[n][i] = i < POINTS / 2 ? first + (last - first) * i / (POINTS / 2) : last;
    m->histories[n] = (rws_history){metric, POINTS, m->iterations, m->seconds, m->values[n]};
}

static double *show(made *m, const char *name, uint64_t iteration, int n)
{
    const int k = m->result.n_shots++;
    assert_true(k < MAX_SHOTS && n <= COMPONENTS);
    m->shots[k] = (rws_shot){name, iteration, n, m->shown[k], m->labels[k]};
    return m->shown[k];
}

static void show_labelled(made *r, const char *name, int n, const char *const *labels, const double *values)
{
    memcpy(show(r, name, 1000, n), values, (size_t)n * sizeof *values);
    memcpy(r->labels[r->result.n_shots - 1], labels, (size_t)n * sizeof *labels);
}

static made *find(const char *method, int K, int seed)
{
    char name[64];
    snprintf(name, sizeof name, "-%s-k%d-s%d", method, K, seed);
    for (int i = 0; i < results.n; i++)
        if (strstr(runs[i].result.name, name)) return &runs[i];
    fail_msg("There is no run %s.", name);
    return NULL;
}

static rws_finding check(const rws_experiment *e, const char *claim, const char *variant)
{
    static rws_checked checked[64];
    const int          n = rws__paper_check(e, all(), checked, 64);
    for (int i = 0; i < n; i++) {
        const bool same = !variant == !checked[i].variant && (!variant || strcmp(variant, checked[i].variant) == 0);
        if (same && strcmp(checked[i].claim->name, claim) == 0) return checked[i].finding;
    }
    fail_msg("The claim %s was not checked.", claim);
    return rws__finding_new();
}

static void expect(const rws_experiment *e, const char *claim, rws_verdict verdict)
{
    const rws_finding f = check(e, claim, NULL);
    if (f.verdict != verdict)
        fail_msg("%s: %s, not %s: %s", claim, rws_verdict_names[f.verdict], rws_verdict_names[verdict], f.numbers);
    if (verdict != RWS_UNKNOWN && !f.numbers[0]) fail_msg("%s has no numbers", claim);
}

static void expect_all_hold(const rws_experiment *e)
{
    for (const rws_claim *c = e->claims; c->name; c++) expect(e, c->name, RWS_HOLDS);
}

/* Changes a metric's second half in all runs of the method with K particles, checks the claim, and restores the values. */
static void expect_spoiled(const rws_experiment *e, const char *claim, const char *method, int K, const char *metric,
                           double value)
{
    static double old[MAX_RUNS][POINTS];
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < results.n; i++) {
            char text[16];
            snprintf(text, sizeof text, "%d", K);
            if (!rws_result_has(&runs[i].result, "method", method) ||
                !rws_result_has(&runs[i].result, "particles", text))
                continue;
            for (int s = 0; s < runs[i].result.n_histories; s++) {
                if (strcmp(runs[i].histories[s].metric, metric) != 0) continue;
                double *values = runs[i].values[s];
                if (pass == 0) memcpy(old[i], values, sizeof old[i]);
                for (int k = POINTS / 2; k < POINTS; k++) values[k] = pass == 0 ? value : old[i][k];
            }
        }
        if (pass == 0) expect(e, claim, RWS_FAILS);
    }
}

/* ---- the mixture */

enum { CONCRETE, RELAX, REINFORCE, VIMCO, WS, WW, DWW, METHODS };

static const char *const gmm_methods[] = {"concrete", "relax", "reinforce", "vimco", "ws", "ww", "dww"};
static const int         particles[] = {2, 5, 10, 20};

/* Final errors as the paper has them, with K = 2, 5, 10, 20. */
static const double gmm_p[METHODS][4] = {{.60, .61, .62, .65},  {.30, .31, .33, .35}, {.35, .36, .37, .38},
                                         {.40, .30, .20, .10},  {.90, .80, .75, .70}, {.50, .20, .05, .004},
                                         {.05, .01, .006, .005}};
static const double gmm_q[METHODS][4] = {{.95, .96, .97, .98}, {.70, .71, .72, .73},  {.75, .76, .77, .78},
                                         {.80, .78, .77, .80}, {1.3, 1.2, 1.1, 1.05}, {.85, .30, .10, .040},
                                         {.25, .10, .05, .045}};
static const double gmm_std[METHODS] = {.5, 1, 2, .015, .01, .02, .02};

static made *add_gmm_run(const char *start, int method, int K, int seed)
{
    made *r = add("gmm", gmm_methods[method], K, seed);
    set(r, "start", start);
    set(r, "gmm_hidden", "1");
    if (method == VIMCO) set(r, "vimco_no_logK", "0");
    if (method == DWW) set(r, "delta", "0.2");
    return r;
}

/* p(z) reaches as far as component `last`. */
static void show_mixture(made *r, uint64_t iteration, int last)
{
    static const char *const names[] = {"p", "q_0", "q_95", "q_190"};
    static const char *const truth[] = {"true_p", "true_q_0", "true_q_95", "true_q_190"};
    for (int i = 0; i < 4; i++) {
        double *p = show(r, names[i], iteration, COMPONENTS), *t = show(r, truth[i], iteration, COMPONENTS);
        for (int c = 0; c < COMPONENTS; c++) p[c] = c <= last ? (c + 1) / 210.0 : 0, t[c] = 0.05;
    }
}

static void add_gmm(int seeds)
{
    /* how far p(z) reaches: all 20 components, or pruned */
    static const int      few[] = {19, 17, 16, 17, 9, 14, 19}, many[] = {19, 19, 19, 19, 12, 19, 19};
    static const uint64_t moments[] = {50, 500, 1000};
    for (int m = 0; m < METHODS; m++) {
        for (int k = 0; k < 4; k++) {
            for (int seed = 1; seed <= seeds; seed++) {
                made *r = add_gmm_run("far", m, particles[k], seed);
                measure(r, "p_error", 0.7, gmm_p[m][k] * (1 + 0.01 * seed));
                measure(r, "q_error", 0.7, gmm_q[m][k] * (1 + 0.01 * seed));
                measure(r, "grad_std", m == CONCRETE ? 0.1 : gmm_std[m], gmm_std[m]);
                const int last = k == 3 ? many[m] : few[m];
                for (int moment = 0; moment < 3; moment++) show_mixture(r, moments[moment], last);
            }
        }
    }
}

static void add_deltas(const double *p, const double *q)
{
    static const char *const deltas[] = {"0.05", "0.1", "0.4"};
    for (int d = 0; d < 3; d++)
        for (int seed = 1; seed <= SEEDS; seed++) {
            made *r = add("gmm", "dww", 2, seed);
            set(r, "start", "far");
            set(r, "gmm_hidden", "1");
            set(r, "delta", deltas[d]);
            measure(r, "p_error", 0.7, p[d]);
            measure(r, "q_error", 0.7, q[d]);
        }
}

static void test_gmm(void **state)
{
    (void)state;
    const rws_experiment *e = &rws_experiment_gmm;
    add_gmm(SEEDS);
    add_deltas((const double[]){.05, .06, .07}, (const double[]){.3, .25, .2});
    expect_all_hold(e);
    assert_int_equal(check(e, "G1", NULL).seeds, SEEDS);
    assert_int_equal(check(e, "G11", NULL).seeds, SEEDS);

    expect_spoiled(e, "G1", "dww", 2, "p_error", 0.5);
    expect_spoiled(e, "G1", "relax", 2, "q_error", 0.1);
    expect_spoiled(e, "G2a", "ww", 20, "q_error", 1.2);
    expect_spoiled(e, "G2a", "vimco", 20, "p_error", 0.001);
    expect_spoiled(e, "G2b", "dww", 20, "q_error", 0.1);
    expect_spoiled(e, "G7f", "concrete", 20, "q_error", 0.1);
    expect_spoiled(e, "G16", "dww", 20, "q_error", 0.2);
    expect_spoiled(e, "G3", "ww", 5, "p_error", 0.95);
    expect_spoiled(e, "G4a", "ws", 20, "q_error", 3);
    expect_spoiled(e, "G4b", "ww", 20, "p_error", 6);
    expect_spoiled(e, "G5a", "relax", 20, "q_error", 0.1);
    expect_spoiled(e, "G5b", "vimco", 20, "q_error", 0.2);
    expect_spoiled(e, "G5c", "reinforce", 20, "p_error", 0.1);
    expect_spoiled(e, "G5d", "vimco", 20, "p_error", 0.6);
    expect_spoiled(e, "G8b", "relax", 20, "p_error", 0.001);
}

/* A fit in five of five runs decides; four of five do not. */
static void test_pruning(void **state)
{
    (void)state;
    const rws_experiment *e = &rws_experiment_gmm;
    add_gmm(SEEDS);
    assert_string_equal(find("dww", 2, 1)->shots[16].name, "p");
    expect(e, "G7d", RWS_HOLDS);
    find("dww", 2, 1)->shown[16][19] = 0;
    expect(e, "G7d", RWS_UNDECIDED);
    for (int seed = 2; seed <= SEEDS; seed++) find("dww", 2, seed)->shown[16][19] = 0;
    expect(e, "G7d", RWS_FAILS);
    for (int seed = 1; seed <= SEEDS; seed++) find("ww", 20, seed)->shown[16][0] = 0;
    expect(e, "G8a", RWS_UNDECIDED); /* five runs do not refute one of three parts */
    for (int seed = 1; seed <= SEEDS; seed++) find("ws", 2, seed)->shown[16][12] = 0.1;
    expect(e, "G7a", RWS_FAILS);
    for (int seed = 1; seed <= SEEDS; seed++)
        for (int i = 0; i < POINTS; i++) find("ww", 10, seed)->values[2][i] = 3;
    expect(e, "G9a", RWS_FAILS);
    for (int seed = 1; seed <= SEEDS; seed++)
        for (int i = 0; i < POINTS; i++) find("vimco", 5, seed)->values[2][i] = 0.03;
    expect(e, "G9c", RWS_FAILS);
    for (int seed = 1; seed <= SEEDS; seed++)
        for (int i = 0; i < POINTS / 2; i++) find("relax", 20, seed)->values[0][i] = 0.1;
    expect(e, "G2c", RWS_FAILS);
    for (int seed = 1; seed <= SEEDS; seed++) find("ws", 2, seed)->shown[16][5] = 0.5;
    expect(e, "G7e", RWS_FAILS);
    for (int seed = 1; seed <= SEEDS; seed++)
        for (int i = 0; i < POINTS; i++) find("concrete", 10, seed)->values[2][i] = 30;
    expect(e, "G9b", RWS_FAILS);
    /* the order of the q errors turned round */
    for (int m = 0; m < METHODS; m++)
        for (int seed = 1; seed <= SEEDS; seed++)
            for (int i = 0; i < POINTS; i++) find(gmm_methods[m], 10, seed)->values[1][i] = 1 / gmm_p[m][2];
    expect(e, "G6", RWS_FAILS);
}

/* Whether the mean of n numbers lies between low and high, as one of `parts` parts of which the others hold. */
static rws_verdict judge(const double *x, int n, double low, double high, int parts)
{
    static rws_evidence e;
    e.n = e.n_groups = 0;
    rws__evidence_add(&e, x, n, low, high, "a part");
    for (int i = 1; i < parts; i++) rws__evidence_add(&e, (const double[]){1, 1, 1}, 3, 0, 2, "another");
    return rws__evidence_judge(&e).verdict;
}

static rws_verdict most(int fit, int n)
{
    static rws_evidence e;
    e.n = e.n_groups = 0;
    rws__evidence_most(&e, fit, n, "most");
    return rws__evidence_judge(&e).verdict;
}

/* Student's distribution against its table; both errors of a claim are at the level, whatever its parts. */
static void test_comparison(void **state)
{
    (void)state;
    assert_true(fabs(rws__student(6.3138, 1) - 0.95) < 1e-5);
    assert_true(fabs(rws__student(2.9200, 2) - 0.95) < 1e-5);
    assert_true(fabs(rws__student(2.1318, 4) - 0.95) < 1e-5);
    assert_true(fabs(rws__student(-1.8331, 9) - 0.05) < 1e-5);
    assert_true(fabs(rws__student_quantile(0.975, 3) - 3.1824) < 1e-4);
    const double x[] = {1.0, 1.2, 1.4, 1.1, 1.3}; /* mean 1.2, standard error 0.0707, and 2.13 of these at 5 % */
    assert_int_equal(judge(x, 5, 1.0, INFINITY, 1), RWS_HOLDS);
    assert_int_equal(judge(x, 5, 1.1, INFINITY, 1), RWS_UNDECIDED);
    assert_int_equal(judge(x, 5, 1.3, INFINITY, 1), RWS_UNDECIDED);
    assert_int_equal(judge(x, 5, 1.4, INFINITY, 1), RWS_FAILS);
    assert_int_equal(judge(x, 5, -INFINITY, 1.0, 1), RWS_FAILS);
    assert_int_equal(judge(x, 5, -INFINITY, 1.0, 4), RWS_UNDECIDED); /* p = 0.024 does not refute one of four */
    assert_int_equal(judge(x, 5, 1.0, 1.4, 4), RWS_HOLDS);           /* and shows all four */
    assert_int_equal(judge(x, 5, 1.0, 1.3, 1), RWS_UNDECIDED);
    assert_int_equal(judge(x, 2, 0, INFINITY, 1), RWS_UNDECIDED); /* two seeds decide nothing */
    assert_int_equal(judge(x, 0, 0, INFINITY, 1), RWS_UNKNOWN);
    assert_int_equal(most(5, 5), RWS_HOLDS);
    assert_int_equal(most(4, 4), RWS_UNDECIDED);
    assert_int_equal(most(9, 10), RWS_HOLDS);
    assert_int_equal(most(8, 10), RWS_UNDECIDED);
    assert_int_equal(most(1, 10), RWS_FAILS);
    assert_int_equal(most(0, 0), RWS_UNKNOWN);
    add_gmm(2);
    expect(&rws_experiment_gmm, "G1", RWS_UNDECIDED);
}

static void test_gmm_near(void **state)
{
    (void)state;
    const rws_experiment *e = &rws_experiment_gmm_near;
    for (int m = 0; m < METHODS; m++)
        for (int k = 0; k < 4; k++)
            for (int seed = 1; seed <= SEEDS; seed++) {
                made *r = add_gmm_run("near", m, particles[k], seed);
                measure(r, "p_error", 0.1, m == WS ? 0.001 : 0.01);
                measure(r, "q_error", 0.7, m == WS ? 0.01 : 0.1 + 0.001 * particles[k]);
                measure(r, "grad_std", 1, m == VIMCO ? 0.001 : 1);
            }
    expect_all_hold(e);
    expect_spoiled(e, "G10a", "ww", 5, "p_error", 0.0005);
    expect_spoiled(e, "G10d", "dww", 20, "q_error", 0.005);
    expect_spoiled(e, "G10c", "vimco", 2, "q_error", 0.5);
    for (int seed = 1; seed <= SEEDS; seed++)
        for (int i = 0; i < POINTS; i++) find("ws", 5, seed)->values[2][i] = 0.0001;
    expect(e, "G10b", RWS_FAILS);
}

static void test_gmm_snr(void **state)
{
    (void)state;
    static const char *const methods[] = {"relax", "reinforce", "vimco", "ws", "ww"};
    const rws_experiment    *e = &rws_experiment_gmm_snr;
    for (int m = 0; m < 5; m++)
        for (int many = 0; many < 2; many++)
            for (int seed = 1; seed <= SEEDS; seed++) {
                made *r = add("gmm", methods[m], many ? 100 : 2, seed);
                set(r, "start", "near");
                if (m == 0) set(r, "relax_control", "net");
                if (m == 2) set(r, "vimco_no_logK", "0");
                const double phi = many == (m > 2) ? 2 : 1, noise = 1 + 0.01 * seed;
                measure(r, "snr_phi", phi * noise, phi * noise);
                measure(r, "snr_theta", (1 + many) * noise, (1 + many) * noise);
                measure(r, "grad_std", (2 - many) * noise, (2 - many) * noise);
            }
    expect_all_hold(e);
    static const char *const spoiled[] = {"N1", "N2", "N3", "N4"};
    static const char *const of[] = {"vimco", "ww", "ws", "ww"};
    static const int         metric[] = {0, 1, 0, 2};
    for (int i = 0; i < 4; i++) {
        for (int seed = 1; seed <= SEEDS; seed++)
            for (int k = 0; k < POINTS; k++) {
                double *few = &find(of[i], 2, seed)->values[metric[i]][k];
                double *many = &find(of[i], 100, seed)->values[metric[i]][k], keep = *few;
                *few = *many, *many = keep;
            }
        expect(e, spoiled[i], RWS_FAILS);
    }
}

static made *add_tried(const char *method, const char *key, const char *value, int seed, double p, double q)
{
    made *r = add("gmm", method, 5, seed);
    set(r, "start", "far");
    set(r, "gmm_hidden", "2");
    if (key) set(r, key, value);
    if (strcmp(method, "vimco") == 0) set(r, "vimco_no_logK", "0");
    measure(r, "p_error", 0.7, p * (1 + 0.01 * seed));
    measure(r, "q_error", 0.7, q * (1 + 0.01 * seed));
    return r;
}

static void test_gmm_tried(void **state)
{
    (void)state;
    const rws_experiment *e = &rws_experiment_gmm_tried;
    for (int seed = 1; seed <= SEEDS; seed++) {
        static const char *const plain[] = {"reinforce", "vimco", "ws", "ww", "wws", "rebar", "muprop"};
        static const char *const controls[] = {"net", "rebar", "sum"}, *const taus[] = {"0.1", "0.5", "1", "2"};
        static const char *const smoothings[] = {"spike", "exponential", "power"};
        for (int m = 0; m < 7; m++) add_tried(plain[m], NULL, NULL, seed, 0.2, 0.3);
        for (int i = 0; i < 3; i++)
            add_tried("relax", "relax_control", controls[i], seed, 0.1 + 0.1 * i, 0.2 + 0.1 * i);
        for (int i = 0; i < 4; i++)
            add_tried("concrete", "tau_end", taus[i], seed, i == 1 ? 0.3 : 0.35, i == 1 ? 0.4 : 0.5);
        for (int i = 0; i < 3; i++) add_tried("dvae", "smoothing", smoothings[i], seed, 0.8, 0.9);
    }
    expect_all_hold(e);
    expect_spoiled(e, "G12", "ws", 5, "q_error", 2);
    for (int i = 0; i < results.n; i++) {
        if (rws_result_has(&runs[i].result, "relax_control", "sum")) runs[i].values[1][POINTS - 1] = -3;
        if (rws_result_has(&runs[i].result, "tau_end", "2")) runs[i].values[1][POINTS - 1] = -3;
    }
    expect(e, "G13", RWS_FAILS);
    expect(e, "G14", RWS_FAILS);
    expect_spoiled(e, "G15", "wws", 5, "p_error", 0.05);
}

/* A run that is missing, not finished or broken makes a claim unknown; a variant is checked if there are runs of it. */
static void test_missing(void **state)
{
    (void)state;
    const rws_experiment *e = &rws_experiment_gmm;
    expect(e, "G1", RWS_UNKNOWN);
    add_gmm(SEEDS);
    expect(e, "G1", RWS_HOLDS);
    expect(e, "G11", RWS_UNKNOWN);
    for (int seed = 1; seed <= SEEDS; seed++) find("ww", 20, seed)->result.iteration = 999;
    expect(e, "G2a", RWS_UNKNOWN);
    expect(e, "G1", RWS_HOLDS);
    for (int seed = 1; seed <= SEEDS; seed++) find("ww", 20, seed)->result.iteration = FULL;
    for (int seed = 1; seed <= 3; seed++) find("ww", 20, seed)->result.failure = "It broke."; /* two seeds are left */
    expect(e, "G2a", RWS_UNDECIDED);
    for (int seed = 1; seed <= 3; seed++) find("ww", 20, seed)->result.failure = NULL;

    rws_checked checked[64];
    int         n = rws__paper_check(e, all(), checked, 64), n_variants = 0;
    for (int i = 0; i < n; i++) n_variants += checked[i].variant != NULL;
    assert_int_equal(n_variants, 0);
    for (int k = 0; k < 4; k++)
        for (int seed = 1; seed <= SEEDS; seed++) {
            made *r = add("gmm", "vimco", particles[k], seed);
            set(r, "start", "far");
            set(r, "gmm_hidden", "1");
            set(r, "vimco_no_logK", "1");
            measure(r, "p_error", 0.7, 0.001);
            measure(r, "q_error", 0.7, 0.001);
            measure(r, "grad_std", 1, 1);
        }
    assert_int_equal(check(e, "G1", "VIMCO without log K").verdict, RWS_FAILS);
    assert_int_equal(check(e, "G1", NULL).verdict, RWS_HOLDS);
}

/* ---- the grammar */

/* Trees of "astronomers saw stars with telescopes". */
static const char low[] = "(S (NP astronomers) (VP (V saw) (NP (NP stars) (PP (P with) (NP telescopes)))))";
static const char high[] = "(S (NP astronomers) (VP (VP (V saw) (NP stars)) (PP (P with) (NP telescopes))))";

static void add_pcfg(void)
{
    static const char *const methods[] = {"reinforce", "vimco", "ws", "ww"};
    static const double      p[4][2] = {{.2, .2}, {.1, .15}, {.05, .01}, {.08, .08}};
    static const double      q[4][2] = {{30, 30}, {20, 21}, {9, 6}, {15, 14}};
    static const double      truncated[] = {.3, .2, .01, .01};
    static const char *const right[] = {low, high, "(S (NP ears) (VP (V saw) (NP ears)))"};
    static const char *const wrong[] = {"(S (NP stars) (VP (V saw) (NP stars)))", "(S (NP stars) (VP VP PP))",
                                        "(S (NP ears) (VP (V saw) (NP ears)))"};
    static const char *const rules[] = {"NP PP", "stars"};
    for (int m = 0; m < 4; m++) {
        for (int at = 0; at < 4 * SEEDS; at++) {
            const int k = at / SEEDS;
            made     *r = add("pcfg", methods[m], particles[k], 1 + at % SEEDS);
            if (m == 1) set(r, "vimco_no_logK", "0");
            const double share = k / 3.0;
            measure(r, "p_error", 0.2, p[m][0] + share * (p[m][1] - p[m][0]));
            measure(r, "q_error", 30, q[m][0] + share * (q[m][1] - q[m][0]));
            measure(r, "truncated", 0, truncated[m]);
            const double np = m == 2 ? 0.41 : 0.9;
            show_labelled(r, "trees", 3, m == 2 ? right : wrong, (const double[]){0.5, 0.4, 0.1});
            show_labelled(r, "np", 2, rules, (const double[]){np, 1 - np});
            show_labelled(r, "true_np", 2, rules, (const double[]){0.4, 0.6});
        }
    }
}

static void test_pcfg(void **state)
{
    (void)state;
    const rws_experiment *e = &rws_experiment_pcfg;
    add_pcfg();
    expect_all_hold(e);
    expect_spoiled(e, "P1", "ww", 20, "q_error", 5);
    expect_spoiled(e, "P2", "ws", 20, "p_error", 0.06);
    expect_spoiled(e, "P3a", "ww", 20, "q_error", 16);
    expect_spoiled(e, "P3b", "ww", 20, "q_error", 5);
    expect_spoiled(e, "P3c", "ww", 20, "p_error", 0.01);
    expect_spoiled(e, "P4", "vimco", 20, "q_error", 10);
    expect_spoiled(e, "P8", "ws", 20, "truncated", 1);
    for (int seed = 1; seed <= SEEDS; seed++) {
        find("ws", 20, seed)->labels[0][1] = "(S (NP ears) (VP (V saw) (NP stars)))";
        find("vimco", 20, seed)->labels[0][1] = high;
        find("ww", 20, seed)->labels[0][0] = low;
        find("ws", 20, seed)->shown[1][0] = 0.6;
        if (seed > 1) continue;
        expect(e, "P5", RWS_UNDECIDED); /* one run of five does not decide */
        expect(e, "P7", RWS_UNDECIDED);
    }
    expect(e, "P5", RWS_FAILS);
    expect(e, "P6", RWS_FAILS);
    expect(e, "P9", RWS_FAILS);
    expect(e, "P7", RWS_FAILS);
    for (int seed = 1; seed <= SEEDS; seed++) find("ws", 20, seed)->result.n_shots = 0;
    expect(e, "P5", RWS_UNKNOWN);
    expect(e, "P7", RWS_UNKNOWN);
}

/* ---- images */

/* Final numbers of WW and VIMCO, with K = 2, 5, 10, 20. */
typedef struct {
    const char *model;
    double      evidence[2][4], kl[2][4];
    double      noise; /* of the evidence from one evaluation to the next: that of WW, a third of VIMCO's */
    int         K[4];
} pair;

static const pair air = {"air",
                         {{-140, -130, -125, -120}, {-130, -125, -120, -121}},
                         {{20, 18, 16, 15}, {22, 24, 26, 30}},
                         1,
                         {2, 5, 10, 20}};
static const pair sbn = {
    "sbn", {{-110, -105, -96, -95}, {-105, -103, -96.1, -95.1}}, {{5, 4, 3, 2}, {12, 13, 14, 15}}, 0, {2, 5, 50, 500}};

static void add_pair(const pair *p)
{
    static const char *const methods[] = {"ww", "vimco"};
    for (int m = 0; m < 2; m++) {
        for (int k = 0; k < 4; k++) {
            for (int seed = 1; seed <= SEEDS; seed++) {
                made *r = add(p->model, methods[m], p->K[k], seed);
                set(r, "air_gray", "0");
                if (m == 1) set(r, "vimco_air_ref", "0");
                if (m == 1) set(r, "vimco_no_logK", "0");
                measure(r, "log_evidence", -500 + 10 * (m == 0), p->evidence[m][k]);
                for (int i = 0; i < POINTS; i++) r->values[0][i] += (m ? 3 : 1) * p->noise * (i % 2) * seed;
                const double moves = p->noise * (m ? 0.2 : 0.02) * seed;
                measure(r, "final_log_evidence", p->evidence[m][k], p->evidence[m][k] + moves);
                measure(r, "final_kl", p->kl[m][k], p->kl[m][k] + moves);
            }
        }
    }
}

static void test_air(void **state)
{
    (void)state;
    const rws_experiment *e = &rws_experiment_air;
    add_pair(&air);
    expect_all_hold(e);
    expect_spoiled(e, "A2", "ww", 20, "final_log_evidence", -200);
    expect_spoiled(e, "A3", "vimco", 20, "final_log_evidence", -100);
    expect_spoiled(e, "A4a", "ww", 5, "final_kl", 40);
    expect_spoiled(e, "A5a", "vimco", 20, "final_kl", 1);
    expect_spoiled(e, "A5b", "ww", 20, "final_kl", 100);
    for (int k = 0; k < 4; k++)
        for (int seed = 1; seed <= SEEDS; seed++)
            for (int i = 0; i < POINTS; i++) find("ww", particles[k], seed)->values[0][i] += 100 * (i % 2);
    expect(e, "A1a", RWS_FAILS);
}

/* Two seeds decide nothing, and neither do runs of less than half of the paper's iterations. */
static void test_short(void **state)
{
    (void)state;
    const rws_experiment *e = &rws_experiment_air;
    add_pair(&air);
    for (int i = 0; i < results.n; i++) runs[i].result.iteration = runs[i].result.iterations = FULL / 2;
    expect(e, "A2", RWS_HOLDS);
    for (int i = 0; i < results.n; i++) runs[i].result.iteration = runs[i].result.iterations = FULL / 2 - 1;
    expect(e, "A2", RWS_UNDECIDED);
    assert_non_null(strstr(check(e, "A2", NULL).numbers, "999999 of 2000000 iterations"));
    for (int i = 0; i < results.n; i++) {
        runs[i].result.iteration = runs[i].result.iterations = FULL;
        if (atoi(rws_result_get(&runs[i].result, "seed")) > 2) runs[i].result.iteration = 999;
    }
    for (const rws_claim *c = e->claims; c->name; c++) expect(e, c->name, RWS_UNDECIDED);
    assert_int_equal(check(e, "A2", NULL).seeds, 2);
    char            note[160];
    const rws_query q = {.results = all(), .iterations = 2 * FULL};
    assert_string_equal(rws__query_note(&q, note, sizeof note), "2 seeds, 2000000 of 4000000 iterations");
}

static void test_sbn(void **state)
{
    (void)state;
    const rws_experiment *e = &rws_experiment_sbn;
    add_pair(&sbn);
    expect_all_hold(e);
    expect_spoiled(e, "S2a", "vimco", 2, "final_log_evidence", -120);
    expect_spoiled(e, "S2b", "vimco", 50, "final_log_evidence", -90);
    expect_spoiled(e, "S3", "ww", 50, "final_kl", 20);
    for (int seed = 1; seed <= SEEDS; seed++)
        for (int i = 0; i < POINTS; i++) find("ww", 5, seed)->values[0][i] = -600;
    expect(e, "S1", RWS_FAILS);
}

/* ---- what is written */

static void test_texts(void **state)
{
    (void)state;
    rws_checked checked[64];
    add_gmm(SEEDS);
    const int n = rws__paper_check(&rws_experiment_gmm, all(), checked, 64);
    char     *text = rws__paper_markdown(checked, n);
    int       lines = 0;
    for (const char *c = text; *c; c++) lines += *c == '\n';
    assert_int_equal(lines, n + 2);
    assert_non_null(strstr(
        text, "| G1 | With K = 2, δ-WW has the lowest p error and the lowest q error of all methods. | **holds** (5 "
              "seeds). p error"));
    assert_non_null(strstr(text, "| settings of the text |\n"));
    assert_non_null(strstr(text, "**not enough runs**"));
    free(text);
    text = rws__paper_json(checked, n);
    assert_non_null(strstr(text, "\"claim\": \"G1\""));
    free(text);
}

/* The number of files that are drawn. */
static int n_drawn(const rws_experiment *e)
{
    rws_error err = {""};
    int       n = 0;
    assert_int_equal(folder_make(NULL), 0);
    must(rws__paper_draw(e, all(), folder, &err), &err);
    DIR *d = opendir(folder);
    for (struct dirent *entry; (entry = readdir(d));) {
        struct stat about;
        if (entry->d_name[0] == '.') continue;
        assert_int_equal(stat(in_folder(entry->d_name), &about), 0);
        assert_true(about.st_size > 2000);
        n++;
    }
    closedir(d);
    assert_int_equal(folder_remove(NULL), 0);
    return n;
}

static void test_figures(void **state)
{
    (void)state;
    add_gmm(2);
    assert_int_equal(n_drawn(&rws_experiment_gmm), 9);
    add_pcfg();
    assert_int_equal(n_drawn(&rws_experiment_pcfg), 12);
    add_pair(&air);
    assert_int_equal(n_drawn(&rws_experiment_air), 3);
    results.n = 0; /* figures of curves are drawn also without runs */
    assert_int_equal(n_drawn(&rws_experiment_gmm_near), 3);
    assert_int_equal(n_drawn(&rws_experiment_pcfg), 12);
    assert_int_equal(n_drawn(&rws_experiment_sbn), 3);
}

static void test_sweeps(void **state)
{
    (void)state;
    for (int i = 0; rws_experiments[i]; i++) {
        const rws_experiment *e = rws_experiments[i];
        for (int quick = 0; quick < 2; quick++) {
            const char *text = quick ? e->quick : e->sweep;
            rws_sweep  *s;
            rws_error   err = {""};
            if (rws_sweep_parse(text, strlen(text), e->name, &s, &err) != RWS_OK) fail_msg("%s", err.text);
            assert_true(s->n >= 4);
            rws_sweep_free(s);
        }
    }
}

/* Every claim answers a figure or is one of few that need none, and every name that a figure gives is a claim's. */
static void test_answers(void **state)
{
    (void)state;
    for (int i = 0; rws_experiments[i]; i++) {
        const rws_experiment *e = rws_experiments[i];
        for (const rws_paper_figure *f = e->figures; f->file; f++) {
            char names[256];
            for (const rws_paper_figure *g = e->figures; g < f; g++) assert_string_not_equal(g->caption, f->caption);
            if (!f->question) continue;
            snprintf(names, sizeof names, "%s", f->answers);
            for (char *name = strtok(names, " "); name; name = strtok(NULL, " ")) {
                const rws_claim *c = e->claims;
                while (c->name && strcmp(c->name, name) != 0) c++;
                if (!c->name) fail_msg("%s: figure %s names the claim %s, which is not there", e->name, f->file, name);
            }
        }
    }
}

static void test_report(void **state)
{
    (void)state;
    rws_checked checked[64];
    add_gmm(5);
    find("dww", 2, 1)->result.failure = "It broke.";
    const int n = rws__paper_check(&rws_experiment_gmm, all(), checked, 64);
    char     *text = rws__paper_document(&rws_experiment_gmm, all(), checked, n);
    assert_non_null(strstr(text, "# gmm: "));
    assert_non_null(strstr(text, "1 failed"));
    assert_non_null(strstr(text, "](gmm-hinton.png)\n\n*Are branches pruned"));
    assert_non_null(strstr(text, "holds: G7a"));
    assert_non_null(strstr(text, "| G1 | "));
    free(text);
    text = rws__paper_csv(&rws_experiment_gmm, all());
    int lines = 0, finished = 0;
    for (const char *c = text; *c; c++) lines += *c == '\n';
    for (int i = 0; i < results.n; i++) finished += strcmp(rws_result_state(&results.runs[i]), "finished") == 0;
    assert_int_equal(lines, finished + 1);
    assert_non_null(strstr(text, "model,method,settings,particles,seed,iterations,seconds"));
    free(text);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(test_gmm),     TEST(test_pruning), TEST(test_comparison), TEST(test_gmm_near),
        TEST(test_missing), TEST(test_pcfg),    TEST(test_air),        TEST(test_sbn),
        TEST(test_texts),   TEST(test_figures), TEST(test_sweeps),     TEST(test_answers),
        TEST(test_short),   TEST(test_gmm_snr), TEST(test_gmm_tried),  TEST(test_report),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
