/* vecmath.h - mathematics that vectorises.
 *
 * glibc's libmvec has vector forms of these functions; declaring them `simd` lets gcc use them in loops marked
 * `#pragma omp simd` without -ffast-math, so that infinities and NaNs keep their meaning. Elsewhere they are libm's.
 */
#ifndef RWS_BASE_VECMATH_H
#define RWS_BASE_VECMATH_H

#include <math.h>

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

/* A pair of uniforms in (0, 1) becomes one normal; odd draws take the sine of the pair (Box and Muller). */
static inline float rws_box_muller(float u, float v, float odd)
{
    return sqrtf(-2 * logf(u)) * cosf(6.28318530718f * (v - 0.25f * odd));
}

#endif
