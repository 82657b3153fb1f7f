/* test_infer.c - answers are groups of particles with the same reports; their shares, weights and exact probabilities
 * are those of the particles, of importance sampling and of the parser. */
#include "trained.h"

#include "data/parse.h"
#include "model/model.h"
#include "run/infer.h"

#include <stdio.h>
#include <string.h>

static const char sentence[] = "astronomers saw stars with telescopes";
static const char low[] = "(S (NP astronomers) (VP (V saw) (NP (NP stars) (PP (P with) (NP telescopes)))))";
static const char high[] = "(S (NP astronomers) (VP (VP (V saw) (NP stars)) (PP (P with) (NP telescopes))))";

static rws_trainer *trainer(const rws_model *model, rws_config c)
{
    c.model = model->name;
    c.method = "ww";
    c.seed = 3;
    c.asking = true;
    return trainer_for(&c, model);
}

static rws_trainer *grammar(void)
{
    return trainer(&rws_model_pcfg, (rws_config){.set = {"rules=grammar"}, .n_set = 1});
}

static rws_answers infer(rws_trainer *t, const char *text, int n, uint64_t seed)
{
    rws_answers a;
    rws_error   err = {""};
    if (rws_infer(t, text, n, seed, &a, &err) != RWS_OK) fail_msg("%s", err.text);
    return a;
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
    rws_trainer *t = grammar();
    rws_answers  a = infer(t, sentence, 20000, 1);
    double       guide = 0, posterior = 0, exact = 0;
    for (int i = 0; i < a.n; i++) {
        const rws_answer *at = &a.list[i];
        guide += at->guide;
        posterior += at->posterior;
        exact += at->exact;
        assert_true(at->exact > 0 ? at->posterior > 0 : at->posterior == 0);
        if (i) assert_true(at[-1].posterior >= at->posterior);
        if (i && at->posterior == 0) assert_true(at[-1].posterior > 0 || at[-1].guide >= at->guide);
        if (at->exact > 0) assert_string_equal(rws_answer_text(at, "sentence"), sentence);
    }
    assert_true(a.n > 1000 && a.n_particles == 20000);
    assert_true(near(guide, 1, 1e-9) && near(posterior, 1, 1e-9) && near(exact, 1, 1e-9));
    assert_true(near(a.exact_log_evidence, log(0.000882), 1e-5));
    assert_true(near(a.log_evidence, a.exact_log_evidence, 0.5));
    const rws_answer *one = find(&a, low), *two = find(&a, high);
    assert_true(one && two && near(one->exact, 4.0 / 7, 1e-5) && near(two->exact, 3.0 / 7, 1e-5));

    /* a tree's particles have one weight, so the posterior and the evidence follow from their numbers */
    const double mass = exp(a.log_evidence) * 20000;
    const double w1 = one->posterior * mass / (one->guide * 20000), w2 = two->posterior * mass / (two->guide * 20000);
    const double n1 = one->guide * 20000, n2 = two->guide * 20000;
    assert_true(near(a.ess * 20000, pow(n1 * w1 + n2 * w2, 2) / (n1 * w1 * w1 + n2 * w2 * w2), 1e-6));
    rws_answers_release(&a);
    assert_true(a.n == 0 && !a.list);
    rws_trainer_free(t);
}

static void the_same_seed_gives_the_same_answers(void **state)
{
    (void)state;
    rws_trainer *t = grammar();
    rws_answers  a = infer(t, "stars saw ears", 3000, 1), b = infer(t, "stars saw ears", 3000, 1),
                c = infer(t, "stars saw ears", 3000, 2);
    assert_int_equal(a.n, b.n);
    assert_true(a.log_evidence == b.log_evidence && a.log_evidence != c.log_evidence);
    for (int i = 0; i < a.n; i++) {
        assert_string_equal(rws_answer_text(&a.list[i], "tree"), rws_answer_text(&b.list[i], "tree"));
        assert_true(a.list[i].guide == b.list[i].guide);
    }
    rws_answers_release(&a);
    rws_answers_release(&b);
    rws_answers_release(&c);
    rws_trainer_free(t);
}

