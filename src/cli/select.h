/* select.h - which runs a command is about: PATH... and --where, the same for runs, export and plot.
 *
 *     argv -> [select] -> rws_results
 */
#ifndef RWS_CLI_SELECT_H
#define RWS_CLI_SELECT_H

#include "cli/arguments.h"
#include "run/results.h"

enum { RWS_SELECT_PATHS = 256, RWS_SELECT_CONDITIONS = 64 };

typedef struct {
    const char *paths[RWS_SELECT_PATHS]; /* none: the present folder */
    const char *conditions[RWS_SELECT_CONDITIONS];
    int         n_paths, n_conditions;
} rws_select;

/* For a command's argp_child; the input is an rws_select. Arguments are paths. */
extern const struct argp rws_select_argp;

/* Reads the runs that were asked for. At least one, or RWS_BAD_INPUT. The caller frees *out. */
rws_status rws_select_read(const rws_select *s, rws_results **out, rws_error *err) __attribute__((warn_unused_result));

/* The keys of configurations in which these runs differ, in their order; seed last. The texts are the runs'. Returns how
 * many, at most `room`. */
int rws_select_differing(const rws_results *r, const char **keys, int room);

/* The metrics that the runs have, in order of appearance. */
int rws_select_metrics(const rws_results *r, const char **metrics, int room);

#endif
