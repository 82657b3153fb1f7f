/* test_shortage.c - every request for memory of a model's setup, an engine and a pass with its gradient fails once, one
 * after the other: there is a status or a result, nothing leaks, and the next pass of the same engine is right. */
#include "base/arena.h"
#include "base/error.h"
#include "base/fiber.h"
#include "engine/setup.h"
#include "estimator/estimator.h"
#include "failing.h"
#include "support.h"

#include <stdlib.h>
#include <string.h>

extern const rws_model rws_user_model; /* toy.c */

enum { B = 3, K = 8 };

/* ---- an arena */

static void note(void *context)
{
    ++*(int *)context;
}

static void an_arena_without_memory(void **unused)
{
    (void)unused;
    int           n_noted = 0;
    volatile bool failing;
    rws_arena     a = {.no_memory = note, .context = &n_noted};
    failing_set(0, true);
    assert_null(rws__arena_alloc(&a, 100));
    assert_null(rws__arena_zero(&a, 100));
    assert_null(rws__arena_try(&a, 100));
    failing_set(-1, false);
    assert_int_equal(n_noted, 2);
    char *p = rws__arena_zero(&a, 100);
    assert_non_null(p);
    failing_set(0, true);
    assert_null(rws__arena_alloc(&a, (size_t)1 << 30)); /* the blocks that are there stay as they were */
    char *q = rws__arena_alloc(&a, 100);
    failing_set(-1, false);
    assert_true(q == p + 128);
    jmp_buf leave;
    a.no_memory = rws__arena_jump;
    a.context = &leave;
    failing = true;
    if (setjmp(leave) == 0) {
        failing_set(0, true);
        rws__arena_zero(&a, (size_t)1 << 30);
        failing = false;
    }
    failing_set(-1, false);
    assert_true(failing);
    a.no_memory = note;
    a.context = &n_noted;
    assert_null(rws__arena_alloc(&a, SIZE_MAX));
    assert_null(rws__arena_alloc(&a, SIZE_MAX - 10));
    rws__arena_free(&a);
}

static void a_fiber_without_memory(void **unused)
{
    (void)unused;
    for (long n = 0;; n++) {
        failing_set(n, false);
        rws_fiber *f = rws__fiber_new(1 << 16);
        failing_set(-1, false);
        if (f) {
            assert_true(n >= 3); /* the structure, its stack, its guard */
            rws__fiber_free(f);
            break;
        }
    }
}

/* ---- the toy: all that a trainer does with an engine */

typedef struct {
    rws_setup  setup;
    void      *state;
    rws_method method;
    float      x[2 * B], kind[B], *fields[2];
} world;

static rws_status world_new(world *w, rws_error *err)
{
    *w = (world){.setup = {.seed = 3}};
    rws_random random = rws__random_new(rws__key_for(3, 0, RWS_KEY_DATA, 0), 0);
    w->fields[0] = w->x;
    w->fields[1] = w->kind;
    const rws_status status = rws_user_model.setup(&w->setup, &random, &w->state, err);
    if (w->setup.status != RWS_OK) {
        *err = w->setup.error;
        return w->setup.status;
    }
    if (status != RWS_OK) return status;
    if (!rws__params_pack(&w->setup.params)) return rws_no_memory(err, "parameters");
    w->method = (rws_method){.model = &rws_user_model, .state = w->state};
    return rws_user_model.data(w->state, RWS_TRAIN, 0, B, &random, w->fields, err);
}

static void read_choice(void *context, const rws_choice *c)
{
    double *sum = context;
    *sum += (double)c->value[c->dim - 1] + c->visit + (double)strlen(c->site);
}

