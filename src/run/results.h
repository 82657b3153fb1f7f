/* results.h - what stores hold, read into memory: the ground that tables, figures and claims stand on.
 *
 * Reads runs with their configurations, curves and snapshots, and finds those that are asked for. It changes nothing,
 * computes no statistics and does not know what a metric means.
 *
 *     metrics.sqlite -> [results] -> rws runs, rws export, figures, claims
 */
#ifndef RWS_RUN_RESULTS_H
#define RWS_RUN_RESULTS_H

#include "rws.h"

/* A metric of a run over the iterations. NaN where that was measured. */
typedef struct {
    const char   *metric;
    int           n;
    const double *iterations, *seconds, *values; /* n each, in ascending order of the iterations */
} rws_series;

/* A snapshot of a run. */
typedef struct {
    const char        *name;
    uint64_t           iteration;
    int                n;
    const double      *values;
    const char *const *labels; /* n; each may be NULL */
} rws_shot;

/* A part of a run's configuration as text: "particles" is "20", "start" is "far". */
typedef struct {
    const char *key, *value;
} rws_result_key;

typedef struct {
    const char           *name, *store; /* the run's; the file's */
    const char           *host, *version, *started;
    const char           *failure;               /* why its numbers broke; NULL if they did not */
    uint64_t              iteration, iterations; /* done and wanted */
    double                seconds;               /* of training */
    int                   n_keys, n_series, n_shots;
    const rws_result_key *keys;   /* in the order of config.json, settings last */
    const rws_series     *series; /* in the order of their names */
    const rws_shot       *shots;  /* in the order of names and iterations */
} rws_result;

/* Runs in the order of their names, numbers in those counting as numbers. All belongs to it. */
typedef struct {
    int                        n;
    rws_result                *runs;
    struct rws_results_memory *memory;
} rws_results;

/* Reads stores. A path is that of an SQLite file, of a folder that has one (a run's or a sweep's), of a run in a
 * sweep's, or of a folder whose folders have some. RWS_BAD_INPUT with a sentence that names the path; *out is then
 * NULL. The caller frees it. */
rws_status rws_results_read(const char *const *paths, int n, rws_results **out, rws_error *err)
    __attribute__((warn_unused_result));
void rws_results_free(rws_results *r); /* NULL is allowed */

/* Keeps the runs for which all of the conditions hold. A condition is "key=value" or "key=value,value", where the key is
 * one of a configuration, "run" or "state" (finished, failed, unfinished). RWS_BAD_INPUT if it is not that, or if no run
 * has such a key. */
rws_status rws_results_keep(rws_results *r, const char *const *conditions, int n, rws_error *err)
    __attribute__((warn_unused_result));

const char *rws_result_state(const rws_result *r); /* "finished", "failed" or "unfinished" */

/* Part of the configuration; NULL if the run has no such key. */
const char *rws_result_get(const rws_result *r, const char *key);

/* Whether the run has this value under the key; as numbers if both are. */
bool rws_result_has(const rws_result *r, const char *key, const char *value);

/* Whether the configurations differ at most in what does not change what is learned about: seed and threads. */
bool rws_result_same_but_seed(const rws_result *a, const rws_result *b);

/* A metric of the run; NULL if it was not measured. */
const rws_series *rws_result_series(const rws_result *r, const char *metric);

/* Its last value; NaN if there is none. */
double rws_result_last(const rws_result *r, const char *metric);

/* The latest snapshot of that name up to the iteration; NULL if there is none. */
const rws_shot *rws_result_shot(const rws_result *r, const char *name, uint64_t iteration);

#endif
