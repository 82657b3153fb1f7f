/* test_base.c - what everything stands on: the arena, random numbers by counter, matrix products, the flat vector of
 * parameters. Each against a plain twin, or against numbers published elsewhere. */
#include "base/arena.h"
#include "base/count.h"
#include "base/error.h"
#include "base/rng.h"
#include "base/vecmath.h"
#include "tensor/bits.h"
#include "tensor/gemm.h"
#include "tensor/op.h"
#include "tensor/products.h"

#include "support.h"

#include <Random123/philox.h>
#include <string.h>

/* ---- numbers as people type them */

static void counts_are_read_up_to_their_end(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t    value;
        const char *rest;
    } good[] = {{"0", 0, ""},          {"10", 10, ""},
                {"1e5", 100000, ""},   {"1E+2", 100, ""},
                {"2.5e3", 2500, ""},   {"10k", 10000, ""},
                {"1.5M", 1500000, ""}, {"2.50e1", 25, ""},
                {"0e99", 0, ""},       {"18446744073709551615", UINT64_MAX, ""},
                {"7-9", 7, "-9"},      {"3e", 3, "e"},
                {"10x", 10, "x"},      {"4.", 4, "."}};
    static const char *const bad[] = {"",
                                      "-1",
                                      " 1",
                                      "+1",
                                      "k",
                                      ".5",
                                      "1.5",
                                      "1.25e1",
                                      "1e20",
                                      "1e101",
                                      "18446744073709551616",
                                      "18446744073709551615k"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        const char *at = good[i].text;
        uint64_t    value = 42;
        assert_true(rws__count_read(&at, &value));
        assert_true(value == good[i].value);
        assert_string_equal(at, good[i].rest);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *at = bad[i];
        uint64_t    value;
        assert_false(rws__count_read(&at, &value));
        assert_ptr_equal(at, bad[i]);
    }
}

/* ---- arena */

static bool aligned(const void *p)
{
    return (uintptr_t)p % 64 == 0;
}

static void arena_pieces_are_aligned_and_apart(void **state)
{
    (void)state;
    enum { N = 400 };
    rws_arena a = {0};
    die       d = {1};
    for (int pass = 0; pass < 3; pass++) {
        unsigned char *piece[N];
        size_t         bytes[N];
        for (int i = 0; i < N; i++) {
            bytes[i] = (size_t)die_below(&d, i % 50 == 0 ? 1 << 20 : 3000);
            piece[i] = rws__arena_alloc(&a, bytes[i]);
            assert_true(aligned(piece[i]));
            memset(piece[i], i % 251, bytes[i]);
        }
        for (int i = 0; i < N; i++)
            for (size_t j = 0; j < bytes[i]; j++) assert_int_equal(piece[i][j], i % 251);
        rws__arena_reset(&a);
    }
    rws__arena_free(&a);
    assert_int_equal(rws__arena_bytes(&a), 0);
}

static void arena_zeroes_what_was_used_before(void **state)
{
    (void)state;
    rws_arena a = {0};
    memset(rws__arena_alloc(&a, 5000), 0xff, 5000);
    rws__arena_reset(&a);
    const char *p = rws__arena_zero(&a, 5000);
    for (int i = 0; i < 5000; i++) assert_int_equal(p[i], 0);
    double *q = RWS_NEW0(&a, double, 3);
    assert_true(aligned(q) && q[0] == 0 && q[2] == 0);
    rws__arena_free(&a);
}

static void arena_release_gives_back_what_came_after_the_mark(void **state)
{
    (void)state;
    rws_arena a = {0};
    rws__arena_release(&a, rws__arena_at(&a)); /* of an arena that never held anything */
    const rws_arena_mark nothing = rws__arena_at(&a);
    char                *first = rws__arena_alloc(&a, 100);
    memset(first, 7, 100);
    const rws_arena_mark mark = rws__arena_at(&a);
    char                *second = rws__arena_alloc(&a, 64);
    for (int i = 0; i < 20; i++) rws__arena_alloc(&a, (size_t)1 << 18); /* into further blocks */
    rws__arena_release(&a, mark);
    assert_ptr_equal(rws__arena_alloc(&a, 64), second);
    for (int i = 0; i < 100; i++) assert_int_equal(first[i], 7);
    rws__arena_release(&a, nothing);
    assert_ptr_equal(rws__arena_alloc(&a, 1), first);
    rws__arena_free(&a);
}

static void arena_gives_back_what_was_not_needed_for_long(void **state)
{
    (void)state;
    rws_arena a = {0};
    for (int i = 0; i < 3000; i++) { /* now and then much */
        rws__arena_alloc(&a, i % 400 == 7 ? (size_t)10 << 20 : 100);
        rws__arena_reset(&a);
    }
    assert_true(rws__arena_bytes(&a) > (size_t)10 << 20);
    assert_int_equal(a.n_blocks, 2);
    for (int i = 0; i < 3000; i++) {
        rws__arena_alloc(&a, 100);
        rws__arena_reset(&a);
    }
    assert_in_range(rws__arena_bytes(&a), 100, 1 << 20);
    rws__arena_free(&a);
}

