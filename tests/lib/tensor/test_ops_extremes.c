/* test_ops_extremes.c - ops at very large numbers and infinities: -inf is data and must not become NaN. What is known of
 * single ops besides: exponentials at hand, pictures at identity, matrices that all rows share. */
#include "all_ops.h"
#include "lib/dist/smoothed.h"

#include "base/vecmath.h"
#include "dist/dist.h"
#include "nn/pictures.h"

#include <string.h>

#define WIDEST 64

/* Runs the op on a row that is repeated, so that vector loops and their remainders are both tested. Returns the first
 * row. */
static void run_extreme(const rws_op *op, rws_op_args args, int n_in, const rws_view *in, int dim, float *out,
                        float *saved)
{
    enum { N = 19 };
    static float    outs[N * WIDEST], saves[N * WIDEST];
    static uint32_t index[N]; /* zeros */
    rws_arena       arena = {0};
    rws_call        c = {
               .op = op, .n = N, .dim = dim, .n_in = n_in, .out = outs, .saved = saves, .args = args, .arena = &arena};
    for (int s = 0; s < n_in; s++) c.in[s] = (rws_view){in[s].data, index, in[s].dim};
    op->forward(&c);
    for (int i = 1; i < N; i++)
        for (int j = 0; j < dim; j++) {
            const double x = (double)outs[j], y = (double)outs[i * dim + j];
            if (!near(y, x, 1e-6 * fabs(x))) fail_msg("%s: row %d is %g and row 0 %g", op->name, i, y, x);
        }
    memcpy(out, outs, (size_t)dim * sizeof(float));
    if (saved) memcpy(saved, saves, (size_t)in[0].dim * sizeof(float));
    rws__arena_free(&arena);
}

static void expect(const char *what, const float *got, const double *want, int n)
{
    for (int i = 0; i < n; i++)
        if (!near((double)got[i], want[i], 1e-5 * (1 + fabs(want[i]))))
            fail_msg("%s: number %d is %g, not %g", what, i, (double)got[i], want[i]);
}

/* Known exponentials do not change results, not even where their products underflow. */
static void exponentials_at_hand_change_nothing(void **state)
{
    (void)state;
    enum { DIM = 13, N = 3 };
    const rws_op *const summing[] = {&rws_op_log_sum_exp, &rws_op_exp_dot};
    rws_arena           arena = {0};
    die                 d = {17};
    float               a[N * DIM], b[N * DIM], exp_a[N * DIM], exp_b[N * DIM], out[2][N], saved[2][N * DIM];
    for (int i = 0; i < N * DIM; i++) {
        a[i] = (float)die_between(&d, -4, 0), b[i] = (float)die_between(&d, -4, 0);
        if (i / DIM == 1) *(i % 2 ? &a[i] : &b[i]) -= 60;  /* products of about e^-60 */
        if (i / DIM == 2) *(i % 2 ? &a[i] : &b[i]) -= 200; /* one factor is 0 everywhere */
        exp_a[i] = rws__exp(a[i]), exp_b[i] = rws__exp(b[i]);
    }
    for (int o = 0; o < 2; o++) {
        for (int k = 0; k < 2; k++) {
            rws_call c = {
                .op = summing[o], .n = N, .dim = 1, .n_in = 2, .out = out[k], .saved = saved[k], .arena = &arena};
            c.in[0] = (rws_view){.data = a, .dim = DIM, .exp = k ? exp_a : NULL};
            c.in[1] = (rws_view){.data = b, .dim = DIM, .exp = k ? exp_b : NULL};
            summing[o]->forward(&c);
        }
        for (int i = 0; i < N; i++)
            assert_true(near((double)out[1][i], (double)out[0][i], 2e-6 * fabs((double)out[0][i])));
        for (int i = 0; i < N * DIM; i++) assert_true(near((double)saved[1][i], (double)saved[0][i], 1e-5));
    }
    rws__arena_free(&arena);
}

