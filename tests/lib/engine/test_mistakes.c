/* test_mistakes.c - a user's mistake is a status and a message that names the place; never a signal or an abort. After
 * each of them the same engine runs a good pass. */
#include "base/error.h"
#include "engine/setup.h"
#include "estimator/estimator.h"
#include "support.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#else
#define RUNNING_ON_VALGRIND 0
#endif

typedef void program(rws_path *path, const void *state);

static rws_var zero(rws_path *path)
{
    return rws_constant(path, 0);
}

static void x_only(rws_path *path, const void *state)
{
    (void)state;
    rws_normal(path, "x", zero(path), rws_constant(path, 1));
}

static void nothing(rws_path *path, const void *state)
{
    (void)path, (void)state;
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

static const rws_field field_x = {"x", 1};

/* A pass of this guide and model; NULL stands for the good ones. */
static rws_status pass(rws_engine *e, program *guide, program *model, bool scalar, const float *x, int n,
                       rws_error *err)
{
    const rws_model m = {.guide = guide, .model = model};
    const rws_pass  p = {.model = &m,
                         .n_data = n,
                         .n_particles = 16,
                         .first_datum = 100,
                         .fields = &x,
                         .reports = true,
                         .scalar = scalar};
    return rws__engine_forward(e, &p, err);
}

static void assert_good(rws_engine *e)
{
    rws_error err = {""};
    for (int scalar = 0; scalar < 2; scalar++)
        if (pass(e, flips_a, flips_a_and_x, scalar, &(float){0.5f}, 1, &err) != RWS_OK) fail_msg("%s", err.text);
    assert_true(fabs(rws__engine_scores(e)->log_q[0] - log(0.5)) < 1e-6);
}

static void assert_refused(rws_engine *e, program *guide, program *model, rws_status status, const char *message)
{
    for (int scalar = 0; scalar < 2; scalar++) {
        rws_error err = {""};
        assert_int_equal(pass(e, guide, model, scalar, &(float){0.5f}, 1, &err), status);
        if (!strstr(err.text, message)) fail_msg("\"%s\" instead of \"%s\"", err.text, message);
        assert_good(e);
    }
}

static rws_engine *engine(const rws_limits *limits)
{
    static const rws_params none;
    return rws__engine_new(&none, &field_x, 1, limits);
}

/* ---- values */

static rws_var kept; /* in static memory, as no program should */

static void adds_no_value(rws_path *path, const void *state)
{
    flips_a(path, state);
    rws_add(path, (rws_var){0}, zero(path));
}

static void adds_wild_value(rws_path *path, const void *state)
{
    flips_a(path, state);
    rws_add(path, zero(path), (rws_var){123456789, 1});
}

static void keeps(rws_path *path, const void *state)
{
    flips_a(path, state);
    kept = rws_constant(path, 3);
    x_only(path, state);
}

static void adds_kept(rws_path *path, const void *state)
{
    flips_a(path, state);
    rws_add(path, kept, zero(path));
}

/* A path that got tails keeps a value; those that got heads use it. */
static void tails_keep(rws_path *path, const void *state)
{
    (void)state;
    if (!rws_flip(path, "a", zero(path))) kept = zero(path);
    else if (kept.id) rws_sum(path, kept);
}

static void uses(rws_path *path, const void *state)
{
    (void)state;
    switch ((int)kept.id) { /* which function: see no_value */
    case 1: rws_affine(path, (rws_var){0}, 1, 2); break;
    case 2: rws_sum(path, (rws_var){0}); break;
    case 3: rws_log_softmax(path, (rws_var){0}); break;
    case 4: rws_log_sum_exp(path, (rws_var){0}); break;
    case 5: rws_argmax(path, (rws_var){0}); break;
    case 6: rws_pick(path, (rws_var){0}, zero(path)); break;
    case 7: rws_pick(path, zero(path), (rws_var){0}); break;
    case 8: rws_onehot(path, (rws_var){0}, 3); break;
    case 9: rws_concat(path, (rws_var[]){zero(path), {0}}, 2); break;
    case 10: rws_slice(path, (rws_var){0}, 0, 1); break;
    case 11: rws_branch(path, (rws_var){0}); break;
    case 12: rws_look(path, (rws_var){0}); break;
    case 13: rws_await(path, &(rws_var){0}, 1); break;
    case 14: rws_dim(path, (rws_var){0}); break;
    case 15: rws_report(path, "r", (rws_var){0}); break;
    case 16: rws_categorical(path, "z", (rws_var){0}); break;
    case 17: rws_bernoulli(path, "z", (rws_var){0}); break;
    case 18: rws_normal(path, "z", zero(path), (rws_var){0}); break;
    case 19: rws_uniform(path, "z", (rws_var){0}, zero(path)); break;
    case 20: rws_gumbel(path, "z", (rws_var){0}); break;
    case 21: rws_concrete(path, "z", zero(path), (rws_var){0}); break;
    case 22: rws_normal_density(path, zero(path), zero(path), (rws_var){0}); break;
    case 23: rws_apply(path, RWS_EXP, (rws_var){0}); break;
    case 24: rws_greater(path, zero(path), (rws_var){0}); break;
    case 25: rws_detach(path, (rws_var){0}); break;
    case 26: rws_clip(path, (rws_var){0}, 0, 1); break;
    }
}

static void no_value(void **unused)
{
    (void)unused;
    static const char *const functions[] = {
        "rws_affine",
        "rws_sum",
        "rws_log_softmax",
        "rws_log_sum_exp",
        "rws_argmax",
        "rws_pick",
        "rws_pick",
        "rws_onehot",
        "rws_concat",
        "rws_slice",
        "rws_branch",
        "rws_look",
        "rws_await",
        "rws_dim",
        "rws_report",
        "",
        "rws_bernoulli",
        "",
        "",
        "",
        "",
        "rws_normal_density",
        "rws_apply",
        "rws_greater",
        "rws_detach",
        "rws_clip",
    };
    rws_engine *e = engine(NULL);
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        char message[200];
        snprintf(message, sizeof message, "%s%s was given no value",
                 *functions[i] ? "In the guide, before its first site: " : "", functions[i]);
        kept = (rws_var){(uint32_t)i + 1, 0};
        for (int scalar = 0; scalar < 2; scalar++) {
            rws_error err = {""};
            assert_int_equal(pass(e, uses, x_only, scalar, &(float){0}, 1, &err), RWS_BAD_INPUT);
            if (!strstr(err.text, message)) fail_msg("\"%s\" instead of \"%s\"", err.text, message);
        }
    }
    assert_good(e);
    rws__engine_free(e);
}