/* The same load, with marks and pieces larger than a block in it: after two rounds nothing is asked of the system. */
static void arena_is_warm_after_a_round(void **state)
{
    (void)state;
    rws_arena a = {0};
    uint64_t  blocks = 0;
    size_t    bytes = 0;
    for (int pass = 0; pass < 20; pass++) {
        die d = {3};
        rws__arena_reset(&a);
        for (int i = 0; i < 200; i++) {
            rws__arena_alloc(&a, (size_t)die_below(&d, 20000));
            const rws_arena_mark mark = rws__arena_at(&a);
            rws__arena_alloc(&a, (size_t)die_below(&d, i % 20 == 0 ? 3000000 : 10000));
            if (i % 3) rws__arena_release(&a, mark);
        }
        if (pass == 1) blocks = a.n_blocks, bytes = rws__arena_bytes(&a);
    }
    assert_int_equal(a.n_blocks, blocks);
    assert_int_equal(rws__arena_bytes(&a), bytes);
    rws__arena_free(&a);
}

/* ---- errors */

static void errors_are_sentences(void **state)
{
    (void)state;
    rws_error err;
    assert_int_equal(rws_fail(&err, RWS_BAD_INPUT, "The option %s is %d.", "--batch", 3), RWS_BAD_INPUT);
    assert_string_equal(err.text, "The option --batch is 3.");
    assert_int_equal(rws_fail(NULL, RWS_BROKEN, "Nobody listens."), RWS_BROKEN);
    char name[2000];
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = 0;
    rws_fail(&err, RWS_BROKEN, "%s", name);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    assert_string_equal(err.text + strlen(err.text) - 5, "x....");
    for (size_t i = 0; i + 2 < sizeof name; i += 2)
        memcpy(name + i, "\303\251", 2); /* é, also where the message is cut */
    for (int shift = 0; shift < 2; shift++) {
        rws_fail(&err, RWS_BROKEN, "%s%s", shift ? "-" : "", name);
        const size_t n = strlen(err.text);
        assert_string_equal(err.text + n - 6, "\303\251....");
    }
    rws_fail(&err, RWS_BAD_INPUT, "The rate \"%s\" is none.", "1\n2\033[2J\177");
    assert_string_equal(err.text, "The rate \"1?2?[2J?\" is none.");
}

/* ---- counters and blocks */

/* Random123's own known answers (kat_vectors: philox4x32, 10 rounds). */
static void blocks_are_the_published_ones(void **state)
{
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } known[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    enum { N = 33 }; /* so many side by side that every way of computing them is met */
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        uint32_t c0[N], c1[N], out[4 * N];
        for (int j = 0; j < N; j++) c0[j] = known[i].counter[0], c1[j] = known[i].counter[1];
        rws__rng_blocks((rws_key){{known[i].key[0], known[i].key[1]}}, N, c0, c1, known[i].counter[2],
                        known[i].counter[3], out);
        for (int j = 0; j < N; j++) assert_memory_equal(out + 4 * j, known[i].out, sizeof known[i].out);
    }
}

static void blocks_of_every_length_are_philox(void **state)
{
    (void)state;
    enum { MOST = 70 };
    die d = {5};
    for (size_t n = 0; n <= MOST; n++) {
        uint32_t       c0[MOST], c1[MOST], out[4 * MOST + 4];
        rws_key        key = {{(uint32_t)die_next(&d), (uint32_t)die_next(&d)}};
        const uint32_t c2 = (uint32_t)die_next(&d), c3 = (uint32_t)die_next(&d);
        for (size_t i = 0; i < n; i++) c0[i] = (uint32_t)die_next(&d), c1[i] = (uint32_t)die_next(&d);
        memset(out, 0x5a, sizeof out);
        rws__rng_blocks(key, n, c0, c1, c2, c3, out);
        for (size_t i = 0; i < n; i++) {
            const philox4x32_ctr_t counter = {{c0[i], c1[i], c2, c3}};
            const philox4x32_key_t k = {{key.word[0], key.word[1]}};
            const philox4x32_ctr_t want = philox4x32(counter, k);
            assert_memory_equal(out + 4 * i, want.v, sizeof want.v);
        }
        for (size_t i = 4 * n; i < 4 * MOST + 4; i++) assert_int_equal(out[i], 0x5a5a5a5a);

        uint32_t row[4 * MOST + 4];
        memset(row, 0x5a, sizeof row);
        rws__rng_row(key, n, c2, c3, 7, UINT32_MAX - 20, row); /* over the end, from 0 again */
        for (size_t i = 0; i < n; i++) {
            const uint32_t last = UINT32_MAX - 20 + (uint32_t)i;
            rws__rng_blocks(key, 1, &c2, &c3, 7, last, out);
            assert_memory_equal(row + 4 * i, out, 4 * sizeof *out);
        }
        for (size_t i = 4 * n; i < 4 * MOST + 4; i++) assert_int_equal(row[i], 0x5a5a5a5a);
    }
}

