/* gemm.c - matrix products by kernels of our own where these are faster than OpenBLAS. */
#include "tensor/gemm.h"

#include <cblas.h>
#include <string.h>

_Thread_local uint64_t rws_gemm_flops;

/* OpenBLAS chooses its kernels by the processor. A portable build computes every product here. */
#ifdef RWS_PORTABLE
enum { PORTABLE = 1 };
#else
enum { PORTABLE = 0 };
#endif

rws_status rws_gemm_init(rws_error *err)
{
    if (openblas_get_parallel() == OPENBLAS_SEQUENTIAL)
        return rws_fail(err, RWS_BAD_INPUT,
                        "The OpenBLAS in use is the serial build, which gives wrong answers under threads; install "
                        "libopenblas0-pthread and choose it with update-alternatives.");
    openblas_set_num_threads(1);
    return RWS_OK;
}

/* ---- Products. A tile of C stays in registers. Element (i, p) of A is read at [i * row + p * step], so that one
 * kernel serves A and its transpose. B is read in place where it fits the second cache or where few rows are multiplied
 * by it; otherwise 16 columns of it at a time are copied to a panel first. GFLOP/s of OpenBLAS and of these kernels,
 * with the weights in the third cache:
 *
 *     rows x columns x depth    6 x 300 x 100   40 x 300 x 100   58 x 256 x 256   120 x 256 x 256   120 x 400 x 256
 *                                 25  69           75  86           68  78           80  85            79  84
 */

#define NEAR (1 << 15) /* B of at most so many numbers is read in place */
#define FEW 12         /* A has few rows if it has fewer than these */
#define FAR (1 << 18)  /* B of at most so many numbers is read in place if A has few rows */
#define SMALL 64       /* A^T B with at most so many rows and columns is computed here */
#define SHALLOW 32     /* A^T B that adds up at most so many products is computed here */
#define WIDTH 16       /* columns of a panel */
#define DEPTH 512      /* rows of a panel */
#define TALL 240       /* rows of A that are multiplied by a panel; so many fit the second cache */

typedef float v8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef float v4 __attribute__((vector_size(16), aligned(4), may_alias));

typedef struct {
    const float *a, *b, *from; /* from: the summand S, or NULL */
    float       *c;
    size_t       row, step, ldb, ldf, ldc;
    int          k;
    bool         transposed; /* of `packed` only: B is [n,k] */
} tile;

/* Keeps a vector in a register; the compiler would read it from memory at every use. Without AVX a vector of 8 is two
 * registers, which no constraint of assembly can name. */
#ifdef __AVX__
#define HOLD(vector) __asm__("" : "+x"(vector))
#else
#define HOLD(vector) (void)(vector)
#endif

/* A tile of R rows by `wide` vectors of 8 and `narrow` vectors of 4 (0 or 1). All three are constants wherever this is
 * inlined, so that every loop but the one over k is unrolled. */
static inline __attribute__((always_inline)) void multiply(const tile t, const int R, const int wide, const int narrow)
{
    v8           sum[6][6];
    v4           rest[6];
    const float *a = t.a, *b = t.b;
    for (int i = 0; i < R; i++) {
        const float *from = t.from + (size_t)i * t.ldf;
        for (int v = 0; v < wide; v++) sum[i][v] = t.from ? *(const v8 *)(from + 8 * v) : (v8){0};
        if (narrow) rest[i] = t.from ? *(const v4 *)(from + 8 * wide) : (v4){0};
    }
    for (int p = t.k; p > 0; p--, a += t.step, b += t.ldb) {
        v8 y[6];
        v4 z;
        for (int v = 0; v < wide; v++) {
            y[v] = *(const v8 *)(b + 8 * v);
            HOLD(y[v]);
        }
        if (narrow) {
            z = *(const v4 *)(b + 8 * wide);
            HOLD(z);
        }
        for (int i = 0; i < R; i++) {
            const float x = a[(size_t)i * t.row];
            for (int v = 0; v < wide; v++) sum[i][v] += x * y[v];
            if (narrow) rest[i] += x * z;
        }
    }
    for (int i = 0; i < R; i++) {
        float *to = t.c + (size_t)i * t.ldc;
        for (int v = 0; v < wide; v++) *(v8 *)(to + 8 * v) = sum[i][v];
        if (narrow) *(v4 *)(to + 8 * wide) = rest[i];
    }
}

/* A tile of R rows and one column. */
static inline __attribute__((always_inline)) void multiply_one(const tile t, const int R)
{
    float        sum[6];
    const float *a = t.a, *b = t.b;
    for (int i = 0; i < R; i++) sum[i] = t.from ? t.from[(size_t)i * t.ldf] : 0;
    for (int p = t.k; p > 0; p--, a += t.step, b += t.ldb)
        for (int i = 0; i < R; i++) sum[i] += a[(size_t)i * t.row] * b[0];
    for (int i = 0; i < R; i++) t.c[(size_t)i * t.ldc] = sum[i];
}

