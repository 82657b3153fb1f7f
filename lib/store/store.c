#include "store/store.h"

#include "base/error.h"
#include "base/file.h"
#include "base/quote.h"
#include "store/checksum.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_CONFIG = 1 << 24 }; /* bytes */

/* A function below that returns an int returns an SQLite result code. Each step is taken only if the steps before it
 * succeeded. */

static int prepare(sqlite3 *db, const char *sql, sqlite3_stmt **s)
{
    return sqlite3_prepare_v2(db, sql, -1, s, NULL);
}

rws_status rws__store_blame(const char *path, const char *run, int n, rws_error *err)
{
    char others[64] = "";
    if (n > 1) snprintf(others, sizeof others, " and of %d other run%s", n - 1, n == 2 ? "" : "s");
    return rws_fail(
        err, RWS_BAD_INPUT,
        "\"%s\" is damaged: rows of the run \"%s\"%s are not those that were written. Restore a copy of the "
        "file, or train %s again.",
        rws__quote(path).text, rws__quote_short(run).text, others, n > 1 ? "these runs" : "this run");
}

static bool is_word(const char *text)
{
    return text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")] == '\0';
}

/* Names what does not belong to the store; the command that removes it is only for names that no shell can misread. */
static rws_status explain_foreign(sqlite3 *db, const char *file, rws_error *err)
{
    char kind[16] = "", name[64] = "", how[160] = "";
    if (!db || !rws__store_foreign(db, kind, name))
        return rws_fail(err, RWS_BAD_INPUT,
                        "\"%s\" is not a store of runs: it lacks tables that rws makes, or has views or other tables "
                        "in their place.",
                        file);
    if (is_word(kind) && is_word(name))
        snprintf(how, sizeof how, " This removes it, if it is yours: sqlite3 FILE \"DROP %s %s\".", kind, name);
    return rws_fail(err, RWS_BAD_INPUT,
                    "\"%s\" is not a store of runs: it has the %s \"%s\", which rws does not make.%s", file,
                    rws__quote_short(kind).text, rws__quote_short(name).text, how);
}

rws_status rws__store_explain(sqlite3 *db, const char *path, const char *what, int code, rws_error *err)
{
    const rws_quoted file = rws__quote(path ? path : "");
    char             run[256];
    int              n;
    switch (code) {
    case RWS_STORE_LINK:
        return rws_fail(err, RWS_BAD_INPUT, "Cannot write \"%s\": it is a link; put the store itself in its place.",
                        file.text);
    case RWS_STORE_JOURNAL:
        return rws_fail(err, RWS_BAD_INPUT,
                        "\"%s-journal\" is not a journal that rws writes: it names another file, which SQLite would "
                        "delete, or is a link, or says that the store was larger or had other pages. The store is not "
                        "opened; restore a copy of both files.",
                        file.text);
    case RWS_STORE_WRITE_AHEAD:
        return rws_fail(err, RWS_BAD_INPUT,
                        "\"%s\" has a write-ahead log, which another program gave it; this ends it: sqlite3 FILE "
                        "\"PRAGMA journal_mode = DELETE\".",
                        file.text);
    case RWS_STORE_FOREIGN: return explain_foreign(db, file.text, err);
    case RWS_STORE_TMPDIR:
        return rws_fail(err, RWS_BAD_INPUT,
                        "Cannot %s \"%s\": a writer of it was killed, and the private copy in which this is undone "
                        "cannot be made in %s. Set TMPDIR to a folder that can be written to and has room.",
                        what, file.text, rws__quote(rws__store_tmpdir()).text);
    default: break;
    }
    switch (code & 0xff) {
    case SQLITE_INTERRUPT: rws__store_remember_slow(path); /* fall through */
    case SQLITE_TOOBIG:
        return rws_fail(err, RWS_BAD_INPUT, "\"%s\" is damaged, or made to be slow: %s.", file.text,
                        (code & 0xff) == SQLITE_TOOBIG ? "a text in it is longer than any that rws writes"
                                                       : "it takes more time than a store of its size");
    case SQLITE_NOMEM: return rws_no_memory(err, "the store of runs");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return rws_fail(err, RWS_BAD_INPUT, "Cannot %s \"%s\": another program has kept it locked for %g seconds.",
                        what, file.text, rws__store_patience_now() / 1000.0);
    case SQLITE_READONLY:
        return rws_fail(err, RWS_BAD_INPUT, "Cannot %s \"%s\": the file or its folder is read-only.", what, file.text);
    case SQLITE_FULL: return rws_fail(err, RWS_BAD_INPUT, "Cannot %s \"%s\": the disk is full.", what, file.text);
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
        if (path && !rws__store_has_locks(path))
            return rws_fail(
                err, RWS_BAD_INPUT,
                "\"%s\" is not an SQLite file, or is damaged, or is being written, which does not show on a "
                "file system without locks: try again.",
                file.text);
        if (code == RWS_CHECKSUM_WRONG && db && !rws__checksum_blame(db, run, sizeof run, &n) && n)
            return rws__store_blame(path, run, n, err);
        return rws_fail(err, RWS_BAD_INPUT,
                        "\"%s\" is not an SQLite file, or is damaged: restore a copy of it, or move it away.",
                        file.text);
    case SQLITE_SCHEMA:
        return rws_fail(err, RWS_BAD_INPUT,
                        "\"%s\" was written by a newer version of rws than this one; use that version.", file.text);
    default:
        return rws_fail(err, RWS_BAD_INPUT, "Cannot %s \"%s\": %s.", what, file.text,
                        db ? rws__quote(sqlite3_errmsg(db)).text : sqlite3_errstr(code));
    }
}

