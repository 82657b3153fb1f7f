/* gemm.h - matrix products, row-major, single precision, one thread.
 *
 * Products are computed on the thread that calls; they take no memory.
 */
#ifndef RWS_TENSOR_GEMM_H
#define RWS_TENSOR_GEMM_H

#include "rws.h"

/* C[m,n] = S + A[m,k] B[k,n]. The rows of the summand S begin at `from` and are `step` numbers apart. S may be C itself
 * (from c, step ldc), one row for all rows of C (a bias: step 0), or zero (from NULL). */
void rws__gemm_nn(int m, int n, int k, const float *a, int lda, const float *b, int ldb, const float *from, int step,
                  float *c, int ldc);

/* The same with B[n,k]^T. */
void rws__gemm_nt(int m, int n, int k, const float *a, int lda, const float *b, int ldb, const float *from, int step,
                  float *c, int ldc);

/* C[m,n] += A[k,m]^T B[k,n] */
void rws__gemm_tn(int m, int n, int k, const float *a, int lda, const float *b, int ldb, float *c, int ldc);

/* How many floating-point operations the products of this thread have taken so far. */
extern _Thread_local uint64_t rws_gemm_flops;

#endif
