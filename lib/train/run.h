/* run.h - what the rooms above know of a trainer beyond the public header.
 *
 * rws_train.h has the trainer's life, its steps and its metrics; this header adds what checkpoints, benches and tests
 * need: the optimiser's state, snapshots, statistics of the engines.
 */
#ifndef RWS_TRAIN_RUN_H
#define RWS_TRAIN_RUN_H

#include "estimator/estimator.h"
#include "optim/optim.h"
#include "optim/schedule.h"
#include "rws_train.h"

#define RWS_MAX_ITERATIONS UINT64_C(1000000000000000) /* of a run */

typedef struct rws_folder rws_folder;

const rws_estimator *rws_trainer_estimator(const rws_trainer *t);
const rws_given     *rws_trainer_settings(const rws_trainer *t, int *n); /* all, with defaults, model's then method's */
/* Settings that runs of this model have besides the model's and the method's; NULL: none; ends with a NULL name. */
const rws_setting *rws_run_settings(const rws_model *m);
/* Settings that a run of any model has only if the user gives them; ends with a NULL name. */
extern const rws_setting rws_open_settings[];
#define RWS_SITE_PREFIX "site." /* one of them is called site.NAME, for every site NAME of the programs */

rws_folder *rws_trainer_folder(const rws_trainer *t); /* NULL: it is kept nowhere */
int         rws_trainer_n_metrics(const rws_trainer *t);
const char *rws_trainer_metric_name(const rws_trainer *t, int i);

/* A number of a snapshot, as the model showed it. */
typedef struct {
    const char *snapshot; /* its name; the model's */
    int         place;    /* 0 … in the snapshot */
    char       *label;    /* NULL if it has none */
    double      value;
} rws_shown;

/* A growing list of them; a zeroed one is valid and empty. */
typedef struct {
    rws_shown *list;
    int        n, capacity;
} rws_snapshots;

bool rws_snapshots_add(rws_snapshots *s, const rws_shown *shown); /* with a copy of the label; false: no memory */
void rws_snapshots_release(rws_snapshots *s);

/* Whether the model's snapshots are taken at the present iteration, at which metrics are measured: the first, the first
 * past the middle, the last. Always false for a model without snapshots. */
bool rws_trainer_snapshots_due(const rws_trainer *t);

/* Measures the model's snapshots at the present parameters; changes nothing. The caller releases *out, which need not
 * be empty, also after a failure. */
rws_status rws_trainer_snapshots(rws_trainer *t, rws_snapshots *out, rws_error *err)
    __attribute__((warn_unused_result));

/* Statistics of all engines since the last call; and memory requests to the system since the trainer was made. */
rws_engine_stats rws_trainer_take_stats(rws_trainer *t);
void             rws_trainer_count_rows(rws_trainer *t, bool on); /* counts the rows that are needed; see engine.h */
uint64_t         rws_trainer_allocations(const rws_trainer *t);

/* A fingerprint of the data, for checkpoints: 0 until rws_trainer_hash_data has computed it, of the test data and of two
 * batches of the training data. */
uint64_t   rws_trainer_data_hash(const rws_trainer *t, rws_split split);
rws_status rws_trainer_hash_data(rws_trainer *t, rws_error *err) __attribute__((warn_unused_result));

/* rws_posterior_sample that ends with RWS_STOPPED soon after `stop` has returned true; it is asked now and then, on the
 * thread of the caller. NULL: never. */
rws_status rws_posterior_sample_unless(rws_posterior *p, int n, uint64_t seed, bool (*stop)(void *context),
                                       void *context, rws_samples **out, rws_error *err)
    __attribute__((warn_unused_result));

/* For checkpoints and tests: everything that training changes. */
typedef struct {
    rws_params          *params;
    const rws_optimiser *optimiser;
    float               *slot[2]; /* as long as the parameters */
    uint64_t            *steps;   /* RWS_GROUPS counters */
    uint64_t            *iteration;
    double              *memory; /* RWS_METHOD_MEMORY numbers of the method */
} rws_trainer_state;

rws_trainer_state rws_trainer_state_of(rws_trainer *t);

#endif
