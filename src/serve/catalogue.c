#include "serve/catalogue.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/quote.h"
#include "run/json.h"
#include "run/store.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { DEEPEST = 3, MOST_FOLDERS = 20000, FOLDERS_AT_ONCE = 200, PATIENCE = 2000 /* ms for a locked store */ };
#define SETTLED 3600.0 /* seconds after which a run that has not changed gets no more measures */
#define TICK 0.1       /* seconds by which two changes of a file may have the same time */

/* A metric of a run; the arrays grow. */
typedef struct {
    char   *name;
    int     n, room;
    double *iterations, *seconds, *values;
} series;

typedef struct {
    rws_listed public;
    char        *store; /* path */
    char        *folder;
    series      *series; /* sorted by name; seen as result.histories */
    rws_history *histories;
    int          n_series;
    rws_shot    *shots;
    int          n_shown;    /* numbers in all snapshots */
    double       changed;    /* when something was new */
    bool         present;    /* found by the refresh that is going on */
    bool         locked;     /* some process trains it */
    double       store_time; /* when the store was written last, in seconds of the calendar */
} entry;

typedef struct {
    char           *path, *only; /* only: the one run that is wanted; NULL: all */
    struct timespec time;
    off_t           size;
    ino_t           inode;
    bool            present, fresh; /* fresh: so young at the last look that a later change may have the same time */
    bool            failed;
} store;

struct rws_catalogue {
    pthread_rwlock_t lock;
    char           **roots; /* real paths: a given folder, or the folder of a given file */
    char           **given; /* real paths as given */
    int              n_given;
    store          **stores;
    int              n_stores, room_stores;
    entry          **entries; /* sorted by name */
    int              n_entries, room_entries;
    rws_problem     *problems;
    int              n_problems;
    rws_problem     *found; /* problems of the refresh that is going on */
    int              n_found;
    rws_problem     *away; /* those that the last search of the folders found */
    int              n_away;
    int              pause; /* refreshes until the next search */
    char (*gone)[RWS_RUN_ID + 1];
    int      n_gone;
    uint64_t serial;
    char     host[256];
};

/* ---- memory. Without memory a run or a point is left out until the next refresh. */

static bool make_room(void *list, int n, int *room, size_t size)
{
    void **at = list;
    if (n < *room) return true;
    const int more = 2 * *room + 16;
    void     *longer = realloc(*at, (size_t)more * size);
    if (!longer) return false;
    *at = longer;
    *room = more;
    return true;
}

static void replace(const char **text, const char *by)
{
    free((char *)*text);
    *text = by ? strdup(by) : NULL;
}

static void free_keys(rws_result *r)
{
    for (int i = 0; i < r->n_keys; i++) {
        free((char *)r->keys[i].key);
        free((char *)r->keys[i].value);
    }
    free((void *)r->keys);
    r->keys = NULL;
    r->n_keys = 0;
}

static void free_shots(entry *e)
{
    for (int i = 0; i < e->public.result.n_shots; i++) {
        rws_shot *s = &e->shots[i];
        for (int k = 0; k < s->n; k++) free((char *)s->labels[k]);
        free((void *)s->labels);
        free((void *)s->values);
        free((char *)s->name);
    }
    free(e->shots);
    e->shots = NULL;
    e->public.result.n_shots = e->n_shown = 0;
}

static void free_series(entry *e)
{
    for (int i = 0; i < e->n_series; i++) {
        free(e->series[i].name);
        free(e->series[i].iterations);
        free(e->series[i].seconds);
        free(e->series[i].values);
    }
    free(e->series);
    free(e->histories);
    e->series = NULL;
    e->histories = NULL;
    e->n_series = e->public.result.n_histories = 0;
}

static void free_entry(entry *e)
{
    rws_result *r = &e->public.result;
    if (!e) return;
    free_series(e);
    free_shots(e);
    free_keys(r);
    const char *const texts[] = {r->name, r->host, r->version, r->started, r->failure};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) free((char *)texts[i]);
    free(e->store);
    free(e->folder);
    free(e);
}

static void free_store(store *s)
{
    free(s->path);
    free(s->only);
    free(s);
}

static void free_problems(rws_problem *list, int n)
{
    for (int i = 0; i < n; i++) {
        free(list[i].path);
        free(list[i].sentence);
    }
    free(list);
}

