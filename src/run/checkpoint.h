/* checkpoint.h - a run's folder: what is needed to repeat it, and to go on with it.
 *
 *     config.json              the configuration, all defaults filled in (config.h)
 *     checkpoint.safetensors   parameters by name, optimiser state, counters; replaced atomically (safetensors.h)
 *     metrics.sqlite           every evaluation (store.h)
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

/* Makes the folder (and its parents) for a new run and writes config.json. A folder that holds a run already, or the
 * measures of one, is refused, untouched: the sentence tells of --resume. On failure *out is NULL; a folder that was
 * made stays, empty. */
rws_status rws_folder_create(const char *path, const rws_trainer *t, rws_folder **out, rws_error *err)
    __attribute__((warn_unused_result));

/* Reads config.json of a run's folder into *config; strings belong to the folder. On failure *out is NULL and *config
 * as it was. */
rws_status rws_folder_open(const char *path, rws_config *config, rws_folder **out, rws_error *err)
    __attribute__((warn_unused_result));

void rws_folder_close(rws_folder *f); /* NULL is allowed */

/* Whether the folder has a checkpoint (a run that was killed before its first one starts from the beginning). True also
 * if that cannot be told, so that rws_folder_load says why and nothing is begun anew over it. */
bool rws_folder_has_checkpoint(const rws_folder *f);

/* Replaces the checkpoint. RWS_BROKEN if a parameter is NaN or infinite, RWS_BAD_INPUT if the file cannot be written:
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

/* Adds an evaluation to the store. */
rws_status rws_folder_record(rws_folder *f, const rws_trainer *t, const rws_measures *m, double seconds, rws_error *err)
    __attribute__((warn_unused_result));

#endif
