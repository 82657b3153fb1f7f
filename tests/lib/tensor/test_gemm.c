/* test_gemm.c - the matrix products of each level of the processor, alone: tests/meson.build compiles them with gemm.c
 * for each. An element equals, to the last bit, a sum in the order of the depth, which is compared with one in
 * double. */
#include "support.h"
#include "tensor/gemm.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GAP = 3, MOST = 700 * 700 };
enum { NN, NT, TN };

static float a[MOST], b[MOST], c[MOST], was[MOST];

static void fill(float *x, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525 + 1013904223;
        x[i] = (float)(int32_t)seed * 0x1p-31f;
    }
}

/* A sum with one more term, rounded as the processor does. */
static float add(float sum, float x, float y)
{
#ifdef __FMA__
    return fmaf(x, y, sum);
#else
    volatile float product = x * y;
    return sum + product;
#endif
}

static bool same(float x, float y)
{
    return isnan(x) ? isnan(y) : memcmp(&x, &y, sizeof x) == 0 || x == y;
}

/* C += A B with rows of A, B and C that are longer than they are wide; what lies beside C keeps its numbers. */
static void check(int kind, int m, int n, int k)
{
    const int lda = (kind == TN ? m : k) + GAP, ldb = (kind == NT ? k : n) + GAP, ldc = n + GAP;
    memcpy(c, was, sizeof *c * (size_t)m * (size_t)ldc);
    if (kind == NN) rws__gemm_nn(m, n, k, a, lda, b, ldb, c, ldc, c, ldc);
    if (kind == NT) rws__gemm_nt(m, n, k, a, lda, b, ldb, c, ldc, c, ldc);
    if (kind == TN) rws__gemm_tn(m, n, k, a, lda, b, ldb, c, ldc);
    for (int i = 0; i < m; i++)
        for (int j = 0; j < ldc; j++) {
            float  sum = was[i * ldc + j];
            double exact = (double)sum, size = fabs(exact);
            for (int p = 0; p < k && j < n; p++) {
                const float x = kind == TN ? a[p * lda + i] : a[i * lda + p];
                const float y = kind == NT ? b[j * ldb + p] : b[p * ldb + j];
                sum = add(sum, x, y);
                exact += (double)x * (double)y, size += fabs((double)x * (double)y);
            }
            if (!same(c[i * ldc + j], sum) || fabs((double)sum - exact) > (k + 1) * (double)FLT_EPSILON * size)
                fail_msg("kind %d, %d x %d x %d, element %d, %d: %.9g and not %.9g (%.17g)", kind, m, n, k, i, j,
                         (double)c[i * ldc + j], (double)sum, exact);
        }
}

static void check_kinds(int m, int n, int k)
{
    for (int kind = NN; kind <= TN; kind++) check(kind, m, n, k);
}

static void every_small_size(void **state)
{
    (void)state;
    for (int m = 1; m <= 33; m++)
        for (int n = 1; n <= 33; n++)
            for (int k = 1; k <= 33; k += m % 4 + 1) check_kinds(m, n, k);
}

static void widths_and_depths(void **state)
{
    (void)state;
    for (int n = 34; n < 140; n += 3) check_kinds(1 + n % 19, n, 5);
    for (int k = 250; k < 520; k += 43) check_kinds(18, 70, k);
}

static void large_sizes(void **state)
{
    (void)state;
    const int sizes[][3] = {{250, 75, 530}, {17, 520, 300}, {5, 600, 500}, {300, 100, 40}, {97, 256, 513}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) check_kinds(sizes[i][0], sizes[i][1], sizes[i][2]);
}

/* Infinity and NaN reach the elements that they belong to and no others: not through what lies beside a row. */
static void infinities_and_nans(void **state)
{
    (void)state;
    const float odd[] = {INFINITY, -INFINITY, NAN};
    for (int i = 0; i < 60; i++) {
        const int   at = i * 7 + 1;
        const float x = a[at], y = b[at * 3];
        a[at] = odd[i % 3], b[at * 3] = odd[(i + 1) % 3];
        check_kinds(1 + i % 20, 1 + i * 5 % 40, 1 + i * 3 % 50);
        a[at] = x, b[at * 3] = y;
    }
}

int main(void)
{
#if defined(__AVX512F__)
    if (!__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512bw")) return 77;
#elif defined(__AVX2__)
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return 77;
#endif
    fill(a, MOST, 1), fill(b, MOST, 2), fill(was, MOST, 3);
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_small_size), cmocka_unit_test(widths_and_depths),
                                       cmocka_unit_test(large_sizes), cmocka_unit_test(infinities_and_nans)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
