#include "data/safetensors_format.h"

#include "base/error.h"
#include "base/file.h"
#include "base/quote.h"
#include "data/json.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the file's byte order is taken for the machine's");
_Static_assert(sizeof(size_t) == 8, "file offsets are counted in size_t");

static const struct {
    const char *name;
    size_t      size;
} dtypes[] = {
    [RWS_DTYPE_F32] = {"F32", 4}, [RWS_DTYPE_F64] = {"F64", 8}, [RWS_DTYPE_I32] = {"I32", 4},
    [RWS_DTYPE_I64] = {"I64", 8}, [RWS_DTYPE_U64] = {"U64", 8}, [RWS_DTYPE_U8] = {"U8", 1},
};
_Static_assert(sizeof dtypes / sizeof *dtypes == RWS_DTYPE_COUNT, "a row for every dtype");

const char *rws__dtype_name(rws_dtype dtype)
{
    RWS_CHECK((unsigned)dtype < RWS_DTYPE_COUNT);
    return dtypes[dtype].name;
}

size_t rws__dtype_size(rws_dtype dtype)
{
    RWS_CHECK((unsigned)dtype < RWS_DTYPE_COUNT);
    return dtypes[dtype].size;
}

rws_status rws__st_no_memory(const char *path, rws_error *err)
{
    return rws_fail(err, RWS_NO_MEMORY, "There is no memory for the tensors of \"%s\".", rws__quote(path).text);
}

static rws_st_checksum print_checksum(uLong crc)
{
    rws_st_checksum out;
    snprintf(out.text, sizeof out.text, "%08lx", crc & 0xffffffffu);
    return out;
}

rws_st_checksum rws__st_checksum_of(const void *bytes, size_t size)
{
    return print_checksum(size ? crc32_z(crc32_z(0, NULL, 0), bytes, size) : crc32_z(0, NULL, 0));
}

const char *rws__st_find_digits(const char *header, size_t length)
{
    const size_t opening = strlen(CHECKSUM_OPENS);
    const char  *at = memmem(header, length, CHECKSUM_OPENS, opening);
    return at && at + opening + CHECKSUM_DIGITS <= header + length ? at + opening : NULL;
}

rws_st_checksum rws__st_checksum_of_header(const char *header, size_t length, const char *digits)
{
    const size_t before = (size_t)(digits - header), after = before + CHECKSUM_DIGITS;
    uLong        crc = crc32_z(crc32_z(0, NULL, 0), (const Bytef *)header, before);
    crc = crc32_z(crc, (const Bytef *)"00000000", CHECKSUM_DIGITS);
    return print_checksum(crc32_z(crc, (const Bytef *)header + after, length - after));
}

bool rws__st_measure(rws_dtype dtype, int n_dims, const size_t *shape, size_t *n_elements, size_t *n_bytes)
{
    size_t n = 1;
    for (int d = 0; d < n_dims; d++) {
        if (shape[d] == 0) n = 0;
    }
    for (int d = 0; d < n_dims && n > 0; d++) {
        if (__builtin_mul_overflow(n, shape[d], &n)) return 0;
    }
    *n_elements = n;
    return !__builtin_mul_overflow(n, rws__dtype_size(dtype), n_bytes);
}

typedef struct {
    rws_tensor_in view;
    size_t        begin, end; /* within the data */
    void         *copy;       /* aligned copy, if the data in the file are misaligned for their type; else NULL */
} stored;

struct rws_safetensors {
    char          *file;    /* its name in messages */
    json_t        *header;  /* owns the names and the metadata */
    stored        *tensors; /* in the order of the data */
    size_t         n_tensors;
    const char    *header_text; /* the caller's bytes, or the map's */
    size_t         header_length;
    const uint8_t *map; /* NULL when the caller owns the bytes */
    size_t         map_size;
};

/* Reads an array of at most `capacity` integers that are not negative. Returns their number, or -1. */
static int read_sizes(const json_t *array, size_t *out, int capacity)
{
    const size_t n = json_array_size(array);
    if (!json_is_array(array) || n > (size_t)capacity) return -1;
    for (size_t i = 0; i < n; i++) {
        const json_t *number = json_array_get(array, i);
        if (!json_is_integer(number) || json_integer_value(number) < 0) return -1;
        out[i] = (size_t)json_integer_value(number);
    }
    return (int)n;
}

/* RWS_BAD_INPUT with the message `"file": the tensor "name" <format>`. */
__attribute__((format(printf, 4, 5))) static rws_status refuse(const char *file, const char *name, rws_error *err,
                                                               const char *format, ...)
{
    char    reason[128];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    return rws_fail(err, RWS_BAD_INPUT, "\"%s\": the tensor \"%s\" %s", rws__quote(file).text, rws__quote(name).text,
                    reason);
}

