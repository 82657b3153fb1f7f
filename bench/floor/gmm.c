/* gmm.c - training of the Gaussian mixture with nothing in the way: one model, three methods, one thread.
 *
 * A lower bound on the time that the same work takes in a program that knows neither the model nor the method.
 * It has no checkpoints, no evaluation but the last line, and no other network than 1-16-20.
 *
 * Shapes: B data in blocks of W lanes (the tail is padding), H hidden units, C categories; arrays are [unit][lane], so
 * the softmax, the inverse cdf and the counts run down the lanes. K particles of one datum differ only by category, so
 * they are kept as counts; a row is one (datum, category) with a count above zero, at most min(K, C) of them per datum.
 */
#include <Random123/philox.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef __SSE__
#include <immintrin.h>
#endif

/* gcc follows the pragma or is silent; clang warns where it does not vectorise, so it gets a plain loop. */
#ifdef __clang__
#define PRAGMA(text)
#else
#define PRAGMA(text) _Pragma(#text)
#endif
#define FOR_SIMD(i, n) PRAGMA(omp simd) for (int i = 0; i < (n); i++)
#define FOR_SIMD_SUM(i, n, sum) PRAGMA(omp simd reduction(+ : sum)) for (int i = 0; i < (n); i++)

/* glibc's vector variants; the clones are found by name, hence gcc on x86-64 glibc only. Scalar libm elsewhere. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__)
#define CLONED __attribute__((simd("notinbranch")))
CLONED float  logf(float);
CLONED float  sinf(float);
CLONED float  cosf(float);
CLONED double exp(double);
CLONED double log(double);
#endif

enum { WW, WS, VIMCO, N_METHODS };
enum { C = 20, H = 16, B = 100, V = 8, N_VECS = 13, W = V * N_VECS, N_ROWS = B * C };

typedef float    aliased __attribute__((may_alias));
typedef float    vec __attribute__((vector_size(4 * V), may_alias));
typedef int32_t  ivec __attribute__((vector_size(4 * V), may_alias));
typedef uint64_t wide __attribute__((vector_size(4 * V), may_alias));
#define ALIGNED __attribute__((aligned(64)))

/* product of the low halves of 64-bit lanes */
#ifdef __AVX2__
#define MUL_LOW(a, b) (wide) _mm256_mul_epu32((__m256i)(a), (__m256i)(b))
#else
#define MUL_LOW(a, b) (((a)&0xffffffff) * (b))
#endif

/* q(z|x) = softmax(w2 tanh(w1 x + b1) + b2): 372 parameters, also seen as one flat vector. */
typedef struct {
    float w1[H], b1[H], w2[C][H], b2[C];
} net;
enum { N_PHI = sizeof(net) / sizeof(float) };

typedef struct {
    float  m[N_PHI], v[N_PHI];
    double b1t, b2t; /* beta^t */
} adam;

static net phi ALIGNED;
static float   theta[C] ALIGNED;
static float   x[W] ALIGNED, hidden[H][W] ALIGNED, logit[C][W] ALIGNED, cum[C][W] ALIGNED, q[C][W] ALIGNED;
static float   d_logit[C][W] ALIGNED;
static vec     lanes[N_PHI]; /* gradient of phi, not yet summed over the V lanes */
static int32_t category[W] ALIGNED, n_below[C + 1][W] ALIGNED;

/* ---- random numbers ---- */

static struct {
    uint32_t seed;
    uint64_t call;
} rng;

/* out[0..4n): Philox4x32-10 as in Random123, key (seed, 0), counters (v, call, call >> 32, 0) for v < n, n a multiple
 * of V. Words are carried in the low halves of 64-bit lanes, where one instruction gives both halves of their product;
 * the high halves hold rubbish until the end. Counter s + v + V/2 h of a group of V has word w at 4s + V w + 2v + h. */
