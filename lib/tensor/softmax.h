/* softmax.h - the softmax of many short rows, for ops that need its parts. */
#ifndef RWS_TENSOR_SOFTMAX_H
#define RWS_TENSOR_SOFTMAX_H

#include "tensor/columns.h"

/* The exponents: rows of (x + times y) / t. `times` and `t` have one number for each row. y NULL stands for 0, times
 * NULL and t NULL for 1. */
typedef struct {
    const rws_view *x, *y;
    const float    *times, *t;
} rws_exponents;

/* Where results go. p and log_p (which may be NULL) are matrices of all rows; top and log_total have a number for each
 * row asked for, beginning with the first, and space for eight more. The log-sum-exp of a row is top + log_total, where
 * top is its largest exponent. */
typedef struct {
    float *p, *log_p, *top, *log_total;
} rws_softmax_rows;

/* The softmax of rows first … end - 1, at most rws__columns_tile(dim) of them. A row whose exponents are all -inf has
 * p = NaN. */
void rws__softmax(const rws_exponents *e, size_t first, size_t end, size_t dim, rws_softmax_rows to, rws_v8 *scratch);

static inline rws_v8 *rws__softmax_scratch(rws_arena *arena, size_t dim)
{
    return RWS_NEW(arena, rws_v8, (rws__columns_tile(dim) / 4 + 1) * dim);
}

#endif
