/* gemm.h - matrix products, row-major, single precision, one thread.
 *
 * OpenBLAS does the work; products that are too thin for it are plain loops.
 */
#ifndef RWS_TENSOR_GEMM_H
#define RWS_TENSOR_GEMM_H

#include "rws.h"

/* Must be called once before any product: one BLAS thread, and a refusal of OpenBLAS's serial build, whose answers are
 * wrong when two threads call it. */
rws_status rws_gemm_init(rws_error *err);

/* C[m,n] = S + A[m,k] B[k,n]. The summand S is given by its rows `from`, `step` apart: C itself (from c, step ldc), a
 * single row for all (a bias: step 0), or nothing (NULL). */
void rws_gemm_nn(int m, int n, int k, const float *a, int lda, const float *b, int ldb, const float *from, int step,
                 float *c, int ldc);

/* The same with B[n,k]^T. */
void rws_gemm_nt(int m, int n, int k, const float *a, int lda, const float *b, int ldb, const float *from, int step,
                 float *c, int ldc);

/* C[m,n] += A[k,m]^T B[k,n] */
void rws_gemm_tn(int m, int n, int k, const float *a, int lda, const float *b, int ldb, float *c, int ldc);

/* Floating-point operations asked for so far by this thread. */
extern _Thread_local uint64_t rws_gemm_flops;

#endif
