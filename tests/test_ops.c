/* test_ops.c - every op of every room against a plain twin in double: values, and gradients by central differences.
 *
 * The twin computes one row. A trial makes random inputs of one shape, lets the op compute n rows of them through a
 * call like the engine's, and compares; with and without row indices, so that several rows may read (and give their
 * gradient to) one row of an input. An op that is in the table of its room but not in the table of twins fails.
 */
#include "smoothed.h"
#include "twins.h"

#include "base/vecmath.h"
#include "dist/dist.h"
#include "engine/engine.h"
#include "nn/layer.h"
#include "tensor/gemm.h"
#include "tensor/products.h"
#include "vision/ops.h"

#include <stdio.h>
#include <string.h>

#define WIDEST 64
#define TOLERANCE 2e-5 /* times the sum of the magnitudes that were added up */

/* ---- the ops of all rooms */

#define MOST_OPS 200

static const rws_op *ops[MOST_OPS];
static int           n_ops;

static void gather_ops(void)
{
    const rws_op *const *const rooms[] = {rws_tensor_ops, rws_dist_ops, rws_nn_ops, rws_vision_ops};
    for (int r = 0; r < COUNT(rooms); r++)
        for (int i = 0; rooms[r][i] && n_ops < MOST_OPS; i++) ops[n_ops++] = rooms[r][i];
}

static const rws_op *op_named(const char *name)
{
    for (int i = 0; i < n_ops; i++)
        if (strcmp(ops[i]->name, name) == 0) return ops[i];
    fail_msg("no room has an op %s", name);
    return NULL;
}

/* ---- a trial */

typedef struct {
    const rws_op  *op;
    const subject *subject;
    const shape   *shape;
    int            k, n, n_in, indexed; /* indexed: bit s for an input read through row indices */
    int            n_base[RWS_OP_INPUTS];
    double        *in[RWS_OP_INPUTS]; /* the numbers, as the twin reads them */
    uint32_t      *index[RWS_OP_INPUTS];
    float         *sink[RWS_OP_INPUTS], *sink_before[RWS_OP_INPUTS], *zeros[RWS_OP_INPUTS];
    rws_params     params;
    rws_param     *w, *b;
    double        *weights; /* the flat parameter vector, as the twin reads it */
    float         *gradient, *gradient_before, *gout;
    rws_call       call;
    rws_arena      arena;
    rws_products   products;
    void          *taken[128];
    int            n_taken;
} trial;

static const char *describe(const trial *t, char text[static 160])
{
    snprintf(text, 160, "%s, shape %d, k %d, %d rows, indexed %x", t->op->name, (int)(t->shape - t->subject->shapes),
             t->k, t->n, (unsigned)t->indexed);
    return text;
}

/* Exact sizes from malloc, so that a sanitizer notices an access beyond the end. */
static void *take(trial *t, size_t n, size_t item)
{
    assert_in_range(t->n_taken, 0, 127);
    void *p = malloc(n * item);
    assert_non_null(p);
    return t->taken[t->n_taken++] = p;
}

static float *take_floats(trial *t, die *d, size_t n)
{
    float *p = take(t, n, sizeof *p);
    for (size_t i = 0; i < n; i++) p[i] = d ? (float)die_between(d, -1, 1) : NAN;
    return p;
}

static double domain(int f, die *d)
{
    const double x = die_between(d, 0.2, 2) * (die_below(d, 2) ? 1 : -1); /* away from the kinks at 0 */
    return f == RWS_LOG || f == RWS_SQRT || f == RWS_LGAMMA || f == RWS_DIGAMMA ? fabs(x)
           : f == RWS_LOG1P                                                     ? x / 2.5
                                                                                : x;
}

