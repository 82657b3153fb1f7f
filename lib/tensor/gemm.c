/* gemm.c - matrix products by kernels whose vectors are as wide as those of the processor.
 *
 * An element of a product is one sum whose terms are added in the order of the depth k. Its bits depend neither on the
 * width of the vectors nor on the number of rows that are multiplied at a time; they depend on whether the processor
 * multiplies and adds with one rounding.
 *
 * GFLOP/s of one thread of a Xeon of 2.6 GHz with AVX-512, the best of 120 repeats of each in turn; OpenBLAS 0.3.21
 * with its kernels for this processor, oneDNN 2.6:
 *
 *     m x n x k       64 x 16 x 20   7 x 300 x 100   16 x 256 x 256   75 x 256 x 256   200 x 400 x 256
 *     these kernels             82             115              149              153               154
 *     OpenBLAS                  83              79               75              104               111
 *     oneDNN                    53             112              144              149               160
 */
#include "tensor/gemm.h"

#include "tensor/tile.h"

#ifdef __AVX__
#include <immintrin.h>
#endif
#include <string.h>

_Thread_local uint64_t rws_gemm_flops;

/* ---- A vector of W numbers, of which a mask selects the first. Other numbers are neither read nor written. */

#if defined(__AVX512F__)

enum { W = 16 };
typedef float     vec __attribute__((vector_size(64), aligned(4), may_alias));
typedef __mmask16 mask;

static inline mask mask_of(int n)
{
    return (mask)((1u << n) - 1);
}

static inline vec load(const float *p, mask m)
{
    return (vec)_mm512_maskz_loadu_ps(m, p);
}

static inline void store(float *p, mask m, vec v)
{
    _mm512_mask_storeu_ps(p, m, (__m512)v);
}

#elif defined(__AVX__)

enum { W = 8 };
typedef float   vec __attribute__((vector_size(32), aligned(4), may_alias));
typedef __m256i mask;

static inline mask mask_of(int n)
{
    static const int32_t ones[2 * W] = {-1, -1, -1, -1, -1, -1, -1, -1};
    return _mm256_loadu_si256((const __m256i *)(ones + W - n));
}

static inline vec load(const float *p, mask m)
{
    return (vec)_mm256_maskload_ps(p, m);
}

static inline void store(float *p, mask m, vec v)
{
    _mm256_maskstore_ps(p, m, (__m256)v);
}

#else

enum { W = 4 };
typedef float vec __attribute__((vector_size(16), aligned(4), may_alias));
typedef int   mask;

static inline mask mask_of(int n)
{
    return n;
}

static inline vec load(const float *p, mask n)
{
    if (n == W) return *(const vec *)p;
    return (vec){p[0], n > 1 ? p[1] : 0, n > 2 ? p[2] : 0, 0};
}

static inline void store(float *p, mask n, vec v)
{
    for (int i = 0; i < n; i++) p[i] = v[i];
}

#endif

/* ---- Tiles of C, which stay in registers: at most ROWS rows, and as many vectors as leave registers for the vectors
 * of B and a number of A. A processor has 32 or 16 registers. */

#if defined(__AVX512F__) || !defined(__x86_64__)
enum { ROWS = 8 };
#define MOST(rows) ((rows) < 3 ? 8 : (rows) < 5 ? 6 : (rows) < 7 ? 4 : 3)
#else
enum { ROWS = 6 };
#define MOST(rows) ((rows) < 2 ? 6 : (rows) < 3 ? 5 : (rows) < 5 ? 3 : 2)
#endif

#define WIDTH (W * MOST(ROWS)) /* columns of a panel of B */
#define DEPTH 256              /* rows of a panel of B */
#define TALL 240               /* rows of A that are multiplied by a panel; they fit the second cache */
#define NEAR (1 << 17)         /* B of at most so many numbers is read in place: it fits the second cache */
#define FEW 17                 /* B is also read in place if A has fewer rows */
#define WIDE 64                /* a strip of A^T is copied if it is multiplied by at least so many columns */

/* Element (i, p) of A is read at [i * row + p * step], so that one kernel serves A and its transpose. */
typedef struct {
    const float *a, *b, *from; /* from: the summand S, or NULL */
    float       *c;
    size_t       row, step, ldb, ldf, ldc;
    int          k;
    bool         transposed; /* B is [n,k]; it is then always copied to panels */
} tile;

/* Keeps a vector in a register; the compiler would read it from memory at every use. */
#if defined(__AVX512F__)
#define HOLD(vector) __asm__("" : "+v"(vector))
#elif defined(__x86_64__)
#define HOLD(vector) __asm__("" : "+x"(vector))
#else
#define HOLD(vector) (void)(vector)
#endif