static void log_softmax_of_impossible_and_huge(void **state)
{
    (void)state;
    const double inf = (double)INFINITY;
    static const struct {
        float  x[5];
        double log_p[5], p[5];
    } known[] = {
#define I (-(double)INFINITY)
        {{0, -INFINITY, 0, 0, 0},
         {-1.3862943611199, I, -1.3862943611199, -1.3862943611199, -1.3862943611199},
         {0.25, 0, 0.25, 0.25, 0.25}},
        {{-INFINITY, -INFINITY, 7, -INFINITY, -INFINITY}, {I, I, 0, I, I}, {0, 0, 1, 0, 0}},
        {{-INFINITY, 1e30f, -INFINITY, 1e30f, 0},
         {I, -0.693147180559945, I, -0.693147180559945, -1e30},
         {0, 0.5, 0, 0.5, 0}},
        {{1e4f, 0, -1e4f, 1e4f, -INFINITY},
         {-0.693147180559945, -10000.6931471806, -20000.6931471806, -0.693147180559945, I},
         {0.5, 0, 0, 0.5, 0}},
        {{-1e30f, -1e30f, -INFINITY, -INFINITY, -INFINITY},
         {-0.693147180559945, -0.693147180559945, I, I, I},
         {0.5, 0.5, 0, 0, 0}},
#undef I
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        float out[5], p[5];
        run_extreme(&rws_op_log_softmax, (rws_op_args){0}, 1, &(rws_view){.data = known[i].x, .dim = 5}, 5, out, p);
        expect("log_softmax", out, known[i].log_p, 5);
        expect("its probabilities", p, known[i].p, 5);

        float  log_total;
        double top = -inf;
        for (int j = 0; j < 5; j++)
            if (known[i].log_p[j] > -2) top = (double)known[i].x[j] - known[i].log_p[j];
        run_extreme(&rws_op_log_sum_exp, (rws_op_args){0}, 1, &(rws_view){.data = known[i].x, .dim = 5}, 1, &log_total,
                    p);
        expect("log_sum_exp", &log_total, &top, 1);
        expect("its probabilities", p, known[i].p, 5);

        /* the gradient of a possible entry by impossible entries is zero */
        rws_arena arena = {0};
        float     gout[5] = {0}, gin[5] = {0};
        int       chosen = 0;
        while (known[i].log_p[chosen] == -inf) chosen++;
        gout[chosen] = 1;
        rws_call c = {.op = &rws_op_log_softmax,
                      .n = 1,
                      .dim = 5,
                      .n_in = 1,
                      .in = {{known[i].x, NULL, 5}},
                      .gin = {{gin, NULL}},
                      .out = out,
                      .saved = p,
                      .gout = gout,
                      .arena = &arena};
        rws_op_log_softmax.backward(&c);
        for (int j = 0; j < 5; j++) assert_true(near((double)gin[j], (j == chosen) - known[i].p[j], 1e-6));
        rws__arena_free(&arena);
    }
}

/* The derivative of log softmax(x / t) by t where an entry is impossible: that of the other entries. */
static void temperature_of_an_impossible_entry(void **state)
{
    (void)state;
    rws_arena   arena = {0};
    const float x[] = {0.5f, -INFINITY, -1}, t = 0.7f, gout[] = {1, 0, -0.25f};
    float       out[3], p[3], by_t = 0;
    rws_call    c = {.op = &rws_op_log_softmax,
                     .n = 1,
                     .dim = 3,
                     .n_in = 2,
                     .in = {{x, NULL, 3}, {&t, NULL, 1}},
                     .gin = {{0}, {&by_t, NULL}},
                     .out = out,
                     .saved = p,
                     .gout = gout,
                     .arena = &arena};
    rws_op_log_softmax.forward(&c);
    rws_op_log_softmax.backward(&c);
    const double q = 1 / (1 + exp(-1.5 / 0.7)), mean = q * 0.5 - (1 - q);
    assert_true(near((double)by_t, -((0.5 - mean) - 0.25 * (-1 - mean)) / 0.49, 1e-5));
    rws__arena_free(&arena);
}

extern const rws_op rws_op_uniform_density, rws_op_categoricals_density;

/* The bounds of a uniform have no slope at a value outside of them, and an index that is none has no entry to add to. */
static void densities_outside_have_no_slope(void **state)
{
    (void)state;
    rws_arena   arena = {0};
    const float x[] = {0, 1, 3}, low[] = {0.5f, 0.5f, 0.5f}, high[] = {2.5f, 2.5f, 2.5f}, gout[] = {1, 1, 1};
    float       by_low[3] = {0}, by_high[3] = {0};
    rws_call    uniform = {.op = &rws_op_uniform_density,
                           .n = 3,
                           .dim = 1,
                           .n_in = 3,
                           .in = {{x, NULL, 1}, {low, NULL, 1}, {high, NULL, 1}},
                           .gin = {{0}, {by_low, NULL}, {by_high, NULL}},
                           .gout = gout,
                           .arena = &arena};
    rws_op_uniform_density.backward(&uniform);
    for (int i = 0; i < 3; i++) {
        assert_true(by_low[i] == (i == 1 ? 0.5f : 0));
        assert_true(by_high[i] == (i == 1 ? -0.5f : 0));
    }

    const float index[] = {1, 2, NAN}, log_pi[6] = {0};
    float       room[12] = {0}; /* room behind the gradient, where an index beyond the end would add to */
    rws_call    several = {.op = &rws_op_categoricals_density,
                           .n = 3,
                           .dim = 1,
                           .n_in = 2,
                           .args = {.k = 2},
                           .in = {{index, NULL, 1}, {log_pi, NULL, 2}},
                           .gin = {{0}, {room, NULL}},
                           .gout = gout,
                           .arena = &arena};
    rws_op_categoricals_density.backward(&several);
    for (int i = 0; i < 12; i++) assert_true(room[i] == (i == 1 ? 1.0f : 0));
    rws__arena_free(&arena);
}

