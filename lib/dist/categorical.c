/* categorical.c - one of C, by logits.
 *
 * The log-probabilities are a log-softmax, a draw is an index drawn from a row of them, a log-density is an entry of a
 * row. In a Gumbel pass the index is the place of the largest g_i = log pi_i - log(-log u_i); the site then also notes
 * g and a second vector g~, which is drawn from the distribution of g given that index (REBAR, App. C).
 */
#include "base/error.h"
#include "base/vecmath.h"
#include "dist/dist.h"
#include "tensor/rows.h"
#include "tensor/tangent.h"

extern const rws_op rws_op_defend_at, rws_op_conditional_gumbel; /* below */

#define CLIP 1e-6f /* uniforms behind Gumbels stay within [CLIP, 1 - CLIP] */

static void prepare(rws_path *path, const rws_family *f, rws_var *p)
{
    (void)f;
    if (rws__var_op(path, p[0], NULL, NULL) == &rws_op_log_softmax)
        return; /* these logits are log-probabilities already */
    p[0] = rws__record(path, &rws_op_log_softmax, (rws_op_args){0}, p, 1, rws_dim(path, p[0]));
}

static int n_categories(rws_path *path, const rws_family *f, const rws_var *p)
{
    (void)f;
    return rws_dim(path, p[0]);
}

static int one(rws_path *path, const rws_family *f, const rws_var *p)
{
    (void)f, (void)path, (void)p;
    return 1;
}

static rws_var log_density(rws_path *path, const rws_family *f, rws_var value, const rws_var *p)
{
    (void)f;
    const rws_proposal *proposal = rws__path_proposal(path);
    if (proposal->how == RWS_SMOOTHED) return rws__smoothed_density(path, value, p[0]);
    if (proposal->how == RWS_RELAXED) /* the value is the log of a point on the simplex, see draw */
        return proposal->relaxation == RWS_RELAX_SOFT
                   ? rws_log_sum_exp(path, rws_add(path, value, p[0]))
                   : rws_concrete_density(path, value, p[0], rws_constant(path, (float)proposal->temperature));
    return rws__record(path, &rws_op_pick, (rws_op_args){0}, (rws_var[]){p[0], value}, 2, 1);
}

/* Where every row has logits of its own, only the log-probability of the value is computed. Logits with a temperature, the
 * second input of their log-softmax, are computed whole. */
static rws_var score(rws_path *path, const rws_family *f, rws_var value, const rws_var *p)
{
    rws_var in[RWS_OP_INPUTS] = {{0}};
    if (rws__path_proposal(path)->how >= RWS_RELAXED || rws__var_op(path, p[0], in, NULL) != &rws_op_log_softmax ||
        in[1].id || !rws__var_is_here(path, in[0]))
        return log_density(path, f, value, p);
    return rws__record(path, &rws_op_log_softmax_pick, (rws_op_args){0}, (rws_var[]){in[0], value}, 2, 1);
}

static rws_var perturbed(rws_path *path, rws_var log_pi)
{
    const rws_var noise[] = {log_pi, rws_draw_noise(path, RWS_NOISE_UNIFORM, rws_dim(path, log_pi))};
    return rws__record(path, &rws_op_gumbel_draw, (rws_op_args){.s = CLIP}, noise, 2, rws_dim(path, log_pi));
}

static rws_var draw_gumbel(rws_path *path, rws_var log_pi)
{
    const int     C = rws_dim(path, log_pi);
    const rws_var g = perturbed(path, log_pi), z = rws__record(path, &rws_op_argmax, (rws_op_args){0}, &g, 1, 1);
    const rws_var in[] = {log_pi, rws_draw_noise(path, RWS_NOISE_UNIFORM, C), z};
    rws__path_note(path, RWS_NOTE_LOG_PI, log_pi);
    rws__path_note(path, RWS_NOTE_Z, z);
    rws__path_note(path, RWS_NOTE_G, g);
    rws__path_note(path, RWS_NOTE_G_TILDE,
                   rws__record(path, &rws_op_conditional_gumbel, (rws_op_args){.s = CLIP}, in, 3, C));
    return z;
}

static rws_var draw(rws_path *path, const rws_family *f, const rws_var *p, bool stop)
{
    (void)f, (void)stop;
    const rws_proposal *proposal = rws__path_proposal(path);
    if (proposal->how == RWS_GUMBEL) return draw_gumbel(path, p[0]);
    if (proposal->how == RWS_RELAXED) {
        rws__path_note(path, RWS_NOTE_LOG_PI, p[0]);
        return rws_log_softmax(path,
                               rws_div(path, perturbed(path, p[0]), rws_constant(path, (float)proposal->temperature)));
    }
    if (proposal->how == RWS_SMOOTHED) {
        const rws_var y = rws__smoothed_draw(path, p[0]);
        rws__path_note(path, RWS_NOTE_Z, y);
        return y;
    }
    return rws_draw_index(path, p[0]);
}