static double make(const trial *t, kind kind, die *d)
{
    switch (kind) {
    case SMALL: return die_between(d, -0.5, 0.5);
    case INNER: return die_between(d, -0.9, 0.25);
    case LOW: return die_between(d, -2, -1);
    case SHARES:
    case POSITIVE: return die_between(d, 0.3, 2);
    case BIT:
    case FLAG: return die_below(d, 2);
    case LOG_PROB: return die_between(d, -4, -0.1);
    case FOR_X: return domain(t->k, d);
    case FOR_Y: return t->k == RWS_RELU ? die_between(d, 0.2, 2) : function(t->k, domain(t->k, d));
    case NOISE: return die_between(d, 0.05, 0.95);
    case COUNTER: return (double)float_of((uint32_t)die_below(d, 1 << 20));
    case INDEX: return die_below(d, t->shape->n_index);
    case ZERO: return 0;
    case ONES: return 1 + die_below(d, 3);
    case INSIDE: return die_between(d, 0.05, 0.95);
    case STEEP: return die_between(d, -30, 30);
    default: return die_between(d, -2, 2);
    }
}

/* Whether points along an axis stay away from the lines of the source's grid, where the slope jumps. */
static bool smooth(const trial *t, int n, int n_source, double scale, double shift)
{
    for (int j = 0; j < n; j++) {
        const double x = (strcmp(t->op->name, "attend") == 0 ? seen : written)(j, n, n_source, scale, shift);
        if (fabs(x - rint(x)) < 1e-3) return false;
    }
    return true;
}

static void make_where(const trial *t, float *w, die *d)
{
    const shape *s = t->shape;
    const int    size = strcmp(t->op->name, "picture_bits") == 0 ? s->in[0].dim : s->dim;
    do
        for (int i = 0; i < 4; i++) w[i] = (float)(i < 2 ? die_between(d, 0.2, 1.2) : die_between(d, -0.9, 0.9));
    while (!smooth(t, size / s->offset, s->source_cols, (double)w[0], (double)w[2]) ||
           !smooth(t, s->offset, s->k, (double)w[1], (double)w[3]));
}

/* A lower triangular matrix with a diagonal above 0, or the lower triangle of its product with its transpose. */
static void make_matrix(kind kind, int size, float *a, die *d)
{
    const int n = (int)lrint(sqrt((double)size));
    double    l[WIDEST];
    for (int i = 0; i < size; i++)
        l[i] = i / n > i % n ? die_between(d, -0.5, 0.5) : i / n == i % n ? die_between(d, 0.7, 1.5) : 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int k = 0; k < n && kind == COVARIANCE; k++) sum += l[i * n + k] * l[j * n + k];
            a[i * n + j] = (float)(j > i ? die_between(d, -2, 2) : kind == COVARIANCE ? sum : l[i * n + j]);
        }
}

static bool has_gradient(kind kind)
{
    return kind != ABSENT && kind != FLAG && kind != NOISE && kind != COUNTER && kind != INDEX && kind != SOFTMAX &&
           kind != ONES && kind != ZERO;
}

static bool kinked(int f)
{
    return f == RWS_RELU || f == RWS_ELU || f == RWS_LOG;
}

/* The weight has another parameter before it in the flat vector. The bias keeps the argument of a kinked function away
 * from 0. */
