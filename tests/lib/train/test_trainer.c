/* test_trainer.c - the public trainer, used as another program would use it: through rws_train.h alone. */
#include "files.h"

#include "rws_results.h"

#include <limits.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

extern const rws_model rws_user_model; /* toy.c */

static void refused(rws_status status, const rws_error *err, const char *words)
{
    assert_int_equal(status, RWS_BAD_INPUT);
    assert_sentence(err, words);
}

static rws_trainer *toy(rws_config c, const rws_model *model)
{
    rws_trainer *t;
    rws_error    err = {""};
    c.seed = 7;
    must(rws_trainer_new(&c, model ? model : &rws_user_model, &t, &err), &err);
    return t;
}

static void step(rws_trainer *t, int n)
{
    rws_error err = {""};
    for (int i = 0; i < n; i++) must(rws_trainer_step(t, &err), &err);
}

/* Two trainers have the same parameters, to the bit. */
static void assert_same(rws_trainer *a, rws_trainer *b)
{
    rws_param_view x, y;
    assert_int_equal(rws_trainer_iteration(a), rws_trainer_iteration(b));
    assert_int_equal(rws_trainer_n_params(a), rws_trainer_n_params(b));
    for (int i = 0; rws_trainer_param(a, i, &x) && rws_trainer_param(b, i, &y); i++)
        assert_memory_equal(x.values, y.values, (size_t)(x.rows * x.cols) * sizeof(float));
}

/* ---- configuration */

static void defaults_can_be_read(void **state)
{
    (void)state;
    rws_config c = {.model = "gmm"};
    rws_error  err = {""};
    must(rws_config_fill(&c, NULL, &err), &err);
    assert_string_equal(c.method, "ww");
    assert_string_equal(c.optimiser, "adam");
    assert_true(c.batch == 100 && c.threads == 1 && c.eval_particles == c.particles);
    assert_true(c.limits.stack_bytes == RWS_STACK_BYTES && c.limits.max_paths == RWS_MAX_PATHS);
    c = (rws_config){.particles = 3};
    must(rws_config_fill(&c, &rws_user_model, &err), &err);
    assert_true(c.particles == 3 && c.eval_particles == 3 && c.batch == 6);
    c = (rws_config){.model = "nothing"};
    refused(rws_config_fill(&c, NULL, &err), &err, "nothing");
    c = (rws_config){0};
    refused(rws_config_fill(&c, NULL, &err), &err, "names no model");
    rws_model plain = rws_user_model;
    plain.defaults.eval_every = 0;
    c = (rws_config){.iterations = UINT64_MAX};
    must(rws_config_fill(&c, &plain, &err), &err);
    assert_true(c.eval_every == UINT64_MAX / 20 + 1);
}

/* A program with windows has the locale of its user, in which numbers may have a comma. */
static void numbers_have_a_point_in_every_locale(void **state)
{
    (void)state;
    char         command[1024];
    rws_trainer *t;
    rws_results *r = NULL;
    rws_error    err = {""};
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >%s/said 2>&1", folder, folder);
    setenv("LOCPATH", folder, 1);
    if (system(command) != 0 || !setlocale(LC_NUMERIC, "de_DE.UTF-8")) {
        unsetenv("LOCPATH");
        skip(); /* the system has no sources of locales */
    }
    rws_config c = {.model = "pcfg", .method = "dww", .lr = "0.001", .l2 = 0.5, .set = {"delta=0.25"}, .n_set = 1};
    c.iterations = 1;
    const rws_status made = rws_trainer_new(&c, NULL, &t, &err);
    rws_status       status = made == RWS_OK ? rws_trainer_keep(t, in_folder("run"), &err) : made;
    if (status == RWS_OK) status = rws_trainer_train(t, NULL, &err);
    if (made == RWS_OK) rws_trainer_free(t);
    if (status == RWS_OK) status = rws_results_read(&(const char *){in_folder("run")}, 1, &r, &err);
    setlocale(LC_NUMERIC, "C");
    unsetenv("LOCPATH");
    must(status, &err);
    assert_string_equal(rws_result_get(&r->runs[0], "l2"), "0.5");
    assert_true(rws_result_has(&r->runs[0], "delta", "2.5e-1"));
    rws_results_free(r);
}

