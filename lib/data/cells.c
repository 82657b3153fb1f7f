#include "data/cells.h"

#include "base/error.h"
#include "base/quote.h"

#include <string.h>

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
            return rws__refuse(err, name, 0, "%s", kinds[i].what);
    return RWS_OK;
}

rws_status rws__cells_init(rws_cells *c, const uint8_t *bytes, size_t size, const char *name, rws_error *err)
{
    *c = (rws_cells){.line = 1, .name = name, .err = err};
    RWS_TRY(check_kind(bytes, size, name, err));
    if (size) c->at = (const char *)bytes, c->end = c->at + size;
    if (size >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0) c->at += 3; /* byte order mark */
    return RWS_OK;
}

static bool is_blank(const rws_cells *c, char byte)
{
    return byte == ' ' || (byte == '\t' && c->separator != '\t');
}

static void skip_blanks(rws_cells *c)
{
    while (c->at < c->end && is_blank(c, *c->at)) c->at++;
}

/* Moves behind the end of a line: LF, CR LF or CR. */
static void skip_line_end(rws_cells *c)
{
    if (c->at == c->end) return;
    if (*c->at++ == '\r' && c->at < c->end && *c->at == '\n') c->at++;
    c->line++;
}

/* Moves behind the closing quotation mark; c->at is at the opening one. False: there is none. */
static bool skip_quoted(rws_cells *c)
{
    for (c->at++; c->at < c->end; c->at++) {
        if (rws__cells_is_line_end(*c->at)) {
            c->line += *c->at == '\n' || c->at + 1 == c->end || c->at[1] != '\n';
        } else if (*c->at == '"') {
            if (c->at + 1 == c->end || c->at[1] != '"') {
                c->at++;
                return true;
            }
            c->at++;
        }
    }
    return false;
}

/* The separator of the line at c.at: the first of tab, semicolon, comma that the line has outside of quotation marks.
 * */
static char find_separator(rws_cells c)
{
    bool tab = false, semicolon = false;
    while (c.at < c.end && !rws__cells_is_line_end(*c.at)) {
        if (*c.at == '"') {
            if (!skip_quoted(&c)) break;
            continue;
        }
        tab |= *c.at == '\t';
        semicolon |= *c.at == ';';
        c.at++;
    }
    return tab ? '\t' : semicolon ? ';' : ',';
}

bool rws__cells_find_line(rws_cells *c)
{
    while (c->at < c->end) {
        const char *begin = c->at;
        skip_blanks(c);
        if (c->at < c->end && *c->at == '#')
            while (c->at < c->end && !rws__cells_is_line_end(*c->at)) c->at++;
        else if (c->at < c->end && !rws__cells_is_line_end(*c->at)) {
            c->at = begin;
            if (!c->separator) c->separator = find_separator(*c);
            return true;
        }
        skip_line_end(c);
    }
    return false;
}

rws_status rws__cells_read(rws_cells *c, int column, rws_cell *out)
{
    const int line = c->line;
    skip_blanks(c);
    *out = (rws_cell){.text = c->at, .quoted = c->at < c->end && *c->at == '"'};
    if (out->quoted) {
        if (!skip_quoted(c))
            return rws__refuse(c->err, c->name, line, "column %d has no closing quotation mark.", column);
        out->text++;
        out->length = (size_t)(c->at - 1 - out->text);
        skip_blanks(c);
        if (c->at < c->end && *c->at != c->separator && !rws__cells_is_line_end(*c->at))
            return rws__refuse(c->err, c->name, c->line, "column %d has text behind its closing quotation mark.",
                               column);
    } else {
        while (c->at < c->end && *c->at != c->separator && !rws__cells_is_line_end(*c->at)) c->at++;
        out->length = (size_t)(c->at - out->text);
        while (out->length && is_blank(c, out->text[out->length - 1])) out->length--;
    }
    out->last = c->at == c->end || rws__cells_is_line_end(*c->at);
    if (out->last) skip_line_end(c);
    else c->at++;
    return RWS_OK;
}

char *rws__cell_copy(const rws_cell *cell, char *to)
{
    for (size_t i = 0; i < cell->length; i++) {
        *to++ = cell->text[i];
        if (cell->quoted && cell->text[i] == '"') i++; /* doubled */
    }
    *to++ = '\0';
    return to;
}