static void make_weights(trial *t, die *d)
{
    const shape *s = t->shape;
    rws_params_add(&t->params, RWS_THETA, "other", 3, 7);
    t->w = rws_params_add(&t->params, RWS_PHI, "w", s->rows, s->cols);
    const bool either =
        strcmp(t->op->name, "dense") == 0 || strcmp(t->op->name, "embed") == 0; /* with and without a transposed copy */
    const bool each = strcmp(t->op->name, "project") == 0;
    t->w->transposed =
        (strcmp(t->op->name, "dense") == 0 || each || s->k == 0) && !((either || each) && t->indexed == 0x555);
    t->b = s->bias ? rws_params_add(&t->params, RWS_PHI, "b", 1, s->n_bias ? s->n_bias : s->rows) : NULL;
    for (int p = 0; p < t->params.n; p++)
        for (size_t i = 0; i < rws_param_size(t->params.list[p]); i++)
            t->params.list[p]->value[i] = (float)die_between(d, -0.5, 0.5);
    for (int j = 0; t->b && !s->n_bias && kinked(t->k) && j < s->rows; j++)
        t->b->value[j] = t->k != RWS_LOG && j % 2 ? -2.5f : 2.5f;
    rws_params_pack(&t->params);
    t->weights = take(t, t->params.size, sizeof(double));
    for (size_t i = 0; i < t->params.size; i++) t->weights[i] = (double)t->params.value[i];
    t->gradient_before = take_floats(t, d, t->params.size);
    t->gradient = take_floats(t, NULL, t->params.size);
    t->call.args.w = t->w;
    t->call.args.b = t->b;
    t->call.args.offset = s->offset;
    t->call.w = t->params.value + t->w->offset;
    t->call.wt = t->w->transposed ? t->params.transposed + t->w->transposed_at : NULL;
    t->call.b = t->b ? t->params.value + t->b->offset : NULL;
}

static void make_input(trial *t, int s, die *d)
{
    const int dim = t->shape->in[s].dim;
    if (t->shape->in[s].kind == ABSENT) return;
    /* the data have a third as many rows as the call: most rows are read several times, some never */
    t->n_base[s] = t->indexed >> s & 1 ? (t->n + 5) / 3 : t->n;
    const size_t size = (size_t)t->n_base[s] * (size_t)dim;
    float       *data = take_floats(t, d, size);
    t->in[s] = take(t, size, sizeof(double));
    for (size_t i = 0; i < size; i++) {
        const kind kind = t->shape->in[s].kind;
        if (kind == COVARIANCE || kind == FACTOR) {
            if (i % (size_t)dim == 0) make_matrix(kind, dim, data + i, d);
        } else if (kind != WHERE) data[i] = (float)make(t, kind, d);
        else if (i % 4 == 0) make_where(t, data + i, d);
    }
    for (size_t i = 0; t->shape->in[s].kind == SHARES && i < size; i += (size_t)dim) {
        float total = 0;
        for (int j = 0; j < dim; j++) total += data[i + (size_t)j];
        for (int j = 0; j < dim; j++) data[i + (size_t)j] /= total;
    }
    for (size_t i = 0; i < size; i++) t->in[s][i] = (double)data[i];
    if (t->indexed >> s & 1) {
        t->index[s] = take(t, (size_t)t->n, sizeof(uint32_t));
        for (int i = 0; i < t->n; i++) t->index[s][i] = (uint32_t)die_below(d, t->n_base[s]);
    }
    t->call.in[s] = (rws_view){data, t->index[s], dim};
    t->sink_before[s] = take_floats(t, d, size);
    t->sink[s] = take_floats(t, NULL, size);
    t->zeros[s] = take_floats(t, NULL, size);
    memset(t->zeros[s], 0, size * sizeof(float));
}

static int base_row(const trial *t, int s, int i)
{
    return t->index[s] ? (int)t->index[s][i] : i;
}

static void make_softmax(trial *t)
{
    const int dim = t->shape->in[0].dim;
    for (int i = 0; i < t->n; i++) {
        float       *p = (float *)t->call.in[0].data + i * dim;
        const float *a = t->call.in[2].data + base_row(t, 2, i) * dim, *b = NULL;
        double       total = 0;
        if (t->n_in > 3 && t->shape->in[3].dim == dim) b = t->call.in[3].data + base_row(t, 3, i) * dim;
        for (int j = 0; j < dim; j++) total += exp((double)a[j] + (b ? (double)b[j] : 0));
        for (int j = 0; j < dim; j++) p[j] = (float)(exp((double)a[j] + (b ? (double)b[j] : 0)) / total);
    }
}

