/* phase.h - a phase of the method at work on a batch: what shards.c runs, and what one shard computes.
 *
 *     train.c -> shards.c (which thread and rank runs which shard) -> phase.c (the mathematics of one shard)
 *                                                                  '-> cut.c  (rows of shards that weigh together)
 */
#ifndef RWS_TRAIN_PHASE_H
#define RWS_TRAIN_PHASE_H

#include "train/trainer.h"

/* A phase of the method on n_data data (or, in sleep, on as many times K samples of the model). */
typedef struct {
    rws_trainer        *t;
    const rws_phase    *phase;
    int                 n_data;
    rws_key             key;
    const float *const *fields;
    double              share; /* weight of a datum, or of a sample, in the mean: 1 / their number */
    bool second;               /* the second backward of a control variate, on the passes that the engines still hold */
} rws_phase_work;

/* ---- shards.c */

/* Makes all passes of the phase, shard by shard, the second backward included, and adds the shards' tallies to the
 * trainer's. */
rws_status rws__shards_run(const rws_phase_work *w, rws_error *err);

/* ---- phase.c */

/* The phase with the gradient of phi, if choices are given that the guide learns from. */
rws_phase rws__phase_with_labels(const rws_trainer *t, const rws_phase *phase);

/* The data of a shard; false: it has none. */
bool rws__phase_range(const rws_phase_work *w, int shard, int *first, int *end);

/* The most data of a pass. */
int rws__phase_at_once(const rws_phase_work *w);

/* Forward for data first … end - 1 of a shard; the second time, the derivatives on the tape that the engine holds. */
rws_status rws__phase_begin(const rws_phase_work *w, rws_shard *s, rws_engine *engine, int first, int end);

/* Writes the coefficients of a table. The second time, derivatives that no coefficient can express are added to the
 * gradient of the shard s, if it is not NULL. */
void rws__phase_weigh(const rws_phase_work *w, rws_shard *s, rws_scores *scores, rws_tally *tally);

/* Backward of the pass that the engine holds. `last`: it is the shard's last one, whose products of weights may wait
 * for update.c. */
rws_status rws__phase_finish(const rws_phase_work *w, rws_shard *s, rws_engine *engine, bool last);

/* ---- cut.c */

/* Copies the rows of the engine's table to the shard's `rows`, where the other shards of the same data find them; the
 * second time only the outputs. */
rws_status rws__cut_write(const rws_phase_work *w, int shard, rws_engine *engine);

/* Fetches the rows of other ranks, joins them and weighs the data, after every shard has written its rows. */
rws_status rws__cut_weigh(const rws_phase_work *w, rws_error *err);

/* Writes the coefficients of the shard's own rows into its engine's table. */
void rws__cut_read(const rws_phase_work *w, int shard, rws_engine *engine);

#endif
