/* rws_results.h - what runs have written: their metrics, which of them meet a condition, their medians over seeds; and
 * the runs that a sweep file describes.
 *
 *     stores, exported files -> rws_results -> conditions -> rws_gathered: a curve
 *     sweep file -> rws_sweep: a name and an rws_config for each run -> rws_trainer
 *
 * This header does not train: that is rws_train.h. The commands runs, plot, export, sweep and serve choose and gather
 * runs by these functions, so that they show the same numbers.
 *
 * Failure, NULL, ownership and threads are as in rws_train.h. rws_results, rws_gathered and rws_sweep are plain data:
 * read them anywhere, free them once.
 */
#ifndef RWS_RESULTS_H
#define RWS_RESULTS_H

#include "rws_train.h"

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/* ----------------------------------------------------------------------------------------------------------- runs */

/* A metric of a run over the iterations. A value may be NaN. */
typedef struct {
    const char   *metric;
    int           n;
    const double *iterations, *seconds, *values; /* n each, in ascending order of the iterations */
} rws_history;

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

/* A run that failed before its first evaluation has neither host, version, start nor metrics. */
typedef struct {
    const char           *name, *store; /* of the run; path of its store, or of the file that it was exported to */
    const char           *host, *version, *started; /* host and start are NULL for an exported run */
    const char           *failure;                  /* message of the failure; NULL if the run did not fail */
    uint64_t              iteration, iterations;    /* iterations that are done, and that are wanted in all */
    double                seconds;                  /* wall time of training */
    int                   n_keys, n_histories, n_shots;
    const rws_result_key *keys;      /* in the order of config.json, settings last */
    const rws_history    *histories; /* in the order of their names */
    const rws_shot       *shots;     /* in the order of names and iterations */
    bool                  training;  /* unfinished, and a process trains it */
} rws_result;

/* Runs sorted by name, where numbers in names compare as numbers. All memory belongs to it. */
typedef struct {
    int                        n;
    rws_result                *runs;
    struct rws_results_memory *memory; /* for the library alone */
} rws_results;

/* Reads stores. A path names an SQLite file; or a folder with metrics.sqlite in it (of a run or a sweep); or the folder
 * of one run of a sweep; or a folder whose folders have a metrics.sqlite; or a file NAME.csv that `rws export` wrote,
 * whose runs have no snapshots. A run or a file that is named twice, perhaps by a link, is read once. The caller frees
 * *out. *out is NULL on failure: RWS_BAD_INPUT with a message that names the path, or RWS_NO_MEMORY. */
rws_status rws_results_read(const char *const *paths, int n, rws_results **out, rws_error *err) RWS_MUST_CHECK;
void       rws_results_free(rws_results *r); /* NULL is allowed */

/* "finished", "failed" or "unfinished". */
const char *rws_result_state(const rws_result *r);

/* The value of a key of the configuration, or of "run" or "state"; NULL if the run has no such key. */
const char *rws_result_get(const rws_result *r, const char *key);

/* Whether the run has this value under the key. Two numbers are compared as numbers. */
bool rws_result_has(const rws_result *r, const char *key, const char *value);

/* Whether the configurations are equal except for seed and threads. */
bool rws_result_same_but_seed(const rws_result *a, const rws_result *b);

/* A metric of the run; NULL if it was not measured. */
const rws_history *rws_result_history(const rws_result *r, const char *metric);

/* The last value of a metric; NaN if there is none. */
double rws_result_last(const rws_result *r, const char *metric);

/* The latest snapshot of that name up to the iteration; NULL if there is none. */
const rws_shot *rws_result_shot(const rws_result *r, const char *name, uint64_t iteration);

/* ------------------------------------------------------------------------------------------------------ conditions */

/* Keeps the runs that meet all conditions. A condition is "key=value" or "key=value,value"; the key is a key of the
 * configuration, "run" or "state". Values of the state are finished, failed and unfinished; of the unfinished runs,
 * those that a process trains are also "training", and the others "stopped". RWS_BAD_INPUT if a condition has another
 * form, if no run of the list has its key, or if there is no such state; the list is then as it was. */
rws_status rws_results_filter(rws_results *r, const char *const *conditions, int n, rws_error *err) RWS_MUST_CHECK;

/* The same for pointers to runs: those that meet all conditions move to the front, in their order, and *n_runs becomes
 * their number. */
rws_status rws_results_choose(const rws_result **runs, int *n_runs, const char *const *conditions, int n,
                              rws_error *err) RWS_MUST_CHECK;

/* ---------------------------------------------------------------------------------------------------------- medians */

/* A metric of several runs, point by point: n numbers in each array. Without points the arrays are NULL. */
typedef struct {
    int     n, n_runs; /* points; the largest number of runs of a point */
    double *x, *median, *low, *high;
    double *count; /* how many runs each point is the median of */
} rws_gathered;

typedef enum { RWS_X_ITERATION, RWS_X_SECONDS } rws_x;

