#include "rws_results.h"

#include "base/error.h"
#include "base/file.h"
#include "base/quote.h"
#include "store/checksum.h"
#include "results/keys.h"
#include "results/results.h"
#include "store/held.h"
#include "store/store.h"

#include <dirent.h>
#include <errno.h>
#include <glib.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void rws_results_free(rws_results *r)
{
    if (!r) return;
    if (r->memory) rws_arena_free(&r->memory->arena);
    free(r->memory);
    free(r->runs);
    free(r);
}

static rws_status no_memory(rws_error *err)
{
    return rws_no_memory(err, "the results of runs");
}

void *rws_results_zeroed(rws_results *r, size_t n)
{
    void *p = rws_arena_try(&r->memory->arena, n);
    return p ? memset(p, 0, n) : NULL;
}

char *rws_results_text(rws_results *r, const char *text)
{
    if (!text) return NULL;
    const size_t size = strlen(text) + 1;
    char        *copy = rws_arena_try(&r->memory->arena, size);
    if (!copy) r->memory->starved = true;
    return copy ? memcpy(copy, text, size) : NULL;
}

rws_result *rws_results_add(rws_results *r)
{
    if (r->n == r->memory->capacity) {
        const int   capacity = 2 * r->memory->capacity + 64;
        rws_result *more = realloc(r->runs, (size_t)capacity * sizeof *more);
        if (!more) return NULL;
        r->runs = more;
        r->memory->capacity = capacity;
    }
    r->runs[r->n] = (rws_result){0};
    return &r->runs[r->n++];
}

/* ---- the configuration */

void rws_result_count_iterations(rws_result *run)
{
    const char *iterations = rws_result_get(run, "iterations");
    run->iterations = iterations ? strtoull(iterations, NULL, 10) : 0;
}

typedef struct {
    rws_results    *results;
    rws_result     *run;
    rws_result_key *keys;
} taking;

static bool take_key(void *context, size_t most, const char *key, const char *value)
{
    taking *t = context;
    if (!t->keys) t->run->keys = t->keys = rws_results_zeroed(t->results, most * sizeof *t->keys);
    if (!t->keys) return false;
    t->keys[t->run->n_keys++] =
        (rws_result_key){rws_results_text(t->results, key), rws_results_text(t->results, value)};
    return !t->results->memory->starved;
}

/* The entries of config.json as keys and values, with the settings among them. A text that is no JSON leaves a run
 * without keys. False without memory. */
static bool read_config(rws_results *r, rws_result *run, const char *text)
{
    taking t = {r, run, NULL};
    if (!rws_keys_read(text, take_key, &t)) return false;
    rws_result_count_iterations(run);
    return true;
}

/* ---- rows. A function that returns an int returns an SQLite result code. */

static double number_at(sqlite3_stmt *s, int column)
{
    return sqlite3_column_type(s, column) == SQLITE_NULL ? NAN : sqlite3_column_double(s, column);
}

static const char *text_at(sqlite3_stmt *s, int column)
{
    return (const char *)sqlite3_column_text(s, column);
}

/* Prepares a statement whose parameter ?1 is the name of a run. */
static int prepare(sqlite3 *db, const char *sql, const char *run, sqlite3_stmt **s)
{
    const int code = sqlite3_prepare_v2(db, sql, -1, s, NULL);
    return code ? code : sqlite3_bind_text(*s, 1, run, -1, SQLITE_STATIC);
}

