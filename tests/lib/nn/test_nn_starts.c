/* test_nn_starts.c - the numbers that the parameters of layers start with: their moments, and the seed decides them. */
#include "nn/layer.h"

#include "support.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    const char *param;
    double      limit, variance; /* of the numbers; limit 0: all numbers are zero */
} start;

typedef struct {
    void (*declare)(rws_setup *s, int wide);
    start starts[4];
} starting;

enum { N_IN = 25, N_HIDDEN = 16 };

static void start_uniform(rws_setup *s, int wide)
{
    rws_setup_linear(s, RWS_PHI, "net", N_IN, 200 * wide, RWS_UNIFORM);
}

static void start_truncated(rws_setup *s, int wide)
{
    rws_setup_linear(s, RWS_PHI, "net", N_IN, 200 * wide, RWS_TRUNCATED);
}

static void start_gru(rws_setup *s, int wide)
{
    for (int i = 0; i < wide; i++) {
        char name[20];
        snprintf(name, sizeof name, i ? "net%d" : "net", i);
        rws_setup_gru(s, RWS_PHI, name, 9 * N_IN, N_HIDDEN);
    }
}

static void start_rnn(rws_setup *s, int wide)
{
    (void)wide;
    rws_setup_rnn(s, RWS_PHI, "net", 100 * N_IN, N_HIDDEN, RWS_TRUNCATED);
}

static void start_embedding(rws_setup *s, int wide)
{
    rws_setup_embedding(s, RWS_PHI, "net", 200 * wide, N_IN);
}

static void start_attention(rws_setup *s, int wide)
{
    (void)wide;
    rws_setup_attention(s, RWS_PHI, "net", 96, 4, 96);
}

static void start_narrow(rws_setup *s, int wide)
{
    (void)wide;
    rws_setup_attention(s, RWS_PHI, "net", 100, 4, 50);
}

static void start_conv(rws_setup *s, int wide)
{
    rws_setup_conv2d(s, RWS_PHI, "net",
                     &(rws_conv){.n_in = N_IN, .n_out = 40 * wide, .rows = 8, .cols = 8, .kernel = 2});
}

static void start_transposed(rws_setup *s, int wide)
{
    rws_setup_conv_transpose2d(s, RWS_PHI, "net",
                               &(rws_conv){.n_in = 40 * wide, .n_out = N_IN, .rows = 8, .cols = 8, .kernel = 2});
}

static void start_lstm(rws_setup *s, int wide)
{
    (void)wide;
    rws_setup_bidirectional(s, RWS_PHI, "net", RWS_LSTM, 9 * N_IN, N_HIDDEN);
}

/* N(0, 1) cut at two standard deviations has the variance 1 - 4 phi(2) / (2 Phi(2) - 1). */
#define CUT_VARIANCE 0.773741

static const starting starts[] = {
    {start_uniform, {{"net.weight", 0.2, 0.04 / 3}, {"net.bias", 0.2, 0.04 / 3}}},
    {start_truncated, {{"net.weight", 0.4, 0.04 * CUT_VARIANCE}, {"net.bias", 0, 0}}},
    {start_gru, /* PyTorch's cells scale everything with the state */
     {{"net.weight_ih", 0.25, 0.0625 / 3}, {"net.weight_hh", 0.25, 0.0625 / 3}, {"net.bias_ih", 0.25, 0.0625 / 3}}},
    {start_rnn,
     {{"net.weight_ih", 0.04, 0.0004 * CUT_VARIANCE},
      {"net.weight_hh", 0.5, 0.0625 * CUT_VARIANCE},
      {"net.bias_hh", 0, 0}}},
    {start_embedding, {{"net.weight", 0.2, 0.04 / 3}}},
    {start_attention, /* sqrt(6 / (rows + cols)) */
     {{"net.in_proj_weight", 0.125, 0.015625 / 3},
      {"net.in_proj_bias", 0, 0},
      {"net.out_proj.weight", 0.1020620726, 1. / 288},
      {"net.out_proj.bias", 0, 0}}},
    {start_narrow, {{"net.q_proj_weight", 0.1732050808, 0.01}, {"net.k_proj_weight", 0.2, 0.04 / 3}}},
    {start_conv, {{"net.weight", 0.1, 0.01 / 3}, {"net.bias", 0.1, 0.01 / 3}}},
    {start_transposed, {{"net.weight", 0.1, 0.01 / 3}}},
    {start_lstm, {{"net.weight_ih_l0", 0.25, 0.0625 / 3}, {"net.weight_hh_l0_reverse", 0.25, 0.0625 / 3}}},
};

/* Tests mean 0 and the variance by their standard errors. No number may exceed the limit, and one must come near it. */
static double look_at_starts(void *context, int round, int wide)
{
    const starting *what = context;
    rws_setup       s = {.seed = 100 + (uint64_t)round};
    double          p = 1;
    what->declare(&s, wide);
    for (const start *at = what->starts; at < what->starts + 4 && at->param; at++) {
        rws_param *param = NULL;
        for (int i = 0; i < s.params.n; i++)
            if (strcmp(s.params.list[i]->name, at->param) == 0) param = s.params.list[i];
        assert_non_null(param);
        const size_t n = rws__param_size(param);
        double      *x = malloc(n * sizeof *x), *square = malloc(n * sizeof *x), most = 0;
        for (size_t i = 0; i < n; i++) {
            x[i] = (double)param->value[i];
            square[i] = x[i] * x[i];
            most = worse(most, fabs(x[i]));
        }
        assert_true(most <= at->limit * (1 + 1e-6) && most >= 0.7 * at->limit);
        if (at->limit > 0) p = fmin(p, fmin(mean_tail(x, n, 0, 0), mean_tail(square, n, at->variance, 0)));
        free(x), free(square);
    }
    rws__setup_release(&s);
    return fmin(1, 6 * p);
}

static void starts_have_their_moments(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        stays_likely(starts[i].starts[0].param, look_at_starts, (void *)&starts[i]);
}

static void starts_are_the_seed_s(void **state)
{
    (void)state;
    float first[3][20];
    for (int i = 0; i < 3; i++) {
        rws_setup s = {.seed = i == 2 ? 8 : 7};
        rws_setup_param(&s, RWS_THETA, "a", 2, 5, RWS_UNIFORM);
        rws_setup_param(&s, RWS_THETA, "b", 2, 5, RWS_UNIFORM);
        rws_param *zero = rws_setup_param(&s, RWS_THETA, "zero", 3, 1, RWS_ZERO);
        for (int j = 0; j < 3; j++) assert_true(zero->value[j] == 0);
        memcpy(first[i], s.params.list[0]->value, 10 * sizeof(float));
        memcpy(first[i] + 10, s.params.list[1]->value, 10 * sizeof(float));
        rws__setup_release(&s);
    }
    assert_memory_equal(first[0], first[1], sizeof first[0]);
    for (int i = 0; i < 20; i++) assert_true(first[0][i] != first[2][i]);
    for (int i = 0; i < 10; i++) assert_true(first[0][i] != first[0][10 + i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(starts_have_their_moments),
        cmocka_unit_test(starts_are_the_seed_s),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
