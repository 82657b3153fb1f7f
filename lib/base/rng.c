#include "base/rng.h"

#include "base/vecmath.h"

#include <Random123/philox.h>
#include <string.h>
#ifdef __AVX2__
#include <immintrin.h>
#endif

/* SplitMix64's finaliser: every bit of the answer depends on every bit of x. */
static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

rws_key rws__key_for(uint64_t seed, uint64_t iteration, rws_purpose purpose, uint32_t phase)
{
    uint64_t k = mix(mix(mix(seed) ^ iteration) ^ ((uint64_t)purpose << 32 | phase));
    return (rws_key){{(uint32_t)k, (uint32_t)(k >> 32)}};
}

/* Philox as Random123 has it, one block at a time: the reference, and the code for processors without AVX2. */
static void one_block(rws_key key, uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3, uint32_t *out)
{
    philox4x32_ctr_t counter = {{c0, c1, c2, c3}};
    philox4x32_key_t k = {{key.word[0], key.word[1]}};
    philox4x32_ctr_t block = philox4x32(counter, k);
    memcpy(out, block.v, sizeof block.v);
}

#ifdef __AVX2__
/* The same rounds on vectors of four counters, each word in the low half of a 64-bit lane. Two vectors are computed at
 * a time, so that the processor multiplies one while it waits for the other; more vectors do not fit the registers. */
typedef struct {
    __m256i word[4];
} four;

static inline __attribute__((always_inline)) void lane_blocks(rws_key key, four *x, const int n, uint32_t *out)
{
    const __m256i m0 = _mm256_set1_epi64x(PHILOX_M4x32_0), m1 = _mm256_set1_epi64x(PHILOX_M4x32_1);
    uint32_t      k0 = key.word[0], k1 = key.word[1];
    for (int round = 0; round < 10; round++, k0 += PHILOX_W32_0, k1 += PHILOX_W32_1) {
        const __m256i v0 = _mm256_set1_epi64x(k0), v1 = _mm256_set1_epi64x(k1);
        for (int j = 0; j < n; j++) {
            __m256i *w = x[j].word, p0 = _mm256_mul_epu32(w[0], m0), p1 = _mm256_mul_epu32(w[2], m1);
            w[0] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p1, 32), w[1]), v0);
            w[1] = p1; /* its high half is never read */
            w[2] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p0, 32), w[3]), v1);
            w[3] = p0;
        }
    }
    for (int j = 0; j < n; j++) {
        /* words 0 and 1 of a counter side by side in one lane, words 2 and 3 in another; then interleave */
        const __m256i *w = x[j].word;
        __m256i        low = _mm256_blend_epi32(w[0], _mm256_slli_epi64(w[1], 32), 0xaa);
        __m256i        high = _mm256_blend_epi32(w[2], _mm256_slli_epi64(w[3], 32), 0xaa);
        __m256i        even = _mm256_unpacklo_epi64(low, high), odd = _mm256_unpackhi_epi64(low, high);
        _mm256_storeu_si256((__m256i *)(out + 16 * j), _mm256_permute2x128_si256(even, odd, 0x20));
        _mm256_storeu_si256((__m256i *)(out + 16 * j + 8), _mm256_permute2x128_si256(even, odd, 0x31));
    }
}

static __m256i four_words(const uint32_t *c)
{
    return _mm256_cvtepu32_epi64(_mm_loadu_si128((const __m128i *)c));
}

static inline __attribute__((always_inline)) void particle_lanes(rws_key key, const uint32_t *c0, const uint32_t *c1,
                                                                 uint32_t c2, uint32_t c3, const int n, uint32_t *out)
{
    four x[2];
    for (int j = 0; j < n; j++)
        x[j] = (four){{four_words(c0 + 4 * j), four_words(c1 + 4 * j), _mm256_set1_epi64x(c2), _mm256_set1_epi64x(c3)}};
    lane_blocks(key, x, n, out);
}

static inline void ordinal_lanes(rws_key key, const uint32_t *c0, const uint32_t *c1, const uint32_t *c2, uint32_t c3,
                                 uint32_t *out)
{
    four x[2];
    for (int j = 0; j < 2; j++)
        x[j] = (four){{four_words(c0 + 4 * j), four_words(c1 + 4 * j), four_words(c2 + 4 * j), _mm256_set1_epi64x(c3)}};
    lane_blocks(key, x, 2, out);
}

static inline __attribute__((always_inline)) void row_lanes(rws_key key, uint32_t c0, uint32_t c1, uint32_t c2,
                                                            uint32_t first, const int n, uint32_t *out)
{
    const __m256i step = _mm256_set_epi64x(3, 2, 1, 0);
    four          x[2];
    for (int j = 0; j < n; j++)
        x[j] = (four){{_mm256_set1_epi64x(c0), _mm256_set1_epi64x(c1), _mm256_set1_epi64x(c2),
                       _mm256_add_epi64(_mm256_set1_epi64x(first + 4 * (uint32_t)j), step)}};
    lane_blocks(key, x, n, out);
}
#endif

