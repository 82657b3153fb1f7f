/* spatial.c - the spatial transformer: reading a window of a picture, and placing a glimpse on a canvas.
 *
 * Gradients pass to the picture and to `where`, which is (scale x, scale y, shift x, shift y). The inputs of the ops
 * are the source and `where`; k is the number of rows of the source, offset the number of rows of the output. A source
 * that several particles share (the image of a datum) is read in place.
 */
#include "base/error.h"
#include "engine/engine.h"
#include "nn/pictures.h"
#include "nn/window.h"

#include <string.h>

extern const rws_op rws_op_attend, rws_op_place, rws_op_cover; /* below */

void rws__pictures_expect(rws_path *path, const char *name, int rows, int cols, int out_rows, int out_cols)
{
    if (rows < 2 || cols < 2 || out_rows < 2 || out_cols < 2)
        rws__path_mistake(path, "%s takes pictures of at least 2 x 2 points, not %d x %d and %d x %d.", name, rows,
                          cols, out_rows, out_cols);
    if ((int64_t)rows * cols > INT32_MAX || (int64_t)out_rows * out_cols > INT32_MAX)
        rws__path_mistake(path, "%s takes pictures of at most %d points, not %d x %d and %d x %d.", name, INT32_MAX,
                          rows, cols, out_rows, out_cols);
}

static void expect(rws_path *path, const char *name, int rows, int cols, int out_rows, int out_cols, rws_var where)
{
    rws__pictures_expect(path, name, rows, cols, out_rows, out_cols);
    if (rws_dim(path, where) != 4)
        rws__path_mistake(path, "%s takes 4 numbers to say where (two scales, two shifts), not %d.", name,
                          rws_dim(path, where));
}

static rws_var resample(rws_path *path, const rws_op *op, const char *name, rws_var source, int rows, int cols,
                        rws_var where, int out_rows, int out_cols)
{
    rws_var v;
    if (rws__replayed_as(path, &v, name)) return v;
    expect(path, name, rows, cols, out_rows, out_cols, where);
    if (rws_dim(path, source) != rows * cols)
        rws__path_mistake(path, "%s takes %d x %d numbers, not %d.", name, rows, cols, rws_dim(path, source));
    return rws__returns(path, rws__record(path, op, (rws_op_args){.k = rows, .offset = out_rows},
                                          (rws_var[]){source, where}, 2, out_rows * out_cols));
}

rws_var rws_attend(rws_path *path, rws_var image, int rows, int cols, rws_var where, int out_rows, int out_cols)
{
    return resample(path, &rws_op_attend, "rws_attend", image, rows, cols, where, out_rows, out_cols);
}

rws_var rws_place(rws_path *path, rws_var glimpse, int rows, int cols, rws_var where, int out_rows, int out_cols)
{
    return resample(path, &rws_op_place, "rws_place", glimpse, rows, cols, where, out_rows, out_cols);
}

rws_var rws_cover(rws_path *path, int rows, int cols, rws_var where, int out_rows, int out_cols)
{
    rws_var v;
    if (rws__replayed(path, &v)) return v;
    expect(path, "rws_cover", rows, cols, out_rows, out_cols, where);
    return rws__returns(path,
                        rws__record(path, &rws_op_cover, (rws_op_args){.k = rows, .offset = out_rows, .t = (float)cols},
                                    &where, 1, out_rows * out_cols));
}

/* ---- attend: two rows of the image are mixed first, as far as the window is wide, then the mix is resampled along
 * x */

typedef struct {
    rws_resampler x, y;
    float        *mix, *change; /* the image at Y, a line between two zeros, and its derivative by Y */
    float        *line;         /* a line of the output */
} reader;

static reader reader_new(const rws_call *c)
{
    const int rows = c->args.k, cols = c->in[0].dim / rows, out_rows = c->args.offset, out_cols = c->dim / out_rows;
    reader    a;
    rws__resampler_init(&a.x, c->arena, cols, out_cols);
    rws__resampler_init(&a.y, c->arena, rows, out_rows);
    a.mix = RWS_NEW0(c->arena, float, cols + 2 + RWS_ROOM);
    a.change = RWS_NEW0(c->arena, float, cols + 2);
    a.line = RWS_NEW(c->arena, float, rws__lanes_up(out_cols));
    return a;
}

