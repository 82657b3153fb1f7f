#include "base/quote.h"

#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

rws_status rws__refuse(rws_error *err, const char *name, int line, const char *format, ...)
{
    const rws_quoted file = rws__quote_prefix(name, strlen(name), line ? RWS_QUOTED_SHORT : RWS_MAX_QUOTED);
    rws_error        rest;
    va_list          args;
    va_start(args, format);
    rws__fail_v(&rest, RWS_BAD_INPUT, format, args);
    va_end(args);
    if (line) return rws_fail(err, RWS_BAD_INPUT, "\"%s\", line %d: %s", file.text, line, rest.text);
    return rws_fail(err, RWS_BAD_INPUT, "\"%s\" %s", file.text, rest.text);
}
