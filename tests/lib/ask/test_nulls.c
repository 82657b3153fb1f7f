/* test_nulls.c - arguments that are NULL, indices out of range, and threads that share a trainer.
 *
 * Every public function of rws_train.h is called with NULL for each of its pointers, in a process of its own: a crash is a
 * failure of that call alone. A function that returns a status must return RWS_BAD_INPUT with a message where the pointer
 * is needed.
 */
#include "rws_results.h"
#include "support.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static rws_trainer   *t;
static rws_posterior *p;
static rws_results   *r;
static rws_result     empty;
static rws_answer     answer;
static rws_measures   measures;
static rws_error      err;

static bool in_child(const char *call)
{
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);
        return true;
    }
    int how = -1;
    waitpid(child, &how, 0);
    if (child < 0 || how != 0) fail_msg("%s ends with %d", call, how);
    return false;
}

/* The call is refused with a message. */
#define REFUSED(call) \
    if (in_child(#call)) _exit((call) == RWS_BAD_INPUT && err.text[0] ? 0 : 1)

/* The condition, which calls a function, holds. */
#define HOLDS(condition) \
    if (in_child(#condition)) _exit((condition) ? 0 : 1)

/* The call returns. */
#define RETURNS(call)      \
    if (in_child(#call)) { \
        call;              \
        _exit(0);          \
    }

static int make(void **unused)
{
    (void)unused;
    const rws_config config = {.model = "gmm", .particles = 2, .batch = 2, .n_test = 2, .iterations = 2};
    assert_true(rws_trainer_new(&config, NULL, &t, &err) == RWS_OK);
    assert_true(rws_posterior_new(t, &p, &err) == RWS_OK);
    return 0;
}

static int drop(void **unused)
{
    (void)unused;
    rws_posterior_free(p);
    rws_trainer_free(t);
    return 0;
}

static void trainers_refuse_null(void **unused)
{
    (void)unused;
    rws_trainer     *out;
    rws_config       config = {.model = "gmm"};
    rws_answers     *answers;
    float            number;
    rws_param_view   view;
    const rws_config none = {0};
    REFUSED(rws_config_fill(NULL, NULL, &err));
    RETURNS((void)!rws_config_fill(&config, NULL, NULL));
    REFUSED(rws_config_fill(&(rws_config){0}, NULL, &err));
    REFUSED(rws_trainer_new(NULL, NULL, &out, &err));
    REFUSED(rws_trainer_new(&config, NULL, NULL, &err));
    REFUSED(rws_trainer_new(&none, NULL, &out, &err));
    RETURNS((void)!rws_trainer_new(&none, NULL, &out, NULL));
    RETURNS(rws_trainer_free(NULL));
    HOLDS(!rws_trainer_config(NULL) && !rws_trainer_model(NULL) && rws_trainer_iteration(NULL) == 0);
    HOLDS(rws_trainer_seconds(NULL) == 0 && rws_trainer_n_params(NULL) == 0 && rws_trainer_size(NULL) == 0);
    REFUSED(rws_trainer_step(NULL, &err));
    HOLDS(rws_trainer_step(t, NULL) == RWS_OK);
    REFUSED(rws_trainer_evaluate(NULL, &measures, &err));
    REFUSED(rws_trainer_evaluate(t, NULL, &err));
    HOLDS(rws_trainer_evaluate(t, &measures, NULL) == RWS_OK);
    HOLDS(isnan(rws_measures_get(NULL, "kl")) && isnan(rws_measures_get(&measures, NULL)));
    REFUSED(rws_trainer_gradient(NULL, RWS_TRAIN, 0, &number, 1, &err));
    REFUSED(rws_trainer_gradient(t, RWS_TRAIN, 0, NULL, rws_trainer_size(t), &err));
    REFUSED(rws_trainer_give(NULL, NULL, NULL, &err));
    HOLDS(rws_trainer_give(t, NULL, NULL, NULL) == RWS_OK);
    HOLDS(!rws_trainer_unvisited(NULL) && !rws_trainer_unlearned(NULL) && !rws_trainer_unguided(NULL));
    HOLDS(!rws_trainer_param(NULL, 0, &view) && !rws_trainer_param(t, 0, NULL));
    HOLDS(!rws_trainer_find(NULL, "x", &view) && !rws_trainer_find(t, NULL, &view) && !rws_trainer_find(t, "x", NULL));
    RETURNS(rws_trainer_changed(NULL));
    REFUSED(rws_trainer_keep(NULL, "folder", &err));
    REFUSED(rws_trainer_keep(t, NULL, &err));
    REFUSED(rws_trainer_save(NULL, &err));
    REFUSED(rws_trainer_save(t, &err));
    REFUSED(rws_trainer_resume(NULL, NULL, NULL, &out, &err));
    REFUSED(rws_trainer_resume("nowhere", NULL, NULL, NULL, &err));
    REFUSED(rws_trainer_resume("nowhere", NULL, NULL, &out, &err));
    HOLDS(strcmp(rws_trainer_warnings(NULL), "") == 0);
    REFUSED(rws_trainer_train(NULL, NULL, &err));
    HOLDS(rws_trainer_train(t, NULL, NULL) == RWS_OK);
    REFUSED(rws_trainer_ask(NULL, &(rws_question){0}, &answers, &err));
    REFUSED(rws_trainer_ask(t, NULL, &answers, &err));
    REFUSED(rws_trainer_ask(t, &(rws_question){0}, NULL, &err));
    RETURNS((void)!rws_ranks_open(NULL));
}

static void posteriors_refuse_null(void **unused)
{
    (void)unused;
    rws_posterior     *out;
    rws_answers       *answers;
    rws_samples       *samples;
    rws_score          score;
    rws_field          field;
    rws_marginals     *marginals;
    char              *text;
    const rws_question question = {.n_particles = 2}, given = {.n_particles = 2, .n_given = 1};
    const rws_choice   nameless = {.dim = 1}, no_value = {.site = "z", .dim = 1};
    REFUSED(rws_posterior_open(NULL, NULL, NULL, &out, &err));
    REFUSED(rws_posterior_open("nowhere", NULL, NULL, NULL, &err));
    REFUSED(rws_posterior_new(NULL, &out, &err));
    REFUSED(rws_posterior_new(t, NULL, &err));
    RETURNS(rws_posterior_free(NULL));
    HOLDS(!rws_posterior_config(NULL) && !rws_posterior_model(NULL) && rws_posterior_iteration(NULL) == 0);
    HOLDS(!rws_posterior_field(NULL, 0, &field) && !rws_posterior_field(p, 0, NULL));
    HOLDS(!rws_trainer_field(NULL, 0, &field) && !rws_trainer_field(t, 0, NULL) && !rws_trainer_field(t, -1, &field));
    HOLDS(rws_trainer_field(t, 0, &field) && strcmp(field.name, "x") == 0 && !rws_trainer_field(t, 1, &field));
    REFUSED(rws_marginals_new(NULL, 1, &marginals, &err));
    REFUSED(rws_marginals_new(&(rws_answers){0}, 1, NULL, &err));
    REFUSED(rws_answers_json(NULL, &(rws_answers_shown){0}, &text, &err));
    REFUSED(rws_answers_json(&(rws_answers){0}, NULL, &text, &err));
    REFUSED(rws_answers_json(&(rws_answers){0}, &(rws_answers_shown){0}, NULL, &err));
    RETURNS(rws_marginals_free(NULL));
    REFUSED(rws_posterior_ask(NULL, &question, &answers, &err));
    REFUSED(rws_posterior_ask(p, NULL, &answers, &err));
    REFUSED(rws_posterior_ask(p, &question, NULL, &err));
    REFUSED(rws_posterior_ask(p, &given, &answers, &err));
    HOLDS(rws_posterior_ask(p, &question, &answers, NULL) == RWS_OK);
    RETURNS(rws_answers_free(NULL));
    HOLDS(!rws_answer_text(NULL, "x") && !rws_answer_text(&answer, NULL));
    HOLDS(!rws_answer_value(NULL, "x", 0) && !rws_answer_value(&answer, NULL, 0));
    REFUSED(rws_posterior_score(NULL, &question, NULL, 0, &score, &err));
    REFUSED(rws_posterior_score(p, NULL, NULL, 0, &score, &err));
    REFUSED(rws_posterior_score(p, &question, NULL, 1, &score, &err));
    REFUSED(rws_posterior_score(p, &question, &nameless, 1, &score, &err));
    REFUSED(rws_posterior_score(p, &question, &no_value, 1, &score, &err));
    REFUSED(rws_posterior_score(p, &question, NULL, 0, NULL, &err));
    REFUSED(rws_posterior_sample(NULL, 1, 0, &samples, &err));
    REFUSED(rws_posterior_sample(p, 1, 0, NULL, &err));
    HOLDS(rws_posterior_sample(p, 1, 0, &samples, NULL) == RWS_OK);
    RETURNS(rws_samples_free(NULL));
}

static void results_refuse_null(void **unused)
{
    (void)unused;
    rws_results *out;
    REFUSED(rws_results_read(NULL, 1, &out, &err));
    REFUSED(rws_results_read((const char *const[]){NULL}, 1, &out, &err));
    REFUSED(rws_results_read(NULL, 0, NULL, &err));
    RETURNS(rws_results_free(NULL));
    assert_true(rws_results_read(NULL, 0, &r, &err) == RWS_OK);
    REFUSED(rws_results_filter(NULL, (const char *const[]){"run=x"}, 1, &err));
    REFUSED(rws_results_filter(r, NULL, 1, &err));
    REFUSED(rws_results_filter(r, (const char *const[]){NULL}, 1, &err));
    rws_results_free(r);
    HOLDS(!rws_result_state(NULL) && !rws_result_get(NULL, "run") && !rws_result_get(&empty, NULL));
    HOLDS(!rws_result_has(NULL, "run", "x") && !rws_result_has(&empty, NULL, "x") &&
          !rws_result_has(&empty, "run", NULL));
    HOLDS(!rws_result_same_but_seed(NULL, &empty) && !rws_result_same_but_seed(&empty, NULL));
    HOLDS(!rws_result_history(NULL, "kl") && !rws_result_history(&empty, NULL));
    HOLDS(isnan(rws_result_last(NULL, "kl")) && isnan(rws_result_last(&empty, NULL)));
    HOLDS(!rws_result_shot(NULL, "x", 0) && !rws_result_shot(&empty, NULL, 0));
}

static void tables_and_paths_refuse_null(void **unused)
{
    (void)unused;
    HOLDS(rws_method_at(0, NULL) && rws_optimiser_at(0, NULL) && !rws_model_at(-1));
    HOLDS(!rws_path_slot(NULL) && rws_path_ended(NULL) && rws_path_failure(NULL, NULL) == RWS_BAD_INPUT);
    RETURNS(rws_path_run(NULL));
    HOLDS(!rws_path_stack(NULL, NULL));
    RETURNS(rws_path_pause(NULL));
    RETURNS(rws_path_refuse(NULL, RWS_BAD_INPUT, NULL));
}

static void test_data_have_an_end(void **unused)
{
    (void)unused;
    rws_answers *answers;
    for (int i = 0; i < 4; i++) {
        const int test = (const int[]){-1, RWS_MAX_TEST, 1000000000, 2147483647}[i];
        REFUSED(rws_posterior_ask(p, &(rws_question){.test = test}, &answers, &err));
        REFUSED(rws_trainer_ask(t, &(rws_question){.test = test}, &answers, &err));
    }
}

/* ---- two threads */

static void *step_elsewhere(void *context)
{
    rws_answers *answers;
    rws_error    why = {""};
    (void)context;
    assert_true(rws_trainer_step(t, &why) == RWS_BAD_INPUT && strstr(why.text, "one thread at a time"));
    assert_true(rws_trainer_evaluate(t, &measures, &why) == RWS_BAD_INPUT);
    assert_true(rws_trainer_ask(t, &(rws_question){0}, &answers, &why) == RWS_BAD_INPUT);
    return NULL;
}

static rws_status use_twice(void *context, rws_trainer *own, const rws_measures *m, bool final, rws_error *e)
{
    pthread_t    other;
    rws_answers *answers;
    (void)context, (void)m, (void) final;
    assert_true(pthread_create(&other, NULL, step_elsewhere, NULL) == 0);
    pthread_join(other, NULL);
    const rws_status status = rws_trainer_ask(own, &(rws_question){.n_particles = 2}, &answers, e);
    if (status == RWS_OK) rws_answers_free(answers);
    return status;
}

static void two_threads_are_told(void **unused)
{
    (void)unused;
    assert_true(rws_trainer_train(t, &(rws_watch){.evaluated = use_twice}, &err) == RWS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trainers_refuse_null),  cmocka_unit_test(posteriors_refuse_null),
        cmocka_unit_test(results_refuse_null),   cmocka_unit_test(tables_and_paths_refuse_null),
        cmocka_unit_test(test_data_have_an_end), cmocka_unit_test(two_threads_are_told),
    };
    return cmocka_run_group_tests(tests, make, drop);
}