static void draw(uint32_t *restrict out, int n)
{
    const uint64_t low = 0xffffffff;
    uint64_t       at = rng.call++;
    for (int s = 0; s < n; s += V) {
        const wide zero = {0}, lane = {0, 1, 2, 3}, m0 = zero + PHILOX_M4x32_0, m1 = zero + PHILOX_M4x32_1;
        wide       c[4][2], k0 = zero + rng.seed, k1 = zero;
        for (int h = 0; h < 2; h++)
            c[0][h] = lane + (uint64_t)(s + h * V / 2), c[1][h] = zero + at, c[2][h] = c[1][h] >> 32, c[3][h] = zero;
        for (int round = 0; round < 10; round++, k0 += PHILOX_W32_0, k1 += PHILOX_W32_1)
            for (int h = 0; h < 2; h++) {
                wide p0 = MUL_LOW(c[0][h], m0), p1 = MUL_LOW(c[2][h], m1);
                c[0][h] = (p1 >> 32) ^ c[1][h] ^ k0, c[1][h] = p1;
                c[2][h] = (p0 >> 32) ^ c[3][h] ^ k1, c[3][h] = p0;
            }
        for (int w = 0; w < 4; w++) *(wide *)(out + 4 * s + V * w) = (c[w][0] & low) | c[w][1] << 32;
    }
}

/* counters for n words, rounded up to whole vectors */
static int n_counters(int n)
{
    return (n + 4 * V - 1) / (4 * V) * V;
}

/* (0, 1), both ends excluded even after rounding to float. */
static inline float uniform(uint32_t r)
{
    float u = (float)(int32_t)(r >> 1) * 0x1p-31f + 0x1p-32f;
    return u < 0x1.fffffep-1f ? u : 0x1.fffffep-1f;
}

/* W draws of the joint: category ~ cdf by inversion, x ~ N(10 category, 25) by Box-Muller. */
static void sample_joint(const float *cdf)
{
    static uint32_t r[2 * W + 4 * V] ALIGNED;
    static float    radius[W / 2] ALIGNED, angle[W / 2] ALIGNED;
    draw(r, n_counters(2 * W));
    FOR_SIMD (i, W) {
        float   u = uniform(r[i]);
        int32_t z = 0;
        for (int c = 0; c < C - 1; c++) z += u >= cdf[c];
        category[i] = z;
    }
    FOR_SIMD (i, W / 2) {
        radius[i] = 5 * sqrtf(-2 * logf(uniform(r[W + i])));
        angle[i] = 6.2831853f * uniform(r[W + W / 2 + i]);
    }
    /* one loop each: in one loop gcc would merge them to a scalar sincosf */
    FOR_SIMD (i, W / 2) x[i] = (float)(10 * category[i]) + radius[i] * cosf(angle[i]);
    FOR_SIMD (i, W / 2) x[W / 2 + i] = (float)(10 * category[W / 2 + i]) + radius[i] * sinf(angle[i]);
}

/* ---- inference network ---- */

/* exp(a) = 2^n e^r, n = round(a / log 2), |r| <= log(2)/2, e^r = 1 + r + r^2 poly(r) (minimax); relative error 1e-7,
 * a clamped to where the result is a normal number. Inlined, it takes half the time of libmvec's. */
static inline float exp_inline(float a)
{
    a = a < -87 ? -87 : a > 88 ? 88 : a;
    float   n = rintf(a * 1.44269504f), r = (a - n * 0x1.62e4p-1f) - n * 0x1.7f7d1cp-20f;
    float   poly = (((0.00138146f * r + 0.00836871f) * r + 0.04166839f) * r + 0.16666521f) * r + 0.49999993f;
    int32_t bits = ((int32_t)n + 127) << 23;
    float   power;
    memcpy(&power, &bits, sizeof power);
    return power * (r * r * poly + r + 1);
}

static inline float tanh_inline(float a)
{
    return 1 - 2 / (exp_inline(2 * a) + 1);
}

