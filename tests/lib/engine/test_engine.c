/* test_engine.c - however particles share rows, are counted, merged, sharded or interrupted, the numbers are the same. */
#include "base/error.h"
#include "models/model.h"
#include "trained.h"

#include <stdio.h>
#include <string.h>

extern const rws_model rws_user_model; /* toy.c */

static rws_trainer *trainer(const rws_model *model, const char *method, rws_config c)
{
    c.model = model->name;
    c.method = method;
    if (!c.seed) c.seed = 7;
    return trainer_for(&c, model);
}

static size_t n_params(rws_trainer *t)
{
    return rws__trainer_state_of(t).params->size;
}

static float *gradient(rws_trainer *t, uint64_t draw)
{
    float *g = malloc(n_params(t) * sizeof *g);
    gradient_of(t, draw, g);
    return g;
}

static const char *const toy_methods[] = {"ww", "ws", "wws", "dww", "reinforce", "rloo", "nvil", "vimco"};

static void batched_equals_scalar_toy(void **unused)
{
    (void)unused;
    for (size_t m = 0; m < sizeof toy_methods / sizeof *toy_methods; m++) {
        rws_trainer *batched = trainer(&rws_user_model, toy_methods[m], (rws_config){.shards = 1});
        rws_trainer *scalar = trainer(&rws_user_model, toy_methods[m], (rws_config){.shards = 1, .scalar = true});
        for (uint64_t draw = 0; draw < 4; draw++) {
            float *a = gradient(batched, draw), *b = gradient(scalar, draw);
            assert_close(a, b, n_params(batched), 1e-4, toy_methods[m]);
            free(a);
            free(b);
        }
        const rws_engine_stats s = rws__trainer_take_stats(batched), one = rws__trainer_take_stats(scalar);
        assert_true(s.calls < one.calls / 4); /* merging works */
        assert_true(s.rows < one.rows);       /* so does sharing */
        rws_trainer_free(batched);
        rws_trainer_free(scalar);
    }
}

static void batched_equals_scalar_gmm(void **unused)
{
    (void)unused;
    for (int m = 0; rws_estimators[m]; m++) {
        if (!rws_estimators[m]->n_phases) continue; /* em */
        const rws_config c = {.shards = 1, .batch = 10, .particles = 7},
                         scalar_c = {.shards = 1, .batch = 10, .particles = 7, .scalar = true};
        rws_trainer *batched = trainer(&rws_model_gmm, rws_estimators[m]->name, c);
        rws_trainer *scalar = trainer(&rws_model_gmm, rws_estimators[m]->name, scalar_c);
        for (uint64_t draw = 0; draw < 3; draw++) {
            float *a = gradient(batched, draw), *b = gradient(scalar, draw);
            assert_close(a, b, n_params(batched), 1e-4, rws_estimators[m]->name);
            free(a);
            free(b);
        }
        rws_trainer_free(batched);
        rws_trainer_free(scalar);
    }
}

/* ---- the engine by itself: rows with counts against particles one by one */

typedef struct {
    double log_p, log_q;
} particle;

static int by_scores(const void *a, const void *b)
{
    const particle *x = a, *y = b;
    return x->log_p != y->log_p ? (x->log_p > y->log_p) - (x->log_p < y->log_p)
                                : (x->log_q > y->log_q) - (x->log_q < y->log_q);
}

