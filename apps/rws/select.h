/* select.h - the runs that PATH... and --where select, for the commands runs, export and plot.
 *
 *     argv -> [select] -> rws_results
 */
#ifndef RWS_RWS_SELECT_H
#define RWS_RWS_SELECT_H

#include "rws/arguments.h"
#include "rws_results.h"

enum { RWS_SELECT_PATHS = 256, RWS_SELECT_CONDITIONS = 64 };

typedef struct {
    const char *paths[RWS_SELECT_PATHS]; /* none: the present folder */
    const char *conditions[RWS_SELECT_CONDITIONS];
    int         n_paths, n_conditions;
} rws_select;

/* For a command's argp_child; the input is an rws_select. Arguments are paths. */
extern const struct argp rws_select_argp;

/* Reads the selected runs. RWS_BAD_INPUT if there are none. The caller frees *out. */
rws_status rws__select_read(const rws_select *s, rws_results **out, rws_error *err) __attribute__((warn_unused_result));

/* The keys of the configuration in which the runs differ, in the order of the configuration, seed last. The texts are
 * the runs'. Returns their number, at most `capacity`. */
int rws__select_differing(const rws_results *r, const char **keys, int capacity);

/* The names of all keys of the configurations, or of all metrics, each once, in order of appearance. *n is their
 * number. The caller frees the list; the texts are the runs'. */
const char **rws__select_keys(const rws_results *r, int *n);
const char **rws__select_metrics(const rws_results *r, int *n);

/* RWS_BAD_INPUT if no run has this metric, with a message that says which metrics there are. */
rws_status rws__select_check_metric(const rws_results *r, const char *metric, rws_error *err)
    __attribute__((warn_unused_result));

#endif
