#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>

rws_status rws_fail_v(rws_error *err, rws_status status, const char *format, va_list args)
{
    if (err) vsnprintf(err->text, sizeof err->text, format, args);
    return status;
}

rws_status rws_fail(rws_error *err, rws_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    rws_fail_v(err, status, format, args);
    va_end(args);
    return status;
}

rws_status rws_no_memory(rws_error *err, const char *what)
{
    return rws_fail(err, RWS_NO_MEMORY, "There is no memory for %s.", what);
}

void rws_bug(const char *file, int line, const char *condition)
{
    fprintf(stderr, "rws: bug at %s:%d: this should hold: %s\n", file, line, condition);
    abort();
}
