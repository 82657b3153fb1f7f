/* test_given.c - training on data some of whose choices are given, and sites whose gradient comes by score: the expected
 * gradients are compared with sums over all choices and with integrals. */
#include "lib/estimator/exact.h"
#include "files.h"
#include "trained.h"

#include <stdio.h>
#include <string.h>

/* ---- a model whose choices can be listed: z1 of 3, then z2 of 2, then a datum of 4 */

enum { Z1 = 3, Z2 = 2, X = 4, N_DATA = 5, OUTCOMES = Z1 * Z2 };

typedef struct {
    rws_param *first, *second, *emit; /* theta: logits of z1, of z2 by z1, of x by both */
    rws_param *find1, *find2;         /* phi: logits of z1 by x, of z2 by x and z1 */
} chain;

enum { FIELD_X, FIELD_Z1, FIELD_Z2, FIELD_DATUM };

static bool labels_are_marked = true;

static void fill(rws_param *p, rws_random *random)
{
    for (size_t i = 0; i < rws__param_size(p); i++) rws_param_values(p)[i] = (float)rws_random_normal(random);
}

static rws_status setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    chain *m = rws_setup_alloc(s, sizeof *m);
    if (!m) return rws_fail(err, RWS_NO_MEMORY, "There is no memory.");
    rws_setup_field(s, "x", 1);
    rws_setup_label(s, "known z1", 1);
    rws_setup_label_series(s, "known z2", 1, 2);
    rws_setup_label(s, "datum", 1);
    if (labels_are_marked) {
        rws_setup_label_site(s, "known z1", "z1");
        rws_setup_label_site(s, "known z2", "z2");
    }
    m->first = rws_setup_param(s, RWS_THETA, "first", 1, Z1, RWS_ZERO);
    m->second = rws_setup_param(s, RWS_THETA, "second", Z1, Z2, RWS_ZERO);
    m->emit = rws_setup_param(s, RWS_THETA, "emit", OUTCOMES, X, RWS_ZERO);
    m->find1 = rws_setup_param(s, RWS_PHI, "find1", X, Z1, RWS_ZERO);
    m->find2 = rws_setup_param(s, RWS_PHI, "find2", X * Z1, Z2, RWS_ZERO);
    rws_param *all[] = {m->first, m->second, m->emit, m->find1, m->find2};
    for (int i = 0; i < 5; i++) fill(all[i], random);
    *state = m;
    return RWS_OK;
}

/* Datum 0 has both labels, datum 1 that of z2, datum 2 that of z1, data 3 and 4 none. -1: not known. */
static const int data_x[N_DATA] = {1, 3, 0, 2, 1}, data_z1[N_DATA] = {2, -1, 1, -1, -1},
                 data_z2[N_DATA] = {0, 1, -1, -1, -1};

static float first_number; /* of the data */

static rws_status data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                       float *const *fields, rws_error *err)
{
    (void)state, (void)split, (void)random, (void)err;
    for (int i = 0; i < n; i++) {
        const int d = (int)((first + (uint64_t)i) % N_DATA);
        float    *series = fields[FIELD_Z2] + 3 * (size_t)i;
        fields[FIELD_X][i] = (float)data_x[d];
        fields[FIELD_Z1][i] = data_z1[d] < 0 ? NAN : (float)data_z1[d];
        series[0] = data_z2[d] < 0 ? (d == 3 ? NAN : 0) : 1;
        series[1] = (float)data_z2[d];
        series[2] = 0;
        fields[FIELD_DATUM][i] = first_number + (float)d;
    }
    return RWS_OK;
}

static rws_var row(rws_path *path, const rws_param *p, rws_var index, int n)
{
    return rws_row(path, rws_parameter(path, p), n, index);
}

static rws_var pair(rws_path *path, rws_var a, int n, rws_var b)
{
    return rws_add(path, rws_affine(path, a, (float)n, 0), b);
}

static void guide(rws_path *path, const void *state)
{
    const chain  *m = state;
    const rws_var x = rws_observed(path, "x");
    const rws_var z1 = rws_categorical(path, "z1", row(path, m->find1, x, Z1));
    rws_categorical(path, "z2", row(path, m->find2, pair(path, x, Z1, z1), Z2));
}

static void model(rws_path *path, const void *state)
{
    const chain  *m = state;
    const rws_var z1 = rws_categorical(path, "z1", rws_parameter(path, m->first));
    const rws_var z2 = rws_categorical(path, "z2", row(path, m->second, z1, Z2));
    rws_categorical(path, "x", row(path, m->emit, pair(path, z1, Z2, z2), X));
}

static const rws_model chained = {.abi = RWS_ABI,
                                  .name = "chained",
                                  .help = "two choices and a datum",
                                  .defaults = {.batch = N_DATA, .particles = 2, .n_test = N_DATA, .shards = 2},
                                  .setup = setup,
                                  .data = data,
                                  .guide = guide,
                                  .model = model};

static rws_trainer *trainer(rws_config c)
{
    c.model = "chained";
    c.seed = 3;
    if (!c.method) c.method = "ww";
    return trainer_for(&c, &chained);
}

/* ---- the same by enumeration */

