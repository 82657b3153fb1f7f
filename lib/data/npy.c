/* npy.c - arrays that numpy.save has written.
 *
 *     \x93NUMPY  major minor   the version: 1.0, 2.0 or 3.0
 *     length                   of the header, 2 bytes in version 1, else 4, little-endian
 *     {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }      a Python dict, padded with blanks
 *     elements
 */
#include "data/sheet.h"

#include "base/error.h"
#include "base/quote.h"

#include <string.h>

#define MAGIC "\x93NUMPY"
enum { MAGIC_BYTES = 6, MAX_DIMS = 32, MAX_TEXT = 40 };

bool rws__npy_is(const uint8_t *bytes, size_t size)
{
    return size >= MAGIC_BYTES && memcmp(bytes, MAGIC, MAGIC_BYTES) == 0;
}

/* The header, and what it says. */
typedef struct {
    const char *at, *end;
    char        descr[MAX_TEXT];
    bool        fortran;
    int         n_dims;
    size_t      shape[MAX_DIMS];
    bool        has_descr, has_order, has_shape;
} header;

static void skip_blanks(header *h)
{
    while (h->at < h->end && (*h->at == ' ' || *h->at == '\t' || *h->at == '\n')) h->at++;
}

/* Moves behind the text, if it is next. */
static bool take(header *h, const char *text)
{
    const size_t length = strlen(text);
    skip_blanks(h);
    if ((size_t)(h->end - h->at) < length || memcmp(h->at, text, length) != 0) return false;
    h->at += length;
    return true;
}

/* A string in single or double quotation marks, without backslashes. */
static bool take_string(header *h, char text[MAX_TEXT])
{
    skip_blanks(h);
    if (h->at == h->end || (*h->at != '\'' && *h->at != '"')) return false;
    const char  quote = *h->at++;
    const char *stop = memchr(h->at, quote, (size_t)(h->end - h->at));
    if (!stop || stop - h->at >= MAX_TEXT || memchr(h->at, '\\', (size_t)(stop - h->at))) return false;
    memcpy(text, h->at, (size_t)(stop - h->at));
    text[stop - h->at] = '\0';
    h->at = stop + 1;
    return true;
}

static bool take_size(header *h, size_t *n)
{
    skip_blanks(h);
    const char *begin = h->at;
    for (*n = 0; h->at < h->end && *h->at >= '0' && *h->at <= '9'; h->at++)
        if (__builtin_mul_overflow(*n, 10, n) || __builtin_add_overflow(*n, (size_t)(*h->at - '0'), n)) return false;
    if (h->at < h->end && *h->at == 'L') h->at++; /* Python 2 */
    return h->at > begin;
}

/* "()", "(3,)", "(3, 4)" */
static bool take_shape(header *h)
{
    if (!take(h, "(")) return false;
    for (h->n_dims = 0; !take(h, ")");) {
        if (h->n_dims == MAX_DIMS || !take_size(h, &h->shape[h->n_dims++])) return false;
        if (!take(h, ",")) return take(h, ")");
    }
    return true;
}

static bool take_entry(header *h)
{
    char key[MAX_TEXT];
    if (!take_string(h, key) || !take(h, ":")) return false;
    if (strcmp(key, "descr") == 0) return h->has_descr = take_string(h, h->descr);
    if (strcmp(key, "shape") == 0) return h->has_shape = take_shape(h);
    if (strcmp(key, "fortran_order") != 0) return false;
    h->fortran = take(h, "True");
    return h->has_order = h->fortran || take(h, "False");
}

static bool take_dict(header *h)
{
    if (!take(h, "{")) return false;
    while (!take(h, "}")) {
        if (!take_entry(h)) return false;
        if (take(h, ",")) continue;
        if (!take(h, "}")) return false;
        break;
    }
    skip_blanks(h);
    return h->at == h->end && h->has_descr && h->has_order && h->has_shape;
}

/* "<f4" and so on; a byte has no order, and a boolean is a byte. */
static rws_status find_element(const header *h, const char *name, rws_element *e, rws_error *err)
{
    const char *d = h->descr;
    const char *found = d[0] && d[1] && d[2] && !d[3] ? d : "   ";
    *e = (rws_element){found[1] == 'b' ? 'u' : found[1], (size_t)(found[2] - '0')};
    const bool known = rws__element_is_known(*e) && (found[1] != 'b' || e->size == 1);
    if (known && found[0] == '>' && e->size > 1)
        return rws__refuse(err, name, 0, "is big-endian (%s), and only little-endian arrays are read.", d);
    if (!known || !(found[0] == '<' || found[0] == '|' || e->size == 1))
        return rws__refuse(err, name, 0,
                           "has elements of type \"%s\"; float32, float64, integers and booleans are read.",
                           rws__quote_short(d).text);
    return RWS_OK;
}

static rws_status find_header(const uint8_t *bytes, size_t size, const char *name, header *h, rws_error *err)
{
    if (!rws__npy_is(bytes, size)) return rws__refuse(err, name, 0, "is not an NPY file.");
    const int major = size > MAGIC_BYTES ? bytes[MAGIC_BYTES] : 1, n_length = major == 1 ? 2 : 4;
    if (major < 1 || major > 3) return rws__refuse(err, name, 0, "is an NPY file of the unknown version %d.", major);
    const size_t at = MAGIC_BYTES + 2 + (size_t)n_length;
    size_t       length = 0;
    if (size >= at) memcpy(&length, bytes + MAGIC_BYTES + 2, (size_t)n_length);
    if (size < at || length > size - at) return rws__refuse(err, name, 0, "is cut short within its header.");
    *h = (header){.at = (const char *)bytes + at, .end = (const char *)bytes + at + length};
    if (!take_dict(h)) return rws__refuse(err, name, 0, "has a header that cannot be understood.");
    return RWS_OK;
}

rws_status rws__npy_parse(const uint8_t *bytes, size_t size, const char *name, const char *id, rws_sheet *out,
                          rws_error *err)
{
    header      h;
    rws_element e;
    *out = (rws_sheet){0};
    RWS_TRY(find_header(bytes, size, name, &h, err));
    RWS_TRY(find_element(&h, name, &e, err));
    if (h.n_dims < 1 || h.n_dims > 2)
        return rws__refuse(err, name, 0, "has an array of %d dimensions; arrays of 1 or 2 are read.", h.n_dims);
    if (h.fortran && h.n_dims == 2)
        return rws__refuse(err, name, 0,
                           "is in Fortran order; save it by numpy.save(file, numpy.ascontiguousarray(x)).");
    const size_t rows = h.shape[0], columns = h.n_dims == 2 ? h.shape[1] : 1;
    const size_t left = size - (size_t)((const uint8_t *)h.end - bytes);
    size_t       n_bytes;
    if (__builtin_mul_overflow(rows, columns, &n_bytes) || __builtin_mul_overflow(n_bytes, e.size, &n_bytes) ||
        n_bytes != left)
        return rws__refuse(err, name, 0, "has %zu bytes of data, which is not what its shape (%zu x %zu) needs.", left,
                           rows, columns);
    return rws__sheet_from_array(h.end, e, rows, columns, name, id, out, err);
}