static void functions_at_the_ends(void **state)
{
    (void)state;
    const double inf = (double)INFINITY;
    const float  x[6] = {-INFINITY, -1e4f, -200, 200, 1e4f, INFINITY};
    const double want[][6] = {
        [RWS_LINEAR] = {-inf, -1e4, -200, 200, 1e4, inf},
        [RWS_TANH] = {-1, -1, -1, 1, 1, 1},
        [RWS_RELU] = {0, 0, 0, 200, 1e4, inf},
        [RWS_ELU] = {-1, -1, -1, 200, 1e4, inf},
        [RWS_SIGMOID] = {0, 0, 0, 1, 1, 1},
        [RWS_SOFTPLUS] = {0, 0, 0, 200, 1e4, inf},
        [RWS_EXP] = {0, 0, 0, inf, inf, inf},
    };
    const double want_slope[][6] = {
        [RWS_LINEAR] = {1, 1, 1, 1, 1, 1},    [RWS_TANH] = {0},    [RWS_RELU] = {0, 0, 0, 1, 1, 1},
        [RWS_ELU] = {0, 0, 0, 1, 1, 1},       [RWS_SIGMOID] = {0}, [RWS_SOFTPLUS] = {0, 0, 0, 1, 1, 1},
        [RWS_EXP] = {0, 0, 0, inf, inf, inf},
    };
    for (int f = RWS_LINEAR; f <= RWS_EXP; f++) {
        float y[6], slopes[6];
        run_extreme(&rws_op_apply, (rws_op_args){.k = f}, 1, &(rws_view){.data = x, .dim = 6}, 6, y, NULL);
        expect("a function", y, want[f], 6);
        rws__function_slope((rws_function)f, 6, y, (float[]){1, 1, 1, 1, 1, 1}, slopes);
        expect("its slope", slopes, want_slope[f], 6);
    }
    const float ends[3] = {0, 1, INFINITY};
    float       logs[3];
    run_extreme(&rws_op_apply, (rws_op_args){.k = RWS_LOG}, 1, &(rws_view){.data = ends, .dim = 3}, 3, logs, NULL);
    expect("the logarithm", logs, (double[]){-inf, 0, inf}, 3);

    const struct {
        rws_function f;
        float        x[3];
        double       y[3];
    } known[] = {
        {RWS_SQRT, {0, 1e-38f, INFINITY}, {0, 1e-19, inf}},
        {RWS_SQUARE, {-INFINITY, 1e30f, 0}, {inf, inf, 0}},
        {RWS_ABS, {-INFINITY, -0.f, 1e30f}, {inf, 0, 1e30}},
        {RWS_LOG_SIGMOID, {-INFINITY, -1e4f, 1e4f}, {-inf, -1e4, 0}},
        {RWS_LOG1P, {-1, 1e-20f, INFINITY}, {-inf, 1e-20, inf}},
        {RWS_EXPM1, {-INFINITY, 1e-20f, 88}, {-1, 1e-20, 1.6516362549940018e38}},
        {RWS_EXPM1, {89, 1e4f, INFINITY}, {inf, inf, inf}},
        {RWS_LOG1MEXP, {1e-20f, 1, 50}, {-46.051701859880914, -0.45867514538708193, -1.9287498479639178e-22}},
        {RWS_LOG1MEXP, {0, INFINITY, 1e-3f}, {-inf, 0, -6.9082552376526}},
        {RWS_LGAMMA, {1e-30f, 1e6f, -0.5f}, {69.07755278982137, 12815504.569147882, 1.2655121234846454}},
        {RWS_DIGAMMA, {1e-3f, 1e6f, -0.5f}, {-1000.5755719318103, 13.815510057964191, 0.03648997397857652}},
    };
    for (int i = 0; i < COUNT(known); i++) {
        float y[3];
        run_extreme(op_named("map"), (rws_op_args){.k = (int)known[i].f}, 1, &(rws_view){.data = known[i].x, .dim = 3},
                    3, y, NULL);
        expect("a map", y, known[i].y, 3);
    }
}

