/* lstm.c - the long short-term memory, PyTorch's form:
 *
 *     i = sig(s_i),  f = sig(s_f),  g = tanh(s_g),  o = sig(s_o),  c' = f c + i g,  h' = o tanh(c')
 *
 * with s = a + b, a = W_i x + b_i and b = W_h h + b_h.
 */
#include "base/vecmath.h"
#include "nn/cell.h"
#include "tensor/tangent.h"

extern const rws_op rws_op_lstm; /* below */

const rws_layer_kind rws_lstm_kind = {"lstm", "a recurrent cell with gates and a memory, like nn.LSTMCell"};

rws_layer *rws_setup_lstm(rws_setup *s, rws_group group, const char *name, int n_in, int n_hidden)
{
    return &rws__cell_new(s, group, &rws_lstm_kind, name, "", n_in, n_hidden, 4, RWS_UNIFORM)->layer;
}

/* h' and c', one behind the other */
static rws_var advance(rws_path *path, const rws_layer *l, const rws_var *parts, int n, rws_var h, const rws_var *c)
{
    rws_var v;
    if (rws__replayed_as(path, &v, "rws_lstm")) return v;
    const rws_cell *cell = rws__layer_expect(path, l, &rws_lstm_kind);
    if (!c) rws__path_mistake(path, "layer \"%s\" was given NULL in place of its memory.", l->name);
    if (rws_dim(path, *c) != l->n_out)
        rws__path_mistake(path, "layer \"%s\" has a memory of %d numbers, not %d.", l->name, l->n_out,
                          rws_dim(path, *c));
    const rws_var in[] = {rws__dense(path, cell->from_input, RWS_LINEAR, parts, n),
                          rws__dense(path, cell->from_state, RWS_LINEAR, &h, 1), *c};
    return rws__returns(path, rws__record(path, &rws_op_lstm, (rws_op_args){0}, in, 3, 2 * l->n_out));
}

rws_var rws_lstm(rws_path *path, const rws_layer *l, const rws_var *parts, int n, rws_var h, rws_var *c)
{
    const rws_var both = advance(path, l, parts, n, h, c);
    *c = rws_slice(path, both, l->n_out, l->n_out);
    return rws_slice(path, both, 0, l->n_out);
}

/* Inputs: a (4H), b (4H), c (H). Saves the gates i, f, g, o of each row. */
static void lstm_forward(rws_call *c)
{
    const size_t H = (size_t)c->dim / 2, G = 4 * H;
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const float *a = rws__view_row(&c->in[0], r), *b = rws__view_row(&c->in[1], r),
                    *old = rws__view_row(&c->in[2], r);
        float *restrict s = c->saved + r * G, *restrict h = c->out + r * 2 * H, *restrict memory = h + H;
#pragma omp simd
        for (size_t j = 0; j < 2 * H; j++) s[j] = 1 / (1 + rws__exp(-a[j] - b[j]));
#pragma omp simd
        for (size_t j = 0; j < H; j++) {
            const float g = rws__tanh(a[2 * H + j] + b[2 * H + j]),
                        o = 1 / (1 + rws__exp(-a[3 * H + j] - b[3 * H + j]));
            s[2 * H + j] = g;
            s[3 * H + j] = o;
            memory[j] = s[H + j] * old[j] + s[j] * g;
            h[j] = o * rws__tanh(memory[j]);
        }
    }
}

static void lstm_backward(rws_call *c)
{
    const rws_arena_mark mark = rws__arena_at(c->arena);
    const size_t         H = (size_t)c->dim / 2, G = 4 * H;
    float               *slope = RWS_NEW(c->arena, float, G); /* the gradient of one row by s */
    for (int i = 0; i < 3; i++)
        if (c->gin[i].data) rws__call_clear(c, i);
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const float *s = c->saved + r * G, *memory = c->out + r * 2 * H + H, *g = c->gout + r * 2 * H,
                    *old = rws__view_row(&c->in[2], r);
        float *restrict ds = slope, *restrict gc = rws__call_sink_row(c, 2, r);
#pragma omp simd
        for (size_t j = 0; j < H; j++) {
            const float i = s[j], f = s[H + j], n = s[2 * H + j], o = s[3 * H + j], t = rws__tanh(memory[j]);
            const float dc = g[H + j] + g[j] * o * (1 - t * t);
            ds[j] = dc * n * i * (1 - i);
            ds[H + j] = dc * old[j] * f * (1 - f);
            ds[2 * H + j] = dc * i * (1 - n * n);
            ds[3 * H + j] = g[j] * t * o * (1 - o);
        }
        for (size_t j = 0; j < H && gc; j++) {
            const float t = rws__tanh(memory[j]);
            gc[j] += (g[H + j] + g[j] * s[3 * H + j] * (1 - t * t)) * s[H + j];
        }
        for (int i = 0; i < 2; i++) {
            float *restrict to = rws__call_sink_row(c, i, r);
            for (size_t j = 0; j < G && to; j++) to[j] += ds[j];
        }
    }
    rws__arena_release(c->arena, mark);
}

/* dc' = c df + f dc + g di + i dg,  dh' = tanh(c') do + o tanh'(c') dc' */
static rws_var lstm_tangent(rws_tangent *t)
{
    static const rws_function functions[4] = {RWS_SIGMOID, RWS_SIGMOID, RWS_TANH, RWS_SIGMOID};
    const int                 H = t->dim / 2;
    const rws_var             s = rws__tangent_add(t, t->in[0], t->in[1]), ds = rws__tangent_add(t, t->d[0], t->d[1]);
    rws_var                   y[4], d[4]; /* i, f, g, o */
    for (int k = 0; k < 4; k++) {
        y[k] = rws__tangent_apply(t, functions[k], rws__tangent_slice(t, s, k * H, H));
        d[k] = rws__tangent_slope(t, functions[k], y[k], rws__tangent_slice(t, ds, k * H, H));
    }
    const rws_var by_old = rws__tangent_add(t, rws__tangent_mul(t, d[1], t->in[2]), rws__tangent_mul(t, y[1], t->d[2]));
    const rws_var by_new = rws__tangent_add(t, rws__tangent_mul(t, d[0], y[2]), rws__tangent_mul(t, y[0], d[2]));
    const rws_var dc = rws__tangent_add(t, by_old, by_new);
    const rws_var bent = rws__tangent_apply(t, RWS_TANH, rws__tangent_slice(t, t->y, H, H));
    const rws_var by_memory = rws__tangent_mul(t, y[3], rws__tangent_slope(t, RWS_TANH, bent, dc));
    const rws_var dh = rws__tangent_add(t, rws__tangent_mul(t, d[3], bent), by_memory);
    return rws__tangent_record(t, &rws_op_concat, (rws_op_args){0}, (rws_var[]){dh, dc}, 2, t->dim);
}

const rws_op rws_op_lstm = {
    .name = "lstm", .saves = true, .tangent = lstm_tangent, .forward = lstm_forward, .backward = lstm_backward};
