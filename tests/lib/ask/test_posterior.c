/* test_posterior.c - answers are groups of particles with the same reports; their shares, weights and exact probabilities
 * are those of the particles, of importance sampling and of the parser. */
#include "trained.h"

#include "models/corpora/parse.h"
#include "models/model.h"
#include "ask/ask.h"
#include "train/trainer.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static const char sentence[] = "astronomers saw stars with telescopes";
static const char low[] = "(S (NP astronomers) (VP (V saw) (NP (NP stars) (PP (P with) (NP telescopes)))))";
static const char high[] = "(S (NP astronomers) (VP (VP (V saw) (NP stars)) (PP (P with) (NP telescopes))))";

static rws_posterior *posterior_for(const rws_model *model, rws_config c)
{
    rws_posterior *p;
    rws_error      err = {""};
    c.model = model->name;
    c.method = "ww";
    c.seed = 3;
    rws_trainer *t = trainer_for(&c, model);
    if (rws_posterior_new(t, &p, &err) != RWS_OK) fail_msg("%s", err.text);
    rws_trainer_free(t);
    return p;
}

static rws_posterior *grammar(void)
{
    return posterior_for(&rws_model_pcfg, (rws_config){.set = {"rules=grammar"}, .n_set = 1});
}

static rws_answers *ask(rws_posterior *p, rws_question q)
{
    rws_answers *a;
    rws_error    err = {""};
    if (rws_posterior_ask(p, &q, &a, &err) != RWS_OK) fail_msg("%s", err.text);
    return a;
}

static rws_answers *infer(rws_posterior *p, const char *text, int n, uint64_t seed)
{
    return ask(p, (rws_question){.text = text, .n_particles = n, .seed = seed});
}

static void refused(rws_posterior *p, rws_question q, const char *sentence)
{
    rws_answers *a = NULL;
    rws_error    err = {""};
    assert_int_equal(rws_posterior_ask(p, &q, &a, &err), RWS_BAD_INPUT);
    assert_string_equal(err.text, sentence);
    assert_null(a);
}

static const rws_answer *find(const rws_answers *a, const char *tree)
{
    const rws_answer *found = NULL;
    for (int i = 0; i < a->n; i++)
        if (strcmp(rws_answer_text(&a->list[i], "tree"), tree) == 0) {
            assert_null(found); /* once only */
            found = &a->list[i];
        }
    return found;
}

/* An untrained guide proposes many trees, and of 20000 particles some are the two that explain the sentence. */
static void answers_are_shares_of_particles(void **state)
{
    (void)state;
    rws_posterior *p = grammar();
    rws_answers   *a = infer(p, sentence, 20000, 1);
    double         guide = 0, posterior = 0, exact = 0;
    for (int i = 0; i < a->n; i++) {
        const rws_answer *at = &a->list[i];
        guide += at->guide;
        posterior += at->posterior;
        exact += at->exact;
        assert_true(at->exact > 0 ? at->posterior > 0 : at->posterior == 0);
        if (i) assert_true(at[-1].posterior >= at->posterior);
        if (i && at->posterior == 0) assert_true(at[-1].posterior > 0 || at[-1].guide >= at->guide);
        if (at->exact > 0) assert_string_equal(rws_answer_text(at, "sentence"), sentence);
    }
    assert_true(a->n > 1000 && a->n_particles == 20000);
    assert_true(near(guide, 1, 1e-9) && near(posterior, 1, 1e-9) && near(exact, 1, 1e-9));
    assert_true(near(a->exact_log_evidence, log(0.000882), 1e-5));
    assert_true(near(a->log_evidence, a->exact_log_evidence, 0.5));
    const rws_answer *one = find(a, low), *two = find(a, high);
    assert_true(one && two && near(one->exact, 4.0 / 7, 1e-5) && near(two->exact, 3.0 / 7, 1e-5));

    /* a tree's particles have one weight, so the posterior and the evidence follow from their numbers */
    const double mass = exp(a->log_evidence) * 20000;
    const double w1 = one->posterior * mass / (one->guide * 20000), w2 = two->posterior * mass / (two->guide * 20000);
    const double n1 = one->guide * 20000, n2 = two->guide * 20000;
    assert_true(near(a->ess * 20000, pow(n1 * w1 + n2 * w2, 2) / (n1 * w1 * w1 + n2 * w2 * w2), 1e-6));
    rws_answers_free(a);
    rws_posterior_free(p);
}