/* A NaN must reach a log-density, where the pass ends with a message: no function makes a number of it. */
static void functions_keep_nan(void **state)
{
    (void)state;
    for (int f = RWS_LINEAR; f <= RWS_LOG1MEXP; f++) {
        float x[9], y[9];
        for (int i = 0; i < 9; i++) x[i] = i % 2 ? NAN : -NAN; /* in vectors of eight, and alone */
        rws_call c = {.n = 1, .dim = 9, .n_in = 1, .args = {.k = f}, .in = {{x, NULL, 9}}, .out = y};
        op_named(f > RWS_LOG ? "map" : "apply")->forward(&c);
        for (int i = 0; i < 9; i++)
            if (!isnan(y[i])) fail_msg("%s of NaN is %g", rws_functions[f].name, (double)y[i]);
    }
}

/* The distribution function takes a drawn bit back to the uniform it was drawn from, wherever that can be told in floats; and
 * the density of a spike is the probability of its point. */
static void smoothed_bits_follow_their_law(void **state)
{
    (void)state;
    static const float sharpness[] = {0.1f, 1.5f, 8, 100}, logits[] = {-30, -8, -1, 0, 0.5f, 6, 30};
    for (int how = RWS_SMOOTH_SPIKE; how <= RWS_SMOOTH_POWER; how++)
        for (int b = how == RWS_SMOOTH_POWER; b < 4; b++)
            for (int i = 0; i < 7; i++)
                for (int step = 1; step < 100; step++) {
                    const float       u = (float)step / 100;
                    const rws_op_args args = {.k = how, .s = sharpness[b]};
                    const rws_view    in[] = {{.data = &logits[i], .dim = 1}, {.data = &u, .dim = 1}};
                    const double      q = 1 / (1 + exp(-(double)logits[i]));
                    float             y, density;
                    run_extreme(op_named("smooth_draw"), args, 2, in, 1, &y, NULL);
                    const bool   spike = how == RWS_SMOOTH_SPIKE && (double)u <= 1 - q;
                    const double back = smoothed_below((rws_smoothing)how, (double)sharpness[b], q, (double)y);
                    assert_int_equal(y == -100, spike);
                    if (!spike && !near(back, (double)u, 1e-4))
                        fail_msg("smoothing %d, b = %g, logit %g: %g comes back as %g", how, (double)sharpness[b],
                                 (double)logits[i], (double)u, back);
                    run_extreme(op_named("smooth_density"), args, 2,
                                (rws_view[]){{.data = &y, .dim = 1}, {.data = &logits[i], .dim = 1}}, 1, &density,
                                NULL);
                    if (spike) assert_true(near((double)density, log(1 - q), 1e-5 * (1 + fabs(log(1 - q)))));
                    assert_true(isfinite(density));
                }
}

/* The mean of zeta given the bit, by the midpoint rule over the uniform that it is drawn from. */
static double mean_zeta(rws_smoothing how, double b, bool bit)
{
    enum { POINTS = 4000 };
    const float       logit = bit ? 30 : -30;
    const rws_op_args args = {.k = (int)how, .s = (float)b};
    double            total = 0;
    for (int i = 0; i < POINTS; i++) {
        const float u = ((float)i + 0.5f) / POINTS;
        float       y;
        run_extreme(op_named("smooth_draw"), args, 2, (rws_view[]){{.data = &logit, .dim = 1}, {.data = &u, .dim = 1}},
                    1, &y, NULL);
        total += 1 / (1 + exp(-(double)y)) / POINTS;
    }
    return total;
}

/* Appendix E: the relaxed choice becomes looser with every category. The weight s_c = zeta_c prod_{j < c} (1 - zeta_j) of the
 * drawn category c has the mean E[zeta|1] E[1 - zeta|0]^c. It falls exponentially with c where a bit of 0 is smoothed, and
 * does not fall with spikes. */
