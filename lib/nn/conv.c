/* conv.c - two-dimensional convolution and its transpose, as products of matrices (im2col).
 *
 * A picture has C channels of R x W numbers, one behind the other. A grid of places, stride apart, covers it; the K x K
 * numbers of every channel at a place are a patch:
 *
 *     patches [C K K, places]         row (c, a, b) has, for every place, number (a, b) of its patch in channel c
 *
 *     conv2d             out [n_out, places] = W [n_out, C K K] patches(x) + b                   x is the picture
 *     conv_transpose2d   out = picture whose patches add up to  W^T x, + b;  W is [n_in, C K K]   x is [n_in, places]
 *
 * Each computes the gradient of the input of the other. Layouts and sizes are PyTorch's. args.k packs rows and columns
 * of the picture, args.offset kernel, stride and padding.
 */
#include "nn/layer.h"

#include "tensor/gemm.h"
#include "tensor/rows.h"
#include "tensor/tangent.h"

#include <stdio.h>
#include <string.h>

extern const rws_op rws_op_conv2d, rws_op_conv_transpose2d; /* below */

typedef struct {
    rws_layer   layer;
    rws_param  *w, *b;
    rws_op_args args;
    int         channels, rows, cols; /* of what comes out */
} conv;

const rws_layer_kind rws_conv2d_kind = {"conv2d", "a convolution of pictures, like nn.Conv2d"};
const rws_layer_kind rws_conv_transpose2d_kind = {"conv_transpose2d",
                                                  "a convolution that enlarges pictures, like nn.ConvTranspose2d"};

/* ---- declaration */

enum { LONGEST = 4096, WIDEST = 127 }; /* side of a picture; kernel, stride and padding */

static bool between(int x, int low, int high)
{
    return x >= low && x <= high;
}

/* What a description must be and is not; NULL: all is well. */
static const char *fault(const rws_conv *how, int stride, bool transposed)
{
    if (!how) return "a description, not NULL";
    if (!between(how->n_in, 1, 1 << 16) || !between(how->n_out, 1, 1 << 16)) return "1 to 65536 channels on each side";
    if (!between(how->rows, 1, LONGEST) || !between(how->cols, 1, LONGEST))
        return "pictures of 1 to 4096 rows and columns";
    if (!between(how->kernel, 1, WIDEST) || !between(stride, 1, WIDEST)) return "a kernel and a stride of 1 to 127";
    if (!between(how->padding, 0, WIDEST)) return "a padding of 0 to 127";
    if (how->output_padding && !transposed) return "no output padding, which is for the transposed convolution";
    if (!between(how->output_padding, 0, stride - 1)) return "an output padding that is below the stride";
    return NULL;
}

/* How many rows, or columns, come out if n go in; 0 or less: a kernel does not fit. */
static int side(const rws_conv *how, int stride, int n, bool transposed)
{
    if (transposed) return (n - 1) * stride - 2 * how->padding + how->kernel + how->output_padding;
    const int steps = n + 2 * how->padding - how->kernel;
    return steps < 0 ? 0 : steps / stride + 1;
}

