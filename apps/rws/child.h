/* child.h - this program as child processes, whose lines are read as they come.
 *
 * A child is the same program with other arguments: fork, then exec at once. It has a process group of its own, so that
 * Ctrl-C reaches it through its parent alone and only once, and it gets SIGTERM when its parent dies, for whatever
 * reason.
 *
 *     campaign -> [child] -> rws train … --json -> lines -> campaign
 */
#ifndef RWS_RWS_CHILD_H
#define RWS_RWS_CHILD_H

#include "rws.h"

#include <sys/types.h>

enum {
    RWS_CHILD_LINE = 16384
}; /* bytes of a line on stdout; an evaluation with all metrics that a run may have is shorter */

typedef struct {
    pid_t  pid;
    int    out, err; /* pipes; -1: closed */
    char   line[RWS_CHILD_LINE];
    size_t length;         /* of the line so far */
    char   complaint[512]; /* the last line on stderr */
    char   errors[512];
    size_t errors_length;
} rws_child;

/* Starts this program with the arguments, which end with NULL; argv[0] is "rws". RWS_BAD_INPUT if there can be no
 * further process. */
rws_status rws__child_start(char *const *argv, rws_child *child, rws_error *err) __attribute__((warn_unused_result));

/* Waits until a child prints something, but no longer than so many milliseconds, and hands out every line of stdout
 * that is complete, with the index of its child. Entries with pid 0 are empty. Returns the index of a child that has
 * closed its pipes, or -1. */
int rws__children_read(rws_child *children, int n, int milliseconds,
                       void (*line)(void *context, int child, const char *text), void *context);

/* Waits for the end of a child that has closed its pipes. Returns its exit status, or minus the signal that ended it;
 * 127 if the system does not say how it ended. */
int rws__child_end(rws_child *child);

/* Sends SIGTERM, at which the child saves its state and ends. */
void rws__child_stop(const rws_child *child);

#endif