static int by_key(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(rws_key));
}

static void keys_differ_in_everything_they_are_for(void **state)
{
    (void)state;
    enum {
        SEEDS = 7,
        ITERATIONS = 40,
        PURPOSES = RWS_KEY_METRIC + 1,
        PHASES = 5,
        N = SEEDS * ITERATIONS * PURPOSES * PHASES
    };
    const uint64_t seeds[SEEDS] = {0, 1, 2, 3, 1ull << 32, 1ull << 63, ~0ull};
    static rws_key keys[N];
    int            n = 0;
    for (int s = 0; s < SEEDS; s++)
        for (uint64_t i = 0; i < ITERATIONS; i++)
            for (int p = 0; p < PURPOSES; p++)
                for (uint32_t phase = 0; phase < PHASES; phase++) {
                    const rws_key again = rws__key_for(seeds[s], i, (rws_purpose)p, phase);
                    keys[n] = rws__key_for(seeds[s], i, (rws_purpose)p, phase);
                    assert_memory_equal(&keys[n++], &again, sizeof again);
                }
    qsort(keys, N, sizeof *keys, by_key);
    for (int i = 1; i < N; i++) assert_int_not_equal(by_key(&keys[i - 1], &keys[i]), 0);
}

/* ---- numbers */

static void unit_reaches_neither_end(void **state)
{
    (void)state;
    assert_true(rws__unit(0) > 0);
    assert_true(rws__unit(UINT32_MAX) < 1);
    assert_true(rws__unit(UINT32_MAX - 255) < 1);
    float last = 0;
    for (uint32_t i = 0; i < 1 << 16; i++) { /* never falls, and covers the middle evenly */
        const float u = rws__unit(i << 16);
        assert_true(u >= last && fabsf(u - (float)i * 0x1p-16f) < 0x1p-22f);
        last = u;
    }
}

/* A way to take numbers from a stream: one by one or many at a time. */
typedef struct {
    const char *name;
    double (*one)(rws_random *g);
    void (*many)(rws_random *g, size_t n, float *out);
    bool normal;
} source;

static double as_uniform(const source *s, double x)
{
    return s->normal ? 0.5 * erfc(-x / sqrt(2)) : x;
}

static rws_random stream_of(uint64_t seed, uint32_t stream)
{
    return rws__random_new(rws__key_for(seed, 7, RWS_KEY_DATA, 0), stream);
}

/* Tests the distribution by Kolmogorov and Smirnov, two moments, to which that test is blunt, and the correlation of
 * neighbours. */
static double look_at_source(void *context, int round, int wide)
{
    const source *s = context;
    const size_t  n = 20000 * (size_t)wide;
    double       *u = malloc(n * sizeof *u), *square = malloc(n * sizeof *u), *pair = malloc(n * sizeof *u);
    rws_random    g = stream_of(11 + (uint64_t)round, 0);
    if (s->one) {
        for (size_t i = 0; i < n; i++) u[i] = s->one(&g);
    } else {
        float *x = malloc(n * sizeof *x);
        s->many(&g, n, x);
        for (size_t i = 0; i < n; i++) u[i] = (double)x[i];
        free(x);
    }
    const double mean = s->normal ? 0 : 0.5, variance = s->normal ? 1 : 1 / 12.0;
    for (size_t i = 0; i < n; i++) square[i] = (u[i] - mean) * (u[i] - mean);
    for (size_t i = 1; i < n; i++) pair[i - 1] = (u[i] - mean) * (u[i - 1] - mean);
    double p = fmin(mean_tail(u, n, mean, 0), fmin(mean_tail(square, n, variance, 0), mean_tail(pair, n - 1, 0, 0)));
    for (size_t i = 0; i < n; i++) u[i] = as_uniform(s, u[i]);
    p = fmin(p, uniform_tail(u, n));
    free(u), free(square), free(pair);
    return fmin(1, 4 * p);
}

static void streams_have_their_distribution(void **state)
{
    (void)state;
    source sources[] = {{"rws_random_uniform", .one = rws_random_uniform},
                        {"rws_random_normal", .one = rws_random_normal, .normal = true},
                        {"rws_random_uniforms", .many = rws_random_uniforms},
                        {"rws_random_normals", .many = rws_random_normals, .normal = true}};
    for (int i = 0; i < 4; i++) stays_likely(sources[i].name, look_at_source, &sources[i]);
}