rws_var rws__draw_defended(rws_path *path, const rws_family *f, const rws_var *p, rws_var *log_mixture)
{
    (void)f;
    const rws_proposal *proposal = rws__path_proposal(path);
    const rws_op_args   args = {.s = (float)proposal->delta};
    const int           C = rws_dim(path, p[0]);
    const rws_var       mixture = rws__record(path, &rws_op_defend, args, p, 1, C);
    rws_var             value = rws_draw_index(path, proposal->wrong_delta ? p[0] : mixture);
    *log_mixture = rws__record(path, &rws_op_pick, (rws_op_args){0}, (rws_var[]){mixture, value}, 2, 1);
    if (proposal
            ->wrong_delta) /* with probability delta a uniform draw replaces the one whose density was taken above */
        value = rws_draw_index(path, rws__record(path, &rws_op_defend_at, args, &value, 1, C));
    return value;
}

const rws_family rws_categorical_family = {
    .name = "categorical",
    .help = "one of C, by logits",
    .support = RWS_SUPPORT_INDEX,
    .n_params = 1,
    .prepare = prepare,
    .length = one,
    .choices = n_categories,
    .draw = draw,
    .log_density = log_density,
    .score = score,
    .draw_defensive = rws__draw_defended,
};

rws_var rws_categorical(rws_path *path, const char *site, rws_var logits)
{
    return rws__site_visit_as(path, site, &rws_categorical_family, &logits, __func__);
}

/* ---- ops */

/* log((1 - delta) p + delta / C) */
static void defend_forward(rws_call *c)
{
    const float *log_p = rws__call_input(c, 0, c->dim);
    const float  keep = 1 - c->args.s, floor = c->args.s / (float)c->dim;
#pragma omp simd
    for (size_t i = 0; i < (size_t)c->n * (size_t)c->dim; i++) c->out[i] = logf(keep * rws__exp(log_p[i]) + floor);
}

/* The same where p is 1 at the index that the input holds, and 0 elsewhere. */
static void defend_at_forward(rws_call *c)
{
    const float *index = rws__call_input(c, 0, 1);
    const float  floor = c->args.s / (float)c->dim, log_floor = logf(floor), log_top = logf(1 - c->args.s + floor);
    for (size_t r = 0; r < (size_t)c->n; r++)
        for (int j = 0; j < c->dim; j++)
            c->out[r * (size_t)c->dim + (size_t)j] = (int)index[r] == j ? log_top : log_floor;
}

/* The exponentials of the rows of input 0, as rws_view.exp. */
static rws_view probabilities(rws_call *c)
{
    if (c->in[0].exp) return c->in[0];
    float *p = RWS_NEW(c->arena, float, (size_t)c->n *(size_t)c->dim);
    rws__function_apply(RWS_EXP, (size_t)c->n * (size_t)c->dim, rws__call_input(c, 0, c->dim), p);
    return (rws_view){.exp = p, .dim = c->dim};
}

/* Inputs log pi, v, z. With E_i = -log v_i: g~_z = -log E_z, and elsewhere g~_i = log pi_i - log(E_i + pi_i E_z), whose
 * derivative by log pi_i is E_i / (E_i + pi_i E_z). */
static void conditional_gumbel_forward(rws_call *c)
{
    const size_t   dim = (size_t)c->dim, n = (size_t)c->n;
    const float   *v = rws__call_input(c, 1, c->dim), *z = rws__call_input(c, 2, 1);
    const float    low = c->args.s, high = 1 - low;
    const rws_view pi = probabilities(c);
    for (size_t first = 0, end; first < n; first = end) {
        end = first + rws__tile(dim) < n ? first + rws__tile(dim) : n;
#pragma omp simd
        for (size_t i = first * dim; i < end * dim; i++) c->saved[i] = -rws__log(rws__clamp(v[i], low, high));
        for (size_t r = first; r < end; r++) {
            const size_t at = r * dim, top = at + (size_t)z[r];
            row_combine(c->saved + at, rws__exp_row(&pi, r), dim, c->saved[top], c->out + at);
            c->out[top] = c->saved[top];
        }
#pragma omp simd
        for (size_t i = first * dim; i < end * dim; i++) {
            c->saved[i] /= c->out[i];
            c->out[i] = -rws__log(c->out[i]);
        }
        for (size_t r = first; r < end; r++) {
            const size_t at = r * dim, top = at + (size_t)z[r];
            const float  g = c->out[top];
            row_add(c->out + at, rws__view_row(&c->in[0], r), dim, c->out + at);
            c->out[top] = g;
            c->saved[top] = 0;
        }
    }
}

static void conditional_gumbel_backward(rws_call *c)
{
    const size_t dim = (size_t)c->dim;
    if (!c->gin[0].data) return;
    const bool fresh = rws__sink_take(&c->gin[0]);
    for (size_t r = 0; r < (size_t)c->n; r++)
        row_give_product(c->saved + r * dim, c->gout + r * dim, dim, 1, fresh, rws__sink_row(&c->gin[0], r, dim));
}

static rws_var conditional_gumbel_tangent(rws_tangent *t)
{
    return rws__tangent_mul(t, rws__tangent_saved(t), t->d[0]);
}

const rws_op rws_op_defend = {.name = "defend", .constant = true, .forward = defend_forward};
const rws_op rws_op_defend_at = {.name = "defend_at", .constant = true, .forward = defend_at_forward};
const rws_op rws_op_conditional_gumbel = {.name = "conditional_gumbel",
                                          .tangent = conditional_gumbel_tangent,
                                          .saves = true,
                                          .forward = conditional_gumbel_forward,
                                          .backward = conditional_gumbel_backward};