static void values_of_other_paths(void **unused)
{
    (void)unused;
    static const char foreign[] = "rws_add was given a value that does not belong to this path";
    rws_engine       *e = engine(NULL), *other = engine(NULL);
    rws_error         err = {""};
    assert_refused(e, adds_no_value, x_only, RWS_BAD_INPUT,
                   "In the guide, after site \"a\": rws_add was given no value");
    assert_refused(e, adds_wild_value, x_only, RWS_BAD_INPUT, foreign);
    for (int i = 0; i < 300; i++) { /* of any earlier pass */
        assert_int_equal(pass(e, flips_a, keeps, false, &(float){0}, 1, &err), RWS_OK);
        for (int k = 0; k < i % 3; k++) assert_good(e);
        assert_int_equal(pass(e, adds_kept, x_only, false, &(float){0}, 1, &err), RWS_BAD_INPUT);
        assert_non_null(strstr(err.text, foreign));
    }
    assert_int_equal(pass(e, flips_a, keeps, false, &(float){0}, 1, &err), RWS_OK);
    assert_int_equal(pass(other, adds_kept, x_only, false, &(float){0}, 1, &err), RWS_BAD_INPUT);
    kept = (rws_var){0};
    assert_refused(e, tails_keep, flips_a_and_x, RWS_BAD_INPUT,
                   "rws_sum was given a value that does not belong to this");
    rws__engine_free(e);
    rws__engine_free(other);
}

/* ---- shapes and numbers */

static void empty(rws_path *path, const void *state)
{
    (void)state;
    rws_constants(path, (float[]){0}, 0);
}

static void negative(rws_path *path, const void *state)
{
    (void)state;
    rws_constants(path, (float[]){0}, -3);
}

/* What rws_constants does where the compiler knows the length of an array. */
static void too_many(rws_path *path, const void *state)
{
    (void)state;
    rws_constants_sized(path, (float[]){0, 1}, 3, 2 * sizeof(float));
}

static void too_few_parameters(rws_path *path, const void *state)
{
    (void)state;
    const rws_var mean = zero(path);
    rws_site_visit_sized(path, "a", rws_family_find("normal"), &mean, sizeof mean);
}

static void misspells_field(rws_path *path, const void *state)
{
    (void)state;
    if (rws_path_field(path, "x")->dim == 1) rws_path_field(path, "X");
}

static void no_sd(rws_path *path, const void *state)
{
    (void)state;
    rws_normal(path, "a", zero(path), (rws_var){0});
}

static void no_onehot(rws_path *path, const void *state)
{
    (void)state;
    rws_onehot(path, zero(path), 0);
}

static void concat_none(rws_path *path, const void *state)
{
    (void)state;
    rws_concat(path, NULL, 0);
}

static const rws_var *volatile no_values; /* NULL, which the compiler would see */

static void concat_null(rws_path *path, const void *state)
{
    (void)state;
    rws_concat(path, no_values, 2);
}

static void sum_null(rws_path *path, const void *state)
{
    (void)state;
    rws_sum_many(path, no_values, 2);
}

static void await_null(rws_path *path, const void *state)
{
    (void)state;
    rws_await(path, NULL, 0);
    rws_await(path, no_values, 2);
}

static void huge_slice(rws_path *path, const void *state)
{
    (void)state;
    rws_slice(path, zero(path), INT32_MAX, INT32_MAX);
}

