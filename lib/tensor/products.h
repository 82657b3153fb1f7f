/* products.h - gradients of weights, deferred to the end of backward.
 *
 * The gradient of a weight is a sum of outer products over all rows of all calls that used it. Backward only notes the
 * rows; at the end they meet in one matrix product per weight, instead of one thin product per call. The noted products
 * of several passes can also be added up for a few rows of a weight at a time (rws__products_sum), by the thread that is
 * about to step these rows.
 */
#ifndef RWS_TENSOR_PRODUCTS_H
#define RWS_TENSOR_PRODUCTS_H

#include "base/arena.h"
#include "tensor/params.h"

typedef struct {
    const rws_param *w;
    int              offset, n_x, n; /* columns offset … offset + n_x - 1 of w; n rows */
    const float     *x, *dy;         /* n x n_x and n x w->rows; must last until rws__products_flush */
    bool             bits;           /* x is zeros and ones; the factor of the product is scale x + shift */
    float            scale, shift;
    int              next; /* the next product of the same columns of w, while products are joined; -1: none */
} rws_product;

struct rws_products {
    rws_product *list; /* in the arena */
    int          n, capacity;
    rws_arena   *arena; /* the owner's, who clears the list when it resets the arena */
};

typedef struct rws_products rws_products;

void rws__products_add(rws_products *p, rws_product product);

/* The product x^T dy with a single column x, which is not deferred: to[j] += the sum over n rows of x times column j of
 * dy. x NULL stands for ones; the sum is then the gradient of a bias. */
void rws__products_columns(const float *x, const float *dy, size_t n, size_t dim, float *to);

/* Stacks thin products of the same columns of a weight, so that fewer and thicker products are left. Memory taken from
 * the arena must last as long as the products. */
void rws__products_join(rws_products *p, rws_arena *arena);

/* Adds the noted products of rows first … end - 1 of w to a gradient, which is laid out like the flat parameter vector.
 * False if there were none. */
bool rws__products_sum(const rws_products *p, const rws_param *w, int first, int end, float *gradient,
                       rws_arena *scratch);

/* Adds all noted products to the gradient and clears the list. */
void rws__products_flush(rws_products *p, float *gradient, rws_arena *scratch);

#endif
