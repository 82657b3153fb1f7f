#include "rws_results.h"

#include "base/error.h"
#include "base/file.h"
#include "base/quote.h"
#include "store/checksum.h"
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
    for (int i = 0; r->memory && i < r->memory->n_growing; i++) rws__growing_release(&r->memory->growing[i]);
    if (r->memory) free(r->memory->growing);
    if (r->memory) rws__arena_free(&r->memory->arena);
    free(r->memory);
    free(r->runs);
    free(r);
}

static rws_status no_memory(rws_error *err)
{
    return rws_no_memory(err, "the results of runs");
}

void *rws__results_zeroed(rws_results *r, size_t n)
{
    void *p = rws__arena_try(&r->memory->arena, n);
    return p ? memset(p, 0, n) : NULL;
}

char *rws__results_text(rws_results *r, const char *text)
{
    if (!text) return NULL;
    const size_t size = strlen(text) + 1;
    char        *copy = rws__arena_try(&r->memory->arena, size);
    if (!copy) r->memory->starved = true;
    return copy ? memcpy(copy, text, size) : NULL;
}

rws_result *rws__results_add(rws_results *r)
{
    if (!rws__list_grow(&r->runs, r->n, &r->memory->capacity, sizeof *r->runs)) return NULL;
    r->runs[r->n] = (rws_result){0};
    return &r->runs[r->n++];
}

/* ---- the configuration */

void rws__result_count_iterations(rws_result *run)
{
    const char *iterations = rws_result_get(run, "iterations");
    run->iterations = iterations ? strtoull(iterations, NULL, 10) : 0;
}

/* ---- stores */

/* Gives a run that failed before its first evaluation the configuration that is in its folder. *gone: there is none. */
static int complete(const char *store, rws_head *h, bool *gone)
{
    rws_error  ignored;
    char      *folder = h->early ? rws__store_folder(store, h->name) : NULL;
    rws_status status = folder ? rws__store_folder_config(folder, &h->config, &ignored) : RWS_OK;
    *gone = h->early && status == RWS_OK && !h->config;
    free(folder);
    return status == RWS_OK ? SQLITE_OK : SQLITE_NOMEM;
}

/* Reads a run into memory of its own, which is the last of the results'. */
static int read_run(rws_results *r, sqlite3 *db, const char *store, const rws_head *h)
{
    struct rws_results_memory *m = r->memory;
    rws_points                 points = {0};
    rws_shots                  shots = {0};
    rws_result                *run = rws__results_add(r), *own = rws__results_zeroed(r, sizeof *own);
    if (!run || !own || !rws__list_grow(&m->growing, m->n_growing, &m->capacity_growing, sizeof *m->growing))
        return SQLITE_NOMEM;
    rws_growing *g = &m->growing[m->n_growing++];
    *g = (rws_growing){.result = own};
    own->name = rws__results_text(r, h->name);
    own->store = store;
    int code = own->name && rws__growing_take_head(g, h) ? SQLITE_OK : SQLITE_NOMEM;
    if (!code) code = rws__points_read(db, h->name, -1, &points);
    if (!code && !rws__growing_add(g, &points)) code = SQLITE_NOMEM;
    if (!code) code = rws__shots_read(db, h->name, &shots);
    if (!code) rws__growing_take_shots(g, &shots);
    *run = *own;
    rws__shots_release(&shots);
    rws__points_release(&points);
    return code;
}

/* Reads the runs of a store, or the run `only` if it is not NULL. */
static int read_runs(rws_results *r, sqlite3 *db, const char *path, const char *only)
{
    const char *store = rws__results_text(r, path);
    rws_heads   list = {0};
    int         code = store ? rws__heads_read(db, only, &list) : SQLITE_NOMEM;
    for (int i = 0; i < list.n && !code; i++) {
        bool gone;
        code = complete(path, &list.list[i], &gone);
        if (!code && !gone) code = read_run(r, db, store, &list.list[i]);
    }
    for (int i = 0; i < list.n; i++) rws__head_release(&list.list[i]);
    free(list.list);
    return code;
}