static void two_and_three(rws_path *path, const void *state)
{
    flips_a(path, state);
    rws_mul(path, rws_constants(path, (float[]){1, 2}, 2), rws_constants(path, (float[]){1, 2, 3}, 3));
}

static void huge_cover(rws_path *path, const void *state)
{
    (void)state;
    rws_cover(path, 2, 2, rws_zeros(path, 4), 65536, 65536);
}

static void huge_glimpse(rws_path *path, const void *state)
{
    (void)state;
    rws_place(path, zero(path), 50000, 50000, rws_zeros(path, 4), 2, 2);
}

static void unknown_function(rws_path *path, const void *state)
{
    (void)state;
    rws_apply(path, (rws_function)99, zero(path));
}

static void branches_on_half(rws_path *path, const void *state)
{
    flips_a(path, state);
    rws_branch(path, rws_constant(path, 0.5f));
}

static void branches_on_nan(rws_path *path, const void *state)
{
    flips_a(path, state);
    rws_branch(path, rws_constant(path, NAN));
}

static void branches_on_huge(rws_path *path, const void *state)
{
    flips_a(path, state);
    rws_branch(path, rws_constant(path, 3e9f));
}

static void branches_on_two(rws_path *path, const void *state)
{
    (void)state;
    rws_branch(path, rws_constants(path, (float[]){1, 2}, 2));
}

static void x_twice(rws_path *path, const void *state)
{
    flips_a_and_x(path, state);
    x_only(path, state);
}

static void no_site_name(rws_path *path, const void *state)
{
    (void)state;
    rws_categorical(path, NULL, zero(path));
}

static void no_field_name(rws_path *path, const void *state)
{
    (void)state;
    rws_observed(path, NULL);
}

static void no_report_name(rws_path *path, const void *state)
{
    (void)state;
    rws_report(path, NULL, zero(path));
}

static void no_report_text(rws_path *path, const void *state)
{
    (void)state;
    rws_report_text(path, "r", NULL);
}

static void no_parameter(rws_path *path, const void *state)
{
    (void)state;
    rws_parameter(path, NULL);
}

static void no_layer(rws_path *path, const void *state)
{
    flips_a(path, state);
    rws_mlp(path, NULL, zero(path));
}

static void draws_too_many(rws_path *path, const void *state)
{
    (void)state;
    for (int i = 0; i < 2; i++) rws_poisson(path, "n", rws_constant(path, i ? 1e9f : 1));
}

static void two_and_three_at_site(rws_path *path, const void *state)
{
    flips_a(path, state);
    rws_normal(path, "z", rws_zeros(path, 2), rws_zeros(path, 3));
}

