#include "data/sheet.h"

#include "base/error.h"
#include "base/quote.h"
#include "data/ids.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the byte order of arrays is taken for the machine's");

void rws__sheet_release(rws_sheet *s)
{
    free(s->values);
    free(s->names);
    free(s->flaws);
    free(s->ids);
    free(s->lines);
    free(s->numbers);
    *s = (rws_sheet){0};
}

/* ---- flaws */

static bool is_new(const rws_column_flaws *flaws, rws_cell_flaw what)
{
    const bool missing = what == RWS_CELL_EMPTY || what == RWS_CELL_NAN;
    return flaws->first.what == RWS_CELL_FINE || (!missing && flaws->wrong.what == RWS_CELL_FINE);
}

void rws__sheet_note(rws_sheet *s, int column, rws_cell_flaw what, int line, const char *text, size_t length)
{
    rws_column_flaws *flaws = &s->flaws[column];
    if (!is_new(flaws, what)) return;
    rws_flaw         flaw = {what, line, ""};
    const rws_quoted shown = rws__quote_prefix(text, length, RWS_CELL_SHOWN);
    memcpy(flaw.text, shown.text, strlen(shown.text) + 1);
    if (flaws->first.what == RWS_CELL_FINE) flaws->first = flaw;
    if (what != RWS_CELL_EMPTY && what != RWS_CELL_NAN) flaws->wrong = flaw;
}

/* ---- arrays */

bool rws__element_is_known(rws_element e)
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

/* Converts one element, and remembers it as a flaw of its column if it is not finite. */
static float convert(const uint8_t *at, rws_element e, int row, int column, rws_sheet *s)
{
    const double x = element_at(at, e);
    const float  f = (float)x;
    if (isfinite(f)) return f;
    const rws_cell_flaw what = isfinite(x) ? RWS_CELL_TOO_LARGE : isnan(x) ? RWS_CELL_NAN : RWS_CELL_INFINITE;
    if (is_new(&s->flaws[column], what)) {
        char text[RWS_CELL_SHOWN + 1];
        snprintf(text, sizeof text, "%g", x);
        rws__sheet_note(s, column, what, row, text, strlen(text));
    }
    return NAN;
}

/* Numbers the ids in a column of an array by their elements, which are compared exactly, not as floats. */
static rws_status number_ids(const uint8_t *elements, rws_element e, int column, const char *name, rws_sheet *s,
                             rws_error *err)
{
    rws_ids ids = {0};
    s->ids = malloc((size_t)s->n_rows * sizeof *s->ids);
    s->lines = malloc((size_t)s->n_rows * sizeof *s->lines);
    rws_status status = s->ids && s->lines ? RWS_OK : rws_no_memory(err, "the ids of a table");
    for (int row = 0; row < s->n_rows && status == RWS_OK; row++) {
        const uint8_t *at = elements + ((size_t)row * (size_t)s->n_columns + (size_t)column) * e.size;
        s->lines[row] = row;
        if (!isfinite(element_at(at, e)))
            status = rws__sheet_refuse_cell(s, row, column, name, "an id must be a finite number.", err);
        else if ((s->ids[row] = rws__ids_number(&ids, (const char *)at, e.size)) < 0)
            status = rws_no_memory(err, "the ids of a table");
    }
    s->n_ids = ids.n;
    rws__ids_release(&ids);
    return status;
}

static rws_status find_ids(const uint8_t *elements, rws_element e, const char *id, const char *name, rws_sheet *s,
                           rws_error *err)
{
    int column;
    if (!id) return RWS_OK;
    const rws_column_finding found = rws__sheet_find_column(s, id, strlen(id), &column);
    if (found != RWS_COLUMN_FOUND) return rws__sheet_refuse_column(s, name, found, id, strlen(id), err);
    return number_ids(elements, e, column, name, s, err);
}

rws_status rws__sheet_from_array(const void *elements, rws_element e, size_t n_rows, size_t n_columns, const char *name,
                                 const char *id, rws_sheet *out, rws_error *err)
{
    RWS_CHECK(rws__element_is_known(e));
    *out = (rws_sheet){.array = true};
    if (n_rows == 0 || n_columns == 0) return rws__refuse(err, name, 0, "has no numbers.");
    if (n_rows > INT_MAX || n_columns > INT_MAX)
        return rws__refuse(err, name, 0, "has more than %d rows or columns.", INT_MAX);
    out->values = malloc(n_rows * n_columns * sizeof *out->values);
    out->flaws = calloc(n_columns, sizeof *out->flaws);
    if (!out->values || !out->flaws) {
        rws__sheet_release(out);
        return rws_no_memory(err, "a table");
    }
    const uint8_t *at = elements;
    for (size_t row = 0, i = 0; row < n_rows; row++)
        for (size_t column = 0; column < n_columns; column++, i++, at += e.size)
            out->values[i] = convert(at, e, (int)row, (int)column, out);
    out->n_rows = (int)n_rows;
    out->n_columns = (int)n_columns;
    const rws_status status = find_ids(elements, e, id, name, out, err);
    if (status != RWS_OK) rws__sheet_release(out);
    return status;
}

