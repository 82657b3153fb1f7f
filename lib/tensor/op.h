/* op.h - an operation on rows: what a kernel gets, and what it must fill.
 *
 * A call is one batched execution of a kernel: n rows, which may belong to different paths. The engine decides which
 * rows meet in a call; an op only computes. Forward fills `out` (n x dim) and may save numbers in `saved`; backward
 * adds to the gradient of each wanted input. An op knows nothing of programs, paths or levels.
 *
 * A number of `gout` that is 0 adds 0 to every gradient, even where the slope is infinite (rws__where): a row that is
 * impossible has the coefficient 0, and the logarithm of its probability has an infinite slope. The tests hold every op
 * to that, at infinite inputs too unless the op is a product with a weight or a matrix.
 *
 *     engine -> call -> [op] -> out, and in reverse: gradient of out -> gradients of the inputs and of the weights
 *
 * Shapes: n rows; input s has in[s].dim columns. Row i of an input is row i of its data or, if it has an index, row
 * row[i].
 *
 * The file of an op holds its forward, backward, tangent and explain functions and the const struct; the op is listed
 * in the table of its folder.
 */
#ifndef RWS_TENSOR_OP_H
#define RWS_TENSOR_OP_H

#include "base/arena.h"
#include "tensor/params.h"

#include <math.h>
#include <stdint.h>

#define RWS_OP_INPUTS 12 /* the most inputs that an op has */

typedef struct {
    const float    *data;
    const uint32_t *row; /* the index; NULL: row i of the input is row i of the data */
    int             dim;
    bool            same; /* every row is row 0 of the data */
    const float    *exp;  /* the exponentials of the data, if the op that made the data saved them; else NULL */
} rws_view;

/* The gradient of an input: row i of the call adds to row i of data, or to row row[i]. */
typedef struct {
    float          *data; /* NULL: this gradient is not wanted */
    const uint32_t *row;
    bool            fresh; /* the memory is not initialised: the op writes every number instead of adding to it */
} rws_sink;

/* The arguments of an op besides its inputs. Rows share a call only if their arguments are equal. */
typedef struct {
    const rws_param *w, *b;   /* weight and bias, or NULL */
    int              offset;  /* the first column of the weight that is multiplied by the input */
    int              k;       /* an integer that the op defines: a function, a first column, a number of rows */
    float            s, t;    /* numbers that the op defines */
    bool             tangent; /* w and b stand for their directional derivatives */
    bool             stop;    /* gradients end here: the value counts as a constant */
    uint8_t          frozen;  /* bits of groups: parameters of these count as constants */
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
    float               *saved;  /* n x in[0].dim, if op->saves; else NULL */
    const float         *kept;   /* input 0 of a product, gathered by forward for backward */
    const uint32_t      *places; /* the index of each row, if the op picks by index */
    rws_op_args          args;
    const float         *w, *wt, *b; /* the weight [out, in], its transpose, the bias */
    float               *gw, *gb;    /* their gradients, NULL if not wanted */
    rws_arena           *arena;      /* memory that lasts until the pass ends, unless released */
    rws_products        *products;
    bool                 refused; /* set by forward if op->explain has a message for one of the rows */
} rws_call;

typedef struct rws_tangent rws_tangent; /* tangent.h */

typedef struct rws_op {
    const char *name;
    bool        saves; /* forward saves n x in[0].dim numbers for backward */
    bool    saves_exp; /* the saved numbers are the exponentials of the output; or the output is a copy of input 0 */
    bool    constant;  /* no gradient passes; backward is NULL */
    uint8_t jumps;     /* bit s: the output may jump as input s changes, and no gradient passes: engine/jump.c */
    bool    local;     /* computed for the rows of the path only, even if its inputs have more rows */
    bool    binary;    /* the output is zeros and ones */
    bool    forgets;   /* backward does not read the output */
    bool    defers;    /* backward notes the gradient of the weight in `products` and adds nothing to gw */
    void (*forward)(rws_call *c);
    void (*backward)(rws_call *c);
    /* Says what is wrong with the inputs of a row: an index out of range, a negative standard deviation. Returns RWS_OK
     * if they are right, else a status and a message. `site` is the last site that the path had visited when it
     * recorded the op, as text (for an op of a distribution, the site that is being visited), or NULL if there was
     * none. explain NULL: any input is right. */
    rws_status (*explain)(const rws_call *c, size_t row, const char *site, rws_error *err);
    /* The directional derivative of the output from those of the inputs (tangent.h). NULL: the op has none. */
    rws_var (*tangent)(rws_tangent *t);
    /* The op that computes the log-density of bits, given the bits and then the inputs of this op, where this op would
     * compute their logits. NULL: the logits are computed first. */
    const struct rws_op *bits_density;
} rws_op;

/* The slope, or 0 where the gradient g that is multiplied by it is 0. */
static inline float rws__where(float g, float slope)
{
    return g == 0 ? 0 : slope;
}

/* Row r of an input, read in place, and row r of a gradient. */
static inline size_t rws__view_index(const rws_view *v, size_t r)
{
    return v->row ? v->row[r] : r;
}

