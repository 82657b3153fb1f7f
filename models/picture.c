/* picture.c - glimpses on a background, as logits of pixels, and the log-density of bits with these logits.
 *
 *     y = sum of the glimpses as placed, a = sum of their covers, m = sigmoid(20 a - 10)
 *     logit = clip(y + m front - (1 - m) back, -88, 16)
 *
 * Most of a canvas is background, where the logit is the same for all particles. So the log-density is that of the
 * background, which is one dot product with the datum, corrected where glimpses lie. The logits themselves are computed
 * only if something else needs them (rws_op.bits_density).
 *
 * The inputs of `picture` are front, back, and then a glimpse and its `where` for each glimpse; `picture_bits` has the
 * datum before these. k is the number of rows of a glimpse, offset the number of rows of the canvas. Lines of the
 * canvas are computed in buffers of whole vectors; the points beyond the right border have zeros for all inputs and add
 * nothing.
 */
#include "base/error.h"
#include "base/vecmath.h"
#include "engine/engine.h"
#include "nn/pictures.h"
#include "models/picture.h"
#include "nn/window.h"

#include <string.h>

#define LOWEST -88.0f
#define HIGHEST 16.0f
#define SLOPE 20.0f /* the mask is sigmoid(SLOPE cover - SHIFT) */
#define SHIFT 10.0f

#define MOST ((RWS_OP_INPUTS - 3) / 2) /* the most glimpses */

extern const rws_op rws_op_picture; /* below */

rws_var rws__picture(rws_path *path, const rws_var *glimpses, const rws_var *wheres, int n, int rows, int cols,
                     rws_var front, rws_var back, int out_rows, int out_cols)
{
    rws_var v, in[RWS_OP_INPUTS] = {front, back};
    if (rws__replayed(path, &v)) return v;
    if (n < 0 || n > MOST) rws__path_mistake(path, "rws__picture takes 0 to %d glimpses, not %d.", MOST, n);
    rws__pictures_expect(path, "rws__picture", rows, cols, out_rows, out_cols);
    const int size = out_rows * out_cols;
    if (rws_dim(path, front) != size || rws_dim(path, back) != size)
        rws__path_mistake(path, "rws__picture takes a front and a back of %d x %d numbers, not %d and %d.", out_rows,
                          out_cols, rws_dim(path, front), rws_dim(path, back));
    for (int i = 0; i < n; i++) {
        if (rws_dim(path, glimpses[i]) != rows * cols || rws_dim(path, wheres[i]) != 4)
            rws__path_mistake(path, "rws__picture takes glimpses of %d x %d numbers and 4 to say where, not %d and %d.",
                              rows, cols, rws_dim(path, glimpses[i]), rws_dim(path, wheres[i]));
        in[2 + 2 * i] = glimpses[i];
        in[3 + 2 * i] = wheres[i];
    }
    return rws__returns(
        path, rws__record(path, &rws_op_picture, (rws_op_args){.k = rows, .offset = out_rows}, in, 2 + 2 * n, size));
}

/* ---- pictures are made one after the other, line by line */

typedef struct {
    rws_call  *c;
    int        at;                    /* the number of input `front` */
    int        n, rows, cols, stride; /* glimpses; rows and columns of the canvas, and whole vectors of columns */
    rws_window window[MOST];
    float     *inner[MOST];             /* the mask along a line where one window alone has cover_y = 1 */
    size_t     front_row, back_row;     /* the rows that the background was made of; SIZE_MAX: it was not made yet */
    float     *both, *back;             /* rows x stride: front + back, and back */
    float     *logit, *soft, *chance;   /* the clipped logits of the background, their softplus and their sigmoid */
    float     *open;                    /* 1 where the background was not clipped, else 0 */
    double     total;                   /* the sum of soft */
    float      mask;                    /* the mask where no glimpse lies */
    float     *y, *a, *m, *raw, *l, *e; /* a line: y, a and m above, logits before and after clipping, exp(-|l|) */
    float     *x, *by, *by_a;           /* a line: data, gradients of the logits, gradients of the cover */
} picture;

