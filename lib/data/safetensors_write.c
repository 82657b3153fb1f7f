#include "data/safetensors_format.h"

#include "base/error.h"
#include "base/file.h"
#include "base/quote.h"
#include "data/json.h"

#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A place in the data, for tensor `which` of the caller. */
typedef struct {
    size_t which, n_bytes;
} placement;

/* Sorts tensors by falling size of an element, and keeps the caller's order within a size. As the data begin at a
 * multiple of 8, each tensor is then aligned. */
static void place(const rws_tensor_out *tensors, size_t n, placement *places)
{
    size_t n_placed = 0;
    for (size_t size = 8; size >= 1; size /= 2) {
        for (size_t i = 0; i < n; i++) {
            if (rws__dtype_size(tensors[i].dtype) == size) places[n_placed++].which = i;
        }
    }
    RWS_CHECK(n_placed == n);
    for (size_t i = 0; i < n; i++) {
        const rws_tensor_out *t = &tensors[places[i].which];
        RWS_CHECK(t->n_dims >= 0 && t->n_dims <= RWS_MAX_TENSOR_DIMS);
        size_t n_elements;
        RWS_CHECK(rws__st_measure(t->dtype, t->n_dims, t->shape, &n_elements, &places[i].n_bytes));
        RWS_CHECK(t->data || n_elements == 0);
    }
}

/* {"dtype": ..., "shape": [...], "data_offsets": [begin, end]}, a new reference; NULL without memory. */
static json_t *describe_tensor(const rws_tensor_out *t, size_t begin, size_t end)
{
    json_t *shape = json_array();
    for (int d = 0; d < t->n_dims; d++) {
        if (json_array_append_new(shape, json_integer((json_int_t)t->shape[d])) != 0) {
            json_decref(shape);
            return NULL;
        }
    }
    /* "o" takes over the reference to shape, also on failure. */
    return json_pack("{s:s, s:o, s:[I,I]}", "dtype", rws__dtype_name(t->dtype), "shape", shape, "data_offsets",
                     (json_int_t)begin, (json_int_t)end);
}

/* Adds an entry for each tensor to the header. */
static rws_status describe_tensors(const char *path, const rws_tensor_out *tensors, size_t n, const placement *places,
                                   json_t *header, rws_error *err)
{
    size_t begin = 0;
    for (size_t i = 0; i < n; i++) {
        const rws_tensor_out *t = &tensors[places[i].which];
        const size_t          end = begin + places[i].n_bytes;
        if (!g_utf8_validate(t->name, -1, NULL))
            return rws_fail(err, RWS_BAD_INPUT, "Cannot write \"%s\": the name \"%s\" is not UTF-8.",
                            rws__quote(path).text, rws__quote(t->name).text);
        if (strcmp(t->name, METADATA_KEY) == 0 || json_object_get(header, t->name))
            return rws_fail(err, RWS_BAD_INPUT, "Cannot write \"%s\": the name \"%s\" is taken already.",
                            rws__quote(path).text, rws__quote(t->name).text);
        if (json_object_set_new(header, t->name, describe_tensor(t, begin, end)) != 0)
            return rws__st_no_memory(path, err);
        begin = end;
    }
    return RWS_OK;
}

/* The header as text, padded with blanks so that the data after it is aligned; *length counts the padding. *out is the
 * caller's to free. */
static rws_status print_header(const char *path, const json_t *header, char **out, size_t *length, rws_error *err)
{
    const size_t bare = json_dumpb(header, NULL, 0, JSON_COMPACT);
    *length = (LENGTH_BYTES + bare + 7) / 8 * 8 - LENGTH_BYTES;
    if (bare == 0) return rws__st_no_memory(path, err);
    if (*length > MAX_HEADER)
        return rws_fail(err, RWS_BAD_INPUT,
                        "Cannot write \"%s\": its header would have %zu bytes, and the format allows %zu.",
                        rws__quote(path).text, *length, MAX_HEADER);
    char *text = malloc(*length);
    if (!text) return rws__st_no_memory(path, err);
    memset(text, ' ', *length);
    if (json_dumpb(header, text, bare, JSON_COMPACT) != bare) {
        free(text);
        return rws__st_no_memory(path, err);
    }
    *out = text;
    return RWS_OK;
}