typedef struct {
    size_t       first, second, emit, find1, find2, size;
    const float *all;
} twin;

static twin twin_of(rws_trainer *t)
{
    const rws_params *p = rws__trainer_state_of(t).params;
    return (twin){param_of(p, "first")->offset,
                  param_of(p, "second")->offset,
                  param_of(p, "emit")->offset,
                  param_of(p, "find1")->offset,
                  param_of(p, "find2")->offset,
                  p->size,
                  p->value};
}

/* log softmax of n logits at index i; adds `by` times its gradient, unless gradient is NULL. */
static double log_choice(const twin *w, size_t at, int n, int i, double by, double *gradient)
{
    double l[X];
    for (int k = 0; k < n; k++) l[k] = (double)w->all[at + (size_t)k];
    const double total = exact_log_sum(l, n);
    for (int k = 0; k < n && gradient; k++) gradient[at + (size_t)k] += by * ((k == i) - exp(l[k] - total));
    return l[i] - total;
}

static double log_p(const twin *w, int x, int z1, int z2, double by, double *gradient)
{
    return log_choice(w, w->first, Z1, z1, by, gradient) +
           log_choice(w, w->second + (size_t)(z1 * Z2), Z2, z2, by, gradient) +
           log_choice(w, w->emit + (size_t)((z1 * Z2 + z2) * X), X, x, by, gradient);
}

static double log_q1(const twin *w, int x, int z1, double by, double *gradient)
{
    return log_choice(w, w->find1 + (size_t)(x * Z1), Z1, z1, by, gradient);
}

static double log_q2(const twin *w, int x, int z1, int z2, double by, double *gradient)
{
    return log_choice(w, w->find2 + (size_t)((x * Z1 + z1) * Z2), Z2, z2, by, gradient);
}

/* What a particle of datum d may turn out to be: chance and log-weight; z = z1 * Z2 + z2. */
typedef struct {
    int    n, z[OUTCOMES];
    double chance[OUTCOMES], l[OUTCOMES];
} law;

static double defended(double log_q, int n, double delta)
{
    return log((1 - delta) * exp(log_q) + delta / n);
}

static law law_of(const twin *w, int d, double delta)
{
    law o = {0};
    for (int z = 0; z < OUTCOMES; z++) {
        const int    z1 = z / Z2, z2 = z % Z2, x = data_x[d];
        const double q1 = defended(log_q1(w, x, z1, 0, NULL), Z1, delta);
        const double q2 = defended(log_q2(w, x, z1, z2, 0, NULL), Z2, delta);
        if ((data_z1[d] >= 0 && data_z1[d] != z1) || (data_z2[d] >= 0 && data_z2[d] != z2)) continue;
        const double log_chance = (data_z1[d] < 0 ? q1 : 0) + (data_z2[d] < 0 ? q2 : 0);
        o.z[o.n] = z;
        o.chance[o.n] = exp(log_chance);
        o.l[o.n++] = log_p(w, x, z1, z2, 0, NULL) - log_chance;
    }
    return o;
}

/* Adds the score of what was drawn for datum d, `drawn` times, and of what was given, `given` times. */
static void add_scores(const twin *w, int d, int z, double drawn, double given, double *gradient)
{
    log_q1(w, data_x[d], z / Z2, data_z1[d] < 0 ? drawn : given, gradient);
    log_q2(w, data_x[d], z / Z2, z % Z2, data_z2[d] < 0 ? drawn : given, gradient);
}

/* E over two particles: theta's gradient by w; phi's by `wake` times a, and by w for what was given. */
static void add_pairs(const twin *w, int d, double delta, bool theta, exact_coefficients a, double wake, bool labels,
                      double *gradient)
{
    const law o = law_of(w, d, delta);
    for (int i = 0; i < o.n; i++)
        for (int j = 0; j < o.n; j++) {
            const int    at[] = {i, j};
            const double l[] = {o.l[i], o.l[j]}, chance = o.chance[i] * o.chance[j] / N_DATA;
            double       by[2], weight[2];
            exact_w(l, 2, NULL, weight);
            if (a) a(l, 2, NULL, by);
            for (int k = 0; k < 2; k++) {
                const int z = o.z[at[k]];
                if (theta) log_p(w, data_x[d], z / Z2, z % Z2, chance * weight[k], gradient);
                add_scores(w, d, z, a ? chance * wake * by[k] : 0, labels ? chance * weight[k] : 0, gradient);
            }
        }
}

static void add_sleep(const twin *w, double by, double *gradient)
{
    for (int x = 0; x < X; x++)
        for (int z = 0; z < OUTCOMES; z++) {
            const double p = by * exp(log_p(w, x, z / Z2, z % Z2, 0, NULL));
            log_q1(w, x, z / Z2, p, gradient);
            log_q2(w, x, z / Z2, z % Z2, p, gradient);
        }
}

static const struct {
    const char        *method;
    exact_coefficients a;
    double             wake, sleep, delta;
} known[] = {
    {"ww", exact_w, 1, 0, 0},
    {"ws", NULL, 0, 1, 0},
    {"wws", exact_w, 0.5, 0.5, 0},
    {"dww", exact_w, 1, 0, 0.2},
    {"reinforce", exact_reinforce, 1, 0, 0},
    {"rloo", exact_rloo, 1, 0, 0},
    {"vimco", exact_vimco, 1, 0, 0},
    {"nvil", exact_reinforce, 1, 0, 0},
};

