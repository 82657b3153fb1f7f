/* csv.c - from text to a sheet, in one pass over the rows; the first line is read twice, to count its cells. */
#include "data/sheet.h"

#include "base/error.h"
#include "base/quote.h"
#include "data/cells.h"
#include "data/ids.h"

#include <glib.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The text that is still to be read, and the ids of the rows so far. */
typedef struct {
    rws_cells cells;
    int       id;  /* column of the ids, from 0; -1: none is asked for */
    rws_ids  *ids; /* the ids of the rows so far */
    rws_ids  *all; /* the same with the ids of rows that were left out; used if rows may be left out */
    int       n;   /* rows so far, with the rows that were left out */
} reader;

/* ---- numbers */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_text(const char *text, size_t length, const char *wanted)
{
    return length == strlen(wanted) && strncasecmp(text, wanted, length) == 0;
}

/* The flaw of a cell without a number. */
static rws_cell_flaw judge(const char *text, size_t length)
{
    if (length == 0) return RWS_CELL_EMPTY;
    if (*text == '-' || *text == '+') text++, length--;
    if (is_text(text, length, "nan")) return RWS_CELL_NAN;
    if (is_text(text, length, "inf") || is_text(text, length, "infinity")) return RWS_CELL_INFINITE;
    return RWS_CELL_TEXT;
}

/* The double of a decimal number that has been scanned: m * 10^exponent if that is exact (both factors are doubles
 * without rounding, so that there is one rounding only), else what the C library makes of the text. */
static bool value_of(const char *text, size_t length, uint64_t m, int n_digits, int exponent, double *x)
{
    static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                  1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (n_digits <= 19 && m <= UINT64_C(1) << 53 && exponent >= -22 && exponent <= 22) {
        *x = exponent < 0 ? (double)m / tens[-exponent] : (double)m * tens[exponent];
        if (*text == '-') *x = -*x;
        return true;
    }
    char copy[512];
    if (length >= sizeof copy) return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    *x = g_ascii_strtod(copy, NULL);
    return true;
}

/* Reads [+-] digits [. digits] [e [+-] digits], with at least one digit before or after the point. */
static rws_cell_flaw read_number(const char *text, size_t length, float *out)
{
    const char *at = text, *const end = text + length;
    uint64_t m = 0;
    int      n_digits = 0, exponent = 0;
    bool     any = false, point = false;
    *out = NAN;
    if (at < end && (*at == '-' || *at == '+')) at++;
    for (; at < end && (is_digit(*at) || (*at == '.' && !point)); at++) {
        if (*at == '.') {
            point = true;
            continue;
        }
        any = true;
        if (m || *at != '0') n_digits++;
        if (n_digits <= 19) m = 10 * m + (uint64_t)(*at - '0');
        if (point && exponent > -100000) exponent--;
    }
    if (!any) return judge(text, length);
    if (at < end && (*at == 'e' || *at == 'E')) {
        const bool minus = ++at < end && *at == '-';
        int        e = 0;
        if (at < end && (*at == '-' || *at == '+')) at++;
        if (at == end) return RWS_CELL_TEXT;
        for (; at < end && is_digit(*at); at++)
            if (e < 100000) e = 10 * e + (*at - '0');
        exponent += minus ? -e : e;
    }
    double x;
    if (at < end || !value_of(text, length, m, n_digits, exponent, &x)) return RWS_CELL_TEXT;
    if (!isfinite((float)x)) return RWS_CELL_TOO_LARGE;
    *out = (float)x;
    return RWS_CELL_FINE;
}

