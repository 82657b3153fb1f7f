/* csv.c - from text to a sheet, in one pass over the rows; the first line is read twice, to count its cells. */
#include "data/sheet.h"

#include "base/error.h"
#include "base/quote.h"
#include "data/ids.h"

#include <glib.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The text that is still to be read. */
typedef struct {
    const char *at, *end;
    int         line; /* of `at`, from 1 */
    char        separator;
    int         id;   /* column of the ids, from 0; -1: none is asked for */
    rws_ids    *ids;  /* the ids of the rows so far */
    rws_ids    *all;  /* the same with the ids of rows that were left out; used if rows may be left out */
    int         n;    /* rows so far, with the rows that were left out */
    const char *name; /* of the file */
    rws_error  *err;
} reader;

/* A cell without its quotation marks and without blanks around it. */
typedef struct {
    const char *text;
    size_t      length;
    bool        quoted;
    bool        last; /* of its line */
} cell;

/* ---- numbers */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_text(const char *text, size_t length, const char *wanted)
{
    return length == strlen(wanted) && strncasecmp(text, wanted, length) == 0;
}

/* What a cell without a number is. */
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

static bool is_missing(const cell *c)
{
    static const char *const words[] = {"", "na", "n/a", "nan", "null", "?"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (is_text(c->text, c->length, words[i])) return true;
    return false;
}

/* ---- cells and lines */

static bool is_line_end(char c)
{
    return c == '\n' || c == '\r';
}

static bool is_blank(const reader *r, char c)
{
    return c == ' ' || (c == '\t' && r->separator != '\t');
}

static void skip_blanks(reader *r)
{
    while (r->at < r->end && is_blank(r, *r->at)) r->at++;
}

/* Moves behind the end of a line: LF, CR LF or CR. */
static void skip_line_end(reader *r)
{
    if (r->at == r->end) return;
    if (*r->at++ == '\r' && r->at < r->end && *r->at == '\n') r->at++;
    r->line++;
}

/* Moves to the next line with cells; false at the end of the text. */
static bool find_line(reader *r)
{
    while (r->at < r->end) {
        const char *begin = r->at;
        skip_blanks(r);
        if (r->at < r->end && *r->at == '#')
            while (r->at < r->end && !is_line_end(*r->at)) r->at++;
        else if (r->at < r->end && !is_line_end(*r->at)) {
            r->at = begin;
            return true;
        }
        skip_line_end(r);
    }
    return false;
}

/* Moves behind the closing quotation mark; r->at is at the opening one. False: there is none. */
static bool skip_quoted(reader *r)
{
    for (r->at++; r->at < r->end; r->at++) {
        if (is_line_end(*r->at)) {
            r->line += *r->at == '\n' || r->at + 1 == r->end || r->at[1] != '\n';
        } else if (*r->at == '"') {
            if (r->at + 1 == r->end || r->at[1] != '"') {
                r->at++;
                return true;
            }
            r->at++;
        }
    }
    return false;
}

/* Reads cell number `column` (from 1) of a line, and the separator or the end of the line behind it. */
static rws_status read_cell(reader *r, int column, cell *c)
{
    const int line = r->line;
    skip_blanks(r);
    *c = (cell){.text = r->at, .quoted = r->at < r->end && *r->at == '"'};
    if (c->quoted) {
        if (!skip_quoted(r))
            return rws_refuse(r->err, r->name, line, "column %d has no closing quotation mark.", column);
        c->text++;
        c->length = (size_t)(r->at - 1 - c->text);
        skip_blanks(r);
        if (r->at < r->end && *r->at != r->separator && !is_line_end(*r->at))
            return rws_refuse(r->err, r->name, r->line, "column %d has text behind its closing quotation mark.",
                              column);
    } else {
        while (r->at < r->end && *r->at != r->separator && !is_line_end(*r->at)) r->at++;
        c->length = (size_t)(r->at - c->text);
        while (c->length && is_blank(r, c->text[c->length - 1])) c->length--;
    }
    c->last = r->at == r->end || is_line_end(*r->at);
    if (c->last) skip_line_end(r);
    else r->at++;
    return RWS_OK;
}

/* The separator of the line at r->at: the first of tab, semicolon, comma that the line has outside of quotation marks. */
static char find_separator(reader r)
{
    bool tab = false, semicolon = false;
    while (r.at < r.end && !is_line_end(*r.at)) {
        if (*r.at == '"') {
            if (!skip_quoted(&r)) break;
            continue;
        }
        tab |= *r.at == '\t';
        semicolon |= *r.at == ';';
        r.at++;
    }
    return tab ? '\t' : semicolon ? ';' : ',';
}

/* Counts the cells of the line at r.at, and those that are numbers, and the bytes of all as names with a zero byte each.
 */
static rws_status measure_line(reader r, int *n_cells, int *n_numbers, size_t *n_bytes)
{
    cell c = {.last = false};
    *n_cells = *n_numbers = 0;
    *n_bytes = 0;
    while (!c.last) {
        float x;
        if (*n_cells == INT_MAX) return rws_refuse(r.err, r.name, r.line, "it has too many columns.");
        RWS_TRY(read_cell(&r, ++*n_cells, &c));
        *n_numbers += read_number(c.text, c.length, &x) == RWS_CELL_FINE;
        *n_bytes += c.length + 1;
    }
    return RWS_OK;
}

/* ---- the sheet */

/* Reads the line with the names of the columns into one block: the pointers, then the texts. */
static rws_status read_names(reader *r, rws_sheet *s, size_t n_bytes)
{
    s->names = malloc((size_t)s->n_columns * sizeof *s->names + n_bytes);
    if (!s->names) return rws_no_memory(r->err, "the names of columns");
    char *to = (char *)(s->names + s->n_columns);
    for (int i = 0; i < s->n_columns; i++) {
        cell c;
        RWS_TRY(read_cell(r, i + 1, &c));
        s->names[i] = to;
        for (size_t k = 0; k < c.length; k++) {
            *to++ = c.text[k];
            if (c.quoted && c.text[k] == '"') k++; /* doubled */
        }
        *to++ = '\0';
    }
    return RWS_OK;
}

/* Ids are compared as text: "1" and "1.0" are two. */
static rws_status number_id(reader *r, const cell *id, int line, rws_sheet *s)
{
    if (id->length == 0) return rws_sheet_refuse_cell(s, line, r->id, r->name, "the id is empty.", r->err);
    s->ids[s->n_rows] = rws_ids_number(r->ids, id->text, id->length);
    s->lines[s->n_rows] = line;
    return s->ids[s->n_rows] < 0 ? rws_no_memory(r->err, "the ids of a table") : RWS_OK;
}

/* Reads the line at r->at as row n_rows, and counts the row unless it is to be skipped. `first` is the line whose number of
 * cells all other lines must have. */
static rws_status read_row(reader *r, int first, bool skip_missing, rws_sheet *s)
{
    float    *row = s->values + (size_t)s->n_rows * (size_t)s->n_columns;
    const int line = r->line;
    bool      missing = false;
    cell      c = {.last = false}, id = {0};
    int       n = 0;
    while (!c.last) {
        const int here = r->line;
        if (n == s->n_columns)
            return rws_refuse(r->err, r->name, line, "it has more than the %d columns of line %d.", n, first);
        RWS_TRY(read_cell(r, n + 1, &c));
        const rws_cell_flaw what = read_number(c.text, c.length, &row[n]);
        if (what != RWS_CELL_FINE && skip_missing && is_missing(&c)) missing = true;
        else if (what != RWS_CELL_FINE) rws_sheet_note(s, n, what, here, c.text, c.length);
        if (n == r->id) id = c;
        n++;
    }
    if (n < s->n_columns)
        return rws_refuse(r->err, r->name, line, "it has %d column%s, and line %d has %d.", n, n == 1 ? "" : "s", first,
                          s->n_columns);
    if (s->numbers) {
        int number = r->n++;
        if (r->id >= 0 && id.length && (number = rws_ids_number(r->all, id.text, id.length)) < 0)
            return rws_no_memory(r->err, "the ids of a table");
        s->numbers[s->n_rows] = number;
    }
    if (missing) return RWS_OK;
    if (r->id >= 0) RWS_TRY(number_id(r, &id, line, s));
    s->n_rows++;
    return RWS_OK;
}

/* Allocates the most that the rest of the text can need: each line has at most one row, and each cell at least one byte. */
static rws_status make_room(const reader *r, bool skip_missing, rws_sheet *s)
{
    size_t n_lines = 1, n_values;
    for (const char *at = r->at; at < r->end; at++) n_lines += is_line_end(*at);
    if (n_lines > INT_MAX - (size_t)r->line) return rws_refuse(r->err, r->name, 0, "has more than %d lines.", INT_MAX);
    if (__builtin_mul_overflow(n_lines, (size_t)s->n_columns, &n_values) || n_values > (size_t)(r->end - r->at) + 1)
        n_values = (size_t)(r->end - r->at) + 1;
    /* A line that turns out too long is refused within its first surplus cell, so that one row may be begun behind all
     * others. */
    n_values += (size_t)s->n_columns;
    s->values = malloc(n_values * sizeof *s->values);
    s->flaws = calloc((size_t)s->n_columns, sizeof *s->flaws);
    if (!s->values || !s->flaws) return rws_no_memory(r->err, "a table");
    if (skip_missing && !(s->numbers = malloc(n_lines * sizeof *s->numbers)))
        return rws_no_memory(r->err, "the rows of a table");
    if (r->id < 0) return RWS_OK;
    s->ids = malloc(n_lines * sizeof *s->ids);
    s->lines = malloc(n_lines * sizeof *s->lines);
    return s->ids && s->lines ? RWS_OK : rws_no_memory(r->err, "the ids of a table");
}

static rws_status find_id(reader *r, const char *id, const rws_sheet *s)
{
    if (!id) return RWS_OK;
    const rws_column_finding found = rws_sheet_find_column(s, id, strlen(id), &r->id);
    if (found != RWS_COLUMN_FOUND) return rws_sheet_refuse_column(s, r->name, found, id, strlen(id), r->err);
    return RWS_OK;
}

static rws_status read_sheet(reader *r, rws_header header, bool skip_missing, const char *id, rws_sheet *s)
{
    int    n_numbers;
    size_t n_bytes;
    if (!find_line(r)) return rws_refuse(r->err, r->name, 0, "has no rows.");
    r->separator = find_separator(*r);
    const int first = r->line;
    RWS_TRY(measure_line(*r, &s->n_columns, &n_numbers, &n_bytes));
    if (header == RWS_HEADER_GIVEN || (header == RWS_HEADER_GUESSED && n_numbers == 0))
        RWS_TRY(read_names(r, s, n_bytes));
    RWS_TRY(find_id(r, id, s));
    RWS_TRY(make_room(r, skip_missing, s));
    while (find_line(r)) RWS_TRY(read_row(r, first, skip_missing, s));
    if (s->n_rows == 0) return rws_refuse(r->err, r->name, 0, "has no rows.");
    /* Gives unused memory back; if realloc fails, the larger block stays. */
    float *values = realloc(s->values, (size_t)s->n_rows * (size_t)s->n_columns * sizeof *values);
    if (values) s->values = values;
    s->n_ids = r->ids->n;
    return RWS_OK;
}

/* Refuses files that are certainly not UTF-8 text, by their first bytes. */
static rws_status check_kind(const uint8_t *bytes, size_t size, const char *name, rws_error *err)
{
    static const struct {
        const char *magic;
        size_t      length;
        const char *what;
    } kinds[] = {
        {"\xff\xfe", 2, "is UTF-16 text; save it as UTF-8."},
        {"\xfe\xff", 2, "is UTF-16 text; save it as UTF-8."},
        {"\x1f\x8b", 2, "is compressed by gzip; unpack it first."},
        {"PK\3\4", 4, "is a ZIP archive (a spreadsheet, or NPZ); save it as CSV, or by numpy.save."},
        {"\x89PNG", 4, "is a PNG picture, not a table."},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (size >= kinds[i].length && memcmp(bytes, kinds[i].magic, kinds[i].length) == 0)
            return rws_refuse(err, name, 0, "%s", kinds[i].what);
    return RWS_OK;
}

rws_status rws_csv_parse(const uint8_t *bytes, size_t size, const char *name, rws_header header, bool skip_missing,
                         const char *id, rws_sheet *out, rws_error *err)
{
    *out = (rws_sheet){0};
    RWS_TRY(check_kind(bytes, size, name, err));
    rws_ids ids = {0}, all = {0};
    reader  r = {.line = 1, .separator = ',', .id = -1, .ids = &ids, .all = &all, .name = name, .err = err};
    if (size) r.at = (const char *)bytes, r.end = r.at + size;
    if (size >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0) r.at += 3; /* byte order mark */
    const rws_status status = read_sheet(&r, header, skip_missing, id, out);
    rws_ids_release(&ids);
    rws_ids_release(&all);
    if (status != RWS_OK) rws_sheet_release(out);
    return status;
}
