/* catalogue.h - all runs in the given folders, as their stores have them now.
 *
 * One thread calls rws__catalogue_refresh about once a second. It looks at the time of every store and reads, from a store
 * that has changed, only the evaluations that are new, one short transaction per run: a run that is training never waits
 * for a watcher, however many there are. Any number of threads look at the runs between rws__catalogue_read and
 * rws__catalogue_done.
 *
 *     folders -> stores -> [catalogue] -> routes, changes
 *
 * A run is named by its id, a hash of its store's path and its name, and never by a path: no request can name a file.
 * Links that lead out of the given folders are not followed.
 */
#ifndef RWS_SERVE_CATALOGUE_H
#define RWS_SERVE_CATALOGUE_H

#include "rws_results.h"

#include <stddef.h>

enum { RWS_RUN_ID = 16 }; /* hexadecimal digits */

/* A run in the catalogue. Everything belongs to the catalogue and may change after rws__catalogue_done. */
typedef struct {
    char        id[RWS_RUN_ID + 1];
    rws_result  result;
    const char *folder;  /* of the run; NULL if it is not in the given folders */
    const char *state;   /* "training", "stopped" (unfinished, and no process trains it), "finished" or "failed" */
    bool        alone;   /* the store has no other run */
    bool        damaged; /* rows in the store are not those that were written */
    uint64_t    serial;  /* of the refresh that changed it last */
} rws_catalogue_run;

static inline const rws_catalogue_run *rws__catalogue_run_of(const rws_result *result)
{
    return (const rws_catalogue_run *)((const char *)result - offsetof(rws_catalogue_run, result));
}

/* A store or folder that cannot be read. */
typedef struct {
    char *path, *message;
} rws_problem;

typedef struct rws_catalogue rws_catalogue;

/* Paths as for rws_results_read, without exported files; folders are searched to a depth of three. RWS_BAD_INPUT if a path does
 * not exist or is a file that is no store. Reads nothing yet. */
rws_status rws__catalogue_new(const char *const *paths, int n, rws_catalogue **out, rws_error *err)
    __attribute__((warn_unused_result));
void rws__catalogue_free(rws_catalogue *c); /* NULL is allowed */

/* Looks at the folders and stores again; true if anything has changed, and then the serial number has grown. */
bool rws__catalogue_refresh(rws_catalogue *c);

/* A thread that reads must not begin to read again before it is done. */
void rws__catalogue_read(rws_catalogue *c);
void rws__catalogue_done(rws_catalogue *c);

/* ---- Between the two. */

uint64_t                 rws__catalogue_serial(const rws_catalogue *c);
int                      rws__catalogue_n(const rws_catalogue *c);
const rws_catalogue_run *rws__catalogue_at(const rws_catalogue *c, int i); /* sorted by name */
const rws_catalogue_run *rws__catalogue_find(const rws_catalogue *c, const char *id);
const rws_problem       *rws__catalogue_problem(const rws_catalogue *c, int i); /* NULL beyond the end */

/* The ids of runs that the last refresh no longer found. */
const char *rws__catalogue_gone(const rws_catalogue *c, int i); /* NULL beyond the end */

/* Whether the real path of `path` lies in one of the given folders. */
bool rws__catalogue_holds(const rws_catalogue *c, const char *path);

#endif
