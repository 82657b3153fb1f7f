/* test_inputs.c - models that are conditional on inputs: evidence, gradients and dreams against sums over all choices and against
 * integrals that are known; and what programs must not do with the data. Error level of sampled gradients: see assert_mean. */
#include "files.h"
#include "trained.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- a choice of 3 and a datum of 2, both by a number u and by a series w of up to 2 numbers, which only the model reads */

enum { Z = 3, X = 2, ITEMS = 2, N_DATA = 4, FIELD_U = 0, FIELD_X = 1, FIELD_W = 2 };

static const float us[N_DATA] = {-1, 0.5f, 2, 0.5f}, xs[N_DATA] = {0, 1, 1, 0};
static const float ws[N_DATA][1 + ITEMS] = {{0}, {1, 0.7f}, {2, -0.4f, 1.1f}, {1, -0.9f}};

typedef struct {
    rws_param *prior, *slope, *emit; /* theta: logits of z, how they grow with u + sum w; logits of x by z */
    rws_param *guess, *turn;         /* phi: logits of z by x, and how they grow with u */
} mixture;

static void fill(rws_param *p, rws_random *random)
{
    const size_t n = rws__param_size(p);
    for (size_t i = 0; i < n; i++) rws_param_values(p)[i] = (float)rws_random_normal(random);
}

static rws_status mixture_setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    mixture *m = rws_setup_alloc(s, sizeof *m);
    if (!m) return rws_fail(err, RWS_NO_MEMORY, "There is no memory.");
    rws_setup_input(s, "u", 1);
    rws_setup_field(s, "x", 1);
    rws_setup_series(s, "w", 1, ITEMS);
    rws_setup_is_input(s, "w");
    m->prior = rws_setup_param(s, RWS_THETA, "prior", 1, Z, RWS_ZERO);
    m->slope = rws_setup_param(s, RWS_THETA, "slope", 1, Z, RWS_ZERO);
    m->emit = rws_setup_param(s, RWS_THETA, "emit", Z, X, RWS_ZERO);
    m->guess = rws_setup_param(s, RWS_PHI, "guess", X, Z, RWS_ZERO);
    m->turn = rws_setup_param(s, RWS_PHI, "turn", 1, Z, RWS_ZERO);
    rws_param *const all[] = {m->prior, m->slope, m->emit, m->guess, m->turn};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) fill(all[i], random);
    *state = m;
    return RWS_OK;
}

static rws_status mixture_data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                               float *const *fields, rws_error *err)
{
    (void)state, (void)split, (void)first, (void)random, (void)err;
    for (int i = 0; i < n; i++) {
        fields[FIELD_U][i] = us[i % N_DATA];
        fields[FIELD_X][i] = xs[i % N_DATA];
        memcpy(fields[FIELD_W] + (size_t)i * (1 + ITEMS), ws[i % N_DATA], sizeof ws[0]);
    }
    return RWS_OK;
}

static void mixture_model(rws_path *path, const void *state)
{
    const mixture *m = state;
    rws_var        u = rws_observed(path, "u");
    const int      n = rws_branch(path, rws_length(path, "w"));
    for (int t = 0; t < n; t++) u = rws_add(path, u, rws_item(path, "w", t));
    const rws_var slope = rws_mul(path, rws_parameter(path, m->slope), u);
    const rws_var z = rws_categorical(path, "z", rws_add(path, rws_parameter(path, m->prior), slope));
    rws_categorical(path, "x", rws_row(path, rws_parameter(path, m->emit), X, z));
}

static void mixture_guide(rws_path *path, const void *state)
{
    const mixture *m = state;
    const rws_var  turn = rws_mul(path, rws_parameter(path, m->turn), rws_observed(path, "u"));
    const rws_var  guess = rws_row(path, rws_parameter(path, m->guess), Z, rws_observed(path, "x"));
    rws_categorical(path, "z", rws_add(path, guess, turn));
}

static rws_status sum_choices(rws_eval *e, const void *state, double *value, rws_error *err)
{
    (void)state;
    return rws_eval_enumerate(e, value, err);
}

static const rws_model conditional = {.abi = RWS_ABI,
                                      .name = "conditional",
                                      .help = "a mixture by an input",
                                      .metrics = (const rws_metric[]){{"exact", "log p(x | inputs)", sum_choices}, {0}},
                                      .defaults = {.batch = N_DATA, .particles = 4, .n_test = N_DATA, .shards = 2},
                                      .setup = mixture_setup,
                                      .data = mixture_data,
                                      .guide = mixture_guide,
                                      .model = mixture_model};

