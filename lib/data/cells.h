/* cells.h - the cells of a text in CSV, one after the other.
 *
 * Knows lines, separators and quotation marks, and nothing of what the cells mean.
 *
 *     bytes -> [cells] -> sheet (csv.c), given choices, exported runs
 *
 *   - cells are separated by tabs, else by semicolons, else by commas: the first that the first line has outside of
 *     quotation marks;
 *   - a cell may stand in quotation marks, and may then have separators, ends of lines and doubled quotation marks in
 *   it;
 *   - lines end with LF, CR LF or CR; blank lines and lines that begin with # are ignored, and so is a byte order mark;
 *   - blanks around a cell are ignored.
 */
#ifndef RWS_DATA_CELLS_H
#define RWS_DATA_CELLS_H

#include "rws.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The text that is still to be read. A copy continues by itself, so that a line can be read twice. */
typedef struct {
    const char *at, *end;
    int         line; /* of `at`, from 1 */
    char        separator;
    const char *name; /* of the file, for messages */
    rws_error  *err;
} rws_cells;

/* A cell without its quotation marks and without blanks around it. */
typedef struct {
    const char *text; /* a part of the bytes; in a quoted cell quotation marks are still doubled */
    size_t      length;
    bool        quoted;
    bool        last; /* of its line */
} rws_cell;

/* Cells of `size` bytes, which are borrowed like the name, before the first line. RWS_BAD_INPUT with a message if the
 * first bytes are those of something that is not UTF-8 text. */
rws_status rws__cells_init(rws_cells *c, const uint8_t *bytes, size_t size, const char *name, rws_error *err)
    __attribute__((warn_unused_result));

/* Moves to the next line with cells; false at the end of the text. The first call chooses the separator. */
bool rws__cells_find_line(rws_cells *c);

/* Reads cell number `column` (from 1) of a line, and the separator or the end of the line behind it. RWS_BAD_INPUT if
 * its quotation marks are wrong. */
rws_status rws__cells_read(rws_cells *c, int column, rws_cell *out) __attribute__((warn_unused_result));

/* Writes the text of a cell, with a zero byte at its end and without doubled quotation marks, into `to`, which has
 * space for length + 1 bytes. Returns the place behind the zero byte. */
char *rws__cell_copy(const rws_cell *cell, char *to);

/* Whether the byte ends a line. */
static inline bool rws__cells_is_line_end(char c)
{
    return c == '\n' || c == '\r';
}

#endif