/* Opens the store and begins a transaction that writes. IMMEDIATE waits for the lock here, before anything is read that
 * may be outdated when the wait is over. EXTRA brings the folder to disk after a commit: otherwise the journal could be
 * there again after a power cut and undo the commit, under a checkpoint that is newer. *db may be set on failure too. */
static int begin(const char *path, sqlite3 **db)
{
    int format = 0;
    int code = rws__store_open(path, true, db);
    if (!code) code = sqlite3_exec(*db, "BEGIN IMMEDIATE;", NULL, NULL, NULL);
    if (!code) code = rws__store_check(*db, &format);
    return code || format == RWS_STORE_FORMAT ? code : rws__store_complete(*db);
}

/* Commits if code is SQLITE_OK; otherwise closing the connection rolls back, and the code becomes a message. */
static rws_status end(sqlite3 *db, const char *path, int code, rws_error *err)
{
    if (!code) code = sqlite3_exec(db, "COMMIT;", NULL, NULL, NULL);
    const rws_status status = code ? rws__store_explain(db, path, "write", code, err) : RWS_OK;
    sqlite3_close(db);
    return status;
}

/* Executes a statement that has no result rows. */
static int execute(sqlite3_stmt *s)
{
    sqlite3_step(s);
    return sqlite3_reset(s);
}

/* NULL is stored as NULL, "" as an empty text. The text must live until the statement is finalised. */
static void bind_text(sqlite3_stmt *s, int at, const char *text)
{
    sqlite3_bind_text(s, at, text, -1, SQLITE_STATIC);
}

static void bind_number(sqlite3_stmt *s, int at, double value)
{
    if (isnan(value)) sqlite3_bind_null(s, at);
    else sqlite3_bind_double(s, at, value);
}

static int add_run(sqlite3 *db, const rws_store_run *run, uint64_t iteration, double seconds)
{
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    static const char sql[] =
        "INSERT INTO runs(run, config, host, version, started, iteration, seconds)"
        " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT(run) DO UPDATE"
        " SET iteration = excluded.iteration, seconds = excluded.seconds, config = excluded.config,"
        " host = excluded.host";
    sqlite3_stmt *s;
    int           code = prepare(db, sql, &s);
    if (code) return code;
    const char *const texts[] = {run->name, run->config, host, run->version, run->started};
    for (int i = 0; i < 5; i++) bind_text(s, i + 1, texts[i]);
    sqlite3_bind_int64(s, 6, (sqlite3_int64)iteration);
    sqlite3_bind_double(s, 7, seconds);
    code = execute(s);
    sqlite3_finalize(s);
    return code;
}

