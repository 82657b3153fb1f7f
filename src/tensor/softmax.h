/* softmax.h - the softmax of many short rows, for ops that need more than one thing of it. */
#ifndef RWS_TENSOR_SOFTMAX_H
#define RWS_TENSOR_SOFTMAX_H

#include "tensor/columns.h"

/* What the exponentials are taken of: rows of x + times y, over t. y may be NULL, times, by row, too: 1, and t: 1. */
typedef struct {
    const rws_view *x, *y;
    const float    *times, *t;
} rws_exponents;

/* Where to put what: p and log_p (or NULL) by row of all, the others from the first row asked for, with room for eight
 * more. The log-sum-exp of a row is top + log_total, where top is its largest exponent. */
typedef struct {
    float *p, *log_p, *top, *log_total;
} rws_softmax_rows;

/* Of rows first … end - 1, at most rws_columns_tile(dim) of them. A row that is all impossible has p = NaN. */
void rws_softmax(const rws_exponents *e, size_t first, size_t end, size_t dim, rws_softmax_rows to, rws_v8 *scratch);

static inline rws_v8 *rws_softmax_scratch(rws_arena *arena, size_t dim)
{
    return RWS_NEW(arena, rws_v8, (rws_columns_tile(dim) / 4 + 1) * dim);
}

#endif
