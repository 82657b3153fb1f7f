/* test_pcfg.c - the grammar as a model: its size, its metrics, sentences from files, expectation-maximisation and runs.
 * Its two programs have a test of their own. */
#include "files.h"
#include "pcfg_world.h"

#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------- size and metrics */

static size_t group_size(const world *w, rws_group g)
{
    return w->setup.params.first[g + 1] - w->setup.params.first[g];
}

static void parameters_are_those_of_the_paper(void **unused)
{
    (void)unused;
    world *w = world_new((const char *const[]){NULL});
    assert_int_equal(group_size(w, RWS_THETA), 12);
    assert_int_equal(group_size(w, RWS_PHI), 134862);
    world_free(w);
}

/* The share of an untrained guide's trees with a leaf on the test sentences: all, none, or as counted over
 * particles. */
static void the_truncated_share_is_measured(void **unused)
{
    (void)unused;
    const char *const all[] = {"nodes=1", NULL}, *const few[] = {"depth=5", "likelihood=hard", NULL};
    const rws_config c = {.n_test = 5, .particles = 400};
    rws_trainer     *t = trainer("ww", c, all);
    assert_true(metric(t, "truncated") == 1);
    rws_trainer_free(t);

    t = trainer("ww", c, few);
    world *w = world_new(few);
    memcpy(w->setup.params.value, rws__trainer_state_of(t).params->value, w->setup.params.size * sizeof(float));
    rws__params_transpose(&w->setup.params, ~0u, w->setup.params.value, w->setup.params.transposed);
    float            *x = data(w, 5);
    const rws_scores *s = pass(w, x, (how){.B = 5, .K = 2000});
    double            share = 0;
    for (int i = 0; i < s->n; i++) {
        rws_sequence tree = tree_of(w, i);
        share += has_leaf(&tree) ? s->count[i] / 10000.0 : 0;
        rws__sequence_release(&tree);
    }
    assert_true(share > 0.05 && share < 0.95);
    assert_true(
        near(metric(t, "truncated"), share, 0.05)); /* other sentences, on which an untrained guide hardly depends */
    free(x);
    world_free(w);
    rws_trainer_free(t);
}

/* At the truth p_error is 0; q_error is the guide's -log q at samples of the truth. */
static void errors_are_what_they_say(void **unused)
{
    (void)unused;
    const char *const truth[] = {"rules=grammar", NULL}, *const other[] = {NULL};
    rws_trainer *t = trainer("ws", (rws_config){.n_test = 2}, truth);
    assert_true(fabs(metric(t, "p_error")) < 1e-7);
    rws_trainer_free(t);

    t = trainer("ws", (rws_config){.n_test = 2}, other);
    world *w = world_new(truth);
    memcpy(w->setup.params.value, rws__trainer_state_of(t).params->value, w->setup.params.size * sizeof(float));
    double learned[12], true_p[12], kl = 0;
    log_theta(w, learned);
    rws__grammar_log_p(w->g, true_p);
    for (int i = 0; i < 12; i++) kl += exp(true_p[i]) * (true_p[i] - learned[i]) / 6;
    assert_true(near(metric(t, "p_error"), kl, 1e-5));

    /* log q of trees of the truth, drawn by the model at the truth */
    world       *dreamer = world_new(truth);
    rws_params  *p = &dreamer->setup.params;
    const size_t phi = p->first[RWS_PHI];
    memcpy(p->value + phi, w->setup.params.value + phi, (p->first[RWS_PHI + 1] - phi) * sizeof(float));
    rws__params_transpose(p, ~0u, p->value, p->transposed);
    const rws_scores *s = pass(dreamer, NULL, (how){.B = 1, .K = 2000, .mode = RWS_SLEEP});
    double           *each = malloc(2000 * sizeof *each), mean = 0, square = 0;
    int               n = 0;
    for (int i = 0; i < s->n; i++)
        for (uint32_t k = 0; k < s->count[i]; k++) each[n++] = -s->log_q[i];
    for (int i = 0; i < n; i++) mean += each[i] / n;
    for (int i = 0; i < n; i++) square += (each[i] - mean) * (each[i] - mean) / n;
    const double error = sqrt(square / 100 + square / n);
    assert_true(fabs(metric(t, "q_error") - mean) < 5 * error);
    free(each);
    world_free(dreamer);
    world_free(w);
    rws_trainer_free(t);
}

/* ------------------------------------------------------------------------------------------------ sentences from
 * files */