static void rows_with_counts_are_particles(void **unused)
{
    (void)unused;
    rws_setup  setup = {.seed = 3};
    rws_random random = rws__random_new(rws__key_for(3, 0, RWS_KEY_DATA, 0), 0);
    void      *state;
    rws_error  err = {""};
    assert_int_equal(rws_user_model.setup(&setup, &random, &state, &err), RWS_OK);
    rws__params_pack(&setup.params);
    float x[2 * 4], kind[4], *fields[] = {x, kind};
    assert_int_equal(rws_user_model.data(state, RWS_TRAIN, 0, 4, &random, fields, &err), RWS_OK);

    enum { K = 40 };
    particle table[2][4][K];
    for (int scalar = 0; scalar < 2; scalar++) {
        rws_engine    *e = rws__engine_new(&setup.params, setup.fields, setup.n_fields, NULL);
        const rws_pass pass = {.model = &rws_user_model,
                               .state = state,
                               .mode = RWS_WAKE,
                               .n_data = 4,
                               .n_particles = K,
                               .fields = (const float *const *)fields,
                               .scalar = scalar,
                               .key = rws__key_for(1, 2, RWS_KEY_WAKE, 0)};
        if (rws__engine_forward(e, &pass, &err) != RWS_OK) fail_msg("%s", err.text);
        const rws_scores *s = rws__engine_scores(e);
        for (int d = 0; d < 4; d++) {
            int n = 0;
            for (uint32_t i = s->start[d]; i < s->start[d + 1]; i++)
                for (uint32_t k = 0; k < s->count[i]; k++) table[scalar][d][n++] = (particle){s->log_p[i], s->log_q[i]};
            assert_int_equal(n, K);
            qsort(table[scalar][d], K, sizeof(particle), by_scores);
        }
        if (scalar) assert_int_equal(s->n, 4 * K);
        rws__engine_free(e);
    }
    for (int d = 0; d < 4; d++)
        for (int k = 0; k < K; k++) {
            assert_true(fabs(table[0][d][k].log_p - table[1][d][k].log_p) < 1e-4 * (1 + fabs(table[1][d][k].log_p)));
            assert_true(fabs(table[0][d][k].log_q - table[1][d][k].log_q) < 1e-4 * (1 + fabs(table[1][d][k].log_q)));
        }
    rws__setup_release(&setup);
}

/* ---- threads, allocations */

static void assert_same_run(const rws_model *model, const char *method, rws_config a, rws_config b, int n)
{
    rws_trainer *x = trainer(model, method, a), *y = trainer(model, method, b);
    steps(x, n);
    steps(y, n);
    assert_memory_equal(rws__trainer_state_of(x).params->value, rws__trainer_state_of(y).params->value,
                        n_params(x) * sizeof(float));
    rws_trainer_free(x);
    rws_trainer_free(y);
}

static void threads_change_nothing(void **unused)
{
    (void)unused;
    for (size_t m = 0; m < sizeof toy_methods / sizeof *toy_methods; m++)
        assert_same_run(&rws_user_model, toy_methods[m], (rws_config){.threads = 1}, (rws_config){.threads = 2}, 20);
    for (int m = 0; rws_estimators[m] && rws_estimators[m]->n_phases; m++)
        assert_same_run(&rws_model_gmm, rws_estimators[m]->name,
                        (rws_config){.threads = 1, .shards = 3, .particles = 3},
                        (rws_config){.threads = 2, .shards = 3, .particles = 3}, 20);
}

static void nothing_is_allocated_once_warm(void **unused)
{
    (void)unused;
    for (int m = 0; rws_estimators[m]; m++) {
        if (!rws_estimators[m]->n_phases) continue; /* em */
        rws_trainer *t = trainer(&rws_model_gmm, rws_estimators[m]->name, (rws_config){.particles = 5});
        steps(t, 20);
        const uint64_t before = rws__trainer_allocations(t);
        steps(t, 200);
        assert_int_equal(rws__trainer_allocations(t), before);
        rws_trainer_free(t);
    }
}

/* ---- guide and model that do not fit each other */

typedef struct {
    void (*guide)(rws_path *path, const void *state);
    void (*model)(rws_path *path, const void *state);
    const char *message;
} misfit;

static rws_var zero(rws_path *path)
{
    return rws_constant(path, 0);
}

static void x_only(rws_path *path, const void *state)
{
    (void)state;
    rws_normal(path, "x", zero(path), rws_constant(path, 1));
}

static void flips_a(rws_path *path, const void *state)
{
    (void)state;
    rws_flip(path, "a", zero(path));
}

static void flips_a_and_x(rws_path *path, const void *state)
{
    flips_a(path, state);
    x_only(path, state);
}

static void flips_a_twice(rws_path *path, const void *state)
{
    flips_a(path, state);
    flips_a(path, state);
}