static double look_at_below(void *context, int round, int wide)
{
    const uint32_t n = *(uint32_t *)context;
    double         seen[64] = {0}, expected[64];
    const int      draws = 20000 * wide;
    rws_random     g = stream_of(21 + (uint64_t)round, 0);
    for (int i = 0; i < draws; i++) {
        const uint32_t x = rws_random_below(&g, n);
        assert_true(x < n);
        seen[x]++;
    }
    for (uint32_t i = 0; i < n; i++) expected[i] = (double)draws / n;
    return counts_tail(seen, expected, (int)n);
}

static void below_is_below_and_even(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= 64; n = n * 3 / 2 + 1) stays_likely("rws_random_below", look_at_below, &n);
    rws_random g = stream_of(22, 0);
    uint32_t   most = 0;
    for (int i = 0; i < 1000; i++) {
        const uint32_t x = rws_random_below(&g, UINT32_MAX);
        assert_true(x < UINT32_MAX);
        most = x > most ? x : most;
    }
    assert_true(most > UINT32_MAX / 2);
}

static double look_at_choose(void *context, int round, int wide)
{
    static const double p[5] = {0.1, 0, 0.4, 0.3, 0.2};
    double              seen[4] = {0}, expected[4] = {0};
    const int           draws = 20000 * wide;
    rws_random          g = stream_of(31 + (uint64_t)round, 0);
    for (int i = 0; i < draws; i++) {
        const int x = rws_random_choose(&g, p, 5);
        assert_true(x >= 0 && x < 5 && x != 1);
        seen[x - (x > 1)]++;
    }
    for (int i = 0; i < 5; i++)
        if (i != 1) expected[i - (i > 1)] = draws * p[i];
    return (void)context, counts_tail(seen, expected, 4);
}

/* Pairs of different numbers of 0 … 4, in order: 20 of them, equally often. */
static double look_at_sample(void *context, int round, int wide)
{
    double     seen[20] = {0}, expected[20];
    const int  draws = 20000 * wide;
    rws_random g = stream_of(41 + (uint64_t)round, 0);
    for (int i = 0; i < draws; i++) {
        int order[5], all = 0;
        rws_random_sample(&g, 5, 2, order);
        for (int k = 0; k < 5; k++) all |= 1 << order[k];
        assert_int_equal(all, 31); /* every number once */
        seen[order[0] * 4 + order[1] - (order[1] > order[0])]++;
    }
    for (int i = 0; i < 20; i++) expected[i] = draws / 20.0;
    return (void)context, counts_tail(seen, expected, 20);
}

static void choices_and_samples_have_their_distribution(void **state)
{
    int        order[3] = {7, 7, 7};
    rws_random g = stream_of(51, 0);
    (void)state;
    stays_likely("rws_random_choose", look_at_choose, NULL);
    stays_likely("rws_random_sample", look_at_sample, NULL);
    rws_random_sample(&g, 3, 5, order); /* more than there are: all of them */
    assert_int_equal(1 << order[0] | 1 << order[1] | 1 << order[2], 7);
    assert_int_equal(rws_random_choose(&g, (double[]){0, 1}, 2), 1);
    assert_int_equal(rws_random_choose(&g, (double[]){0, 0}, 2), 1); /* the last one has what rounding leaves */
}

/* Uniforms to the bit; normals to a rounding, because the last few of a loop are computed one by one. */
static void check_same(bool normal, const float *got, const float *want, size_t n)
{
    if (!normal) assert_memory_equal(got, want, n * sizeof(float));
    for (size_t i = 0; i < n; i++) assert_true(near((double)got[i], (double)want[i], 2e-6));
}

/* A stream's numbers are the same however many are asked for: n of them begin like m < n of them, and in pieces of
 * whole blocks they are the same as at once. */
static void streams_do_not_depend_on_how_many_are_asked(void **state)
{
    (void)state;
    enum { N = 1500 };
    void (*const ask[])(rws_random *, size_t, float *) = {rws_random_uniforms, rws_random_normals};
    static const size_t sizes[] = {0, 1, 2, 3, 4, 5, 127, 128, 129, 255, 256, 257, 300, 511, 513, 1024, 1499};
    for (int f = 0; f < 2; f++) {
        static float all[N], some[N + 1];
        rws_random   g = stream_of(31, 4);
        ask[f](&g, N, all);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            g = stream_of(31, 4);
            some[sizes[i]] = 77;
            ask[f](&g, sizes[i], some);
            check_same(f, some, all, sizes[i]);
            assert_true(some[sizes[i]] == 77);
        }
        g = stream_of(31, 4);
        for (size_t at = 0, n = 4; at + n <= N; at += n, n = n * 3 / 4 * 4 % 600 + 4) {
            ask[f](&g, n, some);
            check_same(f, some, all + at, n);
        }
        g = stream_of(31, 5); /* another stream has other numbers */
        ask[f](&g, N, some);
        for (int i = 0; i < N; i++) assert_true(some[i] != all[i] || i % 2);
    }
    rws_random a = stream_of(1, 0), b = stream_of(1, 0);
    for (int i = 0; i < 10; i++) assert_true(rws_random_uniform(&a) == rws_random_uniform(&b));
}