static void texts_are_copied(void **state)
{
    (void)state;
    char         method[] = "ws", set[] = "components=4", model[] = "gmm";
    rws_trainer *t;
    rws_error    err = {""};
    must(rws_trainer_new(&(rws_config){.model = model, .method = method, .set = {set}, .n_set = 1}, NULL, &t, &err),
         &err);
    memset(method, 'x', 2), memset(set, 'x', 4), memset(model, 'x', 3);
    const rws_config *c = rws_trainer_config(t);
    assert_string_equal(c->method, "ws");
    assert_string_equal(c->model, "gmm");
    assert_string_equal(c->set[0], "components=4");
    assert_string_equal(rws_trainer_model(t)->name, "gmm");
    rws_trainer_free(t);
}

static double nought(const rws_particle *p, const void *state)
{
    (void)p, (void)state;
    return 0;
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    rws_trainer *t;
    rws_error    err = {""};
    struct {
        rws_config  config;
        const char *words;
    } wrong[] = {
        {{0}, "no model"},
        {{.model = "nothing"}, "no model \"nothing\""},
        {{.model = "./nothing.so"}, "./nothing.so"},
        {{.model = "gmm", .method = "guess"}, "no method \"guess\""},
        {{.model = "gmm", .optimiser = "guess"}, "no optimiser \"guess\""},
        {{.model = "gmm", .lr = "fast"}, "fast"},
        {{.model = "gmm", .particles = -1}, "particles"},
        {{.model = "gmm", .method = "vimco", .particles = 1}, "at least 2 particles"},
        {{.model = "gmm", .n_test = -1}, "`n_test` must be between"},
        {{.model = "gmm", .iterations = UINT64_MAX}, "`iterations`"}, /* config.json could not be read again */
        {{.model = "gmm", .eval_every = UINT64_MAX}, "`eval_every`"},
        {{.model = "gmm", .n_set = 1}, "Setting 0 of the configuration is NULL"},
        {{.model = "gmm", .n_set = 65}, "at most 64 settings"},
        {{.model = "gmm", .set = {"colour=red"}, .n_set = 1}, "colour"},
        {{.model = "gmm", .set = {"components=1"}, .n_set = 1}, "components"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        refused(rws_trainer_new(&wrong[i].config, NULL, &t, &err), &err, wrong[i].words);
        assert_null(t);
        assert_int_equal(rws_trainer_new(&wrong[i].config, NULL, &t, NULL), RWS_BAD_INPUT); /* err may be NULL */
    }
    refused(rws_trainer_new(NULL, NULL, &t, &err), &err, "no configuration");
    assert_null(t);
    refused(rws_config_fill(NULL, &rws_user_model, &err), &err, "no configuration");
    refused(rws_trainer_resume(NULL, NULL, NULL, &t, &err), &err, "no name (NULL)");
    assert_null(t);
    assert_null(rws_param_values(NULL));
    rws_metric many[RWS_MAX_METRICS + 1];
    memset(many, 0, sizeof many);
    char names[RWS_MAX_METRICS][8];
    for (int i = 0; i < RWS_MAX_METRICS; i++) {
        snprintf(names[i], sizeof names[i], "m%d", i);
        many[i] = (rws_metric){names[i], "too many", .guide = nought};
    }
    rws_model model = rws_user_model;
    model.metrics = many;
    refused(rws_trainer_new(&(rws_config){0}, &model, &t, &err), &err, "more than 58 metrics");
    model = rws_user_model;
    model.defaults.at_once = -1;
    refused(rws_trainer_new(&(rws_config){0}, &model, &t, &err), &err, "default at_once must be between 0 and");
    model.defaults = (rws_defaults){.pictures = -1};
    refused(rws_trainer_new(&(rws_config){0}, &model, &t, &err), &err, "default pictures must be between 0 and");
    model = rws_user_model;
    model.abi = RWS_ABI + 1;
    refused(rws_trainer_new(&(rws_config){0}, &model, &t, &err), &err, "was built for version");
    static const char *const lacking[] = {"at hand lacks a name.", "toy lacks the function setup.",
                                          "toy lacks the function data.", "toy lacks the program model."};
    for (int lacks = 0; lacks < 4; lacks++) {
        model = rws_user_model;
        if (lacks == 0) model.name = NULL;
        if (lacks == 1) model.setup = NULL;
        if (lacks == 2) model.data = NULL;
        if (lacks == 3) model.model = NULL;
        refused(rws_trainer_new(&(rws_config){0}, &model, &t, &err), &err, lacking[lacks]);
        assert_null(t);
    }
}

static void tables_of_a_model_are_checked(void **state)
{
    (void)state;
    static const struct {
        rws_setting settings[3];
        const char *words;
    } settings[] = {
        {{{"k", "20", 0, 10, "above", true}},
         "Setting \"k\" of the model toy has the default 20, which is no whole number"},
        {{{"k", "-1", 0, 10, "below"}}, "has the default -1, which is no number from 0 to 10."},
        {{{"k", "abc", 0, 10, "no number"}}, "has the default abc, which is no number"},
        {{{"k", "0.5", 0, 10, "half", true}}, "has the default 0.5, which is no whole number"},
        {{{"k", "1x", 0, 10, "more"}}, "has the default 1x, which is no number"},
        {{{"k", "nan", 0, 10, "nan"}}, "has the default nan, which is no number"},
        {{{"k", "1", 10, 0, "turned"}}, "has 10 as its least value and 0 as its greatest."},
        {{{"k", NULL, 0, 10, "none"}}, "has no default (NULL)."},
        {{{"k=", "1", 0, 10, "equals"}}, "has a name that `set` cannot give."},
        {{{"k", "1", 0, 10, "one"}, {"k", "text", 0, 0, "two"}}, "Two settings of the model toy are called \"k\"."},
    };
    static const struct {
        rws_metric  metrics[3];
        const char *words;
    } metrics[] = {
        {{{"m", "nothing"}}, "Metric \"m\" of the model toy has none of the functions"},
        {{{"m", "both", .guide = nought, .posterior = nought}}, "has more than one of the functions"},
        {{{"m", "one", .guide = nought}, {"m", "two", .guide = nought}}, "Two metrics of the model toy are called"},
        {{{"ess", "taken", .guide = nought}}, "Metric \"ess\" of model toy has the name of a number that the library"},
        {{{"kl", "taken", .guide = nought}}, "Metric \"kl\" of model toy has the name"},
        {{{"seconds", "taken", .guide = nought}}, "Metric \"seconds\" of model toy has the name"},
        {{{"impossible", "taken", .guide = nought}}, "Metric \"impossible\" of model toy has the name"},
    };
    rws_trainer *t;
    rws_error    err = {""};
    rws_model    model = rws_user_model;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        model.settings = settings[i].settings;
        refused(rws_trainer_new(&(rws_config){0}, &model, &t, &err), &err, settings[i].words);
    }
    model = rws_user_model;
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++) {
        model.metrics = metrics[i].metrics;
        refused(rws_trainer_new(&(rws_config){0}, &model, &t, &err), &err, metrics[i].words);
    }
    model.metrics = (const rws_metric[]){{"log_evidence", "own", .guide = nought}, {"kl", "own", .guide = nought}, {0}};
    must(rws_trainer_new(&(rws_config){0}, &model, &t, &err), &err);
    rws_trainer_free(t);
    model = rws_user_model;
    model.snapshots = (const rws_snapshot[]){{"s", "nothing", NULL}, {0}};
    refused(rws_trainer_new(&(rws_config){0}, &model, &t, &err), &err, "Snapshot \"s\" of the model toy lacks");
}