static rws_layer *declare(rws_setup *s, rws_group group, const rws_layer_kind *kind, const char *name,
                          const rws_conv *how, bool transposed)
{
    conv       *l = rws__layer_new(s, kind, sizeof *l, name, 1, 1);
    rws_layer  *base = &l->layer;
    char        full[160];
    const int   stride = how && how->stride ? how->stride : 1;
    const char *wrong = fault(how, stride, transposed);
    const int   rows = wrong ? 1 : side(how, stride, how->rows, transposed),
              cols = wrong ? 1 : side(how, stride, how->cols, transposed);
    if (!wrong && (!between(rows, 1, LONGEST) || !between(cols, 1, LONGEST)))
        wrong = "pictures that its kernel fits into, and makes some of at most 4096 rows and columns";
    if (!wrong &&
        ((int64_t)how->n_out * rows * cols > INT32_MAX || (int64_t)how->n_in * how->rows * how->cols > INT32_MAX))
        wrong = "and makes pictures of fewer numbers";
    if (wrong && s->status == RWS_OK)
        s->status = rws_fail(&s->error, RWS_BAD_INPUT, "The %s \"%s\" takes %s.", kind->name, base->name, wrong);
    if (wrong) return base;
    const int K = how->kernel, high = transposed ? rows : how->rows, wide = transposed ? cols : how->cols;
    const int n_rows = transposed ? how->n_in : how->n_out, n_cols = (transposed ? how->n_out : how->n_in) * K * K;
    base->n_in = how->n_in * how->rows * how->cols;
    base->n_out = how->n_out * rows * cols;
    l->channels = how->n_out, l->rows = rows, l->cols = cols;
    snprintf(full, sizeof full, "%s.weight", base->name);
    l->w = rws_setup_param(s, group, full, n_rows, n_cols, RWS_UNIFORM);
    l->w->kernel = K;
    snprintf(full, sizeof full, "%s.bias", base->name);
    l->b = rws__setup_param_scaled(s, group, full, 1, how->n_out, RWS_UNIFORM, n_cols);
    l->args =
        (rws_op_args){.w = l->w, .b = l->b, .k = high << 16 | wide, .offset = K | stride << 8 | how->padding << 16};
    return base;
}

rws_layer *rws_setup_conv2d(rws_setup *s, rws_group group, const char *name, const rws_conv *how)
{
    return declare(s, group, &rws_conv2d_kind, name, how, false);
}

rws_layer *rws_setup_conv_transpose2d(rws_setup *s, rws_group group, const char *name, const rws_conv *how)
{
    return declare(s, group, &rws_conv_transpose2d_kind, name, how, true);
}

int rws_layer_picture(const rws_layer *l, int *channels, int *rows, int *cols)
{
    const bool  is_conv = l->kind == &rws_conv2d_kind || l->kind == &rws_conv_transpose2d_kind;
    const conv *own = is_conv ? (const conv *)l : NULL;
    if (channels) *channels = own ? own->channels : 1;
    if (rows) *rows = own ? own->rows : 1;
    if (cols) *cols = own ? own->cols : l->n_out;
    return l->n_out;
}

static rws_var apply(rws_path *path, const rws_layer *l, const rws_layer_kind *kind, const rws_op *op, rws_var x)
{
    rws_var v;
    if (rws__replayed_as(path, &v, kind == &rws_conv2d_kind ? "rws_conv2d" : "rws_conv_transpose2d")) return v;
    const conv *own = rws__layer_expect(path, l, kind);
    if (rws_dim(path, x) != l->n_in)
        rws__path_mistake(path, "layer \"%s\" takes %d inputs, not %d.", l->name, l->n_in, rws_dim(path, x));
    return rws__returns(path, rws__record(path, op, own->args, &x, 1, l->n_out));
}

rws_var rws_conv2d(rws_path *path, const rws_layer *l, rws_var pictures)
{
    return apply(path, l, &rws_conv2d_kind, &rws_op_conv2d, pictures);
}

rws_var rws_conv_transpose2d(rws_path *path, const rws_layer *l, rws_var pictures)
{
    return apply(path, l, &rws_conv_transpose2d_kind, &rws_op_conv_transpose2d, pictures);
}

/* ---- patches */

typedef struct {
    int C, rows, cols, K, stride, padding; /* of the picture that has patches */
    int down, across;                      /* places below and beside each other */
    int places, n_rows, n_cols;            /* n_rows, n_cols: of the weight */
} plan;

static plan plan_of(const rws_call *c)
{
    plan p = {.rows = c->args.k >> 16, .cols = c->args.k & 0xffff, .K = c->args.offset & 0xff};
    p.stride = c->args.offset >> 8 & 0xff;
    p.padding = c->args.offset >> 16;
    p.n_rows = c->args.w->rows;
    p.n_cols = c->args.w->cols;
    p.C = p.n_cols / (p.K * p.K);
    p.down = (p.rows + 2 * p.padding - p.K) / p.stride + 1;
    p.across = (p.cols + 2 * p.padding - p.K) / p.stride + 1;
    p.places = p.down * p.across;
    return p;
}

