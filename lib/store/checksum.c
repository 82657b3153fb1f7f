#include "store/checksum.h"

#include "base/hash.h"
#include "store/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* ---- the SQL function rws_checksum(column, …): the sum of a hash of each row */

static void mix(uint64_t *hash, const void *bytes, size_t n)
{
    *hash = rws__hash(*hash, bytes, n);
}

/* Returns the bytes of a text. */
static int mix_value(uint64_t *hash, sqlite3_value *value)
{
    const int type = sqlite3_value_type(value);
    mix(hash, &(const uint8_t){(uint8_t)type}, 1);
    if (type == SQLITE_INTEGER) mix(hash, &(const sqlite3_int64){sqlite3_value_int64(value)}, sizeof(sqlite3_int64));
    else if (type == SQLITE_FLOAT) mix(hash, &(const double){sqlite3_value_double(value)}, sizeof(double));
    else if (type != SQLITE_NULL) {
        const void *bytes = sqlite3_value_blob(value);
        const int   n = sqlite3_value_bytes(value);
        mix(hash, &n, sizeof n);
        mix(hash, bytes, (size_t)n);
        return n;
    }
    return 0;
}

/* Mixes all bits of a hash. The last bytes of a row change few of the high bits of FNV, and a sum of hashes needs all. */
static uint64_t finish(uint64_t hash)
{
    hash = (hash ^ (hash >> 32)) * UINT64_C(0xd6e8feb86659fd93);
    hash = (hash ^ (hash >> 32)) * UINT64_C(0xd6e8feb86659fd93);
    return hash ^ (hash >> 32);
}

/* The sum so far, and how many more bytes of text the rows may have: those of the store. */
typedef struct {
    uint64_t sum;
    int64_t  left;
    bool     begun;
} summing;

/* Bytes of the store; -1 without memory. The file of a writer is not as large as it will be. */
static int64_t bytes_of(sqlite3 *db)
{
    static const char sql[] = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";
    sqlite3_stmt     *s;
    if (sqlite3_db_readonly(db, "main")) return rws__store_size(db);
    if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK) return -1;
    const int64_t bytes = sqlite3_step(s) == SQLITE_ROW ? sqlite3_column_int64(s, 0) : -1;
    sqlite3_finalize(s);
    return bytes;
}

static void add_row(sqlite3_context *context, int n, sqlite3_value **values)
{
    summing      *s = sqlite3_aggregate_context(context, sizeof *s);
    uint64_t      hash = RWS_HASH_BEGIN;
    const int64_t have = s && !s->begun ? bytes_of(sqlite3_context_db_handle(context)) : 0;
    if (!s || have < 0) {
        sqlite3_result_error_nomem(context);
        return;
    }
    if (!s->begun) *s = (summing){.left = have, .begun = true};
    for (int i = 0; i < n; i++) s->left -= mix_value(&hash, values[i]);
    s->sum += finish(hash);
    if (s->left < 0) sqlite3_result_error_code(context, SQLITE_CORRUPT);
}

static void return_sum(sqlite3_context *context)
{
    const summing *s = sqlite3_aggregate_context(context, 0);
    sqlite3_result_int64(context, s ? (sqlite3_int64)s->sum : 0);
}

int rws__checksum_prepare(sqlite3 *db)
{
    return sqlite3_create_function(db, "rws_checksum", -1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL, NULL, add_row,
                                   return_sum);
}

/* ---- sums of a run */

typedef struct {
    uint64_t about, numbers;
} sums;

/* Adds the result of a statement to *sum. Its parameters are ?1, the run, and perhaps ?2, an iteration. */
static int add_sum(sqlite3 *db, const char *sql, const char *run, int64_t since, uint64_t *sum)
{
    sqlite3_stmt *s;
    int           code = sqlite3_prepare_v2(db, sql, -1, &s, NULL);
    if (code) return code;
    sqlite3_bind_text(s, 1, run, -1, SQLITE_STATIC);
    if (sqlite3_bind_parameter_count(s) > 1) sqlite3_bind_int64(s, 2, since);
    if (sqlite3_step(s) == SQLITE_ROW) *sum += (uint64_t)sqlite3_column_int64(s, 0);
    return sqlite3_finalize(s);
}

