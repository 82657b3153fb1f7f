/* read.c - from a file of any kind to a sheet: its first bytes say what it is. */
#include "base/error.h"
#include "base/file.h"
#include "base/quote.h"
#include "data/safetensors.h"
#include "data/sheet.h"

#include <string.h>

/* Whether the bytes begin like safetensors: the length of a header that fits, and its opening brace. Text never does.
 * */
static bool is_safetensors(const uint8_t *bytes, size_t size, const char *path)
{
    static const char ending[] = ".safetensors";
    const size_t      length = strlen(path);
    uint64_t          header;
    if (length > strlen(ending) && strcmp(path + length - strlen(ending), ending) == 0) return true;
    if (size < sizeof header + 2) return false;
    memcpy(&header, bytes, sizeof header);
    return header <= size - sizeof header && bytes[sizeof header] == '{';
}

static rws_status choose_tensor(const rws_safetensors *st, const char *path, const char *name,
                                const rws_tensor_in **out, rws_error *err)
{
    const size_t n = rws__safetensors_count(st);
    if (!name && n != 1)
        return rws__refuse(err, path, 0, "has %zu tensors, and the model does not say which it wants.", n);
    *out = name ? rws__safetensors_find(st, name) : rws__safetensors_at(st, 0);
    if (name && !*out) return rws__refuse(err, path, 0, "has no tensor \"%s\".", rws__quote_short(name).text);
    return RWS_OK;
}

static rws_status read_tensor(const uint8_t *bytes, size_t size, const char *path, const rws_table_options *o,
                              rws_sheet *out, rws_error *err)
{
    static const rws_element elements[] = {
        [RWS_DTYPE_F32] = {'f', 4}, [RWS_DTYPE_F64] = {'f', 8}, [RWS_DTYPE_I32] = {'i', 4},
        [RWS_DTYPE_I64] = {'i', 8}, [RWS_DTYPE_U64] = {'u', 8}, [RWS_DTYPE_U8] = {'u', 1},
    };
    _Static_assert(sizeof elements / sizeof *elements == RWS_DTYPE_COUNT, "an element for every dtype");
    rws_safetensors     *st;
    const rws_tensor_in *t = NULL;
    RWS_TRY(rws__safetensors_parse(bytes ? (const void *)bytes : "", size, path, &st, err));
    rws_status status = choose_tensor(st, path, o->tensor, &t, err);
    if (status == RWS_OK && (t->n_dims < 1 || t->n_dims > 2))
        status = rws__refuse(err, path, 0, "has a tensor \"%s\" of %d dimensions; tensors of 1 or 2 are read.",
                             rws__quote_short(t->name).text, t->n_dims);
    if (status == RWS_OK)
        status = rws__sheet_from_array(t->data, elements[t->dtype], t->shape[0], t->n_dims == 2 ? t->shape[1] : 1, path,
                                       o->id, out, err);
    rws__safetensors_close(st);
    return status;
}

rws_status rws__sheet_read(const char *path, const rws_table_options *o, rws_sheet *out, rws_error *err)
{
    const uint8_t *bytes;
    size_t         size;
    RWS_TRY(rws__file_map(path, &bytes, &size, err));
    rws_status status;
    if (rws__npy_is(bytes, size)) status = rws__npy_parse(bytes, size, path, o->id, out, err);
    else if (is_safetensors(bytes, size, path)) status = read_tensor(bytes, size, path, o, out, err);
    else status = rws__csv_parse(bytes, size, path, o->header, o->skip_missing, o->id, out, err);
    rws__file_unmap(bytes, size);
    return status;
}
