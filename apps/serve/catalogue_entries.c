/* catalogue_entries.c - from a store into the catalogue: new runs, new evaluations, damage. */
#include "serve/catalogue_parts.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/list.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SETTLED 3600.0 /* seconds after which a run that has not changed gets no more measures */
#define TICK 0.1       /* seconds by which two changes of a file may have the same time */

void rws__catalogue_free_entry(rws_entry *e)
{
    rws__growing_release(&e->run);
    free((char *)e->public.result.name);
    free(e->store);
    free(e->folder);
    free(e);
}

void rws__catalogue_add_problem(rws_problems *p, const char *path, const char *message)
{
    rws_problem *longer = realloc(p->list, ((size_t)p->n + 1) * sizeof *longer);
    if (!longer) return;
    p->list = longer;
    const rws_problem new = {strdup(path), strdup(message)};
    if (new.path &&new.message) p->list[p->n++] = new;
    else free(new.path), free(new.message);
}

static void make_id(const char *store, const char *name, char id[static RWS_RUN_ID + 1])
{
    uint64_t hash = rws__hash(RWS_HASH_BEGIN, store, strlen(store) + 1); /* with the zero byte between the two texts */
    hash = rws__hash(hash, name, strlen(name) + 1);
    snprintf(id, RWS_RUN_ID + 1, "%016llx", (unsigned long long)hash);
}

rws_entry *rws__catalogue_entry(const rws_catalogue *c, const char *id)
{
    for (int i = 0; i < c->n_entries; i++)
        if (strcmp(c->entries[i]->public.id, id) == 0) return c->entries[i];
    return NULL;
}

char *rws__catalogue_folder_of(const rws_catalogue *c, const char *store_path, const char *run)
{
    char *folder = rws__store_folder(store_path, run);
    if (folder && rws__catalogue_holds(c, folder)) return folder;
    free(folder);
    return NULL;
}

/* Gives a run that failed before its first evaluation the configuration that is in its folder. False if there is none: the
 * run is left out. */
static bool complete(const rws_catalogue *c, const rws_catalogue_store *s, rws_head *h)
{
    rws_error ignored;
    if (!h->early) return true;
    char *folder = rws__catalogue_folder_of(c, s->path, h->name);
    if (folder && rws__store_folder_config(folder, &h->config, &ignored) != RWS_OK) h->config = NULL;
    free(folder);
    return h->config != NULL;
}

static rws_entry *new_entry(rws_catalogue *c, const rws_catalogue_store *s, const rws_head *h, const char *id)
{
    rws_entry *e = calloc(1, sizeof *e);
    if (!e || !rws__list_grow(&c->entries, c->n_entries, &c->capacity_entries, sizeof *c->entries)) {
        free(e);
        return NULL;
    }
    memcpy(e->public.id, id, sizeof e->public.id);
    e->store = strdup(s->path);
    e->folder = rws__catalogue_folder_of(c, s->path, h->name);
    e->public.folder = e->folder;
    e->public.state = "stopped";
    e->public.result.name = strdup(h->name);
    e->public.result.store = e->store;
    e->run.result = &e->public.result;
    if (!e->store || !e->public.result.name) {
        rws__catalogue_free_entry(e);
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
static int update_run(rws_catalogue *c, const rws_catalogue_store *s, sqlite3 *db, int format, const rws_head *h)
{
    char id[RWS_RUN_ID + 1];
    make_id(s->path, h->name, id);
    rws_entry        *e = rws__catalogue_entry(c, id);
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

static bool is_same(const rws_catalogue_store *s, const struct stat *is)
{
    return s->inode == is->st_ino && s->size == is->st_size && s->time.tv_sec == is->st_mtim.tv_sec &&
           s->time.tv_nsec == is->st_mtim.tv_nsec;
}

/* Entries of a store that was not read are still there. */
static void mark_present(rws_catalogue *c, const rws_catalogue_store *s)
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

void rws__catalogue_update_store(rws_catalogue *c, rws_catalogue_store *s)
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
        rws__catalogue_add_problem(&c->found, s->path, err.text);
        mark_present(c, s);
    } else if (format == 0 && is.st_size > 0)
        rws__catalogue_add_problem(&c->found, s->path, "The file is not a store of runs.");
    for (int i = 0; i < c->n_entries; i++)
        if (strcmp(c->entries[i]->store, s->path) == 0) c->entries[i]->store_time = is.st_mtim.tv_sec;
    if (!code) note_alone(c, s->path, list.n == 1);
    for (int i = 0; i < list.n; i++) rws__head_release(&list.list[i]);
    free(list.list);
    sqlite3_close(db);
}

/* Adds a problem for each store with a damaged run (its rows do not fit their checksums), with the message of `rws runs`. */
void rws__catalogue_note_damage(rws_catalogue *c)
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
        rws__catalogue_add_problem(&c->found, e->store, err.text);
    }
}