/* All columns of R rows, in tiles that have as many vectors as fit the registers: independent sums hide the latency of
 * additions. Four columns alone would not hide it, so they share a tile with others. */
static inline __attribute__((always_inline)) void strip(const tile *all, const int R, int n)
{
    const int most = R == 1 ? 6 : R == 2 ? 4 : R == 3 ? 3 : 2;
    tile      t = *all;
    for (int j = 0, width; j < n; j += width) {
        const int  left = n - j, over = left - 8 * most;
        const bool four = R < 4 && over >= 4 && over < 8;
        t.b = all->b + j, t.c = all->c + j;
        if (all->from) t.from = all->from + j;
        if (four && R < 3) multiply(t, R, most, 1), width = 8 * most + 4;
        else if (over >= 0 && !four && !(R == 4 && left >= 20 && left < 28)) multiply(t, R, most, 0), width = 8 * most;
        else if (R == 1 && left >= 32) multiply(t, R, 4, 0), width = 32;
        else if (R < 5 && left >= 24 && left < 28) multiply(t, R, 3, 0), width = 24;
        else if (R < 5 && left >= 20 && left < 24) multiply(t, R, 2, 1), width = 20;
        else if (left >= 16) multiply(t, R, 2, 0), width = 16;
        else if (left >= 12) multiply(t, R, 1, 1), width = 12;
        else if (left >= 8) multiply(t, R, 1, 0), width = 8;
        else if (left >= 4) multiply(t, R, 0, 1), width = 4;
        else multiply_one(t, R), width = 1;
    }
}

/* How many of the `left` rows, of n columns each, make the next strip: as many as have room for their sums in
 * registers, but not so many that a strip of one or two rows remains, whose few sums would not hide the latency of
 * additions. */
static int rows_of_strip(int left, int n)
{
    const int most = n >= 20 && n < 24 ? 4 : 6;
    return left <= most ? left : left < 2 * most ? (left + 1) / 2 : most;
}

static void small(int m, int n, tile t)
{
    for (int i = 0, rows; i < m; i += rows) {
        rows = rows_of_strip(m - i, n);
        switch (rows) {
        case 6: strip(&t, 6, n); break;
        case 5: strip(&t, 5, n); break;
        case 4: strip(&t, 4, n); break;
        case 3: strip(&t, 3, n); break;
        case 2: strip(&t, 2, n); break;
        default: strip(&t, 1, n);
        }
        t.a += (size_t)rows * t.row, t.c += (size_t)rows * t.ldc;
        if (t.from) t.from += (size_t)rows * t.ldf;
    }
}

/* Copies k rows of `width` columns of B to a panel, and meanwhile prefetches the columns after them: they are one cache
 * line of every row, which no processor prefetches by itself. */
static void copy_panel(const float *b, size_t ldb, int k, int width, float *panel)
{
    if (width == WIDTH)
        for (int p = 0; p < k; p++, b += ldb, panel += WIDTH) {
            __builtin_prefetch(b + WIDTH, 0, 2);
            *(v8 *)panel = *(const v8 *)b;
            *(v8 *)(panel + 8) = *(const v8 *)(b + 8);
        }
    else
        for (int p = 0; p < k; p++, b += ldb, panel += WIDTH) memcpy(panel, b, (size_t)width * sizeof *b);
}

/* Copies `width` rows of B[n,k] to the columns of a panel, a square of 8 x 8 at a time. */
static void copy_panel_transposed(const float *b, size_t ldb, int k, int width, float *panel)
{
    int p = 0;
    for (; width == WIDTH && p + 8 <= k; p += 8)
        for (int i = 0; i < WIDTH; i += 8) {
            v8 from[8], pair[8], quad[8];
            for (int r = 0; r < 8; r++) from[r] = *(const v8 *)(b + (size_t)(i + r) * ldb + p);
            for (int r = 0; r < 8; r += 2) {
                pair[r] = __builtin_shufflevector(from[r], from[r + 1], 0, 8, 1, 9, 4, 12, 5, 13);
                pair[r + 1] = __builtin_shufflevector(from[r], from[r + 1], 2, 10, 3, 11, 6, 14, 7, 15);
            }
            for (int r = 0; r < 8; r += 4)
                for (int h = 0; h < 2; h++) {
                    quad[r + 2 * h] = __builtin_shufflevector(pair[r + h], pair[r + 2 + h], 0, 1, 8, 9, 4, 5, 12, 13);
                    quad[r + 2 * h + 1] =
                        __builtin_shufflevector(pair[r + h], pair[r + 2 + h], 2, 3, 10, 11, 6, 7, 14, 15);
                }
            for (int r = 0; r < 4; r++) {
                float *to = panel + (size_t)(p + r) * WIDTH + i;
                *(v8 *)to = __builtin_shufflevector(quad[r], quad[4 + r], 0, 1, 2, 3, 8, 9, 10, 11);
                *(v8 *)(to + 4 * WIDTH) = __builtin_shufflevector(quad[r], quad[4 + r], 4, 5, 6, 7, 12, 13, 14, 15);
            }
        }
    for (; p < k; p++)
        for (int i = 0; i < width; i++) panel[p * WIDTH + i] = b[(size_t)i * ldb + (size_t)p];
}