/* Reads one entry of the header into *s and checks that it lies within the data_size bytes of data. */
static rws_status read_entry(const char *file, const char *name, const json_t *entry, size_t data_size, stored *s,
                             rws_error *err)
{
    s->view.name = name;
    if (!json_is_object(entry)) return refuse(file, name, err, "is not described by an object.");

    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    if (!dtype) return refuse(file, name, err, "has no dtype.");
    int d = 0;
    while (d < RWS_DTYPE_COUNT && strcmp(dtype, dtypes[d].name) != 0) d++;
    if (d == RWS_DTYPE_COUNT) {
        return refuse(file, name, err, "has the dtype \"%.20s\", which is unknown here.", rws__quote(dtype).text);
    }
    s->view.dtype = (rws_dtype)d;

    s->view.n_dims = read_sizes(json_object_get(entry, "shape"), s->view.shape, RWS_MAX_TENSOR_DIMS);
    if (s->view.n_dims < 0) {
        return refuse(file, name, err, "needs a shape of at most %d integers, none negative.", RWS_MAX_TENSOR_DIMS);
    }
    size_t n_bytes;
    if (!rws__st_measure(s->view.dtype, s->view.n_dims, s->view.shape, &s->view.n_elements, &n_bytes)) {
        return refuse(file, name, err, "has a shape too large for any memory.");
    }

    size_t offsets[2];
    if (read_sizes(json_object_get(entry, "data_offsets"), offsets, 2) != 2) {
        return refuse(file, name, err, "needs data_offsets of two integers, none negative.");
    }
    s->begin = offsets[0];
    s->end = offsets[1];
    if (s->begin > s->end || s->end > data_size) {
        return refuse(file, name, err, "should lie at bytes %zu to %zu of the data, which has %zu.", s->begin, s->end,
                      data_size);
    }
    if (s->end - s->begin != n_bytes) {
        return refuse(file, name, err, "has %zu bytes in the file, but its shape and dtype make %zu.",
                      s->end - s->begin, n_bytes);
    }
    return RWS_OK;
}

/* Orders by place in the data; an empty tensor comes before a tensor that begins at the same place. */
static int compare_places(const void *a_, const void *b_)
{
    const stored *a = a_, *b = b_;
    if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
    return (a->end > b->end) - (a->end < b->end);
}

/* Reads the header's JSON, and where the data begin. */
static rws_status parse_header(rws_safetensors *st, const char *bytes, size_t size, size_t *data_at, rws_error *err)
{
    const rws_quoted f = rws__quote(st->file);
    uint64_t         length;
    if (size < LENGTH_BYTES) {
        return rws_fail(err, RWS_BAD_INPUT, "\"%s\" is too short for a safetensors file: it has %zu bytes.", f.text,
                        size);
    }
    memcpy(&length, bytes, LENGTH_BYTES);
    if (length > size - LENGTH_BYTES) {
        return rws_fail(err, RWS_BAD_INPUT,
                        "\"%s\" is cut short or not a safetensors file: a header of %llu bytes is announced and %zu "
                        "bytes follow.",
                        f.text, (unsigned long long)length, size - LENGTH_BYTES);
    }
    if (length > MAX_HEADER) {
        return rws_fail(err, RWS_BAD_INPUT, "\"%s\" has a header of %llu bytes, and the format allows %zu.", f.text,
                        (unsigned long long)length, MAX_HEADER);
    }
    *data_at = LENGTH_BYTES + length;
    st->header_text = bytes + LENGTH_BYTES;
    st->header_length = length;

    json_error_t json_err;
    bool         starved;
    st->header = rws__json_load(bytes + LENGTH_BYTES, length, JSON_REJECT_DUPLICATES, &json_err, &starved);
    if (starved) return rws__st_no_memory(st->file, err);
    if (!st->header && json_error_code(&json_err) == json_error_duplicate_key) {
        return rws_fail(err, RWS_BAD_INPUT, "\"%s\" has a name twice in its header (%s).", f.text,
                        rws__quote(json_err.text).text);
    }
    if (!json_is_object(st->header)) {
        const char *why = st->header ? "it is an array" : json_err.text;
        return rws_fail(err, RWS_BAD_INPUT, "\"%s\" is not a safetensors file: its header is not a JSON object (%s).",
                        f.text, rws__quote(why).text);
    }
    return RWS_OK;
}