/* What no particle proposes is told by the parser; what the grammar cannot derive has no posterior. */
static void what_the_guide_misses_is_told(void **state)
{
    (void)state;
    rws_trainer *t = grammar();
    rws_answers  a = infer(t, "stars with ears with stars with saw saw ears with ears", 1, 1);
    double       exact = 0;
    int          n_missed = 0;
    for (int i = 0; i < a.n; i++) {
        exact += a.list[i].exact;
        n_missed += a.list[i].guide == 0;
        assert_true(isnan(a.list[i].posterior));
        if (i) assert_true(a.list[i - 1].exact >= a.list[i].exact);
    }
    assert_int_equal(n_missed, 10); /* 5 trees before the verb, 2 behind */
    assert_true(near(exact, 1, 1e-9) && a.log_evidence == -INFINITY && a.ess == 0 && a.exact_log_evidence > -100);
    rws_answers_release(&a);

    a = infer(t, "with with", 10, 1);
    assert_true(a.exact_log_evidence == -INFINITY && a.n >= 1 && a.list[0].exact == 0 && isnan(a.list[0].posterior));
    rws_answers_release(&a);
    rws_trainer_free(t);
}

/* The setting for those who ask holds whatever the run had, but for what they say themselves. */
static void a_run_is_asked_with_the_hard_likelihood(void **state)
{
    (void)state;
    rws_config   c = {.set = {"likelihood=relaxed"}, .n_set = 1};
    rws_trainer *t = trainer(&rws_model_pcfg, c);
    rws_answers  a = infer(t, "stars saw", 100, 1);
    assert_true(a.log_evidence == -INFINITY);
    rws_answers_release(&a);
    rws_trainer_free(t);
    c.ask[c.n_ask++] = "likelihood=relaxed";
    t = trainer(&rws_model_pcfg, c);
    a = infer(t, "stars saw", 100, 1);
    assert_true(a.log_evidence > -INFINITY && isnan(a.exact_log_evidence) && isnan(a.list[0].exact));
    rws_answers_release(&a);
    rws_trainer_free(t);
}

static void what_cannot_be_asked_is_refused(void **state)
{
    (void)state;
    rws_trainer *t = grammar();
    rws_answers  a;
    rws_error    err = {""};
    assert_int_equal(rws_infer(t, "stars saw moons", 10, 1, &a, &err), RWS_BAD_INPUT);
    assert_non_null(strstr(err.text, "moons"));
    assert_true(a.n == 0 && !a.list);
    rws_trainer_free(t);
    t = trainer(&rws_model_gmm, (rws_config){0});
    assert_int_equal(rws_infer(t, "1", 10, 1, &a, &err), RWS_BAD_INPUT);
    assert_string_equal(err.text, "Model gmm cannot be asked: it does not read what users type.");
    rws_trainer_free(t);
}

/* ---- a model whose reports are values: a coin is tossed until it shows tails; the datum is the number of heads, plus
 * a little. No data are needed to ask it. */

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
    (void)state, (void)split, (void)first, (void)n, (void)random, (void)fields;
    return rws_fail(err, RWS_BAD_INPUT, "There are no data.");
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
    rws_trainer *t = trainer(&coin, (rws_config){0});
    rws_answers  a = infer(t, "2.2", 5000, 1);
    double       weight[6], all = 0;
    assert_int_equal(a.n, 6);
    for (int n = 0; n < 6; n++) all += weight[n] = pow(0.5, n < 5 ? n + 1 : 5) * exp(-2 * pow(2.2 - n, 2));
    for (int i = 0; i < a.n; i++) {
        const int n = a.list[i].n_told;
        assert_true(near(a.list[i].posterior, weight[n] / all, 0.03) && isnan(a.list[i].exact));
        for (int k = 0; k < n; k++) {
            const rws_told *told = &a.list[i].told[k];
            assert_true(!told->text && told->dim == 2 && told->value[0] == (float)k && told->value[1] == 1);
            assert_string_equal(told->name, "head");
        }
        assert_null(rws_answer_text(&a.list[i], "head"));
    }
    assert_int_equal(a.list[0].n_told, 2);
    rws_answers_release(&a);
    rws_trainer_free(t);
}

/* ---- samples */

static double samples_look(void *context, int round, int wide)
{
    const int   n = 2500 * wide; /* more than one pass */
    rws_answers a;
    rws_error   err = {""};
    double      seen[6] = {0}, expected[6];
    if (rws_sample(context, n, (uint64_t)round + 1, &a, &err) != RWS_OK) fail_msg("%s", err.text);
    assert_int_equal(a.n, n);
    for (int i = 0; i < n; i++) seen[a.list[i].n_told]++;
    for (int k = 0; k < 6; k++) expected[k] = n * pow(0.5, k < 5 ? k + 1 : 5);
    const double tail = counts_tail(seen, expected, 6);
    rws_answers_release(&a);
    return tail;
}

