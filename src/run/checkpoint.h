/* checkpoint.h - a run's folder: what is needed to repeat it, and to go on with it.
 *
 *     config.json              the configuration, all defaults filled in (config.h)
 *     checkpoint.safetensors   parameters by name, optimiser state, counters; replaced atomically (safetensors.h)
 *     metrics.sqlite           every evaluation (store.h)
 *
 * The runs of a sweep share a store: where the folder above has a metrics.sqlite and is not itself a run's, measures go
 * there, under the name of the run's folder.
 *
 * A kill at any moment leaves a folder that resumes. For that an evaluation is recorded before the checkpoint of its
 * iteration is saved: what was measured after the last checkpoint is forgotten on resuming and measured again, whereas
 * what was not measured before it would never be.
 *
 * The checkpoint holds, besides every parameter under its own name,
 *
 *     optimiser.<slot>    F32 [size of all parameters]    in the order of the flat vector
 *     optimiser.steps     U64 [RWS_GROUPS]
 *     iteration           U64 [1]
 *     method.memory       F64 [RWS_METHOD_MEMORY]
 *     seconds             F64 [1]
 *
 * A parameter is [rows, cols], and [cols] if it is one row that is not a layer's weight: as PyTorch's state_dict has
 * weights, biases and vectors.
 */
#ifndef RWS_RUN_CHECKPOINT_H
#define RWS_RUN_CHECKPOINT_H

#include "run/run.h"

typedef struct rws_folder rws_folder;

/* Makes the folder (and its parents) for a new run, locks it and writes config.json. A folder that holds a run already,
 * or the measures of one, is refused, untouched: the sentence tells of --resume. On failure *out is NULL; a folder that
 * was made stays, empty. */
rws_status rws_folder_create(const char *path, const rws_trainer *t, rws_folder **out, rws_error *err)
    __attribute__((warn_unused_result));

/* Reads config.json of a run's folder into *config; strings belong to the folder. On failure *out is NULL and *config
 * as it was. */
rws_status rws_folder_open(const char *path, rws_config *config, rws_folder **out, rws_error *err)
    __attribute__((warn_unused_result));

void rws_folder_close(rws_folder *f); /* NULL is allowed; what was not flushed is lost */

/* To be called before a run goes on: nobody else can until the folder is closed or the process ends. RWS_BAD_INPUT if
 * another process has it. On a file system without locks everybody may. */
rws_status rws_folder_lock(rws_folder *f, rws_error *err) __attribute__((warn_unused_result));

/* Whether some process is training the run in that folder. */
bool rws_folder_is_busy(const char *path);

/* Whether the folder has a checkpoint (a run that was killed before its first one starts from the beginning). True also
 * if that cannot be told, so that rws_folder_load says why and nothing is begun anew over it. */
bool rws_folder_has_checkpoint(const rws_folder *f);

/* Writes down in config.json that the run is to have so many iterations and these rates. */
rws_status rws_folder_amend(rws_folder *f, const rws_config *config, rws_error *err)
    __attribute__((warn_unused_result));

/* Flushes, and replaces the checkpoint. RWS_BROKEN if a parameter is NaN or infinite, RWS_BAD_INPUT if the file cannot be written:
 * the old checkpoint then stays. */
rws_status rws_folder_save(rws_folder *f, rws_trainer *t, double seconds, rws_error *err)
    __attribute__((warn_unused_result));

/* Loads the checkpoint and forgets measures of later iterations. *seconds: spent in training so far. Everything is
 * checked first: on failure the trainer, *seconds and the folder are as they were. */
rws_status rws_folder_load(rws_folder *f, rws_trainer *t, double *seconds, rws_error *err)
    __attribute__((warn_unused_result));

/* As rws_folder_load, but forgets nothing: for those who look at a run that may still be training, or is read-only. */
rws_status rws_folder_look(rws_folder *f, rws_trainer *t, double *seconds, rws_error *err)
    __attribute__((warn_unused_result));

/* Keeps an evaluation, with its snapshots if there are any (they may be NULL), for the next flush. */
void rws_folder_record(rws_folder *f, const rws_trainer *t, const rws_measures *m, const rws_snapshots *shown,
                       double seconds);

/* Adds the evaluations that were kept to the store, in one transaction. On failure they are still kept. */
rws_status rws_folder_flush(rws_folder *f, rws_error *err) __attribute__((warn_unused_result));

/* Flushes, and says in the store that the run's numbers broke after `iteration`, and how. */
rws_status rws_folder_fail(rws_folder *f, uint64_t iteration, const char *sentence, rws_error *err)
    __attribute__((warn_unused_result));

/* Adds metrics under names of their own to the run's last evaluation: for what is measured after training. */
rws_status rws_folder_add(rws_folder *f, uint64_t iteration, double seconds, int n, const char *const *names,
                          const double *values, rws_error *err) __attribute__((warn_unused_result));

#endif
