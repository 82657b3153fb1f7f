/* comm.h - the ranks of a job: several processes, on one machine or many, that train one run together.
 *
 * There is one job per process: rws_ranks_open of rws_train.h joins it, and every trainer that is made afterwards is
 * distributed over its ranks. This folder moves bytes and notices ranks that are gone; it does not know what the bytes
 * mean.
 *
 *     run -> [comm] -> carrier (carrier.h) -> MPI
 *              |
 *              |-> share.c: memory that the ranks of one machine share
 *              '-> watch.c: a thread of each rank, by which rank 0 hears from every rank every second
 *
 * Every rank calls the collective functions in the same order. Messages between two ranks with the same tag arrive in
 * the order in which they were sent. A function that fails returns RWS_BAD_INPUT with a message that names the rank
 * that is gone: the job is then over, and every later call fails at once.
 */
#ifndef RWS_COMM_COMM_H
#define RWS_COMM_COMM_H

#include "comm/carrier.h"
#include "rws_train.h"

#include <stdatomic.h>
#include <stdint.h>

typedef struct rws_comm rws_comm;

/* The job of this process; NULL if the process is alone, or has not called rws_ranks_open. */
rws_comm *rws__comm_world(void);

int rws__comm_rank(const rws_comm *c);
int rws__comm_size(const rws_comm *c);

/* The name of the machine of a rank, and the message's beginning "Rank 2 on node7 (process 4711)". */
const char *rws__comm_describe(const rws_comm *c, int rank, char *out, size_t size);

/* Whether a rank is gone: RWS_BAD_INPUT and the message, else RWS_OK. It costs a read of a flag. */
rws_status rws__comm_alive(const rws_comm *c, rws_error *err);

/* Calls `tell` with the message as soon as a rank is gone: once, on a thread of rank 0 or, if that is the rank, of rank 1.
 * To be called before rws_ranks_open. NULL: nothing is told. */
void rws__comm_on_loss(void (*tell)(const char *message));

/* The number of processes that mpirun or srun has started together, by the environment, before rws_ranks_open (0: neither
 * has, or the environment does not tell), and the number of this one. */
int rws__comm_started(void);
int rws__comm_started_as(void);

/* Removes this from the environment of the process and its children: they are not ranks of one job. */
void rws__comm_forget_start(void);

/* ---- messages that are under way while the caller works: on the channel of slices, from any thread */

typedef int rws_transfer; /* -1: none, or done */

rws_status rws__comm_send(rws_comm *c, int to, int tag, const void *data, size_t bytes, rws_transfer *out,
                          rws_error *err);
rws_status rws__comm_receive(rws_comm *c, int from, int tag, void *data, size_t bytes, rws_transfer *out,
                             rws_error *err);

/* RWS_BAD_INPUT with the message if a message of so many bytes is too large; sending and receiving check it too. Where
 * only some ranks take part in a message, all of them check its size before. */
rws_status rws__comm_check_size(size_t bytes, rws_error *err);

/* Waits until these are done; done ones become -1. */
rws_status rws__comm_wait(rws_comm *c, rws_transfer *list, int n, rws_error *err);

/* ---- memory that the ranks of one machine share (share.c): between them nothing is copied, and MPI has no part in it
 *
 *     rank 1   writes into its own block ... rws__comm_post(mark, 7)
 *     rank 0   rws__comm_await(mark, 7) ..... reads the block of rank 1
 */

/* A number in a block that only grows, from 0 on and modulo 2^32: what is written before a post is seen after the await
 * of it. */
typedef atomic_uint rws_mark;

/* A block of zeros of each rank. */
typedef struct {
    char  **of;    /* by rank: its block as this process sees it; NULL: the rank is on another machine, or has no block
                      that others can see. This rank's own one is never NULL. */
    size_t *bytes; /* by rank, of what is mapped */
} rws_shared;

/* Collective; the blocks of the ranks may differ in size. Two ranks see each other's blocks, or neither does. Where the
 * environment has RWS_SHARED_MEMORY=no, or the system does not allow it, every rank sees its own only. */
rws_status rws__comm_map(rws_comm *c, size_t bytes, rws_shared *out, rws_error *err);

/* Unmaps the blocks. Each rank calls it by itself, when the others no longer read its block. A zeroed one is allowed. */
void rws__comm_unshare(const rws_comm *c, rws_shared *s);

/* The mark of one's own block becomes `value`; `bytes` are counted as sent to each of n ranks. */
void rws__comm_post(rws_comm *c, rws_mark *mark, unsigned value, size_t bytes, int n);

/* Waits until a mark has come to `value`. Messages by MPI move on meanwhile. */
rws_status rws__comm_await(rws_comm *c, const rws_mark *mark, unsigned value, rws_error *err);

/* ---- collective, by the thread that trains
 *
 * These functions ask for no memory and fail only if a rank is gone, so that no rank leaves while others wait. What a
 * caller can fail in between two of them on one rank only, it hands to rws__comm_agree.
 */

/* all[i] becomes `mine` of rank i, `bytes` each. log2 of the ranks rounds of messages for every 4096 bytes. */
rws_status rws__comm_gather(rws_comm *c, const void *mine, size_t bytes, void *all, rws_error *err);

/* The same for parts that differ in size: `all` has bytes start[i] … start[i + 1] - 1 of rank i, and the caller has
 * filled in those of its own rank. `start` has a number more than there are ranks, and is the same on all of them. */
rws_status rws__comm_gather_blocks(rws_comm *c, void *all, const size_t *start, rws_error *err);

/* Copies the bytes of rank 0, or of `root`, to every rank. */
rws_status rws__comm_broadcast(rws_comm *c, void *data, size_t bytes, rws_error *err);
rws_status rws__comm_broadcast_from(rws_comm *c, int root, void *data, size_t bytes, rws_error *err);

/* The first rank whose status is not RWS_OK decides for all: the same status and message everywhere, which says which
 * rank it was unless it is rank 0. */
rws_status rws__comm_agree(rws_comm *c, rws_status status, rws_error *err);

/* The cost of communication of this rank since the last call: seconds in which threads waited or handed messages over,
 * added up over threads; bytes and messages sent. */
typedef struct {
    double   seconds;
    uint64_t bytes, messages;
} rws_comm_stats;

rws_comm_stats rws__comm_take_stats(rws_comm *c);

/* ---- for share.c and watch.c */

/* A rank, as the others name it. */
typedef struct {
    char host[64];
    int  pid;
} rws_member;

/* The ranks, by number. */
const rws_member *rws__comm_members(const rws_comm *c);

/* A rank is gone: `how` ends the message. The first call counts. */
void rws__comm_lost(rws_comm *c, int rank, const char *how);

typedef struct rws_comm_watch rws_comm_watch;

/* Connects the ranks to rank 0 and starts the threads that watch; collective. Where a rank cannot connect to rank 0, the
 * watch is NULL everywhere and only MPI notices a rank that is gone. */
rws_status rws__comm_watch_start(rws_comm *c, rws_comm_watch **out, rws_error *err);

/* Tells the ranks that this one is connected with of a rank that is gone. NULL is allowed. */
void rws__comm_watch_tell(rws_comm_watch *w, int rank);

/* Says goodbye and ends the thread. NULL is allowed. */
void rws__comm_watch_stop(rws_comm_watch *w);

#endif