static void wrong_shapes(void **unused)
{
    (void)unused;
    rws_engine *e = engine(NULL);
    const struct {
        program    *guide, *model;
        rws_status  status;
        const char *message;
    } list[] = {
        {empty, x_only, RWS_BAD_INPUT, "rws_constants takes at least one number, not 0."},
        {negative, x_only, RWS_BAD_INPUT, "In the guide, before its first site: rws_constants takes at least one"},
        {no_onehot, x_only, RWS_BAD_INPUT, "rws_onehot makes a vector of at least one number, not of 0."},
        {concat_none, x_only, RWS_BAD_INPUT, "rws_concat takes at least one part, not 0."},
        {too_many, x_only, RWS_BAD_INPUT, "rws_constants takes 3 numbers of an array that has 2."},
        {too_few_parameters, x_only, RWS_BAD_INPUT,
         "rws_site_visit was given 1 parameters; the family \"normal\" has 2."},
        {misspells_field, x_only, RWS_BAD_INPUT, "The data have no field \"X\" (did you mean \"x\"?)."},
        {no_sd, x_only, RWS_BAD_INPUT, "rws_normal"},
        {concat_null, x_only, RWS_BAD_INPUT, "rws_concat takes at least one part, not 0."},
        {sum_null, x_only, RWS_BAD_INPUT, "rws_sum_many takes at least one value, not 0."},
        {await_null, x_only, RWS_BAD_INPUT, "rws_await was given no values (NULL)."},
        {huge_slice, x_only, RWS_BAD_INPUT, "rws_slice takes 2147483647 numbers from place 2147483647"},
        {huge_cover, x_only, RWS_BAD_INPUT,
         "rws_cover takes pictures of at most 2147483647 points, not 2 x 2 and 65536"},
        {huge_glimpse, x_only, RWS_BAD_INPUT,
         "rws_place takes pictures of at most 2147483647 points, not 50000 x 50000"},
        {two_and_three, x_only, RWS_BAD_INPUT,
         "In the guide, after site \"a\": rws_mul of vectors of 2 and 3 numbers."},
        {unknown_function, x_only, RWS_BAD_INPUT, "rws_apply was given function number 99."},
        {branches_on_half, flips_a_and_x, RWS_BAD_INPUT,
         "In the guide, after site \"a\": rws_branch takes an integer between -1e9 and 1e9, not 0.5."},
        {flips_a, branches_on_half, RWS_BAD_INPUT, "In the model, after site \"a\": rws_branch takes an integer"},
        {branches_on_nan, flips_a_and_x, RWS_BROKEN, "rws_branch takes an integer between -1e9 and 1e9, not "},
        {branches_on_huge, flips_a_and_x, RWS_BAD_INPUT,
         "rws_branch takes an integer between -1e9 and 1e9, not 3e+09."},
        {branches_on_two, x_only, RWS_BAD_INPUT, "rws_branch takes one number, not a vector of 2."},
        {flips_a, x_twice, RWS_BAD_INPUT, "The model visits site \"x\" twice; it is observed"},
        {no_site_name, x_only, RWS_BAD_INPUT, "was given no name of a site (NULL)."},
        {no_field_name, x_only, RWS_BAD_INPUT, "rws_observed was given no name of a field (NULL)."},
        {no_report_name, x_only, RWS_BAD_INPUT, "rws_report was given no name (NULL)."},
        {no_report_text, x_only, RWS_BAD_INPUT, "rws_report_text was given no text (NULL)."},
        {no_parameter, x_only, RWS_BAD_INPUT, "rws_parameter was given no parameter."},
        {no_layer, x_only, RWS_BAD_INPUT,
         "In the guide, after site \"a\": rws_mlp was given NULL in place of a layer."},
        {draws_too_many, x_only, RWS_BAD_INPUT, "In the guide, after site \"n\" (visit 1): a draw would choose among"},
        {two_and_three_at_site, x_only, RWS_BAD_INPUT,
         "In the guide, at site \"z\": the parameters of the normal have 3 and 2 numbers"},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        assert_refused(e, list[i].guide, list[i].model, list[i].status, list[i].message);
    rws__engine_free(e);
}

static void data_that_are_no_numbers(void **unused)
{
    (void)unused;
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    float              x[40];
    rws_engine        *e = engine(NULL);
    for (int i = 0; i < 3; i++)
        for (int at = 0; at < 40; at += 13)
            for (int scalar = 0; scalar < 2; scalar++) {
                rws_error err = {""};
                char      message[100];
                for (int k = 0; k < 40; k++) x[k] = k == at ? bad[i] : (float)k;
                snprintf(message, sizeof message, "Number 0 of field \"x\" of datum %d is ", 100 + at);
                assert_int_equal(pass(e, flips_a, flips_a_and_x, scalar, x, 40, &err), RWS_BAD_INPUT);
                if (!strstr(err.text, message)) fail_msg("\"%s\" instead of \"%s\"", err.text, message);
            }
    assert_good(e);
    rws__engine_free(e);
}

/* ---- messages */

static void broken_factor(rws_path *path, const void *state)
{
    flips_a_and_x(path, state);
    rws_factor(path, "f", rws_div(path, zero(path), zero(path)), true);
}

static void branches_on_quotient(rws_path *path, const void *state)
{
    flips_a(path, state);
    rws_branch(path, rws_div(path, zero(path), zero(path)));
}

/* A message of 450 bytes fits; a longer one shows by dots that it was cut. */
static void gives_up(rws_path *path, const void *state)
{
    (void)state;
    rws_give_up(path, "%0450d.", 7);
}

static void gives_up_longer(rws_path *path, const void *state)
{
    (void)state;
    rws_give_up(path, "%0600d.", 7);
}

static void misses_long_name(rws_path *path, const void *state)
{
    char name[601];
    flips_a(path, state);
    memset(name, 'n', 600);
    name[600] = '\0';
    rws_item(path, name, 0);
}

static void sentences_are_whole(void **unused)
{
    (void)unused;
    rws_engine *e = engine(NULL);
    rws_error   err = {""};
    assert_refused(e, flips_a, broken_factor, RWS_BROKEN, "The log-density of the model at site \"f\" is nan.");
    assert_refused(e, branches_on_quotient, flips_a_and_x, RWS_BROKEN, "between -1e9 and 1e9, not nan.");
    assert_int_equal(pass(e, flips_a, flips_a_and_x, false, &(float){-NAN}, 1, &err), RWS_BAD_INPUT);
    assert_string_equal(err.text, "Number 0 of field \"x\" of datum 100 is nan; data must be finite.");
    assert_refused(e, gives_up, x_only, RWS_BAD_INPUT, "0007.");
    assert_refused(e, gives_up_longer, x_only, RWS_BAD_INPUT, "000....");
    assert_refused(e, misses_long_name, x_only, RWS_BAD_INPUT, "nnn....");
    rws__engine_free(e);
}

/* ---- what one path does with the data of another */

/* A datum below 3 has three choices and another one has five. */
static void guesses_kind(rws_path *path, const void *state)
{
    (void)state;
    rws_flip(path, "kind", rws_affine(path, rws_observed(path, "x"), 1000, -2500));
}

static void x_by_kind(rws_path *path, const void *state)
{
    (void)state;
    const int kind = rws_flip(path, "kind", zero(path));
    rws_categorical(path, "x", rws_zeros(path, kind ? 5 : 3));
}

static void three_for_all(rws_path *path, const void *state)
{
    (void)state;
    rws_flip(path, "kind", zero(path));
    rws_categorical(path, "x", rws_zeros(path, 3));
}

static void data_of_other_paths_are_not_refused(void **unused)
{
    (void)unused;
    static const float x[] = {1, 4, 0, 3};
    rws_engine        *e = engine(NULL);
    for (int scalar = 0; scalar < 2; scalar++) {
        rws_error err = {""};
        if (pass(e, guesses_kind, x_by_kind, scalar, x, 4, &err) != RWS_OK) fail_msg("%s", err.text);
        const rws_scores *s = rws__engine_scores(e);
        for (int d = 0; d < 4; d++) assert_true(fabs(s->log_p[s->start[d]] - log(x[d] < 3 ? 0.5 / 3 : 0.5 / 5)) < 1e-5);
        assert_int_equal(pass(e, guesses_kind, three_for_all, scalar, x, 4, &err), RWS_BAD_INPUT);
        assert_string_equal(err.text, "The data have 4 at site \"x\", which is a choice of 0 to 2.");
    }
    rws__engine_free(e);
}

static void guesses_kind_of_item(rws_path *path, const void *state)
{
    (void)state;
    rws_flip(path, "kind", rws_affine(path, rws_item(path, "x", 0), 1000, -2500));
}

/* The same for the items of a series. */
static void items_of_other_paths_are_not_refused(void **unused)
{
    (void)unused;
    static const rws_params none;
    static const float      x[] = {1, 1, 1, 4, 1, 0, 1, 3};
    rws_engine             *e = rws__engine_new(&none, &(rws_field){"x", 2, .item = 1, .most = 1}, 1, NULL);
    for (int scalar = 0; scalar < 2; scalar++) {
        rws_error err = {""};
        if (pass(e, guesses_kind_of_item, x_by_kind, scalar, x, 4, &err) != RWS_OK) fail_msg("%s", err.text);
        const rws_scores *s = rws__engine_scores(e);
        for (int d = 0; d < 4; d++)
            assert_true(fabs(s->log_p[s->start[d]] - log(x[2 * d + 1] < 3 ? 0.5 / 3 : 0.5 / 5)) < 1e-5);
        assert_int_equal(pass(e, guesses_kind_of_item, three_for_all, scalar, x, 4, &err), RWS_BAD_INPUT);
        assert_string_equal(err.text, "Item 0 of \"x\" is 4, which is not a choice of 0 to 2.");
    }
    rws__engine_free(e);
}

/* A program that computes a value must return as many numbers on every path. */
static void returns_x_numbers(rws_path *path, void *context)
{
    (void)context;
    rws__path_output(path, 0, rws_zeros(path, rws_branch(path, rws_observed(path, "x"))));
}

static void results_of_different_lengths(void **unused)
{
    (void)unused;
    rws_engine *e = engine(NULL);
    rws_error   err = {""};
    int         dim;
    for (int scalar = 0; scalar < 2; scalar++) {
        const float *x = (float[]){2, 3, 3};
        rws_pass p = {.program = returns_x_numbers, .mode = RWS_COMPUTE, .n_data = 3, .n_particles = 1, .fields = &x};
        p.scalar = scalar;
        assert_int_equal(rws__engine_forward(e, &p, &err), RWS_BAD_INPUT);
        assert_string_equal(err.text, "The program returns 2 numbers on one path and 3 on another.");
        x = (float[]){3, 3, 3};
        assert_int_equal(rws__engine_forward(e, &p, &err), RWS_OK);
        assert_non_null(rws__engine_result(e, &dim));
        assert_int_equal(dim, 3);
    }
    rws__engine_free(e);
}

static void looks_at_x(rws_path *path, void *context)
{
    (void)context;
    rws__path_output(path, 0, rws_constant(path, rws_look(path, rws_observed(path, "x"))[0]));
}

/* A path without rows has no number to look at. */
static void stacks_that_the_system_has_not(void **unused)
{
    (void)unused;
    rws_error   err = {""};
    rws_engine *e = engine(&(rws_limits){.stack_bytes = (size_t)1 << 56, .max_paths = 1000});
    assert_int_equal(pass(e, flips_a, flips_a_and_x, false, &(float){0}, 1, &err), RWS_NO_MEMORY);
    assert_non_null(strstr(err.text, "for the stacks of more than 0 paths of a thread"));
    assert_non_null(strstr(err.text, "`sysctl vm.max_map_count=69530` allows"));
    assert_int_equal(err.text[strlen(err.text) - 1], '.');
    rws__engine_free(e);
}

static void passes_of_nothing(void **unused)
{
    (void)unused;
    rws_engine *e = engine(NULL);
    for (int n = -1; n <= 1; n++)
        for (int K = -1; K <= 1; K++) {
            const float   *x = (float[]){2};
            rws_error      err = {""};
            const rws_pass p = {
                .program = looks_at_x, .mode = RWS_COMPUTE, .n_data = n, .n_particles = K, .fields = &x};
            char message[100];
            snprintf(message, sizeof message, "A pass takes at least one datum and one particle, not %d and %d.", n, K);
            assert_int_equal(rws__engine_forward(e, &p, &err), n == 1 && K == 1 ? RWS_OK : RWS_BAD_INPUT);
            assert_string_equal(err.text, n == 1 && K == 1 ? "" : message);
        }
    assert_good(e);
    rws__engine_free(e);
}

/* ---- programs without end */

static _Thread_local int n_calls; /* keeps compilers from seeing that there is no end */

__attribute__((noinline)) static float recurse(rws_path *path, bool calls)
{
    volatile float ballast[50];
    ballast[0] = (float)++n_calls;
    if (calls && n_calls % 2) rws_constant(path, 1);
    if (n_calls < 0) return 0;
    return recurse(path, calls) + ballast[0];
}

static void recurses_with_calls(rws_path *path, const void *state)
{
    flips_a(path, state);
    n_calls = 0;
    rws_constant(path, recurse(path, true));
}

static void recurses_alone(rws_path *path, const void *state)
{
    flips_a(path, state);
    n_calls = 0;
    rws_constant(path, recurse(path, false));
}

static void large_array(rws_path *path, const void *state)
{
    float memory[1 << 20];          /* 4 MB */
    float *volatile array = memory; /* so that compilers do not do without it */
    flips_a(path, state);
    array[0] = 1;
    array[(1 << 20) - 1] = 2;
    rws_constant(path, array[0]);
}

static void loops(rws_path *path, const void *state)
{
    (void)state;
    for (;;) rws_normal(path, "step", zero(path), rws_constant(path, 1));
}

static void loops_on_flips(rws_path *path, const void *state)
{
    (void)state;
    for (;;) rws_flip(path, "again", zero(path));
}

static void allocates(rws_path *path, const void *state)
{
    (void)state;
    for (;;) rws_alloc(path, 1);
}

static void choices_of_ten(rws_path *path, const void *state)
{
    (void)state;
    for (int i = 0; i < 10; i++) rws_choose(path, "ten", rws_constants(path, (float[10]){0}, 10));
}

static void stacks_that_run_over(void **unused)
{
    (void)unused;
    if (RUNNING_ON_VALGRIND) skip();
    for (size_t kb = 0; kb <= 512; kb += 256) {
        char        message[200], before[200];
        const int   shown = kb ? (int)kb : 1024;
        rws_engine *e = engine(&(rws_limits){.stack_bytes = kb << 10});
        snprintf(message, sizeof message, "In the guide, after site \"a\": the stack of %d KB runs over", shown);
        snprintf(before, sizeof before, "In the guide, before its first site: the stack of %d KB runs over", shown);
        assert_refused(e, recurses_with_calls, flips_a_and_x, RWS_BAD_INPUT, message);
        assert_refused(e, recurses_alone, flips_a_and_x, RWS_BAD_INPUT, message);
        assert_refused(e, large_array, flips_a_and_x, RWS_BAD_INPUT, before);
        snprintf(message, sizeof message, "In the model, after site \"a\": the stack of %d KB runs over", shown);
        assert_refused(e, flips_a, recurses_alone, RWS_BAD_INPUT, message);
        rws__engine_free(e);
    }
    /* a stack that is large enough */
    rws_engine *e = engine(&(rws_limits){.stack_bytes = (size_t)5 << 20});
    rws_error   err = {""};
    assert_int_equal(pass(e, nothing, x_only, false, &(float){0}, 1, &err), RWS_OK);
    assert_refused(e, large_array, x_only, RWS_BAD_INPUT, "The guide visits site \"a\", but the model does not.");
    rws__engine_free(e);
}

static void *overflow_in_a_thread(void *arg)
{
    rws_engine *e = engine(NULL);
    rws_error   err = {""};
    for (int i = 0; i < 20; i++) {
        if (pass(e, recurses_alone, flips_a_and_x, i % 2, &(float){0.5f}, 1, &err) != RWS_BAD_INPUT) return arg;
        if (pass(e, flips_a, flips_a_and_x, i % 2, &(float){0.5f}, 1, &err) != RWS_OK) return arg;
    }
    rws__engine_free(e);
    return NULL;
}

static void stacks_run_over_in_threads(void **unused)
{
    (void)unused;
    if (RUNNING_ON_VALGRIND) skip();
    pthread_t thread[3];
    for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&thread[i], NULL, overflow_in_a_thread, thread), 0);
    for (int i = 0; i < 3; i++) {
        void *failed;
        assert_int_equal(pthread_join(thread[i], &failed), 0);
        assert_null(failed);
    }
}

