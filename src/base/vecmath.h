/* vecmath.h - mathematics that vectorises.
 *
 * glibc's libmvec has vector forms of these functions; declaring them `simd` lets gcc use them in loops marked
 * `#pragma omp simd` without -ffast-math, so that infinities and NaNs keep their meaning. Elsewhere they are libm's.
 */
#ifndef RWS_BASE_VECMATH_H
#define RWS_BASE_VECMATH_H

#include <math.h>
#include <stdint.h>

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define RWS_SIMD __attribute__((simd("notinbranch")))
RWS_SIMD float  expf(float);
RWS_SIMD float  expm1f(float);
RWS_SIMD float  logf(float);
RWS_SIMD float  log1pf(float);
RWS_SIMD float  tanhf(float);
RWS_SIMD float  cosf(float);
RWS_SIMD double exp(double);
RWS_SIMD double log(double);
#endif

/* Eight numbers at a time, for loops that must hold a row in registers. */
typedef float    rws_v8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t  rws_i8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef uint32_t rws_u8 __attribute__((vector_size(32), aligned(4), may_alias));

static inline rws_v8 rws_choose8(rws_i8 yes, rws_v8 a, rws_v8 b)
{
    return (rws_v8)((yes & (rws_i8)a) | (~yes & (rws_i8)b));
}

/* e^x to 1e-7 of its value. What is out of range is as if it stood at the end of it: never 0, never infinite. */
static inline rws_v8 rws_exp8(rws_v8 x)
{
    const rws_v8 low = (rws_v8){0} - 87.3f, high = (rws_v8){0} + 88.3f;
    const float  round = 0x1.8p23f; /* numbers above it have no fraction */
    x = rws_choose8(x < low, low, x);
    x = rws_choose8(x > high, high, x);
    const rws_v8 n = (x * 1.44269504f + round) - round, r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    rws_v8       p = r * 1.9875691500e-4f + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = (p * r) * r + r + 1;
    return p * (rws_v8)((__builtin_convertvector(n, rws_i8) + 127) << 23);
}

/* A pair of uniforms in (0, 1) becomes one normal; odd draws take the sine of the pair (Box and Muller). */
static inline float rws_box_muller(float u, float v, float odd)
{
    return sqrtf(-2 * logf(u)) * cosf(6.28318530718f * (v - 0.25f * odd));
}

#endif
