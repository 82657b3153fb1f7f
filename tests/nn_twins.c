/* nn_twins.c - layers that read series and sets, and layers of pictures, each with its twin in double. */
#include "nn_twins.h"

#include <stdio.h>

/* ---- recurrent cells */

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* One step of a cell whose parameters have a suffix; c is the memory of an lstm. */
static void cell_step(const net *n, rws_recurrent kind, const char *suffix, const double *v, int n_in, double *h,
                      double *c)
{
    const int gates = kind == RWS_RNN ? 1 : kind == RWS_GRU ? 3 : 4, H = WIDE;
    char      names[4][60];
    double    a[4 * WIDE], b[4 * WIDE];
    for (int i = 0; i < 4; i++)
        snprintf(names[i], sizeof names[i], "net.%s_%s%s", i % 2 ? "bias" : "weight", i / 2 ? "hh" : "ih", suffix);
    twin_linear(n, names[0], names[1], v, n_in, a, gates * H);
    twin_linear(n, names[2], names[3], h, H, b, gates * H);
    for (int j = 0; j < H; j++) {
        if (kind == RWS_RNN) h[j] = tanh(a[j] + b[j]);
        if (kind == RWS_GRU) {
            const double r = sigmoid(a[j] + b[j]), z = sigmoid(a[H + j] + b[H + j]);
            h[j] = (1 - z) * tanh(a[2 * H + j] + r * b[2 * H + j]) + z * h[j];
        }
        if (kind == RWS_LSTM) {
            c[j] = sigmoid(a[H + j] + b[H + j]) * c[j] + sigmoid(a[j] + b[j]) * tanh(a[2 * H + j] + b[2 * H + j]);
            h[j] = sigmoid(a[3 * H + j] + b[3 * H + j]) * tanh(c[j]);
        }
    }
}

static void lstm_declare(net *n)
{
    n->layer = rws_setup_lstm(&n->setup, RWS_PHI, "net", WIDE + WORDS, WIDE);
}

/* Two steps: from the state `top` and the memory z by (x, hot), then by (z, hot). */
static rws_var lstm_run(rws_path *path, const net *n, const inputs *in)
{
    rws_var h = in->top, c = in->z;
    for (int step = 0; step < 2; step++) {
        rws_var   parts[] = {step ? in->z : in->x, in->hot};
        const int n_parts = feed(path, n, parts, 2);
        h = rws_lstm(path, n->layer, parts, n_parts, h, &c);
    }
    return rws_concat(path, (rws_var[]){h, c}, 2);
}

static void lstm_twin(const net *n, const numbers *in, double *out)
{
    put(out, in->top, WIDE);
    put(out + WIDE, in->z, WIDE);
    for (int step = 0; step < 2; step++) {
        double v[WIDE + WORDS];
        put_hot(v + put(v, step ? in->z : in->x, WIDE), in->word, WORDS);
        cell_step(n, RWS_LSTM, "", v, WIDE + WORDS, out, out + WIDE);
    }
}

/* ---- a series: x, top, z, x, each of WIDE numbers */

enum { ITEMS = 4 };

static void series(const inputs *in, rws_var *items)
{
    memcpy(items, (rws_var[]){in->x, in->top, in->z, in->x}, ITEMS * sizeof *items);
}

static void series_twin(const numbers *in, double items[ITEMS][WIDE])
{
    put(items[0], in->x, WIDE);
    put(items[1], in->top, WIDE);
    put(items[2], in->z, WIDE);
    put(items[3], in->x, WIDE);
}

/* The summary, and twice the states after item 1, and those after the last item. */
static rws_var bidirectional_run(rws_path *path, const net *n, const inputs *in)
{
    rws_var items[ITEMS], states[ITEMS];
    series(in, items);
    const rws_var all = rws_bidirectional(path, n->layer, items, ITEMS, states),
                  none = rws_bidirectional(path, n->layer, NULL, 0, NULL);
    return rws_sum_many(path, (rws_var[]){all, states[1], states[1], states[ITEMS - 1], none}, 5);
}

static void bidirectional_twin(const net *n, const numbers *in, double *out, rws_recurrent kind)
{
    double items[ITEMS][WIDE];
    series_twin(in, items);
    memset(out, 0, 2 * WIDE * sizeof *out);
    for (int back = 0; back < 2; back++) {
        double h[WIDE] = {0}, c[WIDE] = {0}, *to = out + back * WIDE;
        for (int step = 0; step < ITEMS; step++) {
            const int t = back ? ITEMS - 1 - step : step;
            cell_step(n, kind, back ? "_l0_reverse" : "_l0", items[t], WIDE, h, c);
            for (int j = 0; j < WIDE; j++) to[j] += h[j] * ((step == ITEMS - 1) + 2 * (t == 1) + (t == ITEMS - 1));
        }
    }
}

#define BIDIRECTIONAL(name, KIND)                                                        \
    static void name##_declare(net *n)                                                   \
    {                                                                                    \
        n->layer = rws_setup_bidirectional(&n->setup, RWS_PHI, "net", KIND, WIDE, WIDE); \
    }                                                                                    \
    static void name##_twin(const net *n, const numbers *in, double *out)                \
    {                                                                                    \
        bidirectional_twin(n, in, out, KIND);                                            \
    }

BIDIRECTIONAL(both_rnn, RWS_RNN)
BIDIRECTIONAL(both_gru, RWS_GRU)
BIDIRECTIONAL(both_lstm, RWS_LSTM)

#define BOTH_PARAMS(gates)                                                                                      \
    {                                                                                                           \
        {"net.weight_ih_l0", gates * WIDE, WIDE}, {"net.weight_hh_l0", gates * WIDE, WIDE},                     \
            {"net.bias_ih_l0", 1, gates * WIDE}, {"net.bias_hh_l0", 1, gates * WIDE},                           \
            {"net.weight_ih_l0_reverse", gates * WIDE, WIDE}, {"net.weight_hh_l0_reverse", gates * WIDE, WIDE}, \
            {"net.bias_ih_l0_reverse", 1, gates * WIDE},                                                        \
        {                                                                                                       \
            "net.bias_hh_l0_reverse", 1, gates *WIDE                                                            \
        }                                                                                                       \
    }

/* clang-format off */
const subject more_subjects[] = {
    {"lstm", 2 * WIDE, lstm_declare, lstm_run, lstm_twin, true, false,
     {{"net.weight_ih", 12, 7}, {"net.weight_hh", 12, 3}, {"net.bias_ih", 1, 12}, {"net.bias_hh", 1, 12}}},
    {"bidirectional rnn", 2 * WIDE, both_rnn_declare, bidirectional_run, both_rnn_twin, false, false, BOTH_PARAMS(1)},
    {"bidirectional gru", 2 * WIDE, both_gru_declare, bidirectional_run, both_gru_twin, false, false, BOTH_PARAMS(3)},
    {"bidirectional lstm", 2 * WIDE, both_lstm_declare, bidirectional_run, both_lstm_twin, false, false, BOTH_PARAMS(4)},
};
/* clang-format on */
const int n_more_subjects = sizeof more_subjects / sizeof *more_subjects;