#define EACH(i, n) _Pragma("GCC unroll 8") for (int i = 0; i < (n); i++)

/* A tile of R rows by V vectors, the last of which has `last` numbers. R and V are constants wherever this is inlined,
 * so that every loop but the one over k is unrolled. */
static inline __attribute__((always_inline)) void multiply(const tile t, const int R, const int V, const int last)
{
    vec          sum[8][8];
    const float *a = t.a, *b = t.b;
    const mask   all = mask_of(W), end = mask_of(last);
    EACH(i, R)
    EACH(v, V) sum[i][v] = t.from ? load(t.from + (size_t)i * t.ldf + W * v, v == V - 1 ? end : all) : (vec){0};
    for (int p = t.k; p > 0; p--, a += t.step, b += t.ldb) {
        vec y[8];
        EACH(v, V)
        {
            y[v] = v == V - 1 ? load(b + W * v, end) : *(const vec *)(b + W * v);
            HOLD(y[v]);
        }
        EACH(i, R)
        {
            const float x = a[(size_t)i * t.row];
            EACH(v, V) sum[i][v] += x * y[v];
        }
    }
    EACH(i, R)
    EACH(v, V) store(t.c + (size_t)i * t.ldc + W * v, v == V - 1 ? end : all, sum[i][v]);
}

/* The largest of the nearly equal parts, none above `most`, that n is cut into: no small part is left, whose few sums
 * would not hide the latency of additions. */
static int block_size(int n, int most)
{
    const int parts = (n + most - 1) / most;
    return (n + parts - 1) / parts;
}

/* All columns of R rows. Without loads under a mask, whole vectors have a kernel of their own. */
static inline __attribute__((always_inline)) void strip(const tile *whole, const int R, int n)
{
    tile t = *whole;
    for (int j = 0, V; j < n; j += V * W) {
        V = block_size((n - j + W - 1) / W, MOST(R));
        const int left = n - j - (V - 1) * W, last = left < W ? left : W;
        t.b = whole->b + j, t.c = whole->c + j;
        if (whole->from) t.from = whole->from + j;
#define KERNEL(vectors)                                                            \
    case vectors:                                                                  \
        if (vectors <= MOST(R) && W == 4 && last == W) multiply(t, R, vectors, W); \
        else if (vectors <= MOST(R)) multiply(t, R, vectors, last);                \
        break;
        switch (V) {
            KERNEL(1) KERNEL(2) KERNEL(3) KERNEL(4) KERNEL(5) KERNEL(6) KERNEL(7) KERNEL(8)
        }
    }
}

/* A copy of `rows` rows of a transposed A, whose numbers then follow each other: numbers whose distance is a power of
 * two share a few places of a cache. */
static const float *straight(const float *a, size_t step, int k, int rows)
{
    static _Thread_local float copy[DEPTH * ROWS];
    for (int p = 0; p < k; p++, a += step)
        for (int i = 0; i < rows; i++) copy[p * rows + i] = a[i];
    return copy;
}

/* C = S + A B with B read in place. */
static void small(int m, int n, tile t)
{
    const tile all = t;
    for (int i = 0, rows; i < m; i += rows) {
        rows = block_size(m - i, ROWS);
        t.a = all.a + (size_t)i * all.row, t.c = all.c + (size_t)i * all.ldc;
        if (all.from) t.from = all.from + (size_t)i * all.ldf;
        if (all.row == 1 && t.k <= DEPTH && n >= WIDE) t.a = straight(t.a, all.step, t.k, rows), t.step = (size_t)rows;
        switch (rows) {
#if defined(__AVX512F__) || !defined(__x86_64__)
        case 8: strip(&t, 8, n); break;
        case 7: strip(&t, 7, n); break;
#endif
        case 6: strip(&t, 6, n); break;
        case 5: strip(&t, 5, n); break;
        case 4: strip(&t, 4, n); break;
        case 3: strip(&t, 3, n); break;
        case 2: strip(&t, 2, n); break;
        default: strip(&t, 1, n);
        }
    }
}

/* Copies k rows of `width` columns of B to a panel, and meanwhile prefetches the columns after them: they are a few
 * cache lines of every row, which no processor prefetches by itself. */
static void copy_panel(const float *b, size_t ldb, int k, int width, float *panel)
{
    for (int p = 0; p < k; p++, b += ldb, panel += WIDTH) {
        __builtin_prefetch(b + width, 0, 2);
        for (int j = 0; j < width; j += W) {
            const mask m = mask_of(width - j < W ? width - j : W);
            store(panel + j, m, load(b + j, m));
        }
    }
}