/* x -> hidden, logit, q = softmax(logit), and cum = running sums of exp(logit - max) down the categories. */
static void forward(void)
{
    for (int j = 0; j < H; j++)
        FOR_SIMD (i, W) hidden[j][i] = tanh_inline(phi.w1[j] * x[i] + phi.b1[j]);
    enum { R = 10 };
    for (int c = 0; c < C; c += R)
        for (int i = 0; i < W; i += V) {
            vec a[R];
            for (int r = 0; r < R; r++) a[r] = (vec){0} + phi.b2[c + r];
            for (int j = 0; j < H; j++)
                for (int r = 0; r < R; r++) a[r] += phi.w2[c + r][j] * *(vec *)&hidden[j][i];
            for (int r = 0; r < R; r++) *(vec *)&logit[c + r][i] = a[r];
        }
    static float max[W] ALIGNED, inverse[W] ALIGNED;
    FOR_SIMD (i, W) {
        float m = logit[0][i];
        for (int c = 1; c < C; c++) m = logit[c][i] > m ? logit[c][i] : m;
        max[i] = m;
    }
    for (int c = 0; c < C; c++)
        FOR_SIMD (i, W) q[c][i] = exp_inline(logit[c][i] - max[i]);
    memcpy(cum[0], q[0], sizeof cum[0]);
    for (int c = 1; c < C; c++)
        FOR_SIMD (i, W) cum[c][i] = cum[c - 1][i] + q[c][i];
    FOR_SIMD (i, W) inverse[i] = 1 / cum[C - 1][i];
    for (int c = 0; c < C; c++)
        FOR_SIMD (i, W) q[c][i] *= inverse[i];
}

/* lanes += d/dphi of sum_{c,i} d_logit[c][i] logit[c][i]; padding lanes must have d_logit 0. */
static void backward(void)
{
    vec *g_w1 = lanes, *g_b1 = g_w1 + H, *g_w2 = g_b1 + H, *g_b2 = g_w2 + C * H;
    enum { RC = 5, RJ = 2, R = 8 };
    for (int c = 0; c < C; c += RC)
        for (int j = 0; j < H; j += RJ) {
            vec a[RC][RJ];
            for (int r = 0; r < RC * RJ; r++) a[r / RJ][r % RJ] = g_w2[(c + r / RJ) * H + j + r % RJ];
            for (int i = 0; i < W; i += V)
                for (int r = 0; r < RC * RJ; r++)
                    a[r / RJ][r % RJ] += *(vec *)&d_logit[c + r / RJ][i] * *(vec *)&hidden[j + r % RJ][i];
            for (int r = 0; r < RC * RJ; r++) g_w2[(c + r / RJ) * H + j + r % RJ] = a[r / RJ][r % RJ];
        }
    for (int c = 0; c < C; c++)
        for (int i = 0; i < W; i += V) g_b2[c] += *(vec *)&d_logit[c][i];
    for (int j = 0; j < H; j += R)
        for (int i = 0; i < W; i += V) {
            vec a[R] = {{0}};
            for (int c = 0; c < C; c++)
                for (int r = 0; r < R; r++) a[r] += phi.w2[c][j + r] * *(vec *)&d_logit[c][i];
            for (int r = 0; r < R; r++) {
                vec h = *(vec *)&hidden[j + r][i], d = a[r] * (1 - h * h);
                g_b1[j + r] += d;
                g_w1[j + r] += d * *(vec *)&x[i];
            }
        }
}

/* step = lr m/(1-b1^t) / (sqrt(v/(1-b2^t)) + eps), upwards. */
static void adam_step(adam *s, float *restrict param, const float *restrict grad, int n)
{
    const float lr = 1e-3f, b1 = 0.9f, b2 = 0.999f, eps = 1e-8f;
    s->b1t *= 0.9, s->b2t *= 0.999;
    float a = lr / (float)(1 - s->b1t), b = (float)(1 / (1 - s->b2t));
    FOR_SIMD (p, n) {
        s->m[p] = b1 * s->m[p] + (1 - b1) * grad[p];
        s->v[p] = b2 * s->v[p] + (1 - b2) * grad[p] * grad[p];
        param[p] += a * s->m[p] / (sqrtf(b * s->v[p]) + eps);
    }
}

static void step_phi(adam *s, float scale)
{
    static float grad[N_PHI] ALIGNED;
    for (int p = 0; p < N_PHI; p++) {
        vec l = lanes[p];
        grad[p] = scale * (((l[0] + l[4]) + (l[1] + l[5])) + ((l[2] + l[6]) + (l[3] + l[7])));
    }
    memset(lanes, 0, sizeof lanes);
    adam_step(s, (float *)&phi, grad, N_PHI);
}

