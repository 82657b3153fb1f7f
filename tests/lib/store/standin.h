/* standin.h - a trainer that does not train, for tests of a run's folder: a few parameters and numbers behind the functions
 * of run.h that the folder calls. Its programs are linked with the files that they test, not with the library.
 *
 * Every test has a folder of its own (files.h), in which "run" is the run's.
 */
#ifndef RWS_TESTS_STANDIN_H
#define RWS_TESTS_STANDIN_H

#include "files.h"

#include "store/checkpoint.h"

#include <limits.h>
#include <sqlite3.h>

#define HUGE_SEED 18446744073709551557u

/* ---- the trainer */

enum { MAX_GIVEN = 80 };

struct rws_trainer {
    rws_config           config;
    rws_model            model;
    rws_setting          settings[MAX_GIVEN];
    rws_given            given[MAX_GIVEN];
    int                  n_given;
    rws_params           params;
    const rws_optimiser *optimiser;
    float               *slot[2];
    uint64_t             steps[RWS_GROUPS], iteration, data_hash[2];
    double               memory[RWS_METHOD_MEMORY];
    const char          *metrics[RWS_MAX_METRICS];
    int                  n_metrics;
    int                  n_loaded; /* calls of rws_trainer_changed */
};

extern const rws_optimiser two_slots, one_slot, no_slot;

/* A trainer with parameters in all groups, declared in another order than that of the flat vector. `n_out` is the size of the
 * guide's layer: with 1 its weight is a matrix of one row. */
rws_trainer *trainer_new(const rws_optimiser *optimiser, int n_out);
void         trainer_free(rws_trainer *t);

void give(rws_trainer *t, const char *name, const char *value); /* a setting; the texts are borrowed */

uint32_t random_bits(uint32_t *seed);

/* Fills the state with random numbers. Parameters are any finite floats: signed zeros, subnormals, the largest. */
void fill(rws_trainer *t, uint32_t seed);

bool same_state(const rws_trainer *a, const rws_trainer *b); /* bit for bit */

/* ---- its run's folder */

extern char run_path[PATH_MAX];

int run_setup(void **state); /* makes the test's folder; run_path is "run" in it, which is not there */

rws_folder *create(const rws_trainer *t);
void        save(rws_folder *f, rws_trainer *t, double seconds);

/* Passes if the load is refused with these words and changes nothing. */
void refuses_load(rws_folder *f, rws_trainer *t, const char *a, const char *b);

/* ---- its store */

/* Records an evaluation of three metrics: the value, minus infinity and NaN. */
rws_status record(rws_folder *f, const rws_trainer *t, uint64_t iteration, double value, rws_error *err);

sqlite3 *store_open(void);

/* The first column of the first row as text, NULL as "NULL"; overwritten by the next call. */
const char *ask(const char *sql);

#endif
