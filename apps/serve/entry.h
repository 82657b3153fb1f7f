/* entry.h - a run in the catalogue: the memory behind an rws_listed, and how new rows of its store come into it.
 *
 * The catalogue's thread calls these functions, under the catalogue's lock. Without memory a point is left out until the
 * store is read again.
 */
#ifndef RWS_SERVE_ENTRY_H
#define RWS_SERVE_ENTRY_H

#include "store/checksum.h"
#include "serve/catalogue.h"
#include "serve/reading.h"

#include <time.h>

/* A metric of a run; the arrays grow. */
typedef struct {
    char   *name;
    int     n, room;
    double *iterations, *seconds, *values;
} rws_series;

typedef struct {
    rws_listed public;
    char             *store; /* path */
    char             *folder;
    const char       *config; /* as the store has it */
    rws_series       *series; /* sorted by name; result.histories points to the same numbers */
    rws_history      *histories;
    int               n_series;
    rws_shot         *shots;
    int               n_shown;    /* numbers in all snapshots */
    rws_checksum_seen seen;       /* rows that were checked */
    double            changed;    /* when something was new */
    bool              present;    /* found by the refresh that is going on */
    time_t            store_time; /* when the store was written last */
} rws_entry;

void rws_entry_free(rws_entry *e); /* NULL is allowed */

/* Forget all curves; all snapshots. */
void rws_entry_free_series(rws_entry *e);
void rws_entry_free_shots(rws_entry *e);

/* Takes over configuration, counters and failure. */
void rws_entry_take_head(rws_entry *e, const rws_head *h);

/* Adds points at the ends of the curves. An iteration that was measured again replaces the points from there on. */
void rws_entry_add(rws_entry *e, const rws_points *new);

#endif
