/* slices.h - slices of the flat parameter vector, and the messages of the ranks about them; included by the files of
 * this folder only.
 *
 *     update.c    cuts the vector, adds the gradients of a slice up, steps it
 *     exchange.c      brings the sums of other ranks to the owner of a slice, and the owner's values to them
 *
 * Over several ranks a slice has an owner, the rank that steps it. An update of a slice is, on each rank:
 *
 *     rws__exchange_expect      every message that will come by MPI has a place to go to
 *     rws__exchange_collect     own sums and those that other ranks bring: one forest (forest.h)
 *     rws__exchange_send_sums   every rank but the owner: the forest goes to the parent of the route
 *     rws__exchange_give        the owner: the slice is stepped, and its values go back
 *     rws__exchange_take        every rank but the owner: the values come, and are passed on to the ranks that brought
 *     sums
 *     rws__exchange_wait        all messages have left, so that their memory may be written over
 *
 * Any thread may do this for any slice, one thread for a slice at a time. A function that fails has the reason in *err,
 * and the job of ranks is then over.
 */
#ifndef RWS_TRAIN_SLICES_H
#define RWS_TRAIN_SLICES_H

#include "train/trainer.h"
#include "train/forest.h"

/* Rows first … end - 1 of a parameter. */
typedef struct {
    const rws_param *param;
    int              first, end;
} rws_param_rows;

/* Messages about a slice. See exchange.c. */
typedef struct rws_exchange rws_exchange;

/* Pieces of one group that are next to each other in the flat vector. */
struct rws_param_slice {
    rws_group       group;
    size_t          from, end;
    int             n_pieces, owner; /* the rank that steps it */
    rws_param_rows *pieces;
    rws_exchange   *exchange; /* NULL: the trainer is alone */
};

static inline size_t rws__param_slice_size(const rws_param_slice *s)
{
    return s->end - s->from;
}

/* ---- exchange.c */

/* The status of a message: the number behind its sums or values. A rank without memory sends its messages all the same,
 * with RWS_MESSAGE_NO_MEMORY, so that no rank waits for them and all ranks know in the end. */
typedef enum { RWS_MESSAGE_OK, RWS_MESSAGE_NOT_FINITE, RWS_MESSAGE_NO_MEMORY } rws_message_status;

/* Frees the memory of messages about all slices, which rws__slices_map (trainer.h) has made. If a rank is lost, the
 * memory is not freed, because messages may still be written to it. */
void rws__exchange_free(rws_trainer *t);

rws_status rws__exchange_expect(rws_trainer *t, int slice, rws_error *err);

/* Adds the sums of all sources to *all, in the order of their ranks; `own` is the forest of this rank's shards. Waits.
 * *outcome becomes RWS_MESSAGE_NO_MEMORY if a source says so. */
rws_status rws__exchange_collect(rws_trainer *t, int slice, const rws_forest *own, rws_forest *all,
                                 rws_message_status *outcome, rws_error *err);

/* Copies the forest and hands it over to the parent. Nothing is sent if there are no shards behind it. */
rws_status rws__exchange_send_sums(rws_trainer *t, int slice, const rws_forest *all, rws_message_status outcome,
                                   rws_error *err);

/* Sends the slice's values to the ranks that its sums came from. */
rws_status rws__exchange_give(rws_trainer *t, int slice, const float *values, rws_message_status outcome,
                              rws_error *err);

/* Waits for the slice's values, passes them on and writes them to `values`, which stays as it is if *outcome is not
 * RWS_MESSAGE_OK. */
rws_status rws__exchange_take(rws_trainer *t, int slice, float *values, rws_message_status *outcome, rws_error *err);

rws_status rws__exchange_wait(rws_trainer *t, int slice, rws_error *err);

#endif