enum { N_KNOWN = sizeof known / sizeof *known };

static void expected_gradient(const twin *w, int i, double *right)
{
    memset(right, 0, w->size * sizeof *right);
    for (int d = 0; d < N_DATA; d++) {
        const bool two = known[i].delta > 0; /* theta and phi have phases of their own */
        add_pairs(w, d, 0, true, two ? NULL : known[i].a, known[i].wake, !two, right);
        if (two) add_pairs(w, d, known[i].delta, false, known[i].a, 1, true, right);
    }
    if (known[i].sleep > 0) add_sleep(w, known[i].sleep, right);
}

static void gradients_are_right(void **state)
{
    (void)state;
    for (int i = 0; i < N_KNOWN; i++) {
        /* Every second method has the two particles of a datum in two shards. */
        rws_trainer *t = trainer((rws_config){.method = known[i].method, .particle_shards = 1 + i % 2});
        const twin   w = twin_of(t);
        double      *right = calloc(w.size, sizeof *right);
        expected_gradient(&w, i, right);
        assert_mean(known[i].method, t, right, rws__trainer_state_of(t).params->first[RWS_PHI + 1], 4000, 0);
        free(right);
        rws_trainer_free(t);
    }
}

/* With all choices given, the gradient is that of log p(x, z) + log q(z | x), without any noise. */
static int give_all(void *context, uint64_t iteration, int datum, const float *const *fields,
                    const rws_choice **choices)
{
    static const float values[Z1] = {0, 1, 2};
    static rws_choice  given[2];
    int               *calls = context;
    (void)iteration;
    assert_true(fields[FIELD_DATUM][0] == (float)datum && fields[FIELD_X][0] == (float)data_x[datum]);
    ++*calls;
    /* all data of a batch share the list here, which lasts */
    given[0] = (rws_choice){.site = "z1", .dim = 1, .value = &values[1]};
    given[1] = (rws_choice){.site = "z2", .dim = 1, .value = &values[0]};
    *choices = given;
    return 2;
}

static void a_caller_gives_choices(void **state)
{
    (void)state;
    const char *methods[] = {"ww", "vimco", "reinforce", "rloo"};
    for (int j = 0; j < 8; j++) {
        const int    k = j % 4, cut = 1 + j / 4; /* shards of a datum's particles */
        rws_trainer *t = trainer((rws_config){.method = methods[k], .particles = 3, .particle_shards = cut});
        const twin   w = twin_of(t);
        double      *right = calloc(w.size, sizeof *right);
        float       *g = calloc(w.size, sizeof *g), *as_float = calloc(w.size, sizeof *as_float);
        rws_error    err = {""};
        int          calls = 0;
        must(rws_trainer_give(t, give_all, &calls, &err), &err);
        for (int d = 0; d < N_DATA; d++) {
            log_p(&w, data_x[d], 1, 0, 1.0 / N_DATA, right);
            log_q1(&w, data_x[d], 1, 1.0 / N_DATA, right);
            log_q2(&w, data_x[d], 1, 0, 1.0 / N_DATA, right);
        }
        for (size_t i = 0; i < w.size; i++) as_float[i] = (float)right[i];
        gradient_of(t, 0, g);
        assert_int_equal(calls, N_DATA);
        assert_close(as_float, g, w.size, 1e-5, methods[k]);
        must(rws_trainer_give(t, NULL, NULL, &err), &err); /* labels again */
        gradient_of(t, 0, g);
        assert_int_equal(calls, N_DATA);
        free(right), free(g), free(as_float);
        rws_trainer_free(t);
    }
}

static int give_or_fail(void *context, uint64_t iteration, int datum, const float *const *fields,
                        const rws_choice **choices)
{
    int calls = 0;
    return *(const bool *)context && datum == N_DATA - 1 ? -1 : give_all(&calls, iteration, datum, fields, choices);
}

/* A function that fails lets the step fail before anything has moved. */
static void a_caller_fails(void **state)
{
    (void)state;
    rws_trainer   *t = trainer((rws_config){.method = "ww", .particles = 3});
    const size_t   size = rws_trainer_size(t);
    float         *g = calloc(size, sizeof *g);
    rws_error      err = {""};
    bool           fails = false;
    rws_param_view v;
    must(rws_trainer_give(t, give_or_fail, &fails, &err), &err);
    must(rws_trainer_step(t, &err), &err);
    assert_true(rws_trainer_param(t, 0, &v));
    const float before = v.values[0];
    fails = true;
    assert_refused(rws_trainer_step(t, &err), RWS_BAD_INPUT, &err, "gives choices failed", "of iteration 2.");
    assert_refused(rws_trainer_gradient(t, RWS_TRAIN, 0, g, size, &err), RWS_BAD_INPUT, &err, "gives choices",
                   "failed");
    assert_true(rws_trainer_iteration(t) == 1 && v.values[0] == before);
    fails = false;
    must(rws_trainer_step(t, &err), &err);
    assert_int_equal(rws_trainer_iteration(t), 2);
    free(g);
    rws_trainer_free(t);
}