static inline float mask_at(float cover)
{
    return 1 / (1 + rws__exp(SHIFT - SLOPE * cover));
}

static picture picture_new(rws_call *c, int at, int size)
{
    picture p = {.c = c, .at = at, .n = (c->n_in - at - 2) / 2, .front_row = SIZE_MAX, .back_row = SIZE_MAX};
    p.rows = c->args.offset;
    p.cols = size / p.rows;
    p.stride = rws__lanes_up(p.cols);
    p.mask = mask_at(0);
    float **canvas[] = {&p.both, &p.back, &p.logit, &p.soft, &p.chance, &p.open};
    for (size_t i = 0; i < sizeof canvas / sizeof *canvas; i++)
        *canvas[i] = RWS_NEW0(c->arena, float, (size_t)p.rows *(size_t)p.stride);
    float **line[] = {&p.y, &p.a, &p.m, &p.raw, &p.l, &p.e, &p.x, &p.by, &p.by_a};
    for (size_t i = 0; i < sizeof line / sizeof *line; i++) *line[i] = RWS_NEW0(c->arena, float, p.stride);
    for (int i = 0; i < p.n; i++) {
        rws__window_init(&p.window[i], c->arena, c->args.k, c->in[at + 2 + 2 * i].dim / c->args.k, p.rows, p.cols);
        p.inner[i] = RWS_NEW(c->arena, float, p.stride);
    }
    return p;
}

static inline float clipped(float l)
{
    l = l < LOWEST ? LOWEST : l;
    return l > HIGHEST ? HIGHEST : l;
}

static void make_background(picture *p, const float *front, const float *back)
{
    p->total = 0;
    for (int i = 0; i < p->rows; i++) {
        const size_t at = (size_t)i * (size_t)p->stride;
        float *restrict both = p->both + at, *restrict minus = p->back + at, *restrict logit = p->logit + at;
        float *restrict soft = p->soft + at, *restrict chance = p->chance + at;
        float *restrict open = p->open + at;
        for (int j = 0; j < p->cols; j++, front++, back++) both[j] = *front + *back, minus[j] = *back;
        FOR_SIMD (j, 0, p->stride) {
            const float raw = p->mask * both[j] - minus[j], l = clipped(raw), e = rws__exp(-fabsf(l));
            logit[j] = l;
            open[j] = raw == l;
            soft[j] = (l > 0 ? l : 0) + log1pf(e);
            chance[j] = (l > 0 ? 1 : e) / (1 + e);
        }
        for (int j = 0; j < p->cols; j++) p->total += (double)soft[j];
    }
}

static void begin(picture *p, size_t r)
{
    const rws_call *c = p->c;
    const rws_view *front = &c->in[p->at], *back = &c->in[p->at + 1];
    if (rws__view_index(front, r) != p->front_row || rws__view_index(back, r) != p->back_row) {
        p->front_row = rws__view_index(front, r);
        p->back_row = rws__view_index(back, r);
        make_background(p, rws__view_row(front, r), rws__view_row(back, r));
    }
    for (int t = 0; t < p->n; t++) {
        rws_window *w = &p->window[t];
        rws__window_lay(w, rws__view_row(&c->in[p->at + 3 + 2 * t], r), rws__view_row(&c->in[p->at + 2 + 2 * t], r));
        float *restrict inner = p->inner[t];
        FOR_SIMD (j, w->x.first, w->x.end) inner[j] = mask_at(w->cover_x[j]);
    }
}

/* Whether the `where` of a glimpse of row r has a NaN. */
static bool is_misplaced(const picture *p, size_t r)
{
    for (int t = 0; t < p->n; t++)
        if (rws__where_is_nan(rws__view_row(&p->c->in[p->at + 3 + 2 * t], r))) return true;
    return false;
}

