/* inspect.h - what benches, tests and the files of this folder read of a trainer beyond the public header: snapshots,
 * statistics of the engines, the state that training changes. */
#ifndef RWS_TRAIN_INSPECT_H
#define RWS_TRAIN_INSPECT_H

#include "engine/engine.h"
#include "store/checkpoint.h"

/* Whether the model's snapshots are taken at the present iteration, at which metrics are measured: the first, the first
 * past the middle, the last. Always false for a model without snapshots. */
bool rws__trainer_snapshots_due(const rws_trainer *t);

/* Measures the model's snapshots at the present parameters; changes nothing. The caller releases *out, which need not
 * be empty, also after a failure. */
rws_status rws__trainer_snapshots(rws_trainer *t, rws_snapshots *out, rws_error *err)
    __attribute__((warn_unused_result));

/* Statistics of all engines since the last call; and memory requests to the system since the trainer was made. */
rws_engine_stats rws__trainer_take_stats(rws_trainer *t);
void             rws__trainer_count_rows(rws_trainer *t, bool on); /* counts the rows that are needed; see engine.h */
uint64_t         rws__trainer_allocations(const rws_trainer *t);

/* Computes the fingerprints of the data that checkpoints have, unless they are known: of the test data and of two
 * batches of the training data. */
rws_status rws__trainer_hash_data(rws_trainer *t, rws_error *err) __attribute__((warn_unused_result));

/* rws_trainer_new for a run whose files say `recorded` about the model; NULL: a new run. */
rws_status rws__trainer_open(const rws_config *config, const rws_recorded *recorded, const rws_model *model,
                             rws_trainer **out, rws_error *err) __attribute__((warn_unused_result));

/* Reads the checkpoint of a folder (rws__folder_peek), which may belong to a run that is still training. */
rws_status rws__trainer_peek(rws_trainer *t, rws_folder *folder, rws_error *err) __attribute__((warn_unused_result));

/* Everything that training changes, in the trainer's own memory. */
rws_run_state rws__trainer_state_of(rws_trainer *t);

#endif
