/* test_series.c - observations in series, on a hidden Markov model: the forward algorithm says what is right. */
#include "trained.h"

#include <string.h>

enum { STATES = 3, SYMBOLS = 4, MOST = 6 };

typedef struct {
    rws_param *first, *next, *emit; /* theta: logits */
    rws_layer *seen, *before;       /* phi: logits of a state, from its symbol and from the state before */
} hmm;

static rws_status setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    hmm *m = rws_setup_alloc(s, sizeof *m);
    if (!m) return rws_fail(err, RWS_NO_MEMORY, "There is no memory.");
    rws_setup_field(s, "n", 1);
    rws_setup_series(s, "x", 1, MOST);
    m->first = rws_setup_param(s, RWS_THETA, "theta.first", 1, STATES, RWS_ZERO);
    m->next = rws_setup_param(s, RWS_THETA, "theta.next", STATES, STATES, RWS_ZERO);
    m->emit = rws_setup_param(s, RWS_THETA, "theta.emit", STATES, SYMBOLS, RWS_ZERO);
    m->seen = rws_setup_embedding(s, RWS_PHI, "phi.seen", SYMBOLS, STATES);
    m->before = rws_setup_embedding(s, RWS_PHI, "phi.before", STATES + 1, STATES);
    for (int i = 0; i < STATES * STATES; i++) rws_param_values(m->next)[i] = (float)rws_random_normal(random);
    for (int i = 0; i < STATES * SYMBOLS; i++) rws_param_values(m->emit)[i] = (float)rws_random_normal(random);
    *state = m;
    return RWS_OK;
}

/* Two kinds of series: symbols that repeat, and symbols that count up. */
static rws_status data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                       float *const *fields, rws_error *err)
{
    (void)state, (void)split, (void)first, (void)err;
    for (int i = 0; i < n; i++) {
        float    *row = fields[1] + (size_t)i * (1 + MOST);
        const int length = 1 + (int)rws_random_below(random, MOST), up = (int)rws_random_below(random, 2);
        int       x = (int)rws_random_below(random, SYMBOLS);
        fields[0][i] = (float)(length - 1);
        row[0] = (float)length;
        for (int t = 0; t < MOST; t++, x = (x + up) % SYMBOLS) row[1 + t] = t < length ? (float)x : 0;
    }
    return RWS_OK;
}

static rws_var row(rws_path *path, const rws_param *p, int i, int n)
{
    return rws_slice(path, rws_parameter(path, p), i * n, n);
}

static int wrong; /* how the model errs */

enum { RIGHT, TOO_FEW, TOO_MANY, TOO_WIDE };

static void model(rws_path *path, const void *state)
{
    const hmm *m = state;
    const int  n = 1 + rws_choose(path, "n", rws_constants(path, (float[MOST]){0}, MOST));
    int        z = 0;
    for (int t = 0; t < n + (wrong == TOO_MANY) - (wrong == TOO_FEW); t++) {
        z = rws_choose(path, "z", t ? row(path, m->next, z, STATES) : rws_parameter(path, m->first));
        if (wrong == TOO_WIDE) rws_bernoulli(path, "x", rws_constants(path, (float[2]){0}, 2));
        else rws_categorical(path, "x", row(path, m->emit, z, SYMBOLS));
    }
}

static int reads_past; /* how far the guide reads behind the end */

static void guide(rws_path *path, const void *state)
{
    const hmm *m = state;
    const int  n = rws_branch(path, rws_length(path, "x"));
    int        z = STATES;
    for (int t = 0; t < n + (wrong == TOO_MANY) - (wrong == TOO_FEW); t++) {
        const rws_var x = rws_item(path, "x", wrong == TOO_MANY && t == n ? 0 : t + reads_past);
        z = rws_choose(path, "z",
                       rws_add(path, rws_embedding(path, m->seen, x),
                               rws_embedding(path, m->before, rws_constant(path, (float)z))));
    }
}