void rws_catalogue_free(rws_catalogue *c)
{
    if (!c) return;
    for (int i = 0; i < c->n_entries; i++) free_entry(c->entries[i]);
    for (int i = 0; i < c->n_stores; i++) free_store(c->stores[i]);
    for (int i = 0; i < c->n_given; i++) free(c->roots[i]), free(c->given[i]);
    free_problems(c->problems, c->n_problems);
    free_problems(c->found, c->n_found);
    free_problems(c->away, c->n_away);
    free(c->gone);
    free(c->entries);
    free(c->stores);
    free(c->roots);
    free(c->given);
    pthread_rwlock_destroy(&c->lock);
    free(c);
}

/* ---- paths */

static bool is_below(const char *path, const char *root)
{
    const size_t n = strlen(root);
    return strncmp(path, root, n) == 0 && (path[n] == '\0' || path[n] == '/' || (n && root[n - 1] == '/'));
}

bool rws_catalogue_holds(const rws_catalogue *c, const char *path)
{
    char *real = realpath(path, NULL);
    bool  inside = false;
    for (int i = 0; i < c->n_given && real && !inside; i++) inside = is_below(real, c->roots[i]);
    free(real);
    return inside;
}

static bool exists(const char *path)
{
    struct stat about;
    return path && stat(path, &about) == 0;
}

static bool has(const char *folder, const char *name)
{
    char      *path = rws_file_join(folder, name);
    const bool there = exists(path);
    free(path);
    return there;
}

rws_status rws_catalogue_new(const char *const *paths, int n, rws_catalogue **out, rws_error *err)
{
    rws_catalogue *c = calloc(1, sizeof *c);
    *out = NULL;
    if (c) c->roots = calloc((size_t)n + 1, sizeof *c->roots), c->given = calloc((size_t)n + 1, sizeof *c->given);
    if (!c || !c->roots || !c->given) {
        if (c) free(c->roots), free(c->given);
        free(c);
        return rws_no_memory(err, "a catalogue of runs");
    }
    pthread_rwlock_init(&c->lock, NULL);
    rws_store_patience(PATIENCE);
    gethostname(c->host, sizeof c->host - 1);
    for (int i = 0; i < n; i++) {
        struct stat about;
        char       *real = realpath(paths[i], NULL), *root = real ? strdup(real) : NULL;
        const bool  there = root && stat(real, &about) == 0;
        if (there && !S_ISDIR(about.st_mode) && strrchr(root, '/')) *strrchr(root, '/') = '\0';
        c->given[c->n_given] = real;
        c->roots[c->n_given++] = root;
        if (there) continue;
        rws_fail(err, RWS_BAD_INPUT, "Cannot read \"%s\": %s.", rws_quote(paths[i]).text, strerror(errno));
        rws_catalogue_free(c);
        return RWS_BAD_INPUT;
    }
    *out = c;
    return RWS_OK;
}

static void complain(rws_catalogue *c, const char *path, const char *sentence)
{
    rws_problem *longer = realloc(c->found, ((size_t)c->n_found + 1) * sizeof *longer);
    if (!longer) return;
    c->found = longer;
    rws_problem p = {strdup(path), strdup(sentence)};
    if (p.path && p.sentence) c->found[c->n_found++] = p;
    else free(p.path), free(p.sentence);
}

/* ---- which stores there are. All functions below until rws_catalogue_refresh run on its thread only. */

static void find_store(rws_catalogue *c, const char *path, const char *only)
{
    for (int i = 0; i < c->n_stores; i++) {
        store *s = c->stores[i];
        if (strcmp(s->path, path) != 0 || (s->only && (!only || strcmp(s->only, only) != 0))) continue;
        s->present = true;
        return;
    }
    store *s = calloc(1, sizeof *s);
    if (!s || !make_room(&c->stores, c->n_stores, &c->room_stores, sizeof *c->stores)) {
        free(s);
        return;
    }
    *s = (store){.path = strdup(path), .only = only ? strdup(only) : NULL, .present = true};
    if (s->path) c->stores[c->n_stores++] = s;
    else free_store(s);
}

