/* trainer.h - the trainer's own structure; included by the files of this folder only.
 *
 *     trainer.c   how a trainer comes about
 *     train.c     the algorithm: batch, phases, forward, weigh, backward, step
 *     shards.c    how a phase is distributed over ranks, threads and shards
 *     phase.c     the mathematics of a phase on one shard
 *     cut.c       weighing where several shards have particles of one datum
 *     given.c     choices that are given for a batch: by labels, by a file, by the caller
 *     update.c    from the shards' gradients to new parameters, slice by slice
 *     exchange.c      messages between ranks about slices
 *     forest.c    the order in which shards are added
 *     ranks.c     which rank does what, when there are several
 *     gradient.c  the gradient of an iteration without its step
 *     gradient_noise.c    how much that gradient varies
 *     review.c    the programs under review (lib/check), and impossible training data
 *     importance.c, evaluate.c    metrics on the test data
 *     loop.c      iterations, evaluations and checkpoints until the end
 *     run_folder.c a trainer and the folder of its run
 */
#ifndef RWS_TRAIN_TRAINER_H
#define RWS_TRAIN_TRAINER_H

#include "base/error.h"
#include "optim/schedule.h"
#include "program/program.h"
#include "store/checkpoint.h"
#include "base/pool.h"
#include "train/ranks.h"
#include "train/inspect.h"

#include <pthread.h>

/* A fixed part of every batch: some of its data and, if the configuration cuts particles too, some of their particles.
 * Which thread and which rank works on it changes nothing. Shards of other ranks have no memory of their own, but shard
 * 0 has a gradient everywhere, where sums are left. */
typedef struct {
    float              *gradient; /* flat: what the shard has added since the parameters were last stepped */
    bool               *touched;  /* by number of the parameter: false if its part of `gradient` is all zeros */
    const rws_products *products; /* products of its engine's last pass that are still to be added; NULL: none */
    rws_tally           tally;
    rws_status          status;
    rws_error           error;
    void               *rows; /* cut.c: the rows of its table, for the other shards of its data */
    size_t              n_rows_bytes, rows_capacity;
} rws_shard;

/* The table of all particles of some data, whose rows several shards have. See cut.c. */
typedef struct rws_joined rws_joined;

/* A part of the flat parameter vector, of whole rows of parameters of one group; see slices.h. */
typedef struct rws_param_slice rws_param_slice;