/* ---- particles ---- */

/* n_below[c][i] = how many of the K draws of datum i have a category below c. The test is u sum < cum[c], so a category
 * with q = 0 is never drawn. u is scratch for K W words and the rounding up. */
static void sample_particles(int K, uint32_t *u)
{
    draw(u, n_counters(K * W));
    aliased *f = (aliased *)u; /* in place of the words */
    for (int k = 0; k < K; k++)
        FOR_SIMD (i, W) f[k * W + i] = uniform(u[k * W + i]) * cum[C - 1][i];
    enum { R = 10 };
    for (int c = 0; c < C; c += R)
        for (int i = 0; i < W; i += V) {
            ivec n[R] = {{0}};
            for (int k = 0; k < K; k++)
                for (int r = 0; r < R; r++) n[r] -= *(vec *)&f[k * W + i] < *(vec *)&cum[c + r][i];
            for (int r = 0; r < R; r++) *(ivec *)&n_below[c + r + 1][i] = n[r];
        }
}

/* The rows, datum by datum; the padding has none. */
static int    n_rows, row_i[N_ROWS], row_at[N_ROWS]; /* datum; category W + datum */
static double row_n[N_ROWS], row_l[N_ROWS], row_e[N_ROWS], row_rest[N_ROWS], row_mean[N_ROWS], row_gain[N_ROWS];
/* [category][datum], zero where there is no row, except others. */
static double weight[C][W] ALIGNED, score[C][W] ALIGNED, others[C][W] ALIGNED, sum_w[W] ALIGNED, sum_l[W] ALIGNED;

static void column_sums(double *restrict sum, double (*restrict of)[W])
{
    memcpy(sum, of[0], sizeof of[0]);
    for (int c = 1; c < C; c++)
        FOR_SIMD (i, W) sum[i] += of[c][i];
}

/* row_l = log p(z, x) - log q(z|x) up to a constant per datum, such that its maximum is near 0 (every use is relative
 * to the datum: the normalisers of q and of the Gaussian cancel); row_e = exp(row_l); weight = n row_e. */
static void weigh(const double *log_prior)
{
    static float    max[W] ALIGNED;
    static uint32_t present[W] ALIGNED;
    float           prior[C];
    for (int c = 0; c < C; c++) prior[c] = (float)log_prior[c];
    FOR_SIMD (i, W) {
        float    m = -INFINITY;
        uint32_t bits = 0;
        for (int c = 0; c < C; c++) {
            float   z = (x[i] - (float)(10 * c)) * 0.2f, l = prior[c] - 0.5f * z * z - logit[c][i];
            int32_t n = n_below[c + 1][i] - n_below[c][i];
            m = n && l > m ? l : m;
            bits |= n ? 1u << c : 0;
        }
        max[i] = m;
        present[i] = bits;
    }
    n_rows = 0;
    for (int i = 0; i < B; i++) n_rows += __builtin_popcount(present[i]);
    uint32_t bits = present[0], next = present[1];
    for (int r = 0, i = 0; r < n_rows; r++) { /* one loop, without a branch per datum: those are not predictable */
        int    c = __builtin_ctz(bits), at = c * W + i;
        double z = (x[i] - (float)(10 * c)) * 0.2f;
        row_i[r] = i, row_at[r] = at;
        row_n[r] = (&n_below[1][0])[at] - (&n_below[0][0])[at];
        row_l[r] = log_prior[c] - 0.5 * z * z - (double)((&logit[0][0])[at] + max[i]);
        bits &= bits - 1;
        i += bits == 0;
        bits = bits ? bits : next;
        next = present[i + 1];
    }
    FOR_SIMD (r, n_rows) row_e[r] = exp(row_l[r]);
    memset(weight, 0, sizeof weight);
    for (int r = 0; r < n_rows; r++) (&weight[0][0])[row_at[r]] = row_n[r] * row_e[r];
    column_sums(sum_w, weight);
}