static void samples_are_the_models(void **state)
{
    (void)state;
    rws_trainer *t = trainer(&coin, (rws_config){0});
    stays_likely("samples of the coin", samples_look, t);

    /* in no order: the halves are alike, though equal samples are one row */
    rws_answers a;
    rws_error   err = {""};
    assert_int_equal(rws_sample(t, 2000, 1, &a, &err), RWS_OK);
    int half[2] = {0};
    for (int i = 0; i < 2000; i++) half[i / 1000] += a.list[i].n_told == 0;
    assert_true(abs(half[0] - half[1]) < 150 && half[0] > 400 && half[1] > 400);
    rws_answers_release(&a);
    rws_trainer_free(t);

    t = grammar();
    rws_grammar *g;
    assert_int_equal(rws_sample(t, 50, 1, &a, &err), RWS_OK);
    assert_int_equal(rws_grammar_find("astronomers", &g, &err), RWS_OK);
    for (int i = 0; i < a.n; i++) {
        const char *tree = rws_answer_text(&a.list[i], "tree"), *text = rws_answer_text(&a.list[i], "sentence");
        int         words[400];
        const int   n = rws_grammar_tokens(g, text, words, 400);
        double      log_p;
        assert_true(n <= 400 && strncmp(tree, "(S (NP ", 7) == 0);
        assert_int_equal(rws_parse_log_p(g, NULL, words, n, &log_p, &err), RWS_OK);
        assert_true(log_p > -INFINITY || strchr(text, '?'));
    }
    rws_grammar_free(g);
    rws_answers_release(&a);
    rws_trainer_free(t);
}

/* ---- the same coin, seen in a picture as wide as there are heads, or among test data; it tells the time */

static rws_status seen_data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                            float *const *fields, rws_error *err)
{
    (void)state, (void)split, (void)random, (void)err;
    for (int i = 0; i < n; i++) fields[0][i] = (float)((first + (uint64_t)i) % 5);
    return RWS_OK;
}

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

static void expect_told(rws_answers *a, float n, float time)
{
    assert_true(a->n > 0 && rws_answer_value(&a->list[0], "n", 0)->value[0] == n);
    assert_true(rws_answer_value(&a->list[0], "time", 0)->value[0] == time);
    assert_null(rws_answer_value(&a->list[0], "time", 1));
    assert_null(rws_answer_value(&a->list[0], "place", 0));
    rws_answers_release(a);
}

static void pictures_and_test_data_are_questions(void **state)
{
    (void)state;
    rws_model model = coin;
    model.data = seen_data;
    model.model = timely_model;
    model.see = see_coin;
    rws_trainer *t;
    rws_answers  a;
    rws_error    err = {""};
    assert_int_equal(
        rws_trainer_new(&(rws_config){.model = "coin", .method = "ww", .seed = 3, .n_test = 5}, &model, &t, &err),
        RWS_OK);
    *rws_trainer_state_of(t).iteration = 1234; /* programs are told when it is */
    for (int i = 0; i < 4; i++) {
        assert_int_equal(rws_infer_test(t, i, 500, 1, &a, &err), RWS_OK);
        expect_told(&a, (float)i, 1234);
    }
    assert_int_equal(rws_infer_picture(t, &(rws_grey){"it", 3, 1, (const uint8_t[3]){0}}, 500, 1, &a, &err), RWS_OK);
    expect_told(&a, 3, 1234);
    assert_int_equal(rws_infer_picture(t, &(rws_grey){"it", 1, 2, (const uint8_t[2]){0}}, 500, 1, &a, &err),
                     RWS_BAD_INPUT);
    assert_string_equal(err.text, "\"it\" is 2 pixels high.");
    assert_true(a.n == 0 && !a.list);
    assert_int_equal(rws_sample(t, 3, 1, &a, &err), RWS_OK);
    assert_true(rws_answer_value(&a.list[2], "time", 0)->value[0] == 1234);
    rws_answers_release(&a);
    rws_trainer_free(t);

    t = grammar();
    assert_int_equal(rws_infer_picture(t, &(rws_grey){"it", 3, 1, (const uint8_t[3]){0}}, 500, 1, &a, &err),
                     RWS_BAD_INPUT);
    assert_string_equal(err.text, "Model pcfg cannot be asked about pictures.");
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
        cmocka_unit_test(pictures_and_test_data_are_questions),
        cmocka_unit_test(samples_are_the_models),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