/* The places first … end - 1 of a row (or column) for which number a of the patch is inside of a picture of n numbers.
 * */
static void inside(const plan *p, int a, int n, int places, int *first, int *end)
{
    const int low = p->padding - a, high = n + p->padding - a; /* low <= place * stride < high */
    *first = low > 0 ? (low + p->stride - 1) / p->stride : 0;
    *end = high > 0 ? (high + p->stride - 1) / p->stride : 0;
    if (*end > places) *end = places;
    if (*first > *end) *first = *end;
}

/* Executes `statement` for every row `at` of the patches and every row i of the grid where it meets the picture. Places
 * first … end - 1 of that row of the grid are inside of the picture; `strip` is where the row begins in the patches,
 * and `from` where the row that it meets begins in the picture. */
#define EACH_STRIP(p, statement)                                                                             \
    for (int ch = 0, at = 0; ch < (p)->C; ch++)                                                              \
        for (int a = 0; a < (p)->K; a++)                                                                     \
            for (int b = 0; b < (p)->K; b++, at++) {                                                         \
                int top, bottom, first, end;                                                                 \
                inside(p, a, (p)->rows, (p)->down, &top, &bottom);                                           \
                inside(p, b, (p)->cols, (p)->across, &first, &end);                                          \
                for (int i = top; i < bottom; i++) {                                                         \
                    const size_t strip = (size_t)at * (size_t)(p)->places + (size_t)i * (size_t)(p)->across; \
                    const size_t from =                                                                      \
                        ((size_t)ch * (size_t)(p)->rows + (size_t)(i * (p)->stride + a - (p)->padding)) *    \
                        (size_t)(p)->cols;                                                                   \
                    statement;                                                                               \
                }                                                                                            \
            }

static void take_patches(const plan *p, const float *picture, float *patches)
{
    memset(patches, 0, (size_t)p->n_cols * (size_t)p->places * sizeof *patches);
    EACH_STRIP(p, for (int j = first; j < end; j++) patches[strip + (size_t)j] =
                      picture[from + (size_t)(j * p->stride + b - p->padding)])
}

static void add_patches(const plan *p, const float *patches, float *picture)
{
    EACH_STRIP(p, for (int j = first; j < end; j++) picture[from + (size_t)(j * p->stride + b - p->padding)] +=
                  patches[strip + (size_t)j])
}

/* ---- the four products, of one row of the call. `many` is [n_rows, places], `patches` [n_cols, places]. */

/* many = W patches + bias of each row */
static void to_many(const plan *p, const float *w, const float *bias, const float *patches, float *many)
{
    for (int o = 0; o < p->n_rows && bias; o++)
        for (int i = 0; i < p->places; i++) many[(size_t)o * (size_t)p->places + (size_t)i] = bias[o];
    rws__gemm_nn(p->n_rows, p->places, p->n_cols, w, p->n_cols, patches, p->places, bias ? many : NULL, p->places, many,
                 p->places);
}

/* patches = W^T many */
static void to_patches(const plan *p, const float *w, const float *many, float *patches)
{
    memset(patches, 0, (size_t)p->n_cols * (size_t)p->places * sizeof *patches);
    rws__gemm_tn(p->n_cols, p->places, p->n_rows, w, p->n_cols, many, p->places, patches, p->places);
}

/* grad W += many patches^T */
static void to_weight(const plan *p, const float *many, const float *patches, float *gw)
{
    rws__gemm_nt(p->n_rows, p->n_cols, p->places, many, p->places, patches, p->places, gw, p->n_cols, gw, p->n_cols);
}

/* grad b += the sum over each channel of g, channels x size */
static void to_bias(const float *g, int channels, size_t size, float *gb)
{
    for (int o = 0; o < channels; o++) gb[o] += row_sum(g + (size_t)o * size, size);
}

/* ---- conv2d */

