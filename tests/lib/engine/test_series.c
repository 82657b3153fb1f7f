/* test_series.c - observations in series, on a hidden Markov model: the forward algorithm says what is right. */
#include "engine/setup.h"
#include "estimator/estimator.h"
#include "files.h"
#include "trained.h"

#include <stdlib.h>
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
    rws_random random = rws__random_new(rws__key_for(0, 0, RWS_KEY_TEST, 0), 0);
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

/* ---- a letter: series of four kinds and three lengths in one datum, latent choices of several kinds, and a factor
 *
 *     topic -+-> style of each word -+-> words (index)          n of them
 *            |                       '-> counts                 as many
 *            |-> marks (three bits each)                        m of them, perhaps none
 *            '-> level (real) -> points (two reals each)        one for each bit of style that is set */

enum { TOPICS = 2, WORDS = 4, MAX_MARKS = 3, POINTS = 5 };

static bool with_level = true; /* a latent real number gives every particle a row of its own */

typedef struct {
    rws_param *word, *mark, *rate; /* theta */
    rws_layer *topic, *style, *level;
} letter;

static rws_status letter_setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    (void)random, (void)err;
    letter *l = *state = rws_setup_alloc(s, sizeof *l);
    rws_setup_series(s, "word", 1, POINTS);
    rws_setup_field(s, "n", 1);
    rws_setup_series(s, "count", 1, POINTS);
    rws_setup_series(s, "mark", 3, MAX_MARKS);
    rws_setup_field(s, "m", 1);
    rws_setup_series(s, "point", 2, POINTS);
    l->word = rws_setup_param(s, RWS_THETA, "theta.word", 2 * TOPICS, WORDS, RWS_UNIFORM);
    l->mark = rws_setup_param(s, RWS_THETA, "theta.mark", TOPICS, 3, RWS_UNIFORM);
    l->rate = rws_setup_param(s, RWS_THETA, "theta.rate", 1, TOPICS, RWS_UNIFORM);
    l->topic = rws_setup_linear(s, RWS_PHI, "phi.topic", 5, TOPICS, RWS_UNIFORM);
    l->style = rws_setup_embedding(s, RWS_PHI, "phi.style", WORDS, 1);
    l->level = rws_setup_linear(s, RWS_PHI, "phi.level", 2, 1, RWS_UNIFORM);
    return RWS_OK;
}

/* Behind the last items stands what must not matter. */
static rws_status letter_data(const void *state, rws_split split, uint64_t first, int n, rws_random *g,
                              float *const *fields, rws_error *err)
{
    (void)state, (void)split, (void)first, (void)err;
    for (int i = 0; i < n; i++) {
        float *word = fields[0] + i * (1 + POINTS), *count = fields[2] + i * (1 + POINTS);
        float *mark = fields[3] + i * (1 + 3 * MAX_MARKS), *point = fields[5] + i * (1 + 2 * POINTS);
        word[0] = count[0] = 1 + (fields[1][i] = (float)rws_random_below(g, POINTS));
        mark[0] = fields[4][i] = (float)rws_random_below(g, MAX_MARKS + 1);
        point[0] = word[0];
        for (int t = 0; t < POINTS; t++) {
            const bool is = t < (int)word[0];
            word[1 + t] = is ? (float)rws_random_below(g, WORDS) : 77;
            count[1 + t] = is ? (float)rws_random_below(g, 6) : -1.5f;
            for (int k = 0; k < 2; k++) point[1 + 2 * t + k] = is ? (float)rws_random_normal(g) : 1e30f;
        }
        for (int t = 0; t < 3 * MAX_MARKS; t++)
            mark[1 + t] = t < 3 * (int)mark[0] ? (float)rws_random_below(g, 2) : 0.25f;
    }
    return RWS_OK;
}