/* L - Ups_{-k} of a particle of row r when exp underflows for all others (a lone maximum more than 640 above them). */
static double far_gain(int r)
{
    int from = r, to = r;
    while (from > 0 && row_i[from - 1] == row_i[r]) from--;
    while (to < n_rows && row_i[to] == row_i[r]) to++;
    double max = -INFINITY;
    for (int o = from; o < to; o++) max = o != r && row_l[o] > max ? row_l[o] : max;
    double sum = exp(row_mean[r] - max);
    for (int o = from; o < to; o++) sum += o == r ? 0 : row_n[o] * exp(row_l[o] - max);
    return log(sum_w[row_i[r]]) - max - log(sum);
}

/* score = n (L - Ups_{-k}). Both have -log K, so with l relative to the datum it is log(sum_w / (rest + exp(m))),
 * rest = sum of exp(l) over the other particles, summed without subtraction, m = mean of their l. */
static void leave_one_out(int K)
{
    memset(score, 0, sizeof score);
    for (int r = 0; r < n_rows; r++) (&score[0][0])[row_at[r]] = row_n[r] * row_l[r];
    column_sums(sum_l, score);
    static double after[W] ALIGNED;
    memset(others[0], 0, sizeof others[0]);
    memset(after, 0, sizeof after);
    for (int c = 1; c < C; c++)
        FOR_SIMD (i, W) others[c][i] = others[c - 1][i] + weight[c - 1][i];
    for (int c = C - 2; c >= 0; c--)
        FOR_SIMD (i, W) others[c][i] += after[i] += weight[c + 1][i];
    for (int r = 0; r < n_rows; r++) {
        row_rest[r] = (&others[0][0])[row_at[r]] + (row_n[r] - 1) * row_e[r];
        row_mean[r] = (sum_l[row_i[r]] - row_l[r]) * (1.0 / (K - 1));
        row_gain[r] = sum_w[row_i[r]];
    }
    FOR_SIMD (r, n_rows) row_gain[r] = log(row_gain[r] / (row_rest[r] + exp(row_mean[r])));
    for (int r = 0; r < n_rows; r++) {
        if (!(row_gain[r] < 640)) row_gain[r] = far_gain(r);
        (&score[0][0])[row_at[r]] = row_n[r] * row_gain[r];
    }
}

/* d_logit = per datum sum_k a_k (onehot - q), with a_k = wbar_k (ww) or L - Ups_{-k} - wbar_k (vimco), not yet divided
 * by B; grad_theta = batch mean of sum_k wbar_k onehot, less the prior. ws needs only the latter. */
static void coefficients(int method, const double *log_prior, float *grad_theta)
{
    static double inverse[W] ALIGNED, total[W] ALIGNED;
    int           vimco = method == VIMCO;
    if (vimco) column_sums(total, score);
    FOR_SIMD (i, B) {
        inverse[i] = 1 / sum_w[i];
        total[i] = vimco ? total[i] - 1 : 1;
    }
    memset(total + B, 0, sizeof total - B * sizeof *total); /* inverse is 0 there */
    for (int c = 0; c < C; c++) {
        double share = 0;
        FOR_SIMD_SUM (i, W, share) share += weight[c][i] *= inverse[i];
        grad_theta[c] = (float)(share / B - exp(log_prior[c]));
        if (method == VIMCO)
            FOR_SIMD (i, W) d_logit[c][i] = (float)(score[c][i] - weight[c][i] - total[i] * (double)q[c][i]);
        else if (method == WW)
            FOR_SIMD (i, W) d_logit[c][i] = (float)(weight[c][i] - total[i] * (double)q[c][i]);
    }
}

/* lanes += sum over S joint draws of the model of grad log q(z|x). */
static void sleep_gradient(int S, const double *log_prior)
{
    float cdf[C], sum = 0;
    for (int c = 0; c < C; c++) cdf[c] = sum += (float)exp(log_prior[c]);
    for (int s = 0; s < S; s += W) {
        sample_joint(cdf);
        forward();
        for (int c = 0; c < C; c++)
            FOR_SIMD (i, W) d_logit[c][i] = s + i < S ? (float)(category[i] == c) - q[c][i] : 0;
        backward();
    }
}