static void trial_init(trial *t, const rws_op *op, const shape *shape, int k, int n, int indexed, die *d)
{
    *t = (trial){.op = op, .subject = subject_of(op->name), .shape = shape, .k = k, .n = n, .indexed = indexed};
    t->products.arena = &t->arena;
    while (t->n_in < RWS_OP_INPUTS && shape->in[t->n_in].kind != NONE) t->n_in++;
    t->call = (rws_call){.op = op,
                         .n = n,
                         .dim = shape->dim,
                         .n_in = t->n_in,
                         .arena = &t->arena,
                         .products = &t->products,
                         .args = {.k = k, .s = shape->s, .t = shape->t, .offset = shape->offset}};
    if (shape->in[0].kind == SOFTMAX) t->indexed &= ~1; /* each row has a softmax of its own */
    for (int s = 0; s < t->n_in; s++) make_input(t, s, d);
    if (shape->in[0].kind == SOFTMAX) make_softmax(t);
    if (shape->rows) make_weights(t, d);
    t->call.out = take_floats(t, NULL, (size_t)n * (size_t)shape->dim);
    if (op->saves) t->call.saved = take_floats(t, NULL, (size_t)n * (size_t)shape->in[0].dim);
    t->gout = take_floats(t, d, (size_t)n * (size_t)shape->dim);
    t->call.gout = t->gout;
}

static void trial_release(trial *t)
{
    for (int i = 0; i < t->n_taken; i++) free(t->taken[i]);
    rws_params_release(&t->params);
    rws_arena_free(&t->arena);
}

static void twin_row(const trial *t, int i, double *out)
{
    const shape *sh = t->shape;
    row          r = {.dim = sh->dim,
                      .n_in = t->n_in,
                      .k = t->k,
                      .cols = sh->cols,
                      .offset = sh->offset,
                      .s = (double)sh->s,
                      .t = (double)sh->t,
                      .out = out};
    for (int s = 0; s < t->n_in; s++) {
        r.in_dim[s] = sh->in[s].dim;
        r.in[s] = t->in[s] ? t->in[s] + (size_t)base_row(t, s, i) * (size_t)sh->in[s].dim : NULL;
    }
    if (t->w) r.w = t->weights + t->w->offset;
    if (t->b) r.b = t->weights + t->b->offset;
    t->subject->twin(&r);
}

static void check_forward(trial *t)
{
    char   text[160];
    double want[WIDEST];
    t->op->forward(&t->call);
    for (int i = 0; i < t->n; i++) {
        twin_row(t, i, want);
        for (int j = 0; j < t->shape->dim; j++) {
            const double got = (double)t->call.out[i * t->shape->dim + j];
            if (!near(got, want[j], TOLERANCE * (1 + fabs(want[j]))))
                fail_msg("%s: value (%d, %d) is %.9g, not %.9g", describe(t, text), i, j, got, want[j]);
        }
    }
}

/* The derivative of sum gout * out by one number, by central differences over the rows that read it; *scale becomes the
 * sum of the magnitudes of its parts. */
static double difference(trial *t, double *x, int s, int base, double *scale)
{
    const double was = *x, h = 1e-5 * (1 + fabs(was));
    double       up[WIDEST], down[WIDEST], total = 0;
    *scale = 1;
    for (int i = 0; i < t->n; i++) {
        if (s >= 0 && base_row(t, s, i) != base) continue;
        *x = was + h;
        twin_row(t, i, up);
        *x = was - h;
        twin_row(t, i, down);
        *x = was;
        for (int j = 0; j < t->shape->dim; j++) {
            const double part = (double)t->gout[i * t->shape->dim + j] * (up[j] - down[j]) / (2 * h);
            total += part;
            *scale += fabs(part);
        }
    }
    return total;
}

static double tolerance(const trial *t)
{
    return TOLERANCE * (t->subject->slack ? t->subject->slack : 1);
}