/* Finalises a statement. `code` is that of its last step, where SQLITE_DONE is success. */
static int finish(sqlite3_stmt *s, int code)
{
    sqlite3_finalize(s);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

static int count_rows(sqlite3 *db, const char *sql, const char *run, int *n)
{
    sqlite3_stmt *s = NULL;
    int           code = prepare(db, sql, run, &s);
    *n = 0;
    if (!code) {
        code = sqlite3_step(s);
        const int64_t found = code == SQLITE_ROW ? sqlite3_column_int64(s, 0) : 0;
        if (code == SQLITE_ROW) code = found < INT_MAX && found <= rws_store_size(db) ? SQLITE_DONE : SQLITE_CORRUPT;
        if (code == SQLITE_DONE) *n = (int)found;
    }
    return finish(s, code ? code : SQLITE_DONE);
}

static int read_series(rws_results *r, rws_result *run, sqlite3 *db)
{
    int n_rows, n_names, n = 0;
    int code = count_rows(db, "SELECT count(*) FROM metrics WHERE run = ?1", run->name, &n_rows);
    if (!code) code = count_rows(db, "SELECT count(DISTINCT name) FROM metrics WHERE run = ?1", run->name, &n_names);
    if (code) return code;
    rws_arena    *a = &r->memory->arena;
    double       *numbers = RWS_TRY_NEW(a, double, 3 * (size_t)n_rows + 1);
    rws_history  *series = rws_results_zeroed(r, ((size_t)n_names + 1) * sizeof *series);
    sqlite3_stmt *s = NULL;
    if (!numbers || !series) return SQLITE_NOMEM;
    code = prepare(db, "SELECT name, iteration, seconds, value FROM metrics WHERE run = ?1 ORDER BY name, iteration",
                   run->name, &s);
    if (code) return finish(s, code);
    for (int row = 0; (code = sqlite3_step(s)) == SQLITE_ROW && row < n_rows; row++) {
        const char  *name = text_at(s, 0) ? text_at(s, 0) : "";
        rws_history *now = n ? &series[n - 1] : NULL;
        if (!now || strcmp(now->metric, name) != 0) {
            now = &series[n++];
            *now = (rws_history){rws_results_text(r, name), 0, numbers + row, numbers + n_rows + row,
                                 numbers + 2 * n_rows + row};
            if (!now->metric) return finish(s, SQLITE_NOMEM);
        }
        numbers[row] = (double)sqlite3_column_int64(s, 1);
        numbers[n_rows + row] = number_at(s, 2);
        numbers[2 * n_rows + row] = number_at(s, 3);
        now->n++;
    }
    run->histories = series;
    run->n_histories = n;
    return finish(s, code);
}

static int read_shots(rws_results *r, rws_result *run, sqlite3 *db)
{
    int n_rows, n_shots, n = 0;
    int code = count_rows(db, "SELECT count(*) FROM snapshots WHERE run = ?1", run->name, &n_rows);
    if (!code)
        code = count_rows(db, "SELECT count(*) FROM (SELECT DISTINCT name, iteration FROM snapshots WHERE run = ?1)",
                          run->name, &n_shots);
    if (code) return code;
    rws_arena    *a = &r->memory->arena;
    double       *values = RWS_TRY_NEW(a, double, (size_t)n_rows + 1);
    const char  **labels = rws_results_zeroed(r, ((size_t)n_rows + 1) * sizeof *labels);
    rws_shot     *shots = rws_results_zeroed(r, ((size_t)n_shots + 1) * sizeof *shots);
    sqlite3_stmt *s = NULL;
    if (!values || !labels || !shots) return SQLITE_NOMEM;
    code = prepare(db,
                   "SELECT name, iteration, label, value FROM snapshots WHERE run = ?1 ORDER BY name, iteration, place",
                   run->name, &s);
    if (code) return finish(s, code);
    for (int row = 0; (code = sqlite3_step(s)) == SQLITE_ROW && row < n_rows; row++) {
        const char    *name = text_at(s, 0) ? text_at(s, 0) : "";
        const uint64_t iteration = (uint64_t)sqlite3_column_int64(s, 1);
        rws_shot      *now = n ? &shots[n - 1] : NULL;
        if (!now || now->iteration != iteration || strcmp(now->name, name) != 0) {
            now = &shots[n++];
            *now = (rws_shot){rws_results_text(r, name), iteration, 0, values + row, labels + row};
            if (!now->name) return finish(s, SQLITE_NOMEM);
        }
        labels[row] = rws_results_text(r, text_at(s, 2));
        values[row] = number_at(s, 3);
        now->n++;
    }
    run->shots = shots;
    run->n_shots = n;
    return finish(s, code);
}

/* ---- stores */

/* Reads the configuration of a run that failed before its first evaluation. The run is left out again if its folder is gone. */
static int read_failed(rws_results *r, rws_result *run)
{
    rws_error  ignored;
    char      *folder = rws_store_folder(run->store, run->name), *config = NULL;
    rws_status status = folder ? rws_store_folder_config(folder, &config, &ignored) : RWS_OK;
    if (status == RWS_OK && !config) r->n--;
    else if (status == RWS_OK && !read_config(r, run, config)) status = RWS_NO_MEMORY;
    free(config);
    free(folder);
    return status == RWS_OK ? SQLITE_OK : SQLITE_NOMEM;
}

/* Reads the runs of a store, or the run `only` if it is not NULL. */
static int read_runs(rws_results *r, sqlite3 *db, const char *path, const char *only)
{
    const int     first = r->n;
    const char   *store = rws_results_text(r, path);
    sqlite3_stmt *s = NULL;
    int           code = prepare(db,
                                 "SELECT run, config, host, version, started, iteration, seconds, sentence, early"
                                           " FROM " RWS_STORE_ALL_RUNS " WHERE ?1 IS NULL OR run = ?1",
                                 only, &s);
    if (code || !store) return finish(s, code ? code : SQLITE_NOMEM);
    while ((code = sqlite3_step(s)) == SQLITE_ROW) {
        rws_result *run = rws_results_add(r);
        if (!run) return finish(s, SQLITE_NOMEM);
        if (r->n - first > rws_store_size(db)) return finish(s, SQLITE_CORRUPT);
        run->name = rws_results_text(r, text_at(s, 0) ? text_at(s, 0) : "");
        run->store = store;
        run->host = rws_results_text(r, text_at(s, 2));
        run->version = rws_results_text(r, text_at(s, 3));
        run->started = rws_results_text(r, text_at(s, 4));
        run->iteration = (uint64_t)sqlite3_column_int64(s, 5);
        run->seconds = sqlite3_column_double(s, 6);
        run->failure = rws_results_text(r, text_at(s, 7));
        if (!run->name) return finish(s, SQLITE_NOMEM);
        if (sqlite3_column_int(s, 8)) code = read_failed(r, run);
        else code = read_config(r, run, text_at(s, 1)) ? SQLITE_OK : SQLITE_NOMEM;
        if (code) return finish(s, code);
    }
    code = finish(s, code);
    for (int i = first; i < r->n && !code; i++) {
        code = read_series(r, &r->runs[i], db);
        if (!code) code = read_shots(r, &r->runs[i], db);
    }
    return code || !r->memory->starved ? code : SQLITE_NOMEM;
}

/* All is read in one transaction, so that it is of the same moment. */
static rws_status read_store(rws_results *r, const char *path, const char *only, rws_error *err)
{
    sqlite3 *db = NULL;
    int      format = 0, code = rws_store_open(path, false, &db);
    if (!code) code = sqlite3_exec(db, "BEGIN", NULL, NULL, NULL);
    if (!code) code = rws_store_check(db, &format);
    if (!code && format == 0) {
        sqlite3_close(db);
        return rws_fail(err, RWS_BAD_INPUT, "\"%s\" is not a store of runs.", rws_quote(path).text);
    }
    if (!code && format > 1) code = rws_checksum_check(db, only);
    if (!code) code = read_runs(r, db, path, only);
    const rws_status status = code ? rws_store_explain(db, path, "read", code, err) : RWS_OK;
    sqlite3_close(db);
    return status;
}

static bool exists(const char *path)
{
    struct stat about;
    return path && stat(path, &about) == 0;
}

/* Reads the stores of the folders in a folder. Sets *none and fails if there are none. */
static rws_status read_below(rws_results *r, const char *folder, bool *none, rws_error *err)
{
    struct dirent **list;
    const int       n = scandir(folder, &list, NULL, alphasort);
    rws_status      status = RWS_OK;
    int             n_stores = 0;
    if (n < 0 && errno == ENOMEM) return no_memory(err);
    if (n < 0)
        return rws_fail(err, RWS_BAD_INPUT, "Cannot read the folder \"%s\": %s.", rws_quote(folder).text,
                        strerror(errno));
    for (int i = 0; i < n; i++) {
        char *inner = list[i]->d_name[0] == '.' ? NULL : rws_file_join(folder, list[i]->d_name);
        char *store = rws_file_join(inner, "metrics.sqlite");
        if (status == RWS_OK && !store && list[i]->d_name[0] != '.') status = no_memory(err);
        if (status == RWS_OK && exists(store)) {
            n_stores++;
            status = read_store(r, store, NULL, err);
        }
        free(store);
        free(inner);
        free(list[i]);
    }
    free(list);
    *none = status == RWS_OK && n_stores == 0;
    if (*none)
        return rws_fail(err, RWS_BAD_INPUT,
                        "There are no runs in \"%s\": neither it nor a folder in it has a "
                        "metrics.sqlite.",
                        rws_quote(folder).text);
    return status;
}

/* Reads one run of a sweep, whose store is in the folder above. */
static rws_status read_one_of_sweep(rws_results *r, const char *folder, rws_error *err)
{
    rws_status status = RWS_BAD_INPUT;
    char      *real = realpath(folder, NULL), *slash = real ? strrchr(real, '/') : NULL, *store = NULL;
    const bool inside = slash && slash[1];
    if (inside) {
        *slash = '\0';
        store = rws_file_join(slash == real ? "/" : real, "metrics.sqlite");
    }
    if ((!real && errno == ENOMEM) || (inside && !store)) status = no_memory(err);
    else if (exists(store)) status = read_store(r, store, slash + 1, err);
    else rws_fail(err, status, "The run in \"%s\" has no metrics.sqlite.", rws_quote(folder).text);
    free(store);
    free(real);
    return status;
}

/* ---- files that are named twice, perhaps by links */

typedef struct {
    dev_t device;
    ino_t inode;
} identity;

static identity identify(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 ? (identity){about.st_dev, about.st_ino} : (identity){0};
}

static bool is_same_file(identity a, identity b)
{
    return a.inode && a.device == b.device && a.inode == b.inode;
}

static bool is_exported(const char *path)
{
    return g_str_has_suffix(path, ".csv");
}

/* Whether the runs of an exported file are there already. */
static bool is_read(const rws_results *r, const char *path)
{
    const identity own = identify(path);
    for (int i = 0; i < r->n; i++) {
        const char *store = r->runs[i].store;
        const bool  like_last = i && strcmp(store, r->runs[i - 1].store) == 0;
        if (!like_last && is_exported(store) && is_same_file(own, identify(store))) return true;
    }
    return false;
}

/* Leaves one of the runs that are the same row of the same store. Runs of a name stand side by side. An exported file may have
 * two runs of a name, and is_read has seen to it that it was read once. */
static rws_status drop_repeated(rws_results *r, rws_error *err)
{
    identity *stores = calloc((size_t)r->n + 1, sizeof *stores); /* of the runs that stay */
    int       n = 0;
    if (!stores) return no_memory(err);
    for (int i = 0; i < r->n; i++) {
        const rws_result *run = &r->runs[i];
        const bool        like_last = n && run->store == r->runs[n - 1].store;
        const identity own = is_exported(run->store) ? (identity){0} : like_last ? stores[n - 1] : identify(run->store);
        bool           repeated = false;
        for (int k = n - 1; k >= 0 && !repeated && strcmp(r->runs[k].name, run->name) == 0; k--)
            repeated = is_same_file(own, stores[k]);
        if (repeated) continue;
        stores[n] = own;
        r->runs[n++] = r->runs[i];
    }
    r->n = n;
    free(stores);
    return RWS_OK;
}

/* Sets *none and fails if the path does not exist or is a folder without stores. */
static rws_status read_path(rws_results *r, const char *path, bool *none, rws_error *err)
{
    struct stat about;
    if (stat(path, &about) != 0) {
        *none = errno == ENOENT;
        return rws_fail(err, RWS_BAD_INPUT, "Cannot read \"%s\": %s.", rws_quote(path).text, strerror(errno));
    }
    if (!S_ISDIR(about.st_mode) && is_exported(path))
        return is_read(r, path) ? RWS_OK : rws_exported_read(r, path, err);
    if (!S_ISDIR(about.st_mode)) return read_store(r, path, NULL, err);
    char      *store = rws_file_join(path, "metrics.sqlite"), *config = rws_file_join(path, "config.json");
    rws_status status;
    if (!store || !config) status = no_memory(err);
    else if (exists(store)) status = read_store(r, store, NULL, err);
    else if (exists(config)) status = read_one_of_sweep(r, path, err);
    else status = read_below(r, path, none, err);
    free(store);
    free(config);
    return status;
}

static int by_name(const void *a, const void *b)
{
    const rws_result *x = a, *y = b;
    const int         order = strverscmp(x->name, y->name);
    return order ? order : strcmp(x->store, y->store);
}

/* Finds out which of the unfinished runs a process trains. */
static void find_training(rws_results *r)
{
    rws_held held = rws_held_read();
    for (int i = 0; i < r->n; i++) {
        rws_result *run = &r->runs[i];
        struct stat store;
        if (strcmp(rws_result_state(run), "unfinished") != 0 || is_exported(run->store)) continue;
        char *folder = rws_store_folder(run->store, run->name);
        run->training = stat(run->store, &store) == 0 && rws_held_trains(&held, folder, run->host, store.st_mtime);
        free(folder);
    }
    rws_held_free(&held);
}

static rws_status read_paths(const char *const *paths, int n, rws_results **out, bool *none, rws_error *err)
{
    rws_results *r = calloc(1, sizeof *r);
    if (r) r->memory = calloc(1, sizeof *r->memory);
    rws_status status = r && r->memory ? RWS_OK : no_memory(err);
    *out = NULL;
    for (int i = 0; i < n && status == RWS_OK; i++)
        status = paths && paths[i] ? read_path(r, paths[i], none, err)
                                   : rws_fail(err, RWS_BAD_INPUT, "Path %d of the runs is NULL.", i);
    if (status == RWS_OK && r->n) {
        qsort(r->runs, (size_t)r->n, sizeof *r->runs, by_name);
        status = drop_repeated(r, err);
    }
    if (status != RWS_OK) {
        rws_results_free(r);
        return status;
    }
    find_training(r);
    *out = r;
    return RWS_OK;
}

rws_status rws_results_read(const char *const *paths, int n, rws_results **out, rws_error *err)
{
    RWS_NEED(out, err);
    bool none = false;
    return read_paths(paths, n, out, &none, err);
}

rws_status rws_results_read_if_any(const char *folder, rws_results **out, rws_error *err)
{
    bool             none = false;
    const rws_status status = read_paths(&folder, 1, out, &none, err);
    return none ? RWS_OK : status;
}

/* ---- looking */

const char *rws_result_state(const rws_result *r)
{
    if (!r) return NULL;
    if (r->failure) return "failed";
    return r->iterations && r->iteration >= r->iterations ? "finished" : "unfinished";
}

const char *rws_result_get(const rws_result *r, const char *key)
{
    if (!r || !key) return NULL;
    if (strcmp(key, "run") == 0) return r->name;
    if (strcmp(key, "state") == 0) return rws_result_state(r);
    for (int i = 0; i < r->n_keys; i++)
        if (strcmp(r->keys[i].key, key) == 0) return r->keys[i].value;
    return NULL;
}

bool rws_result_same_but_seed(const rws_result *a, const rws_result *b)
{
    if (!a || !b) return a == b;
    if (a->n_keys != b->n_keys) return false;
    for (int i = 0; i < a->n_keys; i++) {
        const char *key = a->keys[i].key, *other = rws_result_get(b, key);
        if (strcmp(key, "seed") == 0 || strcmp(key, "threads") == 0) continue;
        if (!other || strcmp(a->keys[i].value, other) != 0) return false;
    }
    return true;
}

const rws_history *rws_result_history(const rws_result *r, const char *metric)
{
    for (int i = 0; r && metric && i < r->n_histories; i++)
        if (strcmp(r->histories[i].metric, metric) == 0) return &r->histories[i];
    return NULL;
}

double rws_result_last(const rws_result *r, const char *metric)
{
    const rws_history *s = rws_result_history(r, metric);
    return s && s->n ? s->values[s->n - 1] : NAN;
}

const rws_shot *rws_result_shot(const rws_result *r, const char *name, uint64_t iteration)
{
    const rws_shot *latest = NULL;
    for (int i = 0; r && name && i < r->n_shots; i++)
        if (strcmp(r->shots[i].name, name) == 0 && r->shots[i].iteration <= iteration) latest = &r->shots[i];
    return latest;
}