/* ---- its twin, by the flat vector of parameters: prior, slope, emit, guess, turn */

enum { PRIOR = 0, SLOPE = Z, EMIT = 2 * Z, GUESS = EMIT + Z * X, TURN = GUESS + X * Z, SIZE = TURN + Z };

static double log_softmax(const double *logits, int n, int i)
{
    double sum = 0;
    for (int k = 0; k < n; k++) sum += exp(logits[k] - logits[i]);
    return -log(sum);
}

static double level_of(int d)
{
    double u = (double)us[d];
    for (int t = 0; t < (int)ws[d][0]; t++) u += (double)ws[d][1 + t];
    return u;
}

static double log_p(const double *p, int d, int z, int x)
{
    double logits[Z];
    for (int k = 0; k < Z; k++) logits[k] = p[PRIOR + k] + p[SLOPE + k] * level_of(d);
    return log_softmax(logits, Z, z) + log_softmax(p + EMIT + z * X, X, x);
}

static double log_q(const double *p, int d, int z, int x)
{
    double logits[Z];
    for (int k = 0; k < Z; k++) logits[k] = p[GUESS + x * Z + k] + p[TURN + k] * (double)us[d];
    return log_softmax(logits, Z, z);
}

static double evidence_of(const double *p, int d, int x)
{
    double total = 0;
    for (int z = 0; z < Z; z++) total += exp(log_p(p, d, z, x));
    return log(total);
}

/* The mean of log q over dreams from theta at the inputs of all data. */
static double sleep_bound(const double *theta, const double *phi)
{
    double total = 0;
    for (int d = 0; d < N_DATA; d++)
        for (int z = 0; z < Z; z++)
            for (int x = 0; x < X; x++) total += exp(log_p(theta, d, z, x)) * log_q(phi, d, z, x) / N_DATA;
    return total;
}

static void numbers_of(rws_trainer *t, double *p)
{
    static const char *const names[] = {"prior", "slope", "emit", "guess", "turn"};
    int                      n = 0;
    for (int i = 0; i < 5; i++) {
        rws_param_view one;
        assert_true(rws_trainer_find(t, names[i], &one));
        for (int k = 0; k < one.rows * one.cols; k++) p[n++] = (double)one.values[k];
    }
    assert_int_equal(n, SIZE);
}

static rws_config config_of(const char *method)
{
    return (rws_config){.method = method, .seed = 5};
}

static void evidence_is_conditional(void **state)
{
    (void)state;
    rws_config   c = config_of("ww");
    rws_trainer *t = trainer_for(&c, &conditional);
    double       p[SIZE], right = 0;
    numbers_of(t, p);
    for (int d = 0; d < N_DATA; d++) right += evidence_of(p, d, (int)xs[d]) / N_DATA;
    assert_true(fabs(metric(t, "exact") - right) < 1e-5);
    rws_trainer_free(t);
}

static void dreams_have_the_inputs_of_the_batch(void **state)
{
    (void)state;
    rws_config c = config_of("ws");
    for (int cut = 0; cut < 2; cut++) {
        c.particle_shards = cut ? 2 : 1;
        rws_trainer *t = trainer_for(&c, &conditional);
        double       p[SIZE], right[SIZE] = {0};
        numbers_of(t, p);
        for (int i = GUESS; i < SIZE; i++) {
            double up[SIZE], down[SIZE];
            memcpy(up, p, sizeof p), memcpy(down, p, sizeof p);
            up[i] += 1e-5, down[i] -= 1e-5;
            right[i] = (sleep_bound(p, up) - sleep_bound(p, down)) / 2e-5;
        }
        for (int i = 0; i < GUESS; i++) right[i] = NAN; /* of theta: the wake phase, which other tests look at */
        float     g[SIZE];
        double    sum[SIZE] = {0}, squares[SIZE] = {0};
        const int draws = 4000;
        for (int k = 0; k < draws; k++) {
            gradient_of(t, (uint64_t)k, g);
            for (int i = GUESS; i < SIZE; i++) sum[i] += (double)g[i], squares[i] += (double)g[i] * (double)g[i];
        }
        for (int i = GUESS; i < SIZE; i++) { /* beyond 6 standard errors: one in 10^8 choices of the seed */
            const double mean = sum[i] / draws, sd = sqrt(fmax(squares[i] / draws - mean * mean, 1e-12) / draws);
            if (fabs(mean - right[i]) > 6 * sd) fail_msg("number %d: %g, not %g (+- %g)", i, mean, right[i], sd);
        }
        rws_trainer_free(t);
    }
}