static void letter_model(rws_path *path, const void *state)
{
    const letter *l = state;
    const int     n = 1 + rws_choose(path, "n", rws_constants(path, (float[POINTS]){0}, POINTS));
    const int     m = rws_choose(path, "m", rws_constants(path, (float[MAX_MARKS + 1]){0}, MAX_MARKS + 1));
    const int     topic = rws_choose(path, "topic", rws_constants(path, (float[TOPICS]){0, 0.3f}, TOPICS));
    const rws_var rate = rws_apply(path, RWS_EXP, row(path, l->rate, topic, 1));
    const rws_var level =
        with_level ? rws_normal(path, "level", rws_constant(path, 0), rws_constant(path, 1)) : rws_constant(path, 0.5f);
    for (int t = 0; t < n; t++) {
        const int style = rws_flip(path, "style", rws_constant(path, topic ? 0.5f : -0.5f));
        rws_categorical(path, "word", row(path, l->word, 2 * topic + style, WORDS));
        rws_poisson(path, "count", style ? rws_affine(path, rate, 2, 0) : rate);
        rws_normal(path, "point", rws_concat(path, (rws_var[]){level, rate}, 2), rws_constant(path, 1.5f));
    }
    for (int t = 0; t < m; t++) rws_bernoulli(path, "mark", row(path, l->mark, topic, 3));
    rws_factor(path, "soft", rws_affine(path, rws_mul(path, level, rate), -0.2f, 0), true);
}

static void letter_guide(rws_path *path, const void *state)
{
    const letter *l = state;
    const int     n = rws_branch(path, rws_length(path, "word")), m = rws_branch(path, rws_length(path, "mark"));
    rws_var       marks = rws_constants(path, (float[3]){0}, 3), log_count = rws_constant(path, 0);
    for (int t = m; t-- > 0;) marks = rws_add(path, marks, rws_item(path, "mark", t));
    for (int t = n; t-- > 0;)
        log_count = rws_add(path, log_count, rws_apply(path, RWS_LOG1P, rws_item(path, "count", t)));
    const rws_var seen[] = {marks, log_count, rws_slice(path, rws_item(path, "point", n - 1), 0, 1)};
    const int     topic = rws_choose(path, "topic", rws_linear_parts(path, l->topic, seen, 3));
    if (with_level)
        rws_normal(path, "level", rws_linear(path, l->level, rws_item(path, "point", 0)), rws_constant(path, 0.8f));
    for (int t = 0; t < n; t++)
        rws_flip(path, "style",
                 rws_affine(path, rws_embedding(path, l->style, rws_item(path, "word", t)), topic ? 1 : -1, 0));
}

static const rws_model letters = {.abi = RWS_ABI,
                                  .name = "letters",
                                  .help = "series of four kinds",
                                  .defaults = {.batch = 9, .particles = 6, .n_test = 10, .shards = 3},
                                  .setup = letter_setup,
                                  .data = letter_data,
                                  .guide = letter_guide,
                                  .model = letter_model};

static rws_trainer *letter_trainer(const char *method, rws_config c)
{
    c.model = "letters";
    c.method = method;
    c.seed = 11;
    return trainer_for(&c, &letters);
}

/* The next method that works on a model with many sites, from *i on; NULL: there is no more. */
static const char *next_method(int *i)
{
    for (; rws_estimators[*i]; ++*i)
        if (!rws_estimators[*i]->refuses) return rws_estimators[(*i)++]->name;
    return NULL;
}

static void letters_batched_are_scalar(void **state)
{
    (void)state;
    int n_methods = 0, i = 0;
    for (const char *method; (method = next_method(&i)); n_methods++) {
        rws_trainer *a = letter_trainer(method, (rws_config){0}),
                    *b = letter_trainer(method, (rws_config){.scalar = true});
        const size_t n = rws_trainer_size(a);
        float       *g = calloc(2 * n, sizeof *g);
        gradient_of(a, 0, g);
        gradient_of(b, 0, g + n);
        assert_close(g, g + n, n, 1e-4, method);
        free(g);
        rws_trainer_free(a);
        rws_trainer_free(b);
    }
    assert_true(n_methods >= 8);
}

