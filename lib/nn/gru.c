/* gru.c - the gated recurrent unit, PyTorch's form:
 *
 *     r = sig(a_r + c_r),  z = sig(a_z + c_z),  n = tanh(a_n + r c_n),  h' = (1 - z) n + z h
 *
 * with a = W_i x + b_i and c = W_h h + b_h.
 */
#include "base/vecmath.h"
#include "nn/cell.h"
#include "tensor/tangent.h"

extern const rws_op rws_op_gru; /* below */

const rws_layer_kind rws_gru_kind = {"gru", "a recurrent cell with gates, like nn.GRUCell"};

rws_layer *rws_setup_gru(rws_setup *s, rws_group group, const char *name, int n_in, int n_hidden)
{
    return &rws__cell_new(s, group, &rws_gru_kind, name, "", n_in, n_hidden, 3, RWS_UNIFORM)->layer;
}

rws_var rws_gru(rws_path *path, const rws_layer *l, const rws_var *parts, int n, rws_var h)
{
    rws_var v;
    if (rws__replayed(path, &v)) return v;
    const rws_cell *cell = rws__layer_expect(path, l, &rws_gru_kind);
    const rws_var   in[] = {rws__dense(path, cell->from_input, RWS_LINEAR, parts, n),
                            rws__dense(path, cell->from_state, RWS_LINEAR, &h, 1), h};
    return rws__returns(path, rws__record(path, &rws_op_gru, (rws_op_args){0}, in, 3, l->n_out));
}

/* Inputs: a (3H), c (3H), h (H). Saves the gates r, z, n of each row. */
static void gru_forward(rws_call *c)
{
    const size_t H = (size_t)c->dim, G = 3 * H;
    const float *a = rws__call_input(c, 0, (int)G), *b = rws__call_input(c, 1, (int)G),
                *h = rws__call_input(c, 2, (int)H);
    for (size_t row = 0; row < (size_t)c->n; row++, a += G, b += G, h += H) {
        float *restrict s = c->saved + row * G, *restrict out = c->out + row * H;
#pragma omp simd
        for (size_t j = 0; j < 2 * H; j++) s[j] = 1 / (1 + rws__exp(-a[j] - b[j]));
#pragma omp simd
        for (size_t j = 0; j < H; j++) {
            const float n = rws__tanh(a[2 * H + j] + s[j] * b[2 * H + j]);
            s[2 * H + j] = n;
            out[j] = n + s[H + j] * (h[j] - n);
        }
    }
}

static void gru_backward(rws_call *c)
{
    const size_t H = (size_t)c->dim, G = 3 * H;
    const float *b = rws__call_input(c, 1, (int)G), *h = rws__call_input(c, 2, (int)H);
    float *ga = rws__call_open(c, 0, (int)G), *gb = rws__call_open(c, 1, (int)G), *gh = rws__call_open(c, 2, (int)H);
    float *slope = RWS_NEW(c->arena, float, G); /* the gradient of one row by a */
    for (size_t row = 0; row < (size_t)c->n; row++) {
        const float *s = c->saved + row * G, *g = c->gout + row * H, *state = h + row * H, *b_n = b + row * G + 2 * H;
        float *restrict da = slope;
#pragma omp simd
        for (size_t j = 0; j < H; j++) {
            const float r = s[j], z = s[H + j], n = s[2 * H + j], dn = g[j] * (1 - z) * (1 - n * n);
            da[j] = dn * b_n[j] * r * (1 - r);
            da[H + j] = g[j] * (state[j] - n) * z * (1 - z);
            da[2 * H + j] = dn;
        }
        if (ga)
            for (size_t j = 0; j < G; j++) ga[row * G + j] += da[j];
        if (gb) {
            for (size_t j = 0; j < 2 * H; j++) gb[row * G + j] += da[j];
            for (size_t j = 0; j < H; j++) gb[row * G + 2 * H + j] += da[2 * H + j] * s[j];
        }
        if (gh)
            for (size_t j = 0; j < H; j++) gh[row * H + j] += g[j] * s[H + j];
    }
    rws__call_close(c, 0, (int)G, ga);
    rws__call_close(c, 1, (int)G, gb);
    rws__call_close(c, 2, (int)H, gh);
}

/* dn = tanh'(n) (da_n + c_n dr + r dc_n),  dh' = dn + (h - n) dz + z (dh - dn) */
static rws_var gru_tangent(rws_tangent *t)
{
    const int     H = t->dim;
    const rws_var s = rws__tangent_add(t, t->in[0], t->in[1]), ds = rws__tangent_add(t, t->d[0], t->d[1]);
    rws_var       y[2], d[2]; /* r, z */
    for (int k = 0; k < 2; k++) {
        y[k] = rws__tangent_apply(t, RWS_SIGMOID, rws__tangent_slice(t, s, k * H, H));
        d[k] = rws__tangent_slope(t, RWS_SIGMOID, y[k], rws__tangent_slice(t, ds, k * H, H));
    }
    const rws_var a = rws__tangent_slice(t, t->in[0], 2 * H, H), c = rws__tangent_slice(t, t->in[1], 2 * H, H);
    const rws_var n = rws__tangent_apply(t, RWS_TANH, rws__tangent_add(t, a, rws__tangent_mul(t, y[0], c)));
    const rws_var by_r = rws__tangent_mul(t, d[0], c),
                  by_c = rws__tangent_mul(t, y[0], rws__tangent_slice(t, t->d[1], 2 * H, H));
    const rws_var inner =
        rws__tangent_add(t, rws__tangent_slice(t, t->d[0], 2 * H, H), rws__tangent_add(t, by_r, by_c));
    const rws_var dn = rws__tangent_slope(t, RWS_TANH, n, inner), minus_dn = rws__tangent_scale(t, dn, -1);
    const rws_var gap = rws__tangent_add(t, t->in[2], rws__tangent_scale(t, n, -1));
    const rws_var by_z = rws__tangent_mul(t, d[1], gap),
                  by_gap = rws__tangent_mul(t, y[1], rws__tangent_add(t, t->d[2], minus_dn));
    return rws__tangent_add(t, dn, rws__tangent_add(t, by_z, by_gap));
}

const rws_op rws_op_gru = {
    .name = "gru", .saves = true, .tangent = gru_tangent, .forward = gru_forward, .backward = gru_backward};
