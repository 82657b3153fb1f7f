/* folder.h - what the three files about a run's folder share: folder.c (which files, whose run, locks), checkpoint.c (save and
 * load) and measures.c (evaluations on their way to the store). checkpoint.h says what other folders may call.
 */
#ifndef RWS_STORE_FOLDER_H
#define RWS_STORE_FOLDER_H

#include "program/plugin.h"
#include "store/checkpoint.h"
#include "store/config.h"
#include "store/store.h"

/* An evaluation that waits to be flushed. */
typedef struct {
    uint64_t      iteration;
    int           n;
    double        value[RWS_MAX_METRICS + 1];
    double        seconds;
    rws_snapshots shown;
} pending;

struct rws_folder {
    char           *path; /* as typed, without slashes at the end */
    char           *name; /* of the run in the store */
    char           *config_path, *checkpoint_path, *previous_path, *store_path;
    bool            shared; /* the store is the sweep's */
    int             lock;   /* -1: none */
    rws_config_json config;
    char            started[32];
    const char     *metrics[RWS_MAX_METRICS + 1]; /* names; the trainer's, and "impossible" */
    bool            impossible;                   /* there were impossible test data, so that their share is recorded */
    pending        *kept;
    int             n_pending, pending_capacity;
    bool            has_measures; /* the store knows the run */
    rws_recorded    recorded;
    char           *checkpoint_object, *store_model; /* of recorded */
    char            warnings[1024];                  /* messages */
};

/* A run whose folder was renamed keeps its old name in its store; under two names it would be two runs. The store must
 * be this run's: the configuration that it has must be the folder's, but for what may change. */
rws_status rws__folder_adopt_name(rws_folder *f, rws_error *err) __attribute__((warn_unused_result));

/* Releases the evaluations that wait to be flushed. */
void rws__folder_forget_pending(rws_folder *f);

#endif
