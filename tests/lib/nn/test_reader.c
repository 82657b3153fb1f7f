/* test_reader.c - layers that read series whose lengths differ, from 0 items on: all data together give the numbers and
 * gradients that each datum gives alone, and particle by particle; dreams are read like data; encoders of sets and attention
 * do not mind the order of the items; a datum costs as many steps as it has items. */
#include "engine/engine.h"
#include "nn/layer.h"

#include "support.h"

#include <string.h>

enum { DATA = 40, MOST = 4, ROW = 1 + MOST, WIDE = 5, DREAMS = 50 };

typedef struct {
    rws_setup   setup;
    rws_engine *engine;
    rws_layer  *reader, *attention, *set, *to_number;
    rws_param  *emit;
    bool        in_order; /* also by the layer that minds the order */
    bool        turned;   /* the items are read from the last to the first */
    float       n[10 * DATA], x[10 * DATA * ROW];
} bench;

/* A number about the whole series. */
static rws_var about(rws_path *path, const bench *b)
{
    int      n;
    rws_var *x = rws_items(path, "x", &n), *h = rws_alloc(path, (size_t)(n + 1) * sizeof *h);
    for (int i = 0; i < n / 2 && b->turned; i++) {
        const rws_var swap = x[i];
        x[i] = x[n - 1 - i], x[n - 1 - i] = swap;
    }
    const rws_var set = rws_set_encoder(path, b->set, x, n), seen = rws_attention(path, b->attention, set, x, n);
    rws_var       parts[] = {set, seen, set, seen};
    if (b->in_order) {
        parts[2] = rws_bidirectional(path, b->reader, x, n, h);
        parts[3] = n ? h[n / 2] : parts[2];
    }
    return rws_linear_parts(path, b->to_number, parts, 4);
}

static void guide(rws_path *path, const bench *b)
{
    const rws_var y = about(path, b);
    int           n;
    rws_var      *x = rws_items(path, "x", &n);
    rws_normal(path, "z", y, rws_constant(path, 1));
    rws__path_output(path, 0, y);
    rws__path_output(path, 1, rws_length(path, "x"));
    for (int t = 0; t < MOST; t++) rws__path_output(path, 2 + t, t < n ? x[t] : rws_constant(path, 0));
}

static void model(rws_path *path, const bench *b)
{
    const rws_var one = rws_constant(path, 1), z = rws_normal(path, "z", rws_constant(path, 0), one);
    const int     n = rws_choose(path, "n", rws_constants(path, (float[MOST + 1]){0}, MOST + 1));
    for (int t = 0; t < n; t++) rws_normal(path, "x", rws_mul(path, z, rws_parameter(path, b->emit)), one);
}

static void program(rws_path *path, void *context)
{
    const bool sleep = rws__path_pass(path)->mode == RWS_SLEEP;
    for (int i = 0; i < 2; i++) {
        const bool guided = (i == 0) != sleep;
        rws__path_side(path, guided ? RWS_SIDE_GUIDE : RWS_SIDE_MODEL);
        (guided ? guide : model)(path, context);
    }
    rws__path_side(path, RWS_SIDE_NONE);
}

static void bench_init(bench *b)
{
    *b = (bench){.setup = {.seed = 9}, .in_order = true};
    rws_setup_field(&b->setup, "n", 1);
    rws_setup_series(&b->setup, "x", 1, MOST);
    b->reader = rws_setup_bidirectional(&b->setup, RWS_PHI, "reader", RWS_LSTM, 1, WIDE);
    b->set = rws_setup_set_encoder(&b->setup, RWS_PHI, "set", RWS_TANH, RWS_SUM, (int[]){1, 6, 2 * WIDE}, 3);
    b->attention = rws_setup_attention(&b->setup, RWS_PHI, "attention", 2 * WIDE, 2, 1);
    b->to_number = rws_setup_linear(&b->setup, RWS_PHI, "to_number", 8 * WIDE, 1, RWS_UNIFORM);
    b->emit = rws_setup_param(&b->setup, RWS_THETA, "emit", 1, 1, RWS_UNIFORM);
    assert_int_equal(b->setup.status, RWS_OK);
    rws__params_pack(&b->setup.params);
    b->engine = rws__engine_new(&b->setup.params, b->setup.fields, b->setup.n_fields, NULL);
    die d = {3};
    for (int i = 0; i < 10 * DATA; i++) {
        b->n[i] = b->x[i * ROW] = (float)die_below(&d, MOST + 1);
        for (int t = 1; t <= MOST; t++) b->x[i * ROW + t] = (float)die_between(&d, -2, 2);
    }
}

static void bench_release(bench *b)
{
    rws__engine_free(b->engine);
    rws__setup_release(&b->setup);
}

/* A wake pass over some data, or a sleep pass if n_data is 0. */
static rws_scores *pass(bench *b, int first, int n_data, bool scalar)
{
    const float   *fields[] = {b->n + first, b->x + first * ROW};
    const rws_pass p = {.program = program,
                        .context = b,
                        .mode = n_data ? RWS_WAKE : RWS_SLEEP,
                        .scalar = scalar,
                        .groups = 1u << RWS_PHI,
                        .n_data = n_data ? n_data : 1,
                        .n_particles = n_data ? 1 : DREAMS,
                        .first_datum = (uint32_t)first,
                        .fields = n_data ? fields : NULL};
    rws_error      err;
    if (rws__engine_forward(b->engine, &p, &err) != RWS_OK) fail_msg("%s", err.text);
    return rws__engine_scores(b->engine);
}

