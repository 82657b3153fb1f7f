/* made_run.h - the state of a run that nobody trained, for tests of its folder: a few parameters and numbers.
 *
 * Every test has a folder of its own (files.h), in which "run" is the run's.
 */
#ifndef RWS_TESTS_MADE_RUN_H
#define RWS_TESTS_MADE_RUN_H

#include "files.h"

#include "store/checkpoint.h"

#include <limits.h>
#include <sqlite3.h>

#define HUGE_SEED 18446744073709551557u

/* ---- the state */

enum { MAX_GIVEN = 80 };

typedef struct {
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
} made_run;

extern const rws_optimiser two_slots, one_slot, no_slot;

/* A run with parameters in all groups, declared in another order than that of the flat vector. `n_out` is the size of the
 * guide's layer: with 1 its weight is a matrix of one row. */
made_run *made_run_new(const rws_optimiser *optimiser, int n_out);
void      made_run_free(made_run *t);

void give(made_run *t, const char *name, const char *value); /* a setting; the texts are borrowed */

uint32_t random_bits(uint32_t *seed);

/* Fills the state with random numbers. Parameters are any finite floats: signed zeros, subnormals, the largest. */
void fill(made_run *t, uint32_t seed);

rws_run_state state_of(const made_run *t, double *seconds);

bool same_state(const made_run *a, const made_run *b); /* bit for bit */

/* ---- its run's folder */

extern char run_path[PATH_MAX];

int run_setup(void **state); /* makes the test's folder; run_path is "run" in it, which is not there */

rws_status try_create(const char *path, const made_run *t, rws_folder **out, rws_error *err);
rws_status try_save(rws_folder *f, const made_run *t, double seconds, rws_error *err);

rws_folder *create(const made_run *t);
void        save(rws_folder *f, made_run *t, double seconds);

/* Both load a checkpoint: for a run that continues, and for one that is only read. */
rws_status load(rws_folder *f, made_run *t, double *seconds, rws_error *err);
rws_status look(rws_folder *f, made_run *t, double *seconds, rws_error *err);

/* Passes if the load is refused with these words and changes nothing. */
void refuses_load(rws_folder *f, made_run *t, const char *a, const char *b);

/* ---- its store */

/* Records an evaluation of three metrics: the value, minus infinity and NaN. */
rws_status record(rws_folder *f, uint64_t iteration, double value, rws_error *err);

sqlite3 *store_open(void);

/* The first column of the first row as text, NULL as "NULL"; overwritten by the next call. */
const char *ask(const char *sql);

#endif