static void letters_do_not_depend_on_threads(void **state)
{
    (void)state;
    int i = 0;
    for (const char *method; (method = next_method(&i));) {
        rws_trainer *a = letter_trainer(method, (rws_config){0}),
                    *b = letter_trainer(method, (rws_config){.threads = 3});
        steps(a, 12);
        steps(b, 12);
        assert_memory_equal(rws__trainer_state_of(a).params->value, rws__trainer_state_of(b).params->value,
                            rws_trainer_size(a) * sizeof(float));
        rws_trainer_free(a);
        rws_trainer_free(b);
    }
}

static void letters_continue_where_they_were(void **state)
{
    (void)state;
    const char *methods[] = {"ww", "ws", "nvil"};
    for (int i = 0; i < 3; i++) {
        rws_trainer *whole = letter_trainer(methods[i], (rws_config){.iterations = 12});
        rws_trainer *t = letter_trainer(methods[i], (rws_config){.iterations = 5});
        rws_error    err = {""};
        must(rws_trainer_keep(t, in_folder(methods[i]), &err), &err);
        must(rws_trainer_train(t, NULL, &err), &err);
        rws_trainer_free(t);
        must(rws_trainer_resume(in_folder(methods[i]), &(rws_config){.iterations = 12}, &letters, &t, &err), &err);
        must(rws_trainer_train(t, NULL, &err), &err);
        steps(whole, 12);
        assert_memory_equal(rws__trainer_state_of(t).params->value, rws__trainer_state_of(whole).params->value,
                            rws_trainer_size(t) * sizeof(float));
        rws_trainer_free(t);
        rws_trainer_free(whole);
    }
}

/* log p and log q of all particles of a datum in ascending order. */
static int by_scores(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return x[0] != y[0] ? (x[0] > y[0]) - (x[0] < y[0]) : (x[1] > y[1]) - (x[1] < y[1]);
}

static void letters_with_counts_are_particles(void **unused)
{
    (void)unused;
    enum { DATA = 6, K = 50 };
    rws_setup  setup = {.seed = 3};
    rws_random random = rws__random_new(rws__key_for(3, 0, RWS_KEY_DATA, 0), 0);
    void      *state;
    rws_error  err = {""};
    must(letter_setup(&setup, &random, &state, &err), &err);
    must(setup.status, &setup.error);
    rws__params_pack(&setup.params);
    float *fields[6];
    for (int f = 0; f < 6; f++) fields[f] = calloc(DATA * (size_t)setup.fields[f].dim, sizeof(float));
    must(letter_data(state, RWS_TRAIN, 0, DATA, &random, fields, &err), &err);
    static double table[2][DATA][K][2];
    with_level = false;
    for (int scalar = 0; scalar < 2; scalar++) {
        rws_engine    *e = rws__engine_new(&setup.params, setup.fields, setup.n_fields, NULL);
        const rws_pass pass = {.model = &letters,
                               .state = state,
                               .mode = RWS_WAKE,
                               .n_data = DATA,
                               .n_particles = K,
                               .fields = (const float *const *)fields,
                               .scalar = scalar,
                               .key = rws__key_for(1, 2, RWS_KEY_WAKE, 0)};
        must(rws__engine_forward(e, &pass, &err), &err);
        const rws_scores *s = rws__engine_scores(e);
        assert_true(scalar ? s->n == DATA * K : s->n < DATA * K / 2);
        for (int d = 0; d < DATA; d++) {
            int n = 0;
            for (uint32_t i = s->start[d]; i < s->start[d + 1]; i++)
                for (uint32_t k = 0; k < s->count[i]; k++, n++)
                    table[scalar][d][n][0] = s->log_p[i], table[scalar][d][n][1] = s->log_q[i];
            assert_int_equal(n, K);
            qsort(table[scalar][d], K, sizeof table[0][0][0], by_scores);
        }
        rws__engine_free(e);
    }
    with_level = true;
    for (int d = 0; d < DATA; d++)
        for (int k = 0; k < K; k++)
            for (int j = 0; j < 2; j++)
                assert_true(fabs(table[0][d][k][j] - table[1][d][k][j]) < 1e-4 * (1 + fabs(table[1][d][k][j])));
    for (int f = 0; f < 6; f++) free(fields[f]);
    rws__setup_release(&setup);
}

