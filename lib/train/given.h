/* given.h - choices that training is given: gathered for every batch, put into the passes of its wake phases. */
#ifndef RWS_TRAIN_GIVEN_H
#define RWS_TRAIN_GIVEN_H

#include "train/trainer.h"

#define RWS_DATUM_LABEL "datum" /* the label that numbers the data of a model */

/* Reads the file that the setting `given` names, and finds out whether the model has labels that are values of sites.
 * Does nothing for a trainer that has neither. RWS_BAD_INPUT if the method cannot learn from given choices, or the file
 * is wrong. */
rws_status rws__given_open(rws_trainer *t, rws_error *err);
void       rws__given_close(rws_trainer *t);

/* Gathers the choices that are given for the data of t->batch. `status` and *err are how these data came; a failure
 * stays what it is, and where the caller gives choices all ranks learn of it. */
rws_status rws__given_gather(rws_trainer *t, rws_status status, rws_error *err);

/* Puts them into a pass whose data begin with number `first` of the batch. */
void rws__given_put(const rws_trainer *t, int first, rws_pass *pass);

#endif
