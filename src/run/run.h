/* run.h - a model, a method and their parameters, trained step by step.
 *
 * A trainer owns everything that changes during training: parameters, optimiser state, running numbers, the count of
 * iterations. It neither prints nor parses; it opens files only through checkpoint.h.
 *
 *     data -> programs -> engine -> estimator -> optimiser      all of it is rws_trainer_step
 */
#ifndef RWS_RUN_RUN_H
#define RWS_RUN_RUN_H

#include "estimator/estimator.h"
#include "optim/optim.h"
#include "optim/schedule.h"

/* What a run is: everything needed to repeat it. Text belongs to the caller and must outlive the trainer. */
typedef struct {
    const char *model; /* as typed: a name, or the path of a shared object */
    const char *method;
    int         particles, batch, shards, n_test; /* 0: the model's own default */
    int         eval_particles;                   /* 0: as many as in training */
    uint64_t    iterations, eval_every;           /* 0: likewise */
    uint64_t    seed;
    int         threads;
    bool        scalar;
    const char *optimiser, *lr; /* NULL: the model's */
    double      l2;
    const char *set[64]; /* "name=value" */
    int         n_set;
    bool        asking; /* not to train: without test data, and with the setting that the model has for this */
    const char *ask[8]; /* settings that come after that one */
    int         n_ask;
} rws_config;

#define RWS_METRICS 24

/* The numbers of one evaluation, in the order of rws_trainer_metric_name. */
typedef struct {
    uint64_t iteration;
    int      n;
    double   value[RWS_METRICS];
    double   log_evidence_error; /* standard error of that metric; NaN if the model knows log p(x) itself */
} rws_measures;

typedef struct rws_trainer rws_trainer;

/* Checks the configuration, sets the model up and initialises its parameters. Fails with a sentence that names the
 * option; *out is then NULL. The defaults that were filled in can be read back with rws_trainer_config. */
rws_status rws_trainer_new(const rws_config *config, rws_trainer **out, rws_error *err)
    __attribute__((warn_unused_result));
void rws_trainer_free(rws_trainer *t);

/* The same for a model at hand; config->model is then only a name. */
rws_status rws_trainer_new_with(const rws_config *config, const rws_model *model, rws_trainer **out, rws_error *err)
    __attribute__((warn_unused_result));

const rws_config    *rws_trainer_config(const rws_trainer *t);
const rws_model     *rws_trainer_model(const rws_trainer *t);
const rws_estimator *rws_trainer_estimator(const rws_trainer *t);
uint64_t             rws_trainer_iteration(const rws_trainer *t);        /* done so far */
const rws_given     *rws_trainer_settings(const rws_trainer *t, int *n); /* all, with defaults, model's then method's */

/* One iteration: every phase of the method. After a failure the trainer is good for nothing but being freed; the last
 * checkpoint is still good. */
rws_status rws_trainer_step(rws_trainer *t, rws_error *err) __attribute__((warn_unused_result));

/* Measures all metrics at the present parameters; changes nothing. */
rws_status  rws_trainer_evaluate(rws_trainer *t, rws_measures *out, rws_error *err) __attribute__((warn_unused_result));
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

void rws_snapshots_add(rws_snapshots *s, const rws_shown *shown); /* with a copy of the label */
void rws_snapshots_release(rws_snapshots *s);

/* Whether the present iteration, of which metrics are measured, is one that the model's snapshots are taken of: the
 * first, the first past the middle, the last. Always false for a model without snapshots. */
bool rws_trainer_snapshots_due(const rws_trainer *t);

/* Measures the model's snapshots at the present parameters; changes nothing. The caller releases *out, which need not
 * be empty, also after a failure. */
rws_status rws_trainer_snapshots(rws_trainer *t, rws_snapshots *out, rws_error *err)
    __attribute__((warn_unused_result));
void rws_snapshots_release(rws_snapshots *s);

/* The gradient that one iteration would step by, at the present parameters, which do not change: flat, ascent. */
rws_status rws_trainer_gradient(rws_trainer *t, rws_split split, uint64_t draw, float *gradient, rws_error *err)
    __attribute__((warn_unused_result));

/* Of all engines since the last call; and memory requests to the system since the trainer was made. */
rws_engine_stats rws_trainer_take_stats(rws_trainer *t);
uint64_t         rws_trainer_allocations(const rws_trainer *t);

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
void              rws_trainer_state_loaded(rws_trainer *t); /* after the parameters were overwritten */

#endif