enum { LARGEST = 50000 }; /* numbers of all parameters, those of nvil's baseline among them */

/* Every particle alone, on one thread or several: the same draws. */
static void batched_is_scalar(void **state)
{
    (void)state;
    static const char *const methods[] = {"ws", "ww", "wws", "dww", "vimco", "rloo", "nvil", "reinforce"};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        rws_config   c = config_of(methods[i]);
        static float together[LARGEST], apart[LARGEST];
        rws_trainer *t = trainer_for(&c, &conditional);
        const size_t n = rws_trainer_size(t);
        assert_true(n < LARGEST);
        steps(t, 2);
        gradient_of(t, 3, together);
        c.scalar = true;
        c.threads = 2;
        rws_trainer *s = trainer_for(&c, &conditional);
        steps(s, 2);
        gradient_of(s, 3, apart);
        assert_close(together, apart, n, 1e-4, methods[i]);
        rws_trainer_free(t);
        rws_trainer_free(s);
    }
}

static void threads_change_no_bit(void **state)
{
    (void)state;
    rws_config   c = config_of("ws");
    rws_trainer *one = trainer_for(&c, &conditional);
    c.threads = 2;
    rws_trainer *two = trainer_for(&c, &conditional);
    steps(one, 5), steps(two, 5);
    double a[SIZE], b[SIZE];
    numbers_of(one, a), numbers_of(two, b);
    assert_memory_equal(a, b, sizeof a);
    rws_trainer_free(one);
    rws_trainer_free(two);
}

/* A run that is saved after two of its four iterations and goes on in another trainer is the run that was never saved. */
static void resumed_is_uninterrupted(void **state)
{
    (void)state;
    rws_config   c = config_of("ws");
    rws_error    err = {""};
    rws_trainer *whole = trainer_for(&c, &conditional), *first = trainer_for(&c, &conditional), *second;
    double       a[SIZE], b[SIZE];
    const char  *run = in_folder("run");
    assert_int_equal(rws_trainer_keep(first, run, &err), RWS_OK);
    steps(whole, 4), steps(first, 2);
    assert_int_equal(rws_trainer_save(first, &err), RWS_OK);
    rws_trainer_free(first);
    if (rws_trainer_resume(run, &(rws_config){0}, &conditional, &second, &err) != RWS_OK) fail_msg("%s", err.text);
    steps(second, 2);
    numbers_of(whole, a), numbers_of(second, b);
    assert_memory_equal(a, b, sizeof a);
    rws_trainer_free(whole);
    rws_trainer_free(second);
}

/* ---- samples and questions */

static rws_posterior *posterior_of(rws_trainer *t)
{
    rws_posterior *p;
    rws_error      err = {""};
    if (rws_posterior_new(t, &p, &err) != RWS_OK) fail_msg("%s", err.text);
    return p;
}

/* The share of samples with x = 1, and that of sum p(x = 1 | inputs of datum d); beyond 6 standard errors: one in 10^8. */
static void expect_share(double found, double right, int n)
{
    if (fabs(found - right) > 6 * sqrt(right * (1 - right) / n)) fail_msg("%g, not %g", found, right);
}