/* What a choice of the function lacks; for datum 1 only. */
typedef enum { LACKS_SITE, LACKS_VALUE, LACKS_VISIT, LACKS_LIST, LACKS_COUNT, N_LACKS } lack;

static int give_nonsense(void *context, uint64_t iteration, int datum, const float *const *fields,
                         const rws_choice **choices)
{
    static const float one = 1;
    static rws_choice  given;
    const lack         what = *(const lack *)context;
    (void)iteration, (void)fields;
    given = (rws_choice){.site = what == LACKS_SITE ? NULL : "z1",
                         .visit = what == LACKS_VISIT ? -1 : 0,
                         .dim = 1,
                         .value = what == LACKS_VALUE ? NULL : &one};
    if (datum != 1) return 0;
    if (what != LACKS_LIST) *choices = &given;
    return what == LACKS_COUNT ? -2 : 1;
}

static void a_caller_gives_nonsense(void **state)
{
    (void)state;
    for (lack what = 0; what < N_LACKS; what++) {
        rws_trainer *t = trainer((rws_config){.method = "ww", .particles = 3});
        rws_error    err = {""};
        must(rws_trainer_give(t, give_nonsense, &what, &err), &err);
        assert_refused(rws_trainer_step(t, &err), RWS_BAD_INPUT, &err, "is wrong about datum 1: ",
                       what < LACKS_LIST ? "Given choice 0 needs a site, a value and a visit" : "no list of them");
        assert_int_equal(rws_trainer_iteration(t), 0);
        rws_trainer_free(t);
    }
}

/* ---- a memory of traces, written outside of the library: the best trace that was ever found for each datum */

typedef struct {
    float      z[N_DATA][2];
    double     log_p[N_DATA];
    rws_choice choices[N_DATA][2];
} memory;

static int remember(void *context, uint64_t iteration, int datum, const float *const *fields,
                    const rws_choice **choices)
{
    (void)iteration, (void)datum;
    memory   *m = context;
    const int d = (int)fields[FIELD_DATUM][0];
    if (m->log_p[d] == -INFINITY) return 0;
    for (int k = 0; k < 2; k++)
        m->choices[d][k] = (rws_choice){.site = k ? "z2" : "z1", .dim = 1, .value = &m->z[d][k]};
    *choices = m->choices[d];
    return 2;
}

static void propose(rws_trainer *t, memory *m, uint64_t seed)
{
    for (int d = 0; d < N_DATA; d++) {
        rws_answers *a;
        rws_error    err = {""};
        must(rws_trainer_ask(t, &(rws_question){.test = d, .n_particles = 10, .seed = seed, .particles = true}, &a,
                             &err),
             &err);
        for (int i = 0; i < a->n_weighted; i++) {
            const rws_weighted *w = &a->particles[i];
            if (!(w->log_p > m->log_p[d])) continue;
            m->log_p[d] = w->log_p;
            for (int k = 0; k < 2; k++) m->z[d][k] = w->choices[k].value[0];
        }
        rws_answers_free(a);
    }
}

static void memorised_traces_are_learned(void **state)
{
    (void)state;
    rws_trainer *t = trainer((rws_config){.lr = "3e-2"});
    memory       m;
    rws_error    err = {""};
    for (int d = 0; d < N_DATA; d++) m.log_p[d] = -INFINITY;
    must(rws_trainer_give(t, remember, &m, &err), &err);
    for (uint64_t i = 0; i < 200; i++) {
        propose(t, &m, i);
        steps(t, 1);
    }
    const twin w = twin_of(t);
    for (int d = 0; d < N_DATA; d++) { /* guide and model agree on the memorised trace of each datum */
        const int    z1 = (int)m.z[d][0], z2 = (int)m.z[d][1];
        const double log_q = log_q1(&w, data_x[d], z1, 0, NULL) + log_q2(&w, data_x[d], z1, z2, 0, NULL);
        if (!(log_q > log(0.8))) fail_msg("datum %d: log q %g", d, log_q);
    }
    assert_true(m.z[0][0] == m.z[4][0] && m.z[0][1] == m.z[4][1]); /* the same datum */
    rws_trainer_free(t);
}

/* ---- the same numbers however it is run */

static void assert_same_parameters(rws_trainer *a, rws_trainer *b)
{
    const rws_params *p = rws__trainer_state_of(a).params;
    assert_memory_equal(p->value, rws__trainer_state_of(b).params->value, p->size * sizeof(float));
}

static void batched_is_scalar_with_labels(void **state)
{
    (void)state;
    for (int i = 0; i < N_KNOWN; i++) {
        rws_trainer *a = trainer((rws_config){.method = known[i].method, .particles = 7}),
                    *b = trainer((rws_config){.method = known[i].method, .particles = 7, .scalar = true});
        const size_t n = rws_trainer_size(a);
        float       *g = calloc(n, sizeof *g), *h = calloc(n, sizeof *h);
        gradient_of(a, 0, g);
        gradient_of(b, 0, h);
        assert_close(g, h, n, 1e-4, known[i].method);
        free(g), free(h);
        rws_trainer_free(a);
        rws_trainer_free(b);
    }
}

