/* numbers.h - the numbers of traces: what is chosen at each visit of a site, how often sites are visited, what is reported.
 *
 *     choices, reports of many traces -> [numbers] -> sorted by quantity: ranks (simulate.c), convergence (mixing.c)
 */
#ifndef RWS_ASK_NUMBERS_H
#define RWS_ASK_NUMBERS_H

#include "rws_train.h"

typedef enum { RWS_NUMBER_REPORT, RWS_NUMBER_SITE, RWS_NUMBER_VISITS } rws_number_kind;

typedef struct {
    const char     *name; /* of the site or report */
    rws_number_kind kind;
    int             visit, part, dim;
    double          value;
    int             trace; /* the number that the caller has given to the trace */
} rws_number;

/* A zeroed list is valid and empty. Name pointers are those of the traces. */
typedef struct {
    rws_number *list;
    int         n, capacity;
    bool        starved; /* memory was short */
} rws_numbers;

/* Adds the numbers of a trace: components 0 … 15 at visits 0 … 15 of each site and report, and how often each site is visited. */
void rws__numbers_add(rws_numbers *o, int trace, const rws_choice *choices, int n_choices, const rws_reported *reports,
                      int n_reports);
void rws__numbers_release(rws_numbers *o);

/* Sorts by quantity, then by value, then by trace. */
void rws__numbers_sort(rws_numbers *o);

/* Behind the last number of the quantity that begins with number i of a sorted list. */
int rws__numbers_end(const rws_numbers *o, int i);

/* "SITE", "SITE:1", "SITE[0]", "SITE.visits", "report.NAME". */
enum { RWS_NUMBER_NAME = 320 };
void rws__number_name(const rws_number *x, char out[static RWS_NUMBER_NAME]);

#endif