static void tables_can_be_walked(void **state)
{
    (void)state;
    rws_method_info    method;
    rws_optimiser_info optimiser;
    int                n = 0;
    while (rws_model_at(n)) n++;
    assert_true(n == 4 && !rws_model_at(-1) && !rws_model_at(n + 1));
    for (n = 0; rws_method_at(n, &method); n++) assert_true(method.name && method.help && method.min_particles >= 1);
    assert_true(n >= 12);
    for (n = 0; rws_optimiser_at(n, &optimiser); n++) assert_true(optimiser.name && optimiser.help);
    assert_true(n > 0);
}

/* ---- parameters */

static void parameters_are_views(void **state)
{
    (void)state;
    rws_trainer   *a = toy((rws_config){0}, NULL), *b = toy((rws_config){0}, NULL);
    rws_param_view v, w;
    size_t         size = 0;
    for (int i = 0; rws_trainer_param(a, i, &v); i++) size += (size_t)(v.rows * v.cols);
    assert_int_equal(size, rws_trainer_size(a));
    assert_false(rws_trainer_param(a, -1, &v));
    assert_false(rws_trainer_find(a, "theta", &v));
    assert_true(rws_trainer_find(a, "phi.cell.weight_ih", &v) && v.group == RWS_PHI && v.rows == 24 && v.cols == 7);
    assert_true(v.n_dims == 2 && v.shape[0] == 24 && v.shape[1] == 7);

    /* numbers that are written count, also where the library keeps a transposed copy of them */
    rws_measures before, after, again;
    rws_error    err = {""};
    must(rws_trainer_evaluate(a, &before, &err), &err);
    for (int i = 0; i < v.rows * v.cols; i++) v.values[i] += 0.5f;
    rws_trainer_changed(a);
    must(rws_trainer_evaluate(a, &after, &err), &err);
    for (int i = 0; rws_trainer_param(a, i, &v) && rws_trainer_param(b, i, &w); i++)
        memcpy(w.values, v.values, (size_t)(v.rows * v.cols) * sizeof(float));
    rws_trainer_changed(b);
    must(rws_trainer_evaluate(b, &again, &err), &err);
    assert_true(rws_measures_get(&before, "log_evidence") != rws_measures_get(&after, "log_evidence"));
    assert_true(rws_measures_get(&after, "log_evidence") == rws_measures_get(&again, "log_evidence"));
    assert_true(isnan(rws_measures_get(&after, "no such metric")));
    rws_trainer_free(a);
    rws_trainer_free(b);
}

