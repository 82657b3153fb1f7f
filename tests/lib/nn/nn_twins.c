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

/* ---- attention over the series */

/* The mean of values over items by softmax(q . k / sqrt(d)) in each head. */
static void look(const double *q, double (*k)[2 * WIDE], double (*v)[2 * WIDE], int n_items, int dim, int heads,
                 double *out)
{
    const int d = dim / heads;
    for (int h = 0; h < heads; h++) {
        double w[ITEMS], total = 0;
        for (int t = 0; t < n_items; t++) {
            double s = 0;
            for (int j = h * d; j < h * d + d; j++) s += q[j] * k[t][j];
            total += w[t] = exp(s / sqrt(d));
        }
        for (int j = h * d; j < h * d + d; j++) {
            out[j] = 0;
            for (int t = 0; t < n_items; t++) out[j] += w[t] / total * v[t][j];
        }
    }
}

static void attention_declare(net *n)
{
    n->layer = rws_setup_attention(&n->setup, RWS_PHI, "net", WIDE, WIDE, WIDE);
}

/* Three heads of one number over four items; and over none, which gives the bias of the last map. */
static rws_var attention_run(rws_path *path, const net *n, const inputs *in)
{
    rws_var items[ITEMS];
    series(in, items);
    const int     n_parts = feed(path, n, items, ITEMS);
    const rws_var y = rws_attention(path, n->layer, in->z, items, n_parts);
    return rws_add(path, y, rws_attention(path, n->layer, in->z, NULL, 0));
}

static void attention_twin(const net *n, const numbers *in, double *out)
{
    const double *w = values(n, "net.in_proj_weight"), *b = values(n, "net.in_proj_bias"),
                 *last = values(n, "net.out_proj.bias");
    double items[ITEMS][WIDE], q[WIDE], k[ITEMS][2 * WIDE], v[ITEMS][2 * WIDE], mixed[WIDE];
    series_twin(in, items);
    for (int o = 0; o < 3 * WIDE; o++)
        for (int t = 0; t < ITEMS; t++) {
            double sum = b[o];
            for (int j = 0; j < WIDE; j++) sum += w[o * WIDE + j] * (o < WIDE ? in->z : items[t])[j];
            if (o < WIDE) q[o] = sum;
            else if (o < 2 * WIDE) k[t][o - WIDE] = sum;
            else v[t][o - 2 * WIDE] = sum;
        }
    look(q, k, v, ITEMS, WIDE, WIDE, mixed);
    twin_linear(n, "net.out_proj.weight", "net.out_proj.bias", mixed, WIDE, out, WIDE);
    for (int j = 0; j < WIDE; j++) out[j] += last[j];
}

static void wide_declare(net *n)
{
    n->layer = rws_setup_attention(&n->setup, RWS_PHI, "net", 2 * WIDE, 2, WIDE);
}

/* Two heads of three numbers; the query is longer than an item. */
static rws_var wide_run(rws_path *path, const net *n, const inputs *in)
{
    rws_var       items[ITEMS];
    const rws_var query = rws_concat(path, (rws_var[]){in->x, in->z}, 2);
    series(in, items);
    const int n_parts = feed(path, n, items, ITEMS);
    return rws_attention(path, n->layer, query, items, n_parts);
}

static void wide_twin(const net *n, const numbers *in, double *out)
{
    static const char *const names[] = {"net.q_proj_weight", "net.k_proj_weight", "net.v_proj_weight"};
    const double            *b = values(n, "net.in_proj_bias");
    double                   items[ITEMS][WIDE], query[2 * WIDE], y[3][ITEMS][2 * WIDE], mixed[2 * WIDE];
    series_twin(in, items);
    put(query + put(query, in->x, WIDE), in->z, WIDE);
    for (int m = 0; m < 3; m++)
        for (int t = 0; t < (m ? ITEMS : 1); t++)
            for (int o = 0; o < 2 * WIDE; o++) {
                const double *w = values(n, names[m]), *from = m ? items[t] : query;
                const int     n_from = m ? WIDE : 2 * WIDE;
                y[m][t][o] = b[m * 2 * WIDE + o];
                for (int j = 0; j < n_from; j++) y[m][t][o] += w[o * n_from + j] * from[j];
            }
    look(y[0][0], y[1], y[2], ITEMS, 2 * WIDE, 2, mixed);
    twin_linear(n, "net.out_proj.weight", "net.out_proj.bias", mixed, 2 * WIDE, out, 2 * WIDE);
}

static void nothing_declare(net *n)
{
    (void)n;
}