static void check_sink(trial *t, int s)
{
    char   text[160];
    double scale;
    for (int b = 0; b < t->n_base[s]; b++)
        for (int j = 0; j < t->shape->in[s].dim; j++) {
            const int    place = b * t->shape->in[s].dim + j;
            const double by = difference(t, &t->in[s][place], s, b, &scale);
            const double got = (double)t->sink[s][place], want = (double)t->sink_before[s][place] + by;
            if (!near(got, want, tolerance(t) * scale))
                fail_msg("%s: gradient of input %d at (%d, %d) is %.9g, not %.9g", describe(t, text), s, b, j,
                         got - (double)t->sink_before[s][place], by);
        }
}

static void check_weights(trial *t)
{
    char   text[160];
    double scale;
    for (size_t i = 0; i < t->params.size; i++) {
        const double by = difference(t, &t->weights[i], -1, 0, &scale);
        const double got = (double)t->gradient[i], want = (double)t->gradient_before[i] + by;
        if (!near(got, want, TOLERANCE * scale))
            fail_msg("%s: gradient of parameter %zu is %.9g, not %.9g", describe(t, text), i,
                     got - (double)t->gradient_before[i], by);
    }
}

static size_t sink_size(const trial *t, int s)
{
    return (size_t)t->n_base[s] * (size_t)t->shape->in[s].dim;
}

/* Backward with some gradients wanted: bit s for input s, bit n_in for the weights. It adds to what is there, except
 * where a sink is fresh: there it writes. */
static void check_backward(trial *t, unsigned wanted, bool fresh)
{
    float *kept[RWS_OP_INPUTS];
    memcpy(kept, t->sink_before, sizeof kept);
    for (int s = 0; s < t->n_in; s++) {
        t->call.gin[s] = (rws_sink){0};
        if (!t->in[s] || !has_gradient(t->shape->in[s].kind)) continue;
        memcpy(t->sink[s], t->sink_before[s], sink_size(t, s) * sizeof(float));
        if (!(wanted >> s & 1)) continue;
        t->call.gin[s] = (rws_sink){t->sink[s], t->index[s], fresh && !t->index[s]};
        if (!t->call.gin[s].fresh) continue;
        for (size_t i = 0; i < sink_size(t, s); i++) t->sink[s][i] = NAN;
        t->sink_before[s] = t->zeros[s];
    }
    const bool weights = t->w && wanted >> t->n_in & 1;
    if (t->w) memcpy(t->gradient, t->gradient_before, t->params.size * sizeof(float));
    t->call.gw = weights ? t->gradient + t->w->offset : NULL;
    t->call.gb = weights && t->b ? t->gradient + t->b->offset : NULL;
    t->op->backward(&t->call);
    for (int s = 0; s < t->n_in; s++)
        rws_call_clear(&t->call, s); /* as the engine does, for inputs that the op writes no gradient of */
    if (t->w) rws_products_flush(&t->products, t->gradient, &t->arena);

    for (int s = 0; s < t->n_in; s++) {
        if (!t->in[s] || !has_gradient(t->shape->in[s].kind)) continue;
        if (wanted >> s & 1) check_sink(t, s);
        else assert_memory_equal(t->sink[s], t->sink_before[s], sink_size(t, s) * sizeof(float));
    }
    if (weights) check_weights(t);
    else if (t->w) assert_memory_equal(t->gradient, t->gradient_before, t->params.size * sizeof(float));
    memcpy(t->sink_before, kept, sizeof kept);
}

static void check_trial(const rws_op *op, const shape *shape, int k, int n, int indexed, die *d)
{
    trial t;
    trial_init(&t, op, shape, k, n, indexed, d);
    check_forward(&t);
    if (!op->constant) {
        check_backward(&t, ~0u, false);
        check_backward(&t, ~0u, true);
        for (int s = 0; s <= t.n_in && n < 30; s++) check_backward(&t, 1u << s, s % 2); /* one gradient alone */
    }
    trial_release(&t);
}