static void threads_change_nothing_with_labels(void **state)
{
    (void)state;
    for (int i = 0; i < N_KNOWN; i++) {
        rws_trainer *a = trainer((rws_config){.method = known[i].method}),
                    *b = trainer((rws_config){.method = known[i].method, .threads = 3});
        steps(a, 20);
        steps(b, 20);
        assert_same_parameters(a, b);
        rws_trainer_free(a);
        rws_trainer_free(b);
    }
}

/* ---- choices from a file */

static const char file[] = "datum,site,visit,value\n"
                           "0, z1 ,0,2\n"
                           "# a comment\n"
                           "1,\"z2\",0,1\r\n"
                           "\n"
                           "2,z1,0,1\n"
                           "0,z2,0,0";

static rws_trainer *with_file(const char *method, const char *text, rws_error *err)
{
    static char  set[400];
    rws_trainer *t = NULL;
    spill("given.csv", text, strlen(text));
    snprintf(set, sizeof set, "given=%s", in_folder("given.csv"));
    const rws_config c = {.model = "chained", .seed = 3, .method = method, .set = {set}, .n_set = 1};
    (void)!rws_trainer_new(&c, &chained, &t, err);
    return t;
}

/* The file says what the labels say, and the file alone is enough. */
static void a_file_gives_choices(void **state)
{
    (void)state;
    rws_error    err = {""};
    rws_trainer *labels = trainer((rws_config){.method = "ww"});
    steps(labels, 15);
    for (int marked = 0; marked < 2; marked++) {
        labels_are_marked = marked;
        rws_trainer *t = with_file("ww", file, &err);
        if (!t) fail_msg("%s", err.text);
        steps(t, 15);
        assert_same_parameters(labels, t);
        rws_trainer_free(t);
    }
    rws_trainer_free(labels);
}

/* A label is a float, so that data 2^24 and 2^24 + 1 cannot be told apart. */
static void numbers_that_floats_do_not_tell_apart_are_refused(void **state)
{
    (void)state;
    rws_error    err = {""};
    rws_trainer *t = with_file("ww", file, &err);
    if (!t) fail_msg("%s", err.text);
    first_number = 0x1p24f;
    const rws_status status = rws_trainer_step(t, &err);
    first_number = 0;
    assert_int_equal(status, RWS_BAD_INPUT);
    if (!strstr(err.text, "The label \"datum\" is 16777216; choices are given to data with numbers from 0 to 16777215"))
        fail_msg("%s", err.text);
    rws_trainer_free(t);
}

static void a_run_goes_on_with_its_file(void **state)
{
    (void)state;
    rws_error    err = {""};
    rws_trainer *whole = with_file("vimco", file, &err), *part = with_file("vimco", file, &err), *rest = NULL;
    if (!whole || !part) fail_msg("%s", err.text);
    steps(whole, 20);
    must(rws_trainer_keep(part, in_folder("run"), &err), &err);
    steps(part, 8);
    must(rws_trainer_save(part, &err), &err);
    rws_trainer_free(part);
    must(rws_trainer_resume(in_folder("run"), NULL, &chained, &rest, &err), &err);
    steps(rest, 12);
    assert_same_parameters(whole, rest);
    rws_trainer_free(whole);
    rws_trainer_free(rest);
}

static void bad_files_are_refused(void **state)
{
    (void)state;
    const struct {
        const char *text, *message;
    } cases[] = {
        {"", "gives no choices"},
        {"datum,site,visit,value\n", "gives no choices"},
        {"0,z1,0\n", "line 1: it has no value; a line is datum,site,visit,value."},
        {"datum,site,visit,value\n0,z1,0,1,2\n", "line 2: it has more than four cells"},
        {"-1,z1,0,1\n", "the datum \"-1\""},
        {"16777216,z1,0,1\n", "the datum \"16777216\"; data are numbers from 0 to 16777215."},
        {"0,z1,first,1\n", "the visit \"first\""},
        {"0,z1,0,one\n", "the value \"one\", which is not a finite number"},
        {"0,z1,0,nan\n", "the value \"nan\", which is not a finite number"},
        {"0,,0,1\n", "names no site"},
        {"0,z1,0,1\n1,z1,0,1\n0,z1,0,2\n", "line 3: it gives a second value for site \"z1\" at visit 0 of datum 0."},
    };
    for (int i = 0; i < COUNT(cases); i++) {
        rws_error err = {""};
        assert_null(with_file("ww", cases[i].text, &err));
        if (!strstr(err.text, cases[i].message)) fail_msg("\"%s\" instead of \"%s\"", err.text, cases[i].message);
    }
    const char *methods[] = {"em", "concrete"};
    for (int i = 0; i < 2; i++) {
        rws_error err = {""};
        assert_null(with_file(methods[i], file, &err));
        assert_true(err.text[0]);
    }
}

