/* campaign.h - the runs of a sweep, as many at a time as there are cores, until all are done.
 *
 * What is finished is skipped, what was cut goes on, what fails is told and does not stop the others. Several programs
 * may work on the same folder: each leaves alone what another has in hand.
 *
 *     sweep -> [campaign] -> jobs -> rws train, rws eval -> folders, metrics.sqlite
 */
#ifndef RWS_CLI_CAMPAIGN_H
#define RWS_CLI_CAMPAIGN_H

#include "cli/arguments.h"
#include "run/sweep.h"

typedef struct {
    const char *what;   /* for the progress line: "gmm" */
    const char *folder; /* made if need be; metrics.sqlite is there, and a folder for each run */
    uint64_t    jobs;   /* at a time; 0: as many as there are cores */
    bool        retry;  /* also what failed before */
    bool        json;
} rws_campaign_options;

/* Options --jobs, --retry and --json: for a command's argp_child. The input is an rws_campaign_options. */
extern const struct argp rws_campaign_argp;

typedef struct {
    int finished, found; /* runs: now, and before */
    int failed;
    int worst; /* exit status of a run that failed: 1 or 2 */
} rws_campaign_result;

/* Does it. Prints a line for each run that ends, and the failures once more at the end. RWS_OK also if runs failed:
 * *result says so. RWS_STOPPED after Ctrl-C, when all that ran have saved their state; RWS_BAD_INPUT if nothing can be
 * started. */
rws_status rws_campaign_run(const rws_sweep *sweep, const rws_campaign_options *o, rws_campaign_result *result,
                            rws_error *err) __attribute__((warn_unused_result));

/* RWS_OK, or the status and the sentence for runs that failed. */
rws_status rws_campaign_verdict(const rws_campaign_result *r, rws_error *err);

#endif
