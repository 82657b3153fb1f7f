/* nn_twins_plain.c - layers of vectors (linear, mlp, cells, embedding), each with its twin in double. */
#include "nn_twins.h"

/* ---- twins */

static void linear_twin(const net *n, const numbers *in, double *out)
{
    twin_linear(n, "net.weight", "net.bias", in->x, WIDE, out, 2);
}

static int put_parts(double *v, const numbers *in)
{
    int at = put(v, in->top, WIDE);
    at += put(v + at, in->x, WIDE);
    at += put_hot(v + at, in->word, WORDS);
    at += put(v + at, in->z, WIDE);
    at += put_hot(v + at, in->bit, BITS);
    return at;
}

static void parts_twin(const net *n, const numbers *in, double *out)
{
    double v[3 * WIDE + WORDS + BITS];
    twin_linear(n, "net.weight", "net.bias", v, put_parts(v, in), out, 2);
}

static void many_twin(const net *n, const numbers *in, double *out)
{
    double v[MANY * (3 * WIDE + WORDS + BITS)];
    int    at = 0;
    for (int i = 0; i < MANY; i++) at += put_parts(v + at, in);
    twin_linear(n, "net.weight", "net.bias", v, at, out, 2);
}

static void hots_twin(const net *n, const numbers *in, double *out)
{
    double v[WORDS + BITS];
    int    at = put_hot(v, in->word, WORDS);
    at += put_hot(v + at, in->bit, BITS);
    twin_linear(n, "net.weight", "net.bias", v, at, out, 2);
}

/* One of two numbers in place of each: high if it is above the threshold, else low. */
static int put_signs(double *to, const double *from, double high, double low)
{
    for (int i = 0; i < WIDE; i++) to[i] = from[i] > 0.1 ? high : low;
    return WIDE;
}

static void signs_twin(const net *n, const numbers *in, double *out)
{
    double v[WIDE];
    put_signs(v, in->z, 1, -1);
    twin_linear(n, "net.weight", "net.bias", v, WIDE, out, 2);
}

static void bits_twin(const net *n, const numbers *in, double *out)
{
    double v[3 * WIDE], a[5];
    int    at = put_signs(v, in->x, 1, 0);
    at += put(v + at, in->x, WIDE);
    at += put_signs(v + at, in->z, 0.25, -2);
    twin_linear(n, "net.0.weight", "net.0.bias", v, at, a, 5);
    for (int i = 0; i < 5; i++) a[i] = tanh(a[i]);
    twin_linear(n, "net.2.weight", "net.2.bias", a, 5, out, 2);
}

static void mlp_twin(const net *n, const numbers *in, double *out)
{
    double a[5], b[4];
    twin_linear(n, "net.0.weight", "net.0.bias", in->x, WIDE, a, 5);
    for (int i = 0; i < 5; i++) a[i] = tanh(a[i]);
    twin_linear(n, "net.2.weight", "net.2.bias", a, 5, b, 4);
    for (int i = 0; i < 4; i++) b[i] = tanh(b[i]);
    twin_linear(n, "net.4.weight", "net.4.bias", b, 4, out, 2);
}

static void mlp_parts_twin(const net *n, const numbers *in, double *out)
{
    double v[2 * WIDE + WORDS], a[6];
    int    at = put(v, in->x, WIDE);
    at += put(v + at, in->z, WIDE);
    at += put_hot(v + at, in->word, WORDS);
    twin_linear(n, "net.0.weight", "net.0.bias", v, at, a, 6);
    for (int i = 0; i < 6; i++) a[i] = log(1 + exp(a[i]));
    twin_linear(n, "net.2.weight", "net.2.bias", a, 6, out, 3);
}

/* Both cells make two steps: from the state `top` by (x, hot), then by (z, hot). */
static void rnn_twin(const net *n, const numbers *in, double *out)
{
    double h[WIDE];
    put(h, in->top, WIDE);
    for (int step = 0; step < 2; step++) {
        double v[WIDE + WORDS], a[WIDE], c[WIDE];
        put_hot(v + put(v, step ? in->z : in->x, WIDE), in->word, WORDS);
        twin_linear(n, "net.weight_ih", "net.bias_ih", v, WIDE + WORDS, a, WIDE);
        twin_linear(n, "net.weight_hh", "net.bias_hh", h, WIDE, c, WIDE);
        for (int i = 0; i < WIDE; i++) h[i] = tanh(a[i] + c[i]);
    }
    put(out, h, WIDE);
}

