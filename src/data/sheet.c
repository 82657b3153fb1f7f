#include "data/sheet.h"

#include "base/error.h"
#include "base/quote.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the byte order of arrays is taken for the machine's");

void rws_sheet_release(rws_sheet *s)
{
    free(s->values);
    free(s->names);
    free(s->flaws);
    *s = (rws_sheet){0};
}

/* ---- arrays */

bool rws_element_is_known(rws_element e)
{
    if (e.kind == 'f') return e.size == 4 || e.size == 8;
    return (e.kind == 'i' || e.kind == 'u') && (e.size == 1 || e.size == 2 || e.size == 4 || e.size == 8);
}

static double element_at(const uint8_t *at, rws_element e)
{
    union {
        float    f4;
        double   f8;
        uint64_t bits;
    } x = {.bits = 0};
    memcpy(&x, at, e.size);
    if (e.kind == 'f') return e.size == 4 ? (double)x.f4 : x.f8;
    if (e.kind == 'u') return (double)x.bits;
    const int unused = 64 - 8 * (int)e.size;
    return (double)((int64_t)(x.bits << unused) >> unused);
}

/* Converts one element, and remembers it if it is the first of its column that is not finite. */
static float convert(const uint8_t *at, rws_element e, int row, rws_flaw *flaw)
{
    const double x = element_at(at, e);
    const float  f = (float)x;
    if (isfinite(f)) return f;
    if (flaw->what == RWS_CELL_FINE) {
        *flaw = (rws_flaw){isfinite(x) ? RWS_CELL_TOO_LARGE : RWS_CELL_NOT_FINITE, row, ""};
        snprintf(flaw->text, sizeof flaw->text, "%g", x);
    }
    return NAN;
}

rws_status rws_sheet_from_array(const void *elements, rws_element e, size_t n_rows, size_t n_columns, const char *name,
                                rws_sheet *out, rws_error *err)
{
    RWS_CHECK(rws_element_is_known(e));
    *out = (rws_sheet){.array = true};
    if (n_rows == 0 || n_columns == 0) return rws_refuse(err, name, 0, "has no numbers.");
    if (n_rows > INT_MAX || n_columns > INT_MAX)
        return rws_refuse(err, name, 0, "has more than %d rows or columns.", INT_MAX);
    out->values = malloc(n_rows * n_columns * sizeof *out->values);
    out->flaws = calloc(n_columns, sizeof *out->flaws);
    if (!out->values || !out->flaws) {
        rws_sheet_release(out);
        return rws_no_memory(err, "a table");
    }
    const uint8_t *at = elements;
    for (size_t row = 0, i = 0; row < n_rows; row++)
        for (size_t column = 0; column < n_columns; column++, i++, at += e.size)
            out->values[i] = convert(at, e, (int)row, &out->flaws[column]);
    out->n_rows = (int)n_rows;
    out->n_columns = (int)n_columns;
    return RWS_OK;
}

/* ---- flaws */

rws_status rws_sheet_check_column(const rws_sheet *s, int column, const char *name, rws_error *err)
{
    RWS_CHECK(column >= 0 && column < s->n_columns);
    const rws_flaw  *flaw = &s->flaws[column];
    const rws_quoted file = rws_quote_short(name), text = rws_quote(flaw->text);
    if (flaw->what == RWS_CELL_FINE) return RWS_OK;
    char where[2 * RWS_QUOTED_MAX + 60];
    if (s->array) snprintf(where, sizeof where, "\"%s\", element [%d, %d]", file.text, flaw->line, column);
    else if (s->names)
        snprintf(where, sizeof where, "\"%s\", line %d, column %d (\"%s\")", file.text, flaw->line, column + 1,
                 rws_quote_short(s->names[column]).text);
    else snprintf(where, sizeof where, "\"%s\", line %d, column %d", file.text, flaw->line, column + 1);
    switch (flaw->what) {
    case RWS_CELL_EMPTY: return rws_fail(err, RWS_BAD_INPUT, "%s: the cell is empty.", where);
    case RWS_CELL_NOT_FINITE:
        return rws_fail(err, RWS_BAD_INPUT, "%s: \"%s\" is not a finite number.", where, text.text);
    case RWS_CELL_TOO_LARGE:
        return rws_fail(err, RWS_BAD_INPUT, "%s: \"%s\" is too large; numbers go up to 3.4e38.", where, text.text);
    default: return rws_fail(err, RWS_BAD_INPUT, "%s: \"%s\" is not a number.", where, text.text);
    }
}