/* The store of a folder, or those of the folders in it. */
static void search(rws_catalogue *c, const char *folder, int depth, int *n_folders)
{
    char *path = rws_file_join(folder, "metrics.sqlite"), *real = path && exists(path) ? realpath(path, NULL) : NULL;
    const bool there = real && rws_catalogue_holds(c, real);
    if (there) find_store(c, real, NULL);
    free(real);
    free(path);
    if (there || depth == DEEPEST || ++*n_folders > MOST_FOLDERS) return;
    DIR *list = opendir(folder);
    for (struct dirent *item; list && (item = readdir(list));) {
        if (item->d_name[0] == '.' || (item->d_type != DT_DIR && item->d_type != DT_LNK && item->d_type != DT_UNKNOWN))
            continue;
        char       *inner = rws_file_join(folder, item->d_name);
        struct stat about;
        const bool  is_folder = inner && stat(inner, &about) == 0 && S_ISDIR(about.st_mode);
        if (is_folder && rws_catalogue_holds(c, inner)) search(c, inner, depth + 1, n_folders);
        else if (is_folder)
            complain(c, inner, "The link leads out of the folders that are served, and is not followed.");
        free(inner);
    }
    if (list) closedir(list);
}

/* A given path: a store, a folder, or the folder of one run of a sweep, whose store is in the folder above. */
static void look_at(rws_catalogue *c, const char *given, int *n_folders)
{
    struct stat about;
    if (stat(given, &about) != 0) {
        complain(c, given, "The folder is not there any more.");
        return;
    }
    if (!S_ISDIR(about.st_mode)) {
        find_store(c, given, NULL);
        return;
    }
    const char *slash = strrchr(given, '/');
    char       *above = slash && slash > given ? strndup(given, (size_t)(slash - given)) : NULL;
    char       *shared = rws_file_join(above, "metrics.sqlite");
    if (has(given, "config.json") && !has(given, "metrics.sqlite") && exists(shared)) find_store(c, shared, slash + 1);
    else search(c, given, 0, n_folders);
    free(shared);
    free(above);
}

/* ---- what a store says */

static void make_id(const char *store, const char *name, char id[static RWS_RUN_ID + 1])
{
    uint64_t hash = 14695981039346656037u; /* FNV-1a; the zero byte between the two texts counts */
    for (const char *const texts[] = {store, name}, *const *t = texts; t < texts + 2; t++) {
        for (const char *at = *t; *at; at++) hash = (hash ^ (unsigned char)*at) * 1099511628211u;
        hash *= 1099511628211u;
    }
    snprintf(id, RWS_RUN_ID + 1, "%016llx", (unsigned long long)hash);
}

static entry *find_entry(const rws_catalogue *c, const char *id)
{
    for (int i = 0; i < c->n_entries; i++)
        if (strcmp(c->entries[i]->public.id, id) == 0) return c->entries[i];
    return NULL;
}

/* A row of the table runs; texts are copies. */
typedef struct {
    char    *name, *config, *host, *version, *started, *failure;
    uint64_t iteration;
    double   seconds;
} head;

static void release_head(head *h)
{
    char *const texts[] = {h->name, h->config, h->host, h->version, h->started, h->failure};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) free(texts[i]);
}

typedef struct {
    head *list;
    int   n, room;
} heads;

static char *column_text(sqlite3_stmt *s, int column)
{
    const char *text = (const char *)sqlite3_column_text(s, column);
    return text ? strdup(text) : NULL;
}