static void flips_a_if_heads(rws_path *path, const void *state)
{
    (void)state;
    if (rws_flip(path, "a", zero(path))) rws_flip(path, "a", zero(path));
}

static void normal_a(rws_path *path, const void *state)
{
    (void)state;
    rws_normal(path, "a", zero(path), rws_constant(path, 1));
}

static void three_a(rws_path *path, const void *state)
{
    (void)state;
    rws_choose(path, "a", rws_constants(path, (float[]){0, 0, 0}, 3));
}

static void four_a_and_x(rws_path *path, const void *state)
{
    rws_choose(path, "a", rws_constants(path, (float[]){0, 0, 0, 0}, 4));
    x_only(path, state);
}

static void nothing(rws_path *path, const void *state)
{
    (void)path, (void)state;
}

static void no_x(rws_path *path, const void *state)
{
    flips_a(path, state);
}

static void x_of_two(rws_path *path, const void *state)
{
    (void)state;
    flips_a(path, state);
    rws_normal(path, "x", rws_constants(path, (float[]){0, 0}, 2), rws_constant(path, 1));
}

static void looks_at_x(rws_path *path, const void *state)
{
    (void)state;
    rws_flip(path, "a", rws_observed(path, "x"));
    x_only(path, state);
}

static void broken_flip(rws_path *path, const void *state)
{
    (void)state;
    rws_flip(path, "a", rws_apply(path, RWS_LOG, rws_constant(path, -1)));
}

static void broken_density(rws_path *path, const void *state)
{
    flips_a(path, state);
    rws_normal(path, "x", rws_apply(path, RWS_LOG, rws_constant(path, -1)), rws_constant(path, 1));
}

static void gives_up(rws_path *path, const void *state)
{
    (void)state;
    rws_give_up(path, "No %s today.", "flips");
}

static rws_var log_of_zero(rws_path *path, const rws_family *f, rws_var value, const rws_var *p)
{
    (void)f, (void)p;
    return rws_apply(path, RWS_LOG, rws_affine(path, value, 0, 0));
}

static rws_var some_number(rws_path *path, const rws_family *f, const rws_var *p, bool stop)
{
    (void)f, (void)p, (void)stop;
    return rws_draw_noise(path, RWS_NOISE_NORMAL, 1);
}

/* A flip, and then a number under a density that is 0 everywhere. */
static void draws_the_impossible(rws_path *path, const void *state)
{
    static const rws_family f = {.name = "normal", .n_params = 1, .draw = some_number, .log_density = log_of_zero};
    flips_a(path, state);
    for (int visit = 0; visit < 2; visit++) {
        const rws_var p = zero(path);
        if (visit == 0) rws_normal(path, "b", p, rws_constant(path, 1));
        else rws_site_visit(path, "b", &f, &p);
    }
}

static void normals_b_and_x(rws_path *path, const void *state)
{
    flips_a(path, state);
    for (int visit = 0; visit < 2; visit++) rws_normal(path, "b", zero(path), rws_constant(path, 1));
    x_only(path, state);
}