static void programs_without_end(void **unused)
{
    (void)unused;
    rws_engine *e = engine(&(rws_limits){.max_operations = 5000});
    assert_refused(e, loops, x_only, RWS_BAD_INPUT,
                   "In the guide, after site \"step\" (visit 1665): one execution of the program makes more than 5000");
    assert_refused(e, allocates, x_only, RWS_BAD_INPUT, "makes more than 5000 library calls");
    rws__engine_free(e);
    e = engine(&(rws_limits){.max_paths = 10});
    rws_error err = {""};
    assert_int_equal(pass(e, choices_of_ten, x_only, false, &(float){0}, 1, &err), RWS_BAD_INPUT);
    assert_non_null(strstr(err.text, "The pass has more than 10 paths, the last one in the guide, after site \"ten\""));
    assert_int_equal(pass(e, flips_a, flips_a_and_x, true, &(float){0}, 1, &err), RWS_BAD_INPUT); /* 16 particles */
    assert_non_null(strstr(err.text, "The pass has more than 10 paths. "));
    assert_int_equal(pass(e, flips_a, flips_a_and_x, false, &(float){0}, 1, &err), RWS_OK);
    rws__engine_free(e);
    e = engine(&(rws_limits){.max_nodes = 1 << 14});
    assert_refused(e, loops, x_only, RWS_BAD_INPUT,
                   "The pass records more than 16384 operations, the last one in the guide");
    assert_refused(e, loops_on_flips, x_only, RWS_BAD_INPUT, "The pass records more than 16384 operations");
    rws__engine_free(e);
    e = engine(NULL); /* the defaults end it as well */
    assert_int_equal(pass(e, loops, x_only, false, &(float){0}, 1, &err), RWS_BAD_INPUT);
    assert_non_null(strstr(err.text, "more than 4000000 library calls"));
    assert_good(e);
    rws__engine_free(e);
}