static void sticks_become_looser(void **state)
{
    (void)state;
    const double b = 8, tail = 1 - 1 / b + 1 / expm1(b); /* the mean of b e^(b zeta) / (e^b - 1) */
    const struct {
        rws_smoothing how;
        double        drawn, passed; /* E[zeta|1] and E[1 - zeta|0] */
    } known[] = {{RWS_SMOOTH_SPIKE, tail, 1},
                 {RWS_SMOOTH_EXPONENTIAL, tail, tail},
                 {RWS_SMOOTH_POWER, b / (1 + b), b / (1 + b)}};
    for (int i = 0; i < COUNT(known); i++) {
        assert_true(near(mean_zeta(known[i].how, b, true), known[i].drawn, 1e-3));
        assert_true(near(1 - mean_zeta(known[i].how, b, false), known[i].passed, 1e-3));
    }
}

static void densities_at_the_ends(void **state)
{
    (void)state;
    const double inf = (double)INFINITY;
    float        out[5];

    /* log(1 - p), log p by a logit */
    const struct {
        float  logit;
        double out[2];
    } coins[] = {
        {-INFINITY, {0, -inf}}, {INFINITY, {-inf, 0}}, {1e4f, {-1e4, 0}}, {-1e4f, {0, -1e4}}, {-50, {-1.9e-22, -50}}};
    for (size_t i = 0; i < sizeof coins / sizeof *coins; i++) {
        run_extreme(op_named("log_sigmoids"), (rws_op_args){0}, 1, &(rws_view){.data = &coins[i].logit, .dim = 1}, 2,
                    out, NULL);
        expect("log_sigmoids", out, coins[i].out, 2);
    }

    /* in the mixture an impossible category has probability delta / C, and the certain one has the rest */
    const float log_pi[4] = {-INFINITY, 0, -INFINITY, -INFINITY};
    run_extreme(op_named("defend"), (rws_op_args){.s = 0.25f}, 1, &(rws_view){.data = log_pi, .dim = 4}, 4, out, NULL);
    expect("defend", out, (double[]){log(0.0625), log(0.8125), log(0.0625), log(0.0625)}, 4);

    /* a perturbed impossible category stays impossible */
    const float    v[4] = {0.3f, 0.6f, 0.9f, 0.5f}, z = 1;
    const rws_view conditional[] = {{.data = log_pi, .dim = 4}, {.data = v, .dim = 4}, {.data = &z, .dim = 1}};
    run_extreme(op_named("conditional_gumbel"), (rws_op_args){.s = 1e-6f}, 3, conditional, 4, out, NULL);
    expect("conditional_gumbel", out, (double[]){-inf, -log(-log((double)v[1])), -inf, -inf}, 4);

    /* the clip keeps the uniform's ends finite */
    const float    u[3] = {0, 0.5f, 1}, m[3] = {0, 0, 0};
    const rws_view gumbel[] = {{.data = m, .dim = 3}, {.data = u, .dim = 3}};
    run_extreme(op_named("gumbel_draw"), (rws_op_args){.s = 1e-6f}, 2, gumbel, 3, out, NULL);
    assert_true(near((double)out[0], -log(-log(1e-6)), 1e-4) && out[2] > 12 && out[2] < 15);

    /* outside of the interval, and far out in the tails */
    const float  low = -1, high = 3, points[][1] = {{-1.001f}, {3.001f}, {0}};
    const double inside[] = {-inf, -inf, -log(4)};
    for (int i = 0; i < 3; i++) {
        const rws_view in[] = {{.data = points[i], .dim = 1}, {.data = &low, .dim = 1}, {.data = &high, .dim = 1}};
        run_extreme(op_named("uniform_density"), (rws_op_args){0}, 3, in, 1, out, NULL);
        expect("uniform_density", out, &inside[i], 1);
    }
    const float    zero = 0, one = 1, far = 1e15f, left = -200;
    const rws_view in[] = {{.data = &far, .dim = 1}, {.data = &zero, .dim = 1}, {.data = &one, .dim = 1}};
    run_extreme(op_named("normal_density"), (rws_op_args){0}, 3, in, 1, out, NULL);
    expect("normal_density", out, (double[]){-5e29}, 1);
    const rws_view in_gumbel[] = {{.data = &left, .dim = 1}, {.data = &zero, .dim = 1}};
    run_extreme(op_named("gumbel_density"), (rws_op_args){0}, 2, in_gumbel, 1, out, NULL);
    expect("gumbel_density", out, (double[]){-inf}, 1);

    /* bits that are almost certain */
    const float    bits[4] = {0, 1, 0, 1}, logits[4] = {-1e4f, 1e4f, 1e4f, -1e4f};
    const rws_view vector[] = {{.data = bits, .dim = 4}, {.data = logits, .dim = 4}};
    run_extreme(op_named("bernoulli_density"), (rws_op_args){0}, 2, vector, 1, out, NULL);
    expect("bernoulli_density", out, (double[]){-2e4}, 1);
    run_extreme(op_named("bernoulli_defended"), (rws_op_args){.s = 0.5f}, 2, vector, 1, out, NULL);
    expect("bernoulli_defended", out, (double[]){2 * log(0.75) + 2 * log(0.25)}, 1);
    const float certain[4] = {-INFINITY, INFINITY, -1e4f, 1e4f};
    for (uint32_t i = 0; i < 1000; i++) {
        const rws_counter counter = {i, 0, 0, {{1, 2}}};
        const rws_view    draw[] = {{.data = certain, .dim = 4}, {.data = (const float *)&counter, .dim = RWS_COUNTER}};
        run_extreme(op_named("bernoulli_draw"), (rws_op_args){0}, 2, draw, 4, out, NULL);
        expect("bernoulli_draw", out, (double[]){0, 1, 0, 1}, 4);
    }
    run_extreme(op_named("bernoulli_density"), (rws_op_args){0}, 2,
                (rws_view[]){{.data = bits, .dim = 4}, {.data = certain, .dim = 4}}, 1, out, NULL);
    expect("bernoulli_density", out, (double[]){0}, 1);
}