/* A copy of the metadata with the checksums of the tensors, and zeros for the checksum of the header; NULL without
 * memory. */
static json_t *add_checksums(json_t *metadata, const rws_tensor_out *tensors, size_t n, const placement *places)
{
    json_t *out = rws__json_copy(metadata);
    bool    complete = out && json_object_set_new(out, HEADER_CHECKSUM, json_string("00000000")) == 0;
    for (size_t i = 0; i < n && complete; i++) {
        const rws_tensor_out *t = &tensors[places[i].which];
        char                 *key;
        if (asprintf(&key, TENSOR_CHECKSUM "%s", t->name) < 0) key = NULL;
        const rws_st_checksum sum = rws__st_checksum_of(t->data, places[i].n_bytes);
        complete = key && json_object_set_new_nocheck(out, key, json_string(sum.text)) == 0;
        free(key);
    }
    if (complete) return out;
    json_decref(out);
    return NULL;
}

/* Adds the metadata, with checksums, to the header. */
static rws_status describe_metadata(const char *path, const rws_tensor_out *tensors, size_t n, const placement *places,
                                    json_t *metadata, json_t *header, rws_error *err)
{
    for (void *at = json_object_iter(metadata); at; at = json_object_iter_next(metadata, at))
        RWS_CHECK(json_is_string(json_object_iter_value(at)));
    if (!metadata) return RWS_OK;
    json_t *checked = add_checksums(metadata, tensors, n, places);
    return checked && json_object_set_new(header, METADATA_KEY, checked) == 0 ? RWS_OK : rws__st_no_memory(path, err);
}

/* The header of a file with these tensors and metadata (NULL for none), as print_header returns it. */
static rws_status describe(const char *path, const rws_tensor_out *tensors, size_t n, const placement *places,
                           json_t *metadata, char **out, size_t *length, rws_error *err)
{
    json_t    *header = json_object();
    rws_status status =
        header ? describe_metadata(path, tensors, n, places, metadata, header, err) : rws__st_no_memory(path, err);
    if (status == RWS_OK) status = describe_tensors(path, tensors, n, places, header, err);
    if (status == RWS_OK) status = print_header(path, header, out, length, err);
    json_decref(header);
    const char *digits = status == RWS_OK && metadata ? rws__st_find_digits(*out, *length) : NULL;
    if (digits) memcpy(*out + (digits - *out), rws__st_checksum_of_header(*out, *length, digits).text, CHECKSUM_DIGITS);
    return status;
}

rws_status rws__safetensors_write(const char *path, const rws_tensor_out *tensors, size_t n, json_t *metadata,
                                  rws_error *err)
{
    RWS_CHECK(!metadata || json_is_object(metadata));
    char      *header = NULL;
    size_t     header_length = 0;
    placement *places = malloc((n ? n : 1) * sizeof *places);
    rws_piece *parts = malloc((n + 2) * sizeof *parts);
    rws_status status = path && places && parts ? RWS_OK : rws_no_memory(err, "a file of tensors");
    if (status == RWS_OK) {
        place(tensors, n, places);
        status = describe(path, tensors, n, places, metadata, &header, &header_length, err);
    }
    if (status == RWS_OK) {
        const uint64_t announced = header_length;
        parts[0] = (rws_piece){&announced, LENGTH_BYTES};
        parts[1] = (rws_piece){header, header_length};
        for (size_t i = 0; i < n; i++) parts[i + 2] = (rws_piece){tensors[places[i].which].data, places[i].n_bytes};
        status = rws__file_replace(path, parts, (int)n + 2, err);
    }
    free(header);
    free(parts);
    free(places);
    return status;
}