/* ---- products */

static void fill(die *d, float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) x[i] = (float)die_between(d, -1, 1);
}

/* What a product is added to. */
typedef enum { ITSELF, ROWS, ONE_ROW, NOTHING, SUMMANDS } summand;

/* Which side is transposed. */
typedef enum { NN, NT, TN } sides;

/* C = S + A B, S + A B^T, or C += A^T B, with gaps after every row; the gaps of C stay as they are. */
static void check_gemm(sides sides, summand what, int m, int n, int k, int gap, die *d)
{
    const int lda = (sides == TN ? m : k) + gap, ldb = (sides == NT ? k : n) + 2 * gap, ldc = n + 3 * gap,
              lds = what == ONE_ROW ? 0 : n + gap;
    const size_t na = (size_t)((sides == TN ? k : m) * lda), nb = (size_t)((sides == NT ? n : k) * ldb),
                 nc = (size_t)(m * ldc);
    const size_t ns = (size_t)((m - 1) * lds + n);
    float       *a = malloc(na * sizeof *a), *b = malloc(nb * sizeof *b), *c = malloc(nc * sizeof *c),
          *s = malloc(ns * sizeof *s);
    float *before = malloc(nc * sizeof *c);
    fill(d, a, na), fill(d, b, nb), fill(d, c, nc), fill(d, s, ns);
    memcpy(before, c, nc * sizeof *c);
    const uint64_t flops = rws_gemm_flops;
    const float   *from = what == ITSELF ? c : what == NOTHING ? NULL : s;
    const int      step = what == ITSELF ? ldc : lds;
    if (sides == TN) rws__gemm_tn(m, n, k, a, lda, b, ldb, c, ldc);
    else (sides == NN ? rws__gemm_nn : rws__gemm_nt)(m, n, k, a, lda, b, ldb, from, step, c, ldc);
    assert_int_equal(rws_gemm_flops - flops, 2ull * (uint64_t)m * (uint64_t)n * (uint64_t)k);
    for (int i = 0; i < m; i++)
        for (int j = 0; j < ldc; j++) {
            double want = (double)before[i * ldc + j];
            if (j < n && what != ITSELF) want = what == NOTHING ? 0 : (double)s[i * lds + j];
            for (int p = 0; p < k && j < n; p++)
                want += (double)(sides == TN ? a[p * lda + i] : a[i * lda + p]) *
                        (double)(sides == NT ? b[j * ldb + p] : b[p * ldb + j]);
            if (!near((double)c[i * ldc + j], want, 1e-6 * (1 + k)))
                fail_msg("%s %d x %d x %d, gap %d, summand %d: (%d, %d) is %g, not %g",
                         (const char *[]){"nn", "nt", "tn"}[sides], m, n, k, gap, what, i, j, (double)c[i * ldc + j],
                         want);
        }
    free(a), free(b), free(c), free(s), free(before);
}

static void gemm_equals_three_loops(void **state)
{
    (void)state;
    static const int sizes[] = {1, 2, 3, 5, 8, 17, 31, 64, 65}, depths[] = {1, 2, 3, 9, 64, 65, 128, 130};
    enum { N = sizeof sizes / sizeof *sizes, D = sizeof depths / sizeof *depths };
    die d = {51};
    for (int i = 0; i < N * N * D; i++) {
        const int m = sizes[i % N], n = sizes[i / N % N], k = depths[i / N / N], gap = i % 3;
        check_gemm(NN, (summand)(i / 3 % SUMMANDS), m, n, k, gap, &d);
        check_gemm(NN, (summand)((i / 3 + 1) % SUMMANDS), m, n, k, (gap + 1) % 3, &d);
        check_gemm(NT, (summand)(i / 3 % SUMMANDS), m, n, k, gap, &d);
        check_gemm(TN, ITSELF, m, n, k, gap, &d);
        if (n == 1) check_gemm(TN, ITSELF, m, n, k, (gap + 1) % 3, &d);
    }
    for (int what = 0; what < SUMMANDS; what++) /* sizes below and above 64 */
        for (int size = 60; size < 70; size += 8) check_gemm(NN, (summand)what, size + 7, size, size, 1, &d);
    check_gemm(NN, ROWS, 5, 600, 500, 1, &d);
    for (int what = 0; what < SUMMANDS; what++) check_gemm(NN, (summand)what, 250, 75, 530, what % 3, &d);
}