/* Writes a file; returns the setting that names it, which is valid until the fourth call from here. */
static const char *set_file(const char *setting, const char *text)
{
    static char sets[4][64];
    static int  next;
    char       *set = sets[next++ % 4];
    spill(setting, text, strlen(text));
    snprintf(set, sizeof sets[0], "%s=%s", setting, in_folder(setting));
    return set;
}

/* Training sentences are drawn from nine tenths of the file, all of them and nothing else; tests come from the rest. */
static void sentences_come_from_a_file(void **unused)
{
    (void)unused;
    char text[2000] = "";
    for (int i = 0; i < 20; i++)
        for (int k = 0; k <= i; k++) strcat(text, k < i ? "stars " : "stars\n");
    const char *set = set_file("data", text);
    world      *w = world_new((const char *const[]){set, NULL});
    rws_random  random = rws__random_new(rws__key_for(2, 0, RWS_KEY_DATA, 0), 0);
    float *x = malloc(1000 * (size_t)w->dim * sizeof *x), number[1000], *const fields[] = {x, number};
    rws_error err = {""};
    int       seen[21] = {0};
    assert_int_equal(rws_model_pcfg.data(w->state, RWS_TRAIN, 7, 1000, &random, fields, &err), RWS_OK);
    for (int i = 0; i < 1000; i++) {
        const float *at = x + (size_t)i * (size_t)w->dim;
        seen[(int)at[0]]++;
        assert_true(number[i] == at[0] - 1 - (at[0] > 10)); /* among the sentences for training */
        for (int k = 0; k < (int)at[0]; k++) assert_true(at[1 + k] == 3);
    }
    for (int n = 1; n <= 20; n++) assert_true(n % 10 ? seen[n] > 20 && seen[n] < 110 : seen[n] == 0);
    assert_int_equal(rws_model_pcfg.data(w->state, RWS_TEST, 1, 3, &random, fields, &err), RWS_OK);
    assert_true(x[0] == 20 && x[w->dim] == 10 && x[2 * w->dim] == 20);
    free(x);
    world_free(w);

    set = set_file("data", "stars saw ears\nstars saw moons\n");
    rws_config   c = {.model = "pcfg", .method = "ww", .set = {set}, .n_set = 1, .seed = 1};
    rws_trainer *t;
    assert_int_equal(rws_trainer_new(&c, NULL, &t, &err), RWS_BAD_INPUT);
    assert_non_null(strstr(err.text, "line 2: the grammar has no word \"moons\""));
    c.set[c.n_set++] = "unknown=skip";
    assert_int_equal(rws_trainer_new(&c, NULL, &t, &err), RWS_OK);
    rws_trainer_free(t);
}

/* A grammar without probabilities has no p_error; but it has log p(x), by the parser. */
static void a_grammar_without_probabilities_learns(void **unused)
{
    (void)unused;
    const char *const set[] = {set_file("grammar", "start S\nS -> S S | a | b\n"), set_file("data", "a b\nb\na a a\n"),
                               NULL};
    rws_trainer      *t = trainer("ws", (rws_config){.n_test = 3, .particles = 5}, set);
    rws_error         err = {""};
    steps(t, 1);
    assert_true(isnan(metric(t, "p_error")) && isnan(metric(t, "q_error")));
    const float *theta = param_of(rws__trainer_state_of(t).params, "theta.S")->value;
    double       p[3], total = 0;
    for (int i = 0; i < 3; i++) total += p[i] = exp((double)theta[i]);
    for (int i = 0; i < 3; i++) p[i] /= total;
    const double want = log(p[0] * p[1] * p[2]) + log(p[2]) + log(2 * p[0] * p[0] * p[1] * p[1] * p[1]);
    assert_true(near(metric(t, "log_p_exact"), want / 3, 1e-5));
    rws_trainer_free(t);

    rws_config c = {.model = "pcfg", .method = "ws", .set = {set[0]}, .n_set = 1, .seed = 1};
    assert_int_equal(rws_trainer_new(&c, NULL, &t, &err), RWS_BAD_INPUT);
    assert_non_null(strstr(err.text, "`data=FILE`"));
}

/* -------------------------------------------------------------------------------------------------------------- em */