static void packed(int m, int n, tile all)
{
    static _Thread_local float panel[DEPTH * WIDTH] __attribute__((aligned(64)));
    for (int p = 0; p < all.k; p += DEPTH)
        for (int i = 0; i < m; i += TALL)
            for (int j = 0; j < n; j += WIDTH) {
                const int width = n - j < WIDTH ? n - j : WIDTH, rows = m - i < TALL ? m - i : TALL;
                tile      t = all;
                t.k = all.k - p < DEPTH ? all.k - p : DEPTH;
                t.a = all.a + (size_t)i * all.row + (size_t)p * all.step;
                t.b = panel, t.ldb = WIDTH;
                t.c = all.c + (size_t)i * all.ldc + j;
                if (p) t.from = t.c, t.ldf = all.ldc;
                else if (all.from) t.from = all.from + (size_t)i * all.ldf + j;
                if (all.transposed) copy_panel_transposed(all.b + (size_t)j * all.ldb + p, all.ldb, t.k, width, panel);
                else copy_panel(all.b + (size_t)p * all.ldb + j, all.ldb, t.k, width, panel);
                small(rows, width, t);
            }
}

/* The tile that is a whole product S + A B, where S is at `from` (or is zero: NULL). */
static tile whole(int k, const float *a, int row, int step, const float *b, int ldb, const float *from, int ldf,
                  float *c, int ldc)
{
    return (tile){.a = a,
                  .row = (size_t)row,
                  .step = (size_t)step,
                  .b = b,
                  .ldb = (size_t)ldb,
                  .from = from,
                  .ldf = (size_t)ldf,
                  .c = c,
                  .ldc = (size_t)ldc,
                  .k = k};
}

static void count_flops(int m, int n, int k)
{
    rws_gemm_flops += 2ull * (uint64_t)m * (uint64_t)n * (uint64_t)k;
}

void rws_gemm_nn(int m, int n, int k, const float *a, int lda, const float *b, int ldb, const float *from, int step,
                 float *c, int ldc)
{
    const size_t right = (size_t)n * (size_t)k;
    const tile   t = whole(k, a, lda, 1, b, ldb, from, step, c, ldc);
    count_flops(m, n, k);
    if (right <= NEAR || (m < FEW && right <= FAR)) small(m, n, t);
    else packed(m, n, t);
}

void rws_gemm_nt(int m, int n, int k, const float *a, int lda, const float *b, int ldb, const float *from, int step,
                 float *c, int ldc)
{
    count_flops(m, n, k);
    if (PORTABLE) {
        tile t = whole(k, a, lda, 1, b, ldb, from, step, c, ldc);
        t.transposed = true;
        packed(m, n, t);
        return;
    }
    for (int i = 0; i < m && from && from != c; i++)
        memcpy(c + (size_t)i * (size_t)ldc, from + (size_t)i * (size_t)step, (size_t)n * sizeof(float));
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, n, k, 1, a, lda, b, ldb, from ? 1 : 0, c, ldc);
}

void rws_gemm_tn(int m, int n, int k, const float *a, int lda, const float *b, int ldb, float *c, int ldc)
{
    count_flops(m, n, k);
    if (n == 1 && ldb == 1 && ldc == 1) { /* a matrix times a vector */
        for (int p = 0; p < k; p++) {
            const float s = b[p];
            const float *restrict v = a + (size_t)p * (size_t)lda;
#pragma omp simd
            for (int i = 0; i < m; i++) c[i] += s * v[i];
        }
    } else if (k <= SHALLOW || (n <= SMALL && m <= SMALL)) {
        /* 128 products at a time, so that the rows which are read repeatedly stay in the cache */
        for (int p = 0; p < k; p += 128)
            small(m, n,
                  whole(k - p < 128 ? k - p : 128, a + (size_t)p * (size_t)lda, 1, lda, b + (size_t)p * (size_t)ldb,
                        ldb, c, ldc, c, ldc));
    } else if (PORTABLE) {
        packed(m, n, whole(k, a, 1, lda, b, ldb, c, ldc, c, ldc));
    } else {
        cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, m, n, k, 1, a, lda, b, ldb, 1, c, ldc);
    }
}