/* C = S + (scale X + shift) B and C += A^T (scale X + shift), against the same with X spelled out. */
static void check_bits(summand what, int m, int n, int k, float scale, float shift, die *d)
{
    const size_t nx = (size_t)(m * k), nb = (size_t)(k * (n + 3)), nc = (size_t)(m * (n + 1)),
                 ns = (size_t)(m * (n + 2));
    float *x = malloc(nx * sizeof *x), *y = malloc(nx * sizeof *x), *b = malloc(nb * sizeof *b),
          *s = malloc(ns * sizeof *s);
    float    *c = malloc(nc * sizeof *c), *want = malloc(nc * sizeof *c), *a = malloc((size_t)(m * n) * sizeof *a);
    float    *g = malloc((size_t)(n * (k + 1)) * sizeof *g), *want_g = malloc((size_t)(n * (k + 1)) * sizeof *g);
    rws_arena arena = {0};
    for (size_t i = 0; i < nx; i++) x[i] = (float)die_below(d, 2), y[i] = scale * x[i] + shift;
    fill(d, b, nb), fill(d, c, nc), fill(d, s, ns), fill(d, a, (size_t)(m * n)), fill(d, g, (size_t)(n * (k + 1)));
    memcpy(want, c, nc * sizeof *c);
    memcpy(want_g, g, (size_t)(n * (k + 1)) * sizeof *g);
    const float   *from = what == NOTHING ? NULL : s;
    const int      step = what == ONE_ROW ? 0 : n + 2;
    const uint64_t flops = rws_gemm_flops;
    rws__bits_nn(m, n, k, x, scale, shift, b, n + 3, from, step, c, n + 1, &arena);
    rws__bits_tn(n, k, m, a, n, x, scale, shift, g, k + 1, &arena);
    assert_int_equal(rws_gemm_flops - flops, 4ull * (uint64_t)m * (uint64_t)n * (uint64_t)k);
    rws__gemm_nn(m, n, k, y, k, b, n + 3, from, step, want, n + 1);
    rws__gemm_tn(n, k, m, a, n, y, k, want_g, k + 1);
    for (size_t i = 0; i < nc; i++)
        if (!near((double)c[i], (double)want[i], 2e-6 * (1 + k)))
            fail_msg("nn %d x %d x %d: number %d is %g, not %g", m, n, k, (int)i, (double)c[i], (double)want[i]);
    for (int i = 0; i < n * (k + 1); i++)
        if (!near((double)g[i], (double)want_g[i], 2e-6 * (1 + m)))
            fail_msg("tn %d x %d x %d: number %d is %g, not %g", n, k, m, i, (double)g[i], (double)want_g[i]);
    free(x), free(y), free(b), free(s), free(c), free(want), free(a), free(g), free(want_g);
    rws__arena_free(&arena);
}

static void bits_stand_for_two_numbers(void **state)
{
    (void)state;
    static const int sizes[] = {1, 5, 8, 12, 16, 31, 33, 70}, depths[] = {1, 3, 4, 17, 68, 200};
    enum { N = sizeof sizes / sizeof *sizes, D = sizeof depths / sizeof *depths };
    die d = {53};
    for (int i = 0; i < N * N * D; i++) {
        const int m = sizes[i % N], n = sizes[i / N % N], k = depths[i / N / N];
        check_bits((summand)(ROWS + i % 3), m, n, k, i % 2 ? 2 : 1, i % 2 ? -1 : 0.25f * (float)(i % 3), &d);
    }
    check_bits(ONE_ROW, 130, 784, 200, 2, -1, &d);
}