/* The dream of a letter is a datum: the same numbers are read back, and scored by the guide and the model. */
static void letters_are_dreamt(void **state)
{
    (void)state;
    rws_trainer   *t = letter_trainer("ww", (rws_config){0});
    rws_posterior *p;
    rws_samples   *s;
    rws_error      err = {""};
    must(rws_posterior_new(t, &p, &err), &err);
    must(rws_posterior_sample(p, 200, 1, &s, &err), &err);
    bool none = false;
    for (int i = 0; i < s->n; i++) {
        const float *const *f = s->list[i].fields;
        rws_answers        *a;
        assert_true(f[0][0] == f[1][0] + 1 && f[2][0] == f[0][0] && f[3][0] == f[4][0] && f[5][0] == f[0][0]);
        for (int k = 0; k < 3 * (int)f[3][0]; k++) assert_true(f[3][1 + k] == 0 || f[3][1 + k] == 1);
        for (int k = 0; k < (int)f[2][0]; k++) assert_true(f[2][1 + k] >= 0 && f[2][1 + k] == floorf(f[2][1 + k]));
        none |= f[3][0] == 0;
        if (i >= 20) continue;
        must(rws_posterior_ask(p, &(rws_question){.fields = f, .n_particles = 20, .seed = 1}, &a, &err), &err);
        assert_true(isfinite(a->log_evidence));
        rws_answers_free(a);
    }
    assert_true(none);
    rws_samples_free(s);
    rws_posterior_free(p);
    rws_trainer_free(t);
}

static void expect(rws_trainer *t, rws_status expected, bool about_datum, const char *words)
{
    rws_error err = {""};
    assert_int_equal(rws_trainer_step(t, &err), expected);
    if (!strstr(err.text, words) || (about_datum && !strstr(err.text, "datum ")))
        fail_msg("\"%s\" instead of \"%s\"", err.text, words);
}

static void mistakes_name_site_item_and_datum(void **state)
{
    (void)state;
    rws_trainer *t = trainer((rws_config){0});
    wrong = TOO_FEW;
    expect(t, RWS_BAD_INPUT, true, "The model visits site \"x\" ");
    wrong = TOO_MANY;
    expect(t, RWS_BAD_INPUT, true, "The model comes to item ");
    wrong = TOO_WIDE;
    expect(t, RWS_BAD_INPUT, false, "Site \"x\" has 2 numbers in the model, but an item of the data has 1.");
    wrong = RIGHT;
    reads_past = 1;
    expect(t, RWS_BAD_INPUT, true, "The guide comes to item ");
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
    x[1] = 1, x[2] = INFINITY;
    assert_int_equal(rws_trainer_ask(t, &(rws_question){.fields = fields}, &a, &err), RWS_BAD_INPUT);
    assert_string_equal(err.text, "Number 0 of item 1 of field \"x\" of datum 0 is inf; data must be finite.");
    rws_trainer_free(t);
}

/* ---- items that are missing: 0 for certain, where a second series says so (docs/data.md) */

enum { SLOTS = 4 };

typedef struct {
    rws_param *stay, *mean, *seen;
} holes;

static rws_status setup_holes(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    holes *w = *state = rws_setup_alloc(s, sizeof *w);
    (void)random, (void)err;
    rws_setup_field(s, "n", 1);
    rws_setup_series(s, "seen", 1, SLOTS);
    rws_setup_series(s, "y", 1, SLOTS);
    w->stay = rws_setup_param(s, RWS_THETA, "theta.stay", 1, 1, RWS_ZERO);
    w->mean = rws_setup_param(s, RWS_THETA, "theta.mean", 2, 1, RWS_ZERO);
    w->seen = rws_setup_param(s, RWS_THETA, "theta.seen", 1, 1, RWS_ZERO);
    rws_param_values(w->stay)[0] = 1.2f;
    rws_param_values(w->mean)[0] = -0.7f, rws_param_values(w->mean)[1] = 0.9f;
    rws_param_values(w->seen)[0] = 0.4f;
    return RWS_OK;
}