static void the_same_seed_gives_the_same_answers(void **state)
{
    (void)state;
    rws_posterior *p = grammar();
    rws_answers   *a = infer(p, "stars saw ears", 3000, 1), *b = infer(p, "stars saw ears", 3000, 1),
                *c = infer(p, "stars saw ears", 3000, 2);
    assert_int_equal(a->n, b->n);
    assert_true(a->log_evidence == b->log_evidence && a->log_evidence != c->log_evidence);
    for (int i = 0; i < a->n; i++) {
        assert_string_equal(rws_answer_text(&a->list[i], "tree"), rws_answer_text(&b->list[i], "tree"));
        assert_true(a->list[i].guide == b->list[i].guide);
    }
    rws_answers_free(a);
    rws_answers_free(b);
    rws_answers_free(c);
    rws_posterior_free(p);
}

/* Trees that no particle proposes come from the exact parser; a sentence that the grammar cannot derive has no
 * posterior. */
static void what_the_guide_misses_is_told(void **state)
{
    (void)state;
    rws_posterior *p = grammar();
    rws_answers   *a = infer(p, "stars with ears with stars with saw saw ears with ears", 1, 1);
    double         exact = 0;
    int            n_missed = 0;
    for (int i = 0; i < a->n; i++) {
        exact += a->list[i].exact;
        n_missed += a->list[i].guide == 0;
        assert_true(isnan(a->list[i].posterior));
        if (i) assert_true(a->list[i - 1].exact >= a->list[i].exact);
    }
    assert_int_equal(n_missed, 10); /* 5 trees before the verb, 2 behind */
    assert_true(near(exact, 1, 1e-9) && a->log_evidence == -INFINITY && a->ess == 0 && a->exact_log_evidence > -100);
    rws_answers_free(a);

    a = infer(p, "with with", 10, 1);
    assert_true(a->exact_log_evidence == -INFINITY && a->n >= 1 && a->list[0].exact == 0 &&
                isnan(a->list[0].posterior));
    rws_answers_free(a);
    rws_posterior_free(p);
}

/* rws_model.ask_setting overrides the setting of the run, and a setting of the question overrides both. */
static void a_run_is_asked_with_the_hard_likelihood(void **state)
{
    (void)state;
    rws_config     c = {.set = {"likelihood=relaxed"}, .n_set = 1};
    rws_posterior *p = posterior_for(&rws_model_pcfg, c);
    rws_answers   *a = infer(p, "stars saw", 100, 1);
    assert_true(a->log_evidence == -INFINITY);
    rws_answers_free(a);
    rws_posterior_free(p);

    rws_program program;
    rws_error   err = {""};
    const char *more[] = {rws_model_pcfg.ask_setting, "likelihood=relaxed"}; /* what the caller says counts more */
    c.model = "pcfg", c.seed = 3;
    assert_int_equal(rws__program_choose(&program, &c, NULL, NULL, &err), RWS_OK);
    assert_int_equal(rws__program_set_up(&program, more, 2, &err), RWS_OK);
    rws_engine        *engine = rws__program_engine_new(&program);
    const rws_question q = {.text = "stars saw", .n_particles = 100, .seed = 1};
    assert_int_equal(rws__program_ask(&program, engine, NULL, &q, &a, &err), RWS_OK);
    assert_true(a->log_evidence > -INFINITY && isnan(a->exact_log_evidence) && isnan(a->list[0].exact));
    rws_answers_free(a);
    rws__engine_free(engine);
    rws__program_release(&program);
}

