#include "base/quote.h"

#include <stdarg.h>
#include <stdio.h>

rws_status rws_refuse(rws_error *err, const char *name, int line, const char *format, ...)
{
    if (!err) return RWS_BAD_INPUT;
    const size_t     room = sizeof err->text;
    const rws_quoted file = rws_quote_part(name, strlen(name), line ? RWS_QUOTED_SHORT : RWS_QUOTED_MAX);
    const int        n = line ? snprintf(err->text, room, "\"%s\", line %d: ", file.text, line)
                              : snprintf(err->text, room, "\"%s\" ", file.text);
    va_list          args;
    va_start(args, format);
    vsnprintf(err->text + n, room - (size_t)n, format, args);
    va_end(args);
    return RWS_BAD_INPUT;
}
