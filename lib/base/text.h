/* text.h - a text that is written through a FILE and grows in memory.
 *
 * It replaces open_memstream, which reports no failure without memory (glibc 2.36): the stream continues, and bytes in
 * the middle of the text are missing.
 *
 *     rws_text t;
 *     FILE    *out = rws__text_open(&t);
 *     if (out) fprintf(out, …);
 *     char *text = rws__text_end(&t);
 */
#ifndef RWS_BASE_TEXT_H
#define RWS_BASE_TEXT_H

#include <stdbool.h>
#include <stdio.h>

typedef struct {
    FILE  *out;
    char  *bytes;
    size_t n, capacity;
    bool   starved;
} rws_text;

/* The stream to write to; NULL without memory. */
FILE *rws__text_open(rws_text *t);

/* Closes the stream and returns what was written, t->n bytes and a zero byte, which the caller frees. NULL if there was
 * no memory for a part of it, or for the stream. */
char *rws__text_end(rws_text *t) __attribute__((warn_unused_result));

/* Writes a text, or a part of it, that is between the quotation marks of a cell of CSV: marks in it are doubled. */
void rws__text_put_quoted(FILE *out, const char *text);

#endif