static void what_cannot_be_asked_is_refused(void **state)
{
    (void)state;
    rws_posterior *p = grammar();
    rws_answers   *a;
    rws_error      err = {""};
    const float   *none[] = {NULL};
    assert_int_equal(rws_posterior_ask(p, &(rws_question){.text = "stars saw moons"}, &a, &err), RWS_BAD_INPUT);
    assert_non_null(strstr(err.text, "moons"));
    assert_null(a);
    refused(p, (rws_question){.picture = &(rws_grey){"it", 3, 1, (const uint8_t[3]){0}}},
            "Model pcfg cannot be asked about pictures.");
    assert_int_equal(rws_posterior_ask(p, NULL, &a, &err), RWS_BAD_INPUT);
    assert_string_equal(err.text, "There is no question (NULL).");
    assert_int_equal(rws_posterior_score(p, NULL, NULL, 0, &(rws_score){0, 0}, &err), RWS_BAD_INPUT);
    refused(p, (rws_question){.test = -1}, "There is no test datum -1; they are counted from 0.");
    refused(p, (rws_question){.test = INT_MAX},
            "There is no test datum 2147483647; the last that can be asked about is 999999.");
    refused(p, (rws_question){.text = sentence, .n_particles = -1},
            "A question takes 1 to 10000000 particles, not -1.");
    rws_posterior_free(p);
    p = posterior_for(&rws_model_gmm, (rws_config){0});
    refused(p, (rws_question){.text = "1"}, "Model gmm cannot be asked by a text: it does not read what users type.");
    refused(p, (rws_question){.fields = none}, "The question has no value for the field \"x\".");
    const float *x[] = {(const float[]){1, 2}};
    refused(p, (rws_question){.fields = x, .n_fields = 2}, "The question has 2 fields; model gmm declares 1.");
    refused(p, (rws_question){.fields = x, .n_fields = 1, .dims = (const int[]){2}},
            "The question has 2 numbers for the field \"x\", which has 1.");
    rws_posterior_free(p);
}

/* ---- a model whose reports are values: a coin is tossed until it shows tails; the datum is the number of heads, plus
 * a little. */

static rws_status coin_setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    (void)random, (void)err;
    static int nothing;
    rws_setup_field(s, "x", 1);
    *state = &nothing;
    return RWS_OK;
}

static rws_status coin_data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                            float *const *fields, rws_error *err)
{
    (void)state, (void)split, (void)random, (void)err;
    for (int i = 0; i < n; i++) fields[0][i] = (float)((first + (uint64_t)i) % 5);
    return RWS_OK;
}

static rws_status coin_read(const void *state, const char *text, float *const *fields, rws_error *err)
{
    (void)state, (void)err;
    fields[0][0] = strtof(text, NULL);
    return RWS_OK;
}

static int heads(rws_path *path)
{
    int n = 0;
    while (n < 5 && rws_flip(path, "more", rws_constant(path, 0))) n++;
    return n;
}

static void coin_guide(rws_path *path, const void *state)
{
    (void)state;
    heads(path);
}

static void coin_model(rws_path *path, const void *state)
{
    (void)state;
    const int n = heads(path);
    for (int i = 0; i < n; i++) rws_report(path, "head", rws_constants(path, (float[]){(float)i, 1}, 2));
    rws_normal(path, "x", rws_constant(path, (float)n), rws_constant(path, 0.5f));
}

static const rws_model coin = {.abi = RWS_ABI,
                               .name = "coin",
                               .help = "heads before the first tails",
                               .setup = coin_setup,
                               .data = coin_data,
                               .guide = coin_guide,
                               .model = coin_model,
                               .read = coin_read};

static void values_are_answers_too(void **state)
{
    (void)state;
    rws_posterior *p = posterior_for(&coin, (rws_config){0});
    rws_answers   *a = infer(p, "2.2", 5000, 1);
    double         weight[6], all = 0;
    assert_int_equal(a->n, 6);
    for (int n = 0; n < 6; n++) all += weight[n] = pow(0.5, n < 5 ? n + 1 : 5) * exp(-2 * pow(2.2 - n, 2));
    for (int i = 0; i < a->n; i++) {
        const int n = a->list[i].n_reports;
        assert_true(near(a->list[i].posterior, weight[n] / all, 0.03) && isnan(a->list[i].exact));
        for (int k = 0; k < n; k++) {
            const rws_reported *told = &a->list[i].reports[k];
            assert_true(!told->text && told->dim == 2 && told->value[0] == (float)k && told->value[1] == 1);
            assert_string_equal(told->name, "head");
        }
        assert_null(rws_answer_text(&a->list[i], "head"));
    }
    assert_int_equal(a->list[0].n_reports, 2);
    rws_answers_free(a);
    rws_posterior_free(p);
}

