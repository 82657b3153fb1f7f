/* test_ops.c - every op of every folder against a plain twin in double: values, and gradients by central differences.
 *
 * The twin computes one row. A trial makes random inputs of one shape, lets the op compute n rows of them through a
 * call like the engine's, and compares; with and without row indices, so that several rows may read (and give their
 * gradient to) one row of an input. An op that is in the table of its folder but not in the table of twins fails.
 */
#include "all_ops.h"
#include "twins.h"

#include "dist/dist.h"
#include "engine/engine.h"
#include "nn/layer.h"
#include "tensor/products.h"
#include "models/picture.h"

#include <stdio.h>
#include <string.h>

#define WIDEST 64
#define TOLERANCE 2e-5 /* times the sum of the magnitudes that were added up */

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
    return f == RWS_LOG || f == RWS_SQRT || f == RWS_LGAMMA || f == RWS_DIGAMMA || f == RWS_LOG1MEXP ? fabs(x)
           : f == RWS_LOG1P                                                                          ? x / 2.5
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
    rws__params_add(&t->params, RWS_THETA, "other", 3, 7);
    t->w = rws__params_add(&t->params, RWS_PHI, "w", s->rows, s->cols);
    const bool either =
        strcmp(t->op->name, "dense") == 0 || strcmp(t->op->name, "embed") == 0; /* with and without a transposed copy */
    const bool each = strcmp(t->op->name, "project") == 0;
    t->w->transposed =
        (strcmp(t->op->name, "dense") == 0 || each || s->k == 0) && !((either || each) && t->indexed == 0x555);
    t->b = s->bias ? rws__params_add(&t->params, RWS_PHI, "b", 1, s->n_bias ? s->n_bias : s->rows) : NULL;
    for (int p = 0; p < t->params.n; p++)
        for (size_t i = 0; i < rws__param_size(t->params.list[p]); i++)
            t->params.list[p]->value[i] = (float)die_between(d, -0.5, 0.5);
    for (int j = 0; t->b && !s->n_bias && kinked(t->k) && j < s->rows; j++)
        t->b->value[j] = t->k != RWS_LOG && j % 2 ? -2.5f : 2.5f;
    rws__params_pack(&t->params);
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
    rws__params_release(&t->params);
    rws__arena_free(&t->arena);
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
        rws__call_clear(&t->call, s); /* as the engine does, for inputs that the op writes no gradient of */
    if (t->w) rws__products_flush(&t->products, t->gradient, &t->arena);

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

/* The functions that a shape is tried with. */
static int first_k(const shape *s)
{
    return s->each_function ? 0 : s->each_map ? RWS_LOG + 1 : s->k;
}

static int last_k(const shape *s)
{
    return s->each_function ? RWS_LOG : s->each_map ? RWS_LOG1MEXP : s->k;
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
                for (int k = first_k(s); k <= last_k(s); k++) check_trial(op, s, k, n_rows[n], indexed[i], &d);
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
    const rws_var y = rws__record(path, t->op, b->args, in, t->n_in, t->shape->dim);
    rws__path_output(path, 0, rws_dot(path, y, rws_constants(path, b->mix, t->shape->dim)));
}

static rws_param *copy_param(tangent_bench *b, const char *name, int rows, int cols, const double *from)
{
    rws_param *p = rws__params_add(&b->params, RWS_PHI, name, rows, cols);
    for (size_t i = 0; i < rws__param_size(p); i++) p->value[i] = (float)from[i];
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
    rws__params_pack(&b->params);
}