/* One test for each op. */
static void op_equals_its_twin(void **state)
{
    const rws_op  *op = *state;
    const subject *subject = subject_of(op->name);
    if (!subject) fail_msg("the op %s has no twin in a file twins_….c", op->name);
    assert_non_null(op->forward);
    assert_true(op->constant == !op->backward);
    const int n_rows[] = {1, 3, 37}, indexed[] = {0, 0xfff, 0x555, 0xaaa};
    die       d = {41};
    int       n_shapes = 0;
    for (const shape *s = subject->shapes; s < subject->shapes + MAX_SHAPES && s->dim; s++, n_shapes++)
        for (int n = 0; n < 3; n++)
            for (int i = 0; i < 4; i++)
                for (int k = s->each_function ? 0
                             : s->each_map    ? RWS_LOG + 1
                                              : s->k;
                     k <= (s->each_function ? RWS_LOG
                           : s->each_map    ? RWS_DIGAMMA
                                            : s->k);
                     k++)
                    check_trial(op, s, k, n_rows[n], indexed[i], &d);
    assert_true(n_shapes > 0);
}

/* ---- tangents: the directional derivative of an op and its gradient, by the engine, where every input and weight is a
 * parameter */

typedef struct {
    trial      *t;
    rws_params  params;
    rws_param  *in[RWS_OP_INPUTS], *w, *b;
    rws_op_args args;
    float       mix[WIDEST];
} tangent_bench;

static void tangent_program(rws_path *path, void *context)
{
    const tangent_bench *b = context;
    const trial         *t = b->t;
    rws_var              in[RWS_OP_INPUTS] = {{0}};
    for (int s = 0; s < t->n_in; s++) {
        if (b->in[s]) in[s] = rws_parameter(path, b->in[s]);
        else if (t->in[s]) in[s] = rws_constants(path, t->call.in[s].data, t->shape->in[s].dim);
    }
    const rws_var y = rws_record(path, t->op, b->args, in, t->n_in, t->shape->dim);
    rws_path_output(path, 0, rws_dot(path, y, rws_constants(path, b->mix, t->shape->dim)));
}

static rws_param *copy_param(tangent_bench *b, const char *name, int rows, int cols, const double *from)
{
    rws_param *p = rws_params_add(&b->params, RWS_PHI, name, rows, cols);
    for (size_t i = 0; i < rws_param_size(p); i++) p->value[i] = (float)from[i];
    return p;
}

static void tangent_init(tangent_bench *b, trial *t, die *d)
{
    *b = (tangent_bench){.t = t, .args = t->call.args};
    for (int s = 0; s < t->n_in; s++) {
        char name[16];
        snprintf(name, sizeof name, "in%d", s);
        if (t->in[s] && has_gradient(t->shape->in[s].kind))
            b->in[s] = copy_param(b, name, 1, t->shape->in[s].dim, t->in[s]);
    }
    if (t->w) b->w = copy_param(b, "w", t->w->rows, t->w->cols, t->weights + t->w->offset);
    if (t->w) b->w->transposed = t->w->transposed;
    if (t->b) b->b = copy_param(b, "b", 1, t->b->cols, t->weights + t->b->offset);
    b->args.w = b->w, b->args.b = b->b;
    for (int j = 0; j < t->shape->dim; j++) b->mix[j] = (float)die_between(d, -1, 1);
    rws_params_pack(&b->params);
}

/* Where the twin reads number i of the flat vector of parameters. */
static double *twin_number(const tangent_bench *b, size_t i)
{
    const trial *t = b->t;
    for (int s = 0; s < t->n_in; s++)
        if (b->in[s] && i >= b->in[s]->offset && i < b->in[s]->offset + rws_param_size(b->in[s]))
            return t->in[s] + (i - b->in[s]->offset);
    if (b->b && i >= b->b->offset) return t->weights + t->b->offset + (i - b->b->offset);
    return t->weights + t->w->offset + (i - b->w->offset);
}

static void twin_move(const tangent_bench *b, const float *direction, double by)
{
    for (size_t i = 0; i < b->params.size; i++) *twin_number(b, i) += by * (double)direction[i];
}