/* ---- particles and scores */

static int heads_of(const rws_weighted *w)
{
    int n = 0;
    for (int i = 0; i < w->n_choices; i++) {
        assert_string_equal(w->choices[i].site, "more");
        assert_true(w->choices[i].visit == i && w->choices[i].dim == 1);
        n += w->choices[i].value[0] == 1;
    }
    return n;
}

/* Every particle says what it chose; given back as choices, its scores are the same. */
static void particles_can_be_scored(rws_posterior *p, const float *const *fields, int K)
{
    rws_answers *a = ask(p, (rws_question){.fields = fields, .n_particles = K, .seed = 1, .particles = true});
    double       total = 0;
    int          count = 0;
    assert_true(a->n_weighted == 6 && a->n == 6);
    for (int i = 0; i < a->n_weighted; i++) {
        const rws_weighted *w = &a->particles[i];
        const rws_answer   *answer = &a->list[w->answer];
        const int           n = heads_of(w);
        rws_score           s;
        rws_error           err = {""};
        assert_int_equal(answer->n_reports, n);
        assert_true(near(answer->posterior, w->weight, 1e-12) && near(answer->guide, w->count / (double)K, 1e-12));
        assert_true(near(w->log_q, (n < 5 ? n + 1 : 5) * log(0.5), 1e-6));
        assert_true(near(w->log_p - w->log_q, -2 * pow(2.2 - n, 2) - log(0.5) - 0.9189385, 1e-5));
        assert_int_equal(rws_posterior_score(p, &(rws_question){.fields = fields}, w->choices, w->n_choices, &s, &err),
                         RWS_OK);
        assert_true(s.log_p == w->log_p && s.log_q == w->log_q);
        total += w->weight;
        count += w->count;
    }
    assert_true(near(total, 1, 1e-12) && count == K);
    rws_answers_free(a);
}

/* Equal particles are listed once, also if several passes have drawn them. */
static void particles_have_choices_that_can_be_scored(void **state)
{
    (void)state;
    const float    x = 2.2f, *fields[] = {&x};
    rws_posterior *p = posterior_for(&coin, (rws_config){0});
    particles_can_be_scored(p, fields, 2000);
    particles_can_be_scored(p, fields, 9000);

    rws_score s;
    rws_error err = {""};
    assert_int_equal(rws_posterior_score(p, &(rws_question){.fields = fields}, NULL, 0, &s, &err), RWS_BAD_INPUT);
    assert_true(strstr(err.text, "more") && isnan(s.log_p));
    const rws_choice nameless = {.dim = 1, .value = &x};
    assert_int_equal(rws_posterior_score(p, &(rws_question){.fields = fields}, &nameless, 1, &s, &err), RWS_BAD_INPUT);
    assert_non_null(strstr(err.text, "Given choice 0 needs a site"));
    assert_int_equal(rws_posterior_score(p, &(rws_question){.fields = fields}, NULL, 2, &s, &err), RWS_BAD_INPUT);
    assert_non_null(strstr(err.text, "2 given choices, but no list of them"));
    rws_posterior_free(p);
}

/* ---- a model that reports a text and a number; the exact posterior speaks of the text alone */

static void texts_and_numbers(rws_path *path, const void *state)
{
    (void)state;
    const int n = heads(path);
    rws_report_text(path, "many", n > 1 ? "many" : "few");
    rws_report(path, "n", rws_constant(path, (float)n));
    rws_normal(path, "x", rws_constant(path, (float)n), rws_constant(path, 0.5f));
}

static rws_status exactly(const void *state, const float *const *fields, rws_teller *tell, void *context,
                          double *log_evidence, rws_error *err)
{
    (void)state, (void)fields, (void)err;
    tell(context, "many", "many", 0.75);
    tell(context, "many", "few", 0.25);
    *log_evidence = -1;
    return RWS_OK;
}