/* Keys are the series and values are two numbers of it: number 1, and the product of numbers 0 and 2. */
static rws_var dot_attention_run(rws_path *path, const net *n, const inputs *in)
{
    rws_var keys[ITEMS], pairs[ITEMS];
    series(in, keys);
    for (int t = 0; t < ITEMS; t++) {
        const rws_var product = rws_mul(path, rws_slice(path, keys[t], 0, 1), rws_slice(path, keys[t], 2, 1));
        pairs[t] = rws_concat(path, (rws_var[]){rws_slice(path, keys[t], 1, 1), product}, 2);
    }
    if (n->joined) keys[0] = rws_concat(path, keys, ITEMS), pairs[0] = rws_concat(path, pairs, ITEMS);
    return rws_dot_attention(path, in->z, keys, pairs, n->joined ? 1 : ITEMS);
}

static void dot_attention_twin(const net *n, const numbers *in, double *out)
{
    (void)n;
    double items[ITEMS][WIDE], k[ITEMS][2 * WIDE], v[ITEMS][2 * WIDE] = {{0}}, mixed[2 * WIDE];
    series_twin(in, items);
    for (int t = 0; t < ITEMS; t++) {
        put(k[t], items[t], WIDE);
        v[t][0] = items[t][1];
        v[t][1] = items[t][0] * items[t][2];
    }
    look(in->z, k, v, ITEMS, WIDE, 1, mixed);
    put(out, mixed, 2);
}

/* ---- sets */

static rws_var set_run(rws_path *path, const net *n, const inputs *in)
{
    rws_var items[ITEMS];
    series(in, items);
    const int     n_parts = feed(path, n, items, ITEMS);
    const rws_var none = rws_set_encoder(path, n->layer, NULL, 0);
    return rws_add(path, rws_set_encoder(path, n->layer, items, n_parts), none);
}

static void set_twin(const net *n, const numbers *in, double *out, rws_pooling how)
{
    double items[ITEMS][WIDE], a[5], y[2];
    series_twin(in, items);
    for (int t = 0; t < ITEMS; t++) {
        twin_linear(n, "net.0.weight", "net.0.bias", items[t], WIDE, a, 5);
        for (int i = 0; i < 5; i++) a[i] = tanh(a[i]);
        twin_linear(n, "net.2.weight", "net.2.bias", a, 5, y, 2);
        for (int j = 0; j < 2; j++)
            out[j] = t == 0           ? y[j] / (how == RWS_MEAN ? ITEMS : 1)
                     : how == RWS_MAX ? fmax(out[j], y[j])
                                      : out[j] + y[j] / (how == RWS_MEAN ? ITEMS : 1);
    }
}

#define SET(name, HOW)                                                                                      \
    static void name##_declare(net *n)                                                                      \
    {                                                                                                       \
        n->layer = rws_setup_set_encoder(&n->setup, RWS_PHI, "net", RWS_TANH, HOW, (int[]){WIDE, 5, 2}, 3); \
    }                                                                                                       \
    static void name##_twin(const net *n, const numbers *in, double *out)                                   \
    {                                                                                                       \
        set_twin(n, in, out, HOW);                                                                          \
    }

SET(set_sum, RWS_SUM)
SET(set_mean, RWS_MEAN)
SET(set_max, RWS_MAX)

#define SET_PARAMS                                                            \
    {                                                                         \
        {"net.0.weight", 5, 3}, {"net.0.bias", 1, 5}, {"net.2.weight", 2, 5}, \
        {                                                                     \
            "net.2.bias", 1, 2                                                \
        }                                                                     \
    }

/* ---- pictures */

/* The series is 12 numbers: two channels of 2 x 3. Windows of 2 x 2 leave the last column out. */
static rws_var pool_run(rws_path *path, const net *n, const inputs *in)
{
    (void)n;
    rws_var items[ITEMS], pooled[3];
    series(in, items);
    const rws_var pictures = rws_concat(path, items, ITEMS);
    for (int how = 0; how < 3; how++) pooled[how] = rws_pool2d(path, pictures, 2, 2, 2, (rws_pooling)how);
    return rws_concat(path, pooled, 3);
}

static void pool_twin(const net *n, const numbers *in, double *out)
{
    (void)n;
    double items[ITEMS][WIDE];
    series_twin(in, items);
    for (int c = 0; c < 2; c++) {
        const double *p = items[2 * c];
        out[c] = p[0] + p[1] + p[3] + p[4];
        out[2 + c] = out[c] / 4;
        out[4 + c] = fmax(fmax(p[0], p[1]), fmax(p[3], p[4]));
    }
}

/* ---- layer norm and residual blocks */

