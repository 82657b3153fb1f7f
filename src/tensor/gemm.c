#include "tensor/gemm.h"

#include <cblas.h>

_Thread_local uint64_t rws_gemm_flops;

rws_status rws_gemm_init(rws_error *err)
{
    if (openblas_get_parallel() == OPENBLAS_SEQUENTIAL)
        return rws_fail(err, RWS_BAD_INPUT,
                        "The OpenBLAS in use is the serial build, which gives wrong answers under threads; install "
                        "libopenblas0-pthread and choose it with update-alternatives.");
    openblas_set_num_threads(1);
    return RWS_OK;
}

/* ---- products whose right side is so small that it stays in the first cache: there OpenBLAS spends more time on
 * packing than on multiplying (100 x 16 x 20: 2.0 us, these 0.8). A tile of C stays in registers; A is read by element
 * [i * row + p * step], which makes one kernel of A and its transpose. */

#define SMALL 64 /* columns and depth up to which this pays */

typedef float v8 __attribute__((vector_size(32), aligned(4)));
typedef float v4 __attribute__((vector_size(16), aligned(4)));

typedef struct {
    const float *a, *b;
    float       *c;
    size_t       row, step, ldb, ldc;
    int          k;
} tile;

/* R rows by V vectors of a type; R and V are constants wherever this is inlined, so everything is unrolled. */
#define TILE(name, vector, width)                                                                                  \
    static inline __attribute__((always_inline)) void name(const tile *t, const int R, const int V)                \
    {                                                                                                              \
        vector sum[4][2];                                                                                          \
        for (int i = 0; i < R; i++)                                                                                \
            for (int v = 0; v < V; v++) sum[i][v] = *(const vector *)(t->c + (size_t)i * t->ldc + v * width);      \
        for (int p = 0; p < t->k; p++) {                                                                           \
            const float *b = t->b + (size_t)p * t->ldb, *a = t->a + (size_t)p * t->step;                           \
            for (int i = 0; i < R; i++)                                                                            \
                for (int v = 0; v < V; v++) sum[i][v] += a[(size_t)i * t->row] * *(const vector *)(b + v * width); \
        }                                                                                                          \
        for (int i = 0; i < R; i++)                                                                                \
            for (int v = 0; v < V; v++) *(vector *)(t->c + (size_t)i * t->ldc + v * width) = sum[i][v];            \
    }

TILE(tile8, v8, 8)
TILE(tile4, v4, 4)
TILE(tile1, float, 1)

/* All columns of R rows. */
static inline __attribute__((always_inline)) void strip(tile t, const int R, int n)
{
    const float *b = t.b;
    float       *c = t.c;
    int          j = 0;
    for (; j + 16 <= n; j += 16) t.b = b + j, t.c = c + j, tile8(&t, R, 2);
    if (j + 8 <= n) t.b = b + j, t.c = c + j, tile8(&t, R, 1), j += 8;
    if (j + 4 <= n) t.b = b + j, t.c = c + j, tile4(&t, R, 1), j += 4;
    for (; j < n; j++) t.b = b + j, t.c = c + j, tile1(&t, R, 1);
}

static void small(int m, int n, tile t)
{
    const float *a = t.a;
    float       *c = t.c;
    int          i = 0;
    for (; i + 4 <= m; i += 4) t.a = a + (size_t)i * t.row, t.c = c + (size_t)i * t.ldc, strip(t, 4, n);
    for (; i < m; i++) t.a = a + (size_t)i * t.row, t.c = c + (size_t)i * t.ldc, strip(t, 1, n);
}

void rws_gemm_nn(int m, int n, int k, const float *a, int lda, const float *b, int ldb, float *c, int ldc)
{
    rws_gemm_flops += 2ull * (uint64_t)m * (uint64_t)n * (uint64_t)k;
    if (n <= SMALL && k <= SMALL) small(m, n, (tile){a, b, c, (size_t)lda, 1, (size_t)ldb, (size_t)ldc, k});
    else cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, a, lda, b, ldb, 1, c, ldc);
}

void rws_gemm_tn(int m, int n, int k, const float *a, int lda, const float *b, int ldb, float *c, int ldc)
{
    rws_gemm_flops += 2ull * (uint64_t)m * (uint64_t)n * (uint64_t)k;
    if (n == 1 && ldb == 1 && ldc == 1) { /* a matrix times a vector */
        for (int p = 0; p < k; p++) {
            const float s = b[p];
            const float *restrict v = a + (size_t)p * (size_t)lda;
#pragma omp simd
            for (int i = 0; i < m; i++) c[i] += s * v[i];
        }
    } else if (n <= SMALL && m <= SMALL) {
        /* in pieces of depth, so that what is read again and again stays near */
        for (int p = 0; p < k; p += 128)
            small(m, n,
                  (tile){a + (size_t)p * (size_t)lda, b + (size_t)p * (size_t)ldb, c, 1, (size_t)lda, (size_t)ldb,
                         (size_t)ldc, k - p < 128 ? k - p : 128});
    } else {
        cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, m, n, k, 1, a, lda, b, ldb, 1, c, ldc);
    }
}
