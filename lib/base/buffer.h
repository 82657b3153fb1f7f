/* buffer.h - JSON and other text as it is being written, in memory that grows.
 *
 * Commas are put by themselves: an item or a key is preceded by one unless it is the first of its list or object. A
 * buffer that could not grow is `starved`: it takes no more text, and the caller looks once, at the end.
 *
 *     catalogue, answers -> [buffer] -> reply
 */
#ifndef RWS_BASE_BUFFER_H
#define RWS_BASE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

/* A zeroed buffer is valid and empty. */
typedef struct {
    char  *bytes; /* followed by a zero byte; NULL while empty */
    size_t n, capacity;
    bool   starved;
} rws_buffer;

void rws__buffer_release(rws_buffer *b);

/* The most bytes that all buffers of the process may have together; a buffer that would pass it is starved. Buffers of up to
 * 4096 bytes may pass it, so that a message about a failure fits. There is no limit at first. */
void rws__buffer_limit(size_t most);

/* Whether all buffers together have more than half of the limit. */
bool rws__buffer_pressed(void);

void rws__buffer_add(rws_buffer *b, const char *bytes, size_t n);
void rws__buffer_print(rws_buffer *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- JSON. Each of these puts the comma in front of itself, where one belongs. */

void rws__buffer_open(rws_buffer *b, char bracket);  /* '{' or '[' */
void rws__buffer_close(rws_buffer *b, char bracket); /* '}' or ']'; no comma */
void rws__buffer_key(rws_buffer *b, const char *key);
void rws__buffer_open_key(rws_buffer *b, const char *key, char bracket); /* a key, and open */

/* A text in quotation marks; NULL is null. Bytes that are not UTF-8 become U+FFFD. */
void rws__buffer_text(rws_buffer *b, const char *text);

/* A number with up to 9 digits, whole numbers with all of theirs; null if it is NaN or infinite. */
void rws__buffer_number(rws_buffer *b, double value);

/* A number with as many digits as it takes to read back the same one; null if it is NaN or infinite. */
void rws__buffer_exact(rws_buffer *b, double value);
void rws__buffer_numbers(rws_buffer *b, const double *values, int n); /* as an array */
void rws__buffer_true(rws_buffer *b, bool value);

/* A key with its value. */
void rws__buffer_key_text(rws_buffer *b, const char *key, const char *text);
void rws__buffer_key_number(rws_buffer *b, const char *key, double value);
void rws__buffer_key_exact(rws_buffer *b, const char *key, double value);
void rws__buffer_key_true(rws_buffer *b, const char *key, bool value);

/* A text of a configuration: a number if it reads like one, true, false or a text. A seed keeps all digits. */
void rws__buffer_value(rws_buffer *b, const char *text);

#endif