static void samples_have_inputs(void **state)
{
    (void)state;
    enum { N = 5000 };
    rws_config     c = config_of("ws");
    rws_trainer   *t = trainer_for(&c, &conditional);
    rws_posterior *p = posterior_of(t);
    rws_samples   *s;
    rws_error      err = {""};
    double         numbers[SIZE], ones[N_DATA] = {0}, count[N_DATA] = {0};
    numbers_of(t, numbers);
    assert_int_equal(rws_posterior_sample(p, N, 3, &s, &err), RWS_OK);
    for (int i = 0; i < N; i++) {
        int d = 0;
        while (us[d] != s->list[i].fields[FIELD_U][0] || memcmp(ws[d], s->list[i].fields[FIELD_W], sizeof ws[d])) d++;
        assert_true(d < N_DATA);
        count[d]++;
        ones[d] += (double)s->list[i].fields[FIELD_X][0];
    }
    for (int d = 0; d < N_DATA; d++) {
        expect_share(count[d] / N, 1.0 / N_DATA, N);
        expect_share(ones[d] / count[d], exp(evidence_of(numbers, d, 1)), (int)count[d]);
    }
    rws_samples_free(s);
    for (int d = 0; d < N_DATA; d++) { /* by fields without x, and by number */
        const float       *fields[] = {&us[d], NULL, ws[d]};
        const rws_question asked = {.fields = d % 2 ? fields : NULL, .test = d};
        double             share = 0;
        if (rws_posterior_sample_at(p, &asked, N, 4, &s, &err) != RWS_OK) fail_msg("%s", err.text);
        for (int i = 0; i < N; i++) share += (double)s->list[i].fields[FIELD_X][0] / N;
        expect_share(share, exp(evidence_of(numbers, d, 1)), N);
        rws_samples_free(s);
    }
    const float *none[] = {NULL, &xs[0], ws[0]};
    assert_int_equal(rws_posterior_sample_at(p, &(rws_question){.fields = none}, 1, 1, &s, &err), RWS_BAD_INPUT);
    assert_string_equal(err.text, "The question has no value for the input \"u\".");
    rws_posterior_free(p);
    rws_trainer_free(t);
}

static void answers_are_conditional(void **state)
{
    (void)state;
    rws_config     c = config_of("ws");
    rws_trainer   *t = trainer_for(&c, &conditional);
    rws_posterior *p = posterior_of(t);
    rws_error      err = {""};
    double         numbers[SIZE];
    numbers_of(t, numbers);
    for (int d = 0; d < N_DATA; d++) {
        const float *fields[] = {&us[d], &xs[d], ws[d]};
        rws_answers *a;
        for (int by = 0; by < 2; by++) {
            const rws_question q = {.fields = by ? NULL : fields, .test = d, .n_particles = 100000, .seed = 1};
            if (rws_posterior_ask(p, &q, &a, &err) != RWS_OK) fail_msg("%s", err.text);
            assert_true(fabs(a->log_evidence - evidence_of(numbers, d, (int)xs[d])) < 0.01); /* its error is .002 */
            rws_answers_free(a);
        }
    }
    rws_posterior_free(p);
    rws_trainer_free(t);
}

/* ---- a regression: y = a + b . x + c, c ~ N(0, 0.5), seen with noise 0.5, so that p(y | x) is normal with variance 0.5 */

enum { COVARIATES = 3, ROWS = 64 };

typedef struct {
    rws_param *line, *guess;
} regression;

static rws_status regression_setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    (void)random, (void)err;
    regression *m = *state = rws_setup_alloc(s, sizeof *m);
    rws_setup_input(s, "x", COVARIATES);
    rws_setup_field(s, "y", 1);
    m->line = rws_setup_param(s, RWS_THETA, "line", 1, COVARIATES + 1, RWS_ZERO);
    m->guess = rws_setup_param(s, RWS_PHI, "guess", 1, COVARIATES + 3, RWS_ZERO);
    return RWS_OK;
}

static rws_status regression_data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                                  float *const *fields, rws_error *err)
{
    (void)state, (void)split, (void)random, (void)err;
    for (int i = 0; i < n; i++) {
        rws_random one =
            rws__random_new(rws__key_for(11, 0, RWS_KEY_DATA, 7), (uint32_t)((first + (uint64_t)i) % ROWS));
        float      *x = fields[0] + (size_t)i * COVARIATES;
        const float bit = (float)rws_random_normal(&one);
        for (int k = 0; k < COVARIATES; k++) x[k] = (float)rws_random_normal(&one);
        fields[1][i] = 1 + 2 * x[0] - x[1] + 0.5f * x[2] + 0.7f * bit;
    }
    return RWS_OK;
}

static rws_var line_at(rws_path *path, const rws_param *p)
{
    const rws_var all = rws_parameter(path, p), slopes = rws_slice(path, all, 1, COVARIATES);
    return rws_add(path, rws_slice(path, all, 0, 1), rws_dot(path, slopes, rws_observed(path, "x")));
}

