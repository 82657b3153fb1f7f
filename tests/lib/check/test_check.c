/* test_check.c - every planted mistake is found and named, and training refuses those that its short look can see. The model
 * without a mistake has no finding. */
#include "mistakes/planted.h"
#include "support.h"

#include <stdio.h>

static rws_model model_of(const planted *p)
{
    return (rws_model){.abi = RWS_ABI,
                       .name = p->name,
                       .help = "a planted mistake",
                       .defaults = {.batch = 20, .particles = 5, .n_test = 20, .iterations = 2},
                       .setup = p->setup ? p->setup : mixture_setup,
                       .data = p->data ? p->data : mixture_data,
                       .guide = p->guide,
                       .model = p->model};
}

static rws_trainer *trainer_of(const rws_model *m, const char *method)
{
    rws_trainer     *t;
    rws_error        err;
    const rws_config c = {
        .method = method, .seed = 3, .limits = {.max_operations = 20000, .max_paths = 5000, .stack_bytes = 1 << 17}};
    if (rws_trainer_new(&c, m, &t, &err) != RWS_OK) fail_msg("%s: %s", m->name, err.text);
    return t;
}

static bool is_it(const rws_check_finding *f, const planted *p)
{
    return strcmp(f->kind, p->kind) == 0 && f->severity == p->severity && strstr(f->text, p->says) &&
           (!p->about || (f->about && strcmp(f->about, p->about) == 0));
}

static void check(const planted *p)
{
    const rws_model     m = model_of(p);
    rws_trainer        *t = trainer_of(&m, p->method);
    rws_check_findings *f;
    rws_error           err;
    bool                found = false;
    if (rws_trainer_check(t, &f, &err) != RWS_OK) fail_msg("%s: %s", p->name, err.text);
    for (int i = 0; i < f->n; i++) found |= is_it(&f->list[i], p);
    for (int i = 0; i < f->n && !found; i++)
        print_message("%s, %s, %s: %s\n", f->list[i].kind, rws_severity_name(f->list[i].severity), f->list[i].about,
                      f->list[i].text);
    if (!found) fail_msg("%s: not found among %d findings", p->name, f->n);
    rws_check_free(f);
    rws_trainer_free(t);
}

static void train(const planted *p, bool no_check)
{
    const rws_model  m = model_of(p);
    rws_trainer     *t;
    rws_error        err = {{0}};
    const rws_config c = {.method = p->method, .seed = 3, .no_check = no_check};
    assert_int_equal(rws_trainer_new(&c, &m, &t, &err), RWS_OK);
    const rws_status status = rws_trainer_train(t, NULL, &err);
    const bool       refused = status == RWS_BAD_INPUT && strstr(err.text, p->says) && strstr(err.text, "`no_check`");
    if (refused == no_check) fail_msg("%s is %s: %s", p->name, refused ? "refused" : "not refused", err.text);
    rws_trainer_free(t);
}

static void test_planted(void **state)
{
    (void)state;
    const planted *const tables[] = {planted_state, planted_parameters, planted_programs, planted_data};
    int                  n = 0;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        for (const planted *p = tables[i]; p->name; p++, n++) {
            check(p);
            if (p->refused) train(p, false);
            if (p->refused) train(p, true);
        }
    assert_true(n >= 25);
}

static void test_nothing(void **state)
{
    (void)state;
    const planted       right = {.name = "right", .guide = mixture_guide, .model = mixture_model};
    const rws_model     m = model_of(&right);
    const char *const   methods[] = {"ww", "ws", "wws", "vimco"};
    rws_check_findings *f;
    rws_error           err;
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        rws_trainer *t = trainer_of(&m, methods[i]);
        assert_int_equal(rws_trainer_check(t, &f, &err), RWS_OK);
        assert_int_equal(f->n, 1); /* its component could be summed */
        if (strcmp(f->list[0].kind, "sum") != 0 || f->list[0].severity != RWS_NOTE) fail_msg("%s", f->list[0].text);
        assert_true(f->seconds > 0 && f->rows > 0 && f->paths > 0 && f->calls > 0);
        rws_check_free(f);
        assert_int_equal(rws_trainer_train(t, NULL, &err), RWS_OK);
        rws_trainer_free(t);
    }
    assert_int_equal(rws_trainer_check(NULL, &f, &err), RWS_BAD_INPUT);
    rws_check_free(NULL);
}

