/* test_resample.c - particle filters: the mean weight has the evidence as its expectation, whatever is resampled, and long series
 * are weighed as the forward algorithm weighs them. Statistical tests have an error level of 1e-6, and fixed seeds. */
#include "engine/internal.h"
#include "engine/setup.h"
#include "estimator/estimator.h"
#include "files.h"

#include <stdlib.h>
#include <string.h>

enum { STATES = 2, MOST = 120 };

static const double next[STATES + 1][STATES] = {
    {0.3, 0.7}, {0.9, 0.1}, {0, 1}}; /* row s + 1; from state 1 never to 0 */
static const double slow[STATES + 1][STATES] = {{0.5, 0.5}, {0.9, 0.1}, {0.1, 0.9}};
static const double seen[STATES] = {0.2, 0.8}, ends = 0.3, rest = 0.6, doubts = 0.4;

static const double (*moves)[STATES];
static bool stops; /* the state may end before the series does; and a state may doubt, which is one more choice */

typedef struct {
    rws_var n;
    bool    draws;
} before;

typedef struct {
    int t, s;
} day;

static rws_var logs(rws_path *path, const double *p)
{
    float x[STATES];
    for (int i = 0; i < STATES; i++) x[i] = (float)log(p[i]);
    return rws_constants(path, x, STATES);
}

static rws_var logit(rws_path *path, double p)
{
    return rws_constant(path, (float)log(p / (1 - p)));
}

static bool has_day(rws_path *path, const before *b, int t)
{
    return rws_branch(path, rws_greater(path, b->n, rws_constant(path, (float)t)));
}

static void see(rws_path *path, const before *b, double p)
{
    if (!b->draws) rws_bernoulli(path, "x", logit(path, p));
}

static bool step(rws_path *path, const void *env, void *carry)
{
    const before *b = env;
    day          *c = carry;
    if (!has_day(path, b, c->t)) return *c = (day){0}, false;
    if (stops && rws_flip(path, "ends", logit(path, b->draws ? 0.5 : ends))) {
        while (!b->draws && has_day(path, b, c->t++)) see(path, b, rest);
        return *c = (day){0}, false;
    }
    c->s = rws_choose(path, "s", b->draws ? rws_zeros(path, STATES) : logs(path, moves[c->s + 1]));
    double p = seen[c->s];
    if (stops && c->s == 1 && rws_flip(path, "doubts", logit(path, b->draws ? 0.5 : doubts))) p = 0.5;
    see(path, b, p);
    return c->t++, true;
}

static void guide(rws_path *path, const void *state)
{
    const before b = {rws_length(path, "x"), true};
    day          c = {.s = -1};
    (void)state;
    RWS_SHARED_LOOP(path, "days", step, &b, c, t);
}

static void model(rws_path *path, const void *state)
{
    const before b = {rws_affine(path, rws_categorical(path, "n", rws_zeros(path, MOST)), 1, 1), false};
    day          c = {.s = -1};
    (void)state;
    RWS_SHARED_LOOP(path, "days", step, &b, c, t);
}

static const rws_model filter = {.name = "filter", .guide = guide, .model = model};

/* ---- exact */

static double bit(double p, float x)
{
    return x > 0 ? p : 1 - p;
}

static double enumerate(const float *x, int n, int t, int s)
{
    double p = 0, tail = 1;
    if (t == n) return 1;
    for (int i = t; i < n; i++) tail *= bit(rest, x[i]);
    for (int to = 0; to < STATES; to++) {
        const double here = to == 1 ? doubts * 0.5 + (1 - doubts) * bit(seen[1], x[t]) : bit(seen[0], x[t]);
        p += moves[s + 1][to] * here * enumerate(x, n, t + 1, to);
    }
    return ends * tail + (1 - ends) * p;
}

static double forward_algorithm(const float *x, int n)
{
    double a[STATES], log_p = 0;
    for (int t = 0; t < n; t++) {
        double b[STATES] = {0}, sum = 0;
        for (int to = 0; to < STATES; to++) {
            for (int s = 0; s < STATES && t; s++) b[to] += a[s] * moves[s + 1][to];
            if (t == 0) b[to] = moves[0][to];
            sum += b[to] *= bit(seen[to], x[t]);
        }
        for (int s = 0; s < STATES; s++) a[s] = b[s] / sum;
        log_p += log(sum);
    }
    return log_p;
}

/* ---- passes */

typedef struct {
    rws_setup   setup;
    rws_engine *engine;
    float      *n, *x;
} bench;

/* B data, all of them the n numbers of x. */
static bench *bench_new(int B, const float *x, int n)
{
    bench *b = calloc(1, sizeof *b);
    rws_setup_field(&b->setup, "n", 1);
    rws_setup_series(&b->setup, "x", 1, MOST);
    rws__params_pack(&b->setup.params);
    b->n = calloc((size_t)B, sizeof *b->n);
    b->x = calloc((size_t)(B * (1 + MOST)), sizeof *b->x);
    for (int d = 0; d < B; d++) {
        b->n[d] = (float)(n - 1);
        b->x[d * (1 + MOST)] = (float)n;
        memcpy(b->x + d * (1 + MOST) + 1, x, (size_t)n * sizeof *x);
    }
    b->engine = rws__engine_new(&b->setup.params, b->setup.fields, b->setup.n_fields, NULL);
    return b;
}