static void conv2d_forward(rws_call *c)
{
    const rws_arena_mark mark = rws__arena_at(c->arena);
    const plan           p = plan_of(c);
    float               *patches = RWS_NEW(c->arena, float, (size_t)p.n_cols *(size_t)p.places);
    for (size_t r = 0; r < (size_t)c->n; r++) {
        take_patches(&p, rws__view_row(&c->in[0], r), patches);
        to_many(&p, c->w, c->b, patches, c->out + r * (size_t)c->dim);
    }
    rws__arena_release(c->arena, mark);
}

static void conv2d_backward(rws_call *c)
{
    const rws_arena_mark mark = rws__arena_at(c->arena);
    const plan           p = plan_of(c);
    float               *patches = RWS_NEW(c->arena, float, (size_t)p.n_cols *(size_t)p.places);
    if (c->gin[0].data) rws__call_clear(c, 0);
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const float *g = c->gout + r * (size_t)c->dim;
        if (c->gb) to_bias(g, p.n_rows, (size_t)p.places, c->gb);
        if (c->gw) {
            take_patches(&p, rws__view_row(&c->in[0], r), patches);
            to_weight(&p, g, patches, c->gw);
        }
        if (!c->gin[0].data) continue;
        to_patches(&p, c->w, g, patches);
        add_patches(&p, patches, rws__call_sink_row(c, 0, r));
    }
    rws__arena_release(c->arena, mark);
}

/* ---- conv_transpose2d */

static void conv_transpose2d_forward(rws_call *c)
{
    const rws_arena_mark mark = rws__arena_at(c->arena);
    const plan           p = plan_of(c);
    const size_t         size = (size_t)p.rows * (size_t)p.cols;
    float               *patches = RWS_NEW(c->arena, float, (size_t)p.n_cols *(size_t)p.places);
    for (size_t r = 0; r < (size_t)c->n; r++) {
        float *out = c->out + r * (size_t)c->dim;
        for (size_t i = 0; i < (size_t)c->dim; i++) out[i] = c->b ? c->b[i / size] : 0;
        to_patches(&p, c->w, rws__view_row(&c->in[0], r), patches);
        add_patches(&p, patches, out);
    }
    rws__arena_release(c->arena, mark);
}

static void conv_transpose2d_backward(rws_call *c)
{
    const rws_arena_mark mark = rws__arena_at(c->arena);
    const plan           p = plan_of(c);
    const size_t         size = (size_t)c->in[0].dim;
    float               *patches = RWS_NEW(c->arena, float, (size_t)p.n_cols *(size_t)p.places);
    float               *many = RWS_NEW(c->arena, float, size);
    if (c->gin[0].data) rws__call_clear(c, 0);
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const float *g = c->gout + r * (size_t)c->dim;
        if (c->gb) to_bias(g, p.C, (size_t)p.rows * (size_t)p.cols, c->gb);
        take_patches(&p, g, patches);
        if (c->gw) to_weight(&p, rws__view_row(&c->in[0], r), patches, c->gw);
        if (!c->gin[0].data) continue;
        to_many(&p, c->w, NULL, patches, many);
        row_give(many, size, 1, false, rws__call_sink_row(c, 0, r));
    }
    rws__arena_release(c->arena, mark);
}

/* W dx, and dW x + db */
static rws_var conv_tangent(rws_tangent *t)
{
    rws_op_args args = t->args;
    rws_var     by_w = {0}, by_x = {0};
    if (t->d[0].id) {
        args.b = NULL;
        by_x = rws__tangent_record(t, t->op, args, t->d, 1, t->dim);
    }
    if (t->weight_moves) by_w = rws__tangent_weight(t);
    return rws__tangent_add(t, by_x, by_w);
}

const rws_op rws_op_conv2d = {
    .name = "conv2d", .forgets = true, .tangent = conv_tangent, .forward = conv2d_forward, .backward = conv2d_backward};
const rws_op rws_op_conv_transpose2d = {.name = "conv_transpose2d",
                                        .forgets = true,
                                        .tangent = conv_tangent,
                                        .forward = conv_transpose2d_forward,
                                        .backward = conv_transpose2d_backward};