static void twin_norm(const net *n, const char *name, const double *x, int dim, double *out)
{
    char   full[2][60];
    double mean = 0, square = 0;
    snprintf(full[0], sizeof full[0], "%s.weight", name);
    snprintf(full[1], sizeof full[1], "%s.bias", name);
    const double *scale = values(n, full[0]), *shift = values(n, full[1]);
    for (int i = 0; i < dim; i++) mean += x[i] / dim;
    for (int i = 0; i < dim; i++) square += pow(x[i] - mean, 2) / dim;
    for (int i = 0; i < dim; i++) out[i] = (x[i] - mean) / sqrt(square + (double)1e-5f) * scale[i] + shift[i];
}

static void norm_declare(net *n)
{
    n->layer = rws_setup_layer_norm(&n->setup, RWS_PHI, "net", 2 * WIDE);
}

static rws_var norm_run(rws_path *path, const net *n, const inputs *in)
{
    return rws_layer_norm(path, n->layer, rws_concat(path, (rws_var[]){in->x, in->z}, 2));
}

static void norm_twin(const net *n, const numbers *in, double *out)
{
    double v[2 * WIDE];
    put(v + put(v, in->x, WIDE), in->z, WIDE);
    twin_norm(n, "net", v, 2 * WIDE, out);
}

static void residual_declare(net *n)
{
    n->layer = rws_setup_residual_mlp(&n->setup, RWS_PHI, "net", RWS_TANH, 2 * WIDE, 5, 2, 2);
}

static rws_var residual_run(rws_path *path, const net *n, const inputs *in)
{
    rws_var parts[] = {in->x, in->z};
    return rws_residual_mlp(path, n->layer, parts, feed(path, n, parts, 2));
}

static void residual_twin(const net *n, const numbers *in, double *out)
{
    double v[2 * WIDE], h[5];
    put(v + put(v, in->x, WIDE), in->z, WIDE);
    twin_linear(n, "net.in.weight", "net.in.bias", v, 2 * WIDE, h, 5);
    for (int b = 0; b < 2; b++) {
        double normed[5], a[5], more[5];
        twin_norm(n, b ? "net.blocks.1.0" : "net.blocks.0.0", h, 5, normed);
        twin_linear(n, b ? "net.blocks.1.1.weight" : "net.blocks.0.1.weight",
                    b ? "net.blocks.1.1.bias" : "net.blocks.0.1.bias", normed, 5, a, 5);
        for (int i = 0; i < 5; i++) a[i] = tanh(a[i]);
        twin_linear(n, b ? "net.blocks.1.3.weight" : "net.blocks.0.3.weight",
                    b ? "net.blocks.1.3.bias" : "net.blocks.0.3.bias", a, 5, more, 5);
        for (int i = 0; i < 5; i++) h[i] += more[i];
    }
    twin_linear(n, "net.out.weight", "net.out.bias", h, 5, out, 2);
}

/* ---- convolutions of the series as two channels of 2 x 3 */

static void conv_declare(net *n)
{
    const rws_conv how = {.n_in = 2, .n_out = 3, .rows = 2, .cols = 3, .kernel = 2, .padding = 1, .stride = 2};
    n->layer = rws_setup_conv2d(&n->setup, RWS_PHI, "net", &how);
}

static rws_var conv_run(rws_path *path, const net *n, const inputs *in)
{
    rws_var items[ITEMS];
    series(in, items);
    return rws_conv2d(path, n->layer, rws_concat(path, items, ITEMS));
}

static void conv_twin(const net *n, const numbers *in, double *out)
{
    const double *w = values(n, "net.weight"), *b = values(n, "net.bias");
    double        items[ITEMS][WIDE];
    series_twin(in, items);
    for (int i = 0; i < 12; i++) { /* 3 channels of 2 x 2 */
        out[i] = b[i / 4];
        for (int q = 0; q < 8; q++) { /* (channel, row, column) of a kernel */
            const int y = 2 * (i % 4 / 2) + q % 4 / 2 - 1, x = 2 * (i % 2) + q % 2 - 1;
            if (y >= 0 && y < 2 && x >= 0 && x < 3) out[i] += w[i / 4 * 8 + q] * items[q / 4 * 2 + y][x];
        }
    }
}

/* Three channels of 2 x 1 become one channel of 4 x 2. */
static void transposed_declare(net *n)
{
    const rws_conv how = {
        .n_in = 3, .n_out = 1, .rows = 2, .cols = 1, .kernel = 3, .padding = 1, .stride = 2, .output_padding = 1};
    n->layer = rws_setup_conv_transpose2d(&n->setup, RWS_PHI, "net", &how);
}

