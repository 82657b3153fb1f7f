/* job.h - what comm.c (messages) and join.c (joining and leaving a job) share. */
#ifndef RWS_COMM_JOB_H
#define RWS_COMM_JOB_H

#include "comm/comm.h"

#include <pthread.h>

#define RWS_COMM_PIECE 4096 /* bytes of a rank that a gather moves at a time */

struct rws_comm {
    const rws_carrier   *carrier;
    void                *library;
    int                  rank, size;
    rws_member          *members;
    char                *gathered; /* RWS_COMM_PIECE bytes for each rank, into which gathers receive */
    bool                 crowded;  /* more ranks than cores on this machine: waiting threads yield at once */
    pthread_mutex_t      lock;     /* around the carrier, and for: */
    int                 *others;   /* by ticket: the rank at the other end */
    int                  n_others;
    rws_comm_watch      *watch;
    atomic_int           lost; /* 0: no rank is gone; else its number and one */
    char                 how[96];
    atomic_uint_fast64_t nanoseconds, bytes, messages;
};

/* Bruck's gather: `blocks` has room for a block of each rank and begins with this rank's own. In the end block i is that of
 * the rank i further. */
rws_status rws__comm_collect(rws_comm *c, char *blocks, size_t bytes, rws_error *err);

#endif