/* ---- many splits */

enum { N_SPLITS = 500 };

/* Parts with one datum after the other; only the particles of the last datum draw. */
static void splits_and_draws(rws_path *path, void *context)
{
    (void)context;
    int t = 0;
    rws__path_side(path, RWS_SIDE_GUIDE);
    const rws_var x = rws_observed(path, "x");
    while (rws_branch(path, rws_greater(path, x, rws_constant(path, (float)t)))) t++;
    for (int side = RWS_SIDE_GUIDE; side <= RWS_SIDE_MODEL; side++) {
        rws__path_side(path, (rws_side)side);
        if (t == N_SPLITS - 1) rws_bernoulli(path, "a", zero(path));
    }
    x_only(path, NULL);
    rws__path_side(path, RWS_SIDE_NONE);
}

/* The stack of a path is for its program: how often the path has split does not matter for the library's share of it. */
static void splits_take_no_stack(void **unused)
{
    (void)unused;
    static float data[N_SPLITS];
    for (int i = 0; i < N_SPLITS; i++) data[i] = (float)i;
    rws_engine    *e = engine(&(rws_limits){.stack_bytes = (size_t)64 << 10});
    rws_error      err = {""};
    const float   *x = data;
    const rws_pass p = {.program = splits_and_draws, .n_data = N_SPLITS, .n_particles = 20, .fields = &x};
    if (rws__engine_forward(e, &p, &err) != RWS_OK) fail_msg("%s", err.text);
    const rws_scores *s = rws__engine_scores(e);
    assert_int_equal(s->start[N_SPLITS - 1], N_SPLITS - 1);
    assert_int_equal(s->start[N_SPLITS], N_SPLITS + 1); /* 20 particles of the last datum draw both bits */
    rws__engine_free(e);
}