void rws__rng_blocks(rws_key key, size_t n, const uint32_t *c0, const uint32_t *c1, uint32_t c2, uint32_t c3,
                     uint32_t *out)
{
    size_t i = 0;
#ifdef __AVX2__
    for (; i + 8 <= n; i += 8) particle_lanes(key, c0 + i, c1 + i, c2, c3, 2, out + 4 * i);
    for (; i + 4 <= n; i += 4) particle_lanes(key, c0 + i, c1 + i, c2, c3, 1, out + 4 * i);
#endif
    for (; i < n; i++) one_block(key, c0[i], c1[i], c2, c3, out + 4 * i);
}

void rws__rng_blocks_at(rws_key key, size_t n, const uint32_t *c0, const uint32_t *c1, const uint32_t *c2, uint32_t c3,
                        uint32_t *out)
{
    size_t i = 0;
#ifdef __AVX2__
    for (; i + 8 <= n; i += 8) ordinal_lanes(key, c0 + i, c1 + i, c2 + i, c3, out + 4 * i);
#endif
    for (; i < n; i++) one_block(key, c0[i], c1[i], c2[i], c3, out + 4 * i);
}

void rws__rng_row(rws_key key, size_t n, uint32_t c0, uint32_t c1, uint32_t c2, uint32_t first, uint32_t *out)
{
    size_t i = 0;
#ifdef __AVX2__
    for (; i + 8 <= n; i += 8) row_lanes(key, c0, c1, c2, first + (uint32_t)i, 2, out + 4 * i);
    for (; i + 4 <= n; i += 4) row_lanes(key, c0, c1, c2, first + (uint32_t)i, 1, out + 4 * i);
#endif
    for (; i < n; i++) one_block(key, c0, c1, c2, first + (uint32_t)i, out + 4 * i);
}

rws_random rws__random_new(rws_key key, uint32_t stream)
{
    return (rws_random){.key = key, .stream = stream};
}

static uint32_t next_word(rws_random *g)
{
    if (g->left == 0) {
        rws__rng_blocks(g->key, 1, &g->next, &g->stream, 0, 0, g->buffer);
        g->next++;
        g->left = 4;
    }
    return g->buffer[--g->left];
}

double rws_random_uniform(rws_random *g)
{
    uint32_t high = next_word(g), low = next_word(g);
    return ((double)high * 0x1p20 + (double)(low >> 12) + 0.5) * 0x1p-52;
}

double rws_random_normal(rws_random *g)
{
    double u = rws_random_uniform(g), v = rws_random_uniform(g);
    return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

uint32_t rws_random_below(rws_random *g, uint32_t n)
{
    return (uint32_t)(((uint64_t)next_word(g) * n) >> 32);
}

int rws_random_choose(rws_random *g, const double *probabilities, int n)
{
    int i = 0;
    for (double u = rws_random_uniform(g); i < n - 1 && (u -= probabilities[i]) > 0;) i++;
    return i;
}

/* Fisher and Yates: places from `end` on are drawn, in the reverse order until the last loop. */
void rws_random_sample(rws_random *g, int n, int wanted, int *order)
{
    for (int i = 0; i < n; i++) order[i] = i;
    for (int end = n - 1; end >= n - wanted && end >= 0; end--) {
        const int k = (int)rws_random_below(g, (uint32_t)(end + 1)), drawn = order[k];
        order[k] = order[end];
        order[end] = drawn;
    }
    for (int i = 0, j = n - 1; i < j; i++, j--) {
        const int other = order[i];
        order[i] = order[j];
        order[j] = other;
    }
}

/* Takes whole blocks, many at a time. Words that are left of the last block are not used again. */
static void next_words(rws_random *g, size_t n, uint32_t *out)
{
    enum { CHUNK = 64 };
    uint32_t block[CHUNK], stream[CHUNK], words[4 * CHUNK];
    g->left = 0;
    for (size_t done = 0; done < n;) {
        size_t n_blocks = (n - done + 3) / 4;
        if (n_blocks > CHUNK) n_blocks = CHUNK;
        for (size_t i = 0; i < n_blocks; i++) block[i] = g->next++, stream[i] = g->stream;
        rws__rng_blocks(g->key, n_blocks, block, stream, 0, 0, words);
        for (size_t i = 0; i < 4 * n_blocks && done < n; i++) out[done++] = words[i];
    }
}

void rws_random_uniforms(rws_random *g, size_t n, float *out)
{
    enum { CHUNK = 256 };
    uint32_t words[CHUNK];
    for (size_t done = 0; done < n;) {
        size_t m = n - done < CHUNK ? n - done : CHUNK;
        next_words(g, m, words);
        for (size_t i = 0; i < m; i++) out[done + i] = rws__unit(words[i]);
        done += m;
    }
}

void rws_random_normals(rws_random *g, size_t n, float *out)
{
    enum { CHUNK = 128 };
    uint32_t words[2 * CHUNK];
    for (size_t done = 0; done < n;) {
        size_t m = n - done < CHUNK ? n - done : CHUNK;
        next_words(g, 2 * m, words);
#pragma omp simd
        for (size_t i = 0; i < m; i++)
            out[done + i] = rws__box_muller(rws__unit(words[2 * i]), rws__unit(words[2 * i + 1]), 0);
        done += m;
    }
}