static void gru_twin(const net *n, const numbers *in, double *out)
{
    double h[WIDE];
    put(h, in->top, WIDE);
    for (int step = 0; step < 2; step++) {
        double v[WIDE + WORDS], a[3 * WIDE], c[3 * WIDE];
        put_hot(v + put(v, step ? in->z : in->x, WIDE), in->word, WORDS);
        twin_linear(n, "net.weight_ih", "net.bias_ih", v, WIDE + WORDS, a, 3 * WIDE);
        twin_linear(n, "net.weight_hh", "net.bias_hh", h, WIDE, c, 3 * WIDE);
        for (int i = 0; i < WIDE; i++) {
            const double reset = 1 / (1 + exp(-a[i] - c[i])), update = 1 / (1 + exp(-a[WIDE + i] - c[WIDE + i]));
            h[i] = (1 - update) * tanh(a[2 * WIDE + i] + reset * c[2 * WIDE + i]) + update * h[i];
        }
    }
    put(out, h, WIDE);
}

static void embedding_twin(const net *n, const numbers *in, double *out)
{
    put(out, values(n, "net.weight") + in->word * 5, 5);
}

/* ---- the layers */

void linear_declare(net *n)
{
    n->layer = rws_setup_linear(&n->setup, RWS_PHI, "net", WIDE, 2, RWS_UNIFORM);
}

static rws_var linear_run(rws_path *path, const net *n, const inputs *in)
{
    return rws_linear(path, n->layer, in->x);
}

static rws_var here_run(rws_path *path, const net *n, const inputs *in)
{
    return rws_linear(path, n->layer, in->x);
}

/* rws_clip has no second derivative */
static rws_var clip_run(rws_path *path, const net *n, const inputs *in)
{
    return rws_clip(path, rws_linear(path, n->layer, in->x), -100, 100);
}

static void parts_declare(net *n)
{
    n->layer = rws_setup_linear(&n->setup, RWS_PHI, "net", 3 * WIDE + WORDS + BITS, 2, RWS_TRUNCATED);
}

static rws_var parts_run(rws_path *path, const net *n, const inputs *in)
{
    rws_var parts[] = {in->top, in->x, in->hot, in->z, in->bit};
    return rws_linear_parts(path, n->layer, parts, feed(path, n, parts, 5));
}

static void many_declare(net *n)
{
    n->layer = rws_setup_linear(&n->setup, RWS_PHI, "net", MANY * (3 * WIDE + WORDS + BITS), 2, RWS_TRUNCATED);
}

/* 5 MANY parts: more than the square of the inputs that an op has */
static rws_var many_run(rws_path *path, const net *n, const inputs *in)
{
    rws_var parts[5 * MANY];
    for (int i = 0; i < MANY; i++)
        memcpy(parts + 5 * i, (rws_var[]){in->top, in->x, in->hot, in->z, in->bit}, 5 * sizeof *parts);
    return rws_linear_parts(path, n->layer, parts, feed(path, n, parts, 5 * MANY));
}

static void hots_declare(net *n)
{
    n->layer = rws_setup_linear(&n->setup, RWS_PHI, "net", WORDS + BITS, 2, RWS_UNIFORM);
}

static rws_var hots_run(rws_path *path, const net *n, const inputs *in)
{
    rws_var parts[] = {in->hot, in->bit};
    return rws_linear_parts(path, n->layer, parts, feed(path, n, parts, 2));
}

static rws_var bits_of(rws_path *path, rws_var v)
{
    return rws_greater(path, v, rws_constant(path, 0.1f));
}

static rws_var signs_run(rws_path *path, const net *n, const inputs *in)
{
    return rws_linear(path, n->layer, rws_affine(path, bits_of(path, in->z), 2, -1));
}

static void bits_declare(net *n)
{
    n->layer = rws_setup_mlp(&n->setup, RWS_PHI, "net", RWS_TANH, RWS_UNIFORM, (int[]){3 * WIDE, 5, 2}, 3);
}

static rws_var bits_run(rws_path *path, const net *n, const inputs *in)
{
    rws_var parts[] = {bits_of(path, in->x), in->x, rws_affine(path, bits_of(path, in->z), 2.25f, -2)};
    return rws_mlp_parts(path, n->layer, parts, feed(path, n, parts, 3));
}

static void mlp_declare(net *n)
{
    n->layer = rws_setup_mlp(&n->setup, RWS_PHI, "net", RWS_TANH, RWS_UNIFORM, (int[]){WIDE, 5, 4, 2}, 4);
}

static rws_var mlp_run(rws_path *path, const net *n, const inputs *in)
{
    return rws_mlp(path, n->layer, in->x);
}

static void mlp_parts_declare(net *n)
{
    n->layer = rws_setup_mlp(&n->setup, RWS_PHI, "net", RWS_SOFTPLUS, RWS_UNIFORM, (int[]){2 * WIDE + WORDS, 6, 3}, 3);
}

