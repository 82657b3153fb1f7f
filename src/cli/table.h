/* table.h - rows of text in aligned columns.
 *
 *     cells -> [table] -> stdout
 */
#ifndef RWS_CLI_TABLE_H
#define RWS_CLI_TABLE_H

typedef struct rws_table rws_table;

rws_table *rws_table_new(void);

/* A column, with its heading; `right` for numbers. All columns come before all cells. */
void rws_table_column(rws_table *t, const char *heading, int right);

/* The next cell of the present row, which ends after its last column. */
void rws_table_cell(rws_table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A number with a few digits; "-" for a NaN. */
void rws_table_number(rws_table *t, double value);

/* Prints it and frees it. */
void rws_table_print(rws_table *t);

#endif
