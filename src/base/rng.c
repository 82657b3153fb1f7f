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

rws_key rws_key_for(uint64_t seed, uint64_t iteration, rws_purpose purpose, uint32_t phase)
{
    uint64_t k = mix(mix(mix(seed) ^ iteration) ^ ((uint64_t)purpose << 32 | phase));
    return (rws_key){{(uint32_t)k, (uint32_t)(k >> 32)}};
}

/* Random123's own, one block at a time: the reference, and what runs where there is no AVX2. */
static void one_block(rws_key key, uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3, uint32_t *out)
{
    philox4x32_ctr_t counter = {{c0, c1, c2, c3}};
    philox4x32_key_t k = {{key.word[0], key.word[1]}};
    philox4x32_ctr_t block = philox4x32(counter, k);
    memcpy(out, block.v, sizeof block.v);
}

#ifdef __AVX2__
#define LANES 16 /* four vectors of four counters, so that the multiplications of one hide behind the others */

/* The same rounds on LANES counters side by side, each in the low half of a 64-bit lane. */
static void lane_blocks(rws_key key, const uint32_t *c0, const uint32_t *c1, uint32_t c2, uint32_t c3, uint32_t *out)
{
    const __m256i m0 = _mm256_set1_epi64x(PHILOX_M4x32_0), m1 = _mm256_set1_epi64x(PHILOX_M4x32_1);
    __m256i       x0[4], x1[4], x2[4], x3[4];
    for (int j = 0; j < 4; j++) {
        x0[j] = _mm256_cvtepu32_epi64(_mm_loadu_si128((const __m128i *)(c0 + 4 * j)));
        x1[j] = _mm256_cvtepu32_epi64(_mm_loadu_si128((const __m128i *)(c1 + 4 * j)));
        x2[j] = _mm256_set1_epi64x(c2);
        x3[j] = _mm256_set1_epi64x(c3);
    }
    uint32_t k0 = key.word[0], k1 = key.word[1];
    for (int round = 0; round < 10; round++, k0 += PHILOX_W32_0, k1 += PHILOX_W32_1) {
        const __m256i v0 = _mm256_set1_epi64x(k0), v1 = _mm256_set1_epi64x(k1);
        for (int j = 0; j < 4; j++) {
            __m256i p0 = _mm256_mul_epu32(x0[j], m0), p1 = _mm256_mul_epu32(x2[j], m1);
            x0[j] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p1, 32), x1[j]), v0);
            x1[j] = p1; /* its high half is never looked at */
            x2[j] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p0, 32), x3[j]), v1);
            x3[j] = p0;
        }
    }
    for (int j = 0; j < 4; j++) {
        /* words 0 and 1 of a counter side by side in one lane, words 2 and 3 in another; then interleave */
        __m256i low = _mm256_blend_epi32(x0[j], _mm256_slli_epi64(x1[j], 32), 0xaa);
        __m256i high = _mm256_blend_epi32(x2[j], _mm256_slli_epi64(x3[j], 32), 0xaa);
        __m256i even = _mm256_unpacklo_epi64(low, high), odd = _mm256_unpackhi_epi64(low, high);
        _mm256_storeu_si256((__m256i *)(out + 16 * j), _mm256_permute2x128_si256(even, odd, 0x20));
        _mm256_storeu_si256((__m256i *)(out + 16 * j + 8), _mm256_permute2x128_si256(even, odd, 0x31));
    }
}
#endif

void rws_rng_blocks(rws_key key, size_t n, const uint32_t *c0, const uint32_t *c1, uint32_t c2, uint32_t c3,
                    uint32_t *out)
{
    size_t i = 0;
#ifdef __AVX2__
    for (; i + LANES <= n; i += LANES) lane_blocks(key, c0 + i, c1 + i, c2, c3, out + 4 * i);
#endif
    for (; i < n; i++) one_block(key, c0[i], c1[i], c2, c3, out + 4 * i);
}

rws_random rws_random_new(rws_key key, uint32_t stream)
{
    return (rws_random){.key = key, .stream = stream};
}

static uint32_t next_word(rws_random *g)
{
    if (g->left == 0) {
        rws_rng_blocks(g->key, 1, &g->next, &g->stream, 0, 0, g->buffer);
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

/* Takes whole blocks, many at a time; leaves the stream at a block's edge. */
static void next_words(rws_random *g, size_t n, uint32_t *out)
{
    enum { CHUNK = 64 };
    uint32_t block[CHUNK], stream[CHUNK], words[4 * CHUNK];
    g->left = 0;
    for (size_t done = 0; done < n;) {
        size_t n_blocks = (n - done + 3) / 4;
        if (n_blocks > CHUNK) n_blocks = CHUNK;
        for (size_t i = 0; i < n_blocks; i++) block[i] = g->next++, stream[i] = g->stream;
        rws_rng_blocks(g->key, n_blocks, block, stream, 0, 0, words);
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
        for (size_t i = 0; i < m; i++) out[done + i] = rws_unit(words[i]);
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
            out[done + i] = rws_box_muller(rws_unit(words[2 * i]), rws_unit(words[2 * i + 1]), 0);
        done += m;
    }
}