struct rws_trainer {
    rws_program             program;
    pthread_mutex_t         use; /* held by the thread that is inside a public function; recursive */
    rws_schedule            schedule;
    rws_optim_config        optim;
    const rws_optimiser    *optimiser;
    float                  *slot[2], *direction;
    uint64_t                steps[RWS_GROUPS];
    double                  seconds; /* spent in training */
    rws_tally               tally;   /* sums that the phases of the last iteration made */
    rws_shard              *shards;
    int                     n_shards; /* config.shards times config.particle_shards */
    rws_ranks               ranks;
    struct rws_outcome     *outcomes; /* by shard: how its job ended; see shards.c */
    int                     request;  /* bits RWS_REQUEST_…, of this rank */
    int                     requests; /* the same of all ranks, collected since loop.c read it last */
    rws_joined             *joined;   /* by part of the data; NULL: particles are not cut */
    rws_transfer           *moves;    /* messages with rows of cut particles; NULL: there are none */
    rws_pool               *pool;
    rws_engine            **engines; /* one per thread, or one per shard if something needs what an engine holds */
    int                     n_engines;
    bool                    engine_per_shard;
    bool                    defers; /* products of weights are added slice by slice; needs an engine per shard */
    rws_param_slice        *slices;
    int                     n_slices;
    int                    *slice_order;   /* the slices in the order in which this rank works on them */
    bool                    few_params;    /* rank 0 owns all slices */
    rws_shared              shared;        /* messages of the ranks of this machine about slices: exchange.c */
    unsigned                n_updates;     /* updates with other ranks so far, modulo 2^32; marks their messages */
    rws_arena              *scratch;       /* per thread, for work on slices */
    uint64_t                flops;         /* of the work on slices since the last rws__trainer_take_stats */
    float                 **batch, **test; /* by field */
    rws_status              batch_status;  /* whether the batch came; a failure on one rank travels with its shards */
    rws_error               batch_error;
    uint64_t                data_hash[2]; /* by split; 0 until rws__trainer_hash_data */
    struct rws_batch_given *given;        /* choices that are given for the batch (given.c); NULL: there are none */
    bool                    std_ref;      /* settings about metrics of gradients */
    int                     grad_snr;     /* 0: no ratios; 1: of ten draws; more: of so many */
    const char             *metric_names[RWS_MAX_METRICS];
    int                     n_metrics, n_model_metrics;
    rws_folder             *folder; /* where the run is kept; NULL: nowhere, or by rank 0 */
    bool                    kept;   /* rank 0 has a folder */
    uint64_t                saved;  /* iteration of the checkpoint that was written or loaded last, if there is one */
    uint64_t                evaluated; /* iteration of the last evaluation that rws_trainer_train has made; 0: none */
    const rws_watch        *watch;     /* while rws_trainer_train runs; else NULL */
    bool                    stopping;  /* atomic: the watch has asked to stop, and an evaluation ends early */
    pthread_t               caller;    /* the thread that called rws_trainer_train */
    double                  asked_at;  /* when a pass last asked the watch whether to stop */
    bool                    stepped;   /* a phase of this iteration has stepped the parameters */
    bool                    checked;   /* rws_trainer_train has looked at the programs */
    uint64_t                seen, impossible; /* training data so far; those that no particle explains */
    char                    forbidden[540]; /* the first of these, as a part of a message; "": it was not looked for */
    char                    doubt[700];     /* rws_trainer_doubt; "": none */
    char                    impossible_text[700]; /* rws_trainer_impossible */
};

/* ---- trainer.c */

/* The public functions that use the trainer begin with this. It fails if the trainer is NULL, or if another thread is
 * inside one of them. */
#define RWS_TRAINER_ENTER(t, err)        \
    RWS_TRY(rws__trainer_enter(t, err)); \
    __attribute__((cleanup(rws__trainer_leave), unused)) rws_trainer *entered_ = (t)

rws_status rws__trainer_enter(rws_trainer *t, rws_error *err);
void       rws__trainer_leave(rws_trainer **t);

/* ---- train.c */

/* Adds the gradient of a phase to the shards' gradients. */
rws_status rws__trainer_phase(rws_trainer *t, const rws_phase *phase, rws_key key, int n_data,
                              const float *const *fields, rws_error *err);

/* Fills t->batch with the data of the present iteration. A failure, which other ranks do not know of, is kept in the
 * trainer: the next phase fails with it on all ranks. */
void rws__trainer_next_batch(rws_trainer *t);

/* ---- shards.c */

/* Allocates t->outcomes. False without memory. */
bool rws__shards_make_outcomes(rws_trainer *t);

/* Zeroes the gradients of the shards and drops their products, after an iteration that failed. */
void rws__shards_forget(rws_trainer *t);

/* ---- cut.c */

/* Allocates t->joined if the configuration cuts particles, and frees it. */
rws_status rws__cut_new(rws_trainer *t, rws_error *err);
void       rws__cut_free(rws_trainer *t);

/* ---- ranks.c */

/* Runs jobs first … end - 1 on the threads of this rank. */
void rws__trainer_run_range(rws_trainer *t, int first, int end, rws_pool_job *job, void *context);

/* `records` has n records of `size` bytes. This rank has filled in those of its range (rws__ranks_range) and gets all
 * others from the other ranks. */
rws_status rws__trainer_exchange(rws_trainer *t, int n, void *records, size_t size, rws_error *err);

/* Runs n jobs, distributed over the ranks and their threads. Each job writes its record, and then every rank gets all
 * records. */
rws_status rws__trainer_distribute(rws_trainer *t, int n, rws_pool_job *job, void *context, void *records, size_t size,
                                   rws_error *err);