static void regression_model(rws_path *path, const void *state)
{
    const regression *m = state;
    const rws_var     sd = rws_constant(path, sqrtf(0.25f));
    const rws_var     c = rws_normal(path, "c", rws_constant(path, 0), sd);
    rws_normal(path, "y", rws_add(path, line_at(path, m->line), c), sd);
}

static void regression_guide(rws_path *path, const void *state)
{
    const regression *m = state;
    const rws_var     all = rws_parameter(path, m->guess);
    const rws_var     seen = rws_mul(path, rws_slice(path, all, COVARIATES + 1, 1), rws_observed(path, "y"));
    rws_normal(path, "c", rws_add(path, line_at(path, m->guess), seen),
               rws_apply(path, RWS_EXP, rws_slice(path, all, COVARIATES + 2, 1)));
}

static const rws_model regressed = {.abi = RWS_ABI,
                                    .name = "regression",
                                    .help = "a line by three covariates",
                                    .defaults = {.batch = ROWS, .particles = 5, .n_test = ROWS},
                                    .setup = regression_setup,
                                    .data = regression_data,
                                    .guide = regression_guide,
                                    .model = regression_model};

/* The mean of log N(y; line . x, 0.5) over the rows. */
static double line_evidence(const double *line)
{
    float x[ROWS * COVARIATES], y[ROWS], *const fields[] = {x, y};
    rws_error err;
    double    total = 0;
    assert_int_equal(regression_data(NULL, RWS_TEST, 0, ROWS, NULL, fields, &err), RWS_OK);
    for (int i = 0; i < ROWS; i++) {
        double d = (double)y[i] - line[0];
        for (int k = 0; k < COVARIATES; k++) d -= line[1 + k] * (double)x[i * COVARIATES + k];
        total += -0.5 * d * d / 0.5 - 0.5 * log(2 * M_PI * 0.5);
    }
    return total / ROWS;
}

/* The line of least squares, by many steps downhill; the mean square is a quadratic. */
static void least_squares(double *line)
{
    memset(line, 0, (COVARIATES + 1) * sizeof *line);
    for (int i = 0; i < 4000; i++)
        for (int k = 0; k <= COVARIATES; k++) {
            double up[COVARIATES + 1], down[COVARIATES + 1];
            memcpy(up, line, sizeof up), memcpy(down, line, sizeof down);
            up[k] += 1e-4, down[k] -= 1e-4;
            line[k] += 0.1 * (line_evidence(up) - line_evidence(down)) / 2e-4;
        }
}

/* Trained on the rows, the model's evidence is that of its line, and the line explains them as least squares do. */
static void regression_is_least_squares(void **state)
{
    (void)state;
    static const char *const methods[] = {"vimco", "ww", "ws"};
    double                   best[COVARIATES + 1], line[COVARIATES + 1];
    least_squares(best);
    for (int i = 0; i < 3; i++) {
        rws_config c = {
            .method = methods[i], .seed = 2, .iterations = 1500, .lr = "3e-2,800:3e-3", .eval_particles = 2000};
        rws_trainer *t = trainer_for(&c, &regressed);
        steps(t, 1500);
        rws_param_view learned;
        assert_true(rws_trainer_find(t, "line", &learned));
        for (int k = 0; k <= COVARIATES; k++) line[k] = (double)learned.values[k];
        const double log_evidence = metric(t, "log_evidence");
        if (fabs(log_evidence - line_evidence(line)) > 0.01 || line_evidence(best) - log_evidence > 0.01)
            fail_msg("%s: %g, the line %g, least squares %g", methods[i], log_evidence, line_evidence(line),
                     line_evidence(best));
        rws_trainer_free(t);
    }
}

/* ---- a single number as the parameter of a vector, and names that are misspelt */

enum { NUMBERS = 4 };

typedef enum { SPREAD, LISTED, CAPITAL, MISSPELT } wide_kind;

static rws_status wide_setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    (void)random, (void)err;
    wide_kind *k = *state = rws_setup_alloc(s, sizeof *k);
    rws_setup_field(s, "y", NUMBERS);
    rws_setup_field(s, "bits", NUMBERS);
    *k = (wide_kind)rws_setup_int(s, "kind");
    return RWS_OK;
}

static rws_status wide_data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                            float *const *fields, rws_error *err)
{
    (void)state, (void)split, (void)first, (void)random, (void)err;
    for (int i = 0; i < n * NUMBERS; i++) fields[0][i] = (float)i / 3, fields[1][i] = (float)(i % 3 == 0);
    return RWS_OK;
}