/* The derivative of the twin's number along a direction. */
static double twin_along(const tangent_bench *b, const float *direction)
{
    const double h = 1e-5;
    double       up[WIDEST], down[WIDEST], total = 0;
    twin_move(b, direction, h);
    twin_row(b->t, 0, up);
    twin_move(b, direction, -2 * h);
    twin_row(b->t, 0, down);
    twin_move(b, direction, h);
    for (int j = 0; j < b->t->shape->dim; j++) total += (double)b->mix[j] * (up[j] - down[j]) / (2 * h);
    return total;
}

static bool is_in(const rws_op *op, const rws_op *const *room)
{
    while (*room && *room != op) room++;
    return *room;
}

/* Returns false where the op says that it has no second derivative for these inputs. The gradient of the tangent is compared
 * for the rooms tensor and nn: a rule of a distribution may take what forward saved as a constant. */
static bool check_tangent(trial *t, die *d)
{
    enum { SLOT = 4 };
    tangent_bench b;
    char          text[160];
    rws_error     err;
    tangent_init(&b, t, d);
    float *direction = calloc(b.params.size, sizeof *direction), *gradient = calloc(b.params.size, sizeof *gradient);
    for (size_t i = 0; i < b.params.size; i++) direction[i] = (float)die_between(d, -1, 1);
    rws_engine    *e = rws_engine_new(&b.params, (rws_field[1]){{0}}, 0, NULL);
    const rws_pass pass = {.program = tangent_program,
                           .context = &b,
                           .mode = RWS_WAKE,
                           .groups = 1u << RWS_PHI,
                           .n_data = 1,
                           .n_particles = 1};
    if (rws_engine_forward(e, &pass, &err) != RWS_OK) fail_msg("%s: %s", describe(t, text), err.text);
    rws_scores *s = rws_engine_scores(e);
    const bool  known = rws_engine_tangent(e, 0, SLOT, 1u << RWS_PHI, direction, &err) == RWS_OK;
    if (!known) assert_non_null(strstr(err.text, "second derivative"));
    else {
        const double along = twin_along(&b, direction), slack = t->subject->slack ? t->subject->slack : 1;
        /* delta's density is -inf on both sides of its only point */
        if (isfinite(along) && !near(s->out[SLOT][0], along, 1e-4 * slack * (1 + fabs(along))))
            fail_msg("%s: the tangent is %.9g, not %.9g", describe(t, text), s->out[SLOT][0], along);
        s->coef_out[SLOT][0] = 1;
        assert_int_equal(rws_engine_backward(e, 1u << RWS_PHI, gradient, NULL), RWS_OK);
        const bool whole = is_in(t->op, rws_tensor_ops) || is_in(t->op, rws_nn_ops);
        for (size_t i = 0; i < b.params.size && whole; i++) {
            const double h = 1e-4;
            double      *x = twin_number(&b, i), end[2];
            for (int k = 0; k < 2; k++) {
                *x += k ? -2 * h : h;
                end[k] = twin_along(&b, direction);
            }
            *x += h;
            const double want = (end[0] - end[1]) / (2 * h);
            if (!near((double)gradient[i], want, 5e-4 * slack * (1 + fabs(want) + fabs(along))))
                fail_msg("%s: the gradient of the tangent by number %zu is %.9g, not %.9g", describe(t, text), i,
                         (double)gradient[i], want);
        }
    }
    rws_engine_free(e);
    rws_params_release(&b.params);
    free(direction), free(gradient);
    return known;
}