/* The first rank that failed decides for all (rws__comm_agree). */
rws_status rws__trainer_agree(rws_trainer *t, rws_status status, rws_error *err);

/* Adds the requests of all ranks to t->requests. A phase does the same when its shards exchange their outcomes. */
rws_status rws__trainer_requests(rws_trainer *t, rws_error *err);

/* Every rank gets the parameters, the optimiser's state and the counters of rank 0. */
rws_status rws__trainer_broadcast_state(rws_trainer *t, rws_error *err);

/* RWS_BAD_INPUT if the ranks have different programs, options, models or data. */
rws_status rws__trainer_meet(rws_trainer *t, rws_error *err);

/* ---- update.c */

/* Cuts the flat vectors into slices, once their sizes are known; and frees the slices. */
rws_status rws__slices_new(rws_trainer *t, rws_error *err);
void       rws__slices_free(rws_trainer *t);

/* Adds up the gradients of all shards for the groups in the mask, and leaves the sum in the gradient of shard 0. */
rws_status rws__trainer_sum(rws_trainer *t, unsigned groups, rws_error *err);

/* Adds up the gradients in the same way, steps the parameters of the groups along the sum, and zeroes the gradients. */
rws_status rws__trainer_update(rws_trainer *t, unsigned groups, rws_error *err);

/* ---- exchange.c */

/* Memory for messages about slices, which the ranks of one machine share. Collective, by ranks that have the same
 * slices; one process alone needs none. */
rws_status rws__slices_map(rws_trainer *t, rws_error *err);

/* Rank 0 gets the optimiser's state of the slices that other ranks own: before a checkpoint. */
rws_status rws__trainer_collect_slots(rws_trainer *t, rws_error *err);

/* ---- loop.c */

/* RWS_STOPPED if the user asks training to stop: for evaluations, which may take long. Only worker 0, the thread that
 * trains, calls the user's function; the other workers read its last answer. */
rws_status rws__trainer_check_stop(rws_trainer *t, int worker, rws_error *err);

/* Whether a pass ends early, for rws__engine_watch. A pass may end early in an evaluation, and in an iteration before
 * its first step, so that no iteration is half done. Passes of several ranks are not stopped, because the other ranks
 * would not know of it. */
bool rws__trainer_should_stop(void *trainer);

/* rws__trainer_check_stop for several ranks, which must stop at the same place: a request to stop counts after the next
 * phase. */
rws_status rws__trainer_check_stop_together(rws_trainer *t, rws_error *err);

/* ---- review.c */

/* Looks at a user's programs before the first iteration, once, for a fraction of a second. RWS_BAD_INPUT with the first
 * mistake. */
rws_status rws__trainer_check_briefly(rws_trainer *t, rws_error *err);

/* After an iteration: counts training data that no particle explains, and finds out what forbids the first of them. */
void rws__trainer_count_impossible(rws_trainer *t);

/* ---- importance.c */

/* Importance sampling with the guide, means over the test data: the bound on log p(x) by eval_particles and its
 * standard error, KL(q || p), the effective number of particles as a share of them, and the model's metrics of
 * particles. A datum that no particle explains is left out of all but the guide's metrics; `impossible` is the share of
 * such data. */
typedef struct {
    double log_evidence, log_evidence_error, kl, ess, impossible, metric[RWS_MAX_METRICS];
} rws_bound;

rws_status rws__trainer_bound(rws_trainer *t, rws_bound *out, rws_error *err);

/* The variation of the gradient: the standard deviation of phi's, and the signal-to-noise ratios. */
typedef struct {
    double std, snr_theta, snr_phi;
} rws_gradient_noise;

rws_status rws__trainer_gradient_noise(rws_trainer *t, rws_gradient_noise *out, rws_error *err);

/* Does the work of rws_eval_guess. */
rws_status rws__trainer_guess(rws_trainer *t, const float *const *fields, int K,
                              void (*each)(const rws_particle *p, int count, void *context), void *context,
                              rws_error *err);

#endif