/* Computes line i from *first to *end, the interval where glimpses lie. False if no glimpse lies on the line. */
static bool make_line(picture *p, int i, int *first, int *end)
{
    const rws_window *only = NULL;
    int               n = 0;
    *first = p->stride, *end = 0;
    for (int t = 0; t < p->n; t++) {
        const rws_window *w = &p->window[t];
        if (!rws__window_has(w, i) || w->x.first == w->x.end) continue;
        if (w->x.first < *first) *first = w->x.first;
        if (w->x.end > *end) *end = w->x.end;
        only = w;
        n++;
    }
    if (n == 0) return false;
    const size_t at = (size_t)i * (size_t)p->stride;
    const float *restrict both = p->both + at, *restrict back = p->back + at;
    float *restrict y = p->y, *restrict a = p->a, *restrict m = p->m, *restrict raw = p->raw, *restrict l = p->l;
    float *restrict e = p->e;
    FOR_SIMD (j, *first, *end) y[j] = a[j] = 0;
    for (int t = 0; t < p->n; t++)
        if (rws__window_has(&p->window[t], i)) rws__window_add(&p->window[t], i, y, a);
    if (n == 1 && only->cover_y[i] == 1)
        memcpy(m + *first, p->inner[only - p->window] + *first, (size_t)(*end - *first) * sizeof *m);
    else
        FOR_SIMD (j, *first, *end) m[j] = mask_at(a[j]);
    FOR_SIMD (j, *first, *end) {
        raw[j] = y[j] + m[j] * both[j] - back[j];
        l[j] = clipped(raw[j]);
        e[j] = rws__exp(-fabsf(l[j]));
    }
    return true;
}

/* Backward for the glimpses on line i, between first and end. p->by is the gradient of the clipped logits; it becomes
 * that of the logits before clipping. */
static void back_line(picture *p, int i, int first, int end, size_t r)
{
    const rws_call *c = p->c;
    const size_t    at = (size_t)i * (size_t)p->stride;
    bool            moves = false;
    for (int t = 0; t < p->n; t++) moves |= c->gin[p->at + 3 + 2 * t].data != NULL;
    FOR_SIMD (j, first, end) p->by[j] = p->raw[j] == p->l[j] ? p->by[j] : 0;
    if (moves)
        FOR_SIMD (j, first, end) p->by_a[j] = p->by[j] * p->both[at + (size_t)j] * SLOPE * p->m[j] * (1 - p->m[j]);
    for (int t = 0; t < p->n; t++)
        if (rws__window_has(&p->window[t], i))
            rws__window_back(&p->window[t], i, p->by, p->by_a, rws__call_sink_row(c, p->at + 3 + 2 * t, r));
}

/* Adds the gradients of front and back along line i, from p->by and the mask p->m of the whole line. */
static void back_background(const picture *p, int i, float *by_front, float *by_back)
{
    const size_t at = (size_t)i * (size_t)p->cols;
    if (by_front)
        FOR_SIMD (j, 0, p->cols) by_front[at + (size_t)j] += p->by[j] * p->m[j];
    if (by_back)
        FOR_SIMD (j, 0, p->cols) by_back[at + (size_t)j] += p->by[j] * (p->m[j] - 1);
}

static void back_end(picture *p, size_t r)
{
    for (int t = 0; t < p->n; t++) {
        const int s = p->at + 2 + 2 * t;
        rws__window_back_end(&p->window[t], rws__call_sink_row(p->c, s, r), rws__call_sink_row(p->c, s + 1, r));
    }
}

/* Where the background was clipped, between `from` and `to` on line i, no gradient passes; the mask is that of no
 * glimpse. */
static void clip_background(picture *p, int i, int from, int to)
{
    const float *restrict open = p->open + (size_t)i * (size_t)p->stride;
    float *restrict by = p->by, *restrict m = p->m;
    FOR_SIMD (j, from, to) by[j] *= open[j], m[j] = p->mask;
}

/* ---- the logits */