/* Where the twin reads number i of the flat vector of parameters. */
static double *twin_number(const tangent_bench *b, size_t i)
{
    const trial *t = b->t;
    for (int s = 0; s < t->n_in; s++)
        if (b->in[s] && i >= b->in[s]->offset && i < b->in[s]->offset + rws__param_size(b->in[s]))
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
 * for the folders tensor and nn: a rule of a distribution may take what forward saved as a constant. */
static bool check_tangent(trial *t, die *d)
{
    enum { SLOT = 4 };
    tangent_bench b;
    char          text[160];
    rws_error     err;
    tangent_init(&b, t, d);
    float *direction = calloc(b.params.size, sizeof *direction), *gradient = calloc(b.params.size, sizeof *gradient);
    for (size_t i = 0; i < b.params.size; i++) direction[i] = (float)die_between(d, -1, 1);
    rws_engine    *e = rws__engine_new(&b.params, (rws_field[1]){{0}}, 0, NULL);
    const rws_pass pass = {.program = tangent_program,
                           .context = &b,
                           .mode = RWS_WAKE,
                           .groups = 1u << RWS_PHI,
                           .n_data = 1,
                           .n_particles = 1};
    if (rws__engine_forward(e, &pass, &err) != RWS_OK) fail_msg("%s: %s", describe(t, text), err.text);
    rws_scores *s = rws__engine_scores(e);
    const bool  known = rws__engine_tangent(e, 0, SLOT, 1u << RWS_PHI, direction, &err) == RWS_OK;
    if (!known) assert_non_null(strstr(err.text, "second derivative"));
    else {
        const double along = twin_along(&b, direction), slack = t->subject->slack ? t->subject->slack : 1;
        /* delta's density is -inf on both sides of its only point */
        if (isfinite(along) && !near(s->out[SLOT][0], along, 1e-4 * slack * (1 + fabs(along))))
            fail_msg("%s: the tangent is %.9g, not %.9g", describe(t, text), s->out[SLOT][0], along);
        s->coef_out[SLOT][0] = 1;
        assert_int_equal(rws__engine_backward(e, 1u << RWS_PHI, gradient, NULL), RWS_OK);
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
    rws__engine_free(e);
    rws__params_release(&b.params);
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
            for (int k = first_k(s); k <= last_k(s); k++) {
                trial t;
                trial_init(&t, ops[i], s, k, 1, 0, &d);
                n_known += check_tangent(&t, &d);
                trial_release(&t);
            }
        const bool own = is_in(ops[i], rws_tensor_ops) || is_in(ops[i], rws_nn_ops);
        if (ops[i]->tangent && own && !n_known) fail_msg("the tangent of %s is nowhere known", ops[i]->name);
    }
}

/* ---- gradients of 0 */

/* Backward with a gradient of 0 in all rows; returns false if a sink or a weight's gradient changes. */
static bool adds_nothing(trial *t, bool fresh)
{
    bool same = true;
    for (int s = 0; s < t->n_in; s++) {
        t->call.gin[s] = (rws_sink){0};
        if (!t->in[s] || !has_gradient(t->shape->in[s].kind)) continue;
        memcpy(t->sink[s], t->sink_before[s], sink_size(t, s) * sizeof(float));
        t->call.gin[s] = (rws_sink){t->sink[s], NULL, fresh};
    }
    if (t->w) memcpy(t->gradient, t->gradient_before, t->params.size * sizeof(float));
    t->call.gw = t->w ? t->gradient + t->w->offset : NULL;
    t->call.gb = t->b ? t->gradient + t->b->offset : NULL;
    t->op->backward(&t->call);
    for (int s = 0; s < t->n_in; s++) {
        rws__call_clear(&t->call, s);
        const float *before = fresh ? t->zeros[s] : t->sink_before[s];
        for (size_t i = 0; t->call.gin[s].data && i < sink_size(t, s); i++) same &= t->sink[s][i] == before[i];
    }
    if (t->w) rws__products_flush(&t->products, t->gradient, &t->arena);
    for (size_t i = 0; t->w && i < t->params.size; i++) same &= t->gradient[i] == t->gradient_before[i];
    return same;
}

/* Ops that multiply the numbers of an input by the weights of a network or of a matrix, or that interpolate a picture. An
 * input of theirs that is infinite is an author's mistake, since rows that are possible have it too. */
static bool takes_finite_numbers(const rws_op *op)
{
    static const char *const names[] = {"dense", "bits", "embed", "matmul", "cholesky", "solve"};
    for (int i = 0; i < COUNT(names); i++)
        if (strcmp(op->name, names[i]) == 0) return true;
    return is_in(op, rws_nn_ops) || is_in(op, rws_picture_ops);
}

/* Inputs that the op divides by. A factor with a 0 on its diagonal is an author's mistake, and a temperature of 0 is refused
 * by the log-softmax itself. */
static bool divides(const rws_op *op, int s)
{
    return (strcmp(op->name, "solve") == 0 && s == 0) || (strcmp(op->name, "log_softmax_tangent") == 0 && s == 3);
}

/* Puts extreme numbers into input s of a row, one at a time. Where the op takes them, that is where its output is not NaN, a
 * gradient of 0 must add nothing, even if the slope is infinite. */
static void check_zeros(trial *t, int s)
{
    static const float extremes[] = {0, 1e-30f, 1e30f, -1e30f, INFINITY, -INFINITY};
    char               text[160];
    const size_t       dim = (size_t)t->shape->in[s].dim, n_out = (size_t)t->n * (size_t)t->shape->dim;
    for (size_t j = 0; j < dim; j++)
        for (int x = 0; x < COUNT(extremes); x++) {
            float *at = (float *)t->call.in[s].data + dim + j, was = *at;
            bool   taken = true;
            *at = t->shape->in[s].kind == FOR_Y ? (float)function(t->k, (double)extremes[x]) : extremes[x];
            t->call.refused = false;
            if (isnan(*at) || (isinf(*at) && takes_finite_numbers(t->op))) taken = false;
            else t->op->forward(&t->call);
            for (size_t i = 0; taken && i < n_out; i++) taken = !isnan(t->call.out[i]);
            for (int fresh = 0; fresh < 2 && taken && !t->call.refused; fresh++)
                if (!adds_nothing(t, fresh))
                    fail_msg("%s: where number %zu of input %d is %g, a gradient of 0 does not add 0",
                             describe(t, text), j, s, (double)*at);
            *at = was;
        }
}

/* A row that is impossible has the coefficient 0, and its log-density may have an infinite slope. */
static void zero_gradients_add_nothing(void **state)
{
    (void)state;
    die d = {53};
    for (int i = 0; i < n_ops; i++) {
        const subject *subject = subject_of(ops[i]->name);
        for (const shape *s = subject->shapes; !ops[i]->constant && s < subject->shapes + MAX_SHAPES && s->dim; s++)
            for (int k = first_k(s); k <= last_k(s); k++) {
                trial t;
                trial_init(&t, ops[i], s, k, 3, 0, &d);
                memset(t.gout, 0, 3 * (size_t)s->dim * sizeof(float));
                for (int in = 0; in < t.n_in; in++)
                    if (t.in[in] && has_gradient(s->in[in].kind) && !divides(ops[i], in)) check_zeros(&t, in);
                trial_release(&t);
            }
    }
}

/* The ops of these folders that have no tangent: ops of tangents, ops that only the engine records, clip, and windows. */
static void ops_without_a_tangent_are_known(void **state)
{
    (void)state;
    static const char *const   without[] = {"apply_tangent", "map_tangent",      "log_softmax_tangent",
                                            "softmax_dot",   "log_softmax_pick", "attention_softmax_tangent",
                                            "clip",          "attend",           "place",
                                            "cover"};
    const rws_op *const *const tables[] = {rws_tensor_ops, rws_nn_ops};
    for (int r = 0; r < COUNT(tables); r++)
        for (int i = 0; tables[r][i]; i++) {
            const rws_op *op = tables[r][i];
            bool          listed = false;
            for (int k = 0; k < COUNT(without); k++) listed |= strcmp(op->name, without[k]) == 0;
            if (!op->constant && listed == (op->tangent != NULL))
                fail_msg("%s %s", op->name, listed ? "has a tangent and is listed without" : "has no tangent");
        }
}

static void every_twin_has_an_op(void **state)
{
    (void)state;
    assert_true(n_ops < MAX_OPS);
    for (int n = 0; n < n_ops; n++)
        for (int i = 0; i < n; i++) assert_string_not_equal(ops[i]->name, ops[n]->name);
    int n_twins = 0;
    for (int n = 0; subject_tables[n]; n++)
        for (int i = 0; i < subject_tables[n]->n; i++, n_twins++) op_named(subject_tables[n]->list[i].name);
    assert_int_equal(n_ops, n_twins);
}

int main(void)
{
    struct CMUnitTest tests[MAX_OPS + 4] = {
        cmocka_unit_test(every_twin_has_an_op),
        cmocka_unit_test(tangents_equal_differences),
        cmocka_unit_test(ops_without_a_tangent_are_known),
        cmocka_unit_test(zero_gradients_add_nothing),
    };
    size_t n = 4;
    gather_ops();
    for (int i = 0; i < n_ops; i++)
        tests[n++] = (struct CMUnitTest){ops[i]->name, op_equals_its_twin, NULL, NULL, (void *)ops[i]};
    return _cmocka_run_group_tests("ops", tests, n, NULL, NULL);
}
