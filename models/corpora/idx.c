#include "models/corpora/idx.h"

#include "base/error.h"
#include "base/file.h"
#include "base/quote.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { TYPE_BYTES = 8, GZIP_WINDOW = 15 + 16 };

/* Bytes that deflate unpacks from one byte, at most. */
#define MAX_RATIO ((size_t)1032)

/* The bytes of a file that are still to be read; gzipped bytes are unpacked on the way. */
typedef struct {
    const uint8_t *at;
    size_t         left;
    bool           packed;
    bool           ended;   /* the packed stream was read to its end, and its checksum is right */
    bool           starved; /* there was no memory to unpack it */
    z_stream       z;
} source;

static uInt at_most_uint(size_t n)
{
    return n < 1u << 30 ? (uInt)n : 1u << 30;
}

/* Reads n bytes, or fewer at the end of the file. False if the packed stream is damaged or there is no memory to unpack
 * it. */
static bool pull(source *s, uint8_t *out, size_t n, size_t *got)
{
    *got = 0;
    if (!s->packed) {
        *got = n < s->left ? n : s->left;
        memcpy(out, s->at, *got);
        s->at += *got;
        s->left -= *got;
        return true;
    }
    while (*got < n && !s->ended) {
        const uInt in = at_most_uint(s->left), space = at_most_uint(n - *got);
        s->z.next_in = (Bytef *)s->at;
        s->z.avail_in = in;
        s->z.next_out = out + *got;
        s->z.avail_out = space;
        const int how = inflate(&s->z, Z_NO_FLUSH);
        s->at += in - s->z.avail_in;
        s->left -= in - s->z.avail_in;
        *got += space - s->z.avail_out;
        if (how == Z_BUF_ERROR) return true; /* the input ends within the stream */
        s->starved = how == Z_MEM_ERROR;
        if (how != Z_OK && how != Z_STREAM_END) return false;
        s->ended = how == Z_STREAM_END;
    }
    return true;
}

/* The reason why pull returned false. */
static rws_status damaged(const source *s, const char *name, rws_error *err)
{
    if (s->starved) return rws_no_memory(err, "unpacking a file");
    return rws__refuse(err, name, 0, "is damaged: its gzip stream cannot be unpacked.");
}

static rws_status read_header(source *s, const char *name, rws_idx *out, rws_error *err)
{
    uint8_t magic[4], sizes[4 * RWS_MAX_IDX_DIMS] = {0};
    size_t  got;
    if (!pull(s, magic, sizeof magic, &got)) return damaged(s, name, err);
    if (got < sizeof magic || magic[0] || magic[1])
        return rws__refuse(err, name, 0,
                           "is not an IDX file: it does not begin with two zeros, a type and a number of dimensions.");
    if (magic[2] != TYPE_BYTES)
        return rws__refuse(err, name, 0, "is an IDX file of type 0x%02x, and only unsigned bytes (0x08) are read.",
                           magic[2]);
    if (magic[3] < 1 || magic[3] > RWS_MAX_IDX_DIMS)
        return rws__refuse(err, name, 0, "is an IDX file of %d dimensions, and 1 to %d are read.", magic[3],
                           RWS_MAX_IDX_DIMS);
    out->n_dims = magic[3];
    const size_t n_sizes = 4 * (size_t)out->n_dims;
    if (!pull(s, sizes, n_sizes, &got)) return damaged(s, name, err);
    if (got < n_sizes) return rws__refuse(err, name, 0, "is cut short within its header.");
    out->n_values = 1;
    bool fits = true;
    for (int d = 0; d < out->n_dims; d++) {
        const uint8_t *b = sizes + 4 * d;
        out->dims[d] = (size_t)b[0] << 24 | (size_t)b[1] << 16 | (size_t)b[2] << 8 | b[3];
        fits = fits && !__builtin_mul_overflow(out->n_values, out->dims[d], &out->n_values);
    }
    if (!fits || out->n_values > RWS_MAX_IDX_BYTES)
        return rws__refuse(err, name, 0, "announces more than %d bytes, which is more than is read.",
                           RWS_MAX_IDX_BYTES);
    return RWS_OK;
}

static rws_status read_values(source *s, const char *name, rws_idx *out, rws_error *err)
{
    /* Checked before the allocation, so that a header of a few bytes cannot ask for a gigabyte. */
    if (out->n_values > (s->packed ? (s->left + 1024) * MAX_RATIO : s->left))
        return rws__refuse(err, name, 0, "is cut short: it announces %zu bytes of values and has %zu%s.", out->n_values,
                           s->left, s->packed ? " packed ones" : "");
    out->values = malloc(out->n_values ? out->n_values : 1);
    if (!out->values)
        return rws_fail(err, RWS_NO_MEMORY, "There is no memory for the %zu bytes of \"%s\".", out->n_values,
                        rws__quote(name).text);
    size_t got, more;
    if (!pull(s, out->values, out->n_values, &got)) return damaged(s, name, err);
    if (got < out->n_values)
        return rws__refuse(err, name, 0, "is cut short: it announces %zu bytes of values and has %zu.", out->n_values,
                           got);
    if (!pull(s, &(uint8_t){0}, 1, &more)) return damaged(s, name, err);
    if (more > 0 || (s->left > 0 && (!s->packed || s->ended)))
        return rws__refuse(err, name, 0, "continues after the %zu bytes of values that it announces.", out->n_values);
    if (s->packed && !s->ended) return rws__refuse(err, name, 0, "is cut short within the end of its gzip stream.");
    return RWS_OK;
}

rws_status rws__idx_parse(const uint8_t *bytes, size_t size, const char *name, rws_idx *out, rws_error *err)
{
    *out = (rws_idx){0};
    source s = {.at = bytes, .left = size, .packed = size >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b};
    if (s.packed && inflateInit2(&s.z, GZIP_WINDOW) != Z_OK) return rws_no_memory(err, "unpacking a file");
    rws_status status = read_header(&s, name, out, err);
    if (status == RWS_OK) status = read_values(&s, name, out, err);
    if (s.packed) inflateEnd(&s.z);
    if (status != RWS_OK) rws__idx_release(out);
    return status;
}

rws_status rws__idx_read(const char *path, rws_idx *out, rws_error *err)
{
    uint8_t *bytes;
    size_t   size;
    *out = (rws_idx){0};
    RWS_TRY(rws__file_read(path, RWS_MAX_IDX_BYTES, &bytes, &size, err));
    const rws_status status = rws__idx_parse(bytes, size, path, out, err);
    free(bytes);
    return status;
}

size_t rws__idx_header(const rws_idx *idx, uint8_t header[RWS_MAX_IDX_HEADER])
{
    RWS_CHECK(idx->n_dims >= 1 && idx->n_dims <= RWS_MAX_IDX_DIMS);
    uint8_t *at = header;
    *at++ = 0;
    *at++ = 0;
    *at++ = TYPE_BYTES;
    *at++ = (uint8_t)idx->n_dims;
    for (int d = 0; d < idx->n_dims; d++)
        for (int shift = 24; shift >= 0; shift -= 8) *at++ = (uint8_t)(idx->dims[d] >> shift);
    return (size_t)(at - header);
}

rws_status rws__idx_write(const char *path, const rws_idx *idx, rws_error *err)
{
    uint8_t         header[RWS_MAX_IDX_HEADER];
    const rws_piece pieces[] = {{header, rws__idx_header(idx, header)}, {idx->values, idx->n_values}};
    return rws__file_write(path, pieces, 2, err);
}

void rws__idx_release(rws_idx *idx)
{
    free(idx->values);
    *idx = (rws_idx){0};
}
