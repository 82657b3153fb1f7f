/* quote.h - text from outside (a path, a name in a file) made fit for a message, and messages that refuse a file.
 *
 * An rws_error holds one message; a path may be longer than that. rws__quote does not add quotation marks.
 */
#ifndef RWS_BASE_QUOTE_H
#define RWS_BASE_QUOTE_H

#include "rws.h"

#include <string.h>

enum { RWS_MAX_QUOTED = 160, RWS_QUOTED_SHORT = 80 }; /* bytes: of one text in a message; of one among several */

typedef struct {
    char text[RWS_MAX_QUOTED + 1];
} rws_quoted;

/* The `length` bytes of `raw`, with control characters as '?'. From a text of more than `most` bytes only the end is
 * kept, behind "...", because the end of a path tells most. most is at most RWS_MAX_QUOTED. */
static inline rws_quoted rws__quote_prefix(const char *raw, size_t length, size_t most)
{
    rws_quoted        out;
    const char *const end = raw + length;
    size_t            n = 0;
    if (length > most) {
        raw = end - (most - 3);
        while (raw < end && ((unsigned char)*raw & 0xc0) == 0x80) raw++; /* not in the middle of a UTF-8 character */
        memcpy(out.text, "...", 3);
        n = 3;
    }
    for (; raw < end; raw++) {
        const unsigned char c = (unsigned char)*raw;
        out.text[n++] = (char)(c < 0x20 || c == 0x7f ? '?' : c);
    }
    out.text[n] = '\0';
    return out;
}

/* The same for a text that ends with a zero byte: alone in its message, and beside others. */
static inline rws_quoted rws__quote(const char *raw)
{
    return rws__quote_prefix(raw, strlen(raw), RWS_MAX_QUOTED);
}
static inline rws_quoted rws__quote_short(const char *raw)
{
    return rws__quote_prefix(raw, strlen(raw), RWS_QUOTED_SHORT);
}

/* A list of names for a message, "a, b, c". Names that do not fit become one "…". All zeros is an empty list. */
typedef struct {
    char   text[240];
    size_t used;
    bool   full;
} rws_name_list;

static inline void rws__name_list_add(rws_name_list *l, const char *name)
{
    static const char more[] = ", …";
    const size_t      n = strlen(name);
    if (l->full) return;
    l->full = l->used + 2 + n + sizeof more > sizeof l->text;
    const char  *what = l->full ? more + (l->used ? 0 : 2) : name;
    const size_t length = strlen(what);
    if (l->used && !l->full) memcpy(l->text + l->used, ", ", 2), l->used += 2;
    memcpy(l->text + l->used, what, length + 1);
    l->used += length;
}

/* RWS_BAD_INPUT with a message about the file `name`: `"name" <format>`, or `"name", line 3: <format>` unless line is
 * 0. Without an err there is only the status. */
rws_status rws__refuse(rws_error *err, const char *name, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
