/* trainer.h - the trainer's own structure; included by the files of this room only. */
#ifndef RWS_RUN_TRAINER_H
#define RWS_RUN_TRAINER_H

#include "base/error.h"
#include "run/pool.h"
#include "run/run.h"

#ifdef __SSE__
#include <xmmintrin.h>
#endif

/* A fixed part of every batch. Which thread works on it changes nothing. */
typedef struct {
    float              *gradient; /* flat; what it has added since the parameters were last stepped, */
    bool               *touched;  /* by parameter: whether it has, else there are zeros, */
    const rws_products *products; /* and what is still to be added: of its engine's last pass; NULL: nothing */
    rws_tally           tally;
    rws_status          status;
    rws_error           error;
} rws_shard;

typedef struct rws_part rws_part;

struct rws_trainer {
    rws_config           config;
    const rws_model     *model;
    void                *library; /* of a user's model */
    rws_setup            setup;
    void                *state; /* of the model */
    rws_method           method;
    rws_schedule         schedule;
    rws_optim_config     optim;
    const rws_optimiser *optimiser;
    float               *slot[2], *direction;
    uint64_t             steps[RWS_GROUPS], iteration;
    rws_tally            tally; /* of the last iteration's wake phase */
    rws_shard           *shards;
    rws_pool            *pool;
    rws_engine         **engines; /* one per thread, or one per shard if a second round needs what it holds */
    int                  n_engines;
    bool                 engine_per_shard;
    bool                 puts_off; /* products of weights are added up part by part; needs an engine per shard */
    rws_part            *parts;    /* of the flat vectors */
    int                  n_parts;
    rws_arena           *scratch; /* per thread, for work on parts */
    uint64_t             flops;   /* of that */
    float               *batch[RWS_FIELDS], *test[RWS_FIELDS];
    bool                 std_ref;
    const char          *metric_names[RWS_METRICS];
    int                  n_metrics, n_model_metrics;
};

/* One phase on n_data data (or as many times K samples of the model): adds to the shards' gradients. */
rws_status rws_trainer_phase(rws_trainer *t, int index, rws_key key, int n_data, const float *const *fields,
                             rws_error *err);

/* Normalised weights underflow; arithmetic on denormals would be many times slower than on zeros. */
static inline void rws_flush_denormals(void)
{
#ifdef __SSE__
    _mm_setcsr(_mm_getcsr() | 0x8040);
#endif
}

/* step.c: cuts the flat vectors into parts, once they are there; and forgets the parts. */
void rws_trainer_cut(rws_trainer *t);
void rws_trainer_uncut(rws_trainer *t);

/* Adds the shards' gradients of the groups up; the sum becomes that of shard 0. */
void rws_trainer_sum(rws_trainer *t, unsigned groups);

/* Moves the parameters of the groups along their gradients, which then begin anew. */
rws_status rws_trainer_move(rws_trainer *t, unsigned groups, rws_error *err);

/* Of importance sampling with the guide, means over the test data: the bound on log p(x) by eval_particles and its
 * standard error, KL(q || p), the effective number of particles as a share of them, and the model's metrics that look
 * at particles. */
typedef struct {
    double log_evidence, log_evidence_error, kl, ess, metric[RWS_METRICS];
} rws_bound;

rws_status rws_trainer_bound(rws_trainer *t, rws_bound *out, rws_error *err);

/* bound.c: the pass in which the guide's particles first … end - 1 of one datum tell of themselves. */
rws_pass rws_trainer_question(rws_trainer *t, const float *const *fields, uint64_t seed, int first, int end);

/* bound.c: rws_eval_guess. */
rws_status rws_trainer_guess(rws_trainer *t, const float *const *fields, int K,
                             void (*each)(const rws_particle *p, int count, void *context), void *context,
                             rws_error *err);

/* settings.c: the model's and the method's settings with the values they are given. */
rws_status rws_trainer_settle(rws_trainer *t, const rws_estimator *estimator, rws_error *err);

/* plugin.c: a built-in model by name, or one from a shared object by path. */
rws_status rws_trainer_find_model(rws_trainer *t, const char *name, rws_error *err);

#endif