/* A statement whose numbers 1 and 2 are the run and the iteration. */
static int prepare_for(sqlite3 *db, const char *sql, const char *run, uint64_t iteration, sqlite3_stmt **s)
{
    const int code = prepare(db, sql, s);
    if (code) return code;
    bind_text(*s, 1, run);
    sqlite3_bind_int64(*s, 2, (sqlite3_int64)iteration);
    return SQLITE_OK;
}

static int add_metrics(sqlite3 *db, const char *run, const rws_store_entry *e)
{
    static const char sql[] =
        "INSERT OR REPLACE INTO metrics(run, iteration, seconds, name, value) VALUES(?1, ?2, ?3, ?4, ?5)";
    sqlite3_stmt *s;
    int           code = prepare_for(db, sql, run, e->iteration, &s);
    if (code) return code;
    sqlite3_bind_double(s, 3, e->seconds);
    for (int i = 0; i < e->n && !code; i++) {
        bind_text(s, 4, e->names[i]);
        bind_number(s, 5, e->values[i]);
        code = execute(s);
    }
    sqlite3_finalize(s);
    return code;
}

static int add_snapshots(sqlite3 *db, const char *run, const rws_store_entry *e)
{
    static const char sql[] =
        "INSERT OR REPLACE INTO snapshots(run, iteration, name, place, label, value) VALUES(?1, ?2, ?3, ?4, ?5, ?6)";
    sqlite3_stmt *s;
    int           code = prepare_for(db, sql, run, e->iteration, &s);
    if (code) return code;
    for (int i = 0; i < e->n_shown && !code; i++) {
        bind_text(s, 3, e->shown[i].snapshot);
        sqlite3_bind_int(s, 4, e->shown[i].place);
        bind_text(s, 5, e->shown[i].label);
        bind_number(s, 6, e->shown[i].value);
        code = execute(s);
    }
    sqlite3_finalize(s);
    return code;
}

/* The iteration of a run's last evaluation; -1 if the run is not in the store. */
static int last_iteration(sqlite3 *db, const char *run, int64_t *out)
{
    sqlite3_stmt *s;
    const int     code = prepare(db, "SELECT iteration FROM runs WHERE run = ?1", &s);
    *out = -1;
    if (code) return code;
    bind_text(s, 1, run);
    if (sqlite3_step(s) == SQLITE_ROW) *out = sqlite3_column_int64(s, 0);
    return sqlite3_finalize(s);
}

rws_status rws__store_make(const char *path, rws_error *err)
{
    sqlite3  *db = NULL;
    const int code = begin(path, &db);
    return end(db, path, code, err);
}

rws_status rws__store_add(const char *path, const rws_store_run *run, const rws_store_entry *entries, int n,
                          rws_error *err)
{
    if (n == 0) return RWS_OK;
    const rws_store_entry *last = &entries[n - 1];
    RWS_CHECK(last->iteration <= INT64_MAX);
    sqlite3 *db = NULL;
    int64_t  since = -1;
    int      code = begin(path, &db);
    if (!code) code = last_iteration(db, run->name, &since);
    for (int i = 0; i < n; i++)
        if (since >= 0 && entries[i].iteration <= (uint64_t)since) since = -1;
    if (!code) code = since < 0 ? rws__checksum_check(db, run->name) : rws__checksum_check_head(db, run->name);
    if (!code) code = add_run(db, run, last->iteration, last->seconds);
    for (int i = 0; i < n && !code; i++) {
        code = add_metrics(db, run->name, &entries[i]);
        if (!code) code = add_snapshots(db, run->name, &entries[i]);
    }
    if (!code) code = rws__checksum_seal(db, run->name, since);
    return end(db, path, code, err);
}

rws_status rws__store_add_metrics(const char *path, const char *run, const rws_store_entry *entry, rws_error *err)
{
    RWS_CHECK(entry->iteration <= INT64_MAX);
    sqlite3 *db = NULL;
    int      code = begin(path, &db);
    if (!code) code = rws__checksum_check(db, run);
    if (!code) code = add_metrics(db, run, entry);
    if (!code) code = rws__checksum_seal(db, run, -1);
    return end(db, path, code, err);
}