/* A draw that was refused has NaN for an index, which no op may take for a place in memory. */
static void indices_that_were_refused(void **state)
{
    (void)state;
    const float log_pi[4] = {-1, -2, -3, -4}, index[2] = {NAN, 1};
    float       out;
    rws_arena   arena = {0};
    rws_call    c = {.op = op_named("categoricals_defended"),
                     .n = 1,
                     .dim = 1,
                     .n_in = 2,
                     .args = {.k = 2, .s = 0.5f},
                     .in = {{.data = index, .dim = 2}, {.data = log_pi, .dim = 4}},
                     .out = &out,
                     .arena = &arena};
    c.op->forward(&c);
    assert_true(isnan(out));
    rws__arena_free(&arena);
}

/* A truncated normal with an infinite standard deviation has both bounds at 0 standard deviations: its draw is NaN, and so is
 * the log-density of that, which the engine refuses. */
static void truncated_normal_without_end(void **state)
{
    (void)state;
    rws_arena   arena = {0};
    const float mean = 0.5f, sd = INFINITY, low = -1, high = 2, u = 0.25f;
    float       out = 0;
    rws_call    c = {.op = op_named("truncated_normal_draw"),
                     .n = 1,
                     .dim = 1,
                     .n_in = 5,
                     .in = {{&mean, NULL, 1}, {&sd, NULL, 1}, {&low, NULL, 1}, {&high, NULL, 1}, {&u, NULL, 1}},
                     .out = &out,
                     .arena = &arena};
    c.op->forward(&c);
    assert_true(isnan(out) && c.refused);
    const float x = out;
    rws_call    d = {.op = op_named("truncated_normal_density"),
                     .n = 1,
                     .dim = 1,
                     .n_in = 5,
                     .in = {{&x, NULL, 1}, {&mean, NULL, 1}, {&sd, NULL, 1}, {&low, NULL, 1}, {&high, NULL, 1}},
                     .out = &out,
                     .arena = &arena};
    d.op->forward(&d);
    assert_true(isnan(out));
    rws__arena_free(&arena);
}

/* Reading or placing a whole picture at its own size gives that picture; shifted out of the frame it gives zeros. */
static void pictures_at_identity(void **state)
{
    (void)state;
    enum { ROWS = 5, COLS = 7 };
    float picture[ROWS * COLS], out[ROWS * COLS];
    die   d = {5};
    for (int i = 0; i < ROWS * COLS; i++) picture[i] = (float)die_between(&d, -2, 2);
    const rws_op_args   args = {.k = ROWS, .offset = ROWS};
    const rws_op *const both[] = {op_named("attend"), op_named("place")};
    for (int i = 0; i < 2; i++) {
        const float    where[4] = {1, 1, 0, 0}, beside[4] = {1, 1, i ? 2.4f : -2.4f, 0};
        const rws_view in[] = {{.data = picture, .dim = ROWS * COLS}, {.data = where, .dim = 4}},
                       away[] = {in[0], {.data = beside, .dim = 4}};
        run_extreme(both[i], args, 2, in, ROWS * COLS, out, NULL);
        for (int j = 0; j < ROWS * COLS; j++) assert_true(near((double)out[j], (double)picture[j], 1e-5));
        run_extreme(both[i], args, 2, away, ROWS * COLS, out, NULL);
        for (int j = 0; j < ROWS * COLS; j++) assert_true(out[j] == 0);
    }
}

