/* results.h - runs of stores, read into memory for tables, figures and claims.
 *
 * Reads runs with their configurations, curves and snapshots, and selects among them. It changes no store and computes
 * no statistics.
 *
 *     metrics.sqlite -> [results] -> rws runs, rws export, figures, claims
 */
#ifndef RWS_RUN_RESULTS_H
#define RWS_RUN_RESULTS_H

#include "rws.h"

/* A metric of a run over the iterations. A value is NaN if a NaN was measured. */
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
    const char           *name, *store; /* of the run; path of its store */
    const char           *host, *version, *started;
    const char           *failure;               /* sentence of the failure; NULL if the run did not fail */
    uint64_t              iteration, iterations; /* done and wanted */
    double                seconds;               /* wall time of training */
    int                   n_keys, n_series, n_shots;
    const rws_result_key *keys;   /* in the order of config.json, settings last */
    const rws_series     *series; /* in the order of their names */
    const rws_shot       *shots;  /* in the order of names and iterations */
} rws_result;

/* Runs sorted by name, where numbers in names compare as numbers. All memory belongs to it. */
typedef struct {
    int                        n;
    rws_result                *runs;
    struct rws_results_memory *memory;
} rws_results;

/* Reads stores. A path names an SQLite file; or a folder with metrics.sqlite in it (of a run or a sweep); or the folder
 * of one run of a sweep; or a folder whose folders have a metrics.sqlite. The caller frees *out. *out is NULL on
 * failure: RWS_BAD_INPUT with a sentence that names the path, or RWS_NO_MEMORY. */
rws_status rws_results_read(const char *const *paths, int n, rws_results **out, rws_error *err)
    __attribute__((warn_unused_result));
void rws_results_free(rws_results *r); /* NULL is allowed */

/* Keeps the runs that meet all conditions. A condition is "key=value" or "key=value,value"; the key is a key of the
 * configuration, "run" or "state" (finished, failed, unfinished). RWS_BAD_INPUT if a condition has another form, or if
 * no run has its key. */
rws_status rws_results_keep(rws_results *r, const char *const *conditions, int n, rws_error *err)
    __attribute__((warn_unused_result));

const char *rws_result_state(const rws_result *r); /* "finished", "failed" or "unfinished" */

/* The value of a key of the configuration, or of "run" or "state"; NULL if the run has no such key. */
const char *rws_result_get(const rws_result *r, const char *key);

/* Whether the run has this value under the key. Two numbers are compared as numbers. */
bool rws_result_has(const rws_result *r, const char *key, const char *value);

/* Whether the configurations are equal except for seed and threads. */
bool rws_result_same_but_seed(const rws_result *a, const rws_result *b);

/* A metric of the run; NULL if it was not measured. */
const rws_series *rws_result_series(const rws_result *r, const char *metric);

/* The last value of a metric; NaN if there is none. */
double rws_result_last(const rws_result *r, const char *metric);

/* The latest snapshot of that name up to the iteration; NULL if there is none. */
const rws_shot *rws_result_shot(const rws_result *r, const char *name, uint64_t iteration);

#endif
