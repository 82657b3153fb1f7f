#include "base/text.h"

#include <stdlib.h>
#include <string.h>

/* Returns the number of bytes that were taken; 0 tells stdio that the write failed. */
static ssize_t add(void *context, const char *bytes, size_t n)
{
    rws_text *t = context;
    if (t->starved) return 0;
    if (t->capacity - t->n <= n) {
        const size_t capacity = 2 * t->capacity + n + 256;
        char        *longer = realloc(t->bytes, capacity);
        if (!longer) {
            t->starved = true;
            return 0;
        }
        t->bytes = longer;
        t->capacity = capacity;
    }
    memcpy(t->bytes + t->n, bytes, n);
    t->n += n;
    return (ssize_t)n;
}

FILE *rws__text_open(rws_text *t)
{
    *t = (rws_text){0};
    t->out = fopencookie(t, "w", (cookie_io_functions_t){.write = add});
    return t->out;
}

char *rws__text_end(rws_text *t)
{
    bool whole = t->out && fclose(t->out) == 0;
    if (whole && !t->starved && !t->bytes) t->bytes = malloc(1); /* nothing was written */
    if (whole && !t->starved && t->bytes) {
        t->bytes[t->n] = '\0';
        return t->bytes;
    }
    free(t->bytes);
    return NULL;
}

void rws__text_put_quoted(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '"') fputc('"', out);
        fputc(*text, out);
    }
}
