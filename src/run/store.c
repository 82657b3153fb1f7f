#include "run/store.h"

#include "base/error.h"
#include "base/quote.h"

#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS metrics(run TEXT, iteration INTEGER, seconds REAL, name TEXT, value REAL,"
    "    PRIMARY KEY(run, iteration, name)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS runs(run TEXT PRIMARY KEY, config TEXT, host TEXT, version TEXT, started TEXT,"
    "    iteration INTEGER, seconds REAL);";

static int patience = 10000; /* milliseconds */

void rws_store_patience(int milliseconds)
{
    patience = milliseconds;
}

/* Below, an int is an SQLite result code, and each step is taken only if all before it went well. */

/* Opens the store and begins to write. IMMEDIATE: who waits for a lock does so here, before having read anything that
 * may be outdated when the wait is over. *db may be set on failure too. */
static int begin(const char *path, sqlite3 **db)
{
    int code = sqlite3_open_v2(path, db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
    if (!code) code = sqlite3_busy_timeout(*db, patience);
    if (!code) code = sqlite3_exec(*db, "PRAGMA synchronous = NORMAL; BEGIN IMMEDIATE;", NULL, NULL, NULL);
    if (!code) code = sqlite3_exec(*db, schema, NULL, NULL, NULL);
    return code;
}

/* Commits if code is SQLITE_OK; otherwise closing the connection rolls back, and the code becomes a sentence. */
static rws_status end(sqlite3 *db, const char *path, int code, rws_error *err)
{
    const rws_quoted file = rws_quote(path);
    rws_status       status = RWS_OK;
    if (!code) code = sqlite3_exec(db, "COMMIT;", NULL, NULL, NULL);
    switch (code & 0xff) {
    case SQLITE_OK: break;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        status = rws_fail(err, RWS_BAD_INPUT, "Cannot write \"%s\": another program has kept it locked for %g seconds.",
                          file.text, patience / 1000.0);
        break;
    case SQLITE_READONLY:
        status = rws_fail(err, RWS_BAD_INPUT, "Cannot write \"%s\": the file or its folder is read-only.", file.text);
        break;
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
        status = rws_fail(err, RWS_BAD_INPUT, "\"%s\" is not an SQLite file, or is damaged.", file.text);
        break;
    default:
        status = rws_fail(err, RWS_BAD_INPUT, "Cannot write \"%s\": %s.", file.text,
                          db ? rws_quote(sqlite3_errmsg(db)).text : sqlite3_errstr(code));
    }
    sqlite3_close(db);
    return status;
}

/* A statement without results is done with one step. */
static int step(sqlite3_stmt *s)
{
    sqlite3_step(s);
    return sqlite3_reset(s);
}

/* NULL and "" stay apart; the text need live only until the statement is finalised. */
static void bind_text(sqlite3_stmt *s, int at, const char *text)
{
    sqlite3_bind_text(s, at, text, -1, SQLITE_STATIC);
}

static int add_run(sqlite3 *db, const rws_store_run *run, uint64_t iteration, double seconds)
{
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    sqlite3_stmt *s;
    int           code = sqlite3_prepare_v2(db,
                                            "INSERT INTO runs(run, config, host, version, started, iteration, seconds)"
                                                      " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT(run) DO UPDATE"
                                                      " SET iteration = excluded.iteration, seconds = excluded.seconds",
                                            -1, &s, NULL);
    if (code) return code;
    const char *const texts[] = {run->name, run->config, host, run->version, run->started};
    for (int i = 0; i < 5; i++) bind_text(s, i + 1, texts[i]);
    sqlite3_bind_int64(s, 6, (sqlite3_int64)iteration);
    sqlite3_bind_double(s, 7, seconds);
    code = step(s);
    sqlite3_finalize(s);
    return code;
}

static int add_measures(sqlite3 *db, const char *run, uint64_t iteration, double seconds, int n,
                        const char *const *names, const double *values)
{
    sqlite3_stmt *s;
    int           code = sqlite3_prepare_v2(db,
                                            "INSERT OR REPLACE INTO metrics(run, iteration, seconds, name, value)"
                                                      " VALUES(?1, ?2, ?3, ?4, ?5)",
                                            -1, &s, NULL);
    if (code) return code;
    bind_text(s, 1, run);
    sqlite3_bind_int64(s, 2, (sqlite3_int64)iteration);
    sqlite3_bind_double(s, 3, seconds);
    for (int i = 0; i < n && !code; i++) {
        bind_text(s, 4, names[i]);
        if (isnan(values[i])) sqlite3_bind_null(s, 5);
        else sqlite3_bind_double(s, 5, values[i]);
        code = step(s);
    }
    sqlite3_finalize(s);
    return code;
}

rws_status rws_store_add(const char *path, const rws_store_run *run, uint64_t iteration, double seconds, int n,
                         const char *const *names, const double *values, rws_error *err)
{
    RWS_CHECK(iteration <= INT64_MAX);
    sqlite3 *db = NULL;
    int      code = begin(path, &db);
    if (!code) code = add_run(db, run, iteration, seconds);
    if (!code) code = add_measures(db, run->name, iteration, seconds, n, names, values);
    return end(db, path, code, err);
}

/* Runs a statement on ?1: run, ?2: iteration and, where it occurs, ?3: seconds. */
static int apply(sqlite3 *db, const char *sql, const char *run, uint64_t iteration, double seconds)
{
    sqlite3_stmt *s;
    int           code = sqlite3_prepare_v2(db, sql, -1, &s, NULL);
    if (code) return code;
    bind_text(s, 1, run);
    sqlite3_bind_int64(s, 2, (sqlite3_int64)iteration);
    if (sqlite3_bind_parameter_count(s) > 2) sqlite3_bind_double(s, 3, seconds);
    code = step(s);
    sqlite3_finalize(s);
    return code;
}

rws_status rws_store_forget(const char *path, const char *run, uint64_t iteration, double seconds, rws_error *err)
{
    RWS_CHECK(iteration <= INT64_MAX);
    struct stat about;
    if (lstat(path, &about) != 0 && errno == ENOENT) return RWS_OK;
    sqlite3 *db = NULL;
    int      code = begin(path, &db);
    if (!code) code = apply(db, "DELETE FROM metrics WHERE run = ?1 AND iteration > ?2", run, iteration, seconds);
    if (!code) {
        code = apply(db, "UPDATE runs SET iteration = ?2, seconds = ?3 WHERE run = ?1 AND iteration > ?2", run,
                     iteration, seconds);
    }
    return end(db, path, code, err);
}