/* metadata is NULL if the file has none. */
static rws_status check_metadata(const rws_safetensors *st, json_t *metadata, rws_error *err)
{
    const rws_quoted f = rws__quote(st->file);
    if (metadata && !json_is_object(metadata)) {
        return rws_fail(err, RWS_BAD_INPUT, "\"%s\" has metadata that is not a JSON object.", f.text);
    }
    for (void *at = json_object_iter(metadata); at; at = json_object_iter_next(metadata, at)) {
        if (!json_is_string(json_object_iter_value(at))) {
            return rws_fail(err, RWS_BAD_INPUT, "\"%s\" has metadata under \"%s\" that is not a string.", f.text,
                            rws__quote(json_object_iter_key(at)).text);
        }
    }
    return RWS_OK;
}

/* Sorts the tensors by place and checks that each begins where the one before ends, and the last ends with the data. */
static rws_status check_places(rws_safetensors *st, size_t data_size, rws_error *err)
{
    const rws_quoted f = rws__quote(st->file);
    size_t           at = 0;
    qsort(st->tensors, st->n_tensors, sizeof *st->tensors, compare_places);
    for (size_t i = 0; i < st->n_tensors; i++) {
        const stored *s = &st->tensors[i];
        if (s->begin != at) {
            return rws_fail(err, RWS_BAD_INPUT,
                            "\"%s\": the tensor \"%s\" begins at byte %zu of the data, which %s at byte %zu.", f.text,
                            rws__quote(s->view.name).text, s->begin,
                            s->begin < at ? "overlaps the one that ends" : "leaves a hole after the one that ends", at);
        }
        at = s->end;
    }
    if (at != data_size) {
        return rws_fail(err, RWS_BAD_INPUT, "\"%s\" has %zu bytes of data, of which its tensors account for %zu.",
                        f.text, data_size, at);
    }
    return RWS_OK;
}

/* Points the tensors to their data, or to copies of data that are misaligned for their type. */
static rws_status point_to_data(rws_safetensors *st, const char *data, rws_error *err)
{
    for (size_t i = 0; i < st->n_tensors; i++) {
        stored *s = &st->tensors[i];
        s->view.data = data + s->begin;
        if ((uintptr_t)s->view.data % rws__dtype_size(s->view.dtype) == 0) continue;
        const size_t n_bytes = s->end - s->begin;
        s->view.data = s->copy = malloc(n_bytes + 1);
        if (!s->copy) return rws__st_no_memory(st->file, err);
        memcpy(s->copy, data + s->begin, n_bytes);
    }
    return RWS_OK;
}

static rws_status read_bytes(rws_safetensors *st, const char *bytes, size_t size, rws_error *err)
{
    size_t data_at = 0;
    RWS_TRY(parse_header(st, bytes, size, &data_at, err));
    json_t *metadata = json_object_get(st->header, METADATA_KEY);
    RWS_TRY(check_metadata(st, metadata, err));
    st->n_tensors = 0;
    st->tensors = calloc(json_object_size(st->header) + 1, sizeof *st->tensors);
    if (!st->tensors) return rws__st_no_memory(st->file, err);
    for (void *at = json_object_iter(st->header); at; at = json_object_iter_next(st->header, at)) {
        const json_t *entry = json_object_iter_value(at);
        if (entry == metadata) continue;
        stored *s = &st->tensors[st->n_tensors];
        RWS_TRY(read_entry(st->file, json_object_iter_key(at), entry, size - data_at, s, err));
        st->n_tensors++;
    }
    RWS_TRY(check_places(st, size - data_at, err));
    return point_to_data(st, bytes + data_at, err);
}

rws_status rws__safetensors_parse(const void *data, size_t size, const char *name, rws_safetensors **out,
                                  rws_error *err)
{
    rws_safetensors *st = calloc(1, sizeof *st);
    if (st) st->file = strdup(name);
    const rws_status status = st && st->file ? read_bytes(st, data, size, err) : rws__st_no_memory(name, err);
    *out = status == RWS_OK ? st : NULL;
    if (status != RWS_OK) rws__safetensors_close(st);
    return status;
}

rws_status rws__safetensors_open(const char *path, rws_safetensors **out, rws_error *err)
{
    const uint8_t *map;
    size_t         size;
    *out = NULL;
    RWS_TRY(rws__file_map(path, &map, &size, err));
    const rws_status status = rws__safetensors_parse(map ? (const void *)map : "", size, path, out, err);
    if (status == RWS_OK) {
        (*out)->map = map;
        (*out)->map_size = size;
    } else rws__file_unmap(map, size);
    return status;
}