/* The metric of runs that differ only in their seed, over iterations, or over seconds. There is a point for each
 * iteration at which one of the runs has a value: median and quartiles of the runs that have a value there. A run that
 * is shorter than others, or fails, counts in the points that it has reached. An infinity is a value, NaN is none.
 * Seconds are the median of the same runs' seconds, and may therefore fall where a slow run ends. *out is empty if no
 * run has the metric. The caller releases it. */
rws_status rws_gather(const rws_result *const *runs, int n, const char *metric, rws_x x, rws_gathered *out,
                      rws_error *err) RWS_MUST_CHECK;

/* The last values of the metric over a number of the configuration, such as "particles". RWS_BAD_INPUT if a run has no
 * such number; *out is then empty. */
rws_status rws_gather_over(const rws_result *const *runs, int n, const char *key, const char *metric, rws_gathered *out,
                           rws_error *err) RWS_MUST_CHECK;

/* Removes the points whose x is below `from` or above `to`. */
void rws_gathered_between(rws_gathered *g, double from, double to);
void rws_gathered_release(rws_gathered *g); /* a zeroed one is allowed */

typedef struct {
    double median, low, high; /* NaN without values */
    int    n;                 /* values */
} rws_quartiles;

/* Median and quartiles of n numbers without NaNs, which are sorted and moved to the front. A percentile between two
 * numbers is interpolated linearly, as numpy.percentile does. */
rws_quartiles rws_quartiles_of(double *values, int n);

/* The quartiles of the metric's last values; a run without the metric, or with a NaN as its last value, is left out. */
rws_status rws_gather_last(const rws_result *const *runs, int n, const char *metric, rws_quartiles *out,
                           rws_error *err) RWS_MUST_CHECK;

/* ----------------------------------------------------------------------------------------------------------- sweeps */

#define RWS_MAX_SWEEP_BYTES 65536
#define RWS_MAX_SWEEP_RUNS 20000

/* A sweep file describes runs, line by line:
 *
 *     # A comment: from a '#' that begins a word to the end of the line.
 *     model      gmm                      begins a block; the lines below belong to it
 *     methods    ws ww dww
 *     particles  2 5 10 20
 *     seeds      1-10                     numbers and ranges; without this line, 1
 *     set        start far                a setting, for all runs of the block
 *     set        dww.delta 0.05 0.1 0.2   a setting of one method, with several values
 *     set        site.z score             how the gradient of the values at site z comes, for all runs of the block
 *     iterations 100000                   these keys default as in `rws train`: iterations, lr, eval-every,
 *     lr         1e-3 1e-4                eval-data, eval-particles, batch, shards, particle-shards,
 *                                         optimiser, l2; each may have several values
 *     final      5000 1000                after training, measure with 5000 particles on 1000 test data
 *
 * The runs of a block are all combinations; a key with several values is a part of their names. They are sorted by seed, so that a sweep that is stopped early has runs of
 * every kind; and within a seed by falling number of particles, because runs with many particles take longest.
 */
typedef struct {
    const char *name;            /* also of its folder: "gmm-start=far-dww-delta=0.1-k2-s1" */
    rws_config  config;          /* 0 or NULL for a key that is not in the file */
    int         final_particles; /* of the measurement after training; 0: none */
    int         final_test;      /* test data of that measurement; 0: as many as in training */
} rws_sweep_run;

typedef struct {
    int                      n;
    rws_sweep_run           *runs;
    struct rws_sweep_memory *memory; /* for the library alone */
} rws_sweep;

/* Reads a sweep file. RWS_BAD_INPUT with a message that names the file and the line, or RWS_NO_MEMORY. */
rws_status rws_sweep_read(const char *path, rws_sweep **out, rws_error *err) RWS_MUST_CHECK;

/* The same from `length` bytes of text; `name` stands for the file in messages. */
rws_status rws_sweep_parse(const char *text, size_t length, const char *name, rws_sweep **out,
                           rws_error *err) RWS_MUST_CHECK;
void       rws_sweep_free(rws_sweep *s); /* NULL is allowed */

/* All of a run but its seed, as a text, which is the same for runs of one kind. The caller frees it; NULL without
 * memory. */
char *rws_sweep_kind(const rws_sweep_run *run);

/* Sets up the model for one run of each kind, so that wrong settings are found before any
 * run starts, and fills in the number of iterations of every run. Runs of shared objects are left as they are unless
 * `objects`. */
rws_status rws_sweep_check(rws_sweep *s, bool objects, rws_error *err) RWS_MUST_CHECK;

/* The result with the name of the run; NULL: there is none. The results may be NULL. */
const rws_result *rws_sweep_run_result(const rws_sweep_run *run, const rws_results *results);

/* Whether the run is trained to its end, and measured after that if the sweep wants it. The result may be NULL. */
bool rws_sweep_run_is_done(const rws_sweep_run *run, const rws_result *result);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
