/* op.h - an operation on rows: what a kernel gets, and what it must fill.
 *
 * A call is one batched execution: n rows, whoever they belong to. The engine decides which rows meet in a call; an op
 * only computes. Forward fills out (n x dim) and may keep numbers in `saved`; backward adds to the gradient of each
 * wanted input. An op knows nothing of programs, groups or levels.
 *
 *     engine -> call -> [op] -> out, and in reverse: gradient of out -> gradients of the inputs and of the weights
 *
 * Shapes: n rows; in[s] has in[s].dim columns; row i of it is data[i], or data[row[i]] where there is an index.
 */
#ifndef RWS_TENSOR_OP_H
#define RWS_TENSOR_OP_H

#include "base/arena.h"
#include "tensor/params.h"

#include <math.h>

#define RWS_OP_INPUTS 12

typedef struct {
    const float    *data;
    const uint32_t *row; /* NULL: row i is row i */
    int             dim;
    bool            same; /* all rows are one row: row 0 of the data */
    const float    *exp;  /* the exponentials of the data, if they happen to be at hand; else NULL */
} rws_view;

typedef struct {
    float          *data; /* NULL: this gradient is not wanted */
    const uint32_t *row;
    bool            fresh; /* nothing has been added yet: the memory holds garbage, and every number will be written */
} rws_sink;

/* What distinguishes two uses of an op apart from their inputs; part of what must be equal for rows to share a call. */
typedef struct {
    const rws_param *w, *b;   /* weight and bias, or NULL */
    int              offset;  /* first column of the weight that meets the input */
    int              k;       /* an integer constant: a function, a first column, a number of categories */
    float            s, t;    /* real constants */
    bool             tangent; /* w and b stand for their directional derivatives */
    bool             stop;    /* gradients end here: the value counts as a constant */
} rws_op_args;

/* Pairs (x, dy) of rows whose products x^T dy are the gradient of a weight; see products.h. */
typedef struct rws_products rws_products;

typedef struct {
    const struct rws_op *op;
    int                  n, dim, n_in;
    rws_view             in[RWS_OP_INPUTS];
    rws_sink             gin[RWS_OP_INPUTS];
    float               *out;
    const float         *gout;
    float               *saved;  /* n x in[0].dim, if op->saves */
    const float         *kept;   /* input 0 of a product, gathered by forward for backward's use */
    const uint32_t      *places; /* what forward picked, by row */
    rws_op_args          args;
    const float         *w, *wt, *b; /* the weight [out, in], its transpose, the bias */
    float               *gw, *gb;    /* their gradients, NULL if not wanted */
    rws_arena           *arena;      /* what is taken here lasts until the iteration ends, unless released */
    rws_products        *products;
    bool                 refused; /* set by forward if it met a row that op->explain has a sentence for */
} rws_call;

typedef struct rws_tangent rws_tangent; /* tangent.h */

typedef struct rws_op {
    const char *name;
    bool        saves;     /* keeps n x in[0].dim numbers for backward */
    bool        saves_exp; /* … which are the exponentials of its output, or its output is its input */
    bool        constant;  /* no gradient passes */
    bool        local;     /* computed at the rows where the program is, even if its inputs have more */
    bool        binary;    /* the output is zeros and ones */
    bool        forgets;   /* backward does not look at the output */
    bool        defers;    /* the gradient of its weight is in what it notes in products, all of it */
    void (*forward)(rws_call *c);
    void (*backward)(rws_call *c);
    /* Says what is wrong with the inputs of a row: an index out of range, a negative standard deviation. Returns RWS_OK
     * if nothing is, else a status and a sentence. `site` is the last site that the program visited when it recorded the
     * op, as text; of an op that a distribution recorded, its site; NULL: none yet. NULL: any input will do. */
    rws_status (*explain)(const rws_call *c, size_t row, const char *site, rws_error *err);
    /* The directional derivative of the output from those of the inputs (tangent.h); NULL: there is none. */
    rws_var (*tangent)(rws_tangent *t);
    /* The log-density of bits whose logits this op makes, straight from its inputs: takes the bits, then those. NULL: it
     * has none, and the logits are made first. */
    const struct rws_op *bits;
} rws_op;

/* Row r of an input where it is, for ops that need not gather; and of a gradient. */
static inline size_t rws_view_index(const rws_view *v, size_t r)
{
    return v->row ? v->row[r] : r;
}

