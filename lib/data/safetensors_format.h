/* safetensors_format.h - what the reader and the writer of safetensors files share (safetensors.c, safetensors_write.c). */
#ifndef RWS_DATA_SAFETENSORS_FORMAT_H
#define RWS_DATA_SAFETENSORS_FORMAT_H

#include "data/safetensors.h"

/* The limit of the format's reference implementation. */
#define MAX_HEADER ((size_t)100000000)
#define LENGTH_BYTES sizeof(uint64_t)
#define METADATA_KEY "__metadata__"
#define HEADER_CHECKSUM "header_crc32" /* keys of the metadata: the checksum of the header, */
#define TENSOR_CHECKSUM "crc32."       /* and, followed by a tensor's name, of its data */
#define CHECKSUM_OPENS "\"" HEADER_CHECKSUM "\":\""

enum { CHECKSUM_DIGITS = 8 };

/* A CRC-32 as digits. */
typedef struct {
    char text[CHECKSUM_DIGITS + 1];
} rws_st_checksum;

rws_st_checksum rws__st_checksum_of(const void *bytes, size_t size);

/* Where the digits of its own checksum stand in a header; NULL if it has none. */
const char *rws__st_find_digits(const char *header, size_t length);

/* The checksum of a header, in which the digits at `digits` count as zeros. */
rws_st_checksum rws__st_checksum_of_header(const char *header, size_t length, const char *digits);

/* Bytes of a tensor, and its elements; false if the bytes do not fit in a size_t. A dimension of 0 makes the tensor
 * empty whatever the other dimensions are, so zeros are looked for before the dimensions are multiplied. */
bool rws__st_measure(rws_dtype dtype, int n_dims, const size_t *shape, size_t *n_elements, size_t *n_bytes);

/* RWS_NO_MEMORY with a message that names the file. */
rws_status rws__st_no_memory(const char *path, rws_error *err);

#endif