/* Three weights; products thick and thin, for whole weights and blocks of them, in every order. Flush adds them all. */
static void products_add_up_whatever_their_thickness(void **state)
{
    (void)state;
    static const struct {
        int weight, offset, n_x, n;
    } list[] = {
        {0, 0, 6, 1},   {0, 0, 6, 47}, {1, 2, 3, 5}, {0, 0, 6, 48},  {1, 0, 2, 200}, {2, 0, 1, 7},  {0, 0, 6, 3},
        {1, 2, 3, 100}, {1, 2, 3, 1},  {2, 0, 1, 1}, {0, 4, 2, 31},  {1, 2, 4, 9},   {2, 0, 1, 60}, {1, 5, 1, 3},
        {1, 5, 1, 90},  {0, 0, 6, 49}, {1, 5, 1, 2}, {0, 4, 2, 300}, {1, 0, 2, 1},   {0, 0, 6, 2},
    };
    enum { N = sizeof list / sizeof *list, MOST = 300 * 17 };
    rws_params   params = {0};
    rws_arena    listed = {0};
    rws_products products = {.arena = &listed};
    rws_arena    scratch = {0};
    die          d = {61};
    rws__params_add(&params, RWS_THETA, "before", 1, 3);
    const rws_param *w[] = {rws__params_add(&params, RWS_PHI, "a", 17, 6),
                            rws__params_add(&params, RWS_THETA, "b", 4, 6),
                            rws__params_add(&params, RWS_PHI, "c", 5, 1)};
    rws__params_pack(&params);
    float  *gradient = malloc(params.size * sizeof *gradient), *x[N], *dy[N];
    double *want = malloc(params.size * sizeof *want);
    for (int repeat = 0; repeat < 4; repeat++) {
        fill(&d, gradient, params.size);
        for (size_t i = 0; i < params.size; i++) want[i] = (double)gradient[i];
        for (int i = 0; i < N; i++) {
            const int        at = (i * (2 * repeat + 1) * 3 + repeat) % N, n = list[at].n, n_x = list[at].n_x;
            const rws_param *p = w[list[at].weight];
            x[i] = malloc((size_t)(n * n_x) * sizeof(float));
            dy[i] = malloc((size_t)(n * p->rows) * sizeof(float));
            fill(&d, x[i], (size_t)(n * n_x));
            fill(&d, dy[i], (size_t)(n * p->rows));
            rws__products_add(&products, (rws_product){p, list[at].offset, n_x, n, x[i], dy[i]});
            for (int r = 0; r < n; r++)
                for (int o = 0; o < p->rows; o++)
                    for (int j = 0; j < n_x; j++)
                        want[p->offset + (size_t)(o * p->cols + list[at].offset + j)] +=
                            (double)dy[i][r * p->rows + o] * (double)x[i][r * n_x + j];
        }
        if (repeat % 2) { /* a few rows at a time */
            rws__products_join(&products, &scratch);
            for (int k = 0; k < 3; k++)
                for (int first = 0; first < w[k]->rows; first += 4) {
                    const int end = first + 4 < w[k]->rows ? first + 4 : w[k]->rows;
                    assert_true(rws__products_sum(&products, w[k], first, end, gradient, &scratch));
                }
            products.n = 0;
        }
        rws__products_flush(&products, gradient, &scratch);
        assert_int_equal(products.n, 0);
        for (size_t i = 0; i < params.size; i++)
            if (!near((double)gradient[i], want[i], 2e-4))
                fail_msg("number %zu is %g, not %g", i, (double)gradient[i], want[i]);
        rws__products_flush(&products, gradient, &scratch); /* of nothing changes nothing */
        for (size_t i = 0; i < params.size; i++) assert_true(near((double)gradient[i], want[i], 2e-4));
        for (int i = 0; i < N; i++) free(x[i]), free(dy[i]);
        rws__arena_reset(&scratch);
    }
    free(gradient), free(want), rws__arena_free(&listed);
    rws__arena_free(&scratch);
    rws__params_release(&params);
}

/* ---- parameters */

static void params_lie_in_one_vector_by_group(void **state)
{
    (void)state;
    static const struct {
        rws_group   group;
        const char *name;
        int         rows, cols;
        bool        transposed;
    } list[] = {
        {RWS_PHI, "phi.a", 3, 5, true},         {RWS_THETA, "theta", 1, 7, false}, {RWS_BASELINE, "b", 1, 1, false},
        {RWS_PHI, "phi.b", 1, 3, false},        {RWS_THETA, "w", 40, 33, true},    {RWS_CONTROL, "c", 2, 2, true},
        {RWS_PHI, "phi.c.weight", 17, 1, true},
    };
    enum { N = sizeof list / sizeof *list };
    rws_params p = {0};
    rws_param *param[N];
    for (int i = 0; i < N; i++) {
        param[i] = rws__params_add(&p, list[i].group, list[i].name, list[i].rows, list[i].cols);
        assert_non_null(param[i]);
        param[i]->transposed = list[i].transposed;
        for (size_t j = 0; j < rws__param_size(param[i]); j++) {
            assert_true(rws_param_values(param[i])[j] == 0);
            rws_param_values(param[i])[j] = (float)(1000 * i) + (float)j;
        }
    }
    assert_null(rws__params_add(&p, RWS_PHI, "theta", 2, 2)); /* a name is taken in all groups */
    rws__params_pack(&p);

    size_t at = 0;
    for (int g = 0; g < RWS_GROUPS; g++) {
        assert_int_equal(p.first[g], at);
        for (int i = 0; i < N; i++) { /* within a group in the order of declaration */
            if (list[i].group != (rws_group)g) continue;
            assert_int_equal(param[i]->offset, at);
            assert_ptr_equal(rws_param_values(param[i]), p.value + at);
            for (size_t j = 0; j < rws__param_size(param[i]); j++)
                assert_true(p.value[at + j] == (float)(1000 * i) + (float)j);
            at += rws__param_size(param[i]);
        }
    }
    assert_int_equal(p.first[RWS_GROUPS], at);
    assert_int_equal(p.size, at);
    assert_true(aligned(p.value) && aligned(p.transposed));

    for (int pass = 0; pass < 2; pass++) { /* pack has written the copies; they follow when asked to, group by group */
        for (int i = 0; i < N; i++) {
            if (!list[i].transposed) continue;
            const float *t = p.transposed + param[i]->transposed_at;
            assert_true(aligned(t) && param[i]->transposed_at + rws__param_size(param[i]) <= p.transposed_size);
            for (int r = 0; r < list[i].rows; r++)
                for (int c = 0; c < list[i].cols; c++) {
                    const float was = (float)(1000 * i) + (float)(r * list[i].cols + c);
                    assert_true(t[c * list[i].rows + r] == (pass && list[i].group == RWS_PHI ? -was : was));
                }
        }
        for (size_t i = 0; i < p.size; i++) p.value[i] = -p.value[i];
        rws__params_transpose(&p, 1u << RWS_PHI, p.value, p.transposed);
    }
    rws__params_release(&p);
    assert_int_equal(p.n, 0);

    rws_params empty = {0};
    rws__params_release(&empty);
    rws__params_add(&empty, RWS_PHI, "never packed", 2, 2);
    rws__params_release(&empty);
}

