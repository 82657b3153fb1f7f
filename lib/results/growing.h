/* growing.h - the memory behind a run that was read from a store, and how rows of the store come into it: all at once for
 * rws_results_read, and as they are written for the catalogue of serve.
 *
 *     store -> reading -> [growing] -> rws_result
 */
#ifndef RWS_RESULTS_GROWING_H
#define RWS_RESULTS_GROWING_H

#include "results/reading.h"

/* A metric of a run; the arrays grow. */
typedef struct {
    char   *name;
    int     n, capacity;
    double *iterations, *seconds, *values;
} rws_series;

typedef struct {
    rws_result  *result; /* its texts, keys, histories and snapshots belong to this; its name and store do not */
    const char  *config; /* as the store has it */
    rws_series  *series; /* sorted by name; the histories point to the same numbers */
    rws_history *histories;
    int          n_series;
    rws_shots    shots;
} rws_growing;

void rws__growing_release(rws_growing *g);

/* Forgets all curves. */
void rws__growing_free_series(rws_growing *g);

/* Takes over configuration, counters and failure. False without memory. */
bool rws__growing_take_head(rws_growing *g, const rws_head *h);

/* Adds points at the ends of the curves. An iteration that was measured again replaces the points from there on. False
 * without memory: the rest is left out. */
bool rws__growing_add(rws_growing *g, const rws_points *new);

/* Takes over the snapshots in the place of those that were there. */
void rws__growing_take_shots(rws_growing *g, rws_shots *shots);

#endif
