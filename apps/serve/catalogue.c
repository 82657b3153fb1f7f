/* catalogue.c - which stores there are, and the runs that readers see. */
#include "serve/catalogue_parts.h"

#include "base/error.h"
#include "base/file.h"
#include "base/quote.h"
#include "store/held.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { DEEPEST = 3, MAX_FOLDERS = 20000, FOLDERS_AT_ONCE = 200, PATIENCE = 2000 /* ms for a locked store */ };

/* ---- memory. Without memory a run is left out until the next refresh. */

static void free_store(rws_catalogue_store *s)
{
    free(s->path);
    free(s->only);
    free(s);
}

static void release_problems(rws_problems *p)
{
    for (int i = 0; i < p->n; i++) free(p->list[i].path), free(p->list[i].message);
    free(p->list);
    *p = (rws_problems){0};
}

void rws__catalogue_free(rws_catalogue *c)
{
    if (!c) return;
    for (int i = 0; i < c->n_entries; i++) rws__catalogue_free_entry(c->entries[i]);
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
        rws_catalogue_store *s = c->stores[i];
        if (strcmp(s->path, path) != 0 || (s->only && (!only || strcmp(s->only, only) != 0))) continue;
        s->present = true;
        return;
    }
    rws_catalogue_store *s = calloc(1, sizeof *s);
    if (!s || !rws__list_grow(&c->stores, c->n_stores, &c->capacity_stores, sizeof *c->stores)) {
        free(s);
        return;
    }
    *s = (rws_catalogue_store){.path = strdup(path), .only = only ? strdup(only) : NULL, .present = true};
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
            rws__catalogue_add_problem(&c->found, inner,
                                       "The link leads out of the folders that are served, and is not followed.");
        free(inner);
    }
    if (list) closedir(list);
}

/* A given path: a store, a folder, or the folder of one run of a sweep, whose store is in the folder above. */
static void find_stores_at(rws_catalogue *c, const char *given, int *n_folders)
{
    struct stat about;
    if (stat(given, &about) != 0) {
        rws__catalogue_add_problem(&c->found, given, "The folder is not there any more.");
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

static int by_name(const void *a, const void *b)
{
    const rws_entry *const *x = a, *const *y = b;
    const int               order = strverscmp((*x)->public.result.name, (*y)->public.result.name);
    return order ? order : strcmp((*x)->store, (*y)->store);
}

/* Looks again for the folders of runs that have none: a folder may be back, or could not be looked at. */
static bool find_folders(rws_catalogue *c)
{
    bool found = false;
    for (int i = 0; i < c->n_entries; i++) {
        rws_entry *e = c->entries[i];
        char      *folder = e->folder ? NULL : rws__catalogue_folder_of(c, e->store, e->public.result.name);
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
        rws__catalogue_free_entry(e);
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
    c->found = (rws_problems){0};
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
        for (int i = 0; i < c->away.n; i++)
            rws__catalogue_add_problem(&c->found, c->away.list[i].path, c->away.list[i].message);
        return;
    }
    for (int i = 0; i < c->n_stores; i++) c->stores[i]->present = false;
    for (int i = 0; i < c->n_given; i++) find_stores_at(c, c->given[i], &n_folders);
    forget_stores(c);
    c->pause = n_folders / FOLDERS_AT_ONCE;
    release_problems(&c->away);
    for (int i = 0; i < c->found.n; i++)
        rws__catalogue_add_problem(&c->away, c->found.list[i].path, c->found.list[i].message);
}

bool rws__catalogue_refresh(rws_catalogue *c)
{
    for (int i = 0; i < c->n_entries; i++) c->entries[i]->present = false;
    find_stores(c);
    for (int i = 0; i < c->n_stores; i++) rws__catalogue_update_store(c, c->stores[i]);
    rws__catalogue_note_damage(c);
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
    const rws_entry *e = rws__catalogue_entry(c, id);
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
