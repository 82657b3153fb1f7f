/* idx.h - IDX files of bytes, the format of MNIST, plain or compressed by gzip.
 *
 *     0  0  8  d       two zeros, the type of the elements (8: unsigned bytes, the only one read here), dimensions d
 *     n_1 … n_d        their sizes, 4 bytes each, the highest byte first
 *     n_1 * … * n_d    bytes, the last dimension running fastest
 *
 * A file is refused unless it has exactly the bytes that its header announces.
 */
#ifndef RWS_MODELS_CORPORA_IDX_H
#define RWS_MODELS_CORPORA_IDX_H

#include "rws.h"

enum {
    RWS_MAX_IDX_DIMS = 4,
    RWS_MAX_IDX_HEADER = 4 + 4 * RWS_MAX_IDX_DIMS,
    RWS_MAX_IDX_BYTES = 1 << 30, /* limit of a file, and of its values */
};

typedef struct {
    int      n_dims; /* 1 … RWS_MAX_IDX_DIMS */
    size_t   dims[RWS_MAX_IDX_DIMS];
    size_t   n_values; /* the product of dims */
    uint8_t *values;
} rws_idx;

/* Reads a file that is in memory; `name` stands for it in sentences. On success the caller releases *out; otherwise
 * *out is empty and the status RWS_BAD_INPUT or RWS_NO_MEMORY. */
rws_status rws__idx_parse(const uint8_t *bytes, size_t size, const char *name, rws_idx *out, rws_error *err)
    __attribute__((warn_unused_result));

/* The same for a file on disk. */
rws_status rws__idx_read(const char *path, rws_idx *out, rws_error *err) __attribute__((warn_unused_result));

/* Writes the bytes in front of the values; returns their number. */
size_t rws__idx_header(const rws_idx *idx, uint8_t header[RWS_MAX_IDX_HEADER]);

/* Writes an uncompressed file, atomically. */
rws_status rws__idx_write(const char *path, const rws_idx *idx, rws_error *err) __attribute__((warn_unused_result));

void rws__idx_release(rws_idx *idx);

#endif
