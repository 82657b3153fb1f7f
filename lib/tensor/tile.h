/* tile.h - the transpose of eight rows of eight numbers, in registers. */
#ifndef RWS_TENSOR_TILE_H
#define RWS_TENSOR_TILE_H

#include "base/vecmath.h"

static inline __attribute__((always_inline)) void rws__tile_transpose(rws_v8 a[8])
{
    rws_v8 b[8];
    for (int i = 0; i < 8; i += 2) { /* swaps single numbers, then pairs, then halves of a vector */
        b[i] = __builtin_shufflevector(a[i], a[i + 1], 0, 8, 2, 10, 4, 12, 6, 14);
        b[i + 1] = __builtin_shufflevector(a[i], a[i + 1], 1, 9, 3, 11, 5, 13, 7, 15);
    }
    for (int i = 0; i < 8; i += 4)
        for (int j = i; j < i + 2; j++) {
            a[j] = __builtin_shufflevector(b[j], b[j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
            a[j + 2] = __builtin_shufflevector(b[j], b[j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
        }
    for (int i = 0; i < 4; i++) {
        const rws_v8 low = a[i], high = a[i + 4];
        a[i] = __builtin_shufflevector(low, high, 0, 1, 2, 3, 8, 9, 10, 11);
        a[i + 4] = __builtin_shufflevector(low, high, 4, 5, 6, 7, 12, 13, 14, 15);
    }
}

#endif
