#include "base/buffer.h"

#include "base/utf8.h"

#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL = 4096 };

static atomic_size_t held, limit = SIZE_MAX; /* bytes of all buffers */

void rws__buffer_limit(size_t most)
{
    limit = most;
}

bool rws__buffer_pressed(void)
{
    return held > limit / 2;
}

void rws__buffer_release(rws_buffer *b)
{
    held -= b->capacity;
    free(b->bytes);
    *b = (rws_buffer){0};
}

/* Makes space for n more bytes and a zero byte. */
static bool grow(rws_buffer *b, size_t n)
{
    if (b->starved) return false;
    if (b->capacity - b->n > n) return true;
    const size_t capacity = 2 * b->capacity + n + 256, more = capacity - b->capacity;
    const bool   fits = atomic_fetch_add(&held, more) + more <= limit || capacity <= SMALL;
    char        *longer = fits ? realloc(b->bytes, capacity) : NULL;
    b->starved = !longer;
    if (!longer) {
        held -= more;
        return false;
    }
    b->bytes = longer;
    b->capacity = capacity;
    return true;
}

void rws__buffer_add(rws_buffer *b, const char *bytes, size_t n)
{
    if (!grow(b, n)) return;
    memcpy(b->bytes + b->n, bytes, n);
    b->n += n;
    b->bytes[b->n] = '\0';
}

void rws__buffer_print(rws_buffer *b, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    const int n = vsnprintf(NULL, 0, format, args);
    if (n >= 0 && grow(b, (size_t)n)) {
        vsnprintf(b->bytes + b->n, (size_t)n + 1, format, again);
        b->n += (size_t)n;
    }
    va_end(again);
    va_end(args);
}

/* ---- JSON */

static void comma(rws_buffer *b)
{
    if (b->n && !strchr("{[,:\n", b->bytes[b->n - 1])) rws__buffer_add(b, ",", 1);
}

void rws__buffer_open(rws_buffer *b, char bracket)
{
    comma(b);
    rws__buffer_add(b, &bracket, 1);
}

void rws__buffer_close(rws_buffer *b, char bracket)
{
    rws__buffer_add(b, &bracket, 1);
}

static void add_character(rws_buffer *b, const unsigned char **at)
{
    const int n = rws__utf8_length((const char *)*at);
    if (n == 0) rws__buffer_add(b, "\xef\xbf\xbd", 3);
    else if (n > 1) rws__buffer_add(b, (const char *)*at, (size_t)n);
    else if (**at == '"' || **at == '\\') rws__buffer_print(b, "\\%c", **at);
    /* < and & are escaped too, so that a text inside the HTML of a page cannot end its element. */
    else if (**at < 0x20 || **at == 0x7f || **at == '<' || **at == '&') rws__buffer_print(b, "\\u%04x", **at);
    else rws__buffer_add(b, (const char *)*at, 1);
    *at += n ? n : 1;
}

static void add_quoted(rws_buffer *b, const char *text)
{
    rws__buffer_add(b, "\"", 1);
    for (const unsigned char *at = (const unsigned char *)text; *at;) add_character(b, &at);
    rws__buffer_add(b, "\"", 1);
}

void rws__buffer_key(rws_buffer *b, const char *key)
{
    comma(b);
    add_quoted(b, key);
    rws__buffer_add(b, ":", 1);
}

void rws__buffer_open_key(rws_buffer *b, const char *key, char bracket)
{
    rws__buffer_key(b, key);
    rws__buffer_open(b, bracket);
}

void rws__buffer_text(rws_buffer *b, const char *text)
{
    comma(b);
    if (text) add_quoted(b, text);
    else rws__buffer_add(b, "null", 4);
}

/* A whole number in decimal digits, which is what most numbers of a curve are; snprintf takes five times as long. */
static void add_whole(rws_buffer *b, double value)
{
    char     digits[24], *at = digits + sizeof digits;
    uint64_t rest = (uint64_t)fabs(value);
    do *--at = (char)('0' + rest % 10);
    while (rest /= 10);
    if (value < 0) *--at = '-';
    rws__buffer_add(b, at, (size_t)(digits + sizeof digits - at));
}

/* A locale of the program that uses the library may have a comma where JSON has a point. */
static void add_decimal(rws_buffer *b, int digits, double value)
{
    const size_t from = b->n;
    rws__buffer_print(b, "%.*g", digits, value);
    char *comma = b->n > from ? strchr(b->bytes + from, ',') : NULL;
    if (comma) *comma = '.';
}

void rws__buffer_number(rws_buffer *b, double value)
{
    comma(b);
    if (!isfinite(value)) rws__buffer_add(b, "null", 4);
    else if (fabs(value) < 1e15 && value == floor(value)) add_whole(b, value);
    else add_decimal(b, 9, value);
}

void rws__buffer_exact(rws_buffer *b, double value)
{
    char text[32];
    comma(b);
    snprintf(text, sizeof text, "%.15g", value);
    if (!isfinite(value)) rws__buffer_add(b, "null", 4);
    else if (fabs(value) < 1e15 && value == floor(value)) add_whole(b, value);
    else add_decimal(b, strtod(text, NULL) == value ? 15 : 17, value);
}

void rws__buffer_numbers(rws_buffer *b, const double *values, int n)
{
    rws__buffer_open(b, '[');
    for (int i = 0; i < n; i++) rws__buffer_number(b, values[i]);
    rws__buffer_close(b, ']');
}

void rws__buffer_true(rws_buffer *b, bool value)
{
    comma(b);
    rws__buffer_add(b, value ? "true" : "false", value ? 4 : 5);
}

void rws__buffer_key_text(rws_buffer *b, const char *key, const char *text)
{
    rws__buffer_key(b, key);
    rws__buffer_text(b, text);
}

void rws__buffer_key_number(rws_buffer *b, const char *key, double value)
{
    rws__buffer_key(b, key);
    rws__buffer_number(b, value);
}

void rws__buffer_key_exact(rws_buffer *b, const char *key, double value)
{
    rws__buffer_key(b, key);
    rws__buffer_exact(b, value);
}

void rws__buffer_key_true(rws_buffer *b, const char *key, bool value)
{
    rws__buffer_key(b, key);
    rws__buffer_true(b, value);
}

/* Whether the text is a whole number of at most 64 bits, as JSON writes it. */
static bool is_whole(const char *text, double value)
{
    const char *digits = text + (text[0] == '-');
    return fabs(value) <= 0x1p64 && !digits[strspn(digits, "0123456789")] && (digits[0] != '0' || !digits[1]);
}

void rws__buffer_value(rws_buffer *b, const char *text)
{
    char        *end;
    const double value = strtod(text, &end);
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) rws__buffer_true(b, text[0] == 't');
    else if (end == text || *end || !isfinite(value) || strpbrk(text, "xX ")) rws__buffer_text(b, text);
    else if (is_whole(text, value)) comma(b), rws__buffer_add(b, text, strlen(text));
    else rws__buffer_number(b, value);
}
