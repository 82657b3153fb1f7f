/* products.h - weight gradients, put off to the end of backward.
 *
 * The gradient of a weight is a sum of outer products over all rows of all calls that used it. Backward only notes the
 * rows; at the end they meet in one matrix product per weight, instead of one thin product per call. Those of several
 * backwards can be added up a few rows of a weight at a time, by whoever is about to use these.
 */
#ifndef RWS_TENSOR_PRODUCTS_H
#define RWS_TENSOR_PRODUCTS_H

#include "base/arena.h"
#include "tensor/params.h"

typedef struct {
    const rws_param *w;
    int              offset, n_x, n; /* columns offset … offset + n_x - 1 of w; n rows */
    const float     *x, *dy;         /* n x n_x and n x w->rows; must last until rws_products_flush */
    bool             bits;           /* x is zeros and ones, */
    float            scale, shift;   /* which stand for scale x + shift */
    int              next;           /* of the same block, while they are joined */
} rws_product;

struct rws_products {
    rws_product *list; /* in the arena */
    int          n, capacity;
    rws_arena   *arena; /* of the owner, who forgets the list when it is reset */
};

typedef struct rws_products rws_products;

void rws_products_add(rws_products *p, rws_product product);

/* The product with a single column, x^T dy, is not put off: to[j] += the sum over n rows of x times column j of dy. x may
 * be NULL: ones, and this the gradient of a bias. */
void rws_products_columns(const float *x, const float *dy, size_t n, size_t dim, float *to);

/* Puts thin products of the same block one below the other, so that fewer and thicker ones are left. What is taken from
 * the arena must last as long as they. */
void rws_products_join(rws_products *p, rws_arena *arena);

/* Rows first … end - 1 of w in a gradient (laid out like the flat parameter vector) += what was noted of them. False if
 * there was nothing. */
bool rws_products_sum(const rws_products *p, const rws_param *w, int first, int end, float *gradient,
                      rws_arena *scratch);

/* gradient += everything noted; forgets it. */
void rws_products_flush(rws_products *p, float *gradient, rws_arena *scratch);

#endif
