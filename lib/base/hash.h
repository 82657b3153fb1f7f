/* hash.h - FNV-1a, for tables and fingerprints. It finds what has changed by accident; it does not protect from
 * forgery. */
#ifndef RWS_BASE_HASH_H
#define RWS_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define RWS_HASH_BEGIN UINT64_C(0xcbf29ce484222325) /* the hash of no bytes */

/* The hash of the bytes that h stands for, followed by these. */
static inline uint64_t rws__hash(uint64_t h, const void *bytes, size_t n)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < n; i++) h = (h ^ at[i]) * UINT64_C(0x100000001b3);
    return h;
}

#endif