static void wide_guide(rws_path *path, const void *state)
{
    if (*(const wide_kind *)state == MISSPELT) rws_observed(path, "bist");
    rws_normal(path, "m", rws_constant(path, 0.3f), rws_constant(path, 0.7f));
}

static void wide_model(rws_path *path, const void *state)
{
    const wide_kind k = *(const wide_kind *)state;
    const rws_var   m = rws_normal(path, "m", rws_constant(path, 0), rws_constant(path, 1));
    const rws_var   zeros = k == LISTED ? rws_zeros(path, NUMBERS) : rws_constant(path, 0);
    rws_normal(path, k == CAPITAL ? "Y" : "y", rws_add(path, m, zeros), rws_constant(path, 2));
    rws_bernoulli(path, "bits", rws_add(path, m, zeros));
}

static const rws_model wide = {
    .abi = RWS_ABI,
    .name = "wide",
    .help = "one mean for four numbers",
    .settings = (const rws_setting[]){{"kind", "0", 0, 3, "how", true}, {0}},
    .defaults = {.batch = 2, .particles = 3, .n_test = 2},
    .setup = wide_setup,
    .data = wide_data,
    .guide = wide_guide,
    .model = wide_model,
};

static double wide_evidence(const char *kind, const char *method)
{
    rws_config   c = {.method = method, .n_set = 1, .set = {kind}};
    rws_trainer *t = trainer_for(&c, &wide);
    const double found = metric(t, "log_evidence");
    steps(t, 2);
    rws_trainer_free(t);
    return found;
}

static void one_number_is_spread(void **state)
{
    (void)state;
    static const char *const methods[] = {"ws", "ww", "vimco"};
    for (int i = 0; i < 3; i++) {
        const double spread = wide_evidence("kind=0", methods[i]), listed = wide_evidence("kind=1", methods[i]);
        assert_true(isfinite(spread) && fabs(spread - listed) < 1e-5);
    }
}

static void names_are_suggested(void **state)
{
    (void)state;
    static const char *const kinds[] = {"kind=2", "kind=3"};
    static const char *const words[] = {"\"Y\" (did you mean \"y\"?)", "\"bist\" (did you mean \"bits\"?)"};
    rws_error                err;
    for (int i = 0; i < 2; i++) {
        rws_config   c = {.method = "ww", .n_set = 1, .set = {kinds[i]}};
        rws_trainer *t = trainer_for(&c, &wide);
        assert_int_equal(rws_trainer_step(t, &err), RWS_BAD_INPUT);
        if (!strstr(err.text, words[i])) fail_msg("%s", err.text);
        rws_trainer_free(t);
    }
    rws_config   c = {.method = "ww", .n_set = 1, .set = {"kid=1"}};
    rws_trainer *t;
    assert_int_equal(rws_trainer_new(&c, &wide, &t, &err), RWS_BAD_INPUT);
    assert_non_null(strstr(err.text, "\"kid\" (did you mean \"kind\"?)"));
}

/* ---- what programs must not do */

typedef enum { USES, LOOKS, BRANCHES, FACTORS, READS, VISITS, ITEM, DRAWN, KINDS } kind;

typedef struct {
    kind kind;
} liar;

static _Thread_local rws_var kept; /* what the guide read: a program must not do this */

static rws_status liar_setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    (void)random, (void)err;
    liar *m = *state = rws_setup_alloc(s, sizeof *m);
    m->kind = (kind)rws_setup_int(s, "kind");
    if (m->kind == ITEM) rws_setup_series(s, "x", 1, 3);
    else rws_setup_field(s, "x", 1);
    if (m->kind == VISITS) rws_setup_input(s, "u", 1);
    rws_setup_relaxed(s, "z", 2);
    return RWS_OK;
}

static rws_status liar_data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                            float *const *fields, rws_error *err)
{
    const liar *m = state;
    (void)split, (void)first, (void)random, (void)err;
    for (int i = 0; i < n; i++) {
        if (m->kind == ITEM) memcpy(fields[0] + 4 * i, (float[]){2, 1, 0, 0}, 4 * sizeof(float));
        else fields[0][i] = (float)(i % 2);
        if (m->kind == VISITS) fields[1][i] = 1;
    }
    return RWS_OK;
}

