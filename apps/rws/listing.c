#include "rws/listing.h"

#include "base/error.h"
#include "base/list.h"
#include "rws/output.h"
#include "rws/screen.h"

#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_ROOM = 24 }; /* columns for a sentence; a narrower screen breaks its lines */

struct rws_listing {
    int       n_columns, n_cells, capacity;
    rws_cell *kinds; /* [n_columns] */
    char    **cells; /* headings first, row by row */
};

rws_listing *rws__listing_new(void)
{
    rws_listing *t = calloc(1, sizeof *t);
    rws__need_memory(t != NULL, "a table");
    return t;
}

static void add(rws_listing *t, const char *format, va_list args)
{
    rws__need_memory(rws__list_grow(&t->cells, t->n_cells, &t->capacity, sizeof *t->cells), "a table");
    rws__need_memory(vasprintf(&t->cells[t->n_cells], format, args) >= 0, "a table");
    rws__output_tame(t->cells[t->n_cells++]);
}

void rws__listing_cell(rws_listing *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add(t, format, args);
    va_end(args);
}

void rws__listing_column(rws_listing *t, const char *heading, rws_cell cell)
{
    RWS_CHECK(t->n_columns == t->n_cells);
    t->kinds = realloc(t->kinds, (size_t)(t->n_columns + 1) * sizeof *t->kinds);
    rws__need_memory(t->kinds != NULL, "a table");
    t->kinds[t->n_columns++] = cell;
    rws__listing_cell(t, "%s", heading);
}

void rws__listing_number(rws_listing *t, double value)
{
    if (isnan(value)) rws__listing_cell(t, "%s", "-");
    else rws__listing_cell(t, "%.4g", value);
}

/* The number of characters of n bytes; a character of UTF-8 may have several. */
static int width_of(const char *text, size_t n)
{
    int width = 0;
    for (size_t i = 0; i < n; i++) width += ((unsigned char)text[i] & 0xc0) != 0x80;
    return width;
}

/* Where the words of a text, or of the rest of one, end that fit into `room` columns; at least one word. */
static size_t line_of(const char *text, int room)
{
    size_t end = strcspn(text, " ");
    for (size_t next = end; text[next];) {
        next += strspn(text + next, " ");
        next += strcspn(text + next, " ");
        if (width_of(text, next) > room) break;
        end = next;
    }
    return end;
}

void rws__listing_words(FILE *out, const char *text, int indent, int room)
{
    for (;;) {
        const size_t n = room < LEAST_ROOM ? strlen(text) : line_of(text, room);
        fprintf(out, "%.*s", (int)n, text);
        text += n + strspn(text + n, " ");
        if (!*text) return;
        fprintf(out, "\n%*s", indent, "");
    }
}

/* What a block of lines shows: the first column and columns from..to - 1. */
typedef struct {
    const int *width;
    int        indent, columns; /* of the screen; 0: no end */
    int        from, to;
} block;

static void print_row(const rws_listing *t, const block *b, int row)
{
    int at = b->indent;
    printf("%*s", b->indent, "");
    for (int c = 0; c < b->to; c = c + 1 < b->from ? b->from : c + 1) {
        const char *cell = t->cells[row * t->n_columns + c];
        const int   space = b->width[c] - width_of(cell, strlen(cell));
        const bool  last = c + 1 >= b->to;
        if (t->kinds[c] == RWS_CELL_TEXT) rws__listing_words(stdout, cell, at, b->columns ? b->columns - at : 0);
        else if (t->kinds[c] == RWS_CELL_RIGHT) printf("%*s%s", space, "", cell);
        else printf("%s%*s", cell, last ? 0 : space, "");
        if (!last) fputs("  ", stdout);
        at += b->width[c] + 2;
    }
    putchar('\n');
}

/* The first column that does not fit beside those from `from` on and the first one. */
static int end_of(const rws_listing *t, const block *b)
{
    int at = b->indent + b->width[0], c = b->from;
    for (; c < t->n_columns; c++) {
        at += 2 + (t->kinds[c] == RWS_CELL_TEXT ? LEAST_ROOM : b->width[c]);
        if (b->columns && c > b->from && at > b->columns) break;
    }
    return c;
}

static bool has_headings(const rws_listing *t)
{
    for (int c = 0; c < t->n_columns; c++)
        if (t->cells[c][0]) return true;
    return false;
}

static void print_block(const rws_listing *t, const block *b, int screen_rows)
{
    const bool headings = has_headings(t);
    const int  n = t->n_cells / t->n_columns, page = screen_rows > 4 ? screen_rows - 2 : INT_MAX;
    for (int row = 1; row < n; row++) {
        if (headings && (row - 1) % page == 0) print_row(t, b, 0);
        print_row(t, b, row);
    }
    if (headings && n == 1) print_row(t, b, 0);
}

void rws__listing_print(rws_listing *t, int indent, bool wide)
{
    int *width = calloc((size_t)t->n_columns + 1, sizeof *width);
    rws__need_memory(width != NULL, "a table");
    for (int i = 0; i < t->n_cells; i++) {
        const int w = width_of(t->cells[i], strlen(t->cells[i])), c = i % t->n_columns;
        if (w > width[c]) width[c] = w;
    }
    block b = {.width = width, .indent = indent, .columns = wide ? 0 : rws__screen_table()};
    for (b.from = 1; b.to < t->n_columns; b.from = b.to) {
        if (b.from > 1) putchar('\n');
        b.to = end_of(t, &b);
        print_block(t, &b, rws__screen_rows());
    }
    for (int i = 0; i < t->n_cells; i++) free(t->cells[i]);
    free(width);
    free(t->kinds);
    free(t->cells);
    free(t);
}