/* A review changes no parameter: they are the same to the last bit. */
static void test_unchanged(void **state)
{
    (void)state;
    const planted       right = {.name = "right", .guide = mixture_guide, .model = mixture_model};
    const rws_model     m = model_of(&right);
    rws_trainer        *a = trainer_of(&m, "ww"), *b = trainer_of(&m, "ww");
    rws_check_findings *f;
    rws_param_view      x, y;
    rws_error           err;
    assert_int_equal(rws_trainer_check(a, &f, &err), RWS_OK);
    rws_check_free(f);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(rws_trainer_step(a, &err), RWS_OK);
        assert_int_equal(rws_trainer_step(b, &err), RWS_OK);
    }
    for (int i = 0; rws_trainer_param(a, i, &x) && rws_trainer_param(b, i, &y); i++)
        assert_memory_equal(x.values, y.values, (size_t)(x.rows * x.cols) * sizeof(float));
    rws_trainer_free(a);
    rws_trainer_free(b);
}

/* Training data that no particle explains are counted and named. */
static void test_impossible(void **state)
{
    (void)state;
    const planted  *p = &planted_data[1];
    const rws_model m = model_of(p);
    rws_trainer    *t = trainer_of(&m, "ww");
    rws_error       err;
    assert_null(rws_trainer_impossible(t));
    for (int i = 0; i < 5; i++) assert_int_equal(rws_trainer_step(t, &err), RWS_OK);
    assert_non_null(rws_trainer_impossible(t));
    assert_string_equal(
        rws_trainer_impossible(t),
        "No particle has explained 1 of the 100 training data so far, which teach nothing; the first is datum 17 "
        "(x = -3), which is impossible at site \"x\" (iteration 1).");
    rws_trainer_free(t);
}

/* ---- data that are not whole: a field of two numbers, a series of up to three items, a label */

static int skipped; /* which number `data` leaves out: 0 to 2 of the field and the label, 3: the length, 4: an item */

static rws_status holes_setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    (void)random, (void)state, (void)err;
    rws_setup_field(s, "y", 2);
    rws_setup_series(s, "items", 1, 3);
    rws_setup_label(s, "kind", 1);
    return RWS_OK;
}

static rws_status holes_data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                             float *const *fields, rws_error *err)
{
    (void)state, (void)split, (void)first, (void)random, (void)err;
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < 2; k++)
            if (skipped != k || i != 3) fields[0][2 * i + k] = 1;
        if (skipped != 3) fields[1][4 * i] = 2; /* the third item is never written */
        fields[1][4 * i + 1] = 1;
        if (skipped != 4) fields[1][4 * i + 2] = 1;
        if (skipped != 2) fields[2][i] = NAN;
    }
    return RWS_OK;
}

static void holes_program(rws_path *path, const void *state)
{
    (void)state;
    const rws_var zero = rws_constant(path, 0), one = rws_constant(path, 1);
    rws_normal(path, "y", zero, one); /* for both of its numbers */
    for (int t = 0; t < 2; t++) rws_normal(path, "items", zero, one);
}

static void nothing(rws_path *path, const void *state)
{
    (void)path, (void)state;
}

static void test_holes(void **state)
{
    (void)state;
    const rws_model m = {.abi = RWS_ABI,
                         .name = "holes",
                         .help = "nothing to learn",
                         .defaults = {.batch = 5, .particles = 1, .n_test = 5},
                         .setup = holes_setup,
                         .data = holes_data,
                         .guide = nothing,
                         .model = holes_program};
    const char     *says[] = {
            "The model's function `data` left number 0 of field \"y\" of datum 3 as it was; it fills 2 numbers",
            "number 1 of field \"y\" of datum 3",
            "number 0 of field \"kind\" of datum 0",
            "number 0 of field \"items\" of datum 0",
            "number 2 of field \"items\" of datum 0",
    };
    rws_trainer *t;
    rws_error    err;
    for (skipped = 0; skipped < 5; skipped++) {
        assert_int_equal(rws_trainer_new(&(rws_config){0}, &m, &t, &err), RWS_BAD_INPUT);
        if (!strstr(err.text, says[skipped])) fail_msg("%s", err.text);
    }
    rws_measures measured;
    assert_int_equal(rws_trainer_new(&(rws_config){0}, &m, &t, &err), RWS_OK);
    assert_int_equal(rws_trainer_evaluate(t, &measured, &err), RWS_OK);
    for (int i = 0; i < measured.n; i++) /* of four numbers that are 1 */
        if (strcmp(measured.names[i], "log_evidence") == 0)
            assert_true(fabs(measured.value[i] + 2 + 2 * log(2 * acos(-1))) < 1e-5);
    rws_trainer_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_holes), cmocka_unit_test(test_planted),
                                       cmocka_unit_test(test_nothing), cmocka_unit_test(test_unchanged),
                                       cmocka_unit_test(test_impossible)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
