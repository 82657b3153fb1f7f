/* store.h - the measures of runs in an SQLite file, for other programs to read and for several runs to share.
 *
 *     metrics(run, iteration, name -> seconds, value)    one row for each number; NULL for a NaN
 *     runs(run -> config, host, version, started,        one row for each run: config.json, where and when it began,
 *          iteration, seconds)                           and how far it has got
 *
 * Each function is one transaction on a connection of its own: a run holds no lock while it trains, and a file that was
 * moved away is missed at the next evaluation instead of being written to where nobody looks. The journal is SQLite's
 * rollback journal, because its write-ahead log does not work on network folders.
 *
 *     evaluation -> [store] -> metrics.sqlite -> plot
 */
#ifndef RWS_RUN_STORE_H
#define RWS_RUN_STORE_H

#include "rws.h"

/* What the store says of a run. All text is borrowed. */
typedef struct {
    const char *name;    /* unique in the store */
    const char *config;  /* JSON */
    const char *version; /* of the program */
    const char *started; /* ISO 8601, UTC; of interest only for a run that the store does not know yet */
} rws_store_run;

/* Adds an evaluation of n numbers, over one of the same iteration if there is one; makes the file if need be.
 * RWS_BAD_INPUT with a sentence that names the file if it is locked by another program for too long, is read-only or is
 * no such store; it is then as it was. */
rws_status rws_store_add(const char *path, const rws_store_run *run, uint64_t iteration, double seconds, int n,
                         const char *const *names, const double *values, rws_error *err)
    __attribute__((warn_unused_result));

/* Forgets what the run measured after `iteration`, where it is now, after as many `seconds`. Without a file there is
 * nothing to forget. Fails like rws_store_add. */
rws_status rws_store_forget(const char *path, const char *run, uint64_t iteration, double seconds, rws_error *err)
    __attribute__((warn_unused_result));

/* For tests: how long to wait for a file that is locked, instead of 10 s. Not while other threads use a store. */
void rws_store_patience(int milliseconds);

#endif
