/* json.h - JSON read and copied by jansson, with a failure for want of memory told apart from other mistakes.
 *
 * jansson reports an allocation that failed as a parse error at the place it had reached; errno tells the two apart.
 */
#ifndef RWS_DATA_JSON_H
#define RWS_DATA_JSON_H

#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>

/* The document, the caller's to json_decref. NULL with the mistake in *why, or with *starved set: there was no memory.
 * */
static inline json_t *rws__json_load(const char *text, size_t length, size_t flags, json_error_t *why, bool *starved)
{
    const int before = errno;
    errno = 0;
    json_t *document = json_loadb(text, length, flags, why);
    if (document && errno == ENOMEM) { /* jansson leaves out a character for which there is none */
        json_decref(document);
        document = NULL;
    }
    *starved = !document && (errno == ENOMEM || !why->text[0] || json_error_code(why) == json_error_out_of_memory);
    errno = before;
    return document;
}

/* A shallow copy with all keys, NULL without memory: json_copy leaves out keys for which there is none. */
static inline json_t *rws__json_copy(const json_t *object)
{
    json_t *copy = json_copy((json_t *)object);
    if (json_object_size(copy) == json_object_size(object)) return copy;
    json_decref(copy);
    return NULL;
}

/* The document as text, for the caller to free; NULL without memory. Into a buffer of the right size: where memory runs
 * out while its own buffer grows, jansson's json_dumps may leave a key out and continue. */
static inline char *rws__json_text(const json_t *document, size_t flags)
{
    const size_t size = json_dumpb(document, NULL, 0, flags);
    char        *text = size ? malloc(size + 1) : NULL;
    if (text && json_dumpb(document, text, size, flags) != size) {
        free(text);
        return NULL;
    }
    if (text) text[size] = '\0';
    return text;
}

#endif
