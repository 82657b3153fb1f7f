/* listing.h - rows of text in aligned columns, no wider than the terminal.
 *
 *     cells -> [listing] -> stdout
 *
 * Columns that do not fit follow in another block of lines, behind the first column once more; on a terminal the headings
 * come again with every screen. In a file, and with `wide`, a row is a line.
 */
#ifndef RWS_RWS_LISTING_H
#define RWS_RWS_LISTING_H

#include <stdbool.h>
#include <stdio.h>

#define RWS_WIDE_HELP "Do not fit tables into the columns of the terminal"

#define RWS_WIDE_HELP "Do not fit tables into the columns of the terminal"

typedef struct rws_listing rws_listing;

typedef enum {
    RWS_CELL_LEFT,
    RWS_CELL_RIGHT, /* numbers */
    RWS_CELL_TEXT   /* the last column: sentences, which continue below where the line ends */
} rws_cell;

rws_listing *rws__listing_new(void);

/* A column, with its heading. All columns come before all cells; headings that are all empty are not printed. */
void rws__listing_column(rws_listing *t, const char *heading, rws_cell cell);

/* The next cell of the present row, which ends after its last column. */
void rws__listing_cell(rws_listing *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A number with a few digits; "-" for a NaN. */
void rws__listing_number(rws_listing *t, double value);

/* Prints the words of a text in lines of `room` columns, all but the first behind `indent` blanks; without room, in one. */
void rws__listing_words(FILE *out, const char *text, int indent, int room);

/* Prints it behind so many blanks, and frees it. */
void rws__listing_print(rws_listing *t, int indent, bool wide);

#endif
