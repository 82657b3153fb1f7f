/* ranks.h - which rank does what: the trainer's view of a job (comm/comm.h); included by the files of this folder only.
 *
 *     shards    | 0 1 | 2 3 | 4 5 | 6 7 |       rank r computes shards [r S / R, (r + 1) S / R)
 *     slices    |  0  |  1  |  2  |  3  |       of each parameter group: the owner adds the gradient up, steps, sends
 *     back
 *
 * Where the parameters are few, rank 0 owns them all, and sums travel to it along a binomial tree of ranks instead of
 * straight: log2 R messages one after the other instead of R at one place.
 *
 *     0 <- 1, 2, 4     2 <- 3     4 <- 5, 6     6 <- 7
 *
 * The values that come back travel the same ways in reverse.
 */
#ifndef RWS_TRAIN_RANKS_H
#define RWS_TRAIN_RANKS_H

#include "comm/comm.h"
#include "rws_train.h"

/* Requests of a rank, as bits. After an iteration every rank knows the requests of all ranks. */
enum { RWS_REQUEST_STOP = 1, RWS_REQUEST_SAVE = 2 };

typedef struct {
    rws_comm *comm; /* NULL: alone */
    int       rank, size;
    int       first, end; /* shards of this rank */
} rws_ranks;

/* The ranks of a trainer of n shards. */
rws_ranks rws__ranks_make(rws_comm *comm, int n_shards);

/* The part of n things that a rank has: shards, portions of an evaluation. */
void rws__ranks_range(int size, int rank, int n, int *first, int *end);

/* The rank that has thing i of n. */
int rws__ranks_holder(int size, int n, int i);

/* How this rank takes part in a sum that ends at the rank `root`. The sources are ranks in ascending order, with this
 * rank among them; each source brings the sum over a range of ranks. Values come back from the parent, and are passed
 * on to the sources. */
typedef struct {
    int parent; /* -1: this rank is the root */
    int n;
    int source[]; /* as many as there are ranks */
} rws_route;

/* Writes *route. few: sums travel along the binomial tree, whose root is rank 0; otherwise straight to the root. */
void rws__ranks_route(const rws_ranks *r, int root, bool few, rws_route *route);

/* Returns `end`: the source `rank` brings the shards of the ranks from `rank` to end - 1. */
int rws__ranks_brings(const rws_ranks *r, bool few, int rank);

#endif