/* On a fixed sample log p(x) never falls, and soon stops rising. */
static void em_climbs(void **unused)
{
    (void)unused;
    const char *const learned =
        set_file("data", "stars saw ears\nears saw stars with ears with ears\nstars saw ears with stars\n");

    /* fewer than ten sentences serve both for training and for tests */
    rws_trainer *t = trainer("em", (rws_config){.n_test = 3}, (const char *const[]){learned, NULL});
    double       before = metric(t, "log_p_exact"), rise = INFINITY;
    for (int i = 0; i < 100; i++) {
        steps(t, 1);
        const double now = metric(t, "log_p_exact");
        assert_true(now >= before - 1e-6);
        rise = now - before;
        before = now;
    }
    assert_true(rise < 1e-5);
    rws_trainer_free(t);

    t = trainer("em", (rws_config){0}, (const char *const[]){"em_data=200", NULL});
    const double start = metric(t, "p_error");
    steps(t, 20);
    assert_int_equal(rws_trainer_iteration(t), 20);
    assert_true(metric(t, "p_error") < 0.02 && metric(t, "p_error") < start);
    rws_trainer_free(t);
}

/* If every sentence has one tree, one step from any start gives the counts of the rules. */
static void em_counts_rules(void **unused)
{
    (void)unused;
    const char  *set[] = {set_file("data", "take the cup\nwait then take the red ball\n"
                                            "put the box on the table then take the blue box\n"),
                          "grammar=orders", NULL};
    rws_trainer *t = trainer("em", (rws_config){0}, set);
    rws_error    err = {""};
    steps(t, 1);
    static const struct {
        const char *nonterminal;
        int         n;
        double      counts[4]; /* in the order of grammars/orders.pcfg */
    } want[] = {{"Order", 2, {3, 2}}, {"Act", 4, {3, 0, 1, 1}}, {"Thing", 2, {2, 2}},
                {"Place", 2, {1, 0}}, {"Object", 3, {1, 1, 2}}, {"Colour", 3, {1, 0, 1}}};
    for (int k = 0; k < COUNT(want); k++) {
        const float *theta = param_of(rws__trainer_state_of(t).params, "theta.%s", want[k].nonterminal)->value;
        double       all = 0;
        for (int i = 0; i < want[k].n; i++) all += want[k].counts[i];
        for (int i = 0; i < want[k].n; i++) assert_true(near(exp((double)theta[i]), want[k].counts[i] / all, 1e-6));
    }
    rws_trainer_free(t);

    set[0] = set_file("data", "take take\n");
    t = trainer("em", (rws_config){0}, set);
    assert_int_equal(rws_trainer_step(t, &err), RWS_BAD_INPUT);
    assert_string_equal(err.text, "The grammar derives none of the sentences to learn from.");
    rws_trainer_free(t);
}

/* --------------------------------------------------------------------------------------------------------------
 * runs */

/* The rules of NP are a distribution; trees come by falling frequency, whole and of the right root; a grammar that does
 * not know the words has none. */
static void snapshots_show_rules_and_trees(void **unused)
{
    (void)unused;
    const char *const truth[] = {"rules=grammar", NULL}, *const orders[] = {"grammar=orders", NULL};
    rws_trainer  *t = trainer("ws", (rws_config){.n_test = 2}, truth);
    rws_snapshots s = {0};
    rws_error     err = {""};
    double        total = 0, before = 1;
    int           n_rules = 0, n_trees = 0;
    assert_int_equal(rws__trainer_snapshots(t, &s, &err), RWS_OK);
    for (int i = 0; i < s.n; i++) {
        const rws_shown *x = &s.list[i];
        if (strcmp(x->snapshot, "np") == 0) {
            total += x->value;
            n_rules++;
            if (strcmp(x->label, "NP PP") == 0) assert_true(near(x->value, 0.4, 1e-6));
        } else if (strcmp(x->snapshot, "trees") == 0) {
            assert_true(x->value > 0 && x->value <= before && strncmp(x->label, "(S (NP ", 7) == 0);
            before = x->value;
            n_trees++;
        }
    }
    assert_true(n_rules == 6 && n_trees == 5 && near(total, 1, 1e-6));
    rws__snapshots_release(&s);
    rws_trainer_free(t);

    t = trainer("ws", (rws_config){.n_test = 2}, orders);
    assert_int_equal(rws__trainer_snapshots(t, &s, &err), RWS_OK);
    for (int i = 0; i < s.n; i++) assert_true(strcmp(s.list[i].snapshot, "trees") != 0);
    rws__snapshots_release(&s);
    rws_trainer_free(t);
}

