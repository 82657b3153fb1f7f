#include "serve/catalogue.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/quote.h"
#include "store/held.h"
#include "results/growing.h"
#include "store/checksum.h"

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

enum { DEEPEST = 3, MAX_FOLDERS = 20000, FOLDERS_AT_ONCE = 200, PATIENCE = 2000 /* ms for a locked store */ };
#define SETTLED 3600.0 /* seconds after which a run that has not changed gets no more measures */
#define TICK 0.1       /* seconds by which two changes of a file may have the same time */

/* A run: the memory behind an rws_catalogue_run. Without memory a point is left out until the store is read again. */
typedef struct {
    rws_catalogue_run public;
    rws_growing       run;
    char             *store; /* path */
    char             *folder;
    int               n_shown;    /* numbers in all snapshots */
    rws_checksum_seen seen;       /* rows that were checked */
    double            changed;    /* when something was new */
    bool              present;    /* found by the refresh that is running */
    time_t            store_time; /* when the store was written last */
} rws_entry;

typedef struct {
    char           *path, *only; /* only: the one run that is wanted; NULL: all */
    struct timespec time;
    off_t           size;
    ino_t           inode;
    bool            present, fresh; /* fresh: so young at the last look that a later change may have the same time */
    bool            failed;
} store;

typedef struct {
    rws_problem *list;
    int          n;
} problems;

struct rws_catalogue {
    pthread_rwlock_t lock;
    char           **roots; /* real paths: a given folder, or the folder of a given file */
    char           **given; /* real paths as given */
    int              n_given;
    store          **stores;
    int              n_stores, capacity_stores;
    rws_entry      **entries; /* sorted by name */
    int              n_entries, capacity_entries;
    problems         known;
    problems         found; /* by the refresh that is running */
    problems         away;  /* found by the last search of the folders */
    int              pause; /* refreshes until the next search */
    char (*gone)[RWS_RUN_ID + 1];
    int      n_gone;
    uint64_t serial;
};

/* ---- memory. Without memory a run is left out until the next refresh. */

static void free_store(store *s)
{
    free(s->path);
    free(s->only);
    free(s);
}

static void free_entry(rws_entry *e)
{
    rws__growing_release(&e->run);
    free((char *)e->public.result.name);
    free(e->store);
    free(e->folder);
    free(e);
}

static void release_problems(problems *p)
{
    for (int i = 0; i < p->n; i++) free(p->list[i].path), free(p->list[i].message);
    free(p->list);
    *p = (problems){0};
}

static void add_problem(problems *p, const char *path, const char *message)
{
    rws_problem *longer = realloc(p->list, ((size_t)p->n + 1) * sizeof *longer);
    if (!longer) return;
    p->list = longer;
    const rws_problem new = {strdup(path), strdup(message)};
    if (new.path &&new.message) p->list[p->n++] = new;
    else free(new.path), free(new.message);
}