static void exact_answers_are_right_beside_numbers(void **state)
{
    (void)state;
    rws_model model = coin;
    model.model = texts_and_numbers;
    model.posterior = exactly;
    rws_posterior *p = posterior_for(&model, (rws_config){0});
    rws_answers   *a = infer(p, "2.2", 3000, 1);
    assert_int_equal(a->n, 6);
    for (int i = 0; i < a->n; i++) {
        const bool many = strcmp(rws_answer_text(&a->list[i], "many"), "many") == 0;
        assert_true(a->list[i].exact == (many ? 0.75 : 0.25));
    }
    rws_answers_free(a);
    rws_posterior_free(p);
}

/* ---- many threads */

enum { N_QUESTIONS = 1000 };

typedef struct {
    rws_posterior *p;
    double         log_evidence[N_QUESTIONS];
    bool           fine;
} reader;

static void *ask_many(void *context)
{
    reader *k = context;
    k->fine = true;
    for (int i = 0; i < N_QUESTIONS && k->fine; i++) {
        const float        x = 0.005f * (float)i, *fields[] = {&x};
        const rws_question q = {.fields = fields, .n_particles = 50, .seed = (uint64_t)i};
        rws_answers       *a;
        k->fine = rws_posterior_ask(k->p, &q, &a, NULL) == RWS_OK;
        if (k->fine) k->log_evidence[i] = a->log_evidence;
        rws_answers_free(a);
    }
    return NULL;
}

static void threads_get_the_answers_of_one(void **state)
{
    (void)state;
    rws_posterior *p = posterior_for(&coin, (rws_config){0});
    static reader  alone, two[2];
    pthread_t      thread[2];
    alone.p = two[0].p = two[1].p = p;
    ask_many(&alone);
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&thread[i], NULL, ask_many, &two[i]), 0);
    for (int i = 0; i < 2; i++) {
        pthread_join(thread[i], NULL);
        assert_true(two[i].fine && alone.fine);
        assert_memory_equal(two[i].log_evidence, alone.log_evidence, sizeof alone.log_evidence);
    }
    rws_posterior_free(p);
}

/* ---- samples */

static double samples_look(void *context, int round, int wide)
{
    const int    n = 2500 * wide; /* more than one pass */
    rws_samples *a;
    rws_error    err = {""};
    double       seen[6] = {0}, expected[6];
    if (rws_posterior_sample(context, n, (uint64_t)round + 1, &a, &err) != RWS_OK) fail_msg("%s", err.text);
    assert_int_equal(a->n, n);
    for (int i = 0; i < n; i++) seen[a->list[i].n_reports]++;
    for (int k = 0; k < 6; k++) expected[k] = n * pow(0.5, k < 5 ? k + 1 : 5);
    const double tail = counts_tail(seen, expected, 6);
    rws_samples_free(a);
    return tail;
}

static void samples_are_the_models(void **state)
{
    (void)state;
    rws_posterior *p = posterior_for(&coin, (rws_config){0});
    stays_likely("samples of the coin", samples_look, p);

    /* in no order: the halves are alike, though equal samples are one row */
    rws_samples *a;
    rws_error    err = {""};
    assert_int_equal(rws_posterior_sample(p, 2000, 1, &a, &err), RWS_OK);
    int half[2] = {0};
    for (int i = 0; i < 2000; i++) {
        const rws_sample *s = &a->list[i];
        half[i / 1000] += s->n_reports == 0;
        /* a value far from its mean has probability 1e-15: what was made belongs to its choices */
        assert_true(fabs((double)s->fields[0][0] - s->n_reports) < 4);
        assert_int_equal(s->n_choices, s->n_reports < 5 ? s->n_reports + 1 : 5);
    }
    assert_true(abs(half[0] - half[1]) < 150 && half[0] > 400 && half[1] > 400);
    rws_samples_free(a);
    rws_posterior_free(p);

    p = grammar();
    rws_grammar *g;
    assert_int_equal(rws_posterior_sample(p, 50, 1, &a, &err), RWS_OK);
    assert_int_equal(rws__grammar_find("astronomers", &g, &err), RWS_OK);
    for (int i = 0; i < a->n; i++) {
        const rws_answer said = {.reports = a->list[i].reports, .n_reports = a->list[i].n_reports};
        const char      *tree = rws_answer_text(&said, "tree"), *text = rws_answer_text(&said, "sentence");
        int              words[400];
        const int        n = rws__grammar_tokens(g, text, words, 400);
        double           log_p;
        assert_true(n <= 400 && strncmp(tree, "(S (NP ", 7) == 0);
        assert_int_equal(rws__parse_log_p(g, NULL, words, n, &log_p, &err), RWS_OK);
        assert_true(log_p > -INFINITY || strchr(text, '?'));
    }
    rws__grammar_free(g);
    rws_samples_free(a);
    rws_posterior_free(p);
}

