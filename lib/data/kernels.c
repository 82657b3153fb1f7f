/* kernels.c - log-densities of sequences, for rws_simulate. */
#include "data/edit.h"
#include "rws.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ON_STACK 3072 /* ints; longer sequences take memory for each comparison */

static int length_of(const float *sequence, int dim)
{
    const float n = sequence[0];
    return n >= 0 && n < (float)dim ? (int)n : dim - 1;
}

double rws_edit_kernel(const float *datum, const float *made, int dim, const void *context)
{
    (void)context;
    const int    n_a = length_of(datum, dim), n_b = length_of(made, dim);
    const size_t n = 2 * (size_t)(n_a + n_b) + 1;
    int          few[ON_STACK], *many = n > ON_STACK ? malloc(n * sizeof *many) : few;
    if (!many) return NAN;
    int *a = many, *b = a + n_a, *row = b + n_b;
    for (int i = 0; i < n_a; i++) a[i] = (int)datum[1 + i];
    for (int i = 0; i < n_b; i++) b[i] = (int)made[1 + i];
    const double d = rws_edit_distance(a, n_a, b, n_b, row);
    if (many != few) free(many);
    return -d * d;
}

double rws_equal_kernel(const float *datum, const float *made, int dim, const void *context)
{
    (void)context;
    const int n = length_of(made, dim);
    return memcmp(datum, made, (size_t)(1 + n) * sizeof *made) == 0 ? 0 : -INFINITY;
}