static void threads_change_nothing(void **unused)
{
    (void)unused;
    const char *const methods[] = {"ws", "ww", "vimco"}, *const none[] = {NULL};
    for (int m = 0; m < COUNT(methods); m++) {
        rws_trainer *t[2];
        for (int i = 0; i < 2; i++) {
            t[i] = trainer(methods[m], (rws_config){.threads = i + 1, .shards = 2, .batch = 4, .particles = 5}, none);
            steps(t[i], 10);
        }
        const rws_params *a = rws__trainer_state_of(t[0]).params, *b = rws__trainer_state_of(t[1]).params;
        assert_memory_equal(a->value, b->value, a->size * sizeof(float));
        for (int i = 0; i < 2; i++) rws_trainer_free(t[i]);
    }
}

/* Trees have no largest size; but iterations that are repeated need no new memory. */
static void nothing_is_allocated_once_warm(void **unused)
{
    (void)unused;
    const char *const methods[] = {"ws", "ww", "vimco"}, *const none[] = {NULL};
    for (int m = 0; m < COUNT(methods); m++) {
        rws_trainer *t = trainer(methods[m], (rws_config){.particles = 5}, none);
        float       *g = malloc(rws__trainer_state_of(t).params->size * sizeof *g);
        uint64_t     before = 0;
        for (uint64_t i = 0; i < 100; i++) {
            if (i == 10) before = rws__trainer_allocations(t);
            gradient_of(t, i % 10, g);
        }
        assert_int_equal(rws__trainer_allocations(t), before);
        free(g);
        rws_trainer_free(t);
    }
}

/* With all trees given, and a likelihood that takes the very sentence only, the rules are learned from the trees: wrong
 * trees, or trees in a wrong order of visits, would be impossible or do not fit the guide. */
static void given_trees_are_learned(void **unused)
{
    (void)unused;
    for (int sequential = 0; sequential < 2; sequential++) {
        const char *const set[] = {"labelled=1", "likelihood=hard",
                                   sequential ? "pcfg_core=sequential" : "pcfg_core=tree", NULL};
        rws_trainer *t = trainer("ww", (rws_config){.particles = 1, .batch = 20, .lr = "theta=3e-2,phi=2e-3"}, set);
        const double before = metric(t, "q_error");
        steps(t, 150);
        const double p_error = metric(t, "p_error"), q_error = metric(t, "q_error");
        if (!(p_error < 0.01 && q_error < before)) fail_msg("p %g, q %g from %g", p_error, q_error, before);
        rws_trainer_free(t);
    }
}

/* The same sentences come, and every fifth has its tree. */
static void a_share_of_trees_is_given(void **unused)
{
    (void)unused;
    rws_trainer *with = trainer("ww", (rws_config){.batch = 5}, (const char *const[]){"labelled=0.2", NULL});
    rws_trainer *none = trainer("ww", (rws_config){.batch = 5}, (const char *const[]){"labelled=0", NULL});
    float       *a = malloc(rws_trainer_size(with) * sizeof *a), *b = malloc(rws_trainer_size(none) * sizeof *b);
    gradient_of(with, 0, a);
    gradient_of(none, 0, b);
    assert_int_not_equal(memcmp(a, b, rws_trainer_size(with) * sizeof *a), 0);
    free(a), free(b);
    rws_trainer_free(with);
    rws_trainer_free(none);
    rws_config   c = {.model = "pcfg", .method = "em", .set = {"labelled=0.1"}, .n_set = 1, .seed = 1};
    rws_trainer *t;
    rws_error    err = {""};
    assert_int_equal(rws_trainer_new(&c, NULL, &t, &err), RWS_BAD_INPUT);
    assert_non_null(strstr(err.text, "Method em cannot learn from given choices"));
}

int main(void)
{
#define WITH_FILES(f) cmocka_unit_test_setup_teardown(f, folder_make, folder_remove)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_are_those_of_the_paper),
        cmocka_unit_test(the_truncated_share_is_measured),
        cmocka_unit_test(errors_are_what_they_say),
        WITH_FILES(sentences_come_from_a_file),
        WITH_FILES(a_grammar_without_probabilities_learns),
        WITH_FILES(em_climbs),
        WITH_FILES(em_counts_rules),
        cmocka_unit_test(snapshots_show_rules_and_trees),
        cmocka_unit_test(given_trees_are_learned),
        cmocka_unit_test(a_share_of_trees_is_given),
        cmocka_unit_test(threads_change_nothing),
        cmocka_unit_test(nothing_is_allocated_once_warm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
