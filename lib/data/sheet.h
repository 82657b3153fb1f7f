/* sheet.h - the numbers of one file: rows x columns of floats, read from text (CSV) or from an array.
 *
 * A reader accepts columns that are not numbers, because a file often has columns that no field is made of. The first
 * cell of a column that is not a finite number is the column's flaw, which the caller may refuse. For labels, where
 * cells may be missing, the first cell that is neither a number nor missing (empty or NaN) is remembered too. A file
 * whose shape is wrong (lines of different length, an array of three dimensions) is refused.
 *
 *     file -> [csv, npy, safetensors -> sheet] -> table -> fields of a batch
 *
 * Text (csv.c): cells as in cells.h; a number is decimal, with a point: -1.5e-3.
 * Arrays (npy.c): NPY files of version 1 to 3, of one or two dimensions, in C order, little-endian.
 */
#ifndef RWS_DATA_SHEET_H
#define RWS_DATA_SHEET_H

#include "rws.h"

/* The flaw of a cell. */
typedef enum {
    RWS_CELL_FINE,
    RWS_CELL_EMPTY,
    RWS_CELL_NAN,
    RWS_CELL_TEXT,
    RWS_CELL_INFINITE,
    RWS_CELL_TOO_LARGE
} rws_cell_flaw;

enum { RWS_CELL_SHOWN = 31 }; /* bytes of a cell that a message shows */

/* A cell of a column that is not a finite number. */
typedef struct {
    rws_cell_flaw what; /* RWS_CELL_FINE: there is none */
    int           line; /* of a text, from 1; of an array, the row, from 0 */
    char          text[RWS_CELL_SHOWN + 1];
} rws_flaw;

typedef struct {
    rws_flaw first; /* of the column */
    rws_flaw wrong; /* the first that is neither empty nor NaN, which a label may be */
} rws_column_flaws;

/* A zeroed one is valid and empty. */
typedef struct {
    int               n_rows, n_columns;
    float            *values;  /* n_rows x n_columns; NaN where a cell is not a finite number */
    char            **names;   /* of the columns, in one block; NULL: the file has none */
    rws_column_flaws *flaws;   /* of the columns */
    bool              array;   /* the file has elements instead of lines */
    int               n_ids;   /* different ids; 0: no column of ids was asked for, and `ids` and `lines` are NULL */
    int              *ids;     /* per row: the number of its id, in the order in which ids first come */
    int              *lines;   /* per row: its line in the text, from 1; in an array its row, from 0 */
    int              *numbers; /* per row: its number in the file, from 0, or with ids the number of its id; rows that
                                  were left out have numbers too. NULL: no row may be left out */
} rws_sheet;

void rws__sheet_release(rws_sheet *s);

/* Reads `size` bytes of text; `name` stands for the file in messages. `id` is the column of ids, by name or number;
 * NULL: there is none. *out is empty on failure: RWS_BAD_INPUT with a message that names file and line, or
 * RWS_NO_MEMORY. */
rws_status rws__csv_parse(const uint8_t *bytes, size_t size, const char *name, rws_header header, bool skip_missing,
                          const char *id, rws_sheet *out, rws_error *err) __attribute__((warn_unused_result));

/* Reads the bytes of an NPY file, likewise. */
rws_status rws__npy_parse(const uint8_t *bytes, size_t size, const char *name, const char *id, rws_sheet *out,
                          rws_error *err) __attribute__((warn_unused_result));

/* Reads a file of any of these kinds, with the header, ids, tensor and missing cells of the options. */
rws_status rws__sheet_read(const char *path, const rws_table_options *options, rws_sheet *out, rws_error *err)
    __attribute__((warn_unused_result));

/* Whether the bytes begin like an NPY file. */
bool rws__npy_is(const uint8_t *bytes, size_t size);

/* The elements of an array: floats (f), signed (i) or unsigned (u) integers of `size` bytes each, little-endian. */
typedef struct {
    char   kind;
    size_t size;
} rws_element;

/* Whether there is such an element: f4, f8, i1 … i8, u1 … u8. */
bool rws__element_is_known(rws_element e);

/* Makes a sheet of n_rows x n_columns elements, which need not be aligned. Fails like rws__csv_parse. */
rws_status rws__sheet_from_array(const void *elements, rws_element e, size_t n_rows, size_t n_columns, const char *name,
                                 const char *id, rws_sheet *out, rws_error *err) __attribute__((warn_unused_result));

/* Remembers a cell that is not a finite number, unless the column has such a flaw already. The bytes stand for the cell
 * in messages. */
void rws__sheet_note(rws_sheet *s, int column, rws_cell_flaw what, int line, const char *text, size_t length);

/* RWS_BAD_INPUT with a message about the flaw of a column (from 0), if the column has one. A label may have cells that
 * are empty or NaN. */
rws_status rws__sheet_check_column(const rws_sheet *s, int column, const char *name, rws_error *err)
    __attribute__((warn_unused_result));
rws_status rws__sheet_check_label(const rws_sheet *s, int column, const char *name, rws_error *err)
    __attribute__((warn_unused_result));

/* RWS_BAD_INPUT with a message that says which cell it is about and what is wrong with it. `line` is as in `lines`,
 * `column` from 0. */
rws_status rws__sheet_refuse_cell(const rws_sheet *s, int line, int column, const char *name, const char *wrong,
                                  rws_error *err) __attribute__((warn_unused_result));

typedef enum { RWS_COLUMN_FOUND, RWS_COLUMN_UNKNOWN, RWS_COLUMN_AMBIGUOUS } rws_column_finding;

/* A column by its name of `length` bytes, or else by its number from 1. *column counts from 0. */
rws_column_finding rws__sheet_find_column(const rws_sheet *s, const char *text, size_t length, int *column);

/* RWS_BAD_INPUT with a message that says why this text is no column. */
rws_status rws__sheet_refuse_column(const rws_sheet *s, const char *name, rws_column_finding what, const char *text,
                                    size_t length, rws_error *err) __attribute__((warn_unused_result));

#endif