static void liar_guide(rws_path *path, const void *state)
{
    const liar *m = state;
    kept = m->kind == ITEM ? rws_item(path, "x", 1) : rws_observed(path, "x");
    if (m->kind == DRAWN) kept = rws_normal(path, "g", kept, rws_constant(path, 1));
    rws_categorical(path, "z", rws_zeros(path, 2));
}

static void liar_model(rws_path *path, const void *state)
{
    const liar   *m = state;
    const rws_var one = rws_constant(path, 1);
    rws_var       mean = rws_affine(path, rws_categorical(path, "z", rws_zeros(path, 2)), 1, 0);
    if (m->kind == USES || m->kind == ITEM) mean = kept;
    if (m->kind == LOOKS) mean = rws_constant(path, rws_look(path, kept)[0]);
    if (m->kind == BRANCHES) mean = rws_constant(path, (float)rws_branch(path, kept));
    if (m->kind == FACTORS) rws_factor(path, "f", kept, true);
    if (m->kind == READS) mean = rws_observed(path, "x");
    if (m->kind == VISITS) rws_normal(path, "u", mean, one);
    if (m->kind == DRAWN) mean = rws_apply(path, RWS_TANH, rws_normal(path, "g", mean, one));
    for (int t = 0; t < (m->kind == ITEM ? 2 : 1); t++) rws_normal(path, "x", mean, one);
}

static rws_var liar_relaxed(rws_path *path, const void *state, rws_var log_s, rws_var temperature, rws_relaxation how)
{
    (void)state, (void)temperature, (void)how;
    return rws_sum(path, rws_add(path, log_s, rws_observed(path, "x")));
}

static const rws_model liars = {
    .abi = RWS_ABI,
    .name = "liars",
    .help = "a model that knows the datum",
    .settings = (const rws_setting[]){{"kind", "0", 0, KINDS, "how", true}, {0}},
    .defaults = {.batch = 2, .particles = 2, .n_test = 2},
    .setup = liar_setup,
    .data = liar_data,
    .guide = liar_guide,
    .model = liar_model,
    .relaxed = liar_relaxed,
};

static rws_status lie(const char *method, kind k, rws_error *err)
{
    char       set[20];
    rws_config c = {.method = method, .n_set = 1, .set = {set}};
    snprintf(set, sizeof set, "kind=%d", k);
    rws_trainer     *t = trainer_for(&c, &liars);
    const rws_status status = rws_trainer_step(t, err);
    rws_trainer_free(t);
    return status;
}

static void the_model_does_not_know_the_data(void **state)
{
    (void)state;
    static const char *const methods[] = {"ws",   "ww",    "wws",   "dww",   "reinforce", "rloo",
                                          "nvil", "vimco", "rebar", "relax", "muprop"};
    static const char *const words[KINDS] = {[READS] = "The model looks at the data (field \"x\")",
                                             [VISITS] = "The model visits site \"u\", which is an input"};
    rws_error                err;
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        for (kind k = USES; k < DRAWN; k++) {
            if (k == ITEM && i > 7) continue; /* a relaxed model of one field */
            assert_int_equal(lie(methods[i], k, &err), RWS_BAD_INPUT);
            const char *right =
                words[k] ? words[k] : "the model uses a value that the guide has made of the data (field \"x\")";
            if (!strstr(err.text, right)) fail_msg("%s, kind %d: %s", methods[i], (int)k, err.text);
        }
    for (size_t i = 0; i < 8; i++) /* what the guide has drawn is the model's to use */
        if (lie(methods[i], DRAWN, &err) != RWS_OK) fail_msg("%s: %s", methods[i], err.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(evidence_is_conditional),
        cmocka_unit_test(dreams_have_the_inputs_of_the_batch),
        cmocka_unit_test(batched_is_scalar),
        cmocka_unit_test(threads_change_no_bit),
        cmocka_unit_test_setup_teardown(resumed_is_uninterrupted, folder_make, folder_remove),
        cmocka_unit_test(samples_have_inputs),
        cmocka_unit_test(answers_are_conditional),
        cmocka_unit_test(regression_is_least_squares),
        cmocka_unit_test(one_number_is_spread),
        cmocka_unit_test(names_are_suggested),
        cmocka_unit_test(the_model_does_not_know_the_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