static void a_gradient_changes_nothing(void **state)
{
    (void)state;
    rws_trainer *a = toy((rws_config){0}, NULL), *b = toy((rws_config){0}, NULL);
    const size_t n = rws_trainer_size(a);
    float       *g = calloc(n, sizeof *g), *h = calloc(n, sizeof *h);
    rws_error    err = {""};
    must(rws_trainer_gradient(a, RWS_TRAIN, 0, g, n, &err), &err);
    must(rws_trainer_gradient(a, RWS_TRAIN, 0, h, n, &err), &err);
    assert_memory_equal(g, h, n * sizeof *g);
    must(rws_trainer_gradient(a, RWS_TEST, 1, h, n, &err), &err);
    assert_memory_not_equal(g, h, n * sizeof *g);
    refused(rws_trainer_gradient(a, RWS_TRAIN, 0, g, n + 1, &err), &err, "numbers");
    step(a, 2);
    step(b, 2);
    assert_same(a, b);
    free(g), free(h);
    rws_trainer_free(a);
    rws_trainer_free(b);
}

/* ---- failures */

static bool broken; /* the data of the next batch are */

static rws_status sometimes_broken(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                                   float *const *fields, rws_error *err)
{
    const rws_status status = rws_user_model.data(state, split, first, n, random, fields, err);
    if (broken && split == RWS_TRAIN) fields[0][2 * 4] = NAN;
    return status;
}

/* A model may let all particles be in memory at once by a large number, which must not overflow. */
static void many_particles_at_once_are_evaluated(void **state)
{
    (void)state;
    const int    at_once[] = {0, 1000000, INT_MAX};
    double       log_evidence[3];
    rws_measures m;
    rws_error    err = {""};
    for (int i = 0; i < 3; i++) {
        rws_model model = rws_user_model;
        model.defaults.at_once = at_once[i];
        rws_trainer *t = toy((rws_config){.particles = 1}, &model);
        must(rws_trainer_evaluate(t, &m, &err), &err);
        log_evidence[i] = rws_measures_get(&m, "log_evidence");
        assert_true(log_evidence[i] == log_evidence[0]);
        step(t, 1);
        rws_trainer_free(t);
    }
}

