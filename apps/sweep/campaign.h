/* campaign.h - the runs of a sweep, as many at a time as there are cores, until all have ended.
 *
 * A run that is finished is skipped, a run that was interrupted continues, and a run that fails is reported and does not
 * stop the others. Several programs may work on the same folder: none starts a run that another one trains.
 *
 *     sweep -> [campaign] -> child -> rws train, rws eval -> folders, metrics.sqlite
 *
 * On one machine all runs share a store. Tasks on several machines (slurm.h) have runs of their own, and every run has
 * a store of its own, since SQLite must not be written by two machines.
 */
#ifndef RWS_SWEEP_CAMPAIGN_H
#define RWS_SWEEP_CAMPAIGN_H

#include "rws/arguments.h"
#include "rws_results.h"

typedef struct {
    const char        *what;    /* for the progress line: "gmm" */
    const char        *folder;  /* made if need be; metrics.sqlite is there, and a folder for each run */
    uint64_t           jobs;    /* runs at a time; 0: as many as there are cores */
    bool               retry;   /* also runs that failed before */
    bool               changed; /* accepts shared objects that have changed since their runs began */
    bool               json;
    int                task, n_tasks; /* which task this is, from 1 on, of how many; 0: it is no task */
    const rws_results *known; /* runs that were trained elsewhere; those that are finished are skipped. NULL: none */
} rws_campaign_options;

/* Options --jobs, --retry and --json: for a command's argp_child. The input is an rws_campaign_options. */
extern const struct argp rws_campaign_argp;

typedef struct {
    int finished, found; /* runs that ended well now, and that were finished before */
    int failed;
    int worst; /* exit status of a run that failed: 1 or 2 */
} rws_campaign_result;

/* Trains the runs. Prints a line for each run that ends, and the failures once more at the end. RWS_OK also if runs
 * failed, which *result says. RWS_STOPPED after Ctrl-C, when all children have saved their state; RWS_BAD_INPUT if no
 * run can be started. */
rws_status rws__campaign_run(const rws_sweep *sweep, const rws_campaign_options *o, rws_campaign_result *result,
                             rws_error *err) __attribute__((warn_unused_result));

/* RWS_BAD_INPUT if the runs of the folder share a store, so that tasks cannot work on them. */
rws_status rws__campaign_separate(const char *folder, rws_error *err) __attribute__((warn_unused_result));

/* RWS_OK, or the status and the message for runs that failed. */
rws_status rws__campaign_verdict(const rws_campaign_result *r, rws_error *err);

#endif