/* The sums of a run's rows, of the numbers only those after the iteration `since`. */
static int compute(sqlite3 *db, const char *run, int64_t since, sums *out)
{
    /* A run is found by the index, which has the name a second time; the join reads the name that is in the row itself. */
    static const char *const about[] = {
        "SELECT rws_checksum(row.run, row.config, row.host, row.version, row.started, row.iteration, row.seconds) "
        "FROM runs AS found JOIN runs AS row ON row.rowid = found.rowid WHERE found.run = ?1",
        "SELECT rws_checksum(row.run, row.iteration, row.sentence) "
        "FROM failures AS found JOIN failures AS row ON row.rowid = found.rowid WHERE found.run = ?1",
    };
    static const char *const numbers[] = {
        "SELECT rws_checksum(run, iteration, seconds, name, value) FROM metrics WHERE run = ?1 AND iteration > ?2",
        "SELECT rws_checksum(run, iteration, name, place, label, value) FROM snapshots WHERE run = ?1 AND iteration > "
        "?2",
    };
    int code = SQLITE_OK;
    *out = (sums){0};
    for (int i = 0; i < 2 && !code; i++) code = add_sum(db, about[i], run, since, &out->about);
    for (int i = 0; i < 2 && !code; i++) code = add_sum(db, numbers[i], run, since, &out->numbers);
    return code;
}

/* The sums in the table; *known is false if there are none. */
static int read_sums(sqlite3 *db, const char *run, sums *out, bool *known)
{
    sqlite3_stmt *s;
    const int     code = sqlite3_prepare_v2(db, "SELECT about, numbers FROM checksums WHERE run = ?1", -1, &s, NULL);
    *known = false;
    if (code) return code;
    sqlite3_bind_text(s, 1, run, -1, SQLITE_STATIC);
    if ((*known = sqlite3_step(s) == SQLITE_ROW))
        *out = (sums){(uint64_t)sqlite3_column_int64(s, 0), (uint64_t)sqlite3_column_int64(s, 1)};
    return sqlite3_finalize(s);
}

int rws__checksum_seal(sqlite3 *db, const char *run, int64_t since)
{
    sums          had = {0}, now;
    bool          known = false;
    sqlite3_stmt *s;
    int           code = since >= 0 ? read_sums(db, run, &had, &known) : SQLITE_OK;
    if (!code) code = compute(db, run, known ? since : -1, &now);
    if (!code)
        code = sqlite3_prepare_v2(db, "INSERT OR REPLACE INTO checksums(run, about, numbers) VALUES(?1, ?2, ?3)", -1,
                                  &s, NULL);
    if (code) return code;
    sqlite3_bind_text(s, 1, run, -1, SQLITE_STATIC);
    sqlite3_bind_int64(s, 2, (sqlite3_int64)now.about);
    sqlite3_bind_int64(s, 3, (sqlite3_int64)(known ? had.numbers + now.numbers : now.numbers));
    sqlite3_step(s);
    return sqlite3_finalize(s);
}

/* RWS_CHECKSUM_WRONG if the run's rows have other sums than `said`. `all`: metrics and snapshots are compared too. */
static int compare(sqlite3 *db, const char *run, const sums *said, bool all)
{
    sums      now;
    const int code = compute(db, run, all ? -1 : INT64_MAX, &now);
    if (code) return code;
    return now.about == said->about && (!all || now.numbers == said->numbers) ? SQLITE_OK : RWS_CHECKSUM_WRONG;
}