/* A pass, its gradient, and its choices. */
static rws_status work(world *w, rws_engine *e, bool scalar, bool deferred, float *gradient, double *sum,
                       rws_error *err)
{
    const rws_pass pass = {.model = w->method.model,
                           .state = w->method.state,
                           .n_data = B,
                           .n_particles = scalar ? 2 : K,
                           .fields = (const float *const *)w->fields,
                           .groups = 1u << RWS_THETA | 1u << RWS_PHI,
                           .key = rws__key_for(1, 2, RWS_KEY_WAKE, 0),
                           .choices = true,
                           .reports = true,
                           .scalar = scalar};
    const size_t   size = w->setup.params.size;
    bool           touched[100] = {false};
    memset(gradient, 0, size * sizeof *gradient);
    RWS_TRY(rws__engine_forward(e, &pass, err));
    rws_scores *s = rws__engine_scores(e);
    for (int i = 0; i < s->n; i++) s->coef_p[i] = s->coef_q[i] = s->count[i];
    const rws_products *products;
    if (deferred) RWS_TRY(rws__engine_backward_deferred(e, pass.groups, gradient, touched, &products, err));
    else RWS_TRY(rws__engine_backward(e, pass.groups, gradient, err));
    *sum = 0;
    for (int i = 0; i < s->n; i++) {
        if (rws__engine_choices(e, i, read_choice, sum) != RWS_OK) return rws_no_memory(err, "choices");
        const float *x = rws__engine_observed(e, i, 0, NULL);
        if (!x) return rws_no_memory(err, "an observation");
        *sum += (double)x[1];
    }
    return RWS_OK;
}

/* Returns how many requests there are in all. */
static long fail_each(bool scalar, bool deferred, bool from_then_on)
{
    world     w;
    rws_error err = {""};
    double    right_sum, sum;
    assert_int_equal(world_new(&w, &err), RWS_OK);
    const size_t bytes = w.setup.params.size * sizeof(float);
    float       *right = malloc(bytes), *gradient = malloc(bytes);
    rws_engine  *e = rws__engine_new(&w.setup.params, w.setup.fields, w.setup.n_fields, NULL);
    assert_int_equal(work(&w, e, scalar, deferred, right, &right_sum, &err), RWS_OK);
    rws__engine_free(e);
    long n = 0;
    for (bool all = false; !all; n++) {
        memset(err.text, 0, sizeof err.text);
        failing_set(n, from_then_on);
        e = rws__engine_new(&w.setup.params, w.setup.fields, w.setup.n_fields, NULL);
        const rws_status status = e ? work(&w, e, scalar, deferred, gradient, &sum, &err) : RWS_NO_MEMORY;
        all = failing_count() <= n;
        failing_set(-1, false);
        if (status != RWS_OK) assert_int_equal(status, RWS_NO_MEMORY);
        if (status != RWS_OK && e) assert_non_null(strstr(err.text, "memory"));
        if (status == RWS_OK) assert_memory_equal(gradient, right, bytes);
        if (e) { /* now there is memory again */
            assert_int_equal(work(&w, e, scalar, deferred, gradient, &sum, &err), RWS_OK);
            assert_memory_equal(gradient, right, bytes);
            assert_true(sum == right_sum);
        }
        rws__engine_free(e);
    }
    free(right);
    free(gradient);
    rws__setup_release(&w.setup);
    return n;
}

static void passes_without_memory(void **unused)
{
    (void)unused;
    for (int i = 0; i < 4; i++) assert_true(fail_each(i & 1, i & 2, i == 3) > 40); /* scalar, deferred, from then on */
}

static void setups_without_memory(void **unused)
{
    (void)unused;
    for (int from_then_on = 0; from_then_on < 2; from_then_on++)
        for (long n = 0;; n++) {
            world     w;
            rws_error err = {""};
            failing_set(n, from_then_on);
            const rws_status status = world_new(&w, &err);
            const bool       all = failing_count() <= n;
            failing_set(-1, false);
            rws__setup_release(&w.setup);
            if (all) {
                assert_int_equal(status, RWS_OK);
                assert_true(n > 20);
                break;
            }
            assert_int_equal(status, RWS_NO_MEMORY);
            assert_non_null(strstr(err.text, "memory"));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_arena_without_memory),
        cmocka_unit_test(a_fiber_without_memory),
        cmocka_unit_test(setups_without_memory),
        cmocka_unit_test(passes_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