/* Copies `width` rows of B[n,k] to the columns of a panel, a square of 8 x 8 at a time. */
static void copy_panel_transposed(const float *b, size_t ldb, int k, int width, float *panel)
{
    for (int i = 0; i < width; i += 8) {
        const int    rows = width - i < 8 ? width - i : 8;
        const float *from = b + (size_t)i * ldb;
        int          p = 0;
        for (; rows == 8 && p + 8 <= k; p += 8) {
            rws_v8 square[8];
            EACH(r, 8) square[r] = *(const rws_v8 *)(from + (size_t)r * ldb + p);
            rws__tile_transpose(square);
            EACH(r, 8) * (rws_v8 *)(panel + (p + r) * WIDTH + i) = square[r];
        }
        for (; p < k; p++)
            for (int r = 0; r < rows; r++) panel[p * WIDTH + i + r] = from[(size_t)r * ldb + (size_t)p];
    }
}

/* C = S + A B with B copied to panels. */
static void packed(int m, int n, tile all)
{
    static _Thread_local float panel[DEPTH * WIDTH] __attribute__((aligned(64)));
    for (int p = 0, depth; p < all.k; p += depth) {
        depth = block_size(all.k - p, DEPTH);
        for (int i = 0, rows; i < m; i += rows) {
            rows = block_size(m - i, TALL);
            for (int j = 0, width; j < n; j += width) {
                tile t = all;
                width = W * block_size((n - j + W - 1) / W, MOST(ROWS));
                if (width > n - j) width = n - j;
                t.k = depth;
                t.a = all.a + (size_t)i * all.row + (size_t)p * all.step;
                t.b = panel, t.ldb = WIDTH;
                t.c = all.c + (size_t)i * all.ldc + j;
                if (p) t.from = t.c, t.ldf = all.ldc;
                else if (all.from) t.from = all.from + (size_t)i * all.ldf + j;
                if (all.transposed)
                    copy_panel_transposed(all.b + (size_t)j * all.ldb + p, all.ldb, depth, width, panel);
                else copy_panel(all.b + (size_t)p * all.ldb + j, all.ldb, depth, width, panel);
                small(rows, width, t);
            }
        }
    }
}

static void product(int m, int n, tile t)
{
    rws_gemm_flops += 2ull * (uint64_t)m * (uint64_t)n * (uint64_t)t.k;
    if (!t.transposed && (m < FEW || (size_t)n * (size_t)t.k <= NEAR)) small(m, n, t);
    else packed(m, n, t);
}

/* S + A B, where S is at `from` (or is zero: NULL). */
static tile whole(int k, const float *a, int lda, const float *b, int ldb, const float *from, int ldf, float *c,
                  int ldc)
{
    return (tile){.a = a,
                  .row = (size_t)lda,
                  .step = 1,
                  .b = b,
                  .ldb = (size_t)ldb,
                  .from = from,
                  .ldf = (size_t)ldf,
                  .c = c,
                  .ldc = (size_t)ldc,
                  .k = k};
}

void rws__gemm_nn(int m, int n, int k, const float *a, int lda, const float *b, int ldb, const float *from, int step,
                  float *c, int ldc)
{
    product(m, n, whole(k, a, lda, b, ldb, from, step, c, ldc));
}

void rws__gemm_nt(int m, int n, int k, const float *a, int lda, const float *b, int ldb, const float *from, int step,
                  float *c, int ldc)
{
    tile t = whole(k, a, lda, b, ldb, from, step, c, ldc);
    t.transposed = true;
    product(m, n, t);
}

/* A matrix times a vector: c += A^T b */
static void multiply_vector(int m, int k, const float *a, int lda, const float *b, float *restrict c)
{
    rws_gemm_flops += 2ull * (uint64_t)m * (uint64_t)k;
    for (int p = 0; p < k; p++, a += lda) {
        const float *restrict row = a;
#pragma omp simd
        for (int i = 0; i < m; i++) c[i] += b[p] * row[i];
    }
}

void rws__gemm_tn(int m, int n, int k, const float *a, int lda, const float *b, int ldb, float *c, int ldc)
{
    if (n == 1 && ldb == 1 && ldc == 1) {
        multiply_vector(m, k, a, lda, b, c);
        return;
    }
    for (int p = 0, depth; p < k; p += depth) { /* rows that are read repeatedly stay in the cache */
        depth = block_size(k - p, DEPTH);
        tile t = whole(depth, a + (size_t)p * (size_t)lda, 1, b + (size_t)p * (size_t)ldb, ldb, c, ldc, c, ldc);
        t.step = (size_t)lda;
        product(m, n, t);
    }
}
