/* store.h - what runs measure, in an SQLite file, for other programs to read and for several runs to share.
 *
 *     runs(run -> config, host, version, started,        one row for each run: config.json, where and when it began,
 *          iteration, seconds)                           and how far it has got
 *     metrics(run, iteration, name -> seconds, value)    one row for each number; NULL for a NaN
 *     snapshots(run, iteration, name, place              likewise: lists of numbers, each with a label or NULL
 *               -> label, value)
 *     failures(run -> iteration, sentence)               runs whose numbers broke
 *
 * `seconds` is wall time spent in training, evaluations left out.
 *
 * Each function is one transaction on a connection of its own: a run holds no lock while it trains, and a file that was
 * moved away is missed at the next evaluation instead of being written to where nobody looks. The journal is SQLite's
 * rollback journal, because its write-ahead log does not work on network folders. results.h reads what this writes.
 *
 *     evaluation -> [store] -> metrics.sqlite -> results -> figures, claims, tables
 */
#ifndef RWS_RUN_STORE_H
#define RWS_RUN_STORE_H

#include "run/run.h"

#include <sqlite3.h>

/* Of the tables above; a file with a higher one was written by a newer program. */
#define RWS_STORE_FORMAT 1

/* What the store says of a run. All text is borrowed. */
typedef struct {
    const char *name;    /* unique in the store */
    const char *config;  /* JSON */
    const char *version; /* of the program */
    const char *started; /* ISO 8601, UTC; of interest only for a run that the store does not know yet */
} rws_store_run;

/* An evaluation. All of it is borrowed. */
typedef struct {
    uint64_t           iteration;
    double             seconds;
    int                n;
    const char *const *names;
    const double      *values;
    int                n_shown; /* of snapshots */
    const rws_shown   *shown;
} rws_store_entry;

/* A path of NULL, as rws_file_join returns it without memory, is RWS_NO_MEMORY in every function.
 *
 * All functions below: RWS_BAD_INPUT with a sentence that names the file if it is locked by another program for too
 * long, is read-only, is no such store or was written by a newer program; it is then as it was. */

/* Makes an empty store, unless there is one. */
rws_status rws_store_make(const char *path, rws_error *err) __attribute__((warn_unused_result));

/* Adds n evaluations, over those of the same iterations if there are any; makes the file if need be. The last of them
 * is how far the run has got. */
rws_status rws_store_add(const char *path, const rws_store_run *run, const rws_store_entry *entries, int n,
                         rws_error *err) __attribute__((warn_unused_result));

/* Adds metrics to an evaluation that the store has already, without a word on how far the run has got. */
rws_status rws_store_add_metrics(const char *path, const char *run, const rws_store_entry *entry, rws_error *err)
    __attribute__((warn_unused_result));

/* Says that the run's numbers broke, and how. */
rws_status rws_store_fail(const char *path, const char *run, uint64_t iteration, const char *sentence, rws_error *err)
    __attribute__((warn_unused_result));

/* Forgets what the run measured after `iteration`, where it is now, after as many `seconds`; and that it failed.
 * Without a file there is nothing to forget. */
rws_status rws_store_forget(const char *path, const char *run, uint64_t iteration, double seconds, rws_error *err)
    __attribute__((warn_unused_result));

/* Forgets everything about the run. */
rws_status rws_store_drop(const char *path, const char *run, rws_error *err) __attribute__((warn_unused_result));

/* How far a run has got. */
typedef struct {
    bool     known;    /* the store has it */
    bool     failed;   /* its numbers broke */
    bool     measured; /* it has metrics called final_… of its last evaluation */
    uint64_t iteration;
    double   seconds;
} rws_store_progress;

/* Without a file no run is known. */
rws_status rws_store_ask(const char *path, const char *run, rws_store_progress *out, rws_error *err)
    __attribute__((warn_unused_result));

/* The name of the only run in the file, which the caller frees; NULL if there are none or several, or it cannot be told. */
char *rws_store_only_run(const char *path) __attribute__((warn_unused_result));

/* For tests: how long to wait for a file that is locked, instead of 10 s. Not while other threads use a store. */
void rws_store_patience(int milliseconds);

/* ---- For results.c. */

/* An SQLite result code of a store as a sentence. `what` is "write" or "read"; db may be NULL. */
rws_status rws_store_explain(sqlite3 *db, const char *path, const char *what, int code, rws_error *err);

/* SQLITE_OK, or SQLITE_SCHEMA if the file was written by a newer program. *format is 0 for a file without tables. */
int rws_store_check_format(sqlite3 *db, int *format);

int rws_store_wait(sqlite3 *db); /* as long as patience has it; returns SQLite's code */

#endif
