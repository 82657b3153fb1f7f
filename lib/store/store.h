/* store.h - the metrics of runs in an SQLite file, which other programs can read and several runs can share.
 *
 *     runs(run -> config, host, version, started,        one row for each run: config.json, which machine wrote it last,
 *          iteration, seconds)                           what program began it and when, and its last evaluation
 *     metrics(run, iteration, name -> seconds, value)    one row for each number; NULL for a NaN
 *     snapshots(run, iteration, name, place              likewise: lists of numbers, each with a label or NULL
 *               -> label, value)
 *     failures(run -> iteration, sentence)               runs that stopped at a NaN or at impossible data
 *     checksums(run -> about, numbers)                   of the rows above, see checksum.h
 *
 * `seconds` is wall time of training without evaluations.
 *
 * Format 1, of version 0.3 and before, had no checksums; the first addition to such a file makes it format 2.
 *
 * Each function is one transaction on a connection of its own: a run holds no lock while it trains, and if the file is
 * moved away, the next evaluation fails or makes a new file instead of writing to the moved one. The journal is
 * SQLite's rollback journal, because its write-ahead log does not work on network folders. results.c reads a store,
 * opening.c opens and checks one.
 *
 *     evaluation -> [store] -> metrics.sqlite -> results -> figures, claims, tables
 */
#ifndef RWS_STORE_STORE_H
#define RWS_STORE_STORE_H

#include "store/state.h"

#include <sqlite3.h>

/* Version of the tables above; a file with a higher number was written by a newer program. */
#define RWS_STORE_FORMAT 2

/* A run in the store. All text is borrowed. */
typedef struct {
    const char *name;    /* unique in the store */
    const char *config;  /* JSON */
    const char *version; /* version of the program */
    const char *started; /* ISO 8601, UTC; used only if the run is not in the store yet */
} rws_store_run;

/* An evaluation. All memory is borrowed. */
typedef struct {
    uint64_t           iteration;
    double             seconds;
    int                n;
    const char *const *names;
    const double      *values;
    int                n_shown; /* numbers of snapshots */
    const rws_shown   *shown;
} rws_store_entry;

/* All functions below: RWS_BAD_INPUT with a message that names the file if another program keeps it locked for too
 * long, if it is read-only, is not a store or was written by a newer program; RWS_NO_MEMORY also for a path of NULL, as
 * rws__file_join returns it without memory. The file is then as it was. */

/* Makes an empty store, unless the file exists. */
rws_status rws__store_make(const char *path, rws_error *err) __attribute__((warn_unused_result));

/* Adds n evaluations, which replace earlier ones of the same iterations; makes the file if it does not exist. The row
 * of the run gets the iteration and seconds of the last of them. */
rws_status rws__store_add(const char *path, const rws_store_run *run, const rws_store_entry *entries, int n,
                          rws_error *err) __attribute__((warn_unused_result));

/* Adds metrics to an evaluation that the store has already; the row of the run stays as it is. */
rws_status rws__store_add_metrics(const char *path, const char *run, const rws_store_entry *entry, rws_error *err)
    __attribute__((warn_unused_result));

/* Records that the run failed at `iteration`, with the message. */
rws_status rws__store_fail(const char *path, const char *run, uint64_t iteration, const char *message, rws_error *err)
    __attribute__((warn_unused_result));

/* Removes the run's evaluations after `iteration` and its failure, because the run is back at that iteration after so
 * many `seconds`. Does nothing if the file does not exist. */
rws_status rws__store_forget(const char *path, const char *run, uint64_t iteration, double seconds, rws_error *err)
    __attribute__((warn_unused_result));

/* Removes all rows of the run. */
rws_status rws__store_drop(const char *path, const char *run, rws_error *err) __attribute__((warn_unused_result));

/* The progress of a run. */
typedef struct {
    bool     known;    /* the run is in the store */
    bool     failed;   /* the run has a row in failures */
    bool     measured; /* it has metrics called final_… of its last evaluation */
    uint64_t iteration;
    double   seconds;
} rws_store_progress;

/* The progress of a run; if the file does not exist, the run is not known. */
rws_status rws__store_progress(const char *path, const char *run, rws_store_progress *out, rws_error *err)
    __attribute__((warn_unused_result));

/* The run of that name, or the only run in the file, whatever its name: *name and *config (the text of its
 * configuration), the caller's to free. Both are NULL if there is no such run or no file. */
rws_status rws__store_identify(const char *path, const char *run, char **name, char **config, rws_error *err)
    __attribute__((warn_unused_result));

/* Replaces the text of the run's configuration. Does nothing if the file does not exist. */
rws_status rws__store_configure(const char *path, const char *run, const char *config, rws_error *err)
    __attribute__((warn_unused_result));

/* For tests: sets how long to wait for a locked file, in place of 10 s. Not while other threads use a store. */
void rws__store_patience(int milliseconds);