/* A background beyond the clip, a huge glimpse and a glimpse of almost no size give the bounds of the clip, and no
 * NaN. */
static void pictures_at_the_ends(void **state)
{
    (void)state;
    float front[16], back[16], bits[16], out[16], total;
    for (int i = 0; i < 16; i++) front[i] = 0, back[i] = 200, bits[i] = i % 2;
    const float glimpse[4] = {1e6f, 1e6f, 1e6f, 1e6f}, whole[4] = {1.5f, 1.5f, 0, 0},
                none[4] = {1e-4f, 1e-4f, 0.1f, 0.1f};
    const rws_view    view_bits = {.data = bits, .dim = 16}, view_front = {.data = front, .dim = 16};
    const rws_view    view_back = {.data = back, .dim = 16}, view_glimpse = {.data = glimpse, .dim = 4};
    const rws_view    in[] = {view_bits, view_front, view_back, view_glimpse, {.data = whole, .dim = 4}};
    const rws_view    small[] = {view_bits, view_front, view_back, view_glimpse, {.data = none, .dim = 4}};
    const rws_op_args args = {.k = 2, .offset = 4};
    run_extreme(op_named("picture"), args, 4, in + 1, 16, out, NULL);
    for (int i = 0; i < 16; i++) assert_true(out[i] == 16);
    run_extreme(op_named("picture"), args, 4, small + 1, 16, out, NULL);
    for (int i = 0; i < 16; i++) assert_true(out[i] == -88);
    run_extreme(op_named("picture_bits"), args, 5, in, 1, &total, NULL);
    expect("bits of a picture", &total, (double[]){8 * 16 - 16 * log1p(exp(16))}, 1);
    run_extreme(op_named("picture_bits"), args, 5, small, 1, &total, NULL);
    expect("bits of a background", &total, (double[]){-8 * 88}, 1);
}

/* A line of many points under one glimpse: the product of its factors, each of them 2, is more than a float holds. */
static void pictures_of_many_columns(void **state)
{
    (void)state;
    enum { ROWS = 2, COLS = 1040, N = ROWS * COLS }; /* 130 factors in each of 8 lanes */
    static const float none[N], whole[4] = {1, 1, 0, 0};
    float              out;
    rws_arena          arena = {0};
    const rws_view     canvas = {.data = none, .dim = N};
    rws_call           c = {.op = op_named("picture_bits"),
                            .n = 1,
                            .dim = 1,
                            .n_in = 5,
                            .args = {.k = 2, .offset = ROWS},
                            .in = {canvas, canvas, canvas, {.data = none, .dim = 4}, {.data = whole, .dim = 4}},
                            .out = &out,
                            .arena = &arena};
    c.op->forward(&c);
    assert_true(near((double)out, -N * log(2), 1e-4 * N)); /* a float adds up N numbers, in lanes or one by one */
    rws__arena_free(&arena);
}

/* A window that is nowhere (NaN) is no window that shows nothing. */
static void pictures_that_are_nowhere(void **state)
{
    (void)state;
    enum { N = 16 };
    static const char *const names[] = {"attend", "place", "cover", "picture", "picture_bits"};
    float                    points[N] = {0}, out[N];
    rws_arena                arena = {0};
    for (int i = 0; i < COUNT(names); i++)
        for (int k = 0; k < 4; k++) {
            float where[4] = {1, 1, 0, 0};
            where[k] = NAN;
            const rws_view whole = {.data = points, .dim = N}, place = {.data = where, .dim = 4};
            const rws_view in[][5] = {{whole, place},
                                      {whole, place},
                                      {place},
                                      {whole, whole, whole, place},
                                      {whole, whole, whole, whole, place}};
            rws_call       c = {.op = op_named(names[i]),
                                .n = 1,
                                .dim = i == 4 ? 1 : N,
                                .n_in = (int[]){2, 2, 1, 4, 5}[i],
                                .args = {.k = 4, .offset = 4, .t = 4},
                                .out = out,
                                .arena = &arena};
            memcpy(c.in, in[i], sizeof in[i]);
            c.op->forward(&c);
            for (int j = 0; j < c.dim; j++)
                if (!isnan(out[j])) fail_msg("%s: number %d is %g", names[i], j, (double)out[j]);
        }
    rws__arena_free(&arena);
}

