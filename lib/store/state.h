/* state.h - what the folder of a run keeps, as pointers to where a trainer or a posterior has it.
 *
 *     trainer -> [state] -> checkpoint, config.json, measures -> [state] -> trainer, posterior
 */
#ifndef RWS_STORE_STATE_H
#define RWS_STORE_STATE_H

#include "estimator/estimator.h"
#include "optim/optim.h"
#include "rws_train.h"

/* Everything that makes a run and that training changes. A pointer to numbers may be NULL where a run is only read (the
 * optimiser's state, the memory of the method): what the checkpoint has of them is checked and not copied. */
typedef struct {
    const rws_config    *config;   /* all defaults filled in */
    const rws_given     *settings; /* all, with defaults: the model's, then the method's */
    int                  n_settings;
    const char          *model;  /* its name */
    const char          *object; /* the fingerprint of the shared object that is loaded; NULL: none is */
    rws_params          *params;
    const rws_optimiser *optimiser;
    float               *slot[2]; /* as long as the parameters */
    uint64_t            *steps;   /* RWS_GROUPS counters */
    uint64_t            *iteration;
    double              *memory;       /* RWS_METHOD_MEMORY numbers of the method */
    double              *seconds;      /* spent in training */
    uint64_t             data_hash[2]; /* by split, a fingerprint of the data; 0: not known */
} rws_run_state;

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

bool rws__snapshots_add(rws_snapshots *s, const rws_shown *shown); /* with a copy of the label; false: no memory */
void rws__snapshots_release(rws_snapshots *s);

#endif