/* ---- many sites, many visits */

static void thousand_names(rws_path *path, const void *state)
{
    (void)state;
    for (int i = 0; i < 1000; i++) {
        char name[20];
        snprintf(name, sizeof name, "site %d", i);
        rws_bernoulli(path, name, zero(path));
    }
}

static void thousand_names_and_x(rws_path *path, const void *state)
{
    thousand_names(path, state);
    x_only(path, state);
}

static void many_visits(rws_path *path, const void *state)
{
    (void)state;
    for (int i = 0; i < 70000; i++) rws_normal(path, "step", zero(path), rws_constant(path, 1));
}

static void many_visits_and_x(rws_path *path, const void *state)
{
    many_visits(path, state);
    x_only(path, state);
}

static void one_visit_less(rws_path *path, const void *state)
{
    (void)state;
    for (int i = 0; i < 69999; i++) rws_normal(path, "step", zero(path), rws_constant(path, 1));
    x_only(path, state);
}

static void many_sites_and_visits(void **unused)
{
    (void)unused;
    rws_engine *e = engine(NULL);
    rws_error   err = {""};
    for (int round = 0; round < 2; round++) {
        if (pass(e, thousand_names, thousand_names_and_x, round, &(float){0}, 1, &err) != RWS_OK)
            fail_msg("%s", err.text);
        assert_true(fabs(rws__engine_scores(e)->log_q[0] - 1000 * log(0.5)) < 1e-3);
    }
    if (pass(e, many_visits, many_visits_and_x, false, &(float){0}, 1, &err) != RWS_OK) fail_msg("%s", err.text);
    assert_int_equal(pass(e, many_visits, one_visit_less, false, &(float){0}, 1, &err), RWS_BAD_INPUT);
    assert_non_null(strstr(err.text, "The guide visits site \"step\" (visit 69999), but the model does not."));
    rws__engine_free(e);
}

/* ---- declarations */