static int read_heads(sqlite3 *db, const char *only, heads *out)
{
    static const char sql[] = "SELECT runs.run, config, host, version, started, sentence, runs.iteration, seconds"
                              " FROM runs LEFT JOIN failures ON runs.run = failures.run"
                              " WHERE ?1 IS NULL OR runs.run = ?1";
    sqlite3_stmt     *s = NULL;
    int               code = sqlite3_prepare_v2(db, sql, -1, &s, NULL);
    if (!code) code = sqlite3_bind_text(s, 1, only, -1, SQLITE_STATIC);
    while (!code && (code = sqlite3_step(s)) == SQLITE_ROW) {
        code = make_room(&out->list, out->n, &out->room, sizeof *out->list) ? SQLITE_OK : SQLITE_NOMEM;
        if (code) break;
        head *h = &out->list[out->n++];
        *h = (head){.iteration = (uint64_t)sqlite3_column_int64(s, 6), .seconds = sqlite3_column_double(s, 7)};
        char **const texts[] = {&h->name, &h->config, &h->host, &h->version, &h->started, &h->failure};
        for (int i = 0; i < 6; i++) *texts[i] = column_text(s, i);
        if (!h->name) h->name = strdup("");
        if (!h->name) code = SQLITE_NOMEM;
    }
    sqlite3_finalize(s);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

/* New rows of a run. */
typedef struct {
    char   name[64]; /* a longer name is cut off */
    double iteration, seconds, value;
} row;

typedef struct {
    row *list;
    int  n, room;
} rows;

static double number_at(sqlite3_stmt *s, int column)
{
    return sqlite3_column_type(s, column) == SQLITE_NULL ? NAN : sqlite3_column_double(s, column);
}

/* In the order of the primary key, so that SQLite need not sort. */
static int read_rows(sqlite3 *db, const char *run, double from, rows *out)
{
    static const char sql[] = "SELECT name, iteration, seconds, value FROM metrics WHERE run = ?1 AND iteration >= ?2"
                              " ORDER BY run, iteration, name";
    sqlite3_stmt     *s = NULL;
    int               code = sqlite3_prepare_v2(db, sql, -1, &s, NULL);
    if (!code) code = sqlite3_bind_text(s, 1, run, -1, SQLITE_STATIC);
    if (!code) code = sqlite3_bind_int64(s, 2, (sqlite3_int64)from);
    while (!code && (code = sqlite3_step(s)) == SQLITE_ROW) {
        code = make_room(&out->list, out->n, &out->room, sizeof *out->list) ? SQLITE_OK : SQLITE_NOMEM;
        if (code) break;
        const char *name = (const char *)sqlite3_column_text(s, 0);
        row        *r = &out->list[out->n++];
        *r = (row){.iteration = number_at(s, 1), .seconds = number_at(s, 2), .value = number_at(s, 3)};
        snprintf(r->name, sizeof r->name, "%s", name ? name : "");
    }
    sqlite3_finalize(s);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

static int count_shown(sqlite3 *db, const char *run, int *n)
{
    sqlite3_stmt *s = NULL;
    int           code = sqlite3_prepare_v2(db, "SELECT count(*) FROM snapshots WHERE run = ?1", -1, &s, NULL);
    if (!code) code = sqlite3_bind_text(s, 1, run, -1, SQLITE_STATIC);
    if (!code && sqlite3_step(s) == SQLITE_ROW) *n = sqlite3_column_int(s, 0);
    sqlite3_finalize(s);
    return code;
}

/* Snapshots, read into lists of the entry's own. */
typedef struct {
    rws_shot *list;
    int       n, room;
    int       room_now; /* of the last one's numbers */
} shots;

static bool add_shown(shots *out, const char *name, uint64_t iteration, const char *label, double value)
{
    rws_shot *now = out->n ? &out->list[out->n - 1] : NULL;
    if (!now || now->iteration != iteration || strcmp(now->name, name) != 0) {
        if (!make_room(&out->list, out->n, &out->room, sizeof *out->list)) return false;
        now = &out->list[out->n];
        *now = (rws_shot){.name = strdup(name), .iteration = iteration};
        if (!now->name) return false;
        out->n++;
        out->room_now = 0;
    }
    int room = out->room_now;
    if (!make_room(&now->values, now->n, &room, sizeof *now->values)) return false;
    if (!make_room(&now->labels, now->n, &out->room_now, sizeof *now->labels)) return false;
    ((double *)now->values)[now->n] = value;
    ((const char **)now->labels)[now->n++] = label ? strdup(label) : NULL;
    return true;
}

static int read_shots(sqlite3 *db, const char *run, shots *out)
{
    static const char sql[] = "SELECT name, iteration, label, value FROM snapshots WHERE run = ?1"
                              " ORDER BY name, iteration, place";
    sqlite3_stmt     *s = NULL;
    int               code = sqlite3_prepare_v2(db, sql, -1, &s, NULL);
    if (!code) code = sqlite3_bind_text(s, 1, run, -1, SQLITE_STATIC);
    while (!code && (code = sqlite3_step(s)) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(s, 0);
        const bool  added = add_shown(out, name ? name : "", (uint64_t)sqlite3_column_int64(s, 1),
                                      (const char *)sqlite3_column_text(s, 2), number_at(s, 3));
        code = added ? SQLITE_OK : SQLITE_NOMEM;
    }
    sqlite3_finalize(s);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

/* ---- from a store into the catalogue, under the lock */

static int by_name(const void *a, const void *b)
{
    const entry *const *x = a, *const *y = b;
    const int           order = strverscmp((*x)->public.result.name, (*y)->public.result.name);
    return order ? order : strcmp((*x)->store, (*y)->store);
}

/* The place of the metric among the entry's, which is made if it is new. NULL without memory. `guess` is where it was for
 * the last evaluation. */
static series *find_series(entry *e, const char *name, int guess)
{
    if (guess < e->n_series && strcmp(e->series[guess].name, name) == 0) return &e->series[guess];
    int at = 0;
    while (at < e->n_series && strcmp(e->series[at].name, name) < 0) at++;
    if (at < e->n_series && strcmp(e->series[at].name, name) == 0) return &e->series[at];
    series *longer = realloc(e->series, ((size_t)e->n_series + 1) * sizeof *longer);
    if (longer) e->series = longer;
    rws_history *seen = longer ? realloc(e->histories, ((size_t)e->n_series + 1) * sizeof *seen) : NULL;
    char        *copy = seen ? strdup(name) : NULL;
    if (seen) e->histories = seen;
    if (!copy) return NULL;
    memmove(longer + at + 1, longer + at, (size_t)(e->n_series - at) * sizeof *longer);
    longer[at] = (series){.name = copy};
    e->n_series++;
    return &longer[at];
}

static bool add_point(series *s, const row *r)
{
    while (s->n && s->iterations[s->n - 1] >= r->iteration) s->n--; /* measured again */
    if (s->n == s->room) {
        const int room = 2 * s->room + 32;
        double  **arrays[] = {&s->iterations, &s->seconds, &s->values};
        for (int i = 0; i < 3; i++) {
            double *longer = realloc(*arrays[i], (size_t)room * sizeof *longer);
            if (!longer) return false;
            *arrays[i] = longer;
        }
        s->room = room;
    }
    s->iterations[s->n] = r->iteration;
    s->seconds[s->n] = r->seconds;
    s->values[s->n++] = r->value;
    return true;
}

static void add_rows(entry *e, const rows *new)
{
    int at = -1;
    for (int i = 0; i < new->n; i++) {
        series *s = find_series(e, new->list[i].name, at + 1 < e->n_series ? at + 1 : 0);
        if (!s || !add_point(s, &new->list[i])) break;
        at = (int)(s - e->series);
    }
    for (int i = 0; i < e->n_series; i++) {
        const series *s = &e->series[i];
        e->histories[i] = (rws_history){s->name, s->n, s->iterations, s->seconds, s->values};
    }
    e->public.result.histories = e->histories;
    e->public.result.n_histories = e->n_series;
}

static char *value_text(const json_t *value)
{
    char text[64];
    if (json_is_string(value)) return strdup(json_string_value(value));
    if (json_is_integer(value)) snprintf(text, sizeof text, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value)) snprintf(text, sizeof text, "%.15g", json_real_value(value));
    else snprintf(text, sizeof text, "%s", json_is_true(value) ? "true" : "false");
    return strdup(text);
}

static void set_keys(rws_result *r, const char *config)
{
    json_error_t    why;
    bool            starved;
    json_t         *document = config ? rws_json_load(config, strlen(config), 0, &why, &starved) : NULL;
    json_t         *settings = json_object_get(document, "settings");
    json_t *const   objects[] = {document, settings};
    rws_result_key *keys = calloc(json_object_size(document) + json_object_size(settings) + 1, sizeof *keys);
    free_keys(r);
    for (int i = 0; i < 2 && keys; i++)
        for (void *at = json_object_iter(objects[i]); at; at = json_object_iter_next(objects[i], at)) {
            const char   *key = json_object_iter_key(at);
            const json_t *value = json_object_iter_value(at);
            const bool    about = i == 0 && (strcmp(key, "format") == 0 || strcmp(key, "version") == 0);
            if (about || json_is_object(value) || json_is_array(value)) continue;
            rws_result_key k = {strdup(key), value_text(value)};
            if (k.key && k.value) keys[r->n_keys++] = k;
            else free((char *)k.key), free((char *)k.value);
        }
    r->keys = keys;
    json_decref(document);
    const char *iterations = rws_result_get(r, "iterations");
    r->iterations = iterations ? strtoull(iterations, NULL, 10) : 0;
}

/* The folder of a run: the store's own, or the one beside the store that has the run's name. */
static char *folder_of(const rws_catalogue *c, const char *store_path, const char *run)
{
    const char *slash = strrchr(store_path, '/');
    if (!slash || strcmp(slash + 1, "metrics.sqlite") != 0) return NULL;
    char *folder = strndup(store_path, slash == store_path ? 1 : (size_t)(slash - store_path));
    if (folder && has(folder, "config.json")) return folder;
    char *inner = run[0] && run[0] != '.' && !strchr(run, '/') ? rws_file_join(folder, run) : NULL;
    free(folder);
    if (inner && has(inner, "config.json") && rws_catalogue_holds(c, inner)) return inner;
    free(inner);
    return NULL;
}

static void take_head(entry *e, const head *h)
{
    rws_result *r = &e->public.result;
    replace(&r->host, h->host);
    replace(&r->version, h->version);
    replace(&r->started, h->started);
    replace(&r->failure, h->failure);
    r->iteration = h->iteration;
    r->seconds = h->seconds;
    set_keys(r, h->config);
}

static entry *new_entry(rws_catalogue *c, const store *s, const head *h, const char *id)
{
    entry *e = calloc(1, sizeof *e);
    if (!e || !make_room(&c->entries, c->n_entries, &c->room_entries, sizeof *c->entries)) {
        free(e);
        return NULL;
    }
    memcpy(e->public.id, id, sizeof e->public.id);
    e->store = strdup(s->path);
    e->folder = folder_of(c, s->path, h->name);
    e->public.folder = e->folder;
    e->public.state = "stopped";
    e->public.result.name = strdup(h->name);
    e->public.result.store = e->store;
    if (!e->store || !e->public.result.name) {
        free_entry(e);
        return NULL;
    }
    c->entries[c->n_entries++] = e;
    return e;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* Reads what is new of a run, in one transaction, and takes it over. Returns an SQLite result code. */
static int update_run(rws_catalogue *c, const store *s, sqlite3 *db, const head *h)
{
    char id[RWS_RUN_ID + 1];
    make_id(s->path, h->name, id);
    entry            *e = find_entry(c, id);
    const rws_result *r = e ? &e->public.result : NULL;
    const bool        again = e && (h->iteration < r->iteration || !same_text(h->started, r->started));
    const bool        moved = !e || again || h->iteration != r->iteration || !same_text(h->failure, r->failure);
    if (e) e->present = true;
    if (!moved && rws_clock_now() - e->changed > SETTLED) return SQLITE_OK;
    rows new = {0};
    shots  seen = {0};
    int    n_shown = 0;
    double last = -1;
    for (int i = 0; e && i < e->n_series && !again; i++)
        if (e->series[i].n) last = fmax(last, e->series[i].iterations[e->series[i].n - 1]);
    int code = sqlite3_exec(db, "BEGIN", NULL, NULL, NULL);
    if (!code) code = read_rows(db, h->name, last, &new);
    if (!code) code = count_shown(db, h->name, &n_shown);
    if (!code && n_shown != (e ? e->n_shown : 0)) code = read_shots(db, h->name, &seen);
    sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    const bool news = moved || n_shown != e->n_shown || new.n > e->n_series; /* more than the last evaluation again */
    pthread_rwlock_wrlock(&c->lock);
    if (!code && !e) e = new_entry(c, s, h, id);
    if (!code && e && news) {
        take_head(e, h);
        if (again) free_series(e);
        add_rows(e, &new);
        if (seen.n || n_shown == 0) {
            free_shots(e);
            e->shots = seen.list;
            e->public.result.shots = e->shots;
            e->public.result.n_shots = seen.n;
            e->n_shown = n_shown;
            seen = (shots){0};
        }
        e->changed = rws_clock_now();
        e->public.serial = c->serial + 1;
        e->present = true;
    }
    pthread_rwlock_unlock(&c->lock);
    entry leftover = {.shots = seen.list, .public.result.n_shots = seen.n};
    free_shots(&leftover);
    free(new.list);
    return code;
}

static double calendar(struct timespec t)
{
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool is_same(const store *s, const struct stat *is)
{
    return s->inode == is->st_ino && s->size == is->st_size && s->time.tv_sec == is->st_mtim.tv_sec &&
           s->time.tv_nsec == is->st_mtim.tv_nsec;
}

/* Entries of a store that was not read are still there. */
static void keep_entries(rws_catalogue *c, const store *s)
{
    for (int i = 0; i < c->n_entries; i++)
        if (strcmp(c->entries[i]->store, s->path) == 0) c->entries[i]->present = true;
}

static void update_store(rws_catalogue *c, store *s)
{
    struct stat is;
    rws_error   err = {""};
    heads       list = {0};
    sqlite3    *db = NULL;
    int         format = 0;
    if (stat(s->path, &is) != 0) return;
    if (is_same(s, &is) && !s->fresh && !s->failed) {
        keep_entries(c, s);
        return;
    }
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    s->inode = is.st_ino, s->size = is.st_size, s->time = is.st_mtim;
    s->fresh = calendar(now) - calendar(is.st_mtim) < TICK;
    int code = rws_store_open(s->path, rws_store_reader_flags(s->path), &db);
    if (!code) code = rws_store_check_format(db, &format);
    if (!code && format > 0) code = read_heads(db, s->only, &list);
    for (int i = 0; i < list.n && !code; i++) code = update_run(c, s, db, &list.list[i]);
    s->failed = code != 0;
    if (code) {
        rws_store_explain(db, s->path, "read", code, &err);
        complain(c, s->path, err.text);
        keep_entries(c, s);
    } else if (format == 0 && is.st_size > 0) complain(c, s->path, "The file is not a store of runs.");
    for (int i = 0; i < c->n_entries; i++)
        if (strcmp(c->entries[i]->store, s->path) == 0) c->entries[i]->store_time = calendar(is.st_mtim);
    for (int i = 0; i < list.n; i++) release_head(&list.list[i]);
    free(list.list);
    sqlite3_close(db);
}

/* ---- who trains. A trainer holds a lock on its folder (run/checkpoint.c). Trying the lock could turn away a trainer that
 * starts at that moment, so the kernel's list is read instead. */

typedef struct {
    ino_t *list;
    int    n, room;
} inodes;

static void read_locks(inodes *out)
{
    FILE         *file = fopen("/proc/locks", "re");
    char          line[256];
    unsigned long inode;
    while (file && fgets(line, sizeof line, file)) {
        if (!strstr(line, " FLOCK ") || sscanf(line, "%*s %*s %*s %*s %*s %*x:%*x:%lu", &inode) != 1) continue;
        if (!make_room(&out->list, out->n, &out->room, sizeof *out->list)) break;
        out->list[out->n++] = (ino_t)inode;
    }
    if (file) fclose(file);
}

static bool is_locked(const inodes *locks, const char *folder)
{
    struct stat is;
    if (!folder || stat(folder, &is) != 0) return false;
    for (int i = 0; i < locks->n; i++)
        if (locks->list[i] == is.st_ino) return true;
    return false;
}

/* A run of another machine counts as training for two minutes after its store was written. */
static const char *state_of(const rws_catalogue *c, const entry *e, const inodes *locks)
{
    const rws_result *r = &e->public.result;
    const char       *state = rws_result_state(r);
    struct timespec   now;
    if (strcmp(state, "unfinished") != 0) return state;
    clock_gettime(CLOCK_REALTIME, &now);
    const bool elsewhere = r->host && strcmp(r->host, c->host) != 0 && calendar(now) - e->store_time < 120;
    return elsewhere || is_locked(locks, e->folder) ? "training" : "stopped";
}

static bool update_states(rws_catalogue *c)
{
    inodes locks = {0};
    bool   changed = false;
    read_locks(&locks);
    for (int i = 0; i < c->n_entries; i++) {
        entry      *e = c->entries[i];
        const char *state = state_of(c, e, &locks);
        if (e->public.state == state || strcmp(e->public.state, state) == 0) continue;
        pthread_rwlock_wrlock(&c->lock);
        e->public.state = state;
        e->public.serial = c->serial + 1;
        pthread_rwlock_unlock(&c->lock);
        changed = true;
    }
    free(locks.list);
    return changed;
}

/* ---- refreshing */

static void forget_stores(rws_catalogue *c)
{
    int n = 0;
    for (int i = 0; i < c->n_stores; i++) {
        if (c->stores[i]->present) c->stores[n++] = c->stores[i];
        else free_store(c->stores[i]);
    }
    c->n_stores = n;
}

static bool forget_entries(rws_catalogue *c)
{
    int n = 0, n_gone = 0;
    for (int i = 0; i < c->n_entries; i++) n_gone += !c->entries[i]->present;
    free(c->gone);
    c->gone = n_gone ? calloc((size_t)n_gone, sizeof *c->gone) : NULL;
    c->n_gone = 0;
    for (int i = 0; i < c->n_entries; i++) {
        entry *e = c->entries[i];
        if (e->present) {
            c->entries[n++] = e;
            continue;
        }
        if (c->gone) memcpy(c->gone[c->n_gone++], e->public.id, sizeof e->public.id);
        free_entry(e);
    }
    c->n_entries = n;
    return n_gone > 0;
}

/* Puts the problems that were found in the place of the old ones; true if they differ. */
static bool take_problems(rws_catalogue *c)
{
    bool same = c->n_found == c->n_problems;
    for (int i = 0; i < c->n_found && same; i++) same = strcmp(c->found[i].sentence, c->problems[i].sentence) == 0;
    free_problems(c->problems, c->n_problems);
    c->problems = c->found;
    c->n_problems = c->n_found;
    c->found = NULL;
    c->n_found = 0;
    return !same;
}

/* Searches the folders for stores; where there are many folders, only now and then, and between the searches the stores are
 * those of the last one that are still there. */
static void find_stores(rws_catalogue *c)
{
    int  n_folders = 0;
    bool gone = false;
    for (int i = 0; i < c->n_stores; i++) gone |= !exists(c->stores[i]->path);
    if (c->pause > 0 && !gone) {
        c->pause--;
        for (int i = 0; i < c->n_away; i++) complain(c, c->away[i].path, c->away[i].sentence);
        return;
    }
    for (int i = 0; i < c->n_stores; i++) c->stores[i]->present = false;
    for (int i = 0; i < c->n_given; i++) look_at(c, c->given[i], &n_folders);
    forget_stores(c);
    c->pause = n_folders / FOLDERS_AT_ONCE;
    free_problems(c->away, c->n_away);
    c->away = calloc((size_t)c->n_found + 1, sizeof *c->away);
    c->n_away = 0;
    for (int i = 0; i < c->n_found && c->away; i++) {
        const rws_problem copy = {strdup(c->found[i].path), strdup(c->found[i].sentence)};
        if (copy.path && copy.sentence) c->away[c->n_away++] = copy;
        else free(copy.path), free(copy.sentence);
    }
}

bool rws_catalogue_refresh(rws_catalogue *c)
{
    for (int i = 0; i < c->n_entries; i++) c->entries[i]->present = false;
    find_stores(c);
    for (int i = 0; i < c->n_stores; i++) update_store(c, c->stores[i]);
    bool changed = update_states(c);
    pthread_rwlock_wrlock(&c->lock);
    changed |= forget_entries(c);
    changed |= take_problems(c);
    for (int i = 0; i < c->n_entries; i++) changed |= c->entries[i]->public.serial > c->serial;
    if (changed) c->serial++;
    if (changed && c->n_entries) qsort(c->entries, (size_t)c->n_entries, sizeof *c->entries, by_name);
    pthread_rwlock_unlock(&c->lock);
    return changed;
}

/* ---- looking */

void rws_catalogue_read(rws_catalogue *c)
{
    pthread_rwlock_rdlock(&c->lock);
}

void rws_catalogue_done(rws_catalogue *c)
{
    pthread_rwlock_unlock(&c->lock);
}

uint64_t rws_catalogue_serial(const rws_catalogue *c)
{
    return c->serial;
}

int rws_catalogue_n(const rws_catalogue *c)
{
    return c->n_entries;
}

const rws_listed *rws_catalogue_at(const rws_catalogue *c, int i)
{
    return &c->entries[i]->public;
}

const rws_listed *rws_catalogue_find(const rws_catalogue *c, const char *id)
{
    const entry *e = find_entry(c, id);
    return e ? &e->public : NULL;
}

const rws_problem *rws_catalogue_problem(const rws_catalogue *c, int i)
{
    return i < c->n_problems ? &c->problems[i] : NULL;
}

const char *rws_catalogue_gone(const rws_catalogue *c, int i)
{
    return i < c->n_gone ? c->gone[i] : NULL;
}
