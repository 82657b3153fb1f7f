/* vecmath.h - mathematics that vectorises, in loops marked `#pragma omp simd`.
 *
 * exp, log and tanh of floats are written out here, so that they are part of the loops that use them: a call of a
 * vector library costs nearly as much as the function. They are right to three units in the last place; infinities and
 * NaNs keep their meaning, except in rws__log; what is too small for a normal float is zero. The rest is glibc's
 * libmvec: declaring a function `simd` lets gcc use its vector form without -ffast-math. */
#ifndef RWS_BASE_VECMATH_H
#define RWS_BASE_VECMATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define RWS_SIMD __attribute__((simd("notinbranch")))
RWS_SIMD float expf(float);
RWS_SIMD float logf(float);
#if __GLIBC_PREREQ(2, 35)
RWS_SIMD float log1pf(float);
#endif
RWS_SIMD float  cosf(float);
RWS_SIMD double exp(double);
RWS_SIMD double log(double);
#endif

/* A float holds every whole number up to this one; the next one becomes this one. */
#define RWS_MAX_WHOLE (1 << 24)

static inline int32_t rws__float_bits(float x)
{
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float rws__float_of(int32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* x within low … high. Each comparison is written such that it is one instruction; a NaN stays a NaN. */
static inline float rws__clamp(float x, float low, float high)
{
    const float y = high < x ? high : x;
    return low > y ? low : y;
}

/* -88 and 88.7. They are defined in another file, because gcc would fold constants into the comparisons of rws__clamp
 * and make more than two instructions of them. */
extern const float rws_exp_range[2];

/* e^x = 2^n e^r, n = round(x / log 2), |r| <= log(2) / 2; the function returns e^r - 1 = r + r^2 p(r), where p
 * is a minimax polynomial, and sets *power = 2^n. Adding 1.5 * 2^23 rounds to n and leaves n in the lowest bits; at the
 * ends of the range the bits of 2^n are those of 0 and of infinity. */
static inline float rws__exp_parts(float x, float *power)
{
    const float y = rws__clamp(x, rws_exp_range[0], rws_exp_range[1]), round = 0x1.8p23f;
    const float t = y * 1.44269504f + round, n = t - round, r = (y - n * 0x1.62e4p-1f) - n * 0x1.7f7d1cp-20f;
    const float p = (((1.381459836e-03f * r + 8.368716903e-03f) * r + 4.166838805e-02f) * r + 1.666652063e-01f) * r +
                    4.999999345e-01f;
    *power = rws__float_of((int32_t)(((uint32_t)rws__float_bits(t) + 127) << 23));
    return r * r * p + r;
}

static inline float rws__exp(float x)
{
    float       power;
    const float rest = rws__exp_parts(x, &power);
    return power * (rest + 1);
}

/* e^x - 1, for x up to 88; near 0 it keeps its digits. */
static inline float rws__expm1(float x)
{
    float       power;
    const float rest = rws__exp_parts(x, &power);
    return power * rest + (power - 1);
}

/* The logarithm of a positive normal number x = 2^n (1 + f), sqrt(1/2) <= 1 + f < sqrt(2); log(1 + f) = f - f^2 / 2 +
 * f^3 p(f), p minimax. Other numbers give nonsense: use logf for zeros and infinities. */
static inline float rws__log(float x)
{
    const int32_t half = 0x3f3504f3; /* sqrt(1/2) */
    const int32_t bits = rws__float_bits(x) - half;
    const float   n = (float)(bits >> 23), f = rws__float_of((bits & 0x007fffff) + half) - 1;
    float         p = -7.634491419e-02f * f + 1.276157501e-01f;
    p = (p * f - 1.316018337e-01f) * f + 1.420175834e-01f;
    p = (p * f - 1.662335728e-01f) * f + 2.000122686e-01f;
    p = (p * f - 2.500082104e-01f) * f + 3.333333171e-01f;
    return n * 0x1.62e4p-1f + (f + (f * f * (f * p - 0.5f) + n * 0x1.7f7d1cp-20f));
}

/* The logarithm of a sum of exponentials, which is a positive normal number or a NaN; the logarithm of NaN is NaN. */
static inline float rws__log_total(float x)
{
    return rws__log(x) + (x - x);
}

/* x p(x^2) / q(x^2), minimax up to where a float's tanh is 1 less a few units in the last place. */
static inline float rws__tanh(float x)
{
    const float y = rws__clamp(x, -7.95f, 7.95f), z = y * y;
    const float p = (((1.532910896e-08f * z + 2.195905784e-05f) * z + 3.575305903e-03f) * z + 1.344756950e-01f) * z + 1;
    const float q = (((8.560633228e-07f * z + 3.417486260e-04f) * z + 2.617838527e-02f) * z + 4.678089717e-01f) * z + 1;
    return y * p / q;
}

/* Eight numbers at a time, for loops that must hold a row in registers. */
typedef float   rws_v8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t rws_i8 __attribute__((vector_size(32), aligned(4), may_alias));

static inline rws_v8 rws__larger8(rws_v8 a, rws_v8 b)
{
#pragma omp simd
    for (int i = 0; i < 8; i++) a[i] = a[i] > b[i] ? a[i] : b[i];
    return a;
}

static inline rws_v8 rws__exp8(rws_v8 x)
{
#pragma omp simd
    for (int i = 0; i < 8; i++) x[i] = rws__exp(x[i]);
    return x;
}

static inline rws_v8 rws__log_total8(rws_v8 x)
{
#pragma omp simd
    for (int i = 0; i < 8; i++) x[i] = rws__log_total(x[i]);
    return x;
}

/* A pair of uniforms in (0, 1) becomes one normal; odd draws take the sine of the pair (Box and Muller). */
static inline float rws__box_muller(float u, float v, float odd)
{
    return sqrtf(-2 * rws__log(u)) * cosf(6.28318530718f * (v - 0.25f * odd));
}

#endif
