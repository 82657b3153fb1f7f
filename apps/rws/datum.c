#include "rws/datum.h"

#include "base/error.h"
#include "base/quote.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TEST = 100000000 }; /* numbers of test data are below */

/* ---- fields */

/* Characters that separate numbers. */
static const char separators[] = " \t,;";

/* The text of a datum, as far as it is read. */
typedef struct {
    const rws_posterior *p;
    bool                 inputs; /* the fields that are read: inputs alone, or all but labels */
    const char          *at;
    int                  n; /* numbers so far */
    rws_error           *err;
} reader;

static bool is_read(const rws_field *f, bool inputs)
{
    return inputs ? f->input : !f->label;
}

/* "x: 2, kind: 1, words: up to 60 x 2 in brackets", as far as it fits. */
static void list_fields(const reader *r, char *out, size_t size)
{
    size_t    n = 0;
    rws_field f;
    out[0] = '\0';
    for (int i = 0; rws_posterior_field(r->p, i, &f) && n < size; i++) {
        const rws_quoted name = rws__quote(f.name);
        if (!is_read(&f, r->inputs)) continue;
        n += (size_t)snprintf(out + n, size - n, "%s%s: ", n ? ", " : "", name.text);
        if (n < size && !f.most) n += (size_t)snprintf(out + n, size - n, "%d", f.dim);
        if (n < size && f.most) n += (size_t)snprintf(out + n, size - n, "[up to %d x %d]", f.most, f.item);
    }
}

static rws_status refuse(const reader *r, const char *what)
{
    rws_field   f;
    char        fields[200];
    const char *name = rws_posterior_model(r->p)->name, *verb = r->inputs ? "is sampled at" : "is asked about";
    int         total = 0;
    bool        series = false;
    list_fields(r, fields, sizeof fields);
    for (int i = 0; rws_posterior_field(r->p, i, &f); i++)
        if (is_read(&f, r->inputs)) total += f.dim, series |= f.most > 0;
    if (series)
        return rws_fail(r->err, RWS_BAD_INPUT, "Model %s %s the numbers of its %s (%s), %s.", name, verb,
                        r->inputs ? "inputs" : "fields", fields, what);
    return rws_fail(r->err, RWS_BAD_INPUT, "Model %s %s %d number%s (%s), %s.", name, verb, total,
                    total == 1 ? "" : "s", fields, what);
}

rws_status rws__datum_make(const rws_posterior *p, bool inputs, rws_datum *out, rws_error *err)
{
    rws_field f;
    size_t    total = 0, at = 0;
    int       n = 0;
    for (; rws_posterior_field(p, n, &f); n++) total += is_read(&f, inputs) ? (size_t)f.dim : 0;
    out->numbers = calloc(total + 1, sizeof *out->numbers);
    out->fields = calloc((size_t)n + 1, sizeof *out->fields);
    if (!out->numbers || !out->fields) return rws_no_memory(err, "a datum");
    for (int i = 0; rws_posterior_field(p, i, &f); i++) {
        out->fields[i] = is_read(&f, inputs) ? out->numbers + at : NULL;
        at += is_read(&f, inputs) ? (size_t)f.dim : 0;
    }
    return RWS_OK;
}

static void skip_separators(reader *r)
{
    r->at += strspn(r->at, separators);
}

static rws_status read_one(reader *r, float *out)
{
    char *end;
    *out = strtof(r->at, &end);
    if (end == r->at || isnan(*out) || !strchr(" \t,;[]", *end)) { /* strchr finds the end of the text too */
        char      what[120];
        const int word = (int)strcspn(r->at, " \t,;[]"), length = word ? word : 1; /* 1: a bracket */
        snprintf(what, sizeof what, "and \"%.*s\" is not one", length < 60 ? length : 60, r->at);
        return refuse(r, what);
    }
    r->at = end;
    r->n++;
    skip_separators(r);
    return RWS_OK;
}

/* Reads the numbers of a series up to its closing bracket, or up to the end of the text if it has none. Brackets around
 * an item are allowed. */
static rws_status read_series(reader *r, const rws_field *f, float *to)
{
    const bool closed = *r->at == '[';
    char       what[160];
    int        n = 0;
    bool       inner = false;
    if (closed) r->at++, skip_separators(r);
    for (; *r->at && (inner || *r->at != ']'); n++) {
        float x;
        if (!inner && *r->at == '[' && n % f->item == 0) inner = true, r->at++, skip_separators(r);
        RWS_TRY(read_one(r, &x));
        if (n < f->item * f->most) to[1 + n] = x;
        if (inner && (n + 1) % f->item == 0 && *r->at == ']') inner = false, r->at++, skip_separators(r);
    }
    if (inner || (closed && *r->at != ']')) return refuse(r, "and a bracket is not closed where an item ends");
    if (closed) r->at++, skip_separators(r);
    to[0] = (float)(n / f->item);
    if (n % f->item == 0 && n <= f->item * f->most) return RWS_OK;
    snprintf(what, sizeof what, "and a series of %d number%s is not one of up to %d items of %d", n, n == 1 ? "" : "s",
             f->most, f->item);
    return refuse(r, what);
}

/* The number of the last field that is read. */
static int last_field(const reader *r)
{
    rws_field f;
    int       last = -1;
    for (int i = 0; rws_posterior_field(r->p, i, &f); i++)
        if (is_read(&f, r->inputs)) last = i;
    return last;
}

rws_status rws__datum_read(const rws_posterior *p, const char *text, bool inputs, rws_datum *out, rws_error *err)
{
    reader    r = {.p = p, .inputs = inputs, .at = text, .err = err};
    rws_field f;
    bool      enough = true;
    char      what[120];
    *out = (rws_datum){0};
    RWS_TRY(rws__datum_make(p, inputs, out, err));
    skip_separators(&r);
    for (int i = 0, last = last_field(&r); rws_posterior_field(p, i, &f); i++) {
        float *to = (float *)out->fields[i];
        if (!is_read(&f, inputs)) continue;
        if (f.most && (*r.at == '[' || i == last)) RWS_TRY(read_series(&r, &f, to));
        else if (f.most) return refuse(&r, "where the numbers of a series stand in brackets");
        else
            for (int k = 0; k < f.dim && (enough &= *r.at != '\0'); k++) RWS_TRY(read_one(&r, &to[k]));
    }
    enough &= *r.at == '\0';
    while (*r.at) {
        float more;
        RWS_TRY(read_one(&r, &more));
    }
    if (enough) return RWS_OK;
    snprintf(what, sizeof what, "not about %d", r.n);
    return refuse(&r, what);
}

void rws__datum_release(rws_datum *d)
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
    if (number >= MAX_TEST) return false;
    *at = end;
    *out = (int)number;
    return true;
}

bool rws__datum_range(const char **at, int *from, int *to)
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
