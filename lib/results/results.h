/* results.h - the memory of rws_results, for the files that fill one: stores (results.c) and exports (exported.c); and how to
 * read a folder that may have no runs yet.
 *
 *     metrics.sqlite -> results.c --.
 *     FILE.csv -----> exported.c ---+-> rws_results
 */
#ifndef RWS_RESULTS_RESULTS_H
#define RWS_RESULTS_RESULTS_H

#include "base/arena.h"
#include "results/growing.h"
#include "rws_results.h"

struct rws_results_memory {
    rws_arena    arena;
    rws_growing *growing; /* of the runs of stores */
    int          n_growing, capacity_growing;
    int          capacity; /* of the runs */
    bool         starved;  /* there was no memory for a text, which is therefore NULL */
};

/* An empty run at the end of the list; NULL without memory. */
rws_result *rws__results_add(rws_results *r);

/* n zeroed bytes; NULL without memory. */
void *rws__results_zeroed(rws_results *r, size_t n);

/* A copy of the text, or NULL for NULL. Without memory NULL, and `starved` is set. */
char *rws__results_text(rws_results *r, const char *text);

/* Sets how many iterations the run wants, by its keys. */
void rws__result_count_iterations(rws_result *run);

/* Adds the runs of a file that `rws export` wrote as CSV: they have no snapshots, no host and no start. Their store is the
 * file. RWS_BAD_INPUT with a message that names the file and the line, or RWS_NO_MEMORY. */
rws_status rws__exported_read(rws_results *r, const char *path, rws_error *err) __attribute__((warn_unused_result));

/* Reads like rws_results_read, but no runs are no failure: *out is NULL if the folder does not exist or has no store yet. */
rws_status rws__results_read_if_any(const char *folder, rws_results **out, rws_error *err)
    __attribute__((warn_unused_result));

/* How numbers of several runs become one: rws_quartiles_of, or the mean with its standard error on both sides. NaNs are
 * left out, and `values` changes. */
typedef rws_quartiles (*rws_summary)(double *values, int n);
rws_quartiles rws__means_of(double *values, int n);

/* rws_gather, and rws_gather_over, by any summary. */
rws_status rws__gather_by(rws_summary by, const rws_result *const *runs, int n, const char *metric, rws_x x,
                          rws_gathered *out, rws_error *err) __attribute__((warn_unused_result));
rws_status rws__gather_over_by(rws_summary by, const rws_result *const *runs, int n, const char *key,
                               const char *metric, rws_gathered *out, rws_error *err)
    __attribute__((warn_unused_result));

/* RWS_BAD_INPUT, with the key that was probably meant, if none of the runs has `key` in its configuration. */
rws_status rws__results_check_key(const rws_result *const *runs, int n, const char *key, rws_error *err)
    __attribute__((warn_unused_result));

#endif
