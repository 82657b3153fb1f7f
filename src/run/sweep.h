/* sweep.h - many runs from a small file: every method with every number of particles and every seed.
 *
 * Reads the file and lists the runs, each with a name of its own. It starts none of them.
 *
 *     file -> [sweep] -> rws_config, a name: a run -> rws train
 *
 * The format, line by line (a file has at most 64 KiB):
 *
 *     # A comment: from a '#' that begins a word to the end of the line.
 *     model      gmm                      begins a block; all that follows is about it
 *     methods    ws ww dww
 *     particles  2 5 10 20
 *     seeds      1-10                     numbers and ranges; 1 if there is no such line
 *     set        start far                a setting, for all runs of the block
 *     set        dww.delta 0.05 0.1 0.2   one that belongs to a method, in several values
 *     iterations 100000                   what is not said is as `rws train` has it: also eval-every, eval-data,
 *     lr         1e-3                     eval-particles, batch, shards, optimiser, lr, l2
 *     final      5000 1000                after training, measure with 5000 particles on 1000 test data
 *
 * The runs of a block are all combinations. They come ordered by seed, so that a sweep that is cut short has some runs
 * of every kind; and within a seed with many particles first, because those take longest.
 */
#ifndef RWS_RUN_SWEEP_H
#define RWS_RUN_SWEEP_H

#include "run/run.h"

enum { RWS_SWEEP_MAX_BYTES = 1 << 16, RWS_SWEEP_MAX_RUNS = 20000 };

typedef struct {
    const char *name;                        /* of its folder: "gmm-start=far-dww-delta=0.1-k2-s1" */
    rws_config  config;                      /* 0 and NULL where the file says nothing */
    int         final_particles, final_test; /* 0: nothing more is measured after training; as in training */
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

/* Tries one run of each kind on its model, so that what does not fit is found before anything starts, and fills in how
 * many iterations they will have. */
rws_status rws_sweep_settle(rws_sweep *s, rws_error *err) __attribute__((warn_unused_result));

#endif