static const rws_model hidden = {.abi = RWS_ABI,
                                 .name = "hidden",
                                 .help = "a hidden Markov model",
                                 .defaults = {.batch = 12, .particles = 8, .n_test = 40, .shards = 3},
                                 .setup = setup,
                                 .data = data,
                                 .guide = guide,
                                 .model = model};

/* ---- the forward algorithm */

static void softmax(const float *logits, int n, double *out)
{
    double total = 0;
    for (int i = 0; i < n; i++) total += out[i] = exp((double)logits[i]);
    for (int i = 0; i < n; i++) out[i] /= total;
}

static double forward(rws_trainer *t, const float *x)
{
    rws_param_view first, next, emit;
    double         a[STATES], b[STATES], move[STATES][STATES], say[STATES][SYMBOLS];
    assert_true(rws_trainer_find(t, "theta.first", &first) && rws_trainer_find(t, "theta.next", &next));
    assert_true(rws_trainer_find(t, "theta.emit", &emit));
    softmax(first.values, STATES, a);
    for (int i = 0; i < STATES; i++) softmax(next.values + i * STATES, STATES, move[i]);
    for (int i = 0; i < STATES; i++) softmax(emit.values + i * SYMBOLS, SYMBOLS, say[i]);
    for (int k = 0; k < (int)x[0]; k++) {
        for (int j = 0; k && j < STATES; j++) {
            b[j] = 0;
            for (int i = 0; i < STATES; i++) b[j] += a[i] * move[i][j];
        }
        if (k) memcpy(a, b, sizeof a);
        for (int i = 0; i < STATES; i++) a[i] *= say[i][(int)x[1 + k]];
    }
    return log(a[0] + a[1] + a[2]) - log(MOST);
}

static rws_trainer *trainer(rws_config c)
{
    c.model = "hidden";
    c.seed = 4;
    if (!c.method) c.method = "ww";
    return trainer_for(&c, &hidden);
}

static double exact_evidence(rws_trainer *t, int n)
{
    float     *n_field = calloc((size_t)n, sizeof *n_field), *x = calloc((size_t)n * (1 + MOST), sizeof *x);
    rws_random random = rws_random_new(rws_key_for(0, 0, RWS_KEY_TEST, 0), 0);
    double     sum = 0;
    data(NULL, RWS_TEST, 0, n, &random, (float *[]){n_field, x}, NULL);
    for (int i = 0; i < n; i++) sum += forward(t, x + (size_t)i * (1 + MOST));
    free(n_field), free(x);
    return sum / n;
}

/* ---- tests */

static void evidence_is_the_forward_algorithms(void **state)
{
    (void)state;
    rws_trainer *t = trainer((rws_config){0});
    for (int n = 1; n <= MOST; n++) {
        float        x[1 + MOST] = {(float)n, 1, 2, 2, 0, 3, 1}, length = (float)(n - 1);
        const float *fields[] = {&length, x};
        rws_answers *a;
        rws_error    err = {""};
        if (rws_trainer_ask(t, &(rws_question){.fields = fields, .n_particles = 40000, .seed = 1}, &a, &err) != RWS_OK)
            fail_msg("%s", err.text);
        const double error = sqrt((1 / a->ess - 1) / a->n_particles); /* of the log; six of them: 2e-9 */
        if (!near(a->log_evidence, forward(t, x), 6 * error))
            fail_msg("%d items: %g, not %g within %g", n, a->log_evidence, forward(t, x), error);
        rws_answers_free(a);
    }
    rws_trainer_free(t);
}

static void batched_is_scalar(void **state)
{
    (void)state;
    const char *methods[] = {"ww", "ws", "vimco", "nvil"};
    for (int i = 0; i < 4; i++) {
        rws_trainer *a = trainer((rws_config){.method = methods[i]}),
                    *b = trainer((rws_config){.method = methods[i], .scalar = true});
        const size_t n = rws_trainer_size(a);
        float       *g = calloc(n, sizeof *g), *h = calloc(n, sizeof *h);
        gradient_of(a, 0, g);
        gradient_of(b, 0, h);
        assert_close(g, h, n, 1e-4, methods[i]);
        free(g), free(h);
        rws_trainer_free(a);
        rws_trainer_free(b);
    }
}

