#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Text of users must not break the line of a message or reach a terminal as a command. */
static void replace_controls(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f) *text = '?';
}

/* Puts dots at the end of a message that did not fit, behind a whole UTF-8 character. */
static void end_cut(rws_error *err)
{
    size_t at = sizeof err->text - sizeof "....";
    while (at > 0 && ((unsigned char)err->text[at] & 0xc0) == 0x80) at--;
    strcpy(err->text + at, "....");
}

/* Writes a message into the text from byte n on. */
static void write_at(rws_error *err, size_t n, const char *format, va_list args)
{
    const size_t size = sizeof err->text - n;
    if (vsnprintf(err->text + n, size, format, args) >= (int)size) end_cut(err);
    replace_controls(err->text + n);
}

rws_status rws__fail_v(rws_error *err, rws_status status, const char *format, va_list args)
{
    if (err) write_at(err, 0, format, args);
    return status;
}

void rws__error_append(rws_error *err, const char *format, ...)
{
    va_list args;
    if (!err) return;
    va_start(args, format);
    write_at(err, strlen(err->text), format, args);
    va_end(args);
}

rws_status rws_fail(rws_error *err, rws_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    rws__fail_v(err, status, format, args);
    va_end(args);
    return status;
}

void rws__error_clear(rws_error *err)
{
    if (err) err->text[0] = '\0';
}

rws_status rws__called(rws_status status, const char *what, const char *entry, const char *model, rws_error *err)
{
    char name[160];
    if (status == RWS_OK || (status <= RWS_NO_MEMORY && (!err || err->text[0]))) return status;
    if (entry) snprintf(name, sizeof name, "The %s \"%.100s\"", what, entry);
    else snprintf(name, sizeof name, "The function `%s`", what);
    if (status <= RWS_NO_MEMORY)
        return rws_fail(err, status, "%s of model %.100s failed without a message that says why (rws_fail).", name,
                        model);
    return rws_fail(err, RWS_BAD_INPUT, "%s of model %.100s returned %u, which is no rws_status.", name, model,
                    (unsigned)status);
}

rws_status rws_no_memory(rws_error *err, const char *what)
{
    return rws_fail(err, RWS_NO_MEMORY, "There is no memory for %s.", what);
}

void rws__bug(const char *file, int line, const char *condition)
{
    fprintf(stderr, "rws: bug at %s:%d: this should hold: %s\n", file, line, condition);
    abort();
}