/* ---- the same coin, seen in a picture as wide as there are heads, or among test data; it tells the time */

static rws_status see_coin(const void *state, const rws_grey *picture, float *const *fields, rws_error *err)
{
    (void)state;
    if (picture->high != 1)
        return rws_fail(err, RWS_BAD_INPUT, "\"%s\" is %d pixels high.", picture->name, picture->high);
    fields[0][0] = (float)picture->wide;
    return RWS_OK;
}

static void timely_model(rws_path *path, const void *state)
{
    (void)state;
    const int n = heads(path);
    rws_report(path, "n", rws_constant(path, (float)n));
    rws_report(path, "time", rws_constant(path, (float)rws_iteration(path)));
    rws_normal(path, "x", rws_constant(path, (float)n), rws_constant(path, 0.1f));
}

static void expect_reports(rws_trainer *t, rws_question q, float n, float time)
{
    rws_answers *a;
    rws_error    err = {""};
    q.n_particles = 500;
    if (rws_trainer_ask(t, &q, &a, &err) != RWS_OK) fail_msg("%s", err.text);
    assert_true(a->n > 0 && rws_answer_value(&a->list[0], "n", 0)->value[0] == n);
    assert_true(rws_answer_value(&a->list[0], "time", 0)->value[0] == time);
    assert_null(rws_answer_value(&a->list[0], "time", 1));
    assert_null(rws_answer_value(&a->list[0], "place", 0));
    rws_answers_free(a);
}

static void pictures_and_test_data_are_questions(void **state)
{
    (void)state;
    rws_model model = coin;
    model.model = timely_model;
    model.see = see_coin;
    rws_answers *a;
    rws_error    err = {""};
    rws_trainer *t = trainer_for(&(rws_config){.model = "coin", .seed = 3, .n_test = 3}, &model);
    *rws__trainer_state_of(t).iteration = 1234; /* programs see the iteration */
    for (int i = 0; i < 5; i++) expect_reports(t, (rws_question){.test = i}, (float)(i % 5), 1234);
    expect_reports(t, (rws_question){.picture = &(rws_grey){"it", 3, 1, (const uint8_t[3]){0}}}, 3, 1234);
    const rws_question high = {.picture = &(rws_grey){"it", 1, 2, (const uint8_t[2]){0}}};
    assert_int_equal(rws_trainer_ask(t, &high, &a, &err), RWS_BAD_INPUT);
    assert_string_equal(err.text, "\"it\" is 2 pixels high.");
    assert_null(a);

    rws_posterior *p;
    rws_samples   *samples;
    assert_int_equal(rws_posterior_new(t, &p, &err), RWS_OK);
    assert_int_equal(rws_posterior_sample(p, 3, 1, &samples, &err), RWS_OK);
    assert_true(samples->list[2].reports[1].value[0] == 1234 && rws_posterior_iteration(p) == 1234);
    rws_samples_free(samples);
    rws_posterior_free(p);
    rws_trainer_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_shares_of_particles),
        cmocka_unit_test(the_same_seed_gives_the_same_answers),
        cmocka_unit_test(what_the_guide_misses_is_told),
        cmocka_unit_test(a_run_is_asked_with_the_hard_likelihood),
        cmocka_unit_test(what_cannot_be_asked_is_refused),
        cmocka_unit_test(values_are_answers_too),
        cmocka_unit_test(particles_have_choices_that_can_be_scored),
        cmocka_unit_test(exact_answers_are_right_beside_numbers),
        cmocka_unit_test(threads_get_the_answers_of_one),
        cmocka_unit_test(pictures_and_test_data_are_questions),
        cmocka_unit_test(samples_are_the_models),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