/* Checks the sums that a statement with the parameter ?1, a run, selects from the table. *n is their number. */
static int compare_each(sqlite3 *db, const char *sql, const char *run, int *n)
{
    sqlite3_stmt *s;
    int           code = sqlite3_prepare_v2(db, sql, -1, &s, NULL);
    *n = 0;
    if (code) return code;
    if (sqlite3_bind_parameter_count(s) > 0) sqlite3_bind_text(s, 1, run, -1, SQLITE_STATIC);
    for (; !code && sqlite3_step(s) == SQLITE_ROW; ++*n) {
        const char *name = (const char *)sqlite3_column_text(s, 0);
        const sums  said = {(uint64_t)sqlite3_column_int64(s, 1), (uint64_t)sqlite3_column_int64(s, 2)};
        code = name ? compare(db, name, &said, true) : RWS_CHECKSUM_WRONG;
    }
    const int ended = sqlite3_finalize(s);
    return code ? code : ended;
}

/* RWS_CHECKSUM_WRONG if a run that the table of runs lacks has sums that do not fit: its name has changed beside them. A run
 * that failed before its first evaluation is not in the table of runs, and its sums fit. */
static int find_strays(sqlite3 *db)
{
    int n;
    return compare_each(db,
                        "SELECT run, about, numbers FROM checksums AS sums "
                        "WHERE NOT EXISTS(SELECT 1 FROM runs WHERE run = sums.run)",
                        NULL, &n);
}

int rws__checksum_check_head(sqlite3 *db, const char *run)
{
    sums      said;
    bool      known;
    const int code = read_sums(db, run, &said, &known);
    if (code) return code;
    return known ? compare(db, run, &said, false) : find_strays(db);
}

int rws__checksum_check(sqlite3 *db, const char *run)
{
    int       n;
    const int code =
        compare_each(db, "SELECT run, about, numbers FROM checksums WHERE ?1 IS NULL OR run = ?1", run, &n);
    return code || n ? code : find_strays(db);
}

int rws__checksum_blame(sqlite3 *db, char *first, size_t capacity, int *n)
{
    sqlite3_stmt *s;
    int           code = sqlite3_prepare_v2(db, "SELECT run, about, numbers FROM checksums ORDER BY run", -1, &s, NULL);
    *n = 0;
    if (code) return code;
    while ((!code || code == RWS_CHECKSUM_WRONG) && sqlite3_step(s) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(s, 0);
        const sums  said = {(uint64_t)sqlite3_column_int64(s, 1), (uint64_t)sqlite3_column_int64(s, 2)};
        code = name ? compare(db, name, &said, true) : RWS_CHECKSUM_WRONG;
        if (code == RWS_CHECKSUM_WRONG && ++*n == 1) snprintf(first, capacity, "%s", name ? name : "");
    }
    const int ended = sqlite3_finalize(s);
    return code && code != RWS_CHECKSUM_WRONG ? code : ended;
}

int rws__checksum_follow(sqlite3 *db, const char *run, rws_checksum_seen *seen, bool *fits)
{
    sums     said, now;
    uint64_t last = 0;
    bool     known;
    *fits = true;
    int code = read_sums(db, run, &said, &known);
    if (code) return code;
    if (!known) {
        code = find_strays(db);
        *fits = code != RWS_CHECKSUM_WRONG;
        *seen = (rws_checksum_seen){.iteration = -1};
        return *fits ? code : SQLITE_OK;
    }
    code = compute(db, run, seen->iteration, &now);
    if (!code && seen->iteration >= 0 && seen->numbers + now.numbers != said.numbers) {
        *seen = (rws_checksum_seen){.iteration = -1};
        code = compute(db, run, -1, &now);
    }
    if (!code) code = add_sum(db, "SELECT iteration FROM runs WHERE run = ?1", run, 0, &last);
    if (code) return code;
    *fits = now.about == said.about && seen->numbers + now.numbers == said.numbers;
    *seen = *fits ? (rws_checksum_seen){(int64_t)last, said.numbers} : (rws_checksum_seen){.iteration = -1};
    return SQLITE_OK;
}