static inline const float *rws_view_row(const rws_view *v, size_t r)
{
    return v->data + rws_view_index(v, r) * (size_t)v->dim;
}

static inline float *rws_sink_row(const rws_sink *g, size_t r, size_t dim)
{
    return g->data + (g->row ? g->row[r] : r) * dim;
}

/* Number j of row r of an input; a single number stands for all. */
static inline float rws_view_at(const rws_view *v, size_t r, size_t j)
{
    return rws_view_row(v, r)[v->dim == 1 ? 0 : j];
}

/* The gradient of row r of input s, after rws_call_clear; NULL if it is not wanted. */
static inline float *rws_call_sink_row(const rws_call *c, int s, size_t r)
{
    return c->gin[s].data ? rws_sink_row(&c->gin[s], r, (size_t)c->in[s].dim) : NULL;
}

/* Input s as n x dim contiguous numbers, rows gathered and a single column repeated as needed. */
const float *rws_call_input(rws_call *c, int s, int dim);

/* Where to add the gradient of input s, n x dim; give it to rws_call_close when done. NULL if it is not wanted. With
 * rws_call_claim, *fresh tells that it is to be written instead, which saves clearing it first. */
float *rws_call_open(rws_call *c, int s, int dim);
float *rws_call_claim(rws_call *c, int s, int dim, bool *fresh);
void   rws_call_clear(rws_call *c, int s); /* for ops that add to gin themselves */
void   rws_call_close(rws_call *c, int s, int dim, float *gradient);

/* Whether all numbers of input s, in all rows of the call, are above 0; false if one is NaN. */
bool rws_call_positive(const rws_call *c, int s);

/* A number for a sentence: NaN has no sign there. */
static inline double rws_plain(float x)
{
    return isnan(x) ? (double)NAN : (double)x;
}

/* For explain: a sentence if a number of input s in this row is not above 0. `what` is the name of such a number. */
rws_status rws_explain_positive(const rws_call *c, size_t row, int s, const char *what, const char *site,
                                rws_error *err);

/* x as an index among n, which is n itself if x is none: only whole numbers from 0 to n - 1 are. */
static inline uint32_t rws_index(float x, uint32_t n)
{
    const float   within = x >= 0 && x < 0x1p31f ? x : 0.5f;
    const int32_t i = (int32_t)within;
    return (float)i == within && (uint32_t)i < n ? (uint32_t)i : n;
}

/* For explain: a sentence if input s of this row, which has one number, is not an index among n. */
rws_status rws_explain_index(const rws_call *c, size_t row, int s, uint32_t n, const char *function, const char *site,
                             rws_error *err);

/* y = f(x); and g times f's first or second derivative, which all of these functions have as functions of y. */
void rws_function_apply(rws_function f, size_t n, const float *x, float *y);
void rws_function_slope(rws_function f, size_t n, const float *y, const float *g, float *out);
void rws_function_bend(rws_function f, size_t n, const float *y, const float *g, float *out);

/* The ops that other files than their own record or look for. */
extern const rws_op rws_op_affine, rws_op_detach, rws_op_add, rws_op_sub, rws_op_mul, rws_op_div, rws_op_apply,
    rws_op_apply_tangent, rws_op_here, rws_op_clip, rws_op_greater, rws_op_concat, rws_op_slice, rws_op_sum, rws_op_dot,
    rws_op_exp_dot, rws_op_log_softmax, rws_op_log_softmax_pick, rws_op_log_sum_exp, rws_op_argmax, rws_op_pick,
    rws_op_onehot, rws_op_dense, rws_op_bits, rws_op_embed;

/* The table of a room's ops, from a list LIST(OP) = OP(add) OP(sub) …: an array of pointers that ends with NULL. */
#define RWS_OP_DECLARE(op) extern const rws_op rws_op_##op;
#define RWS_OP_POINTER(op) &rws_op_##op,
#define RWS_OP_TABLE(table, LIST) LIST(RWS_OP_DECLARE) const rws_op *const table[] = {LIST(RWS_OP_POINTER) NULL}

/* Every op of this room. The rooms dist, nn and vision have tables of their own; the tests walk all of them. */
extern const rws_op *const rws_tensor_ops[];

#endif