/* Whether the file system of a file or folder has locks. Where it has none, only the process that trains a run may write
 * its store, and runs must not share one. */
bool rws__store_has_locks(const char *path);

/* ---- For readers: results/reading.c, and the catalogue of serve. */

/* A table of all runs: run, config, host, version, started, iteration, seconds, sentence, early. `early` is 1 for a run that
 * failed before its first evaluation: it has no row in `runs`, and here only its name and its sentence; its configuration is in
 * its folder. */
#define RWS_STORE_ALL_RUNS                                                                                     \
    "(SELECT runs.run AS run, config, host, version, started, runs.iteration AS iteration, seconds, sentence," \
    " 0 AS early"                                                                                              \
    " FROM runs LEFT JOIN failures ON runs.run = failures.run"                                                 \
    " UNION ALL SELECT run, NULL, NULL, NULL, NULL, 0, 0, sentence, 1 FROM failures"                           \
    " WHERE NOT EXISTS(SELECT 1 FROM runs WHERE runs.run = failures.run))"

/* The folder of a run: the store's own, or the one beside the store that has the run's name. The caller frees it. NULL if
 * neither has a config.json, or without memory. */
char *rws__store_folder(const char *path, const char *run);

/* The text of config.json in the folder of a run, the caller's to free. *text is NULL if there is none. RWS_NO_MEMORY. */
rws_status rws__store_folder_config(const char *folder, char **text, rws_error *err)
    __attribute__((warn_unused_result));

/* An SQLite result code of a store as a message. `what` is "write" or "read"; db may be NULL. */
rws_status rws__store_explain(sqlite3 *db, const char *path, const char *what, int code, rws_error *err);

/* The message about n runs whose rows are not those that were written, and of which `run` is the first. */
rws_status rws__store_blame(const char *path, const char *run, int n, rws_error *err);

/* ---- A store is opened and checked as a file that anyone may have made.
 *
 * Readers open it for reading only and leave nothing behind. Where a writer was killed, its journal says how the store was
 * before; SQLite needs to write for that, so that readers let it do so in a copy in a private folder in TMPDIR, which is gone
 * when rws__store_open returns. The next writer does it in the store itself. Both refuse, before SQLite looks at it, a journal
 * that names another file (SQLite would delete that file) or is no file of its own, and a write-ahead log. A connection runs no
 * view or trigger, has limits of what a statement and a cell may be, and ends after 10 s of processor time and 0.2 s for
 * each megabyte; one that took longer is not opened again until it changes. A text has at most 1 MB, and the texts of a run's
 * rows together at most the bytes of the store: rows that share pages would fill the memory. A store that is a link is read, and
 * not written to. */

/* Codes of the functions below, among the kinds of SQLITE_NOTADB; SQLite has no such numbers of its own. */
enum {
    RWS_STORE_TMPDIR = SQLITE_NOTADB | 0xfb << 8,      /* a private copy cannot be made in TMPDIR */
    RWS_STORE_LINK = SQLITE_NOTADB | 0xfc << 8,        /* a link, which is not written through */
    RWS_STORE_JOURNAL = SQLITE_NOTADB | 0xfd << 8,     /* the journal names another file, or is a link */
    RWS_STORE_WRITE_AHEAD = SQLITE_NOTADB | 0xfe << 8, /* there is a write-ahead log */
    RWS_STORE_FOREIGN = SQLITE_NOTADB | 0xff << 8,     /* the schema is not ours */
};

/* Opens a store that waits for locks; one that does not exist is made if it is opened for writing. *db may be set on failure
 * too. Returns SQLite's result code or one of the above. */
int rws__store_open(const char *path, bool writes, sqlite3 **db);

/* SQLITE_OK if the schema is exactly that of a store of this version or an older one, or there is none yet; SQLITE_SCHEMA if the
 * file was written by a newer program, else RWS_STORE_FOREIGN. *format is 0 for a file without tables, and of version 0.1. */
int rws__store_check(sqlite3 *db, int *format);

/* The first table, index, view or trigger that rws does not make, as its kind and its name. False if there is none: the schema lacks
 * something, or there is another in its place. */
bool rws__store_foreign(sqlite3 *db, char kind[static 16], char name[static 64]);

/* Makes the tables that a store of an older format or without tables lacks. */
int rws__store_complete(sqlite3 *db);

/* Bytes of the file without its holes. No store has more rows, nor more bytes in the texts of its rows, unless rows share
 * pages, which is damage: whoever reads rows counts both. 0 if the size cannot be read. */
int64_t rws__store_size(sqlite3 *db);

/* Notes that the store, as it is now, takes more time than it may: rws__store_open returns SQLITE_INTERRUPT for it from now on,
 * until it changes. rws__store_explain does so. */
void rws__store_remember_slow(const char *path);

/* The folder for private copies. */
const char *rws__store_tmpdir(void);

/* How long to wait for a locked file, in milliseconds. */
int rws__store_patience_now(void);

#endif