static void assert_declared(rws_setup *s, const char *message)
{
    assert_int_equal(s->status, RWS_BAD_INPUT);
    if (!strstr(s->error.text, message)) fail_msg("\"%s\" instead of \"%s\"", s->error.text, message);
    rws__setup_release(s);
    *s = (rws_setup){.model = "toy"};
}

static void declarations(void **unused)
{
    (void)unused;
    rws_setup s = {.model = "toy"};
    char      name[400], longest[600] = "";
    memset(name, 'n', sizeof name - 1);
    memset(longest, 'n', sizeof longest - 1);
    name[sizeof name - 1] = '\0';

    assert_true(rws_setup_number(&s, "speed") == 0);
    assert_int_equal(rws_setup_int(&s, "speed"), 0);
    assert_declared(&s, "Model toy: It asks for a setting \"speed\", which is not in its table.");
    assert_string_equal(rws_setup_text(&s, "speed"), "");
    assert_string_equal(rws_setup_path(&s, NULL), "");
    assert_declared(&s, "\"speed\"");

    rws_setup_field(&s, "x", 2);
    rws_setup_label(&s, "x", 2);
    assert_declared(&s, "The label \"x\" is declared twice.");
    rws_setup_field(&s, "x", 2);
    rws_setup_field(&s, "x", 2);
    assert_declared(&s, "The field \"x\" is declared twice.");
    rws_setup_field(&s, NULL, 2);
    assert_declared(&s, "A field is declared without a name.");
    rws_setup_field(&s, "x", 0);
    assert_declared(&s, "The field \"x\" has 0 numbers; it must have at least one.");
    rws_setup_series(&s, NULL, 0, 1);
    assert_declared(&s, "A series is declared without a name.");
    rws_setup_series(&s, "x", 0, 1);
    assert_declared(&s, "The series \"x\" has 1 items of 0 numbers; it must have at least one of one.");
    rws_setup_series(&s, "x", 100000, 100000);
    assert_declared(&s, "The series \"x\" cannot have 100000 items of 100000 numbers.");
    rws_setup_field(&s, longest, 0);
    assert_declared(&s, "nnn....");
    for (int i = 0; i <= RWS_FIELDS; i++) {
        char field[20];
        snprintf(field, sizeof field, "f%d", i);
        rws_setup_field(&s, field, 1);
    }
    assert_int_equal(s.n_fields, RWS_FIELDS);
    assert_string_equal(s.fields[7].name, "f7");
    assert_declared(&s, "The field \"f1024\" is one too many: there may be 1024 fields and labels.");

    rws_setup_relaxed(&s, NULL, 3);
    assert_declared(&s, "Site \"NULL\" with 3 categories cannot be relaxed");
    rws_setup_relaxed(&s, "z", 1);
    assert_declared(&s, "Site \"z\" with 1 categories cannot be relaxed");
    rws_setup_relaxed(&s, name, 3);
    assert_int_equal(s.status, RWS_OK);
    assert_string_equal(s.relaxed_site, name);

    assert_non_null(rws_setup_param(&s, RWS_THETA, name, 1, 1, RWS_ZERO));
    assert_declared(&s, "needs a name of 1 to 95 bytes.");
    assert_non_null(rws_setup_param(&s, RWS_THETA, NULL, 1, 1, RWS_ZERO));
    assert_declared(&s, "needs a name of 1 to 95 bytes.");
    assert_non_null(rws_setup_param(&s, RWS_THETA, "w", 0, 1, RWS_ZERO));
    assert_declared(&s, "The parameter \"w\" cannot have 0 x 1 numbers.");
    assert_non_null(rws_setup_param(&s, RWS_THETA, "w", 100000, 100000, RWS_ZERO));
    assert_declared(&s, "The parameter \"w\" cannot have 100000 x 100000 numbers.");
    assert_non_null(rws_setup_param(&s, (rws_group)17, "w", 1, 1, RWS_ZERO));
    assert_declared(&s, "The parameter \"w\" belongs to no group (17).");
    assert_non_null(rws_setup_param(&s, RWS_THETA, "w", 1, 1, RWS_ZERO));
    assert_non_null(rws_setup_param(&s, RWS_PHI, "w", 1, 1, RWS_ZERO));
    assert_declared(&s, "Two parameters have the name \"w\".");
    rws__setup_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_value),
        cmocka_unit_test(values_of_other_paths),
        cmocka_unit_test(wrong_shapes),
        cmocka_unit_test(data_that_are_no_numbers),
        cmocka_unit_test(sentences_are_whole),
        cmocka_unit_test(data_of_other_paths_are_not_refused),
        cmocka_unit_test(items_of_other_paths_are_not_refused),
        cmocka_unit_test(results_of_different_lengths),
        cmocka_unit_test(stacks_that_the_system_has_not),
        cmocka_unit_test(passes_of_nothing),
        cmocka_unit_test(stacks_that_run_over),
        cmocka_unit_test(stacks_run_over_in_threads),
        cmocka_unit_test(programs_without_end),
        cmocka_unit_test(splits_take_no_stack),
        cmocka_unit_test(many_sites_and_visits),
        cmocka_unit_test(declarations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