static rws_status data_with_holes(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                                  float *const *fields, rws_error *err)
{
    (void)state, (void)split, (void)first, (void)err;
    for (int i = 0; i < n; i++) {
        float *seen = fields[1] + i * (1 + SLOTS), *y = fields[2] + i * (1 + SLOTS);
        seen[0] = y[0] = (float)rws_random_below(random, SLOTS + 1);
        fields[0][i] = seen[0];
        for (int t = 1; t <= SLOTS; t++) {
            seen[t] = t <= (int)seen[0] ? (float)rws_random_below(random, 2) : 0;
            y[t] = seen[t] != 0 ? (float)rws_random_normal(random) : 0;
        }
    }
    return RWS_OK;
}

static void model_with_holes(rws_path *path, const void *state)
{
    const holes *w = state;
    const int    n = rws_choose(path, "n", rws_zeros(path, SLOTS + 1));
    for (int t = 0, z = 0; t < n; t++) {
        if (!rws_flip(path, "stays", rws_parameter(path, w->stay))) z = !z;
        if (rws_flip(path, "seen", rws_parameter(path, w->seen)))
            rws_normal(path, "y", rws_slice(path, rws_parameter(path, w->mean), z, 1), rws_constant(path, 1));
        else rws_delta(path, "y", rws_constant(path, 0));
    }
}

static void guide_with_holes(rws_path *path, const void *state)
{
    (void)state;
    const int n = rws_branch(path, rws_length(path, "y"));
    for (int t = 0; t < n; t++)
        rws_flip(path, "stays", rws_add(path, rws_item(path, "y", t), rws_item(path, "seen", t)));
}

static double log_evidence_with_holes(const float *const *fields, const void *context)
{
    (void)context;
    const int    n = (int)fields[1][0];
    const double stay = 1 / (1 + exp(-(double)1.2f)), seen = 1 / (1 + exp(-(double)0.4f));
    double       a[2] = {1, 0}, log_p = -log(SLOTS + 1);
    for (int t = 1; t <= n; t++) {
        const double to[2] = {a[0] * stay + a[1] * (1 - stay), a[1] * stay + a[0] * (1 - stay)};
        for (int z = 0; z < 2; z++) {
            const double d = (double)fields[2][t] - (double)(z ? 0.9f : -0.7f);
            a[z] = to[z] * (fields[1][t] != 0 ? seen * exp(-d * d / 2) / sqrt(2 * M_PI) : 1 - seen);
        }
        const double total = a[0] + a[1];
        log_p += log(total);
        a[0] /= total, a[1] /= total;
    }
    return log_p;
}

static rws_status enumerated(rws_eval *e, const void *state, double *value, rws_error *err)
{
    (void)state;
    return rws_eval_enumerate(e, value, err);
}

static rws_status summed(rws_eval *e, const void *state, double *value, rws_error *err)
{
    return rws_eval_mean(e, log_evidence_with_holes, state, value, err);
}

static void items_may_be_missing(void **state)
{
    (void)state;
    static const rws_metric metrics[] = {{"enumerated", "", enumerated}, {"summed", "", summed}, {0}};
    const rws_model         m = {.abi = RWS_ABI,
                                 .name = "holes",
                                 .metrics = metrics,
                                 .defaults = {.n_test = 40, .batch = 20},
                                 .setup = setup_holes,
                                 .data = data_with_holes,
                                 .guide = guide_with_holes,
                                 .model = model_with_holes};
    rws_trainer            *t = trainer_for(&(rws_config){.method = "wws"}, &m);
    rws_measures            measured;
    rws_error               err = {""};
    if (rws_trainer_evaluate(t, &measured, &err) != RWS_OK) fail_msg("%s", err.text);
    assert_true(near(measured.value[0], measured.value[1], 1e-5));
    steps(t, 20); /* wake and sleep */
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
        cmocka_unit_test(letters_batched_are_scalar),
        cmocka_unit_test(letters_do_not_depend_on_threads),
        cmocka_unit_test(letters_continue_where_they_were),
        cmocka_unit_test(letters_with_counts_are_particles),
        cmocka_unit_test(letters_are_dreamt),
        cmocka_unit_test(mistakes_name_site_item_and_datum),
        cmocka_unit_test(items_may_be_missing),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