static void misfits_are_named(void **unused)
{
    (void)unused;
    const misfit list[] = {
        {flips_a, x_only, "The guide visits site \"a\", but the model does not."},
        {nothing, flips_a_and_x,
         "The model visits site \"a\", but the guide does not; only sites with the name of a field"},
        {x_only, flips_a_and_x, "The guide visits site \"x\", which is data"},
        {flips_a, x_of_two, "Site \"x\" has 2 numbers in the model, but the data have 1."},
        {flips_a_twice, flips_a_and_x, "The guide visits site \"a\" (visit 1), but the model does not."},
        {flips_a_if_heads, flips_a_and_x, "The guide visits site \"a\" (visit 1), but the model does not."},
        {normal_a, flips_a_and_x,
         "Site \"a\" is bernoulli (a choice of 0 to 1) in the model and normal (any number) in the guide."},
        {three_a, four_a_and_x, "Site \"a\" has size 4 in the model and 3 in the guide."},
        {flips_a, no_x, "The model never visits a site \"x\", which the data have."},
        {flips_a, looks_at_x, "The model looks at the data (field \"x\"); only a guide may."},
        {broken_flip, flips_a_and_x, "The probabilities at site \"a\" in the guide are not a distribution"},
        {flips_a, broken_density, "The log-density of the model at site \"x\" is"},
        {draws_the_impossible, normals_b_and_x,
         "The guide drew a value at site \"b\" (visit 1) whose log-density under the guide is -inf"},
        {gives_up, flips_a_and_x, "No flips today."},
    };
    const rws_params params = {0};
    const rws_field  field = {"x", 1};
    const float      x = 0.5f, *fields[] = {&x};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        for (int scalar = 0; scalar < 2; scalar++) {
            const rws_model m = {.guide = list[i].guide, .model = list[i].model};
            rws_engine     *e = rws__engine_new(&params, &field, 1, NULL);
            rws_error       err = {""};
            const rws_pass  pass = {.model = &m, .n_data = 1, .n_particles = 64, .fields = fields, .scalar = scalar};
            assert_int_not_equal(rws__engine_forward(e, &pass, &err), RWS_OK);
            if (!strstr(err.text, list[i].message)) fail_msg("\"%s\" instead of \"%s\"", err.text, list[i].message);
            rws__engine_free(e);
        }
}

/* ---- many fields: more than the bits of a word */

enum { MANY_FIELDS = 130 };
static char many_names[MANY_FIELDS][8];

static void observes(rws_path *path, int n)
{
    flips_a(path, NULL);
    for (int i = 0; i < n; i++) rws_normal(path, many_names[i], rws_constant(path, 0), rws_constant(path, 1));
}

static void observes_all(rws_path *path, const void *state)
{
    (void)state;
    observes(path, MANY_FIELDS);
}

static void observes_all_but_one(rws_path *path, const void *state)
{
    (void)state;
    observes(path, MANY_FIELDS - 1);
}

static void many_fields_are_observed(void **unused)
{
    (void)unused;
    const rws_params params = {0};
    const float      x = 0.5f, *data[MANY_FIELDS];
    rws_field        fields[MANY_FIELDS];
    for (int i = 0; i < MANY_FIELDS; i++) {
        snprintf(many_names[i], sizeof many_names[i], "x%d", i);
        fields[i] = (rws_field){many_names[i], 1};
        data[i] = &x;
    }
    for (int missing = 0; missing < 2; missing++) {
        const rws_model m = {.guide = flips_a, .model = missing ? observes_all_but_one : observes_all};
        rws_engine     *e = rws__engine_new(&params, fields, MANY_FIELDS, NULL);
        rws_error       err = {""};
        const rws_pass  pass = {.model = &m, .n_data = 1, .n_particles = 4, .fields = data};
        assert_int_equal(rws__engine_forward(e, &pass, &err), missing ? RWS_BAD_INPUT : RWS_OK);
        if (missing) assert_non_null(strstr(err.text, "The model never visits a site \"x129\""));
        rws__engine_free(e);
    }
}

/* A label is no site of the programs. */
static void label_is_no_site(void **unused)
{
    (void)unused;
    const rws_params params = {0};
    const rws_field  fields[] = {{"x", 1}, {"a", 1, .label = true}};
    const float      x = 0.5f, *data[] = {&x, &x};
    const rws_model  m = {.guide = flips_a, .model = flips_a_and_x};
    rws_engine      *e = rws__engine_new(&params, fields, 2, NULL);
    rws_error        err = {""};
    const rws_pass   pass = {.model = &m, .n_data = 1, .n_particles = 4, .fields = data};
    assert_int_equal(rws__engine_forward(e, &pass, &err), RWS_BAD_INPUT);
    assert_non_null(strstr(err.text, "Site \"a\" has the name of a label of the data; give the label another name"));
    rws__engine_free(e);
}

/* ---- many paths, deep paths */

static void wander(rws_path *path, const void *state)
{
    (void)state;
    for (int depth = 0; depth < 2000 && rws_flip(path, "more", rws_constant(path, 5)); depth++) continue;
}

static void wander_and_x(rws_path *path, const void *state)
{
    wander(path, state);
    x_only(path, state);
}

