/* bits.h - matrix products with a matrix of zeros and ones on one side.
 *
 * Four bits select among four rows of B, which have 16 possible sums. The sums are made once, in a table; then one
 * addition takes the place of four multiplications:
 *
 *     x  0 1 1 0 | 1 0 0 1 | …          table of b0 … b3:   0, b0, b1, b0 + b1, b2, …
 *        \_____/                        c += table[6]
 *
 * Bits may stand for any two numbers: 0 for shift and 1 for scale + shift. Signs are 2x - 1.
 */
#ifndef RWS_TENSOR_BITS_H
#define RWS_TENSOR_BITS_H

#include "base/arena.h"

/* C[m,n] = S + (scale X[m,k] + shift) B[k,n]. The summand S is given as in rws__gemm_nn, but must not be C itself. The
 * rows of X follow each other without gaps. */
void rws__bits_nn(int m, int n, int k, const float *x, float scale, float shift, const float *b, int ldb,
                  const float *from, int step, float *c, int ldc, rws_arena *scratch);

/* C[m,n] += A[k,m]^T (scale X[k,n] + shift). The rows of X follow each other without gaps. */
void rws__bits_tn(int m, int n, int k, const float *a, int lda, const float *x, float scale, float shift, float *c,
                  int ldc, rws_arena *scratch);

#endif