static void reader_lay(reader *a, const float *where)
{
    rws__resampler_lay(&a->x, where[0], where[2]);
    rws__resampler_lay(&a->y, where[1], where[3]);
}

/* The columns of the image that the window reads. X may rise or fall. */
static void reader_span(const reader *a, int *first, int *end)
{
    const int32_t left = a->x.at[a->x.begin], right = a->x.at[a->x.stop - 1];
    *first = (left < right ? left : right) - 1;
    *end = (left < right ? right : left) + 1;
    if (*first < 0) *first = 0;
    if (*end > a->x.n_source) *end = a->x.n_source;
}

static const float *row_of(const reader *a, const float *image, int row)
{
    return row >= 0 && row < a->y.n_source ? image + (size_t)row * (size_t)a->x.n_source : NULL;
}

/* mix = the image at Y_i; if `moves`, change = its derivative by Y */
static void reader_mix(const reader *a, const float *image, int i, bool moves)
{
    const float *lower = row_of(a, image, a->y.at[i] - 1), *upper = row_of(a, image, a->y.at[i]);
    const float  low = a->y.low[i], high = a->y.high[i];
    float *restrict mix = a->mix + 1, *restrict change = a->change + 1;
    int first, end;
    reader_span(a, &first, &end);
    if (lower && upper)
#pragma omp simd
        for (int j = first; j < end; j++) mix[j] = low * lower[j] + high * upper[j];
    else
        for (int j = first; j < end; j++) mix[j] = lower ? low * lower[j] : high * upper[j];
    for (int j = first; j < end && moves; j++) change[j] = (upper ? upper[j] : 0) - (lower ? lower[j] : 0);
}

static void fill_nan(float *out, int n)
{
    for (int i = 0; i < n; i++) out[i] = NAN;
}

static void attend_forward(rws_call *c)
{
    const rws_view *image = &c->in[0], *where = &c->in[1];
    rws_arena_mark  mark = rws__arena_at(c->arena);
    reader          a = reader_new(c);
    const int       cols = a.x.n;
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const float *from = rws__view_row(image, r);
        float       *out = c->out + r * (size_t)c->dim;
        reader_lay(&a, rws__view_row(where, r));
        if (rws__where_is_nan(rws__view_row(where, r))) {
            fill_nan(out, c->dim);
            continue;
        }
        if (a.x.begin != 0 || a.x.stop != a.x.n || a.y.begin != 0 || a.y.stop != a.y.n || a.x.begin == a.x.stop)
            memset(out, 0, (size_t)c->dim * sizeof *out);
        if (a.x.begin == a.x.stop) continue;
        for (int i = a.y.begin; i < a.y.stop; i++) {
            reader_mix(&a, from, i, false);
            rws__resampler_apply(&a.x, a.mix, a.line);
            memcpy(out + (size_t)i * (size_t)cols + a.x.begin, a.line + a.x.begin,
                   (size_t)(a.x.stop - a.x.begin) * sizeof *out);
        }
    }
    rws__arena_release(c->arena, mark);
}

static void attend_back_row(reader *a, const float *image, int i, const float *g, float *by_image, bool moves)
{
    const rws_resampler *x = &a->x;
    const int            row = a->y.at[i] - 1, cols = x->n_source;
    if (moves) {
        float slope = 0;
        reader_mix(a, image, i, true);
        for (int j = x->begin; j < x->stop; j++) {
            const int32_t at = x->at[j];
            x->by[j] += g[j] * (a->mix[at + 1] - a->mix[at]);
            slope += g[j] * (x->low[j] * a->change[at] + x->high[j] * a->change[at + 1]);
        }
        a->y.by[i] += slope;
    }
    for (int side = 0; side < 2 && by_image; side++) {
        if (row + side < 0 || row + side >= a->y.n_source) continue;
        float      *to = by_image + (size_t)(row + side) * (size_t)cols;
        const float weight = side ? a->y.high[i] : a->y.low[i];
        for (int j = x->begin; j < x->stop; j++) {
            const int32_t at = x->at[j] - 1;
            if (at >= 0) to[at] += weight * x->low[j] * g[j];
            if (at + 1 < cols) to[at + 1] += weight * x->high[j] * g[j];
        }
    }
}