static void picture_forward(rws_call *c)
{
    rws_arena_mark mark = rws__arena_at(c->arena);
    picture        p = picture_new(c, 0, c->dim);
    for (size_t r = 0; r < (size_t)c->n; r++) {
        begin(&p, r);
        for (int i = 0, first, end; i < p.rows; i++) {
            float *out = c->out + r * (size_t)c->dim + (size_t)i * (size_t)p.cols;
            memcpy(out, p.logit + (size_t)i * (size_t)p.stride, (size_t)p.cols * sizeof *out);
            if (!make_line(&p, i, &first, &end)) continue;
            const int stop = end < p.cols ? end : p.cols;
            memcpy(out + first, p.l + first, (size_t)(stop - first) * sizeof *out);
        }
        for (int j = 0; j < c->dim && is_misplaced(&p, r); j++) c->out[r * (size_t)c->dim + (size_t)j] = NAN;
    }
    rws__arena_release(c->arena, mark);
}

static void picture_backward(rws_call *c)
{
    rws_arena_mark mark = rws__arena_at(c->arena);
    picture        p = picture_new(c, 0, c->dim);
    for (int s = 0; s < c->n_in; s++) rws__call_clear(c, s);
    for (size_t r = 0; r < (size_t)c->n; r++) {
        begin(&p, r);
        for (int i = 0, first, end; i < p.rows; i++) {
            memcpy(p.by, c->gout + r * (size_t)c->dim + (size_t)i * (size_t)p.cols, (size_t)p.cols * sizeof *p.by);
            const bool any = make_line(&p, i, &first, &end);
            clip_background(&p, i, 0, any ? first : p.stride);
            if (any) {
                clip_background(&p, i, end, p.stride);
                back_line(&p, i, first, end, r);
            }
            back_background(&p, i, rws__call_sink_row(c, 0, r), rws__call_sink_row(c, 1, r));
        }
        back_end(&p, r);
    }
    rws__arena_release(c->arena, mark);
}

/* ---- the log-density of bits: the sum of x l - softplus(l) */

typedef float v8 __attribute__((vector_size(32), aligned(4), may_alias));

#define FACTORS 120 /* a factor is at most 2, so that a float holds the product of so many */

/* Products of 1 + e in eight lanes, whose logarithms are sums of log(1 + e). */
typedef struct {
    v8     lanes;
    int    n;
    double log;
} product;

static void product_flush(product *q)
{
    float lanes[RWS_LANES];
    memcpy(lanes, &q->lanes, sizeof lanes);
    float total = 0;
#pragma omp simd reduction(+ : total)
    for (int j = 0; j < RWS_LANES; j++) total += logf(lanes[j]);
    q->log += (double)total;
    q->lanes = (v8){1, 1, 1, 1, 1, 1, 1, 1};
    q->n = 0;
}

static void product_add(product *q, const float *e, int n)
{
    for (int first = 0, end; first < n; first = end) {
        end = n - first < FACTORS * RWS_LANES ? n : first + FACTORS * RWS_LANES;
        if (q->n + (end - first) / RWS_LANES > FACTORS) product_flush(q);
        for (int j = first; j < end; j += RWS_LANES) q->lanes *= 1 + *(const v8 *)(e + j);
        q->n += (end - first) / RWS_LANES;
    }
}

/* The sum of x l over the background. */
static double background_dot(const picture *p, const float *x)
{
    double total = 0;
    for (int i = 0; i < p->rows; i++, x += p->cols) {
        const float *logit = p->logit + (size_t)i * (size_t)p->stride;
        float        line = 0;
#pragma omp simd reduction(+ : line)
        for (int j = 0; j < p->cols; j++) line += x[j] * logit[j];
        total += (double)line;
    }
    return total;
}

