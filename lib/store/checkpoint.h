/* checkpoint.h - a run's folder: what is needed to repeat it, and to resume it.
 *
 *     config.json              the configuration, all defaults filled in (config.h)
 *     checkpoint.safetensors   parameters by name, optimiser state, counters; replaced atomically (checkpoint_file.h)
 *     checkpoint.previous.safetensors    the checkpoint before that one
 *     metrics.sqlite           every evaluation (store.h)
 *
 * The runs of a sweep share a store: where the folder above has a metrics.sqlite and is not itself a run's, measures go
 * there, under the name of the run's folder.
 *
 * A kill at any moment leaves a folder that resumes. For that an evaluation is recorded before the checkpoint of its
 * iteration is saved: measures of iterations after the last checkpoint are forgotten on resuming and taken again,
 * whereas a measure that a checkpoint overtakes would be missing for ever.
 *
 * The checkpoint holds, besides every parameter under its own name,
 *
 *     optimiser.<slot>    F32 [size of all parameters]    in the order of the flat vector
 *     optimiser.steps     U64 [RWS_GROUPS]
 *     iteration           U64 [1]
 *     method.memory       F64 [RWS_METHOD_MEMORY]
 *     seconds             F64 [1]
 *
 * and in its metadata a checksum of each of them and of the header (data/safetensors.h): a file with a bit flipped is refused,
 * and the message tells of the checkpoint before it.
 *
 * The metadata also has the version of the program, its build and the processor (machine.h), and the configuration that
 * makes the run what it is ("identity", see rws__config_identity), the rates and the number of iterations that it had
 * ("lr", "iterations"), and the fingerprint of its shared object ("model_fingerprint", "" if it has none).
 *
 * A parameter is [rows, cols], and [cols] if it is one row that is not a layer's weight: as PyTorch's state_dict has
 * weights, biases and vectors.
 */
#ifndef RWS_STORE_CHECKPOINT_H
#define RWS_STORE_CHECKPOINT_H

#include "program/plugin.h"
#include "store/state.h"

typedef struct rws_folder rws_folder;

/* Every function that returns a status: RWS_BAD_INPUT with a message that names the file or folder, or RWS_NO_MEMORY. */

/* Makes the folder (and its parents) for a new run, locks it and writes config.json. A folder that holds a run already,
 * or the measures of one, is refused, untouched: the message tells of --resume. A run that ended before its first
 * checkpoint and its first measures, and that no process trains, is replaced. On failure *out is NULL; a folder that was
 * made stays, empty. */
rws_status rws__folder_create(const char *path, const rws_run_state *s, rws_folder **out, rws_error *err)
    __attribute__((warn_unused_result));

/* Reads config.json of a run's folder into *config; strings belong to the folder. config->model is NULL for
 * a shared object, which only the user can name. On failure *out is NULL and *config as it
 * was. */
rws_status rws__folder_open(const char *path, rws_config *config, rws_folder **out, rws_error *err)
    __attribute__((warn_unused_result));

/* The entries about the model in the files of the folder. */
const rws_recorded *rws__folder_recorded(const rws_folder *f);

void rws__folder_close(rws_folder *f); /* NULL is allowed; evaluations that were not flushed are lost */

/* Locks a run that is to continue: no other process can train it until the folder is closed or this process ends.
 * RWS_BAD_INPUT if another process trains it. On a file system without locks nothing is locked, and
 * rws__folder_warnings says so. */
rws_status rws__folder_lock(rws_folder *f, rws_error *err) __attribute__((warn_unused_result));

/* Whether some process is training the run in that folder. */
bool rws__folder_is_busy(const char *path);

/* Whether the folder has a checkpoint. True also if that cannot be told, so that rws__folder_load says why and nothing is
 * begun anew over it. */
bool rws__folder_has_checkpoint(const rws_folder *f);

/* Takes the place of rws__folder_load for a run that has no checkpoint, and therefore continues from the beginning: forgets its
 * measures and its numerical failure. */
rws_status rws__folder_restart(rws_folder *f, rws_error *err) __attribute__((warn_unused_result));

/* The warnings for a user who continues with the run, after rws__folder_load: full sentences, or "". */
const char *rws__folder_warnings(const rws_folder *f);

/* Adds a message to the warnings. */
void rws__folder_warn(rws_folder *f, const char *message);

/* Writes the iterations, the rates and the path of the model into config.json, and into the store's copy of it, and the
 * fingerprint, unless it is NULL, into config.json. */
rws_status rws__folder_amend(rws_folder *f, const rws_config *config, const char *fingerprint, rws_error *err)
    __attribute__((warn_unused_result));

/* Flushes, and replaces the checkpoint. RWS_BROKEN if a parameter is NaN or infinite or the optimiser's state has a NaN,
 * RWS_BAD_INPUT if the file cannot be written: the old checkpoint then stays. */
rws_status rws__folder_save(rws_folder *f, const rws_run_state *s, rws_error *err) __attribute__((warn_unused_result));

/* Loads the checkpoint and forgets measures of later iterations. Everything is checked first: on failure the numbers and
 * the folder are as they were. The caller sees to copies of the parameters (rws__program_changed). */
rws_status rws__folder_load(rws_folder *f, const rws_run_state *s, rws_error *err) __attribute__((warn_unused_result));

/* As rws__folder_load, but forgets nothing: for a run that may still be training, or is read-only. */
rws_status rws__folder_peek(rws_folder *f, const rws_run_state *s, rws_error *err) __attribute__((warn_unused_result));

/* Keeps an evaluation, with its snapshots if there are any (they may be NULL), for the next flush. */
rws_status rws__folder_record(rws_folder *f, const rws_measures *m, const rws_snapshots *shown, rws_error *err)
    __attribute__((warn_unused_result));

/* Whether the store lacks the evaluation of that iteration, the run's latest: training was stopped while it measured. */
rws_status rws__folder_lacks(const rws_folder *f, uint64_t iteration, bool *missing, rws_error *err)
    __attribute__((warn_unused_result));

/* Adds the evaluations that were kept to the store, in one transaction. On failure they are still kept. */
rws_status rws__folder_flush(rws_folder *f, rws_error *err) __attribute__((warn_unused_result));

/* Flushes, and writes the numerical failure of the run after `iteration` to the store, with its message. */
rws_status rws__folder_fail(rws_folder *f, uint64_t iteration, const char *message, rws_error *err)
    __attribute__((warn_unused_result));

/* Adds metrics under names of their own to the run's last evaluation: for measures that are taken after training. */
rws_status rws__folder_add(rws_folder *f, uint64_t iteration, double seconds, int n, const char *const *names,
                           const double *values, rws_error *err) __attribute__((warn_unused_result));

#endif
