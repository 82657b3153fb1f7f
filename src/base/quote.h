/* quote.h - text from outside (a path, a name in a file) made fit for a sentence.
 *
 * An rws_error has room for one sentence; a path may be longer than that. It does not add quotation marks.
 */
#ifndef RWS_BASE_QUOTE_H
#define RWS_BASE_QUOTE_H

#include <stdbool.h>
#include <string.h>

typedef struct {
    char text[161];
} rws_quoted;

/* Control characters become '?', and of what does not fit the end is kept, which is the telling part of a path. */
static inline rws_quoted rws_quote(const char *raw)
{
    rws_quoted   out;
    const size_t length = strlen(raw), room = sizeof out.text - 1;
    const bool   cut = length > room;
    size_t       n = 0;
    if (cut) {
        raw += length - (room - 3);
        while (((unsigned char)*raw & 0xc0) == 0x80) raw++; /* not in the middle of a UTF-8 character */
        memcpy(out.text, "...", 3);
        n = 3;
    }
    for (; *raw; raw++) {
        const unsigned char c = (unsigned char)*raw;
        out.text[n++] = (char)(c < 0x20 || c == 0x7f ? '?' : c);
    }
    out.text[n] = '\0';
    return out;
}

#endif