static void picture_bits_forward(rws_call *c)
{
    rws_arena_mark mark = rws__arena_at(c->arena);
    picture        p = picture_new(c, 1, c->in[0].dim);
    const float   *last = NULL;
    double         dot = 0;
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const float *x = rws__view_row(&c->in[0], r);
        const size_t front_row = p.front_row, back_row = p.back_row;
        product      q = {.lanes = {1, 1, 1, 1, 1, 1, 1, 1}};
        begin(&p, r);
        if (x != last || front_row != p.front_row || back_row != p.back_row) dot = background_dot(&p, x);
        last = x;
        double total = dot - p.total;
        for (int i = 0, first, end; i < p.rows; i++) {
            if (!make_line(&p, i, &first, &end)) continue;
            const size_t at = (size_t)i * (size_t)p.stride;
            const float *restrict was = p.logit + at, *restrict soft = p.soft + at, *restrict l = p.l;
            memcpy(p.x, x + (size_t)i * (size_t)p.cols, (size_t)p.cols * sizeof *p.x);
            float line = 0;
#pragma omp simd reduction(+ : line)
            for (int j = first; j < end; j++) line += p.x[j] * (l[j] - was[j]) - (l[j] > 0 ? l[j] : 0) + soft[j];
            total += (double)line;
            product_add(&q, p.e + first, end - first);
        }
        product_flush(&q);
        c->out[r] = is_misplaced(&p, r) ? NAN : (float)(total - q.log);
    }
    rws__arena_release(c->arena, mark);
}

/* The gradient of the datum is g times the logits. */
static void back_datum(picture *p, int i, int first, int end, float g, float *by_x)
{
    const float *logit = p->logit + (size_t)i * (size_t)p->stride;
    for (int j = 0; j < p->cols; j++) by_x[j] += g * (j >= first && j < end ? p->l[j] : logit[j]);
}

static void picture_bits_backward(rws_call *c)
{
    rws_arena_mark mark = rws__arena_at(c->arena);
    picture        p = picture_new(c, 1, c->in[0].dim);
    for (int s = 0; s < c->n_in; s++) rws__call_clear(c, s);
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const float  g = c->gout[r];
        const float *x = rws__view_row(&c->in[0], r);
        float       *by_x = rws__call_sink_row(c, 0, r), *by_front = rws__call_sink_row(c, 1, r),
              *by_back = rws__call_sink_row(c, 2, r);
        if (g == 0) continue;
        begin(&p, r);
        for (int i = 0, first, end; i < p.rows; i++) {
            const float *chance = p.chance + (size_t)i * (size_t)p.stride;
            const bool   any = make_line(&p, i, &first, &end);
            if (by_x) back_datum(&p, i, any ? first : 0, any ? end : 0, g, by_x + (size_t)i * (size_t)p.cols);
            memcpy(p.x, x + (size_t)i * (size_t)p.cols, (size_t)p.cols * sizeof *p.x);
            FOR_SIMD (j, 0, p.stride) p.by[j] = g * (p.x[j] - chance[j]);
            clip_background(&p, i, 0, any ? first : p.stride);
            if (any) {
                clip_background(&p, i, end, p.stride);
                FOR_SIMD (j, first, end) p.by[j] = g * (p.x[j] - (p.l[j] > 0 ? 1 : p.e[j]) / (1 + p.e[j]));
                back_line(&p, i, first, end, r);
            }
            back_background(&p, i, by_front, by_back);
        }
        back_end(&p, r);
    }
    rws__arena_release(c->arena, mark);
}

/* Both ops are local: particles with another number of glimpses have another picture, so only the rows of this path
 * need this one. */
const rws_op rws_op_picture_bits = {.name = "picture_bits",
                                    .forgets = true,
                                    .local = true,
                                    .forward = picture_bits_forward,
                                    .backward = picture_bits_backward};
const rws_op rws_op_picture = {.name = "picture",
                               .forgets = true,
                               .local = true,
                               .bits_density = &rws_op_picture_bits,
                               .forward = picture_forward,
                               .backward = picture_backward};

const rws_op *const rws_picture_ops[] = {&rws_op_picture, &rws_op_picture_bits, NULL};
