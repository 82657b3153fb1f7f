/* checksum.h - checksums of the rows of a store: a byte that changed on disk is found when the rows are read.
 *
 * SQLite has no checksums of its own. The table
 *
 *     checksums(run -> about, numbers)
 *
 * has two sums for each run, mod 2^64: of a hash of its rows in `runs` and `failures`, and of a hash of each of its rows in
 * `metrics` and `snapshots`. A sum does not depend on the order of rows, so that an evaluation is added to it without
 * reading earlier evaluations. A run that only version 0.3 or an older one has written has no sums, and is not checked.
 *
 *     store -> [checksum] -> metrics.sqlite -> [checksum] -> results, store
 */
#ifndef RWS_STORE_CHECKSUM_H
#define RWS_STORE_CHECKSUM_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Functions return SQLite's result codes, or this one, which is among the kinds of SQLITE_CORRUPT: rows are not those that were
 * written. SQLite has no such number of its own. */
#define RWS_CHECKSUM_WRONG (SQLITE_CORRUPT | 0xff << 8)

/* Gives the connection the SQL function that the others need. */
int rws__checksum_prepare(sqlite3 *db);

/* RWS_CHECKSUM_WRONG if rows of the run, or of any run if that is NULL, are not those that were written. */
int rws__checksum_check(sqlite3 *db, const char *run);

/* How many runs have rows that are not those that were written, and the name of the first of them, cut off at `capacity` bytes. */
int rws__checksum_blame(sqlite3 *db, char *first, size_t capacity, int *n);

/* The same of the run's rows in `runs` and `failures` alone, in constant time. */
int rws__checksum_check_head(sqlite3 *db, const char *run);

/* Rows that a reader has checked: those of `metrics` and `snapshots` up to an iteration, and their sum. */
typedef struct {
    int64_t  iteration; /* -1 before the first check */
    uint64_t numbers;
} rws_checksum_seen;

/* Checks the rows of a run that a reader has not checked yet, and moves *seen behind them: a watcher reads each row once.
 * A run without sums does not fit if there are sums of a run that the store does not have: its name has changed.
 * All rows are read if those that are new do not account for the sum. *fits is false if rows are not those that were
 * written; *seen is then as before the first check. */
int rws__checksum_follow(sqlite3 *db, const char *run, rws_checksum_seen *seen, bool *fits);

/* Sets the sums of a run, in the transaction that has changed its rows. Rows of `metrics` and `snapshots` up to the
 * iteration `since` are as they were before; -1: any may have changed. */
int rws__checksum_seal(sqlite3 *db, const char *run, int64_t since);

#endif
