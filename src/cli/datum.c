#include "cli/datum.h"

#include "base/error.h"
#include "base/quote.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TEST = 100000000 }; /* numbers of test data are below */

/* ---- fields */

/* "x: 2, kind: 1", as far as there is room. */
static void list_fields(const rws_posterior *p, char *out, size_t size)
{
    size_t    n = 0;
    rws_field f;
    out[0] = '\0';
    for (int i = 0; rws_posterior_field(p, i, &f) && n < size; i++)
        if (!f.label)
            n += (size_t)snprintf(out + n, size - n, "%s%s: %d", n ? ", " : "", rws_quote(f.name).text, f.dim);
}

static rws_status refuse(const rws_posterior *p, const char *what, int total, rws_error *err)
{
    char fields[200];
    list_fields(p, fields, sizeof fields);
    return rws_fail(err, RWS_BAD_INPUT, "Model %s is asked about %d number%s (%s), %s.", rws_posterior_model(p)->name,
                    total, total == 1 ? "" : "s", fields, what);
}

static rws_status make_room(const rws_posterior *p, rws_datum *out, int *total, rws_error *err)
{
    rws_field f;
    int       n = 0, at = 0;
    *total = 0;
    for (; rws_posterior_field(p, n, &f); n++) *total += f.label ? 0 : f.dim;
    out->numbers = calloc((size_t)*total + 1, sizeof *out->numbers);
    out->fields = calloc((size_t)n + 1, sizeof *out->fields);
    if (!out->numbers || !out->fields) return rws_no_memory(err, "a datum");
    for (int i = 0; rws_posterior_field(p, i, &f); i++) {
        out->fields[i] = f.label ? NULL : out->numbers + at;
        at += f.label ? 0 : f.dim;
    }
    return RWS_OK;
}

rws_status rws_datum_read(const rws_posterior *p, const char *text, rws_datum *out, rws_error *err)
{
    static const char separators[] = " \t,;";
    char              what[120];
    int               n = 0, total;
    *out = (rws_datum){0};
    RWS_TRY(make_room(p, out, &total, err));
    for (const char *at = text + strspn(text, separators); *at; at += strspn(at, separators)) {
        char       *end;
        const float number = strtof(at, &end);
        if (end == at || isnan(number) || !strchr(separators, *end)) { /* strchr finds the end of the text too */
            const int length = (int)strcspn(at, separators);
            snprintf(what, sizeof what, "and \"%.*s\" is not one", length < 60 ? length : 60, at);
            return refuse(p, what, total, err);
        }
        if (n < total) out->numbers[n] = number;
        n++;
        at = end;
    }
    if (n == total) return RWS_OK;
    snprintf(what, sizeof what, "not about %d", n);
    return refuse(p, what, total, err);
}

void rws_datum_release(rws_datum *d)
{
    free(d->numbers);
    free(d->fields);
    *d = (rws_datum){0};
}

/* ---- numbers of test data */

static bool read_number(const char **at, int *out)
{
    if (!isdigit((unsigned char)**at)) return false;
    char      *end;
    const long number = strtol(*at, &end, 10);
    if (number >= MOST_TEST) return false;
    *at = end;
    *out = (int)number;
    return true;
}

bool rws_datum_range(const char **at, int *from, int *to)
{
    const char *next = *at;
    if (!read_number(&next, from)) return false;
    *to = *from;
    if (*next == '-') {
        next++;
        if (!read_number(&next, to) || *to < *from) return false;
    }
    if (*next == ',' && next[1]) next++;
    else if (*next) return false;
    *at = next;
    return true;
}