static rws_var mlp_parts_run(rws_path *path, const net *n, const inputs *in)
{
    rws_var parts[] = {in->x, in->z, in->hot};
    return rws_mlp_parts(path, n->layer, parts, feed(path, n, parts, 3));
}

void rnn_declare(net *n)
{
    n->layer = rws_setup_rnn(&n->setup, RWS_PHI, "net", WIDE + WORDS, WIDE, RWS_UNIFORM);
}

void gru_declare(net *n)
{
    n->layer = rws_setup_gru(&n->setup, RWS_PHI, "net", WIDE + WORDS, WIDE);
}

static rws_var two_steps(rws_path *path, const net *n, const inputs *in,
                         rws_var (*cell)(rws_path *, const rws_layer *, const rws_var *, int, rws_var))
{
    rws_var h = in->top;
    for (int step = 0; step < 2; step++) {
        rws_var   parts[] = {step ? in->z : in->x, in->hot};
        const int n_parts = feed(path, n, parts, 2);
        h = cell(path, n->layer, parts, n_parts, h);
    }
    return h;
}

static rws_var rnn_run(rws_path *path, const net *n, const inputs *in)
{
    return two_steps(path, n, in, rws_rnn);
}

static rws_var gru_run(rws_path *path, const net *n, const inputs *in)
{
    return two_steps(path, n, in, rws_gru);
}

static void embedding_declare(net *n)
{
    n->layer = rws_setup_embedding(&n->setup, RWS_PHI, "net", WORDS, 5);
}

static rws_var embedding_run(rws_path *path, const net *n, const inputs *in)
{
    return rws_embedding(path, n->layer, in->word);
}

const subject plain_subjects[] = {
    {"linear", 2, linear_declare, linear_run, linear_twin, false, false, {{"net.weight", 2, 3}, {"net.bias", 1, 2}}},
    {"linear of parts",
     2,
     parts_declare,
     parts_run,
     parts_twin,
     true,
     false,
     {{"net.weight", 2, 15}, {"net.bias", 1, 2}}},
    {"linear of many parts",
     2,
     many_declare,
     many_run,
     many_twin,
     true,
     false,
     {{"net.weight", 2, 15 * MANY}, {"net.bias", 1, 2}}},
    {"linear of one-hots",
     2,
     hots_declare,
     hots_run,
     hots_twin,
     true,
     false,
     {{"net.weight", 2, 6}, {"net.bias", 1, 2}}},
    {"linear of signs",
     2,
     linear_declare,
     signs_run,
     signs_twin,
     false,
     false,
     {{"net.weight", 2, 3}, {"net.bias", 1, 2}}},
    {"mlp of bits and parts",
     2,
     bits_declare,
     bits_run,
     bits_twin,
     true,
     false,
     {{"net.0.weight", 5, 9}, {"net.0.bias", 1, 5}, {"net.2.weight", 2, 5}, {"net.2.bias", 1, 2}}},
    {"mlp",
     2,
     mlp_declare,
     mlp_run,
     mlp_twin,
     false,
     false,
     {{"net.0.weight", 5, 3},
      {"net.0.bias", 1, 5},
      {"net.2.weight", 4, 5},
      {"net.2.bias", 1, 4},
      {"net.4.weight", 2, 4},
      {"net.4.bias", 1, 2}}},
    {"mlp of parts",
     3,
     mlp_parts_declare,
     mlp_parts_run,
     mlp_parts_twin,
     true,
     false,
     {{"net.0.weight", 6, 10}, {"net.0.bias", 1, 6}, {"net.2.weight", 3, 6}, {"net.2.bias", 1, 3}}},
    {"rnn",
     WIDE,
     rnn_declare,
     rnn_run,
     rnn_twin,
     true,
     false,
     {{"net.weight_ih", 3, 7}, {"net.weight_hh", 3, 3}, {"net.bias_ih", 1, 3}, {"net.bias_hh", 1, 3}}},
    {"gru",
     WIDE,
     gru_declare,
     gru_run,
     gru_twin,
     true,
     false,
     {{"net.weight_ih", 9, 7}, {"net.weight_hh", 9, 3}, {"net.bias_ih", 1, 9}, {"net.bias_hh", 1, 9}}},
    {"linear, with an input that is taken here",
     2,
     linear_declare,
     here_run,
     linear_twin,
     false,
     false,
     {{"net.weight", 2, 3}, {"net.bias", 1, 2}}},
    {"linear, clipped",
     2,
     linear_declare,
     clip_run,
     linear_twin,
     false,
     true,
     {{"net.weight", 2, 3}, {"net.bias", 1, 2}}},
    {"embedding", 5, embedding_declare, embedding_run, embedding_twin, false, false, {{"net.weight", WORDS, 5}}},
};
const int n_plain_subjects = COUNT(plain_subjects);