/* What is wrong only when it is used stops the iteration, with a message; what is never used can be found out. */
static void wrong_choices_stop_the_iteration(void **state)
{
    (void)state;
    const struct {
        const char *text, *message;
    } cases[] = {
        {"2,z1,0,3\n", "The value given for site \"z1\" of datum 2 is 3, which is not a choice of 0 to 2."},
        {"1,z2,0,0 1\n", "Site \"z2\" of datum 1 has 1 number, but 2 are given."},
        {"0,z1,0,1\n0,z2,0,1\n0,z2,1,1\n",
         "A value is given for site \"z2\" (visit 1) of datum 0, but the guide does not visit it."},
    };
    labels_are_marked = false;
    for (int i = 0; i < COUNT(cases); i++) {
        rws_error    err = {""};
        rws_trainer *t = with_file("ww", cases[i].text, &err);
        if (!t) fail_msg("%s", err.text);
        assert_int_equal(rws_trainer_step(t, &err), RWS_BAD_INPUT);
        if (!strstr(err.text, cases[i].message)) fail_msg("\"%s\" instead of \"%s\"", err.text, cases[i].message);
        rws_trainer_free(t);
    }
    rws_error    err = {""};
    rws_trainer *t = with_file("ww", "0,z1,0,1\n1,z9,0,1\n", &err);
    if (!t) fail_msg("%s", err.text);
    assert_non_null(rws_trainer_unvisited(t));
    steps(t, 1); /* datum 1 is impossible, and counts nothing */
    assert_string_equal(rws_trainer_unvisited(t), "z9");
    rws_trainer_free(t);
    labels_are_marked = true;
}

/* ---- questions */

/* log p(x, given) and the posterior of the rest, against sums over all choices. */
static void questions_take_choices(void **state)
{
    (void)state;
    rws_trainer *t = trainer((rws_config){0});
    const twin   w = twin_of(t);
    for (int site = 0; site < 2; site++)
        for (int value = 0; value < (site ? Z2 : Z1); value++) {
            const float      v = (float)value;
            const rws_choice given = {.site = site ? "z2" : "z1", .dim = 1, .value = &v};
            const int        x = data_x[3];
            double           total = 0, share[OUTCOMES] = {0}, found[OUTCOMES] = {0};
            for (int z = 0; z < OUTCOMES; z++)
                if ((site ? z % Z2 : z / Z2) == value) total += share[z] = exp(log_p(&w, x, z / Z2, z % Z2, 0, NULL));
            rws_answers *a;
            rws_error    err = {""};
            must(rws_trainer_ask(
                     t,
                     &(rws_question){
                         .test = 3, .n_particles = 100000, .seed = 7, .particles = true, .given = &given, .n_given = 1},
                     &a, &err),
                 &err);
            const double error = sqrt((1 / a->ess - 1) / a->n_particles) + 1e-6;
            if (!(fabs(a->log_evidence - log(total)) < 6 * error))
                fail_msg("log p(x, given) is %g, not %g", a->log_evidence, log(total));
            for (int i = 0; i < a->n_weighted; i++) {
                const rws_weighted *p = &a->particles[i];
                const int           z1 = (int)p->choices[0].value[0], z2 = (int)p->choices[1].value[0];
                const double        q1 = log_q1(&w, x, z1, 0, NULL), q2 = log_q2(&w, x, z1, z2, 0, NULL);
                assert_true(p->choices[site].given && !p->choices[1 - site].given);
                assert_true(near(p->log_p, log_p(&w, x, z1, z2, 0, NULL), 1e-5));
                assert_true(near(p->log_q, site ? q1 : q2, 1e-5) && near(p->log_given, site ? q2 : q1, 1e-5));
                found[z1 * Z2 + z2] += p->weight;
            }
            for (int z = 0; z < OUTCOMES; z++)
                if (!(fabs(found[z] - share[z] / total) < 0.03)) fail_msg("%g, not %g", found[z], share[z] / total);
            rws_answers_free(a);
        }
    rws_trainer_free(t);
}

/* ---- declarations */

static const char *undeclared;

static rws_status wrong_setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    const rws_status status = setup(s, random, state, err);
    if (strcmp(undeclared, "gradient") == 0) rws_setup_gradient(s, "", RWS_SCORE);
    else if (strcmp(undeclared, "site x") == 0) rws_setup_label_site(s, "known z1", "x");
    else rws_setup_label_site(s, undeclared, "z2");
    return status;
}

static void wrong_declarations_are_refused(void **state)
{
    (void)state;
    const char *names[] = {"nothing", "x", "gradient", "site x", "known z1"};
    const char *messages[] = {"There is no label \"nothing\" to be the value of site \"z2\".",
                              "\"x\" is a field; only a label can be the value of site \"z2\".",
                              "rws_setup_gradient takes", "Choices are given for site \"x\", which is data.",
                              "Labels \"known z2\" and \"known z1\" are both the value of site \"z2\""};
    for (int i = 0; i < COUNT(names); i++) {
        rws_model    wrong = chained;
        rws_trainer *t = NULL;
        rws_error    err = {""};
        undeclared = names[i];
        wrong.setup = wrong_setup;
        assert_int_equal(rws_trainer_new(&(rws_config){.model = "chained"}, &wrong, &t, &err), RWS_BAD_INPUT);
        if (!strstr(err.text, messages[i])) fail_msg("\"%s\"", err.text);
    }
}