/* A product with one matrix for all rows, as of a parameter, gives what a product with as many equal matrices gives. */
static void one_matrix_for_all_rows(void **state)
{
    (void)state;
    enum { ROWS = 11, M = 5, K = 7 };
    float     a[M * K], x[ROWS * K], g[ROWS * M], out[2][ROWS * M], ga[2][M * K], gx[2][ROWS * K];
    uint32_t  first[ROWS] = {0};
    rws_arena arena = {0};
    die       d = {23};
    for (int i = 0; i < M * K; i++) a[i] = (float)die_between(&d, -1, 1);
    for (int i = 0; i < ROWS * K; i++) x[i] = (float)die_between(&d, -1, 1);
    for (int i = 0; i < ROWS * M; i++) g[i] = (float)die_between(&d, -1, 1);
    for (int same = 0; same < 2; same++) {
        for (int i = 0; i < M * K; i++) ga[same][i] = 1;
        rws_call c = {.op = &rws_op_matmul,
                      .n = ROWS,
                      .dim = M,
                      .n_in = 2,
                      .args = {.k = K},
                      .in = {{a, first, M * K, .same = same}, {x, NULL, K}},
                      .gin = {{ga[same], first, false}, {gx[same], NULL, true}},
                      .out = out[same],
                      .gout = g,
                      .arena = &arena};
        rws_op_matmul.forward(&c);
        rws_op_matmul.backward(&c);
    }
    for (int i = 0; i < ROWS * M; i++) assert_true(near((double)out[1][i], (double)out[0][i], 1e-5));
    for (int i = 0; i < M * K; i++) assert_true(near((double)ga[1][i], (double)ga[0][i], 2e-5));
    for (int i = 0; i < ROWS * K; i++) assert_true(near((double)gx[1][i], (double)gx[0][i], 1e-5));
    rws__arena_free(&arena);
}

/* A matrix that has no factor is refused with a message, also where it holds a NaN, and does not disturb other rows. */
static void matrices_without_a_factor(void **state)
{
    (void)state;
    static const float matrices[][4] = {{4, 9, 2, 5}, {1, 0, 2, 1}, {0, 0, 0, 0}, {1, 0, NAN, 1}, {NAN, 0, 0, 1}};
    const double       root[] = {2, 0, 1, 2};
    rws_arena          arena = {0};
    for (int i = 0; i < COUNT(matrices); i++) {
        float     rows[8], out[8];
        rws_error err;
        memcpy(rows, matrices[i], sizeof matrices[i]);
        memcpy(rows + 4, matrices[0], sizeof matrices[0]);
        rws_call c = {.op = &rws_op_cholesky, .n = 2, .dim = 4, .n_in = 1, .in = {{rows, NULL, 4}}, .out = out};
        c.arena = &arena;
        rws_op_cholesky.forward(&c);
        expect("a factor", out + 4, root, 4);
        assert_true(c.refused == (i > 0));
        assert_int_equal(rws_op_cholesky.explain(&c, 1, NULL, &err), RWS_OK);
        assert_int_equal(rws_op_cholesky.explain(&c, 0, "\"z\"", &err), i ? RWS_BROKEN : RWS_OK);
        if (i)
            assert_non_null(strstr(err.text, "The matrix of rws_cholesky after site \"z\" is not positive definite"));
        for (int j = 0; j < 4; j++) assert_true(isfinite(out[j]));
    }
    rws__arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(log_softmax_of_impossible_and_huge),
        cmocka_unit_test(temperature_of_an_impossible_entry),
        cmocka_unit_test(densities_outside_have_no_slope),
        cmocka_unit_test(functions_at_the_ends),
        cmocka_unit_test(functions_keep_nan),
        cmocka_unit_test(densities_at_the_ends),
        cmocka_unit_test(smoothed_bits_follow_their_law),
        cmocka_unit_test(sticks_become_looser),
        cmocka_unit_test(indices_that_were_refused),
        cmocka_unit_test(truncated_normal_without_end),
        cmocka_unit_test(pictures_at_identity),
        cmocka_unit_test(pictures_at_the_ends),
        cmocka_unit_test(pictures_of_many_columns),
        cmocka_unit_test(pictures_that_are_nowhere),
        cmocka_unit_test(exponentials_at_hand_change_nothing),
        cmocka_unit_test(one_matrix_for_all_rows),
        cmocka_unit_test(matrices_without_a_factor),
    };
    gather_ops();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
