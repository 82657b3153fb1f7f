/* catalogue_parts.h - what the files of the catalogue share: catalogue.c finds the stores and answers readers, catalogue_entries.c
 * takes what is new in a store into the catalogue.
 */
#ifndef RWS_SERVE_CATALOGUE_PARTS_H
#define RWS_SERVE_CATALOGUE_PARTS_H

#include "results/growing.h"
#include "serve/catalogue.h"
#include "store/checksum.h"

#include <pthread.h>
#include <sys/stat.h>
#include <time.h>

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
} rws_catalogue_store;

typedef struct {
    rws_problem *list;
    int          n;
} rws_problems;

struct rws_catalogue {
    pthread_rwlock_t      lock;
    char                **roots; /* real paths: a given folder, or the folder of a given file */
    char                **given; /* real paths as given */
    int                   n_given;
    rws_catalogue_store **stores;
    int                   n_stores, capacity_stores;
    rws_entry           **entries; /* sorted by name */
    int                   n_entries, capacity_entries;
    rws_problems          known;
    rws_problems          found; /* by the refresh that is running */
    rws_problems          away;  /* found by the last search of the folders */
    int                   pause; /* refreshes until the next search */
    char (*gone)[RWS_RUN_ID + 1];
    int      n_gone;
    uint64_t serial;
};

/* The run with this id; NULL: there is none. */
rws_entry *rws__catalogue_entry(const rws_catalogue *c, const char *id);

/* The folder of a run, if it is in the given folders; the caller frees it. */
char *rws__catalogue_folder_of(const rws_catalogue *c, const char *store_path, const char *run);

/* Reads what is new in a store. */
void rws__catalogue_update_store(rws_catalogue *c, rws_catalogue_store *s);

/* Adds a problem for every store in which a run is damaged. */
void rws__catalogue_note_damage(rws_catalogue *c);

void rws__catalogue_free_entry(rws_entry *e);
void rws__catalogue_add_problem(rws_problems *p, const char *path, const char *message); /* nothing without memory */

#endif