static void a_step_that_failed_leaves_no_trace(void **state)
{
    (void)state;
    rws_model model = rws_user_model;
    model.data = sometimes_broken;
    rws_trainer *a = toy((rws_config){0}, &model), *b = toy((rws_config){0}, NULL);
    rws_error    err = {""};
    step(a, 2);
    step(b, 2);
    broken = true;
    refused(rws_trainer_step(a, &err), &err, "field \"x\" of datum 4");
    assert_int_equal(rws_trainer_iteration(a), 2);
    broken = false;
    step(a, 2);
    step(b, 2);
    assert_same(a, b);
    rws_trainer_free(a);
    rws_trainer_free(b);
}

#ifdef __SSE__
#include <xmmintrin.h>

static void the_callers_arithmetic_is_left_alone(void **state)
{
    (void)state;
    const unsigned before = _mm_getcsr();
    rws_trainer   *t = toy((rws_config){.threads = 2}, NULL);
    rws_measures   m;
    rws_error      err = {""};
    step(t, 1);
    must(rws_trainer_evaluate(t, &m, &err), &err);
    assert_int_equal(_mm_getcsr() & 0x8040, before & 0x8040); /* the flags of exceptions that happened may differ */
    rws_trainer_free(t);
}
#endif

/* ---- folders */

static void a_run_goes_on_where_it_was(void **state)
{
    (void)state;
    rws_trainer *whole = toy((rws_config){.iterations = 12}, NULL), *t = toy((rws_config){.iterations = 6}, NULL);
    rws_error    err = {""};
    refused(rws_trainer_save(t, &err), &err, "no folder");
    refused(rws_trainer_keep(t, NULL, &err), &err, "no name (NULL)");
    must(rws_trainer_keep(t, in_folder("run"), &err), &err);
    refused(rws_trainer_keep(t, in_folder("another"), &err), &err, "has a folder already");
    must(rws_trainer_train(t, NULL, &err), &err);
    rws_trainer *busy = NULL;
    refused(rws_trainer_resume(in_folder("run"), NULL, &rws_user_model, &busy, &err), &err, "run");
    assert_null(busy);
    rws_trainer_free(t);

    must(rws_trainer_resume(in_folder("run"), &(rws_config){.iterations = 12, .threads = 2}, &rws_user_model, &t, &err),
         &err);
    assert_int_equal(rws_trainer_iteration(t), 6);
    assert_true(rws_trainer_seconds(t) > 0);
    must(rws_trainer_train(t, NULL, &err), &err);
    step(whole, 12);
    assert_same(t, whole);
    rws_trainer_free(t);
    refused(rws_trainer_resume(in_folder("nowhere"), NULL, NULL, &t, &err), &err, "nowhere");

    /* and can be asked, by a posterior that looks only */
    rws_posterior *p;
    rws_answers   *a, *b;
    refused(rws_posterior_open(in_folder("run"), &(rws_config){.n_set = -3}, &rws_user_model, &p, &err), &err,
            "At most 8 settings may differ");
    must(rws_posterior_open(in_folder("run"), NULL, &rws_user_model, &p, &err), &err);
    assert_int_equal(rws_posterior_iteration(p), 12);
    const rws_question q = {.test = 1, .n_particles = 40, .seed = 5};
    must(rws_posterior_ask(p, &q, &a, &err), &err);
    must(rws_trainer_ask(whole, &q, &b, &err), &err);
    assert_true(a->log_evidence == b->log_evidence && a->ess == b->ess);
    rws_answers_free(a);
    rws_answers_free(b);
    rws_posterior_free(p);
    rws_trainer_free(whole);
}

typedef struct {
    int        n_evaluated, n_final;
    uint64_t   stop_at;
    rws_status answer;
    uint64_t   last;
} seen;

static bool impossible;

static void sometimes_impossible(rws_path *path, const void *state)
{
    rws_user_model.model(path, state);
    rws_factor(path, "never", rws_constant(path, impossible ? -INFINITY : 0), false);
}

/* A step that failed after the parameters were stepped does not count, for the optimiser neither. */
static void a_run_is_kept_after_steps_that_failed(void **state)
{
    (void)state;
    rws_model model = rws_user_model;
    model.model = sometimes_impossible;
    rws_trainer *t = toy((rws_config){.iterations = 10}, &model);
    rws_error    err = {""};
    must(rws_trainer_keep(t, in_folder("run"), &err), &err);
    impossible = true;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(rws_trainer_step(t, &err), RWS_BROKEN);
        assert_sentence(&err, "impossible");
    }
    impossible = false;
    must(rws_trainer_save(t, &err), &err);
    rws_trainer_free(t);
    must(rws_trainer_resume(in_folder("run"), NULL, &model, &t, &err), &err);
    step(t, 1);
    rws_trainer_free(t);
}

