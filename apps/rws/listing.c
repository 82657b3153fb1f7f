#include "rws/listing.h"

#include "base/error.h"
#include "base/list.h"
#include "rws/output.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct rws_listing {
    int    n_columns, n_cells, capacity;
    int   *right; /* [n_columns] */
    char **cells; /* headings first, row by row */
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

void rws__listing_column(rws_listing *t, const char *heading, int right)
{
    RWS_CHECK(t->n_columns == t->n_cells);
    t->right = realloc(t->right, (size_t)(t->n_columns + 1) * sizeof *t->right);
    rws__need_memory(t->right != NULL, "a table");
    t->right[t->n_columns++] = right;
    rws__listing_cell(t, "%s", heading);
}

void rws__listing_number(rws_listing *t, double value)
{
    if (isnan(value)) rws__listing_cell(t, "%s", "-");
    else rws__listing_cell(t, "%.4g", value);
}

/* The number of characters; a character of UTF-8 may have several bytes. */
static int width_of(const char *text)
{
    int n = 0;
    for (; *text; text++) n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

void rws__listing_print(rws_listing *t)
{
    int *width = calloc((size_t)t->n_columns + 1, sizeof *width);
    rws__need_memory(width != NULL, "a table");
    for (int i = 0; i < t->n_cells; i++) {
        const int w = width_of(t->cells[i]), c = i % t->n_columns;
        if (w > width[c]) width[c] = w;
    }
    for (int i = 0; i < t->n_cells; i++) {
        const int  c = i % t->n_columns, space = width[c] - width_of(t->cells[i]);
        const bool last = c + 1 == t->n_columns;
        printf("%*s%s%*s%s", t->right[c] ? space : 0, "", t->cells[i], t->right[c] || last ? 0 : space, "",
               last ? "\n" : "  ");
        free(t->cells[i]);
    }
    free(width);
    free(t->right);
    free(t->cells);
    free(t);
}