/* ---- messages */

/* A cell, as a message names it. */
typedef struct {
    char text[2 * RWS_MAX_QUOTED + 60];
} place;

static place place_of(const rws_sheet *s, int line, int column, const char *name)
{
    const rws_quoted file = rws__quote_short(name);
    place            at;
    if (s->array) snprintf(at.text, sizeof at.text, "\"%s\", element [%d, %d]", file.text, line, column);
    else if (s->names)
        snprintf(at.text, sizeof at.text, "\"%s\", line %d, column %d (\"%s\")", file.text, line, column + 1,
                 rws__quote_short(s->names[column]).text);
    else snprintf(at.text, sizeof at.text, "\"%s\", line %d, column %d", file.text, line, column + 1);
    return at;
}

rws_status rws__sheet_refuse_cell(const rws_sheet *s, int line, int column, const char *name, const char *wrong,
                                  rws_error *err)
{
    return rws_fail(err, RWS_BAD_INPUT, "%s: %s", place_of(s, line, column, name).text, wrong);
}

static rws_status check_flaw(const rws_sheet *s, int column, const rws_flaw *flaw, const char *name, rws_error *err)
{
    const rws_quoted text = rws__quote(flaw->text);
    if (flaw->what == RWS_CELL_FINE) return RWS_OK;
    const place at = place_of(s, flaw->line, column, name);
    switch (flaw->what) {
    case RWS_CELL_EMPTY: return rws_fail(err, RWS_BAD_INPUT, "%s: the cell is empty.", at.text);
    case RWS_CELL_NAN:
    case RWS_CELL_INFINITE:
        return rws_fail(err, RWS_BAD_INPUT, "%s: \"%s\" is not a finite number.", at.text, text.text);
    case RWS_CELL_TOO_LARGE:
        return rws_fail(err, RWS_BAD_INPUT, "%s: \"%s\" is too large; numbers go up to 3.4e38.", at.text, text.text);
    default: return rws_fail(err, RWS_BAD_INPUT, "%s: \"%s\" is not a number.", at.text, text.text);
    }
}

rws_status rws__sheet_check_column(const rws_sheet *s, int column, const char *name, rws_error *err)
{
    RWS_CHECK(column >= 0 && column < s->n_columns);
    return check_flaw(s, column, &s->flaws[column].first, name, err);
}

rws_status rws__sheet_check_label(const rws_sheet *s, int column, const char *name, rws_error *err)
{
    RWS_CHECK(column >= 0 && column < s->n_columns);
    return check_flaw(s, column, &s->flaws[column].wrong, name, err);
}

/* ---- columns */

/* Whether a name of a column is the `length` bytes of text. */
static bool is_name(const char *name, const char *text, size_t length)
{
    return strlen(name) == length && memcmp(name, text, length) == 0;
}

rws_column_finding rws__sheet_find_column(const rws_sheet *s, const char *text, size_t length, int *column)
{
    int n = 0;
    for (int i = 0; s->names && i < s->n_columns; i++)
        if (is_name(s->names[i], text, length) && n++ == 0) *column = i;
    if (n) return n == 1 ? RWS_COLUMN_FOUND : RWS_COLUMN_AMBIGUOUS;
    int64_t number = 0;
    for (size_t k = 0; k < length; k++) {
        if (text[k] < '0' || text[k] > '9' || number > s->n_columns) return RWS_COLUMN_UNKNOWN;
        number = 10 * number + (text[k] - '0');
    }
    *column = (int)number - 1;
    return number >= 1 && number <= s->n_columns ? RWS_COLUMN_FOUND : RWS_COLUMN_UNKNOWN;
}

/* The names of the columns for a message, as many as fit; their number, if they have none. */
static void list_names(const rws_sheet *s, char *to, size_t size)
{
    size_t n = (size_t)snprintf(to, size, "%d column%s", s->n_columns, s->n_columns == 1 ? "" : "s");
    for (int i = 0; s->names && i < s->n_columns; i++) {
        const rws_quoted name = rws__quote_short(s->names[i]);
        if (n + strlen(name.text) + 10 > size) {
            snprintf(to + n, size - n, ", ...");
            return;
        }
        n += (size_t)snprintf(to + n, size - n, "%s\"%s\"", i ? ", " : ": ", name.text);
    }
}

rws_status rws__sheet_refuse_column(const rws_sheet *s, const char *name, rws_column_finding what, const char *text,
                                    size_t length, rws_error *err)
{
    const rws_quoted asked = rws__quote_prefix(text, length, RWS_QUOTED_SHORT);
    char             names[160];
    if (what == RWS_COLUMN_AMBIGUOUS)
        return rws__refuse(err, name, 0, "has several columns \"%s\"; name the column by its number.", asked.text);
    list_names(s, names, sizeof names);
    return rws__refuse(err, name, 0, "has no column \"%s\"; it has %s.", asked.text, names);
}