static void log_softmax(double *out)
{
    double sum = 0, max = -INFINITY;
    for (int c = 0; c < C; c++) max = theta[c] > max ? theta[c] : max;
    for (int c = 0; c < C; c++) out[c] = exp(theta[c] - max);
    for (int c = 0; c < C; c++) sum += out[c];
    for (int c = 0; c < C; c++) out[c] = theta[c] - max - log(sum);
}

int main(int argc, char **argv)
{
    const char *const methods[N_METHODS] = {"ww", "ws", "vimco"};
    int               method = 0, K = argc > 2 ? atoi(argv[2]) : 0, n_iterations = argc > 3 ? atoi(argv[3]) : 0;
    while (argc > 1 && method < N_METHODS && strcmp(argv[1], methods[method])) method++;
    if (argc < 4 || argc > 5 || method == N_METHODS || K < 1 + (method == VIMCO) || K > 1 << 20 || n_iterations < 1) {
        fprintf(stderr, "usage: floor_gmm ww|ws|vimco PARTICLES ITERATIONS [SEED]   (vimco needs 2 particles)\n");
        return 2;
    }
    uint32_t *scratch = aligned_alloc(64, (size_t)n_counters(K * W) * 16 / 64 * 64 + 64);
    if (!scratch) return 1;
#ifdef __SSE__
    _mm_setcsr(_mm_getcsr() | 0x8040); /* flush to zero, denormals are zero */
#endif
    rng.seed = argc > 4 ? (uint32_t)strtoul(argv[4], NULL, 0) : 1;

    static uint32_t r[N_PHI + 4 * V] ALIGNED;
    draw(r, n_counters(N_PHI));
    for (int p = 0; p < N_PHI; p++) /* U(-1, 1) / sqrt(n_in): n_in is 1 for the first 2 H, H for the rest */
        ((float *)&phi)[p] = (2 * uniform(r[p]) - 1) / (p < 2 * H ? 1 : sqrtf(H));
    float true_cdf[C];
    for (int c = 0; c < C; c++) {
        theta[c] = (float)(C - 1 - c); /* far start */
        true_cdf[c] = (float)(c + 5) / 290 + (c ? true_cdf[c - 1] : 0);
    }

    static adam     adam_theta = {.b1t = 1, .b2t = 1}, adam_phi = {.b1t = 1, .b2t = 1};
    double          log_prior[C], squares = 0;
    float           grad_theta[C];
    double          us = INFINITY;
    int             n_part = n_iterations < 20 ? 1 : n_iterations / 20;
    struct timespec t0 = {0}, t1;
    log_softmax(log_prior);
    for (int t = 0; t < n_iterations; t++) {
        if (t % n_part == 0) clock_gettime(CLOCK_MONOTONIC, &t0);
        sample_joint(true_cdf);
        forward();
        sample_particles(K, scratch);
        weigh(log_prior);
        if (method == VIMCO) leave_one_out(K);
        coefficients(method, log_prior, grad_theta);
        adam_step(&adam_theta, theta, grad_theta, C);
        log_softmax(log_prior);
        if (method == WS) sleep_gradient(K * B, log_prior);
        else backward();
        step_phi(&adam_phi, 1 / (float)(method == WS ? K * B : B));
        if (t % n_part == n_part - 1) {
            clock_gettime(CLOCK_MONOTONIC, &t1);
            double ns = (double)(t1.tv_sec - t0.tv_sec) * 1e9 + (double)(t1.tv_nsec - t0.tv_nsec);
            us = fmin(us, ns * 1e-3 / n_part); /* the fastest of 20 parts */
        }
    }

    for (int c = 0; c < C; c++) squares += pow(exp(log_prior[c]) - (c + 5) / 290.0, 2);
    printf("{\"method\":\"%s\",\"particles\":%d,\"iterations\":%d,\"us_per_iteration\":%.3f,\"p_error\":%.6f}\n",
           methods[method], K, n_iterations, us, sqrt(squares));
    free(scratch);
    return 0;
}