static void tangents_equal_differences(void **state)
{
    (void)state;
    die d = {47};
    for (int i = 0; i < n_ops; i++) {
        const subject *subject = subject_of(ops[i]->name);
        int            n_known = 0;
        for (const shape *s = subject->shapes; ops[i]->tangent && s < subject->shapes + MAX_SHAPES && s->dim; s++)
            for (int k = s->each_function ? 0
                         : s->each_map    ? RWS_LOG + 1
                                          : s->k,
                     end = s->each_function ? RWS_LOG
                           : s->each_map    ? RWS_DIGAMMA
                                            : s->k;
                 k <= end; k++) {
                trial t;
                trial_init(&t, ops[i], s, k, 1, 0, &d);
                n_known += check_tangent(&t, &d);
                trial_release(&t);
            }
        const bool own = is_in(ops[i], rws_tensor_ops) || is_in(ops[i], rws_nn_ops);
        if (ops[i]->tangent && own && !n_known) fail_msg("the tangent of %s is nowhere known", ops[i]->name);
    }
}

/* The ops of these rooms that have no tangent: ops of tangents, ops that only the engine records, and clip. */
static void ops_without_a_tangent_are_known(void **state)
{
    (void)state;
    static const char *const   without[] = {"apply_tangent", "map_tangent",      "log_softmax_tangent",
                                            "softmax_dot",   "log_softmax_pick", "attention_softmax_tangent",
                                            "clip"};
    const rws_op *const *const rooms[] = {rws_tensor_ops, rws_nn_ops};
    for (int r = 0; r < COUNT(rooms); r++)
        for (int i = 0; rooms[r][i]; i++) {
            const rws_op *op = rooms[r][i];
            bool          listed = false;
            for (int k = 0; k < COUNT(without); k++) listed |= strcmp(op->name, without[k]) == 0;
            if (!op->constant && listed == (op->tangent != NULL))
                fail_msg("%s %s", op->name, listed ? "has a tangent and is listed without" : "has no tangent");
        }
}

static void every_twin_has_an_op(void **state)
{
    (void)state;
    assert_true(n_ops < MOST_OPS);
    for (int n = 0; n < n_ops; n++)
        for (int i = 0; i < n; i++) assert_string_not_equal(ops[i]->name, ops[n]->name);
    int n_twins = 0;
    for (int n = 0; subject_tables[n]; n++)
        for (int i = 0; i < subject_tables[n]->n; i++, n_twins++) op_named(subject_tables[n]->list[i].name);
    assert_int_equal(n_ops, n_twins);
}

/* ---- very large numbers and infinities: -inf is data and must not become NaN */

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
    rws_arena_free(&arena);
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
        exp_a[i] = rws_exp(a[i]), exp_b[i] = rws_exp(b[i]);
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
    rws_arena_free(&arena);
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
        rws_arena_free(&arena);
    }
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
        rws_function_slope((rws_function)f, 6, y, (float[]){1, 1, 1, 1, 1, 1}, slopes);
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
    rws_arena_free(&arena);
}

/* A matrix that has no factor is refused with a sentence, also where it holds a NaN, and does not disturb other rows. */
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
    rws_arena_free(&arena);
}

int main(void)
{
    rws_error err;
    if (rws_gemm_init(&err) != RWS_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    struct CMUnitTest tests[MOST_OPS + 12] = {
        cmocka_unit_test(every_twin_has_an_op),           cmocka_unit_test(log_softmax_of_impossible_and_huge),
        cmocka_unit_test(functions_at_the_ends),          cmocka_unit_test(densities_at_the_ends),
        cmocka_unit_test(smoothed_bits_follow_their_law), cmocka_unit_test(pictures_at_identity),
        cmocka_unit_test(pictures_at_the_ends),           cmocka_unit_test(exponentials_at_hand_change_nothing),
        cmocka_unit_test(one_matrix_for_all_rows),        cmocka_unit_test(matrices_without_a_factor),
        cmocka_unit_test(tangents_equal_differences),     cmocka_unit_test(ops_without_a_tangent_are_known),
    };
    size_t n = 12;
    gather_ops();
    for (int i = 0; i < n_ops; i++)
        tests[n++] = (struct CMUnitTest){ops[i]->name, op_equals_its_twin, NULL, NULL, (void *)ops[i]};
    return _cmocka_run_group_tests("ops", tests, n, NULL, NULL);
}
