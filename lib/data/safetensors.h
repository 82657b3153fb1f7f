/* safetensors.h - named tensors in a file of the safetensors format, which Python can read too.
 *
 * The writer replaces a file atomically; the reader maps a file, checks that every tensor lies within the data, and
 * returns pointers into the map. Neither knows what the tensors are for, nor converts between types.
 *
 *     parameters, optimiser state, counters -> [safetensors] -> checkpoint.safetensors -> [safetensors] -> resume
 *
 * A file is
 *
 *     | N, 8 bytes | header, N bytes of JSON            | data                                             |
 *     |  (uint64)  | {"__metadata__": {string: string}, | tensors one after the other, without gaps,       |
 *     |            |  "name": {"dtype": "F32",          | row-major; data_offsets count from the start of  |
 *     |            |    "shape": [2, 3],                | the data, [begin, end)                           |
 *     |            |    "data_offsets": [0, 24]}, ...}  |                                                  |
 *
 * with every number little-endian. The writer pads the header with spaces, so that the data begins at a multiple of 8,
 * and puts types in order of falling size, so that every tensor is aligned for its type.
 *
 * To metadata the writer adds CRC-32 checksums, as 8 hexadecimal digits: "crc32.<name>" of the data of each tensor, and
 * "header_crc32" of the header, with zeros in the place of its own digits.
 */
#ifndef RWS_DATA_SAFETENSORS_H
#define RWS_DATA_SAFETENSORS_H

#include "rws.h"

#include <jansson.h>

typedef enum {
    RWS_DTYPE_F32,
    RWS_DTYPE_F64,
    RWS_DTYPE_I32,
    RWS_DTYPE_I64,
    RWS_DTYPE_U64,
    RWS_DTYPE_U8,
    RWS_DTYPE_COUNT,
} rws_dtype;

enum { RWS_MAX_TENSOR_DIMS = 4 };

/* "F32" and so on, static. */
const char *rws__dtype_name(rws_dtype dtype);

/* Bytes of one element. */
size_t rws__dtype_size(rws_dtype dtype);

/* A tensor to be written: everything is borrowed for the call. n_dims 0 is a scalar, with one element. */
typedef struct {
    const char *name;
    rws_dtype   dtype;
    int         n_dims;
    size_t      shape[RWS_MAX_TENSOR_DIMS];
    const void *data; /* may be NULL if the tensor has no elements */
} rws_tensor_out;

/* A tensor that was read: name and data belong to the rws_safetensors and live as long as it does. */
typedef struct {
    const char *name;
    rws_dtype   dtype;
    int         n_dims;
    size_t      shape[RWS_MAX_TENSOR_DIMS];
    size_t      n_elements;
    const void *data; /* aligned for dtype; never NULL */
} rws_tensor_in;

typedef struct rws_safetensors rws_safetensors;

/* Writes the n tensors and the metadata (an object of strings, borrowed; NULL for none) to `path`. The bytes go to
 * a temporary file first (base/file.h), so that at any moment `path` is the whole old file or the whole new one.
 * RWS_BAD_INPUT with a message if a name is taken twice or is not UTF-8, or if the disk or the folder refuses, or
 * RWS_NO_MEMORY: `path` is then as it was. (Except if the folder cannot be brought to disk after the renaming: the
 * message then says that the new file is in place.) */
rws_status rws__safetensors_write(const char *path, const rws_tensor_out *tensors, size_t n, json_t *metadata,
                                  rws_error *err) __attribute__((warn_unused_result));

/* Maps and checks a file; the caller frees *out with rws__safetensors_close. *out is NULL on failure: RWS_BAD_INPUT with
 * a message that names the file, and the tensor if one is at fault, or RWS_NO_MEMORY. The file may be replaced by the
 * writer while it is open, but not cut short by others: touching the lost pages would raise SIGBUS. */
rws_status rws__safetensors_open(const char *path, rws_safetensors **out, rws_error *err)
    __attribute__((warn_unused_result));

/* The same for a file that is already in memory: `data` is borrowed until the close, `name` stands for it in
 * messages. */
rws_status rws__safetensors_parse(const void *data, size_t size, const char *name, rws_safetensors **out,
                                  rws_error *err) __attribute__((warn_unused_result));

/* Unmaps and frees; NULL is allowed. */
void rws__safetensors_close(rws_safetensors *st);

size_t rws__safetensors_count(const rws_safetensors *st);

/* Tensor i < count, in the order of the data. Owned by st. */
const rws_tensor_in *rws__safetensors_at(const rws_safetensors *st, size_t i);

/* The tensor of that name, owned by st; NULL if there is none. */
const rws_tensor_in *rws__safetensors_find(const rws_safetensors *st, const char *name);

/* The tensor of that name, type and shape in *out, owned by st. RWS_BAD_INPUT with a message that names the file and
 * the tensor if it is missing or is another type or shape; *out is then as it was. */
rws_status rws__safetensors_expect(const rws_safetensors *st, const char *name, rws_dtype dtype, int n_dims,
                                   const size_t *shape, const rws_tensor_in **out, rws_error *err)
    __attribute__((warn_unused_result));

/* Compares the checksums with the bytes. RWS_BAD_INPUT with a message that names the file and the header or the tensor
 * that is damaged. A file without any checksum passes. */
rws_status rws__safetensors_verify(const rws_safetensors *st, rws_error *err) __attribute__((warn_unused_result));

/* The string under that key of the metadata, owned by st; NULL if there is none. */
const char *rws__safetensors_metadata(const rws_safetensors *st, const char *key);

#endif
