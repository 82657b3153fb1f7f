/* ids.c - libFuzzer harness for the numbering of ids: the numbers are those of a plain search through the ids so far. An id
 * is the bytes up to the next newline. */
#include "bytes.h"
#include "data/ids.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { MOST = 2000 };
    static struct {
        const char *bytes;
        size_t      length;
    } seen[MOST];
    int         n = 0;
    rws_ids     ids = {0};
    const char *at = (const char *)data, *end = at + size;
    while (at < end && n < MOST) {
        const char  *stop = memchr(at, '\n', (size_t)(end - at));
        const size_t length = (size_t)((stop ? stop : end) - at);
        int          want = 0;
        while (want < n && !(seen[want].length == length && memcmp(seen[want].bytes, at, length) == 0)) want++;
        if (want == n) seen[n].bytes = at, seen[n++].length = length;
        if (rws__ids_number(&ids, at, length) != want || ids.n != n) abort();
        at += length + 1;
    }
    rws__ids_release(&ids);
    return 0;
}