/* Runs a statement on ?1: run, ?2: iteration and, where they occur, ?3: seconds, ?4: text. */
static int apply(sqlite3 *db, const char *sql, const char *run, uint64_t iteration, double seconds, const char *text)
{
    sqlite3_stmt *s;
    int           code = prepare(db, sql, &s);
    if (code) return code;
    const int n = sqlite3_bind_parameter_count(s);
    bind_text(s, 1, run);
    if (n > 1) sqlite3_bind_int64(s, 2, (sqlite3_int64)iteration);
    if (n > 2) sqlite3_bind_double(s, 3, seconds);
    if (n > 3) bind_text(s, 4, text);
    code = execute(s);
    sqlite3_finalize(s);
    return code;
}

rws_status rws__store_fail(const char *path, const char *run, uint64_t iteration, const char *message, rws_error *err)
{
    RWS_CHECK(iteration <= INT64_MAX);
    sqlite3 *db = NULL;
    int      code = begin(path, &db);
    if (!code) code = rws__checksum_check(db, run);
    if (!code)
        code = apply(db, "INSERT OR REPLACE INTO failures(run, iteration, sentence) VALUES(?1, ?2, ?4)", run, iteration,
                     0, message);
    if (!code) code = rws__checksum_seal(db, run, -1);
    return end(db, path, code, err);
}

static bool is_missing(const char *path)
{
    struct stat about;
    return path && lstat(path, &about) != 0 && errno == ENOENT;
}

rws_status rws__store_forget(const char *path, const char *run, uint64_t iteration, double seconds, rws_error *err)
{
    static const char *const statements[] = {
        "DELETE FROM metrics WHERE run = ?1 AND iteration > ?2",
        "DELETE FROM snapshots WHERE run = ?1 AND iteration > ?2",
        "DELETE FROM failures WHERE run = ?1",
        "UPDATE runs SET iteration = ?2, seconds = ?3 WHERE run = ?1 AND iteration > ?2",
    };
    RWS_CHECK(iteration <= INT64_MAX);
    if (is_missing(path)) return RWS_OK;
    sqlite3 *db = NULL;
    int      code = begin(path, &db);
    if (!code) code = rws__checksum_check(db, run);
    const int before = db ? sqlite3_total_changes(db) : 0;
    for (int i = 0; i < 4 && !code; i++) code = apply(db, statements[i], run, iteration, seconds, NULL);
    if (!code && sqlite3_total_changes(db) > before) code = rws__checksum_seal(db, run, -1);
    return end(db, path, code, err);
}

rws_status rws__store_drop(const char *path, const char *run, rws_error *err)
{
    static const char *const statements[] = {
        "DELETE FROM metrics WHERE run = ?1",   "DELETE FROM snapshots WHERE run = ?1",
        "DELETE FROM failures WHERE run = ?1",  "DELETE FROM runs WHERE run = ?1",
        "DELETE FROM checksums WHERE run = ?1",
    };
    sqlite3 *db = NULL;
    int      code = begin(path, &db);
    for (int i = 0; i < 5 && !code; i++) code = apply(db, statements[i], run, 0, 0, NULL);
    return end(db, path, code, err);
}

rws_status rws__store_progress(const char *path, const char *run, rws_store_progress *out, rws_error *err)
{
    static const char sql[] = "SELECT iteration, seconds, EXISTS(SELECT 1 FROM failures WHERE run = ?1),"
                              " EXISTS(SELECT 1 FROM metrics m WHERE m.run = ?1 AND m.iteration = runs.iteration"
                              "        AND name GLOB 'final_*') FROM runs WHERE run = ?1";
    *out = (rws_store_progress){0};
    if (is_missing(path)) return RWS_OK;
    sqlite3      *db = NULL;
    sqlite3_stmt *s = NULL;
    int           format = 0, code = rws__store_open(path, false, &db);
    if (!code) code = rws__store_check(db, &format);
    if (!code && format > 0) code = prepare(db, sql, &s);
    if (!code && s) {
        bind_text(s, 1, run);
        if (sqlite3_step(s) == SQLITE_ROW)
            *out = (rws_store_progress){.known = true,
                                        .iteration = (uint64_t)sqlite3_column_int64(s, 0),
                                        .seconds = sqlite3_column_double(s, 1),
                                        .failed = sqlite3_column_int(s, 2),
                                        .measured = sqlite3_column_int(s, 3)};
        code = sqlite3_finalize(s);
    }
    const rws_status status = code ? rws__store_explain(db, path, "read", code, err) : RWS_OK;
    sqlite3_close(db);
    return status;
}