/* A store without a format has no tables, or those of an early version 0.1.0, which are fewer. */
static rws_status refuse_formatless(sqlite3 *db, const char *path, const char *only, rws_error *err)
{
    sqlite3_stmt *s = NULL;
    int           code = sqlite3_prepare_v2(db, "SELECT version FROM runs WHERE ?1 IS NULL OR run = ?1", -1, &s, NULL);
    if (!code && only) code = sqlite3_bind_text(s, 1, only, -1, SQLITE_STATIC);
    const char *version = !code && sqlite3_step(s) == SQLITE_ROW ? (const char *)sqlite3_column_text(s, 0) : NULL;
    if (version)
        rws_fail(err, RWS_BAD_INPUT,
                 "\"%s\" lacks tables that stores have today: version %s of rws wrote it, and this is %s.",
                 rws__quote(path).text, rws__quote_short(version).text, RWS_VERSION_STRING);
    else rws_fail(err, RWS_BAD_INPUT, "\"%s\" is not a store of runs.", rws__quote(path).text);
    sqlite3_finalize(s);
    return RWS_BAD_INPUT;
}

/* All is read in one transaction, so that it is of the same moment. */
static rws_status read_store(rws_results *r, const char *path, const char *only, rws_error *err)
{
    sqlite3 *db = NULL;
    int      format = 0, code = rws__store_open(path, false, &db);
    if (!code) code = sqlite3_exec(db, "BEGIN", NULL, NULL, NULL);
    if (!code) code = rws__store_check(db, &format);
    if (!code && format == 0) {
        const rws_status refused = refuse_formatless(db, path, only, err);
        sqlite3_close(db);
        return refused;
    }
    if (!code && format > 1) code = rws__checksum_check(db, only);
    if (!code) code = read_runs(r, db, path, only);
    const rws_status status = code ? rws__store_explain(db, path, "read", code, err) : RWS_OK;
    sqlite3_close(db);
    return status;
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
        return rws_fail(err, RWS_BAD_INPUT, "Cannot read the folder \"%s\": %s.", rws__quote(folder).text,
                        strerror(errno));
    for (int i = 0; i < n; i++) {
        char *inner = list[i]->d_name[0] == '.' ? NULL : rws__file_join(folder, list[i]->d_name);
        char *store = rws__file_join(inner, "metrics.sqlite");
        if (status == RWS_OK && !store && list[i]->d_name[0] != '.') status = no_memory(err);
        if (status == RWS_OK && rws__file_leads(store)) {
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
                        rws__quote(folder).text);
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
        store = rws__file_join(slash == real ? "/" : real, "metrics.sqlite");
    }
    if ((!real && errno == ENOMEM) || (inside && !store)) status = no_memory(err);
    else if (rws__file_leads(store)) status = read_store(r, store, slash + 1, err);
    else rws_fail(err, status, "The run in \"%s\" has no metrics.sqlite.", rws__quote(folder).text);
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
        return rws_fail(err, RWS_BAD_INPUT, "Cannot read \"%s\": %s.", rws__quote(path).text, strerror(errno));
    }
    if (!S_ISDIR(about.st_mode) && is_exported(path))
        return is_read(r, path) ? RWS_OK : rws__exported_read(r, path, err);
    if (!S_ISDIR(about.st_mode)) return read_store(r, path, NULL, err);
    char      *store = rws__file_join(path, "metrics.sqlite"), *config = rws__file_join(path, "config.json");
    rws_status status;
    if (!store || !config) status = no_memory(err);
    else if (rws__file_leads(store)) status = read_store(r, store, NULL, err);
    else if (rws__file_leads(config)) status = read_one_of_sweep(r, path, err);
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
    rws_held held = rws__held_read();
    for (int i = 0; i < r->n; i++) {
        rws_result *run = &r->runs[i];
        struct stat store;
        if (strcmp(rws_result_state(run), "unfinished") != 0 || is_exported(run->store)) continue;
        char *folder = rws__store_folder(run->store, run->name);
        run->training = stat(run->store, &store) == 0 && rws__held_trains(&held, folder, run->host, store.st_mtime);
        free(folder);
    }
    rws__held_free(&held);
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

rws_status rws__results_read_if_any(const char *folder, rws_results **out, rws_error *err)
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
