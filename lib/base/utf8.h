/* utf8.h - which bytes are characters of UTF-8.
 *
 * Texts of users, such as paths, may be any bytes; JSON takes UTF-8 only.
 */
#ifndef RWS_BASE_UTF8_H
#define RWS_BASE_UTF8_H

#include <stdbool.h>

/* The number of bytes of the UTF-8 character at the beginning of a text, which ends with a zero byte; 0 if there is
 * none. */
static inline int rws__utf8_length(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    const int            n = at[0] < 0x80                    ? 1
                             : at[0] >= 0xc2 && at[0] < 0xe0 ? 2
                             : (at[0] & 0xf0) == 0xe0        ? 3
                             : at[0] >= 0xf0 && at[0] < 0xf5 ? 4
                                                             : 0;
    for (int i = 1; i < n; i++)
        if ((at[i] & 0xc0) != 0x80) return 0;
    if (at[0] == 0xe0 && at[1] < 0xa0) return 0; /* longer than needed */
    if (at[0] == 0xed && at[1] > 0x9f) return 0; /* half of a pair of UTF-16 */
    if (at[0] == 0xf0 && at[1] < 0x90) return 0;
    if (at[0] == 0xf4 && at[1] > 0x8f) return 0;
    return n;
}

/* Whether all characters of the text are UTF-8. */
static inline bool rws__utf8_is(const char *text)
{
    for (int n; *text; text += n)
        if ((n = rws__utf8_length(text)) == 0) return false;
    return true;
}

#endif
