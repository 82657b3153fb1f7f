/* kernels.c - the edit distance of sequences, and log-densities of sequences for rws_simulate. */
#include "rws.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ON_STACK 3072 /* ints; longer sequences take memory for each comparison */

/* Row by row. */
int rws_edit_distance(const int *a, int n_a, const int *b, int n_b, int *row)
{
    /* A common beginning and a common end cost nothing. */
    while (n_a > 0 && n_b > 0 && a[0] == b[0]) a++, b++, n_a--, n_b--;
    while (n_a > 0 && n_b > 0 && a[n_a - 1] == b[n_b - 1]) n_a--, n_b--;
    if (n_a < n_b) {
        const int *s = a, n = n_a;
        a = b, n_a = n_b;
        b = s, n_b = n;
    }
    if (n_b == 0) return n_a;

    /* row[j] is the distance of a's first i tokens and b's first j; `diagonal` is row[j - 1] as it was for i - 1. */
    for (int j = 0; j <= n_b; j++) row[j] = j;
    for (int i = 1; i <= n_a; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= n_b; j++) {
            int least = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            if (row[j] + 1 < least) least = row[j] + 1;
            if (row[j - 1] + 1 < least) least = row[j - 1] + 1;
            row[j] = least;
        }
    }
    return row[n_b];
}

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
