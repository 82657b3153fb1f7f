/* quantities.h - the numbers of traces: what is chosen at each visit of a site, how often sites are visited, what is reported.
 *
 *     choices, reports of many traces -> [quantities] -> sorted by quantity: ranks (simulate.c), convergence (mixing.c)
 */
#ifndef RWS_ASK_QUANTITIES_H
#define RWS_ASK_QUANTITIES_H

#include "rws_train.h"

typedef enum { RWS_QUANTITY_REPORT, RWS_QUANTITY_SITE, RWS_QUANTITY_VISITS } rws_quantity_kind;

typedef struct {
    const char       *name; /* of the site or report */
    rws_quantity_kind kind;
    int               visit, part, dim;
    double            value;
    int               trace; /* the number that the caller has given to the trace */
} rws_quantity;

/* A zeroed list is valid and empty. Name pointers are those of the traces. */
typedef struct {
    rws_quantity *list;
    int           n, capacity;
    bool          starved; /* memory was short */
} rws_quantities;

/* Adds the numbers of a trace: components 0 … 15 at visits 0 … 15 of each site and report, and how often each site is visited. */
void rws__quantities_add(rws_quantities *o, int trace, const rws_choice *choices, int n_choices,
                         const rws_reported *reports, int n_reports);
void rws__quantities_release(rws_quantities *o);

/* Sorts by quantity, then by value, then by trace. */
void rws__quantities_sort(rws_quantities *o);

/* Behind the last number of the quantity that begins with number i of a sorted list. */
int rws__quantities_end(const rws_quantities *o, int i);

/* "SITE", "SITE:1", "SITE[0]", "SITE.visits", "report.NAME". */
enum { RWS_QUANTITY_NAME = 320 };
void rws__quantity_name(const rws_quantity *x, char out[static RWS_QUANTITY_NAME]);

#endif
