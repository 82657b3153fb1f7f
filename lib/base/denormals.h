/* denormals.h - numbers below the smallest normal float count as zero while the library computes.
 *
 * Normalised weights underflow, and arithmetic on denormals is many times slower than on zeros. Every entry to a
 * computation switches them off for its thread and restores the caller's setting when it is done.
 */
#ifndef RWS_BASE_DENORMALS_H
#define RWS_BASE_DENORMALS_H

#ifdef __SSE__
#include <xmmintrin.h>
#endif

/* Returns the setting that was in force. */
static inline unsigned rws__denormals_off(void)
{
#ifdef __SSE__
    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | 0x8040); /* flush to zero, denormals are zero */
    return before;
#else
    return 0;
#endif
}

static inline void rws__denormals_restore(unsigned before)
{
#ifdef __SSE__
    _mm_setcsr(before);
#else
    (void)before;
#endif
}

#endif