/* A copy of a column's text, NULL for a NULL; *code becomes SQLITE_NOMEM without memory. */
static char *copy_text(sqlite3_stmt *s, int column, int *code)
{
    const char *text = (const char *)sqlite3_column_text(s, column);
    char       *copy = text ? strdup(text) : NULL;
    if (text && !copy) *code = SQLITE_NOMEM;
    return copy;
}

rws_status rws__store_identify(const char *path, const char *run, char **name, char **config, rws_error *err)
{
    static const char sql[] =
        "SELECT run, config FROM runs WHERE run = ?1 OR NOT EXISTS(SELECT 1 FROM runs LIMIT 1 OFFSET 1)";
    *name = *config = NULL;
    if (is_missing(path)) return RWS_OK;
    sqlite3      *db = NULL;
    sqlite3_stmt *s = NULL;
    int           format = 0, code = rws__store_open(path, false, &db);
    if (!code) code = rws__store_check(db, &format);
    if (!code && format > 0) code = prepare(db, sql, &s);
    if (!code && s) {
        bind_text(s, 1, run);
        if (sqlite3_step(s) == SQLITE_ROW) {
            *name = copy_text(s, 0, &code);
            *config = copy_text(s, 1, &code);
        }
        const int ended = sqlite3_finalize(s);
        if (!code) code = ended;
    }
    /* Another name is that of a folder that was moved, or the right one with a byte that changed. */
    if (!code && format > 1 && *name && strcmp(*name, run) != 0) code = rws__checksum_check(db, NULL);
    const rws_status status = code ? rws__store_explain(db, path, "read", code, err) : RWS_OK;
    sqlite3_close(db);
    if (status == RWS_OK) return RWS_OK;
    free(*name);
    free(*config);
    *name = *config = NULL;
    return status;
}

rws_status rws__store_configure(const char *path, const char *run, const char *config, rws_error *err)
{
    if (is_missing(path)) return RWS_OK;
    sqlite3 *db = NULL;
    int      code = begin(path, &db);
    if (!code) code = rws__checksum_check(db, run);
    if (!code) code = apply(db, "UPDATE runs SET config = ?4 WHERE run = ?1", run, 0, 0, config);
    if (!code && sqlite3_changes(db) > 0) code = rws__checksum_seal(db, run, -1);
    return end(db, path, code, err);
}

/* ---- folders of runs */

static bool has_config(const char *folder)
{
    struct stat about;
    char       *path = rws__file_join(folder, "config.json");
    const bool  there = path && stat(path, &about) == 0;
    free(path);
    return there;
}

char *rws__store_folder(const char *path, const char *run)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (strcmp(name, "metrics.sqlite") != 0) return NULL;
    char *folder = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
    if (folder && has_config(folder)) return folder;
    char *inner = run[0] && run[0] != '.' && !strchr(run, '/') ? rws__file_join(folder, run) : NULL;
    free(folder);
    if (inner && has_config(inner)) return inner;
    free(inner);
    return NULL;
}

rws_status rws__store_folder_config(const char *folder, char **text, rws_error *err)
{
    uint8_t         *bytes;
    size_t           size;
    char            *path = rws__file_join(folder, "config.json");
    const rws_status status = rws__file_read(path, MAX_CONFIG, &bytes, &size, err);
    free(path);
    *text = NULL;
    if (status != RWS_OK) return status == RWS_NO_MEMORY ? status : RWS_OK;
    bytes[size] = '\0'; /* there is room for it */
    *text = (char *)bytes;
    return RWS_OK;
}