static void threads_change_nothing(void **state)
{
    (void)state;
    rws_trainer *a = trainer((rws_config){0}), *b = trainer((rws_config){.threads = 3});
    steps(a, 30);
    steps(b, 30);
    rws_param_view x, y;
    for (int i = 0; rws_trainer_param(a, i, &x) && rws_trainer_param(b, i, &y); i++)
        assert_memory_equal(x.values, y.values, (size_t)(x.rows * x.cols) * sizeof(float));
    rws_trainer_free(a);
    rws_trainer_free(b);
}

static void dreams_have_lengths(void **state)
{
    (void)state;
    rws_trainer   *t = trainer((rws_config){0});
    rws_posterior *p;
    rws_samples   *s;
    rws_error      err = {""};
    if (rws_posterior_new(t, &p, &err) != RWS_OK) fail_msg("%s", err.text);
    if (rws_posterior_sample(p, 3000, 1, &s, &err) != RWS_OK) fail_msg("%s", err.text);
    double seen[MOST] = {0}, expected[MOST];
    for (int i = 0; i < s->n; i++) {
        const float *x = s->list[i].fields[1];
        const int    n = (int)x[0];
        assert_true(n >= 1 && n <= MOST && s->list[i].fields[0][0] == (float)(n - 1));
        assert_int_equal(s->list[i].n_choices, n); /* the states; items are no choices */
        for (int k = 0; k < MOST; k++) assert_true(k < n ? x[1 + k] >= 0 && x[1 + k] < SYMBOLS : x[1 + k] == 0);
        seen[n - 1]++;
    }
    for (int k = 0; k < MOST; k++) expected[k] = s->n / (double)MOST;
    assert_true(counts_tail(seen, expected, MOST) > 1e-6);
    rws_samples_free(s);
    rws_posterior_free(p);
    rws_trainer_free(t);
}

static void it_learns(void **state)
{
    (void)state;
    const char *methods[] = {"ww", "ws"};
    for (int i = 0; i < 2; i++) {
        rws_trainer *t = trainer((rws_config){.method = methods[i], .lr = "1e-2", .particles = 20});
        const double before = exact_evidence(t, 40);
        steps(t, 1500);
        const double after = exact_evidence(t, 40);
        /* symbols alone would take log 4 each, 3.5 of them on average; the first takes log 4 in any case */
        if (!(after > before + 1)) fail_msg("%s: log p(x) went from %g to %g", methods[i], before, after);
        assert_true(near(metric(t, "log_evidence"), after, 0.15));
        rws_trainer_free(t);
    }
}

/* ---- factors: the last state must be state 0, softly; the forward algorithm weighs its last sum */

static bool in_prior;

static void model_with_factor(rws_path *path, const void *state)
{
    const hmm *m = state;
    const int  n = 1 + rws_choose(path, "n", rws_constants(path, (float[MOST]){0}, MOST));
    int        z = 0;
    for (int t = 0; t < n; t++) {
        z = rws_choose(path, "z", t ? row(path, m->next, z, STATES) : rws_parameter(path, m->first));
        rws_categorical(path, "x", row(path, m->emit, z, SYMBOLS));
    }
    rws_factor(path, "end", rws_slice(path, rws_parameter(path, m->first), z, 1), in_prior);
}

