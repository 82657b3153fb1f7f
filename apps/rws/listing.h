/* listing.h - rows of text in aligned columns.
 *
 *     cells -> [listing] -> stdout
 */
#ifndef RWS_RWS_LISTING_H
#define RWS_RWS_LISTING_H

typedef struct rws_listing rws_listing;

rws_listing *rws__listing_new(void);

/* A column, with its heading; `right` for numbers. All columns come before all cells. */
void rws__listing_column(rws_listing *t, const char *heading, int right);

/* The next cell of the present row, which ends after its last column. */
void rws__listing_cell(rws_listing *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A number with a few digits; "-" for a NaN. */
void rws__listing_number(rws_listing *t, double value);

/* Prints it and frees it. */
void rws__listing_print(rws_listing *t);

#endif
