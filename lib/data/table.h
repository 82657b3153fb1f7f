/* table.h - rows of a file, or of two files, for training and for tests, and the fields that are made of their columns.
 *
 * The structure behind the public rws_table functions. It does not read files (sheet.h does) and knows nothing of the
 * setup that declares the fields.
 *
 *     sheets -> [table] -> fields of a batch
 *
 * Without a file of test rows, rows of the only file are held out:
 *
 *     row              0 1 2 3 4 5 6 7 8 9 | 10 …
 *     a share of 0.3         t     t     t |         evenly spread: row r, if floor((r + 1) share) > floor(r share)
 *     the same, last               t  t  t           the last floor(n share) rows
 *
 * A datum is a row, or all rows with the same id. With ids, the data take the place of the rows above, so that an id is
 * held out as a whole. Data come in the order of their first rows, and the rows of a datum in the order of the file:
 *
 *     id         a a b a c b           datum      a       b     c
 *     row        0 1 2 3 4 5           rows     0 1 3    2 5    4
 *                                      start    0        3     5     6
 */
#ifndef RWS_DATA_TABLE_H
#define RWS_DATA_TABLE_H

#include "data/sheet.h"

/* A field of the model that is made of columns. */
typedef struct {
    int  at;      /* place among the fields of the model */
    int  dim;     /* number of columns; 0: the field is the number of rows of a datum */
    int *columns; /* from 0; NULL: the field is the number of the datum in its file, or of its rows */
    int  most;    /* most items of a series, whose items are the rows of a datum; 0: the field is no series */
} rws_table_field;

struct rws_table {
    rws_sheet       sheet[2]; /* by rws_split; that for tests is empty if test rows come from the other */
    char           *path[2];  /* for messages; NULL if there is no such sheet */
    int            *start[2]; /* per sheet with ids, for each datum: its first place in `rows`, and the end of all */
    int            *rows[2];  /* per sheet with ids: its rows, by datum; NULL: each row is a datum */
    int             n[2];     /* data by rws_split */
    int            *list[2];  /* their numbers within the sheet; NULL: all, in order */
    rws_rows        order;
    uint64_t        seed; /* of the shuffles */
    rws_table_field fields[RWS_FIELDS];
    int             n_fields;
};

/* Makes a table of sheets, and takes them over, also on failure: *out is then NULL. sheet[RWS_TEST] is empty, and
 * path[RWS_TEST] NULL, if rows are to be held out. RWS_BAD_INPUT if the columns of the two differ, an option is out of
 * range or an id has more rows than a float can count, or RWS_NO_MEMORY. */
rws_status rws__table_new(rws_sheet sheet[2], const char *const path[2], const rws_table_options *options,
                          uint64_t seed, rws_table **out, rws_error *err) __attribute__((warn_unused_result));
void       rws__table_free(rws_table *t); /* NULL is allowed */

/* Makes a field of the model, which has place `at`, of a list of columns as rws_setup_table_field takes it.
 * RWS_BAD_INPUT with a message if there is no such column or one is not all finite numbers; those of a label may be
 * missing. Also if "#" would number more data than a float can tell apart. */
rws_status rws__table_add_field(rws_table *t, int at, const char *columns, bool label, int *dim, rws_error *err)
    __attribute__((warn_unused_result));

/* Makes a series of the model, likewise, whose items are the rows of a datum. *most is the most items that it may have;
 * 0 becomes the length of the longest. RWS_BAD_INPUT also if a datum has more, or if the table has no ids. */
rws_status rws__table_add_series(rws_table *t, int at, const char *columns, int *most, int *dim, rws_error *err)
    __attribute__((warn_unused_result));

/* Makes a field of one number: how many rows a datum has. */
void rws__table_add_length(rws_table *t, int at);

/* The number, in its file, of the datum that rws_table_fill puts in place i of data from `first` on, if it is given this stream;
 * and *path, the name of the file. -1: the table is empty. */
int rws__table_number(const rws_table *t, rws_split split, uint64_t first, int i, rws_random *random,
                      const char **path);

/* The row (0 … n - 1) that comes in this place of an epoch; every row comes once. */
uint32_t rws__table_shuffle(uint64_t seed, uint64_t epoch, uint32_t n, uint32_t place);

#endif