/* The gradient of the sum of y over all data, added to. */
static void add_gradient(bench *b, rws_scores *s, float *gradient)
{
    for (int i = 0; i < s->n; i++) s->coef_out[0][i] = 1;
    assert_int_equal(rws__engine_backward(b->engine, 1u << RWS_PHI, gradient, NULL), RWS_OK);
}

static void together_as_alone(void **state)
{
    (void)state;
    bench b;
    bench_init(&b);
    const size_t size = b.setup.params.size;
    float       *gradients[3];
    double       y[3][DATA];
    for (int how = 0; how < 3; how++) { /* together, particle by particle, each datum alone */
        gradients[how] = calloc(size, sizeof(float));
        for (int first = 0; first < DATA; first += how == 2 ? 1 : DATA) {
            rws_scores *s = pass(&b, first, how == 2 ? 1 : DATA, how == 1);
            for (int i = 0; i < s->B; i++) y[how][first + i] = s->out[0][s->start[i]];
            add_gradient(&b, s, gradients[how]);
        }
    }
    for (int how = 1; how < 3; how++) {
        double most = 0;
        for (int i = 0; i < DATA; i++) assert_near(y[how][i], y[0][i], 2e-6);
        for (size_t i = 0; i < size; i++) {
            most = fmax(most, fabs((double)gradients[how][i]));
            assert_near((double)gradients[how][i], (double)gradients[0][i], 1e-4);
        }
        assert_true(most > 1);
    }
    for (int how = 0; how < 3; how++) free(gradients[how]);
    bench_release(&b);
}

/* What the guide makes of a dream is what it makes of the same numbers as data. */
static void dreams_as_data(void **state)
{
    (void)state;
    bench b;
    bench_init(&b);
    rws_scores *s = pass(&b, 0, 0, false);
    double      y[DREAMS];
    int         n_dreams = s->n, lengths[MOST + 1] = {0};
    assert_in_range(n_dreams, 2, DREAMS);
    for (int i = 0; i < n_dreams; i++) {
        y[i] = s->out[0][i];
        b.n[i] = b.x[i * ROW] = (float)s->out[1][i];
        lengths[(int)b.n[i]]++;
        for (int t = 0; t < MOST; t++) b.x[i * ROW + 1 + t] = (float)s->out[2 + t][i];
    }
    for (int n = 0; n <= MOST; n++) assert_true(lengths[n] > 0);
    s = pass(&b, 0, n_dreams, false);
    for (int i = 0; i < n_dreams; i++) assert_near(s->out[0][s->start[i]], y[i], 2e-6);
    bench_release(&b);
}

static void sets_have_no_order(void **state)
{
    (void)state;
    bench  b;
    double y[2][DATA], other = 0;
    bench_init(&b);
    for (int minds = 0; minds < 2; minds++) {
        for (int turned = 0; turned < 2; turned++) {
            b.in_order = minds, b.turned = turned;
            const rws_scores *s = pass(&b, 0, DATA, false);
            for (int i = 0; i < DATA; i++) y[turned][i] = s->out[0][s->start[i]];
        }
        for (int i = 0; i < DATA; i++) {
            if (!minds) assert_near(y[1][i], y[0][i], 2e-6);
            other = fmax(other, fabs(y[1][i] - y[0][i]));
        }
    }
    assert_true(other > 1e-3); /* the reader does mind */
    bench_release(&b);
}

static rws_engine_stats work(bench *b, int n_data)
{
    rws__engine_take_stats(b->engine);
    pass(b, 0, n_data, false);
    return rws__engine_take_stats(b->engine);
}

/* A datum costs as many steps as it has items, whatever lengths other data have. */
static void short_series_cost_less(void **state)
{
    (void)state;
    bench b;
    bench_init(&b);
    const uint64_t few = work(&b, DATA).calls, many = work(&b, 10 * DATA).calls, mixed = work(&b, 10 * DATA).flops;
    int            items = 0;
    for (int i = 0; i < 10 * DATA; i++) {
        items += (int)b.n[i];
        b.n[i] = b.x[i * ROW] = MOST;
    }
    const uint64_t longest = work(&b, 10 * DATA).flops;
    if (many > few + few / 4) fail_msg("%d calls for %d data, and %d for %d", (int)many, 10 * DATA, (int)few, DATA);
    const double share = (double)items / (10 * DATA * MOST);
    if ((double)mixed > (share + 0.1) * (double)longest)
        fail_msg("with a share %.2f of the items the work is %.2f", share, (double)mixed / (double)longest);
    bench_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(together_as_alone),
        cmocka_unit_test(dreams_as_data),
        cmocka_unit_test(sets_have_no_order),
        cmocka_unit_test(short_series_cost_less),
    };
    return cmocka_run_group_tests_name("reader", tests, NULL, NULL);
}