static void bench_free(bench *b)
{
    rws__engine_free(b->engine);
    rws__setup_release(&b->setup);
    free(b->n);
    free(b->x);
    free(b);
}

static rws_status run(bench *b, int B, int K, double resample, bool scalar, rws_error *err)
{
    const rws_pass pass = {.model = &filter,
                           .mode = RWS_WAKE,
                           .n_data = B,
                           .n_particles = K,
                           .resample = resample,
                           .scalar = scalar,
                           .fields = (const float *[]){b->n, b->x},
                           .key = rws__key_for(7, 0, RWS_KEY_WAKE, 0)};
    return rws__engine_forward(b->engine, &pass, err);
}

/* log of the mean weight of datum d */
static double log_mean_of(const rws_scores *s, int d)
{
    double   top = -INFINITY, sum = 0;
    uint32_t n = 0;
    for (uint32_t i = s->start[d]; i < s->start[d + 1]; i++) top = fmax(top, s->log_p[i] - s->log_d[i]);
    for (uint32_t i = s->start[d]; i < s->start[d + 1]; n += s->count[i++])
        sum += top > -INFINITY ? s->count[i] * exp(s->log_p[i] - s->log_d[i] - top) : 0;
    assert_int_equal(n, s->K); /* every particle is in one row */
    return top + log(sum / s->K);
}

/* ---- tests */

static void mean_weight_is_evidence(void **unused)
{
    (void)unused;
    static const float series[2][3] = {{0, 1}, {1, 0, 1}};
    moves = next;
    stops = true;
    for (int T = 2; T <= 3; T++)
        for (int K = 2; K <= 5; K += 3)
            for (int half = 0; half < 2; half++) {
                const int    B = 20000;
                const double exact = enumerate(series[T - 2], T, 0, -1) / MOST;
                bench       *b = bench_new(B, series[T - 2], T);
                double       sum = 0, squares = 0;
                rws_error    err = {""};
                if (run(b, B, K, half ? 0.5 : 1, false, &err) != RWS_OK) fail_msg("%s", err.text);
                for (int d = 0; d < B; d++) {
                    const double z = exp(log_mean_of(rws__engine_scores(b->engine), d));
                    sum += z;
                    squares += z * z;
                }
                const double mean = sum / B, error = sqrt((squares / B - mean * mean) / B);
                if (!(fabs(mean - exact) < 4.9 * error && error < 0.02 * exact))
                    fail_msg("T %d, K %d, %s: %g +- %g, not %g", T, K, half ? "half" : "all", mean, error, exact);
                assert_true(rws__engine_take_stats(b->engine).resampled > 0);
                bench_free(b);
            }
}

/* A long series: the log of the estimate is near, while that without resampling is far below. */
static void long_series(void **unused)
{
    (void)unused;
    rws_random random = rws__random_new(rws__key_for(3, 0, RWS_KEY_TEST, 0), 0);
    float      x[MOST];
    moves = slow;
    stops = false;
    for (int t = 0, s = 0; t < MOST; t++) {
        if (rws_random_uniform(&random) < 0.1) s = !s;
        x[t] = rws_random_uniform(&random) < seen[s];
    }
    const int    B = 10, K = 200;
    const double exact = forward_algorithm(x, MOST) - log(MOST);
    double       mean[3] = {0};
    bench       *b = bench_new(B, x, MOST);
    for (int how = 0; how < 3; how++) {
        rws_error err = {""};
        if (run(b, B, K, (double[]){0, 0.5, 1}[how], false, &err) != RWS_OK) fail_msg("%s", err.text);
        for (int d = 0; d < B; d++) mean[how] += log_mean_of(rws__engine_scores(b->engine), d) / B;
    }
    bench_free(b);
    if (!(mean[0] < exact - 5 && fabs(mean[1] - exact) < 0.5 && fabs(mean[2] - exact) < 1))
        fail_msg("%g %g %g, not %g", mean[0], mean[1], mean[2], exact);
}

static void plain_guide(rws_path *path, const void *state)
{
    (void)path, (void)state;
}

static void plain_model(rws_path *path, const void *state)
{
    (void)state;
    rws_categorical(path, "n", rws_zeros(path, MOST));
    rws_bernoulli(path, "x", rws_constant(path, 0));
}

static void refusals(void **unused)
{
    (void)unused;
    const float x = 1;
    bench      *b = bench_new(1, &x, 1);
    rws_error   err = {""};
    moves = next;
    assert_refused(run(b, 1, 4, 1, true, &err), RWS_BAD_INPUT, &err, "scalar", "cannot be resampled");
    const rws_model none = {.name = "none", .guide = plain_guide, .model = plain_model};
    const rws_pass  pass = {.model = &none,
                            .mode = RWS_WAKE,
                            .n_data = 1,
                            .n_particles = 3,
                            .resample = 1,
                            .fields = (const float *[]){b->n, b->x}};
    assert_refused(rws__engine_forward(b->engine, &pass, &err), RWS_BAD_INPUT, &err, "resampled", "share no loop");
    bench_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mean_weight_is_evidence),
        cmocka_unit_test(long_series),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests_name("resample", tests, NULL, NULL);
}
