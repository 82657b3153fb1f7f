/* bits.c - matrix products with zeros and ones, by tables of sums. */
#include "tensor/bits.h"

#include "tensor/gemm.h"
#include "tensor/tile.h"

#include <string.h>
#ifdef __AVX__
#include <immintrin.h>
#endif

#define GROUP 4              /* bits that are looked up together */
#define SUMS (1 << GROUP)    /* entries of a table */
#define WIDE 32              /* columns of a table */
#define NEAR 17              /* tables that are used together; so many just about fit the first cache */
#define FEW 12               /* a product with fewer rows is computed without tables */
#define SHALLOW 20           /* a transposed product that adds up fewer rows is computed without tables */
#define ENTRY (WIDE * 4)     /* bytes of an entry */
#define TABLE (SUMS * ENTRY) /* bytes of a table */

/* The bits of a matrix of m rows, four in a byte: byte r * row + g * step tells where in its table the entry for group
 * g of row r stands, in units of 8 bytes. */
typedef struct {
    const uint8_t *code;
    size_t         row, step;
    int            m, k, n_groups; /* k: bits in a row */
    float          scale, shift;
} coded;

static inline rws_v8 load(const float *x, int left)
{
    rws_v8 v = {0};
    if (left >= 8) v = *(const rws_v8 *)x;
    else if (left > 0) memcpy(&v, x, (size_t)left * sizeof(float));
    return v;
}

static inline void store(float *x, int left, rws_v8 v)
{
    if (left >= 8) *(rws_v8 *)x = v;
    else memcpy(x, &v, (size_t)left * sizeof(float));
}

/* The table of up to four rows of b: their 16 sums, for at most `left` columns. */
static void make_table(const coded *a, const float *b, int ldb, int rows, int left, char *table)
{
    for (int i = 0; i < rows && i < GROUP; i++) /* the next block of columns begins where this one ends */
        for (int j = 0; j < WIDE; j += 16) __builtin_prefetch(b + (size_t)i * (size_t)ldb + WIDE + j, 0, 2);
    for (int v = 0; 8 * v < left && 8 * v < WIDE; v++) {
        rws_v8 pair[2][4]; /* the sums of the first two rows, and of the others */
        for (int h = 0; h < 2; h++) {
            const float *at = b + (size_t)(2 * h) * (size_t)ldb + 8 * v;
            const rws_v8 b0 = load(at, 2 * h < rows ? left - 8 * v : 0);
            const rws_v8 b1 = load(at + ldb, 2 * h + 1 < rows ? left - 8 * v : 0);
            pair[h][0] = a->shift * (b0 + b1);
            pair[h][1] = pair[h][0] + a->scale * b0;
            pair[h][2] = pair[h][0] + a->scale * b1;
            pair[h][3] = pair[h][1] + a->scale * b1;
        }
#pragma GCC unroll 16
        for (int s = 0; s < SUMS; s++) *(rws_v8 *)(table + s * ENTRY + 32 * v) = pair[0][s & 3] + pair[1][s >> 2];
    }
}

/* c = from + one entry of each of n tables, for every row; `vectors` is a constant wherever this is inlined. */
static inline __attribute__((always_inline)) void add_entries(const coded *a, int first, int n, const char *tables,
                                                              const float *from, size_t step, float *c, size_t ldc,
                                                              int left, const int vectors)
{
    for (int r = 0; r < a->m; r++, from += step, c += ldc) {
        const uint8_t *code = a->code + (size_t)r * a->row + (size_t)first * a->step;
        const char    *table = tables;
        rws_v8         sum[WIDE / 8];
        for (int v = 0; v < vectors; v++) sum[v] = load(from + 8 * v, left - 8 * v);
        for (int g = 0; g < n; g++, code += a->step, table += TABLE) {
            const char *entry = table + 8 * (size_t)*code;
            for (int v = 0; v < vectors; v++) sum[v] += *(const rws_v8 *)(entry + 32 * v);
        }
        for (int v = 0; v < vectors; v++) store(c + 8 * v, left - 8 * v, sum[v]);
    }
}

/* C = S + A B for at most WIDE columns. */
static void multiply_block(const coded *a, const float *b, int ldb, int left, const float *from, size_t step, float *c,
                           size_t ldc, char *tables)
{
    for (int first = 0; first < a->n_groups; first += NEAR) {
        const int n = a->n_groups - first < NEAR ? a->n_groups - first : NEAR;
        for (int g = 0; g < n; g++) {
            const int at = GROUP * (first + g);
            make_table(a, b + (size_t)at * (size_t)ldb, ldb, a->k - at, left, tables + g * TABLE);
        }
        switch ((left + 7) / 8) {
        case 1: add_entries(a, first, n, tables, from, step, c, ldc, left, 1); break;
        case 2: add_entries(a, first, n, tables, from, step, c, ldc, left, 2); break;
        case 3: add_entries(a, first, n, tables, from, step, c, ldc, left, 3); break;
        default: add_entries(a, first, n, tables, from, step, c, ldc, left, 4);
        }
        from = c, step = ldc;
    }
}

static uint8_t code_of(const float *x, int n)
{
    int code = 0;
    for (int i = 0; i < n && i < GROUP; i++) code |= (x[i] != 0) << i;
    return (uint8_t)(code * (ENTRY / 8));
}

