/* sweep.h - many runs from a small file: every method with every number of particles and every seed.
 *
 * Reads the file and lists the runs, each with a name of its own. It does not start them.
 *
 *     file -> [sweep] -> rws_config, a name: a run -> rws train
 *
 * The format, line by line (a file has at most 64 KiB):
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
 *     lr         1e-3                     eval-data, eval-particles, batch, shards, particle-shards,
 *                                         optimiser, l2
 *     final      5000 1000                after training, measure with 5000 particles on 1000 test data
 *
 * The runs of a block are all combinations. They are sorted by seed, so that a sweep that is stopped early has runs of
 * every kind; and within a seed by falling number of particles, because runs with many particles take longest.
 */
#ifndef RWS_RESULTS_SWEEP_H
#define RWS_RESULTS_SWEEP_H

#include "rws_train.h"

enum { RWS_SWEEP_MAX_BYTES = 1 << 16, RWS_SWEEP_MAX_RUNS = 20000 };

typedef struct {
    const char *name;            /* also of its folder: "gmm-start=far-dww-delta=0.1-k2-s1" */
    rws_config  config;          /* 0 or NULL for a key that is not in the file */
    int         final_particles; /* of the measurement after training; 0: none */
    int         final_test;      /* test data of that measurement; 0: as many as in training */
} rws_sweep_run;

typedef struct {
    int                      n;
    rws_sweep_run           *runs;
    struct rws_sweep_memory *memory;
} rws_sweep;

/* Reads `length` bytes of text; `name` stands for them in sentences. On success *out is the caller's to free; otherwise
 * *out is NULL and the status RWS_BAD_INPUT, with a sentence that names the line, or RWS_NO_MEMORY. */
rws_status rws_sweep_parse(const char *text, size_t length, const char *name, rws_sweep **out, rws_error *err)
    __attribute__((warn_unused_result));

/* The same for a file. */
rws_status rws_sweep_read(const char *path, rws_sweep **out, rws_error *err) __attribute__((warn_unused_result));

void rws_sweep_free(rws_sweep *s); /* NULL is allowed */

/* What the runs of one kind have in common, as a text. RWS_SWEEP_BUT_SEED: all of a run but its seed. RWS_SWEEP_PACE: all
 * that the seconds of an iteration, of an evaluation and of a test datum of `final` depend on; not the seed, the rate and
 * the numbers of iterations, evaluations and such test data. The caller frees it; NULL without memory. */
typedef enum { RWS_SWEEP_BUT_SEED, RWS_SWEEP_PACE } rws_sweep_likeness;
char *rws_sweep_kind(const rws_sweep_run *run, rws_sweep_likeness likeness);

/* Sets up the model for one run of each kind (RWS_SWEEP_BUT_SEED), so that wrong settings are found before any run starts,
 * and fills in the number of iterations of every run. Runs of shared objects are left as they are unless `objects`. */
rws_status rws_sweep_check(rws_sweep *s, bool objects, rws_error *err) __attribute__((warn_unused_result));

/* What the results, which may be NULL, say about a run, by its name; NULL: nothing. */
const rws_result *rws_sweep_run_result(const rws_sweep_run *run, const rws_results *results);

/* Whether the run is trained to its end, and measured after that if the sweep wants it. The result may be NULL. */
bool rws_sweep_run_is_done(const rws_sweep_run *run, const rws_result *result);

#endif