static rws_status evaluated(void *context, rws_trainer *t, const rws_measures *m, bool final, rws_error *err)
{
    seen *s = context;
    assert_int_equal(m->iteration, rws_trainer_iteration(t));
    s->n_evaluated += !final;
    s->n_final += final;
    s->last = m->iteration;
    return s->answer == RWS_OK ? RWS_OK : rws_fail(err, s->answer, "The caller has seen enough.");
}

static bool stop(void *context)
{
    const seen *s = context;
    return s->last >= s->stop_at;
}

static void training_tells_and_obeys(void **state)
{
    (void)state;
    seen            s = {.stop_at = UINT64_MAX};
    const rws_watch watch = {.context = &s, .stop = stop, .evaluated = evaluated};
    rws_error       err = {""};
    rws_trainer    *t = toy((rws_config){.iterations = 20, .eval_every = 5}, NULL);
    must(rws_trainer_train(t, &watch, &err), &err);
    assert_true(s.n_evaluated == 5 && s.n_final == 1 && s.last == 20); /* 1, 5, 10, 15, 20 */
    assert_int_equal(rws_trainer_train(t, &watch, &err), RWS_OK);      /* it is finished, and only measured */
    assert_true(s.n_evaluated == 5 && s.n_final == 2);
    rws_trainer_free(t);

    s = (seen){.stop_at = 1};
    t = toy((rws_config){.iterations = 10000000, .eval_every = 5}, NULL);
    must(rws_trainer_keep(t, in_folder("stopped"), &err), &err);
    assert_int_equal(rws_trainer_train(t, &watch, &err), RWS_STOPPED);
    const uint64_t done = rws_trainer_iteration(t);
    rws_trainer_free(t);
    must(rws_trainer_resume(in_folder("stopped"), NULL, &rws_user_model, &t, &err), &err);
    assert_int_equal(rws_trainer_iteration(t), done);
    rws_trainer_free(t);

    /* steps of the caller's own that the last checkpoint lacks are saved too, if training is stopped before the next one */
    s = (seen){.stop_at = 0};
    t = toy((rws_config){.iterations = 100, .eval_every = 5}, NULL);
    must(rws_trainer_keep(t, in_folder("stepped"), &err), &err);
    must(rws_trainer_save(t, &err), &err);
    step(t, 5);
    assert_int_equal(rws_trainer_train(t, &watch, &err), RWS_STOPPED);
    assert_sentence(&err, "after iteration 5");
    rws_trainer_free(t);
    must(rws_trainer_resume(in_folder("stepped"), NULL, &rws_user_model, &t, &err), &err);
    assert_int_equal(rws_trainer_iteration(t), 5);
    rws_trainer_free(t);

    s = (seen){.stop_at = UINT64_MAX, .answer = RWS_BAD_INPUT};
    t = toy((rws_config){.iterations = 20}, NULL);
    refused(rws_trainer_train(t, &watch, &err), &err, "seen enough");
    assert_int_equal(rws_trainer_iteration(t), 1);
    rws_trainer_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_can_be_read),
        cmocka_unit_test_setup_teardown(numbers_have_a_point_in_every_locale, folder_make, folder_remove),
        cmocka_unit_test(texts_are_copied),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(tables_of_a_model_are_checked),
        cmocka_unit_test(tables_can_be_walked),
        cmocka_unit_test(parameters_are_views),
        cmocka_unit_test(a_gradient_changes_nothing),
        cmocka_unit_test(many_particles_at_once_are_evaluated),
        cmocka_unit_test(a_step_that_failed_leaves_no_trace),
#ifdef __SSE__
        cmocka_unit_test(the_callers_arithmetic_is_left_alone),
#endif
        cmocka_unit_test_setup_teardown(a_run_goes_on_where_it_was, folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(a_run_is_kept_after_steps_that_failed, folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(training_tells_and_obeys, folder_make, folder_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
