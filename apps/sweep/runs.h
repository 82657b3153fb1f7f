/* runs.h - the runs of a campaign while it trains them, and what their folders and stores say of them; included by the
 * files of this folder only.
 *
 *     runs.c        what is known of a run before it is started
 *     campaign.c    starts runs, follows them and reports their ends
 */
#ifndef RWS_SWEEP_RUNS_H
#define RWS_SWEEP_RUNS_H

#include "sweep/campaign.h"
#include "rws/child.h"
#include "rws/progress.h"

typedef enum { WAITING, TRAINING, MEASURING, FINISHED, FAILED } rws_sweep_stage;

typedef struct {
    const rws_sweep_run *run;
    int                  kind; /* index of the first run that differs from this one in the seed only */
    rws_sweep_stage      stage;
    uint64_t             iteration;  /* the last one that is known */
    uint64_t             began_at;   /* the iteration at which our child began */
    double               began;      /* the time at which it began */
    int                  refused;    /* how often a child has ended with RWS_BAD_INPUT */
    double               not_before; /* time of the next look at a run that another program trains */
    char                *failure;    /* a message; NULL: none */
} rws_sweep_entry;

/* How fast runs of a kind are. */
typedef struct {
    double seconds, iterations;
    bool watched; /* measured on whole runs of ours; otherwise a first guess, from the store or from a run under way */
} rws_sweep_pace;

typedef struct {
    const rws_campaign_options *options;
    char                       *store;   /* of all runs; NULL: every run has its own */
    double                      written; /* time at which the task last wrote down what it does */
    rws_sweep_entry            *entries;
    int                         n, n_jobs;
    rws_child                  *children;
    int                        *doing; /* [n_jobs] the entry that a child works on */
    char (*last)[RWS_CHILD_LINE];      /* [n_jobs] the last line that a child printed */
    rws_sweep_pace     *paces;         /* [n] by kind */
    rws_progress        progress;
    rws_campaign_result result;
} rws_campaign;

/* Prepares the folder and the store, finds the kinds of the runs and looks every run up. */
rws_status rws__runs_prepare(rws_campaign *s, const rws_sweep *sweep, rws_error *err);

/* Asks the folder and the store of a run how far it is. */
rws_status rws__run_find_progress(rws_campaign *s, rws_sweep_entry *e, rws_error *err);

/* Whether a process trains the run at the moment. */
bool rws__run_is_busy(const rws_campaign *s, const rws_sweep_entry *e);

/* Whether a folder has a file of this name. */
bool rws__folder_has(const char *folder, const char *name);

/* The folder, and the store, of a run, for the caller to free. */
char *rws__run_folder(const rws_campaign *s, const rws_sweep_entry *e);
char *rws__run_store(const rws_campaign *s, const rws_sweep_entry *e);

#endif