/* Codes of X[m,k], whose groups of four bits lie along its rows. */
static coded code_rows(int m, int k, const float *x, float scale, float shift, rws_arena *scratch)
{
    const int n_groups = (k + GROUP - 1) / GROUP;
    uint8_t  *code = RWS_NEW(scratch, uint8_t, (size_t)m * (size_t)n_groups), *at = code;
    for (int r = 0; r < m; r++, x += k) {
        int i = 0;
#ifdef __AVX__
        for (; i + 8 <= k; i += 8) {
            const int mask =
                _mm256_movemask_ps(_mm256_cmp_ps(_mm256_loadu_ps(x + i), _mm256_setzero_ps(), _CMP_NEQ_OQ));
            *at++ = (uint8_t)(mask << 4);
            *at++ = (uint8_t)(mask & 0xf0);
        }
#endif
        for (; i < k; i += GROUP) *at++ = code_of(x + i, k - i);
    }
    return (coded){code, (size_t)n_groups, 1, m, k, n_groups, scale, shift};
}

typedef uint8_t b8 __attribute__((vector_size(8), aligned(1), may_alias));

/* Codes of the transpose of X[k,n]: the groups of four bits lie along the columns of X. */
static coded code_columns(int n, int k, const float *x, float scale, float shift, rws_arena *scratch)
{
    const int    n_groups = (k + GROUP - 1) / GROUP;
    const size_t width = (size_t)n;
    uint8_t     *code = RWS_NEW(scratch, uint8_t, (size_t)n_groups * width);
    for (int g = 0; g < n_groups; g++) {
        const float *rows = x + (size_t)(GROUP * g) * width;
        uint8_t     *to = code + (size_t)g * width;
        const int    left = k - GROUP * g;
        int          i = 0;
        for (; i + 8 <= n && left >= GROUP; i += 8) {
            rws_v8 sum = {0};
            for (int q = GROUP - 1; q >= 0; q--) sum = 2 * sum + *(const rws_v8 *)(rows + (size_t)q * width + i);
            *(b8 *)(to + i) = __builtin_convertvector(__builtin_convertvector(sum * (ENTRY / 8), rws_i8), b8);
        }
        for (; i < n; i++) {
            float bit[GROUP] = {0};
            for (int q = 0; q < GROUP && q < left; q++) bit[q] = rows[(size_t)q * width + (size_t)i];
            to[i] = code_of(bit, GROUP);
        }
    }
    return (coded){code, 1, width, n, k, n_groups, scale, shift};
}

/* The numbers that n bits stand for: scale x + shift. */
static const float *spelled_out(size_t n, const float *x, float scale, float shift, rws_arena *scratch)
{
    float *y = RWS_NEW(scratch, float, n);
#pragma omp simd
    for (size_t i = 0; i < n; i++) y[i] = scale * x[i] + shift;
    return y;
}

void rws__bits_nn(int m, int n, int k, const float *x, float scale, float shift, const float *b, int ldb,
                  const float *from, int step, float *c, int ldc, rws_arena *scratch)
{
    static const float   nothing[WIDE];
    const rws_arena_mark mark = rws__arena_at(scratch);
    if (m < FEW) {
        const float *y = spelled_out((size_t)m * (size_t)k, x, scale, shift, scratch);
        rws__gemm_nn(m, n, k, y, k, b, ldb, from, step, c, ldc);
    } else {
        const coded a = code_rows(m, k, x, scale, shift, scratch);
        char       *tables = RWS_NEW(scratch, char, NEAR *TABLE);
        for (int j = 0; j < n; j += WIDE)
            multiply_block(&a, b + j, ldb, n - j, from ? from + j : nothing, from ? (size_t)step : 0, c + j,
                           (size_t)ldc, tables);
        rws_gemm_flops += 2ull * (uint64_t)m * (uint64_t)n * (uint64_t)k;
    }
    rws__arena_release(scratch, mark);
}

/* to[rows, n] += from[n, WIDE]^T */
static void add_transposed(int rows, int n, const float *from, float *to, size_t ld)
{
    const int whole_rows = rows / 8 * 8, whole = n / 8 * 8;
    for (int i = 0; i < whole_rows; i += 8)
        for (int j = 0; j < whole; j += 8) {
            rws_v8 a[8];
            for (int q = 0; q < 8; q++) a[q] = *(const rws_v8 *)(from + (size_t)(j + q) * WIDE + i);
            rws__tile_transpose(a);
            for (int q = 0; q < 8; q++) *(rws_v8 *)(to + (size_t)(i + q) * ld + j) += a[q];
        }
    for (int i = 0; i < rows; i++)
        for (int j = i < whole_rows ? whole : 0; j < n; j++) to[(size_t)i * ld + (size_t)j] += from[j * WIDE + i];
}

void rws__bits_tn(int m, int n, int k, const float *a, int lda, const float *x, float scale, float shift, float *c,
                  int ldc, rws_arena *scratch)
{
    static const float   nothing[WIDE];
    const rws_arena_mark mark = rws__arena_at(scratch);
    if (k < SHALLOW || n < FEW) {
        const float *y = spelled_out((size_t)k * (size_t)n, x, scale, shift, scratch);
        rws__gemm_tn(m, n, k, a, lda, y, n, c, ldc);
    } else {
        const coded bits = code_columns(n, k, x, scale, shift, scratch);
        char       *tables = RWS_NEW(scratch, char, NEAR *TABLE);
        float      *block = RWS_NEW(scratch, float, (size_t)n *WIDE);
        for (int j = 0; j < m; j += WIDE) {
            const int left = m - j < WIDE ? m - j : WIDE;
            multiply_block(&bits, a + j, lda, left, nothing, 0, block, WIDE, tables);
            add_transposed(left, n, block, c + (size_t)j * (size_t)ldc, (size_t)ldc);
        }
        rws_gemm_flops += 2ull * (uint64_t)m * (uint64_t)n * (uint64_t)k;
    }
    rws__arena_release(scratch, mark);
}