/* ---- sites whose gradient comes by score: a ~ normal, b ~ normal around a function of a, x ~ normal */

typedef struct {
    rws_param *theta, *phi;
} curve;

enum { THETA = 2, PHI = 5 };

static rws_status curve_setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    (void)random;
    curve *m = rws_setup_alloc(s, sizeof *m);
    if (!m) return rws_fail(err, RWS_NO_MEMORY, "There is no memory.");
    rws_setup_field(s, "x", 1);
    m->theta = rws_setup_param(s, RWS_THETA, "theta", 1, THETA, RWS_ZERO);
    m->phi = rws_setup_param(s, RWS_PHI, "phi", 1, PHI, RWS_ZERO);
    memcpy(rws_param_values(m->theta), (float[THETA]){0.3f, -0.2f}, sizeof(float[THETA]));
    memcpy(rws_param_values(m->phi), (float[PHI]){0.2f, -0.3f, 0.1f, 0.4f, -0.2f}, sizeof(float[PHI]));
    *state = m;
    return RWS_OK;
}

static const float curve_x = 0.7f;

static rws_status curve_data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                             float *const *fields, rws_error *err)
{
    (void)state, (void)split, (void)first, (void)random, (void)err;
    for (int i = 0; i < n; i++) fields[0][i] = curve_x;
    return RWS_OK;
}

static rws_var at(rws_path *path, const rws_param *p, int i)
{
    return rws_slice(path, rws_parameter(path, p), i, 1);
}

static void curve_guide(rws_path *path, const void *state)
{
    const curve  *m = state;
    const rws_var a = rws_normal(path, "a", at(path, m->phi, 0), rws_apply(path, RWS_EXP, at(path, m->phi, 1)));
    const rws_var mean = rws_add(path, at(path, m->phi, 2), rws_mul(path, at(path, m->phi, 3), a));
    rws_normal(path, "b", mean, rws_apply(path, RWS_EXP, at(path, m->phi, 4)));
}

static void curve_model(rws_path *path, const void *state)
{
    const curve  *m = state;
    const rws_var one = rws_constant(path, 1);
    const rws_var a = rws_normal(path, "a", at(path, m->theta, 0), one);
    const rws_var b = rws_normal(path, "b", rws_mul(path, at(path, m->theta, 1), a), one);
    rws_normal(path, "x", rws_add(path, rws_apply(path, RWS_TANH, a), b), one);
}

static rws_status scored_setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    rws_setup_gradient(s, "b", RWS_SCORE);
    return curve_setup(s, random, state, err);
}

static const rws_model curved = {.abi = RWS_ABI,
                                 .name = "curved",
                                 .help = "two continuous values and a datum",
                                 .defaults = {.batch = 1, .particles = 2, .n_test = 1, .shards = 1},
                                 .setup = curve_setup,
                                 .data = curve_data,
                                 .guide = curve_guide,
                                 .model = curve_model};

static double log_normal(double x, double mean, double sd)
{
    const double d = (x - mean) / sd;
    return -0.5 * d * d - log(sd) - 0.5 * log(2 * M_PI);
}

/* log p(x, a, b) / q(a, b | x) at the noise of both. */
static double curve_weight(const double *theta, const double *phi, double e1, double e2)
{
    const double x = (double)curve_x, s1 = exp(phi[1]), s2 = exp(phi[4]);
    const double a = phi[0] + s1 * e1, mean = phi[2] + phi[3] * a, b = mean + s2 * e2;
    return log_normal(a, theta[0], 1) + log_normal(b, theta[1] * a, 1) + log_normal(x, tanh(a) + b, 1) -
           log_normal(a, phi[0], s1) - log_normal(b, mean, s2);
}

/* E log((w_1 + w_2) / 2), by the trapezoidal rule, which is exact to rounding for such integrands. */
static double curve_bound(const double *theta, const double *phi)
{
    enum { N = 29 };
    const double  h = 12.0 / (N - 1);
    static double l[N * N], p[N * N];
    double        total = 0;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            const double e1 = -6 + i * h, e2 = -6 + j * h;
            l[i * N + j] = curve_weight(theta, phi, e1, e2);
            p[i * N + j] = h * h * exp(log_normal(e1, 0, 1) + log_normal(e2, 0, 1));
        }
    for (int i = 0; i < N * N; i++)
        for (int j = 0; j < N * N; j++) {
            const double top = fmax(l[i], l[j]), chance = p[i] * p[j];
            if (chance > 1e-16) total += chance * (top + log1p(exp(-fabs(l[i] - l[j]))) - log(2));
        }
    return total;
}

static void curve_gradient(double *right)
{
    double       all[THETA + PHI] = {(double)0.3f, (double)-0.2f, (double)0.2f, (double)-0.3f,
                                     (double)0.1f, (double)0.4f,  (double)-0.2f};
    const double h = 1e-4;
    for (int i = 0; i < THETA + PHI; i++) {
        const double was = all[i];
        all[i] = was + h;
        const double up = curve_bound(all, all + THETA);
        all[i] = was - h;
        right[i] = (up - curve_bound(all, all + THETA)) / (2 * h);
        all[i] = was;
    }
}