void rws__safetensors_close(rws_safetensors *st)
{
    if (!st) return;
    for (size_t i = 0; i < st->n_tensors; i++) free(st->tensors[i].copy);
    free(st->tensors);
    json_decref(st->header);
    if (st->map) rws__file_unmap(st->map, st->map_size);
    free(st->file);
    free(st);
}

size_t rws__safetensors_count(const rws_safetensors *st)
{
    return st->n_tensors;
}

const rws_tensor_in *rws__safetensors_at(const rws_safetensors *st, size_t i)
{
    RWS_CHECK(i < st->n_tensors);
    return &st->tensors[i].view;
}

const rws_tensor_in *rws__safetensors_find(const rws_safetensors *st, const char *name)
{
    for (size_t i = 0; i < st->n_tensors; i++) {
        if (strcmp(st->tensors[i].view.name, name) == 0) return &st->tensors[i].view;
    }
    return NULL;
}

/* "[2, 3]" */
typedef struct {
    char text[RWS_MAX_TENSOR_DIMS * 22 + 3];
} shape_text;

static shape_text print_shape(int n_dims, const size_t *shape)
{
    shape_text out = {"["};
    size_t     at = 1;
    for (int d = 0; d < n_dims; d++) {
        at += (size_t)snprintf(out.text + at, sizeof out.text - at, "%s%zu", d ? ", " : "", shape[d]);
    }
    out.text[at] = ']';
    out.text[at + 1] = '\0';
    return out;
}

rws_status rws__safetensors_expect(const rws_safetensors *st, const char *name, rws_dtype dtype, int n_dims,
                                   const size_t *shape, const rws_tensor_in **out, rws_error *err)
{
    RWS_CHECK(n_dims >= 0 && n_dims <= RWS_MAX_TENSOR_DIMS);
    const rws_tensor_in *t = rws__safetensors_find(st, name);
    if (!t) {
        return rws_fail(err, RWS_BAD_INPUT, "\"%s\" has no tensor \"%s\".", rws__quote(st->file).text,
                        rws__quote(name).text);
    }
    int fits = t->dtype == dtype && t->n_dims == n_dims;
    for (int d = 0; d < n_dims && fits; d++) fits = t->shape[d] == shape[d];
    if (!fits) {
        return rws_fail(err, RWS_BAD_INPUT, "\"%s\": the tensor \"%s\" is %s %s, but %s %s is needed.",
                        rws__quote(st->file).text, rws__quote(name).text, rws__dtype_name(t->dtype),
                        print_shape(t->n_dims, t->shape).text, rws__dtype_name(dtype), print_shape(n_dims, shape).text);
    }
    *out = t;
    return RWS_OK;
}

const char *rws__safetensors_metadata(const rws_safetensors *st, const char *key)
{
    return json_string_value(json_object_get(json_object_get(st->header, METADATA_KEY), key));
}

static rws_status is_damaged(const rws_safetensors *st, const char *part, rws_error *err)
{
    return rws_fail(err, RWS_BAD_INPUT, "\"%s\" is damaged: %s has other bytes than were written.",
                    rws__quote(st->file).text, part);
}

static bool has_checksums(const json_t *metadata)
{
    for (void *at = json_object_iter((json_t *)metadata); at; at = json_object_iter_next((json_t *)metadata, at)) {
        const char *key = json_object_iter_key(at);
        if (strncmp(key, TENSOR_CHECKSUM, strlen(TENSOR_CHECKSUM)) == 0) return true;
    }
    return json_object_get(metadata, HEADER_CHECKSUM) != NULL;
}

rws_status rws__safetensors_verify(const rws_safetensors *st, rws_error *err)
{
    const json_t *metadata = json_object_get(st->header, METADATA_KEY);
    if (!has_checksums(metadata)) return RWS_OK;
    const char *digits = rws__st_find_digits(st->header_text, st->header_length);
    if (!digits || memcmp(digits, rws__st_checksum_of_header(st->header_text, st->header_length, digits).text,
                          CHECKSUM_DIGITS) != 0)
        return is_damaged(st, "its header", err);
    for (size_t i = 0; i < st->n_tensors; i++) {
        const stored *s = &st->tensors[i];
        char         *key;
        if (asprintf(&key, TENSOR_CHECKSUM "%s", s->view.name) < 0) return rws__st_no_memory(st->file, err);
        const char *said = json_string_value(json_object_get(metadata, key));
        free(key);
        if (said && strcmp(said, rws__st_checksum_of(s->view.data, s->end - s->begin).text) == 0) continue;
        char part[RWS_MAX_QUOTED + 32];
        snprintf(part, sizeof part, "the tensor \"%s\"", rws__quote_short(s->view.name).text);
        return is_damaged(st, part, err);
    }
    return RWS_OK;
}