/* ---- mathematics */

static double worst; /* relative error so far */

static void compare(float value, double truth)
{
    const double error = fabs((double)value - truth) / fabs(truth);
    if (truth != 0 && !(error <= worst)) worst = error;
}

static void functions_are_right_to_three_units(void **state)
{
    (void)state;
    worst = 0;
    for (double x = -87.3; x < 88.3; x += 1.37e-3) {
        compare(rws__exp((float)x), exp((double)(float)x));
        const float e = (float)exp(x);
        compare(rws__log(e), log((double)e));
    }
    for (double x = 0.5; x < 2; x += 1.37e-5) compare(rws__log((float)x), log((double)(float)x));
    for (double x = 1e-30; x < 20; x = 1.0003 * x) {
        compare(rws__tanh((float)x), tanh((double)(float)x));
        compare(rws__tanh((float)-x), tanh((double)(float)-x));
        compare(rws__expm1((float)x), expm1((double)(float)x));
        compare(rws__expm1((float)-x), expm1((double)(float)-x));
    }
    assert_true(worst < 3 * 0x1p-23);
    assert_true(rws__exp(0) == 1 && rws__log(1) == 0 && rws__tanh(0) == 0);
    assert_true(rws__exp(-INFINITY) == 0 && rws__exp(-200) == 0 && rws__exp(INFINITY) == INFINITY &&
                isnan(rws__exp(NAN)));
    assert_true(rws__expm1(0) == 0 && rws__expm1(-INFINITY) == -1 && rws__expm1(-200) == -1 && isnan(rws__expm1(NAN)));
    assert_true(rws__log_total(7) == rws__log(7) && isnan(rws__log_total(NAN)));
    assert_true(fabsf(rws__tanh(INFINITY) - 1) < 4e-7f && rws__tanh(-INFINITY) == -rws__tanh(INFINITY) &&
                rws__tanh(INFINITY) <= 1 && isnan(rws__tanh(NAN)));
    compare(-rws__log(-rws__log(rws__unit(0))), -log(-log((double)rws__unit(0))));
    compare(-rws__log(-rws__log(rws__unit(UINT32_MAX))), -log(-log((double)rws__unit(UINT32_MAX))));
    assert_true(worst < 3 * 0x1p-23);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_are_read_up_to_their_end),
        cmocka_unit_test(arena_pieces_are_aligned_and_apart),
        cmocka_unit_test(arena_zeroes_what_was_used_before),
        cmocka_unit_test(arena_release_gives_back_what_came_after_the_mark),
        cmocka_unit_test(arena_gives_back_what_was_not_needed_for_long),
        cmocka_unit_test(arena_is_warm_after_a_round),
        cmocka_unit_test(errors_are_sentences),
        cmocka_unit_test(blocks_are_the_published_ones),
        cmocka_unit_test(blocks_of_every_length_are_philox),
        cmocka_unit_test(keys_differ_in_everything_they_are_for),
        cmocka_unit_test(unit_reaches_neither_end),
        cmocka_unit_test(streams_have_their_distribution),
        cmocka_unit_test(below_is_below_and_even),
        cmocka_unit_test(choices_and_samples_have_their_distribution),
        cmocka_unit_test(streams_do_not_depend_on_how_many_are_asked),
        cmocka_unit_test(functions_are_right_to_three_units),
        cmocka_unit_test(gemm_equals_three_loops),
        cmocka_unit_test(bits_stand_for_two_numbers),
        cmocka_unit_test(products_add_up_whatever_their_thickness),
        cmocka_unit_test(params_lie_in_one_vector_by_group),
    };
    return cmocka_run_group_tests_name("base and tensor", tests, NULL, NULL);
}