static double spread(rws_trainer *t, int i)
{
    double sum = 0, squares = 0;
    for (uint64_t k = 0; k < 2000; k++) {
        float g[THETA + PHI + 400];
        assert_true(rws_trainer_size(t) <= COUNT(g));
        gradient_of(t, k, g);
        sum += (double)g[i];
        squares += (double)g[i] * (double)g[i];
    }
    return squares / 2000 - sum * sum / 4e6;
}

/* Both sites reparameterised, both scored, and one of each: always the gradient of the same bound. */
static void sites_by_score_are_right(void **state)
{
    (void)state;
    const char *methods[] = {"reinforce", "rloo", "vimco", "nvil"};
    const char *sets[][2] = {{NULL, NULL},
                             {"site.a=score", "site.b=score"},
                             {"site.a=score", "site.b=reparameterised"},
                             {"site.a=reparameterised", "site.b=score"}};
    double      right[THETA + PHI];
    curve_gradient(right);
    for (int m = 0; m < 4; m++)
        for (int k = 0; k < 4; k++) {
            char             what[80];
            const rws_config c = {.model = "curved",
                                  .method = methods[m],
                                  .seed = 5,
                                  .set = {sets[k][0], sets[k][1]},
                                  .n_set = sets[k][0] ? 2 : 0};
            rws_trainer     *t = trainer_for(&c, &curved);
            snprintf(what, sizeof what, "%s, %s %s", methods[m], sets[k][0] ? sets[k][0] : "",
                     sets[k][1] ? sets[k][1] : "");
            assert_mean(what, t, right, THETA + PHI, 6000, 1e-6);
            rws_trainer_free(t);
        }
}

/* The program chooses, the user chooses otherwise; the score has more spread. */
static void the_user_overrules_the_program(void **state)
{
    (void)state;
    rws_model scored = curved;
    scored.setup = scored_setup;
    rws_config   c = {.model = "curved", .method = "rloo", .seed = 5};
    rws_trainer *plain = trainer_for(&c, &curved), *by_program = trainer_for(&c, &scored);
    c.set[0] = "site.b=reparameterised";
    c.n_set = 1;
    rws_trainer *by_user = trainer_for(&c, &scored);
    c.set[0] = "site.b=score";
    rws_trainer *by_user_too = trainer_for(&c, &curved);
    const double v = spread(plain, THETA + 2);
    assert_true(spread(by_user, THETA + 2) == v);
    assert_true(spread(by_program, THETA + 2) > 1.2 * v);
    assert_true(spread(by_user_too, THETA + 2) == spread(by_program, THETA + 2));
    rws_trainer *all[] = {plain, by_program, by_user, by_user_too};
    for (int i = 0; i < 4; i++) rws_trainer_free(all[i]);
}

static void sites_are_checked(void **state)
{
    (void)state;
    rws_trainer *t = NULL;
    rws_error    err = {""};
    rws_config   c = {.model = "curved", .set = {"site.b=scores"}, .n_set = 1};
    assert_int_equal(rws_trainer_new(&c, &curved, &t, &err), RWS_BAD_INPUT);
    assert_string_equal(err.text, "Setting site.b is score, reparameterised or sum, not \"scores\".");
    c.set[0] = "site.=score";
    assert_int_equal(rws_trainer_new(&c, &curved, &t, &err), RWS_BAD_INPUT);
    c.set[0] = "site.c=score";
    t = trainer_for(&c, &curved);
    steps(t, 1);
    assert_string_equal(rws_trainer_unvisited(t), "c");
    rws_trainer_free(t);
    c.set[0] = "site.z1=reparameterised";
    t = trainer_for(&c, &chained);
    assert_int_equal(rws_trainer_step(t, &err), RWS_BAD_INPUT);
    assert_non_null(strstr(err.text, "Site \"z1\" is categorical, which cannot be reparameterised"));
    rws_trainer_free(t);
    c.set[0] = "site.z1=score";
    t = trainer_for(&c, &chained);
    steps(t, 1);
    assert_null(rws_trainer_unvisited(t));
    rws_trainer_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_right),
        cmocka_unit_test(a_caller_gives_choices),
        cmocka_unit_test(a_caller_fails),
        cmocka_unit_test(a_caller_gives_nonsense),
        cmocka_unit_test(memorised_traces_are_learned),
        cmocka_unit_test(batched_is_scalar_with_labels),
        cmocka_unit_test(threads_change_nothing_with_labels),
        cmocka_unit_test_setup_teardown(a_file_gives_choices, folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(numbers_that_floats_do_not_tell_apart_are_refused, folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(a_run_goes_on_with_its_file, folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(bad_files_are_refused, folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(wrong_choices_stop_the_iteration, folder_make, folder_remove),
        cmocka_unit_test(questions_take_choices),
        cmocka_unit_test(wrong_declarations_are_refused),
        cmocka_unit_test(sites_by_score_are_right),
        cmocka_unit_test(the_user_overrules_the_program),
        cmocka_unit_test(sites_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