static inline const float *rws__view_row(const rws_view *v, size_t r)
{
    return v->data + rws__view_index(v, r) * (size_t)v->dim;
}

static inline float *rws__sink_row(const rws_sink *g, size_t r, size_t dim)
{
    return g->data + (g->row ? g->row[r] : r) * dim;
}

/* Number j of row r of an input. An input of one column has the same number for every j. */
static inline float rws__view_at(const rws_view *v, size_t r, size_t j)
{
    return rws__view_row(v, r)[v->dim == 1 ? 0 : j];
}

/* Row r of the gradient of input s, to be added to after rws__call_clear; NULL if it is not wanted. */
static inline float *rws__call_sink_row(const rws_call *c, int s, size_t r)
{
    return c->gin[s].data ? rws__sink_row(&c->gin[s], r, (size_t)c->in[s].dim) : NULL;
}

/* Input s as n x dim contiguous numbers: rows are gathered and a single column is repeated as needed. */
const float *rws__call_input(rws_call *c, int s, int dim);

/* Where to add the gradient of input s, n x dim; to be given to rws__call_close when done. NULL if it is not wanted.
 * From rws__call_claim, *fresh tells that the gradient is to be written instead of added to, which saves clearing it. */
float *rws__call_open(rws_call *c, int s, int dim);
float *rws__call_claim(rws_call *c, int s, int dim, bool *fresh);
void   rws__call_clear(rws_call *c, int s); /* zeros a fresh gradient, for ops that add to gin themselves */
void   rws__call_close(rws_call *c, int s, int dim, float *gradient);

/* Whether all numbers of input s, in all rows of the call, are above 0; false if one is NaN. */
bool rws__call_positive(const rws_call *c, int s);

/* A number as messages show it: NaN without a sign. */
static inline double rws__plain(float x)
{
    return isnan(x) ? (double)NAN : (double)x;
}

/* For explain: fails with a message if a number of input s in this row is not above 0. `what` names such a number. */
rws_status rws__explain_positive(const rws_call *c, size_t row, int s, const char *what, const char *site,
                                 rws_error *err);

/* x as an index: a whole number from 0 to n - 1. Returns n if x is anything else. */
static inline uint32_t rws__index(float x, uint32_t n)
{
    const float   within = x >= 0 && x < 0x1p31f ? x : 0.5f;
    const int32_t i = (int32_t)within;
    return (float)i == within && (uint32_t)i < n ? (uint32_t)i : n;
}

/* For explain: fails with a message if input s of this row, a single number, is not an index from 0 to n - 1. */
rws_status rws__explain_index(const rws_call *c, size_t row, int s, uint32_t n, const char *function, const char *site,
                              rws_error *err);

/* The functions that rws_apply knows, by their numbers. */
typedef struct {
    const char *name; /* as in RWS_NAME, in small letters */
    const char *help; /* one line for `rws list` */
} rws_function_info;
extern const rws_function_info rws_functions[RWS_LOG1MEXP + 1];

/* The functions f up to RWS_LOG, whose derivatives f' are functions of y = f(x); those after RWS_LOG belong to the op
 * map. Each function writes n numbers: y = f(x); g f'; and g times the derivative of f' by y. */
void rws__function_apply(rws_function f, size_t n, const float *x, float *y);
void rws__function_slope(rws_function f, size_t n, const float *y, const float *g, float *out);
void rws__function_bend(rws_function f, size_t n, const float *y, const float *g, float *out);

/* The ops that other files than their own record or look for. */
extern const rws_op rws_op_affine, rws_op_detach, rws_op_add, rws_op_sub, rws_op_mul, rws_op_div, rws_op_apply,
    rws_op_apply_tangent, rws_op_clip, rws_op_greater, rws_op_concat, rws_op_slice, rws_op_sum, rws_op_dot,
    rws_op_exp_dot, rws_op_log_softmax, rws_op_log_softmax_pick, rws_op_log_sum_exp, rws_op_argmax, rws_op_pick,
    rws_op_onehot, rws_op_dense, rws_op_bits, rws_op_embed, rws_op_map, rws_op_min, rws_op_max, rws_op_where,
    rws_op_power, rws_op_cumulative, rws_op_total, rws_op_row, rws_op_matmul, rws_op_transpose, rws_op_diagonal,
    rws_op_add_diagonal, rws_op_triangle, rws_op_cholesky, rws_op_solve;

/* What op triangle leaves above the diagonal and on it; see matrix.c. */
enum { RWS_TRIANGLE, RWS_TRIANGLE_HALVED, RWS_TRIANGLE_MIRRORED };

/* The table of a folder's ops, from a list LIST(OP) = OP(add) OP(sub) …: an array of pointers that ends with NULL. */
#define RWS_OP_DECLARE(op) extern const rws_op rws_op_##op;
#define RWS_OP_POINTER(op) &rws_op_##op,
#define RWS_OP_TABLE(table, LIST) LIST(RWS_OP_DECLARE) const rws_op *const table[] = {LIST(RWS_OP_POINTER) NULL}

/* Every op of this folder. The folders dist and nn have tables of their own; the tests walk all of them. */
extern const rws_op *const rws_tensor_ops[];

#endif