static rws_var transposed_run(rws_path *path, const net *n, const inputs *in)
{
    return rws_conv_transpose2d(path, n->layer, rws_concat(path, (rws_var[]){in->x, in->z}, 2));
}

static void transposed_twin(const net *n, const numbers *in, double *out)
{
    const double *w = values(n, "net.weight"), *b = values(n, "net.bias");
    double        v[2 * WIDE]; /* 3 channels of 2 x 1 */
    put(v + put(v, in->x, WIDE), in->z, WIDE);
    for (int i = 0; i < 8; i++) out[i] = b[0];
    for (int c = 0; c < 3; c++)
        for (int i = 0; i < 2; i++)
            for (int q = 0; q < 9; q++) {
                const int y = 2 * i + q / 3 - 1, x = q % 3 - 1;
                if (y >= 0 && y < 4 && x >= 0 && x < 2) out[y * 2 + x] += w[c * 9 + q] * v[c * 2 + i];
            }
}

/* clang-format off */
const subject more_subjects[] = {
    {"lstm", 2 * WIDE, lstm_declare, lstm_run, lstm_twin, true, false,
     {{"net.weight_ih", 12, 7}, {"net.weight_hh", 12, 3}, {"net.bias_ih", 1, 12}, {"net.bias_hh", 1, 12}}},
    {"bidirectional rnn", 2 * WIDE, both_rnn_declare, bidirectional_run, both_rnn_twin, false, false, BOTH_PARAMS(1)},
    {"bidirectional gru", 2 * WIDE, both_gru_declare, bidirectional_run, both_gru_twin, false, false, BOTH_PARAMS(3)},
    {"bidirectional lstm", 2 * WIDE, both_lstm_declare, bidirectional_run, both_lstm_twin, false, false, BOTH_PARAMS(4)},
    {"attention", WIDE, attention_declare, attention_run, attention_twin, true, false,
     {{"net.in_proj_weight", 9, 3}, {"net.in_proj_bias", 1, 9}, {"net.out_proj.weight", 3, 3}, {"net.out_proj.bias", 1, 3}}},
    {"attention of a wider query", 2 * WIDE, wide_declare, wide_run, wide_twin, true, false,
     {{"net.q_proj_weight", 6, 6}, {"net.k_proj_weight", 6, 3}, {"net.v_proj_weight", 6, 3}, {"net.in_proj_bias", 1, 18},
      {"net.out_proj.weight", 6, 6}, {"net.out_proj.bias", 1, 6}}},
    {"dot_attention", 2, nothing_declare, dot_attention_run, dot_attention_twin, true, false, {{0}}},
    {"set_encoder by sum", 2, set_sum_declare, set_run, set_sum_twin, true, false, SET_PARAMS},
    {"set_encoder by mean", 2, set_mean_declare, set_run, set_mean_twin, true, false, SET_PARAMS},
    {"set_encoder by maximum", 2, set_max_declare, set_run, set_max_twin, true, false, SET_PARAMS},
    {"layer_norm", 2 * WIDE, norm_declare, norm_run, norm_twin, false, false, {{"net.weight", 1, 6}, {"net.bias", 1, 6}}},
    {"residual_mlp", 2, residual_declare, residual_run, residual_twin, true, false,
     {{"net.in.weight", 5, 6}, {"net.in.bias", 1, 5},
      {"net.blocks.0.0.weight", 1, 5}, {"net.blocks.0.0.bias", 1, 5}, {"net.blocks.0.1.weight", 5, 5},
      {"net.blocks.0.1.bias", 1, 5}, {"net.blocks.0.3.weight", 5, 5}, {"net.blocks.0.3.bias", 1, 5},
      {"net.blocks.1.0.weight", 1, 5}, {"net.blocks.1.0.bias", 1, 5}, {"net.blocks.1.1.weight", 5, 5},
      {"net.blocks.1.1.bias", 1, 5}, {"net.blocks.1.3.weight", 5, 5}, {"net.blocks.1.3.bias", 1, 5},
      {"net.out.weight", 2, 5}, {"net.out.bias", 1, 2}}},
    {"conv2d", 12, conv_declare, conv_run, conv_twin, false, false, {{"net.weight", 3, 8}, {"net.bias", 1, 3}}},
    {"conv_transpose2d", 8, transposed_declare, transposed_run, transposed_twin, false, false,
     {{"net.weight", 3, 9}, {"net.bias", 1, 1}}},
    {"pool2d", 6, nothing_declare, pool_run, pool_twin, false, false, {{0}}},
};
/* clang-format on */
const int n_more_subjects = sizeof more_subjects / sizeof *more_subjects;
