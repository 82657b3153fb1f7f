/* jobs.h - this program again, as child processes whose lines are read as they come.
 *
 * A child is the same program with other arguments: fork, then exec at once. It has a process group of its own, so that
 * Ctrl-C reaches it through its parent alone and only once, and is told to stop politely when its parent dies, however
 * that happens.
 *
 *     campaign -> [jobs] -> rws train … --json -> lines -> campaign
 */
#ifndef RWS_CLI_JOBS_H
#define RWS_CLI_JOBS_H

#include "rws.h"

#include <sys/types.h>

typedef struct {
    pid_t  pid;
    int    out, err; /* pipes; -1: closed */
    char   line[4096];
    size_t length;         /* of the line so far */
    char   complaint[512]; /* the last line on stderr */
    char   errors[512];
    size_t errors_length;
} rws_job;

/* Starts this program with the arguments, which end with NULL; argv[0] is "rws". RWS_BAD_INPUT if there can be no
 * further process. */
rws_status rws_job_start(char *const *argv, rws_job *job, rws_error *err) __attribute__((warn_unused_result));

/* Waits for what the jobs print, but no longer than so many milliseconds, and hands out every line of stdout that is
 * complete. Jobs with pid 0 are not there. Returns the index of a job that has closed its pipes, or -1. */
int rws_jobs_read(rws_job *jobs, int n, int milliseconds, void (*line)(void *context, int job, const char *text),
                  void *context);

/* Waits for the end of a job that has closed its pipes. Returns its exit status, or minus the signal that ended it. */
int rws_job_end(rws_job *job);

/* Asks it to stop. */
void rws_job_stop(const rws_job *job);

#endif