void rws__catalogue_free(rws_catalogue *c)
{
    if (!c) return;
    for (int i = 0; i < c->n_entries; i++) free_entry(c->entries[i]);
    for (int i = 0; i < c->n_stores; i++) free_store(c->stores[i]);
    for (int i = 0; i < c->n_given; i++) free(c->roots[i]), free(c->given[i]);
    release_problems(&c->known);
    release_problems(&c->found);
    release_problems(&c->away);
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

bool rws__catalogue_holds(const rws_catalogue *c, const char *path)
{
    char *real = realpath(path, NULL);
    bool  inside = false;
    for (int i = 0; i < c->n_given && real && !inside; i++) inside = is_below(real, c->roots[i]);
    free(real);
    return inside;
}

static bool has(const char *folder, const char *name)
{
    char      *path = rws__file_join(folder, name);
    const bool there = rws__file_leads(path);
    free(path);
    return there;
}

/* Requests that follow each other closely would keep a refresh waiting for ever, unless new readers wait for the writer. */
static void init_lock(pthread_rwlock_t *lock)
{
    pthread_rwlockattr_t kind;
    pthread_rwlockattr_init(&kind);
#ifdef __GLIBC__
    pthread_rwlockattr_setkind_np(&kind, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
#endif
    pthread_rwlock_init(lock, &kind);
    pthread_rwlockattr_destroy(&kind);
}

/* Refuses a given file that cannot become a store, such as an exported one. */
static rws_status check_file(const char *path, rws_error *err)
{
    sqlite3 *db = NULL;
    int      format, code = rws__store_open(path, false, &db);
    if (!code) code = rws__store_check(db, &format);
    rws_status status = RWS_OK;
    if ((code & 0xff) == SQLITE_INTERRUPT) rws__store_remember_slow(path);
    if (code == SQLITE_NOTADB)
        status =
            rws_fail(err, RWS_BAD_INPUT, "\"%s\" is not a store of runs: name a metrics.sqlite, or the folder of runs.",
                     rws__quote(path).text);
    sqlite3_close(db);
    return status;
}

rws_status rws__catalogue_new(const char *const *paths, int n, rws_catalogue **out, rws_error *err)
{
    rws_catalogue *c = calloc(1, sizeof *c);
    *out = NULL;
    if (c) c->roots = calloc((size_t)n + 1, sizeof *c->roots), c->given = calloc((size_t)n + 1, sizeof *c->given);
    if (!c || !c->roots || !c->given) {
        if (c) free(c->roots), free(c->given);
        free(c);
        return rws_no_memory(err, "a catalogue of runs");
    }
    init_lock(&c->lock);
    rws__store_patience(PATIENCE);
    for (int i = 0; i < n; i++) {
        struct stat about;
        char       *real = realpath(paths[i], NULL), *root = real ? strdup(real) : NULL;
        const bool  there = root && stat(real, &about) == 0;
        if (there && !S_ISDIR(about.st_mode) && strrchr(root, '/')) *strrchr(root, '/') = '\0';
        c->given[c->n_given] = real;
        c->roots[c->n_given++] = root;
        if (!there) rws_fail(err, RWS_BAD_INPUT, "Cannot read \"%s\": %s.", rws__quote(paths[i]).text, strerror(errno));
        else if (S_ISDIR(about.st_mode) || check_file(paths[i], err) == RWS_OK) continue;
        rws__catalogue_free(c);
        return RWS_BAD_INPUT;
    }
    *out = c;
    return RWS_OK;
}

/* ---- which stores there are. All functions below until rws__catalogue_refresh run on its thread only. */

static void find_store(rws_catalogue *c, const char *path, const char *only)
{
    for (int i = 0; i < c->n_stores; i++) {
        store *s = c->stores[i];
        if (strcmp(s->path, path) != 0 || (s->only && (!only || strcmp(s->only, only) != 0))) continue;
        s->present = true;
        return;
    }
    store *s = calloc(1, sizeof *s);
    if (!s || !rws__list_grow(&c->stores, c->n_stores, &c->capacity_stores, sizeof *c->stores)) {
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
    char *path = rws__file_join(folder, "metrics.sqlite"),
         *real = path && rws__file_leads(path) ? realpath(path, NULL) : NULL;
    const bool there = real && rws__catalogue_holds(c, real);
    if (there) find_store(c, real, NULL);
    free(real);
    free(path);
    if (there || depth == DEEPEST || ++*n_folders > MAX_FOLDERS) return;
    DIR *list = opendir(folder);
    for (struct dirent *item; list && (item = readdir(list));) {
        if (item->d_name[0] == '.' || (item->d_type != DT_DIR && item->d_type != DT_LNK && item->d_type != DT_UNKNOWN))
            continue;
        char       *inner = rws__file_join(folder, item->d_name);
        struct stat about;
        const bool  is_folder = inner && stat(inner, &about) == 0 && S_ISDIR(about.st_mode);
        if (is_folder && rws__catalogue_holds(c, inner)) search(c, inner, depth + 1, n_folders);
        else if (is_folder)
            add_problem(&c->found, inner, "The link leads out of the folders that are served, and is not followed.");
        free(inner);
    }
    if (list) closedir(list);
}

/* A given path: a store, a folder, or the folder of one run of a sweep, whose store is in the folder above. */
static void find_stores_at(rws_catalogue *c, const char *given, int *n_folders)
{
    struct stat about;
    if (stat(given, &about) != 0) {
        add_problem(&c->found, given, "The folder is not there any more.");
        return;
    }
    if (!S_ISDIR(about.st_mode)) {
        find_store(c, given, NULL);
        return;
    }
    const char *slash = strrchr(given, '/');
    char       *above = slash && slash > given ? strndup(given, (size_t)(slash - given)) : NULL;
    char       *shared = rws__file_join(above, "metrics.sqlite");
    if (has(given, "config.json") && !has(given, "metrics.sqlite") && rws__file_leads(shared))
        find_store(c, shared, slash + 1);
    else search(c, given, 0, n_folders);
    free(shared);
    free(above);
}

/* ---- what a store says */

static void make_id(const char *store, const char *name, char id[static RWS_RUN_ID + 1])
{
    uint64_t hash = rws__hash(RWS_HASH_BEGIN, store, strlen(store) + 1); /* with the zero byte between the two texts */
    hash = rws__hash(hash, name, strlen(name) + 1);
    snprintf(id, RWS_RUN_ID + 1, "%016llx", (unsigned long long)hash);
}

static rws_entry *find_entry(const rws_catalogue *c, const char *id)
{
    for (int i = 0; i < c->n_entries; i++)
        if (strcmp(c->entries[i]->public.id, id) == 0) return c->entries[i];
    return NULL;
}

/* ---- from a store into the catalogue, under the lock */

static int by_name(const void *a, const void *b)
{
    const rws_entry *const *x = a, *const *y = b;
    const int               order = strverscmp((*x)->public.result.name, (*y)->public.result.name);
    return order ? order : strcmp((*x)->store, (*y)->store);
}

/* The folder of a run, if it is in the folders that are served. */
static char *folder_of(const rws_catalogue *c, const char *store_path, const char *run)
{
    char *folder = rws__store_folder(store_path, run);
    if (folder && rws__catalogue_holds(c, folder)) return folder;
    free(folder);
    return NULL;
}

/* Gives a run that failed before its first evaluation the configuration that is in its folder. False if there is none: the
 * run is left out. */
static bool complete(const rws_catalogue *c, const store *s, rws_head *h)
{
    rws_error ignored;
    if (!h->early) return true;
    char *folder = folder_of(c, s->path, h->name);
    if (folder && rws__store_folder_config(folder, &h->config, &ignored) != RWS_OK) h->config = NULL;
    free(folder);
    return h->config != NULL;
}

static rws_entry *new_entry(rws_catalogue *c, const store *s, const rws_head *h, const char *id)
{
    rws_entry *e = calloc(1, sizeof *e);
    if (!e || !rws__list_grow(&c->entries, c->n_entries, &c->capacity_entries, sizeof *c->entries)) {
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
    e->run.result = &e->public.result;
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

/* Whether the row of the run in the store's table `runs`, and its failure, are those that the entry has. A run that is
 * resumed with more iterations has another configuration long before its next evaluation. */
static bool same_head(const rws_entry *e, const rws_head *h)
{
    const rws_result *r = &e->public.result;
    return h->iteration == r->iteration && same_text(h->failure, r->failure) && same_text(h->config, e->run.config) &&
           same_text(h->host, r->host) && same_text(h->version, r->version);
}

/* The rows of a run that its store has and the catalogue lacks. */
typedef struct {
    rws_points        points;
    rws_shots         shots; /* all of them, if there is a new one */
    int               n_shown;
    bool              any, fits; /* any: something has changed; fits: its rows are those that were written */
    rws_checksum_seen seen;
} update;

/* Whether the entry lacks one of the points, or has another value in its place. The last evaluation is always read again. */
static bool lacks_points(const rws_entry *e, const rws_points *p)
{
    for (int i = 0; i < p->n; i++) {
        const rws_point *point = &p->list[i];
        bool             known = false;
        for (int k = 0; k < e->run.n_series && !known; k++) {
            const rws_series *s = &e->run.series[k];
            known = s->n && s->iterations[s->n - 1] == point->iteration &&
                    strcmp(s->name, p->names[point->name]) == 0 &&
                    memcmp(&s->values[s->n - 1], &point->value, sizeof point->value) == 0; /* NaN is like itself */
        }
        if (!known) return true;
    }
    return false;
}

/* Reads in one transaction. `again`: all rows are read, because the run has begun anew or was damaged. `moved`: the run is
 * new, or its row in `runs` has changed. Rows that are taken over are checked, if the store has checksums. Returns an
 * SQLite result code. */
static int read_update(sqlite3 *db, int format, const rws_head *h, const rws_entry *e, bool again, bool moved,
                       update *out)
{
    double last = -1;
    *out = (update){.fits = true, .seen = e && !again ? e->seen : (rws_checksum_seen){.iteration = -1}};
    for (int i = 0; e && i < e->run.n_series && !again; i++)
        if (e->run.series[i].n) last = fmax(last, e->run.series[i].iterations[e->run.series[i].n - 1]);
    int code = sqlite3_exec(db, "BEGIN", NULL, NULL, NULL);
    if (!code) code = rws__points_read(db, h->name, last, &out->points);
    if (!code) code = rws__shots_count(db, h->name, &out->n_shown);
    if (!code && (again || out->n_shown != (e ? e->n_shown : 0))) code = rws__shots_read(db, h->name, &out->shots);
    out->any = moved || out->n_shown != e->n_shown || lacks_points(e, &out->points);
    if (!code && out->any && format > 1) code = rws__checksum_follow(db, h->name, &out->seen, &out->fits);
    /* After a failure the transaction ends when the connection is closed, so that the connection still has the message. */
    if (!code) sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    return code;
}

/* Takes the update over into the entry. Called under the lock. */
static void take_update(const rws_catalogue *c, rws_entry *e, const rws_head *h, bool again, update *new)
{
    rws__growing_take_head(&e->run, h);
    if (again) rws__growing_free_series(&e->run);
    rws__growing_add(&e->run, &new->points);
    if (new->shots.n || new->n_shown == 0) {
        rws__growing_take_shots(&e->run, &new->shots);
        e->n_shown = new->n_shown;
    }
    e->seen = new->seen;
    e->public.damaged = !new->fits;
    e->changed = rws__clock_now();
    e->public.serial = c->serial + 1;
    e->present = true;
}

static void release_update(update *new)
{
    rws__shots_release(&new->shots);
    rws__points_release(&new->points);
}

/* Reads what is new of a run and takes it over. Returns an SQLite result code. */
static int update_run(rws_catalogue *c, const store *s, sqlite3 *db, int format, const rws_head *h)
{
    char id[RWS_RUN_ID + 1];
    make_id(s->path, h->name, id);
    rws_entry        *e = find_entry(c, id);
    const rws_result *r = e ? &e->public.result : NULL;
    const bool again = e && (e->public.damaged || h->iteration < r->iteration || !same_text(h->started, r->started));
    const bool moved = !e || again || !same_head(e, h);
    if (e) e->present = true;
    if (!moved && rws__clock_now() - e->changed > SETTLED) return SQLITE_OK;
    update new;
    int code = read_update(db, format, h, e, again, moved, &new);
    pthread_rwlock_wrlock(&c->lock);
    if (!code && !e && !(e = new_entry(c, s, h, id))) code = SQLITE_NOMEM;
    if (!code && e && new.any) take_update(c, e, h, again, &new);
    pthread_rwlock_unlock(&c->lock);
    release_update(&new);
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
static void mark_present(rws_catalogue *c, const store *s)
{
    for (int i = 0; i < c->n_entries; i++)
        if (strcmp(c->entries[i]->store, s->path) == 0) c->entries[i]->present = true;
}

static void note_alone(rws_catalogue *c, const char *path, bool alone)
{
    pthread_rwlock_wrlock(&c->lock);
    for (int i = 0; i < c->n_entries; i++)
        if (strcmp(c->entries[i]->store, path) == 0) c->entries[i]->public.alone = alone;
    pthread_rwlock_unlock(&c->lock);
}

static void update_store(rws_catalogue *c, store *s)
{
    struct stat is;
    rws_error   err = {""};
    rws_heads   list = {0};
    sqlite3    *db = NULL;
    int         format = 0;
    if (stat(s->path, &is) != 0) return;
    if (is_same(s, &is) && !s->fresh && !s->failed) {
        mark_present(c, s);
        return;
    }
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    s->inode = is.st_ino, s->size = is.st_size, s->time = is.st_mtim;
    s->fresh = calendar(now) - calendar(is.st_mtim) < TICK;
    int code = rws__store_open(s->path, false, &db);
    if (!code) code = rws__store_check(db, &format);
    if (!code && format > 0) code = rws__heads_read(db, s->only, &list);
    for (int i = 0; i < list.n && !code; i++)
        if (complete(c, s, &list.list[i])) code = update_run(c, s, db, format, &list.list[i]);
    s->failed = code != 0;
    if (code) {
        rws__store_explain(db, s->path, "read", code, &err);
        add_problem(&c->found, s->path, err.text);
        mark_present(c, s);
    } else if (format == 0 && is.st_size > 0) add_problem(&c->found, s->path, "The file is not a store of runs.");
    for (int i = 0; i < c->n_entries; i++)
        if (strcmp(c->entries[i]->store, s->path) == 0) c->entries[i]->store_time = is.st_mtim.tv_sec;
    if (!code) note_alone(c, s->path, list.n == 1);
    for (int i = 0; i < list.n; i++) rws__head_release(&list.list[i]);
    free(list.list);
    sqlite3_close(db);
}

/* Adds a problem for each store with a damaged run (its rows do not fit their checksums), with the message of `rws runs`. */
static void complain_of_damage(rws_catalogue *c)
{
    for (int i = 0; i < c->n_entries; i++) {
        const rws_entry *e = c->entries[i];
        rws_error        err;
        bool             named = !e->present || !e->public.damaged;
        int              n = 0;
        for (int k = 0; k < c->found.n && !named; k++) named = strcmp(c->found.list[k].path, e->store) == 0;
        if (named) continue;
        for (int k = i; k < c->n_entries; k++)
            n += c->entries[k]->present && c->entries[k]->public.damaged && strcmp(c->entries[k]->store, e->store) == 0;
        if (rws__store_has_locks(e->store)) rws__store_blame(e->store, e->public.result.name, n, &err);
        else rws__store_explain(NULL, e->store, "read", SQLITE_CORRUPT, &err); /* it may be being written */
        add_problem(&c->found, e->store, err.text);
    }
}

/* ---- runs that train */

static bool update_states(rws_catalogue *c)
{
    rws_held held = rws__held_read();
    bool     changed = false;
    for (int i = 0; i < c->n_entries; i++) {
        rws_entry  *e = c->entries[i];
        rws_result *r = &e->public.result;
        const char *state = rws_result_state(r);
        const bool  training =
            strcmp(state, "unfinished") == 0 && rws__held_trains(&held, e->folder, r->host, e->store_time);
        if (strcmp(state, "unfinished") == 0) state = training ? "training" : "stopped";
        if (strcmp(e->public.state, state) == 0) continue;
        pthread_rwlock_wrlock(&c->lock);
        e->public.state = state;
        r->training = training;
        e->public.serial = c->serial + 1;
        pthread_rwlock_unlock(&c->lock);
        changed = true;
    }
    rws__held_free(&held);
    return changed;
}

/* ---- refreshing */

/* Looks again for the folders of runs that have none: a folder may be back, or could not be looked at. */
static bool find_folders(rws_catalogue *c)
{
    bool found = false;
    for (int i = 0; i < c->n_entries; i++) {
        rws_entry *e = c->entries[i];
        char      *folder = e->folder ? NULL : folder_of(c, e->store, e->public.result.name);
        if (!folder) continue;
        pthread_rwlock_wrlock(&c->lock);
        e->public.folder = e->folder = folder;
        e->public.serial = c->serial + 1;
        pthread_rwlock_unlock(&c->lock);
        found = true;
    }
    return found;
}

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
        rws_entry *e = c->entries[i];
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
    bool same = c->found.n == c->known.n;
    for (int i = 0; i < c->found.n && same; i++)
        same = strcmp(c->found.list[i].message, c->known.list[i].message) == 0 &&
               strcmp(c->found.list[i].path, c->known.list[i].path) == 0;
    release_problems(&c->known);
    c->known = c->found;
    c->found = (problems){0};
    return !same;
}

/* Searches the folders for stores; where there are many folders, only now and then, and between the searches the stores are
 * those of the last one that are still there. */
static void find_stores(rws_catalogue *c)
{
    int  n_folders = 0;
    bool gone = false;
    for (int i = 0; i < c->n_stores; i++) gone |= !rws__file_leads(c->stores[i]->path);
    if (c->pause > 0 && !gone) {
        c->pause--;
        for (int i = 0; i < c->away.n; i++) add_problem(&c->found, c->away.list[i].path, c->away.list[i].message);
        return;
    }
    for (int i = 0; i < c->n_stores; i++) c->stores[i]->present = false;
    for (int i = 0; i < c->n_given; i++) find_stores_at(c, c->given[i], &n_folders);
    forget_stores(c);
    c->pause = n_folders / FOLDERS_AT_ONCE;
    release_problems(&c->away);
    for (int i = 0; i < c->found.n; i++) add_problem(&c->away, c->found.list[i].path, c->found.list[i].message);
}

bool rws__catalogue_refresh(rws_catalogue *c)
{
    for (int i = 0; i < c->n_entries; i++) c->entries[i]->present = false;
    find_stores(c);
    for (int i = 0; i < c->n_stores; i++) update_store(c, c->stores[i]);
    complain_of_damage(c);
    bool changed = find_folders(c);
    changed |= update_states(c);
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

void rws__catalogue_read(rws_catalogue *c)
{
    pthread_rwlock_rdlock(&c->lock);
}

void rws__catalogue_done(rws_catalogue *c)
{
    pthread_rwlock_unlock(&c->lock);
}

uint64_t rws__catalogue_serial(const rws_catalogue *c)
{
    return c->serial;
}

int rws__catalogue_n(const rws_catalogue *c)
{
    return c->n_entries;
}

const rws_catalogue_run *rws__catalogue_at(const rws_catalogue *c, int i)
{
    return &c->entries[i]->public;
}

const rws_catalogue_run *rws__catalogue_find(const rws_catalogue *c, const char *id)
{
    const rws_entry *e = find_entry(c, id);
    return e ? &e->public : NULL;
}

const rws_problem *rws__catalogue_problem(const rws_catalogue *c, int i)
{
    return i < c->known.n ? &c->known.list[i] : NULL;
}

const char *rws__catalogue_gone(const rws_catalogue *c, int i)
{
    return i < c->n_gone ? c->gone[i] : NULL;
}