static void attend_backward(rws_call *c)
{
    const rws_view *image = &c->in[0], *where = &c->in[1];
    rws_arena_mark  mark = rws__arena_at(c->arena);
    reader          a = reader_new(c);
    for (int s = 0; s < 2; s++) rws__call_clear(c, s);
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const float *from = rws__view_row(image, r);
        const float *g = c->gout + r * (size_t)c->dim;
        float       *by_image = rws__call_sink_row(c, 0, r), *by_where = rws__call_sink_row(c, 1, r);
        reader_lay(&a, rws__view_row(where, r));
        for (int i = a.y.begin; i < a.y.stop && a.x.begin < a.x.stop; i++)
            attend_back_row(&a, from, i, g + (size_t)i * (size_t)a.x.n, by_image, by_where);
        if (!by_where) continue;
        float by_p, by_q;
        for (int axis = 0; axis < 2; axis++) {
            rws__resampler_slopes(axis ? &a.y : &a.x, &by_p, &by_q);
            by_where[axis] += by_p;
            by_where[axis + 2] += by_q;
        }
    }
    rws__arena_release(c->arena, mark);
}

/* ---- place, and cover: the same for a glimpse of ones, whose only input is `where` */

static rws_window window_new(const rws_call *c, int cols)
{
    rws_window w;
    rws__window_init(&w, c->arena, c->args.k, cols, c->args.offset, c->dim / c->args.offset);
    return w;
}

static void put_forward(rws_call *c, const rws_view *glimpse, const rws_view *where, int cols)
{
    rws_arena_mark mark = rws__arena_at(c->arena);
    rws_window     w = window_new(c, cols);
    float         *line = RWS_NEW(c->arena, float, w.stride);
    const size_t   wide = (size_t)w.x.n;
    for (size_t r = 0; r < (size_t)c->n; r++) {
        float *out = c->out + r * (size_t)c->dim;
        rws__window_lay(&w, rws__view_row(where, r), glimpse ? rws__view_row(glimpse, r) : NULL);
        if (rws__where_is_nan(rws__view_row(where, r))) {
            fill_nan(out, c->dim);
            continue;
        }
        memset(out, 0, (size_t)c->dim * sizeof *out);
        for (int i = w.y.begin; i < w.y.stop; i++) {
            memset(line, 0, (size_t)w.stride * sizeof *line);
            rws__window_add(&w, i, glimpse ? line : NULL, glimpse ? NULL : line);
            memcpy(out + (size_t)i * wide, line, wide * sizeof *out);
        }
    }
    rws__arena_release(c->arena, mark);
}

static void put_backward(rws_call *c, int glimpse, int where, int cols)
{
    rws_arena_mark mark = rws__arena_at(c->arena);
    rws_window     w = window_new(c, cols);
    float         *line = RWS_NEW0(c->arena, float, w.stride);
    const size_t   wide = (size_t)w.x.n;
    for (int s = 0; s < c->n_in; s++) rws__call_clear(c, s);
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const rws_view *place = &c->in[where], *from = &c->in[0];
        float          *by_where = rws__call_sink_row(c, where, r),
              *by_glimpse = glimpse < 0 ? NULL : rws__call_sink_row(c, glimpse, r);
        rws__window_lay(&w, rws__view_row(place, r), glimpse < 0 ? NULL : rws__view_row(from, r));
        for (int i = w.y.begin; i < w.y.stop; i++) {
            memcpy(line, c->gout + r * (size_t)c->dim + (size_t)i * wide, wide * sizeof *line);
            rws__window_back(&w, i, glimpse < 0 ? NULL : line, glimpse < 0 ? line : NULL, by_where);
        }
        rws__window_back_end(&w, by_glimpse, by_where);
    }
    rws__arena_release(c->arena, mark);
}

static void place_forward(rws_call *c)
{
    put_forward(c, &c->in[0], &c->in[1], c->in[0].dim / c->args.k);
}

static void place_backward(rws_call *c)
{
    put_backward(c, 0, 1, c->in[0].dim / c->args.k);
}

static void cover_forward(rws_call *c)
{
    put_forward(c, NULL, &c->in[0], (int)c->args.t);
}

static void cover_backward(rws_call *c)
{
    put_backward(c, -1, 0, (int)c->args.t);
}

const rws_op rws_op_attend = {
    .name = "attend", .forgets = true, .forward = attend_forward, .backward = attend_backward};
const rws_op rws_op_place = {.name = "place", .forgets = true, .forward = place_forward, .backward = place_backward};
const rws_op rws_op_cover = {.name = "cover", .forgets = true, .forward = cover_forward, .backward = cover_backward};
