/* reading.h - what a store says of its runs, as copies.
 *
 * The tables are those of store/store.h.
 *
 * Functions return an SQLite result code. A list that was read in part is still the caller's to free.
 *
 *     store (SQLite) -> [reading] -> growing
 */
#ifndef RWS_RESULTS_READING_H
#define RWS_RESULTS_READING_H

#include "base/list.h"
#include "store/store.h"
#include "rws_results.h"

/* A row of RWS_STORE_ALL_RUNS; texts are copies. */
typedef struct {
    char    *name, *config, *host, *version, *started, *failure;
    uint64_t iteration;
    double   seconds;
    bool     early; /* the run failed before its first evaluation: its configuration is not in the store */
} rws_head;

typedef struct {
    rws_head *list;
    int       n, capacity;
} rws_heads;

/* A row of the table metrics; a run may have a million of them. */
typedef struct {
    int    name; /* index into rws_points.names */
    double iteration, seconds, value;
} rws_point;

typedef struct {
    rws_point *list;
    int        n, capacity;
    char     **names;
    int        n_names, capacity_names;
} rws_points;

/* Snapshots; every text and array is a copy of its own. */
typedef struct {
    rws_shot *list;
    int       n, capacity;
    int       capacity_now; /* for numbers of the last snapshot */
} rws_shots;

/* The runs of the store, or the one that is named. */
int  rws__heads_read(sqlite3 *db, const char *only, rws_heads *out);
void rws__head_release(rws_head *h);

/* The metrics of a run from an iteration on, in the order of iterations and names. */
int  rws__points_read(sqlite3 *db, const char *run, double from, rws_points *out);
void rws__points_release(rws_points *p);

/* How many numbers all snapshots of a run have; and the snapshots. */
int  rws__shots_count(sqlite3 *db, const char *run, int *n);
int  rws__shots_read(sqlite3 *db, const char *run, rws_shots *out);
void rws__shots_release(rws_shots *s);

#endif