/* The number of flips is geometric; the mean of log p + log q over particles must be that of the drawn lengths. */
static void long_paths(void **unused)
{
    (void)unused;
    const rws_params params = {0};
    const rws_field  field = {"x", 1};
    const float      x = 0, *fields[] = {&x};
    const rws_model  m = {.guide = wander, .model = wander_and_x};
    rws_engine      *e = rws__engine_new(&params, &field, 1, NULL);
    rws_error        err = {""};
    const rws_pass   pass = {.model = &m, .n_data = 1, .n_particles = 500, .fields = fields};
    if (rws__engine_forward(e, &pass, &err) != RWS_OK) fail_msg("%s", err.text);
    const rws_scores *s = rws__engine_scores(e);
    const double      more = -log1p(exp(-5)), stop = -log1p(exp(5)), at_x = -0.5 * log(2 * M_PI);
    uint32_t          total = 0;
    for (int i = 0; i < s->n; i++) {
        const double flips = (s->log_q[i] - stop) / more;
        assert_true(fabs(flips - rint(flips)) < 1e-2); /* a whole number of heads, then tails */
        assert_true(fabs(s->log_p[i] - s->log_q[i] - at_x) < 1e-5);
        total += s->count[i];
    }
    assert_int_equal(total, 500);
    rws__engine_free(e);
}

/* ---- impossible rows */

typedef struct {
    rws_param *theta;
} shared;

/* The model's log-density of a = 0 is log(0 theta), which is -inf and has an infinite slope. Slot 0 has a. */
static void impossible_zero(rws_path *path, void *context)
{
    const rws_param *theta = ((const shared *)context)->theta;
    rws__path_side(path, RWS_SIDE_GUIDE);
    const rws_var a = rws_bernoulli(path, "a", rws_constant(path, 0));
    rws__path_side(path, RWS_SIDE_MODEL);
    rws_bernoulli(path, "a", rws_constant(path, 0));
    rws_factor(path, "f", rws_apply(path, RWS_LOG, rws_mul(path, a, rws_parameter(path, theta))), true);
    rws__path_side(path, RWS_SIDE_NONE);
    rws__path_output(path, 0, a);
}

/* Under vimco an impossible row has the coefficient 0 for log p and another one for log q. The gradient of a parameter that
 * it shares with possible rows is that of the possible rows alone. */
static void impossible_rows_leave_gradients_alone(void **unused)
{
    (void)unused;
    rws_params params = {0};
    shared     context = {rws__params_add(&params, RWS_THETA, "theta", 1, 1)};
    context.theta->value[0] = 4;
    rws__params_pack(&params);
    rws_engine    *e = rws__engine_new(&params, (rws_field[1]){{0}}, 0, NULL);
    rws_error      err = {""};
    const rws_pass pass = {
        .program = impossible_zero, .context = &context, .groups = 1u << RWS_THETA, .n_data = 1, .n_particles = 64};
    if (rws__engine_forward(e, &pass, &err) != RWS_OK) fail_msg("%s", err.text);
    rws_scores *s = rws__engine_scores(e);
    float       gradient = 0;
    assert_int_equal(s->n, 2);
    for (int i = 0; i < 2; i++) {
        assert_true((s->log_p[i] == -INFINITY) == (s->out[0][i] == 0));
        s->coef_p[i] = s->out[0][i];
        s->coef_q[i] = 0.5;
    }
    assert_int_equal(rws__engine_backward(e, 1u << RWS_THETA, &gradient, &err), RWS_OK);
    assert_true(fabs((double)gradient - 0.25) < 1e-6);
    rws__engine_free(e);
    rws__params_release(&params);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batched_equals_scalar_toy),
        cmocka_unit_test(batched_equals_scalar_gmm),
        cmocka_unit_test(rows_with_counts_are_particles),
        cmocka_unit_test(threads_change_nothing),
        cmocka_unit_test(nothing_is_allocated_once_warm),
        cmocka_unit_test(misfits_are_named),
        cmocka_unit_test(many_fields_are_observed),
        cmocka_unit_test(label_is_no_site),
        cmocka_unit_test(long_paths),
        cmocka_unit_test(impossible_rows_leave_gradients_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