static bool is_missing(const rws_cell *c)
{
    static const char *const words[] = {"", "na", "n/a", "nan", "null", "?"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (is_text(c->text, c->length, words[i])) return true;
    return false;
}

/* ---- the sheet */

/* Counts the cells of the line at c.at, and those that are numbers, and the bytes of all as names with a zero byte
 * each.
 */
static rws_status measure_line(rws_cells c, int *n_cells, int *n_numbers, size_t *n_bytes)
{
    rws_cell cell = {.last = false};
    *n_cells = *n_numbers = 0;
    *n_bytes = 0;
    while (!cell.last) {
        float x;
        if (*n_cells == INT_MAX) return rws__refuse(c.err, c.name, c.line, "it has too many columns.");
        RWS_TRY(rws__cells_read(&c, ++*n_cells, &cell));
        *n_numbers += read_number(cell.text, cell.length, &x) == RWS_CELL_FINE;
        *n_bytes += cell.length + 1;
    }
    return RWS_OK;
}

/* Reads the line with the names of the columns into one block: the pointers, then the texts. */
static rws_status read_names(rws_cells *c, rws_sheet *s, size_t n_bytes)
{
    s->names = malloc((size_t)s->n_columns * sizeof *s->names + n_bytes);
    if (!s->names) return rws_no_memory(c->err, "the names of columns");
    char *to = (char *)(s->names + s->n_columns);
    for (int i = 0; i < s->n_columns; i++) {
        rws_cell cell;
        RWS_TRY(rws__cells_read(c, i + 1, &cell));
        s->names[i] = to;
        to = rws__cell_copy(&cell, to);
    }
    return RWS_OK;
}

/* Ids are compared as text: "1" and "1.0" are two. */
static rws_status number_id(reader *r, const rws_cell *id, int line, rws_sheet *s)
{
    if (id->length == 0) return rws__sheet_refuse_cell(s, line, r->id, r->cells.name, "the id is empty.", r->cells.err);
    s->ids[s->n_rows] = rws__ids_number(r->ids, id->text, id->length);
    s->lines[s->n_rows] = line;
    return s->ids[s->n_rows] < 0 ? rws_no_memory(r->cells.err, "the ids of a table") : RWS_OK;
}

/* Reads the next line as row n_rows, and counts the row unless it is to be skipped. `first` is the line whose number of
 * cells all other lines must have. */
static rws_status read_row(reader *r, int first, bool skip_missing, rws_sheet *s)
{
    float    *row = s->values + (size_t)s->n_rows * (size_t)s->n_columns;
    const int line = r->cells.line;
    bool      missing = false;
    rws_cell  c = {.last = false}, id = {0};
    int       n = 0;
    while (!c.last) {
        const int here = r->cells.line;
        if (n == s->n_columns)
            return rws__refuse(r->cells.err, r->cells.name, line, "it has more than the %d columns of line %d.", n,
                               first);
        RWS_TRY(rws__cells_read(&r->cells, n + 1, &c));
        const rws_cell_flaw what = read_number(c.text, c.length, &row[n]);
        if (what != RWS_CELL_FINE && skip_missing && is_missing(&c)) missing = true;
        else if (what != RWS_CELL_FINE) rws__sheet_note(s, n, what, here, c.text, c.length);
        if (n == r->id) id = c;
        n++;
    }
    if (n < s->n_columns)
        return rws__refuse(r->cells.err, r->cells.name, line, "it has %d column%s, and line %d has %d.", n,
                           n == 1 ? "" : "s", first, s->n_columns);
    if (s->numbers) {
        int number = r->n++;
        if (r->id >= 0 && id.length && (number = rws__ids_number(r->all, id.text, id.length)) < 0)
            return rws_no_memory(r->cells.err, "the ids of a table");
        s->numbers[s->n_rows] = number;
    }
    if (missing) return RWS_OK;
    if (r->id >= 0) RWS_TRY(number_id(r, &id, line, s));
    s->n_rows++;
    return RWS_OK;
}

/* Allocates the most that the rest of the text can need: each line has at most one row, and each cell at least one
 * byte. */
static rws_status make_room(const reader *r, bool skip_missing, rws_sheet *s)
{
    const rws_cells *c = &r->cells;
    size_t           n_lines = 1, n_values;
    for (const char *at = c->at; at < c->end; at++) n_lines += rws__cells_is_line_end(*at);
    if (n_lines > INT_MAX - (size_t)r->cells.line)
        return rws__refuse(r->cells.err, r->cells.name, 0, "has more than %d lines.", INT_MAX);
    if (__builtin_mul_overflow(n_lines, (size_t)s->n_columns, &n_values) || n_values > (size_t)(c->end - c->at) + 1)
        n_values = (size_t)(c->end - c->at) + 1;
    /* A line that turns out too long is refused within its first surplus cell, so that one row may be begun behind all
     * others. */
    n_values += (size_t)s->n_columns;
    s->values = malloc(n_values * sizeof *s->values);
    s->flaws = calloc((size_t)s->n_columns, sizeof *s->flaws);
    if (!s->values || !s->flaws) return rws_no_memory(r->cells.err, "a table");
    if (skip_missing && !(s->numbers = malloc(n_lines * sizeof *s->numbers)))
        return rws_no_memory(r->cells.err, "the rows of a table");
    if (r->id < 0) return RWS_OK;
    s->ids = malloc(n_lines * sizeof *s->ids);
    s->lines = malloc(n_lines * sizeof *s->lines);
    return s->ids && s->lines ? RWS_OK : rws_no_memory(r->cells.err, "the ids of a table");
}

static rws_status find_id(reader *r, const char *id, const rws_sheet *s)
{
    if (!id) return RWS_OK;
    const rws_column_finding found = rws__sheet_find_column(s, id, strlen(id), &r->id);
    if (found != RWS_COLUMN_FOUND)
        return rws__sheet_refuse_column(s, r->cells.name, found, id, strlen(id), r->cells.err);
    return RWS_OK;
}

static rws_status read_sheet(reader *r, rws_header header, bool skip_missing, const char *id, rws_sheet *s)
{
    int    n_numbers;
    size_t n_bytes;
    if (!rws__cells_find_line(&r->cells)) return rws__refuse(r->cells.err, r->cells.name, 0, "has no rows.");
    const int first = r->cells.line;
    RWS_TRY(measure_line(r->cells, &s->n_columns, &n_numbers, &n_bytes));
    if (header == RWS_HEADER_GIVEN || (header == RWS_HEADER_GUESSED && n_numbers == 0))
        RWS_TRY(read_names(&r->cells, s, n_bytes));
    RWS_TRY(find_id(r, id, s));
    RWS_TRY(make_room(r, skip_missing, s));
    while (rws__cells_find_line(&r->cells)) RWS_TRY(read_row(r, first, skip_missing, s));
    if (s->n_rows == 0) return rws__refuse(r->cells.err, r->cells.name, 0, "has no rows.");
    /* Gives unused memory back; if realloc fails, the larger block stays. */
    float *values = realloc(s->values, (size_t)s->n_rows * (size_t)s->n_columns * sizeof *values);
    if (values) s->values = values;
    s->n_ids = r->ids->n;
    return RWS_OK;
}

rws_status rws__csv_parse(const uint8_t *bytes, size_t size, const char *name, rws_header header, bool skip_missing,
                          const char *id, rws_sheet *out, rws_error *err)
{
    rws_ids ids = {0}, all = {0};
    reader  r = {.id = -1, .ids = &ids, .all = &all};
    *out = (rws_sheet){0};
    RWS_TRY(rws__cells_init(&r.cells, bytes, size, name, err));
    const rws_status status = read_sheet(&r, header, skip_missing, id, out);
    rws__ids_release(&ids);
    rws__ids_release(&all);
    if (status != RWS_OK) rws__sheet_release(out);
    return status;
}