static void factors_weigh(void **state)
{
    (void)state;
    rws_model soft = hidden;
    soft.model = model_with_factor;
    rws_trainer   *t = trainer_for(&(rws_config){.model = "soft", .method = "ww", .seed = 4, .particles = 100}, &soft);
    rws_param_view first;
    float          x[2 + MOST] = {1, 2}, length = 0;
    const float   *fields[] = {&length, x};
    rws_answers   *a;
    rws_error      err = {""};
    assert_true(rws_trainer_find(t, "theta.first", &first));
    for (int i = 0; i < STATES; i++) first.values[i] = (float)i - 1;
    rws_trainer_changed(t);
    if (rws_trainer_ask(t, &(rws_question){.fields = fields, .n_particles = 40000, .seed = 1}, &a, &err) != RWS_OK)
        fail_msg("%s", err.text);
    rws_param_view emit;
    double         p[STATES], say[SYMBOLS], sum = 0;
    assert_true(rws_trainer_find(t, "theta.emit", &emit));
    softmax(first.values, STATES, p);
    for (int i = 0; i < STATES; i++) {
        softmax(emit.values + i * SYMBOLS, SYMBOLS, say);
        sum += p[i] * say[2] * exp((double)first.values[i]) / MOST;
    }
    assert_true(near(a->log_evidence, log(sum), 6 * sqrt((1 / a->ess - 1) / a->n_particles)));
    rws_answers_free(a);

    /* the factor's gradient is theta's too: batched as scalar */
    rws_trainer *b = trainer_for(&(rws_config){.model = "soft", .seed = 4, .particles = 100, .scalar = true}, &soft);
    assert_true(rws_trainer_find(b, "theta.first", &first));
    for (int i = 0; i < STATES; i++) first.values[i] = (float)i - 1;
    rws_trainer_changed(b);
    const size_t n = rws_trainer_size(t);
    float       *g = calloc(n, sizeof *g), *h = calloc(n, sizeof *h);
    gradient_of(t, 0, g);
    gradient_of(b, 0, h);
    assert_close(g, h, n, 1e-4, "factor");
    free(g), free(h);
    rws_trainer_free(b);
    rws_trainer_free(t);

    /* a model with a factor cannot dream, unless the factor belongs to its prior */
    t = trainer_for(&(rws_config){.model = "soft", .method = "ws", .seed = 4}, &soft);
    assert_int_equal(rws_trainer_step(t, &err), RWS_BAD_INPUT);
    if (!strstr(err.text, "\"end\"")) fail_msg("%s", err.text);
    in_prior = true;
    steps(t, 1);
    in_prior = false;
    rws_trainer_free(t);
}

static void expect(rws_trainer *t, rws_status expected, const char *words)
{
    rws_error err = {""};
    assert_int_equal(rws_trainer_step(t, &err), expected);
    if (!strstr(err.text, words)) fail_msg("\"%s\" instead of \"%s\"", err.text, words);
}

static void mistakes_name_site_item_and_datum(void **state)
{
    (void)state;
    rws_trainer *t = trainer((rws_config){0});
    wrong = TOO_FEW;
    expect(t, RWS_BAD_INPUT, "The model visits site \"x\" ");
    wrong = TOO_MANY;
    expect(t, RWS_BAD_INPUT, "The model comes to item ");
    wrong = TOO_WIDE;
    expect(t, RWS_BAD_INPUT, "Site \"x\" has 2 numbers in the model, but an item of the data has 1.");
    wrong = RIGHT;
    reads_past = 1;
    expect(t, RWS_BAD_INPUT, "The guide comes to item ");
    reads_past = 0;
    steps(t, 1);
    float        x[1 + MOST] = {2.5f}, length = 1;
    const float *fields[] = {&length, x};
    rws_answers *a;
    rws_error    err = {""};
    assert_int_equal(rws_trainer_ask(t, &(rws_question){.fields = fields}, &a, &err), RWS_BAD_INPUT);
    assert_string_equal(err.text,
                        "The series \"x\" of datum 0 has a length of 2.5; it must be a whole number from 0 to 6.");
    x[0] = 2, x[1] = 7;
    assert_int_equal(rws_trainer_ask(t, &(rws_question){.fields = fields}, &a, &err), RWS_BAD_INPUT);
    if (!strstr(err.text, "is 7")) fail_msg("%s", err.text);
    rws_trainer_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(evidence_is_the_forward_algorithms),
        cmocka_unit_test(batched_is_scalar),
        cmocka_unit_test(threads_change_nothing),
        cmocka_unit_test(dreams_have_lengths),
        cmocka_unit_test(it_learns),
        cmocka_unit_test(factors_weigh),
        cmocka_unit_test(mistakes_name_site_item_and_datum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
